"""Eigenvectors of the spectral problem, exactly or fast.

==========  ===============================================================  ==============================================
solver      method                                                           use it
==========  ===============================================================  ==============================================
"arpack"    implicitly restarted Lanczos; LAPACK when m is small             few clusters, exact eigenvectors wanted
"power"     ⌈log₂k⌉ random vectors, t = 10⌈log₂(m/k)⌉ steps of ½(I + N),     to follow the paper (Macgregor 2023)
            no orthogonalisation
"subspace"  Chebyshev-filtered subspace iteration with Rayleigh-Ritz         everything else (what "auto" takes)
==========  ===============================================================  ==============================================
"""

from __future__ import annotations

import math

import numpy as np

from corecut._typing import AnyArray, FloatArray
from corecut.spectral.problem import Block, SpectralProblem

# Up to this size LAPACK's full decomposition takes a fraction of a second.
DENSE_SIZE = 1200


def exact_eigenvectors(problem: SpectralProblem, count: int, generator: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return the `count` largest eigenvalues (falling) and their eigenvectors as columns.

    Small problems, and those where Lanczos does not converge, are solved densely where memory allows (m ≤ 6,000); beyond that
    the subspace method, run for longer, is the safe path.
    """
    m = problem.size
    if m <= DENSE_SIZE or count >= m // 3:
        return _dense(problem, count)
    from scipy.sparse.linalg import ArpackError, eigsh

    try:
        values, vectors = eigsh(
            problem.operator(), k=count, which="LA", v0=generator.uniform(-1, 1, m), maxiter=50 * count + 500
        )
    except ArpackError:
        if m <= 6_000:
            return _dense(problem, count)
        return subspace_eigenvectors(problem, count, generator, threads=1, rounds=20)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _dense(problem: SpectralProblem, count: int) -> tuple[FloatArray, FloatArray]:
    from scipy.linalg import eigh

    m = problem.size
    matrix = problem.dense()
    values, vectors = eigh(matrix, subset_by_index=[m - count, m - 1])
    if values.size < count:
        # LAPACK's search by index loses eigenvectors where one eigenvalue has very many, as 1 has in a graph of many pieces.
        values, vectors = (found[..., m - count :] for found in eigh(matrix, driver="evd"))
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


def power_vectors(
    problem: SpectralProblem, n_clusters: int, generator: np.random.Generator, *, threads: int, width: int | None = None
) -> FloatArray:
    """Return the paper's fast embedding: ⌈log₂k⌉ random vectors after t = 10⌈log₂(m/k)⌉ steps of ½(I + N).

    The direction D^½1, the top eigenvector when the degrees are row sums, tells nothing about clusters and is taken out.
    Columns are brought back to length 1 now and then: eigenvalues above 1 (degrees that are weights) would overflow.
    """
    m = problem.size
    width = width or max(1, math.ceil(math.log2(max(n_clusters, 2))))
    steps = 10 * max(1, math.ceil(math.log2(max(m / n_clusters, 2))))
    trivial = np.sqrt(problem.degrees)
    trivial = (trivial / np.linalg.norm(trivial)).astype(np.float32)
    period = 10 if problem.radius < 10 else 1
    y = generator.standard_normal((m, width)).astype(np.float32)
    for step in range(steps):
        y = problem.apply(y, threads=threads, alpha=0.5, beta=0.5)
        if m > 1:
            y -= np.outer(trivial, trivial @ y)
        if step % period == 0:
            y /= np.maximum(np.linalg.norm(y, axis=0), np.float32(1e-30))
    return y.astype(np.float64)


def subspace_eigenvectors(
    problem: SpectralProblem,
    count: int,
    generator: np.random.Generator,
    *,
    threads: int,
    rounds: int = 4,
    degree: int = 10,
    tolerance: float = 2e-3,
) -> tuple[FloatArray, FloatArray]:
    """Return about the `count` largest eigenvalues and their eigenvectors, good enough for clustering.

    Each round damps the unwanted part of the spectrum, [-radius, the smallest Ritz value], by a Chebyshev polynomial of the
    given degree and rotates the block to its Ritz vectors. It ends when the Ritz values have settled. Some guard vectors
    beyond `count` keep the wanted ones from lagging behind.
    """
    m = problem.size
    width = min(m, count + max(4, count // 8))
    if m <= DENSE_SIZE or width >= m // 2:
        return _dense(problem, count)
    y = generator.standard_normal((m, width)).astype(np.float32)
    y = _filter(problem, y, cut=0.0, degree=degree, threads=threads)
    values = np.full(width, np.nan)
    for _ in range(rounds):
        y = _orthonormal(y)
        ny = problem.apply(y, threads=threads)
        small, rotation = np.linalg.eigh(_symmetric(y.T @ ny))
        new = small[::-1].astype(np.float64)
        y = y @ np.ascontiguousarray(rotation[:, ::-1])
        settled = np.max(np.abs(new - values)[:count]) < tolerance  # false while NaN
        values = new
        if settled:
            break
        y = _filter(problem, y, cut=float(values[-1]), degree=degree, threads=threads)
    return values[:count], y[:, :count].astype(np.float64)


def _filter(problem: SpectralProblem, y: Block, *, cut: float, degree: int, threads: int) -> Block:
    """Apply the Chebyshev polynomial that is small on [-radius, cut] and grows beyond it, scaled to 1 near the top."""
    low = -problem.radius
    cut = min(cut, problem.radius * 0.999)
    half, centre = (cut - low) / 2, (cut + low) / 2
    sigma = first = half / max(problem.radius - centre, 1e-12)
    previous, current = y, problem.apply(y, threads=threads, alpha=first / half, beta=-centre * first / half)
    for _ in range(degree - 1):
        following = 1.0 / (2.0 / first - sigma)
        scale = 2.0 * following / half
        previous, current = (
            current,
            problem.apply(current, threads=threads, alpha=scale, beta=-centre * scale, z=previous, gamma=-sigma * following),
        )
        sigma = following
    return current


def _orthonormal(y: Block) -> Block:
    """Return an orthonormal basis; Cholesky QR twice, Householder where the columns are too dependent for it."""
    for _ in range(2):
        gram = _symmetric((y.T @ y).astype(np.float64))
        try:
            factor = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            return np.linalg.qr(y)[0]
        y = y @ np.linalg.inv(factor).T.astype(np.float32)
    return y


def _symmetric(matrix: AnyArray) -> AnyArray:
    return (matrix + matrix.T) * 0.5
