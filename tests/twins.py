"""The slow, obvious twins: what every kernel computes, written down densely from its definition.

Nothing here imports the package. K is a dense kernel matrix, w the weights of its points, seeds a list of points, A a dense
adjacency matrix; labels are integers 0..k-1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


# --- kernels -------------------------------------------------------------------------------------------------------------


def graph_kernel(A: Array, shift: float = 0.0) -> tuple[Array, Array]:
    """Return K = D⁻¹AD⁻¹ + σD⁻¹ and w = d; rows of isolated nodes are zero."""
    degrees = A.sum(axis=1)
    inverse = np.zeros(len(A))
    inverse[degrees > 0] = 1.0 / degrees[degrees > 0]
    return inverse[:, None] * A * inverse[None, :] + shift * np.diag(inverse), degrees


def features(K: Array) -> Array:
    """Return explicit feature vectors φ(x) as rows: K = ΦΦᵀ. K must be positive semi-definite."""
    values, vectors = np.linalg.eigh(K)
    assert values[0] > -1e-9 * values[-1], "not a positive semi-definite kernel"
    return vectors * np.sqrt(np.maximum(values, 0.0))


# --- D² sampling ---------------------------------------------------------------------------------------------------------


def pair_distances(K: Array) -> Array:
    """Δ(x, y) = K_xx + K_yy - 2K_xy."""
    diagonal = np.diag(K)
    return diagonal[:, None] + diagonal[None, :] - 2.0 * K


def distances_to_seeds(K: Array, w: Array, seeds: list[int]) -> Array:
    """Return max(Δ(x, c), 0) for every point x and seed c; points of weight 0 take no part and are at distance 0."""
    return np.maximum(pair_distances(K)[:, seeds], 0.0) * (w > 0)[:, None]


def d2_law(K: Array, w: Array, seeds: list[int]) -> Array:
    """Return the probabilities w(x)Δ(x, C)/cost(X, C) of the next point; all zero when the cost is zero."""
    contributions = w * distances_to_seeds(K, w, seeds).min(axis=1)
    total = contributions.sum()
    return contributions / total if total > 0 else contributions


def joint_law(K: Array, w: Array, seeds: list[int], draws: int) -> dict[tuple[int, ...], float]:
    """Return the probability of every sequence of `draws` draws after the seeds, shorter where the cost reaches zero."""
    if draws == 0:
        return {(): 1.0}
    law = d2_law(K, w, seeds)
    if not law.any():
        return {(): 1.0}
    return {
        (int(x), *rest): law[x] * p
        for x in np.flatnonzero(law)
        for rest, p in joint_law(K, w, [*seeds, int(x)], draws - 1).items()
    }


def smallest_point(K: Array, w: Array) -> int:
    """x* = argmin K_xx over the points of positive weight."""
    return int(np.argmin(np.where(w > 0, np.diag(K), np.inf)))


# --- coresets ------------------------------------------------------------------------------------------------------------


def sensitivities(K: Array, w: Array, seeds: list[int], nearest: Array, importance: str) -> Array:
    """s_x = w(x)Δ(x, C)/cost + w(x)/w(points whose nearest seed is x's), or w(x)/w(C) for importance "seeds"."""
    law = d2_law(K, w, seeds)
    if importance == "seeds":
        mass = np.full(len(w), w[seeds].sum())
    else:
        mass = np.array([w[nearest == nearest[x]].sum() for x in range(len(w))])
    return law + w / mass


# --- centres and partitions ----------------------------------------------------------------------------------------------


def membership(labels: Array, k: int) -> Array:
    """Return the n × k membership matrix of a partition."""
    return (np.asarray(labels)[:, None] == np.arange(k)[None, :]).astype(float)


def centroid_coefficients(n: int, nodes: Array, w: Array, labels: Array, k: int) -> Array:
    """Return the n × k matrix M with centres c_j = Σ_y M_yj φ(y), c_j the weighted mean of the nodes labelled j.

    An empty cluster's column is NaN.
    """
    centres = np.zeros((n, k))
    centres[nodes] = membership(labels, k) * w[:, None]
    mass = centres.sum(axis=0)
    return centres / np.where(mass > 0, mass, np.nan)


def centre_distances(K: Array, centres: Array) -> Array:
    """Return ‖φ(x) - c_j‖² of every point and centre; infinity where the centre does not exist."""
    norms = np.einsum("ij,ik,kj->j", centres, K, centres)
    distances = np.diag(K)[:, None] + norms[None, :] - 2.0 * K @ centres
    return np.where(np.isnan(distances), np.inf, distances)


def cost_of_centres(K: Array, w: Array, centres: Array) -> float:
    """cost(X, C) = Σ_x w(x) min_j ‖φ(x) - c_j‖²."""
    positive = w > 0
    return float(w[positive] @ centre_distances(K, centres)[positive].min(axis=1))


def trace_cost(K: Array, w: Array, labels: Array) -> float:
    """tr(WK) - tr(YᵀW^½KW^½Y) with Y = W^½X(XᵀWX)^-½: the paper's trace form. Clusters without weight are left out."""
    X = membership(labels, int(np.max(labels)) + 1)
    X = X[:, w @ X > 0]
    root = np.sqrt(w)
    balanced = root[:, None] * X / np.sqrt(w @ X)
    return float(w @ np.diag(K) - np.trace(balanced.T @ (root[:, None] * K * root[None, :]) @ balanced))


def centroid_cost(phi: Array, w: Array, labels: Array) -> float:
    """Σ_j Σ_{x∈j} w(x)‖φ(x) - m_j‖² with explicit feature vectors and their weighted means."""
    total = 0.0
    for j in np.unique(labels):
        members = labels == j
        if w[members].sum() > 0:
            mean = w[members] @ phi[members] / w[members].sum()
            total += float(w[members] @ ((phi[members] - mean) ** 2).sum(axis=1))
    return total


@cache
def partitions(n: int, k: int) -> Array:
    """Return all partitions of n points into exactly k non-empty clusters, one per row (restricted growth strings)."""

    def grow(prefix: tuple[int, ...], used: int) -> Iterator[tuple[int, ...]]:
        if len(prefix) == n:
            if used == k:
                yield prefix
        elif k - used <= n - len(prefix):
            for label in range(min(used + 1, k)):
                yield from grow((*prefix, label), max(used, label + 1))

    return np.array(list(grow((), 0)))


# --- metrics -------------------------------------------------------------------------------------------------------------


def cut_and_volume(A: Array, labels: Array, k: int) -> tuple[Array, Array]:
    """Return cut_j = Σ_{x∈j, y∉j} A_xy and vol_j = Σ_{x∈j} d_x of every cluster."""
    cut, volume = np.zeros(k), np.zeros(k)
    for j in range(k):
        inside = labels == j
        cut[j] = A[np.ix_(inside, ~inside)].sum()
        volume[j] = A[inside].sum()
    return cut, volume


def conductances(A: Array, labels: Array, k: int) -> Array:
    """cut_j / vol_j; 1 for a cluster without volume."""
    cut, volume = cut_and_volume(A, labels, k)
    return np.array([c / v if v > 0 else 1.0 for c, v in zip(cut, volume, strict=True)])


def typical_volume(degrees: list[float], parts: float, most: int = 0) -> float:
    """Return the volume of so many parts; nodes heavier than a part count as one each while fewer than half, or than `most`."""
    light, heavy = sorted(degrees), 0
    while True:
        share = sum(light) / (parts - heavy)
        above = [d for d in light if d > share]
        if not above or heavy + len(above) >= min(max(parts / 2, most), len(degrees)):
            return share * parts
        heavy += len(above)
        light = light[: len(light) - len(above)]


def conductances_with_fee(A: Array, labels: Array, k: int, balance: float) -> Array:
    """Return (cut_j + c)/vol_j with the fee c = β·vol/k; 1 for a cluster without volume."""
    cut, volume = cut_and_volume(A, labels, k)
    fee = balance * typical_volume(A.sum(axis=1).tolist(), k, most=k) / k
    return np.array([(c + fee) / v if v > 0 else 1.0 for c, v in zip(cut, volume, strict=True)])


def modularity(A: Array, labels: Array, resolution: float = 1.0) -> float:
    """(1/vol) Σ_{x,y in one cluster} (A_xy - γ d_x d_y / vol)."""
    degrees = A.sum(axis=1)
    same = labels[:, None] == labels[None, :]
    return float(((A - resolution * np.outer(degrees, degrees) / degrees.sum()) * same).sum() / degrees.sum())


def normalized_cut_objective(A: Array, D: Array, labels: Array) -> float:
    """NC_{A,D}(Π) = tr(D⁻¹A) - tr(ZᵀD^-½AD^-½Z), Z = D^½X(XᵀDX)^-½, for degrees D that need not be row sums."""
    X = membership(labels, int(np.max(labels)) + 1)
    X = X[:, X.sum(axis=0) > 0]
    balanced = np.sqrt(D)[:, None] * X / np.sqrt(D @ X)
    root = 1.0 / np.sqrt(D)
    return float(np.diag(A) @ (1.0 / D) - np.trace(balanced.T @ (root[:, None] * A * root[None, :]) @ balanced))


def margins(A: Array, labels: Array) -> Array:
    """(weight to the own cluster - largest weight to another one) / all weight, loops apart, not below 0; 0 without edges."""
    towards = (A - np.diag(np.diag(A))) @ membership(labels, int(np.max(labels)) + 2)  # the last cluster is always empty
    found = np.zeros(len(A))
    for x in np.flatnonzero(towards.sum(axis=1)):
        own = towards[x, labels[x]]
        found[x] = max(0.0, own - np.delete(towards[x], labels[x]).max()) / towards[x].sum()
    return found


# --- exact objective and moves -------------------------------------------------------------------------------------------


def objective_of_sums(association: Sequence[Any], volume: Sequence[Any], fee: Any = 0) -> Fraction:
    """F = Σ_j (cut_j + c)/vol_j = Σ_j 1 - (assoc_j - c)/vol_j in exact arithmetic; 1 for a cluster without volume.

    Every float is a fraction, so there is no rounding as long as the sums that come in are exact.
    """
    paid = Fraction(fee)
    total = Fraction(0)
    for assoc, vol in zip(map(Fraction, association), map(Fraction, volume), strict=True):
        total += 1 - (assoc - paid) / vol if vol else 1
    return total


def exact_sums(A: Array, labels: Array, k: int, degrees: Array | None = None) -> tuple[list[Fraction], list[Fraction]]:
    """Return assoc_j and vol_j of every cluster as fractions; degrees other than the row sums where they are given."""
    rows = [[Fraction(value) for value in row] for row in A.tolist()]
    volumes = [sum(row, Fraction(0)) for row in rows] if degrees is None else [Fraction(value) for value in degrees.tolist()]
    clusters = [np.flatnonzero(np.asarray(labels) == j).tolist() for j in range(k)]
    association = [sum((rows[x][y] for x in cluster for y in cluster), Fraction(0)) for cluster in clusters]
    return association, [sum((volumes[x] for x in cluster), Fraction(0)) for cluster in clusters]


def exact_objective(A: Array, labels: Array, k: int, fee: Any = 0, *, degrees: Array | None = None) -> Fraction:
    """F of a partition, with every sum taken in exact arithmetic."""
    return objective_of_sums(*exact_sums(A, labels, k, degrees), fee)


def outside(sizes: Array, smallest: float = 0.0, largest: float = np.inf) -> float:
    """By how many nodes sizes are outside of the bounds, in all."""
    return float(sum(max(0.0, size - largest) + max(0.0, smallest - size) for size in sizes.tolist()))


def allowed_moves(
    A: Array, labels: Array, sizes: Array, *, smallest: float = 0.0, largest: float = np.inf, degrees: Array | None = None
) -> Iterator[tuple[int, int]]:
    """Give every move (node, cluster) that refinement may make.

    It goes to a neighbour's cluster, leaves nodes and volume behind, and brings no sizes further out of the bounds: not
    together, nor one as far as it brings the other back.
    """
    volume = A.sum(axis=1) if degrees is None else degrees
    k = int(labels.max()) + 1
    now = np.bincount(labels, sizes, minlength=k)
    for x in range(len(A)):
        left = (labels == labels[x]) & (np.arange(len(A)) != x)
        if not volume[left].sum() > 0:
            continue
        for j in np.unique(labels[A[x] > 0]).tolist():
            if j == labels[x]:
                continue
            moved = np.bincount(np.where(np.arange(len(A)) == x, j, labels), sizes, minlength=k)
            changes = [outside(moved[[i]], smallest, largest) - outside(now[[i]], smallest, largest) for i in (labels[x], j)]
            if sum(changes) < 0 or changes == [0.0, 0.0]:
                yield x, j


def best_split(
    A: Array,
    order: Array,
    sizes: Array,
    *,
    fee: float = 0.0,
    smallest: float = 0.0,
    largest: float = np.inf,
    degrees: Array | None = None,
) -> tuple[float, int]:
    """Return what the best of all prefixes of a cluster's nodes gains as a cluster of its own, and its length.

    Both parts must have volume and lie within the bounds.
    """
    volumes = A.sum(axis=1) if degrees is None else degrees

    def kept(nodes: Array) -> float:
        volume = volumes[nodes].sum()
        return (A[np.ix_(nodes, nodes)].sum() - fee) / volume if volume > 0 else -np.inf

    best = (-np.inf, 0)
    for prefix in range(1, len(order)):
        head, tail = order[:prefix], order[prefix:]
        if outside(np.array([sizes[head].sum(), sizes[tail].sum()]), smallest, largest) > 0:
            continue
        gain = kept(head) + kept(tail) - kept(order)
        if gain > best[0]:
            best = (gain, prefix)
    return best


def greedy_seeds(rows: Array, mass: Array, k: int, trials: int, uniforms: Array) -> list[int]:
    """Return the rows that greedy k-means++ takes as centres, given its randomness."""
    nearest = np.full(len(rows), np.inf)
    chosen: list[int] = []
    for j in range(k):
        drawn, uniforms = (uniforms[:1], uniforms[1:]) if j == 0 else (uniforms[:trials], uniforms[trials:])
        cumulative = np.cumsum(mass if j == 0 else mass * nearest)
        candidates = np.searchsorted(cumulative, drawn * cumulative[-1], side="right")
        distances = [np.minimum(nearest, ((rows - rows[c]) ** 2).sum(axis=1)) for c in candidates]
        best = int(np.argmin([mass @ d for d in distances]))
        nearest = distances[best]
        chosen.append(int(candidates[best]))
    return chosen


# --- random graphs -------------------------------------------------------------------------------------------------------


def block_model(sizes: list[int], p: float, q: float) -> Array:
    """Return the probability of every edge in the stochastic block model."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    chances = np.where(labels[:, None] == labels[None, :], p, q)
    np.fill_diagonal(chances, 0.0)
    return chances


def degree_corrected_model(sizes: list[int], theta: Array, inside: float, anywhere: float) -> Array:
    """Return the probability of every edge when x sends Poisson(inside·θ_x) edges home and Poisson(anywhere·θ_x) anywhere.

    Each goes to y with probability proportional to θ_y, and repeated edges are one edge.
    """
    labels = np.repeat(np.arange(len(sizes)), sizes)
    home = (labels[:, None] == labels[None, :]) * theta
    sent = theta[:, None] * (inside * home / home.sum(axis=1, keepdims=True) + anywhere * theta / theta.sum())
    chances = 1.0 - np.exp(-(sent + sent.T))
    np.fill_diagonal(chances, 0.0)
    return chances


def draw_graph(chances: Array, rng: np.random.Generator) -> Array:
    """Draw every edge on its own."""
    upper = np.triu(rng.random(chances.shape) < chances, 1)
    return (upper | upper.T).astype(float)
