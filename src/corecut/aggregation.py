"""Aggregation: many small, tight groups of nodes, and the quotient graph in which each group is a node.

    Q = SᵀAS,      S_xg = 1 where node x is in group g.

On a sparse graph a sample of the nodes keeps almost no edges among themselves, and the coreset's graph falls apart. The
quotient keeps all of them: Q_gh is the weight between two groups, Q_gg the weight inside one, counted in both directions. For
every partition that respects the groups, volumes, cuts and so the normalised cut of Q are *exactly* those of A, and Q is again
a weighted kernel k-means problem with K = D_Q⁻¹QD_Q⁻¹ and W = D_Q.

Groups grow by local moves of single nodes that raise the modularity, under a bound on a group's volume, so that there are far
more groups than clusters; then the same on the quotient, until its size suits the number of clusters. Moves are made in rounds
(`_kernels/rounds.hpp`): blocks of rows propose them by the state in which the round began, and all that fit are made together,
so that threads share all of the work and groups do not depend on their number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corecut._typing import LabelArray
from corecut._validation import check_count, check_option, check_real, check_weights
from corecut.engines import Engine, LocalEngine
from corecut.graph import as_graph
from corecut.objective import typical_volume
from corecut.shelf import Shelf
from corecut.weighted import WeightedGraph

# Passes of local moves for each level, and on levels of many entries: the next one goes on from there, over fewer.
_PASSES, _PASSES_LARGE, _MANY_ENTRIES = 5, 3, 5_000_000
# A level that does not take away at least this share of the nodes is the last one.
_LEAST_SHRINKAGE = 0.05
# A level with fewer groups per cluster than this is not made: a partition needs room.
_LEAST_GROUPS = 4
# Groups that a cluster has at least.
_GROUPS_PER_CLUSTER = 10.0


@dataclass(frozen=True, eq=False)
class Quotient(WeightedGraph):
    """A graph whose nodes are groups of another one's.

    Attributes
    ----------
    graph
        Q, with loops that hold the groups' inside weights.
    sizes
        Number of original nodes in each group.
    groups
        Group of every node of the graph one level below.
    """

    groups: LabelArray = field(repr=False)


def aggregate_graph(
    graph: Any,
    n_clusters: int,
    *,
    groups_per_cluster: float = _GROUPS_PER_CLUSTER,
    n_groups: int | None = None,
    sizes: Any = None,
    equal_sizes: bool = False,
    max_levels: int = 10,
    n_jobs: int | None = None,
) -> list[Quotient]:
    """Gather the nodes into groups, level by level.

    Parameters
    ----------
    graph
        A :class:`Graph` or anything it can be made from.
    n_clusters
        Number of clusters k that the quotient is for.
    groups_per_cluster
        A group holds at most about vol / (groups_per_cluster · k) of the volume (a node beyond that stays alone, and its
        volume does not count).
    n_groups
        Go on until there are at most this many; max(2000, 2 · groups_per_cluster · k) by default.
    sizes
        Number of original nodes that each node stands for, 1 by default.
    equal_sizes
        Bound the number of nodes of a group, n / (groups_per_cluster · k), instead of its volume: for clusters whose sizes are
        bounded tightly, which large groups of thin nodes could not be put together to.
    max_levels
        At most this many levels.
    n_jobs
        Number of threads; None for all cores. The groups do not depend on it.

    Returns
    -------
    list of Quotient
        From fine to coarse; empty when the graph is small enough or nothing can be gathered.

    Notes
    -----
    Cost O(edges) per level. A level ends after few sweeps, before it has converged: the next one goes on from there.

    Examples
    --------
    >>> from corecut import aggregate_graph, make_degree_corrected_sbm
    >>> graph, truth = make_degree_corrected_sbm(5000, 5, mean_degree=10, random_state=0)
    >>> levels = aggregate_graph(graph, 5)
    >>> levels[-1].graph.n_nodes < 2000
    True
    """
    finest = as_graph(graph, n_jobs=n_jobs)
    counts = np.ones(finest.n_nodes) if sizes is None else check_weights(sizes, finest.n_nodes, name="sizes")
    return gather_levels(
        WeightedGraph(finest, counts),
        check_count(n_clusters, "n_clusters"),
        groups_per_cluster=check_real(groups_per_cluster, "groups_per_cluster", exclusive=True),
        equal_sizes=bool(check_option(equal_sizes, "equal_sizes", (True, False))),
        n_groups=None if n_groups is None else check_count(n_groups, "n_groups"),
        max_levels=check_count(max_levels, "max_levels"),
        engine=LocalEngine(n_jobs),
    )


def first_groups(whole: WeightedGraph, k: int, *, n_jobs: int | None = None) -> LabelArray:
    """Return the groups of the first level: what a clustering begins with."""
    wanted = _GROUPS_PER_CLUSTER * k
    cap = typical_volume(whole.graph.degrees, wanted) / wanted
    return LocalEngine(n_jobs).group_nodes(whole.graph, whole.graph.degrees, cap, max_passes=_passes(whole))


def _passes(level: WeightedGraph) -> int:
    return _PASSES if level.graph.n_entries <= _MANY_ENTRIES else _PASSES_LARGE


def gather_levels(
    whole: WeightedGraph,
    k: int,
    *,
    groups_per_cluster: float = _GROUPS_PER_CLUSTER,
    equal_sizes: bool = False,
    n_groups: int | None = None,
    max_levels: int = 10,
    engine: Engine,
    shelf: Shelf | None = None,
) -> list[Quotient]:
    """Gather the nodes of a graph whose nodes may stand for several; see :func:`aggregate_graph`. Levels lie on `shelf`."""
    shelf = shelf or Shelf()
    wanted = groups_per_cluster * k
    enough = max(2000, int(2 * wanted)) if n_groups is None else n_groups
    volume = typical_volume(whole.graph.degrees, wanted)
    # By sizes, the gain of a move is that of the constant Potts model: weight less what the sizes would lead one to expect, in
    # the unit of the mean weight of an edge.
    unit = whole.graph.volume / max(whole.graph.n_entries, 1)
    cap = unit * max(whole.sizes.sum() / wanted, whole.sizes.max()) if equal_sizes else volume / wanted
    levels: list[Quotient] = []
    current = whole
    while current.n_nodes > enough and len(levels) < max_levels:
        masses = unit * current.sizes if equal_sizes else current.graph.degrees
        groups = engine.group_nodes(current.graph, masses, cap, max_passes=_passes(current))
        count = int(groups.max()) + 1
        if count > (1 - _LEAST_SHRINKAGE) * current.n_nodes or count < min(wanted, _LEAST_GROUPS * k):
            break
        level = shelf.contract(current, groups, engine=engine)
        levels.append(Quotient(level.graph, level.sizes, groups))
        current = level
    return levels
