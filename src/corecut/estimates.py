"""What a clustering will take on this machine: highest memory and time, on both paths, before it is begun.

How far a graph shrinks when its nodes are gathered, which decides both, cannot be told from its size: a mesh, a neighbour graph
and a noisy network of the same size differ by a factor of ten. So the first step of the clustering is made (about a fifth of
its time), by the clock: the groups of the finest level, and of a sample of these the rows of the quotient.

    with aggregation, s the share of the entries that is left:     10 MB + (75 + 4 t) n + 28 s m + 4,000 (20 k - 10,000)
    through a coreset of N draws:                                  10 MB + 60 n + 1,000 N + 24 m (N/n)²

bytes beside the graph for n nodes, m stored entries, k clusters (the last term for more than 500) and t threads. What
aggregation takes follows from the time of the step; for the stages after it, which :mod:`corecut.durations` reckons, the same
step is made on a small graph of which it is known how long it took elsewhere: a machine is as much slower or faster, with its
threads, whatever the kind of graph. Noisy graphs and meshes are refined for longer, with 20 m bytes more: their draws do not
agree, and borders are improved on every scale, or nodes halved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._validation import thread_count
from corecut.aggregation import first_groups
from corecut.durations import aggregation_seconds, expected_seconds
from corecut.graph import Graph
from corecut.settings import Choices, Settings, coreset_size_for, resolve
from corecut.weighted import WeightedGraph

_FIXED = 10 * 10**6
# The coarsest quotient has about this share of the finest one's entries.
_TOP_SHARE = 0.4
# The quotient's rows are looked at in so many places, of so many of its entries in all.
_PLACES, _LOOKED_AT = 32, 4_000_000
# A machine is not believed to be more than this many times faster or slower than the one that was measured.
_SPEED = 30.0
# The graph that tells of the machine: nodes, where the edges of a node end, and what the first step takes on it on one core.
_KNOWN_NODES, _KNOWN_STRIDES, _KNOWN_SECONDS = 30_000, (1, 7, 389, 4001, 11_003), 0.007
# Above this share of entries left a graph is noise, below this many entries per node a mesh: refinement takes so many more
# seconds and bytes per entry.
_NOISE, _MESH, _DOUBTFUL, _DOUBTFUL_BYTES = 0.8, 7.0, 200e-9, 20


@dataclass(frozen=True)
class Probe:
    """The first step of a clustering: its seconds, the share of entries that a quotient keeps, and how slow the machine is."""

    seconds: float
    share: float
    slowness: float


@dataclass(frozen=True)
class Estimate:
    """Highest memory beside the graph, in bytes, and time in seconds."""

    n_bytes: int
    seconds: float


def probe(graph: Graph, n_clusters: int, *, n_jobs: int | None = None) -> Probe:
    """Gather the nodes once, as the clustering would, and look at a sample of the groups."""
    threads = thread_count(n_jobs)
    begin = perf_counter()
    groups = first_groups(WeightedGraph.of(graph), n_clusters, n_jobs=n_jobs)
    taken = perf_counter() - begin
    count = int(groups.max()) + 1
    rows = _core.Contraction(graph.matrix, groups, count, threads)
    # Whole graphs of few entries, else ranges of groups that are spread over them.
    share = min(1.0, _LOOKED_AT / max(graph.n_entries, 1))
    borders = np.linspace(0, count, _PLACES + 1).astype(np.int64)
    kept, chosen = 0, np.zeros(count, bool)
    for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        end = min(last, first + max(1, round(share * (last - first))))
        if end > first:
            kept += rows.rows(first, end)[0][1].size
            chosen[first:end] = True
    looked = int(np.diff(graph.indptr)[chosen[groups]].sum())
    return Probe(taken, kept / max(looked, 1), _slowness(n_jobs))


def _slowness(n_jobs: int | None) -> float:
    """Return how much slower than the one that was measured this machine is, on so many threads."""
    nodes = np.arange(_KNOWN_NODES)
    ends = np.stack([(nodes + stride) % _KNOWN_NODES for stride in _KNOWN_STRIDES], axis=1).ravel()
    half = sp.coo_array((np.ones(ends.size), (nodes.repeat(len(_KNOWN_STRIDES)), ends)), shape=(_KNOWN_NODES,) * 2)
    known = WeightedGraph.of(Graph.from_matrix(sp.csr_array(half + half.T), n_jobs=n_jobs))
    taken = np.inf
    for _ in range(3):
        begin = perf_counter()
        first_groups(known, 10, n_jobs=n_jobs)
        taken = min(taken, perf_counter() - begin)
    return float(np.clip(taken / _KNOWN_SECONDS, 1 / _SPEED, _SPEED))


def estimate_aggregation(graph: Graph, n_clusters: int, found: Probe, *, n_jobs: int | None = None) -> Estimate:
    """Return what a clustering with aggregation will take."""
    n, m = graph.n_nodes, graph.n_entries
    choices = _choices(graph, n_clusters, aggregate=True, n_jobs=n_jobs)
    seconds = expected_seconds(choices, graph, top_entries=_TOP_SHARE * found.share * m)
    del seconds["aggregation"]
    n_bytes = (
        _FIXED + (75 + 4 * thread_count(n_jobs)) * n + 28 * found.share * m + 4000 * max(0, min(n, 20 * n_clusters) - 10_000)
    )
    if found.share > _NOISE or m < _MESH * n:
        seconds["refinement"] += _DOUBTFUL * m
        n_bytes += _DOUBTFUL_BYTES * m if choices.may_halve else 0
    later = found.slowness * sum(seconds.values())
    return Estimate(int(n_bytes), aggregation_seconds(found.seconds, found.share) + later)


def estimate_coreset(graph: Graph, n_clusters: int, found: Probe, *, n_jobs: int | None = None) -> Estimate:
    """Return what a clustering through a coreset of the size that "auto" takes will take."""
    n, m = graph.n_nodes, graph.n_entries
    choices = _choices(graph, n_clusters, aggregate=False, n_jobs=n_jobs)
    size = min(choices.coreset_size, n)
    n_bytes = _FIXED + 60 * n + 1000 * size + 24 * m * (size / n) ** 2
    return Estimate(int(n_bytes), found.slowness * sum(expected_seconds(choices, graph).values()))


def _choices(graph: Graph, n_clusters: int, *, aggregate: bool, n_jobs: int | None) -> Choices:
    """Return what a run would settle on, made to take one of the paths."""
    k = min(n_clusters, graph.n_nodes)
    usual = resolve(Settings(k, n_jobs=n_jobs), graph)
    return replace(usual, aggregate=aggregate, coreset_size=coreset_size_for(graph, k, "auto"))
