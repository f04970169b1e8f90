"""The objective: the normalised cut with a fee for every cluster.

    F(Π) = Σ_j (cut_j + c)/vol_j = Σ_j 1 - kept_j,      kept_j = (assoc_j - c)/vol_j,      c = β·vol(V)/k.

vol(V) leaves out nodes that are heavier than a mean cluster (:func:`volume_of_clusters`): a single edge of weight 10⁸ must not
make every cluster look like a crumb.

The plain normalised cut (β = 0) is at its lowest on many real graphs with one giant beside crumbs that hang on it by an edge.
A fee c is what a cluster pays for existing. A cluster of the mean volume pays β, one of a tenth of it 10β, a giant next to
nothing: only small clusters feel it. The same formula is in `_kernels/objective.hpp`, for moves of nodes and splits;
refinement, repair, the choice among draws and the metrics have it from these two places.

(A fee per node instead of per volume, and regularisation as part of the objective, were measured and lost; see
docs/sparse-graphs.md.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from corecut import _core
from corecut._typing import FloatArray


def typical_volume(degrees: FloatArray, n_parts: float, *, most: int = 0) -> float:
    """Return `n_parts` times the volume of a typical part, when a graph is divided into so many parts.

    A node that is heavier than a part is one by itself, and what it weighs says nothing about the others: it is counted as a
    part, and the rest of the volume is shared by the rest of the parts, until no further node is heavier than that, or so many
    are as half of the parts, or `most`. On a graph without such nodes it is the volume.
    """
    total = float(degrees.sum())
    if n_parts <= 1 or float(degrees.max(initial=0.0)) <= total / n_parts:
        return total
    rising = np.sort(degrees)
    below = np.cumsum(rising)
    share, heavy = total / n_parts, 0
    while True:
        above = rising.size - int(np.searchsorted(rising, share, side="right"))
        if above <= heavy or above >= min(max(n_parts / 2, most), rising.size):
            return share * n_parts
        heavy = above
        share = float(below[rising.size - heavy - 1]) / (n_parts - heavy)


def volume_of_clusters(degrees: FloatArray, n_clusters: int) -> float:
    """Return k times the volume of a typical cluster, by which fees are measured: all clusters but one may be heavy nodes."""
    return typical_volume(degrees, n_clusters, most=n_clusters)


@dataclass(frozen=True)
class Balance:
    """β of the objective that a partition is judged by, and of the one by which groups of nodes are moved on the way to it."""

    final: float
    of_groups: float

    @classmethod
    def both(cls, beta: float) -> Balance:
        """Return the same β for both."""
        return cls(beta, beta)


@dataclass(frozen=True)
class Objective:
    """F with its fee, and bounds on the number of nodes of a cluster.

    Attributes
    ----------
    fee
        c, in units of weight.
    min_size, max_size
        Bounds on sizes: not part of F, but no move may leave them.
    """

    fee: float = 0.0
    min_size: float = 0.0
    max_size: float = math.inf

    @classmethod
    def of(
        cls, volume: float, n_clusters: int, *, balance: float = 0.0, min_size: float = 0.0, max_size: float = math.inf
    ) -> Objective:
        """Return the objective with the fee c = β·vol/k; `volume` as of :func:`volume_of_clusters`."""
        return cls(balance * volume / n_clusters, min_size, max_size)

    @cached_property
    def native(self) -> _core.Objective:
        """The objective that kernels take."""
        return _core.Objective(self.fee, self.min_size, self.max_size)

    def kept(self, association: FloatArray, volume: FloatArray) -> FloatArray:
        """Return kept_j of clusters; 0 for those without volume."""
        kept: FloatArray = np.divide(association - self.fee, volume, out=np.zeros_like(volume), where=volume > 0)
        return kept

    def terms(self, association: FloatArray, volume: FloatArray) -> FloatArray:
        """Return every cluster's share of F, 1 - kept_j; the conductance where there is no fee."""
        # Written by the cut, so that rounding does not turn a clean one into a negative one.
        paid = np.maximum(volume - association, 0.0) + self.fee
        terms: FloatArray = np.divide(paid, volume, out=np.ones_like(volume), where=volume > 0)
        return terms

    def outside(self, sizes: FloatArray) -> float:
        """Return by how many nodes sizes are outside of the bounds, in all."""
        return float(np.maximum(sizes - self.max_size, 0).sum() + np.maximum(self.min_size - sizes, 0).sum())

    def unbounded(self) -> Objective:
        """Return the same F without bounds."""
        return Objective(self.fee)

    def bounded_by(self, least: float, most: float, mean: float) -> Objective:
        """Return the same F with sizes between two multiples of the mean."""
        return Objective(self.fee, least * mean, most * mean)

    @property
    def bounded(self) -> bool:
        """Whether there is any bound."""
        return self.min_size > 0 or math.isfinite(self.max_size)
