"""A session: one fit on a cluster, its folder, and where the graphs of its levels lie."""

from __future__ import annotations

import secrets
import tempfile
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np

from corecut._typing import AnyArray, IntArray
from corecut.engines import tasks
from corecut.engines.scratch import Checkpoints, EngineError, load, save_plain, writing
from corecut.graph import Graph
from corecut.kernel import KernelView
from corecut.store import GraphStore


class Session:
    """One fit: its folder, and where graphs lie."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = secrets.token_hex(4)
        self._stages = 0
        self._known: list[tuple[AnyArray, Path]] = []
        self._completed: set[Path] = set()
        self._kernels: list[tuple[AnyArray, Path]] = []

    def stage(self, name: str) -> Checkpoints:
        """Return the files of the next stage; the same stages come in the same order in every run."""
        self._stages += 1
        here = Checkpoints(self.folder / f"{self._stages:03}-{name}")
        here.make()
        return here

    def know(self, indices: AnyArray, folder: Path) -> None:
        """Remember where the graph of these columns lies."""
        self._known.append((indices, folder))

    def place(self, graph: Graph) -> tasks.Place:
        """Return where a graph lies; a quotient's degrees are put beside it when they are first needed."""
        folder = self._find(graph)
        if folder not in self._completed and not GraphStore.is_store(folder):
            # Also in a run that is resumed: this file has no checksum.
            save_plain(folder / "degrees.npy", graph.degrees)
            self._completed.add(folder)
        return tasks.Place(str(folder), self.run)

    def kernel(self, kernel: KernelView) -> Path:
        """Return the folder of a kernel's arrays, which are written when they are first needed."""
        for diagonal, folder in self._kernels:
            if diagonal is kernel.diagonal:
                return folder
        folder = self.folder / f"kernel-{len(self._kernels)}"
        folder.mkdir(exist_ok=True)
        for name in ("scale", "diagonal", "weights"):
            if (array := getattr(kernel, name)) is not None:
                save_plain(folder / f"{name}.npy", array)
        self._kernels.append((kernel.diagonal, folder))
        return folder

    def _find(self, graph: Graph) -> Path:
        for indices, folder in self._known:
            if indices is graph.indices:
                return folder
        raise EngineError("a graph of this stage lies in no folder that workers could read")


def divided(borders: AnyArray, count: int, unit: int) -> list[tasks.Block]:
    """Cut rows into at most `count` blocks of about as many entries; they begin at multiples of `unit`."""
    rows, entries = borders.size - 1, int(borders[-1])
    # An empty row costs something, too.
    wanted = np.linspace(0, entries + rows, max(1, count) + 1)[1:-1]
    cuts = np.searchsorted(np.asarray(borders) + np.arange(rows + 1), wanted)
    edges = np.unique(np.concatenate([[0], np.minimum(cuts // unit * unit, rows), [rows]]))
    return [(int(begin), int(end)) for begin, end in pairwise(edges)]


def assemble(folder: Path, firsts: list[int]) -> IntArray:
    """Put the quotient's rows together from the parts' files, which go away, without ever holding them all. Returns checksums.

    They are in the folder `level`, each array in a file that can be mapped.
    """
    level = folder / "level"
    level.mkdir(exist_ok=True)
    lengths = np.concatenate([np.load(folder / f"merged-{first}.lengths.npy") for first in firsts])
    save_plain(level / "indptr.npy", np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    total = int(lengths.sum())
    for name, part, dtype in (("indices", "columns", np.int32), ("data", "weights", np.float64)):
        with writing(level / f"{name}.npy") as temporary, temporary.open("wb") as file:
            header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (total,)}
            np.lib.format.write_array_header_1_0(file, header)
            for first in firsts:
                merged = folder / f"merged-{first}.{part}.npy"
                file.write(np.load(merged, mmap_mode="r").data)
                merged.unlink()  # the disk need not have room for both
    return _checksums(level)


def _checksums(level: Path) -> IntArray:
    sums = []
    for name in ("indptr", "indices", "data"):
        checksum = 0
        with (level / f"{name}.npy").open("rb") as file:
            while block := file.read(1 << 24):
                checksum = zlib.crc32(block, checksum)
        sums.append(checksum)
    return np.array(sums, np.int64)


def verify(here: Checkpoints) -> None:
    """Refuse rows that are not what was written."""
    try:
        good = np.array_equal(_checksums(here.folder / "level"), load(here.result)["sums"])
    except OSError:
        good = False
    if not good:
        raise EngineError(f"the checkpoint {here.folder} is damaged: its checksum is wrong; run again without resume")


def fingerprint(graph: Graph) -> str:
    """Return what tells a graph from another: the checksums of a store, or those of the arrays."""
    if graph.store is not None:
        return str(tasks.describe(str(graph.store)).get("seen"))
    parts = [graph.indptr, graph.indices] + ([] if graph.weights is None else [graph.weights])
    return str([zlib.crc32(np.ascontiguousarray(part).data.cast("B")) for part in parts])


def beside(place: Path | None, key: str) -> Path:
    """Return a scratch folder for a graph that lies in a place, or in memory."""
    if place is None:
        return Path(tempfile.gettempdir()) / f"corecut-dask-{key[:12]}"
    return place.with_name(f".{place.name}.dask")
