"""Polishing: a better partition of all nodes, put together from several that are there already.

Nodes that agree in three partitions make a group, and the quotient of these groups is small: the best of the three is repaired
on it, where a move shifts what another partition has elsewhere, and then refined node by node. Groups that may leave the bounds
a little, in two turns of three, find ways that nodes cannot go one by one. Each turn adds what it finds to
the partitions it chooses from (as evolutionary partitioners do; Sanders and Schulz 2012).

This differs from the combination of draws (:mod:`corecut.draws`) in its level: draws compete on the quotient, whose groups
cannot meet tight bounds on sizes as nodes can. What is best there need not be best here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corecut._progress import Stages
from corecut._typing import LabelArray
from corecut.objective import Objective
from corecut.refinement import bring_into_bounds, climb_weighted, refine_weighted
from corecut.repair import repair_partition
from corecut.side_by_side import side_by_side
from corecut.weighted import WeightedGraph, sums_by

# Partitions that a turn begins with, and turns that are made at the same time, from the same partitions.
_PARENTS, _AT_ONCE = 3, 4
# Turns without success after which no more are made.
_IDLE = 16
# How far groups, which are coarse, may be outside of bounds before nodes are brought into them, as shares of the mean cluster.
_SLACKS = (0.0, 0.04, 0.08)
# A chain of moves is given up after so many without success, and all chains after so many passes over the edges.
_PATIENCE, _PASSES = 100, 10.0

_Ranked = tuple[tuple[float, float], LabelArray]


def polish(
    level: WeightedGraph,
    partitions: list[LabelArray],
    objective: Objective,
    n_clusters: int,
    *,
    turns: int,
    seed: int,
    n_jobs: int | None = None,
    stage: Stages | None = None,
) -> tuple[LabelArray, float]:
    """Return a partition at least as good as the best that is given, and its F; all nodes must have size 1 or 0."""

    def at_once(work: Callable[[int, int], _Ranked | None], numbers: range) -> list[_Ranked | None]:
        pieces = [lambda threads, _, number=number: work(number, threads) for number in numbers]
        return side_by_side(pieces, n_jobs=n_jobs, stage=stage or Stages())

    def refined(number: int, threads: int) -> _Ranked:
        generator = np.random.default_rng((seed, number))
        return _refined(level, partitions[number], objective, n_clusters, generator=generator, n_jobs=threads)

    def turn(number: int, threads: int) -> _Ranked | None:
        """Make a partition from the best and two others; None where all are the same."""
        generator = np.random.default_rng((seed, number))
        parents = [0, *(1 + generator.choice(len(pool) - 1, min(_PARENTS, len(pool)) - 1, replace=False))]
        groups = np.zeros(level.n_nodes, np.int64)
        for at in parents:
            groups = np.unique(groups * n_clusters + pool[at][1], return_inverse=True)[1]
        if groups.max() < n_clusters:
            return None
        member = np.unique(groups, return_index=True)[1]
        small = level.contract(groups.astype(np.int32), n_jobs=threads)
        slack = _SLACKS[number % len(_SLACKS)] * float(level.sizes.sum()) / n_clusters
        looser = Objective(objective.fee, max(objective.min_size - slack, 0.0), objective.max_size + slack)
        found = repair_partition(small, pool[0][1][member], looser, n_clusters, random_state=generator, n_jobs=threads)
        return _refined(level, found.labels[groups], objective, n_clusters, generator=generator, n_jobs=threads)

    pool = [one for one in at_once(refined, range(len(partitions))) if one]
    idle, made = 0, len(partitions)
    end = made + (turns if len(pool) > 1 else 0)
    while made < end and idle < _IDLE:
        pool.sort(key=lambda one: one[0])
        numbers = range(made, min(made + _AT_ONCE, end))
        found = [one for one in at_once(turn, numbers) if one]
        idle = 0 if found and min(one[0] for one in found) < pool[0][0] else idle + len(numbers)
        pool += found
        made = numbers.stop
    (_, value), best = min(pool, key=lambda one: one[0])
    return best, value


def _refined(
    level: WeightedGraph,
    labels: LabelArray,
    objective: Objective,
    n_clusters: int,
    *,
    generator: np.random.Generator,
    n_jobs: int | None,
) -> _Ranked:
    """Return a partition after moves of nodes, one by one and in chains, and its rank: how far outside of bounds, and F."""
    labels = bring_into_bounds(level, labels, objective, n_clusters)
    labels = refine_weighted(level, labels, objective, n_clusters, max_passes=20, tolerance=1e-4, n_jobs=n_jobs).labels
    labels, value = climb_weighted(
        level, labels, objective, n_clusters, seed=int(generator.integers(2**31)), patience=_PATIENCE, passes=_PASSES
    )
    return (objective.outside(sums_by(labels, level.sizes, n_clusters)), value), labels
