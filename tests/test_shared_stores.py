"""One store, many processes: builders exclude each other, readers see a whole store, and nothing is left lying about."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import corecut._files
from corecut import Graph, GraphStore, read_graph, write_graph
from corecut._locks import exchange, exclusive, remove_if_free, try_lock, unlock
from corecut.store import StoreWriter, scratch_store


def star(n: int) -> Graph:
    """Return a star with a size that tells it from others, its weights all n."""
    matrix = np.zeros((n, n))
    matrix[0, 1:] = matrix[1:, 0] = n
    return Graph.from_matrix(matrix)


def is_whole(store: GraphStore) -> bool:
    """Whether all arrays of a store are those of one star."""
    graph, n = store.graph, store.n_nodes
    assert graph.indptr.tolist() == [0, *range(n - 1, 2 * n - 1)]
    assert graph.indices.tolist() == [*range(1, n), *[0] * (n - 1)]
    assert (graph.weights == n).all()
    assert graph.degrees.tolist() == [n * (n - 1), *[n] * (n - 1)]
    store.verify()
    return True


def work(path: str, role: int, seconds: float) -> dict[str, int]:
    """Write, overwrite or read one store until the time is over; say how often, and how often another process was first."""
    rng = np.random.default_rng(role)
    end, done, refused = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        if role % 2 == 0:
            assert is_whole(GraphStore.open(path))
            done += 1
            continue
        try:
            GraphStore.write(star(int(rng.integers(3, 60))), path, overwrite=role % 4 == 1)
            done += 1
        except (BlockingIOError, FileExistsError):
            refused += 1
    return {"done": done, "refused": refused}


def shared(path, seconds: float, processes: int = 10) -> list[dict[str, int]]:
    """Let processes work on one store at the same time; return what each has done."""
    GraphStore.write(star(5), path)
    command = [sys.executable, __file__, str(path)]
    workers = [
        subprocess.Popen([*command, str(role), str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for role in range(processes)
    ]
    outputs = [worker.communicate(timeout=seconds + 200) for worker in workers]
    assert [errors for _, errors in outputs if errors] == []
    return [json.loads(output) for output, _ in outputs]


@pytest.mark.parametrize("seconds", [pytest.param(2, id="short"), pytest.param(60, id="long", marks=pytest.mark.deep)])
def test_ten_processes_share_a_store(tmp_path, seconds):
    path = tmp_path / "g.store"
    done = shared(path, seconds)
    assert sum(worker["done"] for worker in done[1::4]) > 0
    assert all(worker["done"] > 0 for worker in done[::2])
    assert is_whole(GraphStore.open(path, verify=True))
    assert [entry.name for entry in tmp_path.iterdir()] == ["g.store"]


@pytest.mark.parametrize("swaps", [True, False])
def test_threads_share_a_store(tmp_path, monkeypatch, swaps):
    """The same in one process, also where two names cannot be exchanged in one step."""
    if not swaps:
        monkeypatch.setattr(corecut._files, "exchange", lambda *names: False)
    path = tmp_path / "g.store"
    GraphStore.write(star(5), path)
    errors: list[BaseException] = []
    end = time.monotonic() + 1.5

    def write(seed: int) -> None:
        rng = np.random.default_rng(seed)
        while time.monotonic() < end:
            try:
                GraphStore.write(star(int(rng.integers(3, 60))), path, overwrite=True)
            except (BlockingIOError, FileExistsError):
                continue
            except BaseException as error:
                errors.append(error)

    def read() -> None:
        while time.monotonic() < end:
            try:
                assert is_whole(GraphStore.open(path))
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    threads += [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert is_whole(GraphStore.open(path, verify=True))
    assert [entry.name for entry in tmp_path.iterdir()] == ["g.store"]


def test_who_has_opened_a_store_keeps_it(tmp_path):
    path = tmp_path / "g.store"
    opened = GraphStore.write(star(7), path)
    GraphStore.write(star(9), path, overwrite=True)
    assert is_whole(opened)  # mapped only now
    assert opened.n_nodes == 7
    assert pickle.loads(pickle.dumps(opened)).n_nodes == 9  # another process opens what is there


def test_a_store_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "g.store"
    other = GraphStore.write(star(8), tmp_path / "other.store").path

    def interrupted(final, overwrite: bool, appear) -> None:
        with StoreWriter.create(final, overwrite=overwrite) as writer:
            writer.copy(star(4))
            appear()

    def folder_of_others() -> None:
        (tmp_path / "h").mkdir()
        (tmp_path / "h" / "precious.txt").write_text("x")

    with pytest.raises(FileExistsError, match="exists already"):
        interrupted(path, False, lambda: other.rename(path))
    assert GraphStore.open(path).n_nodes == 8
    with pytest.raises(FileExistsError, match=r"choose another name$"):
        interrupted(tmp_path / "h", True, folder_of_others)
    assert (tmp_path / "h" / "precious.txt").read_text() == "x"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["g.store", "h"]


def test_the_store_of_before_comes_back_after_a_kill_between_two_renamings(tmp_path):
    path = tmp_path / "g.store"
    GraphStore.write(star(5), path)
    path.rename(tmp_path / "g.store.0123abcd.old")
    (tmp_path / "g.store.0123abcd.partial").mkdir()
    with pytest.raises(RuntimeError), StoreWriter.create(path, overwrite=True):
        raise RuntimeError
    assert is_whole(GraphStore.open(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["g.store"]


def test_only_leftovers_are_removed(tmp_path):
    """Names that merely look like those of a build stay."""
    keep = [
        "g.store.partial2",
        "my.g.store.partial",
        "g.store.xyz.partial",
        "g.store.0123abcd",
        ".g.store.csv.0123abcd.partial",
    ]
    for name in keep:
        (tmp_path / name).mkdir()
    GraphStore.write(star(4), tmp_path / "g.store")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*keep, "g.store"])


def test_a_link_to_a_store_stays_a_link(tmp_path):
    GraphStore.write(star(4), tmp_path / "real.store")
    (tmp_path / "link.store").symlink_to(tmp_path / "real.store")
    GraphStore.write(star(6), tmp_path / "link.store", overwrite=True)
    assert (tmp_path / "link.store").is_symlink()
    assert GraphStore.open(tmp_path / "real.store").n_nodes == 6


def test_scratch_stores_of_two_runs_exclude_each_other(tmp_path):
    target = tmp_path / "g.csv"
    with scratch_store(target) as place:
        GraphStore.write(star(4), place)
        with pytest.raises(BlockingIOError, match="another process"), scratch_store(target):
            pass
        assert GraphStore.open(place).n_nodes == 4
    assert list(tmp_path.iterdir()) == []


def test_locks_end_with_their_holder(tmp_path):
    path = tmp_path / ".lock"
    with exclusive(path, "taken"), pytest.raises(BlockingIOError, match="taken"), exclusive(path, "taken"):
        pass
    assert not path.exists()
    path.write_text("")  # left by a process that was killed
    with exclusive(path, "taken"):
        pass
    assert not path.exists()


def test_files_of_living_writers_are_left_alone(tmp_path):
    mine = tmp_path / ".g.csv.4194303998.0123abcd.partial"
    handle = try_lock(mine)
    dead = tmp_path / ".g.csv.4194303999.0123abce.partial"
    dead.write_text("x")
    write_graph(star(4), tmp_path / "g.csv")
    assert mine.exists()
    assert not dead.exists()
    remove_if_free(mine)
    assert mine.exists()
    unlock(handle)
    remove_if_free(mine)
    assert not mine.exists()


@pytest.mark.skipif(not os.path.exists("/proc/version"), reason="only Linux and macOS can")
def test_directories_are_exchanged(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(name)
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "b").exists()
    assert not exchange(tmp_path / "a", tmp_path / "none")


def test_a_store_opens_from_within(tmp_path, monkeypatch):
    GraphStore.write(star(4), tmp_path / "g.store")
    monkeypatch.chdir(tmp_path / "g.store")
    assert GraphStore.open(".").n_nodes == 4
    assert read_graph(".").n_nodes == 4
    assert json.loads((tmp_path / "g.store" / "graph.json").read_text())["corecut"]["format"] == 1


if __name__ == "__main__":
    print(json.dumps(work(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
