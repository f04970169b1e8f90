"""What the page shows, as plain lists and numbers: the table of clusters and the two drawings."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from corecut._typing import FloatArray, IntArray
from corecut.drawing import (
    COLOURS,
    NAMELESS,
    Palette,
    embedded_points,
    logarithmic,
    map_clusters,
    node_order,
    png,
    shade_matrix,
)
from corecut.facts import PartitionFacts
from corecut.reporting.words import STATUSES, statuses

# Bounds that keep the page small: clusters in the table and in the drawing, points of the embedding, letters of a name.
MOST_ROWS, MOST_DISCS, MOST_POINTS, MOST_LETTERS = 10_000, 2_000, 3_000, 48
# Nodes that are named for each cluster, and up to how many clusters; beyond it one.
_NODES, _FEW = 3, 2_500
_AXES = 4
# Letters that a long name keeps of its end.
_LAST = 16
_PIXELS = 360


def shown_clusters(facts: PartitionFacts) -> IntArray:
    """Return the clusters of the table, in rising order: all, or half the largest and half the worst."""
    k = facts.n_clusters
    if k <= MOST_ROWS:
        return np.arange(k)
    largest = np.argsort(-facts.sizes, kind="stable")[: MOST_ROWS // 2]
    worst = np.argsort(-facts.conductances, kind="stable")[: MOST_ROWS // 2]
    return np.unique(np.concatenate([largest, worst]))


def table(facts: PartitionFacts, palette: Palette, clusters: IntArray) -> dict[str, Any]:
    """Return the columns of the table of clusters; clusters are named by their position in it."""
    count = _NODES if clusters.size <= _FEW else 1
    central, doubtful = facts.central_nodes(count), facts.doubtful_nodes(count)
    medians = facts.confidence_quantiles((0.5,))[:, 0]
    row_of = np.full(facts.n_clusters, -1)
    row_of[clusters] = np.arange(clusters.size)
    nearest = facts.nearest[clusters]

    def names(nodes: list[IntArray]) -> list[list[str]]:
        return [[shortened(facts.node_name(int(node))) for node in nodes[j]] for j in clusters.tolist()]

    return {
        "number": clusters.tolist(),
        "name": [shortened(facts.name(j)) for j in clusters.tolist()],
        "size": facts.sizes[clusters].tolist(),
        "volume": _rounded(facts.volumes[clusters] / (float(facts.graph.volume) or 1.0), 6),
        "conductance": _rounded(facts.conductances[clusters], 4),
        "confidence": _rounded(medians[clusters], 3),
        "nearest": np.where(nearest >= 0, row_of[nearest], -1).tolist(),
        "tie": _rounded(facts.strongest_tie[clusters], 5),
        "status": statuses(facts)[clusters].tolist(),
        "central": names(central),
        "doubtful": names(doubtful),
        "colour": palette.colours[clusters].tolist(),
        "shape": palette.shapes[clusters].tolist(),
    }


def quotient_drawing(facts: PartitionFacts, clusters: IntArray) -> dict[str, Any]:
    """Return places, radii and connections of the clusters, or of the largest ones; numbered by the rows of the table."""
    rows = np.arange(clusters.size)
    if clusters.size > MOST_DISCS:
        rows = np.sort(np.argsort(-facts.volumes[clusters], kind="stable")[:MOST_DISCS])
    found = map_clusters(facts, None if rows.size == facts.n_clusters else clusters[rows])
    heaviest = float(found.weights.max(initial=0.0)) or 1.0
    return {
        "row": rows.tolist(),
        "x": _rounded(found.places[:, 0], 4),
        "y": _rounded(found.places[:, 1], 4),
        "r": _rounded(found.radii, 5),
        "from": found.first.tolist(),
        "to": found.second.tolist(),
        "weight": _rounded(found.weights / heaviest, 4),
    }


def embedding_drawing(facts: PartitionFacts, model: Any, clusters: IntArray) -> dict[str, Any]:
    """Return the points of the embedding, in the unit square along every axis, with their rows of the table."""
    found = embedded_points(facts, model, axes=_AXES, most=MOST_POINTS)
    row_of = np.full(facts.n_clusters, -1)
    row_of[clusters] = np.arange(clusters.size)
    low, high = found.places.min(axis=0), found.places.max(axis=0)
    places = (found.places - low) / np.maximum(high - low, 1e-12)
    areas = np.sqrt(found.weights / (float(found.weights.max(initial=0.0)) or 1.0))
    return {
        "row": row_of[found.labels].tolist(),
        "axes": [_rounded(places[:, axis], 3) for axis in range(places.shape[1])],
        "area": _rounded(areas, 2),
        "kind": found.kind,
    }


def heat_maps(facts: PartitionFacts, palette: Palette) -> list[str]:
    """Return the adjacency matrix before and after sorting by cluster, as addresses of pictures that hold them."""
    orders = [np.arange(facts.graph.n_nodes), node_order(facts, palette.order)]
    squares = logarithmic(shade_matrix(facts.graph, orders, _PIXELS))
    # Sixteen shades are enough for the eye and a third of the size.
    pictures = [png((17 * np.round(15 * one)).astype(np.uint8), colour="#2f81c7") for one in squares]
    return [f"data:image/png;base64,{base64.b64encode(picture).decode()}" for picture in pictures]


def page_data(facts: PartitionFacts, palette: Palette, model: Any) -> dict[str, Any]:
    """Return all that the page's script draws."""
    clusters = shown_clusters(facts)
    return {
        "clusters": table(facts, palette, clusters),
        "quotient": quotient_drawing(facts, clusters),
        "embedding": embedding_drawing(facts, model, clusters),
        "statuses": list(STATUSES),
        "colours": list(COLOURS),
        "total": facts.n_clusters,
    }


def shortened(name: str) -> str:
    """Return a name of a node or cluster as the page shows it: of a long one both ends, for many differ in the last letters."""
    if not name.strip():
        return NAMELESS
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - _LAST - 1]}…{name[-_LAST:]}"


def _rounded(values: FloatArray, digits: int) -> list[float]:
    rounded: list[float] = np.round(values, digits).tolist()
    return rounded
