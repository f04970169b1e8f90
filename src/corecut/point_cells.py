"""Points gathered in cells around centres: a query meets the cells with the nearest centres, and few of all points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corecut.point_screens import Rows, Screen
from corecut.spectral.blas import ROWS, each_block
from corecut.spectral.rounding import kmeans

Numbers = NDArray[np.int32]

# Points in a cell, most cells, and sample points for each centre.
_IN_CELL, _MOST_CELLS, _PER_CENTRE = 200, 16_384, 40


@dataclass(frozen=True)
class Cells:
    """Points gathered around centres.

    Attributes
    ----------
    centres : array of shape (cells, w)
        Means of sample points, by k-means.
    half_norms : array of shape (cells,)
        Half of the centres' squared lengths.
    cell_of : array of shape (n,)
        Nearest centre of every point.
    """

    centres: Rows
    half_norms: Rows
    cell_of: Numbers

    @classmethod
    def of(cls, screen: Screen, threads: int) -> Cells:
        """Gather points around the means of k-means on a sample of them."""
        n = len(screen.rows)
        count = min(max(1, n // _IN_CELL), _MOST_CELLS)
        generator = np.random.default_rng(2)
        sample = screen.rows[generator.choice(n, min(n, _PER_CENTRE * count), replace=False)]
        weights = np.ones(len(sample))
        labels = kmeans(sample, count, weights, generator, max_iter=5, threads=threads)  # type: ignore[arg-type]
        order = np.argsort(labels, kind="stable")
        _, firsts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
        sums = np.add.reduceat(sample[order], firsts, axis=0)
        centres: Rows = np.ascontiguousarray(sums / sizes[:, None].astype(np.float32))
        cells = cls(centres, np.float32(0.5) * np.einsum("ij,ij->i", centres, centres), np.empty(n, np.int32))

        def block(begin: int) -> None:
            part = slice(begin, begin + ROWS)
            cells.cell_of[part] = np.argmax(cells._nearness(screen.rows[part]), axis=1)

        each_block(block, n, threads)
        return cells

    def _nearness(self, rows: Rows) -> Rows:
        nearness: Rows = rows @ self.centres.T - self.half_norms
        return nearness

    def probes(self, asked: Screen, known: Numbers, aim: float) -> int:
        """Return how many cells queries must meet to find a share of their known neighbours."""
        ranks = np.argsort(np.argsort(-self._nearness(asked.rows), axis=1), axis=1)
        needed = np.take_along_axis(ranks, self.cell_of[known].astype(np.intp), axis=1)
        return int(np.quantile(needed, aim, method="higher")) + 1

    def visits(self, asked: Screen, probes: int) -> Iterator[tuple[int, Numbers]]:
        """Yield the cells that some of the queries meet, and the queries that do."""
        nearest = np.argpartition(-self._nearness(asked.rows), probes - 1, axis=1)[:, :probes].ravel()
        order = np.argsort(nearest, kind="stable")
        cells, firsts = np.unique(nearest[order], return_index=True)
        for cell, asking in zip(cells.tolist(), np.split((order // probes).astype(np.int32), firsts[1:]), strict=True):
            yield cell, np.ascontiguousarray(asking)
