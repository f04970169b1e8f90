"""Long and thin graphs under tight bounds: pieces of an order along their length."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from corecut import CoresetSpectralClustering, Graph, normalized_cut
from corecut.stretches import stretches
from corecut.weighted import WeightedGraph


def matrix(graph: nx.Graph) -> sp.csr_array:
    return sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))


@pytest.mark.parametrize(
    ("graph", "k", "bounds"),
    [
        (nx.path_graph(6000), 100, (58, 61)),
        (nx.path_graph(6000), 7, (850, 870)),
        (nx.cycle_graph(3000), 30, (97, 102)),
        (nx.ladder_graph(1500), 30, (98, 102)),
    ],
    ids=["path in 100", "path in 7", "ring", "ladder"],
)
def test_thin_graphs_are_cut_along_their_length(graph: nx.Graph, k: int, bounds: tuple[int, int]) -> None:
    A = matrix(graph)
    n = A.shape[0]
    length = n // 2 if nx.number_of_edges(graph) > n else n  # a ladder's sides are numbered alike
    pieces = np.arange(n) % length * k // length
    for seed in range(2):
        model = CoresetSpectralClustering(k, min_cluster_size=bounds[0], max_cluster_size=bounds[1], random_state=seed).fit(A)
        sizes = np.bincount(model.labels_, minlength=k)
        assert bounds[0] <= sizes.min()
        assert sizes.max() <= bounds[1]
        assert model.normalized_cut_ <= 1.01 * normalized_cut(A, pieces)


def test_pieces_are_of_like_size_and_the_same_for_any_numbering(rng: np.random.Generator) -> None:
    order = rng.permutation(500)
    for shuffled in (np.arange(500), order):
        A = matrix(nx.path_graph(500))[shuffled][:, shuffled]
        for labels in stretches(WeightedGraph.of(Graph.from_matrix(A)), 7):
            assert sorted(np.bincount(labels)) == [71, 71, 71, 71, 72, 72, 72]
            along = labels[np.argsort(shuffled)]
            assert np.count_nonzero(np.diff(along)) == 6


def test_graphs_that_are_dense_or_in_parts_have_no_stretches() -> None:
    for graph in (nx.complete_graph(60), nx.disjoint_union(nx.path_graph(50), nx.path_graph(50))):
        assert stretches(WeightedGraph.of(Graph.from_matrix(matrix(graph))), 3) == []
    # Nodes without edges are no part.
    alone = sp.block_diag([matrix(nx.path_graph(50)), sp.csr_array((5, 5))], format="csr")
    pieces = stretches(WeightedGraph.of(Graph.from_matrix(alone)), 5)
    assert [np.bincount(labels[:50]).tolist() for labels in pieces] == [[10] * 5] * 2
