"""Leading eigenvectors from a hierarchy of quotients.

The coarsest quotient is solved densely. Where its eigenvalues leave the top of the spectrum quickly, as those of noisy graphs
do, its vectors are carried to the graph at once and filtered there; where many lie close to the top, as on paths, grids,
meshes and neighbour graphs, they are improved on every level on the way.

Cost: O(edges · vectors) per step; in either case a handful of steps, whatever the gaps are. The quotient of a noisy graph
has few nodes and very many entries: there nearly all steps are made on a random part of them.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from corecut._typing import AnyArray, FloatArray
from corecut.spectral.components import KnownVectors
from corecut.spectral.hierarchy import COARSEST_SIZE, Cycle, build_hierarchy
from corecut.spectral.iteration import Descent, chebyshev, descend, filtered, ritz, rotated, smoothed_noise
from corecut.spectral.problem import SpectralProblem

# Right to about this share of each gap.
TOLERANCE = 0.015
# From this share of the spectrum's radius on, a gap is wide enough for filters of low degree. (On the coarsest level, which
# overstates it.)
_WIDE = 0.2
_ROUNDS, _DEGREE = 6, 10
# Graphs of more entries per node than this, as quotients are, hardly ever have narrow gaps.
_DENSELY_LINKED = 24
# A graph of very many entries is thinned to about twice so many for each node, if that leaves one in _WORTH at most, and there
# are so many products to be made for each step. What thinning adds has eigenvalues of about 2/√(2·_KEPT) of the radius: wanted
# ones must be above twice that. The vectors are then filtered once, by a polynomial of this degree, on all entries.
_KEPT, _WORTH, _MUCH_WORK, _CLEAR, _LAST_DEGREE = 64, 3, 200_000_000, 0.35, 4
# Random vectors among the guards: equal eigenvalues are easily lost without.
_RANDOM = 4
# Steps on the graph, and on each level before.
_STEPS, _STEPS_BEFORE = 20, 3


def multilevel_eigenvectors(
    problem: SpectralProblem,
    count: int,
    known: KnownVectors,
    generator: np.random.Generator,
    *,
    threads: int,
    tolerance: float = TOLERANCE,
) -> tuple[FloatArray, FloatArray, bool]:
    """Return `count` gaps ρ - λ (rising), their eigenvectors beside the known ones, and whether they have converged."""
    # Guards beyond the wanted vectors keep the last ones from lagging behind; random ones find what the quotients hide.
    width = count + max(_RANDOM + 2, count // 6)
    # Filters work in single precision, for which some tolerances are too fine.
    may_filter = tolerance > 1e-3

    def by_filters(block: AnyArray) -> Descent:
        gaps, found, settled = filtered(
            problem,
            block.astype(np.float32, copy=False),
            count,
            project=known.project,
            rounds=_ROUNDS,
            degree=_DEGREE,
            threads=threads,
            tolerance=tolerance,
        )
        if settled and gaps[0] < 1e-4 * problem.radius:  # single precision has few digits left of it
            return *rotated(problem, found.astype(np.float64), threads), settled
        return gaps, found.astype(np.float64), settled

    if may_filter and problem.adjacency.nnz > _DENSELY_LINKED * problem.size:
        # Most likely wide gaps, for which random vectors serve as well as a hierarchy, and cost nothing.
        if problem.adjacency.nnz > _WORTH * 2 * _KEPT * problem.size and problem.adjacency.nnz * width > _MUCH_WORK:
            found = _thinly(problem, width, count, known, generator, threads=threads, tolerance=tolerance)
            if found is not None:
                return found[0][:count], found[1][:, :count], True
        noise = smoothed_noise(problem, width, generator, project=known.project, degree=_DEGREE, threads=threads)
        gaps, block, settled = by_filters(noise)
        if settled:
            return gaps[:count], block[:, :count], True
        may_filter = False
    size = min(max(COARSEST_SIZE // 2, 4 * width), 2 * COARSEST_SIZE)
    levels, coarsest, known_there = build_hierarchy(problem, known, size=size, threads=threads)
    if coarsest.size <= 2 * COARSEST_SIZE:
        gaps, block = _dense(coarsest, known_there, width)
    else:
        gaps, block = np.full(width, problem.radius), generator.standard_normal((coarsest.size, width))
    wide = may_filter and gaps.size > 0 and gaps[-1] > _WIDE * problem.radius
    if wide:
        for level in reversed(levels):
            block = level.prolong(block)
        gaps, block, settled = by_filters(_filled(block, width, generator))
        if settled:
            return gaps[:count], block[:, :count], True
    cycle = Cycle(levels, coarsest, threads)

    def improved(depth: int, here: SpectralProblem, known_here: KnownVectors, block: FloatArray) -> Descent:
        return descend(
            here,
            _filled(block, width, generator),
            count,
            project=known_here.project,
            precondition=partial(cycle, depth),
            threads=threads,
            steps=_STEPS if depth == 0 else _STEPS_BEFORE,
            tolerance=tolerance,
        )

    if wide or not levels:
        gaps, block, converged = improved(0, problem, known, block)
    else:
        for depth in reversed(range(len(levels))):
            level = levels[depth]
            gaps, block, converged = improved(depth, level.problem, level.known, level.prolong(block))
    return gaps[:count], block[:, :count], converged


def _thinly(
    problem: SpectralProblem,
    width: int,
    count: int,
    known: KnownVectors,
    generator: np.random.Generator,
    *,
    threads: int,
    tolerance: float,
) -> tuple[FloatArray, FloatArray] | None:
    """Return gaps and vectors found on a random part of the entries and improved on all of them.

    None where the wanted eigenvalues are too small to be told from what the choice of entries adds to the matrix.
    """
    thin = problem.thinned(_KEPT, int(generator.integers(2**62)), threads)
    noise = smoothed_noise(thin, width, generator, project=known.project, degree=_DEGREE, threads=threads)
    gaps, block, settled = filtered(
        thin, noise, count, project=known.project, rounds=_ROUNDS, degree=_DEGREE, threads=threads, tolerance=tolerance
    )
    if not settled or gaps[count - 1] > (1 - _CLEAR) * problem.radius:
        return None
    cut = min(problem.radius - gaps[-1], _CLEAR * problem.radius)
    block = chebyshev(problem, block, cut=cut, degree=_LAST_DEGREE, project=known.project, threads=threads)
    gaps, block = ritz(problem, known.project(block), threads)
    return gaps, block.astype(np.float64)


def _dense(problem: SpectralProblem, known: KnownVectors, width: int) -> tuple[FloatArray, FloatArray]:
    """Return the smallest gaps and their vectors beside the known ones."""
    vectors = known.dense()
    # The known ones are moved to the far end.
    matrix = problem.radius * np.eye(problem.size) - problem.dense() + 3 * problem.radius * (vectors @ vectors.T)
    gaps, vectors = np.linalg.eigh(matrix)
    keep = min(width, problem.size - known.count)
    return gaps[:keep], vectors[:, :keep]


def _filled(block: FloatArray, width: int, generator: np.random.Generator) -> FloatArray:
    """Return a block of `width` columns, of which the last ones, at least four, are random."""
    keep = min(block.shape[1], width - _RANDOM)
    return np.hstack([block[:, :keep], generator.standard_normal((len(block), width - keep)) / np.sqrt(len(block))])
