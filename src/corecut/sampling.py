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

The first two keep x* = argmin K_xx in C, which (for a kernel without negative entries) confines a new seed's effect to its
neighbours. They start from x* and one uniform point, the naive one from a uniform point; `start` replaces that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from corecut import _core
from corecut._random import as_generator, draw_seed
from corecut._typing import FloatArray, IntArray, LabelArray, RandomState
from corecut._validation import check_count, check_nodes, check_option, thread_count
from corecut.kernel import KernelView

Sampler = Literal["rejection", "tree", "naive"]


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
        "rejection", "tree" or "naive"; see the module.
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
    check_option(method, "method", ("rejection", "tree", "naive"))
    draws = check_count(n_draws, "n_draws", minimum=0)
    first = None if start is None else check_nodes(start, view.n_points, name="start")
    points, distances, nearest, checks, clipped, missing, rebuilds = _core.sample_seeds(
        view.matrix,
        view.scale,
        view.diagonal,
        view.weights,
        method,
        draws,
        first,
        draw_seed(as_generator(random_state)),
        thread_count(n_jobs),
    )
    return Seeds(points, distances, nearest, checks, clipped, missing, rebuilds)
