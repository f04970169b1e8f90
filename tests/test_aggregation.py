"""Aggregation: the quotient's cuts, volumes and associations are exactly the graph's, and groups stay small."""

from __future__ import annotations

from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import Graph, aggregate_graph, make_degree_corrected_sbm, normalized_cut
from corecut.aggregation import Quotient
from corecut.objective import Objective
from corecut.refinement import refine_weighted
from corecut.weighted import WeightedGraph


def compose(levels: list[Quotient]) -> np.ndarray:
    """Return the coarsest group of every node of the graph."""
    groups = levels[0].groups
    for level in levels[1:]:
        groups = level.groups[groups]
    return groups


def numbered_by_lowest_node(groups: np.ndarray) -> bool:
    _, first = np.unique(groups, return_index=True)
    return bool(groups[0] == 0 and np.all(np.diff(np.unique(groups)) == 1) and np.all(np.diff(first) > 0))


def within_cap(degrees: np.ndarray, groups: np.ndarray, cap: float) -> bool:
    """Say whether every group's volume is within the cap, or the group is a single node."""
    return bool(np.all((np.bincount(groups, degrees) <= cap) | (np.bincount(groups) <= 1)))


@pytest.fixture(scope="module")
def planted() -> sp.csr_array:
    """Return a graph of several batches with unit weights, power-law degrees and nodes in no particular order."""
    graph, _ = make_degree_corrected_sbm(9000, 5, mean_degree=7, mixing=0.2, random_state=3)
    shuffled = np.random.default_rng(3).permutation(9000)
    return graph[shuffled][:, shuffled]


# --- the quotient --------------------------------------------------------------------------------------------------------


@given(problems.adjacency_matrices(), st.data())
def test_contraction_by_definition(A: np.ndarray, data: st.DataObject) -> None:
    n = len(A)
    groups = np.unique(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), return_inverse=True)[1].astype(np.int32)
    sizes = np.array(data.draw(st.lists(st.sampled_from([1.0, 3.0]), min_size=n, max_size=n)))
    level = WeightedGraph(Graph.from_matrix(A), sizes).contract(groups)
    member = twins.membership(groups, groups.max() + 1)
    Q = member.T @ A @ member
    np.testing.assert_array_equal(level.graph.adjacency.toarray(), Q)
    np.testing.assert_array_equal(level.graph.degrees, member.T @ A.sum(axis=1))
    diagonal = np.zeros(len(Q)) if level.graph.diagonal is None else level.graph.diagonal
    np.testing.assert_array_equal(diagonal, np.diag(Q))
    np.testing.assert_array_equal(level.sizes, member.T @ sizes)
    assert all(np.all(np.diff(row) > 0) for row in np.split(level.graph.indices, level.graph.indptr[1:-1]))


@given(problems.adjacency_matrices(), st.sampled_from([0.5, 1.0, 2.5, 6.0]), st.data())
def test_cuts_are_preserved_exactly(A: np.ndarray, groups_per_cluster: float, data: st.DataObject) -> None:
    # Weights are sums of powers of two, so that every sum is exact and equal means equal.
    k = 3
    levels = aggregate_graph(A, 1, groups_per_cluster=groups_per_cluster, n_groups=1)
    below, cap = A, A.sum() / groups_per_cluster
    isolated = np.flatnonzero(~A.any(axis=1))
    for number, level in enumerate(levels):
        Q = level.graph.adjacency.toarray()
        assert len(Q) < len(below)
        assert numbered_by_lowest_node(level.groups)
        coarse = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=len(Q), max_size=len(Q))))
        groups = compose(levels[: number + 1])
        cut, volume = twins.cut_and_volume(Q, coarse, k)
        for matrix, labels in ((below, coarse[level.groups]), (A, coarse[groups])):
            expected_cut, expected_volume = twins.cut_and_volume(matrix, labels, k)
            np.testing.assert_array_equal(cut, expected_cut)
            np.testing.assert_array_equal(volume, expected_volume)
        np.testing.assert_array_equal(level.sizes, np.bincount(groups))
        assert within_cap(np.delete(A.sum(axis=1), isolated), np.delete(groups, isolated), cap)
        assert np.unique(groups[isolated]).size == (isolated.size > 0)
        assert not np.isin(np.delete(groups, isolated), groups[isolated]).any()
        below = Q


def test_all_levels_of_a_large_graph_are_exact(planted: sp.csr_array, rng: np.random.Generator) -> None:
    graph = Graph.from_matrix(planted)
    levels = aggregate_graph(graph, 5, n_groups=120)
    assert len(levels) > 1
    for number, level in enumerate(levels):
        groups = compose(levels[: number + 1])
        coarse = rng.integers(8, size=level.graph.n_nodes)
        assert level.graph.volume == graph.volume
        np.testing.assert_array_equal(level.sizes, np.bincount(groups))
        np.testing.assert_array_equal(level.graph.degrees, np.bincount(groups, graph.degrees))
        # Integer weights: the sums are exact, and so is what follows from them by the same operations.
        assert normalized_cut(level.graph, coarse) == normalized_cut(graph, coarse[groups])
        whole = WeightedGraph(graph, np.ones(9000))
        for fee in (0.0, 200.0):
            one, other = (
                refine_weighted(at, labels.astype(np.int32), Objective(fee), 8, max_passes=0).objective
                for at, labels in ((level, coarse), (whole, coarse[groups]))
            )
            assert one == other


def test_sizes_are_carried(planted: sp.csr_array, rng: np.random.Generator) -> None:
    sizes = rng.integers(1, 50, size=9000).astype(float)
    levels = aggregate_graph(planted, 5, n_groups=500, sizes=sizes)
    for number, level in enumerate(levels):
        np.testing.assert_array_equal(level.sizes, np.bincount(compose(levels[: number + 1]), sizes))


# --- the groups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups_per_cluster", [3.0, 10.0, 40.0])
def test_groups_stay_within_the_cap(groups_per_cluster: float, planted: sp.csr_array) -> None:
    degrees = np.diff(planted.indptr).astype(float)
    cap = degrees.sum() / (groups_per_cluster * 5)
    levels = aggregate_graph(planted, 5, groups_per_cluster=groups_per_cluster, n_groups=10)
    groups = compose(levels)
    assert numbered_by_lowest_node(groups)
    assert within_cap(degrees, groups, cap)
    assert np.bincount(groups, degrees).max() > 0.5 * cap  # the bound is made use of


def test_groups_are_tight(planted: sp.csr_array) -> None:
    (level, *_) = aggregate_graph(planted, 5, n_groups=2000)
    inside = level.graph.diagonal.sum() / level.graph.volume
    random = np.random.default_rng(0).permutation(level.groups)
    by_chance = WeightedGraph.of(Graph.from_matrix(planted)).contract(random).graph.diagonal.sum() / level.graph.volume
    assert inside > 50 * by_chance


def test_leaves_of_a_hub_are_gathered() -> None:
    # The hub alone is heavier than the cap, so that no leaf can join it: they join each other, a ninth of them to a group.
    n = 5001
    hub = sp.coo_array((np.ones(n - 1), (np.zeros(n - 1, dtype=int), np.arange(1, n))), shape=(n, n))
    levels = aggregate_graph(sp.csr_array(hub + hub.T), 1, groups_per_cluster=10, n_groups=10)
    assert len(levels) == 1
    assert sorted(np.bincount(levels[0].groups).tolist()) == [1, 5] + [555] * 9
    assert levels[0].graph.degrees[0] == 5000.0


def test_several_hubs_do_not_share_leaves() -> None:
    hubs, leaves = 6, 400
    one = np.zeros((leaves + 1, leaves + 1))
    one[0, 1:] = one[1:, 0] = 1.0
    levels = aggregate_graph(sp.block_diag([one] * hubs, format="csr"), 6, groups_per_cluster=10, n_groups=200)
    component = np.repeat(np.arange(hubs), leaves + 1)
    groups = compose(levels)
    assert np.unique(component * 10**6 + groups).size == np.unique(groups).size
    assert np.unique(groups).size <= 200


def test_components_and_isolated_nodes(rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [1500, 1500], degree=6.0, mixing=0.0)
    lonely = sp.csr_array((500, 500))
    matrix = sp.block_diag([lonely, graph, lonely], format="csr")
    levels = aggregate_graph(matrix, 4, n_groups=100)
    groups = compose(levels)
    isolated = matrix.sum(axis=1) == 0
    assert isolated.sum() >= 1000
    assert np.unique(groups[isolated]).size == 1
    assert not np.isin(groups[~isolated], groups[isolated]).any()
    assert levels[-1].sizes.sum() == 4000
    assert levels[-1].graph.n_nodes < 500


def test_a_graph_without_edges_is_left_alone() -> None:
    assert aggregate_graph(sp.csr_array((50, 50)), 2, n_groups=10) == []


@pytest.mark.parametrize("weight", [1e3, 1e8, 1e12])
def test_one_heavy_edge_leaves_enough_groups(weight: float, planted: sp.csr_array) -> None:
    n = planted.shape[0]
    edge = sp.coo_array(([weight, weight], ([5, 4000], [4000, 5])), shape=(n, n))
    counts = [level.n_nodes for level in aggregate_graph(sp.csr_array(planted + edge), 5)]
    plain = [level.n_nodes for level in aggregate_graph(planted, 5)]
    assert counts[-1] >= min(50, 0.5 * plain[-1])


# --- levels --------------------------------------------------------------------------------------------------------------


def test_stops_at_the_number_of_groups(planted: sp.csr_array) -> None:
    counts = [level.graph.n_nodes for level in aggregate_graph(planted, 5, n_groups=150)]
    assert counts[-1] <= 150 < counts[-2]
    assert np.all(np.diff(counts) < 0)
    fewer = aggregate_graph(planted, 5, n_groups=counts[0])
    assert [level.graph.n_nodes for level in fewer] == counts[:1]
    assert [level.graph.n_nodes for level in aggregate_graph(planted, 5, n_groups=150, max_levels=1)] == counts[:1]


def test_default_number_of_groups_suits_the_clusters(planted: sp.csr_array) -> None:
    assert aggregate_graph(planted, 450) == []  # 2 · 10 · 450 groups are wanted
    assert aggregate_graph(planted, 5)[-1].graph.n_nodes <= 2000
    assert aggregate_graph(planted, 400)[-1].graph.n_nodes <= 8000


def test_a_small_graph_or_one_that_cannot_be_gathered_has_no_levels(planted: sp.csr_array) -> None:
    assert aggregate_graph(planted, 5, n_groups=9000) == []
    assert aggregate_graph(np.ones((3, 3)), 2) == []
    assert aggregate_graph(sp.eye_array(100, format="csr"), 2, n_groups=10) == []


# --- sameness ------------------------------------------------------------------------------------------------------------


def test_equal_bits_for_any_number_of_threads(rng: np.random.Generator) -> None:
    matrix, _ = problems.planted_graph(rng, [3000, 2500, 2000, 1500], degree=6.0)
    graph = Graph.from_matrix(matrix)
    one = tuple(aggregate_graph(graph, 4, n_groups=200, n_jobs=1))
    assert len(one) > 1
    for jobs in (1, 2, 3, None):
        checks.same_bits(one, tuple(aggregate_graph(graph, 4, n_groups=200, n_jobs=jobs)))


def test_scaling_all_weights_changes_no_group(rng: np.random.Generator) -> None:
    matrix, _ = problems.planted_graph(rng, [1500, 1500, 500], degree=6.0)
    plain, scaled = (aggregate_graph(matrix * factor, 3, n_groups=200) for factor in (1.0, 2.0**-30))
    for one, other in zip(plain, scaled, strict=True):
        checks.same_bits(one.groups, other.groups)
        checks.same_bits(one.graph.weights * 2.0**-30, other.graph.weights)


def test_single_precision_and_wide_indices_give_the_same_groups(rng: np.random.Generator) -> None:
    matrix, _ = problems.planted_graph(rng, [1500, 1500, 500], degree=6.0, loops=True)
    single = matrix.astype(np.float32)
    wide = single.astype(np.float64)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    kept = single.copy()
    one, other = (tuple(aggregate_graph(m, 3, n_groups=200)) for m in (single, wide))
    checks.same_bits(one, other)
    checks.same_bits(single, kept)


# --- arguments -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters must be at least 1"),
        ({"n_clusters": 1.5}, TypeError, "n_clusters must be an integer"),
        ({"groups_per_cluster": 0}, ValueError, "groups_per_cluster must be a finite number above 0"),
        ({"n_groups": 0}, ValueError, "n_groups must be at least 1"),
        ({"max_levels": 0}, ValueError, "max_levels must be at least 1"),
        ({"sizes": [1.0]}, ValueError, r"sizes must be one number per node: expected shape \(3,\), got \(1,\)"),
        ({"sizes": [1.0, -1.0, 1.0]}, ValueError, "sizes must be finite and not negative"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ],
)
def test_wrong_arguments_are_refused(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        aggregate_graph(np.ones((3, 3)), **{"n_clusters": 2, **settings})


def test_groups_out_of_range_are_refused() -> None:
    graph = Graph.from_matrix(np.ones((3, 3)))
    with pytest.raises(ValueError, match="a group number is out of range"):
        WeightedGraph.of(graph).contract(np.array([0, -1, 1], dtype=np.int32))
