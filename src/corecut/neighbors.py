"""Graphs from points, with the meaning that scikit-learn's `SpectralClustering` gives them.

    neighbours:  C_xy = 1 when y is among the `n_neighbors` points nearest to x (x itself the first),   A = (C + Cᵀ)/2,
    rbf:         A_xy = exp(-γ‖x - y‖²),
    kernel:      A_xy = a kernel of scikit-learn by name ("cosine", "laplacian", "poly", ...), where it is not negative,
    callable:    A_xy = affinity(x, y).

The neighbour graph is sparse: its size grows like n·`n_neighbors`, and it is the one to use. Dense points and Euclidean
distances are searched by `neighbor_search`, all else by scikit-learn. The others hold every pair of points and are meant for a
few thousand of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut._validation import check_count, check_option, check_real, thread_count
from corecut.advice import advise
from corecut.graph import Graph
from corecut.neighbor_search import EXACT_POINTS, TREE_FEATURES, nearest_points
from corecut.sparse_structure import check_structure

NeighborMethod = Literal["auto", "exact", "approximate"]

Kernel = Literal["chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "sigmoid"]

# All pairs of this many points take 5 GB as a graph; one more turn of the screw and a desktop machine is out of memory.
_DENSE_LIMIT = 20_000
# Less than this, measured on a sample of the points, is told to the user.
_POOR_RECALL = 0.98
# Sparse points become an array of at most so many times as many values, or of so many.
_FILLED, _SMALL = 4, 1 << 23


def neighbor_graph(
    X: Any,
    *,
    n_neighbors: int | Literal["auto"] = "auto",
    metric: str = "euclidean",
    neighbors: NeighborMethod = "auto",
    n_jobs: int | None = None,
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
    neighbors
        "exact", "approximate" (99 of 100 neighbours, for dense points and Euclidean distances), or "auto": exact, but
        approximate beyond 100,000 dense points of more than 8 features.
    n_jobs
        Number of threads; None for all cores. The graph does not depend on it.

    Returns
    -------
    Graph

    Notes
    -----
    Exact neighbours by Euclidean distance: about O(n log n) time with trees in few dimensions, or where points lie in clusters;
    otherwise O(n²·w), where w directions hold most of the points' variation; O(n·w) memory. See
    :mod:`corecut.neighbor_search`. Of equally far points the lowest numbers are taken.

    Examples
    --------
    >>> from corecut import neighbor_graph
    >>> neighbor_graph([[0.0], [1.0], [3.0]], n_neighbors=2).adjacency.toarray()
    array([[1. , 1. , 0. ],
           [1. , 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    return find_neighbors(X, n_neighbors=n_neighbors, metric=metric, neighbors=neighbors, n_jobs=n_jobs).graph(n_jobs)


@dataclass(frozen=True)
class NeighborLists:
    """The neighbours of every point.

    Attributes
    ----------
    indices : array of shape (n, n_neighbors)
        Their numbers, the point itself the first.
    method
        How they were found: "exact", "trees" (exact too) or "approximate".
    recall
        Share of the true neighbours among them, itself not counted: 1 for exact methods, measured on a sample otherwise.
    """

    indices: AnyArray
    method: Literal["exact", "trees", "approximate"]
    recall: float

    def graph(self, n_jobs: int | None = None) -> Graph:
        """Return A = (C + Cᵀ)/2 for the matrix C of who names whom."""
        lists = np.ascontiguousarray(self.indices, np.int32)
        indptr, indices, weights = _core.neighbor_graph(lists, thread_count(n_jobs))
        if indices.size < 2**31:  # as scipy has it, which would widen the indices otherwise
            indptr = indptr.astype(np.int32)
        matrix = sp.csr_array((weights, indices, indptr), shape=(len(lists), len(lists)))
        return Graph.from_matrix(matrix, check="none", n_jobs=n_jobs)


def find_neighbors(
    X: Any,
    *,
    n_neighbors: int | Literal["auto"] = "auto",
    metric: str = "euclidean",
    neighbors: NeighborMethod = "auto",
    n_jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> NeighborLists:
    """Return the neighbours of every point; see :func:`neighbor_graph`.

    Parameters
    ----------
    X, n_neighbors, metric, neighbors, n_jobs
        As there.
    progress
        Called with the share of the work that is done.
    """
    points = check_points(X)
    points = _dense_where_small(points) if metric == "euclidean" else points
    n = points.shape[0]
    check_neighbors(n_neighbors)
    check_option(neighbors, "neighbors", get_args(NeighborMethod))
    count = auto_neighbors(n) if n_neighbors == "auto" else int(n_neighbors)
    if count > n:
        raise ValueError(f'n_neighbors={count} is more than the {n} points: ask for fewer neighbours, or for "auto"')
    threads = thread_count(n_jobs)
    plain = metric == "euclidean" and not sp.issparse(points)
    if neighbors == "approximate" and not plain:
        raise ValueError(
            'neighbors="approximate" is for dense points and Euclidean distances: use "exact", or make sparse points dense in '
            "fewer dimensions first (scikit-learn's TruncatedSVD)"
        )
    if not plain or count == 1:
        return _scikit_learns(points, count, metric, threads)
    many = n > EXACT_POINTS and points.shape[1] > TREE_FEATURES
    approximate = neighbors == "approximate" or (neighbors == "auto" and many)
    found = nearest_points(points, None, count - 1, approximate=approximate, threads=threads, progress=progress)
    own = np.arange(n, dtype=np.int32)[:, None]
    lists = NeighborLists(np.concatenate([own, found.indices], axis=1), found.method, found.recall)
    if found.recall < _POOR_RECALL:
        advise(
            f"only {found.recall:.1%} of the neighbours of a sample of points were found; "
            'neighbors="exact" finds all and takes longer'
        )
    return lists


def _dense_where_small(points: Any) -> Any:
    """Return sparse points as an array where that takes little more room: distances are exact then, as products are not."""
    if not sp.issparse(points) or points.shape[0] * points.shape[1] > max(_FILLED * points.nnz, _SMALL):
        return points
    return points.toarray()


def _in_range(largest: float, points: Any) -> tuple[Any, int]:
    """Return points in a unit in which squares of values up to `largest` are numbers, and its power of two."""
    exponent = 0 if largest == 0 or 1e-100 < largest < 1e100 else int(np.frexp(largest)[1])
    if exponent == 0:
        return points, 0
    if not sp.issparse(points):
        return np.ldexp(points, -exponent), exponent
    scaled = points.copy()
    scaled.data = np.ldexp(points.data, -exponent)
    return scaled, exponent


def _largest(points: Any) -> float:
    return float(np.abs(points.data if sp.issparse(points) else points).max(initial=0.0))


def _scikit_learns(points: Any, count: int, metric: str, threads: int) -> NeighborLists:
    from sklearn.neighbors import NearestNeighbors

    if metric == "euclidean":
        points, _ = _in_range(_largest(points), points)
    search = NearestNeighbors(n_neighbors=count, metric=metric, n_jobs=threads).fit(points)
    # With the points given, a point is its own first neighbour.
    return NeighborLists(search.kneighbors(points, return_distance=False), "exact", 1.0)


def nearest(
    points: Any, queries: Any, n_neighbors: int, *, metric: str = "euclidean", n_jobs: int | None = None
) -> tuple[IntArray, FloatArray]:
    """Return the `n_neighbors` points nearest to every query, nearest first, and their distances.

    Parameters
    ----------
    points : array or sparse matrix of shape (n, features)
        Points to choose from.
    queries : array or sparse matrix of shape (q, features)
        Points to find neighbours of. One that is also among `points` finds itself there.
    n_neighbors
        Neighbours of each query, between 1 and n.
    metric
        Any metric of scikit-learn's `NearestNeighbors` but "precomputed".
    n_jobs
        Number of threads; None for all cores. The result does not depend on it.

    Returns
    -------
    indices : array of shape (q, n_neighbors)
        Row numbers in `points`; of equally far points the lowest first (Euclidean distances of dense points).
    distances : array of shape (q, n_neighbors)
    """
    points, queries = check_points(points), check_points(queries)
    if metric == "euclidean" and sp.issparse(points) and not sp.issparse(dense := _dense_where_small(points)):
        points, queries = dense, queries.toarray() if sp.issparse(queries) else queries
    if queries.shape[1] != points.shape[1]:
        raise ValueError(f"the queries have {queries.shape[1]} features, and the points {points.shape[1]}: they must agree")
    if check_count(n_neighbors, "n_neighbors") > points.shape[0]:
        raise ValueError(f"n_neighbors={n_neighbors} is more than the {points.shape[0]} points: ask for fewer neighbours")
    threads = thread_count(n_jobs)
    if metric == "euclidean" and not sp.issparse(points) and not sp.issparse(queries):
        found = nearest_points(points, queries, n_neighbors, threads=threads)
        return found.indices.astype(np.int64), found.distances
    from sklearn.neighbors import NearestNeighbors

    largest = max(_largest(points), _largest(queries)) if metric == "euclidean" else 0.0
    (points, exponent), (queries, _) = _in_range(largest, points), _in_range(largest, queries)
    search = NearestNeighbors(n_neighbors=n_neighbors, metric=metric, n_jobs=threads).fit(points)
    distances, indices = search.kneighbors(queries)
    with np.errstate(over="ignore"):  # a distance may be beyond all numbers
        return indices, np.ldexp(distances, exponent)


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
    with np.errstate(over="ignore", invalid="ignore"):
        affinities = rbf_kernel(points, gamma=check_real(gamma, "gamma", exclusive=True))
    return _complete_graph(affinities, n_jobs)


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
    with np.errstate(over="ignore", invalid="ignore"):
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
    """Return points as a finite float32 or float64 array or CSR matrix; scikit-learn words what is wrong with their form."""
    from sklearn.utils import check_array

    points = check_array(with_sound_structure(X), accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False)
    check_finite(points)
    return points


def with_sound_structure(X: Any) -> Any:
    """Return points; refuse sparse ones whose indices lead out of the matrix, before anything reads them."""
    if sp.issparse(X) and X.ndim == 2:
        X = X.tocsr() if X.format == "lil" else X  # from lists of indices, which are only put one behind the other
        check_structure(X, "rows", "columns")
    return X


def check_finite(points: Any) -> None:
    """Refuse points of which a value is missing or infinite."""
    values = points.data if sp.issparse(points) else points
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if np.isfinite(total) or np.isfinite(values).all():  # the sum is quicker, and may overflow
        return
    table = points.tocoo() if sp.issparse(points) else None
    at = np.flatnonzero(~np.isfinite(values if table is None else table.data))[0]
    row, column = np.unravel_index(at, points.shape) if table is None else (table.coords[0][at], table.coords[1][at])
    bad = (values if table is None else table.data).flat[at]
    what = "NaN" if np.isnan(bad) else "infinity"
    raise ValueError(
        f"X has {what} in row {row}, column {column} (counted from 0): fill in or leave out points that are not known whole"
    )


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
    if not np.isfinite(affinities.sum()) and np.isnan(affinities).any():
        raise ValueError(
            "the kernel of these points is no number: their values are too large to be squared; scale X down first"
        )
    n = affinities.shape[0]
    indptr = np.arange(n + 1, dtype=np.int32) * n
    columns = np.tile(np.arange(n, dtype=np.int32), n)
    matrix = sp.csr_array((affinities.ravel(), columns, indptr), shape=(n, n))
    return Graph.from_matrix(matrix, check="none", n_jobs=n_jobs)
