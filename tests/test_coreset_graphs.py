"""The coreset graph: A_H = W_H K(V') W_H, with degrees W_H or its row sums."""

from __future__ import annotations

from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins

from corecut import Coreset, KernelView, build_coreset, coreset_graph, sample_seeds
from corecut.coreset import everything, importance_sample


def some_coreset(problem: problems.Problem, seed: int = 0, draws: int = 5) -> Coreset:
    """Return a coreset of few draws with uneven weights."""
    return importance_sample(problem.view, sample_seeds(problem.view, 2, random_state=seed), draws, random_state=seed)


def test_adjacency_by_definition(problem: problems.Problem) -> None:
    for coreset in (everything(problem.view), *(some_coreset(problem, seed) for seed in range(5))):
        K = problem.K[np.ix_(coreset.indices, coreset.indices)]
        A_H = coreset.weights[:, None] * K * coreset.weights[None, :]
        for degrees in ("weights", "rows"):
            graph = coreset_graph(problem.view, coreset, degrees=degrees)  # type: ignore[arg-type]
            assert graph.n_nodes == coreset.size
            np.testing.assert_allclose(graph.adjacency.toarray(), A_H, rtol=1e-12, atol=1e-15 * A_H.max())
            expected = coreset.weights if degrees == "weights" else A_H.sum(axis=1)
            np.testing.assert_allclose(graph.degrees, expected, rtol=1e-12)


def test_whole_graph_without_shift_is_its_own_coreset_graph(rng: np.random.Generator) -> None:
    # D·D⁻¹AD⁻¹·D = A, and both kinds of degrees are the graph's.
    A = problems.random_adjacency(rng, 20, loops=0.5)
    view = KernelView.from_graph(A, shift=0.0)
    unit = A.sum() / view.weights.sum()
    for degrees in ("weights", "rows"):
        graph = coreset_graph(view, everything(view), degrees=degrees)  # type: ignore[arg-type]
        np.testing.assert_allclose(graph.adjacency.toarray() * unit, A, rtol=1e-12)
        np.testing.assert_allclose(graph.degrees * unit, A.sum(axis=1), rtol=1e-12)


def test_normalised_cut_with_weights_as_degrees_is_the_coresets_cost(problem: problems.Problem) -> None:
    # The equivalence that Theorem 1 rests on; row sums do not have it.
    different = 0
    for seed in range(5):
        coreset = some_coreset(problem, seed, 8)
        K = problem.K[np.ix_(coreset.indices, coreset.indices)]
        by_weights, by_rows = (
            coreset_graph(problem.view, coreset, degrees=degrees)
            for degrees in ("weights", "rows")  # type: ignore[arg-type]
        )
        for labels in twins.partitions(coreset.size, 2):
            cost = twins.trace_cost(K, coreset.weights, labels)
            tolerance = 1e-10 * (coreset.weights @ np.diag(K))
            cut = twins.normalized_cut_objective(by_weights.adjacency.toarray(), by_weights.degrees, labels)
            assert cut == pytest.approx(cost, abs=tolerance)
            cut = twins.normalized_cut_objective(by_rows.adjacency.toarray(), by_rows.degrees, labels)
            different += abs(cut - cost) > 1e3 * tolerance
    assert different > 0


def test_row_sums_are_weights_in_expectation(planted: Any, rng: np.random.Generator) -> None:
    # Σ_y w_H(y) K_xy estimates Σ_y d_y K_xy = 1 for every x (no shift), so row sums estimate w_H(x).
    view, _ = planted
    nodes = rng.choice(view.n_points, 30, replace=False)
    rows = sp.csr_array(view.to_matrix())[nodes]
    np.testing.assert_allclose(rows @ view.weights, 1.0, rtol=1e-12)
    runs = 300
    sums = np.zeros((30, runs))
    for run in range(runs):
        coreset = build_coreset(view, 5, size=400, random_state=rng)
        weights = np.zeros(view.n_points)
        weights[coreset.indices] = coreset.weights
        sums[:, run] = rows @ weights
    error = sums.std(axis=1, ddof=1) / np.sqrt(runs)
    np.testing.assert_array_less(np.abs(sums.mean(axis=1) - 1.0), 5 * error)


def test_node_without_a_neighbour_keeps_its_weight_as_degree() -> None:
    # A path without loops or shift: its two ends share no edge, so that their rows are empty.
    A = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=float)
    view = KernelView.from_graph(A, shift=0.0)
    graph = coreset_graph(view, Coreset(np.array([0, 2]), np.array([2.0, 3.0]), 2), degrees="rows")
    assert graph.adjacency.nnz == 0
    np.testing.assert_array_equal(graph.degrees, [2.0, 3.0])


def test_unknown_degrees_are_refused() -> None:
    view = problems.weighted_kernel().view
    with pytest.raises(ValueError, match="degrees must be one of 'weights', 'rows'"):
        coreset_graph(view, everything(view), degrees="sums")  # type: ignore[arg-type]


def test_equal_bits_for_any_number_of_threads(many_blocks: sp.csr_array) -> None:
    view = KernelView.from_graph(many_blocks)
    coreset = build_coreset(view, 3, size=20_000, random_state=5)
    before = coreset.weights.copy()
    one = coreset_graph(view, coreset, n_jobs=1)
    for jobs in (1, 2, 3, None):
        checks.same_bits(one, coreset_graph(view, coreset, n_jobs=jobs))
    np.testing.assert_array_equal(coreset.weights, before)
