"""Placement: what components, isolated nodes and empty clusters decide without any eigenvector.

- A graph of exactly k components, or of at least k sizeable ones, is split along them: no edge is cut. The k largest found a
  cluster each, and every further component joins the cluster of least volume. So is one of which the sizeable components turn
  out not to fall into parts, if the clusters that the others make are sizeable.
- Otherwise tiny components (less than a tenth of the mean cluster's volume and nodes; together less than half of the volume)
  are set aside before the clustering: :mod:`corecut.small_parts` tells which are clusters. The others are put, one by one, into
  the cluster of largest volume that has room for them.
- Nodes without edges are nobody's: they go where a lower bound on sizes wants them, then to the cluster of largest volume
  that has room.
- A cluster that labelling left empty gets one node.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from corecut._typing import BoolArray, FloatArray, IntArray, LabelArray
from corecut.graph import Graph
from corecut.objective import Objective
from corecut.weighted import WeightedGraph, sums_by

# A tiny component, or cluster of components, has less than this share of the mean cluster.
TINY = 0.1


def tiny_components(volume: FloatArray, nodes: FloatArray, n_clusters: int) -> BoolArray:
    """Say which components are too small to be a cluster; those without volume are."""
    share = TINY / n_clusters
    tiny: BoolArray = (volume < share * volume.sum()) & (nodes < share * nodes.sum())
    # A graph of small pieces: they are what there is to cluster.
    return np.asarray(volume == 0) if volume[tiny].sum() >= 0.5 * volume.sum() else tiny | (volume == 0)


def split_by_components(
    level: WeightedGraph,
    n_clusters: int,
    objective: Objective,
    components: tuple[int, IntArray] | None = None,
    *,
    least: float | None = None,
) -> LabelArray | None:
    """Return k clusters that no edge leaves, where the components make them; None where they do not.

    `components` are those of :meth:`Graph.components`, where they are known already. Components make k clusters if there are k
    of them, or k sizeable ones; or, if `least` is given, as soon as each cluster has this share of the mean's nodes.
    """
    count, component = level.graph.components() if components is None else components
    volume = sums_by(component, level.graph.degrees, count)
    nodes = sums_by(component, level.sizes, count)
    parts = int(np.count_nonzero(volume))
    sizeable = int(np.count_nonzero(~tiny_components(volume, nodes, n_clusters)))
    if parts < n_clusters or (parts > n_clusters and sizeable < n_clusters and least is None):
        return None
    order = np.argsort(-volume, kind="stable")
    owner = np.zeros(count, np.int32)
    sizes = np.zeros(n_clusters)
    heap: list[tuple[float, int]] = []
    for rank, c in enumerate(order[:parts].tolist()):
        total, j = (0.0, rank) if rank < n_clusters else heapq.heappop(heap)
        owner[c] = j
        sizes[j] += nodes[c]
        heapq.heappush(heap, (total + float(volume[c]), j))
    smallest = objective.min_size if least is None else max(objective.min_size, least * sizes.mean())
    if np.any(sizes > objective.max_size) or np.any(sizes < smallest):
        return None
    labels: LabelArray = owner[component]
    return labels


def main_part(level: WeightedGraph, n_clusters: int) -> BoolArray:
    """Return the mask of the nodes that take part in the clustering: all but isolated ones and tiny components."""
    count, component = level.graph.components()
    volume = sums_by(component, level.graph.degrees, count)
    nodes = sums_by(component, level.sizes, count)
    main = ~tiny_components(volume, nodes, n_clusters)[component]
    return main if np.count_nonzero(main) >= n_clusters else np.asarray(level.graph.degrees > 0)


def place_rest(
    level: WeightedGraph, labels: LabelArray, main: BoolArray, *, n_clusters: int, max_size: float = math.inf
) -> LabelArray:
    """Label the nodes outside `main`, a component at a time: an empty cluster, or the largest by volume with room, takes it."""
    if main.all():
        return labels
    labels, sizes = labels.copy(), level.sizes
    volume = np.bincount(labels[main], level.graph.degrees[main], minlength=n_clusters)
    filled = np.bincount(labels[main], sizes[main], minlength=n_clusters).tolist()
    order = np.argsort(-volume, kind="stable").tolist()
    empty = [j for j in reversed(order) if volume[j] == 0]
    rest = np.flatnonzero(~main)
    component = np.unique(level.graph.components()[1][rest], return_inverse=True)[1]
    needs = np.bincount(component, sizes[rest])
    least, first = needs.min(), 0
    targets = []
    for need in needs.tolist():
        # There may be millions of components: a cluster without room for the smallest is never asked again.
        while first < n_clusters and filled[order[first]] + least > max_size:
            first += 1
        room = (order[i] for i in range(first, n_clusters) if filled[order[i]] + need <= max_size)
        target = empty.pop() if empty and need > 0 else next(room, None)
        if target is None:
            target = min(range(n_clusters), key=filled.__getitem__)
        filled[target] += need
        targets.append(target)
    labels[rest] = np.array(targets, np.int32)[component]
    return labels


def place_isolated(graph: Graph, labels: LabelArray, n_clusters: int, objective: Objective | None = None) -> LabelArray:
    """Put the nodes without edges where the bounds want them, then into the clusters of largest volume that have room."""
    alone = np.flatnonzero(graph.isolated)
    if alone.size == 0:
        return labels
    bounds = Objective() if objective is None else objective
    others = ~graph.isolated
    sizes = np.bincount(labels[others], minlength=n_clusters)
    volume = np.bincount(labels, graph.degrees, minlength=n_clusters)
    by_volume = np.argsort(-volume, kind="stable")
    wanted = np.maximum(np.ceil(max(bounds.min_size, 1.0)) - sizes, 0).astype(np.int64)
    room = np.where(math.isinf(bounds.max_size), alone.size, np.maximum(np.floor(bounds.max_size) - sizes - wanted, 0))
    targets = np.concatenate([_repeat(by_volume[::-1], wanted, alone.size), _repeat(by_volume, room, alone.size)])[: alone.size]
    placed = labels.copy()
    placed[alone[: targets.size]] = targets
    placed[alone[targets.size :]] = by_volume[0]
    return placed


def _repeat(clusters: IntArray, counts: FloatArray | IntArray, most: int) -> LabelArray:
    """Return each cluster as often as it takes nodes, `most` at most in all."""
    taken = np.minimum(np.cumsum(counts[clusters]), most)
    return np.repeat(clusters, np.diff(taken, prepend=0).astype(np.int64)).astype(np.int32)


def fill_empty(labels: LabelArray, n_clusters: int, weights: FloatArray) -> tuple[LabelArray, int]:
    """Give every empty cluster the heaviest node of the cluster that has most nodes, as long as one has two.

    Nodes without weight do not count: a cluster of isolated nodes is empty. Returns the labels and how many were filled.
    """
    sizes = np.bincount(labels[weights > 0], minlength=n_clusters)
    empty = np.flatnonzero(sizes == 0)[: max(0, np.count_nonzero(weights) - np.count_nonzero(sizes))]
    if empty.size == 0:
        return labels, 0
    labels = labels.copy()
    for j in empty:
        members = np.flatnonzero(labels == sizes.argmax())
        node = members[weights[members].argmax()]
        sizes[labels[node]] -= 1
        sizes[j] = 1
        labels[node] = j
    return labels, int(empty.size)
