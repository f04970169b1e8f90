"""Points under a map that never lengthens a distance, in float32: cheap lower bounds of all distances, from matrix products.

    z(x) = (Vᵀ(x - c), ‖(I - VVᵀ)(x - c)‖),      ‖x - y‖² ≥ ‖z(x) - z(y)‖² = ‖z(x)‖² + ‖z(y)‖² - 2⟨z(x), z(y)⟩,

for a centre c and a few directions V in which the points vary most, or for all directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corecut import _core
from corecut._typing import AnyArray, FloatArray
from corecut.spectral.blas import ROWS, each_block

Rows = NDArray[np.float32]

# Rows that the centre and the directions are taken from.
_SAMPLE = 4096


@dataclass(frozen=True)
class Screen:
    """Rows in few dimensions that are no further apart than the points they stand for.

    Attributes
    ----------
    rows : array of shape (n, w)
        The points under the map, in units of their spread.
    norms : array of shape (n,)
        Squared lengths, lowered by the error of a product.
    """

    rows: Rows
    norms: FloatArray

    @classmethod
    def of_rows(cls, rows: Rows, squares: FloatArray) -> Screen:
        """Return the screen of rows and of their squared lengths."""
        # A product of w terms is off by at most w units of rounding of ‖x‖‖y‖ ≤ (‖x‖² + ‖y‖²)/2; the rows themselves, the
        # length of the rest and the last sums are off by a few more. Twice that, and what is too small for float32.
        margin = (rows.shape[1] + 64) * 2.0**-23
        return cls(rows, squares * (1.0 - margin) - 1e-30)

    def narrowed(self, width: int) -> Screen:
        """Return the screen with its first directions only; the others go into the length of the rest."""
        rest = np.sqrt(np.einsum("ij,ij->i", self.rows[:, width:], self.rows[:, width:], dtype=np.float64))
        rows = np.concatenate([self.rows[:, :width], rest[:, None].astype(np.float32)], axis=1)
        return Screen.of_rows(rows, np.einsum("ij,ij->i", rows, rows, dtype=np.float64))

    def taken(self, order: Any) -> Screen:
        """Return the screen of some of the points, or of all in another order."""
        return Screen(self.rows[order], self.norms[order])


@dataclass(frozen=True)
class ScreenMap:
    """The map: a centre, a unit of length, and directions or None for all."""

    centre: FloatArray
    unit: float
    directions: FloatArray | None

    @classmethod
    def of(cls, points: AnyArray, largest: float, *, width: int | None) -> ScreenMap:
        """Return a map for points whose coordinates are at most `largest`, to `width` directions or, if None, to all."""
        sample = points[:: max(1, len(points) // _SAMPLE)].astype(np.float64)
        # Not the mean: one point far away would leave all others at a distance from the centre, where bounds are coarse.
        centre = np.median(sample[:: max(1, len(sample) // 512)], axis=0)
        sample -= centre
        unit = float(np.sqrt(np.mean(np.einsum("ij,ij->i", sample, sample))))
        unit = max(unit, 1e-15 * largest * np.sqrt(points.shape[1])) or 1.0  # squares of all points are float32 numbers
        if width is None:
            return cls(centre, unit, None)
        sample /= unit
        width = min(width, points.shape[1] - 1)
        generator = np.random.default_rng(0)
        found = np.linalg.qr(generator.standard_normal((points.shape[1], width)))[0]
        for _ in range(3):
            found = np.linalg.qr(sample.T @ (sample @ found))[0]
        seen = sample @ found
        turned = np.linalg.eigh(seen.T @ seen)[1][:, ::-1]
        return cls(centre, unit, np.linalg.qr(found @ turned)[0])

    def screen(self, points: AnyArray, threads: int) -> Screen:
        """Return points under the map."""
        n, d = points.shape
        rows = np.empty((n, d if self.directions is None else self.directions.shape[1] + 1), np.float32)
        squares = np.empty(n)

        def block(begin: int) -> None:
            part = slice(begin, begin + ROWS)
            moved = (points[part] - self.centre) / self.unit
            squares[part] = np.einsum("ij,ij->i", moved, moved)
            if self.directions is None:
                rows[part] = moved
            else:
                seen = moved @ self.directions
                rest = np.maximum(squares[part] - np.einsum("ij,ij->i", seen, seen), 0.0)
                rows[part, :-1], rows[part, -1] = seen, np.sqrt(rest)

        each_block(block, n, threads)
        return Screen.of_rows(rows, squares)


def panels_of(screen: Screen) -> tuple[Rows, Rows]:
    """Return points in panels of a fixed number, stored by coordinate, and their terms; the last panel is filled up."""
    n, width = screen.rows.shape
    size = _core.SHORTEST_LIST
    rows = np.zeros((-(-n // size) * size, width), np.float32)
    terms = np.full(len(rows), np.inf, np.float32)
    rows[:n], terms[:n] = screen.rows, screen.norms
    return np.ascontiguousarray(rows.reshape(-1, size, width).transpose(0, 2, 1)), terms.reshape(-1, size)


def bounds_met(screen: Screen, asked: Screen, squares: FloatArray) -> FloatArray:
    """Return how many points have bounds up to a squared distance, for every query."""
    counts = np.zeros(len(squares))
    for begin in range(0, len(screen.rows), ROWS):
        part = slice(begin, begin + ROWS)
        bounds = screen.norms[part].astype(np.float32) - 2.0 * (asked.rows @ screen.rows[part].T)
        counts += np.count_nonzero(bounds <= (squares - asked.norms)[:, None], axis=1)
    return counts
