"""A hierarchy of quotients: starting vectors for small gaps, and a preconditioner that knows every scale.

With groups S (S_xg = 1 where node x is in group g) and the groups' degrees D_c = SᵀDS, the matrix

    P = D^½ S D_c^-½,      PᵀP = I,      Pᵀ N P = D_c^-½ (SᵀAS) D_c^-½ = N_c,

carries vectors from the quotient to the graph, and the quotient's problem is the graph's, restricted to vectors that are
constant on groups. An eigenvector of a small gap is nearly constant on small tight groups, so that P times the quotient's
eigenvectors is a good start; what is missing lies at the scale of the groups.

:class:`Cycle` approximates the inverse of ρD - A by smoothing at each scale (Chebyshev steps on the matrix scaled by its
diagonal) and two conjugate directions per coarser level (Notay's K-cycle): quotients overstate the energy of smooth vectors,
by a factor that the step lengths take out again.

References
----------
Y. Notay. An aggregation-based algebraic multigrid method. Electronic Transactions on Numerical Analysis 37, 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from corecut import _core
from corecut._typing import AnyArray, FloatArray, LabelArray
from corecut.spectral.components import KnownVectors
from corecut.spectral.problem import Block, SpectralProblem

# A dense problem of this size takes some hundredths of a second, of twice the size some tenths.
COARSEST_SIZE = 500
# A group may hold so many times the mean volume of a node: more would be coarser than smoothing can mend.
_GROUP_VOLUME = 8.0
# Sweeps of local moves for each level: few, for these are only a start.
_PASSES = 3
# Nodes without neighbours are gathered into so many groups.
_LONE_GROUPS = 64
# A level that does not take away at least this share of the nodes is the last one.
_LEAST_SHRINKAGE = 0.2
# Chebyshev steps before and after the correction from the coarser level, on the upper part of the spectrum [2/4, 2].
_SMOOTHING_STEPS, _SMOOTHED_PART = 2, 4.0


@dataclass(frozen=True, eq=False)
class Level:
    """A problem and the groups that lead to the next coarser one."""

    problem: SpectralProblem
    known: KnownVectors
    groups: LabelArray = field(repr=False)
    coarse: SpectralProblem

    def prolong(self, vectors: FloatArray) -> FloatArray:
        """Return P times a block of the coarser level's vectors."""
        fine: FloatArray = (vectors / np.sqrt(self.coarse.degrees)[:, None])[self.groups]
        fine *= np.sqrt(self.problem.degrees)[:, None]
        return fine

    @cached_property
    def gather(self) -> sp.csr_array:
        """Sᵀ, which adds up the rows of each group."""
        m, count = self.groups.size, self.coarse.size
        indptr = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(self.groups, minlength=count), out=indptr[1:])
        order = np.argsort(self.groups, kind="stable")
        return sp.csr_array((np.ones(m, np.float32), order, indptr), shape=(count, m))


def build_hierarchy(
    problem: SpectralProblem, known: KnownVectors, *, size: int, threads: int
) -> tuple[list[Level], SpectralProblem, KnownVectors]:
    """Return the levels from the given problem on, and the coarsest problem: of `size` nodes if the graph shrinks so far."""
    levels: list[Level] = []
    while problem.size > size:
        groups = _group(problem, known, size, threads)
        count = int(groups.max()) + 1
        if count > (1 - _LEAST_SHRINKAGE) * problem.size:
            break
        coarse = problem.quotient(groups, threads)
        levels.append(Level(problem, known, groups, coarse))
        problem, known = coarse, known.restricted(groups, coarse.degrees)
    return levels, problem, known


def _group(problem: SpectralProblem, known: KnownVectors, size: int, threads: int) -> LabelArray:
    """Gather neighbours, and nodes that have none, into groups."""
    degrees = problem.degrees
    cap = float(degrees.sum()) * max(_GROUP_VOLUME / problem.size, 0.5 / size)
    groups: LabelArray = _core.group_nodes(problem.matrix, degrees, cap, _PASSES, threads)
    # Groups must not cross components that have vectors of their own.
    lone = np.flatnonzero(problem.lone if known.count <= 1 else problem.lone & (known.labels < 0))
    if lone.size > _LONE_GROUPS:
        groups[lone] = groups.max() + 1 + np.arange(lone.size) * _LONE_GROUPS // lone.size
        groups = np.unique(groups, return_inverse=True)[1].astype(np.int32)
    return groups


class Cycle:
    """An approximate inverse of ρI - D^-½AD^-½ on the blocks of every level, in single precision."""

    def __init__(self, levels: list[Level], coarsest: SpectralProblem, threads: int) -> None:
        self._levels = levels
        self._coarsest = coarsest
        self._smoothers = [_Smoother(level.problem, threads) for level in levels]
        self._inverse = _inverse(coarsest) if coarsest.size <= 2 * COARSEST_SIZE else None
        if self._inverse is None:
            self._smoothers.append(_Smoother(coarsest, threads))

    def __call__(self, depth: int, residual: AnyArray) -> Block:
        """Return about (ρI - D^-½AD^-½)⁺ times a block of the given level's vectors."""
        problem = self._levels[depth].problem if depth < len(self._levels) else self._coarsest
        root = np.sqrt(problem.degrees)[:, None].astype(np.float32)
        return self._solve(depth, np.ascontiguousarray(residual, dtype=np.float32) * root) * root

    def _solve(self, depth: int, f: Block) -> Block:
        """One cycle for (ρD - A)·u = f."""
        if depth == len(self._levels):
            if self._inverse is not None:
                return self._inverse @ f
            last = self._smoothers[depth]
            return last.smooth(f * last.inverse_root) * last.inverse_root
        smoother, level = self._smoothers[depth], self._levels[depth]
        b = f * smoother.inverse_root
        y = smoother.smooth(b)
        coarse = self._accelerated(depth + 1, level.gather @ (smoother.residual(y, b) * smoother.root))
        y += smoother.root * coarse[level.groups]
        y += smoother.smooth(smoother.residual(y, b))
        y *= smoother.inverse_root
        return y

    def _accelerated(self, depth: int, f: Block) -> Block:
        """Two conjugate directions, each from one cycle."""
        first = self._solve(depth, f)
        if depth == len(self._levels):
            return first
        image = self._smoothers[depth].apply(first)
        length = _dots(first, image)
        step = _ratio(_dots(first, f), length)
        x, rest = first * step, f - image * step
        second = self._solve(depth, rest)
        second -= first * _ratio(_dots(second, image), length)
        image = self._smoothers[depth].apply(second)
        x += second * _ratio(_dots(second, rest), _dots(second, image))
        return x


def _inverse(problem: SpectralProblem) -> Block:
    """Return the pseudo-inverse of ρD - A for a small problem."""
    root = 1.0 / np.sqrt(problem.degrees)
    gaps, vectors = np.linalg.eigh(problem.radius * np.eye(problem.size) - problem.normalized.toarray())
    vectors *= root[:, None]
    inverse = np.divide(1.0, gaps, out=np.zeros_like(gaps), where=gaps > 1e-12 * problem.radius)
    result: Block = ((vectors * inverse) @ vectors.T).astype(np.float32)
    return result


class _Smoother:
    """Chebyshev steps on G^-½(ρD - A)G^-½ = I - M with G the diagonal of ρD - A; its spectrum lies in [0, 2]."""

    def __init__(self, problem: SpectralProblem, threads: int) -> None:
        self._threads = threads
        diagonal = problem.outward
        root = np.sqrt(diagonal)
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        a = problem.adjacency
        rows = np.repeat(np.arange(problem.size, dtype=a.indices.dtype), np.diff(a.indptr))
        values = a.data * inverse[rows]
        values *= inverse[a.indices]
        values[rows == a.indices] = 0.0
        self._matrix = _core.Matrix(a.indptr, a.indices, values.astype(np.float32))
        self.root: Block = root[:, None].astype(np.float32)
        self.inverse_root: Block = inverse[:, None].astype(np.float32)

    def _multiply(self, x: Block, alpha: float, beta: float, z: Block | None = None, gamma: float = 0.0) -> Block:
        out = np.empty_like(x)
        _core.multiply(self._matrix, x, z, alpha, beta, gamma, out, self._threads)
        return out

    def residual(self, y: Block, b: Block) -> Block:
        """Return b - (I - M)·y."""
        return self._multiply(y, 1.0, -1.0, b, 1.0)

    def apply(self, u: Block) -> Block:
        """Return (ρD - A)·u."""
        image = self._multiply(np.ascontiguousarray(u * self.root), -1.0, 1.0)
        image *= self.root
        return image

    def smooth(self, b: Block) -> Block:
        """Return a polynomial of I - M times b that is near the inverse on the upper part of the spectrum."""
        low, high = 2.0 / _SMOOTHED_PART, 2.0
        centre, half = (high + low) / 2, (high - low) / 2
        sigma = centre / half
        rate = 1.0 / sigma
        step = b / np.float32(centre)
        y = step.copy()
        for _ in range(_SMOOTHING_STEPS - 1):
            following = 1.0 / (2.0 * sigma - rate)
            step = step * np.float32(following * rate) + self.residual(y, b) * np.float32(2.0 * following / half)
            y += step
            rate = following
        return y


def _dots(x: Block, y: Block) -> NDArray[np.float32]:
    products: NDArray[np.float32] = np.einsum("ij,ij->j", x, y)
    return products


def _ratio(numerator: NDArray[np.float32], denominator: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
