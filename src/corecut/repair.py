"""Repair: undo what k-means gets wrong, which moves of nodes cannot.

Three changes, each looked at for all clusters at once:

- split a cluster in two: kept rises by gain_j. A few Lanczos steps on the graph without the edges between clusters give every
  cluster's second eigenvector, and one pass over the edges the best border along it;
- merge two clusters: kept falls by loss_ij, from the graph of clusters;
- divide two adjacent clusters anew: merge them and split the union by its own second eigenvector.

A split is paired with the cheapest merge of two other clusters, and both are made where gain_j > loss_ij. Clusters of different
changes are distinct, so the changes of F are exact and add up; then nodes are moved one by one, and in chains. It ends when
nothing pays or F has settled. Because every cluster pays a fee for existing (:mod:`corecut.objective`), crumbs do not pay,
and no other rule keeps them away. Splits and merges respect the bounds on sizes; a cluster above them is split first, whatever
it costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._random import as_generator
from corecut._typing import AnyArray, BoolArray, FloatArray, IntArray, LabelArray, RandomState
from corecut._validation import thread_count
from corecut.objective import Objective
from corecut.refinement import CLIMB, bring_into_bounds, climb_weighted, refine_weighted
from corecut.weighted import WeightedGraph, sums_by

# Lanczos steps towards the second eigenvector of each cluster on small and on large graphs, and what counts as small.
_STEPS, _STEPS_LARGE, _SMALL = 50, 30, 500_000
# Ritz vectors of each cluster that are tried as the direction of a split.
_VECTORS = 2
# Regularisation of the eigenvectors along which clusters are divided anew where bounds are too tight for merges.
_SHARES = (0.0, 0.5, 2.0)
# And how many times as many rounds there are then.
_TIGHT = 3
# What a change must gain, as a share of F/k.
_LEAST_GAIN = 1e-3
# A cluster whose volume and association have changed by less than this share still splits as it did.
_CHANGED = 0.02
# Up to this many clusters all pairs may be merged, beyond it adjacent ones only.
_ALL_PAIRS = 512
# How many merges are looked at for every cluster at first, and how many times as many when these do not suffice.
_LOOKED_AT, _MORE = 16, 16
# On graphs of up to this many entries chains of moves are looked for after every round, on larger ones at the end.
_CHEAP = 100_000
# Pairs that do not pay at once are tried so many times as often as one attempt has tries, at most.
_ATTEMPTS = 4
# Rounds in which single groups become clusters, one of each cluster at a time.
_FOUNDING = 20
# A round that lowers F by less than this share is the last one.
_SETTLED = 1e-3


@dataclass(frozen=True, eq=False)
class Repair:
    """A repaired and refined partition.

    Attributes
    ----------
    labels
        Cluster of every node.
    objective_before, objective
        F after refinement only, and of `labels`.
    n_changes, n_rounds
        Splits with merges and new divisions made, and rounds.
    """

    labels: LabelArray = field(repr=False)
    objective_before: float
    objective: float
    n_changes: int
    n_rounds: int


def repair_partition(
    level: WeightedGraph,
    labels: LabelArray,
    objective: Objective,
    n_clusters: int,
    *,
    max_rounds: int = 10,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Repair:
    """Refine a partition, then split, merge and divide clusters anew while that lowers the objective.

    Parameters
    ----------
    level, labels, objective, n_clusters
        The graph, its partition, F with its bounds, and k.
    max_rounds
        Largest number of rounds.
    random_state
        For the starting vectors of the Lanczos steps, and the order of searches.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Repair
    """
    generator = as_generator(random_state)
    small = level.graph.n_entries <= _CHEAP

    def refined(partition: LabelArray, *, climb: bool) -> tuple[LabelArray, float]:
        partition = bring_into_bounds(level, partition, objective, n_clusters)
        found = refine_weighted(level, partition, objective, n_clusters, max_passes=20, tolerance=_SETTLED / 10, n_jobs=n_jobs)
        if not climb:
            return found.labels, found.objective
        return climb_weighted(level, found.labels, objective, n_clusters, seed=int(generator.integers(2**31)))

    labels, value = refined(labels, climb=small)
    before, changes, rounds, idle = value, 0, 0, 0
    memory = _Memory(n_clusters, level.n_nodes)
    most_idle = 2
    while rounds < max_rounds and n_clusters > 1 and idle < most_idle:
        state = _State(level, labels, objective, n_clusters, n_jobs)
        # Pairs of splits and merges, and new divisions, in turn; two rounds in a row without a change end it. Where bounds
        # leave no merge, divisions must do everything, and which ones are tried is drawn anew each time: more patience,
        # where that is cheap.
        if rounds == 0 and small and n_clusters > 2 and not state.may_merge:
            max_rounds, most_idle = _TIGHT * max_rounds, _TIGHT + 2
        least, paired = _LEAST_GAIN * value / n_clusters, rounds % 2 == 0 and state.may_merge
        rounds += 1
        changed, made = _pairs(state, least, generator, memory) if paired else _divisions(state, least, generator)
        if made == 0:
            idle += 1
            continue
        candidate, found = refined(changed, climb=small)
        fallen = value - found
        if fallen <= 0 and not state.above.any():
            idle += 1
            continue
        labels, value, changes = candidate, found, changes + made
        idle = idle + 1 if fallen < _SETTLED * value else 0
    if not small and level.graph.n_entries <= CLIMB:
        labels, value = refined(labels, climb=True)
    return Repair(labels, before, value, changes, rounds)


def try_pairs(
    level: WeightedGraph,
    labels: LabelArray,
    value: float,
    objective: Objective,
    n_clusters: int,
    *,
    tries: int,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> tuple[LabelArray, float]:
    """Make splits with merges that do not pay by themselves, one at a time; keep one that pays when nodes have moved.

    A border along an eigenvector is not the best one, nor is that of two clusters that were merged: what a pair gains is
    known only after refinement. So the `tries` pairs that lose least are made, each from the same partition, until one of
    them has a lower F; then all over again. Returns labels and F, inside the bounds if the partition was.
    """
    generator, given = as_generator(random_state), labels
    least, left = _LEAST_GAIN * value / n_clusters, _ATTEMPTS * tries
    while left > 0 and 2 < n_clusters <= _ALL_PAIRS:
        state = _State(level, labels, objective, n_clusters, n_jobs)
        if state.above.any() or not state.may_merge:
            break
        gains, first_part = _splits(state, objective, generator, np.ones(n_clusters, bool))
        before = labels
        for j, kept, freed in _least_losses(state, gains, min(tries, left)):
            changed = np.where(before == freed, kept, before)
            changed[(before == j) & first_part] = freed
            left -= 1
            found = refine_weighted(
                level, changed, objective, n_clusters, max_passes=20, tolerance=_SETTLED / 10, n_jobs=n_jobs
            )
            if value - found.objective > least:
                labels, value = found.labels, found.objective
                break
        if labels is before:
            break
    if labels is not given and level.graph.n_entries <= CLIMB:
        return climb_weighted(level, labels, objective, n_clusters, seed=int(generator.integers(2**31)))
    return labels, value


def _least_losses(state: _State, gains: FloatArray, count: int) -> list[tuple[int, int, int]]:
    """Return the splits with merges of two other clusters that lose least: the cluster that is split, and the two."""
    losses, first, second = _merges(state, np.inf, count + state.n_clusters)
    found = []
    for j in np.argsort(-gains, kind="stable")[:count]:
        others = np.flatnonzero((first != j) & (second != j))[:count]
        found += [(losses[at] - gains[j], int(j), int(first[at]), int(second[at])) for at in others if gains[j] > -np.inf]
    return [(j, kept, freed) for _, j, kept, freed in sorted(found)[:count]]


def found_clusters(
    level: WeightedGraph, labels: LabelArray, objective: Objective, n_clusters: int, *, n_jobs: int | None = None
) -> tuple[LabelArray, int]:
    """Let single nodes of a quotient, groups that is, be clusters where they are better ones than two others are apart.

    Groups of a finer level may be well separated and yet too small to be seen on the quotient that draws are made on. Returns
    labels and how many clusters are new.
    """
    graph, founded = level.graph, 0
    loops = np.zeros(level.n_nodes) if graph.diagonal is None else graph.diagonal
    for _ in range(_FOUNDING):
        state = _State(level, labels, objective, n_clusters, n_jobs)
        own: FloatArray = _core.cluster_margins(graph.matrix, labels, n_clusters, thread_count(n_jobs))[0]
        volume, size = state.volume[labels] - graph.degrees, state.size[labels] - level.sizes
        left = state.association[labels] - 2 * own - loops
        gains = objective.kept(loops, graph.degrees) + objective.kept(left, volume) - state.kept[labels]
        allowed = (graph.degrees > 0) & (volume > 0) & (np.minimum(level.sizes, size) >= objective.min_size)
        gains = np.where(allowed & (level.sizes <= objective.max_size), gains, -np.inf)
        by_gain = np.argsort(-gains, kind="stable")
        best = by_gain[np.unique(labels[by_gain], return_index=True)[1]]  # of every cluster that has nodes
        of_cluster = np.full(n_clusters, -np.inf)
        of_cluster[labels[best]] = gains[best]
        chosen = np.zeros(level.n_nodes, bool)
        chosen[best[np.isfinite(gains[best])]] = True
        found, made = _pair_up(state, of_cluster, chosen, _LEAST_GAIN * (1.0 - float(state.kept.mean())))
        if not made:
            break
        labels, founded = found.astype(np.int32), founded + made
    return labels, founded


def split_costs(
    level: WeightedGraph, labels: LabelArray, wanted: BoolArray, n_clusters: int, *, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return what the best split of each wanted cluster adds to F, halved, and the conductance of every cluster.

    A half is what a split by lot costs, whatever leaves the cluster.
    """
    state = _State(level, labels, Objective(), n_clusters, n_jobs)
    gains, _ = _splits(state, Objective(), as_generator(0), wanted)
    costs: FloatArray = (1.0 - gains[wanted]) / 2
    return costs, 1.0 - state.kept


@dataclass(frozen=True, eq=False)
class _State:
    """A partition and the sums of its clusters."""

    level: WeightedGraph
    labels: LabelArray
    objective: Objective
    n_clusters: int
    n_jobs: int | None

    def __post_init__(self) -> None:
        k, labels, graph = self.n_clusters, self.labels, self.level.graph
        indptr, indices, weights = _core.contract(graph.matrix, labels, k, thread_count(self.n_jobs))
        association = sp.csr_array((weights, indices, indptr), shape=(k, k)).diagonal()
        volume = sums_by(labels, graph.degrees, k)
        object.__setattr__(self, "between", {"indptr": indptr, "indices": indices, "weights": weights})
        object.__setattr__(self, "volume", volume)
        object.__setattr__(self, "association", association)
        object.__setattr__(self, "size", sums_by(labels, self.level.sizes, k))
        object.__setattr__(self, "kept", self.objective.kept(association, volume))

    between: dict[str, AnyArray] = field(init=False)  # the graph of clusters, as kernels take it
    volume: FloatArray = field(init=False)
    association: FloatArray = field(init=False)
    size: FloatArray = field(init=False)
    kept: FloatArray = field(init=False)

    @property
    def may_merge(self) -> bool:
        """Whether a split can be paid by a merge of two other clusters, and any merge stays within the bounds."""
        smallest = np.partition(self.size, 1)[:2].sum() if self.n_clusters > 2 else np.inf
        return bool(smallest <= self.objective.max_size)

    @property
    def above(self) -> BoolArray:
        """Clusters above the largest size."""
        return np.asarray(self.size > self.objective.max_size)


class _Memory:
    """The best splits found so far, of clusters that have not changed much since: most clusters of most rounds."""

    def __init__(self, n_clusters: int, n_nodes: int) -> None:
        self.gains = np.full(n_clusters, -np.inf)
        self.first_part = np.zeros(n_nodes, bool)
        self.volume = np.full(n_clusters, np.nan)
        self.association = np.full(n_clusters, np.nan)

    def splits(self, state: _State, objective: Objective, generator: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        """Return gains and first parts of all clusters' best splits; look again only at those that have changed."""
        change = np.abs(state.volume - self.volume) + np.abs(state.association - self.association)
        changed = ~(change <= _CHANGED * state.volume)  # NaN at first
        gains, first_part = _splits(state, objective, generator, changed)
        self.gains = np.where(changed, gains, self.gains)
        self.first_part = np.where(changed[state.labels], first_part, self.first_part)
        self.volume = np.where(changed, state.volume, self.volume)
        self.association = np.where(changed, state.association, self.association)
        # All nodes of a remembered part may have left its cluster since: neither part may be empty now.
        inside = np.bincount(state.labels[self.first_part], minlength=state.n_clusters)
        whole = (inside > 0) & (inside < np.bincount(state.labels, minlength=state.n_clusters))
        return np.where(whole, self.gains, -np.inf), self.first_part


def _pairs(state: _State, least: float, generator: np.random.Generator, memory: _Memory) -> tuple[LabelArray, int]:
    """Make the pairs of splits and merges that pay, clusters above the bounds first; return labels and number of pairs."""
    f = state.objective
    # The larger part of a cluster above the bounds may be above them still, and is split again.
    gains, first_part = memory.splits(state, Objective(f.fee, f.min_size) if state.above.any() else f, generator)
    return _pair_up(state, gains, first_part, least)


def _pair_up(state: _State, gains: FloatArray, first_part: BoolArray, least: float) -> tuple[LabelArray, int]:
    """Make those of the splits that pay for the cheapest merge of two other clusters; return labels and number of pairs."""
    dearest = np.inf if state.above.any() else float(gains.max()) - least
    most = _LOOKED_AT * state.n_clusters
    while True:
        merges = _merges(state, dearest, most)
        into, other, made, complete = _paired(state, gains, least, merges)
        if complete or merges[0].size < most:
            break
        most *= _MORE  # those merges were not enough
    return np.where(first_part, other[state.labels], into[state.labels]), made


def _paired(
    state: _State, gains: FloatArray, least: float, merges: tuple[FloatArray, IntArray, IntArray]
) -> tuple[LabelArray, LabelArray, int, bool]:
    """Pair splits with merges: the new name of every cluster, and of its first part; how many pairs; if merges sufficed."""
    losses, first, second = merges
    into, other = np.arange(state.n_clusters, dtype=np.int32), np.arange(state.n_clusters, dtype=np.int32)
    made, cheapest, complete = 0, 0, True
    used = np.zeros(state.n_clusters, bool)
    by_gain = np.argsort(-gains, kind="stable")
    for j in np.concatenate([by_gain[state.above[by_gain]], by_gain[~state.above[by_gain]]]):
        if used[j] or gains[j] == -np.inf:
            continue
        while cheapest < losses.size and (used[first[cheapest]] or used[second[cheapest]]):
            cheapest += 1
        at = cheapest
        while at < losses.size and (used[first[at]] or used[second[at]] or j in (first[at], second[at])):
            at += 1
        if at == losses.size:
            complete = False
            continue
        if gains[j] - losses[at] <= least and not state.above[j]:
            break  # later splits gain less, later merges cost more
        kept, freed = first[at], second[at]
        used[[j, kept, freed]] = True
        into[freed] = other[freed] = other[kept] = kept  # the second cluster joins the first
        other[j] = freed  # and its name goes to the first part of the split
        made += 1
    return into, other, made, complete


def _divisions(state: _State, least: float, generator: np.random.Generator) -> tuple[LabelArray, int]:
    """Divide pairs of adjacent clusters anew where that pays; return labels and number of pairs.

    Every cluster is in one pair at most. Which pairs come first is drawn, in favour of those with much weight between them.
    """
    threads = thread_count(state.n_jobs)
    i, j, share = _core.adjacent_pairs(**state.between, volume=state.volume, threads=threads)
    share *= generator.random(share.size)
    taken = _core.take_pairs(i, j, share, state.n_clusters, threads)
    if not taken.size:
        return state.labels, 0
    a, b = i[taken], j[taken]
    union = np.arange(state.n_clusters, dtype=np.int32)
    union[b] = a
    together = _State(state.level, union[state.labels], state.objective, state.n_clusters, state.n_jobs)
    wanted = np.zeros(state.n_clusters, bool)
    wanted[a] = True
    # Where only divisions are left to do, along vectors of every kind; plain ones cut off what is too small to be a half.
    tau = 0.0 if state.may_merge else float(generator.choice(_SHARES))
    gains, first_part = _splits(together, state.objective, generator, wanted, regularization=tau)
    pays = gains[a] + together.kept[a] - state.kept[a] - state.kept[b] > least
    divided = np.full(state.n_clusters, -1, np.int32)  # by the pair's first cluster: its second
    divided[a[pays]] = b[pays]
    anew = divided[together.labels]
    changed = np.where(anew < 0, state.labels, np.where(first_part, anew, together.labels))
    return changed.astype(np.int32), int(np.count_nonzero(pays))


def _splits(
    state: _State,
    objective: Objective,
    generator: np.random.Generator,
    wanted: BoolArray,
    *,
    regularization: float = 0.0,
) -> tuple[FloatArray, BoolArray]:
    """Return the best split's gain for every wanted cluster, and the mask of all nodes in the first parts of these splits."""
    k = state.n_clusters
    gains, first, _ = best_splits(
        state.level,
        state.labels,
        wanted,
        objective=objective,
        low=np.full(k, objective.min_size),
        high=np.full(k, objective.max_size),
        both=True,
        generator=generator,
        regularization=regularization,
        n_jobs=state.n_jobs,
    )
    return gains, first


def best_splits(
    level: WeightedGraph,
    labels: LabelArray,
    wanted: BoolArray,
    *,
    objective: Objective,
    low: FloatArray,
    high: FloatArray,
    both: bool,
    generator: np.random.Generator,
    regularization: float = 0.0,
    steps: int | None = None,
    vectors: int = _VECTORS,
    n_jobs: int | None = None,
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Split the wanted clusters along their second eigenvectors; see `_kernels/repair.hpp`.

    Both parts of cluster j, or only the first, must have between low_j and high_j nodes. Regularised eigenvectors (by a share
    of the mean degree) look for parts of like size. There are `steps` of Lanczos, by default as many as suit the graph, and the
    best of `vectors` orders is taken. Returns how much kept rises by the best split of each cluster (-inf where there is none),
    the mask of all nodes in first parts, and the associations of the two parts of every cluster, in no order.
    """
    graph = level.graph
    gains, first, inside = _core.split_clusters(
        matrix=graph.matrix,
        degrees=graph.degrees,
        sizes=level.sizes,
        labels=labels,
        wanted=wanted.astype(np.uint8),
        objective=objective.native,
        low=low,
        high=high,
        both=both,
        regularization=regularization,
        steps=steps or (_STEPS if graph.n_entries <= _SMALL else _STEPS_LARGE),
        vectors=vectors,
        seed=int(generator.integers(2**63)),
        threads=thread_count(n_jobs),
    )
    return gains, first.astype(bool), inside.reshape(-1, 2)


def _merges(state: _State, dearest: float, most: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the losses of the allowed merges of two clusters, up to `dearest` and rising, with their two clusters.

    At most the cheapest `most` of them.
    """
    return _core.cheapest_merges(
        **state.between,
        association=state.association,
        volume=state.volume,
        size=state.size,
        objective=state.objective.native,
        dearest=dearest,
        most=most,
        any_two=state.n_clusters <= _ALL_PAIRS,
        threads=thread_count(state.n_jobs),
    )
