"""Whatever a file holds: a graph comes out, or one sentence in a ValueError or OSError that names the file."""

from __future__ import annotations

import gzip
import io
import json
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from corecut import Graph, GraphStore, read_graph, write_graph
from corecut._files import GraphFileError

BOM = b"\xef\xbb\xbf"
NAMES = ["g.txt", "g.csv", "g.tsv", "g.mtx", "g.graph", "g.npz", "g.parquet", "g.txt.gz", "g.csv.bz2", "g.mtx.zst"]
TEXT = ["g.txt", "g.csv", "g.tsv", "g.mtx", "g.graph"]


def valid(name: str, *, ids: bool, folder) -> bytes:
    half = sp.random_array((12, 12), density=0.3, rng=np.random.default_rng(3))
    matrix = sp.csr_array(half + half.T)
    matrix.setdiag(0)
    graph = Graph.from_matrix(matrix)
    if ids and not name.startswith(("g.mtx", "g.graph")):
        own = np.array([f'n"{i}\n' if i % 2 else f"n{i}" for i in range(12)], dtype=object)
        graph = Graph(graph.indptr, graph.indices, graph.weights, graph.degrees, graph.diagonal, own)
    write_graph(graph, folder / name, overwrite=True)
    return (folder / name).read_bytes()


def survives(path) -> None:
    """Read a file; only clear errors may come of it."""
    text = ""
    try:
        graph = read_graph(path)
    except (ValueError, OSError) as error:
        text = str(error)
    if text:
        assert str(path) in text
        assert "\n" not in text
        assert len(text) < 600
        assert not text.startswith("[Errno")
    else:
        assert np.isfinite(graph.degrees).all()
        assert (graph.degrees >= 0).all()
        assert graph.indices.size == 0 or graph.indices.max() < graph.n_nodes


def mutated(content: bytes, kind: str, place: float, junk: bytes) -> bytes:
    at = int(place * len(content))
    return {
        "cut": content[:at],
        "flip": content[:at] + bytes([content[at % len(content)] ^ (junk[0] if junk and junk[0] else 1)]) + content[at + 1 :],
        "insert": content[:at] + junk + content[at:],
        "replace": content[:at] + junk + content[at + len(junk) :],
        "bom": BOM + content,
        "carriage returns": content.replace(b"\n", b"\r"),
        "huge field": content[:at] + b"9" * 200_000 + content[at:],
        "huge name": content[:at] + b"x" * 200_000 + content[at:],
        "twice": content + content,
        "lines gone": b"".join(content.splitlines(keepends=True)[:: 2 + len(junk)]),
    }[kind]


KINDS = ["cut", "flip", "insert", "replace", "bom", "carriage returns", "huge field", "huge name", "twice", "lines gone"]
JUNK = st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from(
        [b"\n", b"\r", b'"', b",", b"\t", b" -1 ", b" nan ", b" 1e999 ", b" 99999999999999999999 ", b"\0", b"\xff\xfe"]
    ),
)


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("name", NAMES)
@given(kind=st.sampled_from(KINDS), place=st.floats(0, 1), junk=JUNK)
@settings(max_examples=120)
def test_no_file_breaks_a_reader(tmp_path_factory, *, name, ids, kind, place, junk):
    folder = tmp_path_factory.mktemp("malformed")
    path = folder / name
    path.write_bytes(mutated(valid(name, ids=ids, folder=folder), kind, place, junk))
    survives(path)
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", TEXT)
@given(
    content=st.one_of(st.binary(max_size=200), st.text(st.sampled_from('ab01 ,;|\t\n\r"#%.-e'), max_size=60).map(str.encode))
)
@settings(max_examples=200)
def test_no_bytes_break_a_text_reader(tmp_path_factory, name, content):
    path = tmp_path_factory.mktemp("malformed") / name
    path.write_bytes(content)
    survives(path)


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("ids", [False, True])
def test_a_byte_order_mark_is_no_matter(tmp_path, name, ids):
    content = valid(name, ids=ids, folder=tmp_path)
    expected = read_graph(tmp_path / name).adjacency
    (tmp_path / name).write_bytes(BOM + content)
    assert abs(read_graph(tmp_path / name).adjacency - expected).sum() == 0


@pytest.mark.parametrize("name", ["g.txt", "g.mtx", "g.graph"])
def test_line_ends_of_old_macs(tmp_path, name):
    content = valid(name, ids=False, folder=tmp_path)
    expected = read_graph(tmp_path / name).adjacency
    (tmp_path / name).write_bytes(content.replace(b"\n", b"\r"))
    assert abs(read_graph(tmp_path / name).adjacency - expected).sum() == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("e.csv", b"a,b\n" + b"x" * 200_000 + b",c\nc,a\nb,a\n", None),
        ("e.txt", b"1 2\n1 2\r3 4\n", "line 2: a carriage return stands inside the line"),
        ("e.csv", b'source,target\na,"b\nc,d\n', "line 2: a quote is opened here and not closed"),
        ("e.csv", b'source,target\na,"b"c\nc,d\n', "line 2: behind a closing quote comes more text"),
        ("m.mtx", b"%%MatrixMarket matrix coordinate real general\n3 3 100000000000\n1 2 1\n", "line 2: Truncated file"),
        ("m.mtx", b"%%MatrixMarket matrix array real general\n90000 90000\n1\n", "line 2: Truncated file"),
        ("m.mtx", b"%%MatrixMarket matrix coordinate real general\n3 3 " + b"9" * 5000 + b"\n1 2 1\n", "line 2: the sizes"),
        ("g.graph", b"9" * 5000 + b" 1\n", "line 1: a METIS file begins with"),
        ("g.graph", b"2 1\n2\n" + b"1" * 5000 + b"\n", "line 3: .* is not a node"),
        ("e.txt", b"1 2\n3 " + b"9" * 5000 + b"\n", "line 2: the target id does not fit in 64 bits"),
    ],
)
def test_files_that_used_to_break_the_readers(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    if message is None:
        assert read_graph(path).n_nodes == 4
        return
    with pytest.raises(GraphFileError, match=message):
        read_graph(path)


@pytest.mark.parametrize("kind", [np.uint64, ">u8", ">i4", np.int8])
def test_ids_of_archives_keep_their_values(tmp_path, kind):
    np.savez(tmp_path / "e.npz", src=np.array([5, 7], dtype=kind), dst=np.array([7, 100], dtype=kind))
    assert read_graph(tmp_path / "e.npz").node_ids.tolist() == [5, 7, 100]


def test_ids_beyond_63_bits_are_refused(tmp_path):
    np.savez(tmp_path / "e.npz", src=np.array([5, 2**63], dtype=np.uint64), dst=np.array([7, 8], dtype=np.uint64))
    with pytest.raises(GraphFileError, match="the id 9223372036854775808 in 'src' does not fit"):
        read_graph(tmp_path / "e.npz")


def archive(**arrays: object) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


CSR = {
    "format": "csr",
    "indptr": np.array([0, 1, 2]),
    "indices": np.array([1, 0]),
    "data": np.ones(2),
    "shape": np.array([2, 2]),
}


@pytest.mark.parametrize(
    "change",
    [
        {"format": "nonsense"},
        {"format": np.arange(3)},
        {"format": "dia"},
        {"shape": np.array([2.5, 2])},
        {"shape": np.array([[2, 2]])},
        {"shape": np.array([2, 3])},
        {"shape": np.array([-2, -2])},
        {"indices": np.array([1, 7])},
        {"indices": np.array([1, -1])},
        {"indices": np.array([0.5, 1])},
        {"indptr": np.array([0, 5, 2])},
        {"indptr": np.array([0, 1])},
        {"indptr": np.array([0, 1, 10**12])},
        {"data": np.array([1, np.nan])},
        {"data": np.array([1, -1.0])},
        {"data": np.array(["a", "b"])},
        {"data": np.array([1j, 1j])},
        {"data": np.ones((2, 2))},
        {"node_ids": np.arange(3)},
        {"node_ids": np.array([0.5, 1])},
        {"node_ids": np.zeros(2, np.uint8), "node_ids_offsets": np.array([0, 9, 2])},
        {"node_ids": np.array([255, 255], np.uint8), "node_ids_offsets": np.array([0, 1, 2])},
    ],
)
def test_archives_of_damaged_matrices(tmp_path, change):
    path = tmp_path / "g.npz"
    path.write_bytes(archive(**(CSR | change)))
    with pytest.raises((ValueError, OSError), match=r"g\.npz"):
        read_graph(path)


@pytest.fixture
def store(tmp_path):
    half = sp.random_array((40, 40), density=0.1, rng=np.random.default_rng(5))
    graph = Graph.from_matrix(half + half.T)
    ids = np.array([f"n{i}" for i in range(40)], dtype=object)
    graph = Graph(graph.indptr, graph.indices, graph.weights, graph.degrees, graph.diagonal, ids)
    return GraphStore.write(graph, tmp_path / "g.store").path


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 2**70), st.floats(), st.sampled_from(["", "x", "CSR", "../x"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "bytes", "shape", "files"]), inner)
    ),
    max_leaves=5,
)
PLACES = [
    (),
    ("corecut",),
    ("corecut", "format"),
    ("corecut", "files"),
    ("corecut", "files", "indices.npy"),
    ("corecut", "files", "indices.npy", "bytes"),
    ("corecut", "files", "indices.npy", "crc32"),
    ("corecut", "files", "../../etc/x.npy"),
    ("binsparse",),
    ("binsparse", "shape"),
    ("binsparse", "number_of_stored_values"),
]


@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_descriptions_of_any_shape(store, place):
    original = json.loads((store / "graph.json").read_text())

    @given(value=JSON)
    def check(value):
        changed = json.loads(json.dumps(original))
        where = changed
        for key in place[:-1]:
            where = where[key]
        if place:
            where[place[-1]] = value
        else:
            changed = value
        (store / "graph.json").write_text(json.dumps(changed))
        refused = ""
        try:
            GraphStore.open(store, verify=True)
        except GraphFileError as error:
            refused = str(error)
        assert str(store) in refused if refused else changed == original or place[-1:] == ("format",)
        assert "\n" not in refused
        (store / "graph.json").write_text(json.dumps(original))

    check()


@pytest.mark.parametrize("text", ["", "null", "[" * 100_000, "{" * 10, '{"corecut": {"format": 1', "\xff", "NaN", "1" * 5000])
def test_descriptions_that_are_no_json(store, text):
    (store / "graph.json").write_text(text, encoding="latin-1")
    with pytest.raises(GraphFileError, match=r"graph\.json"):
        GraphStore.open(store)


def rewritten(store, name: str, array: np.ndarray) -> None:
    """Put another array in place of a store's, with the sizes to match."""
    np.save(store / name, array)
    description = json.loads((store / "graph.json").read_text())
    description["corecut"]["files"][name]["bytes"] = (store / name).stat().st_size
    (store / "graph.json").write_text(json.dumps(description))


@pytest.mark.parametrize("name", ["degrees.npy", "diagonal.npy"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_degrees_that_are_none(tmp_path, name, value):
    store = GraphStore.write(Graph.from_matrix(np.ones((3, 3))), tmp_path / "g.store").path
    rewritten(store, name, np.array([1, value, 1]))
    with pytest.raises(GraphFileError, match=f"{name} is damaged: it holds values that are negative or not finite"):
        read_graph(store)


@pytest.mark.parametrize("name", ["indptr", "indices", "data", "degrees", "node_ids", "node_ids_offsets"])
@pytest.mark.parametrize("kind", [">i8", ">f8", "f2", "i2", "u8", "U3", "c16", "?", "O", "M8[s]", "i4,i4"])
def test_arrays_of_other_types(store, name, kind):
    array = np.load(store / f"{name}.npy")
    dtype = np.dtype(kind)
    other = np.zeros(array.size, dtype) if dtype.names or dtype.kind in "OMU" else array.astype(dtype)
    np.save(store / f"{name}.npy", other, allow_pickle=True)
    description = json.loads((store / "graph.json").read_text())
    description["corecut"]["files"][f"{name}.npy"]["bytes"] = (store / f"{name}.npy").stat().st_size
    (store / "graph.json").write_text(json.dumps(description))
    with pytest.raises(GraphFileError, match=f"{name}.npy"):
        read_graph(store)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("indptr.npy", np.arange(41)),
        ("indptr.npy", np.zeros((41, 1), np.int64)),
        ("node_ids_offsets.npy", np.arange(41)[::-1].copy()),
        ("node_ids.npy", np.full(110, 255, np.uint8)),
    ],
)
def test_arrays_that_do_not_fit_together(store, name, array):
    rewritten(store, name, array)
    with pytest.raises(GraphFileError, match=r"\.npy"):
        read_graph(store)


@given(at=st.integers(0, 127), byte=st.integers(0, 255))
def test_headers_with_a_changed_byte(tmp_path_factory, at, byte):
    store = GraphStore.write(Graph.from_matrix(np.ones((3, 3))), tmp_path_factory.mktemp("header") / "g.store").path
    content = bytearray((store / "indices.npy").read_bytes())
    content[at] = byte
    (store / "indices.npy").write_bytes(content)
    refused = ""
    try:
        graph = read_graph(store)
    except GraphFileError as error:
        refused = str(error)
    assert "indices.npy" in refused if refused else graph.indices.tolist() == [0, 1, 2] * 3


def test_verification_looks_at_the_graph_itself(tmp_path):
    """A store with the right checksums and the degrees of another graph."""
    store = GraphStore.write(Graph.from_matrix(np.ones((3, 3))), tmp_path / "g.store").path
    GraphStore.open(store, verify=True)
    other = GraphStore.write(Graph.from_matrix(2 * np.ones((3, 3))), tmp_path / "h.store").path
    shutil.copy(other / "degrees.npy", store / "degrees.npy")
    description, from_other = (json.loads((path / "graph.json").read_text()) for path in (store, other))
    description["corecut"]["files"]["degrees.npy"] = from_other["corecut"]["files"]["degrees.npy"]
    (store / "graph.json").write_text(json.dumps(description))
    GraphStore.open(store)
    with pytest.raises(GraphFileError, match="degrees of another graph"):
        GraphStore.open(store, verify=True)


def test_compressed_rubbish(tmp_path):
    path = tmp_path / "e.txt.gz"
    path.write_bytes(gzip.compress(b"1 2\n" * 99) + b"rubbish")
    with pytest.raises(GraphFileError, match="the compressed data are damaged"):
        read_graph(path)
