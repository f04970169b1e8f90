"""Coreset graph: the weighted kernel k-means problem of the coreset, turned back into a graph.

    A_H = W_H K(V') W_H,        degrees D_H = W_H  or the row sums of A_H.

With D_H = W_H the normalised cut of this graph *is* the coreset's kernel k-means cost, which Theorem 1 needs. Its spectral
problem is that of W_H^½ K W_H^½, whose eigenvalues may exceed 1 and which has no trivial eigenvector. Row sums, which the
reference implementation uses, equal W_H in expectation only; they make A_H an ordinary graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp

from corecut._typing import FloatArray
from corecut._validation import check_option
from corecut.coreset import Coreset
from corecut.engines import Engine, LocalEngine
from corecut.graph import Graph
from corecut.kernel import KernelView

Degrees = Literal["weights", "rows"]


@dataclass(frozen=True, eq=False)
class CoresetGraph:
    """A weighted graph whose degrees need not be its row sums.

    Attributes
    ----------
    adjacency
        A_H, with the diagonal that the kernel gives it.
    degrees
        D_H, all positive.
    """

    adjacency: sp.csr_array
    degrees: FloatArray = field(repr=False)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.adjacency.shape[0])

    def as_graph(self) -> Graph:
        """Return it as a graph that keeps these degrees, for the stages that move nodes between clusters."""
        a = self.adjacency
        diagonal = a.diagonal()
        return Graph(a.indptr, a.indices, a.data, self.degrees, diagonal if diagonal.any() else None)


def coreset_graph(
    kernel: KernelView, coreset: Coreset, *, degrees: Degrees = "rows", n_jobs: int | None = None
) -> CoresetGraph:
    """Return A_H = W_H K(V') W_H with the chosen degrees. Cost O(Σ deg over the coreset).

    Parameters
    ----------
    kernel, coreset
        The problem and its sample.
    degrees
        "weights" for D_H = W_H (the theorem), "rows" for the row sums of A_H. A node whose row is empty keeps its weight.

    Returns
    -------
    CoresetGraph

    Examples
    --------
    >>> from corecut import KernelView, build_coreset, coreset_graph, make_sbm
    >>> kernel = KernelView.from_graph(make_sbm(500, 4, 0.5, 0.001, random_state=0)[0])
    >>> coreset = build_coreset(kernel, 4, size=100, random_state=0)
    >>> small = coreset_graph(kernel, coreset, degrees="weights")
    >>> small.n_nodes == coreset.size
    True
    """
    check_option(degrees, "degrees", ("weights", "rows"))
    coreset.check_within(kernel.n_points)
    return graph_of_coreset(kernel, coreset, degrees=degrees, engine=LocalEngine(n_jobs))


def graph_of_coreset(kernel: KernelView, coreset: Coreset, *, degrees: Degrees, engine: Engine) -> CoresetGraph:
    """Return the coreset's graph; see :func:`coreset_graph`. Its rows are read on the engine."""
    matrix = kernel.of_submatrix(coreset.indices, engine.induced(kernel.graph, coreset.indices))
    rows = np.repeat(np.arange(coreset.size), np.diff(matrix.indptr))
    matrix.data *= coreset.weights[rows] * coreset.weights[matrix.indices]
    if degrees == "weights":
        return CoresetGraph(matrix, coreset.weights)
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    return CoresetGraph(matrix, np.where(sums > 0, sums, coreset.weights))
