"""Facts about a partition, whoever made it: what plots and the report are drawn from, each computed when it is first asked for.

Two sums say whether clusters are clusters. Of clusters i and j, with the weight w_ij between them,

    tie h_ij = w_ij / (min(assoc_i, assoc_j) + w_ij),

the conductance of the border between them inside their union. Of one cluster, the same sum for its own best split in two, with
a fifth of the nodes on either side at least:

    cohesion c_j = h of the two parts.

A cluster is well separated where it keeps more than half of its weight and holds together more than twice as firmly as it
holds to any other (c_j > 2 max_i h_ij). Two clusters are nearly one where the border between them has most of what holds them
together (h_ij ≥ 0.7 max(c_i, c_j)). A cluster falls into two where the border inside it is weak (c_j < 0.2), and as weak as
those between clusters are or less than half of what is usual; in pairs it counts with what is usual, for its parts hold
together better than it does. Ties and cohesion know nothing of k, nor of noise that is spread over all clusters alike.

In planted partitions with clusters that were merged and others that were halved by chance (k = 8 to 1,000, up to half of the
edges leading out), h_ij / max(c_i, c_j) is 0.85 or more for all halves, and below 0.7 for all other pairs but a few in small
noisy graphs; all merged clusters but a few, of very unlike parts, fall into two, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._random import as_generator
from corecut._typing import AnyArray, BoolArray, FloatArray, IntArray, LabelArray
from corecut._validation import compact_labels, thread_count
from corecut.confidence import margins_of
from corecut.graph import Graph, as_graph
from corecut.metrics import cluster_sums
from corecut.objective import Objective
from corecut.repair import best_splits
from corecut.weighted import WeightedGraph

DOUBTFUL = 0.1
"""A node whose confidence is at most this much is doubtful: its next cluster would do nearly as well."""

# Least share of a cluster's nodes on either side of a split, regularisation of the vector it follows, and Lanczos steps. What
# hangs on a cluster by an edge is no half of it. On graphs of more than so many entries there are fewer steps, and one vector.
_LEAST_SHARE, _REGULARIZATION, _STEPS, _LARGE = 0.2, 0.2, 8, 500_000
# Share of the nodes, of the weakest clusters, that a thorough look is for, and its steps and vectors. More steps find no better
# borders: vectors that are nearer to the eigenvectors follow smaller and smaller appendages.
_SECOND_LOOK, _THOROUGH = 0.1, {"steps": 20, "vectors": 3}
# Connections of each cluster that count as strong.
_TIES = 3
# Up to so many clusters all weights between them are summed in one table.
_DENSE = 512
# Rows of the graph of clusters that are looked at together.
_ROWS = 256
# Clusters of fewer nodes are not split.
_SPLITTABLE = 10
# Times that a cluster must hold together more firmly than to another, to be apart from it.
_APART = 2.0
# Share of what holds two clusters together that the border between them has when they are nearly one.
_NEAR = 0.7
# A border inside a cluster is weak up to this cohesion, and as weak as those between clusters up to this factor.
_WEAK, _ALIKE = 0.2, 1.25


@dataclass(frozen=True, eq=False)
class PartitionFacts:
    """A graph, a partition of its nodes, and what follows from the two.

    Attributes
    ----------
    graph
        The graph.
    labels
        Cluster of every node, 0..k-1.
    cluster_names
        What the clusters are called: the labels as they were given.
    given_confidence
        How sure every label is, where a model knows more than the edges tell.
    n_jobs
        Number of threads; None for all cores.
    """

    graph: Graph
    labels: LabelArray = field(repr=False)
    cluster_names: AnyArray = field(repr=False)
    given_confidence: FloatArray | None = field(default=None, repr=False)
    n_jobs: int | None = None

    @property
    def n_clusters(self) -> int:
        """Number of clusters k."""
        return int(self.cluster_names.size)

    @cached_property
    def sizes(self) -> IntArray:
        """Number of nodes of every cluster."""
        return np.bincount(self.labels, minlength=self.n_clusters).astype(np.int64)

    @cached_property
    def volumes(self) -> FloatArray:
        """Sum of the degrees of every cluster."""
        return cluster_sums(self.labels, self.graph.degrees, self.n_clusters)

    @cached_property
    def between(self) -> sp.csr_array:
        """The graph of clusters: weight between any two, and twice the weight inside each on the diagonal."""
        k = self.n_clusters
        if k <= _DENSE:
            return sp.csr_array(_core.cell_sums(self.graph.matrix, self.labels, k).reshape(k, k))
        indptr, indices, weights = _core.contract(self.graph.matrix, self.labels, k, thread_count(self.n_jobs))
        return sp.csr_array((weights, indices, indptr), shape=(k, k))

    @cached_property
    def association(self) -> FloatArray:
        """Twice the weight inside every cluster; loops count once."""
        return np.asarray(self.between.diagonal(), dtype=np.float64)

    @cached_property
    def conductances(self) -> FloatArray:
        """Conductance of every cluster: the share of its volume that leaves it."""
        return Objective().terms(self.association, self.volumes)

    @cached_property
    def modularity(self) -> float:
        """Modularity of the partition; 0 for a graph without edges."""
        total = float(self.volumes.sum()) or 1.0
        return float(np.sum(self.association / total - (self.volumes / total) ** 2))

    @cached_property
    def _margins(self) -> tuple[FloatArray, FloatArray]:
        return _core.cluster_margins(self.graph.matrix, self.labels, self.n_clusters, thread_count(self.n_jobs))

    @cached_property
    def _own(self) -> FloatArray:
        """Weight of every node to others of its cluster."""
        if self.given_confidence is None:  # the margins will be asked for, too
            return self._margins[0]
        within = _core.within_cluster(self.graph.matrix, self.labels, None, thread_count(self.n_jobs))
        return within if self.graph.diagonal is None else within - self.graph.diagonal

    @cached_property
    def confidence(self) -> FloatArray:
        """How sure the label of every node is, between 0 and 1."""
        return margins_of(self.graph, *self._margins) if self.given_confidence is None else self.given_confidence

    @cached_property
    def _starts(self) -> IntArray:
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def _by_confidence(self) -> IntArray:
        """All nodes, cluster by cluster, the most doubtful first."""
        return self.by_cluster(_order(self.confidence))

    def doubtful_nodes(self, count: int) -> list[IntArray]:
        """Return the most doubtful nodes of every cluster."""
        return self._first_of(self._by_confidence, count)

    def central_nodes(self, count: int) -> list[IntArray]:
        """Return the most central nodes of every cluster: those with the largest weight to others of it."""
        own = self._own
        most = np.zeros(self.n_clusters)
        np.maximum.at(most, self.labels, own)
        share = np.divide(own, most[self.labels], out=np.zeros_like(own), where=own > 0)
        return self._first_of(self.by_cluster(_order(1.0 - share)), count)

    def by_cluster(self, nodes: IntArray, place: IntArray | None = None) -> IntArray:
        """Return nodes sorted by their clusters, or by the places of these, and otherwise as they were."""
        keys = self.labels[nodes] if place is None else place[self.labels[nodes]]
        return nodes[np.argsort(keys.astype(np.uint16) if self.n_clusters < 2**16 else keys, kind="stable")]

    def _first_of(self, order: IntArray, count: int) -> list[IntArray]:
        return [order[a : min(a + count, b)] for a, b in pairwise(self._starts.tolist())]

    def confidence_quantiles(self, shares: tuple[float, ...]) -> FloatArray:
        """Return quantiles of the confidence of every cluster's nodes, one row for each cluster."""
        within = self._starts[:-1, None] + np.floor(np.asarray(shares) * (self.sizes[:, None] - 1)).astype(np.int64)
        return np.asarray(self.confidence[self._by_confidence[within]])

    @cached_property
    def ties(self) -> sp.csr_array:
        """The ties h_ij between clusters that have an edge between them."""
        entries = self.between.tocoo()
        i, j = entries.coords
        apart = i != j
        i, j, weight = i[apart], j[apart], entries.data[apart]
        least = np.minimum(self.association[i], self.association[j])
        return sp.csr_array((weight / (least + weight), (i, j)), shape=self.between.shape)

    @cached_property
    def strongest(self) -> sp.coo_array:
        """The connections that say most: the three of largest weight of every cluster, each once, above the diagonal."""
        between, k = self.between, self.n_clusters
        found = []
        # Thousands of clusters may all be adjacent: some rows at a time, and no sorting of all their connections.
        for begin in range(0, k, _ROWS):
            block = between[begin : begin + _ROWS].toarray()
            block[np.arange(len(block)), np.arange(begin, begin + len(block))] = 0.0
            others = np.argpartition(-block, min(_TIES, k) - 1, axis=1)[:, :_TIES].ravel()
            own = np.repeat(np.arange(len(block)), min(_TIES, k))
            kept = block[own, others] > 0
            own, others = own[kept], others[kept]
            found.append((np.minimum(own + begin, others), np.maximum(own + begin, others), block[own, others]))
        low, high, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
        pairs, at = np.unique(low.astype(np.int64) * k + high, return_index=True)
        return sp.coo_array((weights[at], (pairs // k, pairs % k)), shape=(k, k))

    @cached_property
    def nearest(self) -> IntArray:
        """The cluster with the strongest tie to each; -1 where no edge leaves it."""
        ties = self.ties
        if ties.nnz == 0:
            return np.full(self.n_clusters, -1, np.int64)
        found = np.asarray(ties.argmax(axis=1)).ravel().astype(np.int64)
        return np.where(np.diff(ties.indptr) > 0, found, -1)

    @cached_property
    def strongest_tie(self) -> FloatArray:
        """The strongest tie of every cluster; 0 where no edge leaves it."""
        return np.asarray(self.ties.max(axis=1).toarray(), dtype=np.float64).ravel()

    @cached_property
    def cohesion(self) -> FloatArray:
        """Cohesion c_j of every cluster; 1 for those that are too small to be split.

        On a large graph a quick look at all clusters is followed by a thorough one at the weakest.
        """
        sizes = cluster_sums(self.labels, (self.graph.degrees > 0).astype(np.float64), self.n_clusters)
        wanted = sizes >= _SPLITTABLE
        if self.graph.n_entries <= _LARGE:
            return self._cohesion_of(wanted, sizes)
        found = self._cohesion_of(wanted, sizes, steps=_STEPS, vectors=1)
        order = np.argsort(found, kind="stable")
        weakest = np.zeros(self.n_clusters, bool)
        weakest[order] = np.cumsum(sizes[order]) <= _SECOND_LOOK * sizes.sum()
        return np.minimum(found, self._cohesion_of(wanted & weakest, sizes, **_THOROUGH))

    def _cohesion_of(self, wanted: BoolArray, sizes: FloatArray, **effort: int) -> FloatArray:
        """Return the cohesion of the wanted clusters, and 1 for the others."""
        k = self.n_clusters
        gains, _, halves = best_splits(
            WeightedGraph.of(self.graph),
            self.labels,
            wanted,
            objective=Objective(),
            low=_LEAST_SHARE * sizes,
            high=np.full(k, np.inf),
            both=True,
            generator=as_generator(0),
            regularization=_REGULARIZATION,
            n_jobs=self.n_jobs,
            **effort,
        )
        # What is inside the cluster and in neither part is counted from both ends.
        crossing = np.maximum(self.association - halves.sum(axis=1), 0.0) / 2
        least = halves.min(axis=1) + crossing
        split = np.isfinite(gains) & (least > 0)
        return np.asarray(np.divide(crossing, least, out=np.ones(k), where=split))

    @cached_property
    def loose(self) -> BoolArray:
        """Clusters that more than half of their weight leaves."""
        return np.asarray(self.conductances > 0.5)

    @cached_property
    def separated(self) -> BoolArray:
        """Well separated clusters."""
        return ~self.loose & (self.cohesion > _APART * self.strongest_tie) & ~self.falling

    @cached_property
    def near_pairs(self) -> list[tuple[int, int]]:
        """Pairs of clusters that are nearly one, the nearest first."""
        entries = self.ties.tocoo()
        i, j = entries.coords
        # What falls into two is held together by less than its parts are, and these are what the border is beside.
        firm = np.where(self._weak, np.maximum(self.cohesion, np.median(self.cohesion)), self.cohesion)
        firmest = np.maximum(firm[i], firm[j])
        share = np.divide(entries.data, firmest, out=np.full(i.size, np.inf), where=firmest > 0)
        near = np.flatnonzero((i < j) & (share >= _NEAR))
        near = near[np.argsort(-share[near], kind="stable")]
        return list(zip(i[near].tolist(), j[near].tolist(), strict=True))

    @cached_property
    def _weak(self) -> BoolArray:
        """Clusters with a weak border inside."""
        usual = float(np.median(self.cohesion))
        border = float(np.median(self.strongest_tie)) if self.n_clusters > 2 else 0.0
        weak = (self.cohesion < _WEAK) & ((self.cohesion <= _ALIKE * border) | (self.cohesion < usual / _APART))
        return np.asarray(weak)

    @cached_property
    def falling(self) -> BoolArray:
        """Clusters that fall into two: those with a weak border inside that are not loose altogether."""
        return self._weak & ~self.loose

    @cached_property
    def doubtful_share(self) -> float:
        """Share of the nodes whose label is doubtful."""
        return float(np.mean(self.confidence <= DOUBTFUL))

    def name(self, cluster: int) -> str:
        """Return what a cluster is called."""
        return str(self.cluster_names[cluster])

    def node_name(self, node: int) -> str:
        """Return what a node is called: its id in the graph's file, or its number."""
        return str(node if self.graph.node_ids is None else self.graph.node_ids[node])


def _compact(labels: Any, n_nodes: int) -> tuple[LabelArray, int]:
    """Return labels as 0..k-1 with k, without sorting those that are so already, such as a model's."""
    if isinstance(labels, np.ndarray) and labels.dtype == np.int32 and labels.shape == (n_nodes,) and labels.min() >= 0:
        most = int(labels.max()) + 1
        if most <= n_nodes and np.bincount(labels, minlength=most).all():
            return np.ascontiguousarray(labels), most
    return compact_labels(labels, n_nodes)


def _order(values: FloatArray) -> IntArray:
    """Return the order of values between 0 and 1, to 16 bits: small integers are sorted by counting, which is quick."""
    return np.argsort(np.round(65535 * values).astype(np.uint16), kind="stable")


def partition_facts(
    graph: Any, labels: Any, *, confidence: FloatArray | None = None, n_jobs: int | None = None
) -> PartitionFacts:
    """Return the facts about labels on a graph, computed when they are asked for.

    Parameters
    ----------
    graph
        A :class:`Graph` or anything it can be made from.
    labels
        Cluster of every node (integers, text or categories), or a fitted model that has them.
    confidence
        How sure every label is, where more is known than the graph tells; by default a model's own, or the margins.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    PartitionFacts

    Examples
    --------
    >>> from corecut import make_sbm, partition_facts
    >>> graph, truth = make_sbm(100, 3, 0.5, 0.01, random_state=0)
    >>> facts = partition_facts(graph, truth)
    >>> int(facts.separated.sum()), facts.near_pairs
    (3, [])
    """
    shape = np.shape(graph)
    if len(shape) == 2 and shape[0] != shape[1] and getattr(labels, "affinity_matrix_", None) is not None:
        raise ValueError("these are points, and facts are about a graph: give the model's affinity_matrix_ in their place")
    checked = as_graph(graph, n_jobs=n_jobs)
    if hasattr(labels, "labels_"):
        # A model that comes from a file does not have it any more.
        confidence = getattr(labels, "confidence_", None) if confidence is None else confidence
        labels = labels.labels_
    elif hasattr(labels, "fit"):
        raise ValueError(f"the {type(labels).__name__} is not fitted: call fit first")
    partition, k = _compact(labels, checked.n_nodes)
    example = np.empty(k, np.int64)  # any node of each cluster: it has the name
    example[partition] = np.arange(partition.size)
    names = np.asarray(labels)[example]
    return PartitionFacts(checked, partition, names, confidence, n_jobs)
