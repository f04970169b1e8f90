"""Neighbour graphs of points: `fit(X)` of this version beside another one, and the search beside other libraries.

    python benchmarks/neighbors.py fit --other OTHER/bin/python      pen digits and MNIST from CORECUT_DATA, both sides in turn
    python benchmarks/neighbors.py search                            every method and library on MNIST: time and recall

Times are those of whole processes' fits: the first one of a process, which loads what it needs, and the second. Processor time
is told beside them, because other work on the machine changes it less.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FIT = """
import json, sys, time, warnings
import numpy as np
from corecut import CoresetSpectralClustering
warnings.simplefilter("ignore")
path, settings, repeats = json.loads(sys.argv[1])
with np.load(path) as data:
    X = data["X"].astype(np.float64)
runs = []
for _ in range(repeats):
    wall, cpu = time.perf_counter(), time.process_time()
    model = CoresetSpectralClustering(10, random_state=0, **settings).fit(X)
    runs.append((time.perf_counter() - wall, time.process_time() - cpu, model.timings_["graph"]))
print(json.dumps([runs, getattr(model, "neighbor_recall_", 1.0), model.normalized_cut_]))
"""


def fits(python: str, path: Path, settings: dict[str, Any], repeats: int) -> tuple[list[list[float]], float, float]:
    """Return (seconds, processor seconds, seconds for the graph) of the fits of one process, the recall and the cut."""
    arguments = json.dumps([str(path), settings, repeats])
    done = subprocess.run([python, "-c", FIT, arguments], check=True, capture_output=True, text=True)
    runs, recall, cut = json.loads(done.stdout)
    return runs, recall, cut


def compare_fits(data: Path, other: str, rounds: int) -> None:
    """Print the fits of both versions, in turn, and their ratios."""
    cases: list[tuple[str, dict[str, Any], int]] = [
        ("pendigits", {}, 2),
        ("mnist", {}, 1),
        ("mnist", {"neighbors": "approximate"}, 1),
    ]
    for name, settings, repeats in cases:
        ours, theirs = [], []
        for _ in range(rounds):
            theirs.append(fits(other, data / f"{name}.npz", {}, repeats))
            ours.append(fits(sys.executable, data / f"{name}.npz", settings, repeats))
        for turn in range(repeats):
            new, old = (np.median([runs[turn] for runs, _, _ in side], axis=0) for side in (ours, theirs))
            which = f"fit {turn + 1} of a process" if repeats > 1 else "fit"
            words = "".join(f", {key}={value!r}" for key, value in settings.items())
            print(
                f"{name}{words}, {which}: {new[0]:.2f} s beside {old[0]:.2f} s, ratio {new[0] / old[0]:.2f}; "
                f"processor time {new[1]:.2f} s beside {old[1]:.2f} s, ratio {new[1] / old[1]:.2f}; "
                f"graph {new[2]:.2f} s beside {old[2]:.2f} s; "
                f"recall {ours[0][1]:.4f}, cut {ours[0][2]:.4f} beside {theirs[0][2]:.4f}",
                flush=True,
            )


def own_search(X: Any, k: int, threads: int, *, approximate: bool) -> Any:
    from corecut.neighbor_search import nearest_points

    return nearest_points(X, None, k, approximate=approximate, threads=threads).indices


def scikit_learns(X: Any, k: int, threads: int) -> Any:
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=k, n_jobs=threads, algorithm="brute").fit(X).kneighbors(return_distance=False)


def faiss_flat(X: Any, k: int, threads: int) -> Any:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X)
    return index.search(X, k + 1)[1][:, 1:]


def faiss_cells(X: Any, k: int, threads: int) -> Any:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], len(X) // 200)
    index.nprobe = 20
    index.train(X)
    index.add(X)
    return index.search(X, k + 1)[1][:, 1:]


def faiss_hnsw(X: Any, k: int, threads: int) -> Any:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexHNSWFlat(X.shape[1], 16)
    index.hnsw.efSearch = 64
    index.add(X)
    return index.search(X, k + 1)[1][:, 1:]


def usearch_hnsw(X: Any, k: int, threads: int) -> Any:
    from usearch.index import Index

    index = Index(ndim=X.shape[1], metric="l2sq", dtype="f32", expansion_search=128)
    index.add(np.arange(len(X)), X, threads=threads)
    return index.search(X, k + 1, threads=threads).keys[:, 1:].astype(np.int64)


def descent(X: Any, k: int, threads: int) -> Any:
    from pynndescent import NNDescent

    return NNDescent(X, n_neighbors=k + 1, n_jobs=threads, random_state=0).neighbor_graph[0][:, 1:]


SEARCHES: dict[str, tuple[str, Callable[..., Any]]] = {
    "corecut, exact": ("corecut", lambda X, k, threads: own_search(X, k, threads, approximate=False)),
    "corecut, approximate": ("corecut", lambda X, k, threads: own_search(X, k, threads, approximate=True)),
    "scikit-learn, brute force": ("sklearn", scikit_learns),
    "faiss, flat": ("faiss", faiss_flat),
    "faiss, cells": ("faiss", faiss_cells),
    "faiss, HNSW": ("faiss", faiss_hnsw),
    "usearch, HNSW": ("usearch", usearch_hnsw),
    "pynndescent": ("pynndescent", descent),
}


def compare_searches(data: Path, n_points: int, k: int) -> None:
    """Print time, recall, and whether one and two threads find the same, for every library that is installed."""
    with np.load(data / "mnist.npz") as archive:
        X = archive["X"][:n_points].astype(np.float32)
    truth = own_search(X, k, 2, approximate=False)
    for name, (library, search) in SEARCHES.items():
        if importlib.util.find_spec(library) is None:
            print(f"{name}: not installed")
            continue
        found, times = {}, {}
        for threads in (2, 1):
            wall, cpu = time.perf_counter(), time.process_time()
            found[threads] = search(X, k, threads)
            times[threads] = (time.perf_counter() - wall, time.process_time() - cpu)
        recall = np.mean([np.isin(one, two).mean() for one, two in zip(found[2], truth, strict=True)])
        same = np.array_equal(found[1], found[2])
        print(
            f"{name}: {times[2][0]:.1f} s with two threads ({times[2][1]:.1f} s of processor time), "
            f"{times[1][0]:.1f} s with one; recall {recall:.4f}; {'the same' if same else 'another'} result with one thread",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fit", "search"])
    parser.add_argument("--other", help="Python that has another version of corecut installed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--points", type=int, default=70_000)
    parser.add_argument("--neighbors", type=int, default=17)
    parser.add_argument("--data", type=Path, default=os.environ.get("CORECUT_DATA"))
    given = parser.parse_args()
    if given.data is None:
        parser.error("CORECUT_DATA or --data must name the folder of pendigits.npz and mnist.npz")
    if given.what == "search":
        compare_searches(Path(given.data), given.points, given.neighbors)
    elif given.other is None:
        parser.error("fit needs --other")
    else:
        compare_fits(Path(given.data), given.other, given.rounds)


if __name__ == "__main__":
    main()
