"""Descent: what is carried down is at least as good as on the quotient, and doubtful partitions are looked at again."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import twins

from corecut import CoresetSpectralClustering, Graph, aggregate_graph, make_degree_corrected_sbm
from corecut.descent import final_objective, refine_down
from corecut.engines import LocalEngine
from corecut.objective import Balance
from corecut.settings import Settings, resolve
from corecut.weighted import WeightedGraph


def hypercube(dimension: int) -> sp.csr_array:
    nodes = np.arange(2**dimension)
    rows = np.concatenate([nodes] * dimension)
    columns = np.concatenate([nodes ^ (1 << bit) for bit in range(dimension)])
    return sp.csr_array((np.ones(rows.size), (rows, columns)), shape=(nodes.size, nodes.size))


@pytest.mark.parametrize("refine", [True, False])
def test_a_partition_is_carried_down_with_its_objective(refine: bool) -> None:
    graph, _ = make_degree_corrected_sbm(6000, 6, mean_degree=12, mixing=0.2, random_state=0)
    checked = Graph.from_matrix(graph)
    levels = aggregate_graph(checked, 6)
    choices = resolve(Settings(6, refine=refine), checked)
    coarse = (np.arange(levels[-1].n_nodes) % 6).astype(np.int32)
    labels, value = refine_down(WeightedGraph.of(checked), levels, coarse, choices, Balance.both(0.0), engine=LocalEngine())
    carried = coarse
    for level in reversed(levels):
        carried = carried[level.groups]
    if not refine:
        np.testing.assert_array_equal(labels, carried)
        return
    cut = twins.conductances_with_fee(graph.toarray(), labels, 6, 0.0).sum()
    assert value == pytest.approx(cut)
    assert value < 0.9 * twins.conductances_with_fee(graph.toarray(), carried, 6, 0.0).sum()


def test_isolated_nodes_may_fill_small_clusters() -> None:
    graph = Graph.from_matrix(sp.block_diag([hypercube(5), sp.csr_array((10, 10))], format="csr"))
    choices = resolve(Settings(2, min_cluster_size=18), graph)
    objective = final_objective(WeightedGraph.of(graph), choices, 0.0)
    assert objective.min_size < 18


@pytest.mark.parametrize(("dimension", "k"), [(10, 4), (12, 16), (13, 8)])
def test_hypercubes_are_cut_into_cubes(dimension: int, k: int) -> None:
    # The best clusters are cubes themselves: log2 k of the `dimension` edges of every node leave them.
    found = CoresetSpectralClustering(k, random_state=0).fit(hypercube(dimension))
    assert found.normalized_cut_ <= 1.05 * np.log2(k) / dimension
