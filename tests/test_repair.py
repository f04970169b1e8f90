"""Repair: the best split of each cluster along an order of its nodes, against all prefixes by brute force."""

from __future__ import annotations

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import Graph, _core


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
