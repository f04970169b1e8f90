"""The spectral problem of a weighted graph, and the operator its solvers apply.

    N = D^-½ A D^-½ (+ v vᵀ),      wanted: the eigenvectors of the k largest eigenvalues.

The optional rank-one term is regularisation: A + (τ/n)·s sᵀ and d + τ·s with node sizes s give v = √(τ/n)·D^-½ s, which is
applied as a product of vectors and never becomes a dense matrix.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from corecut import _core
from corecut._typing import FloatArray

Block = NDArray[np.float32]


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

    @property
    def size(self) -> int:
        """Number of nodes m."""
        return int(self.degrees.size)

    @cached_property
    def normalized(self) -> sp.csr_array:
        """D^-½ A D^-½ without the rank-one part."""
        a = self.adjacency
        return sp.csr_array((self._values(), a.indices, a.indptr), shape=a.shape)

    def _values(self) -> FloatArray:
        root = 1.0 / np.sqrt(self.degrees)
        a = self.adjacency
        values: FloatArray = a.data * np.repeat(root, np.diff(a.indptr))
        values *= root[a.indices]
        return values

    @cached_property
    def direction(self) -> FloatArray | None:
        """The v of the rank-one part v vᵀ."""
        return None if self.loading is None else self.loading / np.sqrt(self.degrees)

    @cached_property
    def radius(self) -> float:
        """An upper bound of |eigenvalue|: the largest row sum of D⁻¹A, to which N is similar."""
        sums = np.asarray(self.adjacency.sum(axis=1)).ravel()
        if self.loading is not None:
            sums = sums + self.loading * self.loading.sum()
        return float(np.max(sums / self.degrees))

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

    @cached_property
    def _single(self) -> _core.Matrix:
        # Not through `normalized`, which would be kept beside it.
        a = self.adjacency
        return _core.Matrix(a.indptr, a.indices, self._values().astype(np.float32))

    def apply(
        self, x: Block, *, threads: int, alpha: float = 1.0, beta: float = 0.0, z: Block | None = None, gamma: float = 0.0
    ) -> Block:
        """Return alpha·N·x + beta·x + gamma·z in single precision, natively and in parallel."""
        out = np.empty_like(x)
        _core.multiply(self._single, x, z, alpha, beta, gamma, out, threads)
        if self.direction is not None:
            v = self.direction.astype(np.float32)
            out += np.outer(v, np.float32(alpha) * (v @ x))
        return out


@cache
def _blas() -> Any:
    import scipy.linalg  # noqa: F401  (it may bring a BLAS of its own, and only libraries that are loaded are found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[Any]:
    """BLAS on one thread: its sums, and with them the labels, would otherwise depend on the number of cores."""
    limited: AbstractContextManager[Any] = _blas().limit(limits=1, user_api="blas")
    return limited
