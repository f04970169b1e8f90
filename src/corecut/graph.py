"""Graph: a symmetric non-negative sparse matrix with its degrees, and the contract that input must meet.

:func:`as_graph` is the one door: matrices, files, stores, and graphs of other libraries (:mod:`corecut.adapters`).

What is accepted: any scipy sparse matrix or array (or a dense square array), bool, integer or float values, 32- or 64-bit
indices, unsorted and duplicate entries (summed), stored zeros (dropped), self-loops or none, isolated nodes, several
components. A canonical CSR matrix is used as it is: its arrays are neither copied nor changed.

What is refused, with the offending entry and the cure: NaN, infinity, negative weights, asymmetry, a matrix that is not
square, column indices out of range, complex and object values.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._typing import AnyArray, BoolArray, FloatArray, IntArray
from corecut._validation import check_option, thread_count
from corecut.sparse_structure import check_structure

Symmetrize = Literal["mean", "max", "min"] | None
Check = Literal["sample", "full", "none"]

# Up to so many entries all are compared; of more, a sample, which misses one asymmetric entry in a thousand once in 150 times.
_FEW_ENTRIES, _SYMMETRY_SAMPLE = 20_000, 5_000


class NotSymmetricError(ValueError):
    """A matrix that is not symmetric, where a graph was expected. The message names an entry and the cure."""


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected weighted graph as a symmetric matrix A in compressed sparse row form.

    Use :meth:`from_matrix` to make one from input that has to be checked. The constructor itself believes its arguments
    and is meant for graphs whose arrays are known to be good.

    Attributes
    ----------
    indptr, indices
        Row borders and sorted column indices (int32 or int64).
    weights
        Values of the entries (float32 or float64), or None when every stored entry is 1.
    degrees
        d = A·1; a self-loop counts once.
    diagonal
        Weights of the self-loops, or None when there are none.
    node_ids
        The nodes' own ids (integers, text, or the objects that another library has for nodes) in the order of their numbers,
        or None when a node's id is its number.
    store
        Folder of the store that the arrays are mapped from, None for a graph in memory.
    """

    indptr: AnyArray
    indices: AnyArray
    weights: AnyArray | None
    degrees: FloatArray = field(repr=False)
    diagonal: FloatArray | None = field(repr=False)
    node_ids: AnyArray | None = field(default=None, repr=False)
    store: Path | None = field(default=None, repr=False)

    @classmethod
    def from_matrix(
        cls, matrix: Any, *, symmetrize: Symmetrize = None, check: Check = "sample", n_jobs: int | None = None
    ) -> Graph:
        """Check a matrix against the input contract and wrap it, without a copy where it is canonical.

        Parameters
        ----------
        matrix
            scipy sparse matrix or array, or a dense square array.
        symmetrize
            What to do with a directed graph: None refuses it; "mean" takes (A + Aᵀ)/2, "max" keeps an edge that exists
            in either direction, "min" only those that exist in both.
        check
            Look for asymmetry in a random "sample" of the entries, in all of them ("full"), or not at all ("none").
        n_jobs
            Number of threads; None for all cores.

        Returns
        -------
        Graph

        Examples
        --------
        >>> import numpy as np
        >>> from corecut import Graph
        >>> graph = Graph.from_matrix(np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]]))
        >>> graph.degrees
        array([2., 3., 1.])
        """
        check_option(check, "check", ("sample", "full", "none"))
        check_option(symmetrize, "symmetrize", (None, "mean", "max", "min"))
        threads = thread_count(n_jobs)
        csr = _as_csr(matrix)
        graph = _scanned(csr, threads)
        if graph is None:
            graph = _scanned(_canonical(csr), threads)
            assert graph is not None
        if symmetrize is not None:
            if _asymmetry(graph, "full", threads) is None:
                return graph
            graph = _scanned(_canonical(_symmetrized(graph.adjacency, symmetrize)), threads)
            assert graph is not None
            return graph
        found = _asymmetry(graph, check, threads)
        if found is not None:
            x, y, forward, backward = found
            raise NotSymmetricError(
                f"the graph is not symmetric: entry ({x}, {y}) = {forward:g} but entry ({y}, {x}) = {backward:g}; "
                'pass symmetrize="mean", "max" or "min", or make the matrix symmetric first'
            )
        return graph

    @property
    def n_nodes(self) -> int:
        """Number of nodes n."""
        return int(self.indptr.shape[0]) - 1

    @property
    def n_entries(self) -> int:
        """Number of stored entries: twice the number of edges, plus the self-loops."""
        return int(self.indices.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of edges, self-loops included."""
        loops = 0 if self.diagonal is None else int(np.count_nonzero(self.diagonal))
        return (self.n_entries + loops) // 2

    @cached_property
    def volume(self) -> float:
        """Sum of all degrees."""
        return float(self.degrees.sum())

    @cached_property
    def isolated(self) -> BoolArray:
        """Mask of the nodes without any edge or self-loop."""
        return np.asarray(self.degrees == 0)

    @cached_property
    def matrix(self) -> _core.Matrix:
        """The handle that native kernels take."""
        return _core.Matrix(self.indptr, self.indices, self.weights)

    @property
    def adjacency(self) -> sp.csr_array:
        """A as a scipy array; shares memory with the graph where scipy allows it."""
        data = np.ones(self.n_entries) if self.weights is None else self.weights
        indptr = self.indptr
        if self.indices.dtype == np.int32 and self.n_entries < 2**31:  # scipy would widen the indices to match a wide indptr
            indptr = indptr.astype(np.int32, copy=False)
        return sp.csr_array((data, self.indices, indptr), shape=(self.n_nodes, self.n_nodes))

    def components(self, n_jobs: int | None = None) -> tuple[int, IntArray]:
        """Return the number of connected components and every node's component, numbered by lowest node."""
        if "_components" not in self.__dict__:
            labels = _core.components(self.matrix, thread_count(n_jobs))
            labels.flags.writeable = False  # all who ask share it
            self.__dict__["_components"] = (int(labels.max()) + 1 if labels.size else 0), labels
        found: tuple[int, IntArray] = self.__dict__["_components"]
        return found

    def subgraph(self, nodes: IntArray, n_jobs: int | None = None, *, compact: bool = False) -> sp.csr_array:
        """Return the principal submatrix A(nodes, nodes), in double precision unless `compact`; `nodes` must increase."""
        return as_submatrix(*_core.induced(self.matrix, nodes, thread_count(n_jobs), compact=compact))

    def __repr__(self) -> str:
        kind = "unit weights" if self.weights is None else f"{self.weights.dtype} weights"
        return f"Graph({self.n_nodes:,} nodes, {self.n_entries:,} entries, {kind})"


def as_submatrix(indptr: IntArray, indices: AnyArray, data: FloatArray) -> sp.csr_array:
    """Return the square matrix of these rows."""
    if data.size < 2**31:  # scipy would widen the indices to match a wide indptr
        indptr = indptr.astype(np.int32)
    n = indptr.size - 1
    return sp.csr_array((data, indices, indptr), shape=(n, n))


# The modules of `corecut.adapters` by the library that a thing comes from. They are named and not imported, because they are
# loaded when such a thing is met, and because they build on this module.
_ADAPTERS = {
    "networkx": "networkx",
    "igraph": "igraph",
    "pandas": "pandas",
    "polars": "pandas",
    "anndata": "anndata",
    "torch": "torch",
    "torch_geometric": "torch",
}
# What to pass instead of the graphs of libraries that have no adapter.
_FOREIGN = {
    "graph_tool": "graph_tool.spectral.adjacency(g)",
    "networkit": "networkit.algebraic.adjacencyMatrix(G)",
    "dgl": 'g.adj_external(scipy_fmt="csr")',
    "torch_sparse": 'adj.to_scipy("csr")',
}


def as_graph(graph: Any, *, symmetrize: Symmetrize = None, check: Check = "sample", n_jobs: int | None = None) -> Graph:
    """Return a graph for whatever holds one: the one door of all functions that take graphs.

    Parameters
    ----------
    graph
        A :class:`Graph`, which is returned as it is; a scipy matrix or a square array; the name of a file, or a
        :class:`GraphStore`; a graph of networkx or igraph; a pandas or polars table of edges, a square pandas frame; an
        AnnData; a tensor or a `Data` of PyTorch Geometric.
    symmetrize, check, n_jobs
        As in :meth:`Graph.from_matrix`. They have no effect on a :class:`Graph` or a store.

    Returns
    -------
    Graph
        With the nodes' names in `node_ids` where the input has them.
    """
    if isinstance(graph, Graph):
        return graph
    if is_store(graph):
        stored: Graph = graph.graph
        return stored
    if is_path(graph):
        read: Graph = import_module("corecut.readers").read_graph(graph, symmetrize=symmetrize, n_jobs=n_jobs)
        return read
    if is_plain(graph):
        kind = "dict of neighbours" if isinstance(graph, dict) else f"{type(graph).__name__} of edges"
        raise TypeError(
            f"a {kind} is not taken for a graph by itself: pass networkx.Graph(X), or "
            'pandas.DataFrame(edges, columns=["source", "target"])'
        )
    adapter = adapter_of(graph)
    if adapter is None:
        return Graph.from_matrix(graph, symmetrize=symmetrize, check=check, n_jobs=n_jobs)
    made: Graph = adapter.opened(graph, symmetrize=symmetrize, check=check, n_jobs=n_jobs)
    return made


def adapter_of(X: Any) -> Any:
    """Return the module of `corecut.adapters` that knows what X is; None for what needs none. Refuse what has none."""
    if isinstance(X, np.ndarray) or sp.issparse(X):
        return None  # whoever has made a class of it: views of AnnData are such
    for library in (base.__module__.partition(".")[0] for base in type(X).__mro__):
        if library in _ADAPTERS and not (library == "anndata" and not hasattr(X, "obsp")):  # its views of frames are frames
            return adapter_named(_ADAPTERS[library])
        if library in _FOREIGN:
            raise TypeError(f"X is an object of {library} ({type(X).__name__}): pass its matrix, {_FOREIGN[library]}")
    return None


def adapter_named(name: str) -> Any:
    """Return a module of `corecut.adapters`."""
    return import_module(f"corecut.adapters.{name}")


def is_path(X: Any) -> bool:
    """Whether X is the name of a file."""
    return isinstance(X, str | os.PathLike)


def is_plain(X: Any) -> bool:
    """Whether X is a graph in plain Python: a dict of neighbours, or a list of pairs of which the first has text in it."""
    if isinstance(X, dict):
        return not sp.issparse(X)  # one of scipy's formats is a dict
    pairs = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], list | tuple)
    return pairs and any(isinstance(end, str) for end in X[0][:2])


def is_store(X: Any) -> bool:
    """Whether X is a graph store."""
    return type(X).__module__ == "corecut.store" and hasattr(X, "graph")


def with_names(graph: Graph, names: AnyArray | None) -> Graph:
    """Return the graph with other names of its nodes."""
    return graph if names is None else replace(graph, node_ids=names)


def _as_csr(matrix: Any) -> CsrArrays:
    """Return the arrays of a square matrix; anything else is refused."""
    if not sp.issparse(matrix):
        dense = np.asarray(matrix)
        if dense.dtype == object or dense.ndim != 2:
            raise TypeError(
                f"a graph must be a square sparse matrix or a square array, got {type(matrix).__name__}"
                + (f" with {dense.ndim} dimension(s)" if dense.dtype != object else " holding objects")
            )
        matrix = dense
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a graph's matrix must be square, got shape {matrix.shape}; rows and columns are the same nodes")
    if matrix.shape[0] == 0:
        raise ValueError("the graph is empty: it has 0 nodes")
    if matrix.dtype.kind not in "biuf":
        raise TypeError(
            f"a graph's weights must be real numbers, got dtype {matrix.dtype}; take the real part or convert first"
        )
    return csr_arrays(matrix)


def csr_arrays(matrix: Any) -> CsrArrays:
    """Return the arrays of any sparse matrix, or of a dense array of two dimensions; no copy where none is needed."""
    if not sp.issparse(matrix):
        # scipy knows neither half precision nor foreign byte orders
        matrix = sp.csr_array(matrix if matrix.dtype == np.float32 else matrix.astype(np.float64))
    elif matrix.format != "csr":
        matrix = _native(matrix)
        check_structure(matrix)  # scipy converts it without looking
    csr = matrix if matrix.format == "csr" else sp.csr_array(matrix)
    data: AnyArray = csr.data
    if data.dtype.kind in "biu" or data.dtype not in (np.float32, np.float64):
        data = data.astype(np.float64)
    indptr, indices = (_index(np.ascontiguousarray(array)) for array in (csr.indptr, csr.indices))
    if indptr.size != csr.shape[0] + 1:
        raise ValueError(f"the matrix is corrupt: indptr has {indptr.size} elements for {csr.shape[0]} rows")
    if 0 <= indptr[-1] < min(indices.size, data.size):
        # scipy allows spare room behind the last entry
        indices, data = indices[: indptr[-1]], data[: indptr[-1]]
    return CsrArrays(indptr, indices, np.ascontiguousarray(data))


@dataclass(frozen=True)
class CsrArrays:
    """CSR arrays of a matrix that scipy has not (yet) been asked to believe, with types that the kernels know."""

    indptr: AnyArray
    indices: AnyArray
    data: AnyArray


def _index(array: AnyArray) -> AnyArray:
    """Return indices in a type that the kernels know: int32 or int64 in the machine's own byte order."""
    if array.dtype.kind not in "iu":
        raise TypeError(f"the matrix is corrupt: its indices are {array.dtype}, not integers")
    if array.dtype.isnative and array.dtype in (np.int32, np.int64):
        return array
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise ValueError(f"index {int(array.max())} is out of range: it does not fit in 64 bits")
    return array.astype(np.int32 if array.dtype.itemsize == 4 and array.dtype.kind == "i" else np.int64)


def _native(matrix: Any) -> Any:
    """Return a sparse matrix whose values have the machine's own byte order and a type that scipy's conversions know."""
    if matrix.dtype.isnative and matrix.dtype.itemsize > 2:
        return matrix
    return matrix.astype(np.float64)


def _scanned(csr: Any, threads: int) -> Graph | None:
    """One parallel pass: bounds, order, values, degrees, diagonal. None when the matrix is good but not canonical."""
    degrees, diagonal, unit, canonical = _core.scan(_core.Matrix(csr.indptr, csr.indices, csr.data), threads)
    with np.errstate(over="ignore"):
        if not np.isfinite(degrees.sum()):
            raise ValueError("the weights of the graph add up to infinity; divide all weights by a common factor")
    if not canonical:
        return None
    return Graph(csr.indptr, csr.indices, None if unit else csr.data, degrees, diagonal if diagonal.size else None)


def _canonical(csr: Any) -> sp.csr_array:
    """Return a sorted copy with duplicates summed and zeros dropped."""
    n = csr.indptr.size - 1
    copy = sp.csr_array((csr.data.copy(), csr.indices.copy(), csr.indptr.copy()), shape=(n, n))
    copy.sum_duplicates()
    copy.eliminate_zeros()
    return copy


def _symmetrized(a: sp.csr_array, how: str) -> sp.csr_array:
    if how == "mean":
        return sp.csr_array((a + a.T) * 0.5)
    return sp.csr_array(a.maximum(a.T) if how == "max" else a.minimum(a.T))


def _asymmetry(graph: Graph, check: str, threads: int) -> tuple[int, int, float, float] | None:
    if check == "none":
        return None
    samples = -1 if check == "full" or graph.n_entries <= _FEW_ENTRIES else _SYMMETRY_SAMPLE
    # A fixed seed: whether a graph is accepted must not depend on luck that changes from run to run.
    found, x, y, forward, backward = _core.find_asymmetry(graph.matrix, samples, 0, threads)
    return (x, y, forward, backward) if found else None
