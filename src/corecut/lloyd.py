r"""Weighted kernel k-means: Lloyd's algorithm in kernel space (Dhillon, Guan and Kulis 2004), the baseline of the paper.

It looks for the partition Π into k clusters of the least cost

    cost(Π) = Σ_j Σ_{x∈j} w_x ‖φ(x) - c_j‖²,        c_j = Σ_{y∈j} w_y φ(y) / W_j,      W_j = Σ_{y∈j} w_y,

which for a graph's kernel is its normalised cut, up to a constant. A step moves every point to its nearest centre,

    x → argmin_j ‖c_j‖² - 2⟨φ(x), c_j⟩,    ⟨φ(x), c_j⟩ = Σ_{y∈j} w_y K_xy / W_j,   ‖c_j‖² = Σ_{x,y∈j} w_x w_y K_xy / W_j²,

a point that is as near to its own centre stays. Two passes over the entries of K, O(n + entries) a step. When K is positive
semi-definite the cost falls until no point moves. When it is not, a step can raise the cost; the run then ends with the
partition before it.

A cluster that runs empty is refilled with the point that pays most, the largest w_x ‖φ(x) - c_j‖² among the clusters of
more than one point; that never raises the cost of a positive semi-definite kernel. So all k clusters are used whenever k
points have a positive weight. Points of weight zero get the label of the nearest centre and count for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from corecut import _core
from corecut._random import as_generator
from corecut._typing import FloatArray, LabelArray, RandomState
from corecut._validation import check_count, check_labels, check_n_clusters, check_option, check_real, thread_count
from corecut.coreset import Coreset
from corecut.graph import Graph
from corecut.kernel import KernelView
from corecut.metrics import kernel_association, trace_cost
from corecut.sampling import Sampler, sample_seeds

# A rise of the cost by less than this share of tr(WK) is rounding, not a sign of an indefinite kernel.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class KernelKMeansResult:
    """A partition found by kernel k-means.

    Attributes
    ----------
    labels
        Cluster of every point, 0..k-1.
    cost
        Its cost in the trace form, as :func:`kernel_kmeans_cost` gives it.
    n_iter
        Number of assignment steps made.
    costs
        Costs of the first partition and of each better one that followed; the last is `cost`.
    converged
        False when `max_iter` steps were not enough.
    indefinite
        True when a step raised the cost by more than rounding: K is not positive semi-definite, and a shift would mend it.
    """

    labels: LabelArray = field(repr=False)
    cost: float
    n_iter: int
    costs: FloatArray = field(repr=False)
    converged: bool
    indefinite: bool


def kernel_kmeans(
    kernel: KernelView | Any,
    n_clusters: int,
    *,
    init: Any = "d2",
    n_init: int = 1,
    max_iter: int = 100,
    tol: float = 0.0,
    sampler: Sampler = "rejection",
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> KernelKMeansResult:
    """Lower the weighted kernel k-means cost of a partition until no point has a nearer centre.

    Parameters
    ----------
    kernel
        A :class:`KernelView`, or a graph, whose normalised-cut kernel is then taken.
    n_clusters
        Number of clusters k.
    init
        "d2": k points drawn by D² sampling, every point with the nearest of them; or the labels to begin with.
    n_init
        Number of D² samples to begin from; the partition of lowest cost is returned.
    max_iter
        Largest number of steps of one run.
    tol
        A run ends when a step lowers the cost by no more than `tol` times tr(WK), the cost of a single centre at the
        origin.
    sampler
        How to draw the D² sample, see :func:`sample_seeds`.
    random_state, n_jobs
        As everywhere.

    Returns
    -------
    KernelKMeansResult

    References
    ----------
    I. S. Dhillon, Y. Guan, B. Kulis. Kernel k-means, spectral clustering and normalized cuts. KDD 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from corecut import KernelView, kernel_kmeans
    >>> points = np.array([[0.0, 1.0], [0.1, 1.0], [2.0, 0.0], [2.1, 0.0]])
    >>> result = kernel_kmeans(KernelView.from_matrix(points @ points.T), 2, init=[0, 1, 1, 1])
    >>> result.labels
    array([0, 0, 1, 1], dtype=int32)
    >>> round(result.cost, 6)
    0.01
    """
    view = kernel if isinstance(kernel, KernelView) else KernelView.from_graph(kernel)
    k = check_n_clusters(n_clusters, view.n_points)
    runs = check_count(n_init, "n_init")
    steps = check_count(max_iter, "max_iter")
    tolerance = check_real(tol, "tol")
    check_option(sampler, "sampler", ("rejection", "tree", "naive"))
    if not view.weights.any():
        raise ValueError("there is no point of positive weight to cluster: every node is isolated")
    if isinstance(init, str):
        check_option(init, "init", ("d2",))
        generator = as_generator(random_state)
        starts = (d2_partition(view, k, sampler=sampler, random_state=generator, n_jobs=n_jobs) for _ in range(runs))
    else:
        labels, used = check_labels(init, view.n_points, name="init")
        if used > k:
            raise ValueError(f"init must hold labels below n_clusters={k}, got {used - 1}")
        if runs > 1:
            raise ValueError(f"n_init must be 1 when init gives the labels, got {runs}; every run would be the same")
        starts = (labels for _ in range(1))
    results = (_descend(view, start, k, max_iter=steps, tolerance=tolerance, n_jobs=n_jobs) for start in starts)
    return min(results, key=lambda result: result.cost)


def coreset_kernel_kmeans(
    kernel: KernelView | Any,
    n_clusters: int,
    coreset: Coreset,
    *,
    init: Any = "d2",
    n_init: int = 1,
    max_iter: int = 100,
    tol: float = 0.0,
    sampler: Sampler = "rejection",
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> KernelKMeansResult:
    """Run :func:`kernel_kmeans` on a coreset, with the coreset's weights (Jiang et al. 2022).

    Parameters
    ----------
    kernel
        The problem that the coreset was drawn from.
    n_clusters
        Number of clusters k, at most the number of the coreset's points.
    coreset
        Its points and weights.
    init, n_init, max_iter, tol, sampler, random_state, n_jobs
        As in :func:`kernel_kmeans`; labels to begin with are one per coreset point.

    Returns
    -------
    KernelKMeansResult
        The labels are those of the coreset's points; :func:`label_nodes` extends them to all points.

    Examples
    --------
    >>> import numpy as np
    >>> from corecut import KernelView, build_coreset, coreset_kernel_kmeans
    >>> two_cliques = KernelView.from_graph(np.kron(np.eye(2), np.ones((20, 20))))
    >>> coreset = build_coreset(two_cliques, 2, size=10, random_state=0)
    >>> result = coreset_kernel_kmeans(two_cliques, 2, coreset, random_state=0)
    >>> np.array_equal(result.labels == result.labels[0], coreset.indices < 20)
    True
    """
    view = kernel if isinstance(kernel, KernelView) else KernelView.from_graph(kernel)
    coreset.check_within(view.n_points)
    if check_count(n_clusters, "n_clusters") > coreset.size:
        raise ValueError(f"n_clusters={n_clusters} is more than the coreset's {coreset.size} points: draw a larger coreset")
    # The whole kernel was checked when it was made, as strictly as its owner wanted.
    part = Graph.from_matrix(view.restrict(coreset.indices, n_jobs), check="none", n_jobs=n_jobs)
    sample = KernelView.from_matrix(part, weights=coreset.weights)
    return kernel_kmeans(
        sample,
        n_clusters,
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        sampler=sampler,
        random_state=random_state,
        n_jobs=n_jobs,
    )


def d2_partition(
    kernel: KernelView,
    n_clusters: int,
    *,
    sampler: Sampler = "rejection",
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> LabelArray:
    """Draw k points by D² sampling and put every point with the nearest of them. Fewer than k when distances run out."""
    # The fast samplers need x* in the set; k - 1 draws after it make k distinct points. The naive one begins anywhere.
    start = None if sampler == "naive" else [_core.smallest_point(kernel.diagonal, kernel.weights)]
    seeds = sample_seeds(kernel, n_clusters - 1, method=sampler, start=start, random_state=random_state, n_jobs=n_jobs)
    return seeds.nearest


@dataclass(frozen=True, eq=False)
class _Partition:
    """A partition whose k clusters are all used where possible, with its centres and its cost."""

    labels: LabelArray
    norms: FloatArray
    mass: FloatArray
    cost: float


def _descend(
    view: KernelView, start: LabelArray, k: int, *, max_iter: int, tolerance: float, n_jobs: int | None
) -> KernelKMeansResult:
    """Step to the nearest centres while that lowers the cost."""
    origin = float(view.weights @ view.diagonal)
    counted = view.weights > 0
    current = _evaluate(view, start, k, n_jobs)
    costs = [current.cost]
    converged = indefinite = False
    step = 0
    while step < max_iter and not converged:
        step += 1
        labels = _nearest(view, current, n_jobs)
        if np.array_equal(labels[counted], current.labels[counted]):
            converged = True
            break
        following = _evaluate(view, labels, k, n_jobs)
        gain = current.cost - following.cost
        converged = gain <= tolerance * origin
        indefinite = gain < -_ROUNDING * origin
        if gain > 0:
            current = following
            costs.append(current.cost)
    labels = current.labels if counted.all() else np.where(counted, current.labels, _nearest(view, current, n_jobs))
    return KernelKMeansResult(labels, current.cost, step, np.array(costs), converged, indefinite)


def _evaluate(view: KernelView, labels: LabelArray, k: int, n_jobs: int | None) -> _Partition:
    """Refill empty clusters; measure the centres and the cost."""
    inner, association, mass = kernel_association(view, labels, k, n_jobs=n_jobs)
    norms = _norms(association, mass)
    if not mass.all():
        labels = _refill(view, labels, inner, norms, mass)
        _, association, mass = kernel_association(view, labels, k, n_jobs=n_jobs)
        norms = _norms(association, mass)
    return _Partition(labels, norms, mass, trace_cost(view, association, mass))


def _norms(association: FloatArray, mass: FloatArray) -> FloatArray:
    """‖c_j‖²; infinite for an empty cluster, which so attracts nobody."""
    return np.divide(association, mass * mass, out=np.full_like(mass, np.inf), where=mass > 0)


def _nearest(view: KernelView, partition: _Partition, n_jobs: int | None) -> LabelArray:
    return _core.nearest_centres(
        view.matrix,
        view.scale,
        view.load,
        view.weights * view.diagonal_excess,
        partition.labels,
        partition.norms,
        partition.mass,
        thread_count(n_jobs),
    )


def _refill(view: KernelView, labels: LabelArray, inner: FloatArray, norms: FloatArray, mass: FloatArray) -> LabelArray:
    """Give each empty cluster the point that pays most, as long as it leaves another behind; of equals the first."""
    points = np.flatnonzero(view.weights)
    own = labels[points]
    paid = view.weights[points] * (view.diagonal[points] - 2.0 * inner[points] / mass[own] + norms[own])
    count = np.bincount(own, minlength=mass.size)
    empty = iter(np.flatnonzero(count == 0))
    filled = labels.copy()
    target = next(empty, None)
    for x in points[np.argsort(-paid, kind="stable")]:
        if target is None:
            break
        if count[labels[x]] > 1:
            count[labels[x]] -= 1
            filled[x] = target
            target = next(empty, None)
    return filled
