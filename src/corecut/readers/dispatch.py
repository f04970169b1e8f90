"""read_graph: which reader a file needs, and the way from it to a Graph or to a store."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from corecut._files import (
    GraphFileError,
    ending_of,
    first_line,
    naming_where_full,
    parse_size,
    require_free_space,
    require_memory,
)
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut._validation import check_option, thread_count
from corecut.edges import EdgeReport, EdgeRules, EdgeSpool, Progress, RowSink, assemble
from corecut.graph import Graph, NotSymmetricError, Symmetrize, is_path
from corecut.readers.edgelist import EdgeListReader
from corecut.readers.foreign import known_foreign, read_foreign, refuse_foreign
from corecut.readers.layout import EdgeOptions
from corecut.readers.matrix_market import read_matrix_market
from corecut.readers.metis import asymmetry, read_metis
from corecut.readers.npz import ArchivedEdges, ArchivedMatrix, read_npz
from corecut.readers.options import Wishes
from corecut.readers.parquet import ParquetReader
from corecut.readers.streams import BLOCK_BYTES, LineBlocks, Source
from corecut.store import GraphStore, StoreWriter

Format = Literal["edgelist", "matrix_market", "metis", "npz", "parquet", "graphml", "gml", "store"]
_FORMATS = get_args(Format)


def guess_format(path: str | Path | Source) -> Format:
    """Return the format of a file: by its first bytes where they tell, else by its name."""
    source = path if isinstance(path, Source) else Source(path)
    file = source.path
    if not source.is_pipe and file.is_dir():
        if GraphStore.is_store(file):
            return "store"
        tables = any(one.suffix in (".parquet", ".pq") for one in file.iterdir())
        cure = (
            "a folder of Parquet files is read by corecut cluster --dask alone" if tables else "give the name of a file in it"
        )
        raise GraphFileError(f"{file} is a directory without graph.json, not a graph store; {cure}")
    start = source.start(1 << 12)
    if start.startswith(b"%%MatrixMarket"):
        return "matrix_market"
    if start.startswith(b"PK\x03\x04"):
        return "npz"
    if start.startswith(b"PAR1"):
        return "parquet"
    foreign = known_foreign(start)
    if foreign is not None:
        return foreign
    refuse_foreign(start, source.name)
    by_name: dict[str, Format] = {".mtx": "matrix_market", ".graph": "metis", ".metis": "metis", ".npz": "npz"}
    by_name |= {".parquet": "parquet", ".pq": "parquet", ".graphml": "graphml", ".gml": "gml"}
    return by_name.get(ending_of(file), "edgelist")


def read_graph(
    path: Any,
    *,
    format: Format | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    columns: tuple[str | int, ...] | None = None,
    weights: bool = True,
    ids: Literal["integer", "text"] | None = None,
    comments: str = "#%",
    compact: bool = True,
    duplicates: Literal["auto", "unit", "sum", "max"] = "auto",
    loops: Literal["keep", "drop"] = "keep",
    symmetrize: Symmetrize = None,
    n_jobs: int | None = None,
) -> Graph:
    r"""Read a graph from a file (edge list, CSV, MatrixMarket, METIS, npz, Parquet, GraphML, GML), a store, or an object.

    Edge lists are undirected: (u, v), (v, u) and repeats are one edge. In a list without weights it weighs 1; with weights, the
    weights of repeats are added up (see `duplicates`). Ids become node numbers 0 .. n - 1 in the order of the ids (text: in the
    order of appearance) and are kept in :attr:`Graph.node_ids`. A *matrix* (MatrixMarket, METIS, .npz) must be symmetric, or
    `symmetrize` says how to make it so.

    Parameters
    ----------
    path
        The file; text may be compressed by gzip, bzip2 or zstd, and may come from a pipe; "-" is standard input. A store is a
        directory and is mapped, not read. GraphML and GML are read with networkx. Or a graph of another library, a frame, a
        matrix (:func:`corecut.graph.as_graph`).
    format
        "edgelist", "matrix_market", "metis", "npz", "parquet", "graphml", "gml" or "store"; None finds out by content and name.
    delimiter, header, columns, ids, comments
        What cannot be seen from the first lines of an edge list. `delimiter` "" stands for any blanks; `columns` names or
        numbers (from 0) source, target and perhaps weight; `ids` "integer" or "text". Parquet has `columns` and `ids`, too, and
        a frame `columns`.
    weights
        False ignores weights: every edge weighs 1.
    compact
        False takes integer ids as node numbers: ids that do not occur become nodes without edges.
    duplicates
        "sum", "max" or "unit" (every edge weighs 1) for repeated edges.
    loops
        "keep" or "drop" self-loops.
    symmetrize
        For matrices and directed graphs: "mean", "max" or "min" of an entry and its mirror image.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Graph

    Raises
    ------
    ValueError
        When the file is not what it should be; the message names the line. Also when an option has no meaning for the file's
        format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from corecut import read_graph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "edges.txt"
    ...     _ = file.write_text("# from to\nanna bert\nbert carla\ncarla anna\n")
    ...     graph = read_graph(file)
    >>> graph
    Graph(3 nodes, 6 entries, unit weights)
    >>> list(graph.node_ids)
    ['anna', 'bert', 'carla']
    """
    options = EdgeOptions(delimiter, header, columns, weights, ids, comments)
    rules = EdgeRules(duplicates, loops)
    if not is_path(path):
        if format is not None:
            raise ValueError(f"format={format!r} has no meaning for a {type(path).__name__}: it is for files")
        return Wishes(options, rules, compact, symmetrize).of_object(path, n_jobs)
    loaded = load_graph(
        path, format=format, options=options, rules=rules, compact=compact, symmetrize=symmetrize, n_jobs=n_jobs
    )
    return loaded[0]


def load_graph(
    path: str | Path | Source,
    *,
    format: Format | None = None,
    options: EdgeOptions | None = None,
    rules: EdgeRules | None = None,
    compact: bool = True,
    symmetrize: Symmetrize = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Graph, EdgeReport]:
    """Read a graph as `read_graph` does and also say what was merged and dropped on the way."""
    check_option(format, "format", (None, *_FORMATS))
    source = path if isinstance(path, Source) else Source(path)
    kind = format or guess_format(source)
    wishes = Wishes(options or EdgeOptions(), rules or EdgeRules(), compact, symmetrize)
    threads = thread_count(n_jobs)
    if kind == "store":
        wishes.check("store", source.name)
        return wishes.of_graph(GraphStore.open(source.require_file("a graph store")).graph, threads)
    if kind in ("graphml", "gml"):
        wishes.check("matrix", source.name)
        return wishes.of_graph(read_foreign(source, kind, symmetrize=symmetrize, n_jobs=n_jobs), threads)
    content = read_npz(source.require_file("a NumPy archive"), options) if kind == "npz" else None
    if kind in ("matrix_market", "metis") or isinstance(content, ArchivedMatrix):
        wishes.check("matrix", source.name)
        lines: IntArray | None = None
        ids: AnyArray | None = None
        if kind == "metis":
            matrix, lines = read_metis(source)
        elif isinstance(content, ArchivedMatrix):
            matrix, ids = content.matrix, content.node_ids
        else:
            matrix = read_matrix_market(source, threads=threads)
        matrix = wishes.of_matrix(matrix)
        try:
            graph = Graph.from_matrix(matrix, symmetrize=symmetrize, n_jobs=n_jobs)
        except NotSymmetricError as error:
            raise GraphFileError(
                f"{source.name}, {asymmetry(matrix, lines)}" if lines is not None else f"{source.name}: {error}"
            ) from None
        except (ValueError, TypeError, MemoryError) as error:
            raise GraphFileError(f"{source.name}: {first_line(error)}") from None
        if ids is not None:
            if ids.shape != (graph.n_nodes,):
                raise GraphFileError(f"{source.name}: has ids for {ids.size} of {graph.n_nodes} nodes")
            graph = replace(graph, node_ids=ids)
        return wishes.of_graph(graph, threads)
    sink = _MemorySink()
    found, report = _stream(source, kind, sink, EdgeSpool(wishes.rules), wishes=wishes, n_jobs=n_jobs, progress=progress)
    return sink.graph(found), report


def convert_graph(
    path: str | Path,
    store: str | Path,
    *,
    memory: str | int = "2GB",
    overwrite: bool = False,
    format: Format | None = None,
    options: EdgeOptions | None = None,
    rules: EdgeRules | None = None,
    compact: bool = True,
    symmetrize: Symmetrize = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[GraphStore, EdgeReport]:
    """Make a graph store of a file, within a bound on memory; edge lists and Parquet tables may be far larger than memory.

    Parameters
    ----------
    path
        The graph's file; see :func:`read_graph` for the formats and options. Matrices (MatrixMarket, METIS, .npz) are read
        into memory as a whole, whatever the bound.
    store
        The directory to make. It appears when it is complete.
    memory
        Bytes to stay within, as a number or like "2GB": tables over the nodes (some 20 bytes each, names of text ids about 100)
        and the buckets. Below what the tables need the bound cannot be kept.
    overwrite
        Replace a store of that name.
    progress
        Called with a stage's name, what is done, and what there is to do.

    Returns
    -------
    The store, and counts of what was read, merged and dropped.
    """
    check_option(format, "format", (None, *_FORMATS))
    source, final = Source(path), Path(store)
    bound = parse_size(memory)
    kind = format or guess_format(source)
    wishes = Wishes(options or EdgeOptions(), rules or EdgeRules(), compact, symmetrize)
    in_memory = kind not in ("edgelist", "parquet")
    with naming_where_full(final), StoreWriter.create(final, overwrite=overwrite) as writer:
        if not in_memory:
            require_free_space(writer.folder, _disk_needed(source, kind, bound), "the store with its temporary files")
        if in_memory:
            graph, report = load_graph(
                source, format=kind, options=options, rules=rules, compact=compact, symmetrize=symmetrize, n_jobs=n_jobs
            )
            writer.copy(graph)
        else:
            spool = EdgeSpool(wishes.rules, writer.folder, bound)
            ids, report = _stream(source, kind, writer, spool, wishes=wishes, n_jobs=n_jobs, progress=progress)
            writer.finish(ids)
    return GraphStore.open(final), report


def _stream(
    source: Source,
    kind: Format,
    sink: RowSink,
    spool: EdgeSpool,
    *,
    wishes: Wishes,
    n_jobs: int | None,
    progress: Progress | None,
) -> tuple[AnyArray | None, EdgeReport]:
    """Run the edges of a file through the spool into the sink; return the nodes' ids and the report."""
    name = source.name
    threads = thread_count(n_jobs)
    n_nodes: int | None = None
    reader: EdgeListReader | ParquetReader | None = None
    wishes.check("npz edges" if kind == "npz" else kind, name)
    try:
        if kind == "npz":
            n_nodes = _add_archive(source, spool, wishes)
        elif kind == "parquet":
            reader = ParquetReader(source.require_file("a Parquet table"), wishes.options)
        else:
            reader = EdgeListReader(source, wishes.options, block_bytes=_block_bytes(spool), threads=threads)
        if reader is not None:
            for block in reader.blocks():
                if not wishes.compact and reader.n_names is not None:
                    raise GraphFileError(f"{name}: compact=False (--keep-ids) needs ids that are numbers, this file has names")
                spool.add(*block)
                if progress:
                    progress("reading", reader.done, max(reader.size, reader.done))
            spool.report.comments = reader.comments
            n_nodes = reader.n_names
        if spool.highest < 0 and spool.lowest == 0 and n_nodes is None:
            raise GraphFileError(f"{name}: there is no edge left in this file")
        if not wishes.compact:
            require_memory(
                24 * (spool.highest + 1), f"{name}: a graph of {spool.highest + 1:,} nodes, as many as the ids go up to,"
            )
        try:
            ids = assemble(spool, sink, n_nodes=n_nodes, compact=wishes.compact, threads=threads, progress=progress)
        except ValueError as error:
            raise GraphFileError(f"{name}: {error}") from None
    finally:
        spool.close()
    return (ids if reader is None or reader.n_names is None else reader.names()), spool.report


def _add_archive(source: Source, spool: EdgeSpool, wishes: Wishes) -> int | None:
    """Add the edges of a NumPy archive; return the number of nodes where the archive tells it."""
    content = read_npz(source.path, wishes.options)
    assert isinstance(content, ArchivedEdges), "matrices are read elsewhere"
    if wishes.options.ids == "text":
        raise GraphFileError(f"{source.name}: holds its ids as integers; leave ids out")
    if not wishes.compact and content.n_nodes is not None:
        raise GraphFileError(f"{source.name}: says by its array 'n' that ids are node numbers; leave compact (--keep-ids) out")
    if content.n_nodes is not None:
        require_memory(24 * content.n_nodes, f"{source.name}: a graph of {content.n_nodes:,} nodes")
    spool.add(content.source, content.target, content.weight)
    return content.n_nodes


def graph_of_edges(
    source: AnyArray,
    target: AnyArray,
    weight: FloatArray | None,
    *,
    rules: EdgeRules,
    n_nodes: int | None = None,
    node_ids: AnyArray | None = None,
    threads: int = 1,
) -> Graph:
    """Return the graph of edges in memory, whose ends are node numbers; by default as many nodes as the numbers go up to."""
    spool, sink = EdgeSpool(rules), _MemorySink()
    spool.add(source, target, weight)
    assemble(spool, sink, n_nodes=n_nodes, compact=False, threads=threads)
    return sink.graph(node_ids)


@dataclass
class _MemorySink:
    """Keeps the rows."""

    _pieces: list[tuple[IntArray, AnyArray, FloatArray | None, FloatArray, FloatArray]] = field(default_factory=list)

    def begin(self, n_nodes: int, index_type: np.dtype[np.generic], weighted: bool) -> None:
        """Nothing to prepare."""

    def rows(
        self, lengths: IntArray, columns: AnyArray, weights: FloatArray | None, degrees: FloatArray, diagonal: FloatArray
    ) -> None:
        """Take the rows."""
        self._pieces.append((lengths, columns, weights, degrees, diagonal))

    def graph(self, node_ids: AnyArray | None) -> Graph:
        """Return the graph of the rows."""
        lengths = np.concatenate([piece[0] for piece in self._pieces])
        columns = np.concatenate([piece[1] for piece in self._pieces])
        indptr = np.zeros(lengths.size + 1, np.int32 if columns.size < 2**31 else np.int64)
        np.cumsum(lengths, out=indptr[1:])
        found = [piece[2] for piece in self._pieces if piece[2] is not None]
        weights = np.concatenate(found) if found and not all((part == 1).all() for part in found) else None
        degrees = np.concatenate([piece[3] for piece in self._pieces])
        diagonal = None
        if any(piece[4].size for piece in self._pieces):
            diagonal = np.concatenate([piece[4] if piece[4].size else np.zeros(piece[0].size) for piece in self._pieces])
        return Graph(indptr, columns, weights, degrees, diagonal, node_ids)


def _block_bytes(spool: EdgeSpool) -> int:
    """Blocks of text as large as helps, smaller where memory is short (a block in parsing takes some ten times its size)."""
    return BLOCK_BYTES if spool.memory is None else min(BLOCK_BYTES, max(spool.memory // 64, 1 << 18))


def memory_needed(path: str | Path, format: Format | None = None) -> int:
    """Estimate the bytes of memory that reading edges takes; 0 for a store, a pipe, and matrices, which have no choice."""
    source = Source(path)
    if source.is_pipe:
        return 0
    kind = format or guess_format(source)
    # Both ends while they are spooled, then both entries: 8 and 8 bytes, and as much again for what may be weights.
    return 32 * _edges_in(source, kind) if kind in ("edgelist", "parquet") else 0


def _edges_in(source: Source, kind: Format) -> int:
    """Estimate the number of edges from the file's size and its first lines; 0 for a pipe, which does not tell."""
    if kind == "parquet":
        return ParquetReader(source.require_file("a Parquet table")).n_rows
    if source.is_pipe:
        return 0
    with LineBlocks(source) as lines:
        start, packed = lines.start(1 << 16), lines.packed
    # Text of numbers packs about fourfold.
    return source.size * (4 if packed else 1) * max(start.count(b"\n"), 1) // max(len(start), 1)


def _disk_needed(source: Source, kind: Format, memory: int) -> int:
    """Estimate the bytes on disk that a conversion takes at its peak."""
    edges = _edges_in(source, kind)
    store, temporary = 8 * edges, 24 * edges
    return store if store <= memory // 4 else max(temporary, store)
