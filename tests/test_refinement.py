"""Refinement: in exact arithmetic it never raises the objective, ends where no allowed move lowers it, and keeps its bounds."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import Graph, make_sbm, normalized_cut, refine_partition
from corecut.objective import Objective
from corecut.refinement import Refinement, refine_weighted
from corecut.weighted import WeightedGraph

# What a move must gain, and what rounding may add to or take from a change of the objective.
LEAST, ROUNDING = Fraction(1, 10**12), Fraction(1, 10**14)


class Case(NamedTuple):
    """A partition of a small graph, with everything that refinement takes into account."""

    A: np.ndarray
    labels: np.ndarray
    k: int
    sizes: np.ndarray
    fee: float
    smallest: float
    largest: float

    @property
    def objective(self) -> Objective:
        return Objective(self.fee, self.smallest, self.largest)

    def refine(self, labels: Any = None, **settings: Any) -> Refinement:
        start = self.labels if labels is None else labels
        level = WeightedGraph(Graph.from_matrix(self.A), self.sizes)
        return refine_weighted(level, start.astype(np.int32), self.objective, self.k, **settings)

    def exact(self, labels: np.ndarray) -> Fraction:
        return twins.exact_objective(self.A, labels, self.k, self.fee)

    def allowed_moves(self, labels: np.ndarray) -> list[tuple[int, int]]:
        return list(twins.allowed_moves(self.A, labels, self.sizes, smallest=self.smallest, largest=self.largest))

    def outside(self, labels: np.ndarray) -> float:
        return twins.outside(np.bincount(labels, self.sizes, minlength=self.k), self.smallest, self.largest)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw graphs with self-loops, isolated nodes and components; empty clusters; sizes, a fee and bounds."""
    A = draw(problems.adjacency_matrices(min_nodes=2))
    n, k = len(A), draw(st.integers(1, 4))
    labels = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    sizes = draw(st.one_of(st.just([1.0] * n), st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0]), min_size=n, max_size=n)))
    fee = draw(st.sampled_from([0.0, 0.0, 0.25, 1.0, 12.0]))
    smallest = draw(st.sampled_from([0.0, 0.0, 1.0, 2.0, 4.0]))
    largest = draw(st.sampled_from([np.inf, np.inf, 4.0, 6.0, 9.0]))
    return Case(A, np.array(labels), k, np.array(sizes), fee, smallest, largest)


def planted(rng: np.random.Generator, *, unit: bool) -> tuple[sp.csr_array, np.ndarray]:
    """Return a graph of more than three batches of nodes, and labels of which half are wrong."""
    graph, truth = problems.planted_graph(rng, [2000, 1500, 1500, 1000, 900, 600], degree=8.0)
    if unit:
        graph.data = np.ones_like(graph.data)
    return graph, np.where(rng.random(truth.size) < 0.5, rng.integers(6, size=truth.size), truth)


def exact_plain_cut(graph: sp.csr_array, labels: np.ndarray, k: int) -> Fraction:
    """Return the plain objective of a graph with integer weights: its sums are exact."""
    entries = graph.tocoo()
    rows, columns = entries.coords
    same = labels[rows] == labels[columns]
    association = np.bincount(labels[rows][same], entries.data[same], minlength=k)
    volume = np.bincount(labels[rows], entries.data, minlength=k)
    return twins.objective_of_sums(association.tolist(), volume.tolist())


# --- small graphs, exactly -----------------------------------------------------------------------------------------------


@given(cases())
def test_never_raises_the_objective(case: Case) -> None:
    found = case.refine()
    before, after = case.exact(case.labels), case.exact(found.labels)
    assert after <= before - found.n_moves * (LEAST - ROUNDING)
    assert found.objective_before == pytest.approx(float(before), rel=1e-13, abs=1e-13)
    assert found.objective == pytest.approx(float(after), rel=1e-13, abs=1e-13)
    assert found.converged
    assert (found.n_moves == 0) == np.array_equal(found.labels, case.labels)


@given(cases())
def test_no_pass_raises_the_objective(case: Case) -> None:
    last = case.exact(case.labels)
    for passes in range(4):
        found = case.refine(max_passes=passes)
        assert found.n_passes <= passes
        now = case.exact(found.labels)
        assert now <= last
        last = now


@given(cases())
def test_second_call_makes_no_move(case: Case) -> None:
    first = case.refine()
    second = case.refine(first.labels)
    assert second.n_moves == 0
    assert second.n_passes == 1
    assert second.converged
    assert second.objective == second.objective_before == first.objective
    np.testing.assert_array_equal(second.labels, first.labels)


@given(cases())
def test_no_allowed_move_is_left(case: Case) -> None:
    labels = case.refine().labels
    here = case.exact(labels)
    for x, j in case.allowed_moves(labels):
        moved = labels.copy()
        moved[x] = j
        assert case.exact(moved) >= here - LEAST - ROUNDING


@given(cases())
def test_every_move_is_an_allowed_one(case: Case) -> None:
    # Where the first pass makes exactly one move, that move can be seen.
    found = case.refine(max_passes=1)
    changed = np.flatnonzero(found.labels != case.labels)
    if found.n_moves == 1:
        (x,) = changed.tolist()
        assert (x, found.labels[x]) in case.allowed_moves(case.labels)
    assert changed.size <= found.n_moves


@given(cases())
def test_clusters_stay_and_no_move_leaves_the_bounds(case: Case) -> None:
    found = case.refine()
    checks.valid_labels(found.labels, len(case.A), case.k)
    assert set(found.labels.tolist()) == set(case.labels.tolist())
    assert case.outside(found.labels) <= case.outside(case.labels)
    if np.all(case.sizes == 1):
        before, after = (np.bincount(labels, minlength=case.k) for labels in (case.labels, found.labels))
        for size, now in zip(before.tolist(), after.tolist(), strict=True):
            allowed = twins.outside(np.array([size]), case.smallest, case.largest)
            assert twins.outside(np.array([now]), case.smallest, case.largest) <= allowed, "each cluster for itself"


def test_no_cluster_leaves_its_bounds_for_one_that_comes_back() -> None:
    edges = [(0, 3), (0, 5), (1, 2), (1, 3), (1, 5), (1, 8), (3, 5), (3, 8), (4, 5), (5, 6), (5, 8)]
    A = np.zeros((9, 9))
    for i, j in edges:
        A[i, j] = A[j, i] = 1.0
    found = refine_partition(A, [0, 0, 2, 0, 1, 1, 2, 1, 0], min_cluster_size=3, max_cluster_size=4)
    assert np.bincount(found.labels)[:2].min() >= 3  # the third began with two


@pytest.mark.parametrize("weights", [[1e8, 1e-3, 1e-7, 1e-8], [1e-20, 1.0, 1e20, 1.0], [1.0, 2.0, 3.0, 4.0]])
@pytest.mark.parametrize("settings", [{"max_passes": 1}, {"max_passes": 0}, {"tolerance": 0.5}, {}])
def test_the_objective_is_that_of_the_labels(weights: list[float], settings: dict[str, Any]) -> None:
    A = np.diag(weights, 1) + np.diag(weights, -1)
    found = refine_partition(A, [0, 1, 1, 0, 1], **settings)
    assert found.objective == pytest.approx(normalized_cut(A, found.labels, reduce="sum"), rel=1e-12)


@given(cases(), st.sampled_from([2.0**-40, 0.5, 8.0, 2.0**60]))
def test_scaling_all_weights_changes_nothing(case: Case, factor: float) -> None:
    scaled = case._replace(A=case.A * factor, fee=case.fee * factor)
    checks.same_bits(scaled.refine(), case.refine())
    for balance in (0.0, 0.7):
        one, other = (refine_partition(A, case.labels, balance=balance) for A in (case.A, scaled.A))
        checks.same_bits(one, other)


@given(cases(), st.randoms(use_true_random=False))
def test_objective_does_not_depend_on_names(case: Case, random: Any) -> None:
    nodes, names = list(range(len(case.A))), list(range(case.k))
    random.shuffle(nodes)
    random.shuffle(names)
    renamed = case._replace(A=case.A[np.ix_(nodes, nodes)], labels=np.array(names)[case.labels[nodes]], sizes=case.sizes[nodes])
    assert renamed.exact(renamed.labels) == case.exact(case.labels)
    one, other = case.refine(max_passes=0), renamed.refine(max_passes=0)
    assert one.objective == pytest.approx(other.objective, rel=1e-13)
    cut, renamed_cut = (normalized_cut(c.A, c.labels, n_clusters=c.k, balance=0.5, reduce="sum") for c in (case, renamed))
    assert cut == pytest.approx(renamed_cut, rel=1e-13)


@given(problems.adjacency_matrices(min_nodes=2), st.sampled_from([0.0, 0.02, 0.3, 2.0]), st.data())
def test_objective_is_the_normalised_cut_with_its_fee(A: np.ndarray, balance: float, data: st.DataObject) -> None:
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(A), max_size=len(A))))
    found = refine_partition(A, labels, balance=balance, n_clusters=3)
    settings: Any = {"balance": balance, "n_clusters": 3}
    for partition, value in ((labels, found.objective_before), (found.labels, found.objective)):
        assert value == pytest.approx(normalized_cut(A, partition, reduce="sum", **settings), rel=1e-12, abs=1e-13)
        assert value / 3 == pytest.approx(normalized_cut(A, partition, **settings), rel=1e-12, abs=1e-13)


@given(cases(), st.data())
def test_degrees_need_not_be_row_sums(case: Case, data: st.DataObject) -> None:
    # As in the graph of a coreset, whose degrees are its weights.
    n = len(case.A)
    graph = Graph.from_matrix(case.A)
    factors = np.array(data.draw(st.lists(st.sampled_from([0.5, 1.0, 4.0]), min_size=n, max_size=n)))
    degrees = graph.degrees * factors
    level = WeightedGraph(dataclasses.replace(graph, degrees=degrees), case.sizes)
    found = refine_weighted(level, case.labels.astype(np.int32), case.objective, case.k)
    before, after = (
        twins.exact_objective(case.A, labels, case.k, case.fee, degrees=degrees) for labels in (case.labels, found.labels)
    )
    assert after <= before - found.n_moves * (LEAST - ROUNDING)
    assert found.objective == pytest.approx(float(after), rel=1e-12, abs=1e-12)


def test_every_partition_of_a_small_graph_ends_in_a_local_optimum(rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 7, density=0.5, unit=True)
    ones = np.ones(7)
    best = min(twins.exact_objective(A, labels, 3) for labels in twins.partitions(7, 3))
    ends = set()
    for labels in twins.partitions(7, 3):
        found = refine_partition(A, labels).labels
        here = twins.exact_objective(A, found, 3)
        assert best <= here <= twins.exact_objective(A, labels, 3)
        for x, j in twins.allowed_moves(A, found, ones):
            assert twins.exact_objective(A, np.where(np.arange(7) == x, j, found), 3) >= here - LEAST
        ends.add(here)
    assert best in ends


def test_a_cluster_keeps_its_last_node_and_its_last_volume() -> None:
    path = np.diag([1.0, 1.0, 0.0], 1) + np.diag([1.0, 1.0, 0.0], -1)  # 0 - 1 - 2, and 3 on its own
    # Without node 2 the second cluster would have no volume: one cluster for all would be the better partition.
    assert refine_partition(path, [0, 0, 1, 1]).n_moves == 0
    assert refine_partition(path[:3, :3], [0, 0, 1]).n_moves == 0
    # No fee makes a cluster disappear, either.
    assert refine_partition(path, [0, 0, 1, 1], balance=10.0).n_moves == 0


# --- many batches, many threads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", [0.0, 0.05])
def test_equal_bits_for_any_number_of_threads(balance: float, rng: np.random.Generator) -> None:
    matrix, labels = planted(rng, unit=False)
    graph = Graph.from_matrix(matrix)
    one = refine_partition(graph, labels, balance=balance, n_jobs=1)
    assert one.n_moves > 1000
    assert one.converged
    for jobs in (2, 3, None):
        checks.same_bits(one, refine_partition(graph, labels, balance=balance, n_jobs=jobs))
    again = refine_partition(graph, one.labels, balance=balance)
    assert (again.n_moves, again.objective) == (0, one.objective)


def test_no_pass_over_many_batches_raises_the_objective(rng: np.random.Generator) -> None:
    # Threads propose moves by a state that earlier nodes of the batch then change: exactly here a move could do harm.
    graph, labels = planted(rng, unit=True)
    last, moves = exact_plain_cut(graph, labels, 6), 0
    for passes in range(1, 6):
        found = refine_partition(graph, labels, max_passes=passes)
        now = exact_plain_cut(graph, found.labels, 6)
        assert found.objective == pytest.approx(float(now), rel=1e-12)
        assert now < last if found.n_moves > moves else now == last
        last, moves = now, found.n_moves


def test_repairs_wrong_labels(rng: np.random.Generator) -> None:
    graph, truth = problems.planted_graph(rng, [300, 300, 300], degree=12.0)
    labels = np.where(rng.random(900) < 0.4, rng.integers(3, size=900), truth)
    for balance in (0.0, 0.1):
        found = refine_partition(graph, labels, balance=balance)
        assert np.mean(found.labels == truth) > 0.99
        assert found.objective < found.objective_before


def test_bounds_hold_on_a_large_graph(rng: np.random.Generator) -> None:
    graph, labels = planted(rng, unit=False)
    before = np.bincount(labels)
    free = np.bincount(refine_partition(graph, labels).labels)
    low, high = 950, 1600
    assert free.min() < low  # the bounds matter
    assert free.max() > high
    bound = refine_partition(graph, labels, min_cluster_size=low, max_cluster_size=high)
    after = np.bincount(bound.labels)
    assert bound.n_moves > 1000
    assert twins.outside(after, low, high) <= twins.outside(before, low, high)


def test_single_precision_and_wide_indices_give_the_same_moves(rng: np.random.Generator) -> None:
    graph, labels = planted(rng, unit=False)
    single = graph.astype(np.float32)
    wide = sp.csr_array(single.astype(np.float64))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    checks.same_bits(refine_partition(single, labels), refine_partition(wide, labels))


# --- arguments -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_the_labels_that_come_in_are_not_changed(dtype: type, rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 30, loops=0.2)
    labels = rng.integers(4, size=30).astype(dtype)
    kept = labels.copy()
    labels.flags.writeable = False
    found = refine_partition(A, labels, balance=0.1)
    assert found.n_moves > 0
    checks.same_bits(labels, kept)
    checks.valid_labels(found.labels, 30, 4)
    assert found.labels.flags.writeable
    np.testing.assert_array_equal(refine_partition(A, labels.tolist(), balance=0.1).labels, found.labels)


def test_no_passes_mean_no_change(rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 30)
    labels = rng.integers(4, size=30)
    found = refine_partition(A, labels, max_passes=0)
    assert (found.n_moves, found.n_passes, found.converged) == (0, 0, False)
    assert found.objective == found.objective_before
    np.testing.assert_array_equal(found.labels, labels)


def test_tolerance_ends_refinement_early(rng: np.random.Generator) -> None:
    graph, labels = planted(rng, unit=False)
    passes = [refine_partition(graph, labels, max_passes=count).objective for count in range(4)]
    falls = [before / after - 1.0 for before, after in pairwise(passes)]
    # The first pass lowers F by much, later ones by less and less.
    assert falls[0] > falls[1] > falls[2] > 0
    found = refine_partition(graph, labels, tolerance=falls[1] + 1e-3)
    assert (found.n_passes, found.converged) == (2, False)
    assert found.objective == passes[2]
    assert refine_partition(graph, labels, tolerance=0.0).converged


def test_empty_clusters_stay_empty_and_count(rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 12)
    labels = rng.integers(2, size=12)
    plain, more = refine_partition(A, labels), refine_partition(A, labels, n_clusters=5)
    np.testing.assert_array_equal(plain.labels, more.labels)
    assert more.objective == pytest.approx(plain.objective + 3)


@pytest.mark.parametrize("names", [np.array([3, 7, 20]), np.array(["x", "y", "zz"]), np.array([1.0, 2.0, 5.0])])
def test_any_labels_are_taken_and_kept(names: np.ndarray, rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 30)
    labels = np.concatenate([[0, 1, 2], rng.integers(3, size=27)])
    plain = refine_partition(A, labels)
    called = refine_partition(A, names[labels])
    np.testing.assert_array_equal(called.labels, names[plain.labels])
    np.testing.assert_array_equal(refine_partition(A, names[labels].tolist()).labels, names[plain.labels])
    assert (called.objective, called.n_moves) == (plain.objective, plain.n_moves)
    assert normalized_cut(A, called.labels) == normalized_cut(A, plain.labels)


def test_a_graph_without_edges_is_left_alone() -> None:
    found = refine_partition(np.zeros((3, 3)), [0, 1, 1], balance=1.0)
    assert (found.n_moves, found.objective, found.converged) == (0, 2.0, True)


@pytest.mark.parametrize(
    ("labels", "settings", "error", "words"),
    [
        ([0, 1], {}, ValueError, r"labels must be one label per node: expected shape \(3,\), got \(2,\)"),
        ([0, -1, 0], {}, ValueError, "labels must not be negative, got -1 at node 1"),
        ([0.5, 1.0, 0.0], {}, ValueError, "labels must be whole numbers or text"),
        ([0.0, 1.0, 0.0], {"n_clusters": 2}, TypeError, "labels must be integers"),
        ([0, 1, 1], {"n_clusters": 1}, ValueError, "n_clusters=1 is below the largest label plus one, 2"),
        ([0, 1, 1], {"n_clusters": 2**40}, ValueError, "n_clusters=1099511627776 is far more than 3 nodes can fill"),
        ([0, 1, 1], {"balance": -1.0}, ValueError, "balance must be a finite number not below 0, got -1"),
        ([0, 1, 1], {"balance": "auto"}, TypeError, "balance must be a number, got 'auto'"),
        ([0, 1, 1], {"max_passes": -1}, ValueError, "max_passes must be at least 0"),
        ([0, 1, 1], {"tolerance": -0.1}, ValueError, "tolerance must be a finite number not below 0"),
        ([0, 1, 1], {"min_cluster_size": -1}, ValueError, "min_cluster_size must be"),
        ([0, 1, 1], {"max_cluster_size": 0}, ValueError, "max_cluster_size must be"),
        ([0, 1, 1], {"min_cluster_size": 3, "max_cluster_size": 2}, ValueError, "min_cluster_size=3 is above max"),
        ([0, 1, 1], {"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ],
)
def test_wrong_arguments_are_refused(labels: Any, settings: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        refine_partition(np.ones((3, 3)), labels, **settings)


@pytest.mark.parametrize(("factor", "nodes"), [(1.04, 31), (1.0, 30), (1.2, 36)])
def test_bounds_are_factors_of_the_mean_as_well(factor, nodes):
    graph, labels = make_sbm(30, 3, 0.5, 0.05, random_state=0)[0], np.arange(90) % 3
    by_factor = refine_partition(graph, labels, max_cluster_size=factor)
    assert by_factor.n_moves > 0 or nodes == 30
    np.testing.assert_array_equal(by_factor.labels, refine_partition(graph, labels, max_cluster_size=nodes).labels)
    floor = refine_partition(graph, labels, min_cluster_size=2 - factor).labels
    np.testing.assert_array_equal(floor, refine_partition(graph, labels, min_cluster_size=math.ceil((2 - factor) * 30)).labels)
