"""What no cut decides: isolated nodes, tiny components, clusters that nobody joined."""

from __future__ import annotations

import time
from typing import Any

import checks
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import block_diag
from sklearn.metrics import adjusted_rand_score

from corecut import CoresetSpectralClustering, Graph, make_sbm, normalized_cut
from corecut.objective import Objective
from corecut.placement import fill_empty, main_part, place_isolated, place_rest, split_by_components
from corecut.weighted import WeightedGraph


def cliques(*sizes: int) -> Graph:
    """Return a graph of cliques without loops; a clique of one node is isolated."""
    return Graph.from_matrix(sp.csr_array(block_diag(*(np.ones((size, size)) - np.eye(size) for size in sizes))))


def paths(*sizes: int) -> Graph:
    """Return a graph of separate paths."""
    one = [sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1]) for n in sizes]
    return Graph.from_matrix(sp.block_diag(one, format="csr"))


def level_of(graph: Graph, sizes: np.ndarray | None = None) -> WeightedGraph:
    return WeightedGraph(graph, np.ones(graph.n_nodes) if sizes is None else sizes)


def main_of(graph: Graph, k: int, sizes: np.ndarray | None = None) -> list[bool]:
    return main_part(level_of(graph, sizes), k).tolist()


# --- what takes part -----------------------------------------------------------------------------------------------------


def test_a_connected_graph_takes_part_as_a_whole() -> None:
    assert all(main_of(cliques(30), 3))


def test_isolated_nodes_and_tiny_components_are_set_aside() -> None:
    graph = cliques(1, 40, 2, 40, 1)
    assert main_of(graph, 2) == [False] + 40 * [True] + 2 * [False] + 40 * [True] + [False]


def test_a_tiny_component_has_few_nodes_and_little_volume() -> None:
    # 100 nodes, k = 2: less than a tenth of the mean cluster is less than five nodes and a twentieth of the volume.
    assert main_of(cliques(95, 5), 2)[-5:] == [True] * 5  # enough nodes
    assert main_of(cliques(96, 4), 2)[-4:] == [False] * 4
    heavy = block_diag(np.ones((96, 96)), 1000 * np.ones((4, 4)))
    assert main_of(Graph.from_matrix(heavy), 2)[-4:] == [True] * 4  # enough volume
    sizes = np.concatenate([np.ones(96), np.full(4, 50.0)])  # groups that stand for many nodes
    assert main_of(cliques(96, 4), 2, sizes)[-4:] == [True] * 4


def test_a_graph_of_small_pieces_is_clustered_by_its_pieces() -> None:
    graph = cliques(*[3] * 100, 1, 1)
    assert main_of(graph, 2) == [True] * 300 + [False] * 2


def test_never_fewer_nodes_than_clusters() -> None:
    # The large component has three nodes, so that five clusters need the pairs, too.
    matrix = block_diag(1e6 * np.ones((3, 3)), np.ones((2, 2)), np.ones((2, 2)), np.zeros((1, 1)))
    sizes = np.array([1e6, 1e6, 1e6, 1, 1, 1, 1, 1])
    assert main_of(Graph.from_matrix(matrix), 2, sizes) == [True] * 3 + [False] * 5
    assert main_of(Graph.from_matrix(matrix), 5, sizes) == [True] * 7 + [False]


# --- the rest ------------------------------------------------------------------------------------------------------------


def test_the_rest_goes_to_the_cluster_of_largest_volume_component_by_component() -> None:
    graph = cliques(10, 20, 2, 1)
    labels = np.repeat([0, 1, 0, 0], [10, 20, 2, 1]).astype(np.int32)
    main = np.repeat([True, True, False, False], [10, 20, 2, 1])
    placed = place_rest(level_of(graph), labels, main, n_clusters=2)
    checks.valid_labels(placed, 33, 2)
    assert placed[30:].tolist() == [1, 1, 1]
    np.testing.assert_array_equal(placed[:30], labels[:30])
    assert labels[30:].tolist() == [0, 0, 0], "the labels that came in are not changed"


def test_components_stay_together_and_clusters_within_their_bound() -> None:
    graph = cliques(10, 9, 3, 1, 2)
    labels = np.repeat([0, 1, 0, 0, 0], [10, 9, 3, 1, 2]).astype(np.int32)
    main = np.repeat([True, True, False, False, False], [10, 9, 3, 1, 2])
    placed = place_rest(level_of(graph), labels, main, n_clusters=2, max_size=12.0)
    # The triple has no room with the ten and fills up the nine, the single node joins the ten; the pair then fits nowhere and
    # goes where fewest are.
    assert placed[19:].tolist() == [1, 1, 1, 0, 0, 0]


def test_the_rest_is_measured_in_original_nodes() -> None:
    graph = cliques(10, 9, 1, 1)
    sizes = np.ones(21)
    sizes[19] = 5.0
    labels = np.repeat([0, 1, 0, 0], [10, 9, 1, 1]).astype(np.int32)
    main = np.arange(21) < 19
    placed = place_rest(level_of(graph, sizes), labels, main, n_clusters=2, max_size=14.0)
    assert placed[19:].tolist() == [1, 0]


def test_nothing_to_place() -> None:
    labels = np.zeros(5, np.int32)
    assert place_rest(level_of(cliques(5)), labels, np.ones(5, bool), n_clusters=1) is labels
    assert place_isolated(cliques(5), labels, 1) is labels


def test_empty_clusters_come_first() -> None:
    graph = cliques(4, 4, 1, 1, 2)
    labels = np.repeat([0, 3, 0, 0, 0], [4, 4, 1, 1, 2]).astype(np.int32)
    placed = place_rest(level_of(graph), labels, np.arange(12) < 8, n_clusters=4)
    assert placed[8:].tolist() == [1, 2, 0, 0]


def test_a_million_isolated_nodes_are_placed_quickly() -> None:
    n, k = 1_000_000, 200
    graph = Graph.from_matrix(sp.csr_array(sp.block_diag([sp.csr_array(np.ones((1000, 1000))), sp.csr_array((n, n))])))
    labels = np.zeros(n + 1000, np.int32)
    labels[:1000] = np.arange(1000) % k
    begin = time.process_time()
    placed = place_rest(level_of(graph), labels, ~graph.isolated, n_clusters=k, max_size=5005.0)
    assert time.process_time() - begin < 3.0
    assert np.bincount(placed, minlength=k).tolist() == [5005] * k


def test_isolated_nodes_join_the_cluster_of_largest_volume() -> None:
    graph = cliques(3, 1, 5, 1)
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 0], np.int32)
    placed = place_isolated(graph, labels, 2)
    checks.valid_labels(placed, 10, 2)
    assert placed.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]
    assert labels[3] == labels[9] == 0, "the labels that came in are not changed"


def test_isolated_nodes_go_where_bounds_want_them() -> None:
    graph = cliques(6, 4, 2, *[1] * 8)
    labels = np.repeat([0, 1, 2, 0], [6, 4, 2, 8]).astype(np.int32)

    def counted(**bounds: float) -> list[int]:
        return np.bincount(place_isolated(graph, labels, 3, Objective(**bounds)), minlength=3).tolist()

    assert counted() == [14, 4, 2]
    assert counted(max_size=10) == [10, 8, 2]
    assert counted(min_size=5) == [10, 5, 5]
    assert counted(min_size=6, max_size=7) == [7, 7, 6]
    assert counted(max_size=7) == [7, 7, 6]
    # Lower bounds beyond what is there, or room for fewer: all are placed, and what cannot be kept is left to others.
    assert sum(counted(min_size=9)) == sum(counted(max_size=5)) == 20


def test_a_cluster_without_any_node_gets_an_isolated_one() -> None:
    graph = cliques(4, 1, 1)
    assert place_isolated(graph, np.zeros(6, np.int32), 3).tolist()[:4] == [0, 0, 0, 0]
    assert sorted(place_isolated(graph, np.zeros(6, np.int32), 3).tolist()[4:]) == [1, 2]


# --- components ----------------------------------------------------------------------------------------------------------


def split(graph: Graph, k: int, least: float | None = None, **bounds: float) -> np.ndarray | None:
    found = split_by_components(WeightedGraph.of(graph), k, Objective(**bounds), least=least)
    if found is not None:
        checks.valid_labels(found, graph.n_nodes, k)
        for x, y in zip(*graph.adjacency.nonzero(), strict=True):
            assert found[x] == found[y], "no edge is cut"
        assert np.unique(found[graph.degrees > 0]).size == k
    return found


@pytest.mark.parametrize("sizes", [(1000, 20, 20), (5, 5), (300, 2, 2, 2)])
def test_a_graph_of_exactly_k_components_is_split_into_them(sizes: tuple[int, ...]) -> None:
    truth = np.repeat(np.arange(len(sizes)), sizes)
    for graph in (cliques(*sizes), paths(*sizes), cliques(*sizes, 1, 1)):
        found = split(graph, len(sizes))
        assert found is not None
        assert np.unique(truth * len(sizes) + found[: truth.size]).size == len(sizes)


def test_sizeable_components_found_clusters_and_the_others_join_the_lightest() -> None:
    found = split(cliques(30, 29, 2, 28, 3, 3), 3)
    assert found is not None
    first = found[np.cumsum([0, 30, 29, 2, 28, 3])]
    assert first[[0, 1, 3]].tolist() == [0, 1, 2], "numbered by volume"
    assert first[[4, 5, 2]].tolist() == [2, 2, 2], "three cliques do not make up for one node less in a clique of 29"
    # Many pairs and few clusters: all of like volume.
    pairs = split(cliques(*[2] * 1000), 7)
    assert pairs is not None
    assert np.ptp(np.bincount(pairs)) <= 2


def test_small_components_make_clusters_where_large_ones_do_not_come_apart() -> None:
    graph = cliques(100, *[2] * 20)
    assert split(graph, 3) is None
    found = split(graph, 3, least=0.1)
    assert found is not None
    assert np.bincount(found).tolist() == [100, 20, 20]
    assert split(graph, 3, least=0.5) is None  # 20 nodes are less than half of 47
    assert split(graph, 22, least=0.0) is None  # too few


def test_components_that_make_no_clusters_are_left_to_the_cut() -> None:
    assert split(cliques(40), 2) is None
    assert split(cliques(40, 40), 3) is None  # too few
    assert split(cliques(100, 2, 2, 2, 2), 3) is None  # crumbs beside one
    assert split(cliques(100, 100, 2, 2), 3) is None
    assert split(cliques(100, 100, 2, 2), 2) is not None
    assert split(cliques(10, 1, 1), 2) is None  # nodes without edges are no component


def test_bounds_forbid_a_split_that_leaves_them() -> None:
    graph = cliques(30, 20, 20)
    assert split(graph, 3, min_size=20, max_size=30) is not None
    assert split(graph, 3, max_size=29) is None
    assert split(graph, 3, min_size=21) is None


# --- empty clusters ------------------------------------------------------------------------------------------------------


def test_an_empty_cluster_gets_the_heaviest_node_of_the_largest_one() -> None:
    labels = np.array([0, 0, 0, 0, 2, 2], np.int32)
    filled, count = fill_empty(labels, 3, np.array([1.0, 5.0, 4.0, 1.0, 9.0, 9.0]))
    assert (filled.tolist(), count) == ([0, 1, 0, 0, 2, 2], 1)
    assert labels.tolist() == [0, 0, 0, 0, 2, 2], "the labels that came in are not changed"


def test_several_empty_clusters_take_from_the_largest_in_turn() -> None:
    filled, count = fill_empty(np.array([4, 4, 4, 4, 1, 1, 1, 1], np.int32), 5, np.arange(8.0))
    assert (sorted(np.bincount(filled).tolist()), count) == ([1, 1, 1, 2, 3], 3)


def test_a_cluster_of_isolated_nodes_is_empty() -> None:
    filled, count = fill_empty(np.array([0, 0, 0, 1], np.int32), 2, np.array([1.0, 3.0, 2.0, 0.0]))
    assert (filled.tolist(), count) == ([0, 1, 0, 1], 1)


def test_nothing_to_fill() -> None:
    labels = np.array([1, 0], np.int32)
    assert fill_empty(labels, 2, np.ones(2)) == (labels, 0)


def test_fewer_nodes_than_clusters_cannot_fill_them() -> None:
    labels = np.array([3, 0, 1], np.int32)
    assert fill_empty(labels, 5, np.ones(3))[0] is labels


# --- through the estimator -----------------------------------------------------------------------------------------------


def test_crumbs_do_not_become_clusters() -> None:
    graph = cliques(1, 30, 2, 30, 3, 30, 1)
    with pytest.warns(UserWarning, match="falls into 5 parts"):
        model = CoresetSpectralClustering(3, random_state=0).fit(graph)
    checks.valid_labels(model.labels_, 97, 3)
    counted = np.bincount(model.labels_)
    assert counted.min() >= 30
    for begin, size in ((1, 30), (31, 2), (33, 30), (63, 3), (66, 30)):
        assert np.unique(model.labels_[begin : begin + size]).size == 1
    assert model.normalized_cut_ == 0.0


def test_a_graph_of_pieces_only() -> None:
    with pytest.warns(UserWarning, match="falls into 40 parts"):
        model = CoresetSpectralClustering(4, random_state=0).fit(cliques(*[3] * 40))
    assert np.unique(model.labels_).size == 4
    assert all(np.unique(model.labels_[at : at + 3]).size == 1 for at in range(0, 120, 3))
    assert model.normalized_cut_ == 0.0


@pytest.mark.parametrize("settings", [{}, {"regularization": 0}, {"regularization": 0, "refine": False}])
@pytest.mark.filterwarnings("ignore:the graph is not fully connected")
def test_few_nodes_some_of_them_isolated(settings: dict[str, Any]) -> None:
    labels = CoresetSpectralClustering(2, random_state=0, **settings).fit_predict(cliques(4, 5, 1))
    assert np.unique(labels[:4]).size == np.unique(labels[4:9]).size == 1
    assert labels[0] != labels[4] == labels[9]
    # Three nodes have edges, and there are five clusters: the isolated ones fill up the others.
    labels = CoresetSpectralClustering(5, random_state=0, **settings).fit_predict(cliques(3, 1, 1, 1))
    checks.valid_labels(labels, 6, 5)
    assert np.unique(labels).size == 5


# --- the plain cut ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def blocks_and_crumbs() -> sp.csr_array:
    """Three planted blocks of 300 nodes, three cliques of five apart from them, and two isolated nodes."""
    blocks, _ = make_sbm(300, 3, 0.1, 0.01, random_state=0)
    return sp.csr_array(sp.block_diag([blocks, *[np.ones((5, 5)) - np.eye(5)] * 3, np.zeros((2, 2))]))


@pytest.mark.parametrize("aggregate", ["auto", True])
@pytest.mark.filterwarnings("ignore:the graph is not fully connected")
def test_the_plain_cut_takes_every_part_before_it_cuts(blocks_and_crumbs: sp.csr_array, aggregate: Any) -> None:
    whole, crumbs = np.arange(900) // 300, 3 + np.arange(15) // 5
    for k, blocks in ((3, 1), (4, 1), (5, 2), (6, 3), (7, 4)):
        model = CoresetSpectralClustering(k, balance=0, aggregate=aggregate, random_state=0).fit(blocks_and_crumbs)
        labels = model.labels_
        checks.valid_labels(labels, 917, k)
        assert np.unique(labels).size == k
        if k >= 4:
            assert np.unique(labels[900:915]).size == 3, "each clique is a cluster"
            assert np.unique(labels[:900]).size == blocks
        if k <= 4:
            assert normalized_cut(blocks_and_crumbs, labels) == 0.0
        if k == 6:
            assert adjusted_rand_score(np.concatenate([whole, crumbs]), labels[:915]) == 1.0


@pytest.mark.filterwarnings("ignore:the graph is not fully connected")
def test_crumbs_are_set_aside_where_the_plain_cut_was_not_asked_for(blocks_and_crumbs: sp.csr_array) -> None:
    for settings in ({}, {"balance": 0, "min_cluster_size": 10}, {"balance": 0.01}):
        labels = CoresetSpectralClustering(5, random_state=0, **settings).fit(blocks_and_crumbs).labels_
        assert np.bincount(labels).min() > 10
