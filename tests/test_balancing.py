"""Balancing: the graph decides whether it needs a fee, and the least fee that will do is taken."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import problems
import pytest
import scipy.sparse as sp
from scipy.ndimage import gaussian_filter
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from test_draws import run_on

from corecut import CoresetSpectralClustering, make_degree_corrected_sbm
from corecut.balancing import draw_partitions
from corecut.objective import Balance
from corecut.soundness import acceptable


def test_what_the_clusters_of_the_plain_cut_must_be_like() -> None:
    # Ten cliques of twelve nodes in a ring.
    cliques = np.kron(np.eye(10), np.ones((12, 12)) - np.eye(12))
    for j in range(10):
        a, b = 12 * j, (12 * j + 13) % 120
        cliques[a, b] = cliques[b, a] = 1.0
    truth = np.repeat(np.arange(10), 12)
    run, level = run_on(cliques, 10)
    assert acceptable(level, truth.astype(np.int32), run.k)
    # Crumbs: nine single nodes, and everything else.
    crumbs = np.where(np.arange(120) < 9, np.arange(120), 9).astype(np.int32)
    assert not acceptable(level, crumbs, run.k)
    # A giant of four cliques that falls into parts, beside halves of others.
    giant = np.where(truth < 4, 0, np.arange(120) // 8 - 5).astype(np.int32)
    assert np.unique(giant).size == 10
    assert not acceptable(level, giant, run.k)
    # A giant that is one clique itself: nothing else is there to be found.
    one = np.zeros((180, 180))
    one[:60, :60] = 1.0
    one[60:, 60:] = cliques
    one[0, 60] = one[60, 0] = 1.0
    np.fill_diagonal(one, 0.0)
    run, level = run_on(one, 11)
    assert acceptable(level, np.concatenate([np.zeros(60), truth + 1]).astype(np.int32), run.k)


def test_no_fee_where_the_plain_cut_gives_clusters() -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(1), [100, 90, 80, 70], degree=14.0, mixing=0.05)
    run, level = run_on(graph, 4)
    assert run.choices.adaptive
    assert draw_partitions(run, level)[0].balance == Balance.both(0.0)


def test_a_fee_where_the_plain_cut_gives_crumbs() -> None:
    # A random graph with a hundred dangling paths: to cut off a path costs one edge.
    rng = np.random.default_rng(0)
    core, _ = problems.planted_graph(rng, [400], degree=6.0)
    core.data[:] = 1.0
    n = 400 + 300
    matrix = sp.lil_array((n, n))
    matrix[:400, :400] = core
    for at in range(400, n, 3):
        chain = [int(rng.integers(400)), at, at + 1, at + 2]
        for x, y in pairwise(chain):
            matrix[x, y] = matrix[y, x] = 1.0
    graph = sp.csr_array(matrix)
    sizes = {}
    for balance in ("auto", 0):
        run, level = run_on(graph, 8, balance=balance)
        [found] = draw_partitions(run, level)
        sizes[balance] = np.sort(np.bincount(found.best.labels, minlength=8))
        assert (found.balance.final > 0) == (balance == "auto")
    assert np.median(sizes[0]) < 0.35 * n / 8
    assert np.median(sizes["auto"]) > 2 * np.median(sizes[0])


def test_without_refinement_there_is_no_fee() -> None:
    graph, _ = make_degree_corrected_sbm(700, 10, mean_degree=9, mixing=0.45, random_state=5)
    run, level = run_on(graph, 10, refine=False)
    assert not run.choices.adaptive
    assert draw_partitions(run, level)[0].balance == Balance.both(0.0)


def test_fees_between_those_of_the_list_are_tried_where_these_are_dear(dataset: Callable[[str], sp.csr_array]) -> None:
    # Of this web crawl the median cluster is just large enough with a fee of 0.005 for some seeds, and just not for others.
    graph = dataset("uk_2007_05_100k")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the graph is not fully connected")
        warnings.filterwarnings("ignore", "one cluster holds")
        models = [CoresetSpectralClustering(30, random_state=seed).fit(graph) for seed in range(3)]
    cuts = [model.normalized_cut_ for model in models]
    assert max(cuts) < 2.5 * min(cuts)
    for model in models:
        sizes = np.bincount(model.labels_)
        assert np.median(sizes) > 0.28 * sizes.mean()


def shaded(seed: int, rows: int = 40, columns: int = 60) -> sp.csr_array:
    """Return the graph of a picture's pixels, alike ones tied closely: patches of a few shades, with noise."""
    rng = np.random.default_rng(seed)
    smooth = gaussian_filter(rng.normal(size=(rows, columns)), 4.0)
    image = np.round(1.5 * smooth / smooth.std()) / 1.5 + rng.normal(0, 0.02, (rows, columns))
    places = np.arange(rows * columns).reshape(rows, columns)
    beside = np.stack([places[:, :-1].ravel(), places[:, 1:].ravel()])
    below = np.stack([places[:-1].ravel(), places[1:].ravel()])
    pairs = np.concatenate([beside, below], axis=1)
    steps = np.abs(np.diff(image.ravel()[pairs], axis=0)[0])
    half = sp.coo_array((np.exp(-40 * steps) + 1e-6, tuple(pairs)), shape=(places.size, places.size))
    return sp.csr_array(half + half.T)


@pytest.mark.parametrize("seed", range(4))
def test_where_next_to_nothing_need_be_cut_a_fee_does_not_make_the_cut_many_times_as_large(seed: int) -> None:
    # It was 300 times as large.
    graph = shaded(seed)
    found = CoresetSpectralClustering(8, random_state=seed).fit(graph)
    plain = CoresetSpectralClustering(8, balance=0, random_state=seed).fit(graph)
    assert found.normalized_cut_ < 2 * plain.normalized_cut_
    sizes = np.bincount(found.labels_, minlength=8)
    assert np.median(sizes) >= 0.3 * sizes.mean()


@pytest.mark.parametrize("seed", range(4))
def test_all_draws_have_a_say_where_little_need_be_cut(seed: int) -> None:
    # Weights of eight orders of magnitude. The first draw refused the plain cut, and the cut was 1.1 to 1.6 times as large.
    row = sp.diags_array([np.ones(49)] * 2, offsets=[-1, 1])
    upper = sp.triu(sp.kronsum(row, row), 1).tocoo()
    upper.data = np.random.default_rng(seed).lognormal(0, 2, upper.nnz)
    graph = sp.csr_array(upper + upper.T)
    found = CoresetSpectralClustering(6, random_state=seed).fit(graph)
    plain = CoresetSpectralClustering(6, balance=0, random_state=seed).fit(graph)
    assert found.normalized_cut_ < 1.05 * plain.normalized_cut_


@pytest.mark.parametrize(
    ("shares", "centres", "n_points", "seeds"),
    [
        ((0.9, 0.07, 0.03), [[0, 0], [8, 0], [0, 8]], 3000, range(3)),
        ((0.85, 0.1, 0.04, 0.01), [[0, 0], [7, 0], [0, 7], [7, 7]], 10_000, (3, 5, 6)),
    ],
)
def test_blobs_of_very_different_sizes_are_told_apart(
    shares: tuple[float, ...], centres: list[list[int]], n_points: int, seeds: Iterable[int]
) -> None:
    for seed in seeds:
        sizes = [round(n_points * share) for share in shares]
        X, truth = make_blobs(sizes, centers=np.array(centres, float), random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = CoresetSpectralClustering(len(sizes), affinity="nearest_neighbors", random_state=seed).fit(X)
        assert adjusted_rand_score(truth, model.labels_) > 0.99
        assert model.balance_ == 0.0


def block_graph(sizes: list[int], inside: float, between: float, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """Return a block model of clusters of any sizes, and these."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((truth.size,) * 2) < np.where(truth[:, None] == truth, inside, between), 1)
    return sp.csr_array(upper + upper.T, dtype=float), truth


@pytest.mark.parametrize(
    ("sizes", "between"), [([1500, 200, 200, 200], 0.02), ([1200, 300, 300, 100], 0.02), ([1000, 500, 250, 120, 60], 0.01)]
)
def test_a_homogeneous_giant_is_one_cluster_however_noisy_others_are(sizes: list[int], between: float) -> None:
    # Any split of the giant cuts less than what leaves the small ones. It was cut into pieces: ARI 0.24 to 0.67.
    for seed in range(2):
        graph, truth = block_graph(sizes, 0.1, between, seed)
        found = CoresetSpectralClustering(len(sizes), random_state=seed).fit(graph)
        assert adjusted_rand_score(truth, found.labels_) > 0.95


@pytest.mark.parametrize(("n", "k", "degree", "seed"), [(5000, 2, 5, 0), (2000, 2, 4, 0), (2000, 2, 5, 1), (2000, 5, 4, 0)])
def test_few_clusters_are_no_specks(n: int, k: int, degree: int, seed: int) -> None:
    # A tree of four nodes hangs on one edge. It was one of the two clusters: ARI 0.
    graph, truth = make_degree_corrected_sbm(n, k, mean_degree=degree, mixing=0.2, random_state=seed)
    component = connected_components(graph)[1]
    main = component == np.bincount(component).argmax()
    graph, truth = sp.csr_array(graph[main][:, main]), truth[main]
    found = CoresetSpectralClustering(k, random_state=seed).fit(graph)
    assert np.bincount(found.labels_).min() > 0.5 * truth.size / k
    assert adjusted_rand_score(truth, found.labels_) > 0.7


def test_a_speck_that_is_well_apart_stays_a_cluster() -> None:
    # To halve the random graph instead would cut many times as much.
    rng = np.random.default_rng(0)
    large, _ = problems.planted_graph(rng, [1000], degree=8.0)
    graph = sp.lil_array(sp.block_diag([large, np.ones((12, 12)) - np.eye(12)]))
    graph[0, 1000] = graph[1000, 0] = 1.0
    found = CoresetSpectralClustering(2, random_state=0).fit(sp.csr_array(graph))
    assert np.bincount(found.labels_).min() == 12


def test_pen_digits_for_every_seed() -> None:
    file = Path(os.environ.get("CORECUT_DATA", "")) / "pendigits.npz"
    if not file.is_file():
        pytest.skip("CORECUT_DATA does not name a folder with real datasets")
    with np.load(file) as data:
        X, truth = data["X"].astype(float), data["y"]
    for seed in range(4):
        model = CoresetSpectralClustering(10, affinity="nearest_neighbors", random_state=seed).fit(X)
        assert adjusted_rand_score(truth, model.labels_) > 0.66  # scikit-learn's on the same graph is 0.67 to 0.69
