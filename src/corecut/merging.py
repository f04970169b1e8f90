"""Merging: clusters are joined, two at a time, and each time the two whose union raises the objective least.

    F(Π) = Σ_j (cut_j + c)/vol_j = k - Σ_j kept_j

Joining i and j makes k smaller by 1 and loses loss_ij = kept_i + kept_j - kept_ij: F falls by the step 1 - loss_ij, which is
never larger than 1 and is small where the two are clusters in their own right. Steps grow with k where each new cluster costs
more than the last one; where the graph has k clusters they leap behind k, because the next one would have to break one of them.

All from the matrix of weights between clusters, without a look at the graph: O(k²) memory and about O(k²) time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from corecut._typing import FloatArray, IntArray, LabelArray
from corecut.objective import Objective


@dataclass(frozen=True, eq=False)
class Merges:
    """Pairs of clusters in the order in which they were joined; the union keeps the name of the first.

    Attributes
    ----------
    n_clusters
        k before the first merge.
    first, second
        Clusters that were joined.
    losses
        What each merge lost of Σ_j kept_j.
    """

    n_clusters: int
    first: IntArray = field(repr=False)
    second: IntArray = field(repr=False)
    losses: FloatArray = field(repr=False)

    @property
    def steps(self) -> FloatArray:
        """How much F falls by each merge."""
        return 1.0 - self.losses

    def names(self, n_clusters: int) -> LabelArray:
        """Return, for every cluster, its new name 0..n_clusters-1 after the merges that leave so many clusters."""
        into = np.arange(self.n_clusters)
        count = self.n_clusters - n_clusters
        # Backwards: a cluster's first takes the name that the first itself gets later.
        for i, j in zip(self.first[:count][::-1].tolist(), self.second[:count][::-1].tolist(), strict=True):
            into[j] = into[i]
        return np.unique(into, return_inverse=True)[1].astype(np.int32)

    def linkage(self) -> FloatArray:
        """Return the merges as scipy's linkage matrix: pairs, heights (the losses, never falling) and numbers of leaves."""
        name, leaves = np.arange(self.n_clusters), np.ones(self.n_clusters)
        rows = np.empty((self.first.size, 4))
        heights = np.maximum.accumulate(np.maximum(self.losses, 0.0))
        for at, (i, j) in enumerate(zip(self.first.tolist(), self.second.tolist(), strict=True)):
            leaves[i] += leaves[j]
            rows[at] = min(name[i], name[j]), max(name[i], name[j]), heights[at], leaves[i]
            name[i] = self.n_clusters + at
        return rows


def merge_clusters(between: FloatArray, volume: FloatArray, objective: Objective, *, down_to: int = 1) -> Merges:
    """Join clusters until `down_to` are left.

    Parameters
    ----------
    between
        k × k weights between clusters, on the diagonal those inside.
    volume
        vol_j.
    objective
        F with its fee; bounds on sizes are not looked at.
    down_to
        Number of clusters at the end.

    Examples
    --------
    >>> import numpy as np
    >>> from corecut.merging import merge_clusters
    >>> from corecut.objective import Objective
    >>> between = np.array([[8.0, 2.0, 0.0], [2.0, 8.0, 1.0], [0.0, 1.0, 20.0]])
    >>> merges = merge_clusters(between, between.sum(axis=1), Objective())
    >>> merges.first.tolist(), merges.second.tolist()
    ([0, 0], [1, 2])
    """
    between, volume = between.copy(), volume.copy()
    inside = between.diagonal().copy()
    k = volume.size
    alive = np.ones(k, bool)
    kept = objective.kept(inside, volume)

    def losses_of(i: int) -> FloatArray:
        joined = objective.kept(inside[i] + inside + 2 * between[i], volume[i] + volume)
        losses: FloatArray = np.where(alive, kept[i] + kept - joined, np.inf)
        losses[i] = np.inf
        return losses

    joined = objective.kept(np.add.outer(inside, inside) + 2 * between, np.add.outer(volume, volume))
    losses = np.add.outer(kept, kept) - joined
    np.fill_diagonal(losses, np.inf)
    partner = losses.argmin(axis=1)
    least = losses[np.arange(k), partner]
    made: list[tuple[int, int, float]] = []
    for _ in range(k - down_to):
        i = int(least.argmin())
        i, j = sorted((i, int(partner[i])))
        made.append((i, j, float(losses[i, j])))
        inside[i] += inside[j] + 2 * between[i, j]
        volume[i] += volume[j]
        between[i] += between[j]
        between[:, i] += between[:, j]
        kept[i] = objective.kept(inside[i : i + 1], volume[i : i + 1])[0]
        alive[j], least[j] = False, np.inf
        losses[j] = losses[:, j] = np.inf
        losses[i] = losses[:, i] = losses_of(i)
        # Rows whose cheapest partner was one of the two look again, the others compare with the union.
        again = alive & ((partner == i) | (partner == j))
        again[i] = True
        stale = np.flatnonzero(again)
        better = alive & (losses[:, i] < least)
        partner[better], least[better] = i, losses[better, i]
        partner[stale] = losses[stale].argmin(axis=1)
        least[stale] = losses[stale, partner[stale]]
    first, second, lost = (np.array(column) for column in zip(*made, strict=True)) if made else (np.zeros(0),) * 3
    return Merges(k, first.astype(np.int64), second.astype(np.int64), lost.astype(np.float64))
