"""METIS graph files: a line `n m [fmt [ncon]]`, then one line per node with its neighbours, numbered from 1.

fmt has up to three digits: node sizes, node weights (ncon per node), edge weights. Sizes and weights of nodes are skipped: a
node's weight here is its degree. Lines that begin with % are comments; an empty line is a node without neighbours.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._files import GraphFileError, shown
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut.readers.layout import is_integer, is_number
from corecut.readers.streams import LineBlocks, Source


def read_metis(source: Source) -> tuple[sp.csr_array, IntArray]:
    """Return the adjacency matrix of a METIS file, and the number of each node's line."""
    with LineBlocks(source) as blocks:
        return _Metis(source.name).read(blocks)


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

    def __init__(self, name: str) -> None:
        self.name = name
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
                f"{self.name}, line 1: the file is empty; a METIS file begins with the numbers of nodes and edges"
            )
        if self.nodes < self.n:
            raise GraphFileError(
                f"{self.name}, line {blocks.line}: the file ends after {self.nodes} nodes, its header promises {self.n}"
            )
        indices = np.concatenate(columns) if columns else np.empty(0, np.int32)
        if indices.size != 2 * self.m:
            raise GraphFileError(
                f"{self.name}, line {self.header_line}: the header promises {self.m} edges, hence {2 * self.m} neighbours, "
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
                    raise GraphFileError(f"{self.name}, line {number}: the header promises {self.n} nodes, here is one more")
                continue
            numbers.append(number)
            texts.append(content)
        return numbers, texts

    def _header(self, content: bytes, line: int) -> None:
        fields = content.split()
        where = f"{self.name}, line {line}"
        if not 2 <= len(fields) <= 4 or not all(field.isdigit() and len(field) < 20 for field in fields):
            raise GraphFileError(
                f"{where}: a METIS file begins with `nodes edges [fmt [ncon]]`, found {shown(content.decode(errors='replace'))}"
            )
        self.n, self.m, self.header_line = int(fields[0]), int(fields[1]), line
        if self.n == 0:
            raise GraphFileError(f"{where}: the graph is empty: it has 0 nodes")
        if self.n >= 2**31:
            raise GraphFileError(f"{where}: {self.n} nodes are more than a METIS file can hold")
        flags = fields[2].decode().zfill(3) if len(fields) > 2 else "000"
        if len(flags) > 3 or set(flags) - {"0", "1"}:
            raise GraphFileError(f"{where}: fmt must be up to three digits 0 or 1, found {shown(fields[2].decode())}")
        constraints = int(fields[3]) if len(fields) > 3 else 1
        self.node_fields = (flags[0] == "1") + constraints * (flags[1] == "1")
        self.edge_weights = flags[2] == "1"

    def _rows(self, numbers: list[int], texts: list[bytes]) -> tuple[IntArray, AnyArray, FloatArray]:
        """Parse node lines: neighbours per node, neighbours, weights."""
        joined = b"\n".join(texts) + b"\n"
        counts, values, bad = _core.parse_number_lines(joined)
        if bad >= 0:
            raise self._complaint(numbers[bad:], texts[bad:])
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
            where = f"{self.name}, line {number}"
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
                    return GraphFileError(f"{where}: the edge weight {shown(field)} is not a finite number from 0 on")
                if not weight and not (is_integer(field) and len(field) < 100 and 1 <= int(field) <= self.n):
                    return GraphFileError(f"{where}: {shown(field)} is not a node, nodes are numbered 1 to {self.n}")
        return GraphFileError(f"{self.name}, in the lines from {numbers[0]} on: not numbers")
