"""The shelf: the quotient graphs of a clustering, in memory as far as a bound allows, else in stores on disk.

A level is made, grouped and left for the next one; it is looked at again when its partition is refined on the way back. Beyond
the bound its rows are therefore written to a store as they are made, a part at a time, and mapped: pages that nobody reads go
back to the system. What is computed does not depend on where a level lies.

The stores lie in a folder of the run's own, in the system's temporary folder or where one was asked for. It goes away when the
run ends, well or not, and when it was killed, with the next run that puts something there.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from corecut import _core
from corecut._files import first_line, missing_folders, remove_empty, require_free_space, show_size
from corecut._locks import remove_if_free, try_lock, unlock
from corecut._typing import BoolArray, LabelArray
from corecut.engines import Engine, LocalEngine
from corecut.graph import Graph
from corecut.store import GraphStore, StoreWriter
from corecut.weighted import WeightedGraph, sums_by

# Bytes of an entry of a quotient: its column and, at most, a weight of double precision.
_ENTRY = 12
# Entries of the rows that are made and written at a time.
_LEAST_AT_ONCE, _MOST_AT_ONCE, _SHARE_AT_ONCE = 1 << 14, 1 << 23, 128
_LOCK = re.compile(r"\.corecut-[0-9a-f]{16}\.scratch\.lock")


class Shelf:
    """Keeps the levels of one clustering.

    Parameters
    ----------
    room
        Bytes of memory for levels; None for as much as they need.
    folder
        Where to make the folder of stores.

    Attributes
    ----------
    spilled
        Bytes of the stores that were written.
    """

    def __init__(self, room: int | None = None, folder: Path | None = None) -> None:
        self.room = room
        self.spilled = 0
        self._parent = folder
        self._folder: Path | None = None
        self._lock = -1
        self._new: list[Path] = []
        self._held = 0
        self._count = 0

    @classmethod
    @contextmanager
    def opened(cls, room: int | None, folder: str | os.PathLike[str] | None) -> Iterator[Shelf]:
        """Give a shelf whose stores are removed in the end."""
        shelf = cls(room, None if folder is None else Path(folder))
        try:
            yield shelf
        finally:
            shelf._close()

    def contract(self, level: WeightedGraph, groups: LabelArray, *, engine: Engine) -> WeightedGraph:
        """Return the quotient of a level; see :meth:`WeightedGraph.contract`."""
        if self._fits(_ENTRY * level.graph.n_entries):
            return self._kept(level.contract(groups, engine=engine))
        if not isinstance(engine, LocalEngine):
            made = level.contract(groups, engine=engine)  # larger ones are mapped already
            return made if isinstance(made.graph.indices, np.memmap) else self._kept(made)
        count = int(groups.max()) + 1
        degrees, sizes = sums_by(groups, level.graph.degrees, count), sums_by(groups, level.sizes, count)
        rows = _core.Contraction(level.graph.matrix, groups, count, engine.threads)
        with self._writing(_ENTRY * level.graph.n_entries) as (path, writer):
            writer.begin(count, np.dtype(np.int32), True, single=True)
            for first, last in _pairs(rows.borders(self._at_once)):
                (indptr, columns, weights), loops = rows.rows(first, last)
                writer.rows(np.diff(indptr), columns, weights, degrees[first:last], loops if loops.any() else np.empty(0))
            writer.finish(None)
        return WeightedGraph(self._mapped(path), sizes)

    def restrict(self, level: WeightedGraph, keep: BoolArray, *, n_jobs: int | None) -> WeightedGraph:
        """Return the part on nodes that no edge leaves; see :meth:`WeightedGraph.restrict`."""
        graph = level.graph
        if keep.all() or self._fits(_ENTRY * graph.n_entries):
            return self._kept(level.restrict(keep, n_jobs=n_jobs))
        position = np.cumsum(keep, dtype=np.int32) - 1
        nodes = np.flatnonzero(keep)
        with self._writing(_ENTRY * graph.n_entries) as (path, writer):
            writer.begin(nodes.size, np.dtype(np.int32), graph.weights is not None, single=True)
            # No edge leaves the part, so that its rows are kept whole.
            for first, last in _runs(nodes, graph.indptr, self._at_once):
                entries = slice(int(graph.indptr[first]), int(graph.indptr[last]))
                loops = np.empty(0) if graph.diagonal is None else graph.diagonal[first:last]
                weights = None if graph.weights is None else graph.weights[entries]
                lengths = np.diff(graph.indptr[first : last + 1]).astype(np.int64)
                writer.rows(lengths, position[graph.indices[entries]], weights, graph.degrees[first:last], loops)
            writer.finish(None)
        return WeightedGraph(self._mapped(path), level.sizes[nodes])

    @property
    def _at_once(self) -> int:
        return min(max((self.room or 0) // _SHARE_AT_ONCE, _LEAST_AT_ONCE), _MOST_AT_ONCE)

    def _fits(self, size: int) -> bool:
        return self.room is None or self._held + size <= self.room

    def _kept(self, level: WeightedGraph) -> WeightedGraph:
        """Count what is held in memory."""
        arrays = (level.graph.indices, level.graph.weights)
        self._held += sum(array.nbytes for array in arrays if array is not None and not isinstance(array, np.memmap))
        return level

    @contextmanager
    def _writing(self, most: int) -> Iterator[tuple[Path, StoreWriter]]:
        """Give a new store's name and its writer."""
        folder = self._made()
        require_free_space(folder, most // 2, "a level of the clustering")
        self._count += 1
        path = folder / f"level-{self._count}.store"
        try:
            with StoreWriter.create(path) as writer:
                yield path, writer
        except OSError as error:
            if error.errno is None:  # a sentence of ours
                raise
            free = show_size(shutil.disk_usage(folder).free)
            raise OSError(
                f"cannot write to the scratch folder {folder} ({first_line(error)}); {free} are free there: make room, choose "
                "another folder with scratch=, or allow more by memory_limit="
            ) from None

    def _mapped(self, path: Path) -> Graph:
        store = GraphStore.open(path)
        self.spilled += store.n_bytes
        return store.graph

    def _made(self) -> Path:
        """Return the folder of this run, made now if it is not there, without what killed runs have left beside it."""
        if self._folder is not None:
            return self._folder
        parent = Path(tempfile.gettempdir()) if self._parent is None else self._parent
        try:
            self._new = missing_folders(parent)
            parent.mkdir(parents=True, exist_ok=True)
            _remove_left(parent)
            lock = None
            while lock is None:  # first the lock: whoever finds the folder finds it held
                folder = parent / f"corecut-{secrets.token_hex(8)}.scratch"
                lock = try_lock(_lock_of(folder))
            self._folder, self._lock = folder, lock
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise OSError(
                f"cannot make a scratch folder in {parent} ({first_line(error)}); choose another place with scratch="
            ) from None
        return folder

    def _close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            _lock_of(self._folder).unlink(missing_ok=True)
            if self._lock >= 0:
                unlock(self._lock)
            self._folder = None
        remove_empty(self._new)  # the folder that was asked for, if it was not there
        self._new = []


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def _remove_left(parent: Path) -> None:
    """Remove folders of runs that were killed: nobody holds their locks."""
    for lock in parent.iterdir():
        if _LOCK.fullmatch(lock.name):
            remove_if_free(lock)
            if not lock.exists():
                shutil.rmtree(lock.with_name(lock.name[1 : -len(".lock")]), ignore_errors=True)


def _pairs(borders: np.ndarray) -> Iterator[tuple[int, int]]:
    return zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)


def _runs(nodes: np.ndarray, indptr: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Return ranges of rows without a gap that hold at most so many entries, where no row alone has more."""
    gaps = np.flatnonzero(np.diff(nodes) != 1) + 1
    for begin, end in _pairs(np.concatenate([[0], gaps, [nodes.size]])):
        first, last = int(nodes[begin]), int(nodes[end - 1]) + 1
        while first < last:
            to = int(np.searchsorted(indptr[first + 1 : last + 1], indptr[first] + most, side="right")) + first
            to = min(max(to, first + 1), last)
            yield first, to
            first = to
