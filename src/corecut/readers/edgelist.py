"""Edge lists as text: one edge per line, `source target [weight]`, in the style of SNAP, or CSV and TSV with a header.

Fields are parted by any blanks or by one delimiter; lines that begin with # or % are comments. Ids are integers of 64 bits or
text. Arrow's CSV parser does the work, block by block; when it refuses a block, the block's lines are looked at one by one to
say which line is wrong and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from corecut import _core
from corecut._files import GraphFileError
from corecut._typing import AnyArray, FloatArray
from corecut.readers.layout import EdgeOptions, Layout, is_integer, is_number
from corecut.readers.names import NameTable
from corecut.readers.streams import LineBlocks

_SNIFFED_LINES = 200


class EdgeListReader:
    """The edges of a text file in blocks.

    Attributes
    ----------
    names
        Numbers of the text ids met so far; None for integer ids.
    comments
        Comment lines met so far.
    weighted
        Whether there is a weight column (known after the first block).
    """

    def __init__(self, path: Path, options: EdgeOptions | None = None, *, block_bytes: int | None = None) -> None:
        """Open the file; `options` say what the file's first lines cannot."""
        self.path = path
        self.options = options or EdgeOptions()
        self.names: NameTable | None = None
        self.comments = 0
        self._lines = LineBlocks(path) if block_bytes is None else LineBlocks(path, block_bytes)
        self.size = self._lines.size

    @property
    def done(self) -> int:
        """Bytes of the file read so far."""
        return self._lines.done

    def blocks(self) -> Iterator[tuple[AnyArray, AnyArray, FloatArray | None]]:
        """Give sources, targets and weights, block by block."""
        layout: Layout | None = None
        with self._lines:
            for line, raw in self._lines:
                block = raw.removeprefix(b"\xef\xbb\xbf") if line == 1 else raw
                if b"\0" in block:
                    number = line + block.count(b"\n", 0, block.index(b"\0"))
                    raise GraphFileError(f"{self.path}, line {number}: holds bytes that are no text; is this an edge list?")
                if layout is None:
                    layout = self._start(block, line)
                    if layout is None:
                        continue
                    self.names = NameTable() if layout.text_ids else None
                    header = layout.header
                text, comments = _core.tidy_lines(block, layout.delimiter, self.options.comments)
                self.comments += comments
                if header:
                    text, header = text[text.index(b"\n") + 1 :], False
                if text:
                    yield self._parse(layout, text, block, line)
        if layout is None:
            raise GraphFileError(f"{self.path}, line {self._lines.line}: the file ends, and there is no edge in it")

    def _start(self, block: bytes, line: int) -> Layout | None:
        """Find the layout from the first lines; None while there are only comments."""
        comments = tuple(self.options.comments)
        lines: list[str] = []
        at, first = 0, line
        while at < len(block) and len(lines) < _SNIFFED_LINES:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            try:
                text = block[at:end].decode().strip()
            except UnicodeDecodeError:
                number = line + block.count(b"\n", 0, at)
                raise GraphFileError(f"{self.path}, line {number}: is not UTF-8 text; is this an edge list?") from None
            if text and not text.startswith(comments):
                first = first if lines else line + block.count(b"\n", 0, at)
                lines.append(text)
            at = end + 1
        return Layout.of(lines, self.options, f"{self.path}, line {first}") if lines else None

    def _parse(self, layout: Layout, text: bytes, block: bytes, line: int) -> tuple[AnyArray, AnyArray, FloatArray | None]:
        id_type = pa.string() if layout.text_ids else pa.int64()
        names = [f"c{i}" for i in range(layout.n_columns)]
        types = {names[layout.source]: id_type, names[layout.target]: id_type}
        if layout.weight is not None:
            types[names[layout.weight]] = pa.float64()
        try:
            table = pc.read_csv(
                pa.py_buffer(text),
                read_options=pc.ReadOptions(column_names=names, block_size=1 << 22),
                parse_options=pc.ParseOptions(
                    delimiter=layout.delimiter or "\t",
                    quote_char='"' if layout.delimiter else False,
                    ignore_empty_lines=False,
                ),
                convert_options=pc.ConvertOptions(column_types=types, include_columns=list(types), null_values=[]),
            )
        except pa.ArrowInvalid as error:
            raise self._complaint(layout, block, line, str(error)) from None
        weight: FloatArray | None = None
        if layout.weight is not None:
            weight = table[names[layout.weight]].to_numpy()
            if not np.isfinite(weight).all() or (weight < 0).any():
                raise self._complaint(layout, block, line, "a weight is negative or not finite")
        source, target = table[names[layout.source]], table[names[layout.target]]
        if self.names is None:
            return source.to_numpy(), target.to_numpy(), weight
        numbers = self.names.numbers(source, target, trim=bool(layout.delimiter))
        if self.names.has_empty:
            raise self._complaint(layout, block, line, "an id is empty")
        return *numbers, weight

    def _complaint(self, layout: Layout, block: bytes, line: int, cause: str) -> GraphFileError:
        """Look at the lines of a refused block one by one and say which is wrong, and why."""
        header = layout.header and line == 1
        for number, raw in enumerate(block.split(b"\n"), line):
            try:
                text = raw.decode().strip()
            except UnicodeDecodeError:
                return GraphFileError(f"{self.path}, line {number}: is not UTF-8 text")
            if not text or text[0] in self.options.comments:
                continue
            if header:
                header = False
                continue
            problem = _problem(layout, text)
            if problem:
                shown = text if len(text) <= 60 else text[:57] + "..."
                return GraphFileError(f"{self.path}, line {number}: {problem}: {shown!r}")
        return GraphFileError(f"{self.path}, in the lines from {line} on: {cause}")


def _problem(layout: Layout, text: str) -> str | None:
    """Say what is wrong with a line, None when nothing is."""
    fields = layout.fields(text)
    if len(fields) != layout.n_columns:
        return f"expected {layout.n_columns} columns as in the first line, found {len(fields)}"
    for name, column in (("source", layout.source), ("target", layout.target)):
        problem = _id_problem(fields[column].strip(), layout.text_ids)
        if problem:
            return f"the {name} id {problem}"
    return None if layout.weight is None else _weight_problem(fields[layout.weight].strip())


def _id_problem(field: str, text_ids: bool) -> str | None:
    if not field:
        return "is empty"
    if text_ids:
        return None
    if not is_integer(field):
        return f'{field!r} is not an integer like the first ones; for names, read ids as "text"'
    return None if -(2**63) <= int(field) < 2**63 else 'does not fit in 64 bits; read ids as "text"'


def _weight_problem(field: str) -> str | None:
    if not is_number(field):
        return f"the weight {field!r} is not a number; name the weight column, or ignore weights"
    if not np.isfinite(float(field)):
        return "the weight is not finite"
    return "the weight is negative; weights are similarities" if float(field) < 0 else None
