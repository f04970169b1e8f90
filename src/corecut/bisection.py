"""Bisection: k clusters of given sizes by halving, for bounds so tight that k-means and repair cannot meet them.

A part that is due c clusters is split into one due ⌈c/2⌉ and one due ⌊c/2⌋, along its second eigenvector, at the best border
that leaves both as many nodes as their clusters may have; all parts of a round at once, ⌈log₂k⌉ rounds, with nodes moved within
the bounds after each.
"""

from __future__ import annotations

import numpy as np

from corecut._typing import LabelArray
from corecut.objective import Objective
from corecut.refinement import bring_into_bounds, climb_weighted, refine_weighted
from corecut.repair import best_splits
from corecut.weighted import WeightedGraph, sums_by


def bisect_graph(
    level: WeightedGraph,
    objective: Objective,
    n_clusters: int,
    *,
    regularization: float,
    generator: np.random.Generator,
    n_jobs: int | None = None,
) -> LabelArray:
    """Return k clusters with sizes inside the objective's bounds, or near them where the nodes are too coarse for that.

    Eigenvectors are regularised by a share of the mean degree: plain ones cut off crumbs, which cannot be halves.
    """
    labels = np.zeros(level.n_nodes, np.int32)
    due = np.zeros(n_clusters, np.int64)
    due[0] = n_clusters
    used = 1
    while due.max() > 1:
        halves = (due + 1) // 2
        sizes = sums_by(labels, level.sizes, n_clusters)
        # The first part takes what its clusters may hold, and leaves the second what its clusters may.
        rest = due - halves
        most = min(objective.max_size, float(sizes.sum()))  # 0 times infinity is no number
        low = np.maximum(halves * objective.min_size, sizes - rest * most)
        high = np.minimum(halves * most, sizes - rest * objective.min_size)
        middle, wanted = sizes * halves / np.maximum(due, 1), due > 1
        slack = 0.5 * level.sizes.max()  # no border can be nearer than half a node
        gains, first, _ = best_splits(
            level,
            labels,
            wanted,
            objective=objective,
            low=np.minimum(low, middle - slack),
            high=np.maximum(high, middle + slack),
            both=False,
            regularization=regularization,
            generator=generator,
            n_jobs=n_jobs,
        )
        target = np.arange(n_clusters, dtype=np.int32)
        for j in np.flatnonzero(wanted):
            target[j] = used  # the second part gets a new name
            due[used], due[j] = rest[j], halves[j]
            used += 1
            if gains[j] == -np.inf:  # nothing to split: any nodes will do
                members = np.flatnonzero(labels == j)
                first[members] = np.arange(members.size) < members.size * halves[j] / max(halves[j] + rest[j], 1)
        labels = np.where(first, labels, target[labels]).astype(np.int32)
        clusters = np.where(due > 0, due, 1).astype(np.float64)
        labels = bring_into_bounds(level, labels, objective, used, due=clusters[:used])
        labels = refine_weighted(level, labels, objective, used, due=clusters[:used], max_passes=10, tolerance=1e-3).labels
        labels, _ = climb_weighted(level, labels, objective, used, due=clusters[:used], seed=int(generator.integers(2**31)))
    return labels
