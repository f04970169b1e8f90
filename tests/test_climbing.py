"""Chains of moves: they never raise the objective, stay within bounds, and find what no single move can."""

from __future__ import annotations

from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.linalg
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import Graph, _core, make_sbm
from corecut.objective import Objective
from corecut.refinement import bring_into_bounds, climb_weighted, refine_weighted
from corecut.weighted import WeightedGraph


def level_of(A: Any, sizes: np.ndarray | None = None) -> WeightedGraph:
    graph = A if isinstance(A, Graph) else Graph.from_matrix(A)
    return WeightedGraph(graph, np.ones(graph.n_nodes) if sizes is None else sizes)


def path(n: int) -> sp.csr_array:
    return sp.csr_array(sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1]))


def grid(rows: int, columns: int) -> sp.csr_array:
    return sp.csr_array(sp.kron(sp.eye_array(rows), path(columns)) + sp.kron(path(rows), sp.eye_array(columns)))


@given(
    problems.adjacency_matrices(min_nodes=2),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.25, 2.0]),
    st.sampled_from([(0.0, np.inf), (1.0, np.inf), (2.0, 4.0), (0.0, 3.0)]),
    st.data(),
)
def test_never_raises_the_objective_nor_leaves_the_bounds_further(
    A: np.ndarray, k: int, fee: float, bounds: tuple[float, float], data: st.DataObject
) -> None:
    n = len(A)
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    sizes = np.array(
        data.draw(st.one_of(st.just([1.0] * n), st.lists(st.sampled_from([0.0, 1.0, 3.0]), min_size=n, max_size=n)))
    )
    climbed, value = climb_weighted(
        level_of(A, sizes), labels.astype(np.int32), Objective(fee, *bounds), k, seed=data.draw(st.integers(0, 9))
    )
    checks.valid_labels(climbed, n, k)
    before, after = (twins.exact_objective(A, one, k, fee) for one in (labels, climbed))
    strained, relaxed = (twins.outside(np.bincount(one, sizes, minlength=k), *bounds) for one in (labels, climbed))
    assert value == pytest.approx(float(after), rel=1e-11, abs=1e-11)
    assert relaxed <= strained
    # F may rise for the sake of the bounds alone.
    if relaxed == strained:
        assert after <= before
    assert set(labels.tolist()) == set(climbed.tolist()), "no cluster loses its last node, none comes into being"


def test_bounds_come_before_the_objective() -> None:
    # Two cliques, and a bound that the first does not keep: a node must go, whatever it costs.
    A = sp.block_diag([np.ones((6, 6)), np.ones((4, 4))]).toarray()
    A[5, 6] = A[6, 5] = 1.0
    labels = np.repeat([0, 1], [6, 4]).astype(np.int32)
    climbed, _ = climb_weighted(level_of(A), labels, Objective(0.0, 0.0, 5.0), 2)
    assert np.bincount(climbed).tolist() == [5, 5]


@pytest.mark.parametrize("seed", range(20))
def test_entries_on_one_side_only_do_no_harm(seed: int) -> None:
    # What a node sees of its neighbours is kept up to date by their rows, which may name nodes whose rows do not name them.
    rng = np.random.default_rng(seed)
    A = sp.csr_array(sp.random(60, 60, 0.05, random_state=seed, data_rvs=lambda count: rng.uniform(0.5, 2.0, count)))
    graph, k = Graph.from_matrix(A, check="none"), 7
    labels = rng.integers(k, size=60).astype(np.int32)
    climbed, _ = climb_weighted(level_of(graph), labels, Objective(0.5), k, seed=seed, patience=100)
    checks.valid_labels(climbed, 60, k)


@pytest.mark.parametrize("seed", range(5))
def test_same_labels_for_the_same_seed(seed: int) -> None:
    graph, truth = problems.planted_graph(np.random.default_rng(seed), [60] * 4, degree=8.0, mixing=0.4)
    start = np.random.default_rng(seed).integers(4, size=truth.size).astype(np.int32)
    kept = start.copy()
    one, other = (climb_weighted(level_of(graph), start, Objective(), 4, seed=seed) for _ in range(2))
    checks.same_bits(one, other)
    np.testing.assert_array_equal(start, kept)


def full_at(size: float, where: str) -> Objective:
    """Return bounds at which clusters of a size are full."""
    return Objective(0.0, 0.0 if where == "above" else size, np.inf if where == "below" else size)


FULL = ["above", "below", "on both sides"]


@pytest.mark.parametrize("full", FULL)
def test_full_clusters_swap_nodes(full: str) -> None:
    # Two rings, each node joined to the next two on either side. One node of each is in the other's cluster.
    ring = scipy.linalg.circulant(np.isin(np.arange(40), [1, 2, 38, 39]).astype(float))
    A = scipy.linalg.block_diag(ring, ring)
    A[0, 40] = A[40, 0] = 0.5
    truth = np.repeat([0, 1], 40).astype(np.int32)
    labels = truth.copy()
    labels[[0, 40]] = 1, 0
    level, objective = level_of(A), full_at(40.0, full)
    assert refine_weighted(level, labels, objective, 2).n_moves == 0, "no single move is allowed"
    found = [climb_weighted(level, labels, objective, 2, seed=seed)[0] for seed in range(20)]
    assert all(np.bincount(one).tolist() == [40, 40] for one in found)
    assert any(np.array_equal(one, truth) for one in found)
    for seed in range(20):  # where they are not full, single moves do it, and a search finds them
        np.testing.assert_array_equal(climb_weighted(level, labels, Objective(), 2, seed=seed)[0], truth)


@pytest.mark.parametrize("full", FULL)
@pytest.mark.parametrize("k", [2, 5])
def test_misplaced_nodes_of_full_clusters_come_home(k: int, full: str) -> None:
    objective = full_at(60.0, full)
    better = 0
    for seed in range(10):
        graph, truth = problems.planted_graph(np.random.default_rng(seed), [60] * k, degree=12.0, mixing=0.05)
        labels = truth.copy()
        labels[5::60] = (np.arange(k) + 1) % k
        level = level_of(graph)
        stuck = refine_weighted(level, labels.astype(np.int32), objective, k)
        climbed, value = climb_weighted(level, stuck.labels, objective, k)
        assert np.bincount(climbed).tolist() == [60] * k
        better += value < stuck.objective - 1e-6
    assert better >= 6


@pytest.mark.parametrize("room", [np.inf, 3.0])
@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0])
def test_a_ragged_border_of_a_grid_is_smoothed(slope: float, room: float) -> None:
    side = 24
    rows, columns = np.divmod(np.arange(side * side), side)
    ragged = np.random.default_rng(0).integers(-4, 5, size=side)[rows] if slope == 0 else slope * (rows - side / 2)
    half = side * side / 2
    objective = Objective(0.0, max(0.0, half - room), half + room)
    level = level_of(grid(side, side))
    labels = bring_into_bounds(level, (columns + ragged >= side / 2).astype(np.int32), objective, 2)
    single = refine_weighted(level, labels, objective, 2)
    optimum = 2 * side / (side * side * 2 - 2 * side)
    assert single.objective > 1.3 * optimum, "single moves do not straighten it"
    ends = [climb_weighted(level, single.labels, objective, 2, seed=seed, passes=50.0)[1] for seed in range(3)]
    assert max(ends) < single.objective
    if room == np.inf:
        assert min(ends) <= 1.05 * optimum


def test_searches_go_beyond_what_single_moves_find() -> None:
    better = 0
    for seed in range(10):
        graph, _ = make_sbm(40, 4, 0.25, 0.08, random_state=seed)
        level = level_of(graph)
        start = np.random.default_rng(seed).integers(4, size=160).astype(np.int32)
        single = refine_weighted(level, start, Objective(), 4)
        _, value = climb_weighted(level, single.labels, Objective(), 4, passes=20.0)
        assert value <= single.objective
        better += value < single.objective - 1e-9
    assert better >= 5


def test_the_work_is_limited() -> None:
    graph, truth = problems.planted_graph(np.random.default_rng(0), [500] * 4, degree=8.0, mixing=0.4)
    checked = Graph.from_matrix(graph)
    start = np.random.default_rng(0).integers(4, size=truth.size).astype(np.int32)

    def climb(work: int, rounds: int = 10) -> tuple[np.ndarray, int, float]:
        labels = start.copy()
        moves, made, before, after = _core.climb(
            matrix=checked.matrix,
            degrees=checked.degrees,
            sizes=np.ones(checked.n_nodes),
            labels=labels,
            k=4,
            objective=Objective().native,
            max_rounds=rounds,
            patience=30,
            work=work,
            tolerance=0.0,
            seed=0,
        )
        assert after <= before
        assert (moves > 0) == bool(np.any(labels != start))
        return labels, made, after

    nothing, rounds, _ = climb(0)
    assert rounds == 0
    np.testing.assert_array_equal(nothing, start)
    np.testing.assert_array_equal(climb(10**9, rounds=0)[0], start)
    ends = [climb(passes * checked.n_entries)[2] for passes in (2, 10, 10_000)]
    assert ends[0] > ends[1] > ends[2]
    assert climb(10**9, rounds=1)[1] == 1


def test_nothing_to_climb() -> None:
    # One cluster, clusters without an edge between them, and no edges at all.
    for A, labels, k in (
        (np.ones((5, 5)), np.zeros(5), 1),
        (np.kron(np.eye(2), np.ones((3, 3))), np.repeat([0, 1], 3), 2),
        (np.zeros((4, 4)), np.arange(4) % 2, 2),
    ):
        climbed, _ = climb_weighted(level_of(A), labels.astype(np.int32), Objective(), k)
        np.testing.assert_array_equal(climbed, labels)


def test_labels_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="a label is not below the number of clusters"):
        climb_weighted(level_of(np.ones((3, 3))), np.array([0, 1, 2], np.int32), Objective(), 2)
