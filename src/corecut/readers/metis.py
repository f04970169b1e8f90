"""METIS graph files: a line `n m [fmt [ncon]]`, then one line per node with its neighbours, numbered from 1.

fmt has up to three digits: node sizes, node weights (ncon per node), edge weights. Sizes and weights of nodes are skipped: a
node's weight here is its degree. Lines that begin with % are comments; an empty line is a node without neighbours.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import scipy.sparse as sp

from corecut._files import GraphFileError
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut.readers.layout import is_integer, is_number
from corecut.readers.streams import LineBlocks

_BLANKS_TO_LINES = bytes.maketrans(b" \t\r\v\f", b"\n\n\n\n\n")


def read_metis(path: Path) -> tuple[sp.csr_array, IntArray]:
    """Return the adjacency matrix of a METIS file, and the number of each node's line."""
    with LineBlocks(path) as blocks:
        return _Metis(path).read(blocks)


def asymmetry(matrix: sp.csr_array, lines: IntArray) -> str:
    """Say which line names an edge that the line of its other end does not, for a matrix that is not symmetric."""
    differs = abs(matrix - matrix.T).tocoo()
    # As Graph does: weights that were computed twice may differ by rounding.
    beyond = differs.data > 1e-6 * np.asarray(matrix.maximum(matrix.T)[differs.row, differs.col]).ravel()
    first = np.lexsort((differs.col, differs.row, ~beyond))[0]
    x, y = int(differs.row[first]), int(differs.col[first])
    there, back = float(matrix[x, y]), float(matrix[y, x])
    if there == 0:
        x, y, there, back = y, x, back, there
    say = f"does not name node {x + 1}" if back == 0 else f"gives the edge the weight {back:g} instead of {there:g}"
    return (
        f"line {lines[x]}: the graph is not symmetric: node {x + 1} names node {y + 1}, whose line {lines[y]} {say}; "
        'mend the file or pass symmetrize="mean", "max" or "min"'
    )


class _Metis:
    """A METIS file being read: what the header says and what has been seen so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n = -1
        self.m = 0
        self.node_fields = 0
        self.edge_weights = False
        self.nodes = 0
        self.header_line = 0

    def read(self, blocks: LineBlocks) -> tuple[sp.csr_array, IntArray]:
        lengths: list[IntArray] = []
        columns: list[AnyArray] = []
        weights: list[FloatArray] = []
        lines: list[IntArray] = []
        for line, block in blocks:
            text = block if block.endswith(b"\n") else block + b"\n"
            numbers, texts = self._lines(text, line)
            if not texts:
                continue
            length, column, weight = self._rows(numbers, texts)
            lengths.append(length)
            columns.append(column)
            weights.append(weight)
            lines.append(np.array(numbers))
        if self.n < 0:
            raise GraphFileError(
                f"{self.path}, line 1: the file is empty; a METIS file begins with the numbers of nodes and edges"
            )
        if self.nodes < self.n:
            raise GraphFileError(
                f"{self.path}, line {blocks.line}: the file ends after {self.nodes} nodes, its header promises {self.n}"
            )
        indices = np.concatenate(columns) if columns else np.empty(0, np.int32)
        if indices.size != 2 * self.m:
            raise GraphFileError(
                f"{self.path}, line {self.header_line}: the header promises {self.m} edges, hence {2 * self.m} neighbours, "
                f"the file has {indices.size}"
            )
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths) if lengths else np.empty(0, np.int64))])
        data = np.concatenate(weights) if self.edge_weights and weights else np.ones(indices.size)
        if indices.size < 2**31:
            indptr = indptr.astype(np.int32)
        matrix = sp.csr_array((data, indices, indptr), shape=(self.n, self.n))
        return matrix, np.concatenate(lines) if lines else np.empty(0, np.int64)

    def _lines(self, text: bytes, line: int) -> tuple[list[int], list[bytes]]:
        """Return numbers and texts of the node lines of a block, its comments and the header taken out."""
        numbers: list[int] = []
        texts: list[bytes] = []
        for number, content in enumerate(text.split(b"\n")[:-1], line):
            if content.lstrip().startswith(b"%"):
                continue
            if self.n < 0:
                if content.strip():
                    self._header(content, number)
                continue
            if self.nodes + len(texts) == self.n:
                if content.strip():
                    raise GraphFileError(f"{self.path}, line {number}: the header promises {self.n} nodes, here is one more")
                continue
            numbers.append(number)
            texts.append(content)
        return numbers, texts

    def _header(self, content: bytes, line: int) -> None:
        fields = content.split()
        where = f"{self.path}, line {line}"
        if not 2 <= len(fields) <= 4 or not all(field.isdigit() for field in fields):
            raise GraphFileError(f"{where}: a METIS file begins with `nodes edges [fmt [ncon]]`, found {content[:60]!r}")
        self.n, self.m, self.header_line = int(fields[0]), int(fields[1]), line
        if self.n == 0:
            raise GraphFileError(f"{where}: the graph is empty: it has 0 nodes")
        if self.n >= 2**31:
            raise GraphFileError(f"{where}: {self.n} nodes are more than a METIS file can hold")
        flags = fields[2].decode().zfill(3) if len(fields) > 2 else "000"
        if len(flags) > 3 or set(flags) - {"0", "1"}:
            raise GraphFileError(f"{where}: fmt must be up to three digits 0 or 1, found {fields[2].decode()!r}")
        constraints = int(fields[3]) if len(fields) > 3 else 1
        self.node_fields = (flags[0] == "1") + constraints * (flags[1] == "1")
        self.edge_weights = flags[2] == "1"

    def _rows(self, numbers: list[int], texts: list[bytes]) -> tuple[IntArray, AnyArray, FloatArray]:
        """Parse node lines: neighbours per node, neighbours, weights."""
        joined = b"\n".join(texts) + b"\n"
        counts = _tokens_per_line(joined)
        try:
            values = _numbers(joined, pa.float64() if self.edge_weights else pa.int64())
        except pa.ArrowInvalid:
            raise self._complaint(numbers, texts) from None
        starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
        within = np.arange(values.size) - np.repeat(starts, counts) - self.node_fields
        step = 2 if self.edge_weights else 1
        lengths = (counts - self.node_fields) // step
        ids = values[(within >= 0) & (within % step == 0)]
        weights = values[(within >= 0) & (within % step == 1)] if self.edge_weights else np.empty(0)
        if (
            (counts < self.node_fields).any()
            or ((counts - self.node_fields) % step).any()
            or (ids < 1).any()
            or (ids > self.n).any()
            or not np.array_equal(ids, np.floor(ids))
            or not np.isfinite(weights).all()
            or (weights < 0).any()
        ):
            raise self._complaint(numbers, texts)
        self.nodes += len(texts)
        return lengths, (ids - 1).astype(np.int32), weights.astype(np.float64)

    def _complaint(self, numbers: list[int], texts: list[bytes]) -> GraphFileError:
        """Say which line is wrong, and why."""
        for number, text in zip(numbers, texts, strict=True):
            where = f"{self.path}, line {number}"
            fields = [token.decode(errors="replace") for token in text.split()]
            if len(fields) < self.node_fields:
                return GraphFileError(
                    f"{where}: expected {self.node_fields} numbers before the neighbours, found {len(fields)}"
                )
            fields = fields[self.node_fields :]
            if self.edge_weights and len(fields) % 2:
                return GraphFileError(f"{where}: neighbours and weights must come in pairs, found {len(fields)} numbers")
            for position, field in enumerate(fields):
                weight = self.edge_weights and position % 2 == 1
                if weight and (not is_number(field) or not 0 <= float(field) < np.inf):
                    return GraphFileError(f"{where}: the edge weight {field!r} is not a finite number from 0 on")
                if not weight and not (is_integer(field) and 1 <= int(field) <= self.n):
                    return GraphFileError(f"{where}: {field!r} is not a node, nodes are numbered 1 to {self.n}")
        return GraphFileError(f"{self.path}, in the lines from {numbers[0]} on: not numbers")


def _tokens_per_line(text: bytes) -> IntArray:
    """Return the number of fields in every line; the text ends with a line end."""
    letters = np.frombuffer(text, np.uint8)
    blank = letters <= ord(" ")
    begins = ~blank
    begins[1:] &= blank[:-1]
    seen: IntArray = np.cumsum(begins, dtype=np.int64)[letters == ord("\n")]
    lengths: IntArray = np.diff(seen, prepend=0)
    return lengths


def _numbers(text: bytes, kind: pa.DataType) -> AnyArray:
    """Return all numbers of a text."""
    lines = text.translate(_BLANKS_TO_LINES)
    if not lines.strip():
        return np.empty(0, np.int64)
    table = pc.read_csv(
        pa.py_buffer(lines),
        read_options=pc.ReadOptions(column_names=["number"], block_size=1 << 22),
        parse_options=pc.ParseOptions(quote_char=False, ignore_empty_lines=True),
        convert_options=pc.ConvertOptions(column_types={"number": kind}, null_values=[]),
    )
    return np.asarray(table["number"].to_numpy())
