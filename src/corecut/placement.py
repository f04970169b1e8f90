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
    isolated = volume == 0
    tiny = (volume < share * graph.volume) & (nodes < share * sizes.sum())
    if volume[tiny].sum() >= 0.5 * graph.volume:  # a graph of small pieces: they are what there is to cluster
        tiny = isolated
    main = ~(tiny | isolated)[component]
    return main if np.count_nonzero(main) >= n_clusters else np.asarray(graph.degrees > 0)


def place_rest(
    graph: Graph, sizes: FloatArray, labels: LabelArray, main: BoolArray, *, n_clusters: int, max_size: float | None = None
) -> LabelArray:
    """Label the nodes outside `main`, a component at a time: an empty cluster, or the largest by volume with room, takes it."""
    if main.all():
        return labels
    labels = labels.copy()
    volume = np.bincount(labels[main], graph.degrees[main], minlength=n_clusters)
    filled = np.bincount(labels[main], sizes[main], minlength=n_clusters).tolist()
    order = np.argsort(-volume, kind="stable").tolist()
    empty = [j for j in reversed(order) if filled[j] == 0]
    rest = np.flatnonzero(~main)
    component = np.unique(graph.components()[1][rest], return_inverse=True)[1]
    needs = np.bincount(component, sizes[rest])
    bound, least, first = np.inf if max_size is None else max_size, needs.min(), 0
    targets = []
    for need in needs.tolist():
        # There may be millions of isolated nodes: a cluster without room for the smallest component is never asked again.
        while first < n_clusters and filled[order[first]] + least > bound:
            first += 1
        room = (order[i] for i in range(first, n_clusters) if filled[order[i]] + need <= bound)
        target = empty.pop() if empty else next(room, None)
        if target is None:
            target = min(range(n_clusters), key=filled.__getitem__)
        filled[target] += need
        targets.append(target)
    labels[rest] = np.array(targets, np.int32)[component]
    return labels


def place_isolated(graph: Graph, labels: LabelArray, n_clusters: int) -> LabelArray:
    """Put the nodes without edges into the cluster of largest volume, where they weigh least."""
    if not graph.isolated.any():
        return labels
    volume = np.bincount(labels, graph.degrees, minlength=n_clusters)
    return np.where(graph.isolated, np.int32(volume.argmax()), labels).astype(np.int32)


def fill_empty(labels: LabelArray, n_clusters: int, weights: FloatArray, *, final: bool = True) -> LabelArray:
    """Give every empty cluster the heaviest node of the cluster that has most nodes, as long as one has two.

    The user is told where that is `final`; what repair and refinement go on from is no result yet.
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    empty = np.flatnonzero(sizes == 0)[: max(0, labels.size - np.count_nonzero(sizes))]
    if empty.size == 0:
        return labels
    labels = labels.copy()
    for j in empty:
        members = np.flatnonzero(labels == sizes.argmax())
        node = members[weights[members].argmax()]
        sizes[labels[node]] -= 1
        sizes[j] = 1
        labels[node] = j
    if final:
        warnings.warn(
            f"{empty.size} of {n_clusters} clusters attracted no node and got a single one; "
            "a larger coreset_size or fewer clusters would help",
            UserWarning,
            stacklevel=2,
        )
    return labels
