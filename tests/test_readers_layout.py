"""What a text file is: its header, known by content, and everything that is no edge list, refused by what it is."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from corecut import read_graph
from corecut._files import GraphFileError
from corecut.readers import layout


def written(folder, text: str | bytes, name: str):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def edges_of(graph) -> set[frozenset[object]]:
    ids = range(graph.n_nodes) if graph.node_ids is None else graph.node_ids.tolist()
    return {frozenset((ids[i], ids[j])) for i, j in zip(*graph.adjacency.tocoo().coords, strict=True)}


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t", " "])
@pytest.mark.parametrize(
    "rows",
    [
        # the header, and the edges below it
        [("person", "friend", "closeness"), ("anna", "bert", "0.5"), ("carla", "dora", "2")],
        [("gene_a", "gene_b", "combined"), ("BRCA1", "TP53", "900"), ("MYC", "EGFR", "700")],
        [("person", "friend"), ("7", "8"), ("9", "10")],
        [("buyer", "seller"), ("user12", "shop7"), ("user9", "shop4")],
        [("a", "b", "c"), ("x", "y", "1"), ("z", "w", "2")],
        [("0", "1"), ("anna", "bert"), ("carla", "dora")],
    ],
    ids=lambda rows: "-".join(rows[0]),
)
def test_headers_of_unknown_names(tmp_path, rows, delimiter):
    text = "".join(delimiter.join(row) + "\n" for row in rows)
    graph = read_graph(written(tmp_path, text, "e.csv" if delimiter != "\t" else "e.tsv"))
    assert {frozenset(map(str, edge)) for edge in edges_of(graph)} == {frozenset(row[:2]) for row in rows[1:]}


@pytest.mark.parametrize("delimiter", [",", "\t", " "])
@pytest.mark.parametrize(
    "rows",
    [
        [("anna", "bert"), ("bert", "carla")],
        [("1", "2"), ("3", "4")],
        [("n1", "n2"), ("n3", "n4")],
        [("1", "2", "0.5"), ("3", "4", "0.7")],
        [("a1", "b2", "3"), ("c1", "d2", "4")],
    ],
    ids=str,
)
def test_first_lines_that_are_edges(tmp_path, rows, delimiter):
    text = "".join(delimiter.join(row) + "\n" for row in rows)
    graph = read_graph(
        written(tmp_path, text, "e.txt"), **({"header": False} if rows[0] == ("n1", "n2") and delimiter == "," else {})
    )
    assert {frozenset(map(str, edge)) for edge in edges_of(graph)} == {frozenset(row[:2]) for row in rows}


def test_a_line_that_may_be_either_has_to_be_named(tmp_path):
    path = written(tmp_path, "person,friend\nanna,bert\ncarla,dora\n", "e.csv")
    with pytest.raises(GraphFileError, match=r"line 1: cannot tell whether this line is a header or an edge; pass header=True"):
        read_graph(path)
    assert read_graph(path, header=True).n_edges == 2
    assert read_graph(path, header=False).n_edges == 3


def test_names_in_a_comment(tmp_path):
    snap = "# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n30\t1\n1\t2\n"
    assert read_graph(written(tmp_path, snap, "e.txt")).n_edges == 2
    path = written(tmp_path, "# source target\nsource target\ntarget b\n", "f.txt")
    assert edges_of(read_graph(path)) == {frozenset({"target", "b"})}, "said twice"
    path = written(tmp_path, '# source target\n"source" "target"\ntarget b\n', "g.txt")
    assert edges_of(read_graph(path)) == {frozenset({"source", "target"}), frozenset({"target", "b"})}
    signed = written(tmp_path, "# FromNodeId ToNodeId Sign\n1 2 -1\n2 3 1\n", "h.txt")
    assert read_graph(signed).weights is None


def test_the_index_that_pandas_writes_is_no_column_of_edges(tmp_path):
    path = written(tmp_path, ",person,friend\n0,anna,bert\n1,bert,carla\n", "e.csv")
    assert edges_of(read_graph(path)) == {frozenset({"anna", "bert"}), frozenset({"bert", "carla"})}


IRIS = "5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (IRIS, "has 5 columns, and no names say which hold the edges"),
        ("sepal_length,sepal_width,petal_length,petal_width,species\n" + IRIS, "has 5 columns, and no names"),
        ("1 2 3 4 5 6\n4 5 6 7 8 9\n", "has 6 columns"),
        (
            "x,y\n0.5,1.5\n0.7,2.5\n",
            "'0.5' where an id should be is a number with a fraction; is this a table of measurements.* --points",
        ),
        ("0.5 1.5\n3 4\n", "'0.5' where an id should be is a number with a fraction"),
        ('{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}', "is a JSON file"),
        ('[{"source": 1, "target": 2}]\n', "is a JSON file"),
        ("[[0, 1], [1, 2]]\n", "is a JSON file"),
        ("[1, 2]\n", "is a JSON file"),
        (
            "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            "is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`",
        ),
        ("<!DOCTYPE html>\n<html><head></head></html>\n", "is a web page"),
        ("\n  <html lang='en'>\n", "is a web page"),
        ('<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://x">\n', "is not a complete GraphML file"),
        ('<?xml version="1.0"?>\n<gexf>\n', "is a GEXF file"),
        ('<?xml version="1.0"?>\n<svg>\n', "is an XML file"),
        ("graph [\n  node [ id 0 ]\n  edge [ source 0 target 1 ]\n]\n", "is not a complete GML file"),
        ('Creator "igraph"\nVersion 1\ngraph\n[\n  directed 0\n', "is not a complete GML file"),
        ("# by hand\ngraph [\n", "is not a complete GML file"),
        ("graph G {\n a -- b;\n}\n", "is a Graphviz"),
        ("strict digraph {\n a -> b;\n}\n", "is a Graphviz"),
        ("*Vertices 3\n1\n*Edges\n1 2\n", "is a Pajek file"),
        ("c a comment\np edge 3 2\ne 1 2\n", "is a DIMACS file"),
        ("%PDF-1.4\nrubbish here\n", "is a PDF document"),
        ("1 2\n2 3\n".encode("utf-16"), "UTF-16; save it as UTF-8"),
        (b"\x93NUMPY\x01\x00v\x00{'descr'", "is a NumPy array"),
        (b"\x89HDF\r\n\x1a\nxxx", "is an HDF5 file"),
        (b"SQLite format 3\0xxxx", "is an SQLite database"),
        (b"\x89PNG\r\n\x1a\n", "is a picture"),
        (b"\x80\x04\x95abc", "is a Python pickle"),
    ],
)
@pytest.mark.parametrize("name", ["e.txt", "e.csv", "e.graph"])
def test_what_is_no_graph_is_refused_by_what_it_is(tmp_path, content, message, name):
    if name == "e.graph" and "is " not in message[:3]:
        return  # tables of numbers: METIS has its own rules
    path = written(tmp_path, content, name)
    with pytest.raises(GraphFileError, match=message) as caught:
        read_graph(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mark", [" ", ",", ";", "\t"])
def test_a_line_of_very_many_columns_is_refused_without_splitting_it(tmp_path, mark, monkeypatch):
    path = written(tmp_path, "# a comment\n\n" + mark.join(["1"] * 100_001) + "\n1 2\n", "e.txt")
    monkeypatch.setattr(layout, "_sniff", None)
    with pytest.raises(GraphFileError, match=r"e\.txt, line 3: has more than 100,000 columns; if two of them hold edges, name"):
        read_graph(path)
    monkeypatch.undo()
    chosen = written(tmp_path, mark.join(["1"] * 100_001) + "\n", "f.txt")
    assert read_graph(chosen, columns=(0, 5)).n_nodes == 1


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("name", ["e.txt", "e.store"])
def test_a_link_that_leads_to_itself_is_told(tmp_path, name):
    one, other = tmp_path / name, tmp_path / f"other-{name}"
    one.symlink_to(other)
    other.symlink_to(one)
    with pytest.raises(OSError, match=r"e\.\w+ is a symbolic link that leads back to itself; give the name of a file$"):
        read_graph(one)


def test_a_user_who_knows_better_is_believed(tmp_path):
    assert read_graph(written(tmp_path, "[1 [2\n[2 [3\n", "e.txt"), format="edgelist").n_edges == 2
    assert read_graph(written(tmp_path, "0.5 1.5\n1.5 2.5\n", "f.txt"), ids="text").n_edges == 2
    assert read_graph(written(tmp_path, "1 2 3 4 5 6\n4 5 6 7 8 9\n", "g.txt"), columns=(0, 5)).n_edges == 2


TEXTS = {
    "e.txt": b"# c\nanna bert\nbert carla\n",
    "e.csv": b"source,target,weight\n1,2,0.5\n2,3,1\n",
    "m.mtx": b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n",
}


def packed(content: bytes, how: str) -> bytes:
    import bz2
    import gzip

    return {"": bytes, "gz": gzip.compress, "bz2": bz2.compress}[how](content)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("how", ["", "gz", "bz2"])
@pytest.mark.parametrize("name", TEXTS)
def test_pipes(tmp_path, name, how):
    content = packed(TEXTS[name], how)
    expected = read_graph(written(tmp_path, content, name))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    graph = read_graph(pipe)
    writer.join()
    assert edges_of(graph) == edges_of(expected)


@pytest.mark.parametrize("name", TEXTS)
def test_standard_input_of_the_library(tmp_path, monkeypatch, name):
    expected = read_graph(written(tmp_path, TEXTS[name], name))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXTS[name])))
    assert edges_of(read_graph("-")) == edges_of(expected)


@pytest.mark.parametrize("where", ["-", "/dev/stdin"])
@pytest.mark.parametrize(
    "command", [["info", "{}", "--json", "-q"], ["convert", "{}", "out.csv", "-q"], ["convert", "{}", "o.store", "-q"]]
)
def test_standard_input_of_the_commands(tmp_path, where, command):
    if where != "-" and not os.path.exists(where):
        pytest.skip("the system has no such file")
    # Far more than a pipe holds at once, so that nothing can be read twice.
    text = "".join(f"n{i} n{i + 1}\n" for i in range(100_000)).encode()
    arguments = [part.format(where) for part in command]
    run = [sys.executable, "-m", "corecut", *arguments]
    done = subprocess.run(run, input=text, capture_output=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr.decode()
    if command[0] == "info":
        assert b'"edges": 100000' in done.stdout
    else:
        assert read_graph(tmp_path / command[2]).n_edges == 100_000


def test_formats_that_cannot_come_from_a_pipe(monkeypatch):
    stream = io.BytesIO()
    np.savez(stream, src=np.array([0]), dst=np.array([1]))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stream.getvalue())))
    with pytest.raises(GraphFileError, match="standard input: a NumPy archive cannot be read from a pipe; save it as a file"):
        read_graph("-")


def test_messages_about_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 2\n3\n")))
    with pytest.raises(GraphFileError, match="standard input, line 2: expected 2 columns"):
        read_graph("-")


@pytest.mark.parametrize("block_bytes", [8, 64, 1 << 20])
def test_quotes_across_the_borders_of_blocks(tmp_path, block_bytes):
    from corecut.readers.edgelist import EdgeListReader

    path = written(tmp_path, '"a\nb" c\n# x\nc "d ""\n\n"\n"e" f\n', "e.txt")
    reader = EdgeListReader(path, block_bytes=block_bytes)
    pairs = [(u, v) for block in reader.blocks() for u, v in zip(block[0].tolist(), block[1].tolist(), strict=True)]
    names = reader.names()
    assert [(names[u], names[v]) for u, v in pairs] == [("a\nb", "c"), ("c", 'd "\n\n'), ("e", "f")]
    assert reader.comments == 1
    bad = written(tmp_path, '"a\nb" c\n# x\nc "d ""\n\n"\ne\n', "bad.txt")
    with pytest.raises(GraphFileError, match="line 7: expected 2 columns as in the first line, found 1: 'e'"):
        list(EdgeListReader(bad, block_bytes=block_bytes).blocks())
