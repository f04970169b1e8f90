"""Memory: upper bounds of what a clustering holds beside the graph, threads and clusters included.

    through a coreset of N draws:   180 n + 2,048 N + 40 m (N/n)² + 16 k t
    with aggregation:               60 n + 40 m + 12 n t + 2,048 min(n, 20 k + 20,000)

bytes, and 32 MB for libraries, for n nodes, m stored entries (twice the edges), k clusters and t threads. The first terms are
tables over the nodes; 40 m stands for the quotient graphs and the work on them, 12 n t for the tables that every thread has of
its own, and the last terms for vectors over the nodes of the spectral step. They are bounds, measured on graphs of 6 to 55
entries per node (docs/scale.md) and held by a test; the more entries per node, the less of them is used.
"""

from __future__ import annotations

from corecut._validation import thread_count

_LIBRARIES = 32 * 2**20


def coreset_bytes(n_nodes: int, n_entries: int, n_clusters: int, *, coreset_size: int, n_jobs: int | None = None) -> int:
    """Return a bound on the bytes that a clustering through a coreset holds beside the graph."""
    induced = n_entries * (coreset_size / max(n_nodes, 1)) ** 2
    tables = 16 * n_clusters * thread_count(n_jobs)
    return int(_LIBRARIES + 180 * n_nodes + 2048 * coreset_size + 40 * induced + tables)


def aggregation_bytes(n_nodes: int, n_entries: int, n_clusters: int, *, n_jobs: int | None = None) -> int:
    """Return a bound on the bytes that a clustering with aggregation holds beside the graph."""
    vectors = 2048 * min(n_nodes, 20 * n_clusters + 20_000)
    return _LIBRARIES + 60 * n_nodes + 40 * n_entries + 12 * n_nodes * thread_count(n_jobs) + vectors
