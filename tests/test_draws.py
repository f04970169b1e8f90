"""Draws: they end when they agree, and combining them makes nothing worse."""

from __future__ import annotations

from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from sklearn.metrics import adjusted_rand_score

from corecut import Graph, draws, make_degree_corrected_sbm
from corecut._progress import Stages
from corecut._random import as_generator
from corecut.balancing import draw_partitions
from corecut.draws import Draw, Run, _settled, combine, finish
from corecut.settings import Settings, resolve
from corecut.weighted import WeightedGraph

NOTHING = np.empty((0, 0))


def run_on(graph: Any, k: int, *, seed: int = 0, **settings: Any) -> tuple[Run, WeightedGraph]:
    checked = Graph.from_matrix(graph)
    choices = resolve(Settings(k, **settings), checked).on(checked)
    return Run(choices, as_generator(seed), Stages(), settings.get("n_jobs")), WeightedGraph.of(checked)


def exact(graph: sp.csr_array, labels: np.ndarray, k: int, balance: float) -> float:
    return float(twins.conductances_with_fee(graph.toarray(), labels, k, balance).sum())


@pytest.fixture(scope="module")
def noisy() -> tuple[sp.csr_array, np.ndarray]:
    """Return a graph whose draws differ."""
    return make_degree_corrected_sbm(700, 10, mean_degree=9, mixing=0.45, random_state=5)


@pytest.fixture(scope="module")
def clean() -> tuple[sp.csr_array, np.ndarray]:
    """Return a graph whose draws agree."""
    return problems.planted_graph(np.random.default_rng(1), [100, 90, 80, 70], degree=14.0, mixing=0.05)


# --- the best of several -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"balance": 0.05}, {"max_cluster_size": 1.1}, {"refine": False}])
def test_no_draw_is_better_than_what_is_kept(settings: dict[str, Any], noisy: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, _ = noisy
    run, level = run_on(graph, 10, n_init=4, **settings)
    [found] = draw_partitions(run, level)
    best, made, balance = found.best, found.draws, found.balance
    assert len(made) == 4
    assert all(best.rank <= one.rank for one in made)
    for one in (best, *made):
        checks.valid_labels(one.labels, 700, 10)
        assert one.objective == pytest.approx(exact(graph, one.labels, 10, balance.of_groups), rel=1e-9)
    assert np.ptp([one.objective for one in made]) > 0


def test_draws_end_when_they_agree(clean: tuple[sp.csr_array, np.ndarray], noisy: tuple[sp.csr_array, np.ndarray]) -> None:
    run, level = run_on(clean[0], 4)
    [found] = draw_partitions(run, level)
    best, made = found.best, found.draws
    assert len(made) == 3 < run.choices.n_init
    assert adjusted_rand_score(clean[1], best.labels) > 0.97
    run, level = run_on(clean[0], 4, n_init=5)
    assert len(draw_partitions(run, level)[0].draws) == 5, "as many as were asked for"
    run, level = run_on(noisy[0], 10)
    assert len(draw_partitions(run, level)[0].draws) > 3


def test_settled_means_the_same_lowest_objective() -> None:
    def of(*ranks: tuple[float, float]) -> list[Draw]:
        return [Draw(np.zeros(1, np.int32), outside, value, NOTHING) for outside, value in ranks]

    assert not _settled(of((0, 1.0)))
    assert _settled(of((0, 1.0), (0, 1.0)))
    assert _settled(of((0, 2.0), (0, 1.0), (0, 1.0 + 1e-9)))
    assert not _settled(of((0, 1.0), (0, 1.1)))
    assert not _settled(of((0, 1.0), (3, 1.0))), "one of them is outside of its bounds"


def test_a_draw_within_its_bounds_comes_before_a_lower_objective() -> None:
    inside, outside = (Draw(np.zeros(1, np.int32), *rank, NOTHING) for rank in ((0.0, 5.0), (1.0, 1.0)))
    assert min([outside, inside], key=lambda one: one.rank) is inside


# --- combination ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("balance", [0.0, 0.05])
@pytest.mark.parametrize("bounds", [{}, {"max_cluster_size": 1.05, "min_cluster_size": 0.9}])
def test_combined_draws_are_no_worse_than_the_best_of_them(
    balance: float, bounds: dict[str, Any], noisy: tuple[sp.csr_array, np.ndarray]
) -> None:
    graph, _ = noisy
    run, level = run_on(graph, 10, balance=balance, n_init=1, **bounds)
    objective = run.choices.objective(level.graph.degrees)
    made = []
    for seed in range(4):
        start = np.random.default_rng(seed).integers(10, size=level.n_nodes).astype(np.int32)
        made.append(finish(run, level, start, objective, embedding=NOTHING))
    combined = combine(run, level, made, objective)
    best = min(one.rank for one in made)
    assert min(one.rank for one in combined) <= best
    for one in combined:
        checks.valid_labels(one.labels, level.n_nodes, 10)
        assert one.objective == pytest.approx(exact(graph, one.labels, 10, balance), rel=1e-9)
    assert any(one.rank < best for one in combined), "four poor draws make a better one"


def test_equal_draws_have_nothing_to_combine(clean: tuple[sp.csr_array, np.ndarray]) -> None:
    run, level = run_on(clean[0], 4)
    objective = run.choices.objective(level.graph.degrees, balance=0.0)
    one = finish(run, level, clean[1].astype(np.int32), objective, embedding=NOTHING)
    renamed = Draw(((one.labels + 1) % 4).astype(np.int32), one.outside, one.objective, NOTHING)
    pool = [one, renamed]
    assert combine(run, level, pool, objective) is pool


def test_combination_is_made_of_groups_that_agree_in_all_draws(
    noisy: tuple[sp.csr_array, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, _ = noisy
    run, level = run_on(graph, 10, n_init=1)
    objective = run.choices.objective(level.graph.degrees)
    rng = np.random.default_rng(0)
    made = [Draw(((rng.integers(10) + np.arange(700) // step) % 10).astype(np.int32), 0.0, 9.0, NOTHING) for step in (70, 35)]
    seen: list[WeightedGraph] = []
    embed = draws.embed

    def record(run: Run, level: WeightedGraph, **settings: Any) -> Any:
        seen.append(level)
        return embed(run, level, **settings)

    monkeypatch.setattr(draws, "embed", record)
    combine(run, level, made, objective)
    (small,) = seen
    assert small.n_nodes == np.unique(np.stack([one.labels for one in made]), axis=1).shape[1]
    assert small.sizes.sum() == level.sizes.sum()
    assert small.graph.volume == pytest.approx(level.graph.volume)


# --- sameness ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"balance": 0.03}, {"max_cluster_size": 1.05}])
def test_same_labels_for_any_number_of_threads(settings: dict[str, Any], noisy: tuple[sp.csr_array, np.ndarray]) -> None:
    found = []
    for jobs in (1, 2):
        run, level = run_on(noisy[0], 10, n_jobs=jobs, **settings)
        [drawn] = draw_partitions(run, level)
        values = np.array([one.objective for one in drawn.draws])
        found.append((drawn.best.labels, values, drawn.balance.final))
    checks.same_bits(*found)
