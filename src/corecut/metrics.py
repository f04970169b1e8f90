"""Metrics of a partition: how good labels are on a graph or a kernel.

With d_x the degrees (a self-loop counts once), vol_j = Σ_{x∈j} d_x, assoc_j = Σ_{x,y∈j} A_xy and cut_j = vol_j - assoc_j:

    conductance φ_j = cut_j / vol_j,        normalised cut = Σ_j φ_j  (the paper reports the mean, Σ_j φ_j / k),
    modularity = Σ_j (assoc_j/vol - γ (vol_j/vol)²),
    kernel k-means cost = Σ_x w_x K_xx - Σ_j Σ_{x,y∈j} w_x w_y K_xy / W_j.

With a balance β > 0, conductance and normalised cut are those of the objective that refinement lowers: each cut_j is larger by
a fee of β·vol/k, so that a crumb has a high conductance, however clean its cut.

Every one needs a single parallel pass over the edges and no copy of them, except for the cost of given centres
(`kernel_kmeans_cost(centers=...)`), which holds n × k distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._typing import FloatArray, LabelArray
from corecut._validation import check_nodes, check_option, check_real, compact_labels, thread_count
from corecut.graph import as_graph
from corecut.kernel import KernelView
from corecut.node_ids import in_node_order
from corecut.objective import Objective, volume_of_clusters


def conductance(
    graph: Any, labels: Any, *, balance: float = 0.0, n_clusters: int | None = None, n_jobs: int | None = None
) -> FloatArray:
    """Return cut_j / vol_j of every cluster: 0 for a union of components, 1 for a cluster without inner edges.

    Parameters
    ----------
    graph
        A :class:`Graph`, or anything that holds one: a matrix, a file's name, a graph of networkx or igraph, a frame.
    labels
        Cluster of every node: integers, text or categories. Clusters are counted in sorted order, whatever numbers they have.
        Labels by name are taken, too: a mapping, a pandas Series, the communities of networkx, a clustering of igraph.
    balance
        β of the objective (:mod:`corecut.objective`): every cluster pays a fee of β·vol/k for existing. 0 for the plain cut.
    n_clusters
        k, the number of distinct labels by default. When it is given, labels are the numbers 0..k-1, and one that does not
        occur counts as an empty cluster. A cluster that is empty, or has no edge, has conductance 1: it is no cluster, and
        must not make a partition look better.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    ndarray of shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from corecut import conductance
    >>> path = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
    >>> conductance(path, [0, 0, 1, 1])
    array([0.33333333, 0.33333333])
    """
    beta = check_real(balance, "balance")
    checked = as_graph(graph, n_jobs=n_jobs)
    association, volume, _ = _cluster_totals(checked, labels, n_clusters, n_jobs)
    objective = (
        Objective.of(volume_of_clusters(checked.degrees, volume.size), volume.size, balance=beta) if beta else Objective()
    )
    return objective.terms(association, volume)


def normalized_cut(
    graph: Any,
    labels: Any,
    *,
    reduce: Literal["mean", "sum"] = "mean",
    balance: float = 0.0,
    n_clusters: int | None = None,
    n_jobs: int | None = None,
) -> float:
    """Return the normalised cut: the mean conductance of the clusters (as in the paper), or their sum.

    See :func:`conductance` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from corecut import normalized_cut
    >>> path = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
    >>> round(normalized_cut(path, [0, 0, 1, 1]), 4)
    0.3333
    """
    check_option(reduce, "reduce", ("mean", "sum"))
    values = conductance(graph, labels, balance=balance, n_clusters=n_clusters, n_jobs=n_jobs)
    return float(values.mean() if reduce == "mean" else values.sum())


def modularity(graph: Any, labels: Any, *, resolution: float = 1.0, n_jobs: int | None = None) -> float:
    """Return the modularity Σ_j (assoc_j/vol - resolution·(vol_j/vol)²).

    Examples
    --------
    >>> import numpy as np
    >>> from corecut import modularity
    >>> path = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
    >>> round(modularity(path, [0, 0, 1, 1]), 4)
    0.1667
    """
    gamma = check_real(resolution, "resolution")
    association, volume, _ = _cluster_totals(graph, labels, None, n_jobs)
    total = float(volume.sum())
    if total == 0:
        raise ValueError("modularity is not defined for a graph without edges")
    return float(np.sum(association / total - gamma * (volume / total) ** 2))


# A cluster is a crumb below this share of the mean.
CRUMB = 0.1


@dataclass(frozen=True)
class Balance:
    """How sizes of clusters compare.

    Attributes
    ----------
    largest, smallest
        Nodes of the largest and of the smallest cluster.
    median
        Nodes of the median cluster, as a share of the mean.
    crumbs
        Number of clusters with less than a tenth of the mean's nodes.
    """

    largest: int
    smallest: int
    median: float
    crumbs: int

    @classmethod
    def of(cls, sizes: Any) -> Balance:
        """Return the figures for clusters with these numbers of nodes."""
        counts = np.asarray(sizes)
        mean = counts.mean()
        crumbs = int(np.count_nonzero(counts < CRUMB * mean))
        return cls(int(counts.max()), int(counts.min()), float(np.median(counts) / mean), crumbs)

    def __str__(self) -> str:
        crumbs = f", {self.crumbs:,} below a tenth of it" if self.crumbs else ""
        return f"{self.smallest:,} to {self.largest:,} nodes, the median {self.median:.2f} of the mean{crumbs}"


def kernel_kmeans_cost(
    kernel: KernelView | Any, labels: Any = None, *, centers: Any = None, n_jobs: int | None = None
) -> float:
    """Return the weighted kernel k-means cost of a partition, or of a set of centres.

    Parameters
    ----------
    kernel
        A :class:`KernelView`, or a graph, whose normalised-cut kernel is then taken.
    labels
        A partition: each cluster's centre is its weighted mean, and the cost follows from the trace form
        tr(WK) - Σ_j (Σ_{x,y∈j} w_x w_y K_xy) / W_j.
    centers
        Instead of labels: node numbers, each a centre φ(c); or a sparse n × k matrix M of coefficients, whose columns are the
        centres Σ_y M_yj φ(y). Each point pays w_x times its squared distance to the nearest centre. This makes dense n × k
        matrices, and a copy of the edges where they have no weights: it is meant for small problems.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    float
        It can be negative when K is not positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from corecut import kernel_kmeans_cost
    >>> looped_path = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    >>> round(kernel_kmeans_cost(looped_path, [0, 0, 1]), 4)
    0.0333
    """
    view = kernel if isinstance(kernel, KernelView) else KernelView.from_graph(kernel)
    if (labels is None) == (centers is None):
        raise ValueError("give either labels or centers=, and not both")
    n = view.n_points
    if labels is not None:
        checked, k = compact_labels(in_node_order(labels, view.graph), n)
        _, association, mass = kernel_association(view, checked, k, n_jobs=n_jobs)
        return trace_cost(view, association, mass)
    if not sp.issparse(centers):
        points = check_nodes(centers, n, name="centers")
        if points.size == 0:
            raise ValueError("centers must hold at least one centre")
        centers = sp.csc_array((np.ones(points.size), (points, np.arange(points.size))), shape=(n, points.size))
    return float(view.weights @ squared_distances(view, sp.csc_array(centers)).min(axis=1))


def kernel_association(
    kernel: KernelView, labels: LabelArray, n_clusters: int, *, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return u_x = Σ_{y∈j(x)} w_y K_xy of every point, and Σ_{x∈j} w_x u_x and W_j = Σ_{x∈j} w_x of every cluster."""
    inner = _core.within_cluster(kernel.matrix, labels, kernel.load, thread_count(n_jobs))
    if kernel.scale is not None:
        inner *= kernel.scale
    inner += kernel.weights * kernel.diagonal_excess
    return inner, cluster_sums(labels, kernel.weights * inner, n_clusters), cluster_sums(labels, kernel.weights, n_clusters)


def cluster_sums(labels: LabelArray, values: FloatArray, n_clusters: int) -> FloatArray:
    """Return the sum of `values` over each cluster, added up in node order."""
    # No copy: NumPy's types do not know that a weighted count is a float already.
    return np.asarray(np.bincount(labels, values, minlength=n_clusters), dtype=np.float64)


def trace_cost(kernel: KernelView, association: FloatArray, mass: FloatArray) -> float:
    """Return the cost tr(WK) - Σ_j association_j / W_j of the partition that these sums belong to."""
    kept = np.divide(association, mass, out=np.zeros_like(mass), where=mass > 0)
    return float(kernel.weights @ kernel.diagonal - kept.sum())


def squared_distances(kernel: KernelView, centers: sp.csc_array) -> FloatArray:
    """Return the n × k squared distances from every point to the centres Σ_y M_yj φ(y). Dense: for moderate n·k."""
    if centers.shape[0] != kernel.n_points or centers.shape[1] == 0:
        raise ValueError(f"centers must be a {kernel.n_points} × k matrix of coefficients, got shape {centers.shape}")
    scale = np.ones(kernel.n_points) if kernel.scale is None else kernel.scale
    extra = kernel.diagonal_excess[:, None]
    coefficients = centers.toarray()
    inner = scale[:, None] * (kernel.graph.adjacency @ (scale[:, None] * coefficients)) + extra * coefficients
    norms = np.einsum("ij,ij->j", coefficients, inner)
    distances: FloatArray = kernel.diagonal[:, None] + norms - 2.0 * inner
    return distances


def _cluster_totals(
    graph: Any, labels: Any, n_clusters: int | None, n_jobs: int | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return assoc_j, vol_j and the number of nodes S_j of every cluster."""
    checked_graph = as_graph(graph, n_jobs=n_jobs)
    checked, k = compact_labels(in_node_order(labels, checked_graph), checked_graph.n_nodes, n_clusters=n_clusters)
    within = _core.within_cluster(checked_graph.matrix, checked, None, thread_count(n_jobs))
    sizes = np.bincount(checked, minlength=k).astype(np.float64)
    return cluster_sums(checked, within, k), cluster_sums(checked, checked_graph.degrees, k), sizes
