"""Labels in files: one row per node, columns `node` (the graph file's own id) and `label`.

Parquet, CSV, TSV or npy by the file's ending, and text (CSV, TSV) compressed when .gz, .bz2 or .zst follows. An npy file
holds the labels alone, in the order of the node numbers; so does a text file of one column, as METIS and others write them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from corecut import _core
from corecut._files import PACKED, GraphFileError, atomic_file, ending_of, packed_stream
from corecut._typing import AnyArray, IntArray
from corecut.readers.layout import is_integer, split_line
from corecut.readers.streams import LineBlocks

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_BATCH = 1 << 20


def check_labels_path(path: str | Path) -> Path:
    """Refuse an ending that no writer knows and a folder that does not exist, before any work is done."""
    file = Path(path)
    ending = ending_of(file)
    if ending not in (".parquet", ".npy", *_DELIMITERS) or (ending in (".parquet", ".npy") and file.suffix in PACKED):
        raise ValueError(f"cannot tell the format of {file}; end the name in .parquet, .csv, .tsv or .npy")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {file.parent}")
    if not os.access(file.parent, os.W_OK):
        raise PermissionError(f"the folder {file.parent} cannot be written to")
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a directory; give a file name")
    return file


def write_labels(path: str | Path, labels: AnyArray, node_ids: AnyArray | None = None) -> None:
    """Write labels so that the file appears whole or not at all.

    Parameters
    ----------
    path
        The file; its ending chooses the format.
    labels
        Cluster of every node.
    node_ids
        The nodes' own ids; their numbers when None.
    """
    file = check_labels_path(path)
    ending = ending_of(file)
    with atomic_file(file) as temporary:
        if ending == ".npy":
            with temporary.open("wb") as stream:
                np.save(stream, np.ascontiguousarray(labels, dtype=np.int32))
        elif ending == ".parquet":
            with pq.ParquetWriter(temporary, _schema(node_ids)) as writer:
                _each_batch(writer.write_batch, labels, node_ids)
        else:
            delimiter = _DELIMITERS[ending]
            with packed_stream(temporary, file) as stream:
                stream.write(f"node{delimiter}label\n".encode())
                options = pc.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed")
                with pc.CSVWriter(stream, _schema(node_ids), write_options=options) as writer:
                    _each_batch(writer.write_batch, labels, node_ids)


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
            return None, _as_labels(labels)
        if ending == ".parquet":
            table = pq.read_table(file)
            columns = [_plain(table[name]) for name in _pick(table.column_names, column, file)]
        else:
            columns = _read_text(file, column)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, GraphFileError | LabelColumnError):
            raise
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise GraphFileError(f"{file}: is not a complete labels file ({text})") from None
    return (columns[0] if len(columns) > 1 else None), _as_labels(columns[-1])


def align_labels(ids: AnyArray | None, labels: IntArray, node_ids: AnyArray | None, *, n_nodes: int, name: str) -> IntArray:
    """Return one label per node of a graph, -1 for nodes that the file does not name; nodes of other graphs are left out."""
    if ids is None:
        if labels.size != n_nodes:
            raise ValueError(f"{name} holds {labels.size} labels without ids, the graph has {n_nodes} nodes")
        return labels
    known = np.arange(n_nodes) if node_ids is None else np.asarray(node_ids)
    if known.dtype.kind == "O" or ids.dtype.kind == "O":
        number_of = {str(node): number for number, node in enumerate(known.tolist())}
        numbers = np.fromiter((number_of.get(str(node), -1) for node in ids.tolist()), np.int64, ids.size)
    else:
        numbers = np.searchsorted(known, ids)
        numbers[numbers == n_nodes] = 0
        numbers[known[numbers] != ids] = -1
    own = numbers >= 0
    if not own.any():
        raise ValueError(f"{name} names no node of the graph; its first is {ids[0]!s}, the graph's first is {known[0]!s}")
    numbers, labels = numbers[own], labels[own]
    order = np.sort(numbers)
    if (order[1:] == order[:-1]).any():
        twice = int(order[1:][order[1:] == order[:-1]][0])
        raise ValueError(f"{name} has more than one label for node {known[twice]!s}")
    aligned = np.full(n_nodes, -1, np.int64)
    aligned[numbers] = labels
    return aligned


def _schema(node_ids: AnyArray | None) -> pa.Schema:
    text = node_ids is not None and node_ids.dtype.kind in "OUT"
    return pa.schema([("node", pa.string() if text else pa.int64()), ("label", pa.int32())])


def _each_batch(write: Callable[[pa.RecordBatch], None], labels: AnyArray, node_ids: AnyArray | None) -> None:
    schema = _schema(node_ids)
    for begin in range(0, labels.size, _BATCH):
        end = min(begin + _BATCH, labels.size)
        nodes = np.arange(begin, end) if node_ids is None else node_ids[begin:end]
        arrays = [pa.array(nodes, schema.field(0).type), pa.array(labels[begin:end].astype(np.int32), pa.int32())]
        write(pa.record_batch(arrays, schema=schema))


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
    text, _ = _core.tidy_lines(content, delimiter, "#%")
    names = [field.strip() for field in fields] if header else [str(i) for i in range(len(fields))]
    if header:
        text = text[text.index(b"\n") + 1 :]
    table = pc.read_csv(
        pa.py_buffer(text),
        read_options=pc.ReadOptions(column_names=names),
        parse_options=pc.ParseOptions(delimiter=delimiter or "\t", quote_char='"' if delimiter else False),
        convert_options=pc.ConvertOptions(null_values=[], strings_can_be_null=False),
    )
    return [_plain(table[name]) for name in _pick(names, column, file)]


_NODE_NAMES = ("node", "id", "name", "vertex", "node_id")
_LABEL_NAMES = ("label", "labels", "cluster", "community", "class", "y", "truth", "partition", "group")


def _pick(names: list[str], column: str | None, file: Path) -> list[str]:
    """Return the names of the columns of ids (if there is one) and labels."""
    if column is not None:
        by_number = [names[int(column)]] if column.isdigit() and int(column) < len(names) else []
        wanted = [name for name in names if name == column] or by_number
        if not wanted:
            raise LabelColumnError(f"{file} has no column {column!r}; it has {', '.join(names)}")
        rest = [name for name in names if name != wanted[0]]
        return [*_ids_of(rest), wanted[0]]
    if len(names) == 1:
        return names
    (node,) = _ids_of(names)
    others = [name for name in names if name != node]
    called = [name for name in others if name.lower() in _LABEL_NAMES]
    found = called or others
    if len(found) > 1:
        raise LabelColumnError(f"{file} may have its labels in any of the columns {', '.join(found)}; name one")
    return [node, found[0]]


def _ids_of(names: list[str]) -> list[str]:
    """Return the column of the ids: the one that is called so, or the first."""
    return [next((name for name in names if name.lower() in _NODE_NAMES), names[0])] if names else []


def _plain(column: pa.ChunkedArray) -> AnyArray:
    """Return a column as int64 when it holds whole numbers, else as text."""
    if column.null_count:
        raise ValueError(f"row {int(np.flatnonzero(column.is_null().to_numpy())[0])} has no value")
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(column.cast(pa.int64()).to_numpy())
    return np.array(column.cast(pa.string()).to_pylist(), dtype=object)


def _as_labels(values: AnyArray) -> IntArray:
    if values.dtype.kind in "iub":
        return np.maximum(values.astype(np.int64), -1)
    return np.unique(values.astype(str), return_inverse=True)[1].astype(np.int64)
