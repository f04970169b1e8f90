"""What is written is what is read, for every format and for ids that would rather be something else."""

from __future__ import annotations

import csv
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

from corecut import Graph, read_graph, write_graph

WITH_IDS = ["g.csv", "g.tsv", "g.txt", "g.edges.gz", "g.csv.bz2", "g.parquet", "g.pq", "g.npz", "g.store"]
WITHOUT_IDS = ["g.mtx", "g.mtx.gz", "g.graph", "g.metis.bz2"]

HOSTILE = [
    *("", " ", "\t", "\n", "\r", "\r\n", "\0", '"', '""', "'", ",", ";", "|", "\\", "#", "%", "# a", "%b", "{}", "{'w': 3}"),
    *(
        "source",
        "target",
        "weight",
        "Source",
        "TARGET",
        "from",
        "to",
        "u",
        "v",
        "ä",
        "日本",
        "\ufeff",
        "\u2028",
        "\x85",
        "\xa0",
    ),
    *(
        "1",
        "-1",
        "+7",
        "007",
        "1.5",
        "1e3",
        "nan",
        "inf",
        "9223372036854775808",
        "a b",
        " a",
        "a ",
        "a\tb",
        "a\nb",
        "a,b",
        "a;b",
    ),
    *('a"b', '"a"', "[1]", "<html>", "graph [", "%%MatrixMarket", "PAR1", "PK\x03\x04", "%PDF-", "version https://git-lfs"),
]
NAMES = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(codec="utf-8"), max_size=6))
WEIGHTS = st.floats(5e-324, 1e300)


def edges_of(graph: Graph) -> dict[frozenset[object], float]:
    ids = list(range(graph.n_nodes)) if graph.node_ids is None else graph.node_ids.tolist()
    coo = graph.adjacency.tocoo()
    return {frozenset((ids[i], ids[j])): w for i, j, w in zip(*coo.coords, coo.data, strict=True)}


def graph_of(ids: np.ndarray, edges: list[tuple[int, int, float]], *, loops: bool = True) -> Graph:
    """Return a graph in which every node has an edge: a path through all, and the given edges."""
    n = ids.size
    matrix = np.zeros((n, n))
    for i in range(n - 1):
        matrix[i, i + 1] = matrix[i + 1, i] = 1.0
    for u, v, w in edges:
        if loops or u % n != v % n:
            matrix[u % n, v % n] = matrix[v % n, u % n] = w
    graph = Graph.from_matrix(matrix)
    return Graph(graph.indptr, graph.indices, graph.weights, graph.degrees, graph.diagonal, ids)


EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.one_of(st.just(1.0), WEIGHTS)), max_size=8)


@pytest.mark.parametrize("name", WITH_IDS)
@given(names=st.lists(NAMES, min_size=2, max_size=8, unique=True), edges=EDGES)
def test_text_ids(tmp_path_factory, name, names, edges):
    path = tmp_path_factory.mktemp("trip") / name
    graph = graph_of(np.array([*names, None], dtype=object)[:-1], edges)
    write_graph(graph, path)
    found = read_graph(path)
    assert edges_of(found) == edges_of(graph)
    assert set(found.node_ids) == set(names)


@pytest.mark.parametrize("name", WITH_IDS)
@given(
    ids=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=8, unique=True),
    edges=EDGES,
    kind=st.sampled_from([np.int64, object, ">i8"]),
)
def test_integer_ids(tmp_path_factory, name, ids, edges, kind):
    path = tmp_path_factory.mktemp("trip") / name
    graph = graph_of(np.array(ids, dtype=kind), edges)
    write_graph(graph, path)
    found = read_graph(path)
    assert edges_of(found) == edges_of(graph)
    assert found.node_ids is None or found.node_ids.dtype == np.int64


@pytest.mark.parametrize("name", WITH_IDS + WITHOUT_IDS)
@given(n=st.integers(2, 8), edges=EDGES)
def test_numbers_as_ids(tmp_path_factory, name, n, edges):
    path = tmp_path_factory.mktemp("trip") / name
    graph = graph_of(np.arange(n), edges, loops="graph" not in name and "metis" not in name)
    graph = Graph(graph.indptr, graph.indices, graph.weights, graph.degrees, graph.diagonal)
    write_graph(graph, path)
    found = read_graph(path)
    assert found.node_ids is None
    assert edges_of(found) == edges_of(graph)


@pytest.mark.parametrize("name", WITHOUT_IDS)
def test_formats_without_ids_say_so(tmp_path, name):
    graph = graph_of(np.array(["a", "b", "c"], dtype=object), [])
    with pytest.warns(UserWarning, match="cannot hold the nodes' own ids"):
        write_graph(graph, tmp_path / name)
    assert read_graph(tmp_path / name).n_edges == 2


@pytest.mark.parametrize("name", WITH_IDS)
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([1, 2**63], dtype=np.uint64), "does not fit in 64 bits"),
        (np.array([1, 2**63], dtype=object), "does not fit in 64 bits"),
        (np.array([0.5, 1.5]), "must be integers or text"),
        (np.array(["a", 1], dtype=object), "must be integers, or text throughout"),
        (np.array(["a", "\ud800"], dtype=object), "half of a letter|utf-8|surrogates"),
    ],
)
def test_ids_that_no_file_can_hold_are_refused(tmp_path, name, ids, message):
    with pytest.raises(ValueError, match=message):
        write_graph(graph_of(ids, []), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*WITH_IDS, *WITHOUT_IDS])
@pytest.mark.parametrize("make", [sp.csr_array, sp.coo_matrix, np.asarray])
def test_a_matrix_is_written_as_a_graph(tmp_path, name, make):
    matrix = np.array([[0, 1, 2], [1, 0, 0], [2, 0, 0.0]])
    write_graph(make(matrix), tmp_path / name)
    np.testing.assert_array_equal(read_graph(tmp_path / name).adjacency.toarray(), matrix)


def test_other_programs_read_the_archive(tmp_path):
    graph = graph_of(np.array(["x", "y", "z"], dtype=object), [(0, 2, 0.5)])
    write_graph(graph, tmp_path / "g.npz")
    assert abs(sp.load_npz(tmp_path / "g.npz") - graph.adjacency).sum() == 0


def test_other_programs_read_the_tables(tmp_path):
    names = ["#1", 'a"b', "c\nd", "5", " x"]
    graph = graph_of(np.array(names, dtype=object), [])
    for name, delimiter in (("g.csv", ","), ("g.tsv", "\t")):
        write_graph(graph, tmp_path / name)
        with (tmp_path / name).open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file, delimiter=delimiter))
        assert rows[0] == ["source", "target"]
        assert {frozenset(row) for row in rows[1:]} == {frozenset(pair) for pair in pairwise(names)}


def test_plain_names_stay_plain(tmp_path):
    graph = graph_of(np.array(["anna", "bert-2", "Zoë"], dtype=object), [])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_graph(graph, tmp_path / "g.txt")
    assert (tmp_path / "g.txt").read_text(encoding="utf-8").splitlines() == [
        "# 3 nodes, 2 edges",
        "# source\ttarget",
        "anna\tbert-2",
        "bert-2\tZoë",
    ]


@pytest.mark.parametrize("name", ["g.csv", "g.mtx", "g.store"])
def test_a_name_taken_while_writing_is_not_replaced(tmp_path, monkeypatch, name):
    """`overwrite` is decided when the file gets its name, not when the work begins."""
    import corecut.writers

    graph = graph_of(np.arange(3), [])
    real = corecut.writers.check_graph_path
    path = tmp_path / name

    def taken(file, *, overwrite):
        result = real(file, overwrite=overwrite)
        if name.endswith("store"):
            path.mkdir()
            (path / "mine").write_text("x")
        else:
            path.write_text("mine")
        return result

    monkeypatch.setattr(corecut.writers, "check_graph_path", taken)
    graph = Graph(graph.indptr, graph.indices, graph.weights, graph.degrees, graph.diagonal)
    with pytest.raises(FileExistsError, match="exists already"):
        write_graph(graph, path)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert (path / "mine").exists() if path.is_dir() else path.read_text() == "mine"
