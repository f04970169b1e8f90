"""The tree of boxes: it passes nothing over that belongs to the nearest points, and looks at few others."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import make_blobs

from corecut import _core

WIDEST = 40


def twin(points: np.ndarray, queries: np.ndarray, k: int, *, own: bool) -> tuple[np.ndarray, np.ndarray]:
    """Compare all pairs, coordinate by coordinate; of equal distances the lowest number first."""
    squares = np.zeros((len(queries), len(points)))
    for c in range(points.shape[1]):
        squares += (queries[:, c, None].astype(float) - points[None, :, c].astype(float)) ** 2
    if own:
        np.fill_diagonal(squares, np.inf)
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(squares, order, axis=1)


def tree_of(points: np.ndarray, threads: int = 1) -> Any:
    return (_core.FloatBoxes if points.dtype == np.float32 else _core.DoubleBoxes)(points, threads)


def search(points: np.ndarray, queries: np.ndarray | None, k: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the neighbours, their squared distances, and how many panels were looked at."""
    tree = tree_of(points, threads)
    asked = points if queries is None else queries
    indices, squares = np.empty((len(asked), k), np.int32), np.empty((len(asked), k))
    looked = tree.search(asked, tree.order() if queries is None else None, indices, squares, threads)
    return indices, squares, looked


def counts(most: int) -> st.SearchStrategy[int]:
    """Draw numbers of neighbours: few, which are kept in order, and any number."""
    return st.one_of(st.integers(1, min(40, most)), st.integers(1, most))


def all_agree(points: np.ndarray, queries: np.ndarray | None, k: int) -> None:
    indices, squares, _ = search(points, queries, k)
    expected = twin(points, points if queries is None else queries, k, own=queries is None)
    np.testing.assert_array_equal(indices, expected[0])
    np.testing.assert_array_equal(squares, expected[1])


# A few values make crowds and ties; scales and places make what float32 cannot tell apart.
@st.composite
def rows(draw: st.DrawFn, width: int, fewest: int) -> np.ndarray:
    count = draw(st.integers(fewest, 1_200))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = draw(st.sampled_from(["lattice", "gaussian", "copies"]))
    if values == "lattice":
        found = generator.integers(0, draw(st.integers(1, 4)), (count, width)).astype(float)
    else:
        found = generator.normal(size=(count, width))
    if values == "copies":
        found = found[generator.integers(0, max(1, count // 20), count)]
    return found * draw(st.sampled_from([1e-40, 1e-3, 1.0, 1e30])) + draw(st.sampled_from([0.0, 1.0, 1e7]))


@given(st.data(), st.integers(1, WIDEST), st.sampled_from([np.float32, np.float64]))
def test_neighbours_are_those_of_comparing_all_pairs(data: st.DataObject, width: int, dtype: type) -> None:
    points = data.draw(rows(width, 2)).astype(dtype)
    all_agree(points, None, data.draw(counts(len(points) - 1)))


@given(st.data(), st.integers(1, WIDEST), st.sampled_from([np.float32, np.float64]))
def test_neighbours_of_new_points_however_far(data: st.DataObject, width: int, dtype: type) -> None:
    points, queries = data.draw(rows(width, 1)).astype(dtype), data.draw(rows(width, 1)).astype(dtype)
    all_agree(points, queries, data.draw(counts(len(points))))


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(2, 80), st.integers(1, 5)), elements=st.floats(-(2.0**60), 2.0**60, width=32))
)
def test_neighbours_of_points_at_odd_places(points: np.ndarray) -> None:
    all_agree(points, None, min(3, len(points) - 1))


def test_crowds_within_a_wide_space() -> None:
    generator = np.random.default_rng(0)
    crowd = 1.0 + 1e-12 * generator.normal(size=(400, 4))
    all_agree(np.concatenate([crowd, 1e9 * generator.normal(size=(400, 4))]), None, 6)


@pytest.mark.parametrize("points", [np.ones((4_096, 3)), np.repeat(np.arange(16.0), 256)[:, None]])
def test_equal_points_are_not_all_looked_at(points: np.ndarray) -> None:
    indices, squares, looked = search(points, None, 5)
    assert not squares.any()
    np.testing.assert_array_equal(indices[7], [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(indices[2], [0, 1, 3, 4, 5])
    assert looked < 4 * len(points)


def test_few_panels_are_looked_at_where_points_lie_in_clusters() -> None:
    points = make_blobs(8_192, 12, centers=64, random_state=0)[0]
    assert search(points, None, 8)[2] < 0.05 * len(points) * len(points) / 32


@pytest.mark.parametrize("n", [1, 31, 33, 511, 513, 8_193])
def test_the_order_holds_every_point_once(n: int) -> None:
    points = np.random.default_rng(0).normal(size=(n, 3))
    np.testing.assert_array_equal(np.sort(tree_of(points).order()), np.arange(n))


def test_threads_do_not_change_the_result() -> None:
    points = make_blobs(3_000, 7, centers=9, random_state=0)[0]
    for one, three in zip(search(points, None, 9), search(points, None, 9, threads=3), strict=True):
        np.testing.assert_array_equal(one, three)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that send signals")
def test_interrupts_stop_a_search() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    points = np.random.default_rng(0).normal(size=(100_000, 30)).astype(np.float32)
    tree = tree_of(points, 2)
    indices, squares = np.empty((len(points), 5), np.int32), np.empty((len(points), 5))
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            tree.search(points, tree.order(), indices, squares, 2)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_the_kernel_refuses_what_does_not_fit() -> None:
    points = np.arange(12.0).reshape(6, 2)
    tree, own = tree_of(points), np.arange(6, dtype=np.int32)
    found, squares = np.empty((6, 3), np.int32), np.empty((6, 3))
    tree.search(points, own, found, squares, 1)
    for arguments, words in (
        ((points[:, :1].copy(), None, found, squares), "as many features as the points"),
        ((points[:5], None, found, squares), "a row for each query"),
        ((points, None, found, squares[:, :2].copy()), "the same number of columns"),
        ((points, own, np.empty((6, 6), np.int32), np.empty((6, 6))), "not so many points"),
        ((points, own + np.int32(1), found, squares), "own names a query that does not exist"),
        ((points * np.nan, None, found, squares), "queries must be finite"),
    ):
        with pytest.raises(ValueError, match=words):
            tree.search(*arguments, 1)
    for wrong, words in ((points + np.inf, "points must be finite"), (points[:0], "a tree needs points")):
        with pytest.raises(ValueError, match=words):
            tree_of(wrong)
