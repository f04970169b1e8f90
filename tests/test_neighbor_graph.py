"""The graph of neighbour lists is half the sum of who names whom and who is named by whom."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from corecut import _core
from corecut.neighbors import NeighborLists


def twin(lists: np.ndarray) -> np.ndarray:
    n = len(lists)
    named = np.zeros((n, n))
    for x, row in enumerate(lists):
        for y in row:
            named[x, y] += 1.0
    return (named + named.T) / 2.0


@given(st.integers(1, 60), st.integers(1, 12), st.integers(0, 99), st.sampled_from([np.int32, np.int64]), st.booleans())
def test_the_graph_is_that_of_its_definition(n: int, count: int, seed: int, dtype: type, repeated: bool) -> None:
    generator = np.random.default_rng(seed)
    count = min(n, count)
    lists = np.array([generator.choice(n, count, replace=repeated) for _ in range(n)], dtype)
    graph = NeighborLists(lists, "exact", 1.0).graph()
    np.testing.assert_array_equal(graph.adjacency.toarray(), twin(lists))
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int32, np.int32)
    assert graph.adjacency.has_canonical_format


def test_threads_do_not_change_the_graph() -> None:
    lists = np.random.default_rng(0).integers(0, 3_000, (3_000, 7), dtype=np.int32)
    for one, three in zip(_core.neighbor_graph(lists, 1), _core.neighbor_graph(lists, 3), strict=True):
        np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("wrong", [-1, 2])
def test_neighbours_that_do_not_exist_are_refused(wrong: int) -> None:
    with pytest.raises(ValueError, match=f"neighbour {wrong} is out of range for 2 points"):
        _core.neighbor_graph(np.array([[0, 1], [1, wrong]], np.int32), 1)
