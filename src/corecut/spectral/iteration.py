"""Block iterations: they turn a block of vectors towards the leading eigenvectors.

Both look at gaps, the distances δ_i = ρ - θ_i of the Ritz values from the top of the spectrum, and end when these are right
to a few percent *of themselves*: where clusters are parts of a path, all eigenvalues lie within 10⁻⁶ of 1, and it is their
distances from 1 that tell them apart.

:func:`filtered`
    Chebyshev polynomials that damp the unwanted part of the spectrum, in single precision. For wide gaps (noisy graphs):
    products with N are all it needs.
:func:`descend`
    Preconditioned steepest descent with conjugate directions (LOBPCG, Knyazev 2001), in double precision. For small gaps:
    with a good preconditioner the number of steps does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from corecut._typing import AnyArray, FloatArray
from corecut.spectral.blas import gram, times
from corecut.spectral.problem import Block, SpectralProblem

Map = Callable[[AnyArray], AnyArray]
# Gaps, vectors, and whether they have converged.
Descent = tuple[FloatArray, FloatArray, bool]

# Gaps below this multiple of ρ are rounding.
_FLOOR = 1e-13
# Filters give up where the last gap is below this multiple of ρ: they would take many rounds.
_NARROW = 0.1
# Steps of a filter after which known vectors are taken out again.
_PROJECTION_PERIOD = 4


def descend(
    problem: SpectralProblem,
    block: FloatArray,
    count: int,
    *,
    project: Map,
    precondition: Map,
    threads: int,
    steps: int,
    tolerance: float,
) -> Descent:
    """Return gaps (rising), orthonormal vectors, and whether the first `count` of them have converged.

    With residual r of a unit vector and B ≈ (ρI - N)⁺, rᵀBr is about the error of its gap. A vector whose error is below
    `tolerance` times its gap is not worked on any more, but goes on to take part in the Rayleigh-Ritz steps.

    Parameters
    ----------
    problem, block, count
        Start, with some columns beyond `count` as guards.
    project
        Takes out the eigenvectors that are known.
    precondition
        B.
    threads, steps, tolerance
        At most so many steps, and when to end before.
    """
    x = project(block)
    x = times(x, _whitening(gram(x, x, threads)), threads)
    image = _gap_image(problem, x, threads)
    gaps, rotation = np.linalg.eigh(_symmetric(gram(x, image, threads)))
    x, image = times(x, rotation, threads), times(image, rotation, threads)
    directions = direction_images = np.empty((len(x), 0))
    open_ = np.ones(gaps.size, bool)
    floor = _FLOOR * problem.radius
    for step in range(steps + 1):
        at = np.flatnonzero(open_)
        residual = image[:, at] - x[:, at] * gaps[at]
        w = project(precondition(residual).astype(np.float64))
        errors = np.einsum("ij,ij->j", residual, w)
        open_[at] = errors > tolerance * np.maximum(gaps[at], floor)
        if not open_[:count].any() or step == steps:
            break
        w = w[:, open_[at]]
        w -= times(x, gram(x, w, threads), threads)
        w /= np.maximum(np.linalg.norm(w, axis=0), 1e-300)
        basis = np.hstack([x, w, directions])
        images = np.hstack([image, _gap_image(problem, w, threads), direction_images])
        white = _whitening(gram(basis, basis, threads))
        values, rotation = np.linalg.eigh(_symmetric(white.T @ _symmetric(gram(basis, images, threads)) @ white))
        before, width = gaps, gaps.size
        gaps, rotation = values[:width], white @ rotation[:, :width]
        # The next conjugate directions: what was added to the columns still at work.
        added = rotation[:, open_].copy()
        added[:width] = 0.0
        both = times(basis, np.hstack([rotation, added]), threads)
        both_images = times(images, np.hstack([rotation, added]), threads)
        x, image = both[:, :width], both_images[:, :width]
        lengths = np.maximum(np.linalg.norm(both[:, width:], axis=0), 1e-300)
        directions, direction_images = both[:, width:] / lengths, both_images[:, width:] / lengths
        # A vector that was thought done has moved: another one has come in before it.
        open_ |= np.abs(before - gaps) > tolerance * np.maximum(gaps, floor)
    return gaps, x, not bool(open_[:count].any())


def filtered(
    problem: SpectralProblem,
    block: Block,
    count: int,
    *,
    project: Map,
    threads: int,
    rounds: int,
    degree: int,
    tolerance: float,
) -> tuple[FloatArray, Block, bool]:
    """Return gaps (rising), orthonormal vectors, and whether the first `count` of the gaps have settled.

    Each round damps [-ρ, the smallest Ritz value] by a Chebyshev polynomial of the given degree and rotates the block to its
    Ritz vectors. It ends when no gap changes by more than `tolerance` times itself.
    """
    y, gaps = block, np.full(block.shape[1], np.nan)
    for step in range(rounds + 1):
        new, y = ritz(problem, project(y), threads)
        # False while NaN. Single precision sees gaps of 1e-6 and above.
        settled = bool(np.all(np.abs(new - gaps)[:count] <= np.maximum(tolerance * new[:count], 1e-6 * problem.radius)))
        gaps = new
        if settled or step == rounds or gaps[-1] < _NARROW * problem.radius:
            break
        cut = problem.radius - gaps[-1]
        y = chebyshev(problem, y, cut=cut, degree=degree, project=project, threads=threads)
    return gaps, y, settled


def ritz(problem: SpectralProblem, y: Block, threads: int) -> tuple[FloatArray, Block]:
    """Return gaps (rising) and orthonormal Ritz vectors of a block in single precision."""
    y = _orthonormal(y, threads)
    values, rotation = np.linalg.eigh(_symmetric(gram(y, problem.apply(y, threads=threads), threads)))
    gaps: FloatArray = problem.radius - values[::-1].astype(np.float64)
    return gaps, times(y, np.ascontiguousarray(rotation[:, ::-1]), threads)


def smoothed_noise(
    problem: SpectralProblem, width: int, generator: np.random.Generator, *, project: Map, degree: int, threads: int
) -> Block:
    """Return random vectors with the lower half of the spectrum damped."""
    noise = project(generator.standard_normal((problem.size, width)).astype(np.float32))
    return chebyshev(problem, noise, cut=0.0, degree=degree, project=project, threads=threads)


def chebyshev(
    problem: SpectralProblem, y: Block, *, cut: float, degree: int, project: Map | None = None, threads: int
) -> Block:
    """Apply the Chebyshev polynomial that is small on [-radius, cut] and grows beyond it, scaled to 1 near the top.

    Known vectors, taken out of the start by `project`, come back by rounding and grow fastest of all. They are taken out again
    before they do.
    """
    low = -problem.radius
    cut = min(cut, problem.radius * 0.999)
    half, centre = (cut - low) / 2, (cut + low) / 2
    sigma = first = half / max(problem.radius - centre, 1e-12)
    previous, current = y, problem.apply(y, threads=threads, alpha=first / half, beta=-centre * first / half)
    for step in range(1, degree):
        if project is not None and step % _PROJECTION_PERIOD == 0:
            previous, current = project(previous), project(current)
        following = 1.0 / (2.0 / first - sigma)
        scale = 2.0 * following / half
        previous, current = (
            current,
            problem.apply(current, threads=threads, alpha=scale, beta=-centre * scale, z=previous, gamma=-sigma * following),
        )
        sigma = following
    return current


def rotated(problem: SpectralProblem, block: FloatArray, threads: int) -> tuple[FloatArray, FloatArray]:
    """Return gaps (rising) and Ritz vectors of a block in double precision."""
    x = times(block, _whitening(gram(block, block, threads)), threads)
    gaps, rotation = np.linalg.eigh(_symmetric(gram(x, _gap_image(problem, x, threads), threads)))
    return gaps, times(x, rotation, threads)


def _gap_image(problem: SpectralProblem, x: FloatArray, threads: int) -> FloatArray:
    """Return (ρI - N)·x."""
    return problem.apply(np.ascontiguousarray(x), threads=threads, alpha=-1.0, beta=problem.radius)


def _whitening(products: NDArray[np.float64]) -> FloatArray:
    """Return T with TᵀGT = I for a Gram matrix G, with fewer columns where G is nearly singular."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(products), 1e-300))
    values, vectors = np.linalg.eigh(_symmetric(products * scale[:, None] * scale))
    keep = values > 1e-11 * values[-1]
    white: FloatArray = scale[:, None] * (vectors[:, keep] / np.sqrt(values[keep]))
    return white


def _orthonormal(y: Block, threads: int) -> Block:
    """Return an orthonormal basis; Cholesky QR twice, Householder where the columns are too dependent for it."""
    for _ in range(2):
        products = _symmetric(gram(y, y, threads).astype(np.float64))
        try:
            factor = np.linalg.cholesky(products)
        except np.linalg.LinAlgError:
            return np.linalg.qr(y)[0]
        y = times(y, np.ascontiguousarray(np.linalg.inv(factor).T.astype(np.float32)), threads)
    return y


def _symmetric(matrix: AnyArray) -> AnyArray:
    return (matrix + matrix.T) * 0.5
