"""Rounding: from rows of an embedding to k clusters.

Weighted k-means with greedy k-means++ seeding, or pivoted QR (Damle, Minden and Ying 2019), which has no random start and
needs as many columns as clusters.

For m rows, k clusters and d columns a k-means step costs O(m·k·d). Beyond a few hundred clusters that would dominate
everything, so the rows are first divided into √k parts and each of those into its share of the clusters: O(m·√k·d).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from corecut._typing import FloatArray, LabelArray

# Rows of one matrix product. The borders do not depend on the threads, and neither do the results.
_ROWS = 4096

# Beyond this many clusters k-means works in two levels.
_MANY = 1024

Rows = NDArray[np.float32]


def kmeans(
    rows: FloatArray,
    n_clusters: int,
    weights: FloatArray,
    generator: np.random.Generator,
    *,
    n_init: int = 1,
    max_iter: int = 50,
    threads: int = 1,
) -> LabelArray:
    """Return the labels of the best of `n_init` runs of weighted Lloyd iterations, in two levels for very many clusters.

    Seeds are drawn by greedy k-means++ (2 + log k candidates each, the best kept). A run ends when no label changes or when
    the cost falls by less than 0.01 %. A cluster that loses all its rows takes over the row that pays most.
    """
    points = np.ascontiguousarray(rows, dtype=np.float32)
    mass = (weights / weights.mean()).astype(np.float32)
    if n_clusters > _MANY:
        return _two_levels(points, n_clusters, mass, generator, max_iter, threads)
    best_labels, best_cost = np.zeros(len(points), np.int32), np.inf
    for _ in range(n_init):
        centres = _seed(points, n_clusters, mass, generator)
        labels, cost = _lloyd(points, mass, centres, max_iter, threads)
        if cost < best_cost:
            best_labels, best_cost = labels, cost
    return best_labels


def _two_levels(
    points: Rows, n_clusters: int, mass: Rows, generator: np.random.Generator, max_iter: int, threads: int
) -> LabelArray:
    """Divide the rows into √k parts, and each part into clusters in proportion to its weight."""
    coarse = int(np.ceil(np.sqrt(n_clusters)))
    part, _ = _lloyd(points, mass, _seed(points, coarse, mass, generator), max_iter, threads)
    order = np.argsort(part, kind="stable")
    borders = np.searchsorted(part[order], np.arange(coarse + 1))
    counts = _shares(np.bincount(part, mass, minlength=coarse), np.diff(borders), n_clusters)
    labels, first = np.empty(len(points), np.int32), 0
    for j in range(coarse):
        rows = order[borders[j] : borders[j + 1]]
        if rows.size == 0:
            continue
        inside = points[rows]
        centres = _seed(inside, int(counts[j]), mass[rows], generator)
        labels[rows] = first + _lloyd(inside, mass[rows], centres, max_iter, 1)[0]
        first += int(counts[j])
    return labels


def _shares(mass: FloatArray, rows: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Share `total` clusters out in proportion to mass: at least one to a part with rows, at most one per row."""
    counts = np.minimum(np.maximum(np.floor(total * mass / mass.sum()).astype(np.int64), rows > 0), rows)
    while counts.sum() != total:
        wanted = total * mass / mass.sum() - counts
        if counts.sum() < total:
            counts[np.argmax(np.where(counts < rows, wanted, -np.inf))] += 1
        else:
            counts[np.argmin(np.where(counts > 1, wanted, np.inf))] -= 1
    return counts


def _seed(points: Rows, n_clusters: int, mass: Rows, generator: np.random.Generator) -> Rows:
    """Greedy k-means++: of a few candidates drawn by weight times squared distance, take the one that lowers the cost most."""
    norms = np.einsum("ij,ij->i", points, points)
    trials = 2 + int(np.log(n_clusters))
    first = _draw(mass.astype(np.float64), 1, generator)
    chosen = [int(first[0])]
    nearest = np.maximum(norms + norms[chosen[0]] - 2 * (points @ points[chosen[0]]), 0)
    for _ in range(1, n_clusters):
        candidates = _draw((mass * nearest).astype(np.float64), trials, generator)
        distances = norms[candidates][:, None] + norms - 2 * (points[candidates] @ points.T)
        np.minimum(np.maximum(distances, 0, out=distances), nearest, out=distances)
        best = int(np.argmin(distances @ mass))
        nearest = distances[best]
        chosen.append(int(candidates[best]))
    return points[chosen].copy()


def _draw(mass: FloatArray, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    cumulative = np.cumsum(mass)
    if not cumulative[-1] > 0:  # all rows coincide with chosen ones
        return generator.integers(0, mass.size, count)
    draws = np.searchsorted(cumulative, generator.random(count) * cumulative[-1], side="right")
    drawn: NDArray[np.int64] = np.minimum(draws, mass.size - 1)
    return drawn


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
        if not changed or last_cost - cost < 1e-4 * cost:
            break
    return labels, cost


def _assign(points: Rows, centres: Rows, labels: LabelArray, distances: Rows, threads: int) -> None:
    """Write every row's nearest centre and ‖c‖² - 2⟨x, c⟩ into `labels` and `distances`."""
    half_norms = 0.5 * np.einsum("ij,ij->i", centres, centres)
    transposed = np.ascontiguousarray(centres.T)

    def block(begin: int) -> None:
        part = slice(begin, begin + _ROWS)
        scores = points[part] @ transposed
        scores -= half_norms
        labels[part] = np.argmax(scores, axis=1)
        distances[part] = -2.0 * np.take_along_axis(scores, labels[part, None].astype(np.intp), axis=1)[:, 0]

    each_block(block, len(points), threads)


def each_block(block: Callable[[int], None], n_rows: int, threads: int) -> None:
    """Call block(begin) for the fixed blocks of rows, on several threads (matrix products release the GIL)."""
    begins = range(0, n_rows, _ROWS)
    if threads == 1 or len(begins) == 1:
        for begin in begins:
            block(begin)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(block, begins))


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
