"""How time, memory and disk reads grow with the graph, from stores on disk, up to Friendster's size.

    python benchmarks/scale.py                               1, 4 and 16 million nodes, about half an hour on 2 cores
    python benchmarks/scale.py --nodes 100000 1000000        smaller
    python benchmarks/scale.py --nodes 65608366 --folder /large/disk --json scale.json      Friendster's size

Planted graphs (power-law degrees, mean degree 55, as in Friendster) are made once by `corecut generate` in the folder and kept
there. Two paths, each in a process of its own that maps the store:

    construction    the paper's path: seeds, coreset, coreset graph and labelling of all nodes, for 100,000 points. The spectral
                    step, which is the same for every n, is replaced by the planted clusters of the coreset's nodes.
    default         CoresetSpectralClustering as a user calls it, with its ARI against the planted clusters; with --limit within
                    so much memory, quotient graphs beyond it on disk beside the store.

Peak memory is anonymous memory (RssAnon): pages of the mapped store are the system's cache and are given back under pressure.
Bytes read are those that came from the disk. Linux only. Growth exponents are slopes of log(time) and log(memory) against
log(number of edges).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

from corecut import CoresetSpectralClustering, GraphStore, KernelView, build_coreset, coreset_graph, label_nodes
from corecut.labels import read_labels

MEAN_DEGREE = 55.1
CORESET = 100_000


class Meter:
    """Seconds by the clock and of all processors, highest anonymous memory and bytes from disk of a `with` block."""

    def __enter__(self) -> Meter:
        self._stop = False
        self.peak = self._anonymous()
        self.before = self.peak
        self._read = self._bytes_read()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        self._begin, self._begin_cpu = perf_counter(), process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, self.cpu_seconds = perf_counter() - self._begin, process_time() - self._begin_cpu
        self._stop = True
        self._watch.join()
        self.peak = max(self.peak, self._anonymous())
        self.bytes_read = self._bytes_read() - self._read

    def _look(self) -> None:
        while not self._stop:
            self.peak = max(self.peak, self._anonymous())
            sleep(0.02)

    @staticmethod
    def _anonymous() -> int:
        text = Path("/proc/self/status").read_text()
        return 1024 * int(text.split("RssAnon:")[1].split()[0])

    @staticmethod
    def _bytes_read() -> int:
        return int(Path("/proc/self/io").read_text().split("read_bytes:")[1].split()[0])

    def report(self) -> dict[str, Any]:
        peak = self.peak - self.before
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds, "peak_bytes": peak, "bytes_read": self.bytes_read}


def drop_from_cache(store: Path) -> None:
    """Ask the system to forget the store's pages, so that a run begins cold."""
    for path in store.glob("*.npy"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def construction(store: Path, clusters: int, truth: np.ndarray, limit: str | None) -> dict[str, Any]:
    del limit  # there are no quotient graphs
    stages: dict[str, Any] = {}
    with Meter() as whole:
        begin = perf_counter()
        graph = GraphStore.open(store).graph
        kernel = KernelView.from_graph(graph)
        stages["open"] = perf_counter() - begin
        begin = perf_counter()
        coreset = build_coreset(kernel, clusters, size=CORESET, random_state=0)
        stages["coreset"] = perf_counter() - begin
        begin = perf_counter()
        coreset_graph(kernel, coreset)
        stages["coreset graph"] = perf_counter() - begin
        begin = perf_counter()
        label_nodes(kernel, coreset, truth[coreset.indices], n_clusters=clusters)
        stages["labelling"] = perf_counter() - begin
    return whole.report() | {"stages": stages}


def default(store: Path, clusters: int, truth: np.ndarray, limit: str | None) -> dict[str, Any]:
    from sklearn.metrics import adjusted_rand_score

    with Meter() as whole:
        graph = GraphStore.open(store).graph
        bound = {} if limit is None else {"memory_limit": limit, "scratch": store.parent}
        model = CoresetSpectralClustering(clusters, random_state=0, **bound).fit(graph)
    # ARI needs a table of all pairs of labels; a million nodes tell it as well as all of them.
    some = np.random.default_rng(0).permutation(truth.size)[:1_000_000]
    ari = adjusted_rand_score(truth[some], model.labels_[some])
    return whole.report() | {"ari": ari, "normalized_cut": model.normalized_cut_, "stages": model.timings_}


PATHS = {"construction": construction, "default": default}


def child(path: str, store: str, clusters: int, limit: str | None) -> None:
    """Measure one path and print the result."""
    folder = Path(store)
    truth = read_labels(folder.with_suffix(".labels.npy"))[1].astype(np.int32)
    graph = GraphStore.open(folder)
    drop_from_cache(folder)
    result = PATHS[path](folder, clusters, truth, limit)
    print(json.dumps({"nodes": graph.n_nodes, "entries": graph.n_entries, "store_bytes": graph.n_bytes, **result}))


def generated(folder: Path, nodes: int, clusters: int, memory: str) -> Path:
    """Return the store of a planted graph, made now if it is not there."""
    store = folder / f"planted-{nodes}-{clusters}.store"
    if not GraphStore.is_store(store):
        script = "from corecut.cli import main; main()"
        arguments = ["generate", "planted", "--nodes", nodes, "-k", clusters, "--mean-degree", MEAN_DEGREE, "-o", store]
        arguments += ["--truth", store.with_suffix(".labels.npy"), "--memory", memory]
        subprocess.run([sys.executable, "-c", script, *map(str, arguments)], check=True)
    return store


def exponent(sizes: list[float], values: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000_000, 4_000_000, 16_000_000])
    parser.add_argument("--clusters", type=int, default=5000, help="number of clusters, at most 1 per 100 nodes")
    parser.add_argument("--paths", nargs="+", default=list(PATHS), choices=list(PATHS))
    parser.add_argument("--default-up-to", type=int, default=10_000_000, help="largest graph for the default path")
    parser.add_argument("--folder", type=Path, default=Path("scale-stores"))
    parser.add_argument("--memory", default="4GB", help="bound for making the graphs")
    parser.add_argument("--limit", help="bound on the memory of the default path, such as 4GB")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        path, store, clusters = arguments.child
        child(path, store, int(clusters), arguments.limit)
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[dict[str, Any]]] = {path: [] for path in arguments.paths}
    for nodes in sorted(arguments.nodes):
        clusters = min(arguments.clusters, nodes // 100)
        store = generated(arguments.folder, nodes, clusters, arguments.memory)
        for path in arguments.paths:
            if path == "default" and nodes > arguments.default_up_to:
                continue
            command = [sys.executable, __file__, "--child", path, str(store), str(clusters)]
            command += ["--limit", arguments.limit] if arguments.limit else []
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            result = json.loads(output.splitlines()[-1]) | {"clusters": clusters}
            found[path].append(result)
            show(path, result)
    for path, results in found.items():
        if len(results) > 1:
            edges = [result["entries"] / 2 for result in results]
            growth = {name: exponent(edges, [r[name] for r in results]) for name in ("seconds", "peak_bytes")}
            print(f"{path}: time grows like edges^{growth['seconds']:.2f}, memory like edges^{growth['peak_bytes']:.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


def show(path: str, result: dict[str, Any]) -> None:
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in result["stages"].items())
    quality = f", ARI {result['ari']:.3f}, normalised cut {result['normalized_cut']:.3f}" if "ari" in result else ""
    print(
        f"{path}: {result['nodes']:,} nodes, {result['entries'] // 2:,} edges, k = {result['clusters']:,}: "
        f"{result['seconds']:.2f} s ({result['cpu_seconds']:.2f} s CPU), {result['peak_bytes'] / 1e9:.2f} GB anonymous "
        f"({result['peak_bytes'] / result['nodes']:.0f} bytes per node), {result['bytes_read'] / 1e9:.2f} GB read"
        f"{quality} ({stages})",
        flush=True,
    )


if __name__ == "__main__":
    main()
