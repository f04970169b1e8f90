"""Polishing: what comes out is never worse than what went in, keeps the bounds, and more effort means less cut."""

from __future__ import annotations

import warnings
from typing import Any

import checks
import numpy as np
import pytest
import scipy.sparse as sp
import twins

from corecut import CoresetSpectralClustering, Graph, aggregate_graph, make_degree_corrected_sbm
from corecut.engines import LocalEngine
from corecut.metrics import Balance
from corecut.objective import Objective
from corecut.polishing import loosen, polish
from corecut.refinement import bring_into_bounds, climb_weighted, refine_weighted
from corecut.weighted import WeightedGraph

K = 8


@pytest.fixture(scope="module")
def noisy() -> sp.csr_array:
    graph, _ = make_degree_corrected_sbm(800, K, mean_degree=9, mixing=0.4, random_state=3)
    return graph


def value(graph: sp.csr_array, labels: np.ndarray, balance: float = 0.0) -> float:
    return float(twins.conductances_with_fee(graph.toarray(), labels, K, balance).sum())


def starts(graph: sp.csr_array, objective: Objective, count: int) -> tuple[WeightedGraph, list[np.ndarray]]:
    level = WeightedGraph.of(Graph.from_matrix(graph))
    rng = np.random.default_rng(0)
    random = [rng.permutation(np.arange(level.n_nodes, dtype=np.int32) % K) for _ in range(count)]
    return level, [bring_into_bounds(level, labels, objective, K) for labels in random]


@pytest.mark.parametrize("bounds", [(0.0, np.inf), (95.0, 105.0), (100.0, 100.0)])
def test_it_is_never_worse_and_keeps_the_bounds(noisy: sp.csr_array, bounds: tuple[float, float]) -> None:
    objective = Objective(0.0, *bounds)
    level, given = starts(noisy, objective, 4)
    found, reached = polish(level, given, objective, K, turns=6, seed=0)
    checks.valid_labels(found, level.n_nodes, K)
    counts = np.bincount(found[level.sizes > 0], minlength=K)
    assert bounds[0] <= counts.min()
    assert counts.max() <= bounds[1]
    assert value(noisy, found) == pytest.approx(reached)
    assert reached < min(value(noisy, one) for one in given)


def test_turns_pay(noisy: sp.csr_array) -> None:
    objective = Objective(0.0, 95.0, 105.0)
    level, given = starts(noisy, objective, 5)
    plain = min(climb_weighted(level, one, objective, K, patience=100, passes=10.0)[1] for one in given)
    none, many = (polish(level, given, objective, K, turns=turns, seed=1)[0] for turns in (0, 12))
    assert value(noisy, none) < 0.97 * plain  # what is given is loosened at first
    assert value(noisy, many) < value(noisy, none)


def test_partitions_that_are_all_the_same_stay(noisy: sp.csr_array) -> None:
    objective = Objective()
    level, given = starts(noisy, objective, 1)
    once, _ = polish(level, given, objective, K, turns=4, seed=0)
    again, _ = polish(level, [once, once, once], objective, K, turns=4, seed=0)
    assert value(noisy, again) <= value(noisy, once)


def test_a_single_partition_is_loosened(noisy: sp.csr_array) -> None:
    """Where there is nothing to combine with, turns outside of the bounds find what chains of moves do not."""
    objective = Objective(0.0, 98.0, 102.0)
    level, given = starts(noisy, objective, 1)
    once, before = polish(level, given, objective, K, turns=0, seed=0)
    found, after = polish(level, [once, once], objective, K, turns=12, seed=0)
    assert after < before
    assert set(np.bincount(found, minlength=K)) <= set(range(98, 103))


@pytest.mark.parametrize("bounds", [(95.0, 105.0), (100.0, 100.0), (0.0, 104.0)])
def test_bounds_are_loosened_for_a_while(noisy: sp.csr_array, bounds: tuple[float, float]) -> None:
    objective = Objective(0.0, *bounds)
    level, given = starts(noisy, objective, 3)
    for labels in given:
        stuck = refine_weighted(level, labels, objective, K)
        found, reached = loosen(level, stuck.labels, stuck.objective, objective, K, engine=LocalEngine(2))
        counts = np.bincount(found, minlength=K)
        assert bounds[0] <= counts.min()
        assert counts.max() <= bounds[1]
        assert value(noisy, found) == pytest.approx(reached)
        assert reached < 0.97 * stuck.objective
        alone, _ = loosen(level, stuck.labels, stuck.objective, objective, K, engine=LocalEngine(1))
        np.testing.assert_array_equal(found, alone)


def test_what_is_best_already_is_not_loosened() -> None:
    clean, truth = make_degree_corrected_sbm(400, 4, mean_degree=30, mixing=0.01, random_state=0)
    counts = np.bincount(truth)
    objective = Objective(0.0, float(counts.min()), float(counts.max()))
    level, labels = WeightedGraph.of(Graph.from_matrix(clean)), truth.astype(np.int32)
    before = refine_weighted(level, labels, objective, 4, max_passes=0).objective
    found, after = loosen(level, labels, before, objective, 4, engine=LocalEngine(1))
    assert after == before
    np.testing.assert_array_equal(found, labels)


def test_threads_do_not_matter(noisy: sp.csr_array) -> None:
    labels = [
        CoresetSpectralClustering(K, max_cluster_size=1.03, effort=2.0, random_state=0, n_jobs=jobs).fit(noisy).labels_
        for jobs in (1, 3)
    ]
    assert np.array_equal(*labels)


def test_more_effort_means_less_cut(noisy: sp.csr_array) -> None:
    def mean_cut(effort: float) -> float:
        made = [
            CoresetSpectralClustering(K, max_cluster_size=1.03, effort=effort, random_state=seed).fit(noisy)
            for seed in range(4)
        ]
        return float(np.mean([model.normalized_cut_ for model in made]))

    little, usual, much = (mean_cut(effort) for effort in (0.1, 1.0, 4.0))
    assert usual <= little
    assert much <= 1.001 * usual  # which may be the optimum
    assert much < little


@pytest.mark.parametrize(("effort", "sentence"), [(0, "effort must be"), (-1, "effort must be"), (1e9, "at most 100")])
def test_impossible_efforts_are_refused(noisy: sp.csr_array, effort: float, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        CoresetSpectralClustering(K, effort=effort).fit(noisy)


@pytest.mark.parametrize("n_nodes", [3000, 9000])
def test_groups_of_equal_sizes(n_nodes: int) -> None:
    graph, _ = make_degree_corrected_sbm(n_nodes, 5, mean_degree=8, degree_exponent=2.2, random_state=1)
    levels = aggregate_graph(graph, 5, groups_per_cluster=20, n_groups=300, equal_sizes=True)
    assert levels
    assert max(level.sizes.max() for level in levels) <= n_nodes / 100
    assert levels[-1].sizes.sum() == n_nodes


# --- what is said of sizes ------------------------------------------------------------------------------------------------


def test_figures_of_balance() -> None:
    found = Balance.of([1, 50, 100, 100, 249])
    assert (found.largest, found.smallest, found.median, found.crumbs) == (249, 1, 1.0, 1)
    assert str(found) == "1 to 249 nodes, the median 1.00 of the mean, 1 below a tenth of it"
    assert "tenth" not in str(Balance.of([5, 5]))


def sticks() -> sp.csr_array:
    """Return two cliques of 30 and 90 nodes with one edge between them."""
    dense = np.zeros((120, 120))
    dense[:30, :30] = dense[30:, 30:] = 1.0
    np.fill_diagonal(dense, 0.0)
    dense[29, 30] = dense[30, 29] = 1.0
    return sp.csr_array(dense)


@pytest.mark.parametrize(
    "settings", [{"max_cluster_size": 1.1}, {"min_cluster_size": 50}, {"min_cluster_size": 55, "max_cluster_size": 70}]
)
def test_a_dear_bound_is_told_with_its_figure(settings: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match=r"costs cut: the normalised cut is 0\.\d+, and .* without") as caught:
        CoresetSpectralClustering(2, random_state=0, **settings).fit(sticks())
    assert all(name in str(caught[0].message) for name in settings)


def test_a_cheap_bound_is_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CoresetSpectralClustering(2, random_state=0, max_cluster_size=0.8 * 2).fit(sticks())
        CoresetSpectralClustering(2, random_state=0, balance=0.01).fit(sticks())
