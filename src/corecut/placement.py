"""Placement: rules for what the clustering itself cannot decide.

- Isolated nodes and tiny components have no edge to any cluster; no cut depends on where they go. They are set aside before
  the clustering (a component is tiny when it has less than a tenth of the mean cluster's volume and nodes, and all tiny ones
  together have less than half of the volume) and put, component by component, into the cluster of largest volume that has room
  for them.
- Dangling trees are no components. Aggregation gathers them with what they hang on, and regularisation makes cutting them
  off dear.
- A cluster that labelling left empty gets one node.
"""

from __future__ import annotations

import warnings

import numpy as np

from corecut._typing import BoolArray, FloatArray, LabelArray
from corecut.graph import Graph

_TINY = 0.1


def main_part(graph: Graph, sizes: FloatArray, n_clusters: int) -> BoolArray:
    """Return the mask of the nodes that take part in the clustering: all but isolated ones and tiny components."""
    count, component = graph.components()
    volume = np.bincount(component, graph.degrees, minlength=count)
    nodes = np.bincount(component, sizes, minlength=count)
    share = _TINY / n_clusters
    tiny = (volume < share * graph.volume) & (nodes < share * sizes.sum())
    if volume[tiny].sum() >= 0.5 * graph.volume:  # a graph of small pieces: they are what there is to cluster
        tiny = volume == 0
    main = ~tiny[component]
    return main if np.count_nonzero(main) >= n_clusters else np.asarray(graph.degrees > 0)


def place_rest(
    graph: Graph, sizes: FloatArray, labels: LabelArray, main: BoolArray, *, n_clusters: int, max_size: float | None = None
) -> LabelArray:
    """Label the nodes outside `main`, a component at a time: the cluster of largest volume that has room takes it."""
    if main.all():
        return labels
    labels = labels.copy()
    volume = np.bincount(labels[main], graph.degrees[main], minlength=n_clusters)
    filled = np.bincount(labels[main], sizes[main], minlength=n_clusters)
    order = np.argsort(-volume, kind="stable")
    rest = np.flatnonzero(~main)
    component = graph.components()[1][rest]
    for nodes in np.split(rest[np.argsort(component, kind="stable")], np.flatnonzero(np.diff(np.sort(component))) + 1):
        need = sizes[nodes].sum()
        room = order[filled[order] + need <= (np.inf if max_size is None else max_size)]
        target = room[0] if room.size else int(filled.argmin())
        labels[nodes] = target
        filled[target] += need
    return labels


def place_isolated(graph: Graph, labels: LabelArray, n_clusters: int) -> LabelArray:
    """Put the nodes without edges into the cluster of largest volume, where they weigh least."""
    if not graph.isolated.any():
        return labels
    volume = np.bincount(labels, graph.degrees, minlength=n_clusters)
    return np.where(graph.isolated, np.int32(volume.argmax()), labels).astype(np.int32)


def fill_empty(labels: LabelArray, n_clusters: int, weights: FloatArray) -> LabelArray:
    """Give every empty cluster the heaviest node of the cluster that has most nodes."""
    sizes = np.bincount(labels, minlength=n_clusters)
    empty = np.flatnonzero(sizes == 0)
    if empty.size == 0:
        return labels
    labels = labels.copy()
    for j in empty:
        members = np.flatnonzero(labels == sizes.argmax())
        node = members[weights[members].argmax()]
        sizes[labels[node]] -= 1
        sizes[j] = 1
        labels[node] = j
    warnings.warn(
        f"{empty.size} of {n_clusters} clusters attracted no node and got a single one; "
        "a larger coreset_size or fewer clusters would help",
        UserWarning,
        stacklevel=2,
    )
    return labels
