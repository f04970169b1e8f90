"""What partitions say: how much shorter they make the description of a graph, and how far two of them agree."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from corecut._typing import FloatArray, IntArray, LabelArray
from corecut.weighted import sums_by


def agreement_of(one: LabelArray, other: LabelArray, weights: FloatArray) -> float:
    """Return the adjusted Rand index of two partitions of weighted nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from corecut.description import agreement_of
    >>> agreement_of(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), np.ones(4))
    1.0
    """
    k = int(other.max()) + 1
    joint = sums_by(one.astype(np.int64) * k + other, weights, 0)

    def pairs(counts: FloatArray) -> float:
        return float(np.sum(counts * (counts - 1)) / 2)

    both, first, second = pairs(joint), pairs(sums_by(one, weights, 0)), pairs(sums_by(other, weights, 0))
    chance = first * second / max(pairs(np.array([weights.sum()])), 1.0)
    most = (first + second) / 2
    return 1.0 if most == chance else (both - chance) / (most - chance)


def saved_description(between: FloatArray, sizes: FloatArray | IntArray, n_edges: int) -> float:
    """Return how much shorter, in nats per edge, a partition makes the description of a graph; 0 for one cluster.

    The labels, and the edges given the degrees: by a rate for every pair of clusters, or by one rate inside clusters and one
    between them (the planted partition), whichever is shorter.

    Examples
    --------
    >>> import numpy as np
    >>> from corecut.description import saved_description
    >>> saved_description(np.array([[200.0]]), np.array([50]), 100)
    0.0
    >>> saved_description(np.diag([100.0, 100.0]), np.array([25, 25]), 1000) > 0
    True
    """
    n, k = float(sizes.sum()), sizes.size
    labels = gammaln(n + 1) - gammaln(sizes + 1).sum() + gammaln(n) - gammaln(k) - gammaln(n - k + 1)
    share = between / between.sum()
    volume = share.sum(axis=1)
    within, by_chance = float(share.trace()), float(np.square(volume).sum())
    planted = _divergence(np.array([within, 1 - within]), np.array([by_chance, 1 - by_chance]))
    pairs = k * (k + 1) / 2
    rates = gammaln(pairs + n_edges) - gammaln(n_edges + 1) - gammaln(pairs)
    by_pairs = _divergence(share, np.outer(volume, volume))
    return float(max(planted, by_pairs - rates / n_edges) - labels / n_edges)


def _divergence(shares: FloatArray, expected: FloatArray) -> float:
    """Return Σ p log(p/q) over what occurs."""
    occurs = (shares > 0) & (expected > 0)
    return float(np.sum(shares[occurs] * np.log(shares[occurs] / expected[occurs])))
