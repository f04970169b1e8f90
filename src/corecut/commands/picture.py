"""A picture of a clustering that needs no plotting library: the adjacency matrix, before and after sorting by cluster."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from corecut._files import atomic_file
from corecut._typing import LabelArray
from corecut.graph import Graph

_PIXELS = 480
_MARGIN = 16


def adjacency_picture(graph: Graph, labels: LabelArray, path: Path) -> None:
    """Write a PNG: left the matrix in the order of the file, right in the order of the clusters, darker for more edges.

    Clusters of small cut are dark squares on the diagonal of the right half.
    """
    from corecut.drawing import logarithmic, png, shade_matrix

    orders = [np.arange(graph.n_nodes), np.argsort(labels, kind="stable")]
    halves = logarithmic(shade_matrix(graph, orders, _PIXELS))
    side = len(halves[0])
    image = np.full((side + 2 * _MARGIN, 2 * side + 3 * _MARGIN), 255, np.uint8)
    for half, left in zip(halves, (_MARGIN, side + 2 * _MARGIN), strict=True):
        image[_MARGIN : _MARGIN + side, left : left + side] = np.round(255 * (1 - half))
    with atomic_file(path) as temporary:
        temporary.write_bytes(png(image))
