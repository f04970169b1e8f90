"""Eigenvectors of the spectral problem, exactly or fast.

==========  ===============================================================  ==============================================
solver      method                                                           use it
==========  ===============================================================  ==============================================
"arpack"    implicitly restarted Lanczos; LAPACK when m is small             few clusters, exact eigenvectors wanted
"power"     ⌈log₂k⌉ random vectors, t = 10⌈log₂(m/k)⌉ steps of ½(I + N),     to follow the paper (Macgregor 2023)
            no orthogonalisation
"subspace"  a hierarchy of quotients, filters and preconditioned descent:    everything else (what "auto" takes)
            the gaps 1 - λ to a few percent
==========  ===============================================================  ==============================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from corecut._typing import FloatArray
from corecut.advice import advise
from corecut.spectral.components import KnownVectors, known_vectors
from corecut.spectral.multilevel import TOLERANCE, multilevel_eigenvectors
from corecut.spectral.problem import SpectralProblem

# Up to this size LAPACK's full decomposition takes a fraction of a second; up to the other it is faster than the hierarchy.
DENSE_SIZE, _DENSE_IS_FASTER = 1200, 600


@dataclass(frozen=True, eq=False)
class Eigenvectors:
    """Leading eigenvalues and eigenvectors of N.

    Attributes
    ----------
    values
        Eigenvalues, falling.
    vectors
        Orthonormal eigenvectors as columns.
    converged
        Whether the distances of the eigenvalues from the top are right to a few percent of themselves.
    """

    values: FloatArray
    vectors: FloatArray = field(repr=False)
    converged: bool = True


def subspace_eigenvectors(
    problem: SpectralProblem,
    count: int,
    generator: np.random.Generator,
    *,
    threads: int,
    n_clusters: int | None = None,
    tolerance: float = TOLERANCE,
) -> Eigenvectors:
    """Return the `count` largest eigenvalues and their eigenvectors, good enough for clustering.

    Components give the first vectors exactly; see :mod:`multilevel` for the others.
    """
    known = known_vectors(problem, threads)
    if known.count >= count:
        return _of_components(problem, known, count, n_clusters, generator)
    m, rest = problem.size, count - known.count
    if m <= _DENSE_IS_FASTER or rest >= m // 3:
        return dense_eigenvectors(problem, count)
    gaps, vectors, converged = multilevel_eigenvectors(problem, rest, known, generator, threads=threads, tolerance=tolerance)
    if not converged:
        advise(
            f"the {count} eigenvectors have not converged, and clusters may be worse than they could be; ask for fewer by "
            'n_components=, or for exact ones by eigen_solver="arpack"'
        )
    return _joined(problem, known, problem.radius - gaps, vectors, converged)


def exact_eigenvectors(
    problem: SpectralProblem,
    count: int,
    generator: np.random.Generator,
    *,
    threads: int = 1,
    n_clusters: int | None = None,
) -> Eigenvectors:
    """Return the `count` largest eigenvalues and their eigenvectors to machine precision.

    Small problems, and those where Lanczos does not converge, are solved densely where memory allows (m ≤ 6,000); beyond that
    the subspace method is the safe path.
    """
    m = problem.size
    known = known_vectors(problem, threads)
    if known.count >= count:
        return _of_components(problem, known, count, n_clusters, generator)
    if m <= DENSE_SIZE or count >= m // 3:
        return dense_eigenvectors(problem, count)
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    operator = problem.operator()

    def apply(x: FloatArray) -> FloatArray:
        # Known vectors are moved to the eigenvalue 0: one eigenvalue of many vectors is what Lanczos is worst at.
        inside = known.project(x.reshape(m, 1))
        return known.project((operator @ inside).reshape(m, 1))[:, 0]

    rest = count - known.count
    try:
        values, vectors = eigsh(
            LinearOperator((m, m), matvec=apply, dtype=np.float64),
            k=rest,
            which="LA",
            v0=generator.uniform(-1, 1, m),
            maxiter=50 * count + 500,
        )
    except ArpackError:
        if m <= 6_000:
            return dense_eigenvectors(problem, count)
        return subspace_eigenvectors(problem, count, generator, threads=threads, tolerance=1e-8)
    order = np.argsort(-values, kind="stable")
    return _joined(problem, known, values[order], vectors[:, order], True)


def dense_eigenvectors(problem: SpectralProblem, count: int) -> Eigenvectors:
    """Return the `count` largest eigenvalues and their eigenvectors by LAPACK."""
    from scipy.linalg import LinAlgError, eigh

    m = problem.size
    matrix = problem.dense()
    try:
        values, vectors = eigh(matrix, subset_by_index=[m - count, m - 1])
    except LinAlgError:
        values = np.empty(0)
    if values.size < count:
        # LAPACK's search by index fails, or loses eigenvectors, where one eigenvalue has very many: 1 in a graph of many
        # pieces, the second one in a complete graph.
        values, vectors = (found[..., m - count :] for found in eigh(matrix, driver="evd"))
    return Eigenvectors(values[::-1], np.ascontiguousarray(vectors[:, ::-1]))


def _of_components(
    problem: SpectralProblem, known: KnownVectors, count: int, n_clusters: int | None, generator: np.random.Generator
) -> Eigenvectors:
    return Eigenvectors(np.full(count, problem.radius), known.gathered(count, n_clusters or count, generator))


def _joined(
    problem: SpectralProblem, known: KnownVectors, values: FloatArray, vectors: FloatArray, converged: bool
) -> Eigenvectors:
    """Return the known vectors, whose eigenvalue is 1, and the others after them."""
    if known.count == 0:
        return Eigenvectors(values, vectors, converged)
    joined = np.hstack([known.dense(), known.project(vectors)])
    return Eigenvectors(np.concatenate([np.ones(known.count), values]), joined, converged)


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
