"""MatrixMarket, METIS, npz and Parquet: the same graph as other readers see, and clear messages for broken files."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, strategies as st

from corecut import Graph, GraphStore, read_graph, write_graph
from corecut._files import GraphFileError
from corecut.readers import guess_format


def random_graph(seed: int, *, weighted: bool, loops: bool = False, n: int = 30) -> Graph:
    rng = np.random.default_rng(seed)
    half = np.triu(rng.random((n, n)) < 0.15, 0 if loops else 1) * (rng.random((n, n)) if weighted else 1.0)
    return Graph.from_matrix(np.maximum(half, half.T))


def same(first: Graph, second: Graph) -> bool:
    return first.n_nodes == second.n_nodes and abs(first.adjacency - second.adjacency).sum() == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["g.mtx", "g.mtx.gz", "g.graph", "g.metis.zst", "g.npz", "g.store", "g"])
@given(seed=st.integers(0, 1000))
def test_formats_that_keep_every_node(tmp_path_factory, weighted, name, seed):
    path = tmp_path_factory.mktemp("graph") / name
    graph = random_graph(seed, weighted=weighted, loops="graph" not in name and "metis" not in name)
    write_graph(graph, path)
    assert same(read_graph(path), graph)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ids", [None, "integers", "text"])
@pytest.mark.parametrize("name", ["g.csv", "g.tsv.bz2", "g.txt", "g.edges.gz", "g.parquet"])
def test_formats_that_hold_edges_and_ids(tmp_path, weighted, ids, name):
    graph = random_graph(7, weighted=weighted, loops=True)
    own = {
        None: None,
        "integers": np.arange(30) * 10**12 - 5,
        "text": np.array([f"node {i}" for i in range(30)], dtype=object),
    }[ids]
    write_graph(Graph(graph.indptr, graph.indices, graph.weights, graph.degrees, graph.diagonal, own), tmp_path / name)
    found = read_graph(tmp_path / name)
    names = list(range(30)) if own is None else own.tolist()
    order = [names.index(node) for node in (range(found.n_nodes) if found.node_ids is None else found.node_ids.tolist())]
    expected = graph.adjacency.toarray()[np.ix_(order, order)]
    np.testing.assert_array_equal(found.adjacency.toarray(), expected)
    left_out = sorted(set(range(30)) - set(order))
    assert graph.degrees[left_out].sum() == 0


@given(seed=st.integers(0, 1000), symmetric=st.booleans(), field=st.sampled_from(["real", "integer", "pattern"]))
def test_matrix_market_as_scipy_writes_it(tmp_path_factory, seed, symmetric, field):
    path = tmp_path_factory.mktemp("matrix") / "m.mtx"
    matrix = np.ceil(random_graph(seed, weighted=True).adjacency.toarray() * 9).astype(int)
    scipy.io.mmwrite(path, sp.coo_array(matrix), field=field, symmetry="symmetric" if symmetric else "general")
    expected = scipy.io.mmread(path)
    np.testing.assert_array_equal(read_graph(path).adjacency.toarray(), expected.toarray())


def test_matrix_market_that_is_not_symmetric(tmp_path):
    path = tmp_path / "m.mtx"
    scipy.io.mmwrite(path, sp.coo_array(np.array([[0, 2.0], [0, 0]])), symmetry="general")
    with pytest.raises(GraphFileError, match="the graph is not symmetric"):
        read_graph(path)
    assert read_graph(path, symmetrize="max").weights.tolist() == [2.0, 2.0]


def test_metis_with_sizes_and_weights_of_nodes(tmp_path):
    path = tmp_path / "g.graph"
    path.write_text("% a comment\n3 2 111 2\n9 1 1 2 5\n9 1 1 1 5 3 7\n% inside\n9 1 1 2 7\n")
    np.testing.assert_array_equal(read_graph(path).adjacency.toarray(), [[0, 5, 0], [5, 0, 7], [0, 7, 0]])


@pytest.mark.parametrize("wide", [False, True])
def test_npz_of_edges_and_of_a_matrix(tmp_path, wide):
    np.savez(tmp_path / "e.npz", src=np.array([0, 1]), dst=np.array([1, 2]), n=5, w=np.array([2, 3]))
    graph = read_graph(tmp_path / "e.npz")
    assert graph.n_nodes == 5
    assert graph.degrees.tolist() == [2, 5, 3, 0, 0]
    matrix = sp.csr_array(graph.adjacency)
    if wide:
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    sp.save_npz(tmp_path / "m.npz", matrix)
    assert same(read_graph(tmp_path / "m.npz"), graph)


@pytest.mark.parametrize("kind", [pa.int32(), pa.uint64(), pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_columns_by_name_and_type(tmp_path, kind):
    text = not pa.types.is_integer(kind)
    values = (["a", "b", "c"], ["b", "c", "a"]) if text else ([1, 2, 3], [2, 3, 1])
    columns = {
        "when": [0, 0, 0],
        "dst": pa.array(values[1]).cast(kind),
        "weight": [1.0, 2.0, 3.0],
        "src": pa.array(values[0]).cast(kind),
    }
    pq.write_table(pa.table(columns), tmp_path / "e.parquet")
    graph = read_graph(tmp_path / "e.parquet")
    assert graph.node_ids.tolist() == values[0]
    assert graph.degrees.tolist() == [4, 3, 5]
    assert read_graph(tmp_path / "e.parquet", weights=False).degrees.tolist() == [2, 2, 2]
    assert read_graph(tmp_path / "e.parquet", columns=("src", "dst", "when")).n_entries == 0


def test_dense_matrix_market_files(tmp_path):
    (tmp_path / "m.mtx").write_bytes(b"%%MatrixMarket matrix array real symmetric\n3 3\n0\n1\n2\n0\n0\n0\n")
    assert read_graph(tmp_path / "m.mtx").degrees.tolist() == [3, 1, 2]


MM = b"%%MatrixMarket matrix coordinate real symmetric\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.mtx", b"", "line 1: the file is empty"),
        ("m.mtx", b"%%MatrixMarket nonsense\n", "line 1"),
        ("m.mtx", MM + b"3 3 3\n2 1 1\n3 2 1\n", "line 5: Truncated file"),
        ("m.mtx", MM + b"3 3 1\n2 1 1\n3 2 1\n", "line 4: Too many lines"),
        ("m.mtx", MM + b"3 3 2\n2 1 1\n3 2 x\n", "line 4: Invalid floating-point value"),
        ("m.mtx", MM + b"3 3 2\n2 1 1\n4 2 1\n", "line 4: Row index out of bounds"),
        ("m.mtx", MM + b"% c\n3 3 2\n2 1 1\n3 1 -1\n", "line 5: the weight -1 is negative"),
        ("m.mtx", MM.replace(b"real", b"integer") + b"3 3 2\n2 1 1\n3 1 -4\n", "line 4: the weight -4 is negative"),
        ("m.mtx", MM.replace(b"coordinate", b"array") + b"2 2\n0\n-1\n0\n", "line 4: the weight -1 is negative"),
        ("m.mtx", MM + b"3 3 1\n2 1 nan\n", "line 3: the weight nan is not finite"),
        ("m.mtx", MM + b"99999999999 99999999999 1\n2 1 1\n", "too large"),
        ("m.mtx", MM.replace(b"symmetric", b"general") + b"2 3 1\n2 1 1\n", "must be square"),
        ("m.mtx", MM.replace(b"real", b"complex") + b"2 2 1\n2 1 1 1\n", "complex"),
        ("m.mtx.gz", gzip.compress(MM + b"3 3 0\n" + b"% x\n" * 9999)[:60], "the compressed data end early"),
        ("g.graph", b"", "line 1: the file is empty"),
        ("g.graph", b"a b\n", "line 1: a METIS file begins with"),
        ("g.graph", b"3 2 7\n", "line 1: fmt must be"),
        ("g.graph", b"0 0\n", "line 1: the graph is empty"),
        ("g.graph", b"99999999999 1\n", "line 1: 99999999999 nodes"),
        ("g.graph", b"3 2\n2\n1 3\n", "line 4: the file ends after 2 nodes, its header promises 3"),
        ("g.graph", b"3 2\n2\n1 3\n2\n1\n", "line 5: the header promises 3 nodes, here is one more"),
        ("g.graph", b"3 3\n2\n1 3\n2\n", "line 1: the header promises 3 edges"),
        ("g.graph", b"3 2\n2\n1 4\n2\n", "line 3: '4' is not a node"),
        ("g.graph", b"3 2\n2\n1 0\n2\n", "line 3: '0' is not a node"),
        ("g.graph", b"3 2\n2\n1 x\n2\n", "line 3: 'x' is not a node"),
        ("g.graph", b"3 2\n2\n1 99999999999999999999\n2\n", "line 3: '99999999999999999999' is not a node"),
        ("g.graph", b"3 2 001\n2 1\n1 1 3\n2 1\n", "line 3: neighbours and weights must come in pairs"),
        ("g.graph", b"3 2 001\n2 1\n1 1 3 -1\n2 1\n", "line 3: the edge weight '-1'"),
        ("g.graph", b"3 2 010 2\n1 1 2\n1\n1 1 2\n", "line 3: expected 2 numbers before the neighbours"),
        (
            "g.graph",
            b"3 2\n2\n3\n1 2\n",
            "line 2: the graph is not symmetric: node 1 names node 2, whose line 3 does not name node 1",
        ),
        ("g.graph", b"3 2 001\n2 1.0000000001 3 5\n1 1\n1 6\n", "line 2: .* node 1 names node 3, whose line 4 gives"),
        ("g.graph", b"2 1 001\n2 1\n1 5\n", "line 2: .* whose line 3 gives the edge the weight 5 instead of 1"),
        (
            "g.model",
            b"\x93CORECUT MODEL\r\n\x00",
            "is a model of corecut; give the file of a graph; corecut predict takes the model",
        ),
        ("g.npz", b"rubbish", "is not a complete NumPy archive"),
        ("g.npz", b"PK\x03\x04 rubbish", "is not a complete NumPy archive"),
        ("g.parquet", b"PAR1 rubbish", "is not a complete Parquet file"),
        ("g.parquet", b"rubbish", "is not a complete Parquet file"),
    ],
)
def test_malformed_files_give_one_clear_message(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(GraphFileError, match=message) as caught:
        read_graph(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_of_no_file(tmp_path):
    with pytest.raises(ValueError, match="the name of the file to read is empty; give one"):
        read_graph("")
    pq.write_table(pa.table({"source": [0], "target": [1]}), tmp_path / "part-0.parquet")
    with pytest.raises(
        GraphFileError, match=r"without graph\.json, .*; a folder of Parquet files is read by corecut cluster --dask"
    ):
        read_graph(tmp_path)


def saved(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros(3)}, "neither a scipy sparse matrix nor arrays src and dst, but x"),
        ({"src": np.array([0.5]), "dst": np.array([1.0])}, "must be integers"),
        ({"src": np.array([0, 1]), "dst": np.array([1])}, "must be vectors of one length"),
        ({"src": np.array([0]), "dst": np.array([1]), "w": np.array([-1.0])}, "not negative"),
        ({"src": np.array([0]), "dst": np.array([7]), "n": 5}, "id 7 is out of range for 5 nodes"),
    ],
)
def test_archives_without_a_graph(tmp_path, arrays, message):
    (tmp_path / "g.npz").write_bytes(saved(**arrays))
    with pytest.raises(GraphFileError, match=message):
        read_graph(tmp_path / "g.npz")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1]}, "an edge needs two columns"),
        ({"a": [0.5], "b": [1.0]}, "holds double, ids must be integers or text"),
        ({"a": [1, None], "b": [1, 2]}, "row 1: column 'a' has no value"),
        ({"a": [1, 2], "b": [2, 3], "weight": [1.0, -1.0]}, "row 1: weight -1 is negative"),
        ({"a": [1, 2], "b": [2, 3], "weight": ["x", "y"]}, "weights must be numbers"),
        ({"a": [1, 2**63], "b": [2, 3]}, "does not fit in 64 bits"),
    ],
)
def test_tables_without_edges(tmp_path, columns, message):
    kinds = {"a": pa.uint64()} if columns["a"][-1] == 2**63 else {}
    table = pa.table({name: pa.array(values, kinds.get(name)) for name, values in columns.items()})
    pq.write_table(table, tmp_path / "e.parquet")
    with pytest.raises(GraphFileError, match=message):
        read_graph(tmp_path / "e.parquet")


def test_a_cut_parquet_file_and_an_empty_one(tmp_path):
    pq.write_table(pa.table({"u": np.arange(9000), "v": np.arange(9000) + 1}), tmp_path / "e.parquet")
    whole = (tmp_path / "e.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(GraphFileError, match="not a complete Parquet file"):
        read_graph(tmp_path / "cut.parquet")
    pq.write_table(pa.table({"u": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    with pytest.raises(GraphFileError, match="there is no edge"):
        read_graph(tmp_path / "none.parquet")


def test_formats_are_known_by_content_before_name(tmp_path):
    graph = random_graph(1, weighted=False)
    for name, expected in [("a.mtx", "matrix_market"), ("a.npz", "npz"), ("a.parquet", "parquet"), ("a.store", "store")]:
        write_graph(graph, tmp_path / name)
        assert guess_format(tmp_path / name) == expected
        renamed = (tmp_path / name).rename(tmp_path / f"{expected}.txt")
        assert guess_format(renamed) == expected
    with pytest.raises(GraphFileError, match="is a directory without"):
        guess_format(tmp_path)
    assert isinstance(GraphStore.open(tmp_path / "store.txt").graph, Graph)


@pytest.mark.parametrize("name", ["g.xyz", "g.npz.gz", "g.store.gz"])
def test_names_that_no_writer_knows(tmp_path, name):
    with pytest.raises(ValueError, match="cannot tell the format"):
        write_graph(random_graph(1, weighted=False), tmp_path / name)


def test_writers_refuse_to_replace_and_to_lose(tmp_path):
    graph = random_graph(1, weighted=False, loops=True)
    write_graph(graph, tmp_path / "g.mtx")
    with pytest.raises(FileExistsError, match="exists already"):
        write_graph(graph, tmp_path / "g.mtx")
    write_graph(graph, tmp_path / "g.mtx", overwrite=True)
    with pytest.raises(ValueError, match="cannot hold self-loops"):
        write_graph(graph, tmp_path / "g.graph")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_graph(graph, tmp_path / "none" / "g.mtx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.mtx"]


@pytest.mark.parametrize("ids", [np.array([4, 7, 4]), np.array(["x", "y", "x"])])
def test_npz_with_an_id_for_two_nodes(tmp_path, ids):
    path = tmp_path / "g.npz"
    matrix = sp.csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]))
    parts = {"indices": matrix.indices, "indptr": matrix.indptr, "data": matrix.data, "shape": matrix.shape}
    np.savez(path, format=b"csr", node_ids=ids, **parts)
    with pytest.raises(GraphFileError, match=f"the id {ids.tolist()[0]!r} in node_ids stands for more than one node"):
        read_graph(path)


def test_parquet_with_columns_of_one_name(tmp_path):
    for names in (["source", "target", "weight", "weight"], ["a", "a"], ["source", "source", "target"]):
        columns = [pa.array([1, 2])] * len(names)
        pq.write_table(pa.Table.from_arrays(columns, names), tmp_path / "g.parquet")
        with pytest.raises(GraphFileError, match="there is more than one column"):
            read_graph(tmp_path / "g.parquet")
