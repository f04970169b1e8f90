"""Graphs from points, through scikit-learn and with the meaning that its `SpectralClustering` gives them.

    neighbours:  C_xy = 1 when y is among the `n_neighbors` points nearest to x (x itself the first),   A = (C + Cᵀ)/2,
    rbf:         A_xy = exp(-γ‖x - y‖²),
    kernel:      A_xy = a kernel of scikit-learn by name ("cosine", "laplacian", "poly", ...), where it is not negative,
    callable:    A_xy = affinity(x, y).

The neighbour graph is exact and sparse: its size grows like n·`n_neighbors`, and it is the one to use. The others hold
every pair of points and are meant for a few thousand of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from corecut._typing import AnyArray
from corecut._validation import check_count, check_option, check_real, thread_count
from corecut.graph import Graph

Kernel = Literal["chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "sigmoid"]

# All pairs of this many points take 5 GB as a graph; one more turn of the screw and a desktop machine is out of memory.
_DENSE_LIMIT = 20_000


def neighbor_graph(
    X: Any, *, n_neighbors: int | Literal["auto"] = "auto", metric: str = "euclidean", n_jobs: int | None = None
) -> Graph:
    """Return the symmetrised graph of nearest neighbours: 1 between points that name each other, ½ where only one does.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, features)
        Points, float32 or float64 (anything else is converted); with `metric="precomputed"` the n × n distances, dense or
        sparse.
    n_neighbors
        Neighbours of each point, the point itself included, as scikit-learn counts them: at least 2. "auto":
        max(10, ⌈2 ln n⌉), at most n - 1 where that is 2 or more. A random geometric graph falls apart below about ln n
        neighbours; twice that leaves room.
    metric
        Any metric of scikit-learn's `NearestNeighbors`, or "precomputed".
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Graph

    Notes
    -----
    Exact neighbours: O(n log n) with trees in few dimensions, O(n²·features) time and O(n) memory in many.

    Examples
    --------
    >>> from corecut import neighbor_graph
    >>> neighbor_graph([[0.0], [1.0], [3.0]], n_neighbors=2).adjacency.toarray()
    array([[1. , 1. , 0. ],
           [1. , 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    from sklearn.neighbors import NearestNeighbors

    points = check_points(X)
    n = points.shape[0]
    check_neighbors(n_neighbors)
    count = auto_neighbors(n) if n_neighbors == "auto" else int(n_neighbors)
    if count > n:
        raise ValueError(f'n_neighbors={count} is more than the {n} points: ask for fewer neighbours, or for "auto"')
    search = NearestNeighbors(n_neighbors=count, metric=metric, n_jobs=thread_count(n_jobs)).fit(points)
    # With X given, a point is its own first neighbour.
    directed = search.kneighbors_graph(points, mode="connectivity")
    return Graph.from_matrix(sp.csr_array(0.5 * (directed + directed.T)), check="none", n_jobs=n_jobs)


def auto_neighbors(n_points: int) -> int:
    """Return the number of neighbours that "auto" stands for, the point itself included."""
    return min(n_points, max(2, min(n_points - 1, max(10, math.ceil(2 * math.log(max(n_points, 1)))))))


def rbf_graph(X: Any, *, gamma: float = 1.0, n_jobs: int | None = None) -> Graph:
    """Return the complete graph with weights exp(-γ‖x - y‖²). O(n²) time and memory, so at most 20,000 points.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, features)
        Points.
    gamma
        γ > 0.
    n_jobs
        Number of threads that look the weights over; the BLAS library that computes them counts its own.

    Returns
    -------
    Graph
        Weights too small for the floating-point type are missing edges.

    Examples
    --------
    >>> from corecut import rbf_graph
    >>> rbf_graph([[0.0], [1.0]], gamma=0.5).adjacency.toarray().round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """
    from sklearn.metrics.pairwise import rbf_kernel

    points = _few_points(X, "rbf")
    return _complete_graph(rbf_kernel(points, gamma=check_real(gamma, "gamma", exclusive=True)), n_jobs)


def kernel_graph(
    X: Any, kernel: Kernel, *, gamma: float = 1.0, degree: float = 3, coef0: float = 1, n_jobs: int | None = None
) -> Graph:
    """Return the graph whose weights are a kernel of scikit-learn. O(n²) time and memory, so at most 20,000 points.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, features)
        Points.
    kernel
        "chi2", "cosine", "laplacian", "linear", "poly" ("polynomial") or "sigmoid"; see `sklearn.metrics.pairwise`.
    gamma, degree, coef0
        What the kernel has of these; the others are left out.
    n_jobs
        Number of threads that look the weights over.

    Returns
    -------
    Graph
        A kernel that is negative between two of the points is refused: weights are similarities.

    Examples
    --------
    >>> from corecut import kernel_graph
    >>> kernel_graph([[1.0, 0.0], [3.0, 4.0]], "cosine").adjacency.toarray().round(3)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """
    from sklearn.metrics import pairwise_kernels

    check_option(kernel, "kernel", get_args(Kernel))
    points = _few_points(X, kernel)
    affinities = pairwise_kernels(points, metric=kernel, filter_params=True, gamma=gamma, degree=degree, coef0=coef0)
    if affinities.size and affinities.min() < 0:
        x, y = np.unravel_index(int(affinities.argmin()), affinities.shape)
        raise ValueError(
            f"affinity={kernel!r} is negative between points {x} and {y} ({affinities[x, y]:g}), and weights are similarities; "
            'make the points non-negative, or use "rbf" or "nearest_neighbors"'
        )
    return _complete_graph(affinities, n_jobs)


def callable_graph(
    X: Any, affinity: Callable[..., float], *, kernel_params: dict[str, Any] | None = None, n_jobs: int | None = None
) -> Graph:
    """Return the graph with weights affinity(x, y). One Python call for every pair, so at most 20,000 points.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, features)
        Points.
    affinity
        Takes two points (rows of `X`) and returns their similarity, not negative. Each pair is asked for once.
    kernel_params
        Other arguments of `affinity`, by name.
    n_jobs
        Number of threads that look the weights over; the calls are made one after the other.

    Returns
    -------
    Graph

    Examples
    --------
    >>> from corecut import callable_graph
    >>> callable_graph([[1.0, 0.0], [1.0, 2.0]], lambda x, y: x @ y).adjacency.toarray()
    array([[1., 1.],
           [1., 5.]])
    """
    from sklearn.metrics import pairwise_kernels

    if not callable(affinity):
        raise TypeError(f"affinity must be a function of two points, got {affinity!r}")
    points = _few_points(X, "callable")
    return _complete_graph(pairwise_kernels(points, metric=affinity, **(kernel_params or {})), n_jobs)


def check_points(X: Any) -> Any:
    """Return points as a finite float32 or float64 array or CSR matrix; scikit-learn words what is wrong with them."""
    from sklearn.utils import check_array

    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])


def check_neighbors(n_neighbors: Any) -> None:
    """Refuse a number of neighbours that is none for any points."""
    if isinstance(n_neighbors, str) and n_neighbors == "auto":
        return
    if check_count(n_neighbors, "n_neighbors") == 1:
        raise ValueError(
            'n_neighbors=1 joins no two points, because a point counts as its own first neighbour: ask for 2 or more, or "auto"'
        )


def _few_points(X: Any, affinity: str) -> Any:
    points = check_points(X)
    if points.shape[0] > _DENSE_LIMIT:
        raise ValueError(
            f"affinity={affinity!r} needs all {points.shape[0]:,}² pairs of points in memory, which is meant for at most "
            f'{_DENSE_LIMIT:,} points; use "nearest_neighbors", whose graph is sparse'
        )
    return points


def _complete_graph(affinities: AnyArray, n_jobs: int | None) -> Graph:
    """Wrap a dense matrix without a second dense copy: only the column indices are added.

    Symmetric by construction, to the last few bits; those can differ where a weight is next to nothing.
    """
    n = affinities.shape[0]
    indptr = np.arange(n + 1, dtype=np.int32) * n
    columns = np.tile(np.arange(n, dtype=np.int32), n)
    matrix = sp.csr_array((affinities.ravel(), columns, indptr), shape=(n, n))
    return Graph.from_matrix(matrix, check="none", n_jobs=n_jobs)
