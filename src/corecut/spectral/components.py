"""Eigenvectors that are known beforehand: one for each connected component.

Where the degrees are the row sums, D^½ times the indicator of a component is an eigenvector of N = D^-½ A D^-½ for the
eigenvalue 1, the largest one. With the rank-one part, which joins all nodes, D^½·1 alone is left.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._typing import AnyArray, FloatArray, LabelArray
from corecut.spectral.problem import SpectralProblem


@dataclass(frozen=True, eq=False)
class KnownVectors:
    """The known eigenvectors, orthonormal: √(d_x / vol_c) for the nodes x of component c.

    Attributes
    ----------
    labels
        Component of every node, numbered by falling volume; -1 for nodes (isolated ones, say) without a known vector.
    count
        Number of known vectors.
    degrees
        D.
    """

    labels: LabelArray = field(repr=False)
    count: int
    degrees: FloatArray = field(repr=False)

    @cached_property
    def volumes(self) -> FloatArray:
        """Volume of each component."""
        inside = self.labels >= 0
        total = np.bincount(self.labels[inside], self.degrees[inside], minlength=self.count)
        return np.asarray(total, dtype=np.float64)

    @cached_property
    def vectors(self) -> sp.csr_array:
        """The vectors as columns."""
        inside = np.flatnonzero(self.labels >= 0)
        entries = np.sqrt(self.degrees[inside] / self.volumes[self.labels[inside]])
        return sp.csr_array((entries, (inside, self.labels[inside])), shape=(self.labels.size, self.count))

    @cached_property
    def _transposed(self) -> sp.csr_array:
        return sp.csr_array(self.vectors.T)

    def project(self, block: AnyArray) -> AnyArray:
        """Return a block without its part in the span of the known vectors."""
        if self.count == 0:
            return block
        part: AnyArray = self.vectors @ (self._transposed @ block)
        return np.subtract(block, part, dtype=block.dtype, casting="same_kind")

    def dense(self) -> FloatArray:
        """Return the vectors as columns."""
        columns: FloatArray = self.vectors.toarray()
        return columns

    def restricted(self, groups: LabelArray, degrees: FloatArray) -> KnownVectors:
        """Return the known vectors of a quotient whose groups do not cross components."""
        labels = np.empty(degrees.size, np.int32)
        labels[groups] = self.labels
        return KnownVectors(labels, self.count, degrees)

    def gathered(self, count: int, n_clusters: int, generator: np.random.Generator) -> FloatArray:
        """Return `count` orthonormal vectors of the span, where there are more components than that.

        Components are gathered into max(count, n_clusters) bins of about equal volume, the largest first. With as many bins as
        vectors each has a vector of its own; otherwise each has a row of its own in random vectors.
        """
        bins = min(self.count, max(count, n_clusters))
        of_component = _balanced(self.volumes, bins)
        labels = np.where(self.labels >= 0, of_component[self.labels], -1).astype(np.int32)
        vectors = KnownVectors(labels, bins, self.degrees).vectors
        if bins == count:
            columns: FloatArray = vectors.toarray()
            return columns
        mixed: FloatArray = vectors @ np.linalg.qr(generator.standard_normal((bins, count)))[0]
        return mixed


def known_vectors(problem: SpectralProblem, threads: int = 1) -> KnownVectors:
    """Find the eigenvectors of the eigenvalue 1 that the components give."""
    if problem.loading is not None:
        exact = bool(problem.balanced.all())
        return KnownVectors(np.full(problem.size, 0 if exact else -1, np.int32), int(exact), problem.degrees)
    labels = _core.components(problem.matrix, threads)
    exact_ones = np.bincount(labels, ~problem.balanced) == 0
    volumes = np.where(exact_ones, np.bincount(labels, problem.degrees), -1.0)
    rank = np.empty(volumes.size, np.int32)
    rank[np.argsort(-volumes, kind="stable")] = np.arange(volumes.size, dtype=np.int32)
    rank[~exact_ones] = -1
    return KnownVectors(rank[labels], int(np.count_nonzero(exact_ones)), problem.degrees)


def _balanced(volumes: FloatArray, bins: int) -> LabelArray:
    """Return a bin for each volume (which fall): always the emptiest one."""
    chosen = np.empty(volumes.size, np.int32)
    heap = [(0.0, j) for j in range(bins)]
    for i, volume in enumerate(volumes.tolist()):
        filled, j = heap[0]
        chosen[i] = j
        heapq.heapreplace(heap, (filled + volume, j))
    return chosen
