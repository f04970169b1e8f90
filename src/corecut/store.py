"""GraphStore: a graph as a directory of plain NumPy files, opened by memory map in milliseconds.

    graph.json      what the graph is, the size and checksum of every file; written last
    indptr.npy      int64, n + 1          borders of the rows
    indices.npy     int32 (int64 from 2³¹ nodes on)
    data.npy        float64, only when not every weight is 1
    degrees.npy     float64, n            kept so that opening needs no pass over the edges
    diagonal.npy    float64, n            only when there are self-loops
    node_ids.npy    the nodes' own ids, only when they differ from 0 .. n - 1: int64; for text the UTF-8 bytes of all names
                    one after another, with node_ids_offsets.npy (int64, n + 1) telling them apart

`graph.json` uses the words of the binsparse format. A store is made in a directory of another name beside it, which takes its
place only when complete and in one step, so that a half-made store cannot be taken for one and a reader sees either the store
of before or the new one. Who has opened a store keeps it, whatever happens to its name. Mapped pages belong to the operating
system's cache: they are not anonymous memory and are given back under pressure.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

import corecut
from corecut import _core
from corecut._files import (
    GraphFileError,
    building_directory,
    check_target,
    first_line,
    led_to,
    naming,
    naming_where_full,
    publish_directory,
)
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut._validation import thread_count
from corecut.graph import Graph
from corecut.node_ids import checked_ids, names_array, packed_names
from corecut.stored_files import StoredFiles

_FORMAT_VERSION = 1
_HEADER_BYTES = 128
_CHUNK = 1 << 24
_MOST_DESCRIPTION = 1 << 20
_TYPES: dict[str, tuple[type[np.generic], ...]] = {
    "indptr": (np.int64,),
    "indices": (np.int32, np.int64),
    "data": (np.float64, np.float32),
    "degrees": (np.float64,),
    "diagonal": (np.float64,),
    "node_ids": (np.int64, np.uint8),
    "node_ids_offsets": (np.int64,),
}


@dataclass(frozen=True, eq=False)
class GraphStore:
    """A graph on disk. Use :meth:`open`; its files are opened once, mapped when they are first needed and never written.

    Examples
    --------
    >>> from corecut import GraphStore
    >>> store = GraphStore.open("friends.store")        # doctest: +SKIP
    >>> store.graph                                     # doctest: +SKIP
    Graph(65,608,366 nodes, 3,612,134,270 entries, unit weights)
    """

    path: Path
    description: dict[str, Any] = field(repr=False)
    _files: StoredFiles = field(repr=False)

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> GraphStore:
        """Open a store: sizes of all files are checked, and with `verify` all of their content, which reads everything."""
        folder = Path(path)
        store = StoredFiles.opened(folder, lambda files: cls._of(folder, files))
        if verify:
            store.verify()
        return store

    @classmethod
    def _of(cls, folder: Path, files: StoredFiles) -> GraphStore:
        """Make a store of opened files; what is wrong with them raises a GraphFileError."""
        name = folder / "graph.json"
        text = files.read("graph.json", _MOST_DESCRIPTION)
        if text is None:
            raise GraphFileError(f"{folder} is not a graph store: it has no graph.json")
        try:
            description = json.loads(text)
            version = description["corecut"]["format"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise GraphFileError(f"{name} is damaged ({first_line(error)}); build the store again") from None
        if version != _FORMAT_VERSION:
            raise GraphFileError(f"{folder} has format {version}, this version of corecut reads format {_FORMAT_VERSION}")
        problem = _problem(description)
        if problem:
            raise GraphFileError(f"{name} does not describe a graph ({problem}); build the store again")
        for file, known in description["corecut"]["files"].items():
            size = files.add(file)
            if size != known["bytes"]:
                what = "is missing" if size is None else f"has {size} bytes instead of {known['bytes']}"
                raise GraphFileError(f"{folder / file} {what}; build the store again")
        return cls(folder, description, files)

    @staticmethod
    def is_store(path: str | Path) -> bool:
        """Whether a path is a complete store (by the file that is written last)."""
        return (Path(path) / "graph.json").is_file()

    @classmethod
    def write(cls, graph: Graph, path: str | Path, *, overwrite: bool = False) -> GraphStore:
        """Write a graph that is in memory as a store."""
        with naming_where_full(Path(path)), StoreWriter.create(path, overwrite=overwrite) as writer:
            writer.copy(graph)
        return cls.open(path)

    def verify(self) -> None:
        """Compare every file with its checksum, then check the graph itself: order, range, weights, degrees."""
        for name, known in self.description["corecut"]["files"].items():
            if self._files.checksum(name, _HEADER_BYTES) != known["crc32"]:
                raise GraphFileError(f"{self.path / name} is damaged: its checksum is wrong; build the store again")
        graph = self.graph
        try:
            degrees, diagonal, _, canonical = _core.scan(graph.matrix, thread_count(None))
        except ValueError as error:
            raise GraphFileError(f"{self.path} holds no graph ({first_line(error)}); build the store again") from None
        loops = np.zeros(graph.n_nodes) if graph.diagonal is None else graph.diagonal
        if not canonical or not np.allclose(degrees, graph.degrees) or (diagonal.size and not np.array_equal(diagonal, loops)):
            raise GraphFileError(
                f"{self.path} holds rows that are not sorted, or degrees of another graph; build the store again"
            )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.description["binsparse"]["shape"][0])

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return int(self.description["binsparse"]["number_of_stored_values"])

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(int(known["bytes"]) for known in self.description["corecut"]["files"].values())

    @cached_property
    def graph(self) -> Graph:
        """The graph over the mapped files; nothing is read but what the algorithms touch, and the degrees."""
        n, entries = self.n_nodes, self.n_entries
        indptr = self._array("indptr", n + 1)
        if indptr[0] != 0 or indptr[-1] != entries:
            raise GraphFileError(
                f"{self.path / 'indptr.npy'} is damaged: it must go from 0 to {entries}; build the store again"
            )
        degrees = self._array("degrees", n)
        diagonal = self._array("diagonal", n) if self._has("diagonal") else None
        for name, values in (("degrees", degrees), ("diagonal", diagonal)):
            # Every algorithm reads them all, and would give wrong labels without a word.
            if values is not None and values.size and not (values.min() >= 0 and values.max() < np.inf):
                raise GraphFileError(
                    f"{self.path / name}.npy is damaged: it holds values that are negative or not finite; build the store again"
                )
        data = self._array("data", entries) if self._has("data") else None
        place = Path(os.path.abspath(self.path))
        return Graph(indptr, self._array("indices", entries), data, degrees, diagonal, self.node_ids, place)

    @cached_property
    def node_ids(self) -> AnyArray | None:
        """The nodes' own ids: integers (mapped) or text (as objects), None where they are 0 .. n - 1."""
        if not self._has("node_ids"):
            return None
        if not self._has("node_ids_offsets"):
            return self._array("node_ids", self.n_nodes, np.int64)
        offsets = self._array("node_ids_offsets", self.n_nodes + 1)
        try:
            if offsets[0] != 0 or (np.diff(offsets) < 0).any():
                raise ValueError("the places of the names do not rise")
            return names_array(self._array("node_ids", int(offsets[-1]), np.uint8).tobytes(), offsets)
        except GraphFileError:
            raise
        except ValueError as error:
            raise GraphFileError(
                f"{self.path / 'node_ids.npy'} is damaged ({first_line(error)}); build the store again"
            ) from None

    def _has(self, name: str) -> bool:
        return f"{name}.npy" in self.description["corecut"]["files"]

    def _array(self, name: str, length: int, *types: type[np.generic]) -> AnyArray:
        file = self.path / f"{name}.npy"
        try:
            array = self._files.array(f"{name}.npy", length)
        except (ValueError, OSError) as error:
            raise GraphFileError(f"{file} is damaged ({first_line(error)}); build the store again") from None
        if not any(array.dtype == np.dtype(kind) for kind in types or _TYPES[name]):
            wanted = " or ".join(np.dtype(kind).name for kind in types or _TYPES[name])
            raise GraphFileError(f"{file} holds {array.dtype.str}, expected {wanted}; build the store again")
        return array

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process opens the files itself.
        return type(self).open, (self.path,)

    def __repr__(self) -> str:
        return f"GraphStore({str(self.path)!r}: {self.n_nodes:,} nodes, {self.n_entries:,} entries)"


def _problem(description: Any) -> str | None:
    """Say what a description lacks; None when it is complete."""
    files, matrix = description["corecut"].get("files"), description.get("binsparse")
    if not isinstance(files, dict) or not isinstance(matrix, dict):
        return "it must list the files and describe the matrix"
    for name, known in files.items():
        if name.removesuffix(".npy") not in _TYPES or not name.endswith(".npy"):
            return f"it lists the unknown file {name[:60]!r}"
        if not isinstance(known, dict) or not all(_is_count(known.get(key)) for key in ("bytes", "crc32")):
            return f"it must give bytes and crc32 of {name}"
    if not {"indptr.npy", "indices.npy", "degrees.npy"} <= files.keys():
        return "it must list indptr.npy, indices.npy and degrees.npy"
    shape, entries = matrix.get("shape"), matrix.get("number_of_stored_values")
    if not isinstance(shape, list) or len(shape) != 2 or not all(map(_is_count, shape)) or shape[0] != shape[1]:
        return "the shape must be [n, n]"
    return None if _is_count(entries) else "number_of_stored_values must be a number"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


class StoreWriter:
    """Takes rows in order (a `RowSink`) and makes a store of them. Use :meth:`create` in a `with` statement."""

    def __init__(self, folder: Path) -> None:
        """Write into `folder`, which is empty and has a name that says it is not finished."""
        self.folder = folder
        self._files: dict[str, _ArrayFile] = {}
        self._n_nodes = 0
        self._rows_done = 0
        self._entries = 0
        self._unit = True
        self._complete = False

    @classmethod
    @contextmanager
    def create(cls, path: str | Path, *, overwrite: bool = False) -> Iterator[StoreWriter]:
        """Open a writer for a new store; the store appears when the block ends without an error."""
        check_target(Path(path), make_folders=True, directory=True)
        # A link stays one; what it points to is replaced.
        final = led_to(Path(path))
        _refuse_existing(final, overwrite)
        with building_directory(final, name=Path(path)) as folder:
            writer = cls(folder)
            try:
                yield writer
            finally:
                writer._close()
            if not writer._complete:
                raise RuntimeError("a store was closed before it was finished")
            # The name may have been taken meanwhile.
            _refuse_existing(final, overwrite)
            with naming(Path(path)):
                publish_directory(folder, final)

    def begin(self, n_nodes: int, index_type: np.dtype[np.generic], weighted: bool, *, single: bool = False) -> None:
        """Prepare for n_nodes rows; weights are kept in single precision as long as they come so, where `single` is set."""
        self._n_nodes = n_nodes
        self._open("indptr", np.int64).write(np.zeros(1, np.int64))
        self._open("indices", index_type)
        self._open("degrees", np.float64)
        if weighted:
            self._open("data", np.float32 if single else np.float64)

    def rows(
        self, lengths: IntArray, columns: AnyArray, weights: AnyArray | None, degrees: FloatArray, diagonal: FloatArray
    ) -> None:
        """Append the next rows."""
        self._files["indptr"].write(np.cumsum(lengths) + self._entries)
        self._files["indices"].write(columns)
        self._files["degrees"].write(degrees)
        if weights is not None:
            self._unit = self._unit and bool((weights == 1).all())
            if self._files["data"].dtype == np.float32 and weights.dtype != np.float32:
                self._files["data"] = self._files["data"].widened()
            self._files["data"].write(weights)
        if diagonal.size:
            loops = self._files.get("diagonal") or self._open("diagonal", np.float64)
            loops.pad(self._rows_done)
            loops.write(diagonal)
        self._rows_done += lengths.size
        self._entries += columns.size

    def copy(self, graph: Graph) -> None:
        """Write a whole graph."""
        self.begin(graph.n_nodes, graph.indices.dtype, graph.weights is not None)
        diagonal = np.empty(0) if graph.diagonal is None else graph.diagonal
        self.rows(np.diff(graph.indptr).astype(np.int64), graph.indices, graph.weights, graph.degrees, diagonal)
        self.finish(graph.node_ids)

    def finish(self, node_ids: AnyArray | None) -> None:
        """Write the ids and the description; the store is complete."""
        if self._rows_done != self._n_nodes:
            raise RuntimeError(f"{self._rows_done} of {self._n_nodes} rows were written")
        if "diagonal" in self._files:
            self._files["diagonal"].pad(self._n_nodes)
        node_ids = checked_ids(node_ids)
        if node_ids is not None and node_ids.dtype.kind == "O":
            names, offsets = packed_names(node_ids.tolist())
            self._open("node_ids", np.uint8).write(np.frombuffer(names, np.uint8))
            self._open("node_ids_offsets", np.int64).write(offsets)
        elif node_ids is not None:
            self._open("node_ids", np.int64).write(node_ids)
        if "data" in self._files and self._unit:
            self._files.pop("data").remove()
        weights = self._files.get("data")
        files = {f"{name}.npy": file.close() for name, file in self._files.items()}
        description = {
            "binsparse": {
                "version": "0.1",
                "format": "CSR",
                "shape": [self._n_nodes, self._n_nodes],
                "number_of_stored_values": self._entries,
                "structure": "symmetric",
                "data_types": {
                    "pointers_to_1": "int64",
                    "indices_1": self._files["indices"].dtype.name,
                    "values": "iso[int8]" if weights is None else weights.dtype.name,
                },
            },
            "corecut": {"format": _FORMAT_VERSION, "version": corecut.__version__, "files": files},
        }
        (self.folder / "graph.json").write_text(json.dumps(description, indent=1), encoding="utf-8")
        self._complete = True

    def _open(self, name: str, dtype: Any) -> _ArrayFile:
        self._files[name] = _ArrayFile(self.folder / f"{name}.npy", np.dtype(dtype))
        return self._files[name]

    def _close(self) -> None:
        for file in self._files.values():
            file.file.close()


class _ArrayFile:
    """A .npy file that grows: its header, of fixed length, is written when the number of elements is known."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.path = path
        self.dtype = dtype
        self.length = 0
        self.checksum = 0
        self.file: BinaryIO = path.open("wb")
        self.file.write(bytes(_HEADER_BYTES))

    def write(self, array: AnyArray) -> None:
        for begin in range(0, array.size, _CHUNK):
            block = np.ascontiguousarray(array[begin : begin + _CHUNK], dtype=self.dtype).data.cast("B")
            self.checksum = zlib.crc32(block, self.checksum)
            self.file.write(block)
        self.length += array.size

    def pad(self, length: int) -> None:
        while self.length < length:
            self.write(np.zeros(min(length - self.length, _CHUNK), self.dtype))

    def close(self) -> dict[str, int]:
        text = f"{{'descr': {self.dtype.str!r}, 'fortran_order': False, 'shape': ({self.length},), }}"
        header = b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little")
        self.file.seek(0)
        self.file.write(header + text.ljust(_HEADER_BYTES - 11).encode() + b"\n")
        self.file.close()
        return {"bytes": _HEADER_BYTES + self.length * self.dtype.itemsize, "crc32": self.checksum}

    def widened(self) -> _ArrayFile:
        """Return a file of double precision with the same content in its place."""
        self.file.close()
        narrow = self.path.rename(self.path.with_suffix(".single"))
        wide = _ArrayFile(self.path, np.dtype(np.float64))
        with narrow.open("rb") as file:
            file.seek(_HEADER_BYTES)
            while block := file.read(_CHUNK):
                wide.write(np.frombuffer(block, self.dtype))
        narrow.unlink()
        return wide

    def remove(self) -> None:
        self.file.close()
        self.path.unlink()


@contextmanager
def scratch_store(target: Path) -> Iterator[Path]:
    """Give the name of a store beside `target` that is removed in the end, and by the next run if this one is killed."""
    beside = target.with_name(f".{target.name}.scratch")
    with naming_where_full(target), building_directory(beside, name=target) as folder:
        yield folder / "graph.store"


def _refuse_existing(path: Path, overwrite: bool) -> None:
    if path.exists() and not (overwrite and GraphStore.is_store(path)):
        cure = "choose another name, or pass overwrite=True" if GraphStore.is_store(path) else "choose another name"
        raise FileExistsError(f"{path} exists already; {cure}")
