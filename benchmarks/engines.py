"""The Dask engine beside the local one: a planted store on 1, 2 and 4 worker processes of this machine.

    python benchmarks/engines.py                              5 million nodes, 50 million edges
    python benchmarks/engines.py --nodes 1000000              smaller
    python benchmarks/engines.py --json engines.json

For every run: seconds by the clock and of all processors, the factors over the local engine, the highest anonymous memory of
a worker and of the client, ARI and cut, and whether the labels are those of the local engine; then where the seconds went, and
how many of them calls without any work would have taken. Beside other work the clock says little, and processor time more.
Linux only. Of the run with one
worker every call to the cluster is kept in the results: how long its tasks took, how many bytes came back, how long the
client worked before the next call and how many bytes it left for the workers. benchmarks/engine_arithmetic.py scales these to
other graphs and clusters.
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

from corecut import CoresetSpectralClustering, DaskEngine, Graph, GraphStore, make_degree_corrected_sbm
from corecut.engines import dask, scratch
from corecut.engines.cluster import Cluster, connect

K = 100
# What only a run that is resumed, or a new worker, reads of a round's files.
CHECKPOINT = {"labels", "lacking", "lacks", "counts", "values", "position"}


class Watch:
    """The highest anonymous memory and the processor time of several processes, by their numbers, while a `with` block runs."""

    def __init__(self, processes: list[int]) -> None:
        self.peak = dict.fromkeys(processes, 0)
        self._ended = threading.Event()

    def __enter__(self) -> Watch:
        self._before = self._processor()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self.processor = self._processor() - self._before

    def _processor(self) -> float:
        """Return the seconds of all processors that the processes have had."""
        ticks = 0
        for process in self.peak:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _look(self) -> None:
        while not self._ended.wait(0.05):
            for process in self.peak:
                try:
                    status = Path(f"/proc/{process}/status").read_text()
                except OSError:
                    continue
                anonymous = int(status.partition("RssAnon:")[2].split()[0]) * 1024
                self.peak[process] = max(self.peak[process], anonymous)


class Record:
    """Every call to a cluster: stage, seconds of tasks, bytes back, seconds of the client until the next, bytes for workers."""

    def __enter__(self) -> Record:
        self.calls: list[list[Any]] = []
        self._ended = time.perf_counter()
        self._kept = Cluster.map, dask.save, dask.save_plain, scratch.save
        run, save, save_plain, _ = self._kept

        def mapped(cluster: Any, stage: str, *rest: Any) -> Any:
            begin = time.perf_counter()
            if self.calls:
                self.calls[-1][3] = round(begin - self._ended, 4)
            found = run(cluster, stage, *rest)
            self._ended = time.perf_counter()
            self.calls.append([stage, round(self._ended - begin, 4), sum(map(size_of, found)), 0.0, 0])
            return found

        def counting(write: Any) -> Any:
            def written(path: Path, *given: Any, **arrays: Any) -> None:
                write(path, *given, **arrays)
                if self.calls and path.name != "result.npz":
                    read = [*given, *(array for name, array in arrays.items() if name not in CHECKPOINT)]
                    self.calls[-1][4] += sum(array.nbytes for array in read)

            return written

        Cluster.map = mapped
        dask.save, dask.save_plain, scratch.save = counting(save), counting(save_plain), counting(save)
        return self

    def __exit__(self, *_: object) -> None:
        Cluster.map, dask.save, dask.save_plain, scratch.save = self._kept


def size_of(message: Any) -> int:
    """Return the bytes of a task's result, in the message or in a file."""
    if not isinstance(message, dict):
        return 8
    return os.path.getsize(message["file"]) if "file" in message else sum(a.nbytes for a in message["arrays"].values())


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
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


def planted(folder: Path, n: int, mean_degree: float) -> tuple[GraphStore, np.ndarray]:
    place, labels = folder / f"planted-{n}.store", folder / f"planted-{n}.npy"
    if not GraphStore.is_store(place):
        matrix, truth = make_degree_corrected_sbm(n, K, mean_degree=mean_degree, random_state=0)
        np.save(labels, truth)
        GraphStore.write(Graph.from_matrix(matrix, check="none"), place)
    return GraphStore.open(place), np.load(labels)


def nothing(block: tuple[int, int]) -> None:
    del block


def empty_call(client: Any, processes: list[int], times: int = 30) -> tuple[float, float]:
    """Return the seconds, by the clock and of all processors, of a call of one empty task per worker."""
    cluster = Cluster(client, 0)
    blocks = [(i, i + 1) for i in range(len(cluster.workers()))]
    cluster.map("empty", nothing, (), blocks)
    with Watch(processes) as watch:
        begin = time.perf_counter()
        for _ in range(times):
            cluster.map("empty", nothing, (), blocks)
        seconds = time.perf_counter() - begin
    return seconds / times, watch.processor / times


def overhead(calls: list[list[Any]], empty: tuple[float, float], seconds: float) -> dict[str, Any]:
    """Return where the seconds of a run went: in calls to the workers, of these in calls as such, and in the client."""
    inside = sum(call[1] for call in calls)
    return {
        "calls": len(calls),
        "seconds_in_calls": round(inside, 2),
        "seconds_of_empty_calls": round(len(calls) * empty[0], 2),
        "processor_of_empty_calls": round(len(calls) * empty[1], 2),
        "seconds_in_client": round(seconds - inside, 2),
    }


def compare(store: GraphStore, truth: np.ndarray, counts: list[int]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    calls: list[list[Any]] = []
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
            with connect(f"local:{workers}") as client:
                processes = list(client.run(os.getpid).values())
                empty = empty_call(client, [*processes, os.getpid()])
                model.set_params(engine=DaskEngine(client))
                with Watch([*processes, os.getpid()]) as watch, Record() as record:
                    begin = time.perf_counter()
                    model.fit(store.graph)
                    cut = model.normalized_cut_
                    seconds = time.perf_counter() - begin
            if workers == 1:
                calls = record.calls
        client_peak = watch.peak.pop(os.getpid())
        row = {
            "workers": workers,
            "seconds": round(seconds, 2),
            "factor": round(seconds / rows[0]["seconds"], 2) if rows else 1.0,
            "processor": round(watch.processor, 1),
            "processor_factor": round(watch.processor / rows[0]["processor"], 2) if rows else 1.0,
            "worker_mb": round(max(watch.peak.values(), default=0) / 1e6),
            "client_mb": round(client_peak / 1e6),
            "ari": round(float(adjusted_rand_score(truth, model.labels_)), 4),
            "cut": round(float(cut), 5),
            "same": bool(np.array_equal(model.labels_, expected)),
            "stages": {name: round(value, 2) for name, value in model.timings_.items()},
        }
        if workers:
            row |= overhead(record.calls, empty, seconds)
        rows.append(row)
        print(json.dumps(row), flush=True)
    return {"nodes": store.n_nodes, "entries": store.n_entries, "k": K, "runs": rows, "calls": calls}


if __name__ == "__main__":
    main()
