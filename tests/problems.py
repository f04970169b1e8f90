"""Small problems of every kind that the stages must solve: a view of the package beside its dense twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import twins
from hypothesis import strategies as st
from twins import Array

from corecut import KernelView


@dataclass(frozen=True, eq=False)
class Problem:
    """A kernel view with K and w as its dense twin computes them."""

    view: KernelView
    K: Array
    w: Array

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.w)

    @property
    def start(self) -> list[int]:
        """Some point of positive weight, then x*: a start that every sampler accepts."""
        star = twins.smallest_point(self.K, self.w)
        return [next(int(x) for x in np.flatnonzero(self.w)[::-1] if x != star), star]


def graph_problem(A: Array, shift: float | str = "auto", *, dtype: type = np.float64) -> Problem:
    """Return the normalised-cut problem of a dense adjacency matrix.

    The view may measure weights in another unit than the graph (K grows by what w shrinks by); the twin follows it.
    """
    view = KernelView.from_graph(sp.csr_array(A.astype(dtype)), shift=shift)
    K, w = twins.graph_kernel(A.astype(dtype).astype(float), view.shift)
    unit = w.sum() / view.weights.sum()
    return Problem(view, K * unit, w / unit)


def kernel_problem(K: Array, w: Array) -> Problem:
    """Return the problem of a kernel given as a matrix."""
    return Problem(KernelView.from_matrix(sp.csr_array(K), weights=w), K, w)


def random_adjacency(
    rng: np.random.Generator,
    n: int,
    *,
    density: float = 0.35,
    unit: bool = False,
    loops: float = 0.0,
    components: int = 1,
    isolated: int = 0,
) -> Array:
    """Return a random symmetric matrix: `loops` is the share of nodes with a self-loop, `isolated` their number."""
    A = np.triu(rng.random((n, n)) < density, 1) * (1.0 if unit else rng.uniform(0.2, 3.0, (n, n)))
    A = A + A.T
    group = rng.integers(components, size=n)
    A *= group[:, None] == group[None, :]
    A += np.diag((rng.random(n) < loops) * (np.ones(n) if unit else rng.uniform(0.5, 4.0, n)))
    lonely = rng.permutation(n)[:isolated]
    A[lonely] = A[:, lonely] = 0.0
    return A


def random_kernel(rng: np.random.Generator, n: int, *, rank: int = 12, density: float = 0.3) -> Array:
    """Return a random sparse positive semi-definite kernel without negative entries: sparse non-negative features."""
    phi = (rng.random((n, rank)) < density) * rng.uniform(0.3, 1.5, (n, rank))
    return phi @ phi.T + np.diag(rng.uniform(0.05, 0.3, n))


def planted_graph(
    rng: np.random.Generator, sizes: list[int], *, degree: float = 10.0, mixing: float = 0.1, loops: bool = False
) -> tuple[sp.csr_array, Array]:
    """Return a sparse weighted graph with planted clusters of about the given mean degree, and the clusters."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = labels.size
    edges = int(n * degree / 2)
    rows = rng.integers(n, size=edges)
    own = offsets[labels[rows]] + rng.integers(np.array(sizes)[labels[rows]])
    columns = np.where(rng.random(edges) < mixing, rng.integers(n, size=edges), own)
    keep = rows != columns
    half = sp.coo_array((rng.uniform(0.5, 1.5, edges)[keep], (rows[keep], columns[keep])), shape=(n, n))
    matrix = sp.csr_array(half + half.T)
    return (sp.csr_array(matrix + sp.eye_array(n) * degree) if loops else matrix), labels


def collapsing_kernel() -> Problem:
    """Return a kernel of heavy and light near-copies: a draw among them makes most of a stale table worthless."""
    group = np.array([0, 1, 1, 1, 1, 2, 2, 2, 3])
    K = (group[:, None] == group[None, :]) * 1.0
    K[np.diag_indices(9)] += 1e-4
    K[0, 0] = 0.5
    return kernel_problem(K, np.array([1.0, 20.0, 25.0, 20.0, 15.0, 0.4, 0.5, 0.6, 1.0]))


def weighted_kernel() -> Problem:
    """Return a sparse positive semi-definite kernel with weights over two orders of magnitude, two of them zero."""
    rng = np.random.default_rng(7)
    w = np.exp(rng.uniform(-2.5, 2.5, 8))
    w[[2, 6]] = 0.0
    return kernel_problem(random_kernel(rng, 8, rank=6), w)


SMALL: dict[str, Callable[[], Problem]] = {
    "no loops, automatic shift": lambda: graph_problem(random_adjacency(np.random.default_rng(1), 8, density=0.5, unit=True)),
    "loops, no shift": lambda: graph_problem(random_adjacency(np.random.default_rng(2), 8, loops=1.0), 0.0),
    "some loops, shift 1": lambda: graph_problem(random_adjacency(np.random.default_rng(3), 8, loops=0.5), 1.0),
    "components and isolated nodes": lambda: graph_problem(
        random_adjacency(np.random.default_rng(4), 10, density=0.7, components=2, isolated=2), 0.8
    ),
    "negative distances": lambda: graph_problem(random_adjacency(np.random.default_rng(5), 9, density=0.4), 0.4),
    "weighted kernel": weighted_kernel,
    "collapsing kernel": collapsing_kernel,
}


@st.composite
def adjacency_matrices(draw: st.DrawFn, *, min_nodes: int = 1, max_nodes: int = 9, edges: bool = False) -> Array:
    """Draw a symmetric non-negative matrix with zeros, self-loops and isolated nodes; with `edges` never the zero matrix."""
    n = draw(st.integers(min_nodes, max_nodes))
    weight = st.sampled_from([0.0, 0.0, 0.0, 1.0, 1.0, 0.25, 3.0, 7.5])
    upper = np.zeros((n, n))
    pairs = n * (n + 1) // 2
    upper[np.triu_indices(n)] = draw(st.lists(weight, min_size=pairs, max_size=pairs))
    A = upper + np.triu(upper, 1).T
    if edges and not A.any():
        A[0, n - 1] = A[n - 1, 0] = 1.0
    return A
