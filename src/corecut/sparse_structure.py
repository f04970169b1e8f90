"""The structure of sparse matrices, looked at before scipy believes it: its conversions and products trust every index."""

from __future__ import annotations

from typing import Any

import numpy as np

from corecut._typing import AnyArray


def check_structure(matrix: Any, rows: str = "nodes", columns: str = "nodes") -> None:
    """Refuse index arrays of a sparse matrix that lead out of it. O(stored entries).

    Parameters
    ----------
    matrix
        A sparse matrix of scipy. Formats other than CSR, CSC, BSR and COO hold no index arrays that a conversion would believe.
    rows, columns
        What they stand for, for messages.
    """
    if matrix.format not in ("csr", "csc", "bsr", "coo"):
        return
    stored = used = len(matrix.data)
    if matrix.format == "coo":
        axes = list(zip(matrix.coords, matrix.shape, (rows, columns), strict=True))
    else:
        height, width = matrix.blocksize if matrix.format == "bsr" else (1, 1)
        along = [(matrix.shape[0] // height, rows), (matrix.shape[1] // width, columns)]
        (steps, _), (length, kind) = along[::-1] if matrix.format == "csc" else along
        borders, axes = np.asarray(matrix.indptr), [(matrix.indices, length, "blocks" if matrix.format == "bsr" else kind)]
        _check_kind(borders, "indptr")
        if borders.size != steps + 1 or borders[0] != 0 or borders[-1] > stored or np.any(borders[1:] < borders[:-1]):
            raise ValueError(
                f"the matrix is corrupt: indptr must rise in {steps} steps from 0 to at most {stored} entries; build it anew"
            )
        used = int(borders[-1])  # scipy allows spare room behind the last entry
    for given, n, kind in axes:
        axis = np.asarray(given)
        _check_kind(axis, "indices")
        if axis.size < stored:
            raise ValueError(f"the matrix is corrupt: {stored} stored entries, but indices for {axis.size}; build it anew")
        axis = axis[:used]
        if axis.size and (axis.min() < 0 or axis.max() >= n):
            bad = int(axis.max() if axis.max() >= n else axis.min())
            raise ValueError(f"the matrix is corrupt: index {bad} is out of range for {n} {kind}; build it anew")


def _check_kind(array: AnyArray, name: str) -> None:
    if array.dtype.kind not in "iu":
        raise TypeError(f"the matrix is corrupt: its {name} are {array.dtype}, not integers; build it anew")
