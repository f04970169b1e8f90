"""Coreset: a small weighted sample of the points whose weighted cost estimates everybody's, for any k centres.

Importance sampling (Jiang et al. 2022; Algorithm 5 of the paper, whose formula for the sensitivity was lost in print):

    s_x = w(x)Δ(x, C)/cost(X, C) + w(x)/w(points whose nearest seed is x's nearest seed),
    p_x = s_x / Σ_y s_y,      N independent draws,      weight of a draw: w(x)/(p_x N), repeats added up.

`importance="seeds"` divides by the total weight of the seeds instead, as the reference implementation does.

By size, one pass is made, as in the paper's experiments. By ε, Algorithm 4 repeats the pass on its own result with
N = constant·k² log²k · log‖X‖₀ / ε_i², ε_i = ε/(log^(i) n)^(1/4), until the size no longer falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from corecut._random import as_generator, draw_seed
from corecut._typing import FloatArray, IntArray, LabelArray, RandomState
from corecut._validation import check_count, check_n_clusters, check_option, check_real, check_weights
from corecut.engines import Engine, LocalEngine
from corecut.kernel import KernelView
from corecut.sampling import Sampler, Seeds, draw_seeds

Importance = Literal["cluster", "seeds"]


@dataclass(frozen=True, eq=False)
class Coreset:
    """Sampled points and their weights.

    Attributes
    ----------
    indices
        Distinct points, increasing.
    weights
        Their weights; their sum estimates the total weight of all points.
    n_draws
        Number of independent draws N that were merged into `indices` (0 when the coreset is the whole set).
    seeds
        The D² sample that the last pass was built on, in the numbering of the points it was given (None when no pass was
        needed).
    """

    indices: IntArray
    weights: FloatArray = field(repr=False)
    n_draws: int
    seeds: Seeds | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        points = np.asarray(self.indices)
        if points.ndim != 1 or (points.size and points.dtype.kind not in "iu"):
            raise TypeError(f"a coreset's indices must be a list of integers, got {points.dtype} in {points.ndim} dimension(s)")
        if points.size and (points[0] < 0 or np.any(points[1:] <= points[:-1])):
            raise ValueError("a coreset's indices must be increasing node numbers from 0 on: sort them, each node once")
        object.__setattr__(self, "indices", np.ascontiguousarray(points, dtype=np.int64))
        weights = check_weights(self.weights, points.size, name="a coreset's weights")
        object.__setattr__(self, "weights", weights)

    @property
    def size(self) -> int:
        """Number of distinct points."""
        return int(self.indices.size)

    def check_within(self, n_points: int) -> None:
        """Refuse a sample of no points, or of points that another problem has."""
        if self.size == 0:
            raise ValueError("the coreset is empty: give it at least one point")
        if self.indices[-1] >= n_points:
            raise ValueError(
                f"a coreset's indices must be increasing node numbers below {n_points}, got {self.indices[-1]}: "
                "take a coreset of this kernel"
            )

    def reweighted(self, weights: FloatArray) -> Coreset:
        """Return the same sample with other weights."""
        return Coreset(self.indices, weights, self.n_draws, self.seeds)


def build_coreset(
    kernel: KernelView | Any,
    n_clusters: int,
    *,
    size: int | None = None,
    epsilon: float | None = None,
    constant: float = 1.0,
    seeding_factor: float = 2.0,
    sampler: Sampler = "rejection",
    importance: Importance = "cluster",
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Coreset:
    """Sample a coreset of `size` draws, or one whose size follows from `epsilon`.

    Parameters
    ----------
    kernel
        A :class:`KernelView`, or a graph, whose normalised-cut kernel is then taken.
    n_clusters
        Number of clusters k the coreset is for.
    size
        Number of draws N; repeats are merged, so there may be fewer points. All points are returned for N ≥ n.
    epsilon
        Relative error in (0, 1) to aim at, instead of `size`.
    constant
        The constant in front of k² log²k · log n / ε².
    seeding_factor
        ⌈f·k⌉ D² draws are made after the starting points.
    sampler, importance
        How to draw the seeds, and which second term of the sensitivity; see the modules.
    random_state, n_jobs
        As everywhere.

    Returns
    -------
    Coreset

    Notes
    -----
    Cost O(n + N + Σ deg(seeds)).

    Examples
    --------
    >>> from corecut import build_coreset, make_sbm
    >>> graph, labels = make_sbm(500, 4, 0.5, 0.001, random_state=0)
    >>> coreset = build_coreset(graph, 4, size=100, random_state=0)
    >>> coreset.size <= 100
    True
    """
    view = kernel if isinstance(kernel, KernelView) else KernelView.from_graph(kernel)
    k = check_n_clusters(n_clusters, view.n_points)
    if (size is None) == (epsilon is None):
        raise ValueError("give either size= or epsilon=, and not both")
    check_option(importance, "importance", get_args(Importance))
    check_option(sampler, "sampler", get_args(Sampler))
    draws = math.ceil(check_real(seeding_factor, "seeding_factor", exclusive=True) * k)
    generator, engine = as_generator(random_state), LocalEngine(n_jobs)
    if not view.weights.any():
        raise ValueError("there is no point of positive weight to sample: every node is isolated")

    def one_pass(of: KernelView, n_draws: int) -> Coreset:
        seeds = draw_seeds(of, draws, method=sampler, random_state=generator, engine=engine)
        return importance_sample(of, seeds, n_draws, importance=importance, random_state=generator, engine=engine)

    if size is not None:
        n_draws = check_count(size, "size")
        return everything(view) if n_draws >= _n_positive(view) else one_pass(view, n_draws)

    error = check_real(epsilon, "epsilon", exclusive=True)
    if error >= 1:
        raise ValueError(f"epsilon must lie between 0 and 1, got {epsilon}")
    current, current_view, numbers = everything(view), view, np.arange(view.n_points)
    iterated_log = float(_n_positive(view))
    while True:
        iterated_log = math.log(iterated_log)
        if iterated_log < 1:  # Algorithm 4 has no further iterated logarithm to divide by
            return current
        n_draws = epsilon_size(k, _n_positive(current_view), error / iterated_log**0.25, constant)
        if n_draws >= current.size:
            return current
        smaller = one_pass(current_view, n_draws)
        if smaller.size >= current.size:
            return current
        numbers = numbers[smaller.indices]
        current = Coreset(numbers, smaller.weights, smaller.n_draws, smaller.seeds)
        current_view = KernelView.from_matrix(view.restrict(current.indices, n_jobs), weights=current.weights)


def epsilon_size(n_clusters: int, n_points: int, epsilon: float, constant: float = 1.0) -> int:
    """Return N = constant·k² log²k · log n / ε² (with log 2 for log 1, so that k = 1 is not sampled zero times)."""
    check_real(constant, "constant", exclusive=True)
    log_k = math.log(max(n_clusters, 2))
    size = constant * n_clusters**2 * log_k**2 * math.log(max(n_points, 2)) / epsilon**2
    return max(1, math.ceil(min(size, 2.0**62)))


def importance_sample(
    kernel: KernelView,
    seeds: Seeds,
    n_draws: int,
    *,
    importance: Importance = "cluster",
    random_state: RandomState = None,
    n_jobs: int | None = None,
    engine: Engine | None = None,
) -> Coreset:
    """Algorithm 5: N independent draws by sensitivity, repeats merged."""
    indices, counts, mass, total = (engine or LocalEngine(n_jobs)).draw(
        kernel,
        seeds.points,
        distances=seeds.distances,
        nearest=seeds.nearest,
        by_seeds=importance == "seeds",
        n_draws=n_draws,
        seed=draw_seed(as_generator(random_state)),
    )
    weights = counts * kernel.weights[indices] * (total / n_draws) / mass
    return Coreset(indices, weights, n_draws, seeds)


def stratified_sample(
    kernel: KernelView, labels: LabelArray, n_clusters: int, per_cluster: int, *, random_state: RandomState = None
) -> Coreset:
    """Return about `per_cluster` points of every cluster of a partition (all of a smaller one), weighted to stand for it.

    Every point is taken or left on its own, with its cluster's probability p, and weighs w/p: sums over the sample are
    unbiased for each cluster.
    """
    counts = np.bincount(labels[kernel.weights > 0], minlength=n_clusters)
    chance = np.minimum(1.0, per_cluster / np.maximum(counts, 1))
    drawn = as_generator(random_state).random(kernel.n_points) < chance[labels]
    indices = np.flatnonzero(drawn & (kernel.weights > 0))
    return Coreset(indices, kernel.weights[indices] / chance[labels[indices]], indices.size)


def everything(kernel: KernelView) -> Coreset:
    """Return all points of positive weight with their own weights: the coreset without error."""
    indices = np.flatnonzero(kernel.weights)
    return Coreset(indices, kernel.weights[indices], 0)


def _n_positive(kernel: KernelView) -> int:
    return int(np.count_nonzero(kernel.weights))
