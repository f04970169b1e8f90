"""Edge lists: what networkx reads from the same text, in any dress; and one clear message for what is wrong."""

from __future__ import annotations

import bz2
import gzip

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from corecut import read_graph
from corecut._files import GraphFileError
from corecut.readers.edgelist import EdgeListReader
from corecut.readers.layout import EdgeOptions

NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="#%,;|\"{}'"), min_size=1, max_size=6
)
INTEGERS = st.integers(-(2**40), 2**40)


def matrix_of(graph) -> dict:
    """Entries of a graph by the file's own ids."""
    ids = np.arange(graph.n_nodes) if graph.node_ids is None else graph.node_ids
    coo = graph.adjacency.tocoo()
    return {(ids[i], ids[j]): w for i, j, w in zip(*coo.coords, coo.data, strict=True)}


def entries_of(other: nx.Graph) -> dict:
    found = {}
    for u, v, w in other.edges(data="weight", default=1.0):
        found[u, v] = found[v, u] = w
    return found


def written(folder, lines, name="edges.txt"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@given(
    edges=st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1, max_size=30),
    blanks=st.lists(st.sampled_from([" ", "\t", "   ", " \t "]), min_size=3, max_size=3),
    noise=st.lists(st.sampled_from(["# a comment", "% another", "", "   "]), max_size=3),
    block_bytes=st.sampled_from([20, 64, 1 << 20]),
)
def test_integer_ids_as_networkx_reads_them(tmp_path_factory, edges, blanks, noise, block_bytes):
    before, between, behind = blanks
    lines = [f"{before}{u}{between}{v}{behind}" for u, v in edges]
    for i, extra in enumerate(noise):
        lines.insert(2 * i, extra)
    path = written(tmp_path_factory.mktemp("edges"), lines)
    expected = nx.parse_edgelist([f"{u} {v}" for u, v in edges], nodetype=int)
    assert matrix_of(read_graph(path)) == entries_of(expected)
    sources = np.concatenate([block[0] for block in EdgeListReader(path, block_bytes=block_bytes).blocks()])
    assert sources.tolist() == [u for u, _ in edges]


@given(
    edges=st.lists(st.tuples(NAMES, NAMES, st.integers(1, 9)), min_size=1, max_size=30),
    delimiter=st.sampled_from(["", ",", ";"]),
)
def test_names_and_weights_as_networkx_reads_them(tmp_path_factory, edges, delimiter):
    path = written(tmp_path_factory.mktemp("edges"), [(delimiter or "\t").join(map(str, edge)) for edge in edges])
    graph = read_graph(path, ids="text", header=False, delimiter=delimiter, duplicates="max")
    best: dict[frozenset[str], int] = {}
    for u, v, w in edges:
        best[frozenset((u, v))] = max(w, best.get(frozenset((u, v)), 0))
    lines = ["\t".join((*(tuple(pair) * 2)[:2], str(w))) for pair, w in best.items()]
    expected = nx.parse_edgelist(lines, delimiter="\t", data=[("weight", float)])
    assert matrix_of(graph) == entries_of(expected)
    order = [name for u, v, _ in edges for name in (u, v)]
    assert list(graph.node_ids) == list(dict.fromkeys(order))


@pytest.mark.parametrize("block_bytes", [16, 1 << 20])
def test_names_are_numbered_in_the_order_of_the_file(tmp_path, block_bytes):
    path = written(tmp_path, ["b a", "a c", "d b", "e f"])
    reader = EdgeListReader(path, block_bytes=block_bytes)
    blocks = list(reader.blocks())
    assert list(reader.names()) == ["b", "a", "c", "d", "e", "f"]
    assert np.concatenate([block[0] for block in blocks]).tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize(
    ("lines", "ids", "weights"),
    [
        (["source,target,weight", "1,2,0.5", "2,3,2"], [1, 2, 3], [0.5, 0.5, 2, 2]),
        (["weight;to;from", "0.5;2;1", "2;3;2"], [1, 2, 3], [0.5, 0.5, 2, 2]),
        (["a|b", "1|2", "2|3"], [1, 2, 3], None),
        (["from,to,when", "1,2,17", "2,3,18"], [1, 2, 3], None),
        (["source,target", '"a, b",c', 'c,"d"'], ["a, b", "c", "d"], None),
        (["New York\tBoston", "Boston\tSan Jose"], ["New York", "Boston", "San Jose"], None),
        (["source\ttarget", "New York\tBoston"], ["New York", "Boston"], None),
        (["0 1 {}", "1 2 {}"], None, None),
        (["\ufeffsource,target", "1,2"], [1, 2], None),
        (["1 , 2", "2 , 3"], [1, 2, 3], None),
        (["1 2 1", "2 3 1"], [1, 2, 3], None),
        (["9223372036854775807 -9223372036854775808"], [-(2**63), 2**63 - 1], None),
    ],
)
def test_dress_of_the_columns(tmp_path, lines, ids, weights):
    graph = read_graph(written(tmp_path, lines))
    assert (None if graph.node_ids is None else graph.node_ids.tolist()) == ids
    assert (None if graph.weights is None else graph.weights.tolist()) == weights


def test_line_ends_of_windows_and_a_last_line_without_end(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_bytes(b"# x\r\n1 2\r\n2 3\r\n3 4")
    assert read_graph(path).node_ids.tolist() == [1, 2, 3, 4]


def test_columns_can_be_chosen(tmp_path):
    path = written(tmp_path, ["7 1 2 0.5", "8 2 3 1.5"])
    assert read_graph(path, columns=(1, 2)).weights is None
    assert read_graph(path, columns=(1, 2, 3)).weights.tolist() == [0.5, 0.5, 1.5, 1.5]
    named = written(tmp_path, ["a,b,c", "1,2,3", "2,3,4"], "named.csv")
    assert read_graph(named, columns=("b", "c")).node_ids.tolist() == [2, 3, 4]
    assert read_graph(path, columns=(1, 2, 3), weights=False).weights is None


def test_ids_as_node_numbers_keep_nodes_without_edges(tmp_path):
    graph = read_graph(written(tmp_path, ["0 5", "5 2"]), compact=False)
    assert graph.n_nodes == 6
    assert graph.isolated.tolist() == [False, True, False, True, True, False]


@pytest.mark.parametrize("name", ["e.txt.gz", "e.txt.bz2", "e.txt.zst", "misnamed.txt"])
def test_compressed_text_is_known_by_its_content(tmp_path, name):
    text = b"1 2\n2 3\n" * 50
    packed = (
        bz2.compress(text)
        if "bz2" in name
        else pa.compress(text, "zstd", asbytes=True)
        if "zst" in name
        else gzip.compress(text)
    )
    (tmp_path / name).write_bytes(packed)
    assert read_graph(tmp_path / name).node_ids.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 2\n2 3\n3\n", "line 3: expected 2 columns as in the first line, found 1: '3'"),
        (b"# c\n1 2\n\n2 3 4\n", "line 4: expected 2 columns as in the first line, found 3"),
        (b"1 2\n3 x\n", "line 2: the target id 'x' is not an integer like the first ones; for names, read ids as \"text\""),
        (b"1 2\n99999999999999999999 4\n", "line 2: the source id does not fit in 64 bits"),
        (b"1,2\n,4\n", "line 2: the source id is empty"),
        (b"a,b\nb,\n", "line 2: the target id is empty"),
        (b"1 2 0.5\n3 4 much\n", "line 2: the weight 'much' is not a number"),
        (b"1 2 0.5\n3 4 -1\n", "line 2: the weight is negative"),
        (b"1 2 0.5\n3 4 nan\n", "line 2: the weight is not finite"),
        (b"1 2 0.5\n3 4 inf\n", "line 2: the weight is not finite"),
        (b"1 2 {'weight': 3}\n", "Python dictionaries"),
        (b"", "line 1: the file ends, and there is no edge in it"),
        (b"# nothing\n\n", "line 3: the file ends, and there is no edge in it"),
        (b"source,target\n", "there is no edge"),
        (b"# c\n5\n6\n", "line 2: an edge needs two columns, this line has 1"),
        (b"1 2\n\x00\x01\x02", "line 2: holds bytes that are no text"),
        (b"\xff\xfe\xfd 1\n", "line 1: is not UTF-8 text"),
        (b"a b\n\xff\xfe c\n", "line 2: is not UTF-8 text"),
        (b"1 1\n", "there is no edge left"),
        (gzip.compress(b"1 2\n" * 10_000)[:-20], "behind line .*: the compressed data end early: the file was cut short"),
        (b"\x1f\x8brubbish behind the first bytes", "the compressed data"),
    ],
)
def test_malformed_files_give_one_clear_message(tmp_path, content, message):
    path = tmp_path / "edges.txt"
    path.write_bytes(content)
    with pytest.raises(GraphFileError, match=message) as caught:
        read_graph(path, loops="drop" if content == b"1 1\n" else "keep")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("block_bytes", [64, 1 << 24])
def test_the_line_is_right_far_into_the_file(tmp_path, block_bytes):
    lines = ["# head", *(f"{i} {i + 1}" for i in range(5_000)), "x 1"]
    with pytest.raises(GraphFileError, match="line 5002: the source id 'x'"):
        list(EdgeListReader(written(tmp_path, lines), block_bytes=block_bytes).blocks())


@pytest.mark.parametrize(
    "arguments", [{"delimiter": "ab"}, {"delimiter": "é"}, {"columns": ("a",)}, {"ids": "float"}, {"ids": "Text"}]
)
def test_misuse_is_refused(arguments):
    with pytest.raises(ValueError, match="must"):
        EdgeOptions(**arguments)


def test_a_column_that_is_not_there(tmp_path):
    path = written(tmp_path, ["a,b", "1,2"], "x.csv")
    with pytest.raises(GraphFileError, match="there is no column 'c'; the columns are a, b"):
        read_graph(path, columns=("a", "c"))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_graph(tmp_path / "nothing.txt")


@pytest.mark.parametrize("damage", [b"junk", b"\0" * 20, "header", "block", "cut"])
def test_damaged_stream_of_bz2_behind_a_whole_one(tmp_path, damage):
    first, second = bz2.compress(b"1 2\n2 3\n"), bytearray(bz2.compress(b"3 4\n4 5\n"))
    path = tmp_path / "g.txt.bz2"
    path.write_bytes(first + second)
    assert read_graph(path).n_nodes == 5
    if isinstance(damage, bytes):
        second = bytearray(damage)
    elif damage == "cut":
        del second[-5:]
    else:
        second[1 if damage == "header" else 20] ^= 0xFF
    path.write_bytes(first + second)
    with pytest.raises(GraphFileError, match=r"the compressed data (are damaged|end early)"):
        read_graph(path)


@pytest.mark.parametrize(
    ("text", "columns", "cure"),
    [
        ("source,source,target\n1,2,3\n", None, (1, 2)),
        ("source,target,weight,weight\n2,3,5,6\n", None, (0, 1, 3)),
        ("a,b,a\n2,3,4\n", ("a", "b"), (0, 1)),
    ],
)
def test_columns_of_one_name(tmp_path, text, columns, cure):
    (tmp_path / "g.csv").write_text(text)
    with pytest.raises(GraphFileError, match=r"more than one column is called .*--columns"):
        read_graph(tmp_path / "g.csv", columns=columns, header=True)
    assert read_graph(tmp_path / "g.csv", columns=cure, header=True).node_ids.tolist() == [2, 3]


def test_columns_of_one_name_that_leave_no_choice(tmp_path):
    (tmp_path / "g.csv").write_text("source,target,weight,weight\n2,3,5,6\n")
    assert read_graph(tmp_path / "g.csv", weights=False).n_nodes == 2
    (tmp_path / "g.csv").write_text("node,node,weight\n2,3,5\n")
    assert read_graph(tmp_path / "g.csv").weights.tolist() == [5, 5]
