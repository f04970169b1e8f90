"""The kernel of a graph: K = D⁻¹AD⁻¹ + σD⁻¹, W = D, and what the shift and the unit of the weights do to it."""

from __future__ import annotations

import dataclasses
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import Graph, KernelView, sample_seeds
from corecut.kernel import auto_shift


def test_view_is_the_dense_kernel(problem: problems.Problem) -> None:
    view = problem.view
    K = view.to_matrix().toarray()
    np.testing.assert_allclose(K, problem.K, rtol=1e-13, atol=1e-300)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(view.diagonal, np.diag(problem.K), rtol=1e-13)
    np.testing.assert_allclose(view.weights, problem.w, rtol=1e-13)


@given(problems.adjacency_matrices(edges=True), st.sampled_from([0.0, 0.3, 1.0]))
def test_graph_kernel_by_definition(A: np.ndarray, shift: float) -> None:
    for dtype in (np.float32, np.float64):
        problem = problems.graph_problem(A, shift, dtype=dtype)
        np.testing.assert_allclose(problem.view.to_matrix().toarray(), problem.K, rtol=1e-13)
        # Only WK matters; it must be D·K of the definition whatever unit the view measures weights in.
        K, degrees = twins.graph_kernel(A, shift)
        np.testing.assert_allclose(problem.view.weights[:, None] * problem.K, degrees[:, None] * K, rtol=1e-13)


@given(problems.adjacency_matrices(min_nodes=2, edges=True), st.data())
def test_restriction_is_the_principal_submatrix(A: np.ndarray, data: st.DataObject) -> None:
    problem = problems.graph_problem(A, data.draw(st.sampled_from([0.0, 0.5])))
    nodes = np.array(sorted(data.draw(st.sets(st.integers(0, len(A) - 1), min_size=1))))
    np.testing.assert_allclose(problem.view.restrict(nodes).toarray(), problem.K[np.ix_(nodes, nodes)], rtol=1e-13)


def test_restriction_leaves_the_graph_alone(problem: problems.Problem) -> None:
    before = problem.view.graph.adjacency.copy()
    problem.view.restrict(np.arange(problem.n))
    checks.same_bits(before, problem.view.graph.adjacency)


def test_general_kernel_is_used_as_it_is(rng: np.random.Generator) -> None:
    K, w = problems.random_kernel(rng, 20), rng.uniform(0, 2, 20)
    csr = sp.csr_array(K)
    view = KernelView.from_matrix(csr, weights=w)
    assert view.graph.weights is csr.data
    assert view.scale is None
    np.testing.assert_array_equal(view.to_matrix().toarray(), K)
    np.testing.assert_array_equal(view.weights, w)
    np.testing.assert_array_equal(KernelView.from_matrix(csr).weights, 1.0)


# --- the shift -----------------------------------------------------------------------------------------------------------


@given(problems.adjacency_matrices(edges=True))
def test_shift_one_makes_every_graph_kernel_positive_semi_definite(A: np.ndarray) -> None:
    view = KernelView.from_graph(A, shift=1.0)
    root = np.sqrt(view.weights)
    assert np.linalg.eigvalsh(root[:, None] * view.to_matrix().toarray() * root[None, :])[0] > -1e-12


@given(problems.adjacency_matrices(edges=True), st.sampled_from([0.25, 1.0, 2.0]))
def test_shift_adds_its_share_to_the_diagonal_only(A: np.ndarray, shift: float) -> None:
    plain, shifted = KernelView.from_graph(A, shift=0.0), KernelView.from_graph(A, shift=shift)
    positive = A.any(axis=1)
    extra = np.zeros(len(A))
    extra[positive] = shift / plain.weights[positive]
    np.testing.assert_allclose(shifted.diagonal, plain.diagonal + extra, rtol=1e-14)
    np.testing.assert_array_equal(shifted.scale, plain.scale)
    np.testing.assert_array_equal(shifted.weights, plain.weights)
    assert shifted.shift == shift


def test_no_shift_where_every_node_has_a_loop(rng: np.random.Generator) -> None:
    assert auto_shift(Graph.from_matrix(problems.random_adjacency(rng, 12, loops=1.0))) == 0.0
    # An isolated node has no loop and needs none.
    A = problems.random_adjacency(rng, 12, loops=1.0, isolated=3)
    assert auto_shift(Graph.from_matrix(A)) == 0.0
    assert auto_shift(Graph.from_matrix(np.zeros((3, 3)))) == 0.0


def test_automatic_shift_of_a_regular_graph_is_twice_an_edges_share() -> None:
    cycle = np.roll(np.eye(10), 1, axis=0)
    A = cycle + cycle.T + np.roll(cycle, 1, axis=0) + np.roll(cycle, 1, axis=0).T
    assert auto_shift(Graph.from_matrix(A)) == pytest.approx(2 / 4)
    assert sample_seeds(A, 10, random_state=0).n_clipped == 0


@given(problems.adjacency_matrices(edges=True), st.sampled_from([1e-200, 0.3, 1e200]))
def test_automatic_shift_is_scale_free_and_at_most_one(A: np.ndarray, factor: float) -> None:
    shift = auto_shift(Graph.from_matrix(A))
    assert 0 <= shift <= 1
    assert auto_shift(Graph.from_matrix(A * factor)) == shift
    assert KernelView.from_graph(A).shift == shift


# --- the unit of the weights ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [4.0**-300, 2.0**-999, 0.5, 8.0, 2.0**999, 4.0**300])
def test_scaling_by_a_power_of_two_changes_no_bit_of_the_problem(factor: float, rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 30, loops=0.5)
    one, other = KernelView.from_graph(A), KernelView.from_graph(A * factor)
    # The view's own unit may move by a power of two; the products w·K must not.
    np.testing.assert_array_equal(one.weights * one.diagonal, other.weights * other.diagonal)
    K, scaled = one.to_matrix().toarray(), other.to_matrix().toarray()
    np.testing.assert_array_equal(one.weights[:, None] * K, other.weights[:, None] * scaled)


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e-5, 1e200, 1e300])
def test_extreme_scaling_changes_the_problem_by_rounding_only(factor: float, rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 30, loops=0.5)
    one, other = KernelView.from_graph(A), KernelView.from_graph(A * factor)
    assert 1e-3 < other.weights.mean() < 1e3
    K, scaled = one.to_matrix().toarray(), other.to_matrix().toarray()
    np.testing.assert_allclose(other.weights[:, None] * scaled, one.weights[:, None] * K, rtol=1e-12)


# --- what is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shift", "error"),
    [
        (-0.1, ValueError),
        (np.nan, ValueError),
        (np.inf, ValueError),
        ("large", TypeError),
        (None, TypeError),
        (True, TypeError),
    ],
)
def test_wrong_shifts_are_refused(shift: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="shift must be a"):
        KernelView.from_graph(np.ones((3, 3)), shift=shift)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, 2.0], r"expected shape \(3,\), got \(2,\)"),
        ([[1.0, 2.0, 3.0]], "one number per node"),
        ([1.0, -1.0, 1.0], "finite and not negative"),
        ([1.0, np.nan, 1.0], "finite and not negative"),
        ([1.0, np.inf, 1.0], "finite and not negative"),
        ([0.0, 0.0, 0.0], "must not all be zero"),
    ],
)
def test_wrong_weights_are_refused(weights: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        KernelView.from_matrix(np.ones((3, 3)), weights=weights)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("weights", np.ones(2), r"weights must be one number per point: expected shape \(3,\), got \(2,\)"),
        ("weights", None, r"weights must be one number per point: expected shape \(3,\), got \(\)"),
        ("weights", np.array([1.0, -1.0, 1.0]), "weights must be finite and not negative"),
        ("weights", np.array([1.0, np.inf, 1.0]), "weights must be finite and not negative"),
        ("scale", np.array([1.0, np.nan, 1.0]), "scale must have no NaN, got one at point 1"),
        ("scale", np.ones(4), "scale must be one number per point"),
        ("diagonal", np.array([1.0, 1.0, np.nan]), "diagonal must have no NaN, got one at point 2"),
    ],
)
def test_views_of_wrong_arrays_are_refused(name: str, value: Any, words: str) -> None:
    view = KernelView.from_graph(np.ones((3, 3)))
    with pytest.raises(ValueError, match=words):
        dataclasses.replace(view, **{name: value})


def test_kernels_with_negative_entries_are_refused() -> None:
    with pytest.raises(ValueError, match="negative weight"):
        KernelView.from_matrix(np.array([[1.0, -0.5], [-0.5, 1.0]]))
