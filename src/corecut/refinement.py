"""Refinement: exact moves of single nodes that lower the normalised cut of a partition.

    F(Π) = Σ_j 1 - (assoc_j + (τ/n)·S_j²) / (vol_j + τ·S_j),

with S_j the number of nodes of cluster j and τ ≥ 0 the regularisation; τ = 0 is the plain normalised cut (as a sum).

The set of moves: one node goes from its cluster to a cluster that one of its neighbours is in, if F falls by more than 10⁻¹².
No cluster loses its last node (or its last volume), none leaves the bounds on its size. Sweeps look at the nodes whose
neighbourhood changed; when none of those moves, a sweep over all nodes decides whether it is over. A partition that such a
sweep leaves alone is left alone by a second call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corecut import _core
from corecut._typing import FloatArray, LabelArray
from corecut._validation import check_count, check_labels, check_real, check_weights, thread_count
from corecut.graph import Graph, as_graph


@dataclass(frozen=True, eq=False)
class Refinement:
    """A refined partition.

    Attributes
    ----------
    labels
        Cluster of every node.
    objective_before, objective
        F of the partition that came in, and of `labels`.
    n_moves, n_passes
        Moves made, and sweeps over active or all nodes.
    converged
        True when a sweep over all nodes found no move; False when `max_passes` or `tolerance` ended it.
    """

    labels: LabelArray = field(repr=False)
    objective_before: float
    objective: float
    n_moves: int
    n_passes: int
    converged: bool


def refine_partition(
    graph: Any,
    labels: Any,
    *,
    regularization: float = 0.0,
    n_clusters: int | None = None,
    min_cluster_size: int | None = None,
    max_cluster_size: int | None = None,
    max_passes: int | None = None,
    tolerance: float = 0.0,
    n_jobs: int | None = None,
) -> Refinement:
    """Lower the normalised cut of any partition, of METIS, Leiden or anyone, by exact moves of single nodes.

    Parameters
    ----------
    graph
        A :class:`Graph` or anything it can be made from.
    labels
        The partition, 0..k-1.
    regularization
        τ in units of the mean degree: 0 for the plain normalised cut.
    n_clusters
        k, the largest label plus one by default.
    min_cluster_size, max_cluster_size
        Bounds on the number of nodes that moves keep (a cluster that is outside to begin with may stay there).
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
    tau = check_real(regularization, "regularization") * checked.volume / checked.n_nodes
    return refine_weighted(
        checked,
        labels,
        sizes=np.ones(checked.n_nodes),
        tau=tau,
        n_clusters=n_clusters,
        min_cluster_size=min_cluster_size,
        max_cluster_size=max_cluster_size,
        max_passes=max_passes,
        tolerance=tolerance,
        n_jobs=n_jobs,
    )


def refine_weighted(
    graph: Graph,
    labels: Any,
    *,
    sizes: FloatArray,
    tau: float,
    n_clusters: int | None = None,
    min_cluster_size: float | None = None,
    max_cluster_size: float | None = None,
    max_passes: int | None = None,
    tolerance: float = 0.0,
    n_jobs: int | None = None,
) -> Refinement:
    """Refine a partition of a graph whose nodes stand for `sizes` original ones, with τ in units of weight."""
    checked, k = check_labels(labels, graph.n_nodes, n_clusters=n_clusters)
    weights = check_weights(sizes, graph.n_nodes, name="sizes")
    smallest = 0.0 if min_cluster_size is None else check_real(min_cluster_size, "min_cluster_size")
    largest = np.inf if max_cluster_size is None else check_real(max_cluster_size, "max_cluster_size", exclusive=True)
    if smallest > largest:
        raise ValueError(f"min_cluster_size={smallest:g} is above max_cluster_size={largest:g}")
    passes = 2**62 if max_passes is None else check_count(max_passes, "max_passes", minimum=0)
    refined = checked.copy() if np.may_share_memory(checked, labels) else checked
    moves, swept, before, after, converged = _core.refine(
        graph.matrix,
        graph.degrees,
        weights,
        refined,
        k,
        tau,
        float(weights.sum()),
        smallest,
        largest,
        passes,
        check_real(tolerance, "tolerance"),
        thread_count(n_jobs),
    )
    return Refinement(refined, before, after, moves, swept, converged)
