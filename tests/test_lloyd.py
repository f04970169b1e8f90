"""Kernel k-means against its dense definition, against scikit-learn on a linear kernel, and its promises as properties."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, settings, strategies as st
from sklearn.cluster import KMeans

from corecut import _core
from corecut.coreset import build_coreset
from corecut.kernel import KernelView
from corecut.lloyd import coreset_kernel_kmeans, d2_partition, kernel_kmeans
from corecut.metrics import kernel_kmeans_cost, squared_distances


def sparse_kernel(seed: int, n: int = 60, *, rank: int = 40, density: float = 0.15) -> KernelView:
    """Return a positive semi-definite sparse kernel FFᵀ of non-negative features, with random weights."""
    generator = np.random.default_rng(seed)
    features = sp.csr_array(generator.random((n, rank)) * (generator.random((n, rank)) < density))
    kernel = (features @ features.T).toarray()
    return KernelView.from_matrix(sp.csr_array((kernel + kernel.T) / 2), weights=generator.random(n) + 0.1)


def random_graph(seed: int, n: int = 60, *, loops: bool) -> sp.csr_array:
    """Return three loose blocks of nodes with random weights."""
    generator = np.random.default_rng(seed)
    block = np.arange(n) % 3
    chance = np.where(block[:, None] == block, 0.4, 0.05)
    upper = np.triu(generator.random((n, n)) * (generator.random((n, n)) < chance), 1)
    return sp.csr_array(upper + upper.T + np.eye(n) * loops)


def twin_distances(view: KernelView, labels: np.ndarray, k: int) -> np.ndarray:
    """Return the n × k squared distances to the weighted means of the clusters; infinite to an empty one."""
    centres = twins.centroid_coefficients(view.n_points, np.arange(view.n_points), view.weights, labels, k)
    return twins.centre_distances(view.to_matrix().toarray(), centres)


def twin_cost(view: KernelView, labels: np.ndarray) -> float:
    return twins.trace_cost(view.to_matrix().toarray(), view.weights, labels)


def twin_refill(view: KernelView, labels: np.ndarray, k: int) -> np.ndarray:
    labels, counted = labels.copy(), view.weights > 0
    paid = view.weights * twin_distances(view, labels, k)[np.arange(view.n_points), labels]
    paid[~counted] = -np.inf
    for j in range(k):
        if not (counted & (labels == j)).any():
            counts = np.bincount(labels[counted], minlength=k)
            # A point that has just been moved is alone in its cluster, so it is not a candidate again.
            candidates = np.where(counts[labels] > 1, paid, -np.inf)
            labels[np.argmax(candidates)] = j
    return labels


def twin_step(view: KernelView, labels: np.ndarray, k: int) -> np.ndarray:
    distances = twin_distances(view, labels, k)
    nearest = distances.argmin(axis=1)
    rows = np.arange(view.n_points)
    stays = (distances[rows, labels] <= distances[rows, nearest]) & (view.weights > 0)
    return np.where(stays, labels, nearest)


def twin_run(view: KernelView, labels: np.ndarray, k: int) -> tuple[np.ndarray, list[float]]:
    labels = twin_refill(view, labels, k)
    costs = [twin_cost(view, labels)]
    while True:
        following = twin_refill(view, twin_step(view, labels, k), k)
        cost = twin_cost(view, following)
        if cost >= costs[-1] - 1e-13 * abs(costs[0]):
            return labels, costs
        labels, costs = following, [*costs, cost]


VIEWS = {
    "kernel": sparse_kernel,
    "graph with loops": lambda seed: KernelView.from_graph(random_graph(seed, loops=True)),
    "shifted graph": lambda seed: KernelView.from_graph(random_graph(seed, loops=False), shift=0.2),
    "loops and shift": lambda seed: KernelView.from_graph(random_graph(seed, loops=True), shift=0.1),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("seed", range(3))
def test_one_step_is_the_dense_definition(name: str, seed: int) -> None:
    view = VIEWS[name](seed)
    labels = np.random.default_rng(seed).integers(0, 5, view.n_points)
    expected = twin_step(view, labels, 5)
    result = kernel_kmeans(view, 5, init=labels, max_iter=1)
    assert result.n_iter == 1
    assert not np.array_equal(expected, labels)
    np.testing.assert_array_equal(result.labels, expected)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("k", [1, 2, 7])
def test_whole_run_is_the_dense_definition(name: str, k: int) -> None:
    view = VIEWS[name](k)
    labels = np.random.default_rng(k).integers(0, k, view.n_points)
    expected, costs = twin_run(view, labels, k)
    result = kernel_kmeans(view, k, init=labels)
    np.testing.assert_array_equal(result.labels, expected)
    np.testing.assert_allclose(result.costs, costs, rtol=1e-10)
    assert result.converged
    assert result.labels.dtype == np.int32


def test_index_and_value_types_agree() -> None:
    graph = random_graph(0, loops=True)
    graph.data = graph.data.astype(np.float32)
    wide = sp.csr_array(graph)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    unit = sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
    double = graph.astype(np.float64)
    for left, right in ((graph, wide), (graph, double)):
        a, b = (kernel_kmeans(KernelView.from_graph(m), 4, random_state=0) for m in (left, right))
        np.testing.assert_array_equal(a.labels, b.labels)
    view = KernelView.from_graph(unit)
    assert view.graph.weights is None
    labels = np.arange(60) % 4
    np.testing.assert_array_equal(kernel_kmeans(view, 4, init=labels, max_iter=1).labels, twin_step(view, labels, 4))


@pytest.mark.parametrize("seed", range(4))
def test_linear_kernel_is_weighted_kmeans(seed: int) -> None:
    generator = np.random.default_rng(seed)
    points = np.abs(generator.normal(size=(80, 3)) + generator.integers(0, 4, size=(80, 1)) * 2)
    weights = generator.random(80) + 0.2
    labels = generator.integers(0, 4, 80)
    centres = np.array([np.average(points[labels == j], axis=0, weights=weights[labels == j]) for j in range(4)])
    peer = KMeans(4, init=centres, n_init=1, tol=0.0, max_iter=100, algorithm="lloyd").fit(points, sample_weight=weights)
    result = kernel_kmeans(KernelView.from_matrix(points @ points.T, weights=weights), 4, init=labels)
    np.testing.assert_array_equal(result.labels, peer.labels_)
    assert result.cost == pytest.approx(peer.inertia_, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 12), sampler=st.sampled_from(["rejection", "tree", "naive"]))
def test_cost_falls_and_all_clusters_are_used(seed: int, k: int, sampler: str) -> None:
    view = sparse_kernel(seed, 40)
    result = kernel_kmeans(view, k, sampler=sampler, random_state=seed)
    assert np.all(np.diff(result.costs) < 0)
    assert not result.indefinite
    assert result.cost == result.costs[-1] == kernel_kmeans_cost(view, result.labels)
    assert result.cost == pytest.approx(twin_cost(view, result.labels), rel=1e-9, abs=1e-12)
    assert np.array_equal(np.unique(result.labels), np.arange(k))
    if result.converged:  # a fixed point: nobody has a nearer centre, to rounding
        distances = twin_distances(view, result.labels, k)
        assert np.all(distances[np.arange(40), result.labels] <= distances.min(axis=1) + 1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 6))
def test_indefinite_kernels_end_with_the_best_partition(seed: int, k: int) -> None:
    view = KernelView.from_graph(random_graph(seed, 30, loops=False), shift=0.0)
    labels = np.random.default_rng(seed).integers(0, k, 30)
    result = kernel_kmeans(view, k, init=labels)
    assert np.all(np.diff(result.costs) < 0)
    assert result.cost == result.costs[-1] == kernel_kmeans_cost(view, result.labels)


def test_a_rise_of_the_cost_is_reported() -> None:
    # Squared distances of a graph without self-loops are negative between neighbours: both sides of this complete bipartite
    # graph rush to each other's centres, and end apart again.
    sides = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]], dtype=float)
    labels = np.array([0, 1, 1, 1])
    view = KernelView.from_graph(sides, shift=0.0)
    assert twin_cost(view, twin_step(view, labels, 2)) > twin_cost(view, labels)
    result = kernel_kmeans(view, 2, init=labels)
    assert result.indefinite
    np.testing.assert_array_equal(result.labels, labels)
    assert not kernel_kmeans(KernelView.from_graph(sides, shift=1.0), 2, init=labels).indefinite


def test_ties_keep_the_current_cluster() -> None:
    # Points 2 and 3 are orthogonal to each other and to the rest and of equal norm to all centres by symmetry.
    view = KernelView.from_matrix(np.eye(4))
    for labels in ([0, 0, 1, 1], [1, 0, 1, 0]):
        np.testing.assert_array_equal(kernel_kmeans(view, 2, init=labels).labels, labels)
    # All at one place: any two non-empty clusters are as good.
    np.testing.assert_array_equal(kernel_kmeans(KernelView.from_matrix(np.ones((3, 3))), 2, init=[1, 0, 1]).labels, [1, 0, 1])


def test_empty_clusters_take_the_points_that_pay_most() -> None:
    points = np.array([[1.0, 0.0, 0.0], [1.1, 0.0, 0.0], [0.9, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 4.0]])
    view = KernelView.from_matrix(points @ points.T, weights=[1, 1, 1, 1, 2])
    mean = sp.csc_array(view.weights[:, None] / view.weights.sum())
    assert np.array_equal(np.argsort(-view.weights * squared_distances(view, mean)[:, 0])[:2], [3, 4])
    result = kernel_kmeans(view, 3, init=np.zeros(5, dtype=int), max_iter=1)
    np.testing.assert_array_equal(result.labels, [0, 0, 0, 1, 2])


def test_an_empty_cluster_is_not_filled_by_emptying_another() -> None:
    view = KernelView.from_matrix(np.diag([1.0, 1.0, 100.0]))
    assert set(kernel_kmeans(view, 3, init=[0, 0, 1]).labels) == {0, 1, 2}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 12))
def test_any_start_uses_all_clusters(seed: int, k: int) -> None:
    view = sparse_kernel(seed, 15, density=0.3)
    start = np.full(15, seed % k)
    result = kernel_kmeans(view, k, init=start)
    assert np.array_equal(np.unique(result.labels), np.arange(k))


def test_points_of_weight_zero_follow_and_do_not_count() -> None:
    view = sparse_kernel(3, 50)
    generator = np.random.default_rng(0)
    idle = generator.random(50) < 0.3
    weighted = KernelView.from_matrix(view.to_matrix(), weights=np.where(idle, 0.0, view.weights))
    labels = generator.integers(0, 4, 50)
    result = kernel_kmeans(weighted, 4, init=labels)
    busy = np.flatnonzero(~idle)
    alone = kernel_kmeans(KernelView.from_matrix(view.restrict(busy), weights=view.weights[busy]), 4, init=labels[busy])
    np.testing.assert_array_equal(result.labels[busy], alone.labels)
    assert result.cost == pytest.approx(alone.cost, rel=1e-12)
    np.testing.assert_array_equal(result.labels[idle], twin_distances(weighted, result.labels, 4).argmin(axis=1)[idle])


def test_fewer_points_of_positive_weight_than_clusters() -> None:
    view = KernelView.from_matrix(np.eye(4), weights=[1.0, 0.0, 2.0, 0.0])
    result = kernel_kmeans(view, 3, random_state=0)
    assert result.labels[0] != result.labels[2]
    assert result.cost == 0.0


@pytest.mark.parametrize("init", ["d2", "labels"])
def test_threads_do_not_change_a_bit(init: str) -> None:
    n = 20_000  # several blocks of rows
    generator = np.random.default_rng(0)
    rows = generator.integers(0, n, 10 * n)
    columns = rows // 200 * 200 + generator.integers(0, 200, rows.size)
    half = sp.coo_array((generator.random(rows.size), (rows, columns)), shape=(n, n))
    view = KernelView.from_graph(sp.csr_array(half + half.T), shift=1.0)
    start = init if init == "d2" else generator.integers(0, 50, n)
    one, two, three = (kernel_kmeans(view, 50, init=start, max_iter=5, random_state=0, n_jobs=j) for j in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.costs, other.costs)


def test_more_starts_are_not_worse_and_begin_with_the_first() -> None:
    view = sparse_kernel(5)
    costs = [kernel_kmeans(view, 6, n_init=n, random_state=1).cost for n in (1, 3, 10)]
    assert costs[0] >= costs[1] >= costs[2]
    assert costs[2] < costs[0]


def test_d2_partition_has_k_seeds() -> None:
    view = sparse_kernel(5)
    for sampler in ("rejection", "tree", "naive"):
        assert np.unique(d2_partition(view, 7, sampler=sampler, random_state=0)).size == 7


def test_tolerance_ends_a_run_early() -> None:
    view = sparse_kernel(5)
    labels = np.arange(60) % 6
    full, early = (kernel_kmeans(view, 6, init=labels, tol=tol) for tol in (0.0, 0.02))
    assert early.n_iter < full.n_iter
    assert early.converged
    np.testing.assert_array_equal(early.costs, full.costs[: early.costs.size])
    cut = kernel_kmeans(view, 6, init=labels, max_iter=1)
    assert not cut.converged


def test_coreset_form_is_kernel_kmeans_of_the_coreset() -> None:
    view = KernelView.from_graph(random_graph(1, 200, loops=True))
    coreset = build_coreset(view, 4, size=80, random_state=0)
    result = coreset_kernel_kmeans(view, 4, coreset, random_state=3)
    own = KernelView.from_matrix(view.restrict(coreset.indices), weights=coreset.weights)
    assert result.labels.shape == (coreset.size,)
    assert result.cost == pytest.approx(twin_cost(own, result.labels), rel=1e-9)
    np.testing.assert_array_equal(result.labels, kernel_kmeans(own, 4, random_state=3).labels)


def test_graphs_are_taken_by_their_normalised_cut_kernel() -> None:
    graph = random_graph(2, loops=True)
    a, b = (kernel_kmeans(g, 3, random_state=0) for g in (graph, KernelView.from_graph(graph)))
    np.testing.assert_array_equal(a.labels, b.labels)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1"),
        ({"n_clusters": 61}, ValueError, "n_clusters=61 is more than n_samples=60"),
        ({"n_clusters": 2.0}, TypeError, "n_clusters must be an integer"),
        ({"init": "random"}, ValueError, "init must be one of 'd2'"),
        ({"init": [0, 1]}, ValueError, r"init must be one label per node: expected shape \(60,\)"),
        ({"init": np.full(60, 4)}, ValueError, "init must hold labels below n_clusters=4, got 4"),
        ({"init": np.full(60, -1)}, ValueError, "init must not be negative"),
        ({"init": np.zeros(60, dtype=int), "n_init": 2}, ValueError, "n_init must be 1 when init gives the labels"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1"),
        ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
        ({"tol": -1.0}, ValueError, "tol must be a finite number"),
        ({"sampler": "magic"}, ValueError, "sampler must be one of"),
        ({"random_state": "x"}, ValueError, "random_state"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    given_arguments = {"n_clusters": 4, **arguments}
    with pytest.raises(error, match=message):
        kernel_kmeans(sparse_kernel(0), given_arguments.pop("n_clusters"), **given_arguments)


def test_a_coreset_smaller_than_k_is_refused() -> None:
    view = sparse_kernel(0)
    coreset = build_coreset(view, 2, size=3, random_state=0)
    with pytest.raises(ValueError, match="draw a larger coreset"):
        coreset_kernel_kmeans(view, 4, coreset)


def test_a_graph_without_edges_is_refused() -> None:
    with pytest.raises(ValueError, match="every node is isolated"):
        kernel_kmeans(sp.csr_array((3, 3)), 2)


def test_native_step_checks_what_it_reads() -> None:
    view = KernelView.from_matrix(np.eye(3))
    ones, zeros = np.ones(3), np.zeros(3, dtype=np.int32)

    def step(labels: np.ndarray, load: np.ndarray, mass: np.ndarray) -> np.ndarray:
        return _core.nearest_centres(view.matrix, None, load, ones, labels, np.ones(2), mass, 1)

    with pytest.raises(ValueError, match="label 2 of node 1"):
        step(np.array([0, 2, 0], dtype=np.int32), ones, np.ones(2))
    with pytest.raises(ValueError, match="load has length 2"):
        step(zeros, np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="no point of positive weight"):
        step(zeros, ones, np.zeros(2))
