"""What the columns of an edge list mean, found out from its first lines."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import Literal

from corecut._files import GraphFileError

SOURCE_NAMES = ("source", "src", "from", "fromnodeid", "u", "node1", "node_1", "id1", "id_1", "head", "i", "row", "start")
TARGET_NAMES = (
    "target",
    "dst",
    "destination",
    "to",
    "tonodeid",
    "v",
    "node2",
    "node_2",
    "id2",
    "id_2",
    "tail",
    "j",
    "col",
    "end",
)
WEIGHT_NAMES = ("weight", "weights", "w", "value", "similarity", "strength", "count", "score", "data")

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)


def is_integer(text: str) -> bool:
    """Whether a field is an integer (of any size)."""
    return _INTEGER.fullmatch(text.strip()) is not None


def is_number(text: str) -> bool:
    """Whether a field is a number."""
    return _NUMBER.fullmatch(text.strip()) is not None


@dataclass(frozen=True)
class EdgeOptions:
    """What a user may say about an edge list; None leaves it to the file.

    Attributes
    ----------
    delimiter
        One character, or "" for any run of blanks.
    header
        Whether the first line names the columns.
    columns
        Names or numbers (from 0) of the columns source, target and, where there is one, weight.
    weights
        False ignores the weight column.
    ids
        "integer" or "text".
    comments
        Characters that make a line a comment when it begins with them.
    """

    delimiter: str | None = None
    header: bool | None = None
    columns: tuple[str | int, ...] | None = None
    weights: bool = True
    ids: Literal["integer", "text"] | None = None
    comments: str = "#%"

    def __post_init__(self) -> None:
        if self.delimiter is not None and (len(self.delimiter) > 1 or not self.delimiter.isascii() or self.delimiter == "\n"):
            raise ValueError(f"delimiter must be one ASCII character, or '' for any blanks, got {self.delimiter!r}")
        if self.columns is not None and len(self.columns) not in (2, 3):
            raise ValueError(f"columns must name source, target and perhaps weight, got {self.columns!r}")
        if self.ids not in (None, "integer", "text"):
            raise ValueError(f"ids must be 'integer' or 'text', got {self.ids!r}")


@dataclass(frozen=True)
class Layout:
    """The columns of an edge list; `delimiter` "" stands for any run of blanks."""

    delimiter: str
    header: bool
    n_columns: int
    source: int
    target: int
    weight: int | None
    text_ids: bool

    def fields(self, line: str) -> list[str]:
        """Return the fields of one line."""
        return split_line(line, self.delimiter)

    @classmethod
    def of(cls, lines: list[str], options: EdgeOptions, name: str) -> Layout:
        """Find the layout from the first lines of a file, comments and empty lines left out."""
        delimiter = _delimiter(lines) if options.delimiter is None else options.delimiter
        rows = [split_line(line, delimiter) for line in lines]
        header = _has_header(rows) if options.header is None else options.header
        names = [field.strip().lower() for field in rows[0]] if header else []
        data = rows[1:] if header else rows
        n_columns = len(rows[0])
        source, target, weight = _columns(options.columns, names, n_columns, name)
        if weight is None and options.columns is None and options.weights and not header and n_columns > 2:
            weight = _third_column(data, name)
        if not options.weights:
            weight = None
        # The first edge decides. A name among numbers further down is then an error, and the message offers text ids.
        first = [data[0][column] for column in (source, target)] if data and len(data[0]) == n_columns else []
        text = options.ids == "text" if options.ids else not all(map(is_integer, first))
        return cls(delimiter, header, n_columns, source, target, weight, text)


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line: split at any blanks, or at the delimiter with quotes respected."""
    return next(csv.reader([line], delimiter=delimiter), []) if delimiter else line.split()


def _delimiter(lines: list[str]) -> str:
    for candidate in (";", ",", "|"):
        counts = {len(split_line(line, candidate)) for line in lines}
        if len(counts) == 1 and counts.pop() > 1:
            return candidate
    # A tab is a blank like any other, unless names have blanks inside.
    rows = [line.split("\t") for line in lines]
    if all(len(row) == len(rows[0]) > 1 for row in rows) and any(" " in field.strip() for row in rows for field in row):
        return "\t"
    return ""


def _has_header(rows: list[list[str]]) -> bool:
    first = [field.strip().lower() for field in rows[0]]
    if any(f in SOURCE_NAMES for f in first) and any(f in TARGET_NAMES for f in first) and not any(map(is_number, first)):
        return True
    data = [row[:2] for row in rows[1:]]
    return bool(data) and not any(map(is_integer, first[:2])) and all(is_integer(field) for row in data for field in row)


def _columns(wanted: tuple[str | int, ...] | None, names: list[str], n_columns: int, file: str) -> tuple[int, int, int | None]:
    if wanted is None:
        source = next((i for i, name in enumerate(names) if name in SOURCE_NAMES), 0)
        target = next((i for i, name in enumerate(names) if name in TARGET_NAMES and i != source), 0 if source == 1 else 1)
        weight = next((i for i, name in enumerate(names) if name in WEIGHT_NAMES and i not in (source, target)), None)
        if n_columns < 2:
            raise GraphFileError(f"{file}: an edge needs two columns, this line has {n_columns}; is this an edge list?")
        return source, target, weight
    found = []
    for column in wanted:
        position = names.index(column.lower()) if isinstance(column, str) and column.lower() in names else column
        if isinstance(position, str) and position.isdigit():
            position = int(position)
        if not isinstance(position, int) or not 0 <= position < n_columns:
            have = ", ".join(names) if names else f"0 to {n_columns - 1}"
            raise GraphFileError(f"{file}: there is no column {column!r}; the columns are {have}")
        found.append(position)
    return found[0], found[1], found[2] if len(found) > 2 else None


def _third_column(data: list[list[str]], file: str) -> int | None:
    third = [row[2] for row in data if len(row) > 2]
    if all(field == "{}" for field in third):  # networkx.write_edgelist of a graph without attributes
        return None
    if any(field.startswith("{") for field in third):
        raise GraphFileError(
            f"{file}: the third column holds Python dictionaries; write the file with networkx.write_weighted_edgelist, "
            "or ignore the weights"
        )
    return 2
