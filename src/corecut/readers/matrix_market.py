"""MatrixMarket files, by scipy's reader."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

from corecut._files import GraphFileError
from corecut.readers.streams import LineBlocks


def read_matrix_market(path: Path) -> sp.coo_array:
    """Return the matrix of a MatrixMarket file, its symmetric half filled in."""
    with LineBlocks(path) as lines:
        stream = io.BytesIO(b"".join(block for _, block in lines))
    if not stream.getbuffer().nbytes:
        raise GraphFileError(f"{path}, line 1: the file is empty")
    try:
        matrix = scipy.io.mmread(stream, spmatrix=False)
    except (ValueError, OverflowError, TypeError, IndexError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        line = message.removeprefix("Line ").split(":", 1)
        # A message without a line is about something missing at the end.
        number = line[0] if message.startswith("Line ") else lines.line
        raise GraphFileError(f"{path}, line {number}: {line[-1].strip()} (read as a MatrixMarket file)") from None
    if matrix.dtype.kind == "c":
        raise GraphFileError(f"{path}: the matrix is complex; a graph's weights must be real")
    if max(matrix.shape) >= 2**31:
        raise GraphFileError(f"{path}: a matrix of {max(matrix.shape)} rows is too large; MatrixMarket graphs end at 2³¹ nodes")
    entries = sp.coo_array(matrix)  # a file of the format "array" gives a dense one
    if not np.all((entries.data >= 0) & (entries.data < np.inf)):
        raise GraphFileError(_bad_weight(path, stream.getvalue()))
    return entries


def _bad_weight(path: Path, text: bytes) -> str:
    """Say which line holds a weight that no graph can have."""
    sizes = True  # the first line that is no comment
    for number, line in enumerate(text.split(b"\n"), 1):
        fields = line.split()
        if not fields or line.startswith(b"%"):
            continue
        if not sizes and not 0 <= float(fields[-1]) < np.inf:
            kind = "negative" if float(fields[-1]) < 0 else "not finite"
            return (
                f"{path}, line {number}: the weight {fields[-1].decode()} is {kind}; weights must be finite numbers from 0 on"
            )
        sizes = False
    return f"{path}: a weight is negative or not finite"
