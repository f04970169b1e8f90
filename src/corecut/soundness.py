"""Soundness: whether the clusters of a partition are clusters, told by their sizes and by how hard each is to split.

Two kinds of partitions are sound. Where clusters are about even (:func:`acceptable`), it is enough that no giant among them
falls into parts. Where they are not, crumbs beside a giant, which is what the plain cut of many real graphs has, must be told
apart from communities of very different sizes, which it finds, too. What tells is the giant: there is always more that hangs
on it by an edge, whereas a community is much harder to split than it was to separate from others (:func:`whole`).
"""

from __future__ import annotations

import numpy as np

from corecut._typing import BoolArray, FloatArray, LabelArray
from corecut.repair import split_costs
from corecut.weighted import WeightedGraph, sums_by

# The least share of the mean's nodes that the median cluster has.
_LEAST_MEDIAN = 0.3
# A giant has more than this share of the nodes, and so many times the mean. It falls into parts where a split of it cuts at
# most so many times what usually separates clusters.
_GIANT_SHARE, _GIANT_FACTOR, _DIVISIBLE = 0.2, 2.5, 1.6
# A speck has less than this share of the mean's nodes, and of its volume; one cluster of so many may be one. However small, a
# cluster of so many nodes is no speck where all clusters are whole.
_SPECK, _SPECKS, FEW = 0.05, 6, 20
# Whole clusters are so many times as hard to split as to separate: always, where a split cuts much of what chance would, and
# anywhere.
_WHOLE = (1.2, 1.6, 2.5)
# The best halves of a random graph with d neighbours per node cut 1/2 - _GROUND_STATE/√d of its edges (Dembo, Montanari and Sen
# 2017), but never less than what follows. A split below the first share of that is no chance; one above the second may be of
# one cloud of points.
_GROUND_STATE, _LEAST_CHANCE, _STRUCTURE, MUCH_OF_CHANCE = 0.7632, 0.1, 0.95, 0.3
# From so many neighbours per node on chance tells of noise: if it cuts less than a split of the clusters that so many of the
# nodes are in, and of the others no split cuts less than so much of it; and if most clusters are of so many groups of nodes,
# and all have this share of the mean's nodes (made of nodes, of groups).
_LEAST_DEGREE, _MOST_NODES, _LEAST_HARD, _LEAST_MEMBERS, _LEAST_IN_NOISE = 5.5, 0.9, 0.6, 3, (0.02, 0.05)
# A speck of so many nodes and more that does not fall apart is a community.
_LEAST_COMMUNITY = 6


def acceptable(
    level: WeightedGraph,
    labels: LabelArray,
    k: int,
    *,
    least: float = _LEAST_MEDIAN,
    most: int | None = None,
    mean_degree: float = np.inf,
    n_jobs: int | None = None,
) -> bool:
    """Say whether clusters are clusters: not crumbs beside a giant that falls into parts itself.

    Crumbs: the median cluster has less than 0.3 of the mean's nodes, or another share. The median does not notice one crumb of
    two or three clusters: no more clusters than so many, by default a sixth of them, may be specks of less than a twentieth of
    the mean's nodes and volume. A giant has more than a fifth of the nodes and 2.5 times the mean. It falls into parts where a
    split of it cuts no more than 1.6 times what usually separates clusters here, and less than the best split of a random graph
    of so many neighbours per node: where clusters are noisy, any split of a homogeneous one cuts less than what separates them.
    """
    sizes = sums_by(labels, level.sizes, k)
    few = count_specks(level, labels, k) <= (most_specks(k) if most is None else most)
    if not few or np.median(sizes) < least * sizes.mean():
        return False
    giant = sizes > max(_GIANT_SHARE, _GIANT_FACTOR / k) * sizes.sum()
    if not giant.any():
        return True
    costs, usual, by_chance = split_room(level, labels, giant, k, mean_degree=mean_degree, n_jobs=n_jobs)
    return bool(np.all(costs > np.minimum(_DIVISIBLE * usual, _STRUCTURE * by_chance)))


def whole(level: WeightedGraph, labels: LabelArray, k: int, *, mean_degree: float = np.inf, n_jobs: int | None = None) -> bool:
    """Say whether every cluster is a community, of whatever size: much harder to split than clusters were to separate.

    A split of each cuts more than 1.2 times what usually separates clusters here, and more than 2.5 times that or than the best
    split of a random graph. Where a cloud of points is one community, any split of it cuts less than chance: 1.6 times what
    separates clusters is enough there, if it is a good part of chance. In noise it is enough that chance cuts less than a split
    of nearly all. No more than a sixth of the clusters may be specks that fall apart, or of fewer than six nodes.
    (docs/sparse-graphs.md has what was measured.)
    """
    costs, usual, by_chance = split_room(level, labels, np.ones(k, bool), k, mean_degree=mean_degree, n_jobs=n_jobs)
    sizes, members = sums_by(labels, level.sizes, k), np.bincount(labels, minlength=k)
    # A tree that hangs on an edge falls apart; a small community does not.
    cohesive = (sizes >= _LEAST_COMMUNITY) & (costs > by_chance) & (mean_degree >= _LEAST_DEGREE)
    if np.count_nonzero(specks(level, labels, k, most=FEW) & ~cohesive) > most_specks(k):
        return False
    hard = (costs > _WHOLE[2] * usual) | (costs > _STRUCTURE * by_chance)
    hard |= (costs > _WHOLE[1] * usual) & (costs > MUCH_OF_CHANCE * by_chance)
    hard &= costs > _WHOLE[0] * usual
    least = _LEAST_IN_NOISE[int(level.sizes.max() > 1)]
    few = np.count_nonzero(members < _LEAST_MEMBERS) <= most_specks(k) and sizes.min() >= least * sizes.mean()
    if mean_degree < _LEAST_DEGREE or not few:
        return bool(np.all(hard))
    # In noise clusters come apart as easily as they split, which is as easily as any random graph does. Some of the small ones
    # split more easily. (Of a sparse graph chance says nothing, and a single group may be whatever is small.)
    hard |= costs > by_chance
    return bool(sizes[hard].sum() >= _MOST_NODES * sizes.sum() and np.all(hard | (costs > _LEAST_HARD * by_chance)))


def most_specks(k: int) -> int:
    """Return how many of k clusters may be specks."""
    return k // _SPECKS


def count_specks(level: WeightedGraph, labels: LabelArray, k: int, most: float = np.inf) -> int:
    """Count clusters of less than a twentieth of the mean's nodes, and of its volume, and no more nodes than so many."""
    return int(np.count_nonzero(specks(level, labels, k, most=most)))


def specks(level: WeightedGraph, labels: LabelArray, k: int, *, most: float) -> BoolArray:
    """Return which clusters :func:`count_specks` counts."""
    sizes, volumes = sums_by(labels, level.sizes, k), sums_by(labels, level.graph.degrees, k)
    small: BoolArray = (sizes < np.minimum(_SPECK * sizes.mean(), most)) & (volumes < _SPECK * volumes.mean())
    return small


def split_room(
    level: WeightedGraph, labels: LabelArray, wanted: BoolArray, k: int, *, mean_degree: float, n_jobs: int | None
) -> tuple[FloatArray, float, FloatArray]:
    """Return what the best split of each wanted cluster cuts, what separates clusters on average, and what chance would cut."""
    costs, conductances = split_costs(level, labels, wanted, k, n_jobs=n_jobs)
    by_chance = 0.5 - _GROUND_STATE * np.sqrt((1.0 - conductances[wanted]) / mean_degree)
    return costs, float(conductances.mean()), np.maximum(by_chance, _LEAST_CHANCE)
