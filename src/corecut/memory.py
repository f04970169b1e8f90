"""Memory: upper bounds of what a clustering holds beside the graph, threads and clusters included.

    through a coreset of N draws:   180 n + 2,048 N + 40 m (N/n)² + 16 k t + 7 MB max(0, t - 4)
    with aggregation:               60 n + 40 m + 12 n t + 2,048 min(n, 20 k + 20,000) + 2,000 min(n, 20 k) if k > 500

bytes, and 32 MB for libraries, for n nodes, m stored entries (twice the edges), k clusters and t threads. The first terms are
tables over the nodes; 40 m stands for the quotient graphs and the work on them, 12 n t for the tables that every thread has of
its own, and 2,048 for vectors over the nodes of the spectral step, of which many clusters need more. Where there are many
threads, what the allocator keeps for each of them is felt. They are bounds, measured on graphs of 6 to 55 entries per node
(docs/scale.md) and held by a test; the more entries per node, the less of them is used.
"""

from __future__ import annotations

import os
from typing import Any

from corecut._files import parse_size, require_folder_name, show_size
from corecut._validation import check_count, thread_count

_LIBRARIES = 32 * 2**20
# What the allocator keeps for a thread, from where on that is more than the libraries' share has room for.
_KEPT, _FEW_THREADS = 7_000_000, 4
# From so many clusters on the quotient is so large that blocks of vectors count.
_MANY_CLUSTERS = 500


def coreset_bytes(n_nodes: int, n_entries: int, n_clusters: int, *, coreset_size: int, n_jobs: int | None = None) -> int:
    """Return a bound on the bytes that a clustering through a coreset holds beside the graph."""
    induced = n_entries * (coreset_size / max(n_nodes, 1)) ** 2
    threads = thread_count(n_jobs)
    tables = 16 * n_clusters * threads + _KEPT * max(0, threads - _FEW_THREADS)
    return int(_LIBRARIES + 180 * n_nodes + 2048 * coreset_size + 40 * induced + tables)


def aggregation_bytes(n_nodes: int, n_entries: int, n_clusters: int, *, n_jobs: int | None = None) -> int:
    """Return a bound on the bytes that a clustering with aggregation holds beside the graph."""
    tables = 60 * n_nodes + 40 * n_entries + 12 * n_nodes * thread_count(n_jobs)
    return _LIBRARIES + tables + _vector_bytes(n_nodes, n_clusters)


def least_bytes(n_nodes: int, n_entries: int, n_clusters: int, *, n_jobs: int | None = None) -> int:
    """Return about what a clustering with aggregation holds when all of its quotient graphs are on disk."""
    tables = 60 * n_nodes + 2.5 * n_entries + 12 * n_nodes * thread_count(n_jobs)
    return int(_LIBRARIES + tables + _vector_bytes(n_nodes, n_clusters))


def _vector_bytes(n_nodes: int, n_clusters: int) -> int:
    """Return what the spectral step takes for vectors over the nodes of the quotient."""
    few = 2048 * min(n_nodes, 20 * n_clusters + 20_000)
    return few + (2000 * min(n_nodes, 20 * n_clusters) if n_clusters > _MANY_CLUSTERS else 0)


def check_limit(limit: Any, scratch: Any) -> None:
    """Refuse a limit that is no size, and a scratch folder that nothing would be put into."""
    if limit is None:
        if scratch is not None:
            raise ValueError("scratch= needs memory_limit=: without a limit nothing is put on disk")
        return
    if not isinstance(limit, str):
        check_count(limit, "memory_limit")
    parse_size(limit)
    if scratch is None:
        return
    if not isinstance(scratch, str | os.PathLike):
        raise TypeError(f"scratch must be the name of a folder, got {type(scratch).__name__}")
    require_folder_name(scratch)


def require_limit(limit: str | int, needed: int) -> None:
    """Refuse a limit below what the clustering needs even with everything on disk that can be there."""
    if parse_size(limit) < needed:
        raise ValueError(
            f"memory_limit={limit} is too low: with all on disk that can be there, this clustering still needs about "
            f"{show_size(needed)}; allow at least {show_size(needed * 1.01).replace(' ', '')}"
        )
