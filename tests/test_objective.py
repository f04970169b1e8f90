"""The objective: both languages agree with exact fractions on its value, a move, a split, a merge and the bounds."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pytest
import twins
from hypothesis import given, strategies as st

from corecut import CoresetSpectralClustering, Graph, _core, conductance, normalized_cut, refine_partition
from corecut.objective import Objective, typical_volume, volume_of_clusters
from corecut.refinement import refine_weighted
from corecut.weighted import WeightedGraph

SOURCE = Path(__file__).parents[1] / "src" / "corecut"
FEES = st.sampled_from([0.0, 0.25, 1.0, 12.0])


def drawn_labels(data: st.DataObject, n: int, k: int) -> np.ndarray:
    return np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))


def native(A: np.ndarray, labels: np.ndarray, k: int, objective: Objective) -> float:
    """F as the kernels compute it."""
    level = WeightedGraph(Graph.from_matrix(A), np.ones(len(A)))
    return refine_weighted(level, labels.astype(np.int32), objective, k, max_passes=0).objective


def sums(A: np.ndarray, labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    association, volume = twins.exact_sums(A, labels, k)
    return np.array(association, float), np.array(volume, float)


# --- its value -----------------------------------------------------------------------------------------------------------


@given(problems.adjacency_matrices(), FEES, st.data())
def test_both_languages_agree_with_exact_fractions(A: np.ndarray, fee: float, data: st.DataObject) -> None:
    k = 4
    labels, objective = drawn_labels(data, len(A), k), Objective(fee)
    exact = twins.exact_objective(A, labels, k, fee)
    association, volume = sums(A, labels, k)
    assert objective.terms(association, volume).sum() == pytest.approx(float(exact), rel=1e-13)
    assert k - objective.kept(association, volume).sum() == pytest.approx(float(exact), rel=1e-13, abs=1e-13)
    assert native(A, labels, k, objective) == pytest.approx(float(exact), rel=1e-13, abs=1e-13)


@given(problems.adjacency_matrices(edges=True), st.sampled_from([0.0, 0.05, 0.5]), st.data())
def test_metrics_are_the_objective(A: np.ndarray, balance: float, data: st.DataObject) -> None:
    k = 3
    labels = drawn_labels(data, len(A), k)
    volume = volume_of_clusters(A.sum(axis=1), k)
    objective = Objective.of(volume, k, balance=balance)
    assert objective.fee == balance * volume / k
    terms = objective.terms(*sums(A, labels, k))
    np.testing.assert_allclose(conductance(A, labels, balance=balance, n_clusters=k), terms, rtol=1e-13)
    cut = normalized_cut(A, labels, balance=balance, n_clusters=k)
    refined = refine_partition(A, labels, balance=balance, n_clusters=k, max_passes=0)
    assert cut == pytest.approx(refined.objective / k, rel=1e-12)
    assert cut == pytest.approx(float(twins.exact_objective(A, labels, k, objective.fee)) / k, rel=1e-12)


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=60), st.sampled_from([1.0, 3.0, 10.0, 40.0]))
def test_a_part_of_the_typical_volume_leaves_enough_parts_whatever_a_few_nodes_weigh(
    weights: list[float], parts: float
) -> None:
    degrees = np.array(weights)
    share = typical_volume(degrees, parts) / parts
    assert share == pytest.approx(twins.typical_volume(weights, parts) / parts, rel=1e-12)
    assert 0 < share <= degrees.sum() / parts * (1 + 1e-12)
    heavy = degrees > share
    # As many parts as are wanted, if the light nodes filled theirs to the brim.
    if np.count_nonzero(heavy) < min(parts / 2, degrees.size):
        assert np.count_nonzero(heavy) + degrees[~heavy].sum() / share >= parts * (1 - 1e-9)
    assert typical_volume(8.0 * degrees, parts) / parts == 8.0 * share


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=30), st.sampled_from([1, 2, 3, 10]))
def test_all_clusters_but_one_may_be_heavy_nodes(weights: list[float], k: int) -> None:
    volume = volume_of_clusters(np.array(weights), k)
    assert volume == pytest.approx(twins.typical_volume(weights, k, most=k), rel=1e-12)
    assert 0 < volume <= sum(weights) * (1 + 1e-12)


def test_the_ends_of_one_heavy_edge_do_not_make_fees_of_three_clusters() -> None:
    assert volume_of_clusters(np.concatenate([np.ones(1000), [1e6, 1e6]]), 3) == pytest.approx(3000.0)
    graph, _ = problems.planted_graph(np.random.default_rng(0), [300, 300], degree=12.0, mixing=0.05)
    heavy = graph.tolil()
    heavy[0, 1] = heavy[1, 0] = 1e6
    model = CoresetSpectralClustering(3, random_state=0).fit(heavy.tocsr())
    assert model.labels_[0] == model.labels_[1]
    assert model.normalized_cut_ < 0.1
    assert np.sort(np.bincount(model.labels_))[1] > 280


def test_the_typical_volume_of_equal_nodes_is_their_volume() -> None:
    assert typical_volume(np.ones(1000), 50) == 1000.0
    assert typical_volume(np.concatenate([np.ones(1000), [1e8, 1e12]]), 50) == pytest.approx(1000 * 50 / 48)


def test_terms_and_what_is_kept_add_up_to_one() -> None:
    association, volume = np.array([3.0, 0.0, 5.0, 0.0]), np.array([4.0, 2.0, 5.0, 0.0])
    for fee in (0.0, 0.5):
        objective = Objective(fee)
        np.testing.assert_allclose(objective.terms(association, volume) + objective.kept(association, volume), 1.0)
    assert Objective(0.5).terms(association, volume).tolist() == [1.5 / 4, 2.5 / 2, 0.5 / 5, 1.0]


def test_rounding_makes_no_clean_cut_negative() -> None:
    volume = np.array([0.1 + 0.2])
    assert Objective().terms(np.nextafter(volume, 1.0), volume).tolist() == [0.0]


def test_the_fee_is_a_share_of_the_mean_cluster() -> None:
    # A cluster of the mean volume pays β, one of a tenth of it ten times as much.
    objective = Objective.of(600.0, 6, balance=0.05)
    paid = objective.terms(np.array([100.0, 10.0]), np.array([100.0, 10.0]))
    np.testing.assert_allclose(paid, [0.05, 0.5])
    assert Objective.of(600.0, 6) == Objective()


# --- what changes it -----------------------------------------------------------------------------------------------------


@given(problems.adjacency_matrices(min_nodes=3), FEES, st.data())
def test_a_move_changes_it_as_it_says(A: np.ndarray, fee: float, data: st.DataObject) -> None:
    # One sweep that makes one move: the fall that the kernel adds up is the exact one.
    labels = drawn_labels(data, len(A), 3)
    level = WeightedGraph(Graph.from_matrix(A), np.ones(len(A)))
    found = refine_weighted(level, labels.astype(np.int32), Objective(fee), 3, max_passes=1)
    fall = twins.exact_objective(A, labels, 3, fee) - twins.exact_objective(A, found.labels, 3, fee)
    assert fall >= 0
    assert found.objective_before - found.objective == pytest.approx(float(fall), rel=1e-9, abs=1e-12)


@given(problems.adjacency_matrices(min_nodes=3), FEES, st.data())
def test_a_split_and_a_merge_undo_each_other(A: np.ndarray, fee: float, data: st.DataObject) -> None:
    n = len(A)
    objective = Objective(fee)
    labels = np.zeros(n, np.int32)
    gains, first, _ = _core.split_clusters(
        matrix=Graph.from_matrix(A).matrix,
        degrees=A.sum(axis=1),
        sizes=np.ones(n),
        labels=labels,
        wanted=np.ones(1, np.uint8),
        objective=objective.native,
        low=np.zeros(1),
        high=np.full(1, math.inf),
        both=True,
        regularization=0.0,
        steps=20,
        vectors=2,
        seed=data.draw(st.integers(0, 5)),
        threads=1,
    )
    if gains[0] == -math.inf:
        return
    association, volume = sums(A, first.astype(int), 2)
    together = objective.kept(np.array([A.sum()]), np.array([A.sum()]))[0]
    assert gains[0] == pytest.approx(objective.kept(association, volume).sum() - together, abs=1e-12)
    # F of two clusters, of which the second was empty before and counted 1.
    rise = twins.exact_objective(A, first.astype(int), 2, fee) - twins.exact_objective(A, labels, 2, fee)
    assert gains[0] == pytest.approx(-float(rise), abs=1e-12)


# --- bounds --------------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, 7.5]), min_size=1, max_size=6), st.integers(0, 4), st.integers(4, 9))
def test_both_languages_agree_on_how_far_sizes_are_outside(sizes: list[float], smallest: int, largest: int) -> None:
    expected = sum(max(Fraction(0), Fraction(s) - largest) + max(Fraction(0), smallest - Fraction(s)) for s in sizes)
    objective = Objective(0.0, smallest, largest)
    assert objective.outside(np.array(sizes)) == float(expected)
    # One node for each cluster, none of which may move.
    n = len(sizes)
    level = WeightedGraph(Graph.from_matrix(np.ones((n, n))), np.array(sizes))
    moves, outside = _core.bring_into_bounds(
        matrix=level.graph.matrix,
        degrees=level.graph.degrees,
        sizes=level.sizes,
        labels=np.arange(n, dtype=np.int32),
        k=n,
        objective=objective.native,
    )
    assert (moves, outside) == (0, float(expected))


def test_bounds_are_no_part_of_the_objective() -> None:
    objective = Objective(0.5, 2.0, 7.0)
    assert objective.bounded
    assert objective.unbounded() == Objective(0.5)
    assert not objective.unbounded().bounded
    assert Objective(0.0, 1.0).bounded
    assert Objective(max_size=3.0).bounded
    association, volume = np.array([3.0, 1.0]), np.array([4.0, 2.0])
    assert objective.terms(association, volume).tolist() == objective.unbounded().terms(association, volume).tolist()


# --- one room ------------------------------------------------------------------------------------------------------------

# The formula, however it is spelled: a fee added or subtracted, or a cut that is divided by a volume.
FORMULA = re.compile(
    r"[-+]\s*(?:\w+(?:\.|->))?fee\b|\bfee_?\s*[-+]|(?:cut|association|inside)\w*(?:\[\w+\])?\s*\)?\s*/\s*vol\w*"
)


def code_of(path: Path) -> str:
    """Return a file's text without comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return re.sub(r"#.*", "", re.sub(r'r?""".*?"""', "", text, flags=re.DOTALL))
    return re.sub(r"//.*|/\*.*?\*/", "", text)


def written_in(pattern: str) -> set[str]:
    return {path.name for path in SOURCE.rglob(pattern) if FORMULA.search(code_of(path))}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(association - self.fee) / volume", True),
        ("paid = cut + fee", True),
        ("x = objective.kept(inside, volume)", False),
        ("association[j] / volume", True),
        ("cut_j / vol_j", True),
        ("fee=objective.fee", False),
    ],
)
def test_the_formula_is_recognised(text: str, found: Any) -> None:
    assert bool(FORMULA.search(text)) is found


def test_the_objective_is_written_once_in_each_language() -> None:
    assert written_in("*.py") == {"objective.py"}
    assert written_in("*.[ch]pp") == {"objective.hpp"}
