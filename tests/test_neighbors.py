"""Graphs of points are scikit-learn's own affinity matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from corecut import CoresetSpectralClustering, neighbors
from corecut.graph import Graph
from corecut.neighbors import auto_neighbors, callable_graph, find_neighbors, nearest, neighbor_graph, rbf_graph


def points(n: int = 120, features: int = 3, *, dtype: type = np.float64) -> np.ndarray:
    return make_blobs(n, features, centers=3, random_state=0)[0].astype(dtype)


def peer(X: object, **parameters: object) -> np.ndarray:
    """Return the affinity matrix that scikit-learn's SpectralClustering builds."""
    found = SpectralClustering(2, random_state=0, assign_labels="cluster_qr", **parameters).fit(X).affinity_matrix_
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def assert_equal_graph(graph: Graph, affinities: np.ndarray, **tolerance: float) -> None:
    assert Graph.from_matrix(graph.adjacency, check="full").n_entries == graph.n_entries
    np.testing.assert_allclose(graph.adjacency.toarray(), affinities, **tolerance)
    np.testing.assert_allclose(graph.degrees, affinities.sum(axis=1), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("features", "n_neighbors"), [(2, 5), (40, 12)])
def test_neighbours_are_scikit_learns(dtype: type, sparse: bool, features: int, n_neighbors: int) -> None:
    X = points(features=features, dtype=dtype)
    X = sp.csr_array(np.maximum(X, 0)) if sparse else X
    affinities = peer(X, affinity="nearest_neighbors", n_neighbors=n_neighbors)
    assert_equal_graph(neighbor_graph(X, n_neighbors=n_neighbors), affinities)
    assert set(np.unique(affinities)) == {0.0, 0.5, 1.0}


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_precomputed_distances() -> None:
    X = points(60)
    affinities = peer(X, affinity="nearest_neighbors", n_neighbors=7)
    assert_equal_graph(neighbor_graph(pairwise_distances(X), n_neighbors=7, metric="precomputed"), affinities)
    nearest = NearestNeighbors(n_neighbors=20).fit(X).kneighbors_graph(X, mode="distance")
    expected = peer(nearest, affinity="precomputed_nearest_neighbors", n_neighbors=7)
    assert_equal_graph(neighbor_graph(nearest, n_neighbors=7, metric="precomputed"), expected)


def test_another_metric() -> None:
    X = points(50)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosine, euclidean = neighbor_graph(X, n_neighbors=5, metric="cosine"), neighbor_graph(unit, n_neighbors=5)
    np.testing.assert_array_equal(cosine.adjacency.toarray(), euclidean.adjacency.toarray())


@pytest.mark.parametrize(("n", "expected"), [(1, 1), (2, 2), (3, 2), (8, 7), (12, 10), (148, 10), (149, 11), (10**6, 28)])
def test_auto_is_twice_the_logarithm(n: int, expected: int) -> None:
    assert auto_neighbors(n) == expected


@pytest.mark.parametrize("n", [2, 8, 300])
def test_auto_counts_the_point_itself(n: int) -> None:
    graph = neighbor_graph(points(max(n, 3))[:n])
    assert np.all(graph.diagonal == 1)
    expected = neighbor_graph(points(max(n, 3))[:n], n_neighbors=auto_neighbors(n))
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected.adjacency.toarray())


def test_one_neighbour_is_none() -> None:
    with pytest.raises(ValueError, match=r"n_neighbors=1 joins no two points.* ask for 2 or more"):
        neighbor_graph(points(20), n_neighbors=1)
    assert neighbor_graph(points(20), n_neighbors=2).n_entries > 20


def test_nearest_points_of_new_points() -> None:
    X, new = points(200), points(260)[200:]
    indices, distances = nearest(X, new, 4, n_jobs=2)
    full = pairwise_distances(new, X)
    np.testing.assert_array_equal(indices, np.argsort(full, axis=1)[:, :4])
    np.testing.assert_allclose(distances, np.sort(full, axis=1)[:, :4], atol=1e-6)
    indices, distances = nearest(X, new, 4, metric="cosine")
    np.testing.assert_allclose(distances, np.sort(pairwise_distances(new, X, metric="cosine"), axis=1)[:, :4], atol=1e-6)


def test_nearest_refuses_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="the queries have 2 features, and the points 3"):
        nearest(points(20), points(5, 2), 3)
    with pytest.raises(ValueError, match="n_neighbors=21 is more than the 20 points"):
        nearest(points(20), points(5), 21)


def test_threads_do_not_change_the_graph() -> None:
    X = points(2_000, 20)
    one, two = (neighbor_graph(X, n_jobs=j).adjacency for j in (1, 2))
    assert (one != two).nnz == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_rbf_is_scikit_learns(dtype: type, sparse: bool) -> None:
    X = points(dtype=dtype) / 4
    X = sp.csr_array(X) if sparse else X
    assert_equal_graph(rbf_graph(X, gamma=0.7), peer(X, affinity="rbf", gamma=0.7), rtol=1e-6)


def test_rbf_weights_that_underflow_are_missing_edges() -> None:
    graph = rbf_graph([[0.0], [1.0], [1000.0]], gamma=1.0)
    assert graph.n_entries == 5


@pytest.mark.parametrize("sparse", [False, True])
def test_callable_is_scikit_learns(sparse: bool) -> None:
    def affinity(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.exp(-abs(x - y).sum()))

    X = points(30) / 4
    X = sp.csr_array(X) if sparse else X
    assert_equal_graph(callable_graph(X, affinity), peer(X, affinity=affinity), rtol=1e-12)


def test_points_are_not_changed() -> None:
    X = points()
    before = X.copy()
    neighbor_graph(X)
    rbf_graph(X)
    np.testing.assert_array_equal(X, before)


def test_approximate_neighbours_are_nearly_all(monkeypatch: pytest.MonkeyPatch) -> None:
    X = make_blobs(4_000, 12, centers=40, random_state=0)[0]
    found = find_neighbors(X, n_neighbors=10, neighbors="approximate")
    exact = find_neighbors(X, n_neighbors=10, neighbors="exact")
    assert (found.method, exact.method, exact.recall) == ("approximate", "trees", 1.0)
    share = np.mean([np.isin(one, two).mean() for one, two in zip(found.indices[:, 1:], exact.indices[:, 1:], strict=True)])
    assert share > 0.98
    assert found.recall == pytest.approx(share, abs=0.02)
    assert find_neighbors(X, n_neighbors=10).method == "trees"
    monkeypatch.setattr(neighbors, "EXACT_POINTS", 3_999)
    automatic = find_neighbors(X, n_neighbors=10)
    assert automatic.method == "approximate"
    np.testing.assert_array_equal(automatic.indices, found.indices)
    assert find_neighbors(X[:, :8], n_neighbors=10).method == "trees"
    monkeypatch.setattr(neighbors, "_POOR_RECALL", 2.0)
    with pytest.warns(UserWarning, match=r'of the neighbours of a sample of points were found; neighbors="exact" finds all'):
        find_neighbors(X, n_neighbors=10)


def test_approximate_neighbours_are_for_dense_points() -> None:
    sparse = sp.random_array((3000, 3000), density=0.01, rng=np.random.default_rng(0), format="csr")
    for X, metric in ((sparse, "euclidean"), (points(), "cosine"), (np.zeros((5, 5)), "precomputed")):
        with pytest.raises(
            ValueError, match=r'neighbors="approximate" is for dense points and Euclidean distances: use "exact"'
        ):
            neighbor_graph(X, metric=metric, neighbors="approximate")
    with pytest.raises(ValueError, match="neighbors must be one of 'auto', 'exact', 'approximate'"):
        neighbor_graph(points(), neighbors="most")


def test_an_estimator_reports_how_neighbours_were_found(capsys: pytest.CaptureFixture[str]) -> None:
    X = make_blobs(3_000, 12, centers=6, center_box=(-2, 2), random_state=0)[0]
    model = CoresetSpectralClustering(6, neighbors="approximate", random_state=0, verbose=1).fit(X)
    assert model.neighbors_ == "approximate"
    assert 0.97 < model.neighbor_recall_ <= 1.0
    assert f"{model.neighbor_recall_:.1%} of the neighbours were found" in capsys.readouterr().err
    exact = CoresetSpectralClustering(6, random_state=0).fit(X)
    assert (exact.neighbors_, exact.neighbor_recall_) == ("trees", 1.0)
    two = CoresetSpectralClustering(6, neighbors="approximate", random_state=0, n_jobs=1).fit(X)
    np.testing.assert_array_equal(model.labels_, two.labels_)


def test_bad_arguments_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    X = points(20)
    with pytest.raises(ValueError, match="n_neighbors=21 is more than the 20 points"):
        neighbor_graph(X, n_neighbors=21)
    with pytest.raises(ValueError, match="n_neighbors must be at least 1"):
        neighbor_graph(X, n_neighbors=0)
    with pytest.raises(TypeError, match="n_neighbors must be an integer"):
        neighbor_graph(X, n_neighbors="many")
    with pytest.raises(ValueError, match="metric"):
        neighbor_graph(X, metric="telepathy")
    with pytest.raises(ValueError, match="gamma must be a finite number above 0"):
        rbf_graph(X, gamma=0.0)
    with pytest.raises(TypeError, match="affinity must be a function of two points"):
        callable_graph(X, "rbf")
    with pytest.raises(ValueError, match="negative"):
        callable_graph(X, lambda x, y: -1.0)
    for bad in (np.full((3, 2), np.nan), np.zeros(3), np.zeros((0, 2)), np.zeros((3, 2), dtype=complex)):
        with pytest.raises(ValueError, match=r"NaN|2D array|minimum of 1|Complex"):
            neighbor_graph(bad)
    monkeypatch.setattr(neighbors, "_DENSE_LIMIT", 10)
    with pytest.raises(ValueError, match=r'at most 10 points; use "nearest_neighbors"'):
        rbf_graph(X)
    with pytest.raises(ValueError, match="affinity='callable' needs all 20² pairs"):
        callable_graph(X, lambda x, y: 1.0)


# --- sparse points -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["offset", "ties", "huge", "tiny"])
def test_sparse_points_have_the_neighbours_of_dense_ones(kind: str, rng: np.random.Generator) -> None:
    X = {
        "offset": 1e9 + rng.normal(size=(200, 3)),
        "ties": rng.integers(2, size=(100, 3)).astype(float),
        "huge": 1e200 * rng.normal(size=(100, 3)),
        "tiny": 1e-200 * rng.normal(size=(100, 3)),
    }[kind]
    dense, sparse = (neighbor_graph(form, n_neighbors=5).adjacency.toarray() for form in (X, sp.csr_array(X)))
    np.testing.assert_array_equal(dense, sparse)
    queries = X[::7]
    for one, other in zip(nearest(X, queries, 4), nearest(sp.csr_array(X), sp.csr_array(queries), 4), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("exponent", [-700, 700])
def test_points_that_stay_sparse_are_searched_in_their_own_unit(exponent: int) -> None:
    X = sp.random_array((3000, 3000), density=0.003, rng=np.random.default_rng(0), format="csr")
    scaled = X.copy()
    scaled.data = np.ldexp(X.data, exponent)
    one, other = (neighbor_graph(some, n_neighbors=4).adjacency for some in (X, scaled))
    assert (one != other).nnz == 0
    (numbers, distances), (same, longer) = (nearest(some, some[:5], 3) for some in (X, scaled))
    np.testing.assert_array_equal(numbers, same)
    np.testing.assert_array_equal(np.ldexp(distances, exponent), longer)


CORRUPT = {
    "column too large": ("csr", "indices", 7, 2**31 - 1, "index 2147483647 is out of range for 40 columns"),
    "column negative": ("csr", "indices", 7, -(10**6), "index -1000000 is out of range for 40 columns"),
    "indptr jumps": ("csr", "indptr", 50, 2**31 - 1, "indptr must rise in 300 steps"),
    "indptr ends late": ("csr", "indptr", -1, 10**6, "indptr must rise in 300 steps"),
    "CSC row too large": ("csc", "indices", 7, 300, "index 300 is out of range for 300 rows"),
    "CSC indptr falls": ("csc", "indptr", 7, 0, "indptr must rise in 40 steps"),
    "COO row too large": ("coo", "row", 7, 10**8, "index 100000000 is out of range for 300 rows"),
    "COO column negative": ("coo", "col", 7, -1, "index -1 is out of range for 40 columns"),
    "LIL column too large": ("lil", "rows", 7, 10**8, "index 100000000 is out of range for 40 columns"),
    "BSR column too large": ("bsr", "indices", 7, 10**8, "index 100000000 is out of range for 40 blocks"),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_corrupt_sparse_points_are_refused_before_anything_reads_them(case: str) -> None:
    form, name, place, value, words = CORRUPT[case]
    good = sp.random(300, 40, 0.2, format="csr", random_state=0)
    X = good.asformat(form).copy() if form != "bsr" else sp.bsr_array(good, blocksize=(1, 1))
    if form == "lil":
        X.rows[place][0] = value
    else:
        getattr(X, name)[place] = value
    model = CoresetSpectralClustering(3, affinity="nearest_neighbors", random_state=0)
    fitted = CoresetSpectralClustering(3, affinity="nearest_neighbors", random_state=0).fit(good)
    for call in (
        lambda: neighbor_graph(X, n_neighbors=4),
        lambda: rbf_graph(X),
        lambda: nearest(good, X, 4),
        lambda: model.fit(X),
        lambda: fitted.predict(X),
    ):
        with pytest.raises(ValueError, match=f"the matrix is corrupt: {words}.*; build it anew") as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [300, 2**40, -1])
def test_corrupt_sparse_distances_are_refused(value: int) -> None:
    X = sp.csr_array(pairwise_distances(points(300)))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    X.indices[7] = value
    model = CoresetSpectralClustering(3, affinity="precomputed_nearest_neighbors", random_state=0)
    for call in (lambda: neighbor_graph(X, n_neighbors=4, metric="precomputed"), lambda: model.fit(X)):
        with pytest.raises(ValueError, match=f"index {value} is out of range for 300 columns; build it anew"):
            call()
    X.indptr = X.indptr.astype(float)
    with pytest.raises(TypeError, match="its indptr are float64, not integers; build it anew"):
        neighbor_graph(X, n_neighbors=4, metric="precomputed")


def test_spare_room_behind_the_last_sparse_point_is_no_fault() -> None:
    good = sp.csr_array(points(60))
    roomy = sp.csr_array(points(60))
    roomy.indices, roomy.data = np.append(roomy.indices, [77]).astype(np.int32), np.append(roomy.data, 1.0)
    one, other = (neighbor_graph(X, n_neighbors=4).adjacency for X in (good, roomy))
    assert (one != other).nnz == 0


@pytest.mark.parametrize("far", [1e120, 1e170, 1e240])
def test_one_point_far_away_does_not_blur_the_others(far: float, rng: np.random.Generator) -> None:
    X = rng.normal(size=(150, 5))
    X[0] = far
    numbers = nearest(X, X[1:], 4)[0]
    np.testing.assert_array_equal(numbers, nearest(X[1:], X[1:], 4)[0] + 1)
