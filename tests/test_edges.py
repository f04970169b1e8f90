"""From edges to rows: the stated rule, against a dictionary; the same rows for any bound on memory and any threads."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, strategies as st

import corecut
import corecut._core
import corecut.edges
from corecut import Graph
from corecut.edges import EdgeRules, EdgeSpool, assemble

EDGES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=60)


class Collected:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.pieces: list[tuple[np.ndarray | None, ...]] = []

    def begin(self, n_nodes, index_type, weighted):
        self.n_nodes, self.index_type, self.weighted = n_nodes, index_type, weighted

    def rows(self, *piece):
        self.pieces.append(piece)

    def dense(self) -> np.ndarray:
        matrix = np.zeros((self.n_nodes, self.n_nodes))
        row = 0
        for lengths, columns, weights, _, _ in self.pieces:
            start = 0
            for length in lengths:
                own = slice(start, start + length)
                assert (np.diff(columns[own]) > 0).all()
                matrix[row, columns[own]] = 1.0 if weights is None else weights[own]
                start, row = start + length, row + 1
        return matrix


def twin(edges, duplicates: str, loops: str, weighted: bool) -> dict[tuple[int, int], float]:
    """Return the rule as a dictionary: undirected edges, repeats merged, zeros left out."""
    heap = defaultdict(list)
    for u, v, w in edges:
        if u != v or loops == "keep":
            heap[min(u, v), max(u, v)].append(float(w) if weighted else 1.0)
    if duplicates == "auto":
        duplicates = "sum" if weighted else "unit"
    merge = {"sum": sum, "max": max, "unit": lambda _: 1.0}[duplicates]
    return {edge: merge(weights) for edge, weights in heap.items() if merge(weights) > 0}


def spooled(edges, rules: EdgeRules, weighted: bool, *, folder=None, memory=None, block: int = 7) -> EdgeSpool:
    spool = EdgeSpool(rules, folder, memory)
    array = np.array(edges, dtype=np.int64).reshape(-1, 3)
    for begin in range(0, len(array), block):
        part = array[begin : begin + block]
        spool.add(part[:, 0], part[:, 1], part[:, 2].astype(float) if weighted else None)
    return spool


@pytest.mark.parametrize("duplicates", ["auto", "unit", "sum", "max"])
@pytest.mark.parametrize("loops", ["keep", "drop"])
@pytest.mark.parametrize("weighted", [False, True])
@given(edges=EDGES)
def test_rows_follow_the_stated_rule(duplicates, loops, weighted, edges):
    expected = twin(edges, duplicates, loops, weighted)
    spool = spooled(edges, EdgeRules(duplicates, loops), weighted)
    sink = Collected()
    assert assemble(spool, sink, n_nodes=13, threads=2) is None
    matrix = np.zeros((13, 13))
    for (u, v), weight in expected.items():
        matrix[u, v] = matrix[v, u] = weight
    np.testing.assert_array_equal(sink.dense(), matrix)
    report = spool.report
    assert report.edges == len(expected)
    assert report.loops == sum(u == v for u, v in expected)
    assert report.edges_read == len(edges)
    assert report.edges_read == report.edges + report.merged + report.zeros + report.loops_dropped


@pytest.mark.parametrize("weighted", [False, True])
@given(edges=EDGES, offset=st.sampled_from([0, 5, 2**33, -(2**40)]), spread=st.sampled_from([1, 3, 10**9]))
def test_ids_are_compacted_in_increasing_order(weighted, edges, offset, spread):
    far = [(u * spread + offset, v * spread + offset, w + 1) for u, v, w in edges]
    near, sink = Collected(), Collected()
    ids = assemble(spooled(far, EdgeRules(), weighted), sink)
    used = np.unique([edge[:2] for edge in far])
    np.testing.assert_array_equal(np.arange(used.size) if ids is None else ids, used)
    number = {int(node): i for i, node in enumerate(used)}
    assemble(spooled([(number[u], number[v], w) for u, v, w in far], EdgeRules(), weighted), near)
    np.testing.assert_array_equal(sink.dense(), near.dense())


@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_rows_for_any_memory_and_threads(tmp_path, monkeypatch, rng, weighted):
    n, m = 3_000, 40_000
    edges = np.column_stack([rng.integers(0, n, m), rng.integers(0, n, m) ** 2 // n, rng.integers(0, 5, m)])

    def rows(memory, threads):
        spool = spooled(edges, EdgeRules(), weighted, folder=tmp_path, memory=memory, block=1_000)
        sink = Collected()
        assemble(spool, sink, n_nodes=n, threads=threads)
        return sink

    whole = rows(None, 1)
    assert len(whole.pieces) == 1
    monkeypatch.setattr(corecut.edges, "_BEST_ROOM", 30_000)
    monkeypatch.setattr(corecut.edges, "_LEAST_ROOM", 10_000)
    for memory, threads in [(1, 1), (200_000, 3), (None, 2)]:
        parts = rows(memory, threads)
        assert len(parts.pieces) > 3
        for i in range(4 if weighted else 2):
            if weighted or i < 2:
                np.testing.assert_array_equal(np.concatenate([piece[i] for piece in parts.pieces]), whole.pieces[0][i])
        degrees = np.concatenate([piece[3] for piece in parts.pieces])
        np.testing.assert_array_equal(degrees, whole.pieces[0][3])
    assert list(tmp_path.iterdir()) == []


def test_degrees_and_diagonal_are_those_of_a_matrix(rng):
    edges = np.column_stack([rng.integers(0, 50, 900), rng.integers(0, 50, 900), rng.integers(1, 9, 900)])
    sink = Collected()
    assemble(spooled(edges, EdgeRules(), weighted=True), sink, n_nodes=50)
    graph = Graph.from_matrix(sink.dense(), check="full")
    np.testing.assert_array_equal(sink.pieces[0][3], graph.degrees)
    np.testing.assert_array_equal(sink.pieces[0][4], graph.diagonal)


def test_ids_out_of_range_are_refused():
    with pytest.raises(ValueError, match="id 9 is out of range for 5 nodes"):
        assemble(spooled([(9, 1, 1)], EdgeRules(), weighted=False), Collected(), n_nodes=5)
    with pytest.raises(ValueError, match="id -1 is negative"):
        assemble(spooled([(-1, 1, 1)], EdgeRules(), weighted=False), Collected(), compact=False)


def test_weights_for_some_edges_only_are_refused():
    spool = EdgeSpool()
    spool.add(np.array([1]), np.array([2]), np.array([1.0]))
    with pytest.raises(ValueError, match="either all edges"):
        spool.add(np.array([1]), np.array([2]))


@pytest.mark.parametrize("arguments", [{"duplicates": "mean"}, {"loops": "double"}])
def test_unknown_rules_are_refused(arguments):
    with pytest.raises(ValueError, match="must be one of"):
        EdgeRules(**arguments)


def test_an_emptied_builder_takes_no_more(rng):
    builder = corecut._core.RowBuilder32(4, 0, np.array([1, 1, 0, 0]), False)
    edge = np.array([0], np.int32), np.array([1], np.int32)
    builder.add(*edge, None, True, 1)
    with pytest.raises(ValueError, match="more entries than were counted"):
        builder.add(*edge, None, True, 1)
    assert builder.finish(False, 1)[1].tolist() == [1, 0]
    builder.add(*edge, None, True, 1)
    assert builder.finish(False, 1)[1].size == 0
    with pytest.raises(ValueError, match="fewer entries than were counted"):
        corecut._core.RowBuilder32(4, 0, np.array([1, 1, 0, 0]), False).finish(False, 1)


@pytest.mark.parametrize("wide", [False, True])
def test_split_edges_keep_their_order_in_every_bucket(rng, wide):
    kind = np.int64 if wide else np.int32
    u, v = rng.integers(0, 1000, (2, 500)).astype(kind)
    u[:9] = v[:9]
    borders = np.array([0, 10, 11, 400, 1000])
    offsets, rows, columns, weights = corecut._core.split_edges(u, v, np.arange(500.0), borders)
    entries = [(a, b, i) for i, (x, y) in enumerate(zip(u, v, strict=True)) for a, b in dict.fromkeys([(x, y), (y, x)])]
    for bucket in range(4):
        own = slice(offsets[bucket], offsets[bucket + 1])
        expected = [entry for entry in entries if borders[bucket] <= entry[0] < borders[bucket + 1]]
        assert list(zip(rows[own], columns[own], weights[own], strict=True)) == expected
    with pytest.raises(ValueError, match="out of range"):
        corecut._core.split_edges(u, v, None, np.array([0, 10]))
