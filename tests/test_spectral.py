"""The spectral step: solvers against dense eigenvectors, k-means and pivoted QR against scikit-learn's."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg
import threadpoolctl
import twins
from scipy.linalg import subspace_angles
from sklearn.cluster import KMeans
from sklearn.cluster._spectral import cluster_qr as peer_cluster_qr
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from corecut import (
    CoresetSpectralClustering,
    Graph,
    KernelView,
    _core,
    build_coreset,
    coreset_graph,
    make_sbm,
    round_embedding,
    spectral_embedding,
)
from corecut.spectral import MANY_CLUSTERS, choose_solver
from corecut.spectral.blas import ROWS, single_threaded_blas
from corecut.spectral.iteration import chebyshev
from corecut.spectral.problem import SpectralProblem
from corecut.spectral.rounding import _MANY, _lloyd, _shares, cluster_qr, kmeans
from corecut.spectral.solvers import DENSE_SIZE, Eigenvectors, exact_eigenvectors, power_vectors, subspace_eigenvectors

SIZES = [450, 350, 260, 190]


def problem_of(matrix: Any, *, tau: float = 0.0, sizes: np.ndarray | None = None) -> SpectralProblem:
    graph = Graph.from_matrix(matrix)
    if tau == 0.0:
        return SpectralProblem(graph.adjacency, graph.degrees)
    nodes = np.ones(graph.n_nodes) if sizes is None else sizes
    return SpectralProblem(graph.adjacency, graph.degrees + tau * nodes, np.sqrt(tau / nodes.sum()) * nodes)


def dense_normalized(A: np.ndarray, tau: float = 0.0, sizes: np.ndarray | None = None) -> np.ndarray:
    """D^-½ A D^-½ of A + (τ/n)·s sᵀ, whose row sums are d + τ·s."""
    nodes = np.ones(len(A)) if sizes is None else sizes
    regular = A + tau / nodes.sum() * np.outer(nodes, nodes)
    root = 1.0 / np.sqrt(regular.sum(axis=1))
    return root[:, None] * regular * root[None, :]


def pair(found: Eigenvectors) -> tuple[np.ndarray, np.ndarray]:
    assert found.converged
    return found.values, found.vectors


@pytest.fixture(scope="module")
def planted_problem() -> tuple[SpectralProblem, np.ndarray]:
    """Return a planted graph that is too large for the dense solver, and its clusters."""
    graph, truth = problems.planted_graph(np.random.default_rng(3), SIZES, degree=24.0, mixing=0.15)
    assert truth.size > DENSE_SIZE
    return problem_of(graph), truth


@pytest.fixture(scope="module")
def dense_pairs(planted_problem: tuple[SpectralProblem, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenvalues of that graph, falling, and their eigenvectors."""
    problem, _ = planted_problem
    values, vectors = np.linalg.eigh(problem.dense())
    return values[::-1], vectors[:, ::-1]


# --- the operator --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.0, 0.7])
def test_every_form_of_the_operator_is_the_dense_matrix(tau: float, rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 40, loops=0.3)
    sizes = rng.uniform(1.0, 5.0, 40)
    problem = problem_of(A, tau=tau, sizes=sizes)
    dense = dense_normalized(A, tau, sizes)
    np.testing.assert_allclose(problem.dense(), dense, rtol=1e-12, atol=1e-15)
    x, z = (rng.standard_normal((40, 3)).astype(np.float32) for _ in range(2))
    np.testing.assert_allclose(problem.operator() @ x[:, 0].astype(float), dense @ x[:, 0], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(problem.apply(x, threads=1), dense @ x, rtol=1e-4, atol=1e-6)
    mixed = problem.apply(x, threads=2, alpha=0.7, beta=-0.2, z=z, gamma=1.3)
    np.testing.assert_allclose(mixed, 0.7 * dense @ x - 0.2 * x + 1.3 * z, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tau", [0.0, 0.7])
def test_radius_bounds_the_spectrum(tau: float, rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 30)
    assert problem_of(A, tau=tau).radius == pytest.approx(1.0)  # row sums as degrees
    weights = A.sum(axis=1) * rng.uniform(0.3, 1.5, 30)
    problem = SpectralProblem(sp.csr_array(A), weights, None if tau == 0 else np.full(30, 0.2))
    extremes = np.abs(np.linalg.eigvalsh(problem.dense()))
    assert 1.0 < extremes.max() <= problem.radius * (1 + 1e-12)


# --- eigenvectors --------------------------------------------------------------------------------------------------------


def test_exact_and_fast_solver_agree_with_the_dense_one(
    planted_problem: tuple[SpectralProblem, np.ndarray], dense_pairs: tuple[np.ndarray, np.ndarray]
) -> None:
    problem, _ = planted_problem
    k = len(SIZES)
    values, vectors = pair(exact_eigenvectors(problem, k, np.random.default_rng(0)))
    np.testing.assert_allclose(values, dense_pairs[0][:k], rtol=1e-10)
    assert subspace_angles(vectors, dense_pairs[1][:, :k]).max() < 1e-7
    values, vectors = pair(subspace_eigenvectors(problem, k, np.random.default_rng(0), threads=2))
    np.testing.assert_allclose(values, dense_pairs[0][:k], atol=1e-4)
    assert subspace_angles(vectors, dense_pairs[1][:, :k]).max() < 0.01
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-4)


def test_solvers_agree_with_regularisation(rng: np.random.Generator) -> None:
    graph, truth = problems.planted_graph(rng, SIZES, degree=16.0)
    sizes = rng.uniform(1.0, 3.0, truth.size)
    problem = problem_of(graph, tau=2.0, sizes=sizes)
    exact_values, exact = pair(exact_eigenvectors(problem, 4, rng))
    fast_values, fast = pair(subspace_eigenvectors(problem, 4, rng, threads=1))
    np.testing.assert_allclose(fast_values, exact_values, atol=1e-4)
    assert subspace_angles(fast, exact).max() < 0.02
    residual = problem.operator() @ exact - exact * exact_values
    assert np.linalg.norm(residual) < 1e-8


@pytest.mark.parametrize("solver", ["arpack", "subspace", "power"])
def test_every_solver_leads_to_the_planted_clusters(solver: Any, planted_problem: tuple[SpectralProblem, np.ndarray]) -> None:
    problem, truth = planted_problem
    rows = spectral_embedding(problem, 4, eigen_solver=solver, random_state=1)
    labels = round_embedding(rows, 4, weights=problem.degrees, n_init=3, random_state=1)
    checks.valid_labels(labels, truth.size, 4)
    assert adjusted_rand_score(truth, labels) > (0.75 if solver == "power" else 0.98)  # the power method has two vectors only


def test_small_problems_are_solved_densely(rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 50)
    expected = np.linalg.eigvalsh(dense_normalized(A))[::-1]
    for count in (1, 7, 50):
        for values, vectors in (
            pair(exact_eigenvectors(problem_of(A), count, rng)),
            pair(subspace_eigenvectors(problem_of(A), count, rng, threads=1)),
        ):
            np.testing.assert_allclose(values, expected[:count], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-10)
            np.testing.assert_allclose(dense_normalized(A) @ vectors, vectors * values, atol=1e-10)


@pytest.mark.parametrize("pieces", [30, 200])
def test_graphs_of_many_pieces_have_all_their_eigenvectors(pieces: int, rng: np.random.Generator) -> None:
    # One eigenvalue, 1, of high multiplicity: LAPACK's search by index comes back with too few vectors.
    sizes = rng.integers(1, 5, pieces)
    A = np.equal.outer(*[np.repeat(np.arange(pieces), sizes)] * 2) * 1.0
    for count in (5, pieces):
        values, vectors = pair(exact_eigenvectors(problem_of(A), count, rng))
        np.testing.assert_allclose(values, np.ones(count), rtol=1e-10)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-10)


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Lanczos never converge."""

    def eigsh(*_: Any, **__: Any) -> None:
        raise scipy.sparse.linalg.ArpackNoConvergence("no convergence", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", eigsh)


def test_without_convergence_a_moderate_problem_is_solved_densely(
    planted_problem: tuple[SpectralProblem, np.ndarray],
    dense_pairs: tuple[np.ndarray, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuse(monkeypatch)
    values, vectors = pair(exact_eigenvectors(planted_problem[0], 4, np.random.default_rng(0)))
    np.testing.assert_allclose(values, dense_pairs[0][:4], rtol=1e-10)
    assert subspace_angles(vectors, dense_pairs[1][:, :4]).max() < 1e-7


def test_without_convergence_a_large_problem_is_solved_by_subspaces(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, _ = problems.planted_graph(rng, [3000, 2000, 1200], degree=16.0)
    problem = problem_of(graph)
    exact_values, exact = pair(exact_eigenvectors(problem, 3, np.random.default_rng(0)))
    refuse(monkeypatch)
    dense = SpectralProblem.dense
    monkeypatch.setattr(SpectralProblem, "dense", lambda self: dense(self) if self.size < 6000 else pytest.fail("too large"))
    values, vectors = pair(exact_eigenvectors(problem, 3, np.random.default_rng(0)))
    np.testing.assert_allclose(values, exact_values, atol=1e-4)
    assert subspace_angles(vectors, exact).max() < 0.01


def test_chebyshev_filter_damps_the_unwanted_part(
    planted_problem: tuple[SpectralProblem, np.ndarray], dense_pairs: tuple[np.ndarray, np.ndarray]
) -> None:
    problem, _ = planted_problem
    values, vectors = dense_pairs
    cut = 0.5
    assert values[3] > cut > values[4]
    # Each eigenvector is multiplied by the polynomial's value at its eigenvalue.
    start = vectors.sum(axis=1, keepdims=True).astype(np.float32)
    kept = (vectors.T @ chebyshev(problem, start, cut=cut, degree=10, threads=1))[:, 0]
    half, centre = (cut + problem.radius) / 2, (cut - problem.radius) / 2
    expected = np.polynomial.chebyshev.Chebyshev.basis(10)((values - centre) / half)
    expected /= np.polynomial.chebyshev.Chebyshev.basis(10)((problem.radius - centre) / half)
    np.testing.assert_allclose(kept, expected, atol=2e-5)
    assert np.abs(kept[4:]).max() < 0.01 * np.abs(kept[:4]).min()


@pytest.mark.parametrize(("k", "width"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (64, 6), (65, 7)])
def test_power_method_takes_log_k_vectors(k: int, width: int, rng: np.random.Generator) -> None:
    problem = problem_of(problems.planted_graph(rng, [60, 60])[0])
    assert power_vectors(problem, k, rng, threads=1).shape == (120, width)
    assert spectral_embedding(problem, k, eigen_solver="power", random_state=0).shape == (120, width)
    assert spectral_embedding(problem, k, eigen_solver="power", n_components=9, random_state=0).shape == (120, 9)


def test_power_method_by_definition(rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 40, loops=0.5)
    found = power_vectors(problem_of(A), 3, np.random.default_rng(5), threads=1)
    trivial = np.sqrt(A.sum(axis=1)) / np.sqrt(A.sum())
    y = np.random.default_rng(5).standard_normal((40, 2)).astype(np.float32).astype(float)
    y -= np.outer(trivial, trivial @ y)
    step = 0.5 * (np.eye(40) + dense_normalized(A))
    expected = np.linalg.matrix_power(step, 10 * 4) @ y  # ⌈log₂(40/3)⌉ = 4
    cosines = (found * expected).sum(axis=0) / np.linalg.norm(found, axis=0) / np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(cosines, 1.0, atol=1e-4)


@pytest.mark.parametrize("degrees", ["rows", "weights"])
@pytest.mark.parametrize("solver", ["power", "subspace", "arpack"])
def test_embedding_of_a_coreset_graph_is_finite(degrees: Any, solver: Any, planted: tuple[KernelView, np.ndarray]) -> None:
    view, _ = planted
    coreset = build_coreset(view, 5, size=2500, random_state=0)
    graph = coreset_graph(view, coreset, degrees=degrees)
    rows = spectral_embedding(graph, 5, eigen_solver=solver, random_state=0)
    assert rows.shape == (coreset.size, 3 if solver == "power" else 5)
    assert np.all(np.isfinite(rows))
    assert np.all(np.linalg.norm(rows, axis=0) > 0)


def test_power_method_neither_overflows_nor_vanishes() -> None:
    # Degrees far below and far above the row sums: eigenvalues of 1e6 and of 1e-6, over 130 steps.
    A = sp.csr_array(sp.eye_array(8192))
    for degree in (1e-6, 1e6):
        rows = power_vectors(SpectralProblem(A, np.full(8192, degree)), 2, np.random.default_rng(0), threads=1)
        assert np.all(np.isfinite(rows))
        assert np.linalg.norm(rows) > 1e-6


def test_isolated_nodes_have_no_direction() -> None:
    A = np.zeros((6, 6))
    A[:2, :2] = A[2:4, 2:4] = 1.0
    for solver in ("arpack", "subspace"):
        rows = spectral_embedding(A, 2, eigen_solver=solver, random_state=0)  # type: ignore[arg-type]
        np.testing.assert_allclose(rows[4:], 0.0, atol=1e-12)
        labels = round_embedding(rows, 2, random_state=0)
        assert labels[0] == labels[1] != labels[2] == labels[3]


def test_automatic_solver_and_unknown_ones() -> None:
    assert choose_solver("auto", MANY_CLUSTERS - 1) == "subspace"
    assert choose_solver("auto", MANY_CLUSTERS) == "power"
    assert choose_solver("arpack", 1000) == "arpack"
    with pytest.raises(ValueError, match="eigen_solver must be one of 'auto', 'arpack', 'subspace', 'power'; got 'amg'"):
        spectral_embedding(np.ones((4, 4)), 2, eigen_solver="amg")  # type: ignore[arg-type]


def test_number_of_components_is_checked() -> None:
    assert spectral_embedding(np.ones((4, 4)), 2, eigen_solver="arpack", n_components=3).shape == (4, 3)
    with pytest.raises(ValueError, match="n_components must be at most 4, got 5"):
        spectral_embedding(np.ones((4, 4)), 2, n_components=5)
    with pytest.raises(ValueError, match="n_components must be at least 1, got 0"):
        spectral_embedding(np.ones((4, 4)), 2, n_components=0)


@pytest.mark.parametrize("solver", ["power", "subspace", "arpack"])
def test_embeddings_of_equal_bits_for_any_number_of_threads(solver: Any, rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [4000, 3000, 2000], degree=12.0)
    one = spectral_embedding(graph, 3, eigen_solver=solver, random_state=7, n_jobs=1)
    for jobs in (1, 2, 3):
        checks.same_bits(one, spectral_embedding(graph, 3, eigen_solver=solver, random_state=7, n_jobs=jobs))


def test_blas_runs_on_one_thread_and_gets_its_threads_back() -> None:
    # In a fresh process: libraries that are loaded later than the controller must be limited, too.
    script = (
        "import corecut, threadpoolctl\n"
        "from corecut.spectral.blas import single_threaded_blas\n"
        "def counts():\n"
        "    import scipy.linalg\n"
        "    return [i['num_threads'] for i in threadpoolctl.threadpool_info() if i['user_api'] == 'blas']\n"
        "with single_threaded_blas():\n"
        "    inside = counts()\n"
        "after = counts()\n"
        "assert inside and set(inside) == {1}, inside\n"
        "assert set(after) == {2}, after\n"
    )
    environment = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, **environment})


def test_blas_gets_its_threads_back_after_an_error() -> None:
    before = threadpoolctl.threadpool_info()
    with pytest.raises(ZeroDivisionError), single_threaded_blas():
        raise ZeroDivisionError
    assert threadpoolctl.threadpool_info() == before


# --- k-means -------------------------------------------------------------------------------------------------------------


def cost_of(rows: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Σ_j Σ_{x∈j} w_x‖x - mean_j‖²."""
    total = 0.0
    for j in np.unique(labels):
        inside = labels == j
        mean = weights[inside] @ rows[inside] / weights[inside].sum()
        total += float(weights[inside] @ ((rows[inside] - mean) ** 2).sum(axis=1))
    return total


@pytest.mark.parametrize(("k", "spread"), [(3, 1.0), (12, 1.0), (40, 2.0)])
def test_kmeans_costs_no_more_than_the_peer(k: int, spread: float, rng: np.random.Generator) -> None:
    rows, _ = make_blobs(2000, 5, centers=k, cluster_std=spread, random_state=k)
    weights = np.exp(rng.uniform(-2, 2, 2000))
    peer = KMeans(k, n_init=5, random_state=0).fit(rows, sample_weight=weights)
    labels = kmeans(rows, k, weights, np.random.default_rng(0), n_init=5)
    checks.valid_labels(labels, 2000, k)
    assert cost_of(rows, labels, weights) < 1.03 * cost_of(rows, peer.labels_, weights)


@pytest.mark.parametrize(("m", "width", "k", "trials"), [(1, 1, 1, 1), (50, 3, 7, 1), (333, 8, 20, 5), (9001, 5, 12, 8)])
def test_seeding_is_greedy_kmeans_plus_plus(m: int, width: int, k: int, trials: int, rng: np.random.Generator) -> None:
    # Coordinates on a grid: sums in single precision are exact, so that both sides see the same ties and intervals.
    rows = rng.integers(-8, 9, (m, width)).astype(np.float32)
    mass = rng.integers(1, 5, m).astype(np.float32)
    uniforms = rng.random(1 + (k - 1) * trials)
    expected = twins.greedy_seeds(rows.astype(float), mass.astype(float), k, trials, uniforms)
    for threads in (1, 3):
        np.testing.assert_array_equal(_core.greedy_seeds(rows, mass, k, trials, uniforms, threads), expected)


def test_seeding_refuses_what_it_cannot_do() -> None:
    rows, mass = np.zeros((3, 2), np.float32), np.ones(3, np.float32)
    for k, trials, count in ((0, 1, 0), (2, 0, 1), (2, _core.SEED_LANES + 1, _core.SEED_LANES + 2), (2, 2, 2)):
        with pytest.raises(ValueError, match=r"seeding|uniforms"):
            _core.greedy_seeds(rows, mass, k, trials, np.zeros(count), 1)
    with pytest.raises(ValueError, match="seeding"):
        _core.greedy_seeds(rows[:0], mass[:0], 1, 1, np.zeros(1), 1)


def test_more_runs_never_cost_more(rng: np.random.Generator) -> None:
    rows, _ = make_blobs(600, 4, centers=25, random_state=1)
    weights = np.ones(600)
    costs = [cost_of(rows, kmeans(rows, 25, weights, np.random.default_rng(3), n_init=n), weights) for n in (1, 2, 4, 8)]
    assert all(later <= earlier * (1 + 1e-4) for earlier, later in pairwise(costs))
    assert costs[-1] < costs[0]


def test_a_weight_is_a_number_of_copies(rng: np.random.Generator) -> None:
    rows = rng.standard_normal((300, 3)).astype(np.float32)
    copies = rng.integers(1, 6, 300)
    start = rows[:8].copy()
    weighted, cost = _lloyd(rows, copies.astype(np.float32), start, 50, 1)
    repeated, same_cost = _lloyd(np.repeat(rows, copies, axis=0), np.ones(copies.sum(), np.float32), start, 50, 1)
    np.testing.assert_array_equal(np.repeat(weighted, copies), repeated)
    assert cost == pytest.approx(same_cost, rel=1e-5)
    unweighted, _ = _lloyd(rows, np.ones(300, np.float32), start, 50, 1)
    assert np.any(unweighted != weighted)


def test_scaling_all_weights_changes_nothing(rng: np.random.Generator) -> None:
    rows, weights = rng.standard_normal((500, 3)), rng.uniform(0.1, 9, 500)
    one = kmeans(rows, 6, weights, np.random.default_rng(0))
    np.testing.assert_array_equal(one, kmeans(rows, 6, weights * 2.0**40, np.random.default_rng(0)))


def test_clusters_that_lose_all_rows_are_filled_again() -> None:
    rows = np.array([[0, 0], [0, 1], [1, 0], [50, 0], [0, 50]], dtype=np.float32)
    centres = np.array([[0, 0], [900, 900], [-900, 900]], dtype=np.float32)  # nobody's nearest
    labels, cost = _lloyd(rows, np.ones(5, np.float32), centres, 50, 1)
    assert labels[0] == labels[1] == labels[2]
    assert np.unique(labels).size == 3
    assert cost == pytest.approx(4 / 3, rel=1e-4)


@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_every_cluster_has_a_row_where_rows_differ(k: int, rng: np.random.Generator) -> None:
    rows = rng.standard_normal((30, 2))
    for seed in range(20):
        labels = kmeans(rows, k, np.ones(30), np.random.default_rng(seed))
        assert np.unique(labels).size == k


def test_fewer_distinct_rows_than_clusters() -> None:
    rows = np.repeat(np.eye(3), 10, axis=0)
    labels = kmeans(rows, 5, np.ones(30), np.random.default_rng(0))
    checks.valid_labels(labels, 30, 5)
    assert all(np.unique(labels[at : at + 10]).size == 1 for at in (0, 10, 20))
    assert np.unique(labels).size == 3


def test_kmeans_of_equal_bits_for_any_number_of_threads(rng: np.random.Generator) -> None:
    rows, _ = make_blobs(3 * ROWS + 17, 6, centers=20, cluster_std=4.0, random_state=0)
    weights = rng.uniform(0.5, 2.0, len(rows))
    one = kmeans(rows, 20, weights, np.random.default_rng(1), threads=1)
    for threads in (2, 3):
        checks.same_bits(one, kmeans(rows, 20, weights, np.random.default_rng(1), threads=threads))


def test_very_many_clusters_in_two_levels() -> None:
    k = _MANY + 76
    rows, truth = make_blobs(10 * k, 8, centers=k, center_box=(-60, 60), cluster_std=0.5, random_state=0)
    weights = np.ones(len(rows))
    labels = kmeans(rows, k, weights, np.random.default_rng(0))
    checks.valid_labels(labels, len(rows), k)
    assert np.unique(labels).size == k
    assert adjusted_rand_score(truth, labels) > 0.6
    checks.same_bits(labels, kmeans(rows, k, weights, np.random.default_rng(0), threads=2))


def test_clusters_are_shared_out_by_weight() -> None:
    rows = np.array([500, 3, 0, 200])
    shares = _shares(np.array([5.0, 4.0, 0.0, 1.0]), rows, 100)
    assert shares.sum() == 100
    assert shares[1] == 3  # no more clusters than rows
    assert shares[2] == 0
    assert shares[0] >= 50
    assert shares[3] >= 10
    np.testing.assert_array_equal(_shares(np.array([1.0, 1e-9, 1e-9]), np.array([9, 9, 9]), 4), [2, 1, 1])


def test_rows_are_scaled_to_length_one() -> None:
    rows = np.array([[1, 0.1], [1000, 100], [0, 1e-3], [0.01, 2], [0, 0]])
    labels = round_embedding(rows, 2, random_state=0)
    assert labels[0] == labels[1] != labels[2] == labels[3]


def test_more_clusters_than_rows() -> None:
    assert np.unique(round_embedding(np.eye(3), 8, random_state=0)).size == 3


# --- pivoted QR ----------------------------------------------------------------------------------------------------------


def test_cluster_qr_is_the_peers(planted_problem: tuple[SpectralProblem, np.ndarray]) -> None:
    problem, truth = planted_problem
    vectors = spectral_embedding(problem, 4, eigen_solver="arpack", random_state=0)
    labels = round_embedding(vectors, 4, assign_labels="cluster_qr")
    checks.valid_labels(labels, truth.size, 4)
    np.testing.assert_array_equal(labels, peer_cluster_qr(vectors))
    np.testing.assert_array_equal(labels, cluster_qr(vectors))
    assert adjusted_rand_score(truth, labels) > 0.95


def test_cluster_qr_needs_as_many_columns_as_clusters() -> None:
    graph, _ = make_sbm(30, 4, 0.5, 0.01, random_state=0)
    rows = spectral_embedding(graph, 4, eigen_solver="power", random_state=0)
    with pytest.raises(ValueError, match='"cluster_qr" needs as many components as clusters, got 2 and 4; use eigen_solver='):
        round_embedding(rows, 4, assign_labels="cluster_qr")


def test_cluster_qr_makes_no_more_clusters_than_rows() -> None:
    graph = sp.block_diag([np.ones((3, 3)) - np.eye(3), sp.csr_array((2, 2))], format="csr")
    model = CoresetSpectralClustering(4, assign_labels="cluster_qr", eigen_solver="arpack")
    with pytest.raises(ValueError, match='3 for n_clusters=4; use assign_labels="kmeans"'):
        model.fit(graph)
    model.set_params(assign_labels="kmeans").fit(graph)


def test_unknown_rounding_is_refused() -> None:
    with pytest.raises(ValueError, match="assign_labels must be one of 'kmeans', 'cluster_qr'; got 'discretize'"):
        round_embedding(np.eye(3), 2, assign_labels="discretize")  # type: ignore[arg-type]
