"""Borders: two clusters along eigenvectors, and as unions of small ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import problems
import pytest
import twins
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from test_repair import level_of

from corecut import CoresetSpectralClustering
from corecut.borders import best_union, sweep
from corecut.objective import Objective


@pytest.mark.parametrize("bounds", [(0.0, np.inf), (25.0, 45.0)])
def test_the_best_union_is_the_best_of_all(bounds: tuple[float, float], rng: np.random.Generator) -> None:
    graph, pieces = problems.planted_graph(rng, [10, 15, 5, 20, 10], degree=6.0, mixing=0.4)
    matrix, objective = graph.toarray(), Objective(3.0, *bounds)
    values = {}
    for side in product((0, 1), repeat=5):
        labels = np.array(side)[pieces]
        sizes = np.bincount(labels, minlength=2)
        if sizes.min() > 0 and sizes.min() >= bounds[0] and sizes.max() <= bounds[1]:
            volumes = np.bincount(labels, matrix.sum(axis=1))
            values[side] = float((twins.conductances(matrix, labels, 2) + 3.0 / volumes).sum())
    found = best_union(level_of(graph), pieces, objective)
    assert found is not None
    sides = tuple(int(found[pieces == piece][0]) for piece in range(5))
    assert np.array_equal(found, np.array(sides)[pieces])
    assert values[sides] == pytest.approx(min(values.values()))


def test_one_piece_has_no_two_unions(rng: np.random.Generator) -> None:
    graph, truth = problems.planted_graph(rng, [12], degree=4.0)
    assert best_union(level_of(graph), truth, Objective()) is None


def test_a_sweep_finds_the_best_border_along_an_order(rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [14, 9], degree=5.0, mixing=0.2)
    matrix, position = graph.toarray(), rng.permutation(23)
    every = [twins.conductances(matrix, (position > border).astype(int), 2).sum() for border in range(22)]
    labels, value = sweep(level_of(graph), position.astype(float), Objective())
    assert value == pytest.approx(min(every))
    assert twins.conductances(matrix, labels, 2).sum() == pytest.approx(min(every))


@pytest.mark.parametrize("n", [300, 1000])
def test_moons_and_circles_by_dense_similarities_for_every_seed(n: int) -> None:
    # Moons: along the second eigenvector the cut is 1.14 times as large (ARI 0.28). Circles: 2.1 times, for every other seed.
    moons, of_moons = make_moons(n, noise=0.06, random_state=1)
    circles, of_circles = make_circles(n, noise=0.05, factor=0.5, random_state=1)
    for seed in range(3):
        for points, truth, gamma in ((moons, of_moons, 5), (circles, of_circles, 20)):
            model = CoresetSpectralClustering(2, affinity="precomputed", random_state=seed)
            assert adjusted_rand_score(truth, model.fit_predict(rbf_kernel(points, gamma=gamma))) > 0.9
