"""Prediction: the cluster that a new node, or a new point, joins.

A node x that has the weights a_xy to the fitted nodes joins the cluster, among those that it has weight to, where F of the
graph with x in it (:mod:`corecut.objective`, with the balance of the fit) is lowest. Its edges add to degrees at both ends:

    argmax_j kept(assoc_j + 2A(x, j) + a_xx, vol_j + A(x, j) + d_x) - kept(assoc_j, vol_j + A(x, j)),
    A(x, j) = Σ_{y∈j} a_xy,      d_x = Σ_j A(x, j) + a_xx.

So a node that is taken out of a graph, and comes back as a new one, returns to its cluster wherever no move of it would have
lowered F. Of the fit this needs n labels and 2k sums, and nothing of the graph. How x comes by its weights depends on the
affinity:

- "precomputed": they are the row that is given; a_xx = 0.
- "nearest_neighbors", "precomputed_nearest_neighbors": 1 to each of the `n_neighbors` - 1 fitted points nearest to x, and to
  x itself, as among the fitted points. Whether those would name x, too, is not asked for.
- kernels and functions of two points: their values, between x and every fitted point.

**What was fitted keeps its label.** A row that equals a fitted one is that node or point, and is not new. A row is known again
by a number of 64 bits (its fingerprint), a point also by comparing it with the fitted one. Of several fitted rows that are
equal, the first decides.

**A row without any weight** to a fitted node goes where `fit` puts nodes without edges, to the cluster of largest volume,
with confidence 0 and a warning.

Confidence is the margin of :mod:`corecut.confidence`: the share of x's weight that speaks for its cluster more than for the
next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from corecut import _core
from corecut._typing import AnyArray, FloatArray, IntArray, LabelArray
from corecut._validation import thread_count
from corecut.graph import CsrArrays, Graph, adapter_of, csr_arrays
from corecut.neighbors import nearest
from corecut.spectral.blas import single_threaded_blas

FingerprintArray = NDArray[np.uint64]

# Rows of a block: of few neighbours each, and such that all similarities of a block to the fitted points take 64 MB.
_BLOCK, _BLOCK_ENTRIES = 1 << 16, 1 << 22
_GOLDEN = 0x9E3779B97F4A7C15

PREDICTED = {
    "graph": "predict takes a row of similarities to the fitted nodes for each new node, such as the new nodes' rows and the "
    "fitted nodes' columns of an adjacency matrix: a matrix, an array or a corecut.Graph",
    "points": "predict takes points, as this model was fitted on points",
}
"""What prediction takes, by what was fitted."""


@dataclass(frozen=True, eq=False)
class FittedClusters:
    """What prediction needs of a partition.

    Attributes
    ----------
    labels
        Cluster of every fitted node.
    association, volume
        assoc_j and vol_j of every cluster.
    fee
        c of the objective.
    """

    labels: LabelArray = field(repr=False)
    association: FloatArray
    volume: FloatArray
    fee: float

    def join(self, rows: Rows, *, n_jobs: int | None = None) -> tuple[LabelArray, FloatArray]:
        """Return the cluster that every row joins, -1 for one without a neighbour, and its confidence."""
        labels, margins = _core.join_clusters(
            rows.matrix,
            self.labels,
            self.association,
            self.volume,
            fee=self.fee,
            loops=rows.loops,
            nodes=rows.nodes,
            first=rows.first,
            threads=thread_count(n_jobs),
        )
        return labels, margins


@dataclass(frozen=True, eq=False)
class Rows:
    """A block of rows of weights to the fitted nodes.

    Attributes
    ----------
    first
        Number of the first row in `X`.
    matrix
        The weights.
    nodes
        Which fitted node a row is, -1 for a new one.
    loops
        Weights of the new nodes to themselves; None for none.
    """

    first: int
    matrix: _core.Matrix
    nodes: IntArray
    loops: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class FittedInput:
    """How rows of `X` become weights to the fitted nodes, and which of them were fitted.

    Attributes
    ----------
    affinity
        A name that is not "auto", or a function of two points.
    n_columns
        Columns that `X` has: features of points, else fitted nodes.
    n_neighbors
        Neighbours of each point, itself included; 0 where the affinity has none.
    parameters
        Of the kernel, by name; those that it does not have are left out.
    points
        The fitted points; None where the affinity is precomputed.
    fingerprints
        Of the fitted rows; None where points tell them.
    """

    affinity: str | Callable[..., float]
    n_columns: int
    n_neighbors: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    points: Any = field(default=None, repr=False)
    fingerprints: FingerprintArray | None = field(default=None, repr=False)

    def blocks(self, X: Any, *, n_jobs: int | None = None) -> Iterator[Rows]:
        """Return the rows of `X` as blocks of weights; what they take of memory does not grow with the number of rows."""
        if self.affinity == "precomputed" and (isinstance(X, Graph) or sp.issparse(X)):
            yield self._given(X, 0, n_jobs)  # as it is, without a copy
            return
        if self.affinity == "precomputed":
            size = max(1, _BLOCK_ENTRIES // max(self.n_columns, 1))
            make = self._given
        elif self.affinity == "nearest_neighbors":
            size, make = _BLOCK, self._near
        elif self.affinity == "precomputed_nearest_neighbors":
            size, make = (_BLOCK if sp.issparse(X) else max(1, _BLOCK_ENTRIES // self.n_columns)), self._near_by_distance
        else:
            size, make = max(1, _BLOCK_ENTRIES // self.points.shape[0]), self._alike
        for begin in range(0, X.shape[0], size):
            yield make(self._in_form(X[begin : begin + size]), begin, n_jobs)

    def _in_form(self, X: Any) -> Any:
        """Return new points as the fitted ones are, sparse or dense."""
        if self.points is None or sp.issparse(X) == sp.issparse(self.points):
            return X
        return X.toarray() if sp.issparse(X) else sp.csr_array(X)

    def _given(self, X: Any, first: int, n_jobs: int | None) -> Rows:
        """Rows that are weights already."""
        if isinstance(X, Graph):
            return Rows(first, X.matrix, self._known.find(graph_fingerprints(X, n_jobs=n_jobs)))
        matrix, numbers = _fingerprinted(csr_arrays(X), self.n_columns, n_jobs)
        return Rows(first, matrix, self._known.find(numbers))

    def _near(self, X: Any, first: int, n_jobs: int | None) -> Rows:
        """Rows of points: 1 to the nearest fitted ones."""
        # Of one type, which the search is quickest with.
        indices, _ = nearest(self.points, X.astype(self.points.dtype), self.n_neighbors, n_jobs=n_jobs)
        return _of_neighbors(indices, self._fitted_points(X), first)

    def _near_by_distance(self, X: Any, first: int, n_jobs: int | None) -> Rows:
        """Rows of distances: 1 to the nearest fitted points among those that have one."""
        _refuse_negative(X, first)
        if not sp.issparse(X):
            numbers = _fingerprinted(csr_arrays(X), self.n_columns, n_jobs)[1]
            indices = np.argsort(X, axis=1, kind="stable")[:, : self.n_neighbors]
            return _of_neighbors(indices, self._known.find(numbers), first)
        arrays = csr_arrays(X)
        nodes = self._known.find(_fingerprinted(arrays, self.n_columns, n_jobs)[1])
        lengths = np.diff(arrays.indptr)
        row = np.repeat(np.arange(lengths.size), lengths)
        others = arrays.indices != nodes[row]
        row, columns, distances = row[others], arrays.indices[others], arrays.data[others]
        order = np.lexsort((columns, distances, row))
        borders = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=lengths.size))])
        chosen = np.arange(row.size) - borders[row] < self.n_neighbors - 1
        taken = np.minimum(np.diff(borders), self.n_neighbors - 1)
        matrix = _core.Matrix(np.concatenate([[0], np.cumsum(taken)]), columns[order][chosen], None)
        return Rows(first, matrix, nodes, np.ones(lengths.size))

    def _alike(self, X: Any, first: int, n_jobs: int | None) -> Rows:
        """Rows of points: a kernel, or a function of two points."""
        from sklearn.metrics import pairwise_kernels

        named = isinstance(self.affinity, str)
        parameters = {"metric": self.affinity, **self.parameters, **({"filter_params": True} if named else {})}
        # scikit-learn's kernels in Cython take no arrays that are read-only, as those of a mapped file are.
        X, points = (one if sp.issparse(one) else np.require(one, requirements="W") for one in (X, self.points))
        with single_threaded_blas():
            similarities = pairwise_kernels(X, points, **parameters)
            rows, n = similarities.shape
            # Few at a time: a function is asked for one pair after the other, a kernel for all pairs of some.
            few = 32 if named else 1
            loops = [pairwise_kernels(X[i : i + few], **parameters).diagonal() for i in range(0, rows, few)]
        matrix = _core.Matrix(np.arange(rows + 1) * n, np.tile(np.arange(n, dtype=np.int32), rows), similarities.ravel())
        return Rows(first, matrix, self._fitted_points(X), np.concatenate(loops).astype(np.float64))

    def _fitted_points(self, X: Any) -> IntArray:
        """Return which fitted point each point is, -1 for new ones."""
        nodes = self._known.find(point_fingerprints(X))
        found = np.flatnonzero(nodes >= 0)
        if found.size == 0:
            return nodes
        differ = X[found] != self.points[nodes[found]]
        nodes[found[np.asarray(differ.sum(axis=1)).ravel() > 0]] = -1
        return nodes

    @cached_property
    def _known(self) -> _Fingerprints:
        return _Fingerprints(point_fingerprints(self.points) if self.fingerprints is None else self.fingerprints)

    def __getstate__(self) -> dict[str, Any]:
        # Without what can be made again.
        return {one.name: getattr(self, one.name) for one in fields(self)}


class _Fingerprints:
    """Fingerprints of the fitted rows in increasing order, and whose they are."""

    def __init__(self, numbers: FingerprintArray) -> None:
        self._order = np.argsort(numbers, kind="stable")
        self._sorted = numbers[self._order]

    def find(self, numbers: FingerprintArray) -> IntArray:
        """Return the first node that has each number, -1 where none has; rows without entries have 0, and are nobody."""
        places = np.minimum(np.searchsorted(self._sorted, numbers), self._sorted.size - 1)
        known = (self._sorted[places] == numbers) & (numbers != 0)
        return np.where(known, self._order[places], -1).astype(np.int64)


def graph_fingerprints(graph: Graph, *, n_jobs: int | None = None) -> FingerprintArray:
    """Return the fingerprint of every node's row. One pass over the edges."""
    numbers: FingerprintArray = _core.row_fingerprints(graph.matrix, graph.n_nodes, thread_count(n_jobs))[0]
    return numbers


def matrix_fingerprints(matrix: Any, *, n_jobs: int | None = None) -> FingerprintArray:
    """Return the fingerprint of every row of a matrix, dense or sparse."""
    return _fingerprinted(csr_arrays(matrix), matrix.shape[1], n_jobs)[1]


def point_fingerprints(points: Any) -> FingerprintArray:
    """Return the fingerprint of every point: its coordinates' bits times odd numbers, added up.

    The same for dense and sparse points and for float32 and float64, where the coordinates are the same numbers.
    """
    if sp.issparse(points):  # of the columns that occur: there may be billions
        terms = _bits(points.data) * _odd_numbers(points.indices)
        sums = np.concatenate([[np.uint64(0)], np.cumsum(terms, dtype=np.uint64)])
        return np.asarray(sums[points.indptr[1:]] - sums[points.indptr[:-1]] + np.uint64(_GOLDEN))
    numbers, factors = np.empty(points.shape[0], np.uint64), _odd_numbers(np.arange(points.shape[1]))
    size = max(1, _BLOCK_ENTRIES // max(points.shape[1], 1))
    for begin in range(0, points.shape[0], size):
        numbers[begin : begin + size] = _bits(points[begin : begin + size]) @ factors + np.uint64(_GOLDEN)
    return numbers


def _bits(values: AnyArray) -> NDArray[np.uint64]:
    # Adding 0 makes one zero of both; the high bits, where the digits of short numbers are, come down.
    bits = np.ascontiguousarray(values.astype(np.float64) + 0.0).view(np.uint64)
    return np.asarray(bits ^ (bits >> np.uint64(32)))


def _odd_numbers(columns: IntArray) -> NDArray[np.uint64]:
    steps = (columns.astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN)
    return np.asarray((steps ^ (steps >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) | np.uint64(1))


def _fingerprinted(arrays: CsrArrays, n_columns: int, n_jobs: int | None) -> tuple[_core.Matrix, FingerprintArray]:
    """Return the handle that kernels take and the fingerprints of the rows, with repeated entries added up."""
    threads = thread_count(n_jobs)
    matrix = _core.Matrix(arrays.indptr, arrays.indices, arrays.data)
    numbers, increasing = _core.row_fingerprints(matrix, n_columns, threads)
    if not increasing:  # the columns have been looked at, so that scipy may believe them
        copy = sp.csr_array((arrays.data, arrays.indices, arrays.indptr), shape=(arrays.indptr.size - 1, n_columns)).copy()
        copy.sum_duplicates()
        matrix = _core.Matrix(copy.indptr, copy.indices, copy.data)
        numbers, _ = _core.row_fingerprints(matrix, n_columns, threads)
    return matrix, numbers


def _of_neighbors(indices: IntArray, nodes: IntArray, first: int) -> Rows:
    """Return rows of 1 to the given points. A point is its own first neighbour: a new one has one fewer of the others."""
    itself = indices == nodes[:, None]
    dropped = np.where(itself.any(axis=1), itself.argmax(axis=1), indices.shape[1] - 1)
    others = indices[np.arange(indices.shape[1]) != dropped[:, None]].astype(np.int64)
    borders = np.arange(indices.shape[0] + 1) * (indices.shape[1] - 1)
    return Rows(first, _core.Matrix(borders, others, None), nodes, np.ones(indices.shape[0]))


def _refuse_negative(distances: Any, first: int) -> None:
    """Refuse a distance below 0, which would count as very near; the fit refuses it, too."""
    values = distances.data if sp.issparse(distances) else distances
    if values.size and values.min() < 0:
        at = int(values.argmin())
        row = int(np.searchsorted(distances.indptr, at, side="right")) - 1 if sp.issparse(distances) else at // values.shape[1]
        raise ValueError(
            f"row {first + row} of X has a negative distance ({values.min():g}); distances to the fitted points are 0 or more"
        )


def checked_rows(X: Any, n_columns: int, names: AnyArray | None, *, owner: str) -> Any:
    """Return rows of similarities to the fitted nodes as a matrix, an array or a Graph; refuse anything else.

    Parameters
    ----------
    X
        What the user gave.
    n_columns, names
        Number of the fitted nodes, and what they are called; None where they are numbered.
    owner
        Name of the estimator, for messages.
    """
    if isinstance(X, Graph):
        shape: tuple[int, ...] = (X.n_nodes, X.n_nodes)
    else:
        adapter = adapter_of(X)
        X = adapter.columns_of_nodes(X, names) if hasattr(adapter, "columns_of_nodes") else X
        X = adapter.matrix_of(X) if hasattr(adapter, "matrix_of") else X
        try:
            table = X if sp.issparse(X) else np.asarray(X)
        except ValueError:
            raise ValueError(f"the rows of X are not of one length: expected {n_columns} similarities in each") from None
        if len(table.shape) == 0:
            raise TypeError(f"X is a {type(X).__name__}; {PREDICTED['graph']}")
        X, shape = table, table.shape
    if len(shape) != 2:
        raise ValueError(
            f"X must have a row for every new node with {n_columns} similarities, got {len(shape)} dimension(s). "
            "Reshape your data: X.reshape(1, -1) is one node"
        )
    if shape[1] != n_columns:
        raise ValueError(
            f"X has {shape[1]} features, but {owner} is expecting {n_columns} features as input: the similarities of "
            "every new node to the fitted nodes"
        )
    if isinstance(X, Graph):
        _refuse_other_nodes(X, names)
    elif X.dtype.kind not in "biuf":
        raise TypeError(f"similarities must be real numbers, got dtype {X.dtype}; convert them first")
    return X


def _refuse_other_nodes(graph: Graph, names: AnyArray | None) -> None:
    """Refuse a graph whose nodes have names that are not those of the fitted ones, in their order: its columns are others."""
    if names is None or graph.node_ids is None:
        return
    pairs = zip(graph.node_ids.tolist(), names.tolist(), strict=True)
    number, differ = next(((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1]), (0, None))
    if differ is not None:
        raise ValueError(
            f"the Graph's nodes are not the fitted ones in their order: node {number} is {differ[0]!r}, the fitted one is "
            f"{differ[1]!r}; pass the matrix of similarities with its columns in the order of node_ids_"
        )


def predict_rows(
    clusters: FittedClusters, source: FittedInput, X: Any, *, n_jobs: int | None = None
) -> tuple[LabelArray, FloatArray, int]:
    """Return labels and confidence of all rows of `X`, and how many of them have no fitted neighbour."""
    found = [clusters.join(rows, n_jobs=n_jobs) for rows in source.blocks(X, n_jobs=n_jobs)]
    labels = np.concatenate([np.empty(0, np.int32), *(one[0] for one in found)])
    confidence = np.concatenate([np.empty(0), *(one[1] for one in found)])
    alone = labels < 0
    labels[alone] = clusters.volume.argmax()
    return labels, confidence, int(np.count_nonzero(alone))
