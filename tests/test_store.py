"""Stores: what is written is what is read, in pieces or whole; nothing half-made or damaged is taken for a store."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import corecut.edges
from corecut import CoresetSpectralClustering, Graph, GraphStore, read_graph
from corecut._files import GraphFileError, parse_size, show_size
from corecut.readers import convert_graph
from corecut.store import StoreWriter

ARRAYS = ("indptr", "indices", "weights", "degrees", "diagonal", "node_ids")


def same_arrays(first: Graph, second: Graph) -> None:
    for name in ARRAYS:
        a, b = getattr(first, name), getattr(second, name)
        assert (a is None) == (b is None), name
        if a is not None:
            np.testing.assert_array_equal(a, b, err_msg=name)


def edge_file(folder, rng, *, weighted=False, text=False, n=2_000, m=20_000):
    u, v = rng.integers(0, n, m), rng.integers(0, n, m) ** 2 // n
    weight = rng.integers(1, 5, m)
    name = "v" if text else ""
    path = folder / "edges.txt"
    lines = [f"{name}{3 * a} {name}{3 * b}" + (f" {w}" if weighted else "") for a, b, w in zip(u, v, weight, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("memory", ["1kB", "1GB"])
def test_converted_and_read_graphs_are_the_same(tmp_path, monkeypatch, rng, *, weighted, text, memory):
    monkeypatch.setattr(corecut.edges, "_LEAST_ROOM", 20_000)
    path = edge_file(tmp_path, rng, weighted=weighted, text=text)
    store, report = convert_graph(path, tmp_path / "g.store", memory=memory)
    graph = read_graph(path)
    same_arrays(store.graph, graph)
    assert report.edges == (graph.n_entries + np.count_nonzero(graph.diagonal)) // 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["edges.txt", "g.store"]
    same_arrays(read_graph(tmp_path / "g.store"), graph)


def test_a_converted_graph_is_the_sum_of_a_matrix_and_its_transpose(tmp_path, rng):
    path = edge_file(tmp_path, rng, weighted=True)
    edges = np.loadtxt(path)
    u, v = (edges[:, i].astype(int) // 3 for i in (0, 1))
    off = u != v
    half = sp.coo_array((edges[:, 2], (u, v)), shape=(2000, 2000)).tocsr()
    expected = half + sp.coo_array((edges[off, 2], (v[off], u[off])), shape=(2000, 2000)).tocsr()
    store, _ = convert_graph(path, tmp_path / "g.store")
    used = store.graph.node_ids // 3
    difference = store.graph.adjacency - sp.csr_array(expected)[used][:, used]
    assert abs(difference).sum() == 0
    assert store.graph.degrees.sum() == expected.sum()


@pytest.mark.parametrize("ids", [None, np.arange(6) * 10**11, np.array(["ä", "", "b c", "d", "日本", "f"], dtype=object)])
def test_a_graph_is_read_back_as_written(tmp_path, ids):
    matrix = np.diag([2.0, 0, 0, 1, 0, 0]) + np.diag([1.0, 0.5, 0, 3, 1], 1) + np.diag([1.0, 0.5, 0, 3, 1], -1)
    graph = Graph.from_matrix(matrix)
    graph = Graph(graph.indptr, graph.indices, graph.weights, graph.degrees, graph.diagonal, ids)
    store = GraphStore.write(graph, tmp_path / "g.store")
    same_arrays(store.graph, graph)
    store.verify()
    assert (store.n_nodes, store.n_entries) == (6, graph.n_entries)
    assert "6 nodes" in repr(store)
    assert not store.graph.indices.flags.writeable


def test_a_graph_without_edges(tmp_path):
    graph = Graph.from_matrix(sp.csr_array((4, 4)))
    same_arrays(GraphStore.write(graph, tmp_path / "empty").graph, graph)


def test_any_numpy_reader_can_read_it(tmp_path):
    graph = Graph.from_matrix(np.ones((3, 3)))
    GraphStore.write(graph, tmp_path / "g")
    np.testing.assert_array_equal(np.load(tmp_path / "g" / "indices.npy"), graph.indices)
    description = json.loads((tmp_path / "g" / "graph.json").read_text())
    assert description["binsparse"]["shape"] == [3, 3]
    assert description["binsparse"]["number_of_stored_values"] == 9
    assert description["binsparse"]["data_types"]["indices_1"] == "int32"


@pytest.fixture
def store(tmp_path, rng):
    half = sp.random_array((300, 300), density=0.05, rng=rng)
    return GraphStore.write(Graph.from_matrix(half + half.T), tmp_path / "g.store").path


def damage_json(path):
    (path / "graph.json").write_text("{")


def damage_version(path):
    text = (path / "graph.json").read_text()
    (path / "graph.json").write_text(text.replace('"format": 1', '"format": 99'))


def damage_size(path):
    with (path / "indices.npy").open("r+b") as file:
        file.truncate(200)


def damage_header(path):
    with (path / "indptr.npy").open("r+b") as file:
        file.write(b"rubbish!")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_json, "graph.json is damaged"),
        (damage_version, "has format 99, this version of corecut reads format 1"),
        (damage_size, "indices.npy has 200 bytes instead of"),
        (damage_header, "indptr.npy is damaged"),
        (lambda path: (path / "degrees.npy").unlink(), "degrees.npy is missing"),
        (lambda path: (path / "graph.json").unlink(), "is not a graph store: it has no graph.json"),
    ],
)
def test_damaged_stores_are_refused(store, damage, message):
    damage(store)
    with pytest.raises(GraphFileError, match=message):
        _ = GraphStore.open(store).graph


def test_checksums_find_a_changed_byte(store):
    with (store / "indices.npy").open("r+b") as file:
        file.seek(300)
        byte = file.read(1)
        file.seek(300)
        file.write(bytes([byte[0] ^ 1]))
    GraphStore.open(store)
    with pytest.raises(GraphFileError, match="its checksum is wrong"):
        GraphStore.open(store, verify=True)


def test_a_corrupt_index_gives_an_error_and_no_crash(store):
    with (store / "indices.npy").open("r+b") as file:
        file.seek(128)
        file.write(np.int32(10**9).tobytes())
    with pytest.raises(ValueError, match="out of range"):
        GraphStore.open(store).graph.components()


def test_failure_leaves_nothing_behind(tmp_path):
    (tmp_path / "bad.txt").write_text("1 2\n" * 1000 + "oops\n")
    with pytest.raises(GraphFileError, match="line 1001"):
        convert_graph(tmp_path / "bad.txt", tmp_path / "g.store", memory="1kB")
    with pytest.raises(KeyboardInterrupt), StoreWriter.create(tmp_path / "g.store"):
        raise KeyboardInterrupt
    with pytest.raises(RuntimeError, match="before it was finished"), StoreWriter.create(tmp_path / "g.store"):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.txt"]


def test_leftovers_are_removed_and_living_builders_respected(tmp_path, rng):
    path = edge_file(tmp_path, rng)
    leftover = tmp_path / "g.store.partial"
    leftover.mkdir()
    (leftover / "edges.spool").write_bytes(b"x" * 100)
    assert not GraphStore.is_store(leftover)
    with StoreWriter.create(tmp_path / "g.store") as writer:
        assert list(writer.folder.iterdir()) == []
        with pytest.raises(OSError, match="another process is building this store"):
            convert_graph(path, tmp_path / "g.store")
        writer.copy(read_graph(path))
    assert GraphStore.is_store(tmp_path / "g.store")


def test_an_existing_store_is_replaced_only_on_request(tmp_path, rng):
    path = edge_file(tmp_path, rng)
    convert_graph(path, tmp_path / "g.store")
    with pytest.raises(FileExistsError, match="exists already"):
        convert_graph(path, tmp_path / "g.store")
    path.write_text("1 2\n")
    assert convert_graph(path, tmp_path / "g.store", overwrite=True)[0].n_nodes == 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["edges.txt", "g.store"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileExistsError, match=r"exists already; choose another name$"):
        convert_graph(path, tmp_path / "folder", overwrite=True)


def test_a_full_disk_is_found_before_the_work(tmp_path, rng, monkeypatch):
    path = edge_file(tmp_path, rng)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1000})())
    with pytest.raises(OSError, match=r"the store with its temporary files needs about .* where 1 kB are free"):
        convert_graph(path, tmp_path / "g.store")


@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are of Unix")
@pytest.mark.parametrize("name", ["o.txt", "o.npz", "o.parquet", "o.txt.gz", "o.store", "planted.store", "planted.txt"])
def test_a_disk_that_fills_up_is_told_with_the_name_that_was_asked_for(tmp_path, rng, name):
    edge_file(tmp_path, rng, n=15_000, m=15_000)
    make = "generate planted --nodes 20000 --clusters 5 -o" if name.startswith("planted") else "convert edges.txt"
    command = f"ulimit -f 20; {sys.executable} -m corecut {make} {name}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"error: cannot write {name}: File too large; make room or choose another place\n" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["edges.txt"]


def test_a_store_that_a_full_disk_ends_is_named(tmp_path, monkeypatch):
    def full(self, graph):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(StoreWriter, "copy", full)
    with pytest.raises(OSError, match=r"^cannot write .*g\.store: No space left on device; make room or choose another place$"):
        GraphStore.write(Graph.from_matrix(np.ones((3, 3))), tmp_path / "g.store")


def test_progress_is_told(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(corecut.edges, "_LEAST_ROOM", 20_000)
    seen: dict[str, list[tuple[int, int]]] = {}
    path = edge_file(tmp_path, rng)
    convert_graph(
        path, tmp_path / "g", memory="1kB", progress=lambda stage, *how_far: seen.setdefault(stage, []).append(how_far)
    )
    assert list(seen) == ["reading", "counting", "splitting into buckets", "sorting rows"]
    for steps in seen.values():
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        assert steps[-1][0] == steps[-1][1]


@pytest.mark.parametrize("settings", [{"coreset_size": 0.6, "aggregate": False}, {}], ids=["coreset", "aggregated"])
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_from_a_store_are_those_from_memory(tmp_path, weighted, settings):
    matrix, _ = corecut.make_degree_corrected_sbm(6_000, 8, mean_degree=30, random_state=1)
    if weighted:
        matrix.data[:] = 1 + np.add.reduce(np.array(matrix.nonzero()), axis=0) % 3
    graph = Graph.from_matrix(matrix)
    store = GraphStore.write(graph, tmp_path / "g.store")
    models = [CoresetSpectralClustering(8, random_state=3, **settings).fit(g) for g in (graph, store.graph)]
    assert models[0].n_levels_ == models[1].n_levels_ == (0 if settings else 1)
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("512MiB", 2**29), ("1.5g", 15 * 10**8), ("100", 100), (7, 7), ("3 kb", 3000)]
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "many", "-1GB", "1.2.3GB", "5ib", "0"])
def test_sizes_that_are_none(text):
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


def test_sizes_as_people_read_them():
    assert [show_size(size) for size in (0, 999, 1500, 2_000_000, 3.2e9, 5e13)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2 MB",
        "3.2 GB",
        "50 TB",
    ]


# Prints by how many bytes anonymous memory grows at most while WORK runs; the rest of it is loaded before.
PEAK = """
import sys, threading, time
from corecut import CoresetSpectralClustering, GraphStore, make_sbm
from corecut.readers import convert_graph

def anonymous():
    return 1024 * int(open("/proc/self/status").read().split("RssAnon:")[1].split()[0])

def watch():
    global peak
    while watching:
        peak = max(peak, anonymous())
        time.sleep(0.002)

PREPARE
before = peak = anonymous()
watching = True
thread = threading.Thread(target=watch)
thread.start()
WORK
watching = False
thread.join()
print(peak - before)
"""


def peak_of(work: str, *arguments: str, prepare: str = "") -> int:
    """Return the peak of anonymous memory of some lines of Python in a process of its own."""
    script = PEAK.replace("PREPARE", prepare).replace("WORK", work)
    command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="anonymous memory is read from /proc")
def test_memory_stays_within_the_bound(tmp_path, rng):
    path = tmp_path / "edges.parquet"
    u, v = rng.integers(0, 500_000, (2, 20_000_000))  # 160 MB spooled, as much again for the entries
    pq.write_table(pa.table({"u": u, "v": v}), path, row_group_size=1 << 18)
    work = "convert_graph(sys.argv[1], sys.argv[2], memory=sys.argv[3])"
    # Arrow's and the system's own buffers come on top.
    assert peak_of(work, str(path), str(tmp_path / "g.store"), "80MB") < 180_000_000


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="anonymous memory is read from /proc")
@pytest.mark.parametrize(("settings", "aggregated"), [("aggregate=False, coreset_size=6000, refine=False", False), ("", True)])
def test_clustering_keeps_to_the_bound_that_the_documents_state(tmp_path, settings, aggregated):
    matrix, _ = corecut.make_degree_corrected_sbm(400_000, 40, mean_degree=16, random_state=0)
    store = GraphStore.write(Graph.from_matrix(matrix), tmp_path / "g.store")
    n, entries = store.graph.n_nodes, store.graph.n_entries
    bound = 60 * n + 20 * entries if aggregated else 100 * n
    call = f"CoresetSpectralClustering(4, random_state=0, {settings}).fit"
    taken = peak_of(
        f"{call.replace('4', '40', 1)}(GraphStore.open(sys.argv[1]).graph)",
        str(store.path),
        prepare=f"{call}(make_sbm(200, 4, 0.5, 0.01, random_state=0)[0])",
    )
    assert 0.1 * bound < taken < bound + 20e6
