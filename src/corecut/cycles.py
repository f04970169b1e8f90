"""Cycles: a partition of all nodes, improved on every scale between single nodes and clusters.

Nodes are gathered anew, into groups that do not cross the partition's borders, and on the quotient again, each level with about
half as many nodes as the one before (Walshaw 2004; the V-cycles of multilevel partitioners). On every level the partition is
what it was, so that nothing is lost on the way up; on the way down groups are moved one by one and in chains. Groups of a few
nodes straighten borders that no node can leave alone, larger ones carry whole corners over.

Aggregation goes to few groups in one or two steps, which is quick, and right where clusters are dense inside. On lattices,
meshes and tori it leaves bumps of the size of its groups.
"""

from __future__ import annotations

import numpy as np

from corecut import _core
from corecut._typing import LabelArray
from corecut._validation import thread_count
from corecut.objective import Objective
from corecut.refinement import climb_weighted, refine_weighted
from corecut.weighted import WeightedGraph

# How much more a group may hold on each level than on the one before, and sweeps of local moves to fill it.
_GROWTH, _PASSES = 2.0, 3
# Groups per cluster at which gathering ends.
_COARSEST = 30
# A level that does not take away at least this share of the nodes is not made.
_LEAST_SHRINKAGE = 0.1
# Chains of moves: how many moves without success end one, and all of them after so many passes over the edges.
_PATIENCE, _CLIMBING = 60, 4.0
# A cycle that lowers F by less than this share is the last one.
_SETTLED = 1e-3


def improve_by_cycles(
    level: WeightedGraph,
    labels: LabelArray,
    value: float,
    objective: Objective,
    n_clusters: int,
    *,
    cycles: int,
    seed: int,
    n_jobs: int | None = None,
) -> LabelArray:
    """Return a partition with at most the F of the one that is given, its `value`, and inside the bounds if that is."""
    for number in range(cycles):
        before = value
        labels, value = cycle(level, labels, objective, n_clusters, seed=seed + number, n_jobs=n_jobs)
        if not value < (1 - _SETTLED) * before:
            break
    return labels


def cycle(
    whole: WeightedGraph, labels: LabelArray, objective: Objective, n_clusters: int, *, seed: int, n_jobs: int | None = None
) -> tuple[LabelArray, float]:
    """Gather the nodes level by level within the clusters, refine on every level on the way back; return labels and F."""
    threads = thread_count(n_jobs)
    levels: list[tuple[WeightedGraph, LabelArray]] = []
    level, cap = whole, _GROWTH * float(whole.graph.degrees.mean())
    most = whole.graph.volume / n_clusters
    while level.n_nodes > _COARSEST * n_clusters and cap < most:
        groups: LabelArray = _core.group_nodes(
            level.graph.matrix, level.graph.degrees, cap, _PASSES, threads, within=labels, seed=seed * 2**10 + len(levels)
        )
        cap *= _GROWTH
        count = int(groups.max()) + 1
        if count > (1 - _LEAST_SHRINKAGE) * level.n_nodes:
            continue
        levels.append((level, groups))
        level = level.contract(groups, n_jobs=n_jobs)
        of_group = np.zeros(count, np.int32)
        of_group[groups] = labels
        labels = of_group
    while True:
        labels = refine_weighted(level, labels, objective, n_clusters, max_passes=20, tolerance=1e-4, n_jobs=n_jobs).labels
        labels, value = climb_weighted(level, labels, objective, n_clusters, seed=seed, patience=_PATIENCE, passes=_CLIMBING)
        if not levels:
            return labels, value
        level, groups = levels.pop()
        labels = labels[groups]
