"""The shelf: what lies on disk is what would be in memory, to the bit, and nothing stays there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings, strategies as st

import corecut.pipeline
from corecut import CoresetSpectralClustering, Graph, GraphStore, make_degree_corrected_sbm
from corecut._locks import try_lock, unlock
from corecut.engines import LocalEngine
from corecut.memory import least_bytes
from corecut.shelf import Shelf
from corecut.store import StoreWriter
from corecut.weighted import WeightedGraph

# Nodes without edges are part of what is tested, and a thin coreset is as good as another one here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:the graph is not fully connected", "ignore:a coreset of", "ignore:.* have no neighbour in the coreset"
)


@pytest.fixture(scope="module")
def planted() -> sp.csr_array:
    """Return a graph of many groups, with nodes of no edges and a small component, which are set aside."""
    main = make_degree_corrected_sbm(20_000, 20, mean_degree=12, mixing=0.3, random_state=0)[0]
    pair = sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    return sp.csr_array(sp.block_diag([pair, sp.csr_array((3, 3)), main]))


def least(graph: Any, k: int, jobs: int = 2) -> int:
    return least_bytes(graph.shape[0], graph.nnz, k, n_jobs=jobs)


def same_level(one: WeightedGraph, two: WeightedGraph) -> None:
    # Where all weights are 1 a store does without them.
    for name in ("indptr", "indices", "degrees"):
        np.testing.assert_array_equal(getattr(one.graph, name), getattr(two.graph, name))
    np.testing.assert_array_equal(one.graph.adjacency.data, two.graph.adjacency.data)
    loops = (np.zeros(level.n_nodes) if level.graph.diagonal is None else level.graph.diagonal for level in (one, two))
    np.testing.assert_array_equal(*loops)
    np.testing.assert_array_equal(one.sizes, two.sizes)


@given(problems.adjacency_matrices(), st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_levels_on_disk_are_those_in_memory(tmp_path: Path, A: np.ndarray, data: st.DataObject) -> None:
    level = WeightedGraph.of(Graph.from_matrix(A))
    drawn = data.draw(st.lists(st.integers(0, 3), min_size=len(A), max_size=len(A)))
    groups = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    keep = level.graph.degrees > 0
    with Shelf.opened(0, tmp_path) as shelf:
        same_level(shelf.contract(level, groups, engine=LocalEngine(1)), level.contract(groups))
        if keep.any():
            same_level(shelf.restrict(level, keep, n_jobs=1), level.restrict(keep))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scale", [1.0, 1 / 3])
def test_many_parts_make_the_same_level(tmp_path: Path, planted: sp.csr_array, scale: float) -> None:
    # Thirds are not the same in single precision; some groups of one edge, times three, are.
    matrix = planted.copy()
    matrix.data = np.where(np.arange(matrix.nnz) < matrix.nnz // 2, 3.0, scale)
    graph = Graph.from_matrix(sp.csr_array(matrix.maximum(matrix.T)))
    level = WeightedGraph.of(graph)
    groups = np.arange(graph.n_nodes, dtype=np.int32) // 3
    expected = level.contract(groups)
    assert expected.graph.weights is not None
    assert expected.graph.weights.dtype == (np.float32 if scale == 1 else np.float64)
    with Shelf.opened(0, tmp_path) as shelf:
        found = shelf.contract(level, groups, engine=LocalEngine(2))
        assert len(list(tmp_path.glob("corecut-*.scratch/*.store"))) == 1
        same_level(found, expected)
        assert found.graph.weights is not None
        assert found.graph.weights.dtype == expected.graph.weights.dtype
        assert shelf.spilled == GraphStore.open(found.graph.store).n_bytes  # type: ignore[arg-type]


@pytest.mark.parametrize("jobs", [1, 3])
def test_labels_do_not_depend_on_the_limit(tmp_path: Path, planted: sp.csr_array, jobs: int, capsys: Any) -> None:
    free = CoresetSpectralClustering(20, random_state=0, n_jobs=jobs).fit(planted)
    limited = CoresetSpectralClustering(
        20, random_state=0, n_jobs=jobs, memory_limit=least(planted, 20, jobs), scratch=tmp_path, verbose=1
    ).fit(planted)
    assert "of quotient graphs are on disk" in capsys.readouterr().err
    checks.same_bits(free.labels_, limited.labels_)
    checks.same_bits(free.embedding_, limited.embedding_)
    assert limited.n_levels_ > 0
    assert not list(tmp_path.iterdir())


def test_folders_that_a_run_made_go_when_nothing_else_is_in_them(tmp_path: Path, planted: sp.csr_array) -> None:
    level, groups = WeightedGraph.of(Graph.from_matrix(planted)), np.arange(planted.shape[0], dtype=np.int32) // 3

    def contract(folder: Path, other: str | None = None) -> None:
        with Shelf.opened(0, folder) as shelf:
            shelf.contract(level, groups, engine=LocalEngine(2))
            if other is not None:
                (folder / other).write_text("of somebody else")

    contract(tmp_path / "made" / "for" / "this")
    assert not list(tmp_path.iterdir())
    contract(tmp_path / "made" / "shared", "notes.txt")
    assert (tmp_path / "made" / "shared" / "notes.txt").exists()
    (tmp_path / "empty").mkdir()
    contract(tmp_path / "empty")
    assert (tmp_path / "empty").exists()  # it was there before


@pytest.mark.parametrize("limit", ["8GB", np.int64(8 * 10**9)])
def test_a_generous_limit_leaves_the_disk_alone(planted: sp.csr_array, tmp_path: Path, limit: Any) -> None:
    CoresetSpectralClustering(20, random_state=0, memory_limit=limit, scratch=tmp_path / "unused").fit(planted)
    assert not (tmp_path / "unused").exists()


@pytest.mark.parametrize("options", [{}, {"aggregate": False, "coreset_size": 2000}])
def test_a_limit_that_is_too_low_is_refused_with_one_that_would_do(
    planted: sp.csr_array, options: dict[str, Any], monkeypatch: Any
) -> None:
    monkeypatch.setattr(corecut.pipeline, "gather_levels", None)  # nothing is done before
    with pytest.raises(ValueError, match=r"memory_limit=1MB is too low: .* allow at least") as refusal:
        CoresetSpectralClustering(20, random_state=0, memory_limit="1MB", **options).fit(planted)
    monkeypatch.undo()
    enough = re.search(r"allow at least (\S+)$", str(refusal.value))
    assert enough is not None
    CoresetSpectralClustering(20, random_state=0, memory_limit=enough[1], **options).fit(planted)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"memory_limit": "lots"}, ValueError, "'lots' is not a size; write for example 512MB"),
        ({"memory_limit": 0}, ValueError, "memory_limit must be"),
        ({"memory_limit": 2.5}, TypeError, "memory_limit must be"),
        ({"scratch": "somewhere"}, ValueError, "scratch= needs memory_limit="),
        ({"memory_limit": "1GB", "scratch": ""}, ValueError, "scratch must be the name of a folder, got an empty one"),
        ({"memory_limit": "1GB", "scratch": 3}, TypeError, "scratch must be the name of a folder, got int"),
    ],
)
def test_what_is_no_limit_is_refused(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        CoresetSpectralClustering(3, **given).fit(np.zeros((0, 0)))


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_nothing_is_left_after_an_error(
    planted: sp.csr_array, tmp_path: Path, monkeypatch: Any, error: type[BaseException]
) -> None:
    def fail(*_: object, **__: object) -> None:
        assert list(tmp_path.glob("corecut-*.scratch/*.store"))
        raise error

    monkeypatch.setattr(corecut.pipeline, "_draw_directly", fail)
    with pytest.raises(error):
        CoresetSpectralClustering(20, memory_limit=least(planted, 20), n_jobs=2, scratch=tmp_path).fit(planted)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named(planted: sp.csr_array, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot make a scratch folder in .*file.*choose another place with scratch="):
        CoresetSpectralClustering(20, memory_limit=least(planted, 20), n_jobs=2, scratch=tmp_path / "file").fit(planted)


def test_a_full_disk_is_named(planted: sp.csr_array, tmp_path: Path, monkeypatch: Any) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StoreWriter, "rows", full)
    with pytest.raises(OSError, match=r"cannot write to the scratch folder .*No space left.* another folder with scratch="):
        CoresetSpectralClustering(20, memory_limit=least(planted, 20), n_jobs=2, scratch=tmp_path).fit(planted)
    assert not list(tmp_path.iterdir())


def test_leftovers_of_killed_runs_go_and_those_of_living_ones_stay(planted: sp.csr_array, tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from corecut.shelf import Shelf\n"
        "shelf = Shelf(0, Path(sys.argv[1])); shelf._made(); print('made', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "made\n"
    (alive,) = tmp_path.glob("corecut-*.scratch")
    fit = CoresetSpectralClustering(20, memory_limit=least(planted, 20), n_jobs=2, scratch=tmp_path).fit
    fit(planted)
    assert alive.exists()
    process.kill()
    process.wait()
    process.stdout.close()
    (tmp_path / "corecut-mine.scratch").mkdir()  # not one of ours
    fit(planted)
    assert [path.name for path in tmp_path.iterdir()] == ["corecut-mine.scratch"]


def test_a_lock_that_is_held_elsewhere_is_not_taken(tmp_path: Path) -> None:
    held = tmp_path / ".corecut-0123456789abcdef.scratch.lock"
    handle = try_lock(held)
    assert handle is not None
    with Shelf.opened(0, tmp_path) as shelf:
        shelf._made()
        assert held.exists()
    unlock(handle)
    assert [path.name for path in tmp_path.iterdir()] == [held.name]


# The highest anonymous memory of a fit, looked at every few milliseconds: mapped pages are the system's.
SCRIPT = """
import ctypes, json, sys, threading, time, warnings
from pathlib import Path
from corecut import CoresetSpectralClustering, GraphStore, make_degree_corrected_sbm

warnings.simplefilter("ignore")
store, settings = sys.argv[1], json.loads(sys.argv[2])
CoresetSpectralClustering(3, random_state=0).fit(make_degree_corrected_sbm(5000, 3, random_state=0)[0])

def anonymous():
    return 1024 * int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0])

graph = GraphStore.open(store).graph
ctypes.CDLL(None).malloc_trim(0)  # what the first fit left would be used again, and not be seen
before = peak = anonymous()
running = True

def look():
    global peak
    while running:
        peak = max(peak, anonymous())
        time.sleep(0.01)

watch = threading.Thread(target=look)
watch.start()
CoresetSpectralClustering(random_state=0, **settings).fit(graph)
running = False
watch.join()
print(peak - before)
"""


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer takes memory of its own")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="anonymous memory is read from /proc")
def test_a_fit_keeps_within_its_limit(tmp_path: Path) -> None:
    n, k = 50_000, 20
    matrix = make_degree_corrected_sbm(n, k, mean_degree=60, mixing=0.3, random_state=0, dtype=np.float32)[0]
    GraphStore.write(Graph.from_matrix(matrix), tmp_path / "g.store")
    limit = least_bytes(n, matrix.nnz, k, n_jobs=2)
    used = []
    for options in ({}, {"memory_limit": limit, "scratch": str(tmp_path / "scratch")}):
        settings = json.dumps({"n_clusters": k, "n_jobs": 2, **options})
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path / "g.store"), settings], capture_output=True, text=True, check=True
        )
        used.append(int(done.stdout))
    assert used[1] <= limit
    assert used[1] < 0.8 * used[0]
    assert not (tmp_path / "scratch").exists()  # it was made for this


def test_an_interrupted_command_leaves_nothing(tmp_path: Path, planted: sp.csr_array) -> None:
    GraphStore.write(Graph.from_matrix(planted), tmp_path / "g.store")
    script = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import corecut.pipeline
def interrupt(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
corecut.pipeline._draw_directly = interrupt
from corecut.cli import main
main()
"""
    scratch = tmp_path / "scratch"
    options = ["-k", 20, "-j", 2, "-o", tmp_path / "labels.csv", "--memory", least(planted, 20), "--scratch", scratch]
    done = subprocess.run(
        [sys.executable, "-c", script, "cluster", *map(str, [tmp_path / "g.store", *options])],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 128 + signal.SIGINT, done.stderr
    assert not scratch.exists()
    assert not (tmp_path / "labels.csv").exists()
