"""Time, peak memory and quality beside `coreset-sc` (the paper's authors' code) and scikit-learn, on the same matrices.

    python benchmarks/peers.py                  everything: about ten minutes on 2 cores, 12 GB of memory
    python benchmarks/peers.py --quick          smaller graphs, within a minute
    python benchmarks/peers.py --sbm 250 --planted --json peers.json

Two parts. Stochastic block models (1000 nodes per cluster, p = 0.5, q = 0.001/k): a whole `fit` with a coreset of 1 %, with
and without the labelling of all nodes. A planted graph of LiveJournal's size (power-law degrees, 4 M nodes, 65 M entries): the
construction of a coreset of 100,000 points for growing k.

Every measurement runs in a child process of its own that inherits the matrix, after a warm-up on a tiny graph. Its peak memory
is the growth of the process's high-water mark, so that native allocations of every library count. Linux only, for that
reason. Figures are medians (peak memory: largest, ARI: mean) over the repeats. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import coreset_sc
import numpy as np
import scipy.sparse as sp
from measure import Clock, in_child, machine
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score

from corecut import (
    CoresetSpectralClustering,
    Graph,
    KernelView,
    build_coreset,
    coreset_graph,
    make_degree_corrected_sbm,
    make_sbm,
)

Seconds = dict[str, float]
Method = Callable[[sp.csr_matrix, int, int, int], tuple[Seconds, Any]]
CORESET_SHARE = 0.01


# --- whole fits: (matrix, k, coreset size, seed) -> seconds of each step, labels of all nodes --------------------------


def fit_corecut(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> tuple[Seconds, Any]:
    # The steps of the published method, with our sampler and labelling rule. A Graph: like the peer's, without the measures
    # that fit takes of a matrix at once.
    known = CoresetSpectralClustering().get_params()
    plain = {name: False for name in ("aggregate", "refine") if name in known}
    clock = Clock()
    model = CoresetSpectralClustering(k, coreset_size=size, random_state=seed, **plain).fit(Graph.from_matrix(matrix))
    clock.stop("fit")
    labelling = model.timings_["labelling"]
    return {"without labelling": clock.seconds["fit"] - labelling, "labelling": labelling}, model.labels_


def fit_coreset_sc(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> tuple[Seconds, Any]:
    np.random.seed(seed)  # noqa: NPY002  (its k-means draws from there; its native code cannot be seeded)
    clock = Clock()
    ratio = size / matrix.shape[0]
    model = coreset_sc.CoresetSpectralClustering(k, coreset_ratio=ratio, full_labels=False).fit(matrix)
    clock.stop("without labelling")
    model.label_full_graph()
    clock.stop("labelling")
    return clock.seconds, model.labels_


def fit_scikit_learn(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> tuple[Seconds, Any]:
    del size  # it clusters the whole graph
    clock = Clock()
    model = SpectralClustering(k, affinity="precomputed", random_state=seed).fit(matrix)
    clock.stop("without labelling")
    return {**clock.seconds, "labelling": 0.0}, model.labels_


# --- construction of a coreset: (matrix, k, coreset size, seed) -> seconds of each step, nothing -------------------------


def construct_corecut(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> tuple[Seconds, None]:
    clock = Clock()
    kernel = KernelView.from_graph(Graph.from_matrix(matrix))
    clock.stop("input")
    coreset = build_coreset(kernel, k, size=size, random_state=seed)
    clock.stop("coreset")
    coreset_graph(kernel, coreset)
    clock.stop("coreset graph")
    return clock.seconds, None


def construct_coreset_sc(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> tuple[Seconds, None]:
    """Call its native function as its `fit` does."""
    del seed
    clock = Clock()
    degrees = matrix.sum(axis=1).A1
    data, indices, indptr = coreset_sc.utils.convert_from_csr_matrix(matrix)
    per_row = np.diff(indptr).astype(np.uint64)
    clock.stop("input")
    coreset_sc.coreset_sc.coreset_embeddings(k, matrix.shape[0], size, 2.0, data, indices, indptr, per_row, degrees, 0.0, True)
    clock.stop("coreset_embeddings")
    return clock.seconds, None


# --- measurement ---------------------------------------------------------------------------------------------------------


def measure(
    method: Method, matrix: sp.csr_matrix, k: int, size: int, *, truth: Any, repeats: int, limit: float
) -> dict[str, Any]:
    """Run a method in one child process after the other and sum up; no further repeat once one fails or takes too long."""
    tiny = with_loops(make_sbm(100, 4, 0.5, 0.01, random_state=0)[0])
    runs: list[dict[str, Any]] = []
    for seed in range(repeats):
        run = in_child(lambda _, s=seed: method(matrix, k, size, s), before=lambda s=seed: method(tiny, 4, 200, s), limit=limit)
        if run.failed:
            return {"failed": run.failed}
        seconds, labels = run.result
        ari = None if labels is None else float(adjusted_rand_score(truth, labels))
        runs.append({"seconds": seconds, "peak_mb": run.peak_mb, "ari": ari})
    steps = runs[0]["seconds"]
    ari = None if runs[0]["ari"] is None else statistics.mean(run["ari"] for run in runs)
    return {
        "seconds": {step: statistics.median(run["seconds"][step] for run in runs) for step in steps},
        "total_s": statistics.median(sum(run["seconds"].values()) for run in runs),
        "peak_mb": max(run["peak_mb"] for run in runs),
        "ari": ari,
    }


def with_loops(graph: sp.csr_array) -> sp.csr_matrix:
    """Return the graph with unit self-loops, which coreset-sc insists on, in the one format that it takes."""
    looped = sp.csr_matrix(graph + sp.eye_array(graph.shape[0], format="csr"))
    # Known to be sorted: no library has to find out.
    assert looped.has_canonical_format
    return looped


# --- the two parts --------------------------------------------------------------------------------------------------------


def compare_fits(k: int, methods: dict[str, Method], *, repeats: int, limit: float) -> list[dict[str, Any]]:
    graph, truth = make_sbm(1000, k, 0.5, 0.001 / k, random_state=k)
    matrix = with_loops(graph)
    del graph
    n = matrix.shape[0]
    size = int(CORESET_SHARE * n)
    print(f"\nblock model, k = {k}: {n:,} nodes, {matrix.nnz:,} entries, coreset of {size:,}")
    print(f"{'':14}{'fit s':>10}{'without labelling s':>21}{'labelling s':>13}{'peak MB':>10}{'ARI':>8}")
    rows: dict[str, dict[str, Any]] = {}
    for name, method in methods.items():
        once = name == "scikit-learn"
        row = measure(method, matrix, k, size, truth=truth, repeats=1 if once else repeats, limit=limit)
        rows[name] = {"part": "sbm", "k": k, "entries": int(matrix.nnz), "size": size, "method": name, **row}
        if "failed" in row:
            print(f"{name:14}{row['failed']}", flush=True)
            continue
        seconds = row["seconds"]
        print(
            f"{name:14}{row['total_s']:10.3f}{seconds['without labelling']:21.3f}{seconds['labelling']:13.3f}"
            f"{row['peak_mb']:10.1f}{row['ari']:8.3f}",
            flush=True,
        )
    ours = rows["corecut"]
    for name, row in rows.items():
        if name != "corecut" and "failed" not in ours and "failed" not in row:
            times = row["total_s"] / ours["total_s"]
            memory = row["peak_mb"] / max(ours["peak_mb"], 0.1)
            print(f"{name} / corecut: time {times:.1f}, memory above the input {memory:.1f}")
            row |= {"times_slower": times, "times_memory": memory}
    return list(rows.values())


def compare_constructions(n: int, clusters: list[int], size: int, *, repeats: int, limit: float) -> list[dict[str, Any]]:
    graph, _ = make_degree_corrected_sbm(n, max(2, n // 4000), mean_degree=15.25, mixing=0.3, random_state=0)
    matrix = with_loops(graph)
    del graph
    print(f"\nplanted graph: {n:,} nodes, {matrix.nnz:,} entries, coreset of {size:,} points")
    print(f"{'':10}{'corecut':>41}{'coreset-sc':>35}{'coreset-sc / corecut':>22}")
    head = f"{'k':>8}  {'input s':>9}{'coreset s':>11}{'+ graph s':>11}{'peak MB':>10}"
    print(f"{head}{'input s':>11}{'embeddings s':>14}{'peak MB':>10}{'time':>8}{'memory':>8}")
    rows: list[dict[str, Any]] = []
    construction: Seconds = {}
    for k in clusters:
        settings = {"truth": None, "repeats": repeats, "limit": limit}
        ours = measure(construct_corecut, matrix, k, size, **settings)
        peer = measure(construct_coreset_sc, matrix, k, size, **settings)
        line = f"{k:8,}  "
        if "failed" in ours:
            line += ours["failed"]
        else:
            seconds = ours["seconds"]
            construction[str(k)] = seconds["coreset"]
            line += f"{seconds['input']:9.3f}{seconds['coreset']:11.3f}{seconds['coreset graph']:11.3f}{ours['peak_mb']:10.1f}"
        if "failed" in peer:
            line += f"  {peer['failed']}"
        else:
            line += f"{peer['seconds']['input']:11.3f}{peer['seconds']['coreset_embeddings']:14.3f}{peer['peak_mb']:10.1f}"
        if "failed" not in ours and "failed" not in peer:
            peer["times_slower"] = peer["seconds"]["coreset_embeddings"] / ours["seconds"]["coreset"]
            peer["times_memory"] = peer["peak_mb"] / max(ours["peak_mb"], 0.1)
            line += f"{peer['times_slower']:8.1f}{peer['times_memory']:8.1f}"
        print(line, flush=True)
        shared = {"part": "planted", "k": k, "entries": int(matrix.nnz), "size": size}
        rows += [{**shared, "method": "corecut", **ours}, {**shared, "method": "coreset-sc", **peer}]
    if len(construction) > 1:
        first, *_, last = construction
        print(f"corecut's time grows {construction[last] / construction[first]:.2f} times from k = {first} to k = {last}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="corecut beside coreset-sc and scikit-learn")
    parser.add_argument("--quick", action="store_true", help="smaller graphs, within a minute")
    parser.add_argument("--sbm", type=int, nargs="*", metavar="K", help="clusters of the block models (default 10 50 250)")
    parser.add_argument("--planted", type=int, nargs="*", metavar="K", help="k of the coresets (default 100 1000 5000 20000)")
    parser.add_argument("--repeats", type=int, help="runs of each measurement (default 3)")
    parser.add_argument("--limit", type=float, help="seconds after which a run is given up (default 180)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write all figures to this file")
    options = parser.parse_args()
    sbm = options.sbm if options.sbm is not None else [10, 20] if options.quick else [10, 50, 250]
    planted = options.planted if options.planted is not None else [100, 2000] if options.quick else [100, 1000, 5000, 20000]
    repeats = options.repeats or 3
    limit = options.limit or (15.0 if options.quick else 180.0)
    about = machine("coreset-sc", "scikit-learn", "scipy", "numpy")
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    rows: list[dict[str, Any]] = []
    methods: dict[str, Method] = {"corecut": fit_corecut, "coreset-sc": fit_coreset_sc, "scikit-learn": fit_scikit_learn}
    for k in sorted(sbm):
        found = compare_fits(k, methods, repeats=repeats, limit=limit)
        rows += found
        # Whoever did not end on this graph is not asked again for a larger one.
        methods = {row["method"]: methods[row["method"]] for row in found if "failed" not in row}
        if "corecut" not in methods:
            break
    if planted:
        n, size = (400_000, 10_000) if options.quick else (4_000_000, 100_000)
        rows += compare_constructions(n, planted, size, repeats=repeats, limit=limit)
    if options.json is not None:
        options.json.write_text(json.dumps({"machine": about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
