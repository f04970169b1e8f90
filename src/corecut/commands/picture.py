"""A picture of a clustering that needs no plotting library: the adjacency matrix, before and after sorting by cluster."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corecut._files import atomic_file
from corecut._typing import IntArray, LabelArray
from corecut.graph import Graph
from corecut.writers import row_blocks

_PIXELS = 480
_MARGIN = 16


def adjacency_picture(graph: Graph, labels: LabelArray, path: Path) -> None:
    """Write a PNG: left the matrix in the order of the file, right in the order of the clusters, darker for more edges.

    Clusters of small cut are dark squares on the diagonal of the right half.
    """
    order = np.argsort(labels, kind="stable")
    position = np.empty(graph.n_nodes, np.int64)
    position[order] = np.arange(graph.n_nodes)
    before, after = _density(graph, np.arange(graph.n_nodes)), _density(graph, position)
    height, width = _PIXELS + 2 * _MARGIN, 2 * _PIXELS + 3 * _MARGIN
    image = np.full((height, width), 255, np.uint8)
    image[_MARGIN : _MARGIN + _PIXELS, _MARGIN : _MARGIN + _PIXELS] = before
    image[_MARGIN : _MARGIN + _PIXELS, 2 * _MARGIN + _PIXELS : 2 * (_MARGIN + _PIXELS)] = after
    with atomic_file(path) as temporary:
        temporary.write_bytes(_png(image))


def _density(graph: Graph, position: IntArray) -> NDArray[np.uint8]:
    """Return the matrix as a square of pixels, 255 where there is no edge, on a logarithmic scale."""
    cell = position * _PIXELS // graph.n_nodes
    counts = np.zeros(_PIXELS * _PIXELS, np.int64)
    for begin, end in row_blocks(graph):
        rows = np.repeat(cell[begin:end], np.diff(graph.indptr[begin : end + 1]))
        columns = cell[graph.indices[int(graph.indptr[begin]) : int(graph.indptr[end])]]
        counts += np.bincount(rows * _PIXELS + columns, minlength=counts.size)
    shade = np.log1p(counts) / max(float(np.log1p(counts.max())), 1e-9)
    return np.round(255 * (1 - shade)).astype(np.uint8).reshape(_PIXELS, _PIXELS)


def _png(image: NDArray[np.uint8]) -> bytes:
    """Return a grey image as a PNG file (RFC 2083)."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = image.shape
    lines = b"".join(b"\0" + row.tobytes() for row in image)  # 0: this line is not predicted from another
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
