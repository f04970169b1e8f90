"""What a cluster of a given size would take for a given graph: a simulation of all rounds from the calls of a measured run.

    python benchmarks/engine_arithmetic.py                      from benchmarks/engine_calls.json
    python benchmarks/engine_arithmetic.py --network 25 --storage 40 --threads 16

Every call of the run with one worker (benchmarks/engines.py) is scaled: the work of its tasks with the number of entries,
bytes and the work of the client with the number of nodes. Tasks are given to threads as these become free, three for each of
them, with costs that scatter by 20 %, and twice the time per entry. Then come what Dask takes for each task and each call,
the bytes of all results into the client, and the files of the round out of the storage, once for every worker. Stages of a
quotient scale like those of the graph. The step in the client between aggregation and refinement (eigenvectors, draws,
repair) does not grow with the graph.
"""

from __future__ import annotations

import argparse
import heapq
import json
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).with_name("engine_calls.json")
GRAPHS = {"Friendster": (65_608_366, 3_612_134_270), "10 billion edges": (300_000_000, 20_000_000_000)}
# Seconds that Dask takes for a call and for each of its tasks, and how much tasks differ.
PER_CALL, PER_TASK, SCATTER = 0.02, 0.0005, 0.2
TASKS_PER_THREAD = 3
# Bytes of a process with Dask, and of a task that merges a part of the quotient.
PROCESS, BLOCK = 1.5e8, 3.5e8
# What tasks cost more where the labels of all nodes fit in no cache, and threads share the way to memory.
FARTHER = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--threads", type=int, default=8, help="of a worker")
    parser.add_argument("--network", type=float, default=10.0, help="of every machine, in Gbit/s")
    parser.add_argument("--storage", type=float, default=20.0, help="that all workers share, in Gbit/s")
    options = parser.parse_args()
    measured = json.loads(options.results.read_text())
    network, storage = options.network / 8 * 1e9, options.storage / 8 * 1e9
    print("| graph | workers | store read | back to the client | files of rounds | memory of a worker | of the client | time |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (nodes, entries) in GRAPHS.items():
        for workers in (8, 64):
            cluster = {"workers": workers, "threads": options.threads, "network": network, "storage": storage}
            print(row(name, simulate(measured, nodes, entries, **cluster)))


def simulate(
    measured: dict[str, Any], nodes: int, entries: int, *, workers: int, threads: int, network: float, storage: float
) -> dict[str, float]:
    by_entry, by_node = entries / measured["entries"], nodes / measured["nodes"]
    # On a busy machine the clock also counts what others did: client and worker took turns, and together had this share of it.
    (alone,) = (run for run in measured["runs"] if run["workers"] == 1)
    busy = min(1.0, alone["processor"] / alone["seconds"])
    rng = np.random.default_rng(0)
    seconds = back = files = tasks_time = client_time = 0.0
    for _, work, bytes_back, client, bytes_out in measured["calls"]:
        tasks = TASKS_PER_THREAD * workers * threads
        scatter = rng.lognormal(0.0, SCATTER, tasks)
        span = finish(FARTHER * work * busy * by_entry * scatter / scatter.sum(), workers * threads)
        seconds += PER_CALL + PER_TASK * tasks + span
        seconds += bytes_back * by_node / network + client * busy * by_node
        seconds += bytes_out * by_node * max(workers / storage, 1 / network)
        back, files = back + bytes_back * by_node, files + bytes_out * by_node * workers
        tasks_time, client_time = tasks_time + span, client_time + client * busy * by_node
    store = 4.0 * entries + 16.0 * nodes
    seconds += store / storage  # each block is read once, and then in its worker's cache
    return {
        "workers": workers,
        "store": store,
        "back": back,
        "files": files,
        # Labels, labels as they would be, and what moves lack; a block of the exchange for every thread; Python and Dask. And
        # the worker's share of the store as cache.
        "worker": 17.0 * nodes + threads * BLOCK + PROCESS,
        "cache": store / workers,
        "client": (alone["client_mb"] * 1e6 - PROCESS) * by_node + PROCESS,
        "seconds": seconds,
        "tasks": tasks_time,
        "commit": client_time,
    }


def finish(costs: np.ndarray, threads: int) -> float:
    """Return when the last task ends, if each is given to the thread that is free first."""
    free = [0.0] * threads
    for cost in costs.tolist():
        heapq.heappush(free, heapq.heappop(free) + cost)
    return max(free)


def row(name: str, found: dict[str, float]) -> str:
    sizes = [f"{found[key] / 1e9:,.1f} GB" for key in ("store", "back", "files")]
    memory = f"{found['worker'] / 1e9:.1f} GB and {found['cache'] / 1e9:.1f} GB of cache"
    parts = f"{found['seconds'] / 60:,.0f} min (tasks {found['tasks'] / 60:,.0f}, client {found['commit'] / 60:,.0f})"
    cells = [name, f"{found['workers']:.0f}", *sizes, memory, f"{found['client'] / 1e9:.1f} GB", parts]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
