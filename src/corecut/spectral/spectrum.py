"""How many eigenvectors to compute, and how many of them to keep.

k clusters that stand out of the noise alike have k eigenvalues of about the same size, and each vector helps to tell them
apart: with half of them a quarter of the agreement is lost where a node has more neighbours outside its cluster than inside.
Where the eigenvalues fall steadily, the later vectors tell of noise and of single small groups, and do harm.
"""

from __future__ import annotations

import numpy as np

from corecut._typing import FloatArray

# As many vectors as this are always kept.
_LEAST = 16
# As many are computed for very many clusters, or on very large graphs.
_MOST, _MANY_CLUSTERS, _ENTRIES = 64, 128, 1_000_000
# An eigenvalue below this share of the one at a quarter of the clusters is noise.
_SHARE = 0.74


def computed_count(n_clusters: int, size: int) -> int:
    """Return how many eigenvectors are worth computing for k clusters of a graph of `size` nodes.

    All k where that is cheap; more than 64 only for fewer than 128 clusters, and so many that there are a million entries.
    """
    most = _MOST if n_clusters >= _MANY_CLUSTERS else max(_MOST, _ENTRIES // max(size, 1))
    return min(n_clusters, most, size)


def useful_count(values: FloatArray, n_clusters: int) -> int:
    """Return how many of the leading eigenvectors tell k clusters apart, from their eigenvalues (falling).

    All whose eigenvalue is at least 0.74 times the one at a quarter of k, and no fewer than 16. The first ones are no
    measure: a few that are nearly 1 belong to crumbs.

    Examples
    --------
    >>> import numpy as np
    >>> from corecut.spectral.spectrum import useful_count
    >>> useful_count(np.linspace(0.6, 0.5, 40), 40)
    40
    >>> useful_count(np.linspace(0.6, 0.2, 40), 40)
    23
    """
    available = min(values.size, n_clusters)
    if available <= _LEAST:
        return available
    threshold = _SHARE * values[min(n_clusters // 4, values.size - 1)]
    standing = int(np.count_nonzero(values[:available] >= threshold))
    return max(_LEAST, standing)
