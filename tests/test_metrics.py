"""Metrics against their definitions, and the identities between normalised cut and kernel k-means that the paper rests on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import checks
import networkx as nx
import numpy as np
import problems
import pytest
import scipy.linalg
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import Graph, KernelView, _core, conductance, kernel_kmeans_cost, label_confidence, modularity, normalized_cut
from corecut.metrics import squared_distances


def labelled(draw: Any, n: int, k: int) -> np.ndarray:
    """Draw labels 0..k-1, with empty clusters among them."""
    return np.array(draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))


# --- metrics of a graph --------------------------------------------------------------------------------------------------


@given(problems.adjacency_matrices(edges=True), st.data())
def test_metrics_by_definition(A: np.ndarray, data: st.DataObject) -> None:
    k = 4
    labels = labelled(data.draw, len(A), k)
    expected = twins.conductances(A, labels, k)
    for graph in (A, sp.csr_array(A), Graph.from_matrix(A.astype(np.float32))):
        np.testing.assert_allclose(conductance(graph, labels, n_clusters=k), expected, rtol=1e-12, atol=1e-15)
        assert normalized_cut(graph, labels, n_clusters=k) == pytest.approx(expected.mean())
        assert normalized_cut(graph, labels, n_clusters=k, reduce="sum") == pytest.approx(expected.sum())
        for resolution in (1.0, 0.5):
            found = modularity(graph, labels, resolution=resolution)
            assert found == pytest.approx(twins.modularity(A, labels, resolution), abs=1e-12)


@given(problems.adjacency_matrices(), st.sampled_from([0.0, 0.02, 0.1, 3.0]), st.data())
def test_metrics_with_a_fee_by_definition(A: np.ndarray, balance: float, data: st.DataObject) -> None:
    k = 4
    labels = labelled(data.draw, len(A), k)
    expected = twins.conductances_with_fee(A, labels, k, balance)
    settings: Any = {"balance": balance, "n_clusters": k}
    np.testing.assert_allclose(conductance(A, labels, **settings), expected, rtol=1e-12, atol=1e-14)
    assert normalized_cut(A, labels, **settings) == pytest.approx(expected.mean(), abs=1e-14)
    assert normalized_cut(A, labels, reduce="sum", **settings) == pytest.approx(expected.sum(), abs=1e-14)


def test_a_fee_sees_through_crumbs() -> None:
    # A separate pair is a perfect cluster by the plain cut; two halves of the ring are the better partition.
    ring = np.eye(40)[:, np.roll(np.arange(40), 1)]
    A = sp.block_diag([ring + ring.T, 1 - np.eye(2)]).toarray()
    crumb, halves = np.repeat([0, 1], [40, 2]), np.repeat([0, 1], [20, 22])
    assert normalized_cut(A, crumb) == 0.0 < normalized_cut(A, halves)
    assert normalized_cut(A, crumb, balance=0.1) > normalized_cut(A, halves, balance=0.1)


def test_only_given_numbers_of_clusters_count_empty_ones() -> None:
    A = problems.random_adjacency(np.random.default_rng(0), 6)
    assert conductance(A, [0, 0, 2, 2, 2, 0]).shape == (2,)
    assert conductance(A, [0, 0, 2, 2, 2, 0], n_clusters=3)[1] == 1.0
    assert conductance(A, [0, 0, 1, 1, 1, 0], n_clusters=5).tolist()[2:] == [1.0, 1.0, 1.0]


class Categorical:
    """What matters of pandas' type: an array of objects when it is asked for one."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.values, dtype=object)


NAMES: dict[str, Any] = {
    "multiples": np.array([0, 30, 70, 30, 0, 70]),
    "huge": np.array([3, 10**15, 2**62, 10**15, 3, 2**62]),
    "whole floats": [0.0, 1.0, 2.0, 1.0, 0.0, 2.0],
    "text": ["a", "b", "c", "b", "a", "c"],
    "bytes": [b"a", b"b", b"c", b"b", b"a", b"c"],
    "objects": np.array(["a", "b", "c", "b", "a", "c"], dtype=object),
    "categories": Categorical(["a", "b", "c", "b", "a", "c"]),
    "numbers as objects": Categorical([1, 5, 9, 5, 1, 9]),
    "unsigned": np.array([1, 5, 9, 5, 1, 9], dtype=np.uint8),
}


@pytest.mark.parametrize("what", NAMES)
def test_the_names_of_clusters_do_not_matter(what: str) -> None:
    A = problems.random_adjacency(np.random.default_rng(1), 6)
    numbers = [0, 1, 2, 1, 0, 2]
    for metric in (conductance, normalized_cut, modularity, kernel_kmeans_cost, label_confidence):
        np.testing.assert_array_equal(metric(A, NAMES[what]), metric(A, numbers))


def test_empty_and_edgeless_clusters_do_not_flatter() -> None:
    A = scipy.linalg.block_diag(np.ones((3, 3)), np.ones((3, 3)), np.zeros((1, 1)))
    clean = [0, 0, 0, 1, 1, 1, 0]
    assert normalized_cut(A, clean) == 0.0
    assert normalized_cut(A, clean, n_clusters=3) == pytest.approx(1 / 3)
    assert conductance(A, [0, 0, 0, 1, 1, 1, 2]).tolist() == [0.0, 0.0, 1.0]


def test_a_clean_cut_is_never_negative(rng: np.random.Generator) -> None:
    # Degrees and inner sums are added up in different orders; their difference must not fall below zero.
    blocks = [problems.random_adjacency(rng, 12, density=0.9) / 7.0 for _ in range(200)]
    graph, labels = sp.csr_array(scipy.linalg.block_diag(*blocks)), np.repeat(np.arange(200), 12)
    within = _core.within_cluster(Graph.from_matrix(graph).matrix, labels.astype(np.int32), None, 1)
    assert np.any(np.bincount(labels, within) > np.bincount(labels, Graph.from_matrix(graph).degrees)), "no such rounding"
    values = conductance(graph, labels)
    assert np.all(values >= 0)
    np.testing.assert_allclose(values, 0.0, atol=1e-15)


def test_networkx_agrees(rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 24)  # networkx counts self-loops twice, so there are none
    graph = nx.from_numpy_array(A)
    labels = rng.integers(4, size=24)
    sets = [set(np.flatnonzero(labels == j).tolist()) for j in range(4)]
    for resolution in (1.0, 0.7, 2.0):
        expected = nx.community.modularity(graph, sets, resolution=resolution)
        assert modularity(A, labels, resolution=resolution) == pytest.approx(expected)
    cuts = [nx.cut_size(graph, s, weight="weight") / nx.volume(graph, s, weight="weight") for s in sets]
    np.testing.assert_allclose(conductance(A, labels), cuts, rtol=1e-12)
    # networkx divides by the smaller side's volume: for two clusters that is the larger of the two conductances.
    halves = (labels >= 2).astype(int)
    other = set(np.flatnonzero(halves == 0).tolist())
    assert conductance(A, halves).max() == pytest.approx(nx.conductance(graph, other, weight="weight"))
    assert normalized_cut(A, halves, reduce="sum") == pytest.approx(nx.normalized_cut_size(graph, other, weight="weight"))


@pytest.mark.parametrize("factor", [1e-200, 1e200, 4.0])
def test_scaling_all_weights_changes_no_metric(factor: float, rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 40, loops=0.3)
    labels = rng.integers(5, size=40)
    for balance in (0.0, 0.3):
        scaled, plain = (conductance(matrix, labels, balance=balance) for matrix in (A * factor, A))
        np.testing.assert_allclose(scaled, plain, rtol=1e-12)
    assert modularity(A * factor, labels) == pytest.approx(modularity(A, labels))
    assert kernel_kmeans_cost(A * factor, labels) == pytest.approx(kernel_kmeans_cost(A, labels))
    assert kernel_kmeans_cost(A * factor, centers=[1, 5]) == pytest.approx(kernel_kmeans_cost(A, centers=[1, 5]))


def test_real_graph_by_definition(dataset: Callable[[str], sp.csr_array], rng: np.random.Generator) -> None:
    graph = dataset("email_eu_core")
    labels = rng.integers(20, size=graph.shape[0])
    A = graph.toarray()
    np.testing.assert_allclose(conductance(graph, labels), twins.conductances(A, labels, 20), rtol=1e-12)
    assert modularity(graph, labels) == pytest.approx(twins.modularity(A, labels))


# --- kernel k-means cost -------------------------------------------------------------------------------------------------


def test_trace_form_is_centroid_form(rng: np.random.Generator) -> None:
    # Lemma B.1, with explicit feature vectors and means.
    for problem in (
        problems.graph_problem(problems.random_adjacency(rng, 12, loops=0.5, isolated=2), 1.0),
        problems.weighted_kernel(),
        problems.collapsing_kernel(),
    ):
        phi = twins.features(problem.K)
        for _ in range(10):
            labels = rng.integers(4, size=problem.n)
            expected = twins.centroid_cost(phi, problem.w, labels)
            assert kernel_kmeans_cost(problem.view, labels) == pytest.approx(expected, rel=1e-9)
            assert twins.trace_cost(problem.K, problem.w, labels) == pytest.approx(expected, rel=1e-9)


def test_cost_of_partitions_and_centres_by_definition(problem: problems.Problem, rng: np.random.Generator) -> None:
    scale = problem.w @ np.diag(problem.K)
    for _ in range(10):
        labels = rng.integers(3, size=problem.n)
        expected = twins.trace_cost(problem.K, problem.w, labels)
        assert kernel_kmeans_cost(problem.view, labels) == pytest.approx(expected, abs=1e-12 * scale)
        points = rng.choice(problem.n, 3, replace=False)
        at_points = np.eye(problem.n)[:, points]
        expected = twins.cost_of_centres(problem.K, problem.w, at_points)
        assert kernel_kmeans_cost(problem.view, centers=points) == pytest.approx(expected, abs=1e-12 * scale)
        mixed = rng.normal(size=(problem.n, 2)) * (rng.random((problem.n, 2)) < 0.5)
        expected = twins.cost_of_centres(problem.K, problem.w, mixed)
        assert kernel_kmeans_cost(problem.view, centers=sp.csr_array(mixed)) == pytest.approx(expected, rel=1e-10)
        found = squared_distances(problem.view, sp.csc_array(mixed))
        np.testing.assert_allclose(found, twins.centre_distances(problem.K, mixed), rtol=1e-10, atol=1e-12 * scale)


@given(problems.adjacency_matrices(min_nodes=3, edges=True), st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.data())
def test_cost_is_the_normalised_cut_up_to_a_constant(A: np.ndarray, shift: float, data: st.DataObject) -> None:
    # cost = tr(D⁻¹A) - k + Σ cut/vol + σ(n - k), for k non-empty clusters of nodes with edges.
    A = A + np.diag((~A.any(axis=1)) * 1.0)
    n, k = len(A), data.draw(st.integers(1, 3))
    labels = labelled(data.draw, n, k)
    labels[:k] = np.arange(k)
    degrees = A.sum(axis=1)
    constant = np.sum(np.diag(A) / degrees) - k + shift * (n - k)
    view = KernelView.from_graph(A, shift=shift)
    expected = constant + normalized_cut(A, labels, reduce="sum")
    assert kernel_kmeans_cost(view, labels) == pytest.approx(expected, abs=1e-11)
    cut, volume = twins.cut_and_volume(A, labels, k)
    assert kernel_kmeans_cost(view, labels) == pytest.approx(constant + np.sum(cut / volume), abs=1e-11)


def test_shift_orders_all_partitions_the_same_way(rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 7, density=0.6)
    everyone = twins.partitions(7, 3)
    assert len(everyone) == 301  # Stirling's number of the second kind
    plain, shifted = (
        np.array([kernel_kmeans_cost(KernelView.from_graph(A, shift=s), labels) for labels in everyone]) for s in (0.0, 1.0)
    )
    np.testing.assert_allclose(shifted - plain, 1.0 * (7 - 3), rtol=1e-12)


def test_cost_can_be_negative_without_loops_and_not_with_shift_one(rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 9, density=0.5)
    labels = np.zeros(9, dtype=int)
    assert kernel_kmeans_cost(KernelView.from_graph(A, shift=0.0), labels) == pytest.approx(-1.0)
    for k in (2, 3):
        best = min(kernel_kmeans_cost(KernelView.from_graph(A, shift=1.0), p) for p in twins.partitions(9, k))
        assert best >= 0


def test_moving_a_centre_away_from_the_centroid_costs_its_distance_times_the_weight(rng: np.random.Generator) -> None:
    # Lemma 5.1: Σ w‖x - z‖² = Σ w‖x - c‖² + ‖c - z‖² Σ w. The paper's factor |S| does not belong there.
    for problem in (problems.weighted_kernel(), problems.graph_problem(problems.random_adjacency(rng, 11), 1.0)):
        n, w, K = problem.n, problem.w, problem.K
        centroid = w / w.sum()
        z = rng.dirichlet(np.ones(n))
        distance = (centroid - z) @ K @ (centroid - z)
        assert distance > 1e-3 * np.diag(K).max()
        at_centroid = kernel_kmeans_cost(problem.view, centers=sp.csr_array(centroid[:, None]))
        at_z = kernel_kmeans_cost(problem.view, centers=sp.csr_array(z[:, None]))
        assert at_centroid == pytest.approx(kernel_kmeans_cost(problem.view, np.zeros(n, dtype=int)), rel=1e-10)
        assert at_z == pytest.approx(at_centroid + distance * w.sum(), rel=1e-10)
        assert at_z != pytest.approx(at_centroid + n * distance * w.sum(), rel=1e-3)


def test_nearest_centres_cost_no_more_than_any_assignment(problem: problems.Problem, rng: np.random.Generator) -> None:
    for _ in range(10):
        labels = rng.integers(3, size=problem.n)
        positive = problem.w > 0
        labels[positive] = np.unique(labels[positive], return_inverse=True)[1]
        labels[~positive] = 0
        k = labels.max() + 1
        centres = twins.centroid_coefficients(problem.n, np.arange(problem.n), problem.w, labels, k)
        cost = kernel_kmeans_cost(problem.view, centers=sp.csr_array(centres))
        assert cost <= kernel_kmeans_cost(problem.view, labels) + 1e-12 * (problem.w @ np.diag(problem.K))


# --- what is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "error", "words"),
    [
        ([0, 1], ValueError, r"labels must be one label per node: expected shape \(3,\), got \(2,\)"),
        ([[0, 1, 0]], ValueError, "one label per node"),
        ([0, -1, 0], ValueError, "labels must not be negative, got -1 at node 1"),
        ([0.0, 1.5, 0.0], ValueError, "labels must be whole numbers or text"),
        ([0.0, np.nan, 0.0], ValueError, "labels must be whole numbers or text without gaps, got nan"),
        (["a", None, "a"], ValueError, "must not have gaps: node 1 has the label None"),
        (np.array(["a", 1, "a"], dtype=object), TypeError, "must be all numbers or all text"),
        ([0j, 1j, 0j], TypeError, "labels must be integers, text or categories"),
    ],
)
def test_wrong_labels_are_refused(labels: Any, error: type[Exception], words: str) -> None:
    A = np.ones((3, 3))
    for metric in (conductance, normalized_cut, modularity, kernel_kmeans_cost):
        with pytest.raises(error, match=words):
            metric(A, labels)


def test_wrong_arguments_are_refused() -> None:
    A = np.ones((3, 3))
    with pytest.raises(ValueError, match="n_clusters=1 is below the largest label plus one, 2"):
        conductance(A, [0, 1, 1], n_clusters=1)
    for metric in (conductance, normalized_cut):
        with pytest.raises(ValueError, match="n_clusters=1099511627776 is far more than 3 nodes can fill: ask for at most"):
            metric(A, [0, 1, 1], n_clusters=2**40)
    with pytest.raises(ValueError, match="reduce must be one of 'mean', 'sum'"):
        normalized_cut(A, [0, 1, 1], reduce="max")  # type: ignore[arg-type]
    for wrong in (-0.1, np.nan, np.inf):
        with pytest.raises(ValueError, match="balance must be a finite number not below 0"):
            conductance(A, [0, 1, 1], balance=wrong)
    with pytest.raises(ValueError, match="resolution must be"):
        modularity(A, [0, 1, 1], resolution=-1.0)
    with pytest.raises(ValueError, match="not defined for a graph without edges"):
        modularity(np.zeros((3, 3)), [0, 1, 1])
    for labels, centers in ((None, None), ([0, 1, 1], [0])):
        with pytest.raises(ValueError, match="either labels or centers=, and not both"):
            kernel_kmeans_cost(A, labels, centers=centers)
    with pytest.raises(ValueError, match="at least one centre"):
        kernel_kmeans_cost(A, centers=[])
    with pytest.raises(ValueError, match="centers must lie between 0 and 2"):
        kernel_kmeans_cost(A, centers=[3])
    with pytest.raises(ValueError, match=r"3 × k matrix of coefficients, got shape \(2, 3\)"):
        kernel_kmeans_cost(A, centers=sp.csr_array(np.ones((2, 3))))


# --- sameness ------------------------------------------------------------------------------------------------------------


def test_equal_bits_for_any_number_of_threads(many_blocks: sp.csr_array, rng: np.random.Generator) -> None:
    graph = Graph.from_matrix(many_blocks)
    labels = rng.integers(50, size=graph.n_nodes)
    for jobs in (2, 3, None):
        for balance in (0.0, 1.0):
            one, many = (conductance(graph, labels, balance=balance, n_jobs=j) for j in (1, jobs))
            checks.same_bits(one, many)
        assert modularity(graph, labels, n_jobs=jobs) == modularity(graph, labels, n_jobs=1)
        assert kernel_kmeans_cost(graph, labels, n_jobs=jobs) == kernel_kmeans_cost(graph, labels, n_jobs=1)
