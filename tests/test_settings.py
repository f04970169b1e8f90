"""What every "auto" stands for, what is refused, and which choices draw a warning that names the cure."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from corecut import Graph
from corecut.settings import DENSE, SMALL_GRAPH, SMALL_QUOTIENT, Choices, Settings, coreset_size_for, resolve


def graph_of(nodes: int, per_node: float, *, isolated: int = 0) -> Graph:
    """Return a graph that settings cannot tell from a real one: they look at counts and degrees only."""
    entries = int(nodes * per_node)
    n = nodes + isolated
    degrees = np.zeros(n)
    degrees[:nodes] = per_node
    return Graph(np.zeros(n + 1, np.int64), np.broadcast_to(np.int32(0), entries), None, degrees, None)


def chosen(graph: Graph, k: int = 10, **settings: Any) -> Choices:
    return resolve(Settings(k, **settings), graph)


# --- coreset_size --------------------------------------------------------------------------------------------------------


def test_a_small_graph_is_its_own_coreset() -> None:
    assert coreset_size_for(graph_of(SMALL_GRAPH, 4.0), 5, "auto") == SMALL_GRAPH
    assert coreset_size_for(graph_of(100, 4.0, isolated=50), 5, "auto") == 100


@pytest.mark.parametrize(
    ("nodes", "per_node", "k", "expected"),
    [
        (100_000, 2000.0, 10, 1500),  # the least
        (100_000, 2000.0, 200, 4000),  # 20 per cluster
        (100_000, 100.0, 10, 20_000),  # an induced mean degree of 20
        (10_000, 10.0, 10, 10_000),  # everything
    ],
)
def test_automatic_size_has_enough_nodes_per_cluster_and_edges(nodes: int, per_node: float, k: int, expected: int) -> None:
    assert coreset_size_for(graph_of(nodes, per_node), k, "auto") == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(700, 700), (np.int64(700), 700), (0.25, 2500), (1.0, 9000), (np.float32(0.5), 5000), (50_000, 9000)],
)
def test_counts_and_fractions(asked: Any, expected: int) -> None:
    assert coreset_size_for(graph_of(9000, 20.0, isolated=1000), 5, asked) == expected


@pytest.mark.parametrize("asked", [0.0, -0.5, 1.5, math.nan, True, "all", None, [5], 1j])
def test_what_is_no_coreset_size(asked: Any) -> None:
    with pytest.raises(ValueError, match=re.escape('coreset_size must be a count, a fraction in (0, 1] or "auto"')):
        coreset_size_for(graph_of(100, 4.0), 2, asked)


def test_coresets_smaller_than_the_number_of_clusters_are_refused() -> None:
    graph = graph_of(1000, 10.0)
    assert coreset_size_for(graph, 8, 8) == 8
    with pytest.raises(ValueError, match="coreset_size=7 gives 7 coreset nodes for n_clusters=8: ask for at least 8"):
        coreset_size_for(graph, 8, 7)
    with pytest.raises(ValueError, match=re.escape("coreset_size=0.001 gives 1 coreset nodes for n_clusters=8")):
        coreset_size_for(graph, 8, 0.001)
    with pytest.raises(ValueError, match="coreset_size must be at least 1, got 0"):
        coreset_size_for(graph, 8, 0)


# --- aggregate -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "per_node", "settings", "expected"),
    [
        (3000, 10.0, {}, False),  # small: the spectral step takes it as it is
        (6000, 10.0, {}, False),  # a little larger, with few entries and clusters
        (6001, 10.0, {}, True),  # sparse
        (3001, 80.0, {}, True),  # small, with many entries
        (20_000, 400.0, {}, True),  # dense, but of moderate size
        (200_000, 400.0, {}, False),  # dense and large
        (2_000_000, 50.0, {}, True),  # sparse and large
        (20_000, 400.0, {"coreset_size": 2000}, False),  # a coreset was asked for, and keeps 40 entries per node
        (20_000, 400.0, {"coreset_size": 160}, False),  # keeps 3.2, enough on a dense graph
        (20_000, 400.0, {"coreset_size": 140}, True),  # it would keep 2.8
        (20_000, 30.0, {"coreset_size": 9000}, True),  # 13.5 are too few on a sparse one
        (20_000, 30.0, {"coreset_size": 1.0}, False),  # all nodes: nothing is lost
        (2000, 10.0, {"coreset_size": 500}, True),
        (2000, 10.0, {"aggregate": True}, True),
        (50_000, 10.0, {"aggregate": False}, False),
    ],
)
def test_when_to_aggregate(nodes: int, per_node: float, settings: dict[str, Any], expected: bool) -> None:
    assert chosen(graph_of(nodes, per_node), **settings).aggregate is expected


def test_a_coreset_that_falls_to_pieces_draws_a_warning_with_both_cures() -> None:
    graph = graph_of(20_000, 30.0)
    words = "keeps only about 3.0 entries per node .* set aggregate=True, or coreset_size=10,000 or more"
    with pytest.warns(UserWarning, match=words):
        assert not chosen(graph, aggregate=False, coreset_size=2000).aggregate
    assert not chosen(graph, aggregate=False, coreset_size=10_000).aggregate  # the cure works: no warning
    assert chosen(graph, aggregate=True, coreset_size=2000).aggregate


def test_the_cure_is_never_more_than_all_nodes() -> None:
    with pytest.warns(UserWarning, match="coreset_size=20,000 or more"):
        chosen(graph_of(20_000, 5.0), aggregate=False, coreset_size=1000)


@pytest.mark.parametrize("value", ["yes", 1, None, 0.0])
def test_aggregate_is_true_false_or_auto(value: Any) -> None:
    with pytest.raises(ValueError, match="aggregate must be one of"):
        chosen(graph_of(50, 4.0), aggregate=value)


# --- regularization ------------------------------------------------------------------------------------------------------


def test_regularization_on_sparse_graphs_only() -> None:
    assert chosen(graph_of(5000, DENSE - 1.0)).regularization == pytest.approx(0.1)
    assert chosen(graph_of(5000, DENSE + 0.0)).regularization == 0.0
    assert chosen(graph_of(5000, 10.0), refine=False).regularization == 0.0


def test_less_regularization_for_small_clusters() -> None:
    assert chosen(graph_of(5000, 10.0), k=62).regularization == pytest.approx(0.1)
    assert chosen(graph_of(5000, 10.0), k=125).regularization == pytest.approx(0.05)


def test_given_regularization_is_kept_or_refused() -> None:
    graph = graph_of(5000, 500.0)
    assert chosen(graph, regularization=0.3).regularization == 0.3
    assert chosen(graph, regularization=0, refine=False).regularization == 0.0
    with pytest.raises(ValueError, match="regularization must be a finite number not below 0, got -1"):
        chosen(graph, regularization=-1)
    with pytest.raises(TypeError, match="regularization must be a number, got 'much'"):
        chosen(graph, regularization="much")


# --- bounds on the size of clusters --------------------------------------------------------------------------------------


def test_no_bounds_by_default() -> None:
    for per_node in (20.0, 200.0):
        choices = chosen(graph_of(10_000, per_node), k=4)
        assert (choices.min_cluster_size, choices.max_cluster_size) == (0.0, math.inf)
        assert not choices.bounded


def test_given_bounds_are_kept() -> None:
    choices = chosen(graph_of(10_000, 200.0), k=4, max_cluster_size=2600, min_cluster_size=2000)
    assert (choices.min_cluster_size, choices.max_cluster_size) == (2000.0, 2600.0)
    assert choices.bounded
    chosen(graph_of(100, 4.0), k=10, min_cluster_size=10, max_cluster_size=10)  # just possible


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"max_cluster_size": 1.03}, (0.0, 103.0)),
        ({"min_cluster_size": 0.5}, (50.0, math.inf)),
        ({"min_cluster_size": 0.501, "max_cluster_size": 1.999}, (51.0, 199.0)),  # whole nodes inside
        ({"min_cluster_size": 1.0, "max_cluster_size": 1.0}, (100.0, 100.0)),
        ({"min_cluster_size": 1, "max_cluster_size": np.int64(700)}, (1.0, 700.0)),  # integers are counts
        ({"max_cluster_size": np.float32(1.5)}, (0.0, 150.0)),
        ({"max_cluster_size": 50.0}, (0.0, 1000.0)),
    ],
)
def test_a_bound_that_is_no_integer_is_a_factor_of_the_mean(bounds: dict[str, Any], expected: tuple[float, float]) -> None:
    choices = chosen(graph_of(900, 4.0, isolated=100), **bounds)
    assert (choices.min_cluster_size, choices.max_cluster_size) == expected


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"min_cluster_size": 11}, "min_cluster_size=11 times n_clusters=10 is more than the 100 nodes: ask for at most 10"),
        (
            {"max_cluster_size": 9},
            "max_cluster_size=9 times n_clusters=10 is less than the 100 nodes: ask for at least 10; 1.0,",
        ),
        (
            {"min_cluster_size": 1.01},
            "min_cluster_size=1.01 (11 nodes) times n_clusters=10 is more than the 100 nodes: a factor",
        ),
        (
            {"max_cluster_size": 0.99},
            "max_cluster_size=0.99 (9 nodes) times n_clusters=10 is less than the 100 nodes: a factor",
        ),
        ({"min_cluster_size": 0}, "min_cluster_size must be at least 1, got 0"),
        ({"max_cluster_size": 0}, "max_cluster_size must be at least 1, got 0"),
        ({"min_cluster_size": -0.5}, "min_cluster_size must be a finite number above 0"),
        ({"max_cluster_size": math.inf}, "max_cluster_size must be a finite number above 0"),
    ],
)
def test_impossible_bounds_are_refused(bounds: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        chosen(graph_of(100, 4.0), **bounds)


def test_the_mean_itself_is_rounded_so_that_it_can_be_met() -> None:
    # 105 nodes in ten clusters: the mean is 10.5, and clusters of 10 and 11 come nearest to it.
    for factor in (1.0, 1.03):
        assert chosen(graph_of(105, 4.0), max_cluster_size=factor).max_cluster_size == 11.0
    for factor in (1.0, 0.99):
        assert chosen(graph_of(105, 4.0), min_cluster_size=factor).min_cluster_size == 10.0
    with pytest.raises(ValueError, match=re.escape("max_cluster_size=0.99 (10 nodes) times n_clusters=10 is less")):
        chosen(graph_of(105, 4.0), max_cluster_size=0.99)


# --- balance -------------------------------------------------------------------------------------------------------------


def test_balance_is_for_the_graph_to_decide_where_nothing_else_was_asked() -> None:
    graph = graph_of(5000, 10.0)
    free = chosen(graph)
    assert free.adaptive
    assert free.balance > 0
    sized = {"min_cluster_size": 5, "max_cluster_size": 2.0}
    for settings in (sized, {"max_cluster_size": 1.2}, {"refine": False}):
        choices = chosen(graph, **settings)
        assert (choices.adaptive, choices.balance) == (False, 0.0)
    # A wide bound on one side says nothing of the other end.
    for settings in ({"max_cluster_size": 2.0}, {"min_cluster_size": 5}):
        choices = chosen(graph, **settings)
        assert (choices.adaptive, choices.balance) == (True, free.balance)


def test_a_given_balance_is_kept_or_refused() -> None:
    graph = graph_of(5000, 10.0)
    for balance in (0, 0.03, 2.0):
        choices = chosen(graph, balance=balance, max_cluster_size=2.0)
        assert (choices.adaptive, choices.balance) == (False, balance)
    assert chosen(graph, balance=0, refine=False).balance == 0.0
    with pytest.raises(ValueError, match="balance needs refine=True"):
        chosen(graph, balance=0.1, refine=False)
    with pytest.raises(TypeError, match="balance must be a number, got 'much'"):
        chosen(graph, balance="much")


def test_the_objective_of_the_choices() -> None:
    choices = chosen(graph_of(90, 4.0, isolated=10), balance=0.2, min_cluster_size=7, max_cluster_size=15)
    degrees = np.full(90, 4.0)
    objective = choices.objective(degrees)
    assert (objective.fee, objective.min_size, objective.max_size) == (pytest.approx(0.2 * 360 / 10), 7.0, 15.0)
    assert choices.objective(degrees, balance=0.0).fee == 0.0
    # Nodes without edges are placed at the end, and may fill what is missing.
    assert choices.objective(degrees, n_isolated=5).min_size == 2.0
    assert choices.objective(degrees, n_isolated=10).min_size == 0.0


def test_bounds_that_only_refinement_keeps_are_refused_without_it() -> None:
    for bounds in ({"min_cluster_size": 5}, {"max_cluster_size": 50}):
        with pytest.raises(ValueError, match="needs refine=True"):
            chosen(graph_of(100, 4.0), refine=False, **bounds)


# --- n_init, and choices for a quotient ----------------------------------------------------------------------------------


def test_several_draws_where_they_cost_little() -> None:
    few, many = graph_of(1000, 10.0), graph_of(200_000, 10.0)
    assert chosen(few).on(few).n_init > 1
    assert chosen(many).on(many).n_init == 1
    assert chosen(many).on(few).n_init > 1  # its quotient is small
    assert chosen(few, refine=False).on(few).n_init == 1
    assert chosen(many, n_init=7).on(many).n_init == 7


def test_fewer_draws_where_rows_have_many_clusters() -> None:
    # k-means takes rows times clusters, whatever the number of entries.
    pairs = graph_of(200_000, 1.0)
    assert chosen(pairs, k=1000).on(pairs).n_init == 1


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError), ("many", TypeError)])
def test_number_of_draws_is_checked_before_any_work(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="n_init must be"):
        chosen(graph_of(1000, 10.0), n_init=value)


def test_a_quotient_has_a_coreset_size_of_its_own() -> None:
    graph, quotient = graph_of(1_000_000, 20.0), graph_of(3500, 40.0)
    assert chosen(graph).on(quotient).coreset_size == 3500
    large = graph_of(SMALL_QUOTIENT + 1, 200.0)
    assert chosen(graph).on(large).coreset_size == coreset_size_for(large, 10, "auto") < large.n_nodes
    assert chosen(graph, aggregate=True, coreset_size=500).on(quotient).coreset_size == 500  # as it was asked for
    dense = graph_of(200_000, 400.0)
    choices = chosen(dense)
    assert choices.on(dense).coreset_size == choices.coreset_size
    assert choices.samples(dense)
    assert not chosen(graph).on(quotient).samples(quotient)


# --- everything else -----------------------------------------------------------------------------------------------------


def test_number_of_clusters() -> None:
    with pytest.raises(ValueError, match="n_clusters=101 is more than n_samples=100"):
        chosen(graph_of(100, 4.0), k=101)
    with pytest.raises(ValueError, match="n_clusters must be at least 1, got 0"):
        chosen(graph_of(100, 4.0), k=0)
    assert chosen(graph_of(100, 4.0), k=100).n_clusters == 100


def test_a_graph_without_edges() -> None:
    with pytest.raises(ValueError, match="the graph has no edges: there is nothing to cluster by"):
        resolve(Settings(2), Graph.from_matrix(sp.csr_array((5, 5))))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"seeding_factor": 0}, "seeding_factor must be a finite number above 0, got 0"),
        ({"sampler": "fast"}, "sampler must be one of"),
        ({"importance": "uniform"}, "importance must be one of"),
        ({"degrees": "sums"}, "degrees must be one of"),
        ({"eigen_solver": "amg"}, "eigen_solver must be one of"),
        ({"assign_labels": "discretize"}, "assign_labels must be one of"),
        ({"candidates": "some"}, "candidates must be one of"),
        ({"refine": "yes"}, "refine must be one of"),
        ({"shift": -1.0}, "shift must be a finite number not below 0"),
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"regularization": -0.1}, "regularization must be a finite number not below 0"),
        ({"regularization": "some"}, "regularization must be a number"),
        ({"aggregate": 1}, "aggregate must be one of"),
        ({"coreset_size": 1.5}, "coreset_size must be a count, a fraction"),
        ({"coreset_size": 0}, "coreset_size must be at least 1"),
        ({"min_cluster_size": 0}, "min_cluster_size must be at least 1"),
        ({"max_cluster_size": -2.5}, "max_cluster_size must be a finite number above 0"),
        ({"balance": -0.1}, "balance must be a finite number not below 0"),
        ({"balance": 0.1, "refine": False}, "balance needs refine=True"),
        ({"max_cluster_size": 5, "refine": False}, "max_cluster_size needs refine=True"),
        ({"n_init": 0}, "n_init must be at least 1"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
    ],
)
def test_wrong_values_are_refused_before_there_is_a_graph(setting: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        Settings(3, **setting)


CORESET_OPTIONS = {
    "shift": 0.7,
    "seeding_factor": 3.0,
    "sampler": "tree",
    "importance": "cluster",
    "degrees": "weights",
    "candidates": "all",
}


@pytest.mark.parametrize("name", CORESET_OPTIONS)
def test_options_of_a_coreset_are_refused_where_none_is_drawn(name: str) -> None:
    setting = {name: CORESET_OPTIONS[name]}
    with pytest.raises(ValueError, match=rf"{name}=.* has no effect: all 100 nodes .* coreset_size= to less than 100"):
        chosen(graph_of(100, 40.0), aggregate=False, **setting)
    with pytest.raises(ValueError, match=rf"{name}=.* has no effect: the graph is aggregated .* aggregate=False and coreset_"):
        chosen(graph_of(50_000, 10.0), **setting)
    chosen(graph_of(1000, 90.0), coreset_size=500, **setting)  # here it has one
    chosen(graph_of(200_000, 400.0), **setting)


def test_the_sentence_says_what_was_chosen() -> None:
    small, sparse, dense = graph_of(1000, 10.0), graph_of(50_000, 10.0), graph_of(200_000, 400.0)
    assert chosen(small).sentence(small) == (
        "1,000 nodes with 10.0 entries each, 10 clusters: all nodes, without a coreset, regularization 0.1, with refinement"
    )
    assert "aggregated to a quotient graph" in chosen(sparse).sentence(sparse)
    assert "a coreset of 10,000 draws, regularization 0, without" in chosen(dense, refine=False).sentence(dense)
