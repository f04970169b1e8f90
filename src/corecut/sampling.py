"""Seeds: D² sampling in kernel space (Section 4 of the paper).

Given a set C of points already drawn, the next one is x with probability

    w(x) Δ(x, C) / Σ_y w(y) Δ(y, C),        Δ(x, y) = K_xx + K_yy - 2 K_xy,   Δ(x, C) = min over c in C.

Three samplers draw from this same law, given the same C:

======================  =====================================  ======================================================
method                  cost of k draws                        use it
======================  =====================================  ======================================================
"rejection" (default)   O(n) per rebuild + Σ deg(seed)         always: tables of earlier contributions bound today's
"tree" (Algorithm 2)    O(n) + Σ deg(seed)·log n               to follow the paper to the letter
"naive" (Algorithm 1)   O(nk)                                  as the baseline, and with negative kernel entries
======================  =====================================  ======================================================

A fourth one, "rounds", makes the k draws in a few rounds instead of one after another, as k-means|| does (Bahmani et al.
2012): those of a round all see the seeds of the rounds before, and none of their own. They are drawn by a race: every point
has a time E_x/(w(x)Δ(x, C)) with E_x exponential and a function of (seed, round, x) alone, and the first ones are taken,
which is sampling without replacement by the law above. The first ones of several blocks of points are found among the blocks'
own first ones, so that blocks may lie anywhere. O(n) per round + Σ deg(seed). What it costs: the guarantee of k-means|| is
bicriteria. O(log n) rounds of O(k) draws reach a constant factor of the optimal cost with O(k log n) seeds, not with k, and a
coreset of the same error is larger by that factor; ask for more seeds with `seeding_factor` where it matters.

The first two keep x* = argmin K_xx in C, which (for a kernel without negative entries) confines a new seed's effect to its
neighbours. They start from x* and one uniform point, the naive one from a uniform point; `start` replaces that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from corecut import _core
from corecut._random import as_generator, draw_seed
from corecut._typing import FloatArray, IntArray, LabelArray, RandomState
from corecut._validation import check_count, check_nodes, check_option
from corecut.engines import Engine, LocalEngine
from corecut.kernel import KernelView

Sampler = Literal["rejection", "tree", "naive", "rounds"]

# Rounds of the sampler of that name.
_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Seeds:
    """A D² sample C with what the coreset needs to know about it.

    Attributes
    ----------
    points
        C in the order of drawing, without repeats.
    distances
        Δ(x, C) for every point x; negative values (K not positive semi-definite) are clipped to 0.
    nearest
        For every point, the position in `points` of its nearest seed.
    n_checks
        Distances looked at: at most Σ deg(seed) for the fast samplers.
    n_clipped, missing_shift
        How many negative distances were met, and what the shift σ would have to grow by to mend the worst of them.
    n_rebuilds
        Tables built by the rejection sampler.
    """

    points: IntArray
    distances: FloatArray = field(repr=False)
    nearest: LabelArray = field(repr=False)
    n_checks: int
    n_clipped: int
    missing_shift: float
    n_rebuilds: int


def sample_seeds(
    kernel: KernelView | Any,
    n_draws: int,
    *,
    method: Sampler = "rejection",
    start: Any = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Seeds:
    """Draw `n_draws` points by D² sampling, after the starting points.

    Parameters
    ----------
    kernel
        A :class:`KernelView`, or a graph, whose normalised-cut kernel is then taken.
    n_draws
        Number of D² draws. Fewer are made only when every point has come to distance 0 of the seeds.
    method
        "rejection", "tree", "naive" or "rounds"; see the module.
    start
        Points that C begins with instead of the method's own.
    random_state, n_jobs
        As everywhere.

    Returns
    -------
    Seeds

    Examples
    --------
    >>> from corecut import make_sbm, sample_seeds
    >>> graph, labels = make_sbm(100, 4, 0.5, 0.001, random_state=0)
    >>> seeds = sample_seeds(graph, 8, random_state=0)
    >>> seeds.points.size
    10
    """
    view = kernel if isinstance(kernel, KernelView) else KernelView.from_graph(kernel)
    check_option(method, "method", get_args(Sampler))
    draws = check_count(n_draws, "n_draws", minimum=0)
    first = None if start is None else check_nodes(start, view.n_points, name="start")
    return draw_seeds(view, draws, method=method, start=first, random_state=random_state, engine=LocalEngine(n_jobs))


def draw_seeds(
    view: KernelView,
    draws: int,
    *,
    method: Sampler,
    start: IntArray | None = None,
    random_state: RandomState = None,
    engine: Engine,
) -> Seeds:
    """Draw seeds; see :func:`sample_seeds`. Those of rounds are found on the engine, sequential ones in this process."""
    seed = draw_seed(as_generator(random_state))

    def drawn(how: str, count: int) -> Seeds:
        arrays = view.matrix, view.scale, view.diagonal, view.weights
        return Seeds(*_core.sample_seeds(*arrays, how, count, start, seed, engine.threads))

    if method != "rounds":
        return drawn(method, draws)
    points = drawn("rejection", 0).points
    for number in range(_ROUNDS):
        wanted = draws * (number + 1) // _ROUNDS - draws * number // _ROUNDS
        if wanted:
            points = np.concatenate([points, engine.race(view, points, wanted, seed=seed, number=number)])
    return Seeds(points, *engine.distances(view, points), 0)
