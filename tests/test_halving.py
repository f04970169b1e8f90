"""Halving: bounds kept, the same for any number of threads and unit of weight, and the best halves where these are known."""

from __future__ import annotations

from itertools import product
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import CoresetSpectralClustering, Graph, _core, normalized_cut
from corecut.halving import halve_graph
from corecut.objective import Objective
from corecut.weighted import WeightedGraph


def level_of(A: np.ndarray | sp.sparray, sizes: np.ndarray | None = None) -> WeightedGraph:
    graph = Graph.from_matrix(sp.csr_array(A), check="none")
    return WeightedGraph.of(graph) if sizes is None else WeightedGraph(graph, sizes.astype(float))


def cut_of(A: np.ndarray, labels: np.ndarray) -> float:
    return float(A[labels[:, None] != labels].sum() / 2)


def hypercube(dimension: int) -> sp.csr_array:
    n = 1 << dimension
    rows = np.repeat(np.arange(n), dimension)
    return sp.csr_array((np.ones(n * dimension), (rows, rows ^ (1 << np.tile(np.arange(dimension), n)))), shape=(n, n))


def narrow(n: int, k: int) -> Objective:
    """Return bounds that leave clusters to differ by one node."""
    return Objective(0.0, n // k, -(-n // k))


@given(st.data())
def test_bounds_are_kept_where_nodes_are_single(data: st.DataObject) -> None:
    A = data.draw(problems.adjacency_matrices(max_nodes=24))
    k = data.draw(st.integers(1, len(A)))
    labels = halve_graph(level_of(A), narrow(len(A), k), k, seed=data.draw(st.integers(0, 2**63 - 1)))
    checks.valid_labels(labels, len(A), k)
    assert twins.outside(np.bincount(labels, minlength=k), len(A) // k, -(-len(A) // k)) == 0


@pytest.mark.parametrize("seed", range(5))
def test_small_halves_are_the_best_there_are(seed: int) -> None:
    A = problems.random_adjacency(np.random.default_rng(seed), 12)
    sides = (np.array((0, *rest)) for rest in product((0, 1), repeat=11) if sum(rest) == 6)
    least = min(cut_of(A, side) for side in sides)
    assert cut_of(A, halve_graph(level_of(A), narrow(12, 2), 2, seed=seed)) == pytest.approx(least)


@pytest.mark.parametrize(("dimension", "k"), [(10, 2), (12, 16)])
def test_halves_of_a_hypercube_are_cubes(dimension: int, k: int) -> None:
    level = level_of(hypercube(dimension))
    labels = halve_graph(level, Objective().bounded_by(0.9, 1.1, level.n_nodes / k), k, seed=0)
    assert normalized_cut(level.graph, labels) == pytest.approx(np.log2(k) / dimension)


def test_a_large_hypercube_is_halved_by_the_usual_way() -> None:
    # Its groups are no cubes: a quotient alone gave 1.34 times the cut.
    model = CoresetSpectralClustering(2, affinity="precomputed", random_state=0).fit(hypercube(16))
    assert normalized_cut(hypercube(16), model.labels_) == pytest.approx(1 / 16)


@pytest.mark.parametrize("power", [-1070, -40, 3, 900])
def test_neither_threads_nor_the_unit_of_weights_matter(power: int) -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(0), [150] * 6, degree=9.0, mixing=0.3)
    bounds = Objective().bounded_by(0.97, 1.03, 150)
    graph.data[:] = 1  # exact in every unit, also below the least normal number
    level, scaled = level_of(graph), level_of(graph * 2.0**power)
    first = halve_graph(level, bounds, 6, seed=3, n_jobs=1)
    for jobs in (2, 5):
        checks.same_bits(first, halve_graph(level, bounds, 6, seed=3, n_jobs=jobs))
    checks.same_bits(first, halve_graph(scaled, bounds, 6, seed=3, n_jobs=2))
    assert np.any(first != halve_graph(level, bounds, 6, seed=4))


def test_communities_are_found() -> None:
    graph, truth = problems.planted_graph(np.random.default_rng(1), [400] * 8, degree=12.0, mixing=0.2)
    labels = halve_graph(level_of(graph), Objective().bounded_by(0.9, 1.1, 400), 8, seed=0)
    assert cut_of(graph.toarray(), labels) <= 1.01 * cut_of(graph.toarray(), truth)


def hostile() -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    n = 300
    star = np.zeros((n, n))
    star[0, 1:] = star[1:, 0] = 1
    path = np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    steep = 10.0 ** np.linspace(-300, 300, n)
    return {
        "no edges": (np.zeros((n, n)), None),
        "one node": (np.zeros((1, 1)), None),
        "star": (star, None),
        "complete": (np.ones((n, n)), None),
        "loops alone": (np.eye(n), None),
        "pieces": (np.kron(np.eye(n // 3), np.ones((3, 3))), None),
        "nodes without size": (path, np.zeros(n)),
        "one heavy node": (path, np.where(np.arange(n) == 7, 1e300, 1e-300)),
        "steep weights": (np.minimum.outer(steep, steep) * (path > 0), None),
        "not symmetric": (np.triu(np.ones((n, n))), None),
        "below zero": (-path, None),
        "not numbers": (path * np.nan, np.full(n, np.nan)),
        "infinite": (np.where(path > 0, np.inf, 0.0), np.full(n, np.inf)),
    }


@pytest.mark.parametrize("kind", hostile())
@pytest.mark.parametrize("bounds", [(0.0, np.inf), (1.0, 2.0), (np.nan, np.nan), (1e300, -1.0)])
def test_native_code_stands_everything(kind: str, bounds: tuple[float, float]) -> None:
    A, sizes = hostile()[kind]
    matrix = _core.Matrix(*(getattr(sp.csr_array(A), part) for part in ("indptr", "indices", "data")))
    sizes = np.ones(len(A)) if sizes is None else sizes
    for k in {1, min(2, len(A)), len(A)}:
        labels = np.full(len(A), -1, np.int32)
        _core.halve_graph(matrix, sizes, labels, *bounds, k=k, attempts=4, seed=0, threads=2)
        checks.valid_labels(labels, len(A), k)


def test_what_cannot_be_halved_is_refused() -> None:
    matrix = level_of(np.ones((4, 4))).graph.matrix

    def halve(k: int = 2, nodes: int = 4, labels: int = 4, attempts: int = 1) -> None:
        filled = np.zeros(labels, np.int32)
        _core.halve_graph(matrix, np.ones(nodes), filled, 0.0, np.inf, k=k, attempts=attempts, seed=0, threads=1)

    halve()
    for k in (-1, 0, 2**40):
        with pytest.raises(ValueError, match="at least one cluster"):
            halve(k=k)
    with pytest.raises(ValueError, match="attempts"):
        halve(attempts=0)
    with pytest.raises(ValueError, match="sizes"):
        halve(nodes=3)
    with pytest.raises(ValueError, match="labels"):
        halve(labels=5)


@pytest.mark.parametrize("n_jobs", [1, 3, 7])
@pytest.mark.parametrize("settings", [{}, {"max_cluster_size": 1}, {"n_init": 6}])
def test_there_may_be_more_clusters_than_nodes_with_edges(n_jobs: int, settings: dict[str, Any]) -> None:
    # Draws that begin with halves, of which more are made at once where there are more threads, have no more nodes than that.
    A = np.zeros((3, 3))
    A[0, 1] = A[1, 0] = 1.0
    labels = CoresetSpectralClustering(3, affinity="precomputed", random_state=0, n_jobs=n_jobs, **settings).fit(A).labels_
    assert sorted(labels.tolist()) == [0, 1, 2]
