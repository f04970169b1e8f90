"""MatrixMarket files: a first line that says what follows, a line of sizes, then entries `row column [value]`, or all values.

`coordinate` and `array`; real, integer or pattern; general or symmetric, of which the file holds one half. Read by the same
native code as edge lists, which tells the line of whatever is wrong and cannot be made to crash.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._files import GraphFileError, require_memory, shown
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut.readers.layout import is_number
from corecut.readers.streams import LineBlocks, Source

_BANNER = "%%MatrixMarket matrix coordinate real symmetric"
_NUMBERS = ("real", "double", "integer", "unsigned-integer")
_COLUMNS, _ROW, _COLUMN, _VALUE = 1, 2, 3, 4  # faults of `_kernels/edgelist.hpp`


def read_matrix_market(source: Source, *, threads: int = 1) -> sp.coo_array:
    """Return the matrix of a MatrixMarket file, its symmetric half filled in."""
    with LineBlocks(source) as blocks:
        text = b"".join(block for _, block in blocks)
    if not text.strip():
        raise GraphFileError(f"{source.name}, line 1: the file is empty")
    file = _MatrixMarket.of(source.name, text)
    rows, columns, values = file.dense() if file.is_dense else file.sparse(threads, last_line=blocks.line)
    if file.symmetric:
        off = rows != columns
        rows, columns = np.concatenate([rows, columns[off]]), np.concatenate([columns, rows[off]])
        values = np.concatenate([values, values[off]])
    index = np.int32  # the sizes are below 2³¹
    return sp.coo_array((values, (rows.astype(index), columns.astype(index))), shape=file.shape)


@dataclass(frozen=True)
class _MatrixMarket:
    """What the first lines say, and the entries as text; `line` is the number of the text's first line."""

    name: str
    is_dense: bool
    pattern: bool
    symmetric: bool
    shape: tuple[int, int]
    entries: int
    text: bytes
    line: int

    @classmethod
    def of(cls, name: str, text: bytes) -> _MatrixMarket:
        first = text.split(b"\n", 1)[0]
        words = first.decode(errors="replace").lower().split()
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"] or words[2] not in ("coordinate", "array"):
            raise GraphFileError(
                f"{name}, line 1: a MatrixMarket file begins like `{_BANNER}`, found {shown(first.decode(errors='replace'))}"
            )
        field, symmetry = words[3:]
        if field == "complex":
            raise GraphFileError(f"{name}, line 1: the matrix is complex; a graph's weights must be real")
        if field not in ("real", "double", "integer", "unsigned-integer", "pattern") or (
            words[2] == "array" and field == "pattern"
        ):
            raise GraphFileError(
                f"{name}, line 1: values of the kind {shown(field)} are not known; write real, integer or pattern"
            )
        if symmetry not in ("general", "symmetric"):
            raise GraphFileError(f"{name}, line 1: a graph's matrix is general or symmetric, found {shown(symmetry)}")
        begin, line = len(first) + 1, 2
        while begin < len(text):
            end = text.find(b"\n", begin)
            end = len(text) if end < 0 else end
            if text[begin:end].strip() and not text[begin:end].lstrip().startswith(b"%"):
                sizes = cls._sizes(f"{name}, line {line}", text[begin:end], 2 if words[2] == "array" else 3)
                break
            begin, line = end + 1, line + 1
        else:
            raise GraphFileError(f"{name}, line {line}: the file ends before the line of sizes")
        is_dense, symmetric = words[2] == "array", symmetry == "symmetric"
        n, m = sizes[:2]
        entries = sizes[2] if not is_dense else n * (n + 1) // 2 if symmetric else n * m
        # An entry takes two letters with its line end, one of a sparse matrix four: no room is made for what cannot be there.
        if entries * (2 if is_dense else 4) > len(text):
            raise GraphFileError(
                f"{name}, line {line}: Truncated file: the header promises {entries} entries, it is too short for them"
            )
        require_memory(24 * max(n, m), f"{name}, line {line}: a graph of {max(n, m):,} nodes")
        return cls(name, is_dense, field == "pattern", symmetric, (n, m), entries, text[end + 1 :], line + 1)

    @staticmethod
    def _sizes(where: str, text: bytes, count: int) -> list[int]:
        fields = text.split()
        if len(fields) != count or not all(field.isdigit() for field in fields):
            words = "rows and columns" if count == 2 else "rows, columns and entries"
            raise GraphFileError(
                f"{where}: expected the numbers of {words}, found {shown(text.decode(errors='replace').strip())}"
            )
        if any(len(field) > 18 for field in fields):
            raise GraphFileError(f"{where}: the sizes of the matrix are too large")
        sizes = [int(field) for field in fields]
        if max(sizes[:2]) >= 2**31:
            raise GraphFileError(
                f"{where}: a matrix of {max(sizes[:2])} rows is too large; MatrixMarket graphs end at 2³¹ nodes"
            )
        return sizes

    def sparse(self, threads: int, *, last_line: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Return rows, columns and values of a file of entries."""
        count = 2 if self.pattern else 3
        parser = _core.EdgeParser("", "%", (count, 0, 1, -1 if self.pattern else 2), False)
        rows, columns, values, _, _, fault, at, begin, end = parser.parse(self.text, threads)
        if fault:
            raise GraphFileError(f"{self.name}, line {self.line + at}: {self._fault(fault, self.text[begin:end], count)}")
        if rows.size < self.entries:
            raise GraphFileError(
                f"{self.name}, line {last_line}: Truncated file: the header promises {self.entries} entries, "
                f"here are {rows.size}"
            )
        if rows.size > self.entries:
            raise self._error(self.entries, f"Too many lines: the header promises {self.entries} entries")
        for what, numbers, most in (("Row", rows, self.shape[0]), ("Column", columns, self.shape[1])):
            wrong = np.flatnonzero((numbers < 1) | (numbers > most))
            if wrong.size:
                first = int(wrong[0])
                raise self._error(first, f"{what} index out of bounds: {numbers[first]} is not one of 1 to {most}")
        return rows - 1, columns - 1, np.ones(rows.size) if self.pattern else values

    def dense(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return rows, columns and values of a file of all values, column by column, or of the half below the diagonal."""
        counts, values, bad = _core.parse_number_lines(self.text)
        if bad >= 0:
            raise GraphFileError(f"{self.name}, line {self.line + bad}: holds something else than numbers")
        lines = np.repeat(np.arange(counts.size), counts)
        if values.size != self.entries:
            at = counts.size if values.size < self.entries else int(lines[self.entries])
            word = "Truncated file" if values.size < self.entries else "Too many lines"
            raise GraphFileError(
                f"{self.name}, line {self.line + at}: {word}: a matrix of this shape has {self.entries} values, "
                f"here are {values.size}"
            )
        wrong = np.flatnonzero(~((values >= 0) & (values < np.inf)))
        if wrong.size:
            first = int(wrong[0])
            raise GraphFileError(f"{self.name}, line {self.line + int(lines[first])}: {_bad_weight(f'{values[first]:g}')}")
        n, m = self.shape
        rows: AnyArray
        if self.symmetric:
            columns, rows = np.triu_indices(n)
        else:
            columns, rows = (axis.ravel() for axis in np.indices((m, n)))
        kept = values != 0
        return rows[kept], columns[kept], values[kept]

    def _fault(self, fault: int, record: bytes, count: int) -> str:
        fields = record.decode(errors="replace").split()
        if fault == _COLUMNS:
            return f"expected {count} numbers, found {len(fields)}"
        if fault in (_ROW, _COLUMN) and len(fields) == count:
            return f"{'Row' if fault == _ROW else 'Column'} index {shown(fields[fault - _ROW])} is not an integer of 64 bits"
        if fault == _VALUE and len(fields) == count:
            return _bad_weight(fields[2]) if is_number(fields[2]) else f"Invalid floating-point value {shown(fields[2])}"
        return "is no entry of a matrix"

    def _error(self, entry: int, problem: str) -> GraphFileError:
        """Return the error of an entry, numbered from 0, with its line."""
        line, seen = self.line, -1
        for text in self.text.split(b"\n"):
            seen += bool(text.strip()) and not text.lstrip().startswith(b"%")
            if seen == entry:
                break
            line += 1
        return GraphFileError(f"{self.name}, line {line}: {problem}")


def _bad_weight(weight: str) -> str:
    kind = "negative" if float(weight) < 0 else "not finite"
    return f"the weight {weight[:40]} is {kind}; weights must be finite numbers from 0 on"
