"""What pictures of a partition are made of, for any plotting library: places, colours, cells of pixels. No library is needed.

Clusters are placed by the weights between them: springs along the strongest ties, every cluster pushing the others away, from a
start by eigenvectors. Up to 20 clusters have a colour and a shape of their own (7 colours that the colour-blind can tell apart,
times 3 shapes). Nobody can tell the colours of more clusters apart: neighbours are gathered into 7 groups that share one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from corecut import _core
from corecut._random import as_generator
from corecut._typing import FloatArray, IntArray, LabelArray
from corecut.aggregation import aggregate_graph
from corecut.draws import spectral_problem
from corecut.facts import PartitionFacts
from corecut.graph import Graph
from corecut.spectral import round_embedding, spectral_embedding
from corecut.weighted import WeightedGraph

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
"""Okabe and Ito's colours without black and yellow, which vanish on a dark or a light page, and with a grey."""
SHAPES = ("circle", "square", "triangle")
MOST_NAMED = 20
"""Up to so many clusters each has a colour and a shape of its own."""

NAMELESS = "(no name)"
"""What stands for an empty name, which could not be seen nor clicked."""

CURVES = {
    "cut": ("mean conductance", "Cut: the mean conductance of the clusters, which rises with their number; look for a bend."),
    "eigengap": ("eigengap", "Eigengap: the distance to the next eigenvalue; a high one speaks for its number."),
    "leap": ("leap", "Leap: what one more cluster would cost beside what the last one did; above 1 at the right number."),
    "stability": ("stability", "Stability: how far repeated draws agree; 1 where all find the same clusters."),
}
"""What may be known of each number of clusters: its short name, and how to read it."""

# Steps of the layout, clusters that push in each step where there are many, and the share of the picture that clusters cover.
_ROUNDS, _PUSHERS, _COVERED = 60, 96, 0.10
# From so many clusters on the points of an embedding that has to be computed are the clusters themselves.
_CLUSTERS_AS_POINTS = 300
# Up to so many columns of an embedding all of its axes are computed.
_FEW_COLUMNS = 256


@dataclass(frozen=True, eq=False)
class ClusterMap:
    """Clusters as discs in a unit square, with their strongest ties.

    Attributes
    ----------
    places
        Middle of every disc, of shape (k, 2).
    radii
        Radius of every disc; its area is the cluster's share of the volume.
    first, second, weights
        The ties that are drawn: two clusters and the weight between them.
    """

    places: FloatArray = field(repr=False)
    radii: FloatArray = field(repr=False)
    first: IntArray = field(repr=False)
    second: IntArray = field(repr=False)
    weights: FloatArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Palette:
    """Colour and shape of every cluster.

    Attributes
    ----------
    colours, shapes
        Position of every cluster's colour in COLOURS, and of its shape in SHAPES.
    order
        All clusters, those that are close to each other side by side.
    grouped
        Whether clusters share colours with their neighbours.
    """

    colours: IntArray = field(repr=False)
    shapes: IntArray = field(repr=False)
    order: IntArray = field(repr=False)
    grouped: bool

    def colour(self, cluster: int) -> str:
        """Return the colour of a cluster as #rrggbb."""
        return COLOURS[int(self.colours[cluster])]


def map_clusters(facts: PartitionFacts, clusters: IntArray | None = None) -> ClusterMap:
    """Place clusters (all, or those given in rising order) by the weights between them, without overlaps."""
    volumes = facts.volumes if clusters is None else facts.volumes[clusters]
    k = volumes.size
    ties = facts.strongest
    if clusters is not None:
        ties = sp.csr_array(ties)[clusters][:, clusters].tocoo()
    i, j = (axis.astype(np.int64) for axis in ties.coords)
    shares = volumes / volumes.sum() if volumes.any() else np.full(k, 1.0 / k)  # without edges all discs are alike
    radii = np.sqrt(_COVERED * np.maximum(shares, 1e-3 / k) / np.pi)
    # No disc is more than a fifth of the picture, nor too small to be hit.
    radii = np.clip(radii, 0.0025, 0.12)
    if k <= 2:
        places = np.array([[0.5, 0.5]] if k == 1 else [[0.3, 0.5], [0.7, 0.5]])
        return ClusterMap(places, radii, i, j, ties.data)
    roots = np.sqrt(volumes)
    pull = ties.data / np.maximum(roots[i] * roots[j], 1e-300)
    pull = np.sqrt(pull / pull.max()) if pull.size else pull
    places = _springs(_start(ties, k), i, j, pull)
    return ClusterMap(_apart(places, radii), radii, i, j, ties.data)


def _start(ties: sp.coo_array, k: int) -> FloatArray:
    """Return first places: along two eigenvectors, each made even by ranks, and off the others by a little chance."""
    generator = as_generator(0)
    places = generator.normal(scale=0.02, size=(k, 2))
    if ties.nnz and k > 3:
        rows = spectral_embedding(ties + ties.T, 3, eigen_solver="subspace", random_state=0)
        for axis in range(min(2, rows.shape[1] - 1)):
            places[:, axis] += np.argsort(np.argsort(rows[:, axis + 1], kind="stable")) / k - 0.5
    else:
        angles = 2 * np.pi * np.arange(k) / k
        places += 0.4 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return places


def _springs(places: FloatArray, i: IntArray, j: IntArray, pull: FloatArray) -> FloatArray:
    """Let ties pull and all clusters push (Fruchterman and Reingold 1991), the push of many from a sample of them."""
    generator, k = as_generator(1), len(places)
    length = 1.0 / np.sqrt(k)
    ends, signs = np.stack([i, j]), np.repeat([1.0, -1.0], i.size)
    drawn_to = sp.csr_array((signs, (ends.ravel(), np.tile(np.arange(i.size), 2))), shape=(k, i.size))
    for heat in np.linspace(0.12, 0.004, _ROUNDS):
        others = np.arange(k) if k <= 2 * _PUSHERS else generator.choice(k, _PUSHERS, replace=False)
        (x, y), (across, down) = places.T, places[others].T
        push = length**2 * k / others.size / (np.subtract.outer(x, across) ** 2 + np.subtract.outer(y, down) ** 2 + 1e-6)
        force = places * push.sum(axis=1, keepdims=True) - push @ places[others]
        along = places[i] - places[j]
        drawn = along * (pull * np.hypot(along[:, 0], along[:, 1]) / length)[:, None]
        force -= drawn_to @ drawn
        force -= 0.6 * np.sqrt(k) * length * (places - places.mean(axis=0))  # nothing drifts away
        size = np.hypot(force[:, 0], force[:, 1])[:, None]
        places = places + force * np.minimum(1.0, heat / np.maximum(size, 1e-12))
    return np.asarray(places)


def _apart(places: FloatArray, radii: FloatArray) -> FloatArray:
    """Fit places into the unit square and move discs that overlap apart."""

    def fitted(at: FloatArray) -> FloatArray:
        low, high = (at - radii[:, None]).min(axis=0), (at + radii[:, None]).max(axis=0)
        room = 0.98 / np.maximum(high - low, 1e-9)
        middle = np.clip(0.5 + (at - (low + high) / 2) * room, 0.0, 1.0)
        return np.asarray(np.clip(middle, radii[:, None], 1 - radii[:, None]))

    places = fitted(places)
    for _ in range(60):
        pairs = cKDTree(places).query_pairs(2.2 * float(radii.max()), output_type="ndarray")
        gap = places[pairs[:, 0]] - places[pairs[:, 1]]
        distance = np.maximum(np.linalg.norm(gap, axis=1), 1e-9)
        reach = radii[pairs[:, 0]] + radii[pairs[:, 1]]
        lack = 1.1 * reach - distance
        close = lack > 0.05 * reach
        if not close.any():
            break
        a, b = pairs[close].T
        step = gap[close] / distance[close, None] * (lack[close] / 2)[:, None]
        for axis in range(2):
            places[:, axis] += np.bincount(a, step[:, axis], len(places)) - np.bincount(b, step[:, axis], len(places))
        places = np.clip(places, radii[:, None], 1 - radii[:, None])
    return np.asarray(places)


def palette_of(facts: PartitionFacts) -> Palette:
    """Return the colours and shapes of all clusters, and an order in which neighbours are side by side."""
    k = facts.n_clusters
    ties = facts.strongest
    line = np.arange(k, dtype=np.float64)
    groups = np.arange(k) % len(COLOURS)
    if k > 3 and ties.nnz:
        graph = Graph.from_matrix(sp.csr_array(ties + ties.T))
        many = len(COLOURS)
        rows = spectral_embedding(graph, min(many, k - 1), eigen_solver="subspace", random_state=0)
        line = rows[:, 1] / np.sqrt(np.where(graph.degrees > 0, graph.degrees, 1.0))
        if k > MOST_NAMED:
            groups = round_embedding(rows, many, weights=graph.degrees + 1e-12, random_state=0).astype(np.int64)
            # The largest group has the first colour.
            ranks = np.argsort(np.argsort(-np.bincount(groups, facts.volumes, many), kind="stable"))
            groups = ranks[groups]
    shapes = np.zeros(k, np.int64) if k > MOST_NAMED else np.arange(k) // len(COLOURS)
    along = groups if k > MOST_NAMED else np.zeros(k)
    return Palette(groups, shapes, np.lexsort((line, along)), k > MOST_NAMED)


def shade_matrix(graph: Graph, orders: list[IntArray], pixels: int) -> list[FloatArray]:
    """Return the adjacency matrix as squares of pixels, one for each order of the nodes, by one pass over the edges for each.

    Each value is the weight of a pixel's entries divided by their largest possible number; `orders` say which node comes first,
    second, ...
    """
    n, side = graph.n_nodes, min(pixels, graph.n_nodes)
    places = (np.arange(n) * side // n).astype(np.int32)
    width = np.bincount(places, minlength=side).astype(np.float64)
    squares = []
    for order in orders:
        cells = np.empty(n, np.int32)
        cells[order] = places
        squares.append(_core.cell_sums(graph.matrix, cells, side).reshape(side, side) / np.outer(width, width))
    return squares


def node_order(facts: PartitionFacts, order: IntArray) -> IntArray:
    """Return all nodes, cluster after cluster in the given order of clusters."""
    place = np.empty(facts.n_clusters, np.int64)
    place[order] = np.arange(facts.n_clusters)
    return facts.by_cluster(np.arange(facts.graph.n_nodes), place)


def logarithmic(squares: list[FloatArray]) -> list[FloatArray]:
    """Return shades between 0 and 1 on one logarithmic scale over four decades for all squares, with 0 for nothing."""
    most = max(float(shades.max(initial=0.0)) for shades in squares)
    if most == 0:
        return squares
    return [np.where(one > 0, np.clip(1 + np.log10(np.maximum(one / most, 1e-9)) / 4, 0.08, 1.0), 0.0) for one in squares]


def principal_axes(rows: FloatArray, count: int) -> FloatArray:
    """Return coordinates of an embedding's rows, scaled to length 1 as k-means sees them, along their widest directions."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled = np.divide(rows, lengths, out=np.zeros_like(rows, dtype=np.float64), where=lengths > 0)
    scaled = scaled - scaled.mean(axis=0)
    count = min(count, *scaled.shape)
    if scaled.shape[1] <= _FEW_COLUMNS:
        basis = np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1][:, :count]
        found = scaled @ basis
    else:  # a few rounds of subspace iteration: two or three of thousands of columns are looked at
        basis = as_generator(0).normal(size=(scaled.shape[1], count + 6))
        for _ in range(8):
            basis, _ = np.linalg.qr(scaled.T @ (scaled @ basis))
        reduced = scaled @ basis
        found = reduced @ np.linalg.svd(reduced, full_matrices=False)[2][:count].T
    # Signs are free: the larger end is on the right.
    signs = np.where(np.abs(found.max(axis=0)) >= np.abs(found.min(axis=0)), 1.0, -1.0)
    return np.asarray(found * signs)


def sample_rows(labels: LabelArray, most: int) -> IntArray:
    """Return rows to show, at most so many, from every cluster in proportion and from each at least one."""
    if labels.size <= most:
        return np.arange(labels.size)
    order = np.argsort(labels, kind="stable")
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    evenly = np.linspace(0, labels.size - 1, max(most - first.size, 1)).astype(np.int64)
    return np.sort(order[np.unique(np.concatenate([first[:most], evenly]))])


def png(pixels: NDArray[np.uint8], *, colour: str | None = None) -> bytes:
    """Return a grey image as a PNG file (RFC 2083); with a colour (#rrggbb) one of that colour, the more opaque the higher."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)  # 0: this line is not predicted from another
    head = struct.pack(">IIBBBBB", width, height, 8, 0 if colour is None else 3, 0, 0, 0)
    table = b""
    if colour is not None:
        table = chunk(b"PLTE", bytes.fromhex(colour.lstrip("#")) * 256) + chunk(b"tRNS", bytes(range(256)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + table + chunk(b"IDAT", zlib.compress(lines, 3)) + chunk(b"IEND", b"")


@dataclass(frozen=True, eq=False)
class EmbeddedPoints:
    """Points of an embedding: nodes, a coreset, or groups of nodes.

    Attributes
    ----------
    places
        Coordinates, one column for each axis, the widest first.
    labels
        Cluster of every point.
    weights
        Volume that every point stands for.
    kind
        What the points are.
    """

    places: FloatArray = field(repr=False)
    labels: LabelArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    kind: str


def embedded_points(facts: PartitionFacts, model: Any = None, *, axes: int = 3, most: int = 4000) -> EmbeddedPoints:
    """Return points to show: those a fitted model worked on, or else the nodes, or groups of nodes, of the graph.

    Groups never mix clusters, so that they show any labels. Of more than `most` points a sample from every cluster is taken.
    """
    rows = getattr(model, "embedding_", None)
    labels = getattr(model, "coreset_labels_", facts.labels)
    if rows is not None and rows.ndim == 2 and min(rows.shape) > 0 and labels.max() < facts.n_clusters:
        weights = getattr(model, "coreset_weights_", facts.graph.degrees)
        groups = bool(getattr(model, "aggregate_", False)) and labels.size < facts.graph.n_nodes
        sampled = getattr(model, "coreset_size_", rows.shape[0]) < rows.shape[0] or labels.size < facts.graph.n_nodes
        kind = "groups of nodes" if groups else "coreset nodes" if sampled else "nodes"
    else:
        level, labels = _level_for_points(facts)
        rows = spectral_embedding(
            spectral_problem(level, 0.1), min(max(facts.n_clusters, axes + 1), 12, level.n_nodes), eigen_solver="subspace",
            random_state=0, n_jobs=facts.n_jobs,
        )  # fmt: skip
        weights = level.graph.degrees
        kind = "nodes" if level.graph is facts.graph else "groups of nodes"
        kind = "clusters" if level.n_nodes == facts.n_clusters else kind
    shown = sample_rows(labels, most)
    kind = f"{shown.size:,} of {labels.size:,} {kind}" if shown.size < labels.size else f"{labels.size:,} {kind}"
    return EmbeddedPoints(principal_axes(rows[shown], axes), labels[shown], np.asarray(weights)[shown], kind)


def _level_for_points(facts: PartitionFacts) -> tuple[WeightedGraph, LabelArray]:
    """Return the graph, or a small quotient of it that respects the clusters, and the clusters of its nodes."""
    if facts.n_clusters >= _CLUSTERS_AS_POINTS:
        clusters = WeightedGraph(Graph.from_matrix(facts.between, check="none"), facts.sizes.astype(np.float64))
        return clusters, np.arange(facts.n_clusters, dtype=np.int32)
    whole = WeightedGraph(facts.graph, np.ones(facts.graph.n_nodes))
    levels = aggregate_graph(facts.graph, facts.n_clusters, n_jobs=facts.n_jobs)
    if not levels:
        return whole, facts.labels
    groups = np.arange(levels[-1].n_nodes)
    for level in reversed(levels):
        groups = groups[level.groups]
    pure, numbers = np.unique(groups * facts.n_clusters + facts.labels, return_inverse=True)
    return whole.contract(numbers.astype(np.int32), n_jobs=facts.n_jobs), (pure % facts.n_clusters).astype(np.int32)


def path_of(path: Any) -> dict[str, Any]:
    """Return the path of k as lists: "n_clusters", any of CURVES, and "chosen" where there is one.

    Parameters
    ----------
    path
        What :func:`corecut.select_n_clusters` returns, a model that chose its number of clusters, what `corecut scan --json`
        prints, or a mapping with these names.
    """
    path = getattr(path, "selection_", path)
    if hasattr(path, "path") and hasattr(path, "best"):
        path = {"path": path.path, "chosen": path.best}
    source: dict[str, Any] = dict(path) if isinstance(path, Mapping) else {}
    if "path" in source:
        steps = [{"n_clusters": step.get("k"), **step} if isinstance(step, Mapping) else vars(step) for step in source["path"]]
        names = {"n_clusters": "n_clusters", **dict(zip(CURVES, CURVES, strict=True)), "cut": "normalized_cut"}
        chosen = source.get("chosen", source.get("best"))
        source = {name: [step[key] for step in steps] for name, key in names.items() if all(key in step for step in steps)}
        source["chosen"] = chosen
    # JSON has no NaN: what is not known is None there. Of what is not known of any number there is nothing to draw.
    found = {
        name: [np.nan if value is None else float(value) for value in source[name]]
        for name in ("n_clusters", *CURVES)
        if source.get(name) is not None
    }
    found = {name: values for name, values in found.items() if np.isfinite(values).any()}
    if "n_clusters" not in found or len(found) < 2 or len({len(values) for values in found.values()}) != 1:
        raise ValueError(
            f'a path of k has "n_clusters" and any of {", ".join(CURVES)}, with one value for each number of clusters'
        )
    lists: dict[str, Any] = {**found, "n_clusters": [int(k) for k in found["n_clusters"]]}
    if source.get("chosen") is not None:
        lists["chosen"] = int(source["chosen"])
    return lists
