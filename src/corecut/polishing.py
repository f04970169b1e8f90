"""Polishing: a better partition of all nodes, put together from several that are there already.

Nodes that agree in three partitions make a group, and the quotient of these groups is small: the best of the three is repaired
on it, where a move shifts what another partition has elsewhere, and then refined node by node. Groups that may leave the bounds
a little, in most turns, find ways that nodes cannot go one by one. Each turn adds what it finds to
the partitions it chooses from (as evolutionary partitioners do; Sanders and Schulz 2012).

Where sizes are bounded, every other turn loosens the bounds instead: nodes of a good partition move as if clusters might be
larger and smaller by a share of the mean, and are brought back at the least cost. Full clusters hold back moves that are worth
more than what others must pay for them, and no chain is long enough to find that out (compare the unconstrained refinement of
Maas, Gottesbüren and Seemaier 2024). On graphs too large for turns there is time for a few such rounds only (:func:`loosen`).

This differs from the combination of draws (:mod:`corecut.draws`) in its level: draws compete on the quotient, whose groups
cannot meet tight bounds on sizes as nodes can. What is best there need not be best here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corecut._progress import Stages
from corecut._typing import LabelArray
from corecut.engines import Engine
from corecut.objective import Objective
from corecut.refinement import bring_into_bounds, climb_weighted, refine_weighted
from corecut.repair import repair_partition
from corecut.side_by_side import side_by_side
from corecut.weighted import WeightedGraph, sums_by

# Partitions that a turn begins with, and turns that are made at the same time, from the same partitions. Where sizes are
# bounded, one of so many of the best is what a turn improves: the best alone is soon the father of all.
_PARENTS, _AT_ONCE, _BEST = 3, 4, 6
# Turns without success after which no more are made: of combinations alone, and where bounds are loosened as well.
_IDLE, _IDLE_BOUNDED = 16, 32
# How far groups, which are coarse, and nodes may be outside of bounds before they are brought into them, in turn, as shares of
# the mean cluster; and nodes of the partitions that are given.
_OF_GROUPS, _OF_NODES, _AT_FIRST = (0.0, 0.05, 0.1, 0.2), (0.05, 0.15, 0.3, 0.6), 0.3
# A chain of moves is given up after so many without success, and all chains after so many passes over the edges; and where
# what they find is only a way to something else.
_PATIENCE, _PASSES = 100, 10.0
_LOOSE_PATIENCE, _LOOSE_PASSES = 30, 2.0
# The same shares on large graphs; a round that lowers F by less than this share is the last one. Sweeps of each round.
_OF_MANY, _SETTLED, _SWEEPS = (0.6, 0.3), 3e-3, 5

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
        found = _refined(level, partitions[number], objective, n_clusters, generator=generator, n_jobs=threads)
        if not objective.bounded:
            return found
        return min(found, loosened(generator, found[1], _AT_FIRST, threads), key=lambda one: one[0])

    def turn(number: int, threads: int) -> _Ranked | None:
        generator = np.random.default_rng((seed, number))
        first = int(generator.integers(min(_BEST, len(pool)))) if objective.bounded else 0
        if objective.bounded and number % 2:
            return loosened(generator, pool[first][1], _OF_NODES[number // 2 % len(_OF_NODES)], threads)
        return combined(generator, first, _OF_GROUPS[number // 2 % len(_OF_GROUPS)], threads)

    def combined(generator: np.random.Generator, first: int, slack: float, threads: int) -> _Ranked | None:
        """Make a partition from one of the best and two others; None where all are the same."""
        others = generator.choice(len(pool) - 1, min(_PARENTS, len(pool)) - 1, replace=False)
        parents = [first, *(others + (others >= first))]
        groups = np.zeros(level.n_nodes, np.int64)
        for at in parents:
            groups = np.unique(groups * n_clusters + pool[at][1], return_inverse=True)[1]
        if groups.max() < n_clusters:
            return None
        member = np.unique(groups, return_index=True)[1]
        small = level.contract(groups.astype(np.int32), n_jobs=threads)
        looser = _looser(level, objective, n_clusters, slack)
        found = repair_partition(small, pool[first][1][member], looser, n_clusters, random_state=generator, n_jobs=threads)
        return _refined(level, found.labels[groups], objective, n_clusters, generator=generator, n_jobs=threads)

    def loosened(generator: np.random.Generator, labels: LabelArray, slack: float, threads: int) -> _Ranked:
        """Make a partition from another by way of one outside of the bounds."""
        looser = _looser(level, objective, n_clusters, slack)
        labels = refine_weighted(level, labels, looser, n_clusters, max_passes=20, tolerance=1e-4, n_jobs=threads).labels
        labels, _ = climb_weighted(
            level,
            labels,
            looser,
            n_clusters,
            seed=int(generator.integers(2**31)),
            patience=_LOOSE_PATIENCE,
            passes=_LOOSE_PASSES,
        )
        return _refined(level, labels, objective, n_clusters, generator=generator, n_jobs=threads)

    pool = [one for one in at_once(refined, range(len(partitions))) if one]
    idle, made, most_idle = 0, len(partitions), _IDLE_BOUNDED if objective.bounded else _IDLE
    end = made + (turns if len(pool) > 1 else 0)
    while made < end and idle < most_idle:
        pool.sort(key=lambda one: one[0])
        numbers = range(made, min(made + _AT_ONCE, end))
        found = [one for one in at_once(turn, numbers) if one]
        idle = 0 if found and min(one[0] for one in found) < pool[0][0] else idle + len(numbers)
        pool += found
        made = numbers.stop
    (_, value), best = min(pool, key=lambda one: one[0])
    return best, value


def loosen(
    level: WeightedGraph, labels: LabelArray, value: float, objective: Objective, n_clusters: int, *, engine: Engine
) -> tuple[LabelArray, float]:
    """Return a partition with at most the F of the one that is given, its `value`, and F; for graphs too large for turns.

    The partition must be inside the bounds, as far as it can be. All nodes must have size 1 or 0.
    """
    strained = objective.outside(sums_by(labels, level.sizes, n_clusters))
    for slack in _OF_MANY:
        looser = _looser(level, objective, n_clusters, slack)
        found = refine_weighted(level, labels, looser, n_clusters, max_passes=_SWEEPS, tolerance=1e-3, engine=engine).labels
        found = bring_into_bounds(level, found, objective, n_clusters)
        made = refine_weighted(level, found, objective, n_clusters, max_passes=_SWEEPS, tolerance=1e-3, engine=engine)
        before, kept = value, objective.outside(sums_by(made.labels, level.sizes, n_clusters)) <= strained
        if kept and made.objective < value:
            labels, value = made.labels, made.objective
        if not value < (1 - _SETTLED) * before:
            break
    return labels, value


def _looser(level: WeightedGraph, objective: Objective, n_clusters: int, slack: float) -> Objective:
    """Return the objective with bounds wider by a share of the mean cluster."""
    nodes = slack * float(level.sizes.sum()) / n_clusters
    return Objective(objective.fee, max(objective.min_size - nodes, 0.0), objective.max_size + nodes)


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
