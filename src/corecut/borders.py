"""Borders: divisions of a graph in two, along eigenvectors and around unions of small clusters.

The second eigenvector need not be along the best border. Where both clusters are long and thin, as two moons, it runs along
them; a later vector, or a mixture of two, may do better, and so may clusters of several vectors, put together to two.
"""

from __future__ import annotations

import numpy as np

from corecut._typing import BoolArray, FloatArray, LabelArray
from corecut.objective import Objective
from corecut.weighted import WeightedGraph, sums_by

# The best borders that are tried first.
_BEST = 3


def best_borders(level: WeightedGraph, rows: FloatArray, weights: FloatArray, objective: Objective) -> list[LabelArray]:
    """Return the best divisions in two along eigenvectors, and along mixtures of two of them where these have a lower F.

    The cut between two clusters may be along a later vector, where each of them is long and thin; and vectors of nearly the
    same eigenvalue, as those of a square, come in any mixture.
    """
    vectors = rows[:, 1:] / np.sqrt(weights)[:, None]
    mixed = [vectors[:, i] + sign * vectors[:, i + 1] for i in range(vectors.shape[1] - 1) for sign in (1, -1)]
    found = [sweep(level, position, objective) for position in [*vectors.T, *mixed]]
    # The best few, and the vectors themselves: draws that differ are worth more than draws that begin well.
    order = sorted(range(len(found)), key=lambda at: found[at][1])[:_BEST]
    order += [at for at in range(vectors.shape[1]) if at not in order]
    return [found[at][0] for at in order]


def sweep(level: WeightedGraph, position: FloatArray, objective: Objective) -> tuple[LabelArray, float]:
    """Return the two clusters of the best border along an order of the nodes, inside the bounds if any is, and their F."""
    graph, n = level.graph, level.n_nodes
    rank = np.empty(n, np.int64)
    order = np.argsort(position, kind="stable")
    rank[order] = np.arange(n)
    a = graph.adjacency
    ends = np.stack([np.repeat(rank, np.diff(a.indptr)), rank[a.indices]])
    # An edge is cut by the borders between its two ends.
    opened, closed = sums_by(ends.min(axis=0), a.data, n), sums_by(ends.max(axis=0), a.data, n)
    cut = np.cumsum(opened - closed)[:-1] / 2
    before, nodes = np.cumsum(graph.degrees[order])[:-1], np.cumsum(level.sizes[order])[:-1]
    after = graph.volume - before
    terms = objective.terms(before - cut, before) + objective.terms(after - cut, after)
    smaller = np.minimum(nodes, level.sizes.sum() - nodes)
    allowed = (smaller >= objective.min_size) & (level.sizes.sum() - smaller <= objective.max_size)
    best = int(np.argmin(np.where(allowed, terms, np.inf) if allowed.any() else terms))
    return np.asarray(rank > best, dtype=np.int32), float(terms[best])


def best_union(
    level: WeightedGraph, pieces: LabelArray, objective: Objective, *, n_jobs: int | None = None
) -> LabelArray | None:
    """Return the two unions of some pieces (up to a dozen) of the lowest F, inside the bounds if any are; None for one piece.

    O(edges), and all 2^(pieces - 1) - 1 unions.
    """
    names, numbers = np.unique(pieces, return_inverse=True)
    count = names.size
    if count < 2:
        return None
    small = level.contract(numbers.astype(np.int32), n_jobs=n_jobs)
    between, degrees, sizes = small.graph.adjacency.toarray(), small.graph.degrees, small.sizes
    second: BoolArray = (np.arange(1, 2 ** (count - 1))[:, None] >> np.arange(count)) % 2 == 1  # the last piece is never in it
    cut = np.einsum("ui,ij,uj->u", second, between, ~second)
    volumes = np.stack([~second @ degrees, second @ degrees])
    terms = objective.terms(volumes - cut, volumes).sum(axis=0)
    nodes = np.stack([~second @ sizes, second @ sizes])
    allowed = (nodes.min(axis=0) >= objective.min_size) & (nodes.max(axis=0) <= objective.max_size)
    best = int(np.argmin(np.where(allowed, terms, np.inf) if allowed.any() else terms))
    return np.asarray(second[best, numbers], dtype=np.int32)
