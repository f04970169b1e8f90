"""Planted graphs: their laws against a twin that looks at every pair, exact extremes, one graph for any number of threads."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import checks
import numpy as np
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st
from scipy.stats import chi2, ks_2samp, norm

from corecut import Graph, _core, make_degree_corrected_sbm, make_sbm
from corecut.datasets.planted import _apportion

#: Number of standard deviations that a right generator exceeds with probability FALSE_ALARM.
SIGMAS = float(norm.isf(checks.FALSE_ALARM / 2))


def valid_planted(graph: sp.csr_array, labels: twins.Array, sizes: list[int], dtype: Any = np.float64) -> None:
    """Check for a canonical symmetric matrix of ones without loops, on nodes sorted by cluster."""
    assert isinstance(graph, sp.csr_array)
    assert graph.indices.dtype == graph.indptr.dtype == np.int32
    assert graph.dtype == dtype
    assert np.all(graph.data == 1)
    checks.valid_labels(labels, sum(sizes), len(sizes))
    np.testing.assert_array_equal(labels, np.repeat(np.arange(len(sizes)), sizes))
    # Arrays anew, so that nobody believes the flags that the generator set.
    rebuilt = sp.csr_array((graph.data.astype(float), graph.indices, graph.indptr), shape=graph.shape)
    assert rebuilt.has_canonical_format
    assert (rebuilt != rebuilt.T).nnz == 0
    assert not rebuilt.diagonal().any()
    assert graph.has_canonical_format


def edge_counts(graph: sp.csr_array, labels: twins.Array) -> tuple[int, int]:
    """Return the numbers of edges inside and between clusters."""
    rows = np.repeat(np.arange(labels.size), np.diff(graph.indptr))
    inside = int(np.count_nonzero(labels[rows] == labels[graph.indices]))
    return inside // 2, (graph.nnz - inside) // 2


def follows_pair_law(draw: Callable[[int], twins.Array], chances: twins.Array, draws: int) -> None:
    """Chi-square test of how often each pair is joined, and of the spread of the number of edges, which needs independence."""
    graphs = [draw(seed) for seed in range(draws)]
    pairs = np.triu_indices_from(chances, 1)
    p = chances[pairs]
    joined = sum(graphs)[pairs]
    certain = (p == 0.0) | (p == 1.0)
    np.testing.assert_array_equal(joined[certain], draws * p[certain])
    p, joined = p[~certain], joined[~certain]
    assert chi2.sf(np.sum((joined - draws * p) ** 2 / (draws * p * (1 - p))), p.size) > checks.FALSE_ALARM
    edges = np.array([graph.sum() / 2 for graph in graphs])
    scaled = (draws - 1) * edges.var(ddof=1) / np.sum(p * (1 - p))
    assert min(chi2.sf(scaled, draws - 1), chi2.cdf(scaled, draws - 1)) > checks.FALSE_ALARM


# --- the stochastic block model ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.1), (0.05, 0.9), (0.3, 0.0), (1.0, 0.25), (0.0, 0.4)])
def test_block_model_joins_each_pair_with_its_probability(p: float, q: float) -> None:
    sizes = [5, 1, 4, 6]
    follows_pair_law(
        lambda seed: make_sbm(sizes, 4, p, q, random_state=seed, n_jobs=1)[0].toarray(), twins.block_model(sizes, p, q), 2000
    )


@pytest.mark.parametrize(("size", "k", "p", "q"), [(400, 20, 0.5, 0.001), (3000, 2, 0.002, 0.01), (70_000, 3, 5e-5, 1e-6)])
def test_block_model_has_binomial_numbers_of_edges(size: int, k: int, p: float, q: float) -> None:
    graph, labels = make_sbm(size, k, p, q, random_state=1)
    valid_planted(graph, labels, [size] * k)
    pairs = [k * size * (size - 1) // 2, k * (k - 1) // 2 * size**2]
    for found, n_pairs, chance in zip(edge_counts(graph, labels), pairs, (p, q), strict=True):
        assert abs(found - n_pairs * chance) < SIGMAS * np.sqrt(n_pairs * chance * (1 - chance))


def test_block_model_has_the_degrees_of_its_twin(rng: np.random.Generator) -> None:
    sizes = [300, 500, 200]
    graph, labels = make_sbm(sizes, 3, 0.2, 0.03, random_state=3)
    twin = twins.draw_graph(twins.block_model(sizes, 0.2, 0.03), rng)
    for cluster in range(3):
        mine, other = np.diff(graph.indptr)[labels == cluster], twin.sum(axis=1)[labels == cluster]
        assert ks_2samp(mine, other).pvalue > checks.FALSE_ALARM


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("q", [0.0, 1.0])
@pytest.mark.parametrize("sizes", [[1], [1, 1], [7, 300, 1, 40]])
def test_certain_edges_are_exact(p: float, q: float, sizes: list[int]) -> None:
    graph, labels = make_sbm(sizes, len(sizes), p, q, random_state=0)
    valid_planted(graph, labels, sizes)
    np.testing.assert_array_equal(graph.toarray(), twins.block_model(sizes, p, q))


@pytest.mark.parametrize("p", [5e-324, 1e-300, 1e-17])
def test_tiny_probabilities_give_no_edges(p: float) -> None:
    assert make_sbm(500, 4, p, p, random_state=0)[0].nnz == 0


def test_probability_just_below_one_leaves_hardly_a_gap() -> None:
    graph, _ = make_sbm(300, 1, np.nextafter(1.0, 0.0), 0.0, random_state=0)
    assert graph.nnz == 300 * 299


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=8),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
    st.integers(0, 2**32),
    st.sampled_from([np.float64, np.float32, np.bool_, np.int8]),
)
def test_block_models_are_valid_graphs(sizes: list[int], p: float, q: float, seed: int, dtype: Any) -> None:
    graph, labels = make_sbm(sizes, len(sizes), p, q, random_state=seed, dtype=dtype)
    valid_planted(graph, labels, sizes, dtype)
    checks.same_bits(graph, make_sbm(sizes, len(sizes), p, q, random_state=seed, dtype=dtype, n_jobs=3)[0])


def test_sizes_may_be_a_number_a_list_or_an_array() -> None:
    expected = make_sbm(30, 3, 0.4, 0.1, random_state=5)
    for sizes in ([30, 30, 30], (30, 30, 30), np.full(3, 30, dtype=np.uint8), np.int64(30)):
        for mine, other in zip(make_sbm(sizes, 3, 0.4, 0.1, random_state=5), expected, strict=True):
            checks.same_bits(mine, other)


# --- the degree-corrected block model ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("inside", "anywhere"), [(0.3, 0.1), (0.0, 0.5), (0.8, 0.0), (1.5, 0.6)])
def test_degree_corrected_model_joins_each_pair_with_its_probability(inside: float, anywhere: float) -> None:
    sizes, theta = [5, 1, 4, 6], np.random.default_rng(2).uniform(0.2, 4.0, 16)
    borders = np.array([0, 5, 6, 10, 16])

    def draw(seed: int) -> twins.Array:
        indptr, indices = _core.degree_corrected(borders, theta, inside, anywhere, seed, 1)
        return sp.csr_array((np.ones(indices.size), indices, indptr), shape=(16, 16)).toarray()

    follows_pair_law(draw, twins.degree_corrected_model(sizes, theta, inside, anywhere), 2000)


@pytest.mark.parametrize(("inside", "anywhere"), [(1.0, 0.2), (0.0, 3.0), (20.0, 0.0), (0.01, 0.01)])
def test_expected_edges_are_the_sums_over_pairs(inside: float, anywhere: float, rng: np.random.Generator) -> None:
    sizes = [400, 1, 250, 30]
    theta = rng.random(681) ** -0.7
    chances = twins.degree_corrected_model(sizes, theta, inside, anywhere) / 2
    home = twins.block_model(sizes, 1.0, 0.0) > 0
    profile = _core.PairProfile(np.array([0, 400, 401, 651, 681]), theta)
    # Nodes of about the same θ are taken together, hence the tolerance.
    np.testing.assert_allclose(
        profile.expected(inside, anywhere), (chances[home].sum(), chances[~home].sum()), rtol=2e-3, atol=1e-9
    )


@pytest.mark.parametrize(
    ("n", "k", "options"),
    [
        (20_000, 20, {}),
        (20_000, 20, {"sizes": "powerlaw", "mixing": 0.4}),
        (20_000, 400, {"mean_degree": 30, "mixing": 0.18}),
        (20_000, 3, {"sizes": [10_000, 9_000, 1_000], "mean_degree": 5.0, "mixing": 0.5}),
        (20_000, 10, {"mixing": 0.0, "degree_exponent": 2.1}),
        (20_000, 10, {"mixing": 1.0}),
        (20_000, 10, {"degree_exponent": 1e6, "mixing": 0.3}),
        (20_000, 1, {"mixing": 1.0}),
        (20_000, 1, {"mixing": 0.0}),
        (2_000, 10, {"mean_degree": 40.0}),
    ],
)
def test_mean_degree_and_mixing_are_as_asked(n: int, k: int, options: dict[str, Any]) -> None:
    graph, labels = make_degree_corrected_sbm(n, k, **options, random_state=4)
    sizes = np.bincount(labels, minlength=k)
    valid_planted(graph, labels, sizes.tolist())
    assert graph.nnz / n == pytest.approx(options.get("mean_degree", 16.0), rel=0.03)
    between = edge_counts(graph, labels)[1] / (graph.nnz / 2)
    chance = 1.0 - np.sum((sizes / n) ** 2)  # that a node from anywhere belongs to another cluster
    assert between == pytest.approx(options.get("mixing", 0.2) * chance, rel=0.05)
    if options.get("mixing") == 0.0:
        assert between == 0.0


def test_degrees_have_a_power_law_tail() -> None:
    degrees = np.diff(make_degree_corrected_sbm(200_000, 1, mean_degree=30.0, random_state=0)[0].indptr)
    assert degrees.max() > 30 * degrees.mean()
    # For the density d^-2.5 the share of the nodes above d falls like d^-1.5.
    above = [np.count_nonzero(degrees > d) for d in (80, 320)]
    assert np.log(above[0] / above[1]) / np.log(4.0) == pytest.approx(1.5, abs=0.1)


def test_large_exponents_make_degrees_alike() -> None:
    degrees = np.diff(make_degree_corrected_sbm(20_000, 4, mean_degree=30.0, degree_exponent=1e9, random_state=0)[0].indptr)
    assert degrees.var() == pytest.approx(30.0, rel=0.1)  # Poisson


def test_equal_sizes_differ_by_one_at_most() -> None:
    sizes = np.bincount(make_degree_corrected_sbm(1_003, 10, mean_degree=4.0, random_state=0)[1])
    assert sizes.sum() == 1_003
    assert sizes.max() - sizes.min() == 1


@pytest.mark.parametrize("ratio", [1.0, 3.0, 10.0])
def test_power_law_sizes_keep_their_ratio(ratio: float) -> None:
    options: dict[str, Any] = {"sizes": "powerlaw", "size_ratio": ratio, "mean_degree": 4.0}
    sizes = np.bincount(make_degree_corrected_sbm(100_000, 200, **options, random_state=0)[1])
    assert sizes.size == 200
    assert sizes.sum() == 100_000
    assert 0.9 * ratio < sizes.max() / sizes.min() <= ratio * 1.02  # rounding
    # Half of the draws from s^-2 on [1, r] lie below 2r/(r + 1).
    assert np.median(sizes) / sizes.min() == pytest.approx(2 * ratio / (ratio + 1), rel=0.25)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30), st.integers(0, 200))
def test_every_cluster_gets_a_node(shares: list[float], spare: int) -> None:
    n = len(shares) + spare
    sizes = _apportion(n, np.array(shares))
    assert sizes.sum() == n
    assert sizes.min() >= 1
    if min(shares) * n / sum(shares) >= 1:
        assert np.abs(sizes - n * np.array(shares) / sum(shares)).max() <= 1 + 1e-9


@given(st.data())
def test_degree_corrected_models_are_valid_graphs(data: st.DataObject) -> None:
    n, k = data.draw(st.integers(60, 300)), data.draw(st.integers(1, 12))
    options = data.draw(
        st.fixed_dictionaries(
            {
                "mean_degree": st.floats(0.1, 2.0),
                "mixing": st.floats(0.0, 1.0),
                "degree_exponent": st.floats(1.5, 20.0),
                "sizes": st.sampled_from(["equal", "powerlaw"]),
                "size_ratio": st.floats(1.0, 3.0),
                "random_state": st.integers(0, 2**32),
            }
        )
    )
    graph, labels = make_degree_corrected_sbm(n, k, **options, dtype="f4", n_jobs=1)
    assert labels.size == n
    valid_planted(graph, labels, np.bincount(labels, minlength=k).tolist(), np.float32)
    checks.same_bits(graph, make_degree_corrected_sbm(n, k, **options, dtype="f4", n_jobs=3)[0])


def test_as_many_clusters_as_nodes() -> None:
    graph, labels = make_degree_corrected_sbm(2_000, 2_000, mean_degree=5.0, mixing=1.0, random_state=0)
    np.testing.assert_array_equal(labels, np.arange(2_000))
    assert graph.nnz / 2_000 == pytest.approx(5.0, rel=0.05)


# --- both ----------------------------------------------------------------------------------------------------------------

GENERATORS: dict[str, Callable[..., tuple[sp.csr_array, twins.Array]]] = {
    "sbm": lambda **options: make_sbm(600, 20, 0.1, 0.002, **options),
    "degree-corrected": lambda **options: make_degree_corrected_sbm(20_000, 30, sizes="powerlaw", **options),
}


@pytest.fixture(params=list(GENERATORS))
def generate(request: pytest.FixtureRequest) -> Callable[..., tuple[sp.csr_array, twins.Array]]:
    """Both generators."""
    return GENERATORS[request.param]


def test_threads_do_not_change_the_graph(generate: Callable[..., tuple[sp.csr_array, twins.Array]]) -> None:
    graph, labels = generate(random_state=7, n_jobs=1)
    for jobs in (2, 7):
        again = generate(random_state=7, n_jobs=jobs)
        checks.same_bits(again[0], graph)
        checks.same_bits(again[1], labels)


def test_seeds_change_the_graph(generate: Callable[..., tuple[sp.csr_array, twins.Array]]) -> None:
    first, second = generate(random_state=1)[0], generate(random_state=2)[0]
    common = first.multiply(second).nnz
    assert common < 0.5 * first.nnz
    stream = np.random.default_rng(1)
    checks.same_bits(generate(random_state=stream)[0], first)
    assert (generate(random_state=stream)[0] != first).nnz > 0, "a generator moves on"


def test_graphs_are_taken_without_a_copy(generate: Callable[..., tuple[sp.csr_array, twins.Array]]) -> None:
    matrix, _ = generate(random_state=0)
    graph = Graph.from_matrix(matrix, check="full")
    assert graph.indices is matrix.indices
    assert graph.weights is None


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
def test_interrupts_stop_a_generator() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            make_sbm(20_000, 3, 0.5, 0.0, n_jobs=1, dtype=np.int8)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0, 3, 0.5, 0.1), ValueError, "n_per_cluster must be at least 1, got 0"),
        ((2.5, 3, 0.5, 0.1), TypeError, "n_per_cluster must be an integer"),
        (("ten", 3, 0.5, 0.1), TypeError, "n_per_cluster must be a sequence of integers"),
        (([10, 10.5], 2, 0.5, 0.1), TypeError, "n_per_cluster must be a sequence of integers"),
        (([[1], [1, 2]], 2, 0.5, 0.1), TypeError, "n_per_cluster must be a sequence of integers"),
        (([], 1, 0.5, 0.1), TypeError, "n_per_cluster must be a sequence of integers"),
        (([10, 10], 3, 0.5, 0.1), ValueError, "one size for each of n_clusters=3 clusters, got 2"),
        (([10, 0], 2, 0.5, 0.1), ValueError, "n_per_cluster must be at least 1 for every cluster, got 0 for cluster 1"),
        (([2**62, 2**62, 2**62], 3, 0.5, 0.1), ValueError, "the sum of n_per_cluster must be at most 2147483647"),
        ((2**20, 2**20, 0.0, 0.0), ValueError, "n_per_cluster \\* n_clusters must be at most 2147483647"),
        ((10, 0, 0.5, 0.1), ValueError, "n_clusters must be at least 1"),
        ((10, True, 0.5, 0.1), TypeError, "n_clusters must be an integer"),
        ((10, 3, 1.5, 0.1), ValueError, "p must lie between 0 and 1, got 1.5"),
        ((10, 3, 0.5, -0.1), ValueError, "q must be a finite number not below 0"),
        ((10, 3, float("nan"), 0.1), ValueError, "p must be a finite number"),
        ((10, 3, "half", 0.1), TypeError, "p must be a number"),
    ],
)
def test_bad_block_models_are_refused(arguments: tuple[Any, ...], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make_sbm(*arguments)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((0, 1), {}, ValueError, "n_nodes must be at least 1"),
        ((2**31, 5), {}, ValueError, "n_nodes must be at most 2147483647"),
        ((10, 11), {}, ValueError, "n_clusters=11 is more than"),
        ((100, 2), {"mean_degree": 0.0}, ValueError, "mean_degree must be a finite number above 0"),
        ((100, 2), {"mean_degree": float("inf")}, ValueError, "mean_degree must be a finite number above 0"),
        ((100, 2), {"mean_degree": 99.0}, ValueError, "mean_degree is too large for these clusters"),
        ((1, 1), {"mean_degree": 0.1}, ValueError, "mean_degree is too large for these clusters"),
        ((100, 100), {"mean_degree": 1.0, "mixing": 0.0}, ValueError, "mean_degree is too large for these clusters"),
        ((1000, 2), {"mixing": 1.01}, ValueError, "mixing must lie between 0 and 1"),
        ((1000, 2), {"degree_exponent": 1.0}, ValueError, "degree_exponent must be a finite number above 1"),
        ((1000, 2), {"size_ratio": 0.5}, ValueError, "size_ratio must be a finite number not below 1"),
        ((1000, 2), {"sizes": "random"}, ValueError, "sizes must be one of 'equal', 'powerlaw'; got 'random'"),
        ((1000, 2), {"sizes": None}, TypeError, "sizes must be a sequence of integers"),
        ((1000, 2), {"sizes": [500, 400]}, ValueError, "sizes must sum to n_nodes=1000, got 900"),
        ((1000, 2), {"dtype": complex}, TypeError, "dtype must be a type of real numbers"),
        ((1000, 2), {"dtype": "nonsense"}, TypeError, "dtype must be a type of real numbers"),
        ((1000, 2), {"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ((1000, 2), {"random_state": "x"}, ValueError, "random_state must be"),
    ],
)
def test_bad_degree_corrected_models_are_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make_degree_corrected_sbm(*arguments, **options)


@pytest.mark.skipif("SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}), reason="this system does not tell its memory")
@pytest.mark.parametrize(
    "generate",
    [lambda: make_sbm(2**20, 2**10, 0.9, 0.9), lambda: make_degree_corrected_sbm(2**31 - 1, 10, mean_degree=1e5)],
)
def test_graphs_larger_than_the_machine_are_refused(generate: Callable[[], object]) -> None:
    with pytest.raises(MemoryError, match=r"nodes and about .* entries needs about .* GiB of memory"):
        generate()


@pytest.mark.parametrize("borders", [[0], [1, 3], [0, 3, 3], [0, 2, 1], [0, 2**31]])
def test_kernels_refuse_bad_borders(borders: list[int]) -> None:
    with pytest.raises(ValueError, match=r"borders must|at most"):
        _core.stochastic_block_model(np.array(borders), 0.5, 0.5, 0, 1)
    with pytest.raises(ValueError, match=r"borders must|at most"):
        _core.degree_corrected(np.array(borders), np.ones(3), 0.5, 0.5, 0, 1)


def test_kernels_refuse_bad_numbers() -> None:
    borders = np.array([0, 2, 3])
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="p and q must be probabilities"):
            _core.stochastic_block_model(borders, p, 0.5, 0, 1)
    for theta in ([1.0, 1.0], [1.0, 1.0, 0.0], [1.0, float("nan"), 1.0], [1.0, 1.0, float("inf")]):
        with pytest.raises(ValueError, match="theta"):
            _core.degree_corrected(borders, np.array(theta), 1.0, 1.0, 0, 1)
        with pytest.raises(ValueError, match="theta"):
            _core.PairProfile(borders, np.array(theta))
    for rate in (-1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="inside must be finite and not negative"):
            _core.degree_corrected(borders, np.ones(3), rate, 1.0, 0, 1)
        with pytest.raises(ValueError, match="anywhere must be finite and not negative"):
            _core.PairProfile(borders, np.ones(3)).expected(1.0, rate)
