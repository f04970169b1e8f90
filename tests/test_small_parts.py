"""Components that are too small to be clusters by themselves: they fill clusters, are clusters, or join the largest."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from corecut import CoresetSpectralClustering, Graph, make_sbm
from corecut.settings import Settings, resolve
from corecut.small_parts import SmallParts
from corecut.weighted import WeightedGraph


def clique(n: int) -> np.ndarray:
    return np.ones((n, n)) - np.eye(n)


def small_parts(A: Any, k: int, **settings: Any) -> SmallParts:
    graph = Graph.from_matrix(sp.csr_array(A))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        choices = resolve(Settings(k, **settings), graph)
    return SmallParts.beside(WeightedGraph.of(graph), choices)


def fitted(A: Any, k: int, **settings: Any) -> CoresetSpectralClustering:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CoresetSpectralClustering(k, random_state=0, **settings).fit(A)


def blocks(small: int, *, joined: bool) -> tuple[sp.csr_array, np.ndarray]:
    """Return three blocks joined by single edges, and a small one beside them or joined, too."""
    A, truth = make_sbm([1500, 360, 360, small], 4, 0.3, 0, random_state=1)
    A = sp.lil_array(A)
    for i, j in [(0, 1500), (1, 1860)] + [(2, 2220)] * joined:
        A[i, j] = A[j, i] = 1.0
    return sp.csr_array(A), truth


def test_clusters_are_filled_with_as_many_components_as_suit_the_mean() -> None:
    # 300 + 100 nodes, k = 8: the mean is 50, and 25 cliques of four fill two clusters.
    small = small_parts(sp.block_diag([clique(300), *[clique(4)] * 25]), 8)
    assert small.n_clusters == 2
    assert small.main.tolist() == [True] * 300 + [False] * 100
    sizes = np.bincount(small.cluster_of)
    assert sizes.sum() == 25
    assert abs(sizes[0] - sizes[1]) <= 1
    # Components are numbered by their volume; each has one number.
    assert np.bincount(small.component[300:]).tolist() == [4] * 25
    labels = small.everywhere(np.zeros(300, np.int32), 6, np.inf)
    assert np.bincount(labels, minlength=8).tolist() == [300, 0, 0, 0, 0, 0, *sorted(4 * sizes)[::-1]]


def test_a_filled_cluster_has_no_more_than_the_bound() -> None:
    small = small_parts(sp.block_diag([clique(300), *[clique(4)] * 37]), 8, max_cluster_size=60)
    assert small.n_clusters == 2
    assert (4 * np.bincount(small.cluster_of[small.cluster_of >= 0])).tolist() == [60, 60]
    assert np.count_nonzero(small.cluster_of < 0) == 7


def test_less_than_a_cluster_fills_none() -> None:
    small = small_parts(sp.block_diag([clique(300), *[clique(4)] * 9]), 8)
    assert small.n_clusters == 0
    assert small.cluster_of.tolist() == [-1] * 9


def test_isolated_nodes_are_no_components() -> None:
    small = small_parts(sp.block_diag([clique(300), clique(3), sp.csr_array((200, 200))]), 8)
    assert np.flatnonzero(small.component >= 0).tolist() == [300, 301, 302]
    assert small.n_clusters == 0


@pytest.mark.parametrize("bounds", [{}, {"max_cluster_size": 1.1}])
def test_components_leave_to_communities_as_many_clusters_as_there_are(bounds: dict[str, float]) -> None:
    A, truth = make_sbm(60, 50, 0.5, 0.003, random_state=0)
    whole = sp.block_diag([A, *[clique(4)] * 750], format="csr")
    labels = fitted(whole, 100, **bounds).labels_
    assert adjusted_rand_score(truth, labels[:3000]) > 0.99
    assert np.bincount(labels[3000:], minlength=100).max() <= 64
    assert np.bincount(labels).max() <= 66


@pytest.mark.parametrize("small", [30, 50, 70])
def test_to_remove_an_edge_makes_nothing_worse(small: int) -> None:
    apart, joined = (fitted(blocks(small, joined=joined)[0], 4).normalized_cut_ for joined in (False, True))
    assert apart <= joined


def test_a_small_component_is_a_cluster_where_real_ones_would_be_cut() -> None:
    A, truth = blocks(50, joined=False)
    model = fitted(A, 4)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    X, y = make_blobs([2400, 360, 180, 60], centers=[[0, 0], [8, 0], [0, 8], [8, 8]], random_state=0)
    assert adjusted_rand_score(y, fitted(X, 4, affinity="nearest_neighbors").labels_) > 0.995


@pytest.mark.parametrize("k", [2, 3])
def test_noisy_communities_are_not_left_whole_for_a_small_component(k: int) -> None:
    A, truth = make_sbm(200, k, 0.12, 0.05, random_state=0)
    labels = fitted(sp.block_diag([A, *[clique(4)] * 3], format="csr"), k).labels_
    assert adjusted_rand_score(truth, labels[: truth.size]) > 0.8


def test_founders_are_paid_by_the_cheapest_merges() -> None:
    A, truth = blocks(50, joined=False)
    graph = Graph.from_matrix(A)
    level = WeightedGraph.of(graph)
    choices = resolve(Settings(4), graph)
    small = SmallParts.beside(level, choices)
    part = level.restrict(small.main)
    four = np.where(truth[:2220] == 2, 2 + np.arange(2220) % 2, truth[:2220]).astype(np.int32)
    assert small.founders(part, four, 4, choices) == 1
    assert adjusted_rand_score(truth, small.with_founders(part, four, 4, 1)) == 1.0
    # Where a cluster less saves little, the small component joins another one.
    noisy, _ = make_sbm([400, 400, 400], 3, 0.1, 0.05, random_state=0)
    graph = Graph.from_matrix(sp.block_diag([noisy, clique(9)], format="csr"))
    level = WeightedGraph.of(graph)
    choices = resolve(Settings(3), graph)
    small = SmallParts.beside(level, choices)
    thirds = np.repeat(np.arange(3, dtype=np.int32), 400)
    assert small.cluster_of.size == 1
    assert small.founders(level.restrict(small.main), thirds, 3, choices) == 0


def test_crumbs_are_no_clusters_where_two_of_three_communities_are_noisy() -> None:
    pair, truth = make_sbm(300, 2, 0.12, 0.05, random_state=0)
    other, _ = make_sbm(300, 1, 0.12, 0.0, random_state=1)
    labels = fitted(sp.block_diag([pair, other, *[clique(5)] * 3], format="csr"), 3).labels_
    assert adjusted_rand_score(truth, labels[:600]) > 0.8


def test_any_number_of_threads_makes_the_same_of_small_parts() -> None:
    A = sp.block_diag([make_sbm(200, 10, 0.2, 0.02, random_state=0)[0], *[clique(5)] * 130], format="csr")
    one, two = (fitted(A, 12, n_jobs=jobs).labels_ for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)
