"""The Dask engine beside the local one: a planted store on 1, 2 and 4 worker processes of this machine.

    python benchmarks/engines.py                              5 million nodes, 50 million edges
    python benchmarks/engines.py --nodes 1000000              smaller
    python benchmarks/engines.py --json engines.json

For every run: seconds, the factor over the local engine, the highest anonymous memory of a worker and of the client, ARI and
cut, and whether the labels are those of the local engine. Linux only. Then the parts of a round, measured one by one: what a
task costs per entry, and what the client does per move; docs/more-machines.md has its arithmetic from them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from corecut import CoresetSpectralClustering, DaskEngine, Graph, GraphStore, _core, make_degree_corrected_sbm

K = 100


class Watch:
    """The highest anonymous memory of several processes, by their numbers, while a `with` block runs."""

    def __init__(self, processes: list[int]) -> None:
        self.peak = dict.fromkeys(processes, 0)
        self._ended = threading.Event()

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.05):
            for process in self.peak:
                try:
                    status = Path(f"/proc/{process}/status").read_text()
                except OSError:
                    continue
                anonymous = int(status.partition("RssAnon:")[2].split()[0]) * 1024
                self.peak[process] = max(self.peak[process], anonymous)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000_000)
    parser.add_argument("--mean-degree", type=float, default=20.0)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--folder", type=Path, help="where the store is kept; a temporary folder by default")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="corecut-engines-") as temporary:
        folder = options.folder or Path(temporary)
        store, truth = planted(folder, options.nodes, options.mean_degree)
        print(store, flush=True)
        results = compare(store, truth, options.workers)
        results["parts"] = parts(store)
    print(json.dumps(results["parts"], indent=1))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


def planted(folder: Path, n: int, mean_degree: float) -> tuple[GraphStore, np.ndarray]:
    place, labels = folder / f"planted-{n}.store", folder / f"planted-{n}.npy"
    if not GraphStore.is_store(place):
        matrix, truth = make_degree_corrected_sbm(n, K, mean_degree=mean_degree, random_state=0)
        np.save(labels, truth)
        GraphStore.write(Graph.from_matrix(matrix, check="none"), place)
    return GraphStore.open(place), np.load(labels)


def compare(store: GraphStore, truth: np.ndarray, counts: list[int]) -> dict[str, Any]:
    from distributed import Client, LocalCluster

    rows: list[dict[str, Any]] = []
    expected = None
    for workers in [0, *counts]:
        model = CoresetSpectralClustering(K, random_state=0)
        if workers == 0:
            with Watch([os.getpid()]) as watch:
                begin = time.perf_counter()
                model.fit(store.graph)
                cut = model.normalized_cut_
                seconds = time.perf_counter() - begin
            expected = model.labels_
        else:
            with (
                LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
                Client(cluster) as client,
            ):
                processes = list(client.run(os.getpid).values())
                model.set_params(engine=DaskEngine(client))
                with Watch([*processes, os.getpid()]) as watch:
                    begin = time.perf_counter()
                    model.fit(store.graph)
                    cut = model.normalized_cut_
                    seconds = time.perf_counter() - begin
        client_peak = watch.peak.pop(os.getpid())
        row = {
            "workers": workers,
            "seconds": round(seconds, 2),
            "factor": round(seconds / rows[0]["seconds"], 2) if rows else 1.0,
            "worker_mb": round(max(watch.peak.values(), default=0) / 1e6),
            "client_mb": round(client_peak / 1e6),
            "ari": round(float(adjusted_rand_score(truth, model.labels_)), 4),
            "cut": round(float(cut), 5),
            "same": bool(np.array_equal(model.labels_, expected)),
            "stages": {name: round(value, 2) for name, value in model.timings_.items()},
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    return {"nodes": store.n_nodes, "entries": store.n_entries, "k": K, "runs": rows}


def parts(store: GraphStore) -> dict[str, float]:
    """Measure what the arithmetic of docs/more-machines.md is made of, on one thread: nanoseconds per entry or node."""
    graph = store.graph
    n, entries = graph.n_nodes, graph.n_entries
    cap = float(graph.degrees.sum()) / (10 * K)
    found: dict[str, float] = {}

    def timed(name: str, unit: float, call: Any) -> Any:
        begin = time.perf_counter()
        result = call()
        found[name] = round((time.perf_counter() - begin) / unit * 1e9, 2)
        return result

    rounds = _core.GroupRounds(graph.matrix, graph.degrees, cap, 1)
    _core.find_asymmetry(graph.matrix, -1, 0, 1)  # all pages are in the cache from here on
    moves = [timed("propose_groups per entry", entries / 8, lambda: rounds.propose(0, n, 0, 0))]
    timed("commit_groups per move", moves[0][0].size, lambda: rounds.commit(*moves[0], 0, 0, False, 1))
    found["moves of a first round per node"] = round(moves[0][0].size / n, 4)
    groups = _core.group_nodes(graph.matrix, graph.degrees, cap, 3, 2)
    count = int(groups.max()) + 1
    half = n // 2 // 64 * 64
    part = int(graph.indptr[half])
    timed("contract_rows per entry", part, lambda: _core.contract_rows(graph.matrix, groups, count, 0, half, True))
    labels = (groups % K).astype(np.int32)
    timed("margins per entry", entries, lambda: _core.margins_of_rows(graph.matrix, labels, K, 0, n))
    return found


if __name__ == "__main__":
    main()
