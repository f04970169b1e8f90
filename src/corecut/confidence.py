"""Confidence: how sure a node's label is.

    margin_x = (A(x, own cluster) - max over other clusters of A(x, j)) / Σ_j A(x, j),      cut off at 0,

the share of a node's edge weight (its loop apart) that speaks for its cluster more than for the next one: 1 for a node inside,
0 for one on the border or without edges. When several draws were made, it is multiplied by the share of draws that agree on
the node with the best one, each draw's clusters being matched to the best one's by largest overlap. Draws are compared as they
were made, on the quotient where there is one and before the best of them was refined to the final partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._typing import FloatArray, LabelArray
from corecut._validation import compact_labels, thread_count
from corecut.engines import Engine
from corecut.graph import Graph, as_graph
from corecut.metrics import cluster_sums
from corecut.node_ids import in_node_order


def label_confidence(graph: Any, labels: Any, *, n_jobs: int | None = None) -> FloatArray:
    """Return every node's margin, between 0 and 1; see the module. One pass over the edges.

    Examples
    --------
    >>> import numpy as np
    >>> from corecut import label_confidence
    >>> path = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
    >>> label_confidence(path, [0, 0, 1, 1])
    array([1., 0., 0., 1.])
    """
    checked = as_graph(graph, n_jobs=n_jobs)
    partition, k = compact_labels(in_node_order(labels, checked), checked.n_nodes)
    return margins_of(checked, *_core.cluster_margins(checked.matrix, partition, k, thread_count(n_jobs)))


def partition_measures(
    graph: Graph, labels: LabelArray, n_clusters: int, engine: Engine
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return association and volume of every cluster and the margin of every node from one pass over the edges."""
    own, other = engine.margins(graph, labels, n_clusters)
    within = own if graph.diagonal is None else own + graph.diagonal
    association, volume = cluster_sums(labels, within, n_clusters), cluster_sums(labels, graph.degrees, n_clusters)
    return association, volume, margins_of(graph, own, other)


def margins_of(graph: Graph, own: FloatArray, other: FloatArray) -> FloatArray:
    """Return every node's margin, from its weight towards its own cluster (loops apart) and the next one."""
    weight = graph.degrees - (0.0 if graph.diagonal is None else graph.diagonal)
    return np.clip(np.divide(own - other, weight, out=np.zeros_like(own), where=weight > 0), 0.0, 1.0)


def agreement(labels: LabelArray, draws: Sequence[LabelArray], n_clusters: int) -> FloatArray:
    """Return the share of draws that put a node into the same cluster as `labels`, after matching clusters by overlap."""
    agreed = np.zeros(labels.size)
    for draw in draws:
        overlap = sp.csr_array((np.ones(labels.size), (draw, labels)), shape=(n_clusters, n_clusters)).tocsr()
        overlap.sum_duplicates()
        match = np.asarray(overlap.argmax(axis=1)).ravel()
        agreed += match[draw] == labels
    return agreed / len(draws)
