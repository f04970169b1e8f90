"""Coresets: sensitivities, unbiased costs, errors that fall like 1/√N, and sizes that follow from ε."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import Coreset, KernelView, _core, build_coreset, coreset_graph, coreset_kernel_kmeans, label_nodes, sample_seeds
from corecut.coreset import epsilon_size, everything, importance_sample, stratified_sample
from corecut.metrics import squared_distances

# Standard errors that a mean may lie from its expectation; a normal number does so once in two million.
DEVIATIONS = 5.0


# --- sensitivities and draws ---------------------------------------------------------------------------------------------


def sensitivities(view: KernelView, seeds: Any, *, importance: str) -> Any:
    return _core.sensitivities(view.weights, seeds.distances, seeds.nearest, seeds.points, importance == "seeds", 2)


def test_sensitivities_by_definition(problem: problems.Problem, method: Any, importance: Any) -> None:
    seeds = sample_seeds(problem.view, 2, method=method, random_state=2)
    expected = twins.sensitivities(problem.K, problem.w, seeds.points.tolist(), seeds.nearest, importance)
    found = sensitivities(problem.view, seeds, importance=importance)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(found > 0, problem.w > 0)
    if importance == "cluster":
        assert found.sum() == pytest.approx(1 + seeds.points.size)


def test_sensitivities_when_every_point_is_a_seed(problem: problems.Problem, importance: Any) -> None:
    # The cost is zero; what is left is the second term.
    seeds = sample_seeds(problem.view, 10 * problem.n, random_state=0)
    found = sensitivities(problem.view, seeds, importance=importance)
    assert np.all(np.isfinite(found))
    np.testing.assert_array_equal(found > 0, problem.w > 0)


def test_sensitivities_refuse_seeds_of_another_problem(problem: problems.Problem, importance: Any) -> None:
    seeds = sample_seeds(problem.view, 2, random_state=0)
    for bad in (seeds.points.size, -1):
        broken = dataclasses.replace(seeds, nearest=np.full_like(seeds.nearest, bad))
        with pytest.raises(ValueError, match="nearest holds a number that is not a seed's"):
            sensitivities(problem.view, broken, importance=importance)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 100, 5000, 9000]), st.integers(1, 3000))
def test_draws_are_distinct_positive_and_complete(seed: int, n: int, draws: int) -> None:
    rng = np.random.default_rng(seed)
    mass = np.exp(rng.uniform(-20, 20, n)) * (rng.random(n) < 0.5)
    mass[rng.integers(n)] = 1.0
    indices, counts, total = _core.draw_points(mass, draws, seed, 1)
    assert np.all(np.diff(indices) > 0)
    assert np.all(mass[indices] > 0)
    assert np.all(counts > 0)
    assert counts.sum() == draws
    assert total == pytest.approx(mass.sum(), rel=1e-12)


def test_draws_follow_their_masses(rng: np.random.Generator) -> None:
    # Several blocks of sums, and several of random numbers; compared in fifty groups of points.
    n, draws = 15_000, 200_000
    mass = np.exp(rng.uniform(-2, 2, n)) * (rng.random(n) < 0.7)
    indices, counts, _ = _core.draw_points(mass, draws, 3, 2)
    for group in (np.arange(n) * 50 // n, np.arange(n) % 50):
        observed = np.bincount(group[indices], counts, minlength=50).astype(int)
        law = np.bincount(group, mass, minlength=50) / mass.sum()
        checks.follows_law(dict(enumerate(observed.tolist())), dict(enumerate(law)))


def test_masses_of_zero_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="all sampling masses are zero"):
        _core.draw_points(np.zeros(4), 3, 0, 1)


def test_repeats_are_merged_into_weights(problem: problems.Problem, importance: Any) -> None:
    draws = 500
    seeds = sample_seeds(problem.view, 2, random_state=0)
    coreset = importance_sample(problem.view, seeds, draws, importance=importance, random_state=1)
    checks.valid_coreset(coreset, problem.view)
    s = sensitivities(problem.view, seeds, importance=importance)
    probability = (s / s.sum())[coreset.indices]
    counts = coreset.weights * probability * draws / problem.view.weights[coreset.indices]
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-8)
    assert np.round(counts).sum() == draws == coreset.n_draws
    checks.follows_law(
        dict(zip(coreset.indices.tolist(), np.round(counts).astype(int).tolist(), strict=True)), dict(enumerate(s / s.sum()))
    )


# --- by size -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [8, 9, 1000])
def test_as_many_draws_as_points_return_everything(size: int) -> None:
    problem = problems.weighted_kernel()  # eight points, two of weight zero
    coreset = build_coreset(problem.view, 2, size=size, random_state=0)
    np.testing.assert_array_equal(coreset.indices, np.flatnonzero(problem.w))
    np.testing.assert_array_equal(coreset.weights, problem.w[problem.w > 0])
    assert coreset.n_draws == 0
    assert coreset.seeds is None
    checks.valid_coreset(coreset, problem.view)


def test_one_pass_is_seeds_then_importance_sampling(planted: Any, method: Any, importance: Any) -> None:
    view, _ = planted
    coreset = build_coreset(
        view, 4, size=200, seeding_factor=1.6, sampler=method, importance=importance, random_state=np.random.default_rng(8)
    )
    generator = np.random.default_rng(8)
    seeds = sample_seeds(view, 7, method=method, random_state=generator)  # ⌈1.6 · 4⌉
    checks.same_bits(coreset, importance_sample(view, seeds, 200, importance=importance, random_state=generator))
    assert coreset.seeds is not None
    assert coreset.seeds.points.size == 7 + (1 if method == "naive" else 2)
    checks.valid_coreset(coreset, view)
    assert coreset.n_draws == 200


def test_a_graph_may_stand_for_its_kernel(rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [200, 100])
    checks.same_bits(
        build_coreset(graph, 2, size=50, random_state=0),
        build_coreset(KernelView.from_graph(graph), 2, size=50, random_state=0),
    )


# --- the estimate --------------------------------------------------------------------------------------------------------


def centre_costs(view: KernelView, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return each point's squared distance to the nearest of five centres, for nine sets of centres (rows).

    Sets of points, means of random groups, and means of the planted clusters with some labels shuffled.
    """
    n, k = view.n_points, 5
    sets = [np.eye(n, k)[rng.permutation(n)] for _ in range(3)]
    for share in (0.0, 0.2, 0.5, 1.0, 1.0, 1.0):
        shuffled = np.where(rng.random(n) < share, rng.integers(k, size=n), labels)
        sets.append(twins.centroid_coefficients(n, np.arange(n), view.weights, shuffled, k))
    return np.array([squared_distances(view, sp.csc_array(centres)).min(axis=1) for centres in sets])


def test_cost_and_weight_are_unbiased_for_fixed_centres(planted: Any, importance: Any, rng: np.random.Generator) -> None:
    view, labels = planted
    values = np.vstack([centre_costs(view, labels, rng), np.ones(view.n_points)])  # the last one: the total weight
    truth = values @ view.weights
    seeds = sample_seeds(view, 10, random_state=0)
    s = sensitivities(view, seeds, importance=importance)
    p = s / s.sum()
    draws, runs = 50, 800
    estimates = np.zeros((len(values), runs))
    for run in range(runs):
        coreset = importance_sample(view, seeds, draws, importance=importance, random_state=rng, n_jobs=1)
        estimates[:, run] = values[:, coreset.indices] @ coreset.weights
    # The variance of one draw's contribution w·f/p is known exactly.
    variance = ((values * view.weights) ** 2) @ (1 / p) - truth**2
    error = np.sqrt(variance / (draws * runs))
    np.testing.assert_array_less(np.abs(estimates.mean(axis=1) - truth), DEVIATIONS * error)
    # And the spread is what it must be: draws are independent.
    np.testing.assert_allclose(estimates.var(axis=1), variance / draws, rtol=0.35)


def test_cost_is_unbiased_over_seeds_too(planted: Any, importance: Any, method: Any, rng: np.random.Generator) -> None:
    view, labels = planted
    values = np.vstack([centre_costs(view, labels, rng), np.ones(view.n_points)])
    runs = 120
    estimates = np.zeros((len(values), runs))
    for run in range(runs):
        coreset = build_coreset(view, 5, size=100, sampler=method, importance=importance, random_state=rng)
        estimates[:, run] = values[:, coreset.indices] @ coreset.weights
    error = estimates.std(axis=1, ddof=1) / math.sqrt(runs)
    np.testing.assert_array_less(np.abs(estimates.mean(axis=1) - values @ view.weights), DEVIATIONS * error)


def error_slope(view: KernelView, labels: np.ndarray, importance: Any, runs: int) -> float:
    """Return the slope of log(relative error) over log(N), N = 100, 200, ..., 6400."""
    rng = np.random.default_rng(4)
    values = centre_costs(view, labels, rng)
    truth = values @ view.weights
    sizes = 100 * 2 ** np.arange(7)
    errors = []
    for size in sizes:
        squares = []
        for _ in range(runs):
            coreset = build_coreset(view, 5, size=int(size), importance=importance, random_state=rng)
            squares.append((values[:, coreset.indices] @ coreset.weights / truth - 1) ** 2)
        errors.append(math.sqrt(np.mean(squares)))
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def test_error_falls_like_one_over_root_n(planted: Any, importance: Any) -> None:
    assert -0.65 < error_slope(*planted, importance, 12) < -0.35


@pytest.mark.deep
def test_error_falls_like_one_over_root_n_in_depth(planted: Any, importance: Any) -> None:
    assert -0.53 < error_slope(*planted, importance, 300) < -0.47


# --- by ε ----------------------------------------------------------------------------------------------------------------


def test_size_for_epsilon_is_the_formula() -> None:
    for k, n, epsilon, constant in [(2, 100, 0.5, 1.0), (10, 10**6, 0.1, 0.02), (50, 4000, 0.9, 3.0)]:
        expected = constant * k**2 * math.log(k) ** 2 * math.log(n) / epsilon**2
        assert epsilon_size(k, n, epsilon, constant) == math.ceil(expected)
    assert epsilon_size(1, 1000, 0.5) == math.ceil(math.log(2) ** 2 * math.log(1000) / 0.25)
    assert epsilon_size(10**9, 10**9, 1e-9) == 2**62  # no overflow


def recorded_passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record (points of positive weight, draws) of every importance-sampling pass."""
    passes: list[tuple[int, int]] = []

    def recording(kernel: KernelView, seeds: Any, n_draws: int, **keywords: Any) -> Coreset:
        passes.append((int(np.count_nonzero(kernel.weights)), n_draws))
        return importance_sample(kernel, seeds, n_draws, **keywords)

    monkeypatch.setattr("corecut.coreset.importance_sample", recording)
    return passes


@pytest.mark.parametrize("setting", [(2, 0.2, 1.0), (2, 0.5, 0.5), (6, 0.5, 0.2), (12, 0.5, 0.03)])
def test_epsilon_repeats_the_pass_until_it_no_longer_shrinks(
    planted: Any, importance: Any, setting: tuple[int, float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    view, _ = planted
    k, epsilon, constant = setting
    passes = recorded_passes(monkeypatch)
    coreset = build_coreset(view, k, epsilon=epsilon, constant=constant, importance=importance, random_state=1)
    checks.valid_coreset(coreset, view)
    iterated_log, points = float(view.n_points), view.n_points
    for given_points, draws in passes:
        iterated_log = math.log(iterated_log)
        assert iterated_log >= 1
        assert given_points == points if points == view.n_points else given_points <= points
        assert draws == epsilon_size(k, given_points, epsilon / iterated_log**0.25, constant)
        assert draws < given_points
        points = draws
    assert coreset.size <= points == coreset.n_draws
    # One more pass was not possible, or would not have made it smaller.
    iterated_log = math.log(iterated_log)
    assert iterated_log < 1 or epsilon_size(k, coreset.size, epsilon / iterated_log**0.25, constant) >= coreset.size


def test_epsilon_coreset_keeps_costs_within_epsilon(planted: Any, importance: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    view, labels = planted
    passes = recorded_passes(monkeypatch)
    coreset = build_coreset(view, 5, epsilon=0.3, constant=0.05, importance=importance, random_state=1)
    # With "seeds" a second pass translates the indices once more. With "cluster" most draws fall upon the few points whose
    # nearest seed is a drawn one, so that the first pass leaves fewer points than the second would need draws.
    assert len(passes) == {"seeds": 2, "cluster": 1}[importance]
    values = np.vstack([centre_costs(view, labels, np.random.default_rng(0)), np.ones(view.n_points)])
    np.testing.assert_allclose(values[:, coreset.indices] @ coreset.weights, values @ view.weights, rtol=0.3)


def test_epsilon_numbers_points_rightly_beside_points_of_weight_zero(rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [3000])
    lonely = sp.block_diag([sp.csr_array((500, 500)), graph], format="csr")
    plain = KernelView.from_graph(graph, shift=1.0)
    shifted = KernelView.from_graph(lonely, shift=1.0)
    one, other = (build_coreset(v, 2, epsilon=0.4, importance="seeds", random_state=3) for v in (plain, shifted))
    assert 0 < one.n_draws < 3000
    checks.valid_coreset(other, shifted)
    assert other.indices.min() >= 500
    assert other.weights.sum() == pytest.approx(shifted.weights.sum(), rel=0.5)


def test_epsilon_that_asks_for_more_than_all_points_returns_everything(planted: Any) -> None:
    view, _ = planted
    checks.same_bits(build_coreset(view, 5, epsilon=0.05, random_state=0), everything(view))


@pytest.mark.parametrize("n", [1, 2])
def test_epsilon_on_tiny_problems_returns_everything(n: int) -> None:
    view = KernelView.from_graph(np.ones((n, n)))
    checks.same_bits(build_coreset(view, 1, epsilon=0.9, constant=1e-9, random_state=0), everything(view))


# --- what is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, ValueError, "either size= or epsilon=, and not both"),
        ({"size": 3, "epsilon": 0.5}, ValueError, "either size= or epsilon=, and not both"),
        ({"size": 0}, ValueError, "size must be at least 1"),
        ({"size": 2.5}, TypeError, "size must be an integer"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be a finite number above 0"),
        ({"epsilon": 1.0}, ValueError, "epsilon must lie between 0 and 1"),
        ({"epsilon": np.nan}, ValueError, "epsilon must be a finite number"),
        ({"epsilon": 0.5, "constant": 0.0}, ValueError, "constant must be a finite number above 0"),
        ({"size": 3, "seeding_factor": 0}, ValueError, "seeding_factor must be a finite number above 0"),
        ({"size": 3, "importance": "both"}, ValueError, "importance must be one of 'cluster', 'seeds'"),
        ({"size": 3, "sampler": "fast"}, ValueError, "sampler must be one of 'rejection', 'tree', 'naive'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        build_coreset(np.ones((5, 5)), 2, **arguments)


@pytest.mark.parametrize("arguments", [{"size": 3}, {"size": 100}, {"epsilon": 0.5}])
def test_graph_without_edges_has_no_coreset(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="every node is isolated"):
        build_coreset(np.zeros((5, 5)), 2, **arguments)


@pytest.mark.parametrize(
    ("indices", "weights", "error", "words"),
    [
        ([0.0, 1.0], [1.0, 1.0], TypeError, "a coreset's indices must be a list of integers, got float64"),
        ([[0, 1]], [1.0, 1.0], TypeError, "a coreset's indices must be a list of integers"),
        ([1, 0], [1.0, 1.0], ValueError, "increasing node numbers from 0 on: sort them"),
        ([-1, 0], [1.0, 1.0], ValueError, "increasing node numbers from 0 on"),
        ([0, 1], [1.0], ValueError, r"a coreset's weights must be one number per node: expected shape \(2,\), got \(1,\)"),
        ([0, 1], [1.0, np.nan], ValueError, "a coreset's weights must be finite and not negative"),
        ([0, 1], [1.0, -1.0], ValueError, "a coreset's weights must be finite and not negative"),
    ],
)
def test_what_is_no_coreset_is_refused(indices: Any, weights: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Coreset(np.array(indices), np.array(weights), 2)


@pytest.mark.parametrize(
    ("indices", "words"), [([0, 8], "increasing node numbers below 8, got 8: take a coreset of"), ([], "the coreset is empty")]
)
def test_stages_refuse_a_coreset_that_is_not_of_their_kernel(indices: list[int], words: str) -> None:
    view = problems.weighted_kernel().view
    coreset, labels = Coreset(np.array(indices, int), np.ones(len(indices)), 2), np.zeros(len(indices), int)
    for stage in (
        lambda: label_nodes(view, coreset, labels),
        lambda: coreset_graph(view, coreset),
        lambda: coreset_kernel_kmeans(view, 1, coreset),
    ):
        with pytest.raises(ValueError, match=words):
            stage()


# --- sameness ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [{"size": 40_000}, {"epsilon": 0.1}])
def test_equal_bits_for_any_number_of_threads_and_again(
    arguments: dict[str, Any], importance: Any, many_blocks: sp.csr_array
) -> None:
    view = KernelView.from_graph(many_blocks)
    one = build_coreset(view, 3, importance=importance, random_state=5, n_jobs=1, **arguments)
    checks.valid_coreset(one, view)
    assert one.n_draws > 0
    for jobs in (1, 2, 3, None):
        checks.same_bits(one, build_coreset(view, 3, importance=importance, random_state=5, n_jobs=jobs, **arguments))
    other = build_coreset(view, 3, importance=importance, random_state=6, **arguments)
    assert other.indices.tolist() != one.indices.tolist()


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_scaling_all_weights_changes_no_draw(factor: float, importance: Any, rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [300, 200])
    one, other = (build_coreset(g, 2, size=80, importance=importance, random_state=0) for g in (graph, graph * factor))
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_allclose(one.weights / one.weights.sum(), other.weights / other.weights.sum(), rtol=1e-9)


# --- samples by cluster --------------------------------------------------------------------------------------------------


def test_stratified_sample_is_unbiased_in_every_cluster(rng: np.random.Generator) -> None:
    n, per_cluster = 3000, 50
    labels = rng.choice(4, n, p=[0.7, 0.2, 0.09, 0.01]).astype(np.int32)
    weights = np.where(rng.random(n) < 0.1, 0.0, rng.exponential(size=n))
    kernel = KernelView.from_matrix(sp.eye_array(n).tocsr(), weights=weights)
    truth = np.bincount(labels, weights, minlength=4)
    runs = []
    for seed in range(200):
        sample = stratified_sample(kernel, labels, 4, per_cluster, random_state=seed)
        assert np.all(np.diff(sample.indices) > 0)
        assert np.all(weights[sample.indices] > 0)
        runs.append(np.bincount(labels[sample.indices], sample.weights, minlength=4))
    error = np.std(runs, axis=0) / math.sqrt(len(runs))
    assert np.all(np.abs(np.mean(runs, axis=0) - truth) <= DEVIATIONS * error + 1e-9)


def test_stratified_sample_takes_about_as_many_of_each_and_all_of_small_clusters() -> None:
    labels = np.repeat(np.arange(3, dtype=np.int32), [5000, 1000, 20])
    kernel = KernelView.from_matrix(sp.eye_array(labels.size).tocsr())
    sample = stratified_sample(kernel, labels, 4, 100, random_state=0)  # the fourth cluster is empty
    counts = np.bincount(labels[sample.indices], minlength=4)
    assert np.all(np.abs(counts[:2] - 100) < 6 * 10)
    assert counts[2:].tolist() == [20, 0]
    assert np.array_equal(sample.weights[labels[sample.indices] == 2], np.ones(20))
