"""write_graph: a graph as a file of any format that can be read, by the file's ending.

Edges are written from blocks of rows, so that a graph mapped from a store never has to be in memory as a whole (.npz excepted).
Each edge is written once; files appear whole or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from corecut import _core
from corecut._files import (
    PACKED,
    PARQUET,
    EndingError,
    atomic_file,
    check_target,
    ending_of,
    packed_stream,
    require_arrow,
    require_packages,
)
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut.advice import advise
from corecut.graph import Graph, as_graph
from corecut.node_ids import checked_ids, packed_names
from corecut.store import GraphStore

_BLOCK_ENTRIES = 1 << 22
_STORES = ("", ".store")
_EDGE_LISTS = (".csv", ".tsv", ".txt", ".edges", *PARQUET)
# Text ids that need no quotes. All others get them: numbers, which would be read as such, what could be taken for a comment or
# a header, and what holds blanks or marks.
_PLAIN = re.compile(r"[A-Za-z_\u0080-\U0010ffff][\w./:@+\u0080-\U0010ffff-]*")
_NOT_PLAIN = ("source", "target", "weight", "nan", "inf", "infinity")


def write_graph(graph: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a graph to a file or store.

    Parameters
    ----------
    graph
        The graph, or a matrix that :meth:`Graph.from_matrix` takes. Its `node_ids` are written where the format has ids (edge
        lists, Parquet, .npz, stores); where it has none, a warning says so.
    path
        Ends in .csv or .tsv (with a header), .txt or .edges (an edge list parted by tabs), .mtx (MatrixMarket), .graph or
        .metis (METIS), .npz (scipy), .parquet or .pq; text may also be compressed (.gz, .bz2, .zst). With .store or no
        ending it becomes a graph store. Edge lists hold no nodes without edges, and a warning tells how many are left out;
        MatrixMarket and METIS hold no ids.
    overwrite
        Replace a file or store of that name.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from corecut import Graph, read_graph, write_graph
    >>> graph = Graph.from_matrix(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_graph(graph, pathlib.Path(folder) / "star.mtx")
    ...     read_graph(pathlib.Path(folder) / "star.mtx").n_entries
    4
    """
    file = Path(path)
    check_graph_path(file, overwrite=overwrite)
    ending = ending_of(file)
    graph = as_graph(graph)
    graph = replace(graph, node_ids=checked_ids(graph.node_ids))
    if is_store_name(file):
        GraphStore.write(graph, file, overwrite=overwrite)
        return
    if graph.node_ids is not None and ending in (".mtx", ".graph", ".metis"):
        advise(
            f"{file} cannot hold the nodes' own ids: its nodes are numbered in the order of the graph's node_ids; to keep the "
            "ids choose Parquet, CSV, npz or a store"
        )
    if ending in _EDGE_LISTS:
        alone = int(np.count_nonzero(np.diff(graph.indptr) == 0))
        if alone:
            advise(
                f"{file} cannot hold nodes without edges: {alone:,} of {graph.n_nodes:,} nodes are left out; to keep them "
                "choose npz, MatrixMarket or a store"
            )
    with atomic_file(file, overwrite=overwrite) as temporary:
        if ending in PARQUET:
            _write_parquet(graph, temporary)
        elif ending == ".npz":
            with temporary.open("wb") as stream:
                _write_npz(graph, stream)
        else:
            with packed_stream(temporary, file) as stream:
                _TEXT_WRITERS[ending](graph, stream)


def check_graph_path(path: str | Path, *, overwrite: bool) -> Path:
    """Refuse a name that cannot be written to, before any work is done."""
    file = Path(path)
    ending = ending_of(file)
    check_target(file, directory=ending in _STORES)
    if ending not in (*_STORES, *_ENDINGS) or (ending in (*_STORES, ".npz", *PARQUET) and file.suffix.lower() in PACKED):
        raise EndingError(
            f"cannot tell the format of {file}; end the name in {', '.join(sorted(_ENDINGS))}, or in .store or nothing "
            "for a graph store"
        )
    require_packages(file)
    if file.exists() and not overwrite:
        raise FileExistsError(f"{file} exists already; choose another name, or pass overwrite=True")
    return file


def is_store_name(path: str | Path) -> bool:
    """Whether a name means a graph store."""
    return ending_of(Path(path)) in _STORES


def row_blocks(graph: Graph) -> Iterator[tuple[int, int]]:
    """Give ranges of rows with some millions of entries each."""
    begin, n = 0, graph.n_nodes
    while begin < n:
        end = int(np.searchsorted(graph.indptr, int(graph.indptr[begin]) + _BLOCK_ENTRIES, side="right")) - 1
        end = min(max(end, begin + 1), n)
        yield begin, end
        begin = end


def _edges(graph: Graph, begin: int, end: int, *, lower: bool = False) -> tuple[IntArray, AnyArray, FloatArray | None]:
    """Return the edges of a range of rows, each seen from its lower end (or, with `lower`, from its higher one)."""
    first, last = int(graph.indptr[begin]), int(graph.indptr[end])
    rows = np.repeat(np.arange(begin, end), np.diff(graph.indptr[begin : end + 1]))
    columns = graph.indices[first:last]
    keep = columns <= rows if lower else columns >= rows
    return rows[keep], columns[keep], None if graph.weights is None else graph.weights[first:last][keep]


def _names(graph: Graph) -> list[str]:
    return ["source", "target"] if graph.weights is None else ["source", "target", "weight"]


def _write_parquet(graph: Graph, to: Path) -> None:
    pa, pq = require_arrow("Parquet files", "parquet")
    kind = pa.string() if graph.node_ids is not None and graph.node_ids.dtype.kind == "O" else pa.int64()
    types = [kind, kind, pa.float64()]
    schema = pa.schema(list(zip(_names(graph), types, strict=False)))
    with pq.ParquetWriter(to, schema) as writer:
        for begin, end in row_blocks(graph):
            rows, columns, weights = _edges(graph, begin, end)
            ends = [rows, columns] if graph.node_ids is None else [graph.node_ids[rows], graph.node_ids[columns]]
            values = ends if weights is None else [*ends, weights]
            arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _write_npz(graph: Graph, stream: BinaryIO) -> None:
    """Write what scipy.sparse.save_npz would, and the ids beside it."""
    a = graph.adjacency
    arrays = {"indices": a.indices, "indptr": a.indptr, "format": b"csr", "shape": a.shape, "data": a.data, "_is_array": True}
    if graph.node_ids is not None and graph.node_ids.dtype.kind == "O":
        text, offsets = packed_names(graph.node_ids.tolist())
        arrays |= {"node_ids": np.frombuffer(text, np.uint8), "node_ids_offsets": offsets}
    elif graph.node_ids is not None:
        arrays |= {"node_ids": graph.node_ids}
    np.savez_compressed(stream, **arrays)


def _write_list(graph: Graph, stream: BinaryIO) -> None:
    # The names in a comment, as SNAP has them: then no edge can be taken for a header.
    stream.write(f"# {graph.n_nodes} nodes, {graph.n_edges} edges\n# ".encode())
    _write_edges(graph, stream, "\t")


def _write_csv(graph: Graph, stream: BinaryIO) -> None:
    _write_edges(graph, stream, ",")


def _write_tsv(graph: Graph, stream: BinaryIO) -> None:
    _write_edges(graph, stream, "\t")


def _write_edges(graph: Graph, stream: BinaryIO, delimiter: str) -> None:
    stream.write(f"{delimiter.join(_names(graph))}\n".encode())
    names: tuple[bytes, IntArray] | tuple[None, None] = (None, None)
    ids = graph.node_ids
    if ids is not None and ids.dtype.kind == "O":
        names = packed_names([quoted(name) for name in ids.tolist()])
        ids = None
    for begin, end in row_blocks(graph):
        rows, columns, weights = _edges(graph, begin, end)
        ends = [rows, columns] if ids is None else [ids[rows], ids[columns]]
        stream.write(_lines(ends[0], ends[1], weights, delimiter, names))


def _lines(
    source: AnyArray,
    target: AnyArray,
    weights: FloatArray | None,
    delimiter: str,
    names: tuple[bytes, IntArray] | tuple[None, None] = (None, None),
) -> bytes:
    numbers = [np.ascontiguousarray(ends, np.int64) for ends in (source, target)]
    values = None if weights is None else np.ascontiguousarray(weights, np.float64)
    return _core.format_edges(numbers[0], numbers[1], values, delimiter, *names)


def quoted(name: str) -> str:
    """Return a text id as it is written to a table: in quotes, unless nobody could take it for anything else."""
    if _PLAIN.fullmatch(name) and name.lower() not in _NOT_PLAIN:
        return name
    return '"' + name.replace('"', '""') + '"'


def _write_matrix_market(graph: Graph, stream: BinaryIO) -> None:
    kind = "pattern" if graph.weights is None else "real"
    stream.write(f"%%MatrixMarket matrix coordinate {kind} symmetric\n".encode())
    stream.write(f"{graph.n_nodes} {graph.n_nodes} {graph.n_edges}\n".encode())
    for begin, end in row_blocks(graph):
        rows, columns, weights = _edges(graph, begin, end, lower=True)
        stream.write(_lines(rows + 1, columns.astype(np.int64) + 1, weights, " "))


def _write_metis(graph: Graph, stream: BinaryIO) -> None:
    if graph.diagonal is not None:
        raise ValueError("a METIS file cannot hold self-loops; drop them, or choose another format")
    stream.write(f"{graph.n_nodes} {graph.n_entries // 2}{'' if graph.weights is None else ' 001'}\n".encode())
    for begin, end in row_blocks(graph):
        first, last = int(graph.indptr[begin]), int(graph.indptr[end])
        tokens = [str(column) for column in (graph.indices[first:last].astype(np.int64) + 1).tolist()]
        if graph.weights is not None:
            weights = graph.weights[first:last].tolist()
            tokens = [f"{token} {weight!r}" for token, weight in zip(tokens, weights, strict=True)]
        borders = (graph.indptr[begin : end + 1] - first).tolist()
        lines = [" ".join(tokens[a:b]) for a, b in pairwise(borders)]
        stream.write(("\n".join(lines) + "\n").encode())


_TEXT_WRITERS: dict[str, Callable[[Graph, BinaryIO], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".txt": _write_list,
    ".edges": _write_list,
    ".mtx": _write_matrix_market,
    ".graph": _write_metis,
    ".metis": _write_metis,
}
_ENDINGS = (*_TEXT_WRITERS, ".npz", *PARQUET)
