"""The spectral problem of a weighted graph, and the operator its solvers apply.

    N = D^-½ A D^-½ (+ v vᵀ),      wanted: the eigenvectors of the k largest eigenvalues.

The optional rank-one term is regularisation: A + (τ/n)·s sᵀ and d + τ·s with node sizes s give v = √(τ/n)·D^-½ s, which is
applied as a product of vectors and never becomes a dense matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from corecut import _core
from corecut._typing import AnyArray, BoolArray, FloatArray, LabelArray
from corecut._validation import thread_count

Block = NDArray[np.float32]
AnyBlock = TypeVar("AnyBlock", NDArray[np.float32], NDArray[np.float64])


def times_power(values: AnyArray, exponent: int, *, n_jobs: int | None = 1) -> AnyArray:
    """Return values times a power of two, which changes no digit, in their own precision where that has room for it."""
    precision = np.float32 if values.dtype == np.float32 and abs(exponent) <= 100 else np.float64
    if abs(exponent) <= 1000:  # a product is many times faster than ldexp
        out: AnyArray = np.empty(values.size, precision)
        _core.times(values, math.ldexp(1.0, exponent), out, thread_count(n_jobs))
        return out
    scaled: FloatArray = np.ldexp(np.asarray(values, np.float64), exponent)
    return scaled


@dataclass(frozen=True, eq=False)
class SpectralProblem:
    """Find k clusters of a graph with adjacency A and degrees D (which need not be the row sums of A).

    Attributes
    ----------
    adjacency
        A, symmetric and non-negative.
    degrees
        D, positive; with regularisation, d + τ·s.
    loading
        √(τ/n)·s for the rank-one part of A, or None.
    """

    adjacency: sp.csr_array
    degrees: FloatArray = field(repr=False)
    loading: FloatArray | None = field(repr=False, default=None)

    @classmethod
    def of(cls, adjacency: sp.csr_array, degrees: FloatArray) -> SpectralProblem:
        """Return the problem in a unit of weight in which the mean degree is about 1.

        Roots are then the same for weights that differ by a power of two. A node of degree 0 has no direction of its own:
        degree 1 leaves its row at zero.
        """
        exponent = -math.frexp(float(degrees.mean()))[1]
        if exponent:
            data, degrees = times_power(adjacency.data, exponent), times_power(degrees, exponent)
            adjacency = sp.csr_array((data, adjacency.indices, adjacency.indptr), shape=adjacency.shape)
        return cls(adjacency, np.where(degrees > 0, degrees, 1.0))

    @property
    def size(self) -> int:
        """Number of nodes m."""
        return int(self.degrees.size)

    def scaled(self) -> SpectralProblem:
        """Return the same N in a unit of weight in which single precision has room, and with positive degrees.

        A node of degree 0 has no direction of its own: degree 1 leaves its row at zero.
        """
        largest = float(self.degrees.max())
        if self.degrees.min() > 0 and 1e-6 < largest < 1e12:
            return self
        # A power of two changes no digit. The rank-one part is the loading times itself.
        half = -math.frexp(largest)[1] // 2
        data = times_power(self.adjacency.data, 2 * half)
        adjacency = sp.csr_array((data, self.adjacency.indices, self.adjacency.indptr), shape=self.adjacency.shape)
        degrees = times_power(self.degrees, 2 * half)
        loading = None if self.loading is None else times_power(self.loading, half)
        return SpectralProblem(adjacency, np.where(degrees > 0, degrees, 1.0), loading)

    @cached_property
    def normalized(self) -> sp.csr_array:
        """D^-½ A D^-½ without the rank-one part."""
        a, values = self.adjacency, np.empty(self.adjacency.nnz)
        _core.scale_entries(self.matrix, 1.0 / np.sqrt(self.degrees), values, 1)
        return sp.csr_array((values, a.indices, a.indptr), shape=a.shape)

    @cached_property
    def direction(self) -> FloatArray | None:
        """The v of the rank-one part v vᵀ."""
        return None if self.loading is None else self.loading / np.sqrt(self.degrees)

    @cached_property
    def radius(self) -> float:
        """An upper bound of |eigenvalue|: the largest row sum of D⁻¹A, to which N is similar."""
        return 1.0 if self.balanced.all() else float(np.max(self.ratios))

    @cached_property
    def ratios(self) -> FloatArray:
        """Row sums of D⁻¹A, with the rank-one part."""
        # In double precision, whatever the weights are: rounding would look like a gap. Natively: a product with scipy would
        # make a copy of weights in single precision.
        sums: FloatArray = _core.scan(self.matrix, 1)[0]
        if self.loading is not None:
            sums = sums + self.loading * self.loading.sum()
        return sums / self.degrees

    @cached_property
    def balanced(self) -> BoolArray:
        """Mask of the nodes whose degree is their row sum."""
        return np.abs(self.ratios - 1.0) <= 1e-9

    @cached_property
    def matrix(self) -> _core.Matrix:
        """A as the handle that native kernels take."""
        return _core.Matrix(self.adjacency.indptr, self.adjacency.indices, self.adjacency.data)

    @cached_property
    def lone(self) -> BoolArray:
        """Mask of the nodes with no neighbour but themselves."""
        return np.asarray(np.diff(self.adjacency.indptr) == (self.adjacency.diagonal() != 0))

    @cached_property
    def outward(self) -> FloatArray:
        """The diagonal of ρD - A: what a node shares with others, and what its degree has beyond its row sum."""
        diagonal = self.radius * self.degrees - self.adjacency.diagonal()
        # Nodes with nothing but a loop: what is left is rounding.
        return np.where(diagonal > 1e-12 * self.degrees, diagonal, 0.0)

    def quotient(self, groups: LabelArray, threads: int) -> SpectralProblem:
        """Return the problem of the quotient graph of a grouping numbered 0, 1, ... without gaps."""
        count = int(groups.max()) + 1
        indptr, indices, weights = _core.contract(self.matrix, groups, count, threads)
        if weights.size < 2**31:  # scipy would widen the indices to match a wide indptr
            indptr = indptr.astype(np.int32)
        adjacency = sp.csr_array((weights, indices, indptr), shape=(count, count))
        degrees: Any = np.bincount(groups, self.degrees, minlength=count)
        loading: Any = None if self.loading is None else np.bincount(groups, self.loading, minlength=count)
        coarse = SpectralProblem(adjacency, degrees, loading)
        # The bound of the finer level holds, and keeps the levels' matrices each other's restrictions.
        coarse.__dict__["radius"] = self.radius
        return coarse

    def thinned(self, kept: float, seed: int, threads: int) -> SpectralProblem:
        """Return nearly the same problem with at most about 2·kept entries per node, and the same row sums.

        Entry (x, y) stays with probability p = kept·a_xy·(1/d_x + 1/d_y), and weighs a_xy/p then. N changes by a random
        matrix of norm about 2/√(2·kept).
        """
        indptr, indices, weights = _core.thinned(self.matrix, self.degrees, kept, seed, threads)
        if weights.size < 2**31:  # scipy would widen the indices to match a wide indptr
            indptr = indptr.astype(np.int32)
        adjacency = sp.csr_array((weights, indices, indptr), shape=self.adjacency.shape)
        thin = SpectralProblem(adjacency, self.degrees, self.loading)
        thin.__dict__["radius"] = self.radius
        return thin

    def dense(self) -> FloatArray:
        """Return N as an array, for small m."""
        matrix: FloatArray = self.normalized.toarray()
        return matrix if self.direction is None else matrix + np.outer(self.direction, self.direction)

    def operator(self) -> Any:
        """Return N as a scipy LinearOperator in double precision."""
        from scipy.sparse.linalg import LinearOperator

        matrix, v = self.normalized, self.direction
        if v is None:
            return LinearOperator(matrix.shape, matvec=lambda x: matrix @ x, dtype=np.float64)
        return LinearOperator(matrix.shape, matvec=lambda x: matrix @ x.ravel() + v * (v @ x.ravel()), dtype=np.float64)

    def _native(self, dtype: np.dtype[Any], threads: int) -> _core.Matrix:
        """Return N without its rank-one part in a precision, made once."""
        if dtype not in self._made:
            # Not through `normalized`, which would be kept beside it.
            a, values = self.adjacency, np.empty(self.adjacency.nnz, dtype)
            _core.scale_entries(self.matrix, 1.0 / np.sqrt(self.degrees), values, threads)
            self._made[dtype] = _core.Matrix(a.indptr, a.indices, values)
        return self._made[dtype]

    @cached_property
    def _made(self) -> dict[np.dtype[Any], _core.Matrix]:
        return {}

    def apply(
        self, x: AnyBlock, *, threads: int, alpha: float = 1.0, beta: float = 0.0, z: AnyBlock | None = None, gamma: float = 0.0
    ) -> AnyBlock:
        """Return alpha·N·x + beta·x + gamma·z in the precision of x, natively and in parallel."""
        out = np.empty_like(x)
        _core.multiply(self._native(x.dtype, threads), x, z, alpha, beta, gamma, out, threads)
        if self.direction is not None:
            v = self.direction.astype(x.dtype)
            out += np.outer(v, x.dtype.type(alpha) * (v @ x))
        return out
