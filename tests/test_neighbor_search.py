"""The search for nearest points: whatever the way, the neighbours are those of comparing all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from corecut import _core, neighbor_search
from corecut.neighbor_search import nearest_points
from corecut.point_gaps import widest_gap


def twin(points: np.ndarray, queries: np.ndarray | None, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Compare all pairs in float64; of equal distances the lowest number first, and no point is its own neighbour."""
    asked = points if queries is None else queries
    squares = np.array([((points.astype(float) - x) ** 2).sum(axis=1) for x in asked.astype(float)])
    if queries is None:
        np.fill_diagonal(squares, np.inf)
    order = np.lexsort((np.broadcast_to(np.arange(len(points)), squares.shape), squares), axis=1)[:, :k]
    return order, np.sqrt(np.take_along_axis(squares, order, axis=1))


def gaussian(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


# Where float32 is short of digits or numbers: ties, copies, points far from the origin and from each other.
HARD = {
    "gaussian": gaussian(700, 70),
    "lattice": np.random.default_rng(0).integers(0, 4, (500, 5)).astype(float),
    "copies": np.repeat(gaussian(30, 6), 20, axis=0),
    "all equal": np.ones((150, 3)),
    "outlier": np.concatenate([gaussian(400, 20), np.full((1, 20), 1e12)]),
    "far from the origin": gaussian(400, 20) + 1e7,
    "two scales": np.concatenate([1e-6 * gaussian(200, 10), gaussian(200, 10, seed=1)]),
    "low rank": gaussian(500, 3) @ gaussian(3, 80, seed=1),
    "one feature": gaussian(300, 1),
}


@pytest.fixture(params=["products", "groups", "directions", "trees"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a search take one of its ways, whatever the size of the problem."""
    monkeypatch.setattr(neighbor_search, "_TREE_QUERIES", 1 if request.param == "trees" else 10**9)
    monkeypatch.setattr(neighbor_search, "_TREE_WIDTH", 100)
    monkeypatch.setattr(neighbor_search, "_GROUP", 32 if request.param == "groups" else 10**9)
    if request.param == "groups":
        monkeypatch.setattr(neighbor_search, "_FEW_FEATURES", 100)
    if request.param == "directions":
        monkeypatch.setattr(neighbor_search, "_PLANNED", 0.0)
        monkeypatch.setattr(neighbor_search, "_FEW_FEATURES", 3)
        monkeypatch.setattr(neighbor_search, "_WIDTHS", (2, 4, 8))
    return str(request.param)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", HARD)
def test_neighbours_are_those_of_comparing_all_pairs(way: str, name: str, dtype: type) -> None:
    points = HARD[name].astype(dtype)
    found = nearest_points(points, None, 7, threads=2)
    indices, distances = twin(points, None, 7)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)
    assert (found.method, found.recall) == ("trees" if way == "trees" else "exact", 1.0)


@pytest.mark.parametrize("name", HARD)
def test_neighbours_of_new_points(way: str, name: str) -> None:
    points, queries = HARD[name], HARD[name][::9] + (0.0 if name in ("copies", "lattice") else 0.01)
    found = nearest_points(points, queries, 5)
    indices, distances = twin(points, queries, 5)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scale_does_not_matter(way: str, scale: float) -> None:
    points = gaussian(200, 6)
    found, expected = (nearest_points(X, None, 4) for X in (scale * points, points))
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.distances, scale * expected.distances)


def test_queries_of_more_digits_than_the_points() -> None:
    points, queries = np.arange(12.0)[:, None] ** 2, gaussian(9, 1) / 3 + 20
    np.testing.assert_array_equal(nearest_points(points, queries, 3).indices, twin(points, queries, 3)[0])


@pytest.mark.parametrize("k", [1, 5, 59])
def test_few_points(way: str, k: int) -> None:
    points = gaussian(60, 5)
    np.testing.assert_array_equal(nearest_points(points, None, k).indices, twin(points, None, k)[0])


def test_lists_that_are_too_short_grow() -> None:
    # Crowds in one place: their bounds cannot be told apart, and every list overflows.
    points = np.concatenate([1e-9 * gaussian(300, 10) + 1.0, 1e3 * gaussian(300, 10, seed=1)])
    np.testing.assert_array_equal(nearest_points(points, None, 3).indices, twin(points, None, 3)[0])


@pytest.mark.parametrize("approximate", [False, True])
def test_threads_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch, approximate: bool) -> None:
    monkeypatch.setattr(neighbor_search, "_AMONG_CELLS", 256)
    points = make_blobs(2_500, 70, centers=20, random_state=0)[0]
    one, two = (nearest_points(points, None, 6, approximate=approximate, threads=threads) for threads in (1, 3))
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_array_equal(one.distances, two.distances)
    assert one.recall == two.recall


@pytest.mark.parametrize("planned", [0.0, 1e18])
def test_approximate_neighbours(monkeypatch: pytest.MonkeyPatch, planned: float) -> None:
    monkeypatch.setattr(neighbor_search, "_PLANNED", planned)
    points = make_blobs(4_000, 70, centers=30, random_state=0)[0].astype(np.float32)
    found = nearest_points(points, None, 8, approximate=True, threads=2)
    exact = nearest_points(points, None, 8, threads=2)
    recall = np.mean(found.distances <= exact.distances[:, -1:])
    assert found.method == "approximate"
    assert recall > 0.98
    assert found.recall == pytest.approx(recall, abs=0.02)
    # What was found is in order, is no point twice, and its distances are true.
    assert np.all(np.diff(found.distances, axis=1) >= 0)
    assert all(np.unique(row).size == 8 for row in found.indices)
    far = np.linalg.norm(points[found.indices].astype(float) - points[:, None].astype(float), axis=2)
    np.testing.assert_allclose(found.distances, far, rtol=1e-12)


def test_cells_that_spare_nothing_are_not_used() -> None:
    points = gaussian(1_500, 40)
    found = nearest_points(points, None, 5, approximate=True)
    assert (found.method, found.recall) == ("exact", 1.0)
    np.testing.assert_array_equal(found.indices, nearest_points(points, None, 5).indices)


HEAVY_TAILS = {
    "cauchy": np.random.default_rng(0).standard_cauchy((400, 10)),
    "pareto": np.random.default_rng(0).pareto(0.5, (1_000, 15)),
}


@pytest.mark.parametrize("name", HEAVY_TAILS)
def test_queries_whose_cells_hold_too_few_points_are_asked_exactly(name: str) -> None:
    points = HEAVY_TAILS[name]
    found, two = (nearest_points(points, None, 12, approximate=True, threads=threads) for threads in (1, 2))
    distances = twin(points, None, 12)[1]
    assert found.method == "approximate"
    assert found.indices.min() >= 0
    assert all(np.unique(row).size == 12 for row in found.indices)
    assert np.mean(found.distances <= distances[:, -1:] * (1 + 1e-12)) > 0.98
    np.testing.assert_array_equal(found.indices, two.indices)


def crowds(n: int, features: int, far: float) -> np.ndarray:
    return np.concatenate([gaussian(n, features), far + gaussian(n, features, seed=1), gaussian(40, features, seed=2) - far])


@pytest.mark.parametrize("trees_up_to", [0, 6_000])
@pytest.mark.parametrize("far", [1e4, 1e9])
@pytest.mark.parametrize("features", [12, 70])
def test_crowds_far_apart_are_searched_one_by_one(
    monkeypatch: pytest.MonkeyPatch, features: int, far: float, trees_up_to: int
) -> None:
    monkeypatch.setattr(neighbor_search, "_TREE_POINTS", trees_up_to)
    points = np.random.default_rng(3).permutation(crowds(1_500, features, far))
    shares: list[float] = []
    found = nearest_points(points, None, 9, approximate=True, threads=2, progress=shares.append)
    distances = twin(points, None, 9)[1]
    assert np.mean(found.distances <= distances[:, -1:] * (1 + 1e-12)) > 0.985
    assert found.recall > 0.985
    assert (found.method, found.recall == 1.0) in (("exact", True), ("approximate", False), ("approximate", True))
    assert shares == sorted(shares)


def test_where_no_gap_parts_what_float32_confuses_the_doubtful_are_asked_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbor_search, "_ACROSS", -1.0)  # a share that no cut keeps to
    points = make_blobs(3_000, 12, centers=30, center_box=(-1e4, 1e4), random_state=0)[0]
    found = nearest_points(points, None, 9, approximate=True, threads=2)
    assert np.mean(found.distances <= twin(points, None, 9)[1][:, -1:] * (1 + 1e-12)) > 0.985


def test_the_widest_gap_is_a_lower_bound_of_the_distance_across() -> None:
    points = np.random.default_rng(0).permutation(crowds(100, 5, 50.0))
    side, across = widest_gap(points, 20)
    assert 40 <= side.sum() <= 200
    far = np.linalg.norm(points[:, None] - points, axis=2)
    nearest_across = np.where(side[:, None] != side, far, np.inf).min(axis=1)
    assert np.all(across > 0)
    assert np.all(across <= nearest_across)
    for scale in (1e-90, 1e90):
        np.testing.assert_array_equal(widest_gap(scale * points, 20)[0], side)
    # No gap leaves so many on either side, and equal points have none.
    for X, least in ((points, 130), (np.ones((50, 3)), 5)):
        side, across = widest_gap(X, least)
        assert not side.any()
        assert not across.any()


@pytest.mark.parametrize("features", [20, 70])
def test_progress_is_told(monkeypatch: pytest.MonkeyPatch, features: int) -> None:
    monkeypatch.setattr(neighbor_search, "_IN_TREE", 256)
    shares: list[float] = []
    nearest_points(gaussian(1_200, features), None, 5, progress=shares.append)
    assert shares == sorted(shares)
    assert len(shares) > 1
    assert shares[-1] == 1.0


@pytest.mark.parametrize("features", [20, 70])
def test_an_interrupt_ends_the_search(features: int) -> None:
    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nearest_points(gaussian(1_200, features), None, 5, threads=2, progress=stop)


def test_trees_are_used_where_they_spare_queries_most_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbor_search, "_TREE_POINTS", 1_000)
    clusters, cloud = make_blobs(3_000, 30, centers=20, random_state=0)[0], gaussian(3_000, 30)
    assert nearest_points(clusters, None, 5).method == "trees"
    assert nearest_points(cloud, None, 5).method == "exact"
    # The same for new points, unless they are too few to build a tree for.
    assert nearest_points(clusters, clusters[:500] + 0.5, 5).method == "trees"
    assert nearest_points(cloud, cloud[:500] + 0.5, 5).method == "exact"
    assert nearest_points(clusters, clusters[:100] + 0.5, 5).method == "exact"
    assert nearest_points(clusters[:, :8].copy(), clusters[:100, :8] + 0.5, 5).method == "exact"
    # Few points are always searched by a tree.
    assert nearest_points(cloud[:900], None, 5).method == "trees"


def test_kernels_refuse_what_does_not_fit() -> None:
    lists = neighbor_search._Lists(4, 40)
    products, terms = np.zeros((4, 9), np.float32), np.zeros(9, np.float32)
    _core.offer_points(products, terms, 0, None, *lists.arrays)
    np.testing.assert_array_equal(lists.counts, 9)
    for changed, words in (
        ((products[:3], terms, 0, None), "a row for each query"),
        ((products, terms[:8], 0, None), "terms has length 8, expected 9"),
        ((products, terms, -1, None), "fewer than 2³¹ points"),
        ((products, terms, 0, np.array([0, 1, 2, 4], np.int32)), "names a query that has no shortlist"),
        ((products, terms, 0, np.zeros(3, np.int32)), "which has length 3"),
    ):
        with pytest.raises(ValueError, match=words):
            _core.offer_points(*changed, *lists.arrays)
    rows, panels, terms = np.zeros((4, 3), np.float32), np.zeros((2, 3, 32), np.float32), np.zeros((2, 32), np.float32)
    for first, wrong in ((0, (rows[:3], panels, terms)), (0, (rows[:, :2], panels, terms)), (0, (rows, panels, terms[:1]))):
        with pytest.raises(ValueError, match="the same numbers of coordinates and of points"):
            _core.offer_panels(*(np.ascontiguousarray(array) for array in wrong), first, *lists.arrays)
    with pytest.raises(ValueError, match="fewer than 2³¹ points"):
        _core.offer_panels(rows, panels, terms, 2**27, *lists.arrays)
    X = np.zeros((9, 2))

    def choose(points: np.ndarray, queries: np.ndarray) -> None:
        found, squares, certain = np.empty((4, 2), np.int32), np.empty((4, 2)), np.empty(4, np.uint8)
        _core.choose_nearest(points, queries, None, *lists.arrays, np.zeros(4), 1.0, None, found, squares, certain)

    choose(X, X[:4])
    with pytest.raises(ValueError, match="as many features as the points"):
        choose(X, np.zeros((4, 3)))
    with pytest.raises(ValueError, match="names a point that does not exist"):
        choose(X[:8], X[:4])
    lists.counts[:] = 81
    with pytest.raises(ValueError, match="counts must lie within the shortlists"):
        choose(X, X[:4])
