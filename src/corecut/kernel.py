"""KernelView: the kernel K and the weights W of a weighted kernel k-means problem, never materialised.

For a graph, K = D⁻¹AD⁻¹ + σD⁻¹ and W = D turn the normalised cut into weighted kernel k-means (Dhillon, Guan and Kulis
2004): for every partition Π into k non-empty clusters

    cost(Π) = tr(D⁻¹A) - k + Σ_j cut_j / vol_j + σ(n - k).

The shift σ supplies the diagonal that a graph without self-loops lacks (its K would have K_xx = 0 and negative squared
distances); on the full graph it changes no comparison between partitions. σ = 1 always makes K positive semi-definite,
but the constant σ(n - k) then dominates the cost and a (1 ± ε) statement about it says little about the cut.

Which stages see the shift: seeding, sensitivities, the coreset graph's diagonal and labelling. There it is *not* neutral,
because the weights of a coreset vary: a cluster of few heavy coreset nodes pays more for it than one of many light ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._typing import FloatArray, IntArray
from corecut._validation import check_real, check_weights
from corecut.graph import Graph, as_graph


@dataclass(frozen=True, eq=False)
class KernelView:
    """K_xy = scale_x · A_xy · scale_y off the diagonal, K_xx = diagonal_x, with a weight w_x for every point.

    Attributes
    ----------
    graph
        Holds A. For a graph's kernel, scale = 1/d; for a kernel given as a matrix, scale is None (all ones).
    scale, diagonal, weights
        Per point. Points of weight 0 (isolated nodes) take no part in any stage.
    shift
        The σ that went into the diagonal.
    rank_one, rank_factor
        r and c of a dense part c·r rᵀ that regularisation adds to K (the diagonal includes it), or None. Only labelling knows
        it: the other stages use the plain sparse kernel. (c apart from r: its root would be rounded, differently for other
        units of weight.)
    """

    graph: Graph
    scale: FloatArray | None = field(repr=False)
    diagonal: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    shift: float = 0.0
    rank_one: FloatArray | None = field(repr=False, default=None)
    rank_factor: float = 1.0

    def __post_init__(self) -> None:
        for name in ("scale", "diagonal", "weights", "rank_one"):
            array = getattr(self, name)
            if array is None and name in ("scale", "rank_one"):
                continue
            numbers = np.asarray(array, dtype=np.float64)
            if numbers.shape != (self.n_points,):
                raise ValueError(f"{name} must be one number per point: expected shape ({self.n_points},), got {numbers.shape}")
            if np.isnan(numbers).any():
                raise ValueError(f"{name} must have no NaN, got one at point {int(np.isnan(numbers).argmax())}")
            object.__setattr__(self, name, numbers)
        if not np.isfinite(self.weights).all() or (self.weights < 0).any():
            raise ValueError("weights must be finite and not negative: give a point 0 that is to take no part")

    @classmethod
    def from_graph(cls, graph: Any, *, shift: float | str = "auto") -> KernelView:
        """Return the normalised-cut kernel of a graph: K = D⁻¹AD⁻¹ + σD⁻¹, W = D.

        `shift` is σ, or "auto": 0 when every node has a self-loop, else the typical share of one edge in a node's degree
        (see :func:`auto_shift`).
        """
        graph = as_graph(graph)
        sigma = auto_shift(graph) if shift == "auto" else check_real(shift, "shift")
        # Weights count only relative to each other. Dividing by a power of four (whose root is a power of two) is exact and
        # keeps 1/d² within range.
        unit = _power_of_four(graph.volume / max(graph.n_nodes, 1))
        degrees = graph.degrees / unit
        inverse = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
        diagonal = sigma * inverse
        if graph.diagonal is not None:
            diagonal = diagonal + graph.diagonal / unit * inverse * inverse
        return cls(graph, inverse / np.sqrt(unit), diagonal, degrees, sigma)

    @classmethod
    def from_matrix(cls, kernel: Any, *, weights: Any = None) -> KernelView:
        """Return the view of any sparse kernel matrix with non-negative entries, and point weights (1 by default).

        K should be positive semi-definite; that is not checked (it would cost more than the clustering).
        """
        graph = as_graph(kernel)
        n = graph.n_nodes
        diagonal = np.zeros(n) if graph.diagonal is None else graph.diagonal
        return cls(graph, None, diagonal, np.ones(n) if weights is None else check_weights(weights, n))

    def regularized(self, tau: float, sizes: FloatArray) -> KernelView:
        """Return the kernel of A + (τ/n)·s sᵀ with degrees d + τ·s, for τ in units of `weights` and n = Σ s.

        The dense part is kept as the vector r = s/(d + τ·s) and the factor τ/n. The shift is left out.
        """
        if self.scale is None:
            raise ValueError("only a graph's kernel can be regularised")
        if tau == 0:
            return self
        weights = self.weights + tau * sizes
        shrink = np.divide(self.weights, weights, out=np.zeros_like(weights), where=weights > 0)
        factor = tau / float(sizes.sum())
        rank_one = np.divide(sizes, weights, out=np.zeros_like(weights), where=weights > 0)
        scale = self.scale * shrink
        stored = 0.0 if self.graph.diagonal is None else self.graph.diagonal * scale * scale
        return KernelView(self.graph, scale, stored + factor * rank_one * rank_one, weights, 0.0, rank_one, factor)

    @property
    def n_points(self) -> int:
        """Number of points n."""
        return self.graph.n_nodes

    @property
    def matrix(self) -> _core.Matrix:
        """The handle that native kernels take."""
        return self.graph.matrix

    @property
    def load(self) -> FloatArray:
        """w_y·scale_y, so that off the diagonal Σ_y w_y K_xy = scale_x Σ_y A_xy load_y."""
        return self.weights if self.scale is None else self.weights * self.scale

    @property
    def diagonal_excess(self) -> FloatArray:
        """K_xx - scale_x² A_xx: the part of the diagonal that is not stored in A but comes from the shift."""
        stored = self.graph.diagonal
        if stored is None:
            return self.diagonal
        return self.diagonal - (stored if self.scale is None else stored * self.scale * self.scale)

    def restrict(self, nodes: IntArray, n_jobs: int | None = None) -> sp.csr_array:
        """Return K(nodes, nodes) as a matrix with its full diagonal; `nodes` must increase. O(Σ deg(nodes))."""
        return self.of_submatrix(nodes, self.graph.subgraph(nodes, n_jobs))

    def of_submatrix(self, nodes: IntArray, sub: sp.csr_array) -> sp.csr_array:
        """Return K(nodes, nodes), with A(nodes, nodes) known; that one is used up."""
        if self.scale is not None:
            scale = self.scale[nodes]
            rows = np.repeat(np.arange(nodes.size), np.diff(sub.indptr))
            sub.data *= scale[rows] * scale[sub.indices]
        missing = self.diagonal[nodes] - sub.diagonal()
        return sp.csr_array(sub + sp.diags_array(missing)) if np.any(missing) else sub

    def to_matrix(self) -> sp.csr_array:
        """Return K itself as a sparse matrix, for small problems and tests."""
        return self.restrict(np.arange(self.n_points))


def auto_shift(graph: Graph) -> float:
    """Return the shift that stands for missing self-loops: 0 when no node lacks one.

    A squared distance σ/d_x + σ/d_y - 2a_xy/(d_x d_y) is negative when σ < 2a_xy/(d_x + d_y). One edge's typical share
    in the degree of its node, 1/(edges per node), is the σ at which the distance of two typical neighbours vanishes; twice
    that leaves room. It is scale-free and at most 1.
    """
    nodes = int(np.count_nonzero(graph.degrees))
    if nodes == 0:
        return 0.0
    if graph.diagonal is not None and np.count_nonzero(graph.diagonal) == nodes:
        return 0.0
    return min(1.0, 2.0 * nodes / graph.n_entries)


def _power_of_four(value: float) -> float:
    return float(4.0 ** np.round(np.log2(value) / 2)) if value > 0 else 1.0
