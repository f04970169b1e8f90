"""write_graph: a graph as a file of any format that can be read, by the file's ending.

Edges are written from blocks of rows, so that a graph mapped from a store never has to be in memory as a whole (.npz excepted).
Each edge is written once; files appear whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import scipy.sparse as sp

from corecut._files import PACKED, atomic_file, ending_of, packed_stream
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut.graph import Graph
from corecut.store import GraphStore

_BLOCK_ENTRIES = 1 << 22
_STORES = ("", ".store")


def write_graph(graph: Graph, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a graph to a file or store.

    Parameters
    ----------
    graph
        The graph; its `node_ids` are written where the format has ids (edge lists, Parquet, stores).
    path
        Ends in .csv or .tsv (with a header), .txt or .edges (an edge list parted by tabs), .mtx (MatrixMarket), .graph or
        .metis (METIS), .npz (scipy) or .parquet; text may also be compressed (.gz, .bz2, .zst). With .store or no ending it
        becomes a graph store. Edge lists hold no nodes without edges; matrices hold no ids.
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
    if is_store_name(file):
        GraphStore.write(graph, file, overwrite=overwrite)
        return
    with atomic_file(file) as temporary:
        if ending == ".parquet":
            _write_parquet(graph, temporary)
        elif ending == ".npz":
            with temporary.open("wb") as stream:
                sp.save_npz(stream, graph.adjacency)
        else:
            with packed_stream(temporary, file) as stream:
                _TEXT_WRITERS[ending](graph, stream)


def check_graph_path(path: str | Path, *, overwrite: bool) -> Path:
    """Refuse a name that cannot be written to, before any work is done."""
    file = Path(path)
    ending = ending_of(file)
    if ending not in (*_STORES, *_ENDINGS) or (ending in (*_STORES, ".npz", ".parquet") and file.suffix.lower() in PACKED):
        raise ValueError(
            f"cannot tell the format of {file}; end the name in {', '.join(sorted(_ENDINGS))}, or in .store or nothing "
            "for a graph store"
        )
    if not file.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {file.parent}")
    if file.exists() and not overwrite:
        raise FileExistsError(f"{file} exists already; choose another name, or allow to overwrite it")
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


def _tables(graph: Graph) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    text = graph.node_ids is not None and graph.node_ids.dtype.kind in "OUT"
    kind = pa.string() if text else pa.int64()
    fields = [("source", kind), ("target", kind)]
    schema = pa.schema(fields if graph.weights is None else [*fields, ("weight", pa.float64())])

    def batches() -> Iterator[pa.RecordBatch]:
        for begin, end in row_blocks(graph):
            rows, columns, weights = _edges(graph, begin, end)
            ends = [rows, columns] if graph.node_ids is None else [graph.node_ids[rows], graph.node_ids[columns]]
            arrays = [pa.array(ids, kind) for ids in ends]
            if weights is not None:
                arrays.append(pa.array(weights, pa.float64()))
            yield pa.record_batch(arrays, schema=schema)

    return schema, batches()


def _write_parquet(graph: Graph, to: Path) -> None:
    schema, batches = _tables(graph)
    with pq.ParquetWriter(to, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_list(graph: Graph, stream: BinaryIO) -> None:
    _write_edges(graph, stream, f"# {graph.n_nodes} nodes, {_n_edges(graph)} edges", "\t", "none")


def _write_csv(graph: Graph, stream: BinaryIO) -> None:
    _write_edges(graph, stream, ",".join(_tables(graph)[0].names), ",", "needed")


def _write_tsv(graph: Graph, stream: BinaryIO) -> None:
    _write_edges(graph, stream, "\t".join(_tables(graph)[0].names), "\t", "needed")


def _write_edges(graph: Graph, stream: BinaryIO, first_line: str, delimiter: str, quotes: str) -> None:
    schema, batches = _tables(graph)
    stream.write(f"{first_line}\n".encode())
    options = pc.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quotes)
    with pc.CSVWriter(stream, schema, write_options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_matrix_market(graph: Graph, stream: BinaryIO) -> None:
    kind = "pattern" if graph.weights is None else "real"
    stream.write(f"%%MatrixMarket matrix coordinate {kind} symmetric\n".encode())
    stream.write(f"{graph.n_nodes} {graph.n_nodes} {_n_edges(graph)}\n".encode())
    options = pc.WriteOptions(include_header=False, delimiter=" ")
    for begin, end in row_blocks(graph):
        rows, columns, weights = _edges(graph, begin, end, lower=True)
        arrays = [rows + 1, columns.astype(np.int64) + 1] + ([] if weights is None else [weights.astype(np.float64)])
        pc.write_csv(pa.table(arrays, names=["i", "j", "w"][: len(arrays)]), stream, write_options=options)


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


def _n_edges(graph: Graph) -> int:
    loops = 0 if graph.diagonal is None else int(np.count_nonzero(graph.diagonal))
    return (graph.n_entries + loops) // 2


_TEXT_WRITERS: dict[str, Callable[[Graph, BinaryIO], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".txt": _write_list,
    ".edges": _write_list,
    ".mtx": _write_matrix_market,
    ".graph": _write_metis,
    ".metis": _write_metis,
}
_ENDINGS = (*_TEXT_WRITERS, ".npz", ".parquet")
