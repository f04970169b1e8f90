"""Kill workers and clients of runs on a Dask cluster, at random, and compare the labels with those of an undisturbed run.

    python benchmarks/engine_kills.py workers --kills 20        a worker process in each stage in turn, over several runs
    python benchmarks/engine_kills.py clients --kills 10        the client and its workers at a random moment; resume

Runs take turns between the two ways to labels, by aggregation and through a coreset. Every run must end with the labels of the
local engine, and leave neither a process nor a file behind. The last line says how many kills there were and how many runs
differed; the exit status is 1 if any did.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from corecut import CoresetSpectralClustering, DaskEngine, Graph, GraphStore, make_degree_corrected_sbm

K = 20
# What is asked for, and the stages that workers then have a part in.
WAYS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "aggregation": ({}, ("components", "aggregation", "contraction", "refinement", "metrics")),
    "coreset": (
        {"aggregate": False, "coreset_size": 6000, "sampler": "rounds"},
        ("components", "seeds", "coreset", "labelling", "refinement", "metrics"),
    ),
}
ENGINE = {"least_entries": 50_000, "block_entries": 60_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("who", choices=["workers", "clients", "run"])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where the store is; used by clients that are killed")
    parser.add_argument("--way", choices=list(WAYS), default="aggregation", help="of a client that is killed")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    # A sparse graph does not suit a coreset, and parts of it are no news.
    warnings.simplefilter("ignore", UserWarning)
    if options.who == "run":
        run(options.folder, options.way, options.resume)
        return
    with tempfile.TemporaryDirectory(prefix="corecut-kills-") as name:
        folder = Path(name)
        matrix, _ = make_degree_corrected_sbm(options.nodes, K, mean_degree=10, random_state=0)
        store = GraphStore.write(Graph.from_matrix(matrix), folder / "graph.store")
        expected = {way: model_of(way).fit(store.graph).labels_ for way in WAYS}
        kill = kill_workers if options.who == "workers" else kill_clients
        kills, wrong = kill(store, expected, options.kills, random.Random(options.seed))
        left = sorted(path.name for path in folder.iterdir() if path.name not in ("graph.store", "labels.npy"))
    stray = stray_processes()
    print(f"{kills} kills of {options.who}: {wrong} runs with other labels, {len(left)} files and {len(stray)} processes left")
    sys.exit(bool(wrong or left or stray))


def model_of(way: str, engine: Any = None) -> CoresetSpectralClustering:
    return CoresetSpectralClustering(K, random_state=0, engine=engine, **WAYS[way][0])


def kill_workers(store: GraphStore, expected: dict[str, np.ndarray], wanted: int, dice: random.Random) -> tuple[int, int]:
    kills = wrong = 0
    for way in cycle(WAYS):
        if kills >= wanted:
            break
        begin = time.perf_counter()
        labels, killed = disturbed_run(store, way, dice)
        same = np.array_equal(labels, expected[way])
        kills, wrong = kills + killed, wrong + (not same)
        print(f"{way}, run of {time.perf_counter() - begin:.1f} s: {'the same' if same else 'OTHER'} labels", flush=True)
    return kills, wrong


def disturbed_run(store: GraphStore, way: str, dice: random.Random) -> tuple[np.ndarray, int]:
    """Cluster on a cluster of its own (a nanny whose worker dies while it starts does not start another), with kills."""
    from distributed import Client, LocalCluster

    killed = 0
    with (
        LocalCluster(n_workers=len(WAYS[way][1]) + 1, threads_per_worker=1, dashboard_address=":0", silence_logs=60) as cluster,
        Client(cluster) as client,
    ):
        processes = client.run(os.getpid)
        submit = client.submit
        due = {stage: dice.randrange(1, 3) for stage in WAYS[way][1]}

        def submitting(function: Any, *args: Any, key: str, **settings: Any) -> Any:
            nonlocal killed
            future = submit(function, *args, key=key, **settings)
            stage = key.partition("-")[0]
            due[stage] = due.get(stage, 0) - 1
            if due[stage] == 0:
                # One that was there from the beginning, or, when all of those are dead, any.
                workers = client.nthreads()
                victim = dice.choice(sorted(processes.keys() & workers.keys()) or sorted(workers))
                os.kill(processes.get(victim) or client.run(os.getpid, workers=[victim])[victim], signal.SIGKILL)
                killed += 1
                print(f"killed a worker in {stage}", flush=True)
            return future

        client.submit = submitting
        return model_of(way, DaskEngine(client, **ENGINE)).fit(store.graph).labels_, killed


def kill_clients(store: GraphStore, expected: dict[str, np.ndarray], wanted: int, dice: random.Random) -> tuple[int, int]:
    folder = store.path.parent
    kills = wrong = 0
    whole: dict[str, float] = {}
    for way in cycle(WAYS):
        if kills >= wanted:
            break
        command = [sys.executable, __file__, "run", "--folder", str(folder), "--way", way]
        if way not in whole:
            begin = time.perf_counter()
            subprocess.run(command, check=True)
            whole[way] = time.perf_counter() - begin
        (folder / "labels.npy").unlink(missing_ok=True)
        resume: list[str] = []
        for _ in range(dice.randrange(1, 4)):
            # A process group of its own: with the client, all of its workers die at once.
            process = subprocess.Popen([*command, *resume], start_new_session=True)
            try:
                process.wait(dice.uniform(0.2, 1.0) * whole[way])
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                kills += 1
                print("killed a client", flush=True)
            resume = ["--resume"]
        subprocess.run([*command, *resume], check=True)
        same = np.array_equal(np.load(folder / "labels.npy"), expected[way])
        wrong += not same
        print(f"{way} resumed: {'the same' if same else 'OTHER'} labels", flush=True)
    return kills, wrong


def run(folder: Path, way: str, resume: bool) -> None:
    from distributed import Client, LocalCluster

    graph = GraphStore.open(folder / "graph.store").graph
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=60) as cluster,
        Client(cluster) as client,
    ):
        engine = DaskEngine(client, resume=resume, **ENGINE)
        labels = model_of(way, engine).fit(graph).labels_
    np.save(folder / "labels.npy", labels)


def stray_processes() -> list[int]:
    """Return the processes that this one started and that live."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    # Python's own resource tracker lives as long as its process.
    found = [int(number) for number in children.read_text().split()] if children.exists() else []
    return [one for one in found if "resource_tracker" not in Path(f"/proc/{one}/cmdline").read_text()]


if __name__ == "__main__":
    main()
