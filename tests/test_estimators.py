"""The four estimators: scikit-learn's own checks, affinities, refusals, repeatable labels, pickles, words and Ctrl-C."""

from __future__ import annotations

import copy
import os
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.estimator_checks import check_estimator

from corecut import (
    CoresetKernelKMeans,
    CoresetSpectralClustering,
    FastSpectralClustering,
    Graph,
    GraphStore,
    KernelKMeans,
    make_sbm,
    normalized_cut,
)

ESTIMATORS: list[Any] = [CoresetSpectralClustering, FastSpectralClustering, KernelKMeans, CoresetKernelKMeans]


@pytest.fixture(params=ESTIMATORS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> Any:
    """Every estimator."""
    return request.param


@pytest.fixture(scope="module")
def blocks() -> tuple[sp.csr_array, np.ndarray]:
    """Return a block model of four clear clusters."""
    return make_sbm(60, 4, 0.5, 0.01, random_state=0)


@pytest.fixture(scope="module")
def points() -> tuple[np.ndarray, np.ndarray]:
    """Return points in three clear clusters."""
    X, truth = make_blobs(240, 3, centers=[[0, 0, 0], [8, 0, 0], [0, 8, 0]], random_state=0)
    return X, truth


# --- scikit-learn --------------------------------------------------------------------------------------------------------


def test_scikit_learns_own_checks(kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks feed tiny and odd data on purpose
        results = check_estimator(kind(), on_fail=None)
    failed = [(result["check_name"], result["exception"]) for result in results if result["status"] in ("failed", "xfail")]
    assert not failed
    assert sum(result["status"] == "passed" for result in results) >= 30


def test_parameters_and_clones(kind: Any) -> None:
    model = kind(5, affinity="rbf", gamma=0.5, random_state=3)
    assert model.get_params()["n_clusters"] == 5
    same = clone(model)
    assert same is not model
    assert same.get_params() == model.get_params()
    assert same.set_params(n_clusters=7).n_clusters == 7
    with pytest.raises(ValueError, match="Invalid parameter 'clusters'"):
        model.set_params(clusters=3)
    with pytest.raises(TypeError):
        kind(5, "rbf")  # keyword-only after the first


def test_nothing_before_fit(kind: Any) -> None:
    model = kind(3)
    for name in ("conductances_", "normalized_cut_", "confidence_"):
        with pytest.raises(NotFittedError):
            getattr(model, name)
    assert not hasattr(model, "labels_")


def test_constructor_only_stores(kind: Any) -> None:
    odd = object()
    assert kind(odd, affinity=odd, random_state=odd).get_params()["affinity"] is odd


def test_finds_planted_clusters_and_reports_them(kind: Any, blocks: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, truth = blocks
    model = kind(4, random_state=1)
    labels = model.fit_predict(graph)
    checks.valid_labels(labels, 240, 4)
    assert labels is model.labels_
    assert adjusted_rand_score(truth, labels) > 0.9
    A = graph.toarray()
    np.testing.assert_allclose(model.conductances_, twins.conductances(A, labels, 4), rtol=1e-12)
    assert model.normalized_cut_ == pytest.approx(normalized_cut(graph, labels), rel=1e-12)
    assert model.normalized_cut_ == pytest.approx(model.conductances_.mean())
    if kind is not CoresetSpectralClustering:
        np.testing.assert_allclose(model.confidence_, twins.margins(A, labels), atol=1e-12)
    assert model.n_features_in_ == 240


def test_what_automatic_came_to(blocks: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, _ = blocks
    model = CoresetSpectralClustering(4, random_state=0).fit(graph)
    assert (model.coreset_size_, model.aggregate_, model.n_levels_) == (240, False, 0)
    assert 2 <= model.n_init_ <= 8  # until two draws have found the same
    assert (model.eigen_solver_, model.shift_, model.n_untouched_) == ("subspace", 0.0, 0)
    assert model.regularization_ == pytest.approx(0.1 * 240 / 320)
    assert model.balance_ == 0.0  # the plain cut gives clusters
    assert model.coreset_indices_.tolist() == list(range(240))
    assert model.coreset_labels_.shape == model.coreset_weights_.shape == (240,)
    assert model.embedding_.shape[0] == 240
    model = CoresetSpectralClustering(4, coreset_size=150, aggregate=False, shift=0.7, random_state=0).fit(graph)
    assert (model.coreset_size_, model.shift_) == (150, 0.7)
    assert model.coreset_indices_.size == model.coreset_labels_.size == model.embedding_.shape[0] <= 150


# --- the same labels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["dense", "sparse", "points"])
def test_same_labels_for_any_number_of_threads_and_again(kind: Any, what: str) -> None:
    rng = np.random.default_rng(5)
    if what == "points":
        X: Any = make_blobs(3500, 4, centers=6, cluster_std=2.5, random_state=0)[0]
    else:
        degree = {"dense": 120.0, "sparse": 10.0}[what]
        X, _ = problems.planted_graph(rng, [900, 800, 700, 600, 500], degree=degree, mixing=0.3)
    settings: dict[str, Any] = {"random_state": 0}
    if kind is CoresetSpectralClustering and what == "dense":
        settings["coreset_size"] = 1000
    models = [kind(6, n_jobs=jobs, **settings).fit(X) for jobs in (1, 2, 3, 1)]
    for model in models[1:]:
        checks.same_bits(models[0].labels_, model.labels_)
        assert model.normalized_cut_ == models[0].normalized_cut_
        checks.same_bits(models[0].confidence_, model.confidence_)


def test_random_state_decides(blocks: tuple[sp.csr_array, np.ndarray], kind: Any) -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(0), [40] * 5, degree=6.0, mixing=0.6)
    kwargs = {"refine": False, "n_init": 1} if kind is CoresetSpectralClustering else {"n_init": 1}
    runs = [kind(5, random_state=seed, **kwargs).fit_predict(graph) for seed in (0, 0, 1, 2, 3)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert any(np.any(runs[0] != other) for other in runs[2:])
    legacy = [kind(5, random_state=np.random.RandomState(4), **kwargs).fit_predict(graph) for _ in range(2)]
    np.testing.assert_array_equal(*legacy)


@pytest.mark.parametrize("factor", [2.0**-7, 2.0, 2.0**20])
def test_weights_times_a_power_of_two_give_the_same_labels(kind: Any, factor: float) -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(2), [400, 300, 200], degree=15.0, mixing=0.4)
    one, two = (kind(3, random_state=0).fit(weighted) for weighted in (graph, sp.csr_array(graph * factor)))
    checks.same_bits(one.labels_, two.labels_)
    assert one.normalized_cut_ == two.normalized_cut_


@pytest.mark.parametrize("weighted", [False, True])
def test_powers_of_two_do_not_change_groups_under_tight_bounds(weighted: bool) -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(2), [100] * 40, degree=10.0, mixing=0.3)
    if weighted:
        upper = sp.triu(graph, 1, format="csr")
        upper.data = np.random.default_rng(0).lognormal(size=upper.nnz)
        graph = sp.csr_array(upper + upper.T)
    fits = [
        CoresetSpectralClustering(40, max_cluster_size=1.05, random_state=0).fit(graph * 2.0**exponent).labels_
        for exponent in (0, -10, -1, 40)
    ]
    for other in fits[1:]:
        checks.same_bits(fits[0], other)


def ties(kind: str) -> np.ndarray:
    """Return a graph in which ties are everywhere, so that rounding that differs would be seen."""
    if kind == "ring":
        return np.roll(np.eye(40), 1, 1) + np.roll(np.eye(40), -1, 1)
    path = np.diag(np.ones(6), 1) + np.diag(np.ones(6), -1)
    return np.kron(np.eye(7), path) + np.kron(path, np.eye(7))


@pytest.mark.parametrize("exponent", [1, -3, 101, 401])
@pytest.mark.parametrize("graph", ["ring", "grid"])
@pytest.mark.parametrize("settings", [{}, {"coreset_size": 12, "aggregate": False}])
@pytest.mark.filterwarnings("ignore:a coreset of 12 nodes keeps only")
@pytest.mark.filterwarnings("ignore:.* nodes have no neighbour in the coreset")
def test_odd_powers_of_two_do_not_turn_ties(kind: Any, graph: str, settings: dict[str, Any], exponent: int) -> None:
    if settings and kind is not CoresetSpectralClustering:
        settings = {}
    for k, seed in ((4, 0), (7, 1)):
        fits = [
            kind(k, random_state=seed, affinity="precomputed", **settings).fit(ties(graph) * f) for f in (1.0, 2.0**exponent)
        ]
        checks.same_bits(fits[0].labels_, fits[1].labels_)


# --- affinities ----------------------------------------------------------------------------------------------------------


def test_graphs_in_every_form_are_one_graph(kind: Any, blocks: tuple[sp.csr_array, np.ndarray]) -> None:
    graph, _ = blocks
    one = kind(4, random_state=0).fit_predict(graph)
    for X, affinity in (
        (Graph.from_matrix(graph), "auto"),
        (graph, "precomputed"),
        (sp.coo_matrix(graph), "auto"),
        (graph.toarray(), "precomputed"),
    ):
        np.testing.assert_array_equal(kind(4, affinity=affinity, random_state=0).fit_predict(X), one)


@pytest.mark.parametrize("affinity", ["auto", "nearest_neighbors", "rbf", "callable", "precomputed_nearest_neighbors"])
def test_points_by_every_affinity(kind: Any, affinity: str, points: tuple[np.ndarray, np.ndarray]) -> None:
    X, truth = points
    chosen: Any = affinity
    if affinity == "callable":
        X, truth = X[::4], truth[::4]

        def chosen(x: np.ndarray, y: np.ndarray) -> float:
            return float(np.exp(-0.1 * np.sum((x - y) ** 2)))

    if affinity == "precomputed_nearest_neighbors":
        X = NearestNeighbors(n_neighbors=20).fit(X).kneighbors_graph(mode="distance")
    model = kind(3, affinity=chosen, gamma=0.1 if affinity == "rbf" else 1.0, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the graph is not fully connected")
        labels = model.fit_predict(X)
    checks.valid_labels(labels, len(truth), 3)
    # Lloyd's steps in a kernel whose points see their neighbours only end near where they start.
    stuck = kind in (KernelKMeans, CoresetKernelKMeans) and affinity not in ("rbf", "callable")
    assert adjusted_rand_score(truth, labels) > (0.0 if stuck else 0.95)
    assert model.n_features_in_ == (240 if affinity == "precomputed_nearest_neighbors" else 3)


def test_affinities_mean_what_the_peer_means(points: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = points
    for settings in ({"affinity": "nearest_neighbors", "n_neighbors": 100}, {"affinity": "rbf", "gamma": 0.2}):
        peer = SpectralClustering(3, random_state=0, **settings).fit(X)
        model = CoresetSpectralClustering(3, random_state=0, **settings).fit(X)
        assert adjusted_rand_score(peer.labels_, model.labels_) == 1.0
        again = CoresetSpectralClustering(3, affinity="precomputed", random_state=0).fit(peer.affinity_matrix_)
        np.testing.assert_array_equal(again.labels_, model.labels_)
        assert again.normalized_cut_ == pytest.approx(model.normalized_cut_, rel=1e-6)


def test_sparse_points(points: tuple[np.ndarray, np.ndarray]) -> None:
    X, truth = points
    with pytest.warns(UserWarning, match="falls into 3 parts"):
        labels = CoresetSpectralClustering(3, random_state=0).fit_predict(sp.csr_array(np.abs(X)))
    assert adjusted_rand_score(truth, labels) > 0.9


def test_square_sparse_points_must_be_named(rng: np.random.Generator) -> None:
    X = sp.csr_array(np.abs(rng.standard_normal((30, 30))))
    words = (
        'not symmetric: entry .* symmetrize=.* a square sparse matrix is taken for a graph: pass affinity="nearest_neighbors"'
    )
    with pytest.raises(ValueError, match=words):
        CoresetSpectralClustering(3).fit(X)
    CoresetSpectralClustering(3, affinity="nearest_neighbors").fit(X)
    with pytest.raises(ValueError, match="not symmetric") as caught:
        CoresetSpectralClustering(3, affinity="precomputed").fit(X)
    assert "affinity" not in str(caught.value)
    CoresetSpectralClustering(3, symmetrize="mean").fit(X)


def test_square_symmetric_arrays_draw_a_warning(kind: Any, rng: np.random.Generator) -> None:
    X = rbf_kernel(rng.standard_normal((30, 2)))
    with pytest.warns(UserWarning, match='square symmetric array and is taken for points: pass affinity="precomputed"'):
        kind(3, random_state=0).fit(X)
    kind(3, affinity="precomputed", random_state=0).fit(X)  # no warning
    kind(3, affinity="nearest_neighbors", random_state=0).fit(X)
    kind(3, random_state=0).fit(X + np.triu(np.ones((30, 30)), 1))


class Frame:
    """What matters of a data frame: a shape, a length, and an array when it is asked for one."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape = values, values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values


@pytest.mark.parametrize("form", [np.ndarray.tolist, lambda X: tuple(map(tuple, X)), Frame, list])
def test_square_symmetric_tables_draw_the_same_warning(kind: Any, form: Any, rng: np.random.Generator) -> None:
    X = rbf_kernel(rng.standard_normal((30, 2)))
    with pytest.warns(UserWarning, match='square symmetric table and is taken for points: pass affinity="precomputed"'):
        kind(3, random_state=0).fit(form(X))
    if form is not Frame:
        kind(3, affinity="precomputed", random_state=0).fit(form(X))
    kind(3, random_state=0).fit(form(X[:, :5]))


def test_graphs_of_libraries_without_an_adapter_are_told_what_to_pass(kind: Any) -> None:
    for library, cure in (("graph_tool", "graph_tool.spectral.adjacency(g)"), ("dgl", 'g.adj_external(scipy_fmt="csr")')):
        unknown = type("Foreign", (), {"__module__": f"{library}.core"})
        with pytest.raises(TypeError, match=re.escape(cure)):
            kind(2).fit(unknown())
        with pytest.raises(TypeError, match=re.escape(cure)):
            kind(2).fit(type("Own", (unknown,), {})())


def test_files_and_stores_are_graphs(kind: Any, tmp_path: Any) -> None:
    graph = Graph.from_matrix(make_sbm(20, 2, 0.5, 0.1, random_state=0)[0])
    expected = kind(2, random_state=0).fit(graph).labels_
    store = GraphStore.write(graph, tmp_path / "g.store")
    for given in (store, tmp_path / "g.store", str(tmp_path / "g.store")):
        model = kind(2, random_state=0).fit(given)
        np.testing.assert_array_equal(model.labels_, expected)
    with pytest.raises(
        ValueError, match='X is a GraphStore of corecut, which affinity=\'rbf\' does not take: use "auto" or "precomputed"'
    ):
        kind(2, affinity="rbf").fit(store)
    with pytest.raises(ValueError, match="X is the name of a file, which affinity='rbf' does not take"):
        kind(2, affinity="rbf").fit("edges.txt")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        kind(2).fit(str(tmp_path / "nothing.txt"))
    for given in (store, tmp_path / "g.store"):
        with pytest.warns(UserWarning, match="check='full' has no effect on a Graph"):
            kind(2, check="full", random_state=0).fit(given)


# --- refusals ------------------------------------------------------------------------------------------------------------


def with_entry(value: float) -> sp.csr_array:
    A = np.ones((6, 6))
    A[1, 2] = A[2, 1] = value
    return sp.csr_array(A)


def out_of_range() -> sp.csr_array:
    graph = with_entry(2.0)
    graph.indices[3] = 77
    return graph


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "NaN": (with_entry(np.nan), ValueError, "nan"),
    "infinity": (with_entry(np.inf), ValueError, "inf"),
    "negative": (with_entry(-1.0), ValueError, "negative"),
    "asymmetric": (np.triu(np.ones((6, 6))), ValueError, "not symmetric: entry"),
    "not square": (sp.csr_array(np.ones((6, 5))), ValueError, "must be square, got shape (6, 5)"),
    "out of range": (out_of_range(), ValueError, "77"),
    "too many clusters": (np.ones((2, 2)), ValueError, "n_clusters=3 is more than n_samples=2"),
    "empty": (sp.csr_array((0, 0)), ValueError, "the graph is empty"),
    "complex": (np.ones((6, 6), dtype=complex), TypeError, "must be real numbers, got dtype complex128"),
    "objects": (np.full((6, 6), "x", dtype=object), TypeError, "holding objects"),
    "nothing": (None, TypeError, "square"),
    "one row": (np.ones(6), TypeError, "1 dimension"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_graphs_are_refused_in_one_clear_sentence(kind: Any, what: str) -> None:
    X, error, words = REFUSED[what]
    with pytest.raises(error, match=f"(?i){re.escape(words)}") as caught:
        kind(3, affinity="precomputed").fit(X)
    assert isinstance(caught.value, error)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("k", [0, -3, 2.0, "4", None, True])
def test_numbers_of_clusters_that_are_none(kind: Any, k: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="n_clusters must be"):
        kind(k).fit(with_entry(2.0))


@pytest.mark.parametrize("affinity", ["additive_chi2", "manhattan", None, 3])
def test_unknown_affinities_are_refused_with_a_list(kind: Any, affinity: Any) -> None:
    with pytest.raises(ValueError, match=r'affinity=.* is not offered: use "auto", "precomputed"'):
        kind(3, affinity=affinity).fit(np.ones((6, 2)))


def test_points_that_are_not_known_are_refused(kind: Any) -> None:
    pandas = pytest.importorskip("pandas")
    points = np.arange(12.0).reshape(6, 2)
    for value, words in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        points[4, 1] = value
        for form in (points, sp.csr_array(points)):
            with pytest.raises(ValueError, match=rf"X has {words} in row 4, column 1 \(counted from 0\): fill in or leave out"):
                kind(2, affinity="nearest_neighbors", n_neighbors=2).fit(form)
    points[4, 1], points[0] = 0.0, 1.7e308  # a sum that overflows is no missing value
    kind(2, affinity="nearest_neighbors", n_neighbors=2).fit(points)
    with pytest.raises(ValueError, match="two columns of X are called 'a': give every column a name of its own"):
        kind(2).fit(pandas.DataFrame(np.ones((5, 2)), columns=["a", "a"]))
    with pytest.raises(ValueError, match="values are too large to be squared; scale X down first"):
        kind(2, affinity="rbf").fit(1e200 * np.arange(12.0).reshape(6, 2))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        kind(1).fit(np.ones((1, 2)))


def test_a_graph_without_edges(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"no edges|no point of positive weight"):
        kind(2).fit(sp.csr_array((5, 5)))


WRONG: dict[str, tuple[Any, str]] = {
    "sampler": ("fast", "must be one of"),
    "importance": ("much", "importance must be one of"),
    "candidates": ("some", "candidates must be one of"),
    "eigen_solver": ("fast", "eigen_solver must be one of"),
    "eigen_tol": (1e-4, "eigen_tol=0.0001 is not offered"),
    "assign_labels": ("qr", "assign_labels must be one of"),
    "n_init": (0, "n_init must be at least 1"),
    "effort": (0, "effort must be"),
    "max_iter": (0, "max_iter must be at least 1"),
    "tol": (-1.0, "tol must be"),
    "shift": (-1.0, "shift must be"),
    "n_jobs": (0, "n_jobs must not be 0"),
    "check": ("maybe", "check must be one of"),
    "symmetrize": ("sum", "symmetrize must be one of"),
    "engine": ("dask", "engine must be None"),
    "memory_limit": ("lots", "'lots' is not a size"),
    "scratch": ("somewhere", "scratch= needs memory_limit="),
    "random_state": ("lucky", "random_state must be"),
    "n_clusters": (2.5, "n_clusters must be an integer"),
    "affinity": ("manhattan", "affinity='manhattan' is not offered"),
    "degree": (-1, "degree must be a finite number not below 0"),
    "coef0": ("x", "coef0 must be a number"),
    "kernel_params": ([1], "kernel_params must be a dict"),
    "n_neighbors": (1, "n_neighbors=1 joins no two points"),
    "neighbors": ("some", "neighbors must be one of"),
    "gamma": (-1, "gamma must be a finite number above 0"),
    "verbose": ("x", "verbose must be an integer"),
    "n_components": (0, "n_components must be at least 1"),
    "degrees": ("many", "degrees must be one of"),
    "seeding_factor": (0, "seeding_factor must be"),
    "aggregate": ("yes", "aggregate must be one of"),
    "regularization": (-1, "regularization must be"),
    "refine": ("no", "refine must be one of"),
    "min_cluster_size": (0, "min_cluster_size must be at least 1"),
    "max_cluster_size": (-0.5, "max_cluster_size must be a finite number above 0"),
    "balance": (-1, "balance must be"),
    "coreset_size": (0, "coreset_size must be at least 1"),
}


class Untouchable:
    """Data that must not be looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} of the data was asked for before the parameters were checked")


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in ESTIMATORS for name in kind().get_params()])
def test_wrong_parameters_are_refused_before_any_work(kind: Any, name: str) -> None:
    value, words = WRONG[name]
    with pytest.raises((ValueError, TypeError), match=words):
        kind(**{"n_clusters": 4, name: value}).fit(Untouchable())


def test_pivoted_qr_without_its_vectors_is_refused_before_any_work() -> None:
    for model in (
        FastSpectralClustering(4, assign_labels="cluster_qr", eigen_solver="power"),
        CoresetSpectralClustering(4, assign_labels="cluster_qr", n_components=3),
        CoresetSpectralClustering(4, assign_labels="cluster_qr", eigen_solver="power"),
    ):
        with pytest.raises(ValueError, match='"cluster_qr" needs as many components as clusters'):
            model.fit(Untouchable())


def test_pivoted_qr_of_many_clusters_has_a_solver_with_as_many_vectors() -> None:
    graph, truth = make_sbm(20, 40, 0.9, 0.001, random_state=0)
    model = FastSpectralClustering(40, assign_labels="cluster_qr", random_state=0).fit(graph)
    assert model.eigen_solver_ == "subspace"
    assert adjusted_rand_score(truth, model.labels_) == 1.0


def test_no_eigen_solver_is_the_automatic_one(blocks: tuple[sp.csr_array, np.ndarray]) -> None:
    for kind in (CoresetSpectralClustering, FastSpectralClustering):
        one, two = (kind(4, eigen_solver=solver, random_state=0).fit(blocks[0]) for solver in (None, "auto"))
        assert one.eigen_solver_ == two.eigen_solver_
        np.testing.assert_array_equal(one.labels_, two.labels_)


def test_the_callers_arrays_are_not_changed(kind: Any, rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [60, 50, 40])
    graph = sp.csr_array(graph)[:, rng.permutation(150)][rng.permutation(150)]  # unsorted columns
    graph = sp.csr_array(graph + graph.T)
    before = graph.copy()
    kind(3, random_state=0).fit(graph)
    checks.same_bits(graph, before)


# --- pickles, words, timings ---------------------------------------------------------------------------------------------


def test_a_pickle_keeps_the_measures_and_drops_the_graph(kind: Any) -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(0), [500, 400, 300], degree=40.0)
    model = kind(3, random_state=0).fit(graph)
    data = pickle.dumps(model)
    assert len(data) < graph.data.nbytes / 2
    for other in (pickle.loads(data), copy.deepcopy(model), pickle.loads(pickle.dumps(pickle.loads(data)))):
        assert other.normalized_cut_ == model.normalized_cut_
        np.testing.assert_array_equal(other.confidence_, model.confidence_)
        np.testing.assert_array_equal(other.labels_, model.labels_)
        assert other.get_params() == model.get_params()
        assert not any(isinstance(value, Graph) for value in vars(other).values())
    assert pickle.loads(pickle.dumps(kind(5))).n_clusters == 5


@pytest.mark.parametrize("form", ["matrix", "Graph", "dense", "points"])
def test_what_was_fitted_does_not_change_with_what_comes_after(kind: Any, form: str) -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(0), [100, 80, 60], degree=20.0)
    affinity = "precomputed" if form == "dense" else "auto"
    X = {
        "matrix": graph,
        "Graph": Graph.from_matrix(graph),
        "dense": graph.toarray(),
        "points": np.random.default_rng(0).random((200, 3)),
    }[form]
    model = kind(3, affinity=affinity, random_state=0).fit(X)
    expected = kind(3, affinity=affinity, random_state=0).fit(X)
    cut, conductances, confidence = expected.normalized_cut_, expected.conductances_, expected.confidence_
    model.set_params(n_clusters=20, n_jobs=3, affinity="rbf")
    model.labels_ = model.labels_.copy()
    model.labels_[:] = 0
    if form == "matrix":
        graph.data[:] = 7.0
        graph.indices[::2] = 0
    elif form != "Graph":
        X[:] = 1.0
    assert model.normalized_cut_ == cut
    np.testing.assert_array_equal(model.conductances_, conductances)
    np.testing.assert_array_equal(model.confidence_, confidence)
    assert pickle.loads(pickle.dumps(model)).normalized_cut_ == cut


def test_a_second_fit_forgets_the_first(kind: Any, blocks: tuple[sp.csr_array, np.ndarray]) -> None:
    model = kind(4, random_state=0).fit(blocks[0])
    first = model.normalized_cut_, model.confidence_
    other, _ = make_sbm(50, 4, 0.4, 0.1, random_state=1)
    model.fit(other)
    assert model.normalized_cut_ == pytest.approx(normalized_cut(other, model.labels_))
    assert model.normalized_cut_ != first[0]
    assert model.confidence_.size != first[1].size


STAGES = {
    CoresetSpectralClustering: ["graph", "components", "eigenvectors", "rounding", "repair", "refinement", "metrics"],
    FastSpectralClustering: ["graph", "eigenvectors", "rounding", "metrics"],
    KernelKMeans: ["graph", "kernel k-means", "metrics"],
    CoresetKernelKMeans: ["graph", "coreset", "kernel k-means", "labelling", "metrics"],
}


def test_stages_are_timed_and_told_on_stderr(
    kind: Any, blocks: tuple[sp.csr_array, np.ndarray], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corecut._progress._WORTH_A_LINE", 0.0)
    model = kind(4, random_state=0, verbose=1).fit(blocks[0])
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    told = [match[1] for line in lines if (match := re.fullmatch(r"corecut: ([a-z -]+) \d+\.\d\d s(?: \(.*\))?", line))]
    assert list(model.timings_) == STAGES[kind]
    if kind is CoresetSpectralClustering:
        assert told == ["graph", "components", "draws", "refinement", "metrics"]
        assert any(re.search(r"\(eigenvectors .*, rounding .*, repair ", line) for line in lines)
    else:
        assert told == STAGES[kind]
    assert all(seconds >= 0 for seconds in model.timings_.values())
    if kind is CoresetSpectralClustering:
        assert any(line.startswith("corecut: 240 nodes with") and "4 clusters: all nodes" in line for line in lines)
    kind(4, random_state=0).fit(blocks[0])
    assert capsys.readouterr().err == ""


# --- Ctrl-C --------------------------------------------------------------------------------------------------------------

START = """
import signal
import numpy as np
from corecut import CoresetSpectralClustering, Graph, KernelView, label_nodes, make_sbm, refine_partition, sample_seeds

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

def ready():
    print("ready", flush=True)
"""

LONG = {
    # About 20 million entries; each line works for far longer than the test waits.
    "naive sampler": """
graph, _ = make_sbm(10_000, 10, 0.02, 0.0, random_state=0)
view = KernelView.from_graph(graph)
ready()
sample_seeds(view, 80_000, method="naive", random_state=0)
""",
    "refinement": """
graph, truth = make_sbm(10_000, 10, 0.018, 0.0002, random_state=0)
graph = Graph.from_matrix(graph)
labels = np.random.default_rng(0).integers(10, size=truth.size)
ready()
while True:
    refine_partition(graph, labels)
""",
    "generator": """
ready()
while True:
    make_sbm(20_000, 10, 0.02, 0.001, random_state=0)
""",
    "fit": """
graph, _ = make_sbm(10_000, 10, 0.018, 0.0002, random_state=0)
ready()
while True:
    CoresetSpectralClustering(10, random_state=0).fit(graph)
""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("what", LONG)
def test_ctrl_c_ends_long_work(what: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", START + LONG[what]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.7)
        assert process.poll() is None, "it was over before it could be interrupted"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)  # all of it would go on for longer, or for ever
    finally:
        process.kill()
        process.wait()
    assert errors.strip().endswith("KeyboardInterrupt"), errors
