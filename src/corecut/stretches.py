"""Stretches: graphs that are long and thin, such as paths, ladders, caterpillars and rings, cut along their length.

Where bounds on sizes are tight, every border of such a graph has to be in its place: a node that one cluster has too many must
pass through all those up to one that has room, which no move of single nodes does. Pieces of an order that follows the graph,
by breadth or by depth from a far end, have their sizes and their borders at once.
"""

from __future__ import annotations

import numpy as np

from corecut._typing import IntArray, LabelArray
from corecut.weighted import WeightedGraph

# Graphs of more entries per node are not thin; larger ones take too long.
_MOST_PER_NODE, _MOST_ENTRIES = 16, 4_000_000


def stretches(level: WeightedGraph, n_clusters: int) -> list[LabelArray]:
    """Return partitions into pieces of like size of orders that follow the graph; none of one that is dense or in parts."""
    graph = level.graph
    inside = np.flatnonzero(graph.degrees > 0)
    if graph.n_entries > min(_MOST_PER_NODE * inside.size, _MOST_ENTRIES):
        return []
    from scipy.sparse.csgraph import breadth_first_order, depth_first_order  # loads much that few need

    adjacency = graph.adjacency
    reached = breadth_first_order(adjacency, int(inside[0]), return_predecessors=False)
    if reached.size < inside.size:
        return []
    far = int(reached[-1])
    walks = (walk(adjacency, far, return_predecessors=False) for walk in (breadth_first_order, depth_first_order))
    return [_pieces(level, order, n_clusters) for order in walks]


def _pieces(level: WeightedGraph, order: IntArray, n_clusters: int) -> LabelArray:
    sizes = level.sizes[order]
    middle = np.cumsum(sizes) - sizes / 2
    labels = np.zeros(level.n_nodes, np.int32)
    labels[order] = np.minimum(middle * (n_clusters / sizes.sum()), n_clusters - 1).astype(np.int32)
    return labels
