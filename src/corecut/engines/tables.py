"""Tables on a cluster: a folder of Parquet edge files becomes a store, and labels become a folder of Parquet parts.

The store is that of `corecut convert` on all files in the order of their names: each file's ids are collected, its edges go to
buckets of rows, and every bucket is sorted and merged, all of it as tasks. Ids are integers.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from corecut import _core
from corecut._files import GraphFileError, atomic_file, require_arrow
from corecut._typing import AnyArray, LabelArray
from corecut.edges import EdgeReport, EdgeRules
from corecut.engines.cluster import Cluster
from corecut.engines.scratch import load, save, save_plain
from corecut.engines.tasks import Block, edge_files
from corecut.graph import Graph
from corecut.labels import write_labels
from corecut.readers.layout import EdgeOptions
from corecut.readers.parquet import ParquetReader
from corecut.store import GraphStore, StoreWriter

# Entries of a bucket of rows, about, and rows of a part of the labels. Neither depends on the cluster.
_BUCKET_ENTRIES, _PART_ROWS = 1 << 24, 1 << 20
_MANIFEST = "_manifest.json"


def build_store(
    cluster: Cluster, folder: Path, place: Path, *, options: EdgeOptions, rules: EdgeRules, compact: bool = True
) -> EdgeReport:
    """Build a store from the Parquet files of a folder, in the order of their names, in which repeated edges are added up.

    Parameters
    ----------
    cluster
        Its workers must see the files and the folder of `place`.
    folder
        Where the files are. Some may be empty.
    place
        The store to make.
    options, rules, compact
        As of the readers.
    """
    # Workers need not have been started where the client was.
    folder, place = Path(os.path.abspath(folder)), Path(os.path.abspath(place))
    cluster.check(folder)
    files = edge_files(folder)
    work = place.with_name(f".{place.name}.build")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        numbers = [(i, i + 1) for i in range(len(files))]
        edges = Edges(tuple(map(str, files)), str(work), options, rules)
        counted = cluster.map("edges", collect_ids, (edges,), numbers)
        report = EdgeReport(edges_read=sum(one["read"] for one in counted), loops_dropped=sum(one["loops"] for one in counted))
        weighted = {one["weighted"] for one in counted if one["read"]}
        if not weighted:
            raise GraphFileError(f"{folder}: there is no edge in its files")
        if len(weighted) > 1:
            raise GraphFileError(f"some files of {folder} have weights and others do not; give all of them a column")
        (with_weights,) = weighted
        ids = _all_ids(work, len(files), compact)
        save_plain(work / "ids.npy", ids)
        kept = report.edges_read - report.loops_dropped
        buckets = max(1, -(-2 * kept // _BUCKET_ENTRIES))
        borders = np.unique(np.linspace(0, ids.size, buckets + 1).astype(np.int64))
        cluster.map("edges", spread_edges, (edges, borders), numbers)
        parts = [(int(first), int(last)) for first, last in pairwise(borders)]
        largest = rules.duplicates == "max"
        cluster.map("rows", build_rows, (edges, ids.size, with_weights, largest), parts)
        with StoreWriter.create(place) as writer:
            writer.begin(ids.size, np.dtype(np.int32 if ids.size < 2**31 else np.int64), with_weights)
            entries = 0
            for first, _ in parts:
                rows = load(work / f"rows-{first}.npz")
                writer.rows(rows["lengths"], rows["columns"], rows.get("weights"), rows["degrees"], rows["diagonal"])
                report.loops += int(np.count_nonzero(rows["diagonal"]))
                report.zeros += int(rows["zeros"])
                entries += rows["columns"].size
            writer.finish(None if _are_numbers(ids) else ids)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    report.edges = (entries + report.loops) // 2
    report.merged = kept - report.edges - report.zeros
    return report


def _all_ids(work: Path, count: int, compact: bool) -> AnyArray:
    """Return the ids of all nodes, increasing."""
    ids = np.empty(0, np.int64)
    for i in range(count):
        ids = np.union1d(ids, np.load(work / f"ids-{i}.npy"))
    if compact:
        return ids
    if ids.size and ids[0] < 0:
        raise GraphFileError(f"the id {ids[0]} is no node number; leave ids to be numbered")
    return np.arange(int(ids[-1]) + 1 if ids.size else 0)


def _are_numbers(ids: AnyArray) -> bool:
    return bool(ids.size == 0 or (ids[0] == 0 and ids[-1] == ids.size - 1))


@dataclass(frozen=True)
class Edges:
    """The files of edges, how to read them, and the folder for what is made of them."""

    files: tuple[str, ...]
    work: str
    options: EdgeOptions
    rules: EdgeRules

    def blocks(self, number: int) -> Iterator[tuple[AnyArray, AnyArray, AnyArray | None]]:
        """Give the edges of a file as the rules want them, but for loops."""
        file = self.files[number]
        reader = ParquetReader(Path(file), self.options)
        if reader.n_rows == 0:  # as programs that write in parts leave some
            return
        if reader.n_names is not None:
            raise GraphFileError(f"{file}: ids are text; make a store of one file with corecut convert, or give integers")
        for source, target, weight in reader.blocks():
            if self.rules.duplicates == "unit":
                yield source, target, None
            elif self.rules.duplicates == "sum" and weight is None:
                yield source, target, np.ones(source.size)
            else:
                yield source, target, weight


def collect_ids(edges: Edges, block: Block) -> dict[str, Any]:
    """Write the ids that occur in a file, increasing, and count its edges."""
    i = block[0]
    found, read, loops, weighted = np.empty(0, np.int64), 0, 0, False
    for source, target, weight in edges.blocks(i):
        read += source.size
        weighted = weight is not None
        keep = source != target if edges.rules.loops == "drop" else np.ones(source.size, bool)
        loops += int(source.size - np.count_nonzero(keep))
        found = np.union1d(found, np.union1d(source[keep], target[keep]))
    save_plain(Path(edges.work) / f"ids-{i}.npy", found)
    return {"read": read, "loops": loops, "weighted": weighted}


def spread_edges(edges: Edges, borders: AnyArray, block: Block) -> int:
    """Write the entries of a file's edges, in both directions, by buckets of rows and in the order of the file."""
    i = block[0]
    ids = np.load(Path(edges.work) / "ids.npy", mmap_mode="r")
    numbers = None if _are_numbers(ids) else np.asarray(ids)
    held: list[list[dict[str, AnyArray]]] = [[] for _ in range(borders.size - 1)]
    for source, target, weight in edges.blocks(i):
        keep = source != target if edges.rules.loops == "drop" else np.ones(source.size, bool)
        one, other, heavy = source[keep], target[keep], None if weight is None else weight[keep]
        if numbers is not None:
            one, other = np.searchsorted(numbers, one), np.searchsorted(numbers, other)
        back = one != other
        rows, columns = np.concatenate([one, other[back]]), np.concatenate([other, one[back]])
        at = np.searchsorted(borders, rows, side="right") - 1
        # In the order of the edges, in which the weights of repeats are added up on one machine, too.
        order = np.lexsort((np.concatenate([np.arange(one.size), np.flatnonzero(back)]), at))
        ends = np.searchsorted(at[order], np.arange(borders.size))
        values = None if heavy is None else np.concatenate([heavy, heavy[back]])
        for b in range(borders.size - 1):
            here = order[ends[b] : ends[b + 1]]
            part = {"rows": rows[here], "columns": columns[here]}
            held[b].append(part if values is None else part | {"weights": values[here]})
    for b, parts in enumerate(held):
        names = parts[0] if parts else ("rows", "columns")
        together = {name: np.concatenate([part[name] for part in parts] or [np.empty(0, np.int64)]) for name in names}
        save(Path(edges.work) / f"edges-{i}-{borders[b]}.npz", **together)
    return len(held)


def build_rows(edges: Edges, n: int, weighted: bool, largest: bool, block: Block) -> int:
    """Write the rows of a bucket: entries sorted, repeats merged. Returns the number of entries."""
    first, last = block
    index_type: Any = np.int32 if n < 2**31 else np.int64
    found = [load(Path(edges.work) / f"edges-{i}-{first}.npz") for i in range(len(edges.files))]
    parts = [part for part in found if part["rows"].size]
    counts = np.zeros(last - first, np.int64)
    for part in parts:
        counts += np.bincount(part["rows"] - first, minlength=last - first)
    make: Any = _core.RowBuilder32 if index_type == np.int32 else _core.RowBuilder64
    builder = make(n, first, counts, weighted)
    for part in parts:
        builder.add(part["rows"].astype(index_type), part["columns"].astype(index_type), part.get("weights"), False, 1)
    lengths, columns, weights, degrees, diagonal, zeros, _ = builder.finish(largest, 1)
    made = {"lengths": lengths, "columns": columns, "degrees": degrees, "diagonal": diagonal, "zeros": np.array(zeros)}
    save(Path(edges.work) / f"rows-{first}.npz", **made | ({"weights": weights} if weighted else {}))
    return int(columns.size)


def write_label_parts(cluster: Cluster, graph: Graph, labels: LabelArray, folder: Path) -> None:
    """Write labels as a folder of Parquet files, one for each block of nodes, and last a manifest that lists them.

    A folder without manifest is not complete: it was left by a run that was killed, and is begun anew.
    """
    require_arrow(f"{folder}: Parquet files", "parquet")
    if (folder / _MANIFEST).exists() or (folder.exists() and not folder.is_dir()):
        raise FileExistsError(f"{folder} exists already; choose another name")
    for stale in folder.glob("part-*.parquet") if folder.is_dir() else ():
        stale.unlink()
    if folder.is_dir() and any(path.name != ".labels.npy" for path in folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; choose another name")
    folder.mkdir(exist_ok=True)
    save_plain(folder / ".labels.npy", labels)
    blocks = [(begin, min(begin + _PART_ROWS, labels.size)) for begin in range(0, labels.size, _PART_ROWS)]
    store = None if graph.store is None or graph.node_ids is None else str(graph.store)
    files = cluster.map("labels", write_part, (str(folder.resolve()), store), blocks)
    (folder / ".labels.npy").unlink()
    listed = [{"file": name, "first": begin, "nodes": end - begin} for name, (begin, end) in zip(files, blocks, strict=True)]
    with atomic_file(folder / _MANIFEST) as temporary:
        temporary.write_text(json.dumps({"nodes": labels.size, "parts": listed}, indent=1), encoding="utf-8")


def write_part(folder: str, store: str | None, block: Block) -> str:
    """Write the labels of a block of nodes under a temporary name, then rename the file; returns its name."""
    begin, end = block
    labels = np.load(Path(folder) / ".labels.npy", mmap_mode="r")[begin:end]
    ids = np.arange(begin, end) if store is None else GraphStore.open(store).node_ids
    assert ids is not None
    file = Path(folder) / f"part-{begin:012}.parquet"
    write_labels(file, np.asarray(labels), ids if store is None else ids[begin:end])
    return file.name
