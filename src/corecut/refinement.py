"""Refinement: exact moves of single nodes that lower the objective of a partition.

The set of moves: one node goes from its cluster to a cluster that one of its neighbours is in, if F falls by more than 10⁻¹².
No cluster loses its last node (or its last volume), none leaves the bounds on its size. Sweeps look at the nodes whose
neighbourhood changed; when none of those moves, a sweep over all nodes decides whether it is over. A partition that such a
sweep leaves alone is left alone by a second call.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from corecut import _core
from corecut._typing import AnyArray, LabelArray
from corecut._validation import check_count, check_real, compact_labels
from corecut.engines import Engine, LocalEngine
from corecut.graph import as_graph
from corecut.node_ids import in_node_order
from corecut.objective import Objective, volume_of_clusters
from corecut.size_bounds import least_nodes, most_nodes
from corecut.weighted import WeightedGraph

# Chains of moves, which one thread follows, are looked for on levels of up to this many entries.
CLIMB = 2_000_000


@dataclass(frozen=True, eq=False)
class Refinement:
    """A refined partition.

    Attributes
    ----------
    labels
        Cluster of every node, called as in the labels that came in.
    objective_before, objective
        F of the partition that came in, and of `labels`.
    n_moves, n_passes
        Moves made, and sweeps over active or all nodes.
    converged
        True when a sweep over all nodes found no move; False when `max_passes` or `tolerance` ended it.
    """

    labels: AnyArray = field(repr=False)
    objective_before: float
    objective: float
    n_moves: int
    n_passes: int
    converged: bool


def refine_partition(
    graph: Any,
    labels: Any,
    *,
    balance: float = 0.0,
    n_clusters: int | None = None,
    min_cluster_size: float | None = None,
    max_cluster_size: float | None = None,
    max_passes: int | None = None,
    tolerance: float = 0.0,
    n_jobs: int | None = None,
) -> Refinement:
    """Lower the normalised cut of any partition, of METIS, Leiden or anyone, by exact moves of single nodes.

    Parameters
    ----------
    graph
        A :class:`Graph`, or anything that holds one: a matrix, a file's name, a graph of networkx or igraph, a frame.
    labels
        The partition: integers (as METIS and Leiden give them), text or categories, in the order of the nodes or by name (a
        mapping, a pandas Series, networkx's communities, a clustering of igraph). The result calls clusters as they are called.
    balance
        β of the objective (:mod:`corecut.objective`): 0 for the plain normalised cut, more for clusters of like volume.
    n_clusters
        k, the number of distinct labels by default. When it is given, labels are the numbers 0..k-1, and one that does not
        occur is an empty cluster.
    min_cluster_size, max_cluster_size
        Bounds that moves keep: whole numbers of nodes, or other numbers as factors of the mean cluster (1.03 allows 3 % more).
        A cluster that is outside to begin with may stay there, but comes no further out.
    max_passes
        End after this many sweeps; None goes on until no move is left.
    tolerance
        End when a sweep lowers F by less than this share of it; 0 goes on until no move is left.
    n_jobs
        Number of threads; None for all cores. The result does not depend on it.

    Returns
    -------
    Refinement

    Notes
    -----
    The first sweep costs O(edges), later ones the edges of nodes whose neighbourhood changed.

    Examples
    --------
    >>> import numpy as np
    >>> from corecut import refine_partition
    >>> path = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
    >>> refined = refine_partition(path, [0, 1, 1, 1])
    >>> refined.labels
    array([0, 0, 1, 1], dtype=int32)
    """
    checked = as_graph(graph, n_jobs=n_jobs)
    given = in_node_order(labels, checked)
    partition, k = compact_labels(given, checked.n_nodes, n_clusters=n_clusters)
    n, smallest, largest = checked.n_nodes, 0.0, np.inf
    if min_cluster_size is not None:
        check_real(min_cluster_size, "min_cluster_size")
        smallest = least_nodes(min_cluster_size, n, k)
    if max_cluster_size is not None:
        check_real(max_cluster_size, "max_cluster_size", exclusive=True)
        largest = most_nodes(max_cluster_size, n, k)
    if smallest > largest:
        raise ValueError(f"min_cluster_size={smallest:g} is above max_cluster_size={largest:g}")
    level, typical = WeightedGraph(checked, np.ones(checked.n_nodes)), volume_of_clusters(checked.degrees, k)
    objective = Objective.of(typical, k, balance=check_real(balance, "balance"), min_size=smallest, max_size=largest)
    refined = refine_weighted(
        level, partition, objective, k, max_passes=max_passes, tolerance=check_real(tolerance, "tolerance"), n_jobs=n_jobs
    )
    if not refined.converged:
        # The last pass has sums that carry the rounding of all moves: much, beside weights over many orders of magnitude.
        counted = refine_weighted(level, refined.labels, objective, k, max_passes=0, n_jobs=n_jobs)
        refined = replace(refined, objective=counted.objective)
    if n_clusters is not None:
        return refined
    called, first = np.unique(partition, return_index=True)
    names = np.asarray(given)[first]
    return refined if np.array_equal(names, called) else replace(refined, labels=names[refined.labels])


def refine_weighted(
    level: WeightedGraph,
    labels: LabelArray,
    objective: Objective,
    n_clusters: int,
    *,
    max_passes: int | None = None,
    tolerance: float = 0.0,
    n_jobs: int | None = None,
    engine: Engine | None = None,
) -> Refinement:
    """Refine a partition of a graph whose nodes stand for several, by moves of single nodes."""
    refined = labels.copy()
    moves, swept, before, after, converged = (engine or LocalEngine(n_jobs)).refine(
        level.graph,
        level.sizes,
        refined,
        k=n_clusters,
        objective=objective.native,
        max_passes=2**62 if max_passes is None else check_count(max_passes, "max_passes", minimum=0),
        tolerance=tolerance,
    )
    return Refinement(refined, before, after, moves, swept, converged)


def climb_weighted(
    level: WeightedGraph,
    labels: LabelArray,
    objective: Objective,
    n_clusters: int,
    *,
    seed: int = 0,
    patience: int = 30,
    max_rounds: int = 10,
    passes: float = 4.0,
    tolerance: float = 1e-4,
) -> tuple[LabelArray, float]:
    """Lower F by chains of moves that may raise it on the way, within `passes` times the work of a pass over the edges.

    From each border node a search goes on with the best move beside what it has moved, and takes back what did not pay. It
    smooths borders that no single move improves, and swaps nodes of clusters that are full. Returns labels and F.
    """
    climbed = labels.copy()
    _, _, _, after = _core.climb(
        matrix=level.graph.matrix,
        degrees=level.graph.degrees,
        sizes=level.sizes,
        labels=climbed,
        k=n_clusters,
        objective=objective.native,
        max_rounds=max_rounds,
        patience=patience,
        work=int(passes * (level.graph.n_entries + 8 * level.n_nodes)) + 100_000,
        tolerance=tolerance,
        seed=seed,
    )
    return climbed, after


def bring_into_bounds(level: WeightedGraph, labels: LabelArray, objective: Objective, n_clusters: int) -> LabelArray:
    """Move nodes out of clusters that are too large and into those that are too small, raising F as little as possible.

    Where every node has size 1 and the bounds can be met, they are met.
    """
    if not objective.bounded:
        return labels
    moved = labels.copy()
    _core.bring_into_bounds(
        matrix=level.graph.matrix,
        degrees=level.graph.degrees,
        sizes=level.sizes,
        labels=moved,
        k=n_clusters,
        objective=objective.native,
    )
    return moved
