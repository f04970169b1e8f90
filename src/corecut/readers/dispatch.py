"""read_graph: which reader a file needs, and the way from it to a Graph or to a store."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from corecut._files import GraphFileError, ending_of, parse_size, require_free_space
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut._validation import check_option, thread_count
from corecut.edges import EdgeReport, EdgeRules, EdgeSpool, Progress, RowSink, assemble
from corecut.graph import Graph, Symmetrize
from corecut.readers.edgelist import EdgeListReader
from corecut.readers.layout import EdgeOptions
from corecut.readers.matrix_market import read_matrix_market
from corecut.readers.metis import asymmetry, read_metis
from corecut.readers.npz import read_npz
from corecut.readers.parquet import ParquetReader
from corecut.readers.streams import BLOCK_BYTES, compression_of, read_start
from corecut.store import GraphStore, StoreWriter

Format = Literal["edgelist", "matrix_market", "metis", "npz", "parquet", "store"]
_FORMATS = ("edgelist", "matrix_market", "metis", "npz", "parquet", "store")


def guess_format(path: str | Path) -> Format:
    """Return the format of a file: by its first bytes where they tell, else by its name."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {file}")
    if file.is_dir():
        if GraphStore.is_store(file):
            return "store"
        raise GraphFileError(f"{file} is a directory without graph.json, not a graph store")
    start = read_start(file, 64)
    if start.startswith(b"%%MatrixMarket"):
        return "matrix_market"
    if start.startswith(b"PK\x03\x04"):
        return "npz"
    if start.startswith(b"PAR1"):
        return "parquet"
    ending = ending_of(file)
    by_name: dict[str, Format] = {".mtx": "matrix_market", ".graph": "metis", ".metis": "metis", ".npz": "npz"}
    by_name |= {".parquet": "parquet", ".pq": "parquet"}
    return by_name.get(ending, "edgelist")


def read_graph(
    path: str | Path,
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
    r"""Read a graph from a file: an edge list, CSV, MatrixMarket, METIS, scipy .npz, Parquet, or a graph store.

    Edge lists are undirected: (u, v), (v, u) and repeats are one edge. In a list without weights it weighs 1; with weights, the
    weights of repeats are added up (see `duplicates`). Ids become node numbers 0 .. n - 1 in the order of the ids (text: in the
    order of appearance) and are kept in :attr:`Graph.node_ids`. A *matrix* (MatrixMarket, METIS, .npz) must be symmetric, or
    `symmetrize` says how to make it so.

    Parameters
    ----------
    path
        The file; text may be compressed by gzip, bzip2 or zstd. A store is a directory and is mapped, not read.
    format
        "edgelist", "matrix_market", "metis", "npz", "parquet" or "store"; None finds out by content and name.
    delimiter, header, columns, weights, ids, comments
        What cannot be seen from the first lines of an edge list. `delimiter` "" stands for any blanks; `columns` names or
        numbers (from 0) source, target and perhaps weight; `weights=False` ignores weights; `ids` "integer" or "text".
    compact
        False takes integer ids as node numbers: ids that do not occur become nodes without edges.
    duplicates
        "sum", "max" or "unit" (every edge weighs 1) for repeated edges.
    loops
        "keep" or "drop" self-loops.
    symmetrize
        For matrices: "mean", "max" or "min" of an entry and its mirror image.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Graph

    Raises
    ------
    ValueError
        When the file is not what it should be; the message names the line.

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
    loaded = load_graph(
        path, format=format, options=options, rules=rules, compact=compact, symmetrize=symmetrize, n_jobs=n_jobs
    )
    return loaded[0]


def load_graph(
    path: str | Path,
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
    file = Path(path)
    kind = format or guess_format(file)
    if kind == "store":
        store = GraphStore.open(file)
        return store.graph, _report_of(store.graph)
    if kind in ("matrix_market", "metis") or (kind == "npz" and not isinstance(content := read_npz(file), tuple)):
        lines: IntArray | None = None
        if kind == "metis":
            matrix, lines = read_metis(file)
        else:
            matrix = content if kind == "npz" else read_matrix_market(file)
        try:
            graph = Graph.from_matrix(matrix, symmetrize=symmetrize, n_jobs=n_jobs)
        except (ValueError, TypeError) as error:
            if lines is not None and "not symmetric" in str(error):
                raise GraphFileError(f"{file}, {asymmetry(matrix, lines)}") from None
            raise GraphFileError(f"{file}: {error}") from None
        return graph, _report_of(graph)
    sink = _MemorySink()
    ids, report = _stream(
        file, kind, sink, EdgeSpool(rules or EdgeRules()), options=options, compact=compact, n_jobs=n_jobs, progress=progress
    )
    return sink.graph(ids), report


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
    file, final = Path(path), Path(store)
    bound = parse_size(memory)
    kind = format or guess_format(file)
    in_memory = kind in ("matrix_market", "metis", "npz", "store")
    with StoreWriter.create(final, overwrite=overwrite) as writer:
        if not in_memory:
            require_free_space(writer.folder, _disk_needed(file, kind, bound), "the store with its temporary files")
        try:
            if in_memory:
                graph, report = load_graph(
                    file, format=kind, options=options, rules=rules, compact=compact, symmetrize=symmetrize, n_jobs=n_jobs
                )
                writer.copy(graph)
            else:
                spool = EdgeSpool(rules or EdgeRules(), writer.folder, bound)
                ids, report = _stream(
                    file, kind, writer, spool, options=options, compact=compact, n_jobs=n_jobs, progress=progress
                )
                writer.finish(ids)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise OSError(f"the disk that holds {final} is full; make room or choose another place") from None
            raise
    return GraphStore.open(final), report


def _stream(
    file: Path,
    kind: Format,
    sink: RowSink,
    spool: EdgeSpool,
    *,
    options: EdgeOptions | None,
    compact: bool,
    n_jobs: int | None,
    progress: Progress | None,
) -> tuple[AnyArray | None, EdgeReport]:
    """Run the edges of a file through the spool into the sink; return the nodes' ids and the report."""
    n_nodes: int | None = None
    names = None
    try:
        if kind == "npz":
            source, target, weight, n_nodes = read_npz(file)
            _check_arrays(file, source, target, weight)
            spool.add(
                source, target, None if weight is None or (options and not options.weights) else weight.astype(np.float64)
            )
        else:
            reader = (
                ParquetReader(file, options)
                if kind == "parquet"
                else EdgeListReader(file, options, block_bytes=_block_bytes(spool))
            )
            for block in reader.blocks():
                spool.add(*block)
                if progress:
                    progress("reading", reader.done, reader.size)
            spool.report.comments = reader.comments
            names = reader.names
        if spool.highest < 0 and spool.lowest == 0 and n_nodes is None:
            raise GraphFileError(f"{file}: there is no edge left in this file")
        if names is not None:
            n_nodes = len(names)
        try:
            ids = assemble(spool, sink, n_nodes=n_nodes, compact=compact, threads=thread_count(n_jobs), progress=progress)
        except ValueError as error:
            raise GraphFileError(f"{file}: {error}") from None
    finally:
        spool.close()
    return (ids if names is None else names.array()), spool.report


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


def _report_of(graph: Graph) -> EdgeReport:
    loops = 0 if graph.diagonal is None else int(np.count_nonzero(graph.diagonal))
    edges = (graph.n_entries + loops) // 2
    return EdgeReport(edges_read=edges, edges=edges, loops=loops)


def _check_arrays(file: Path, source: AnyArray, target: AnyArray, weight: AnyArray | None) -> None:
    arrays = [source, target] if weight is None else [source, target, weight]
    if any(array.ndim != 1 or array.size != source.size for array in arrays):
        raise GraphFileError(f"{file}: the arrays of sources, targets and weights must be vectors of one length")
    if any(array.dtype.kind not in "iu" for array in (source, target)):
        raise GraphFileError(f"{file}: sources and targets must be integers")
    if weight is not None and (weight.dtype.kind not in "biuf" or not np.isfinite(weight).all() or (weight < 0).any()):
        raise GraphFileError(f"{file}: weights must be finite numbers, and not negative")


def _block_bytes(spool: EdgeSpool) -> int:
    """Blocks of text as large as helps, smaller where memory is short (a block in parsing takes some ten times its size)."""
    return BLOCK_BYTES if spool.memory is None else min(BLOCK_BYTES, max(spool.memory // 64, 1 << 18))


def memory_needed(path: str | Path, format: Format | None = None) -> int:
    """Estimate the bytes of memory that reading edges takes; 0 for a store, and for matrices, which have no choice."""
    kind = format or guess_format(path)
    # Both ends while they are spooled, then both entries: 8 and 8 bytes, and as much again for what may be weights.
    return 32 * _edges_in(Path(path), kind) if kind in ("edgelist", "parquet") else 0


def _edges_in(file: Path, kind: Format) -> int:
    """Estimate the number of edges from the file's size and its first lines."""
    if kind == "parquet":
        return ParquetReader(file).n_rows
    start = read_start(file)
    # Text of numbers packs about fourfold.
    size = file.stat().st_size * (4 if compression_of(file) else 1)
    return size * max(start.count(b"\n"), 1) // max(len(start), 1)


def _disk_needed(file: Path, kind: Format, memory: int) -> int:
    """Estimate the bytes on disk that a conversion takes at its peak."""
    edges = _edges_in(file, kind)
    store, temporary = 8 * edges, 24 * edges
    return store if store <= memory // 4 else max(temporary, store)
