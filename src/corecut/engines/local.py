"""The local engine: all stages on the threads of this process. And what any engine must offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from corecut import _core
from corecut._typing import AnyArray, FloatArray, IntArray, LabelArray
from corecut._validation import thread_count
from corecut.graph import Graph

Rows = tuple[IntArray, LabelArray, FloatArray]
Refined = tuple[int, int, float, float, bool]


class Engine(Protocol):
    """The stages that read all edges of a graph."""

    @property
    def threads(self) -> int:
        """Number of threads of this process, for what runs in it."""
        ...

    def session(self, graph: Graph, purpose: dict[str, Any], note: Callable[[str], None] | None = None) -> Any:
        """Return a context in which stages run on `graph` and its quotients.

        `purpose` is all that decides the result; `note` is told how far a stage is.
        """

    def components(self, graph: Graph) -> tuple[int, IntArray]:
        """Return the number of connected components and every node's component, numbered by lowest node."""

    def group_nodes(self, graph: Graph, masses: FloatArray, cap: float, *, max_passes: int) -> LabelArray:
        """Return the group of every node after rounds of local moves, under a bound on sums of `masses` (degrees or sizes)."""

    def contract(self, graph: Graph, groups: LabelArray, count: int) -> Rows:
        """Return the rows of the quotient graph: borders, columns and weights, these in single precision where it is exact."""

    def refine(
        self,
        graph: Graph,
        sizes: FloatArray,
        labels: LabelArray,
        *,
        k: int,
        objective: _core.Objective,
        due: FloatArray | None,
        max_passes: int,
        tolerance: float,
    ) -> Refined:
        """Move nodes in rounds while the objective falls; `labels` are changed in place.

        Returns moves, passes, the objective before and after, and whether no move was left.
        """

    def margins(self, graph: Graph, labels: LabelArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Return every node's weight towards its own cluster and towards the strongest other one."""


class LocalEngine:
    """The threads of this process.

    Parameters
    ----------
    n_jobs
        Number of threads; None for all cores.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.threads = thread_count(n_jobs)

    @contextmanager
    def session(self, graph: Graph, purpose: dict[str, Any], note: Callable[[str], None] | None = None) -> Iterator[None]:
        """Give a context; threads need nothing."""
        del graph, purpose, note
        yield

    def components(self, graph: Graph) -> tuple[int, IntArray]:
        """Return components; see :class:`Engine`."""
        return graph.components()

    def group_nodes(self, graph: Graph, masses: FloatArray, cap: float, *, max_passes: int) -> LabelArray:
        """Return groups; see :class:`Engine`."""
        groups: LabelArray = _core.group_nodes(graph.matrix, masses, cap, max_passes, self.threads)
        return groups

    def contract(self, graph: Graph, groups: LabelArray, count: int) -> Rows:
        """Return the quotient's rows; see :class:`Engine`."""
        rows: Rows = _core.contract(graph.matrix, groups, count, self.threads, compact=True)
        return rows

    def refine(
        self,
        graph: Graph,
        sizes: FloatArray,
        labels: LabelArray,
        *,
        k: int,
        objective: _core.Objective,
        due: FloatArray | None,
        max_passes: int,
        tolerance: float,
    ) -> Refined:
        """Refine labels in place; see :class:`Engine`."""
        found: Refined = _core.refine(
            matrix=graph.matrix,
            degrees=graph.degrees,
            sizes=sizes,
            labels=labels,
            k=k,
            objective=objective,
            due=due,
            max_passes=max_passes,
            tolerance=tolerance,
            threads=self.threads,
        )
        return found

    def margins(self, graph: Graph, labels: LabelArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Return margins; see :class:`Engine`."""
        found: tuple[AnyArray, AnyArray] = _core.cluster_margins(graph.matrix, labels, k, self.threads)
        return found
