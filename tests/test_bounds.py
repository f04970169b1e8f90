"""Bounds on cluster sizes: whatever the graph and the way through the pipeline, they are kept, or refused before work."""

from __future__ import annotations

import math
import time
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import HealthCheck, given, settings as hypothesis_settings, strategies as st
from sklearn.feature_extraction.image import grid_to_graph

from corecut import CoresetSpectralClustering, Graph, make_sbm
from corecut.objective import Objective
from corecut.refinement import bring_into_bounds
from corecut.weighted import WeightedGraph


def brought(A: Any, labels: np.ndarray, k: int, objective: Objective, sizes: np.ndarray | None = None) -> np.ndarray:
    graph = Graph.from_matrix(A)
    level = WeightedGraph(graph, np.ones(graph.n_nodes) if sizes is None else sizes)
    found = bring_into_bounds(level, labels.astype(np.int32), objective, k)
    checks.valid_labels(found, graph.n_nodes, k)
    return found


@st.composite
def bounded(draw: st.DrawFn, n: int, k: int) -> tuple[int, int]:
    """Draw bounds that can be met, tight ones as often as loose ones."""
    smallest = draw(st.one_of(st.just(n // k), st.integers(1, n // k)))
    largest = draw(st.one_of(st.just(-(-n // k)), st.integers(-(-n // k), n)))
    return smallest, largest


# --- bringing a partition into them --------------------------------------------------------------------------------------


@given(problems.adjacency_matrices(min_nodes=2, max_nodes=12), st.integers(1, 5), st.sampled_from([0.0, 0.5]), st.data())
def test_any_partition_is_brought_into_bounds_that_can_be_met(A: np.ndarray, k: int, fee: float, data: st.DataObject) -> None:
    n = len(A)
    k = min(k, n)
    smallest, largest = data.draw(bounded(n, k))
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    found = brought(A, labels, k, Objective(fee, smallest, largest))
    counted = np.bincount(found, minlength=k)
    assert smallest <= counted.min() <= counted.max() <= largest


@given(problems.adjacency_matrices(min_nodes=2), st.integers(1, 4), st.data())
def test_nothing_moves_that_is_inside(A: np.ndarray, k: int, data: st.DataObject) -> None:
    n = len(A)
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    sizes = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 4.0]), min_size=n, max_size=n)))
    counted = np.bincount(labels, sizes, minlength=k)
    found = brought(A, labels, k, Objective(0.0, counted.min(), counted.max()), sizes)
    np.testing.assert_array_equal(found, labels)
    np.testing.assert_array_equal(brought(A, labels, k, Objective(), sizes), labels)


@given(problems.adjacency_matrices(min_nodes=3), st.integers(2, 4), st.data())
def test_no_cluster_loses_its_last_node_and_no_sizes_get_worse(A: np.ndarray, k: int, data: st.DataObject) -> None:
    # Nodes of several sizes: bounds may be out of reach.
    n = len(A)
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    sizes = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0]), min_size=n, max_size=n)))
    smallest, largest = data.draw(st.sampled_from([(0.0, 3.0), (2.0, np.inf), (2.0, 4.0), (3.0, 3.0), (6.0, 7.0)]))
    found = brought(A, labels, k, Objective(0.0, smallest, largest), sizes)
    assert set(labels.tolist()) <= set(found.tolist())
    before, after = (twins.outside(np.bincount(one, sizes, minlength=k), smallest, largest) for one in (labels, found))
    assert after <= before


@pytest.mark.parametrize("kind", ["planted", "isolated nodes", "components", "hub", "heavy edge"])
@pytest.mark.parametrize("slack", [0, 1, 10])
def test_large_graphs_are_brought_into_tight_bounds(kind: str, slack: int, rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [300, 200, 100, 50, 50], degree=8.0)
    if kind == "isolated nodes":
        graph = sp.block_diag([graph[:400, :400], sp.csr_array((300, 300))], format="csr")
    elif kind == "components":
        graph = sp.block_diag([np.ones((7, 7))] * 100, format="csr")
    elif kind == "hub":
        graph = graph.tolil()
        graph[0, 1:] = graph[1:, 0] = 1.0
        graph = graph.tocsr()
    elif kind == "heavy edge":
        graph = graph + sp.coo_array(([1e9, 1e9], ([3, 500], [500, 3])), shape=graph.shape)
    k = 7
    bounds = (100 - slack, 100 + slack)
    for labels in (np.zeros(700), np.arange(700) % k, np.minimum(rng.geometric(0.5, 700) - 1, k - 1)):
        found = brought(sp.csr_array(graph), labels, k, Objective(0.0, *bounds))
        assert twins.outside(np.bincount(found, minlength=k), *bounds) == 0


def test_nodes_that_cost_least_are_moved() -> None:
    # A path in two clusters of 12 and 4: the border moves, and no node jumps.
    path = sp.csr_array(sp.diags_array([np.ones(15), np.ones(15)], offsets=[1, -1]))
    labels = np.repeat([0, 1], [12, 4])
    assert brought(path, labels, 2, Objective(0.0, 0.0, 8.0)).tolist() == [0] * 8 + [1] * 8
    assert brought(path, labels, 2, Objective(0.0, 8.0)).tolist() == [0] * 8 + [1] * 8


# --- the whole way -------------------------------------------------------------------------------------------------------

WAYS: dict[str, dict[str, Any]] = {
    "directly": {},
    "aggregated": {"aggregate": True},
    "coreset": {"aggregate": False, "coreset_size": 0.6},
    "coreset of the quotient": {"aggregate": True, "coreset_size": 0.5},
    "with a fee": {"balance": 0.1},
}


def fitted(graph: Any, k: int, seed: int = 0, **settings: Any) -> np.ndarray:
    with pytest.MonkeyPatch.context() as patch:
        # What is said of thin coresets and several parts is not the point here.
        patch.setattr("corecut.advice.advise", lambda *_, **__: None)
        labels = CoresetSpectralClustering(k, random_state=seed, affinity="precomputed", **settings).fit_predict(graph)
    checks.valid_labels(labels, graph.shape[0], k)
    return labels


@st.composite
def graphs(draw: st.DrawFn) -> sp.csr_array:
    """Draw planted graphs of up to 120 nodes with isolated nodes, small components, weights and loops."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = draw(st.lists(st.integers(3, 40), min_size=1, max_size=3))
    graph, _ = problems.planted_graph(rng, sizes, degree=draw(st.sampled_from([3.0, 12.0])), loops=draw(st.booleans()))
    parts = [graph]
    parts += [np.ones((2, 2))] * draw(st.integers(0, 5))
    isolated = draw(st.sampled_from([0, 0, 1, 25]))
    if isolated:
        parts.append(sp.csr_array((isolated, isolated)))
    matrix = sp.csr_array(sp.block_diag(parts, format="csr"))
    if matrix.nnz == 0:
        matrix = sp.csr_array(np.ones(matrix.shape))
    order = rng.permutation(matrix.shape[0])
    return sp.csr_array(matrix[order][:, order])


@pytest.mark.parametrize("way", WAYS)
@given(graph=graphs(), data=st.data())
@hypothesis_settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bounds_are_kept_on_every_way(way: str, graph: sp.csr_array, data: st.DataObject) -> None:
    n = graph.shape[0]
    k = data.draw(st.integers(1, min(n, 9)))
    smallest, largest = data.draw(bounded(n, k))
    chosen = WAYS[way]
    if chosen.get("coreset_size", 1.0) * n < k + 1:
        chosen = {}
    labels = fitted(graph, k, min_cluster_size=smallest, max_cluster_size=largest, **chosen)
    counted = np.bincount(labels, minlength=k)
    assert smallest <= counted.min() <= counted.max() <= largest


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("isolated", [0, 137])
def test_clusters_differ_by_one_node_where_that_is_asked_for(way: str, isolated: int, rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [200, 100, 50, 17], degree=20.0)
    graph = sp.block_diag([graph, sp.csr_array((isolated, isolated))], format="csr") if isolated else graph
    n, k = graph.shape[0], 6
    labels = fitted(graph, k, min_cluster_size=n // k, max_cluster_size=-(-n // k), **WAYS[way])
    assert np.ptp(np.bincount(labels, minlength=k)) <= 1


def test_components_with_too_few_isolated_nodes_to_fill_them_are_divided() -> None:
    # Each of the pairs alone could be filled up, but not both.
    cliques = [np.ones((n, n)) - np.eye(n) for n in (6, 2, 2)]
    labels = fitted(sp.block_diag([*cliques, sp.csr_array((2, 2))], format="csr"), 3, min_cluster_size=4, max_cluster_size=6)
    assert np.bincount(labels).tolist() == [4, 4, 4]


@pytest.mark.parametrize("factors", [(0.9, 1.1), (0.5, 1.03), (0.99, 2.0)])
def test_factors_of_the_mean_are_kept(factors: tuple[float, float], rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [2000, 1000, 500, 500], degree=8.0)  # large enough to be aggregated
    labels = fitted(graph, 8, min_cluster_size=factors[0], max_cluster_size=factors[1])
    counted = np.bincount(labels, minlength=8)
    assert factors[0] * 500 <= counted.min() <= counted.max() <= factors[1] * 500


@pytest.mark.parametrize(
    "bounds",
    [
        {"min_cluster_size": 26},
        {"max_cluster_size": 24},
        {"min_cluster_size": 1.1},
        {"max_cluster_size": 0.9},
        {"min_cluster_size": 20, "max_cluster_size": 10},
    ],
)
def test_bounds_that_cannot_be_met_are_refused_before_any_work(
    bounds: dict[str, Any], monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    graph, _ = problems.planted_graph(rng, [50, 50])
    for stage in ("gather_levels", "draw_partitions", "split_by_components"):
        monkeypatch.setattr(f"corecut.pipeline.{stage}", lambda *_, **__: pytest.fail("work was done"))
    with pytest.raises(ValueError, match="cluster_size"):
        CoresetSpectralClustering(4, **bounds).fit(graph)


def test_bounds_cost_cut_and_not_more_than_they_must(rng: np.random.Generator) -> None:
    # Three cliques of 40 and one of 60 in clusters of 45 nodes: 15 nodes of the large one must go elsewhere.
    sizes = [60, 40, 40, 40]
    A = sp.block_diag([np.ones((n, n)) - np.eye(n) for n in sizes]).toarray()
    A += 0.001 * (1 - np.eye(180))
    np.fill_diagonal(A, 0.0)
    labels = fitted(A, 4, max_cluster_size=45)
    assert np.bincount(labels).tolist() == [45] * 4
    truth = np.repeat(np.arange(4), sizes)
    whole = sum(np.bincount(labels[truth == j]).max() for j in range(1, 4))
    assert whole == 120, "no clique is broken that need not be"
    assert math.isclose(np.bincount(labels[truth == 0]).max(), 45)


@pytest.mark.parametrize(
    ("connected", "isolated", "k", "bounds"),
    [
        (3, 3, 3, {"max_cluster_size": 2}),
        (3, 3, 3, {"max_cluster_size": 1.0}),
        (3, 3, 3, {"min_cluster_size": 2, "max_cluster_size": 2}),
        (7, 41, 7, {"min_cluster_size": 6, "max_cluster_size": 7}),
    ],
)
def test_bounds_hold_where_most_nodes_are_isolated(connected: int, isolated: int, k: int, bounds: dict[str, Any]) -> None:
    graph = sp.block_diag([np.ones((connected, connected)), sp.csr_array((isolated, isolated))], format="csr")
    sizes = np.bincount(CoresetSpectralClustering(k, random_state=0, **bounds).fit(graph).labels_, minlength=k)
    largest = bounds["max_cluster_size"] if isinstance(bounds["max_cluster_size"], int) else 2
    assert sizes.max() <= largest
    assert sizes.min() >= bounds.get("min_cluster_size", 0)


def test_a_lower_bound_alone_computes_no_nan() -> None:
    grid = sp.csr_array(grid_to_graph(5, 5))
    sizes = np.bincount(CoresetSpectralClustering(5, random_state=0, min_cluster_size=0.5).fit(grid).labels_)
    assert sizes.min() >= 3


@pytest.mark.parametrize("bound", [{"min_cluster_size": 10}, {"max_cluster_size": 0.6 * 10}])
@pytest.mark.filterwarnings("ignore:one cluster holds")
def test_a_wide_bound_on_one_side_leaves_crumbs_and_giants_away(bound: dict[str, Any]) -> None:
    # Ten communities, and thirty small cliques that hang on them by an edge each: the plain cut would take those.
    blocks, _ = make_sbm(100, 10, 0.12, 0.01, random_state=0)
    cliques = [np.ones((12, 12)) - np.eye(12)] * 30
    A = sp.lil_array(sp.block_diag([blocks, *cliques]))
    for at in range(30):
        A[at * 33, 1000 + 12 * at] = A[1000 + 12 * at, at * 33] = 1.0
    sizes = {
        name: np.bincount(CoresetSpectralClustering(10, random_state=0, **settings).fit(sp.csr_array(A)).labels_)
        for name, settings in {"free": {}, "bounded": bound, "plain": {"balance": 0, **bound}}.items()
    }
    assert np.median(sizes["plain"]) < 0.3 * 136
    assert np.median(sizes["free"]) >= 0.3 * 136
    assert np.median(sizes["bounded"]) >= 0.3 * 136


def test_a_star_takes_time_in_proportion_to_its_leaves() -> None:
    """All leaves cost nearly the same, and every move makes all others dearer."""

    def seconds(n: int) -> float:
        star = sp.csr_array((np.ones(n), (np.zeros(n, int), np.arange(1, n + 1))), (n + 1, n + 1))
        graph = Graph.from_matrix(star + star.T)
        level = WeightedGraph(graph, np.ones(n + 1))
        labels = (np.arange(n + 1) < n / 10).astype(np.int32)
        begin = time.perf_counter()
        sizes = np.bincount(bring_into_bounds(level, labels, Objective(max_size=0.51 * n), 2))
        assert sizes.max() <= 0.51 * n
        return time.perf_counter() - begin

    few = min(seconds(4_000) for _ in range(3))
    assert seconds(64_000) < 80 * few  # 256 times where it grows with the square
