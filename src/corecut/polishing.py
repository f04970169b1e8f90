"""Polishing: a better partition of all nodes, put together from several that are there already.

Nodes that agree in three partitions make a group, and the quotient of these groups is small: the best of the three is repaired
on it, where a move shifts what another partition has elsewhere, and then refined node by node. Each turn adds what it finds to
the partitions it chooses from (as evolutionary partitioners do; Sanders and Schulz 2012).

This differs from the combination of draws (:mod:`corecut.draws`) in its level: draws compete on the quotient, whose groups
cannot meet tight bounds on sizes as nodes can. What is best there need not be best here.
"""

from __future__ import annotations

import numpy as np

from corecut._typing import LabelArray
from corecut.objective import Objective
from corecut.refinement import bring_into_bounds, climb_weighted, refine_weighted
from corecut.repair import repair_partition
from corecut.weighted import WeightedGraph, sums_by

# Partitions that a turn begins with.
_PARENTS = 3
# Turns without success after which no more are made.
_IDLE = 8
# A chain of moves is given up after so many without success, and all chains after so many passes over the edges.
_PATIENCE, _PASSES = 100, 10.0


def polish(
    level: WeightedGraph,
    partitions: list[LabelArray],
    objective: Objective,
    n_clusters: int,
    *,
    turns: int,
    generator: np.random.Generator,
    n_jobs: int | None = None,
) -> LabelArray:
    """Return a partition that is at least as good as the best that is given; all nodes must have size 1 or 0."""
    pool = [_refined(level, labels, objective, n_clusters, generator=generator, n_jobs=n_jobs) for labels in partitions]
    idle = 0
    for _ in range(turns if len(pool) > 1 else 0):
        pool.sort(key=lambda one: one[0])
        count = min(_PARENTS, len(pool))
        parents = [0, *(1 + generator.choice(len(pool) - 1, count - 1, replace=False))]
        groups = np.zeros(level.n_nodes, np.int64)
        for at in parents:
            groups = np.unique(groups * n_clusters + pool[at][1], return_inverse=True)[1]
        if groups.max() < n_clusters:  # all the same
            idle += 1
        else:
            member = np.unique(groups, return_index=True)[1]
            small = level.contract(groups.astype(np.int32), n_jobs=n_jobs)
            found = repair_partition(small, pool[0][1][member], objective, n_clusters, random_state=generator, n_jobs=n_jobs)
            made = _refined(level, found.labels[groups], objective, n_clusters, generator=generator, n_jobs=n_jobs)
            idle = 0 if made[0] < pool[0][0] else idle + 1
            pool.append(made)
        if idle == _IDLE:
            break
    return min(pool, key=lambda one: one[0])[1]


def _refined(
    level: WeightedGraph,
    labels: LabelArray,
    objective: Objective,
    n_clusters: int,
    *,
    generator: np.random.Generator,
    n_jobs: int | None,
) -> tuple[tuple[float, float], LabelArray]:
    """Return a partition after moves of nodes, one by one and in chains, and its rank: how far outside of bounds, and F."""
    labels = bring_into_bounds(level, labels, objective, n_clusters)
    labels = refine_weighted(level, labels, objective, n_clusters, max_passes=20, tolerance=1e-4, n_jobs=n_jobs).labels
    labels, value = climb_weighted(
        level, labels, objective, n_clusters, seed=int(generator.integers(2**31)), patience=_PATIENCE, passes=_PASSES
    )
    return (objective.outside(sums_by(labels, level.sizes, n_clusters)), value), labels
