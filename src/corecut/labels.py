"""Labels in files: one row per node, columns `node` (the graph file's own id) and `label`.

Parquet, CSV, TSV or npy by the file's ending, and text (CSV, TSV) compressed when .gz, .bz2 or .zst follows. An npy file
holds the labels alone, in the order of the node numbers; so does a text file of one column, as METIS and others write them:
GRAPH.part.K, one label per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from corecut import _core
from corecut._files import (
    PACKED,
    PARQUET,
    EndingError,
    GraphFileError,
    atomic_file,
    check_target,
    ending_of,
    first_line,
    packed_stream,
    require_arrow,
    require_packages,
)
from corecut._typing import AnyArray, IntArray
from corecut.advice import advise
from corecut.node_ids import checked_ids, numbers_of
from corecut.readers.layout import is_integer, split_line
from corecut.readers.streams import LineBlocks
from corecut.writers import quoted

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_PART = re.compile(r".+\.part\.([0-9]+)")
_BATCH = 1 << 20


def metis_parts(path: str | Path) -> int | None:
    """Return K of a name GRAPH.part.K, as METIS calls its files of labels; None for other names.

    Examples
    --------
    >>> from corecut.labels import metis_parts
    >>> metis_parts("4elt.graph.part.8")
    8
    """
    found = _PART.fullmatch(Path(path).name)
    return None if found is None else int(found[1])


def check_labels_path(path: str | Path, *, overwrite: bool = True) -> Path:
    """Refuse an ending that no writer knows and a name that cannot be written to, before any work is done."""
    file = Path(path)
    check_target(file)
    ending = ending_of(file)
    if metis_parts(file) is not None:
        ending = ".txt"
    if ending not in (*PARQUET, ".npy", *_DELIMITERS) or (ending in (*PARQUET, ".npy") and file.suffix in PACKED):
        raise EndingError(
            f"cannot tell the format of {file}; end the name in .csv, .tsv or .txt (also with .gz, .bz2 or .zst), .npy, "
            ".parquet or .part.K"
        )
    require_packages(file)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a directory; give a file name")
    if file.exists() and not overwrite:
        raise FileExistsError(f"{file} exists already; choose another name, or pass overwrite=True")
    return file


def write_labels(path: str | Path, labels: AnyArray, node_ids: AnyArray | None = None, *, overwrite: bool = True) -> None:
    """Write labels so that the file appears whole or not at all.

    Parameters
    ----------
    path
        The file; its ending chooses the format.
    labels
        Cluster of every node.
    node_ids
        The nodes' own ids; their numbers when None.
    overwrite
        Replace a file of that name.
    """
    file = check_labels_path(path, overwrite=overwrite)
    ending = ending_of(file)
    if metis_parts(file) is not None and node_ids is not None:
        advise(
            f"{file} cannot hold the nodes' own ids: its lines are in the order of the graph's node numbers; to keep the ids "
            "choose Parquet, CSV or TSV"
        )
    with atomic_file(file, overwrite=overwrite) as temporary:
        if metis_parts(file) is not None:
            with temporary.open("wb") as stream:
                for _, part in _batches(labels, None):
                    stream.write(("\n".join(map(str, part.tolist())) + "\n").encode())
        elif ending == ".npy":
            with temporary.open("wb") as stream:
                np.save(stream, np.ascontiguousarray(labels, dtype=np.int32))
        elif ending in PARQUET:
            _write_parquet(temporary, labels, node_ids)
        else:
            delimiter = _DELIMITERS[ending]
            with packed_stream(temporary, file) as stream:
                stream.write(f"node{delimiter}label\n".encode())
                for nodes, part in _batches(labels, node_ids):
                    names = map(quoted, nodes.tolist()) if nodes.dtype.kind == "O" else map(str, nodes.tolist())
                    rows = (f"{name}{delimiter}{label}\n" for name, label in zip(names, part.tolist(), strict=True))
                    stream.write("".join(rows).encode())


class LabelColumnError(ValueError):
    """A file has several columns that may hold the labels, or not the one that was named."""


def read_labels(path: str | Path, *, column: str | None = None) -> tuple[AnyArray | None, IntArray]:
    """Return the ids (None when the file has none) and the labels of a labels file.

    Labels that are not integers are numbered in the order of their names; negative ones mean "no label" and become -1.

    Parameters
    ----------
    path
        The file.
    column
        The column of the labels, by name or by number from 0. None for the one beside the ids, or the one that is called like
        labels; a file that leaves a choice is refused.
    """
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a directory, not a labels file; give the name of a file in it")
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    ending = ending_of(file)
    try:
        if ending == ".npy":
            if column is not None:
                raise LabelColumnError(f"{file} is a plain array and has no columns to choose from")
            labels = np.load(file, allow_pickle=False)
            if labels.ndim != 1:
                raise GraphFileError(f"{file}: holds an array of shape {labels.shape}, expected one label per node")
            return None, _as_labels(labels, file)
        if ending in PARQUET:
            pa, pq = require_arrow(f"{file}: Parquet files", "parquet")
            try:
                table = pq.read_table(file)
                columns = [_plain(table.column(i), pa) for i in _pick(table.column_names, column, file)]
            except pa.ArrowException as error:
                raise ValueError(first_line(error)) from None
        else:
            columns = _read_text(file, column)
    except (OSError, ValueError) as error:
        if isinstance(error, GraphFileError | LabelColumnError):
            raise
        raise GraphFileError(f"{file}: is not a complete labels file ({first_line(error)})") from None
    return (columns[0] if len(columns) > 1 else None), _as_labels(columns[-1], file)


def align_labels(ids: AnyArray | None, labels: IntArray, node_ids: AnyArray | None, *, n_nodes: int, name: str) -> IntArray:
    """Return one label per node of a graph, -1 for nodes that the file does not name.

    Nodes of other graphs are left out, and a warning tells how many.
    """
    if ids is None:
        if labels.size != n_nodes:
            raise ValueError(f"{name} holds {labels.size} labels without ids, the graph has {n_nodes} nodes")
        return labels
    known = np.arange(n_nodes) if node_ids is None else np.asarray(node_ids)
    numbers = numbers_of(ids, node_ids, n_nodes)
    own = numbers >= 0
    if not own.any():
        raise ValueError(f"{name} names no node of the graph; its first is {ids[0]!s}, the graph's first is {known[0]!s}")
    if not own.all():
        strangers = int(np.count_nonzero(~own))
        advise(
            f"{name} has labels for {strangers:,} nodes that the graph does not have, the first is {ids[~own][0]!s}; they are "
            "left out: look whether the labels are of this graph"
        )
    numbers, labels = numbers[own], labels[own]
    order = np.sort(numbers)
    if (order[1:] == order[:-1]).any():
        twice = int(order[1:][order[1:] == order[:-1]][0])
        raise ValueError(f"{name} has more than one label for node {known[twice]!s}")
    aligned = np.full(n_nodes, -1, np.int64)
    aligned[numbers] = labels
    return aligned


def _batches(labels: AnyArray, node_ids: AnyArray | None) -> Iterator[tuple[AnyArray, AnyArray]]:
    ids = checked_ids(node_ids)
    for begin in range(0, labels.size, _BATCH):
        end = min(begin + _BATCH, labels.size)
        yield (np.arange(begin, end) if ids is None else ids[begin:end]), labels[begin:end].astype(np.int32)


def _write_parquet(to: Path, labels: AnyArray, node_ids: AnyArray | None) -> None:
    pa, pq = require_arrow("Parquet files", "parquet")
    text = node_ids is not None and node_ids.dtype.kind in "OUT"
    schema = pa.schema([("node", pa.string() if text else pa.int64()), ("label", pa.int32())])
    with pq.ParquetWriter(to, schema) as writer:
        for columns in _batches(labels, node_ids):
            arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _read_text(file: Path, column: str | None) -> list[AnyArray]:
    with LineBlocks(file) as lines:
        content = b"".join(block for _, block in lines).removeprefix(b"\xef\xbb\xbf")
    start = content[: 1 << 16].decode(errors="replace").splitlines()
    first = next((line for line in start if line.strip() and line[0] not in "#%"), None)
    if first is None:
        raise GraphFileError(f"{file}: there is no label in this file")
    delimiter = next((mark for mark in (",", ";", "\t") if mark in first), "")
    fields = split_line(first.strip(), delimiter)
    named = [field.strip().lower() for field in fields]
    header = any(name in _NODE_NAMES + _LABEL_NAMES or name == (column or "").lower() for name in named)
    header = header and not any(is_integer(name) for name in named)
    names = [field.strip() for field in fields] if header else [str(i) for i in range(len(fields))]
    records, _, _, fault, line = _core.sniff_records(content, delimiter, "#%", 2**31 - 1)
    wrong = next((i for i, record in enumerate(records) if len(record) != len(names)), None)
    if wrong is not None:
        line = _line_of(wrong, content, delimiter)
        raise ValueError(f"line {line} has {len(records[wrong])} columns, the first line has {len(names)}")
    if fault:
        raise ValueError(f"line {line + 1} cannot be read")
    rows = records[1:] if header else records
    picked = _pick(names, column, file)
    gap = next((i for i, row in enumerate(rows) if row[picked[-1]] in _GAPS), None)
    if gap is not None:
        line = _line_of(gap + header, content, delimiter)
        raise GraphFileError(f"{file}, line {line}: the label is missing; write -1 for a node without one")
    return [_column([row[position] for row in rows]) for position in picked]


# Fields without quotes that stand for no label.
_GAPS = frozenset((text, False) for text in (b"", b"nan", b"NaN", b"NAN", b"<NA>"))


def _line_of(record: int, content: bytes, delimiter: str) -> int:
    """Return the line, from 1, in which a record ends."""
    return int(_core.sniff_records(content.rstrip(b"\n") + b"\n", delimiter, "#%", record + 1)[4])


def _column(fields: list[tuple[bytes, bool]]) -> AnyArray:
    """Return a column as int64 when it holds whole numbers, else as text; what is in quotes is text."""
    if not any(in_quotes for _, in_quotes in fields):
        try:
            return np.array([int(text) for text, _ in fields], dtype=np.int64)
        except (ValueError, OverflowError):
            pass
    if any(not text and not in_quotes for text, in_quotes in fields):
        raise ValueError("a field is empty")
    return np.array([*(text.decode() for text, _ in fields), None], dtype=object)[:-1]


_NODE_NAMES = ("node", "id", "name", "vertex", "node_id")
_LABEL_NAMES = ("label", "labels", "cluster", "community", "class", "y", "truth", "partition", "group")


def _pick(names: list[str], column: str | None, file: Path) -> list[int]:
    """Return the positions of the columns of ids (if there is one) and labels."""
    every = range(len(names))
    if column is not None:
        wanted = [i for i in every if names[i] == column]
        if len(wanted) > 1:
            raise LabelColumnError(f"{file} has more than one column {column!r}; give the number of one, from 0: {wanted}")
        if not wanted and column.isdigit() and int(column) < len(names):
            wanted = [int(column)]
        if not wanted:
            raise LabelColumnError(f"{file} has no column {column!r}; it has {', '.join(names)}")
        return [*_ids_of([i for i in every if i != wanted[0]], names, file), wanted[0]]
    if len(names) == 1:
        return [0]
    (node,) = _ids_of(list(every), names, file)
    others = [i for i in every if i != node]
    found = [i for i in others if names[i].lower() in _LABEL_NAMES] or others
    if len(found) > 1:
        called = ", ".join(names[i] for i in found)
        raise LabelColumnError(
            f"{file} may have its labels in any of the columns {called}; name one, or give its number from 0"
        )
    return [node, found[0]]


def _ids_of(positions: list[int], names: list[str], file: Path) -> list[int]:
    """Return the position of the ids: the column that is called so, or the first."""
    node = next((i for i in positions if names[i].lower() in _NODE_NAMES), positions[0] if positions else None)
    if node is None:
        return []
    if sum(names[i] == names[node] for i in positions) > 1:
        raise LabelColumnError(
            f"{file} has more than one column {names[node]!r} that may hold the ids; leave one, or name them differently"
        )
    return [node]


def _plain(column: Any, pa: Any) -> AnyArray:
    """Return a column as int64 when it holds whole numbers, else as text."""
    if column.null_count:
        raise ValueError(f"row {int(np.flatnonzero(column.is_null().to_numpy())[0])} has no value")
    if pa.types.is_floating(column.type):
        gaps = np.flatnonzero(np.isnan(column.to_numpy()))
        if gaps.size:
            raise ValueError(f"row {int(gaps[0])} has no value, but NaN")
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(column.cast(pa.int64()).to_numpy())
    return np.array(column.cast(pa.string()).to_pylist(), dtype=object)


def _as_labels(values: AnyArray, file: Path) -> IntArray:
    if values.dtype.kind == "f":
        gaps = np.flatnonzero(np.isnan(values))
        if gaps.size:
            raise GraphFileError(f"{file}: label {int(gaps[0])} is missing (NaN); write -1 for a node without one")
        if (values == np.floor(values)).all() and (np.abs(values) < 2**53).all():
            values = values.astype(np.int64)
    if values.dtype.kind in "iub":
        return np.maximum(values.astype(np.int64), -1)
    return np.unique(values.astype(str), return_inverse=True)[1].astype(np.int64)
