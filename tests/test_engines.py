"""Engines: the labels of the local one on a real cluster of processes, whatever is killed, and what is said when it fails."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp

from corecut import (
    CoresetSpectralClustering,
    DaskEngine,
    Graph,
    GraphStore,
    KernelView,
    _core,
    make_degree_corrected_sbm,
    make_sbm,
)
from corecut._files import GraphFileError
from corecut.commands.machines import Machines
from corecut.coreset import importance_sample
from corecut.coreset_graphs import graph_of_coreset
from corecut.edges import EdgeRules
from corecut.engines import LocalEngine, dask as dask_engine, scratch as scratch_files, session, tables, tasks
from corecut.engines.cluster import Cluster, connect
from corecut.engines.scratch import EngineError, Scratch, ScratchError, load, save, unpacked
from corecut.engines.session import divided
from corecut.labelling import label_by
from corecut.readers.dispatch import convert_graph
from corecut.readers.layout import EdgeOptions
from corecut.sampling import draw_seeds

distributed = pytest.importorskip("distributed")

K = 6


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=60
    ) as made:
        yield made


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as made:
        try:
            made.wait_for_workers(2, timeout=30)
        except TimeoutError:  # a nanny whose worker was killed while it started does not start another
            cluster.scale(0)
            cluster.scale(2)
            made.wait_for_workers(2, timeout=60)
        yield made


def planted(weighted: bool = False) -> Graph:
    matrix, _ = make_degree_corrected_sbm(6000, K, mean_degree=10, random_state=0)
    if weighted:
        upper = sp.triu(matrix, 1).tocsr()
        upper.data = np.random.default_rng(1).random(upper.nnz) + 0.1
        matrix = upper + upper.T
    return Graph.from_matrix(matrix)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Graph]:
    """Return planted graphs in stores, by whether they have weights."""
    folder = tmp_path_factory.mktemp("stores")
    return {weighted: GraphStore.write(planted(weighted), folder / f"{weighted}.store").graph for weighted in (False, True)}


@pytest.fixture(scope="module")
def expected(stored: dict[bool, Graph]) -> dict[bool, Any]:
    return {
        weighted: CoresetSpectralClustering(K, aggregate=True, random_state=0).fit(graph) for weighted, graph in stored.items()
    }


def fitted(client: Any, graph: Any, **options: Any) -> Any:
    engine = DaskEngine(client, **{"least_entries": 5000, "block_entries": 20_000} | options)
    return CoresetSpectralClustering(K, aggregate=True, random_state=0, engine=engine).fit(graph)


def left_behind(graph: Graph) -> list[str]:
    assert graph.store is not None
    return [path.name for path in graph.store.parent.iterdir() if path.suffix != ".store"]


def is_same(model: Any, other: Any) -> bool:
    return (
        np.array_equal(model.labels_, other.labels_)
        and np.array_equal(model.confidence_, other.confidence_)
        and np.array_equal(model.conductances_, other.conductances_)
        and model.n_levels_ == other.n_levels_ > 0
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("block_entries", [7_000, 10**9])
def test_labels_are_those_of_the_local_engine(
    client: Any, stored: dict[bool, Graph], expected: dict[bool, Any], weighted: bool, block_entries: int
) -> None:
    assert is_same(fitted(client, stored[weighted], block_entries=block_entries), expected[weighted])
    assert left_behind(stored[weighted]) == []


def test_labels_do_not_depend_on_the_number_of_workers(stored: dict[bool, Graph], expected: dict[bool, Any]) -> None:
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=60) as made,
        distributed.Client(made) as client,
    ):
        for workers in (1, 2, 3, 8):
            made.scale(workers)
            client.wait_for_workers(workers, timeout=120)
            assert len(client.nthreads()) == workers
            assert is_same(fitted(client, stored[False], block_entries=None), expected[False])


def test_a_client_is_an_engine_and_a_matrix_is_put_into_a_store(client: Any) -> None:
    graph, _ = problems.planted_graph(np.random.default_rng(0), [60, 50, 40], degree=8.0)
    local = CoresetSpectralClustering(3, random_state=0).fit(graph)
    model = CoresetSpectralClustering(3, random_state=0, engine=client).fit(graph)
    assert np.array_equal(model.labels_, local.labels_)
    assert is_same(fitted(client, planted()), CoresetSpectralClustering(K, aggregate=True, random_state=0).fit(planted()))


def test_parts_isolated_nodes_and_loops(client: Any, tmp_path: Path) -> None:
    one, _ = make_degree_corrected_sbm(3000, 3, mean_degree=9, random_state=1)
    two, _ = make_degree_corrected_sbm(500, 2, mean_degree=9, random_state=2)
    loops = sp.diags_array((np.arange(500) % 3 == 0).astype(float))
    matrix = sp.block_diag([one, sp.csr_array((40, 40)), two + loops], format="csr")
    graph = GraphStore.write(Graph.from_matrix(matrix), tmp_path / "parts.store").graph
    engine = DaskEngine(client, least_entries=100, block_entries=3000)
    local = LocalEngine()
    with engine.session(graph, {"random_state": 0}):
        ours, theirs = engine.components(graph), local.components(graph)
        assert ours[0] == theirs[0]
        assert np.array_equal(ours[1], theirs[1])
        cap = float(graph.degrees.sum()) / 60
        groups = engine.group_nodes(graph, graph.degrees, cap, max_passes=5)
        assert np.array_equal(groups, local.group_nodes(graph, graph.degrees, cap, max_passes=5))
        sizes = np.random.default_rng(3).integers(1, 4, graph.n_nodes).astype(float)
        by_size = engine.group_nodes(graph, sizes, 90.0, max_passes=5)
        assert np.array_equal(by_size, local.group_nodes(graph, sizes, 90.0, max_passes=5))
        assert not np.array_equal(by_size, groups)
        count = int(groups.max()) + 1
        for mine, other in zip(engine.contract(graph, groups, count), local.contract(graph, groups, count), strict=True):
            assert np.array_equal(mine, other)
            assert mine.dtype.kind == other.dtype.kind  # weights here are in single precision where that is exact
    assert [path.name for path in tmp_path.iterdir()] == ["parts.store"]


@pytest.mark.parametrize(
    "settings",
    [
        {"aggregate": False, "coreset_size": 1200, "sampler": "rounds"},
        {"aggregate": False, "coreset_size": 1200, "n_init": 2},
        {"aggregate": True, "max_cluster_size": 1.1},
        {"aggregate": True, "refine": False},
    ],
    ids=str,
)
def test_other_ways_have_the_same_labels(client: Any, settings: dict[str, Any]) -> None:
    graph = Graph.from_matrix(make_sbm(500, K, 0.15, 0.005, random_state=0)[0])
    local = CoresetSpectralClustering(K, random_state=0, **settings).fit(graph)
    model = CoresetSpectralClustering(K, random_state=0, engine=DaskEngine(client, least_entries=5000), **settings)
    assert np.array_equal(model.fit(graph).labels_, local.labels_)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Return a graph of three blocks of rows and a bit, with loops, weights that add up inexactly, and nodes without edges."""
    rng = np.random.default_rng(0)
    n = 3 * _core.ROWS_OF_A_MASS + 700
    source = rng.integers(0, n, 3 * n)
    target = (source + rng.integers(0, n // K, source.size)) // (n // K) * (n // K) + rng.integers(0, n // K, source.size)
    inside = (target < n) & (source % 50 > 0) & (target % 50 > 0)
    upper = sp.csr_array((rng.random(inside.sum()) + 0.1, (source[inside], target[inside])), shape=(n, n))
    place = tmp_path_factory.mktemp("dense") / "dense.store"
    return GraphStore.write(Graph.from_matrix(upper + upper.T), place).graph


@pytest.mark.parametrize("importance", ["cluster", "seeds"])
def test_seeds_coreset_and_labels_are_those_of_threads(client: Any, dense: Graph, importance: Any) -> None:
    engine, local = DaskEngine(client, least_entries=1000, block_entries=200_000), LocalEngine()
    kernel = KernelView.from_graph(dense)
    with engine.session(dense, {"random_state": 0}):
        found: dict[Any, Any] = {}
        for one in (engine, local):
            seeds = draw_seeds(kernel, 40, method="rounds", random_state=0, engine=one)
            coreset = importance_sample(kernel, seeds, 3000, importance=importance, random_state=1, engine=one)
            small = graph_of_coreset(kernel, coreset, degrees="rows", engine=one)
            labels = (coreset.indices % 7).astype(np.int32)
            found[one] = seeds, coreset, small, label_by(kernel, coreset, labels, 8, candidates="all", engine=one)
            regular = kernel.regularized(0.3, np.ones(dense.n_nodes))
            found[one] += (label_by(regular, coreset, labels, 8, candidates="touched", engine=one),)
        for mine, other in zip(found[engine], found[local], strict=True):
            checks.same_bits(mine, other)
    assert found[local][0].points.size == 42
    assert left_behind(dense) == []


def by_coreset(graph: Graph, client: Any = None, **options: Any) -> Any:
    """Return the labels of the way through a coreset. It does not suit this graph, and says so."""
    engine = None if client is None else DaskEngine(client, **{"least_entries": 1000, "block_entries": 200_000} | options)
    settings = {"aggregate": False, "coreset_size": 2000, "sampler": "rounds", "refine": False, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return CoresetSpectralClustering(K, engine=engine, **settings).fit_predict(graph)


@pytest.fixture(scope="module")
def expected_by_coreset(dense: Graph) -> Any:
    return by_coreset(dense)


def test_the_way_through_a_coreset_is_resumed(
    client: Any, dense: Graph, expected_by_coreset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, stages = Cluster.map, []

    def mapped(self: Any, stage: str, *args: Any) -> Any:
        stages.append(stage)
        if stage == "labelling" and "seeds" in stages:
            raise KeyboardInterrupt
        return run(self, stage, *args)

    monkeypatch.setattr(Cluster, "map", mapped)
    with pytest.raises(KeyboardInterrupt):
        by_coreset(dense, client)
    assert set(stages) == {"components", "seeds", "coreset", "labelling"}
    stages.clear()
    assert np.array_equal(by_coreset(dense, client, resume=True), expected_by_coreset)
    assert set(stages) == {"labelling", "metrics"}
    assert left_behind(dense) == []


@pytest.mark.parametrize("stage", ["seeds", "coreset", "labelling"])
def test_a_worker_that_dies_on_the_way_through_a_coreset(
    client: Any, dense: Graph, expected_by_coreset: Any, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = kill_one(client, stage, monkeypatch)
    assert np.array_equal(by_coreset(dense, client), expected_by_coreset)
    assert len(killed) == 1
    assert left_behind(dense) == []


def test_tasks_go_on_when_all_workers_have_died(client: Any) -> None:
    def slowly(block: tuple[int, int]) -> int:
        time.sleep(2)
        return block[0]

    processes = client.run(os.getpid)
    submit, sent = client.submit, []

    def submitting(*args: Any, **options: Any) -> Any:
        sent.append(submit(*args, **options))
        if len(sent) == 2:
            for process in processes.values():
                os.kill(process, signal.SIGKILL)
        return sent[-1]

    client.submit = submitting
    assert Cluster(client, 0).map("metrics", slowly, (), [(0, 64), (64, 128)]) == [0, 64]


def kill_one(client: Any, stage: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Kill the worker that is given the first task of a stage. Returns a list that will have its number."""
    killed: list[int] = []
    submit = client.submit

    def submitting(function: Any, *args: Any, key: str, **options: Any) -> Any:
        future = submit(function, *args, key=key, **options)
        if key.startswith(stage) and not killed:
            (worker,) = options["workers"]
            killed.append(client.run(os.getpid, workers=[worker])[worker])
            os.kill(killed[0], signal.SIGKILL)
        return future

    monkeypatch.setattr(client, "submit", submitting)
    return killed


@pytest.mark.parametrize("stage", ["components", "aggregation", "contraction", "refinement", "metrics"])
def test_a_worker_that_dies_costs_a_retry(
    client: Any, stored: dict[bool, Graph], expected: dict[bool, Any], stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = kill_one(client, stage, monkeypatch)
    assert is_same(fitted(client, stored[False]), expected[False])
    assert len(killed) == 1
    assert left_behind(stored[False]) == []


@pytest.mark.parametrize("call", [3, 15, 30])
def test_a_killed_run_is_resumed_from_its_last_round(
    client: Any, stored: dict[bool, Graph], expected: dict[bool, Any], call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {"first": 0, "second": 0}
    run = Cluster.map

    def counted(name: str, end: int | None) -> Any:
        def mapped(self: Any, *args: Any) -> Any:
            if calls[name] == end:
                raise KeyboardInterrupt
            calls[name] += 1
            return run(self, *args)

        return mapped

    monkeypatch.setattr(Cluster, "map", counted("first", call))
    with pytest.raises(KeyboardInterrupt):
        fitted(client, stored[True])
    assert left_behind(stored[True]) != []
    monkeypatch.setattr(Cluster, "map", counted("second", None))
    # Another seed is another run.
    with pytest.raises(EngineError, match="holds the checkpoints of another run"):
        CoresetSpectralClustering(K, aggregate=True, random_state=1, engine=DaskEngine(client, resume=True)).fit(stored[True])
    assert is_same(fitted(client, stored[True], resume=True), expected[True])
    assert left_behind(stored[True]) == []
    calls_of_a_whole_run = calls["first"] + calls["second"]
    calls["second"] = 0
    assert is_same(fitted(client, stored[True], resume=True), expected[True])  # nothing to resume: from the beginning
    assert calls_of_a_whole_run <= calls["second"] + 2  # at most a stage of two calls was begun again


def test_what_workers_keep_of_a_killed_run_is_not_taken_for_another_ones(
    client: Any, stored: dict[bool, Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, calls = Cluster.map, 0

    def mapped(self: Any, *args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise KeyboardInterrupt
        return run(self, *args)

    monkeypatch.setattr(Cluster, "map", mapped)
    with pytest.raises(KeyboardInterrupt):
        fitted(client, stored[False], scratch=tmp_path / "scratch")
    # Another bound on volumes, and so other moves, in the same folders.
    settings = {"aggregate": True, "random_state": 0}
    engine = DaskEngine(client, scratch=tmp_path / "scratch", least_entries=5000, block_entries=20_000)
    model = CoresetSpectralClustering(3 * K, engine=engine, **settings).fit(stored[False])
    assert is_same(model, CoresetSpectralClustering(3 * K, **settings).fit(stored[False]))


def test_a_damaged_checkpoint_is_refused(
    client: Any, stored: dict[bool, Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DaskEngine, "margins", lambda *args: pytest.fail("stop"))
    with pytest.raises(pytest.fail.Exception):
        fitted(client, stored[False], scratch=tmp_path / "scratch")
    for name in ("002-aggregation/result.npz", "003-contraction/level/data.npy"):
        file = tmp_path / "scratch" / "corecut-dask" / name
        good = file.read_bytes()
        file.write_bytes(good[:2000] + bytes([good[2000] ^ 1]) + good[2001:])
        with pytest.raises(EngineError, match="is damaged"):
            fitted(client, stored[False], scratch=tmp_path / "scratch", resume=True)
        file.write_bytes(good)
    with pytest.raises(pytest.fail.Exception):
        fitted(client, stored[False], scratch=tmp_path / "scratch", resume=True)


def test_degrees_of_a_quotient_are_not_taken_from_a_killed_run(tmp_path: Path) -> None:
    graph, level = planted(), tmp_path / "level"
    level.mkdir()
    (level / "degrees.npy").write_bytes(b"damaged")
    run = session.Session(tmp_path)
    run.know(graph.indices, level)
    assert run.place(graph).folder == str(level)
    assert np.array_equal(np.load(level / "degrees.npy"), graph.degrees)


# Functions inside of tests travel to the workers whole: these do not know the module of the tests.


def test_a_task_that_fails_again_and_again_names_its_block(client: Any) -> None:
    def fails(begin: int, block: tuple[int, int]) -> float:
        return 1 / (block[0] - begin)

    with pytest.raises(EngineError, match=r"aggregation of rows 64 to 127 failed again and again \(ZeroDivisionError"):
        Cluster(client, 1).map("aggregation", fails, (64,), [(0, 64), (64, 128)])


def test_a_task_whose_workers_all_die_names_its_block(cluster: Any, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(block: tuple[int, int]) -> None:
        if block[0]:
            os._exit(1)

    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with pytest.raises(EngineError, match=r"refinement of rows 64 to 127 failed: each worker that tried it died"):
        Cluster(client, 0).map("refinement", dies, (), [(0, 64), (64, 128)])


def test_a_lost_scheduler_is_told_and_the_run_resumed(
    client: Any, stored: dict[bool, Graph], expected: dict[bool, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, calls = Cluster.map, 0

    def mapped(self: Any, *args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 12:
            other.close()
        return run(self, *args)

    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0", silence_logs=60) as other,
        distributed.Client(other) as lost,
    ):
        monkeypatch.setattr(Cluster, "map", mapped)
        with pytest.raises(EngineError, match=r"the Dask scheduler is gone .* go on with resume"):
            fitted(lost, stored[False])
    monkeypatch.setattr(Cluster, "map", run)
    assert is_same(fitted(client, stored[False], resume=True), expected[False])
    assert left_behind(stored[False]) == []


def test_dask_is_silent_of_what_the_command_tells(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = logging.StreamHandler()  # as Dask has one where nobody looks at its words
    monkeypatch.setattr(logging.getLogger("distributed"), "handlers", [handler])
    with connect(cluster.scheduler_address) as client:
        assert len(client.nthreads()) > 0
        assert handler.level >= logging.CRITICAL
    assert handler.level == logging.NOTSET


def test_a_wrong_address_is_told() -> None:
    with (
        pytest.raises(EngineError, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:1' .* local:4"),
        connect("tcp://127.0.0.1:1", timeout=0.5),
    ):
        pass
    with pytest.raises(EngineError, match="no Dask scheduler answers at 'nonsense'"), connect("nonsense", timeout=0.5):
        pass


@pytest.mark.parametrize("address", ["local:0", "local:abc", "LOCAL:2"])
def test_a_wrong_number_of_processes_is_told_at_once(address: str) -> None:
    with pytest.raises(EngineError, match=f"'{address}' names no number of worker processes"), connect(address):
        pass


def test_an_address_where_something_else_listens_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with (
            pytest.raises(EngineError, match=rf"no Dask scheduler answers at 'tcp://127\.0\.0\.1:{port}' \(something else"),
            connect(f"tcp://127.0.0.1:{port}", timeout=0.5),
        ):
            pass


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_processes_of_a_run_do_not_hear_ctrl_c() -> None:
    # A terminal sends it to all of them, and each would print where it was.
    with connect("local:1") as client:
        processes = client.run(os.getpid)
        for process in processes.values():
            os.kill(process, signal.SIGINT)
        assert client.run(os.getpid) == processes
        assert client.submit(abs, -3).result() == 3
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_client_that_cannot_be_used_is_told(cluster: Any, stored: dict[bool, Graph]) -> None:
    with distributed.Client(cluster) as closed:
        pass
    with pytest.raises(EngineError, match="the Dask client is closed: connect again"):
        fitted(closed, stored[False])
    with pytest.raises(EngineError, match="the Dask client is closed: connect again"):
        fitted(closed, planted())

    async def fit() -> None:
        async with distributed.Client(cluster.scheduler_address, asynchronous=True) as client:
            with pytest.raises(TypeError, match="client must not be asynchronous"):
                fitted(client, stored[False])

    asyncio.run(fit())


def test_workers_that_do_not_see_the_graph_are_told(client: Any, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"the worker tcp://\S+ does not see .*nowhere.*storage that all workers see"):
        Cluster(client, 0).check(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["corecut", "python", "numpy"])
def test_versions_that_differ_are_told(
    client: Any, stored: dict[bool, Graph], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tasks.describe(str(stored[False].store)) | {name: "0.0.1"}
    describe = tasks.describe
    # Functions travel by name, so that the workers run the real one.
    monkeypatch.setattr("corecut.engines.cluster.tasks.describe", lambda folder: mine, raising=True)
    monkeypatch.setattr(client, "run", lambda function, *args, **options: type(client).run(client, describe, *args, **options))
    with pytest.raises(EngineError, match=rf"the worker \S+ has {name} \S+, the client 0\.0\.1: .* install them alike"):
        fitted(client, stored[False])
    assert left_behind(stored[False]) == []


def test_a_full_disk_is_told(client: Any, stored: dict[bool, Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **arrays: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(scratch_files.np, "savez", full)
    with pytest.raises(ScratchError, match=r"No space left on device.* are free there: make room, or choose another folder"):
        fitted(client, stored[False])


# --- tables --------------------------------------------------------------------------------------------------------------


def write_table(path: Path, columns: dict[str, Any]) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize(
    ("rules", "weighted"),
    [
        (EdgeRules(), False),
        (EdgeRules(), True),
        (EdgeRules("max", "drop"), True),
        (EdgeRules("unit"), True),
        (EdgeRules("sum"), False),
    ],
)
@pytest.mark.parametrize("compact", [True, False])
def test_a_folder_of_edge_files_becomes_the_store_of_all_edges(
    client: Any, *, rules: EdgeRules, weighted: bool, compact: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    edges = {"source": rng.integers(0, 60, 900) * 3, "target": rng.integers(0, 60, 900) * 3}
    if weighted:
        edges["weight"] = rng.random(900) * (rng.random(900) > 0.01)
    (tmp_path / "edges").mkdir()
    write_table(tmp_path / "all.parquet", edges)
    for i in range(3):
        part = {name: values[i * 300 : (i + 1) * 300] for name, values in edges.items()}
        write_table(tmp_path / "edges" / f"part-{i}.parquet", part)
    monkeypatch.setattr(tables, "_BUCKET_ENTRIES", 400)
    write_table(tmp_path / "edges" / "part-1b.parquet", {name: values[:0] for name, values in edges.items()})
    # The workers were started in another folder.
    monkeypatch.chdir(tmp_path)
    place, given = Path("ours.store"), {"options": EdgeOptions(), "rules": rules, "compact": compact}
    report = tables.build_store(Cluster(client, 0), Path("edges"), place, **given)
    expected, wanted = convert_graph(tmp_path / "all.parquet", tmp_path / "theirs.store", rules=rules, compact=compact)
    ours = GraphStore.open(place, verify=True)
    for name in ("indptr", "indices", "weights", "degrees", "diagonal", "node_ids"):
        mine, other = getattr(ours.graph, name), getattr(expected.graph, name)
        assert (mine is None) == (other is None)
        assert mine is None or np.array_equal(mine, other)
    assert report == wanted
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.parquet", "edges", "ours.store", "theirs.store"]


def test_a_run_on_edge_files_is_resumed(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = sp.triu(planted().adjacency, 1).tocoo()
    (tmp_path / "edges").mkdir()
    write_table(tmp_path / "edges" / "all.parquet", {"source": edges.row, "target": edges.col})
    reading = SimpleNamespace(arguments={"options": EdgeOptions(), "rules": EdgeRules(), "compact": True})
    screen = SimpleNamespace(tell=lambda report: None)
    run, stages, killed = Cluster.map, [], []

    def mapped(self: Any, stage: str, *args: Any) -> Any:
        if stage == "refinement" and not killed:
            killed.append(stage)
            raise KeyboardInterrupt
        stages.append(stage)
        return run(self, stage, *args)

    def once(resume: bool) -> Any:
        engine = DaskEngine(client, resume=resume, least_entries=5000, block_entries=20_000)
        machines = Machines("tcp://head:8786", None, resume)
        with machines.load(engine, tmp_path / "edges", reading, screen, None) as (graph, _):
            return CoresetSpectralClustering(K, aggregate=True, random_state=0, engine=engine).fit(graph)

    monkeypatch.setattr(Cluster, "map", mapped)
    with pytest.raises(KeyboardInterrupt):
        once(False)
    assert {"edges", "aggregation"} <= set(stages)
    stages.clear()
    model = once(True)
    assert "edges" in stages
    assert "aggregation" not in stages
    assert [path.name for path in tmp_path.iterdir()] == ["edges"]
    store, _ = convert_graph(tmp_path / "edges" / "all.parquet", tmp_path / "all.store")
    assert is_same(model, CoresetSpectralClustering(K, aggregate=True, random_state=0).fit(store.graph))


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ([{"source": ["x"], "target": ["y"]}], r"^\S+0\.parquet: ids are text"),
        ([{"source": [1], "target": [2], "weight": [-1.0]}], r"^\S+0\.parquet, row 0: weight -1 is negative"),
        (
            [{"source": [1], "target": [2]}, {"source": [1], "target": [2], "weight": [0.5]}],
            "^some files of .* have weights and others do not",
        ),
        ([{"source": np.empty(0, int), "target": np.empty(0, int)}] * 2, "there is no edge in its files"),
        ([], "the worker .* does not see .*edges"),
    ],
)
def test_edge_files_that_do_not_fit_are_refused(
    client: Any, tmp_path: Path, files: list[dict[str, list[Any]]], error: str
) -> None:
    (tmp_path / "edges").mkdir()
    for i, columns in enumerate(files):
        write_table(tmp_path / "edges" / f"{i}.parquet", columns)
    given = {"options": EdgeOptions(), "rules": EdgeRules()}
    with pytest.raises((EngineError, GraphFileError), match=error):
        tables.build_store(Cluster(client, 0), tmp_path / "edges", tmp_path / "s.store", **given)
    assert [path.name for path in tmp_path.iterdir()] == ["edges"]


def test_labels_are_written_in_parts(
    client: Any, stored: dict[bool, Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(tables, "_PART_ROWS", 2500)
    labels = (np.arange(6000) % 7).astype(np.int32)
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "part-00009.parquet").write_bytes(b"left by a run that was killed")
    engine = DaskEngine(client)
    engine.write_labels(stored[False], labels, tmp_path / "labels")
    manifest = json.loads((tmp_path / "labels" / "_manifest.json").read_text())
    assert [part["nodes"] for part in manifest["parts"]] == [2500, 2500, 1000]
    files = sorted(path.name for path in (tmp_path / "labels").iterdir())
    assert files == ["_manifest.json", *(part["file"] for part in manifest["parts"])]
    table = pq.read_table(tmp_path / "labels")
    assert np.array_equal(table["label"].to_numpy(), labels)
    assert np.array_equal(table["node"].to_numpy(), np.arange(6000))
    with pytest.raises(FileExistsError, match="exists already"):
        engine.write_labels(stored[False], labels, tmp_path / "labels")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").touch()
    with pytest.raises(FileExistsError, match="is not empty"):
        engine.write_labels(stored[False], labels, tmp_path / "full")


def test_an_engine_must_be_one() -> None:
    with pytest.raises(ValueError, match=r"engine must be None, a distributed\.Client or a corecut\.DaskEngine, got str"):
        CoresetSpectralClustering(3, engine="tcp://host:8786").fit(np.ones((5, 5)))
    with pytest.raises(TypeError, match="client must be a distributed"):
        DaskEngine("tcp://host:8786")


@pytest.mark.parametrize("name", ["retries", "least_entries", "block_entries"])
def test_options_of_the_engine_are_checked(client: Any, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        DaskEngine(client, **{name: -1})


def test_resuming_needs_a_seed(client: Any, stored: dict[bool, Graph]) -> None:
    for seed in (None, np.random.default_rng(0)):  # all generators have one name
        with pytest.raises(EngineError, match="resume needs a seed"):
            CoresetSpectralClustering(K, engine=DaskEngine(client, resume=True), random_state=seed).fit(stored[False])


def test_other_files_of_a_scratch_folder_stay(client: Any, stored: dict[bool, Graph], tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    fitted(client, stored[False], scratch=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(ScratchError, match=r"cannot make the scratch folder .* choose another one with scratch="):
        fitted(client, stored[False], scratch=tmp_path / "thesis.txt")


def test_a_scratch_folder_needs_a_name(client: Any) -> None:
    with pytest.raises(ValueError, match="scratch must be the name of a folder, got an empty one"):
        DaskEngine(client, scratch="")


def test_a_worker_makes_no_folder_where_it_does_not_see_the_scratch_folder(tmp_path: Path, stored: dict[bool, Graph]) -> None:
    place = tasks.Place(str(stored[False].store), "run")
    job = tasks.Round(place, str(tmp_path / "scratch" / "001-refinement"), "refinement", (K, 0.0, 0.0, 1e9), 0, 0, 0, (0, 0))
    with pytest.raises(ScratchError, match=r"is missing: the scratch folder must lie on storage .* all workers see"):
        tasks.propose_moves(job, (0, 64))
    with pytest.raises(ScratchError, match=r"labels\.npy is missing: the scratch folder"):
        tasks.margins(place, str(tmp_path / "scratch" / "002-metrics"), K, (0, 64))
    with pytest.raises(ScratchError, match=r"scratch is missing: the scratch folder"):
        save(tmp_path / "scratch" / "some.npz", numbers=np.arange(3))
    assert list(tmp_path.iterdir()) == []


def test_one_run_at_a_time_has_a_scratch_folder(tmp_path: Path) -> None:
    one, two = (Scratch(tmp_path / "scratch").session(purpose, resume=False) for purpose in ("one", "two"))
    with one, pytest.raises(EngineError, match="is in use"), two:
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_named_folder_that_a_run_made_stays_with_its_checkpoints_only(tmp_path: Path, fails: bool) -> None:
    folder = tmp_path / "made" / "here" / "corecut-dask"
    with contextlib.suppress(KeyboardInterrupt), Scratch(folder).session("one", resume=False):
        (folder / "001-components").mkdir()
        save(folder / "001-components" / "result.npz", numbers=np.arange(3))
        if fails:
            raise KeyboardInterrupt
    assert folder.exists() == fails
    assert (tmp_path / "made").exists() == fails


@pytest.mark.parametrize("begun", [False, True])
def test_a_run_that_fails_before_its_first_checkpoint_leaves_nothing(tmp_path: Path, begun: bool) -> None:
    def fail() -> None:
        with Scratch(tmp_path / "scratch").session("one", resume=False):
            (tmp_path / "scratch" / "001-components").mkdir()
            save(tmp_path / "scratch" / "001-components" / ("result.npz" if begun else "first-0.npz"), numbers=np.arange(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [path.name for path in tmp_path.iterdir()] == (["scratch"] if begun else [])


def test_a_scratch_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    # A disk that may only be read refuses to remove what is not there, too.
    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(ScratchError, match=r"cannot write some\.npz into the scratch folder .*Read-only file system"):
        save(tmp_path / "some.npz", numbers=np.arange(3))


def test_the_disk_need_not_have_room_for_all_files_of_a_contraction(
    client: Any, stored: dict[bool, Graph], expected: dict[bool, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    assemble, checksums = session.assemble, session._checksums

    def assembling(folder: Path, firsts: list[int]) -> Any:
        seen.append((len(list(folder.glob("merged-*"))), len(list(folder.glob("piece-*")))))
        return assemble(folder, firsts)

    def summing(level: Path) -> Any:
        seen.append((len(list(level.parent.glob("merged-*.[cw]*.npy"))), 0))
        return checksums(level)

    monkeypatch.setattr(dask_engine, "assemble", assembling)
    monkeypatch.setattr(session, "_checksums", summing)
    assert is_same(fitted(client, stored[False]), expected[False])
    assert seen[0][0] > 0
    assert seen[0][1] == seen[1][0] == 0


def test_files_of_the_scratch_folder_are_whole_or_refused(tmp_path: Path) -> None:
    save(tmp_path / "some.npz", numbers=np.arange(1000))
    assert np.array_equal(load(tmp_path / "some.npz")["numbers"], np.arange(1000))
    assert load(tmp_path / "some.npz", "others") == {}
    content = (tmp_path / "some.npz").read_bytes()
    for damaged in (content[:500], content[:3000] + b"x" + content[3001:], b""):
        (tmp_path / "some.npz").write_bytes(damaged)
        with pytest.raises(ScratchError, match=r"some\.npz is damaged"):
            load(tmp_path / "some.npz")
    with pytest.raises(ScratchError, match="is missing"):
        load(tmp_path / "none.npz")


@pytest.mark.parametrize(("count", "unit"), [(1, 64), (7, 64), (1000, 64), (5, 1)])
def test_blocks_cover_all_rows(count: int, unit: int) -> None:
    borders = np.concatenate([[0], np.cumsum(np.random.default_rng(0).integers(0, 40, 1000))])
    blocks = divided(borders, count, unit)
    assert blocks[0][0] == 0
    assert blocks[-1][1] == 1000
    assert all(one[1] == two[0] for one, two in pairwise(blocks))
    assert all(begin % unit == 0 and begin < end for begin, end in blocks)
    assert len(blocks) <= count


def is_alive(group: int) -> bool:
    """Whether any process of a group lives."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_command_runs_on_worker_processes_and_leaves_none(stored: dict[bool, Graph], tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "corecut",
        "cluster",
        str(stored[False].store),
        "-k",
        str(K),
        "--dask",
        "local:1",
        "--set",
        "aggregate=True",
    ]
    wanted = [*command, "-o", str(tmp_path / "labels.npy")]
    with subprocess.Popen(wanted, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        words = process.communicate()[1]
    assert process.returncode == 0, words
    end = time.monotonic() + 20
    while is_alive(process.pid) and time.monotonic() < end:  # Python's own trackers of resources end a moment later
        time.sleep(0.05)
    assert not is_alive(process.pid)
    expected = CoresetSpectralClustering(K, aggregate=True, random_state=0).fit_predict(stored[False])
    assert np.array_equal(np.load(tmp_path / "labels.npy"), expected)
    assert left_behind(stored[False]) == []
    refused = subprocess.run([*command[:7], "--resume"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "only a run with --dask has checkpoints" in " ".join(refused.stderr.split())


def test_what_came_over_the_wire_lies_where_kernels_may_read_it() -> None:
    stream = np.arange(83, dtype=np.uint8)
    shifted = stream[3:].view(np.int64)
    assert not shifted.flags.aligned
    found = unpacked({"arrays": {"shifted": shifted, "own": np.arange(3)}})
    assert all(array.flags.aligned for array in found.values())
    np.testing.assert_array_equal(found["shifted"], shifted)
    assert tasks.run(lambda array, number: (array.flags.aligned, number), shifted, 7) == (True, 7)
