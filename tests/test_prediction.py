"""Prediction: new nodes and points join where the objective rises least, and what was fitted keeps its label."""

from __future__ import annotations

import pickle
from typing import Any

import anndata
import checks
import networkx as nx
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_info, threadpool_limits

from corecut import (
    CoresetKernelKMeans,
    CoresetSpectralClustering,
    FastSpectralClustering,
    Graph,
    GraphStore,
    KernelKMeans,
    make_degree_corrected_sbm,
    prediction,
    refine_partition,
)
from corecut._typing import FloatArray
from corecut.graph import with_names
from corecut.objective import Objective, typical_volume
from corecut.prediction import FittedClusters, FittedInput, point_fingerprints

ESTIMATORS: list[Any] = [CoresetSpectralClustering, FastSpectralClustering, KernelKMeans, CoresetKernelKMeans]
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@pytest.fixture(scope="module")
def hidden() -> tuple[sp.csr_array, sp.csr_array, np.ndarray]:
    """Return a planted graph without a tenth of its nodes, the rows of these, and the nodes that are left."""
    graph, _ = make_degree_corrected_sbm(3000, 6, mean_degree=20, mixing=0.2, random_state=3)
    out = np.random.default_rng(0).random(3000) < 0.1
    known = np.flatnonzero(~out)
    rows = graph[np.flatnonzero(out)][:, known]
    return graph[known][:, known], rows, known


@pytest.fixture(scope="module")
def points() -> tuple[np.ndarray, np.ndarray]:
    """Return points in four clusters that touch, and their clusters."""
    X, truth = make_blobs(600, centers=4.0 * np.eye(5)[:4], cluster_std=1.3, random_state=1)
    return X, truth


def best_clusters(A: FloatArray, labels: np.ndarray, k: int, row: FloatArray, fee: float) -> set[int]:
    """Return the touched clusters (more than one where they are equal) that F of the grown graph is lowest for."""
    values = {}
    grown = np.block([[A, row[:, None]], [row[None], np.zeros((1, 1))]])
    for j in {int(labels[y]) for y in np.flatnonzero(row)}:
        values[j] = float(twins.exact_objective(grown, np.append(labels, j), k, fee))
    return {j for j in values if values[j] <= min(values.values()) + 1e-9}


# --- the rule ------------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), balance=st.sampled_from([0.0, 0.05, 0.5]), loops=st.sampled_from([0.0, 0.5]))
def test_a_new_node_joins_where_the_objective_rises_least(seed: int, balance: float, loops: float) -> None:
    rng = np.random.default_rng(seed)
    A = problems.random_adjacency(rng, 14, loops=loops)
    labels = rng.integers(3, size=14).astype(np.int32)
    labels[:3] = [0, 1, 2]
    graph = Graph.from_matrix(sp.csr_array(A))
    fee = Objective.of(typical_volume(graph.degrees, 3), 3, balance=balance).fee
    association = np.array([A[np.ix_(labels == j, labels == j)].sum() for j in range(3)])
    volume = np.array([A[labels == j].sum() for j in range(3)])
    clusters = FittedClusters(labels, association, volume, fee)
    source = FittedInput("precomputed", 14, fingerprints=np.zeros(14, np.uint64))
    rows = (rng.random((5, 14)) < 0.4) * rng.uniform(0.1, 2.0, (5, 14))
    found, confidence, alone = prediction.predict_rows(clusters, source, sp.csr_array(rows))
    assert alone == np.count_nonzero(~rows.any(axis=1))
    for row, label, margin in zip(rows, found, confidence, strict=True):
        if not row.any():
            assert (label, margin) == (volume.argmax(), 0.0)
            continue
        assert label in best_clusters(A, labels, 3, row, fee)
        weights = np.bincount(labels, row, minlength=3)
        others = np.delete(weights, label).max()
        assert margin == pytest.approx(max(0.0, weights[label] - others) / row.sum(), abs=1e-12)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_estimators_predict_by_their_own_objective(kind: Any, hidden: Any) -> None:
    graph, rows, _ = hidden
    model = kind(6, random_state=0).fit(graph)
    balance = getattr(model, "balance_", 0.0)
    degrees = graph.sum(axis=1)
    fee = Objective.of(typical_volume(degrees, 6), 6, balance=balance).fee
    weights = rows @ twins.membership(model.labels_, 6)
    joined = np.empty((rows.shape[0], 6))
    association = np.array([graph[model.labels_ == j][:, model.labels_ == j].sum() for j in range(6)])
    volume = np.bincount(model.labels_, degrees, minlength=6)
    for j in range(6):
        grown = volume[j] + weights[:, j]
        after = Objective(fee).kept(association[j] + 2 * weights[:, j], grown + rows.sum(axis=1))
        joined[:, j] = after - Objective(fee).kept(np.full(grown.size, association[j]), grown)
    joined[weights == 0] = -np.inf
    touched = np.isfinite(joined).any(axis=1)
    np.testing.assert_array_equal(model.predict(rows[touched]), joined[touched].argmax(axis=1))


def test_a_fee_sends_a_node_to_the_smaller_cluster() -> None:
    source = FittedInput("precomputed", 2, fingerprints=np.zeros(2, np.uint64))
    labels, association, volume = np.array([0, 1], np.int32), np.array([90.0, 9.0]), np.array([100.0, 10.0])
    found = [
        prediction.predict_rows(FittedClusters(labels, association, volume, fee), source, np.array([[1.2, 0.85]]))[0][0]
        for fee in (0.0, 5.0)
    ]
    assert found == [0, 1]


# --- what was fitted -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("settings", [{}, {"affinity": "rbf", "gamma": 0.05}])
def test_fitted_points_keep_their_labels(kind: Any, settings: dict[str, Any], points: Any) -> None:
    X, _ = points
    model = kind(4, random_state=0, **settings).fit(X)
    labels = model.labels_.copy()
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_array_equal(model.predict(X[::7]), labels[::7])
    np.testing.assert_array_equal(model.predict(sp.csr_array(X)), labels)
    assert (model.predict(X + 1e-9) == labels).mean() > 0.95


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("settings", [{}, {"coreset_size": 2300, "aggregate": False}, {"refine": False}])
def test_fitted_nodes_keep_their_labels(kind: Any, settings: dict[str, Any], hidden: Any) -> None:
    graph, _, _ = hidden
    known = kind().get_params()
    model = kind(6, random_state=0, **{name: value for name, value in settings.items() if name in known}).fit(graph)
    np.testing.assert_array_equal(model.predict(graph), model.labels_)
    np.testing.assert_array_equal(model.predict(graph[100:140]), model.labels_[100:140])
    np.testing.assert_array_equal(model.predict(Graph.from_matrix(graph)), model.labels_)


def test_a_partition_that_no_move_improves_is_found_again_by_the_rule_alone() -> None:
    """Taken out of its cluster and put back by the rule for new nodes, a node of a local minimum returns."""
    graph, _ = make_degree_corrected_sbm(1500, 5, mean_degree=16, mixing=0.2, random_state=0)
    model = CoresetSpectralClustering(5, random_state=0).fit(graph)
    refined = refine_partition(graph, model.labels_, balance=model.balance_)
    assert refined.converged
    A, labels = graph.toarray(), refined.labels
    fee = Objective.of(typical_volume(A.sum(axis=1), 5), 5, balance=model.balance_).fee
    members = [labels == j for j in range(5)]
    source = FittedInput("precomputed", 1500, fingerprints=np.zeros(1500, np.uint64))
    again = []
    for x in range(0, 1500, 5):
        own, row = labels[x], A[x]
        association = np.array([A[np.ix_(inside, inside)].sum() for inside in members])
        volume = np.array([A[inside].sum() for inside in members])
        association[own] -= 2 * row[labels == own].sum() - row[x]
        volume -= np.bincount(labels, row, minlength=5)
        volume[own] -= row.sum()
        without = FittedClusters(labels, association, volume, fee)
        again.append(prediction.predict_rows(without, source, sp.csr_array(row[None]))[0][0] == own)
    assert all(again)


def test_unsorted_and_repeated_entries_are_the_same_row(hidden: Any) -> None:
    graph, rows, _ = hidden
    model = CoresetSpectralClustering(6, random_state=0).fit(graph)
    some = sp.coo_array(graph[:50])
    twice = (np.r_[some.coords[0], some.coords[0]], np.r_[some.coords[1], some.coords[1]])
    halves = sp.coo_array((np.r_[some.data, some.data] / 2, twice), shape=some.shape)
    np.testing.assert_array_equal(model.predict(halves), model.labels_[:50])
    backwards = sp.csr_array(rows)
    for x in range(rows.shape[0]):
        part = slice(backwards.indptr[x], backwards.indptr[x + 1])
        backwards.indices[part] = backwards.indices[part][::-1].copy()
        backwards.data[part] = backwards.data[part][::-1].copy()
    before = backwards.indices.copy()
    np.testing.assert_array_equal(model.predict(backwards), model.predict(rows))
    np.testing.assert_array_equal(backwards.indices, before)


def test_rows_of_a_directed_graph_are_known_again(hidden: Any) -> None:
    graph = sp.csr_array(hidden[0] + sp.triu(hidden[0], 1))
    model = CoresetSpectralClustering(6, symmetrize="mean", random_state=0).fit(graph)
    np.testing.assert_array_equal(model.predict(graph), model.labels_)


def test_fingerprints_tell_points_apart_and_forms_not(rng: np.random.Generator) -> None:
    X = rng.integers(0, 4, (3000, 6)).astype(np.float64)
    X[X == 0] = -0.0
    numbers = point_fingerprints(X)
    assert np.unique(numbers).size == np.unique(X + 0.0, axis=0).shape[0]
    np.testing.assert_array_equal(numbers, point_fingerprints(X.astype(np.float32)))
    np.testing.assert_array_equal(numbers, point_fingerprints(sp.csr_array(X)))


def test_equal_points_get_the_label_of_the_first(rng: np.random.Generator) -> None:
    X = np.repeat(rng.normal(size=(40, 2)) + np.repeat([[0, 0], [9, 9]], 20, axis=0), 15, axis=0)
    with pytest.warns(UserWarning, match="not fully connected"):
        model = CoresetSpectralClustering(2, n_neighbors=5, random_state=0).fit(X)
    first = model.labels_[::15]
    np.testing.assert_array_equal(model.predict(X), np.repeat(first, 15))


# --- new data ------------------------------------------------------------------------------------------------------------


def test_hidden_nodes_of_a_planted_graph_are_labelled_as_by_a_fit_of_all() -> None:
    graph, _ = make_degree_corrected_sbm(8000, 10, mean_degree=16, mixing=0.2, random_state=0)
    whole = CoresetSpectralClustering(10, random_state=0).fit(graph)
    out = np.random.default_rng(1).random(8000) < 0.1
    known, new = np.flatnonzero(~out), np.flatnonzero(out)
    model = CoresetSpectralClustering(10, random_state=0).fit(graph[known][:, known])
    rows = graph[new][:, known]
    touching = rows.sum(axis=1) > 0
    found = model.predict(rows[touching])
    overlap = np.zeros((10, 10))
    np.add.at(overlap, (model.labels_, whole.labels_[known]), 1)
    assert np.mean(overlap.argmax(axis=1)[found] == whole.labels_[new][touching]) >= 0.95


@pytest.mark.parametrize("affinity", ["nearest_neighbors", "rbf", "function", "precomputed_nearest_neighbors"])
def test_new_points_are_labelled_as_well_as_fitted_ones(affinity: str, points: Any) -> None:
    X, truth = points
    train, rest = slice(0, 400), slice(400, 600)
    settings: dict[str, Any] = {"affinity": affinity, "random_state": 0}
    fitted, new = X[train], X[rest]
    if affinity == "rbf":
        settings["gamma"] = 0.05
    elif affinity == "function":
        settings["affinity"] = lambda x, y: float(np.exp(-0.05 * ((x - y) ** 2).sum()))
        fitted, new = fitted[::4], new[::4]
        truth = np.r_[truth[train][::4], truth[rest][::4]]
        train, rest = slice(0, 100), slice(100, 150)
    elif affinity == "precomputed_nearest_neighbors":
        settings["n_neighbors"] = 10
        search = NearestNeighbors(n_neighbors=20).fit(fitted)
        fitted, new = (search.kneighbors_graph(part, mode="distance") for part in (fitted, new))
    model = CoresetSpectralClustering(4, **settings).fit(fitted)
    found, confidence = model.predict(new, return_confidence=True)
    assert found.dtype == np.int32
    assert adjusted_rand_score(truth[rest], found) > adjusted_rand_score(truth[train], model.labels_) - 0.06
    assert confidence.min() >= 0
    assert confidence.max() <= 1
    wrong = np.array([np.bincount(truth[train][model.labels_ == j]).argmax() for j in range(4)])[found] != truth[rest]
    assert not wrong.any() or confidence[wrong].mean() < confidence[~wrong].mean()
    if affinity == "precomputed_nearest_neighbors":
        np.testing.assert_array_equal(model.predict(fitted), model.labels_)
        far = new.toarray()
        far[far == 0] = 1e6
        np.testing.assert_array_equal(model.predict(far), found)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_of_scipy_gives_the_same(form: str, hidden: Any) -> None:
    graph, rows, _ = hidden
    model = CoresetSpectralClustering(6, random_state=0).fit(graph)
    some = rows[:3, :] if form == "dia" else rows[:60]
    expected = model.predict(some.toarray())
    for values in (some, some.astype(np.float32), some.astype(np.int64), some.astype(bool), sp.csr_matrix(some)):
        np.testing.assert_array_equal(model.predict(values.asformat(form)), expected)
    wide = sp.csr_array((some.data, some.indices.astype(np.int64), some.indptr.astype(np.int64)), shape=some.shape)
    np.testing.assert_array_equal(model.predict(wide), expected)


def test_a_stored_graph_is_as_good(hidden: Any, tmp_path: Any) -> None:
    graph, rows, _ = hidden
    store = GraphStore.write(Graph.from_matrix(graph), tmp_path / "g.store")
    model, mapped = (CoresetSpectralClustering(6, random_state=0).fit(one) for one in (graph, store.graph))
    np.testing.assert_array_equal(mapped.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(mapped.predict(store.graph), model.labels_)


def test_blocks_and_threads_do_not_matter(hidden: Any, points: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, rows, _ = hidden
    X, _ = points
    cases = [
        (CoresetSpectralClustering(6, random_state=0).fit(graph), rows.toarray()),
        (CoresetSpectralClustering(4, random_state=0).fit(X[:400]), X[300:]),
        (CoresetSpectralClustering(4, affinity="rbf", random_state=0, gamma=0.05).fit(X[:400]), X[300:]),
    ]
    whole = [model.predict(new, return_confidence=True) for model, new in cases]
    monkeypatch.setattr(prediction, "_BLOCK", 7)
    monkeypatch.setattr(prediction, "_BLOCK_ENTRIES", 5000)
    for (model, new), (labels, confidence) in zip(cases, whole, strict=True):
        for jobs in (1, 3):
            again = model.set_params(n_jobs=jobs).predict(new, return_confidence=True)
            np.testing.assert_array_equal(again[0], labels)
            np.testing.assert_allclose(again[1], confidence, atol=1e-12)
        one = np.concatenate([model.predict(new[i : i + 1]) for i in range(20)])
        np.testing.assert_array_equal(one, labels[:20])


def test_what_comes_after_a_fit_does_not_matter(points: Any, hidden: Any) -> None:
    X = points[0][:400].copy()
    model = CoresetSpectralClustering(4, random_state=0).fit(X)
    new, labels = points[0][400:], model.labels_.copy()
    expected = model.predict(new)
    other = pickle.loads(pickle.dumps(model))
    model.set_params(n_clusters=9, affinity="precomputed", n_neighbors=3)
    model.labels_[:] = 0
    fitted = X.copy()
    X[:] = 0
    np.testing.assert_array_equal(model.predict(new), expected)
    np.testing.assert_array_equal(model.predict(fitted), labels)
    np.testing.assert_array_equal(other.predict(new), expected)
    assert other.affinity_ == "nearest_neighbors"


# --- answers and refusals ------------------------------------------------------------------------------------------------


def test_a_row_without_neighbours_goes_to_the_largest_cluster_and_is_told_of(hidden: Any) -> None:
    graph, rows, _ = hidden
    model = CoresetSpectralClustering(6, random_state=0).fit(graph)
    volume = np.bincount(model.labels_, graph.sum(axis=1))
    empty = sp.vstack([sp.csr_array((2, rows.shape[1])), rows[:3]])
    with pytest.warns(UserWarning, match=r"2 of 5 rows have no weight to any fitted node: .* with confidence 0"):
        found, confidence = model.predict(empty, return_confidence=True)
    assert found[:2].tolist() == [volume.argmax()] * 2
    assert confidence[:2].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(found[2:], model.predict(rows[:3]))


def test_isolated_nodes_get_the_label_that_they_have() -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(0), [60, 50, 40])
    padded = sp.block_diag([graph, sp.csr_array((3, 3))], format="csr")
    model = CoresetSpectralClustering(3, random_state=0).fit(padded)
    with pytest.warns(UserWarning, match="3 of 153 rows"):
        np.testing.assert_array_equal(model.predict(padded), model.labels_)


def test_no_rows_have_no_labels(hidden: Any) -> None:
    model = CoresetSpectralClustering(6, random_state=0).fit(hidden[0])
    labels, confidence = model.predict(hidden[1][:0], return_confidence=True)
    assert labels.shape == confidence.shape == (0,)


def test_new_data_that_do_not_fit_are_refused(hidden: Any, points: Any) -> None:
    graph, rows, _ = hidden
    with pytest.raises(NotFittedError):
        CoresetSpectralClustering(6).predict(rows)
    model = CoresetSpectralClustering(6, random_state=0).fit(graph)
    n = graph.shape[0]
    bad = rows[:2].toarray()
    for value, words in ((np.nan, "NaN weight"), (np.inf, "infinite weight"), (-1.0, "negative weight")):
        bad[1, 5] = value
        for form in (bad, sp.csr_array(bad), sp.coo_array(bad)):
            with pytest.raises(ValueError, match=rf"{words}: entry \(1, 5\)"):
                model.predict(form)
    with pytest.raises(ValueError, match=f"X has 7 features, but CoresetSpectralClustering is expecting {n} features as input"):
        model.predict(np.ones((3, 7)))
    with pytest.raises(ValueError, match="Reshape your data"):
        model.predict(np.ones(n))
    with pytest.raises(TypeError, match="similarities must be real numbers, got dtype complex128"):
        model.predict(np.ones((1, n), complex))
    broken = rows[:5].copy()
    broken.indices[2] = n
    with pytest.raises(ValueError, match=f"column index {n} of stored entry 2 is out of range for {n} nodes"):
        model.predict(broken)
    corrupt = sp.coo_array(rows[:5])
    corrupt.coords[1][3] = -4
    with pytest.raises(ValueError, match="index -4 is out of range"):
        model.predict(corrupt)
    of_points = CoresetSpectralClustering(4, random_state=0).fit(points[0])
    with pytest.raises(ValueError, match="X has 2 features, but CoresetSpectralClustering is expecting 5"):
        of_points.predict(points[0][:, :2])
    with pytest.raises(ValueError, match="X has NaN in row 0, column 0"):
        of_points.predict(np.full((2, 5), np.nan))
    with pytest.raises(TypeError, match="the name of a file"):
        model.predict("rows.npz")
    cells = anndata.AnnData(np.zeros((3, 2)))
    for other, kind in ((nx.path_graph(3), "a Graph of networkx"), (cells, "an AnnData of anndata"), ({"a": ["b"]}, "a dict")):
        with pytest.raises(TypeError, match=f"X is {kind}; predict takes a row of similarities .* or a corecut.Graph"):
            model.predict(other)
    with pytest.raises(TypeError, match="X is a NoneType; predict takes a row of similarities to the fitted nodes"):
        model.predict(None)
    with pytest.raises(ValueError, match=f"rows of X are not of one length: expected {n} similarities in each"):
        model.predict([[1.0] * n, [1.0]])
    with pytest.raises(TypeError, match="X is a Graph of corecut; predict takes points, as this model was fitted on points"):
        of_points.predict(Graph.from_matrix(graph))
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"the column 3 holds text \('x'\)"):
        of_points.predict(pd.DataFrame(points[0]).assign(**{"3": "x"}).drop(columns=3).rename(columns={"3": 3}))


def test_a_graph_of_other_nodes_is_refused(hidden: Any) -> None:
    """Its columns are not the fitted nodes, though there are as many."""
    plain = Graph.from_matrix(hidden[0])
    names = np.array([f"p{i}" for i in range(plain.n_nodes)], object)
    model = CoresetSpectralClustering(6, random_state=0).fit(with_names(plain, names))
    for same in (with_names(plain, names), plain):
        np.testing.assert_array_equal(model.predict(same), model.labels_)
    last = names.size - 1
    with pytest.raises(ValueError, match=f"not the fitted ones in their order: node 0 is 'p{last}', the fitted one is 'p0'"):
        model.predict(with_names(plain, names[::-1].copy()))


def test_entries_of_sparse_points_may_be_stored_in_parts(points: Any) -> None:
    X = sp.csr_array(np.where(np.abs(points[0]) < 1, 0, points[0]))
    parts = sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    before = parts.copy()
    model = CoresetSpectralClustering(4, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(parts), model.labels_)
    np.testing.assert_array_equal(CoresetSpectralClustering(4, random_state=0).fit(parts).labels_, model.labels_)
    checks.same_bits(parts, before)


def test_negative_distances_are_refused(points: Any) -> None:
    X = points[0]
    distances = NearestNeighbors(n_neighbors=30).fit(X).kneighbors_graph(mode="distance")
    model = CoresetSpectralClustering(4, affinity="precomputed_nearest_neighbors", n_neighbors=12, random_state=0)
    model.fit(distances)
    bad = distances[:3].copy()
    bad.data[65] = -0.5
    for form in (bad, bad.toarray()):
        with pytest.raises(ValueError, match=r"row 2 of X has a negative distance \(-0.5\)"):
            model.predict(form)


def test_kernels_do_not_depend_on_the_threads_of_blas(rng: np.random.Generator) -> None:
    """The last bits of a matrix product do: confidence differed between machines."""
    X, seen = rng.normal(size=(40, 3)), set()

    def alike(x: np.ndarray, y: np.ndarray) -> float:
        if not fitting:
            seen.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return float(np.exp(-((x - y) ** 2).sum()))

    fitting = True
    model = CoresetSpectralClustering(2, affinity=alike, random_state=0).fit(X)
    fitting = False
    with threadpool_limits(2, "blas"):
        model.predict(X[:2] + 0.1)
    assert seen == {1}


def test_sparse_points_may_have_billions_of_columns(points: Any) -> None:
    X = sp.csr_array(np.abs(points[0][:200]).round())
    wide = sp.csr_array((X.data, X.indices.astype(np.int64) * 10**9, X.indptr), shape=(200, 5 * 10**9))
    assert np.unique(point_fingerprints(wide)).size == np.unique(point_fingerprints(X)).size


def test_the_rows_are_not_changed(hidden: Any) -> None:
    graph, rows, _ = hidden
    model = CoresetSpectralClustering(6, random_state=0).fit(graph)
    before = rows.copy()
    model.predict(rows)
    checks.same_bits(rows, before)


def test_labels_of_a_large_block_are_the_same_for_any_number_of_threads() -> None:
    graph, _ = make_degree_corrected_sbm(20_000, 8, mean_degree=30, mixing=0.3, random_state=0)
    model = CoresetSpectralClustering(8, random_state=0).fit(graph)
    rows = sp.csr_array(graph * 1.5)  # other weights: new nodes
    found = [model.set_params(n_jobs=jobs).predict(rows, return_confidence=True) for jobs in (1, 4)]
    for one, other in zip(*found, strict=True):
        checks.same_bits(one, other)


def test_a_fit_that_fails_leaves_the_model_of_before(points: Any) -> None:
    X, _ = points
    model = CoresetSpectralClustering(4, random_state=0).fit(X)
    expected = model.predict(X + 0.01)
    with pytest.raises(ValueError, match="more than n_samples"):
        model.set_params(n_clusters=30).fit(X[:20] * 5)
    np.testing.assert_array_equal(model.predict(X + 0.01), expected)
