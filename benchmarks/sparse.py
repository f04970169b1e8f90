"""Clusterings of sparse graphs beside METIS, Leiden, coreset-sc and scikit-learn: cuts, agreement, time, memory, sizes.

    python benchmarks/sparse.py                                          real and planted graphs: about an hour on 2 cores
    python benchmarks/sparse.py --quick                                  small graphs of all parts, one seed, about a minute
    python benchmarks/sparse.py --graphs email_eu_core,com_dblp          some graphs (planted ones by the names it prints)
    python benchmarks/sparse.py --knn --dense --growth --json out.json   these parts only; with --graphs all everything

Real graphs are read from the folder that CORECUT_DATA names. Parts:

    graphs      corecut as a user calls it, METIS, METIS followed by `refine_partition`, Leiden (modularity; the number of
                clusters is its own), coreset-sc with a coreset of 10 %, scikit-learn on small problems.
    --knn       neighbour graphs of real points as precomputed graphs, beside scikit-learn's spectral clustering.
    --dense     block model of 1000 nodes per cluster (p = 0.5, q = 0.001/k), coreset of 1 %, beside coreset-sc.
    --growth    time for planted graphs of growing size, and the exponent of its growth with the edges.

Every run has a child process of its own. The graph comes in each method's own format before the clock starts: integer weights
for METIS, an igraph graph for Leiden, unit self-loops for coreset-sc. Peak memory is what comes on top of that input. Cuts are
means over the clusters. Figures are medians over the seeds (peak memory: the
largest). The last lines hold the figures against the bounds that they are judged by. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import igraph
import numpy as np
import pymetis
import scipy.sparse as sp
from graphs import NEIGHBORS, PLANTED, QUICK, REAL, Planted, Problem, data_folder, neighbor_matrix, neighbors, planted, real
from measure import Run, in_child, machine
from peers import fit_coreset_sc, fit_scikit_learn, with_loops
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from verdicts import PLAIN, Row, judge

from corecut import CoresetSpectralClustering, Graph, conductance, make_sbm, normalized_cut, refine_partition

# scikit-learn is asked where its k eigenvectors of length n are few; in the part of neighbour graphs always.
FEASIBLE = 300_000
TABLE = ("s", "peak MB", "ncut", "ARI", "NMI", "largest %", "median", "clusters")


@dataclass(frozen=True)
class Method:
    """How a graph is given to a method, and how it is clustered: fit(prepared, k, seed) -> labels.

    A method with a `limit` is not asked where n·k is larger.
    """

    name: str
    fit: Callable[[Any, int, int], Any]
    prepare: Callable[[sp.csr_array], Any] = lambda matrix: matrix
    once: bool = False
    limit: float = float("inf")


# --- methods -------------------------------------------------------------------------------------------------------------


def fit_corecut(matrix: sp.csr_array, k: int, seed: int) -> Any:
    # A Graph: like the others, without the measures that fit takes of a matrix at once.
    return CoresetSpectralClustering(n_clusters=k, random_state=seed).fit(Graph.from_matrix(matrix)).labels_


def metis_input(matrix: sp.csr_array) -> tuple[pymetis.CSRAdjacency, Any]:
    """Return the graph without self-loops and with integer weights, or none where all are equal."""
    bare = sp.csr_array(matrix - sp.diags_array(matrix.diagonal(), format="csr"))
    bare.eliminate_zeros()
    weights = None if np.ptp(bare.data) == 0 else np.rint(bare.data / bare.data.min()).astype(np.int64)
    return pymetis.CSRAdjacency(bare.indptr.astype(np.int64), bare.indices.astype(np.int64)), weights


def fit_metis(prepared: tuple[pymetis.CSRAdjacency, Any], k: int, seed: int) -> Any:
    adjacency, weights = prepared
    found = pymetis.part_graph(k, adjacency, eweights=weights, options=pymetis.Options(seed=seed))
    return np.asarray(found.vertex_part, dtype=np.int32)


def igraph_of(matrix: sp.csr_array) -> tuple[igraph.Graph, Any]:
    upper = sp.triu(matrix).tocoo()
    graph = igraph.Graph(n=matrix.shape[0], edges=np.column_stack(upper.coords))
    return graph, None if np.ptp(upper.data) == 0 else upper.data.tolist()


def fit_leiden(prepared: tuple[igraph.Graph, Any], k: int, seed: int) -> Any:
    del k  # it finds its own number
    graph, weights = prepared
    random.seed(seed)
    return np.array(graph.community_leiden(objective_function="modularity", weights=weights).membership, dtype=np.int32)


def fit_peer(fit: Callable[..., tuple[Any, Any]], share: float) -> Callable[[Any, int, int], Any]:
    def labels_of(matrix: Any, k: int, seed: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, on graphs of several components
            return fit(matrix, k, max(k, int(share * matrix.shape[0])), seed)[1]

    return labels_of


CORECUT = Method("corecut", fit_corecut)
METIS = Method("METIS", fit_metis, metis_input)
LEIDEN = Method("Leiden", fit_leiden, igraph_of)
CORESET_SC = Method("coreset-sc", fit_peer(fit_coreset_sc, 0.1), with_loops)
SCIKIT_LEARN = Method("scikit-learn", fit_peer(fit_scikit_learn, 1.0), once=True)


# --- measurement ---------------------------------------------------------------------------------------------------------


@dataclass
class Bench:
    """Graphs and methods measured so far."""

    seeds: int
    limit: float
    rows: list[Row] = field(default_factory=list)

    def run(self, method: Method, matrix: Any, k: int, seed: int) -> Run:
        tiny = make_sbm(500, 4, 0.1, 0.001, random_state=0)[0]

        def prepared() -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is said of the warm-up's graph
                method.fit(method.prepare(tiny), 4, seed)
            return method.prepare(matrix)

        return in_child(lambda given: method.fit(given, k, seed), before=prepared, limit=self.limit)

    def compare(self, part: str, problem: Problem, methods: list[Method], *, refined: bool = False) -> dict[str, Row]:
        """Measure methods on a graph and print a table; with `refined`, what refinement makes of METIS's partitions, too."""
        matrix, truth = problem.make()
        graph, k = Graph.from_matrix(matrix), problem.n_clusters
        print(f"\n{problem.name}: {graph.n_nodes:,} nodes, {graph.n_entries:,} entries, k = {k}")
        print(f"{'':32}" + "".join(f"{head:>10}" for head in TABLE))
        found: dict[str, list[dict[str, Any]]] = {}
        for method in (m for m in methods if graph.n_nodes * k <= m.limit):
            for seed in range(1 if method.once else self.seeds):
                run = self.run(method, matrix, k, seed)
                found.setdefault(method.name, []).append(_figures(graph, run, k, truth, own_k=method is LEIDEN))
                if method is METIS and refined and not run.failed:
                    found.setdefault(PLAIN, []).append(_figures(graph, _refine(graph, run, k), k, truth))
                if run.failed:
                    break
        rows = {name: Row(part, problem.name, k, name, runs) for name, runs in found.items()}
        for row in rows.values():
            print(row.line(), flush=True)
        self.rows += rows.values()
        return rows


def _refine(graph: Graph, partition: Run, k: int) -> Run:
    """Refine a partition; time and memory are those of both steps."""
    labels = partition.result
    run = in_child(lambda _: refine_partition(graph, labels, n_clusters=k).labels)
    seconds, peak = partition.seconds + run.seconds, max(partition.peak_mb, run.peak_mb)
    return Run(run.result, seconds, peak, run.failed)


def _figures(graph: Graph, run: Run, k: int, truth: Any, *, own_k: bool = False) -> dict[str, Any]:
    """Return all figures of one run."""
    if run.failed:
        return {"failed": run.failed}
    labels = run.result
    sizes = np.bincount(labels, minlength=0 if own_k else k)
    known = None if truth is None else truth >= 0
    score: dict[str, Any] = {"ari": None, "nmi": None}
    if known is not None:
        score = {"ari": adjusted_rand_score(truth[known], labels[known])}
        score["nmi"] = normalized_mutual_info_score(truth[known], labels[known])
    return {
        "seconds": run.seconds,
        "peak_mb": run.peak_mb,
        "ncut": normalized_cut(graph, labels, n_clusters=sizes.size),
        **score,
        "largest": float(sizes.max() / graph.n_nodes),
        "conductance_of_largest": float(conductance(graph, labels, n_clusters=sizes.size)[sizes.argmax()]),
        "median": float(np.median(sizes)),
        "clusters": int(np.count_nonzero(sizes)),
    }


# --- parts ---------------------------------------------------------------------------------------------------------------


def compare_graphs(bench: Bench, problems: list[Problem]) -> None:
    feasible = replace(SCIKIT_LEARN, limit=FEASIBLE)
    for problem in problems:
        rows = bench.compare("graphs", problem, [CORECUT, METIS, LEIDEN, CORESET_SC, feasible], refined=True)
        ours, metis = rows["corecut"], rows["METIS"]
        if not ours.failed and not metis.failed:
            print(f"corecut / METIS: time {ours.median('seconds') / metis.median('seconds'):.2f}")


def compare_neighbors(bench: Bench, names: list[str], digits_seeds: int) -> None:
    for name in names:
        bench.compare("knn", neighbors(name), [CORECUT, SCIKIT_LEARN])
    points, classes = load_digits(return_X_y=True)
    digits = Problem("digits_10nn", 10, lambda: (neighbor_matrix(points, 10), classes))
    # The same list of rows, with another number of seeds.
    replace(bench, seeds=digits_seeds).compare("digits", digits, [CORECUT, replace(SCIKIT_LEARN, once=False)])


def compare_dense(bench: Bench, k: int) -> None:
    def fit(matrix: Any, k: int, seed: int) -> Any:
        return CoresetSpectralClustering(k, coreset_size=0.01, random_state=seed).fit(Graph.from_matrix(matrix)).labels_

    problem = Problem(f"block_model_k{k}", k, lambda: make_sbm(1000, k, 0.5, 0.001 / k, random_state=k))
    peer = Method("coreset-sc", fit_peer(fit_coreset_sc, 0.01), with_loops)
    bench.compare("dense", problem, [Method("corecut", fit, with_loops), peer])


def measure_growth(bench: Bench, edges: list[float]) -> None:
    print(f"\ngrowth: planted graphs, mean degree 16, mixing 0.2, k = 100\n{'edges':>14}{'s':>10}{'peak MB':>10}{'ARI':>10}")
    for count in edges:
        graph = Planted(int(count / 8), 100, 16, 0.2)
        matrix, truth = graph.make(np.float32)
        run = bench.run(CORECUT, matrix, 100, 0)
        figures: dict[str, Any] = {"failed": run.failed} if run.failed else {"seconds": run.seconds, "peak_mb": run.peak_mb}
        if not run.failed:
            some = np.random.default_rng(0).permutation(truth.size)[:1_000_000]
            figures["ari"] = adjusted_rand_score(truth[some], run.result[some])
            print(f"{matrix.nnz // 2:14,}{run.seconds:10.2f}{run.peak_mb:10.0f}{figures['ari']:10.3f}", flush=True)
        bench.rows.append(Row("growth", graph.name, 100, "corecut", [figures], edges=matrix.nnz // 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small graphs of all parts, one seed, about a minute")
    parser.add_argument("--graphs", metavar="NAME,...", help='real and planted graphs by name, or "all"')
    parser.add_argument("--knn", action="store_true", help="neighbour graphs beside scikit-learn")
    parser.add_argument("--dense", action="store_true", help="dense block model beside coreset-sc")
    parser.add_argument("--growth", action="store_true", help="time from 1 to 100 million edges")
    parser.add_argument("--seeds", type=int, help="runs of each method (default 5)")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds after which a run is given up")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write all figures to this file")
    options = parser.parse_args()
    quick = options.quick
    parts = {name for name in ("knn", "dense", "growth") if getattr(options, name)}
    chosen = options.graphs
    if not parts and chosen is None:
        chosen, parts = "all", {"knn", "dense", "growth"} if quick else set()
    problems = [real(name) for name in (list(REAL)[:2] if quick else REAL)] if data_folder() else []
    problems += [planted(graph) for graph in (QUICK if quick else PLANTED)]
    if not data_folder():
        print("CORECUT_DATA names no folder: real graphs are left out")
    if chosen not in (None, "all"):
        by_name = {problem.name: problem for problem in problems}
        unknown = set(chosen.split(",")) - set(by_name)
        if unknown:
            parser.error(f"there is no graph {', '.join(sorted(unknown))}; there are {', '.join(by_name)}")
        problems = [by_name[name] for name in chosen.split(",")]

    about = machine("pymetis", "igraph", "coreset-sc", "scikit-learn", "scipy", "numpy")
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    bench = Bench(options.seeds or (1 if quick else 5), options.limit)
    if chosen is not None:
        compare_graphs(bench, problems)
    if "knn" in parts:
        compare_neighbors(bench, [] if quick else list(NEIGHBORS), 3 if quick else 10)
    if "dense" in parts:
        compare_dense(bench, 20 if quick else 250)
    if "growth" in parts:
        measure_growth(bench, [1e5, 3e5, 1e6] if quick else [1e6, 1e7, 1e8])
    verdicts = judge(bench.rows)
    print("\njudged by:")
    for verdict in verdicts:
        print(verdict)
    if options.json is not None:
        found = {
            "machine": about | {"seeds": bench.seeds},
            "rows": [row.record() for row in bench.rows],
            "judged": [str(v) for v in verdicts],
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
