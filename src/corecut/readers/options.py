"""What the options of reading mean for each format: obeyed by all, or refused where they have no meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._files import GraphFileError
from corecut._typing import AnyArray
from corecut._validation import thread_count
from corecut.edges import EdgeReport, EdgeRules
from corecut.graph import Graph, Symmetrize, adapter_of, as_graph
from corecut.readers.layout import EdgeOptions

_DEFAULT = EdgeOptions()
_CONVERTED = "a graph store holds a finished graph; give the option when you make the store"
_NUMBERED = "the nodes of a matrix are numbered by their rows"
_UNDIRECTED = (
    "its edges are undirected, (u, v) and (v, u) are one; duplicates= (--duplicates) says how the weights of both become one"
)
_NAMED = "it knows its nodes and edges already"
_TEXT_ONLY = dict.fromkeys(("delimiter", "header", "comments"), "it is an option for edge lists as text")

# What has no meaning for a format, and why.
_REFUSED: dict[str, dict[str, str]] = {
    "edgelist": {"symmetrize": _UNDIRECTED},
    "parquet": _TEXT_ONLY | {"symmetrize": _UNDIRECTED},
    "npz edges": _TEXT_ONLY | {"symmetrize": _UNDIRECTED},
    "frame": _TEXT_ONLY | {"ids": "its columns tell what ids are", "symmetrize": _UNDIRECTED, "compact": _NAMED},
    "object": _TEXT_ONLY | dict.fromkeys(("columns", "ids", "compact"), _NAMED),
    "matrix": _TEXT_ONLY | dict.fromkeys(("columns", "ids", "compact"), _NUMBERED),
    "store": _TEXT_ONLY | dict.fromkeys(("columns", "ids", "compact", "symmetrize"), _CONVERTED),
}
_WORDS = {
    "edgelist": "an edge list",
    "parquet": "a Parquet table",
    "npz edges": "an archive of edges",
    "frame": "a frame of edges",
    "object": "a graph in memory",
    "matrix": "a matrix",
    "store": "a graph store",
}


@dataclass(frozen=True)
class Wishes:
    """All that a user may say about reading.

    Attributes
    ----------
    options
        What the columns of a table are.
    rules
        What becomes of repeats and self-loops.
    compact
        Number the ids that occur; False takes ids as node numbers.
    symmetrize
        How to make a directed matrix symmetric.
    """

    options: EdgeOptions = field(default_factory=EdgeOptions)
    rules: EdgeRules = field(default_factory=EdgeRules)
    compact: bool = True
    symmetrize: Symmetrize = None

    @property
    def unit(self) -> bool:
        """Whether every edge is to weigh 1."""
        return not self.options.weights or self.rules.duplicates == "unit"

    def check(self, kind: str, name: str) -> None:
        """Refuse what has no meaning for a kind of file: one of the keys of `_REFUSED`."""
        given = [key for key in ("delimiter", "header", "columns", "ids") if getattr(self.options, key) is not None]
        given += ["comments"] if self.options.comments != _DEFAULT.comments else []
        given += [] if self.compact else ["compact"]
        given += ["symmetrize"] if self.symmetrize is not None else []
        for key in given:
            if key in _REFUSED[kind]:
                raise GraphFileError(f"{name}: {key} has no meaning for {_WORDS[kind]}: {_REFUSED[kind][key]}")
        repeats = self.rules.duplicates
        if kind in ("matrix", "object") and repeats == "max":
            raise GraphFileError(
                f'{name}: duplicates="max" has no meaning for {_WORDS[kind]}: what is given twice is added up; to choose '
                'between an entry and its mirror image pass symmetrize="max"'
            )
        if kind == "store" and repeats in ("sum", "max"):
            raise GraphFileError(f'{name}: duplicates="{repeats}" has no meaning for a graph store: {_CONVERTED}')

    def of_matrix(self, matrix: Any) -> Any:
        """Return a matrix whose entries are 1 if weights are not wanted: it may then be symmetric without them."""
        if not self.unit:
            return matrix
        found = sp.csr_array(matrix, copy=True)
        found.sum_duplicates()
        found.eliminate_zeros()
        bad = ~(found.data >= 0) if found.data.dtype.kind == "f" else found.data < 0
        if found.data.dtype.kind in "biuf" and not bad.any():
            found.data = np.ones(found.nnz)
        return found

    def of_object(self, X: Any, n_jobs: int | None) -> Graph:
        """Return the graph of an object of another library, a frame or a matrix."""
        adapter, name = adapter_of(X), f"the {type(X).__name__}"
        if hasattr(adapter, "row_names") and (self.options.columns is not None or adapter.has_edge_columns(X)):
            self.check("frame", name)
            edges: Graph = adapter.to_graph(
                X, columns=self.options.columns, weights=self.options.weights, rules=self.rules, n_jobs=n_jobs
            )
            return edges
        self.check("object", name)
        graph = as_graph(self.of_matrix(X) if sp.issparse(X) else X, symmetrize=self.symmetrize, n_jobs=n_jobs)
        return self.of_graph(graph, thread_count(n_jobs))[0]

    def of_graph(self, graph: Graph, threads: int) -> tuple[Graph, EdgeReport]:
        """Return a graph without self-loops or weights, where these are not wanted, and what it lost."""
        report = EdgeReport(edges_read=graph.n_edges)
        indptr, indices = graph.indptr, graph.indices
        weights: AnyArray | None = None if self.unit else graph.weights
        if self.rules.loops == "drop" and graph.diagonal is not None:
            lengths = np.diff(indptr)
            keep = indices != np.repeat(np.arange(graph.n_nodes, dtype=indices.dtype), lengths)
            indices, weights = indices[keep], None if weights is None else weights[keep]
            indptr = np.concatenate([indptr[:1], np.cumsum(lengths - (graph.diagonal != 0), dtype=indptr.dtype)])
            report.loops_dropped = keep.size - indices.size
        if indices is not graph.indices or weights is not graph.weights:
            degrees, diagonal, unit, _ = _core.scan(_core.Matrix(indptr, indices, weights), threads)
            loops = diagonal if diagonal.size else None
            graph = Graph(indptr, indices, None if unit else weights, degrees, loops, graph.node_ids)
        report.edges = graph.n_edges
        report.loops = 0 if graph.diagonal is None else int(np.count_nonzero(graph.diagonal))
        return graph, report
