"""kill -9 at random moments: never half a file under a final name, and the next run succeeds."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from corecut import GraphStore
from corecut.labels import read_labels

NODES, EDGES = 60_000, 400_000


# A runner in the background has Ctrl-C ignored, and its children with it, unless they say otherwise.
RUN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from corecut.cli import main
main()
"""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", RUN, *map(str, arguments)]


def seconds_of(*arguments: object) -> float:
    begin = time.perf_counter()
    subprocess.run(command(*arguments), check=True, capture_output=True)
    return time.perf_counter() - begin


def killed_after(seconds: float, *arguments: object) -> bool:
    """Run a command and kill it; say whether it was still running."""
    process = subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    assert process.returncode == 0
    return False


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("kills") / "edges.txt"
    np.savetxt(path, rng.integers(0, NODES, (EDGES, 2)), fmt="%d")
    return path


COUNTS = [pytest.param(2, id="2"), pytest.param(24, id="24", marks=pytest.mark.deep)]


@pytest.mark.parametrize("kills", COUNTS)
def test_convert(tmp_path, edges, kills):
    store = tmp_path / "g.store"
    arguments = ("convert", edges, store, "--memory", "1MB")
    duration = seconds_of(*arguments, "--force")
    expected = GraphStore.open(store).description["corecut"]["files"]
    rng, done = np.random.default_rng(1), 0
    for _ in range(10 * kills):
        done += killed_after(duration * rng.uniform(0.4, 1.0), *arguments, "--force")
        # Either the store of before or a new one, but a whole one.
        if store.exists():
            GraphStore.open(store, verify=True)
        if done == kills:
            break
    assert done == kills
    seconds_of(*arguments, "--force")
    assert GraphStore.open(store, verify=True).description["corecut"]["files"] == expected
    assert [path.name for path in tmp_path.iterdir()] == ["g.store"]


@pytest.mark.parametrize("kills", COUNTS)
def test_cluster(tmp_path, edges, kills):
    subprocess.run(command("convert", edges, tmp_path / "g.store"), check=True, capture_output=True)
    labels = tmp_path / "labels.csv"
    arguments = ("cluster", tmp_path / "g.store", "-k", 4, "--coreset-size", 2000, "-o", labels)
    duration = seconds_of(*arguments)
    expected = labels.read_bytes()
    rng, done = np.random.default_rng(2), 0
    for _ in range(10 * kills):
        if done % 2:
            labels.unlink(missing_ok=True)
        done += killed_after(duration * rng.uniform(0.6, 1.0), *arguments)
        assert not labels.exists() or labels.read_bytes() == expected
        if done == kills:
            break
    assert done == kills
    seconds_of(*arguments)
    assert labels.read_bytes() == expected
    assert read_labels(labels)[1].size == GraphStore.open(tmp_path / "g.store").n_nodes
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.store", "labels.csv"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_build_that_is_told_to_stop_cleans_up(tmp_path, edges, number):
    arguments = command("convert", edges, tmp_path / "g.store", "--memory", "1MB")
    for _ in range(10):
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not list(tmp_path.glob("*.partial/*")):
            time.sleep(0.005)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        if process.returncode != 0:
            break
        shutil.rmtree(tmp_path / "g.store")  # it was quicker
    assert process.returncode > 0
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_store_goes_with_the_next_run(tmp_path, edges, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    arguments = ("info", edges, "--memory", "1MB", "--no-estimate")
    process = subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(folder.glob("corecut-*/in-use.lock")):
        assert process.poll() is None
        time.sleep(0.005)
    foreign = folder / "corecut-mine-1"
    foreign.mkdir()
    process.kill()
    process.wait()
    assert len(list(folder.iterdir())) == 2
    seconds_of(*arguments)
    assert list(folder.iterdir()) == [foreign]
