"""Eigenvectors of graphs whose eigenvalues crowd at 1: paths, cycles, grids, neighbour graphs, many components."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import checks
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import threadpoolctl
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import kneighbors_graph

from corecut import (
    FastSpectralClustering,
    Graph,
    make_degree_corrected_sbm,
    normalized_cut,
    round_embedding,
    spectral_embedding,
)
from corecut.spectral import computed_count, leading_eigenvectors, multilevel, useful_count
from corecut.spectral.blas import gram, single_threaded_blas, times
from corecut.spectral.components import known_vectors
from corecut.spectral.hierarchy import Cycle, build_hierarchy
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


def test_vectors_of_equal_bits_for_any_number_of_threads() -> None:
    grid = product(path(40), path(250))
    one = leading_eigenvectors(grid, 5, random_state=3, n_jobs=1)
    for jobs in (2, 3):
        again = leading_eigenvectors(grid, 5, random_state=3, n_jobs=jobs)
        checks.same_bits(one.vectors, again.vectors)
        checks.same_bits(one.values, again.values)


def test_equal_eigenvalues_are_all_found() -> None:
    # A cube of 11 dimensions: 1 - λ is 2/11 for 11 vectors and 4/11 for 55.
    cube = path(2)
    for _ in range(10):
        cube = product(cube, path(2))
    exact = 1 - np.repeat([0, 2, 4], [1, 11, 20]) / 11
    assert relative_errors(cube, exact).max() < 0.02


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
    dense = problem.dense()
    with single_threaded_blas():
        exact = scipy.linalg.eigh(dense, eigvals_only=True, driver="evd")[::-1][:7]
    found = leading_eigenvectors(problem, 7, random_state=0, n_jobs=3)
    gaps, true_gaps = 1 - found.values, np.maximum(1 - exact, 0)
    assert found.converged
    np.testing.assert_allclose(gaps, true_gaps, rtol=0.06, atol=1e-10)
    residuals = np.linalg.norm(dense @ found.vectors - found.vectors * found.values, axis=0)
    assert np.all(residuals**2 < 0.1 * np.maximum(true_gaps, 1e-12))
    again = leading_eigenvectors(problem, 7, random_state=0, n_jobs=1)
    checks.same_bits(found.vectors, again.vectors)
    checks.same_bits(found.values, again.values)


def test_the_cycle_is_near_the_inverse(rng: np.random.Generator) -> None:
    graph = Graph.from_matrix(product(path(8), path(60)))
    problem = SpectralProblem(graph.adjacency, graph.degrees)
    levels, coarsest, _ = build_hierarchy(problem, known_vectors(problem), size=20, threads=1)
    assert len(levels) >= 2
    assert coarsest.size <= 20
    inverse = Cycle(levels, coarsest, 1)
    for depth, level in enumerate(levels):
        dense = level.problem.dense()
        right = level.known.project(rng.standard_normal((len(dense), 3)))
        with single_threaded_blas():
            exact = np.linalg.pinv(np.eye(len(dense)) - dense, rcond=1e-9, hermitian=True) @ right
        error = exact - level.known.project(inverse(depth, right).astype(np.float64))
        energy = np.einsum("ij,ij->j", error, error - dense @ error) / np.einsum("ij,ij->j", exact, right)
        assert np.all(energy < 0.5)


def test_quotients_are_restrictions() -> None:
    graph = Graph.from_matrix(SMALL["plane"]())
    problem = SpectralProblem(graph.adjacency, graph.degrees + 0.5, np.full(graph.n_nodes, np.sqrt(0.5 / graph.n_nodes)))
    levels, coarsest, known = build_hierarchy(problem, known_vectors(problem), size=100, threads=1)
    first = levels[0]
    carry = first.prolong(np.eye(first.coarse.size))
    np.testing.assert_allclose(carry.T @ carry, np.eye(first.coarse.size), atol=1e-12)
    np.testing.assert_allclose(carry.T @ problem.dense() @ carry, first.coarse.dense(), atol=1e-12)
    np.testing.assert_allclose(coarsest.dense() @ known.dense(), known.dense(), atol=1e-12)


# --- components ----------------------------------------------------------------------------------------------------------


def test_components_give_their_vectors() -> None:
    # Two long paths and a cycle: eigenvalue 1 three times, then those of the longest.
    A = sp.csr_array(sp.block_diag([path(900), path(700), cycle(400)]))
    found = leading_eigenvectors(A, 6, random_state=0)
    np.testing.assert_allclose(1 - found.values[:3], 0.0, atol=1e-14)
    exact = 1 - np.cos(np.pi / np.array([899.0, 699.0, 449.5]))
    np.testing.assert_allclose(1 - found.values[3:], exact, rtol=0.03)
    component = np.repeat([0, 1, 2], [900, 700, 400])
    for column in found.vectors[:, :3].T:
        assert np.unique(component[np.abs(column) > 1e-12]).size == 1


def test_more_components_than_vectors_are_gathered_by_volume() -> None:
    sizes = [30, 7, 6, 5, 4, 3, 3]
    A = sp.csr_array(sp.block_diag([np.ones((s, s)) for s in sizes]))
    found = leading_eigenvectors(A, 2, random_state=0)
    np.testing.assert_allclose(found.values, 1.0)
    np.testing.assert_allclose(A @ found.vectors / np.repeat(sizes, sizes)[:, None], found.vectors, atol=1e-12)
    labels = round_embedding(found.vectors, 2, random_state=0)
    assert np.all((labels == labels[0]) == (np.arange(58) < 30))
    # With more clusters than vectors every bin has a row of its own.
    rows = spectral_embedding(A, 5, n_components=2, eigen_solver="subspace", random_state=0)
    assert np.unique(round_embedding(rows, 5, random_state=0)).size == 5
    assert normalized_cut(A, round_embedding(rows, 5, random_state=0)) < 1e-12


def test_more_vectors_than_components_that_are_cliques() -> None:
    # The quotients come down to one node per component, which know of nothing but the components.
    A = sp.csr_array(sp.block_diag([np.ones((50, 50)) - np.eye(50)] * 40))
    found = leading_eigenvectors(A, 45, random_state=0)
    np.testing.assert_allclose(found.values, np.repeat([1.0, -1 / 49], [40, 5]), atol=1e-3)
    path_pieces = sp.csr_array(sp.block_diag([path(50)] * 40))
    found = leading_eigenvectors(path_pieces, 45, random_state=0)
    np.testing.assert_allclose(1 - found.values, np.repeat([0.0, 1 - np.cos(np.pi / 49)], [40, 5]), rtol=0.05, atol=1e-12)


def test_very_many_pairs_are_quick() -> None:
    # Once 38 seconds in rounding.
    A = sp.csr_array(sp.kron(sp.eye_array(30_000), np.array([[0.0, 1.0], [1.0, 0.0]])))
    rows = spectral_embedding(A, 1000, n_components=64, eigen_solver="subspace", random_state=0)
    labels = round_embedding(rows, 1000, random_state=0)
    np.testing.assert_array_equal(np.bincount(labels), 60)
    assert normalized_cut(A, labels) == 0.0


def test_isolated_nodes_beside_small_gaps() -> None:
    A = sp.csr_array(sp.block_diag([path(2000), sp.csr_array((3000, 3000))]))
    found = leading_eigenvectors(A, 4, random_state=0)
    np.testing.assert_allclose(1 - found.values, 1 - np.cos(np.pi * np.arange(4) / 1999), rtol=0.03, atol=1e-14)
    np.testing.assert_allclose(found.vectors[2000:], 0.0, atol=1e-5)


# --- many entries --------------------------------------------------------------------------------------------------------


def dense_blocks(nodes: int, blocks: int) -> sp.csr_array:
    rng = np.random.default_rng(5)
    of = np.arange(nodes) * blocks // nodes
    weights = rng.integers(1, 4, (nodes, nodes)) * np.where(of[:, None] == of, 20.0, 1.0)
    return sp.csr_array(np.triu(weights) + np.triu(weights, 1).T)


def test_thinning_keeps_row_sums_and_is_unbiased() -> None:
    A = dense_blocks(600, 6)
    problem = SpectralProblem(A, np.asarray(A.sum(axis=1)))
    thin = [problem.thinned(32.0, seed, 2).adjacency for seed in range(20)]
    for seed, one in enumerate(thin):
        checks.same_bits(one, problem.thinned(32.0, seed, 1).adjacency)
        assert abs(one - one.T).max() < 1e-9
        assert one.nnz < 0.25 * A.nnz
        np.testing.assert_allclose(one.sum(axis=1), problem.degrees)
    mean = sum(one.toarray() for one in thin) / 20
    heavy = A.toarray() >= 20
    assert mean[heavy].mean() == pytest.approx(A.toarray()[heavy].mean(), rel=0.01)
    noise = np.linalg.norm((thin[0] - A).toarray() / problem.degrees[0], 2)
    assert noise < 2 * 2 / np.sqrt(2 * 32)  # of entries, and as much again of the diagonal


def test_vectors_of_a_dense_graph_come_from_a_part_of_its_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilevel, "_MUCH_WORK", 0)
    A = dense_blocks(2400, 6)
    problem = SpectralProblem(A, np.asarray(A.sum(axis=1)))
    work: list[int] = []
    apply = SpectralProblem.apply

    def counted(self: SpectralProblem, *block: Any, **factors: Any) -> Any:
        work.append(self.adjacency.nnz)
        return apply(self, *block, **factors)

    monkeypatch.setattr(SpectralProblem, "apply", counted)
    found = leading_eigenvectors(problem, 6, n_clusters=6, eigen_solver="subspace", random_state=0)
    assert work.count(A.nnz) <= 6 < len(work)
    exact = np.linalg.eigvalsh(problem.dense())[::-1][:6]
    np.testing.assert_allclose(1 - found.values[1:], 1 - exact[1:], rtol=0.02)


# --- clusters ------------------------------------------------------------------------------------------------------------


def clusters(A: sp.csr_array, k: int, seed: int) -> np.ndarray:
    rows = spectral_embedding(A, k, random_state=seed)
    return round_embedding(rows, k, weights=A.sum(axis=1), random_state=seed)


@pytest.mark.parametrize("bridge", [False, True])
@pytest.mark.parametrize("shape", ["moons", "circles"])
def test_moons_and_circles(shape: str, bridge: bool) -> None:
    make = {"moons": make_moons, "circles": lambda *a, **b: make_circles(*a, factor=0.5, **b)}[shape]
    points, truth = make(3000, noise=0.05, random_state=30)
    A = neighbours(points, 10).tolil()
    assert normalized_cut(sp.csr_array(A), truth) == 0.0
    if bridge:
        ends = np.flatnonzero(truth == 0)[0], np.flatnonzero(truth == 1)[0]
        A[ends] = A[ends[::-1]] = 1.0
    for seed in range(3):
        assert adjusted_rand_score(truth, clusters(sp.csr_array(A), 2, seed)) == 1.0


def test_halves_of_paths_and_rings() -> None:
    ring = ring_of_cliques(2000, 10)
    cuts = [normalized_cut(ring, clusters(ring, 2, seed)) * ring.sum() / 4 for seed in range(3)]
    # Any two opposite borders are as good as others, and one may come to lie inside a clique: nine edges instead of one.
    assert min(cuts) < 1.05
    assert max(cuts) < 1.05 * 5
    for seed in range(3):
        assert normalized_cut(path(2000), clusters(path(2000), 2, seed)) < 1.05 / 1999
        assert normalized_cut(cycle(10_000), clusters(cycle(10_000), 4, seed)) < 1.05 * 2 / 5000


def test_the_baselines_default_sees_moons() -> None:
    points, truth = make_moons(1500, noise=0.05, random_state=30)
    model = FastSpectralClustering(2, affinity="nearest_neighbors", n_neighbors=10, random_state=0).fit(points)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    power = FastSpectralClustering(2, affinity="nearest_neighbors", n_neighbors=10, eigen_solver="power", random_state=0)
    assert power.fit(points).embedding_.shape == (1500, 1)


# --- how many vectors ----------------------------------------------------------------------------------------------------


def test_clusters_that_stand_out_alike_need_all_their_vectors() -> None:
    graph, truth = make_degree_corrected_sbm(3000, 40, mean_degree=20, mixing=0.6, random_state=0)
    found = leading_eigenvectors(graph, computed_count(40, 3000), random_state=0)
    assert useful_count(found.values, 40) == 40
    half, whole = (
        adjusted_rand_score(truth, round_embedding(found.vectors[:, :count], 40, n_init=3, random_state=0))
        for count in (21, 40)
    )
    assert whole > half + 0.02


def test_vectors_of_a_falling_spectrum_are_left_out() -> None:
    assert useful_count(np.linspace(0.7, 0.2, 42), 42) < 25
    # Crumbs at the top change nothing.
    flat = np.concatenate([np.ones(5), np.linspace(0.45, 0.36, 35)])
    assert useful_count(flat, 40) == 40
    for k in (1, 2, 16):
        assert useful_count(np.linspace(1.0, 0.1, k), k) == k
    assert useful_count(np.linspace(1.0, 0.9, 64), 500) == 64


def test_the_number_of_vectors_is_bounded() -> None:
    assert computed_count(8, 10**6) == 8
    assert computed_count(120, 5000) == 120
    assert computed_count(120, 200_000) == computed_count(160, 5000) == 64
    assert computed_count(5000, 10_000) == 64
    assert computed_count(30, 20) == 20


# --- robustness ----------------------------------------------------------------------------------------------------------


def test_complete_graphs_of_any_weights(rng: np.random.Generator) -> None:
    # LAPACK's search by index fails on one eigenvalue of 15 vectors now and then.
    for _ in range(100):
        A = np.ones((16, 16)) - np.eye(16)
        A *= rng.uniform(0.5, 2.0)
        found = leading_eigenvectors(A, 10, random_state=0)
        np.testing.assert_allclose(found.values[1:], -1 / 15, atol=1e-12)
        np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(10), atol=1e-10)


def test_where_lapacks_search_fails_the_full_decomposition_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    eigh = scipy.linalg.eigh

    def refusing(*arguments: Any, **options: Any) -> Any:
        if "subset_by_index" in options:
            raise scipy.linalg.LinAlgError("internal error")
        return eigh(*arguments, **options)

    monkeypatch.setattr(scipy.linalg, "eigh", refusing)
    found = leading_eigenvectors(np.ones((16, 16)) - np.eye(16), 10, random_state=0)
    np.testing.assert_allclose(found.values[1:], -1 / 15, atol=1e-12)


@pytest.mark.parametrize("weight", [1e-320, 1e-310, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("n", [40, 3000])
def test_weights_of_any_size(weight: float, n: int) -> None:
    A = cycle(n) * weight
    found = leading_eigenvectors(A, 3, random_state=0)
    np.testing.assert_allclose(1 - found.values[1:], 1 - np.cos(2 * np.pi / n), rtol=0.03)
    for solver in ("power", None) if n > DENSE_SIZE else ("power", "arpack", None):
        assert np.all(np.isfinite(spectral_embedding(A, 2, eigen_solver=solver, random_state=0)))


def test_weights_of_very_different_sizes() -> None:
    A = cycle(3000)
    A.data *= np.repeat([1.0, 1e-12], 3000)
    A = sp.csr_array(A.maximum(A.T))
    found = leading_eigenvectors(A, 4, random_state=0)
    assert np.all(np.isfinite(found.vectors))
    assert np.all(found.values <= 1 + 1e-12)


def test_without_convergence_a_warning_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corecut.spectral.multilevel._STEPS", 0)
    with pytest.warns(UserWarning, match=r'have not converged.*n_components=.*eigen_solver="arpack"'):
        found = leading_eigenvectors(path(3000), 4, random_state=0)
    assert not found.converged


def test_none_is_the_automatic_solver() -> None:
    A = np.ones((6, 6))
    checks.same_bits(spectral_embedding(A, 2, eigen_solver=None, random_state=0), spectral_embedding(A, 2, random_state=0))


# --- BLAS threads --------------------------------------------------------------------------------------------------------


def test_blas_gets_its_threads_back_from_overlapping_users() -> None:
    # In a fresh process that may use two threads. The second user comes while the first is inside, and leaves after it.
    script = (
        "import threading, threadpoolctl, scipy.linalg\n"
        "from corecut.spectral.blas import single_threaded_blas\n"
        "counts = lambda: {i['num_threads'] for i in threadpoolctl.threadpool_info() if i['user_api'] == 'blas'}\n"
        "inside, leave = threading.Event(), threading.Event()\n"
        "def second():\n"
        "    with single_threaded_blas():\n"
        "        inside.set()\n"
        "        leave.wait(60)\n"
        "        assert counts() == {1}\n"
        "        raise KeyError\n"
        "threading.excepthook = lambda arguments: None\n"
        "with single_threaded_blas():\n"
        "    thread = threading.Thread(target=second)\n"
        "    thread.start()\n"
        "    inside.wait(60)\n"
        "assert counts() == {1}, counts()\n"
        "leave.set()\n"
        "thread.join()\n"
        "assert counts() == {2}, counts()\n"
    )
    environment = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, **environment})


def test_parallel_users_of_blas() -> None:
    before = threadpoolctl.threadpool_info()

    def use(seed: int) -> None:
        for _ in range(20):
            with single_threaded_blas():
                np.linalg.eigh(np.eye(20) + seed)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    assert threadpoolctl.threadpool_info() == before


def test_tall_products_of_equal_bits_for_any_number_of_threads(rng: np.random.Generator) -> None:
    x, y, small = rng.standard_normal((20_000, 7)), rng.standard_normal((20_000, 5)), rng.standard_normal((7, 4))
    np.testing.assert_allclose(gram(x, y, 1), x.T @ y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(times(x, small, 1), x @ small, rtol=1e-12, atol=1e-12)
    checks.same_bits(gram(x, y, 1), gram(x, y, 3))
    checks.same_bits(times(x, small, 1), times(x, small, 3))
