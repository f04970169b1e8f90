"""Rounding: from rows of an embedding to k clusters.

Weighted k-means with greedy k-means++ seeding, or pivoted QR (Damle, Minden and Ying 2019), which has no random start and
needs as many columns as clusters.

For m rows, k clusters and d columns a k-means step costs O(m·k·d). Where that would dominate everything, the rows are first
halved again and again, at the weighted median along their first principal direction, until a part is due no more than 64
clusters; each part is clustered on its own: O(m·d·(d + 64)) whatever k is. (A first level of k-means was tried: rows of
thousands of clusters are nearly equidistant, and one part got nearly all of them.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corecut import _core
from corecut._threads import on_threads
from corecut._typing import FloatArray, IntArray, LabelArray
from corecut.spectral.blas import ROWS, each_block

# Most Lloyd steps of one run.
_STEPS = 50
# Beyond so many clusters, or products m·k·d in one step, k-means works in parts, of at most so many clusters each.
_MANY, _MUCH, _PART = 1024, 4e9, 64

# Merging equal rows pays where they are at most this share of all.
_FEW_DISTINCT = 0.8

Rows = NDArray[np.float32]


def kmeans(
    rows: FloatArray,
    n_clusters: int,
    weights: FloatArray,
    generator: np.random.Generator,
    *,
    n_init: int = 1,
    max_iter: int = _STEPS,
    threads: int = 1,
) -> LabelArray:
    """Return the labels of the best of `n_init` runs of weighted Lloyd iterations, in parts for very many clusters.

    Seeds are drawn by greedy k-means++ (2 + log k candidates each, the best kept). A run ends when no label changes or when
    the cost falls by less than 0.01 %. A cluster that loses all its rows takes over the row that pays most.

    Rows that are equal to the bit, as those of a component are, count as one with their weights added.
    """
    points = np.ascontiguousarray(rows, dtype=np.float32) + np.float32(0.0)  # no -0: it has other bits than 0
    mass = (weights / weights.mean()).astype(np.float32)
    first, row_of = distinct_rows(points)
    if first.size <= n_clusters:
        return row_of
    few = first.size < _FEW_DISTINCT * len(points)
    if few:
        merged: Any = np.bincount(row_of, mass)
        points, mass = points[first], merged.astype(np.float32)
    labels = _best_run(points, n_clusters, mass, generator, n_init=n_init, max_iter=max_iter, threads=threads)
    return labels[row_of] if few else labels


def distinct_rows(points: Rows) -> tuple[IntArray, LabelArray]:
    """Return the first of each kind of equal rows, rising, and the kind of every row."""
    keys = np.zeros(len(points), np.uint64)
    for column in points.view(np.uint32).T:
        keys = (keys ^ column) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    if first.size < len(points) and not np.array_equal(points[first][kind], points):
        return np.arange(len(points)), np.arange(len(points), dtype=np.int32)  # two kinds with one key
    order = np.argsort(first)
    rank = np.empty(order.size, np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    return first[order], rank[kind]


def _best_run(
    points: Rows,
    n_clusters: int,
    mass: Rows,
    generator: np.random.Generator,
    *,
    n_init: int,
    max_iter: int,
    threads: int,
) -> LabelArray:
    if n_clusters > _MANY or (n_clusters > _PART and points.size * n_clusters > _MUCH):
        return _in_parts(points, n_clusters, mass, generator, threads)
    best_labels, best_cost = np.zeros(len(points), np.int32), np.inf
    for _ in range(n_init):
        centres = _seed(points, n_clusters, mass, generator, threads)
        labels, cost = _lloyd(points, mass, centres, max_iter, threads)
        if cost < best_cost:
            best_labels, best_cost = labels, cost
    return best_labels


def _in_parts(points: Rows, n_clusters: int, mass: Rows, generator: np.random.Generator, threads: int) -> LabelArray:
    """Halve the rows until a part is due few clusters, then cluster each part in proportion to its weight."""
    parts = [np.arange(len(points))]
    for _ in range(int(np.ceil(np.log2(n_clusters / _PART)))):
        parts = [half for part in parts for half in _halves(points, mass, part)]
    weight = np.array([mass[part].sum() for part in parts], dtype=np.float64)
    counts = _shares(weight, np.array([part.size for part in parts]), n_clusters)
    # Every part has a generator of its own, so that they can run side by side.
    generators = generator.spawn(len(parts))
    firsts = np.cumsum(counts) - counts
    labels = np.empty(len(points), np.int32)

    def cluster(j: int) -> None:
        inside, weights = points[parts[j]], mass[parts[j]]
        centres = _seed(inside, int(counts[j]), weights, generators[j], 1)
        labels[parts[j]] = firsts[j] + _lloyd(inside, weights, centres, _STEPS, 1)[0]

    on_threads(cluster, [j for j in range(len(parts)) if parts[j].size], threads)
    return labels


def _halves(points: Rows, mass: Rows, part: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Split rows at their weighted median along the first principal direction."""
    if part.size < 2:
        return [part]
    weights = mass[part].astype(np.float64)
    rows = points[part] - (weights @ points[part] / weights.sum()).astype(np.float32)
    direction = np.linalg.eigh((rows * mass[part, None]).T @ rows)[1][:, -1]
    order = np.argsort(rows @ direction, kind="stable")
    half = int(np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2))
    half = min(max(half, 1), part.size - 1)
    return [np.sort(part[order[:half]]), np.sort(part[order[half:]])]


def _shares(mass: FloatArray, rows: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Share `total` clusters out in proportion to mass: at least one to a part with rows, at most one per row."""
    counts: NDArray[np.int64] = np.minimum(np.maximum(np.floor(total * mass / mass.sum()).astype(np.int64), rows > 0), rows)
    while counts.sum() != total:
        wanted = total * mass / mass.sum() - counts
        if counts.sum() < total:
            counts[np.argmax(np.where(counts < rows, wanted, -np.inf))] += 1
        else:
            counts[np.argmin(np.where(counts > 1, wanted, np.inf))] -= 1
    return counts


def _seed(points: Rows, n_clusters: int, mass: Rows, generator: np.random.Generator, threads: int) -> Rows:
    """Greedy k-means++: of a few candidates drawn by weight times squared distance, take the one that lowers the cost most."""
    trials = min(2 + int(np.log(n_clusters)), _core.SEED_LANES)
    uniforms = generator.random(1 + (n_clusters - 1) * trials)
    seeds: Rows = points[_core.greedy_seeds(points, mass, n_clusters, trials, uniforms, threads)]
    return seeds


def _lloyd(points: Rows, mass: Rows, centres: Rows, max_iter: int, threads: int) -> tuple[LabelArray, float]:
    norms = np.einsum("ij,ij->i", points, points)
    labels = np.full(len(points), -1, np.int32)
    distances = np.empty(len(points), np.float32)
    cost = np.inf
    for _ in range(max_iter):
        before, last_cost = labels.copy(), cost
        _assign(points, centres, labels, distances, threads)
        distances = np.maximum(distances + norms, 0)
        cost = float(mass.astype(np.float64) @ distances)
        changed = not np.array_equal(before, labels)
        centres = _means(points, mass, labels, distances, len(centres))
        used = np.count_nonzero(np.bincount(labels, minlength=len(centres)))
        # Not while a cluster is empty, whose new centre has not been tried.
        if not changed or (used == len(centres) and last_cost - cost < 1e-4 * cost):
            break
    return labels, cost


def _assign(points: Rows, centres: Rows, labels: LabelArray, distances: Rows, threads: int) -> None:
    """Write every row's nearest centre and ‖c‖² - 2⟨x, c⟩ into `labels` and `distances`."""
    half_norms = 0.5 * np.einsum("ij,ij->i", centres, centres)
    transposed = np.ascontiguousarray(centres.T)

    def block(begin: int) -> None:
        part = slice(begin, begin + ROWS)
        scores = points[part] @ transposed
        scores -= half_norms
        labels[part] = np.argmax(scores, axis=1)
        distances[part] = -2.0 * np.take_along_axis(scores, labels[part, None].astype(np.intp), axis=1)[:, 0]

    each_block(block, len(points), threads)


def _means(points: Rows, mass: Rows, labels: LabelArray, distances: Rows, n_clusters: int) -> Rows:
    order = np.argsort(labels, kind="stable")
    total = np.bincount(labels, mass, minlength=n_clusters)
    present = np.flatnonzero(np.bincount(labels, minlength=n_clusters))
    starts = np.searchsorted(labels[order], present)
    sums = np.zeros((n_clusters, points.shape[1]), np.float32)
    sums[present] = np.add.reduceat(points[order] * mass[order, None], starts, axis=0)
    means = np.divide(sums, total[:, None], out=sums, where=total[:, None] > 0)
    empty = np.flatnonzero(total <= 0)
    if empty.size:
        dearest = np.argsort(-(mass * distances), kind="stable")[: empty.size]
        means[empty] = points[dearest]
    return means


def cluster_qr(vectors: FloatArray) -> LabelArray:
    """Return each row's cluster by pivoted QR of the transposed eigenvectors: k columns give k clusters."""
    from scipy.linalg import qr, svd

    k = vectors.shape[1]
    pivots = qr(vectors.T, mode="r", pivoting=True)[1][:k]
    u, _, vt = svd(vectors[pivots, :].T, full_matrices=False)
    labels: LabelArray = np.argmax(np.abs(vectors @ (u @ vt).conj()), axis=1).astype(np.int32)
    return labels
