"""What the columns of an edge list mean, found out from its first lines.

The lines are split by the code that reads the file (native: `_kernels/edgelist.hpp`), so that both see the same fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from corecut import _core
from corecut._files import TAKE_POINTS, GraphFileError, PointsError, shown

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

# Fewer lines than this would say little, more would cost time.
_SNIFFED = 200
# A table of more columns than an edge list has (source, target, weight, time) is one of something else, unless names tell.
_MOST_COLUMNS = 4

# A line of more fields is not even split where nobody says that its columns are those of edges: that takes seconds.
_MOST_FIELDS = 100_000

_BLANKS = " \t\v\f\r\n"  # not all that Python takes for blanks
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)


def is_integer(text: str) -> bool:
    """Whether a field is an integer (of any size)."""
    return _INTEGER.fullmatch(text.strip(_BLANKS)) is not None


def is_number(text: str) -> bool:
    """Whether a field is a number."""
    return _NUMBER.fullmatch(text.strip(_BLANKS)) is not None


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
        mark = self.delimiter
        if mark is not None and (len(mark) > 1 or not mark.isascii() or mark in ("\n", "\r", '"', "\0")):
            raise ValueError(f"delimiter must be one ASCII character, or '' for any blanks, got {mark!r}")
        if not self.comments.isascii() or set(self.comments) & set('\n\r"\0'):
            raise ValueError(f"comments must be ASCII characters that begin a comment line, got {self.comments!r}")
        if self.columns is not None and (len(self.columns) not in (2, 3) or len(set(self.columns)) < len(self.columns)):
            raise ValueError(f"columns must name source, target and perhaps weight, each another one, got {self.columns!r}")
        if self.ids not in (None, "integer", "text"):
            raise ValueError(f"ids must be 'integer' or 'text', got {self.ids!r}")


class _Field(NamedTuple):
    """A field of a line; an id in quotes is text, whatever it looks like."""

    text: str
    quoted: bool


_Row = list[_Field]


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

    @classmethod
    def of(cls, block: bytes, options: EdgeOptions, *, name: str, line: int = 1, ending: str = "") -> Layout | None:
        """Find the layout from the first lines of a file; None where there is no whole line but comments.

        Parameters
        ----------
        block
            The beginning of the file.
        options
            What the user says about it.
        name, line
            The file's name and the number of the block's first line, for messages.
        ending
            How the file's name ends, ".csv" or ".tsv".
        """
        if options.columns is None:
            _refuse_crowded(block, options.comments, name, line)
        delimiter = options.delimiter if options.delimiter is not None else _delimiter(block, options.comments, ending)
        rows, begin, first = _sniff(block, delimiter, options.comments)
        if not rows:
            return None
        where = f"{name}, line {line + first}"
        names = _named_by_comment(block[:begin], options.comments, len(rows[0]), delimiter)
        # A file may say it twice: in a comment, and in a line of its own.
        if names and [field.text.lower() for field in rows[0]] == names and not any(field.quoted for field in rows[0]):
            names = []
        header = options.header
        if header is None:
            header = False if names else _has_header(rows, delimiter, ending)
        if header is None:
            raise GraphFileError(
                f"{where}: cannot tell whether this line is a header or an edge; pass header=True or header=False "
                "(--header or --no-header)"
            )
        if header:
            names = [field.text.strip().lower() for field in rows[0]]
        data = rows[1:] if header else rows
        n_columns = len(rows[0])
        if options.columns is None:
            require_edges(names, n_columns, where)
        source, target, weight = _columns(options.columns, names, n_columns, where)
        if weight is None and options.columns is None and options.weights and not names and n_columns > 2:
            weight = _third_column(data, where)
        if not options.weights:
            weight = None
        _refuse_repeats(options.columns, names, (source, target, weight), where)
        whole = [row for row in data if len(row) == n_columns]
        if options.ids is None:
            _refuse_measurements([[row[source], row[target]] for row in whole], where)
        # The first edge decides. A name among numbers further down is then an error, and the message offers text ids.
        first_edge = [whole[0][source], whole[0][target]] if whole and whole[0] is data[0] else []
        text = options.ids == "text" if options.ids else any(f.quoted or not is_integer(f.text) for f in first_edge)
        return cls(delimiter, header, n_columns, source, target, weight, text)


def split_line(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line: split at any blanks, or at the delimiter with quotes respected."""
    records = _core.sniff_records(line.encode(), delimiter, "", 1)[0]
    return [text.decode() for text, _ in records[0]] if records else []


def _refuse_crowded(block: bytes, comments: str, name: str, line: int) -> None:
    """Refuse a first line of very many columns by the marks in it."""
    marks, begin = tuple(mark.encode() for mark in comments), 0
    while begin < len(block):
        end = block.find(b"\n", begin) + 1 or len(block)
        first = block[begin:end].strip()
        if first and not first.startswith(marks):
            most = max(*(first.count(mark) for mark in (b";", b",", b"|", b"\t")), len(first.split(None, _MOST_FIELDS)) - 1)
            if most >= _MOST_FIELDS:
                raise PointsError(
                    f"{name}, line {line}: has more than {_MOST_FIELDS:,} columns; if two of them hold edges, name them by "
                    f"columns=(source, target[, weight]) (--columns); {TAKE_POINTS}"
                )
            return
        begin, line = end, line + 1


def _sniff(block: bytes, delimiter: str, comments: str) -> tuple[list[_Row], int, int]:
    """Return the fields of the first lines, and where the first of them begins: its byte and its line from 0."""
    records, begin, line, _, _ = _core.sniff_records(block, delimiter, comments, _SNIFFED)
    # A field that is no UTF-8 is found again, with its line, when the file is read.
    rows = [[_Field(text.decode(errors="replace"), quoted) for text, quoted in record] for record in records]
    return rows, begin, line


def _delimiter(block: bytes, comments: str, ending: str) -> str:
    found = {mark: _sniff(block, mark, comments)[0] for mark in (";", ",", "|", "\t")}
    for mark in (";", ",", "|"):
        counts = {len(row) for row in found[mark]}
        # A quote inside a field, or text behind a closing one: the lines are not split where they should be.
        split_well = not any('"' in field.text and not field.quoted for row in found[mark] for field in row)
        if len(counts) == 1 and counts.pop() > 1 and split_well and not _core.sniff_records(block, mark, comments, _SNIFFED)[3]:
            return mark
    # A tab is a blank like any other, unless names have blanks inside or the file's name says so.
    tabbed = found["\t"]
    if tabbed and all(len(row) == len(tabbed[0]) > 1 for row in tabbed):
        blanks = any(" " in field.text.strip() and not field.quoted for row in tabbed for field in row)
        gaps = any(not field.text and not field.quoted for row in tabbed for field in row)
        if (blanks and not gaps) or ending == ".tsv":
            return "\t"
    if ending == ".csv":  # lines of different lengths: which line is wrong is found when the file is read
        return next((mark for mark in (";", ",") if found[mark] and len(found[mark][0]) > 1), "")
    return ""


def _named_by_comment(before: bytes, comments: str, n_columns: int, delimiter: str) -> list[str]:
    """Return the columns' names where the comment before the first edge gives them, as SNAP's files do."""
    lines = [line.strip() for line in before.decode(errors="replace").split("\n") if line.strip()]
    names = split_line(lines[-1].lstrip(comments), delimiter) if lines else []
    names = [name.lower() for name in names]
    known = any(name in SOURCE_NAMES for name in names) and any(name in TARGET_NAMES for name in names)
    return names if known and len(names) == n_columns else []


def _has_header(rows: list[_Row], delimiter: str, ending: str) -> bool | None:
    """Say whether the first line names the columns: by known names, else by what stands below; None when undecided."""
    first = [field.text.strip() for field in rows[0]]
    numbers = [is_number(text) for text in first]
    if _known(first) and not any(numbers):
        return True
    others = [[field.text.strip() for field in row] for row in rows[1:] if len(row) == len(first)]
    if not others or len(first) < 2:
        return False
    ends = [text for row in others for text in row[:2]]
    if any(numbers):
        # pandas numbers columns without names: 0,1 above text is no edge.
        return all(numbers[:2]) and not any(map(is_number, ends))
    if any(all(is_number(row[c]) for row in others) for c in range(len(first))):
        return True
    recurs = first[0] in ends or first[1] in ends
    if not recurs and all(map(_has_digit, ends)) and not any(map(_has_digit, first[:2])):
        return True
    is_table = delimiter in (",", ";", "|") or ending in (".csv", ".tsv")
    return None if is_table and not recurs else False


def _known(names: list[str]) -> bool:
    lower = [name.lower() for name in names]
    return any(name in SOURCE_NAMES for name in lower) and any(name in TARGET_NAMES for name in lower)


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


def require_edges(names: list[str], n_columns: int, where: str) -> None:
    """Refuse a table that has not the columns of an edge list."""
    if n_columns < 2:
        raise GraphFileError(f"{where}: an edge needs two columns, this line has {n_columns}; is this an edge list?")
    most = _MOST_COLUMNS - 1 if names else _MOST_COLUMNS
    if n_columns > most and not _known(names):
        raise PointsError(
            f"{where}: has {n_columns} columns, and no names say which hold the edges; name them by "
            f"columns=(source, target[, weight]) (--columns), or is this a table of measurements? {TAKE_POINTS.capitalize()}"
        )


def _refuse_measurements(ends: list[_Row], where: str) -> None:
    for column in range(2):
        values = [row[column] for row in ends]
        fractions = [f.text for f in values if not is_integer(f.text) and _has_digit(f.text)]
        if fractions and all(is_number(f.text) and not f.quoted for f in values):
            raise PointsError(
                f"{where}: {shown(fractions[0])} where an id should be is a number with a fraction; is this a table of "
                f'measurements? For edges choose other columns, or read ids as "text"; {TAKE_POINTS}'
            )


def _columns(wanted: tuple[str | int, ...] | None, names: list[str], n_columns: int, file: str) -> tuple[int, int, int | None]:
    if wanted is None:
        # A column without a name is the index that pandas writes.
        free = [i for i in range(n_columns) if not names or names[i]]
        free = free if len(free) > 1 else list(range(n_columns))
        source = next((i for i in free if names and names[i] in SOURCE_NAMES), None)
        target = next((i for i in free if names and names[i] in TARGET_NAMES and i != source), None)
        source = next(i for i in free if i != target) if source is None else source
        target = next(i for i in free if i != source) if target is None else target
        weight = next((i for i in free if names and names[i] in WEIGHT_NAMES and i not in (source, target)), None)
        return source, target, weight
    found = []
    for column in wanted:
        position = names.index(column.lower()) if isinstance(column, str) and column.lower() in names else column
        if isinstance(position, str) and position.isdigit():
            position = int(position)
        if not isinstance(position, int) or not 0 <= position < n_columns:
            have = ", ".join(names)[:200] if names else f"0 to {n_columns - 1}"
            raise GraphFileError(f"{file}: there is no column {column!r}; the columns are {have}")
        found.append(position)
    if len(set(found)) < len(found):
        raise GraphFileError(f"{file}: columns={wanted!r} name one column twice")
    return found[0], found[1], found[2] if len(found) > 2 else None


def _refuse_repeats(
    wanted: tuple[str | int, ...] | None, names: list[str], chosen: tuple[int, int, int | None], where: str
) -> None:
    """Refuse a column that was chosen by its name when another one has the same."""
    for part, (position, known) in enumerate(zip(chosen, (SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES), strict=True)):
        if position is None or not names or names.count(names[position]) == 1:
            continue
        by_name = names[position] in known if wanted is None else str(wanted[part]).lower() == names[position]
        if by_name:
            raise GraphFileError(
                f"{where}: more than one column is called {shown(names[position])}; choose by numbers from 0, for example "
                "columns=(0, 1) (--columns 0,1)"
            )


def _third_column(data: list[_Row], file: str) -> int | None:
    third = [row[2].text for row in data if len(row) > 2]
    if all(field == "{}" for field in third):  # networkx.write_edgelist of a graph without attributes
        return None
    if any(field.startswith("{") for field in third):
        raise GraphFileError(
            f"{file}: the third column holds Python dictionaries; write the file with networkx.write_weighted_edgelist, "
            "or pass weights=False"
        )
    return 2
