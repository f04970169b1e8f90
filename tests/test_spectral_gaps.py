"""Eigenvectors of graphs whose eigenvalues crowd at 1: paths, cycles, grids, neighbour graphs, many components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import checks
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.datasets import make_circles, make_moons
from sklearn.neighbors import kneighbors_graph

from corecut import Graph, make_degree_corrected_sbm
from corecut.spectral import leading_eigenvectors
from corecut.spectral.problem import SpectralProblem
from corecut.spectral.solvers import DENSE_SIZE


def path(n: int) -> sp.csr_array:
    return sp.csr_array(sp.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1], shape=(n, n)))


def cycle(n: int) -> sp.csr_array:
    steps = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    return sp.csr_array(steps + steps.T)


def product(a: sp.csr_array, b: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(sp.kron(a, sp.eye_array(b.shape[0])) + sp.kron(sp.eye_array(a.shape[0]), b))


def neighbours(points: np.ndarray, n_neighbors: int) -> sp.csr_array:
    directed = kneighbors_graph(points, n_neighbors)
    return sp.csr_array((directed + directed.T) / 2)


def ring_of_cliques(count: int, size: int) -> sp.csr_array:
    cliques = sp.kron(sp.eye_array(count), np.ones((size, size)) - np.eye(size)).tolil()
    first = np.arange(count) * size
    after = np.roll(first, -1) + 1
    cliques[first, after] = cliques[after, first] = 1.0
    return sp.csr_array(cliques)


def relative_errors(matrix: Any, exact: np.ndarray, **arguments: Any) -> np.ndarray:
    """Return the errors of the distances 1 - λ, without the first, relative to themselves."""
    found = leading_eigenvectors(matrix, exact.size, random_state=0, **arguments)
    assert found.converged
    assert found.vectors.shape == (matrix.shape[0], exact.size)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(exact.size), atol=1e-5)
    assert abs(1 - found.values[0]) < 1e-12
    return np.abs((1 - found.values[1:]) / (1 - exact[1:]) - 1)


# --- known eigenvalues ---------------------------------------------------------------------------------------------------


def test_path() -> None:
    # A walk on a path, reflected at its ends.
    assert relative_errors(path(5000), np.cos(np.pi * np.arange(6) / 4999)).max() < 0.03


def test_cycle() -> None:
    # 1 - λ₂ = 8e-9: invisible in single precision.
    assert relative_errors(cycle(50_000), np.cos(2 * np.pi * np.array([0, 1, 1, 2]) / 50_000)).max() < 0.03


@pytest.mark.parametrize(("a", "b"), [(100, 100), (6, 2000)])
def test_torus(a: int, b: int) -> None:
    waves = [0.5 * np.cos(2 * np.pi * np.arange(n) / n) for n in (a, b)]
    exact = np.sort(np.add.outer(*waves).ravel())[::-1][:8]
    assert relative_errors(product(cycle(a), cycle(b)), exact).max() < 0.05


SMALL: dict[str, Callable[[], sp.csr_array]] = {
    "path": lambda: path(1400),
    "grid": lambda: product(path(10), path(140)),
    "cube": lambda: product(product(path(11), path(11)), path(11)),
    "tree": lambda: sp.csr_array(tree(1500)),
    "moons": lambda: neighbours(make_moons(1500, noise=0.05, random_state=30)[0], 10),
    "circles": lambda: neighbours(make_circles(1500, factor=0.5, noise=0.05, random_state=0)[0], 8),
    "plane": lambda: neighbours(np.random.default_rng(0).random((1500, 2)), 10),
    "cliques": lambda: ring_of_cliques(140, 10),
    "planted": lambda: make_degree_corrected_sbm(1500, 6, mean_degree=12, mixing=0.3, random_state=1)[0],
}


def tree(n: int) -> sp.csr_array:
    parents = (np.arange(1, n) - 1) // 2
    half = sp.csr_array((np.ones(n - 1), (np.arange(1, n), parents)), shape=(n, n))
    return sp.csr_array(half + half.T)


@pytest.mark.parametrize("tau", [0.0, 0.1])
@pytest.mark.parametrize("name", SMALL)
def test_eigenvalues_are_lapacks(name: str, tau: float) -> None:
    graph = Graph.from_matrix(SMALL[name]())
    n = graph.n_nodes
    assert n > DENSE_SIZE
    shift = tau * graph.degrees.mean()
    degrees = np.where(graph.degrees + shift > 0, graph.degrees + shift, 1.0)
    problem = SpectralProblem(graph.adjacency, degrees, np.full(n, np.sqrt(shift / n)) if tau else None)
    exact = scipy.linalg.eigh(problem.dense(), eigvals_only=True, driver="evd")[::-1][:7]
    found = leading_eigenvectors(problem, 7, random_state=0)
    gaps, true_gaps = 1 - found.values, np.maximum(1 - exact, 0)
    assert found.converged
    np.testing.assert_allclose(gaps, true_gaps, rtol=0.06, atol=1e-10)
    residuals = np.linalg.norm(problem.dense() @ found.vectors - found.vectors * found.values, axis=0)
    assert np.all(residuals**2 < 0.1 * np.maximum(true_gaps, 1e-12))
    for jobs in (1, 3):
        again = leading_eigenvectors(problem, 7, random_state=0, n_jobs=jobs)
        checks.same_bits(found.vectors, again.vectors)
        checks.same_bits(found.values, again.values)
