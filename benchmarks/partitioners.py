"""corecut beside KaMinPar and METIS on planted and real graphs: time with 1 and 2 threads, stage by stage, cut, peak memory.

    python benchmarks/partitioners.py                                      1 to 30 million edges: half an hour on 2 idle cores
    python benchmarks/partitioners.py --largest 100                        up to 100 million edges
    python benchmarks/partitioners.py --quick                              one small planted graph
    python benchmarks/partitioners.py --threads 1 2 4 8 16                 how the time falls with the threads

Every run has a child process of its own, where the method first clusters a ring of small cliques (libraries are loaded and
threads are started by then) and gets the graph in its own format before the clock starts. Runs of less than a second are made
three times, and the one of median time is reported. Processor time (user and
system, of all threads) stands beside the time on the clock: on a shared machine it is the steadier of the two. Kernels count
the processor time that they spend in parallel regions, and what of it would be left if each region had 16 cores (or as many
as it has blocks); both are printed, with the speed-up that follows. The last lines are the exponents with which times grow with
the edges. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from graphs import REAL, Planted, data_folder
from measure import in_child, machine
from zoo import fit_metis, kaminpar_input, metis_input

from corecut import CoresetSpectralClustering, Graph, _core, normalized_cut, read_graph

CORES = 16
STAGES = ("components", "aggregation", "eigenvectors", "rounding", "repair", "refinement")
#: Planted graphs of growing size: 2,000 nodes and 30,000 edges in each cluster.
PLANTED = (Planted(66_000, 33, 30, 0.2), Planted(200_000, 100, 30, 0.2), Planted(660_000, 330, 30, 0.2))
#: What every method clusters first, uncounted: a ring of cliques.
RING = sp.kron(sp.eye_array(20), np.ones((10, 10))) - sp.eye_array(200)
RING = sp.csr_array(RING + sp.eye_array(200, k=10) + sp.eye_array(200, k=-10))
LARGE = (Planted(2_000_000, 1000, 30, 0.2), Planted(6_600_000, 3300, 30, 0.2))


@dataclass
class Row:
    """One method on one graph."""

    graph: str
    edges: int
    method: str
    threads: int
    seconds: float
    processor: float
    peak_mb: float
    cut: float
    inside: float = 0.0
    shared: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)


def processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def fit_corecut(graph: Graph, k: int, threads: int) -> tuple[Any, dict[str, float]]:
    model = CoresetSpectralClustering(n_clusters=k, random_state=0, n_jobs=threads).fit(graph)
    return model.labels_, {name: model.timings_.get(name, 0.0) for name in STAGES}


def fit_kaminpar(graph: Any, k: int, threads: int) -> tuple[Any, dict[str, float]]:
    import kaminpar

    kaminpar.reseed(0)
    return kaminpar.KaMinPar(threads, kaminpar.default_context()).compute_partition(graph, k=k, eps=0.03), {}


METHODS: tuple[tuple[str, Callable[[Any], Any], Callable[[Any, int, int], Any]], ...] = (
    ("corecut", Graph.from_matrix, fit_corecut),
    ("KaMinPar", kaminpar_input, fit_kaminpar),
    ("METIS", metis_input, lambda given, k, _: (fit_metis(given, k, 0), {})),
)


def compare(name: str, matrix: sp.csr_array, k: int, threads: list[int], limit: float) -> list[Row]:
    graph, rows = Graph.from_matrix(matrix), []
    print(f"\n{name}: {graph.n_nodes:,} nodes, {graph.n_entries // 2:,} edges, k = {k}")
    print(f"{'':12}{'threads':>8}{'s':>9}{'cpu s':>9}{'peak MB':>9}{'cut':>9}")
    for method, prepare, fit in METHODS:
        for count in threads if method != "METIS" else threads[:1]:

            def timed(given: Any, count: int = count, fit: Callable[[Any, int, int], Any] = fit) -> Any:
                before = np.array([processor_time(), *_core.parallel_seconds(CORES)])
                labels, stages = fit(given, k, count)
                taken = np.array([processor_time(), *_core.parallel_seconds(CORES)]) - before
                return np.asarray(labels, dtype=np.int32), stages, taken

            def prepared(count: int = count, prepare: Callable[[Any], Any] = prepare, fit: Callable[..., Any] = fit) -> Any:
                fit(prepare(RING), 4, count)
                return prepare(matrix)

            runs = [in_child(timed, before=prepared, limit=limit)]
            while not runs[0].failed and runs[0].seconds < 1 and len(runs) < 3:
                runs.append(in_child(timed, before=prepared, limit=limit))
            run = sorted(runs, key=lambda one: one.seconds)[len(runs) // 2]
            if run.failed:
                print(f"{method:12}{count:8}  {run.failed}")
                continue
            labels, stages, (processor, inside, shared) = run.result
            cut = float(normalized_cut(graph, labels, n_clusters=k))
            figures = (run.seconds, float(processor), run.peak_mb, cut, float(inside), float(shared))
            rows.append(Row(name, graph.n_entries // 2, method, count, *figures, stages))
            print(f"{method:12}{count:8}{run.seconds:9.2f}{processor:9.2f}{run.peak_mb:9.0f}{cut:9.4f}")
    ours = {row.threads: row for row in rows if row.method == "corecut"}
    if threads[0] in ours:
        one = ours.pop(threads[0])
        for stage in (*STAGES, "whole"):
            times = {count: row.seconds if stage == "whole" else row.stages[stage] for count, row in (*ours.items(), (0, one))}
            if times[0] > 0:
                shares = "".join(f"{times[count]:9.2f} s with {count}: {times[count] / times[0]:5.2f}" for count in ours)
                print(f"  {stage:14}{times[0]:8.2f} s with {one.threads}{shares}")
        outside = one.processor - one.inside
        print(f"  outside of parallel regions {outside / one.processor:.3f} of the processor time; ", end="")
        print(f"on {CORES} cores {one.processor / (outside + one.shared):.1f} x")
    return rows


def growth(rows: list[Row]) -> dict[str, float]:
    """Return the exponent of growth of each method's processor time with the edges of planted graphs."""
    found = {}
    for method in sorted({row.method for row in rows}):
        own = [row for row in rows if row.method == method and row.graph.startswith("planted")]
        own = [row for row in own if row.threads == max(r.threads for r in own)]
        if len(own) > 1:
            found[method] = float(np.polyfit(np.log([r.edges for r in own]), np.log([r.processor for r in own]), 1)[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one small planted graph")
    parser.add_argument("--largest", type=float, default=30.0, help="millions of edges of the largest planted graph")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads; METIS gets the first")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds that a run may take")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    rows: list[Row] = []
    planted = PLANTED[:1] if options.quick else (*PLANTED, *LARGE)
    for problem in planted:
        if problem.n_nodes * problem.mean_degree / 2e6 <= options.largest:
            rows += compare(problem.name, problem.make()[0], problem.n_clusters, options.threads, options.limit)
    folder = data_folder()
    if folder is not None and not options.quick:
        for name, k in REAL.items():
            rows += compare(name, read_graph(folder / f"{name}.npz").adjacency, k, options.threads, options.limit)
    exponents = growth(rows)
    for method, exponent in exponents.items():
        print(f"{method}: processor time grows with edges^{exponent:.2f}")
    if options.json:
        found = {"machine": machine("kaminpar", "pymetis"), "rows": [asdict(row) for row in rows], "growth": exponents}
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
