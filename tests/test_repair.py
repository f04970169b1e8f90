"""Repair: best splits against all prefixes by brute force, losses of merges by definition, and what both achieve together."""

from __future__ import annotations

from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st
from sklearn.metrics import adjusted_rand_score

from corecut import Graph, _core
from corecut.refinement import refine_weighted
from corecut.repair import Repair, _merges, _pair, _second_vectors, _splits, _Weighted, repair_partition


def best_splits(
    A: np.ndarray | sp.csr_array,
    labels: np.ndarray,
    keys: np.ndarray,
    k: int,
    *,
    sizes: np.ndarray | None = None,
    tau: float = 0.0,
    least_size: float = 0.0,
    threads: int = 1,
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Call the kernel with every cluster's nodes in the order of their keys; return that order, too."""
    graph = Graph.from_matrix(A)
    nodes = np.ones(graph.n_nodes) if sizes is None else sizes
    order = np.lexsort((keys, labels)).astype(np.int64)
    start = np.searchsorted(labels[order], np.arange(k + 1)).astype(np.int64)
    gain, prefix = _core.best_splits(
        graph.matrix, graph.degrees, nodes, labels.astype(np.int32), order, start, tau, nodes.sum(), least_size, threads
    )
    return gain, prefix, np.split(order, start[1:-1])


@given(
    problems.adjacency_matrices(),
    st.sampled_from([0.0, 0.0, 0.3, 2.0]),
    st.sampled_from([0.0, 1.0, 2.0, 4.0]),
    st.data(),
)
def test_best_split_of_every_cluster_over_all_prefixes(A: np.ndarray, tau: float, least: float, data: st.DataObject) -> None:
    n, k = len(A), 3
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    keys = np.array(data.draw(st.permutations(range(n))))
    sizes = np.array(data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=n, max_size=n)))
    gain, prefix, orders = best_splits(A, labels, keys, k, sizes=sizes, tau=tau, least_size=least)
    for j, order in enumerate(orders):
        best, _ = twins.best_split(A, order, sizes, tau=tau, least_size=least)
        assert gain[j] == pytest.approx(best, abs=1e-13)
        if prefix[j] == 0:
            assert best == -np.inf
        else:  # of two equally good ones either may come
            ends = [order[: prefix[j]], order[prefix[j] :]]
            halves = np.full(n, -1)
            for part, end in enumerate(ends):
                halves[end] = part
                assert sizes[end].sum() >= least
            kept = [_kept(A, halves == part, sizes, tau) for part in (0, 1)]
            assert sum(kept) - _kept(A, halves >= 0, sizes, tau) == pytest.approx(best, abs=1e-13)


def _kept(A: np.ndarray, inside: np.ndarray, sizes: np.ndarray, tau: float) -> float:
    size = sizes[inside].sum()
    whole = A[inside].sum() + tau * size
    return float((A[np.ix_(inside, inside)].sum() + tau / sizes.sum() * size**2) / whole)


def test_a_part_without_volume_is_no_part(rng: np.random.Generator) -> None:
    # Tenths do not add up exactly: what is left after subtracting them all is not zero, and its ratio could be anything.
    for _ in range(200):
        A = problems.random_adjacency(rng, 9, density=0.6) * 0.1
        A[6:] = A[:, 6:] = 0.0
        labels, keys = np.zeros(9, dtype=int), np.arange(9)
        gain, prefix, (order,) = best_splits(A, labels, keys, 1)
        best, expected = twins.best_split(A, order, np.ones(9))
        assert gain[0] == pytest.approx(best, abs=1e-12)
        assert prefix[0] == expected


def test_finds_the_border_between_two_merged_clusters(rng: np.random.Generator) -> None:
    graph, truth = problems.planted_graph(rng, [200, 150, 250], degree=12.0, mixing=0.05)
    merged = np.array([0, 0, 1])[truth]
    gain, prefix, orders = best_splits(graph, merged, truth + rng.random(truth.size), 2)
    assert prefix[0] == 200
    assert gain[0] > 0.7
    assert gain[1] < 0.2
    assert set(truth[orders[0][:200]].tolist()) == {0}


def test_equal_bits_for_any_number_of_threads(rng: np.random.Generator) -> None:
    graph, truth = problems.planted_graph(rng, [40] * 50, degree=6.0)
    keys = rng.random(truth.size)
    one = best_splits(graph, truth, keys, 50, tau=0.5, threads=1)
    for threads in (2, 3):
        checks.same_bits(one[:2], best_splits(graph, truth, keys, 50, tau=0.5, threads=threads)[:2])


@pytest.mark.parametrize(
    ("order", "start", "words"),
    [
        ([0, 1, 1], [0, 3], "order must list every node once"),
        ([0, 1, 3], [0, 3], "order must list every node once"),
        ([0, 1, -1], [0, 3], "order must list every node once"),
        ([0, 1, 2], [0, 4], "start must increase"),
        ([0, 1, 2], [2, 1], "start must increase"),
        ([0, 1, 2], [], "start must not be empty"),
    ],
)
def test_wrong_orders_are_refused(order: list[int], start: list[int], words: str) -> None:
    graph, ones = Graph.from_matrix(np.ones((3, 3))), np.ones(3)
    arrays = (np.zeros(3, dtype=np.int32), np.array(order, dtype=np.int64), np.array(start, dtype=np.int64))
    with pytest.raises(ValueError, match=words):
        _core.best_splits(graph.matrix, graph.degrees, ones, *arrays, 0.0, 3.0, 0.0, 1)


# --- merges and pairs ----------------------------------------------------------------------------------------------------


def weighted(A: Any, labels: np.ndarray, k: int, *, tau: float = 0.0, sizes: np.ndarray | None = None) -> _Weighted:
    graph = A if isinstance(A, Graph) else Graph.from_matrix(A)
    return _Weighted(graph, labels.astype(np.int32), np.ones(graph.n_nodes) if sizes is None else sizes, tau, k, None)


@given(problems.adjacency_matrices(min_nodes=4), st.sampled_from([0.0, 0.5]), st.data())
def test_losses_of_all_merges_by_definition(A: np.ndarray, tau: float, data: st.DataObject) -> None:
    n, k = len(A), 4
    labels = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n)))
    sizes = np.array(data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=n, max_size=n)))
    largest = data.draw(st.sampled_from([np.inf, 5.0]))
    losses, first, second = _merges(weighted(A, labels, k, tau=tau, sizes=sizes), largest, np.inf)
    assert np.all(np.diff(losses) >= 0)
    before = twins.exact_objective(A, labels, k, tau, sizes)
    found = {}
    for loss, i, j in zip(losses, first, second, strict=True):
        merged = np.where(labels == j, i, labels)
        rise = twins.exact_objective(A, merged, k, tau, sizes) - before
        assert loss == pytest.approx(float(rise), abs=1e-12)
        found[i, j] = loss
    counted = np.bincount(labels, sizes, minlength=k)
    adjacent = {
        (i, j)
        for i in range(k)
        for j in range(i + 1, k)
        if A[np.ix_(labels == i, labels == j)].any() and counted[i] + counted[j] <= largest
    }
    assert set(found) == adjacent


def test_second_vectors_are_those_of_each_clusters_own_graph(rng: np.random.Generator) -> None:
    graph, truth = problems.planted_graph(rng, [60, 60, 60, 60], degree=14.0, mixing=0.05)
    labels, tau = truth // 2, 0.4
    columns = _second_vectors(weighted(graph, labels, 2, tau=tau), rng)
    regular = graph.toarray() + tau / 240
    degrees = regular.sum(axis=1)
    for j in range(2):
        inside = labels == j
        root = np.sqrt(degrees[inside])
        own = regular[np.ix_(inside, inside)] / np.outer(root, root)
        own -= np.outer(root, root) * (root @ own @ root) / (root @ root) ** 2  # about the trivial direction
        second = np.linalg.eigh(own)[1][:, -1] / root
        cosine = np.abs(columns[inside].T @ (degrees[inside] * second)) / np.linalg.norm(
            root[:, None] * columns[inside], axis=0
        )
        assert cosine.max() > 0.98


def test_dear_merges_are_left_out_and_blocks_of_rows_make_no_difference(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, truth = problems.planted_graph(rng, [20] * 9, degree=12.0, mixing=0.5)
    of = weighted(graph, truth.astype(np.int32), 9, tau=0.3)
    everything = _merges(of, np.inf, np.inf)
    assert everything[0].size > 20
    bound = float(everything[0][9])
    for pairs in (1, 5, 10**6):
        monkeypatch.setattr("corecut.repair._PAIRS", pairs)
        for whole, part in zip(everything, _merges(of, np.inf, bound), strict=True):
            np.testing.assert_array_equal(whole[:10], part)


def test_pairs_are_of_distinct_clusters_and_their_changes_add_up(rng: np.random.Generator) -> None:
    # Clusters 0 and 1 are two true ones each, four others are halves of two.
    graph, truth = problems.planted_graph(rng, [50] * 8, degree=14.0, mixing=0.05)
    halves = rng.integers(2, size=truth.size)
    labels = np.select([truth < 2, truth < 4, truth == 4, truth == 5], [0, 1, 2 + halves, 4 + halves], truth).astype(np.int32)
    of = weighted(graph, labels, 8, tau=0.3)
    splits, merges = _splits(of, 10.0, rng), _merges(of, np.inf, np.inf)
    changed, made = _pair(labels, splits, merges, np.zeros(8, bool), 0.0)
    assert made == 2
    assert np.unique(changed).size == 8
    gains = sum(splits[0][[0, 1]])
    losses = sum(loss for loss, i, j in zip(*merges, strict=True) if (i, j) in ((2, 3), (4, 5)))
    before, after = (twins.exact_objective(graph.toarray(), partition, 8, 0.3) for partition in (labels, changed))
    assert float(before - after) == pytest.approx(gains - losses, abs=1e-12)
    assert adjusted_rand_score(truth, changed) > 0.95


# --- repair --------------------------------------------------------------------------------------------------------------


def repaired(A: Any, labels: np.ndarray, k: int, *, tau: float = 0.5, **bounds: Any) -> Repair:
    graph = A if isinstance(A, Graph) else Graph.from_matrix(A)
    ones = np.ones(graph.n_nodes)
    found = repair_partition(graph, labels.astype(np.int32), sizes=ones, tau=tau, n_clusters=k, random_state=0, **bounds)
    checks.valid_labels(found.labels, graph.n_nodes, k)
    exact = refine_weighted(graph, found.labels, sizes=ones, tau=tau, n_clusters=k, max_passes=0)
    assert found.objective == pytest.approx(exact.objective, rel=1e-12), "the objective that is told is that of the labels"
    return found


@pytest.fixture(scope="module")
def six() -> tuple[sp.csr_array, np.ndarray]:
    """Return a planted graph of six clusters."""
    return problems.planted_graph(np.random.default_rng(8), [120, 100, 90, 80, 70, 60], degree=12.0, mixing=0.1)


def test_two_merged_and_one_split_cluster_are_mended(six: tuple[sp.csr_array, np.ndarray], rng: np.random.Generator) -> None:
    graph, truth = six
    wrong = np.where(truth == 1, 0, truth)
    wrong[(truth == 4) & (rng.random(truth.size) < 0.5)] = 1
    refined = refine_weighted(Graph.from_matrix(graph), wrong, sizes=np.ones(truth.size), tau=0.5)
    assert adjusted_rand_score(truth, refined.labels) < 0.85, "moves of single nodes do not mend it"
    found = repaired(graph, wrong, 6)
    assert adjusted_rand_score(truth, found.labels) > 0.98
    assert found.n_pairs >= 1
    assert found.objective < found.objective_before - 0.15


def test_everything_that_is_right_is_left_alone(six: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, truth = six
    settled = refine_weighted(Graph.from_matrix(graph), truth, sizes=np.ones(truth.size), tau=0.5)
    found = repaired(graph, settled.labels, 6)
    np.testing.assert_array_equal(found.labels, settled.labels)
    assert (found.n_pairs, found.objective) == (0, found.objective_before)


@pytest.mark.parametrize("k", [1, 2])
def test_two_clusters_cannot_be_split_and_merged(k: int, rng: np.random.Generator) -> None:
    graph, truth = problems.planted_graph(rng, [50, 50])
    found = repaired(graph, truth % k, k)
    assert (found.n_pairs, found.n_rounds) == (0, 0)


@pytest.mark.parametrize("tau", [0.0, 0.5])
def test_the_objective_never_rises(tau: float, rng: np.random.Generator) -> None:
    pairs = 0
    for seed in range(12):
        graph, truth = problems.planted_graph(np.random.default_rng(seed), [40] * 7, degree=8.0, mixing=0.3)
        start = rng.permutation(7)[truth] if seed % 2 else rng.integers(7, size=truth.size)
        start = np.where(start == 6, rng.integers(7, size=truth.size), start)
        begin = refine_weighted(Graph.from_matrix(graph), start, sizes=np.ones(truth.size), tau=tau, n_clusters=7, max_passes=0)
        found = repaired(graph, start, 7, tau=tau)
        assert found.objective <= found.objective_before <= begin.objective
        pairs += found.n_pairs
    assert pairs > 0, "nothing was repaired, so that nothing was tested"


def test_a_giant_is_split_within_the_slack_only(rng: np.random.Generator) -> None:
    # One random graph without clusters of its own, and four small clusters: every split of the giant costs something.
    graph, truth = problems.planted_graph(rng, [400, 40, 40, 40, 40], degree=16.0, mixing=0.05)
    refused = repaired(graph, truth, 5, max_cluster_size=250, slack=0.0)
    assert np.bincount(refused.labels).max() > 350
    assert refused.n_pairs == 0
    forced = repaired(graph, truth, 5, max_cluster_size=250, slack=np.inf)
    assert np.bincount(forced.labels).max() <= 250
    assert forced.objective > forced.objective_before


def test_merges_keep_to_the_largest_size(six: tuple[sp.csr_array, np.ndarray], rng: np.random.Generator) -> None:
    # Two true clusters of 70 and 60 are one, and the cluster of 120 is two: without a bound they are swapped back.
    graph, truth = six
    wrong = np.where(truth == 5, 4, truth)
    wrong[(truth == 0) & (rng.random(truth.size) < 0.5)] = 5
    free = repaired(graph, wrong, 6, max_cluster_size=130)
    assert adjusted_rand_score(truth, free.labels) > 0.98
    bounded = repaired(graph, wrong, 6, max_cluster_size=118, slack=0.0)
    halves = np.bincount(bounded.labels[truth == 0], minlength=6)
    assert np.bincount(bounded.labels).max() <= max(118, np.bincount(wrong).max())
    assert np.count_nonzero(halves > 20) == 2, "the two halves may not become one"


def test_parts_keep_to_the_smallest_size(six: tuple[sp.csr_array, np.ndarray], rng: np.random.Generator) -> None:
    graph, truth = six
    wrong = np.where(truth == 5, 4, truth)  # 70 and 60 nodes as one cluster
    wrong[(truth == 0) & (rng.random(truth.size) < 0.5)] = 5
    together = [
        np.bincount(repaired(graph, wrong, 6, min_cluster_size=least).labels[truth == j], minlength=6).argmax()
        for least in (50, 66)
        for j in (4, 5)
    ]
    assert together[0] != together[1]
    assert together[2] == together[3]


def test_an_empty_cluster_is_no_obstacle(six: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, truth = six
    found = repaired(graph, np.where(truth == 3, 2, truth), 6)
    assert found.objective <= found.objective_before


def test_repair_of_equal_bits_for_any_number_of_threads(rng: np.random.Generator) -> None:
    graph, truth = problems.planted_graph(rng, [200] * 20, degree=10.0, mixing=0.2)
    start = np.where(rng.random(truth.size) < 0.2, rng.integers(20, size=truth.size), truth // 2 + rng.integers(2) * 10)
    one = repaired(graph, start, 20, n_jobs=1)
    assert one.n_pairs > 0
    for jobs in (1, 2, 3):
        checks.same_bits(one, repaired(graph, start, 20, n_jobs=jobs))


def test_labels_that_come_in_are_not_changed(six: tuple[sp.csr_array, np.ndarray], rng: np.random.Generator) -> None:
    graph, truth = six
    start = rng.integers(6, size=truth.size).astype(np.int32)
    kept = start.copy()
    repaired(graph, start, 6)
    np.testing.assert_array_equal(start, kept)
