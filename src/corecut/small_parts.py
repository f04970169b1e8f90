"""Small parts: what becomes of components that are too small to be clusters, beside the part that is clustered.

- Where the plain cut is asked for (`balance=0`), each is a cluster.
- As many clusters as their nodes would fill are made of them: none of these cuts an edge.
- What is left, less than a cluster, joins the cluster of largest volume that has room (:mod:`corecut.placement`). But where the
  last few of the k clusters have to cut through what holds together, so that F is several times what it is with fewer clusters,
  the largest of the small components (a twentieth of the mean and more) are clusters instead, as long as these are clusters
  (:mod:`corecut.soundness`).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace

import numpy as np

from corecut._typing import BoolArray, LabelArray
from corecut.merging import merge_clusters
from corecut.objective import Objective
from corecut.placement import main_part, place_rest
from corecut.settings import Choices
from corecut.soundness import acceptable, whole
from corecut.weighted import WeightedGraph, sums_by

# Clusters are merged for small components where each merge leaves less than this share of F (0.5 and more where clusters are
# alike); for components of at least this share of the mean cluster's nodes, at most so many, and of up to so many clusters
# (merging takes a dense matrix).
_LEFT, _LEAST, _MOST_FOUNDERS, _MOST_CLUSTERS = 0.4, 0.05, 16, 1_000


@dataclass(frozen=True, eq=False)
class SmallParts:
    """The part of a graph that is clustered, and the components beside it.

    Attributes
    ----------
    level
        The graph, or quotient.
    main
        Mask of the nodes that are clustered.
    component
        For every other node that has edges the number of its component, by falling volume; else -1.
    cluster_of
        For every small component the cluster that it helps to fill, 0..n_clusters-1; -1 where it fills none.
    n_clusters
        Number of clusters that small components make.
    """

    level: WeightedGraph
    main: BoolArray
    component: LabelArray
    cluster_of: LabelArray
    n_clusters: int

    @classmethod
    def beside(cls, level: WeightedGraph, choices: Choices) -> SmallParts:
        """Divide a graph into its main part and the small components."""
        main = main_part(level, choices.n_clusters)
        component = np.full(level.n_nodes, -1, np.int32)
        rest = np.flatnonzero(~main & (level.graph.degrees > 0))
        if not rest.size:
            return cls(level, main, component, np.empty(0, np.int32), 0)
        number = np.unique(level.graph.components()[1][rest], return_inverse=True)[1].astype(np.int32)
        by_volume = np.argsort(-sums_by(number, level.graph.degrees[rest], int(number.max()) + 1), kind="stable")
        rank = np.empty(by_volume.size, np.int32)
        rank[by_volume] = np.arange(by_volume.size, dtype=np.int32)
        component[rest] = rank[number]
        nodes = sums_by(component[rest], level.sizes[rest], by_volume.size)
        if choices.wants_crumbs:
            return cls(level, main, component, np.arange(nodes.size, dtype=np.int32), nodes.size)
        mean = float(level.sizes[level.graph.degrees > 0].sum()) / choices.n_clusters
        n_clusters = min(int(nodes.sum() / mean), choices.n_clusters - 1) if choices.asked.refine else 0
        return cls(level, main, component, _filled(nodes, n_clusters, choices.max_cluster_size), n_clusters)

    def for_main(self, choices: Choices) -> Choices:
        """Return the choices for the main part alone."""
        rest = np.flatnonzero(self.component >= 0)
        filled = rest[self.cluster_of[self.component[rest]] >= 0]
        n_nodes = choices.n_nodes - int(self.level.sizes[filled].sum())
        return replace(choices, n_clusters=choices.n_clusters - self.n_clusters, n_nodes=n_nodes)

    def everywhere(self, found: LabelArray, n_main: int, most: float) -> LabelArray:
        """Return labels of all nodes, given those of the main part: clusters of small components come last."""
        return self._completed(found, n_main, self.cluster_of, most)

    def founders(self, part: WeightedGraph, labels: LabelArray, n_main: int, choices: Choices) -> int:
        """Return how many small components should be clusters, paid by merges of the main part's."""
        nodes = np.bincount(self.component[self.component >= 0], self.level.sizes[self.component >= 0])
        # The first in a row by volume; one cluster alone would cut nothing.
        large = int(np.argmin(np.append(nodes >= _LEAST * choices.n_nodes / n_main, False)))
        few = min(large, n_main - 2, _MOST_FOUNDERS)
        if not choices.adaptive or choices.bounded or self.n_clusters or few <= 0 or n_main > _MOST_CLUSTERS:
            return 0
        between, volume = _between(part, labels, n_main, choices.asked.n_jobs)
        merges = merge_clusters(between, volume, Objective(), down_to=n_main - few)
        objective = float(Objective().terms(between.diagonal(), volume).sum())
        left = objective - np.cumsum(merges.steps)
        enough = np.flatnonzero(left < _LEFT ** np.arange(1, few + 1) * objective)
        if not enough.size:
            return 0
        count = int(enough[0]) + 1
        found = self.with_founders(part, labels, n_main, count, n_jobs=choices.asked.n_jobs)
        mean_degree, n_jobs = choices.n_entries / choices.n_nodes, choices.asked.n_jobs
        good = acceptable(self.level, found, n_main, most=n_main, n_jobs=n_jobs)
        return count if good or whole(self.level, found, n_main, mean_degree=mean_degree, n_jobs=n_jobs) else 0

    def with_founders(
        self, part: WeightedGraph, labels: LabelArray, n_main: int, count: int, *, n_jobs: int | None = None
    ) -> LabelArray:
        """Return labels of all nodes where the largest small components are clusters, and as many others were merged."""
        merges = merge_clusters(*_between(part, labels, n_main, n_jobs), Objective(), down_to=n_main - count)
        cluster_of = np.arange(self.cluster_of.size, dtype=np.int32)
        cluster_of[count:] = -1
        return self._completed(merges.names(n_main - count)[labels], n_main - count, cluster_of, math.inf)

    def _completed(self, found: LabelArray, n_main: int, cluster_of: LabelArray, most: float) -> LabelArray:
        labels, placed = np.zeros(self.level.n_nodes, np.int32), self.main.copy()
        labels[self.main] = found
        rest = np.flatnonzero(self.component >= 0)
        own = cluster_of[self.component[rest]]
        labels[rest[own >= 0]] = n_main + own[own >= 0]
        placed[rest[own >= 0]] = True
        n_clusters = n_main + int(cluster_of.max(initial=-1)) + 1
        return place_rest(self.level, labels, placed, n_clusters=n_clusters, max_size=most)


def _filled(nodes: np.ndarray, n_clusters: int, most: float) -> LabelArray:
    """Fill clusters of like size with components, the largest first; -1 for those that no cluster has room for."""
    cluster_of = np.full(nodes.size, -1, np.int32)
    heap = [(0.0, j) for j in range(n_clusters)]
    for c in np.argsort(-nodes, kind="stable").tolist() if n_clusters else ():
        size, j = heap[0]
        if size + nodes[c] <= most:
            cluster_of[c] = j
            heapq.heapreplace(heap, (size + float(nodes[c]), j))
    return cluster_of


def _between(part: WeightedGraph, labels: LabelArray, n_clusters: int, n_jobs: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return weights between clusters and their volumes, in units of the largest: sums could be infinite."""
    between = np.zeros((n_clusters, n_clusters))
    found = part.contract(labels, n_jobs=n_jobs).graph.adjacency.toarray()
    between[: len(found), : len(found)] = found  # the last clusters may be empty
    between /= between.max()
    return between, between.sum(axis=1)
