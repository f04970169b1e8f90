"""Where points fall apart: the widest gap between two crowds, seen along the direction in which the points vary most."""

from __future__ import annotations

from typing import Any

import numpy as np

from corecut._typing import AnyArray, BoolArray, FloatArray
from corecut.spectral.blas import ROWS, each_block

# Points that the direction is taken from, and steps of the power iteration: it need not be exact.
_SAMPLE, _STEPS = 4096, 8


def widest_gap(points: AnyArray, least: int, threads: int = 1) -> tuple[BoolArray, FloatArray]:
    """Return who lies behind the widest gap that leaves `least` points on either side, and how far across it is at least.

    Parameters
    ----------
    points : array of shape (n, features)
        Points.
    least
        Fewest points of a side.
    threads
        Number of threads.

    Returns
    -------
    side : array of shape (n,)
        Whether a point lies behind the gap.
    across : array of shape (n,)
        A lower bound of a point's distance from every point of the other side; 0 where no gap leaves enough points.
    """
    n, d = points.shape
    if n < 2 * least:
        return np.zeros(n, bool), np.zeros(n)
    sample = points[:: max(1, n // _SAMPLE)].astype(np.float64)
    sample -= sample.mean(axis=0)
    sample /= float(np.abs(sample).max()) or 1.0  # their squares are numbers
    direction: Any = np.random.default_rng(0).standard_normal(d)
    for _ in range(_STEPS):
        direction = sample.T @ (sample @ _of_length_one(direction))
    direction = _of_length_one(direction)
    along, squares = np.empty(n), np.empty(n)

    def block(begin: int) -> None:
        rows = points[begin : begin + ROWS].astype(np.float64)
        along[begin : begin + ROWS], squares[begin : begin + ROWS] = rows @ direction, np.einsum("ij,ij->i", rows, rows)

    each_block(block, n, threads)
    ordered = np.sort(along)
    cut = least + int(np.argmax(np.diff(ordered[least - 1 : n - least + 1])))
    below, above = float(ordered[cut - 1]), float(ordered[cut])
    side = along >= above if above > below else np.zeros(n, bool)
    # Sums of d products are off by as much as d roundings of the longest point.
    rounding = 4.0 * (d + 4) * 2.0**-53 * float(np.sqrt(squares.max()))
    across = np.where(side, along - below, above - along) - rounding
    return side, np.maximum(across, 0.0) if above > below else np.zeros(n)


def _of_length_one(vector: AnyArray) -> AnyArray:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector
