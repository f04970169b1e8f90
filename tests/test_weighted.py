"""Graphs whose nodes stand for several: contraction and restriction are exact, and nodes without edges are nobody."""

from __future__ import annotations

import dataclasses

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st
from scipy.linalg import block_diag

from corecut import Graph
from corecut.weighted import WeightedGraph, sums_by


def grouping(data: st.DataObject, n: int, most: int = 4) -> np.ndarray:
    """Draw groups that are numbered without gaps."""
    drawn = data.draw(st.lists(st.integers(0, most - 1), min_size=n, max_size=n))
    return np.unique(drawn, return_inverse=True)[1].astype(np.int32)


@given(problems.adjacency_matrices())
def test_nodes_stand_for_themselves_and_those_without_edges_for_nobody(A: np.ndarray) -> None:
    level = WeightedGraph.of(Graph.from_matrix(A))
    np.testing.assert_array_equal(level.sizes, A.any(axis=1))
    assert level.n_nodes == len(A)


@given(problems.adjacency_matrices(), st.data())
def test_a_contraction_is_the_quotient_exactly(A: np.ndarray, data: st.DataObject) -> None:
    # Weights are sums of powers of two: equal means equal.
    n = len(A)
    groups = grouping(data, n)
    sizes = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 3.0]), min_size=n, max_size=n)))
    level = WeightedGraph(Graph.from_matrix(A), sizes).contract(groups)
    member = twins.membership(groups, groups.max() + 1)
    Q = member.T @ A @ member
    np.testing.assert_array_equal(level.graph.adjacency.toarray(), Q)
    np.testing.assert_array_equal(level.graph.degrees, Q.sum(axis=1))
    np.testing.assert_array_equal(np.zeros(len(Q)) if level.graph.diagonal is None else level.graph.diagonal, np.diag(Q))
    np.testing.assert_array_equal(level.sizes, member.T @ sizes)


@given(problems.adjacency_matrices(), st.data())
def test_contracting_twice_is_contracting_once(A: np.ndarray, data: st.DataObject) -> None:
    whole = WeightedGraph.of(Graph.from_matrix(A))
    fine = grouping(data, len(A), 6)
    coarse = grouping(data, int(fine.max()) + 1, 3)
    checks.same_bits(whole.contract(fine).contract(coarse), whole.contract(coarse[fine]))


@given(problems.adjacency_matrices(), st.data())
def test_every_partition_of_a_contraction_has_the_objective_of_the_graph(A: np.ndarray, data: st.DataObject) -> None:
    groups = grouping(data, len(A))
    small = WeightedGraph.of(Graph.from_matrix(A)).contract(groups)
    labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=small.n_nodes, max_size=small.n_nodes)))
    Q = small.graph.adjacency.toarray()
    for fee in (0.0, 0.75):
        assert twins.exact_objective(Q, labels, 3, fee) == twins.exact_objective(A, labels[groups], 3, fee)


def test_degrees_that_are_no_row_sums_add_up(rng: np.random.Generator) -> None:
    # As in the graph of a coreset.
    A = problems.random_adjacency(rng, 20, loops=0.3)
    graph = dataclasses.replace(Graph.from_matrix(A), degrees=rng.uniform(1.0, 2.0, 20))
    groups = rng.integers(5, size=20).astype(np.int32)
    groups[:5] = np.arange(5)
    level = WeightedGraph(graph, np.ones(20)).contract(groups)
    np.testing.assert_allclose(level.graph.degrees, np.bincount(groups, graph.degrees), rtol=1e-15)
    np.testing.assert_allclose(level.graph.adjacency.sum(axis=1), np.bincount(groups, A.sum(axis=1)), rtol=1e-13)


def test_a_restriction_to_components_keeps_rows_degrees_and_sizes(rng: np.random.Generator) -> None:
    blocks = [problems.random_adjacency(rng, n, density=0.8, loops=0.5) for n in (6, 4, 5)]
    A = block_diag(*blocks)
    sizes = rng.integers(1, 5, size=15).astype(float)
    degrees = rng.uniform(1.0, 2.0, 15)
    level = WeightedGraph(dataclasses.replace(Graph.from_matrix(A), degrees=degrees), sizes)
    keep = np.repeat([True, False, True], [6, 4, 5])
    part = level.restrict(keep)
    np.testing.assert_array_equal(part.graph.adjacency.toarray(), block_diag(blocks[0], blocks[2]))
    np.testing.assert_array_equal(part.graph.degrees, degrees[keep])
    np.testing.assert_array_equal(part.sizes, sizes[keep])
    assert part.graph.diagonal is not None
    np.testing.assert_array_equal(part.graph.diagonal, np.diag(A)[keep])
    assert level.restrict(np.ones(15, bool)) is level


def test_nodes_without_edges_are_nobody_on_every_level(rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [30, 30])
    level = WeightedGraph.of(Graph.from_matrix(sp.block_diag([graph, sp.csr_array((40, 40))], format="csr")))
    lonely = level.graph.isolated
    assert level.sizes.sum() == 100 - np.count_nonzero(lonely)
    groups = np.where(lonely, 2, np.arange(100) % 2).astype(np.int32)
    assert level.contract(groups).sizes[2] == 0.0
    assert level.restrict(~lonely).sizes.tolist() == [1.0] * int(level.sizes.sum())


def test_sums_of_labels_that_do_not_occur_are_zero() -> None:
    found = sums_by(np.array([2, 0, 2], np.int32), np.array([0.5, 1.0, 2.0]), 5)
    assert found.tolist() == [1.0, 0.0, 2.5, 0.0, 0.0]


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_equal_bits_for_any_number_of_threads(jobs: int, rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [3000, 2000])
    level = WeightedGraph.of(Graph.from_matrix(graph))
    groups = rng.integers(300, size=5000).astype(np.int32)
    checks.same_bits(level.contract(groups, n_jobs=1), level.contract(groups, n_jobs=jobs))
