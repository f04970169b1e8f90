"""Points from files: tables of numbers, one row per point, as text (CSV, TSV, blanks), .npy or Parquet.

A first column of names (text, or one that is called id, name, index or not at all, as pandas writes its index) names the
points. All other columns are features and must be numbers; what else a table holds is left out by naming the features.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corecut import _core
from corecut._files import GraphFileError, ending_of, first_line, require_arrow
from corecut._typing import AnyArray, IntArray
from corecut.advice import advise
from corecut.node_ids import first_repeat
from corecut.readers.layout import is_integer, is_number
from corecut.readers.npz import points_cure
from corecut.readers.streams import LineBlocks, Source

_NAMES = ("", "id", "ids", "index", "name", "names", "node", "node_id", "point", "unnamed: 0", "__index_level_0__")
_LABELS = ("label", "labels", "class", "cluster", "truth", "target")
_SNIFFED = 200


@dataclass(frozen=True, eq=False)
class Points:
    """Points of a file.

    Attributes
    ----------
    values
        One row per point.
    features
        Names of the columns, or their numbers where they have none.
    names
        The points' names, None where the file has none.
    named
        Whether the columns have names in the file.
    """

    values: AnyArray
    features: list[str]
    names: AnyArray | None
    named: bool


def read_points(
    path: str | Path,
    *,
    features: Sequence[str | int] | None = None,
    fitted: Sequence[str] | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    comments: str = "#%",
) -> Points:
    r"""Read points from a file.

    Parameters
    ----------
    path
        Text (perhaps compressed, or "-" for standard input), .npy or .parquet.
    features
        The columns to take, by name or by number from 0; None for all but names.
    fitted
        Names of the features that a model knows: the columns to take, in this order, where the file names its columns.
    delimiter, header, comments
        What cannot be seen from the first lines of a text; `delimiter` "" stands for any blanks.

    Returns
    -------
    Points

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from corecut.readers.points import read_points
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "points.csv"
    ...     _ = file.write_text("name,x,y\na,0.5,1\nb,2,3\n")
    ...     read_points(file).values
    array([[0.5, 1. ],
           [2. , 3. ]])
    """
    source = Source(path)
    start = b"" if not source.is_pipe and source.path.is_dir() else source.start(8)
    if not start:
        raise GraphFileError(f"{source.name}: holds no points; give a file with one row per point")
    table: _Table
    if start.startswith(b"\x93NUMPY"):
        _refuse_options(source.name, "a NumPy array", delimiter, header)
        table = _of_npy(source.require_file("a NumPy array"))
    elif start.startswith(b"PAR1") or ending_of(source.path) in (".parquet", ".pq"):
        _refuse_options(source.name, "a Parquet table", delimiter, header)
        table = _of_parquet(source.require_file("a Parquet table"))
    elif start.startswith(b"PK\x03\x04"):
        cure = points_cure(source.require_file("an archive of arrays"))
        raise GraphFileError(f"{source.name}: is an archive of arrays (.npz); {cure}")
    else:
        table = _of_text(source, delimiter, header, comments)
    return table.points(fitted if fitted is not None and table.named else features)


@dataclass
class _Table:
    """The columns of a file, and how to read some of them."""

    name: str
    columns: list[str]
    numeric: list[bool]
    named: bool
    read: Any
    row: int = 0
    """The number that people give the first row."""

    def points(self, features: Sequence[str | int] | None) -> Points:
        """Return the points of all columns, or of those that were chosen."""
        has_names = bool(self.columns) and (
            not self.numeric[0] or (self.named and self.columns[0].strip().lower() in _NAMES and len(self.columns) > 1)
        )
        if features is None:
            chosen = list(range(int(has_names), len(self.columns)))
            told = [self.columns[i] for i in chosen if self.named and self.columns[i].strip().lower() in _LABELS]
            if told and len(chosen) > 1:
                advise(f"{self.name}: the column {told[0]!r} is taken for a feature; if it is none, choose with features=")
        else:
            chosen = [self._position(feature) for feature in features]
            has_names = has_names and 0 not in chosen
        if not chosen:
            raise GraphFileError(f"{self.name}: has no column of numbers")
        twice = first_repeat(np.array(chosen))
        if twice is not None:
            raise GraphFileError(
                f"{self.name}: features= names the column {self.columns[twice]!r} twice; name every column once"
            )
        self._refuse_namesakes([self.columns[i] for i in chosen])
        text = next((i for i in chosen if not self.numeric[i]), None)
        if text is not None:
            raise GraphFileError(
                f"{self.name}: the column {self.columns[text]!r} holds text; choose the columns that are numbers with features="
            )
        values = self.read(chosen, np.float64)
        bad = np.argwhere(~np.isfinite(values))
        if bad.size:
            row, column = (int(i) for i in bad[0])
            raise GraphFileError(
                f"{self.name}: row {row + self.row} has no finite value in column {self.columns[chosen[column]]!r}; drop it"
            )
        names = self.read([0], np.str_)[:, 0] if has_names else None
        return Points(values, [self.columns[i] for i in chosen], None if names is None else _ids(names), self.named)

    def _position(self, feature: str | int) -> int:
        if isinstance(feature, str) and feature in self.columns:
            self._refuse_namesakes([name for name in self.columns if name == feature])
            return self.columns.index(feature)
        if isinstance(feature, int) and 0 <= feature < len(self.columns):
            return feature
        shown = ", ".join(self.columns[:10]) + (" ..." if len(self.columns) > 10 else "")
        raise GraphFileError(f"{self.name}: there is no column {feature!r}; the columns are {shown}")

    def _refuse_namesakes(self, names: list[str]) -> None:
        """Refuse features of one name: a model could not tell them apart in another file."""
        twice = first_repeat(np.array([*names, None], dtype=object)[:-1])
        if twice is not None:
            raise GraphFileError(f"{self.name}: more than one column is called {twice!r}; give every column a name of its own")


def _ids(names: AnyArray) -> AnyArray:
    """Return names as integers where all are, else as text."""
    found = names.tolist()
    if all(is_integer(name) for name in found) and all(abs(int(name)) < 2**63 for name in found):
        return np.array([int(name) for name in found], dtype=np.int64)
    return np.array([*found, None], dtype=object)[:-1]


def _refuse_options(name: str, kind: str, delimiter: str | None, header: bool | None) -> None:
    for option, value in (("delimiter", delimiter), ("header", header)):
        if value is not None:
            raise GraphFileError(f"{name}: {option} has no meaning for {kind}: it is an option for points as text")


def _of_npy(file: Path) -> _Table:
    try:
        values = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise GraphFileError(f"{file}: is not a complete NumPy array ({first_line(error)})") from None
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise GraphFileError(
            f"{file}: holds an array of shape {values.shape} and type {values.dtype}; points are a table of numbers"
        )
    n_columns = values.shape[1]

    def read(columns: list[int], dtype: Any) -> AnyArray:
        return np.ascontiguousarray(values if len(columns) == n_columns else values[:, columns], dtype=dtype)

    return _Table(str(file), [str(i) for i in range(n_columns)], [True] * n_columns, False, read)


def _of_parquet(file: Path) -> _Table:
    pa, pq = require_arrow(f"{file}: Parquet files", "parquet")
    try:
        schema = pq.read_schema(file)
        kinds = [pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) for kind in schema.types]
    except (pa.ArrowException, OSError) as error:
        raise GraphFileError(f"{file}: is not a complete Parquet file ({first_line(error)})") from None

    def read(columns: list[int], dtype: Any) -> AnyArray:
        try:
            found = pq.read_table(file, columns=[schema.names[i] for i in columns])
        except (pa.ArrowException, OSError) as error:
            raise GraphFileError(f"{file}: is not a complete Parquet file ({first_line(error)})") from None
        return np.column_stack([np.asarray(found.column(schema.names[i]).to_numpy(), dtype=dtype) for i in columns])

    # What pandas calls its index, it puts last.
    order = sorted(range(len(schema.names)), key=lambda i: schema.names[i] != "__index_level_0__")
    names, numeric = [schema.names[i] for i in order], [kinds[i] for i in order]
    return _Table(str(file), names, numeric, True, lambda columns, dtype: read([order[i] for i in columns], dtype))


def _of_text(source: Source, delimiter: str | None, header: bool | None, comments: str) -> _Table:
    with LineBlocks(source) as blocks:
        content = b"".join(block for _, block in blocks)
    every = content.splitlines()
    lines = [line for line in every if _is_row(line, comments)]
    if not lines:
        raise GraphFileError(f"{source.name}: there is no point in this file")
    first = lines[0].decode(errors="replace")
    mark = delimiter if delimiter is not None else next((m for m in (",", ";", "\t") if m in first), "")
    odd = _odd_row(lines, mark.encode())
    if odd is not None:
        number = [i for i, line in enumerate(every, 1) if _is_row(line, comments)][odd.line]
        cells = f"{odd.cells} cell{'s' if odd.cells > 1 else ''}"
        raise GraphFileError(
            f"{source.name}, line {number}: has {cells}, expected {odd.expected}, as many as {odd.model} has; mend or drop the "
            "line, or pass delimiter= if another mark parts the cells"
        )
    records = _core.sniff_records(b"\n".join(lines[:_SNIFFED]) + b"\n", mark, "", _SNIFFED)[0]
    rows = [[field.decode(errors="replace").strip() for field, _ in record] for record in records]
    if header is None:
        header = len(rows) > 1 and any(
            not is_number(above) and is_number(below) for above, below in zip(rows[0], rows[1], strict=False)
        )
    columns = rows[0] if header else [str(i) for i in range(len(rows[0]))]
    data = rows[1:] if header else rows
    if not data:
        raise GraphFileError(f"{source.name}: there is no point below the header; pass header=False if the first line is one")
    numeric = [all(i < len(row) and (is_number(row[i]) or not row[i]) for row in data) for i in range(len(columns))]
    del content, every, rows

    def read(chosen: list[int], dtype: Any) -> AnyArray:
        try:
            return np.loadtxt(
                (line.decode() for line in lines[int(header) :]),
                dtype=dtype,
                comments=None,
                delimiter=mark or None,
                usecols=chosen,
                quotechar='"',
                ndmin=2,
            )
        except (ValueError, UnicodeDecodeError) as error:
            raise GraphFileError(f"{source.name}: {_worded(first_line(error), columns, chosen)}") from None

    return _Table(source.name, columns, numeric, header, read, row=1)


def _is_row(line: bytes, comments: str) -> bool:
    return bool(line.strip()) and chr(line[0]) not in comments


class _Odd(NamedTuple):
    """A row with another number of cells than expected, the line (from 0) where it begins, and what is expected by."""

    line: int
    cells: int
    expected: int
    model: str


def _odd_row(lines: list[bytes], mark: bytes) -> _Odd | None:
    """Return the row to blame where not all have the same number of cells: the first one, where all others agree.

    NumPy would leave out without a word what a line has behind the chosen columns.
    """
    begin = rb"(?:(?<=" + (re.escape(mark) if mark else rb"\s") + rb')|^)"'
    # A mark in quotes parts nothing; a quote in the midst of a cell is a letter like others.
    quoted = re.compile(begin + rb'(?:[^"]|"")*"')
    counts = _cell_counts(lines, mark, quoted)
    if (counts == counts[0]).all():
        return None
    starts, lines = _whole_rows(lines, re.compile(begin), quoted)
    counts = _cell_counts(lines, mark, quoted)
    wrong = np.flatnonzero(counts != counts[0])
    if wrong.size == 0:
        return None
    if counts.size > 2 and (counts[1:] == counts[1]).all():
        return _Odd(0, int(counts[0]), int(counts[1]), "every other line")
    first = int(wrong[0])
    return _Odd(int(starts[first]), int(counts[first]), int(counts[0]), "the first line")


def _cell_counts(rows: list[bytes], mark: bytes, quoted: re.Pattern[bytes]) -> IntArray:
    plain = (quoted.sub(b"x", row) if b'"' in row else row for row in rows)
    counts = (row.count(mark) + 1 for row in plain) if mark else (len(row.split()) for row in plain)
    return np.fromiter(counts, np.int64, len(rows))


def _whole_rows(lines: list[bytes], begin: re.Pattern[bytes], quoted: re.Pattern[bytes]) -> tuple[IntArray, list[bytes]]:
    """Return rows and the lines where they begin: a text in quotes may go on in further lines."""
    starts: list[int] = []
    rows: list[list[bytes]] = []
    is_open = False
    for i, line in enumerate(lines):
        if is_open:
            rows[-1].append(line)
            is_open = line.count(b'"') % 2 == 0
        else:
            starts.append(i)
            rows.append([line])
            is_open = begin.search(quoted.sub(b"x", line)) is not None
    return np.array(starts), [b"\n".join(row) for row in rows]


def _worded(message: str, columns: list[str], chosen: list[int]) -> str:
    """Return NumPy's complaint in our words, where it is about a value."""
    found = re.match(r"could not convert string '(.*)' to float64 at row (\d+), column (\d+)", message)
    if found is None:
        return message.partition("; use `usecols`")[0]
    # NumPy counts rows from 0 here, and columns from 1.
    value, row, column = found[1], int(found[2]) + 1, columns[int(found[3]) - 1]
    what = f"{value!r}, which is no number" if value else "no value"
    return f"row {row} has {what} in column {column!r}; drop the row, or mend it"
