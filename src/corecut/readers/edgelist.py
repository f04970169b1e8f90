"""Edge lists as text: one edge per line, `source target [weight]`, in the style of SNAP, or CSV and TSV with a header.

Fields are parted by any blanks or by one delimiter; lines that begin with # or % are comments; a field in quotes is text and
may hold anything, a line end too. Ids are integers of 64 bits or text. The work is native (`_kernels/edgelist.hpp`), block by
block; the first line that it refuses is looked at again here, to say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from corecut import _core
from corecut._files import GraphFileError, ending_of, shown
from corecut._typing import AnyArray, FloatArray
from corecut.node_ids import names_array
from corecut.readers.layout import EdgeOptions, Layout, is_integer, is_number
from corecut.readers.streams import LONGEST_LINE, LineBlocks, Source

# Faults that have nothing to do with columns, by their number in `_kernels/edgelist.hpp`.
_OPEN_QUOTE = 7
_FAULTS = {
    5: "holds bytes that are no text; is this an edge list?",
    6: "a carriage return stands inside the line; save the file with one kind of line ends",
    _OPEN_QUOTE: "a quote is opened here and not closed; close it, or write a quote inside a field twice",
    8: "behind a closing quote comes more text; put quotes around the whole field, and write a quote inside it twice",
    9: "is not UTF-8 text",
}


class EdgeListReader:
    """The edges of a text file in blocks.

    Attributes
    ----------
    comments
        Comment lines met so far.
    """

    def __init__(
        self,
        source: Source | str | Path,
        options: EdgeOptions | None = None,
        *,
        block_bytes: int | None = None,
        threads: int = 1,
    ) -> None:
        """Open the file; `options` say what the file's first lines cannot."""
        self.source = source if isinstance(source, Source) else Source(source)
        self.name = self.source.name
        self.options = options or EdgeOptions()
        self.comments = 0
        self._threads = threads
        self._layout: Layout | None = None
        self._parser: Any = None
        self._lines = LineBlocks(self.source) if block_bytes is None else LineBlocks(self.source, block_bytes)
        self.size = self._lines.size

    @property
    def done(self) -> int:
        """Bytes of the file read so far."""
        return self._lines.done

    @property
    def n_names(self) -> int | None:
        """Number of text ids met so far; None for integer ids."""
        return None if self._layout is None or not self._layout.text_ids else int(self._parser.n_names)

    def names(self) -> AnyArray:
        """Return all text ids in the order of their numbers."""
        return names_array(*self._parser.names())

    def blocks(self) -> Iterator[tuple[AnyArray, AnyArray, FloatArray | None]]:
        """Give sources, targets and weights, block by block."""
        rest, line = b"", 1
        with self._lines:
            for number, read in self._lines:
                # Where a quote is open at a block's end, its record goes on in the next one.
                line, block = (line, rest + read) if rest else (number, read)
                rest, edges = self._block(block, line)
                line += block.count(b"\n", 0, len(block) - len(rest))
                if edges is not None:
                    yield edges
                if len(rest) > LONGEST_LINE:
                    break
            if rest:
                raise GraphFileError(f"{self.name}, line {line}: {_FAULTS[_OPEN_QUOTE]}")
        if self._layout is None:
            raise GraphFileError(f"{self.name}, line {self._lines.line}: the file ends, and there is no edge in it")

    def _block(self, block: bytes, line: int) -> tuple[bytes, tuple[AnyArray, AnyArray, FloatArray | None] | None]:
        """Return what of a block has to wait for the next one, and its edges, if there are any."""
        if self._layout is None:
            ending = ending_of(self.source.path)
            self._layout = Layout.of(block, self.options, name=self.name, line=line, ending=ending)
            if self._layout is None:
                return self._beginning(block, line), None
            layout = self._layout
            weight = -1 if layout.weight is None else layout.weight
            columns = (layout.n_columns, layout.source, layout.target, weight)
            self._parser = _core.EdgeParser(layout.delimiter, self.options.comments, columns, layout.text_ids)
            if layout.header:
                # Comments before the header count; the header itself is dropped.
                _, begin, _, _, _ = _core.sniff_records(block, layout.delimiter, self.options.comments, 1)
                *_, lines = _core.sniff_records(block[begin:], layout.delimiter, self.options.comments, 1)
                self.comments += _comments(block[:begin], self.options.comments)
                line += block.count(b"\n", 0, begin) + lines
                block = _without_lines(block[begin:], lines)
        source, target, weights, comments, consumed, fault, at, begin, end = self._parser.parse(block, self._threads)
        self.comments += comments
        if fault and fault != _OPEN_QUOTE:
            raise self._complaint(fault, line + at, block[begin:end])
        edges = (source, target, None if self._layout.weight is None else weights) if source.size else None
        return block[consumed:], edges

    def _beginning(self, block: bytes, line: int) -> bytes:
        """Return a first block from its first record on, if that is not yet whole; refuse one that will never be."""
        delimiter = self.options.delimiter or ""
        _, begin, at, fault, _ = _core.sniff_records(block, delimiter, self.options.comments, 1)
        if fault and fault != _OPEN_QUOTE:
            raise self._complaint(fault, line + at, b"")
        if begin >= 0:
            return block
        self.comments += _comments(block, self.options.comments)
        return b""

    def _complaint(self, fault: int, line: int, record: bytes) -> GraphFileError:
        """Say what is wrong with a line."""
        assert self._layout is not None or fault in _FAULTS
        where = f"{self.name}, line {line}"
        if fault in _FAULTS:
            return GraphFileError(f"{where}: {_FAULTS[fault]}")
        layout = self._layout
        fields = [text for text, _ in _core.sniff_records(record, layout.delimiter, "", 1)[0][0]] if layout else []
        try:
            text = record.decode().strip()
            problem = _problem(layout, [field.decode() for field in fields]) if layout else ""
        except UnicodeDecodeError:
            return GraphFileError(f"{where}: {_FAULTS[9]}")
        return GraphFileError(f"{where}: {problem}: {shown(text)}")


def _comments(lines: bytes, marks: str) -> int:
    """Count the comments among lines that hold nothing else."""
    starts = tuple(mark.encode() for mark in marks)
    return sum(line.strip().startswith(starts) for line in lines.split(b"\n"))


def _without_lines(block: bytes, count: int) -> bytes:
    at = 0
    for _ in range(count):
        at = block.index(b"\n", at) + 1
    return block[at:] if count else b""


def _problem(layout: Layout, fields: list[str]) -> str:
    """Say what is wrong with the fields of a line that was refused."""
    if len(fields) != layout.n_columns:
        return f"expected {layout.n_columns} columns as in the first line, found {len(fields)}"
    for name, column in (("source", layout.source), ("target", layout.target)):
        problem = _id_problem(fields[column], layout.text_ids)
        if problem:
            return f"the {name} id {problem}"
    return "the weight is wrong" if layout.weight is None else _weight_problem(fields[layout.weight])


def _id_problem(field: str, text_ids: bool) -> str | None:
    if not field:
        return "is empty"
    if text_ids:
        return None
    if not is_integer(field):
        return f'{shown(field)} is not an integer like the first ones; for names, read ids as "text"'
    return None if len(field) < 100 and -(2**63) <= int(field) < 2**63 else 'does not fit in 64 bits; read ids as "text"'


def _weight_problem(field: str) -> str:
    if not is_number(field):
        cure = "pass weights=False if it is no weight, or name the weight column by columns="
        return f"the weight {shown(field)} is not a number; {cure}"
    if not np.isfinite(float(field)):
        return "the weight is not finite"
    return "the weight is negative; weights are similarities"
