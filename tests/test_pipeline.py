"""The whole algorithm: planted clusters are found, the best draw is kept, warnings name the cure, units do not matter."""

from __future__ import annotations

import warnings
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from sklearn.metrics import adjusted_rand_score

from corecut import (
    CoresetSpectralClustering,
    Graph,
    advice,
    aggregate_graph,
    draws,
    make_degree_corrected_sbm,
    make_sbm,
    normalized_cut,
    pipeline,
)
from corecut._progress import Stages
from corecut._random import as_generator
from corecut.draws import Run, spectral_problem
from corecut.engines import LocalEngine
from corecut.pipeline import Clustering, cluster_graph, partition_by_coreset
from corecut.settings import Settings, resolve
from corecut.weighted import WeightedGraph

#: The paper's own method, on a graph with self-loops.
PUBLISHED: dict[str, Any] = {
    "aggregate": False,
    "regularization": 0,
    "shift": 0,
    "sampler": "tree",
    "seeding_factor": 1.0,
    "importance": "cluster",
    "degrees": "weights",
    "candidates": "all",
    "refine": False,
    "n_init": 1,
}


def clustered(graph: Any, k: int, *, seed: int = 0, **settings: Any) -> Clustering:
    checked = graph if isinstance(graph, Graph) else Graph.from_matrix(graph)
    found = cluster_graph(checked, Settings(k, **settings), random_state=seed, stage=Stages())
    checks.valid_labels(found.labels, checked.n_nodes, k)
    return found


@pytest.fixture(scope="module")
def dense() -> tuple[sp.csr_array, np.ndarray]:
    """Return a block model of 4,000 nodes with about 130 entries each."""
    return make_sbm(500, 8, 0.25, 0.002, random_state=1)


@pytest.fixture(scope="module")
def sparse() -> tuple[sp.csr_array, np.ndarray]:
    """Return a degree-corrected graph of 8,000 nodes with about 16 entries each."""
    return make_degree_corrected_sbm(8000, 10, mean_degree=16, mixing=0.1, degree_exponent=3.0, random_state=2)


# --- planted clusters ----------------------------------------------------------------------------------------------------


def test_dense_graph_through_a_coreset(dense: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, truth = dense
    found = clustered(graph, 8, coreset_size=1200)
    assert not found.levels
    assert found.sample.coreset.n_draws == 1200
    assert adjusted_rand_score(truth, found.labels) >= 0.99
    assert np.unique(found.labels).size == 8


def test_sparse_graph_through_aggregation(sparse: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, truth = sparse
    found = clustered(graph, 10)
    assert found.levels
    assert found.labels.size == truth.size
    connected = graph.sum(axis=1) > 0
    assert adjusted_rand_score(truth[connected], found.labels[connected]) >= 0.95
    assert np.unique(found.labels).size == 10


def test_small_graph_without_either(rng: np.random.Generator) -> None:
    graph, truth = problems.planted_graph(rng, [150, 100, 80, 60], degree=12.0)
    found = clustered(graph, 4)
    assert not found.levels
    assert found.sample.coreset.n_draws == 0
    assert found.n_draws > 1
    assert adjusted_rand_score(truth, found.labels) >= 0.95


@pytest.mark.parametrize("solver", ["power", "arpack"])
def test_published_method_with_its_exact_settings(solver: Any) -> None:
    graph, truth = make_sbm(300, 5, 0.4, 0.002, random_state=3)
    graph = sp.csr_array(graph + sp.eye_array(1500))
    found = clustered(graph, 5, coreset_size=600, eigen_solver=solver, **PUBLISHED)
    assert found.sample.eigen_solver == solver
    assert found.sample.shift == 0.0
    assert found.sample.embedding.shape == (found.sample.coreset.size, 3 if solver == "power" else 5)
    assert adjusted_rand_score(truth, found.labels) >= (0.6 if solver == "power" else 0.9)


@pytest.mark.parametrize("assign", ["kmeans", "cluster_qr"])
@pytest.mark.parametrize("k", [4, 40])
def test_both_roundings_with_automatic_solver(assign: Any, k: int) -> None:
    # From 32 clusters on the automatic solver of a coreset's graph is the power method, which pivoted QR cannot use.
    graph, truth = make_sbm(2400 // k, k, min(0.9, 0.2 * k / 4), 0.001, random_state=0)
    found = clustered(graph, k, coreset_size=1600, aggregate=False, assign_labels=assign)
    assert adjusted_rand_score(truth, found.labels) >= 0.9


@pytest.mark.parametrize("k", [1, 2, 60])
def test_any_number_of_clusters(k: int, rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [30, 30], degree=8.0)
    assert np.unique(clustered(graph, k).labels).size == k


def test_every_cluster_is_used_on_connected_graphs(rng: np.random.Generator) -> None:
    ring = sp.csr_array(sp.diags_array([np.ones(499), np.ones(499), [1.0], [1.0]], offsets=[1, -1, 499, -499]))
    for k in (3, 20):
        for settings in ({}, {"refine": False}, {"regularization": 0}):
            assert np.unique(clustered(ring, k, **settings).labels).size == k


# --- levels, quotients and coresets --------------------------------------------------------------------------------------


def test_a_coreset_of_the_quotient_when_its_size_is_given(sparse: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, truth = sparse
    found = clustered(graph, 10, aggregate=True, coreset_size=700)
    groups = found.levels[-1].graph.n_nodes
    assert 700 < groups < 6000
    assert found.sample.coreset.n_draws == 700
    assert found.sample.coreset.indices[-1] < groups
    assert adjusted_rand_score(truth, found.labels) >= 0.6


def test_without_refinement_labels_respect_the_groups(sparse: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, _ = sparse
    found = clustered(graph, 10, aggregate=True, refine=False)
    group = found.levels[0].groups
    for level in found.levels[1:]:
        group = level.groups[group]
    assert np.unique(np.stack([group, found.labels]), axis=1).shape[1] == np.unique(group).size


def test_refinement_lowers_the_objective(sparse: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, _ = sparse
    rough = clustered(graph, 10, aggregate=True, refine=False, regularization=0.1)
    for balance in (0.0, 0.05):
        smooth = clustered(graph, 10, aggregate=True, balance=balance)
        assert smooth.balance == balance
        cuts = [normalized_cut(graph, found.labels, balance=balance) for found in (rough, smooth)]
        assert cuts[1] < cuts[0]


def test_levels_are_those_of_aggregation(sparse: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, _ = sparse
    for found, expected in zip(clustered(graph, 10).levels, aggregate_graph(graph, 10), strict=True):
        np.testing.assert_array_equal(found.groups, expected.groups)


# --- regularisation ------------------------------------------------------------------------------------------------------


def test_spectral_problem_by_definition(rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 25, loops=0.4)
    sizes = rng.uniform(1.0, 6.0, 25)
    for regularization in (0.0, 0.3):
        tau = regularization * A.sum() / sizes.sum()
        regular = A + tau / sizes.sum() * np.outer(sizes, sizes)
        root = np.sqrt(regular.sum(axis=1))
        problem = spectral_problem(WeightedGraph(Graph.from_matrix(A), sizes), regularization)
        np.testing.assert_allclose(problem.dense(), regular / np.outer(root, root), rtol=1e-12)
        # In a unit of weight that is a power of two.
        unit = problem.degrees[0] / root[0] ** 2
        assert np.log2(unit) == pytest.approx(np.round(np.log2(unit)), abs=1e-12)
        np.testing.assert_allclose(problem.degrees, unit * root**2, rtol=1e-12)


@pytest.mark.parametrize("regularization", [0.0, 0.5])
@pytest.mark.parametrize("candidates", ["all", "touched"])
def test_labels_follow_from_the_coreset_by_definition(candidates: Any, regularization: float) -> None:
    # Nodes that stand for several ones, as in a quotient, and the kernel of A + (τ/n)·s sᵀ.
    rng = np.random.default_rng(3)
    graph, _ = problems.planted_graph(rng, [80, 70, 60], degree=70.0, mixing=0.4)
    A, sizes = graph.toarray(), rng.uniform(1.0, 5.0, 210)
    settings = Settings(
        3,
        coreset_size=70,
        aggregate=False,
        regularization=regularization,
        candidates=candidates,
        shift=0.0 if regularization else 0.05,
        refine=False,  # or a second sample would have its say
    )
    checked = Graph.from_matrix(graph)
    run = Run(resolve(settings, checked), as_generator(0), Stages(), settings.n_jobs)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9,]+ squared distances were negative")
        labels, sample = partition_by_coreset(run, WeightedGraph(checked, sizes), engine=LocalEngine())
    tau = regularization * A.sum() / sizes.sum()
    shift = 0.05 if candidates == "all" and not regularization else 0.0
    K, w = twins.graph_kernel(A + tau / sizes.sum() * np.outer(sizes, sizes), shift)
    nodes = sample.coreset.indices
    centres = twins.centroid_coefficients(
        210, nodes, sample.coreset.weights * w[nodes] / A.sum(axis=1)[nodes], sample.labels, 3
    )
    distances = twins.centre_distances(K, centres)
    if candidates == "touched":
        contact = (A + np.eye(210))[:, nodes] @ twins.membership(sample.labels, 3) > 0
        distances[~contact & contact.any(axis=1)[:, None]] = np.inf
    nearest, second = np.sort(distances, axis=1)[:, :2].T
    clear = second - nearest > 1e-9 * np.abs(nearest)
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(labels[clear], distances.argmin(axis=1)[clear])


def test_a_coreset_stands_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(3), [800, 700], degree=60.0)
    sizes = np.random.default_rng(0).uniform(1.0, 9.0, 1500)
    seen: list[np.ndarray] = []
    embed = draws.embed

    def record(run: Run, level: WeightedGraph, **settings: Any) -> Any:
        seen.append(level.sizes)
        return embed(run, level, **settings)

    monkeypatch.setattr(pipeline, "embed", record)
    checked = Graph.from_matrix(graph)
    choices = resolve(Settings(2, coreset_size=500, aggregate=False), checked)
    for seed in range(4):
        run = Run(choices, as_generator(seed), Stages(), None)
        partition_by_coreset(run, WeightedGraph(checked, sizes), engine=LocalEngine())
    assert np.mean([found.sum() for found in seen]) == pytest.approx(sizes.sum(), rel=0.05)


# --- several draws -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refine", [True, False])
def test_the_coreset_with_the_lowest_objective_is_kept(refine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(4), [60] * 8, degree=30.0, mixing=0.5)
    drawn: list[tuple[np.ndarray, Any]] = []
    original = pipeline.partition_by_coreset

    def record(run: Run, level: WeightedGraph, *, engine: LocalEngine) -> Any:
        drawn.append(original(run, level, engine=engine))
        return drawn[-1]

    monkeypatch.setattr(pipeline, "partition_by_coreset", record)
    monkeypatch.setattr(pipeline, "descend", lambda run, whole, levels, starts, **named: (starts[0].labels, starts[0]))
    balance = 0.05 if refine else 0
    found = clustered(graph, 8, n_init=5, refine=refine, coreset_size=300, aggregate=False, balance=balance)
    assert found.n_draws == len(drawn) == 5
    objectives = [twins.conductances_with_fee(graph.toarray(), labels, 8, balance).sum() for labels, _ in drawn]
    assert np.ptp(objectives) > 0
    best = int(np.argmin(objectives))
    np.testing.assert_array_equal(found.labels, drawn[best][0])
    assert found.sample is drawn[best][1]


def test_agreement_of_draws_reaches_the_nodes(sparse: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, _ = sparse
    assert clustered(graph, 10, n_init=1).agreement is None
    found = clustered(graph, 10, n_init=3)
    assert found.agreement is not None
    assert found.agreement.shape == (8000,)
    assert np.all(np.isin((3 * found.agreement).round(9), [0, 1, 2, 3]))
    assert found.agreement.mean() > 0.8


# --- units ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{}, {"coreset_size": 700, "aggregate": False}, {"aggregate": True, "coreset_size": 600}, {"regularization": 0.2}],
)
@pytest.mark.parametrize("factor", [2.0**40, 2.0**-39, 3.7])
def test_scaling_all_weights_changes_nothing(factor: float, settings: dict[str, Any]) -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(6), [400, 350, 300, 250], degree=40.0, mixing=0.2)
    one, other = (clustered(matrix, 4, **settings).labels for matrix in (graph, sp.csr_array(graph * factor)))
    if factor == 3.7:  # sums are rounded otherwise, and of two equal draws the other one may come first
        assert adjusted_rand_score(one, other) == 1.0
    else:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("exponent", [1, 3, -1, -5])
@pytest.mark.parametrize("bounds", [{}, {"max_cluster_size": 1.05}])
def test_odd_powers_of_two_change_nothing_on_symmetric_graphs(exponent: int, bounds: dict[str, Any]) -> None:
    # Ties are everywhere on a cycle: rounding that differs would be seen.
    ring = sp.csr_array(sp.diags_array([np.ones(59), np.ones(59), [1.0], [1.0]], offsets=[1, -1, 59, -59]))
    np.testing.assert_array_equal(clustered(ring, 4, **bounds).labels, clustered(ring * 2.0**exponent, 4, **bounds).labels)


def test_storage_changes_nothing(rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [100, 80, 60])
    one = clustered(graph, 3).labels
    wide = sp.csr_array((graph.data, graph.indices.astype(np.int64), graph.indptr.astype(np.int64)), shape=graph.shape)
    for other in (wide, sp.coo_array(graph), sp.csc_array(graph), graph.toarray()):
        np.testing.assert_array_equal(one, clustered(other, 3).labels)


# --- bounds, warnings and words ------------------------------------------------------------------------------------------


def test_bounds_on_cluster_sizes_are_kept(rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [200, 100, 60, 40], degree=12.0)
    free = np.bincount(clustered(graph, 4).labels)
    assert free.max() > 150
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the bounds cost
        bounded = np.bincount(clustered(graph, 4, min_cluster_size=60, max_cluster_size=130).labels)
    assert bounded.max() <= 130
    assert bounded.min() >= 60


def test_a_shift_that_is_too_small_draws_a_warning(dense: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, _ = dense
    weights = graph.copy()
    weights.data = np.ones_like(weights.data)
    with pytest.warns(UserWarning, match='squared distances were negative .* shift=.* or shift="auto" would mend'):
        clustered(weights, 8, coreset_size=1200, shift=0.0)


def test_a_coreset_without_contact_draws_a_warning(sparse: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, _ = sparse
    with pytest.warns(UserWarning, match="coreset") as caught:
        clustered(graph, 10, aggregate=False, coreset_size=100)
    texts = [str(warning.message) for warning in caught]
    assert any("set aggregate=True, or coreset_size=" in text for text in texts)
    assert any(
        "no neighbour in the coreset" in text and "set aggregate=True or a larger coreset_size" in text for text in texts
    )
    ring = sp.csr_array(sp.diags_array([np.ones(499), np.ones(499), [1.0], [1.0]], offsets=[1, -1, 499, -499]))
    with pytest.warns(UserWarning, match="labelled blindly; set a larger coreset_size"):
        clustered(ring, 5, coreset_size=300, n_init=1)


def test_a_giant_draws_a_warning_that_names_the_cure() -> None:
    labels = np.zeros(100, np.int32)
    labels[:20] = np.arange(20) % 4
    for settings, cure in (
        ({"refined": False, "aggregated": False}, "aggregate=True and refine=True"),
        ({"refined": False, "aggregated": True}, "refine=True"),
        ({"refined": True, "aggregated": True}, "a larger balance="),
    ):
        with pytest.warns(UserWarning, match=rf"one cluster holds 85% .* try {cure}, or max_cluster_size="):
            advice.of_giant(labels, 4, **settings)
    advice.of_giant(np.repeat(np.arange(4), [75, 10, 10, 5]), 4, refined=True, aggregated=False)  # no warning
    advice.of_giant(np.repeat(np.arange(3), [90, 5, 5]), 3, refined=True, aggregated=False)


@pytest.mark.filterwarnings("ignore:one cluster holds")
@pytest.mark.parametrize(("sizes", "parts"), [((50, 50), 2), ((60, 30, 2, 1, 1), 3), ((2,) * 1200, 1200)])
def test_a_warning_says_how_many_parts_there_are(sizes: tuple[int, ...], parts: int) -> None:
    cliques = sp.block_diag([np.ones((n, n)) - np.eye(n) for n in sizes], format="csr")
    with pytest.warns(UserWarning, match=f"falls into {parts:,} parts .* asked for 2 clusters"):
        clustered(cliques, 2)


def test_a_connected_graph_draws_no_warning_and_isolated_nodes_are_no_parts() -> None:
    clustered(sp.block_diag([np.ones((30, 30)), sp.csr_array((5, 5))], format="csr"), 2)  # warnings are errors


def test_stages_and_their_order(dense: tuple[sp.csr_array, np.ndarray], sparse: tuple[sp.csr_array, np.ndarray]) -> None:
    stage = Stages()
    cluster_graph(Graph.from_matrix(dense[0]), Settings(8, coreset_size=1200), random_state=0, stage=stage)
    assert list(stage.timings) == [
        "components",
        "kernel",
        "seeds",
        "coreset",
        "coreset graph",
        "eigenvectors",
        "rounding",
        "repair",
        "labelling",
        "refinement",
    ]
    stage = Stages()
    cluster_graph(Graph.from_matrix(sparse[0]), Settings(10), random_state=0, stage=stage)
    told = [name for name in stage.timings if name != "combination"]  # of draws, where they differ
    assert told == ["components", "aggregation", "eigenvectors", "rounding", "repair", "refinement"]


def test_number_of_vectors(rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [40] * 10)
    widths = {k: clustered(graph, k, n_init=1, refine=False).sample.embedding.shape[1] for k in (3, 16, 40, 200)}
    assert (widths[3], widths[16]) == (3, 16)
    assert 16 <= widths[40] <= 40 <= widths[200] <= 200
    assert clustered(graph, 6, n_components=9).sample.embedding.shape[1] == 9
    assert clustered(graph, 6, eigen_solver="power").sample.embedding.shape[1] == 3
    with pytest.raises(ValueError, match="n_components"):
        clustered(graph, 6, n_components=401)


def test_a_generator_goes_on_where_it_stopped() -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(0), [60] * 5, degree=6.0, mixing=0.5)
    generator = np.random.default_rng(0)
    model = CoresetSpectralClustering(5, n_init=1, refine=False, random_state=generator)
    assert np.any(model.fit_predict(graph) != model.fit_predict(graph))


def test_second_sample_mends_what_the_coreset_missed() -> None:
    # Six coreset nodes per cluster: some clusters have one or two, which k-means gives to others.
    graph, truth = make_sbm(300, 30, 0.5, 0.0005, random_state=1)
    scores = {}
    for refine in (False, True):
        found = clustered(Graph.from_matrix(graph), 30, coreset_size=180, aggregate=False, refine=refine)
        scores[refine] = adjusted_rand_score(truth, found.labels)
    assert scores[False] < 0.95
    assert scores[True] > 0.99
