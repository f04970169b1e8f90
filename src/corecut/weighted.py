"""A graph whose nodes stand for several: what aggregation makes, and what draws, repair and refinement work on.

A group of a quotient stands for the nodes in it, a coreset's node for those it was drawn for. Sizes count original nodes, so
that bounds on cluster sizes mean the same on every level. A node without edges has size 0 here: no cut depends on it, and it is
placed one by one at the end, wherever the bounds want it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corecut import _core
from corecut._typing import BoolArray, FloatArray, IntArray, LabelArray
from corecut.engines import Engine, LocalEngine
from corecut.graph import Graph


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """A graph and the number of original nodes that each of its nodes stands for.

    Attributes
    ----------
    graph
        The graph. Its degrees need not be the row sums (those of a coreset's graph may be weights).
    sizes
        Original nodes behind each node.
    """

    graph: Graph
    sizes: FloatArray = field(repr=False)

    @classmethod
    def of(cls, graph: Graph) -> WeightedGraph:
        """Return a graph whose nodes stand for themselves, and those without edges for nobody."""
        return cls(graph, (graph.degrees > 0).astype(np.float64))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.graph.n_nodes

    def contract(self, groups: LabelArray, *, n_jobs: int | None = None, engine: Engine | None = None) -> WeightedGraph:
        """Return the quotient graph Q = SᵀAS of a grouping numbered 0, 1, ... without gaps."""
        count, engine = int(groups.max()) + 1, engine or LocalEngine(n_jobs)
        indptr, indices, weights = engine.contract(self.graph, groups, count)
        _, diagonal, _, _ = _core.scan(_core.Matrix(indptr, indices, weights), engine.threads)
        # Not the row sums: the degrees of a coreset's graph are its own, and add up.
        degrees, sizes = sums_by(groups, self.graph.degrees, count), sums_by(groups, self.sizes, count)
        return WeightedGraph(Graph(indptr, indices, weights, degrees, diagonal if diagonal.size else None), sizes)

    def restrict(self, keep: BoolArray, *, n_jobs: int | None = None) -> WeightedGraph:
        """Return the part on the nodes of a mask that no edge leaves."""
        if keep.all():
            return self
        nodes = np.flatnonzero(keep)
        part = self.graph.subgraph(nodes, n_jobs, compact=True)
        diagonal = None if self.graph.diagonal is None else self.graph.diagonal[nodes]
        graph = Graph(part.indptr, part.indices, part.data, self.graph.degrees[nodes], diagonal)
        return WeightedGraph(graph, self.sizes[nodes])


def sums_by(labels: LabelArray | IntArray, values: FloatArray, count: int) -> FloatArray:
    """Return the sum of the values of every label 0..count-1."""
    sums: Any = np.bincount(labels, values, minlength=count)  # Any: NumPy's types do not know that a weighted count is a float
    return np.asarray(sums, dtype=np.float64)
