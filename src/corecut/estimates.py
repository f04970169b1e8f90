"""What a clustering will take on this machine: highest memory and time, on both paths, before it is begun.

How far a graph shrinks when its nodes are gathered, which decides both, cannot be told from its size: a mesh, a neighbour graph
and a noisy network of the same size differ by a factor of ten. So the first step of the clustering is made (about a fifth of
its time), by the clock: the groups of the finest level, and of a sample of these the rows of the quotient.

    with aggregation, s the share of the entries that is left:     10 MB + (35 + 4 t) n + 25 s m
    through a coreset of N draws:                                  10 MB + 60 n + 1,000 N + 24 m (N/n)²

bytes beside the graph for n nodes, m stored entries and t threads. The time is that of :mod:`corecut.durations`, times how much
slower or faster than expected the step was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from corecut import _core
from corecut._validation import thread_count
from corecut.aggregation import first_groups
from corecut.durations import FIRST_STEP, expected_seconds
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
# A step of less than this many seconds tells how long it takes to begin, and nothing about the machine.
_PROMPT = 0.02


@dataclass(frozen=True)
class Probe:
    """The first step of a clustering: the share of the entries that a quotient keeps, and seconds taken to seconds expected."""

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
    expected = FIRST_STEP * expected_seconds(_choices(graph, n_clusters, aggregate=True, n_jobs=n_jobs), graph)["aggregation"]
    slowness = (taken + _PROMPT) / (expected + _PROMPT)
    return Probe(kept / max(looked, 1), float(np.clip(slowness, 1 / _SPEED, _SPEED)))


def estimate_aggregation(graph: Graph, n_clusters: int, found: Probe, *, n_jobs: int | None = None) -> Estimate:
    """Return what a clustering with aggregation will take."""
    n, m = graph.n_nodes, graph.n_entries
    choices = _choices(graph, n_clusters, aggregate=True, n_jobs=n_jobs)
    seconds = expected_seconds(choices, graph, top_entries=_TOP_SHARE * found.share * m)
    n_bytes = _FIXED + (35 + 4 * thread_count(n_jobs)) * n + 25 * found.share * m
    return Estimate(int(n_bytes), found.slowness * sum(seconds.values()))


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
