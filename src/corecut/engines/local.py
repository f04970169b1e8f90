"""The local engine: all stages on the threads of this process. And what any engine must offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import scipy.sparse as sp

from corecut import _core
from corecut._typing import AnyArray, FloatArray, IntArray, LabelArray
from corecut._validation import thread_count
from corecut.graph import Graph
from corecut.kernel import KernelView
from corecut.races import first_of_race

Rows = tuple[IntArray, LabelArray, FloatArray]
Refined = tuple[int, int, float, float, bool]
# Distance and nearest seed of every point; distances looked at; how many were clipped, and the shift that would mend it.
Distances = tuple[FloatArray, LabelArray, int, int, float]
# Distinct points, how often each was drawn, their masses, and the sum of all masses.
Drawn = tuple[IntArray, IntArray, FloatArray, float]
# Nearest centre of every node, what it and the second nearest are away less K_xx, and the number of nodes that touch none.
Labelled = tuple[LabelArray, FloatArray, FloatArray, int]


@dataclass(frozen=True, eq=False)
class Centres:
    """What labelling knows of the centres; see `ImpliedCentres` of the native kernel."""

    nodes: IntArray
    labels: LabelArray
    load: FloatArray
    own: FloatArray
    norms: FloatArray
    pull: FloatArray | None
    touched_only: bool


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
        max_passes: int,
        tolerance: float,
    ) -> Refined:
        """Move nodes in rounds while the objective falls; `labels` are changed in place.

        Returns moves, passes, the objective before and after, and whether no move was left.
        """

    def margins(self, graph: Graph, labels: LabelArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Return every node's weight towards its own cluster and towards the strongest other one."""

    def race(self, kernel: KernelView, points: IntArray, count: int, *, seed: int, number: int) -> IntArray:
        """Return the winners of a race by w(x)Δ(x, `points`), in their order."""

    def distances(self, kernel: KernelView, points: IntArray) -> Distances:
        """Return distances to seeds that hold x*, in the order in which they were added."""

    def draw(
        self,
        kernel: KernelView,
        points: IntArray,
        *,
        distances: FloatArray,
        nearest: LabelArray,
        by_seeds: bool,
        n_draws: int,
        seed: int,
    ) -> Drawn:
        """Draw points by their sensitivities, independently."""

    def induced(self, graph: Graph, nodes: IntArray) -> sp.csr_array:
        """Return the principal submatrix on some nodes, in increasing order."""

    def label(self, kernel: KernelView, centres: Centres) -> Labelled:
        """Return the nearest centre of every node."""


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
        return graph.components(self.threads)

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
            max_passes=max_passes,
            tolerance=tolerance,
            threads=self.threads,
        )
        return found

    def margins(self, graph: Graph, labels: LabelArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Return margins; see :class:`Engine`."""
        found: tuple[AnyArray, AnyArray] = _core.cluster_margins(graph.matrix, labels, k, self.threads)
        return found

    def race(self, kernel: KernelView, points: IntArray, count: int, *, seed: int, number: int) -> IntArray:
        """Return the winners; see :class:`Engine`."""
        return first_of_race(kernel.weights * self.distances(kernel, points)[0], count, seed, number)[1]

    def distances(self, kernel: KernelView, points: IntArray) -> Distances:
        """Return distances; see :class:`Engine`."""
        arrays = kernel.matrix, kernel.scale, kernel.diagonal, kernel.weights
        found: tuple[Any, ...] = _core.sample_seeds(*arrays, "rejection", 0, points, 0, self.threads)
        distances, nearest, checks, clipped, missing = found[1:6]
        return distances, nearest, checks, clipped, missing

    def draw(
        self,
        kernel: KernelView,
        points: IntArray,
        *,
        distances: FloatArray,
        nearest: LabelArray,
        by_seeds: bool,
        n_draws: int,
        seed: int,
    ) -> Drawn:
        """Draw points; see :class:`Engine`."""
        mass = _core.sensitivities(kernel.weights, distances, nearest, points, by_seeds, self.threads)
        indices, counts, total = _core.draw_points(mass, n_draws, seed, self.threads)
        return indices, counts, mass[indices], total

    def induced(self, graph: Graph, nodes: IntArray) -> sp.csr_array:
        """Return the submatrix; see :class:`Engine`."""
        return graph.subgraph(nodes, self.threads)

    def label(self, kernel: KernelView, centres: Centres) -> Labelled:
        """Return nearest centres; see :class:`Engine`."""
        c = centres
        arrays = c.nodes, c.labels, c.load, c.own, c.norms, kernel.rank_one, c.pull, c.touched_only
        found: Labelled = _core.label_nodes(kernel.matrix, kernel.scale, *arrays, self.threads)
        return found
