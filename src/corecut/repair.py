"""Repair: undo what k-means gets wrong, two true clusters merged while another one is split.

Single-node moves cannot mend that. A round of repair looks at all clusters at once:

- the best way to split each one in two, F falls by gain_j: a few power steps on the graph without the edges between clusters
  give every cluster's second eigenvector, and one pass over the edges the best cut along it;
- the cheapest way to merge two adjacent ones, F rises by loss_ij, from the graph of clusters;
- every split is paired with the cheapest merge of two other clusters, and both are made while gain_j - loss_ij ≥ 0.15. Clusters
  of different pairs are distinct, so the changes of F are exact and add up; then nodes are moved one by one as in refinement.

It ends when no pair pays or F has settled. F alone would trade true clusters for crumbs beside one giant (its minimum on many
real graphs), so that no part of a split may be smaller than a quarter of the mean cluster, and no merge may exceed the largest
allowed size. A cluster above that size, a giant, is split first, even at a small loss (`slack`): splitting it along its best
cut costs little on graphs without one dominant community, and is refused where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._random import as_generator
from corecut._typing import BoolArray, FloatArray, IntArray, LabelArray, RandomState
from corecut._validation import thread_count
from corecut.aggregation import contract
from corecut.graph import Graph
from corecut.refinement import refine_weighted

# A part of a split has at least this share of the mean cluster's size.
_LEAST_PART = 0.25
# Power steps towards the second eigenvector of each cluster, and how many random vectors try.
_STEPS, _VECTORS = 30, 2
# What a pair must gain. A true cluster that was split while two others were merged gives 0.3 and more on planted graphs; on
# real ones many small gains would trade communities for slightly better cuts (and lower agreement with known labels).
_LEAST_GAIN = 0.15
# Pairs of clusters looked at together.
_PAIRS = 1 << 20
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
    n_pairs, n_rounds
        Split-and-merge pairs made, and rounds.
    """

    labels: LabelArray = field(repr=False)
    objective_before: float
    objective: float
    n_pairs: int
    n_rounds: int


def repair_partition(
    graph: Graph,
    labels: LabelArray,
    *,
    sizes: FloatArray,
    tau: float,
    n_clusters: int,
    min_cluster_size: float | None = None,
    max_cluster_size: float | None = None,
    slack: float = 0.0,
    max_rounds: int = 10,
    max_passes: int = 20,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Repair:
    """Refine a partition, then split and merge clusters while that lowers the objective of `refinement`.

    Parameters
    ----------
    graph, labels, sizes, tau, n_clusters, min_cluster_size, max_cluster_size, max_passes, n_jobs
        As in :func:`corecut.refinement.refine_weighted`.
    slack
        How much F may rise when a cluster above `max_cluster_size` is split.
    max_rounds
        Largest number of rounds.
    random_state
        For the starting vectors of the power steps.

    Returns
    -------
    Repair
    """
    generator = as_generator(random_state)
    total = float(sizes.sum())
    largest = np.inf if max_cluster_size is None else max_cluster_size
    least = max(_LEAST_PART * total / n_clusters, 0.0 if min_cluster_size is None else min_cluster_size)

    def refined(partition: LabelArray) -> tuple[LabelArray, float]:
        result = refine_weighted(
            graph,
            partition,
            sizes=sizes,
            tau=tau,
            n_clusters=n_clusters,
            min_cluster_size=min_cluster_size,
            max_cluster_size=max_cluster_size,
            max_passes=max_passes,
            tolerance=_SETTLED / 10,
            n_jobs=n_jobs,
        )
        return result.labels, result.objective

    labels, objective = refined(labels)
    before, pairs, rounds = objective, 0, 0
    while rounds < max_rounds and n_clusters > 2:
        rounds += 1
        counted = np.bincount(labels, sizes, minlength=n_clusters)
        giants = counted > largest
        weighted = _Weighted(graph, labels, sizes, tau, n_clusters, n_jobs)
        splits = _splits(weighted, least, generator)
        # No split pays for a dearer merge.
        dearest = float(splits[0].max()) + (slack if giants.any() else -_LEAST_GAIN)
        changed, made = _pair(labels, splits, _merges(weighted, largest, dearest), giants, slack)
        if made == 0:
            break
        candidate, value = refined(changed)
        if value >= objective and not giants.any():
            break
        fallen = objective - value
        labels, objective, pairs = candidate, value, pairs + made
        if fallen < _SETTLED * objective and not giants.any():
            break
    return Repair(labels, before, objective, pairs, rounds)


@dataclass(frozen=True, eq=False)
class _Weighted:
    """A partition of a graph whose nodes stand for `sizes` original ones, with τ in units of weight."""

    graph: Graph
    labels: LabelArray
    sizes: FloatArray
    tau: float
    n_clusters: int
    n_jobs: int | None


def _splits(of: _Weighted, least: float, generator: np.random.Generator) -> tuple[FloatArray, list[IntArray]]:
    """Return the best split's gain for every cluster, and the nodes of its first part."""
    k, labels, graph = of.n_clusters, of.labels, of.graph
    gains = np.full(k, -np.inf)
    parts: list[IntArray] = [np.empty(0, np.int64)] * k
    for column in _second_vectors(of, generator).T:
        order = np.lexsort((column, labels))
        start = np.searchsorted(labels[order], np.arange(k + 1))
        found, prefix = _core.best_splits(
            graph.matrix,
            graph.degrees,
            of.sizes,
            labels,
            order,
            start,
            of.tau,
            float(of.sizes.sum()),
            least,
            thread_count(of.n_jobs),
        )
        for j in np.flatnonzero(found > gains):
            gains[j] = found[j]
            parts[j] = order[start[j] : start[j] + prefix[j]]
    return gains, parts


def _second_vectors(of: _Weighted, generator: np.random.Generator) -> FloatArray:
    """Return columns that come close to the second eigenvector of every cluster's own normalised graph, all at once.

    Without the edges between clusters the matrix is block diagonal, so that one power iteration serves all clusters; in each
    block the direction D^½1 is taken out.
    """
    graph, labels, sizes, k = of.graph, of.labels, of.sizes, of.n_clusters
    m = graph.n_nodes
    degrees = graph.degrees + of.tau * sizes
    degrees = np.where(degrees > 0, degrees, 1.0)
    root = np.sqrt(degrees)
    a = graph.adjacency
    rows = np.repeat(np.arange(m, dtype=np.int32), np.diff(a.indptr))
    same = labels[rows] == labels[a.indices]
    rows, columns = rows[same], a.indices[same]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=m))])
    values = a.data[same] / (root[rows] * root[columns])
    del rows, same
    inner = sp.csr_array((values, columns, starts), shape=(m, m))
    nodes = np.arange(m)
    trivial = sp.csr_array((root, (labels, nodes)), shape=(k, m))
    mass = np.maximum(np.bincount(labels, degrees, minlength=k), np.finfo(float).tiny)
    load = np.sqrt(of.tau / sizes.sum()) * sizes / root
    rank_one = sp.csr_array((load, (labels, nodes)), shape=(k, m))
    y = generator.standard_normal((m, _VECTORS))
    for step in range(_STEPS):
        y = 0.5 * (y + inner @ y + load[:, None] * (rank_one @ y)[labels])
        y -= root[:, None] * ((trivial @ y) / mass[:, None])[labels]
        if step % 10 == 0:  # blocks shrink at their own rates
            lengths = np.sqrt([np.bincount(labels, column**2, minlength=k) for column in y.T]).T
            y /= np.maximum(lengths, np.finfo(float).tiny)[labels]
    return y / root[:, None]


def _merges(of: _Weighted, largest: float, dearest: float) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the losses of the allowed merges of adjacent clusters, up to `dearest` and rising, with their two clusters."""
    names, groups = np.unique(of.labels, return_inverse=True)  # a cluster may be empty
    quotient = contract(of.graph, groups.astype(np.int32), of.sizes, n_jobs=of.n_jobs)
    count, share = quotient.sizes, of.tau / of.sizes.sum()
    # The degrees of a coreset's graph need not be its row sums.
    volume = np.bincount(groups, of.graph.degrees) + of.tau * count
    inner = (0.0 if quotient.graph.diagonal is None else quotient.graph.diagonal) + share * count * count
    kept = np.divide(inner, volume, out=np.zeros_like(volume), where=volume > 0)
    between = quotient.graph
    assert between.weights is not None, "contract gives every entry a weight"
    found = []
    # A few thousand clusters can have millions of adjacent pairs: some rows at a time.
    step = max(1, _PAIRS * names.size // max(between.n_entries, 1))
    for begin in range(0, names.size, step):
        rows = slice(begin, min(begin + step, names.size))
        part = slice(int(between.indptr[rows.start]), int(between.indptr[rows.stop]))
        i = np.repeat(np.arange(rows.start, rows.stop), np.diff(between.indptr[rows.start : rows.stop + 1]))
        j = between.indices[part]
        keep = (i < j) & (count[i] + count[j] <= largest) & (volume[i] > 0) & (volume[j] > 0)
        i, j, weight = i[keep], j[keep], between.weights[part][keep]
        merged = (inner[i] + inner[j] + 2 * (weight + share * count[i] * count[j])) / (volume[i] + volume[j])
        losses = kept[i] + kept[j] - merged
        cheap = losses <= dearest
        found.append((losses[cheap], i[cheap], j[cheap]))
    losses, first, second = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    order = np.argsort(losses, kind="stable")
    return losses[order], names[first[order]], names[second[order]]


def _pair(
    labels: LabelArray,
    splits: tuple[FloatArray, list[IntArray]],
    merges: tuple[FloatArray, IntArray, IntArray],
    giants: BoolArray,
    slack: float,
) -> tuple[LabelArray, int]:
    """Make the pairs of splits and merges that pay, giants first; return the new labels and the number of pairs."""
    gains, parts = splits
    losses, first, second = merges
    changed, made = labels.copy(), 0
    members = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[members], np.arange(gains.size + 1))
    used = np.zeros(gains.size, bool)
    by_gain = np.argsort(-gains, kind="stable")
    cheapest = 0
    for j in np.concatenate([by_gain[giants[by_gain]], by_gain[~giants[by_gain]]]):
        if used[j] or gains[j] == -np.inf:
            continue
        while cheapest < losses.size and (used[first[cheapest]] or used[second[cheapest]]):
            cheapest += 1
        at = cheapest
        while at < losses.size and (used[first[at]] or used[second[at]] or j in (first[at], second[at])):
            at += 1
        if at == losses.size:
            continue
        if gains[j] - losses[at] <= (-slack if giants[j] else _LEAST_GAIN):
            if giants[j]:
                continue
            break  # later splits gain less, later merges cost more
        kept, freed = first[at], second[at]
        used[[j, kept, freed]] = True
        changed[members[start[freed] : start[freed + 1]]] = kept
        changed[parts[j]] = freed
        made += 1
    return changed, made
