"""From a stream of edges to the sorted rows of a symmetric matrix, within a memory bound.

The rule: edges are undirected. (u, v), (v, u) and every repeat are the same edge. In a list without weights the edge then has
weight 1; with weights, those of the repeats are added up. `EdgeRules` offers other choices, and `EdgeReport` counts what was
merged, so that nothing happens in silence.

    blocks of edges -> EdgeSpool (memory, beyond the bound a file) -> numbering of the nodes -> buckets of rows -> rows

A bucket is a range of rows that fits in memory, and in the processor's cache where it can. Each edge goes to the buckets of
both its ends; then bucket by bucket the entries are placed, sorted and merged (native: `_kernels/edges.hpp`). Cost
O(m log(mean degree)), three passes over the edges. Same edges in the same order, same rows, whatever the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

import numpy as np

from corecut import _core
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut._validation import check_option

Progress = Callable[[str, int, int], None]
"""Called with a stage's name, what is done and what there is to do."""

# Bytes a row costs while its bucket is built: borders, next free place, length, degree, diagonal.
_ROW_BYTES = 48
# A bucket that stays in the processor's cache while its entries are placed takes half the time of one that does not.
_BEST_ROOM = 24 << 20
# Under this much room a bucket is too small to be worth a file; more files than this may not be open at once.
_LEAST_ROOM = 4 << 20
_MOST_BUCKETS = 200
_WIDE = 2**31


@dataclass(frozen=True)
class EdgeRules:
    """What to do with repeated edges and self-loops.

    Attributes
    ----------
    duplicates
        "sum" adds the weights of repeats (1 each where the list has none), "max" keeps the largest, "unit" makes every edge
        weigh 1. "auto" is "unit" for a list without weights and "sum" for one with weights. For weighted lists that hold
        each edge in both directions, "max" gives the weights as written.
    loops
        "keep" or "drop" edges from a node to itself.
    """

    duplicates: Literal["auto", "unit", "sum", "max"] = "auto"
    loops: Literal["keep", "drop"] = "keep"

    def __post_init__(self) -> None:
        check_option(self.duplicates, "duplicates", ("auto", "unit", "sum", "max"))
        check_option(self.loops, "loops", ("keep", "drop"))


@dataclass
class EdgeReport:
    """What was read and what became of it.

    Attributes
    ----------
    edges_read
        Edges in the input.
    edges
        Distinct edges of the graph, self-loops included.
    merged
        Repeats that were merged into another edge.
    loops, loops_dropped
        Self-loops of the graph, and those that were left out by request.
    zeros
        Distinct edges of weight 0, which are no edges.
    comments
        Comment lines skipped.
    """

    edges_read: int = 0
    edges: int = 0
    merged: int = 0
    loops: int = 0
    loops_dropped: int = 0
    zeros: int = 0
    comments: int = 0


class RowSink(Protocol):
    """Takes the rows of a matrix, in order."""

    def begin(self, n_nodes: int, index_type: np.dtype[np.generic], weighted: bool) -> None:
        """Prepare for n_nodes rows."""

    def rows(
        self, lengths: IntArray, columns: AnyArray, weights: FloatArray | None, degrees: FloatArray, diagonal: FloatArray
    ) -> None:
        """Take the next rows; `diagonal` is empty when none of them has a self-loop."""


@dataclass
class EdgeSpool:
    """Edges on their way to a graph: in memory while they are few, else in a file of the given folder.

    Attributes
    ----------
    rules
        What to do with repeats and self-loops.
    folder
        Where temporary files may go; None keeps everything in memory.
    memory
        Bytes to stay within; None for no bound.
    """

    rules: EdgeRules = field(default_factory=EdgeRules)
    folder: Path | None = None
    memory: int | None = None
    report: EdgeReport = field(default_factory=EdgeReport)
    lowest: int = 0
    highest: int = -1
    weighted: bool | None = None
    _held: list[tuple[AnyArray, AnyArray, FloatArray | None]] = field(default_factory=list, repr=False)
    _held_bytes: int = 0
    _file: BinaryIO | None = field(default=None, repr=False)
    _records: list[tuple[np.dtype[np.generic], int]] = field(default_factory=list, repr=False)

    def add(self, source: AnyArray, target: AnyArray, weight: FloatArray | None = None) -> None:
        """Take a block of edges: node ids (any integers of 64 bits) and, for all blocks or none, weights."""
        self.report.edges_read += source.size
        if self.rules.duplicates == "unit":
            weight = None
        elif self.rules.duplicates == "sum" and weight is None:
            weight = np.ones(source.size)
        if self.weighted is None:
            self.weighted = weight is not None
        elif self.weighted != (weight is not None) and source.size:
            raise ValueError("either all edges of a graph have weights or none")
        loops = source == target
        n_loops = int(np.count_nonzero(loops))
        if n_loops and self.rules.loops == "drop":
            self.report.loops_dropped += n_loops
            keep = ~loops
            source, target = source[keep], target[keep]
            weight = None if weight is None else weight[keep]
        if source.size == 0:
            return
        low, high = int(min(source.min(), target.min())), int(max(source.max(), target.max()))
        self.lowest, self.highest = min(self.lowest, low), max(self.highest, high)
        narrow = np.uint32 if low >= 0 and high < 2**32 else np.int64
        self._hold(np.ascontiguousarray(source, dtype=narrow), np.ascontiguousarray(target, dtype=narrow), weight)

    @property
    def on_disk(self) -> bool:
        """Whether edges were put into a file."""
        return self._file is not None

    def blocks(self) -> Iterator[tuple[AnyArray, AnyArray, FloatArray | None]]:
        """Give back the edges in the order in which they came; may be called again."""
        if self._file is not None:
            self._file.flush()
            self._file.seek(0)
            for dtype, count in self._records:
                source = _read(self._file, dtype, count)
                target = _read(self._file, dtype, count)
                yield source, target, _read(self._file, np.dtype(np.float64), count) if self.weighted else None
        yield from self._held

    def close(self) -> None:
        """Forget the edges and free their file."""
        self._held.clear()
        self._records.clear()
        if self._file is not None:
            self._file.close()
            Path(self._file.name).unlink(missing_ok=True)
            self._file = None

    def _hold(self, source: AnyArray, target: AnyArray, weight: FloatArray | None) -> None:
        self._held.append((source, target, weight))
        self._held_bytes += source.nbytes + target.nbytes + (0 if weight is None else weight.nbytes)
        if self.memory is None or self.folder is None or self._held_bytes <= self.memory // 4:
            return
        if self._file is None:
            self._file = (self.folder / "edges.spool").open("w+b")
        self._file.seek(0, 2)
        for block in self._held:
            self._records.append((block[0].dtype, block[0].size))
            for array in block:
                if array is not None:
                    self._file.write(array.data.cast("B"))
        self._held.clear()
        self._held_bytes = 0


def assemble(
    spool: EdgeSpool,
    sink: RowSink,
    *,
    n_nodes: int | None = None,
    compact: bool = True,
    threads: int = 1,
    progress: Progress | None = None,
) -> AnyArray | None:
    """Turn the spooled edges into the rows of a symmetric matrix, hand them to `sink`, and close the spool.

    Parameters
    ----------
    spool
        The edges.
    sink
        Takes the rows.
    n_nodes
        Number of nodes when ids are node numbers 0 .. n_nodes - 1 already; nodes without edges are kept then.
    compact
        Number the ids that occur 0 .. n - 1 in increasing order. With False, ids are node numbers as they are.
    threads
        Number of threads.
    progress
        Told how far the work is.

    Returns
    -------
    The id of every node, or None where that is its number.
    """
    told = progress or (lambda stage, done, total: None)
    numbering = _Numbering.of(spool, n_nodes, compact, told)
    n = numbering.n_nodes
    index_type: np.dtype[np.generic] = np.dtype(np.int32 if n < _WIDE else np.int64)
    weighted = bool(spool.weighted)
    borders = _bucket_borders(spool.memory, numbering, index_type.itemsize + 8 * weighted)
    sink.begin(n, index_type, weighted)
    largest = spool.rules.duplicates == "max"
    make = _core.RowBuilder32 if index_type == np.int32 else _core.RowBuilder64
    buckets = None if borders.size == 2 else _Buckets(spool, numbering, borders, index_type, told)
    total = int(numbering.entries.sum())
    done = loops = entries = zeros = 0
    for b in range(borders.size - 1):
        first, last = int(borders[b]), int(borders[b + 1])
        builder = make(n, first, numbering.entries[first:last], weighted)
        if buckets is None:
            for source, target, weight in spool.blocks():
                rows, columns = numbering.number(source, index_type), numbering.number(target, index_type)
                builder.add(rows, columns, weight, True, threads)
            spool.close()
        else:
            for rows, columns, weight in buckets.blocks(b):
                builder.add(rows, columns, weight, False, threads)
        lengths, columns, weights, degrees, diagonal, dropped, _ = builder.finish(largest, threads)
        del builder
        sink.rows(lengths, columns, weights if weighted else None, degrees, diagonal)
        loops += int(np.count_nonzero(diagonal))
        entries += columns.size
        zeros += dropped
        done += int(numbering.entries[first:last].sum())
        told("sorting rows", done, total)
    report = spool.report
    report.loops, report.edges, report.zeros = loops, (entries + loops) // 2, zeros
    report.merged = report.edges_read - report.loops_dropped - report.edges - report.zeros
    return numbering.ids


@dataclass(frozen=True)
class _Numbering:
    """How ids become node numbers, and how many entries each node's row will have before merging."""

    n_nodes: int
    entries: IntArray
    ids: AnyArray | None
    rank: AnyArray | None = None

    @classmethod
    def of(cls, spool: EdgeSpool, n_nodes: int | None, compact: bool, told: Progress) -> _Numbering:
        if n_nodes is not None or not compact:
            if spool.lowest < 0:
                raise ValueError(f"id {spool.lowest} is negative and cannot be a node number; number the nodes from 0")
            n = spool.highest + 1 if n_nodes is None else n_nodes
            if n <= spool.highest:
                raise ValueError(f"id {spool.highest} is out of range for {n} nodes numbered from 0")
            return cls(n, _count(spool, n, told), None)
        # A table over all ids up to the highest is quickest, unless ids are scattered over a far larger range.
        if spool.lowest >= 0 and spool.highest < max(1 << 20, 8 * spool.report.edges_read):
            entries = _count(spool, spool.highest + 1, told)
            present = entries > 0
            if present.all():
                return cls(entries.size, entries, None)
            ids = np.flatnonzero(present)
            rank: AnyArray = np.cumsum(present, dtype=np.int32 if ids.size < _WIDE else np.int64)
            return cls(ids.size, entries[present], ids, np.subtract(rank, 1, out=rank))
        ids = np.empty(0, np.int64)
        for source, target, _ in spool.blocks():
            ids = np.union1d(ids, np.union1d(source, target).astype(np.int64))
        entries = np.zeros(ids.size, np.int64)
        for source, target, _ in spool.blocks():
            _core.count_entries(np.searchsorted(ids, source), np.searchsorted(ids, target), entries)
        return cls(ids.size, entries, ids)

    def number(self, ids: AnyArray, dtype: np.dtype[np.generic]) -> AnyArray:
        """Return the node numbers of ids."""
        if self.ids is None:
            numbers = ids
        elif self.rank is not None:
            numbers = self.rank[ids]
        else:
            numbers = np.searchsorted(self.ids, ids)
        return numbers.astype(dtype, copy=False)


def _count(spool: EdgeSpool, size: int, told: Progress) -> IntArray:
    entries = np.zeros(size, np.int64)
    done = 0
    for source, target, _ in spool.blocks():
        _core.count_entries(source, target, entries)
        done += source.size
        told("counting", done, spool.report.edges_read)
    return entries


def _bucket_borders(memory: int | None, numbering: _Numbering, entry_bytes: int) -> IntArray:
    """Cut the rows into ranges whose entries fit in what memory the tables over all nodes leave, and in the cache."""
    n = numbering.n_nodes
    if n == 0:
        return np.array([0, 0], np.int64)
    cost = np.cumsum(numbering.entries * entry_bytes + _ROW_BYTES)
    room = _BEST_ROOM
    if memory is not None:
        tables = numbering.entries.nbytes + sum(0 if t is None else t.nbytes for t in (numbering.ids, numbering.rank))
        # Half of what is left: the other half is for the blocks being read, spooled and written.
        room = min(room, (memory - tables) // 2)
    room = max(room, _LEAST_ROOM, -(-int(cost[-1]) // _MOST_BUCKETS))
    borders = [0]
    while borders[-1] < n:
        start = int(cost[borders[-1] - 1]) if borders[-1] else 0
        borders.append(max(borders[-1] + 1, int(np.searchsorted(cost, start + room, side="right"))))
    return np.array(borders, np.int64)


class _Buckets:
    """The entries of all edges, split by row: in memory where the spool is, else in one temporary file per bucket."""

    def __init__(
        self, spool: EdgeSpool, numbering: _Numbering, borders: IntArray, index_type: np.dtype[np.generic], told: Progress
    ) -> None:
        self._index_type = index_type
        self._weighted = bool(spool.weighted)
        count = borders.size - 1
        self._held: list[list[tuple[AnyArray, AnyArray, FloatArray | None]]] = [[] for _ in range(count)]
        self._counts: list[list[int]] = [[] for _ in range(count)]
        self._paths: list[Path] = []
        if spool.on_disk and spool.folder is not None:
            self._paths = [spool.folder / f"rows-{b:04d}.bucket" for b in range(count)]
        done = 0
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("wb")) for path in self._paths]
            for source, target, weight in spool.blocks():
                u, v = numbering.number(source, index_type), numbering.number(target, index_type)
                offsets, rows, columns, weights = _core.split_edges(u, v, weight, borders)
                for b, (begin, end) in enumerate(pairwise(offsets.tolist())):
                    if begin == end:
                        continue
                    part = slice(begin, end)
                    if not files:
                        self._held[b].append((rows[part], columns[part], weights[part] if self._weighted else None))
                        continue
                    self._counts[b].append(end - begin)
                    for array in (rows, columns, weights) if self._weighted else (rows, columns):
                        files[b].write(array[part].data.cast("B"))
                done += source.size
                told("splitting into buckets", done, spool.report.edges_read)
        spool.close()

    def blocks(self, bucket: int) -> Iterator[tuple[AnyArray, AnyArray, FloatArray | None]]:
        """Give the entries of one bucket in the order of their edges, and forget them."""
        yield from self._held[bucket]
        self._held[bucket].clear()
        if not self._paths:
            return
        with self._paths[bucket].open("rb") as file:
            for count in self._counts[bucket]:
                rows, columns = _read(file, self._index_type, count), _read(file, self._index_type, count)
                yield rows, columns, _read(file, np.dtype(np.float64), count) if self._weighted else None
        self._paths[bucket].unlink()


def _read(file: BinaryIO, dtype: np.dtype[np.generic], count: int) -> AnyArray:
    array = np.fromfile(file, dtype=dtype, count=count)
    if array.size != count:
        raise OSError(f"temporary file {file.name} ended early")
    return array
