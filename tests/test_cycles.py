"""Cycles: never worse, inside the bounds, the same for any number of threads, and straighter borders on lattices."""

from __future__ import annotations

import checks
import numpy as np
import pytest
import scipy.sparse as sp
import twins

from corecut import CoresetSpectralClustering, Graph, _core
from corecut.cycles import cycle, improve_by_cycles
from corecut.objective import Objective
from corecut.refinement import refine_weighted
from corecut.weighted import WeightedGraph

K = 4


def torus(side: int) -> sp.csr_array:
    ring = sp.diags_array([1.0, 1.0, 1.0, 1.0], offsets=[1, -1, side - 1, 1 - side], shape=(side, side))
    one = sp.eye_array(side)
    return sp.csr_array(sp.kron(ring, one) + sp.kron(one, ring))


def bumpy(side: int) -> np.ndarray:
    """Return K bands of a torus whose borders are saw-toothed: no single node of a tooth's tip can leave alone."""
    row, column = np.divmod(np.arange(side * side), side)
    return ((row + 3 * ((column // 4) % 2)) * K // side % K).astype(np.int32)


@pytest.mark.parametrize("bounds", [(0.0, np.inf), (230.0, 300.0)])
def test_a_cycle_is_never_worse_and_keeps_the_bounds(bounds: tuple[float, float]) -> None:
    graph, objective = torus(32), Objective(0.0, *bounds)
    level = WeightedGraph.of(Graph.from_matrix(graph))
    given = refine_weighted(level, bumpy(32), objective, K, max_passes=20)
    found, value = cycle(level, given.labels, objective, K, seed=0)
    checks.valid_labels(found, level.n_nodes, K)
    sizes = np.bincount(found, minlength=K)
    assert bounds[0] <= sizes.min()
    assert sizes.max() <= bounds[1]
    assert value <= given.objective
    assert value == pytest.approx(twins.conductances_with_fee(graph.toarray(), found, K, 0.0).sum())


def test_cycles_straighten_borders_that_single_moves_leave() -> None:
    level = WeightedGraph.of(Graph.from_matrix(torus(48)))
    given = refine_weighted(level, bumpy(48), Objective(), K, max_passes=20)
    found = improve_by_cycles(level, given.labels, given.objective, Objective(), K, cycles=3, seed=0)
    assert refine_weighted(level, found, Objective(), K, max_passes=0).objective < 0.9 * given.objective


def test_threads_do_not_matter() -> None:
    level = WeightedGraph.of(Graph.from_matrix(torus(40)))
    one, three = (cycle(level, bumpy(40), Objective(), K, seed=1, n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(one[0], three[0])
    assert one[1] == three[1]


@pytest.mark.parametrize("seed", [0, 5])
def test_groups_do_not_cross_a_partition(seed: int) -> None:
    graph = Graph.from_matrix(torus(30))
    within = bumpy(30)
    groups = _core.group_nodes(graph.matrix, graph.degrees, 40.0, 3, 2, within=within, seed=seed)
    assert 1 < groups.max() + 1 < 500
    for group in range(int(groups.max()) + 1):
        assert np.unique(within[groups == group]).size == 1


def test_a_partition_of_another_length_is_refused() -> None:
    graph = Graph.from_matrix(torus(10))
    with pytest.raises(ValueError, match="within"):
        _core.group_nodes(graph.matrix, graph.degrees, 40.0, 3, 1, within=np.zeros(7, np.int32))


def test_effort_buys_cycles_where_bounds_are_wide() -> None:
    graph = torus(60)
    cuts = [
        np.mean([CoresetSpectralClustering(7, effort=effort, random_state=s).fit(graph).normalized_cut_ for s in range(3)])
        for effort in (0.3, 3.0)
    ]
    assert cuts[1] <= cuts[0]
