"""How often the chosen number of clusters is the planted one, what other criteria would have chosen, and what it costs.

    python benchmarks/selection.py                     all; about half an hour on 2 cores
    python benchmarks/selection.py --fits              one draw of the planted graphs beside separate fits
    python benchmarks/selection.py --only 'sparse 10'  cases whose names match
    python benchmarks/selection.py --table             print the tables of the stored results

Planted graphs: ten draws each. Cost: processor seconds of the selection over those of a fit at k_max. Cut: normalised cut
at reported k over that of separate fits at the same k with the same fee, the worst of one draw. Other criteria choose among
the reported k: the peak of modularity, the largest gap of eigenvalues, the most stable k, the shortest description; and the
number of negative eigenvalues of the Bethe Hessian (first draw, up to 50 clusters). Needs the extras `bench` and `test`,
and networkx; real data by CORECUT_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut import CoresetSpectralClustering, Graph, make_degree_corrected_sbm, make_sbm, neighbor_graph, select_n_clusters
from corecut.graph import as_graph

RESULTS = Path(__file__).parents[1] / "docs" / "choosing-k" / "results.json"
DRAWS = 10
FEE = 0.002  # of the path, and of the fits beside it: plain cuts of different fees are those of different problems
Make = Callable[[int], Any]

_DENSE = {3: (400, 0.3, 0.1), 10: (200, 0.3, 0.04), 50: (100, 0.4, 0.01), 200: (60, 0.5, 0.002)}
_SPARSE = {3: 3000, 10: 5000, 50: 10_000, 200: 20_000}


def dense(k: int, *, powerlaw: bool) -> Make:
    """Return a maker of dense block models."""
    mean, p, q = _DENSE[k]

    def make(seed: int) -> Any:
        sizes: Any = mean
        if powerlaw:  # density s^-2 between 1 and 5 times the smallest
            drawn = 1 / (1 - 0.8 * np.random.default_rng(seed).random(k))
            sizes = np.maximum((drawn / drawn.mean() * mean).astype(int), 2)
        return make_sbm(sizes, k, p, q, random_state=seed)[0]

    return make


def sparse(k: int, mixing: float, sizes: Any) -> Make:
    """Return a maker of sparse degree-corrected graphs of mean degree 16."""
    return lambda seed: make_degree_corrected_sbm(_SPARSE[k], k, mixing=mixing, sizes=sizes, random_state=seed)[0]


def grid(rows: int, columns: int) -> sp.csr_array:
    """Return a grid."""
    return sp.csr_array(sp.kron(line(rows), sp.eye_array(columns)) + sp.kron(sp.eye_array(rows), line(columns)))


def line(n: int) -> sp.csr_array:
    """Return a path."""
    return sp.csr_array(sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1]))


def planted_cases() -> dict[str, tuple[int, Make]]:
    """Return name: (k, maker) of the planted graphs."""
    cases: dict[str, tuple[int, Make]] = {}
    for k in (3, 10, 50, 200):
        for powerlaw in (False, True):
            cases[f"dense {k} {'powerlaw' if powerlaw else 'equal'}"] = k, dense(k, powerlaw=powerlaw)
        for mixing in (0.2, 0.3):
            for sizes in ("equal", "powerlaw"):
                cases[f"sparse {k} mixing {mixing} {sizes}"] = k, sparse(k, mixing, sizes)
    return cases


def plain_cases() -> dict[str, Make]:
    """Return name: maker of graphs without clusters."""
    import networkx as nx

    return {
        "Erdős-Rényi, degree 16": lambda seed: make_sbm(3000, 1, 16 / 3000, 0, random_state=seed)[0],
        "Erdős-Rényi, degree 200": lambda seed: make_sbm(2000, 1, 0.1, 0, random_state=seed)[0],
        "power-law degrees": lambda seed: make_degree_corrected_sbm(5000, 1, random_state=seed)[0],
        "random regular, degree 4": lambda seed: nx.to_scipy_sparse_array(nx.random_regular_graph(4, 3000, seed=seed)),
        "preferential attachment": lambda seed: nx.to_scipy_sparse_array(nx.barabasi_albert_graph(3000, 4, seed=seed)),
        "grid 60 × 50": lambda _: grid(60, 50),
        "grid 100 × 20": lambda _: grid(100, 20),
        "path": lambda _: line(3000),
        "uniform points": lambda seed: neighbor_graph(np.random.default_rng(seed).random((3000, 2))),
        "Gaussian points": lambda seed: neighbor_graph(np.random.default_rng(seed).normal(size=(3000, 10))),
    }


def other_cases() -> dict[str, tuple[int, Make]]:
    """Return name: (number of classes, maker) of points and real graphs."""
    import networkx as nx
    from sklearn import datasets

    def lfr(mixing: float) -> Any:
        graph = nx.LFR_benchmark_graph(
            2000, 2.5, 1.5, mixing, average_degree=15, max_degree=80, min_community=30, max_community=150, seed=3
        )
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
        return nx.to_scipy_sparse_array(graph)

    cases: dict[str, tuple[int, Make]] = {
        "blobs, 8": (8, lambda s: neighbor_graph(datasets.make_blobs(3000, centers=8, n_features=8, random_state=s)[0])),
        "moons, noise 0.07": (2, lambda s: neighbor_graph(datasets.make_moons(3000, noise=0.07, random_state=s)[0])),
        "circles": (2, lambda s: neighbor_graph(datasets.make_circles(3000, noise=0.05, factor=0.5, random_state=s)[0])),
        "wine": (3, lambda _: neighbor_graph(_standard(datasets.load_wine().data))),
        "digits": (10, lambda _: neighbor_graph(datasets.load_digits().data)),
        "LFR, mixing 0.1": (30, lambda _: lfr(0.1)),
        "LFR, mixing 0.3": (30, lambda _: lfr(0.3)),
        "LFR, mixing 0.5": (30, lambda _: lfr(0.5)),
    }
    data = os.environ.get("CORECUT_DATA")
    if data:
        for name, k in {"email_eu_core": 42, "cora": 7, "amazon_photo": 8, "coauthor_cs": 15, "pendigits": 10}.items():
            cases[name] = k, lambda _, name=name: _stored(Path(data) / f"{name}.npz")
    return cases


def _standard(points: Any) -> Any:
    return (points - points.mean(axis=0)) / points.std(axis=0)


def _stored(path: Path) -> Any:
    held = np.load(path)
    if "X" in held:
        return neighbor_graph(held["X"].astype(np.float64))
    n = int(held["n"])
    half = sp.coo_array((np.ones(held["src"].size), (held["src"], held["dst"])), shape=(n, n))
    return sp.csr_array(half + half.T)


def bethe_hessian(graph: Graph, most: int) -> int:
    """Return the number of negative eigenvalues of (r² - 1)I - rA + D, r² = Σd²/Σd - 1, counted up to `most`."""
    from scipy.sparse.linalg import eigsh

    d = graph.degrees
    r = np.sqrt(max(np.square(d).sum() / d.sum() - 1, 1.0))
    matrix = sp.csr_array(sp.diags_array(r * r - 1 + d) - r * graph.adjacency)
    values = eigsh(matrix, k=min(most, graph.n_nodes - 2), which="SA", return_eigenvectors=False, tol=1e-3)
    return int(np.count_nonzero(values < 0))


def measured(graph: Any, seed: int) -> dict[str, Any]:
    """Return what one selection found, and what other criteria would have."""
    found = select_n_clusters(graph, random_state=seed, n_jobs=1)
    path = [one for one in found.path if one.n_clusters > 1]
    return {
        "best": found.best,
        "runner_up": found.runner_up,
        "confidence": round(found.confidence, 3),
        "k_max": found.k_max,
        "modularity": max(path, key=lambda one: one.modularity).n_clusters,
        "eigengap": max(path, key=lambda one: np.nan_to_num(one.eigengap)).n_clusters,
        "stability": max(path, key=lambda one: one.stability).n_clusters,
        "description": max(found.path, key=lambda one: one.description).n_clusters,
    }


def beside_fits(graph: Any, truth: int) -> dict[str, Any]:
    """Return what a selection costs beside a fit at k_max, and its cuts beside those of fits at some of the reported k."""
    checked, seconds = as_graph(graph), []
    for _ in range(2):  # the first one loads what it needs
        since = process_time()
        found = select_n_clusters(checked, random_state=0, n_jobs=1)
        between = process_time()
        CoresetSpectralClustering(found.k_max, random_state=0, n_jobs=1).fit(checked)
        seconds.append((between - since) / (process_time() - between))
    path = [one for one in found.path if one.n_clusters > 1]
    cuts = {}
    for one in path[:: max(1, len(path) // 7)]:
        fitted = CoresetSpectralClustering(one.n_clusters, balance=FEE, random_state=0, n_jobs=1).fit(checked)
        cut = fitted.normalized_cut_
        cuts[one.n_clusters] = round(one.normalized_cut / cut, 4)
    bethe = bethe_hessian(checked, truth + 30) if truth <= 50 else None
    return {"cost": round(min(seconds), 2), "cuts": cuts, "bethe_hessian": bethe}


def tables(results: dict[str, Any]) -> str:
    """Return the tables of the documentation."""
    lines = _header("planted graph", "exact", "largest error", "least confidence", "cost", "worst cut beside fits")
    for name, case in results["planted"].items():
        rows, k = case["rows"], case["k"]
        exact = sum(row["best"] == k for row in rows)
        error = max(abs(row["best"] - k) / k for row in rows)
        least = min(row["confidence"] for row in rows)
        fits = results["fits"].get(name)
        beside = f"{fits['cost']:.1f} | {max(fits['cuts'].values()):.3f}" if fits else " | "
        lines.append(f"| {name} | {exact} of {len(rows)} | {error:.1%} | {least:.2f} | {beside} |")
    lines += ["", *_header("planted graph", "modularity", "eigengap", "stability", "description", "Bethe Hessian")]
    for name, case in results["planted"].items():
        rows, k = case["rows"], case["k"]
        counts = [sum(row[c] == k for row in rows) for c in ("modularity", "eigengap", "stability", "description")]
        bethe = results["fits"].get(name, {}).get("bethe_hessian")
        lines.append(f"| {name} | {' | '.join(map(str, counts))} | {'' if bethe is None else bethe} |")
    lines += ["", *_header("graph without clusters", "answers", "most confidence")]
    for name, case in results["plain"].items():
        answers = sorted({row["best"] for row in case["rows"]})
        most = max(row["confidence"] for row in case["rows"])
        lines.append(f"| {name} | {', '.join(map(str, answers))} | {most:.2f} |")
    head = ("graph", "classes", "chosen", "runner-up", "confidence", "modularity", "eigengap", "description")
    lines += ["", *_header(*head)]
    for name, case in results["other"].items():
        row = case["rows"][0]
        told = f"{row['best']} | {row['runner_up']} | {row['confidence']:.2f}"
        lines.append(f"| {name} | {case['k']} | {told} | {row['modularity']} | {row['eigengap']} | {row['description']} |")
    return "\n".join(lines) + "\n"


def _header(*names: str) -> list[str]:
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def main() -> None:
    """Run the cases and store what they gave, one by one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose names match this pattern")
    parser.add_argument("--fits", action="store_true", help="compare one draw of the planted graphs with separate fits instead")
    parser.add_argument("--out", type=Path, default=RESULTS, help="file of results, which is added to")
    parser.add_argument("--table", action="store_true", help="print the tables of the stored results")
    asked = parser.parse_args()
    results: dict[str, Any] = {"planted": {}, "fits": {}, "plain": {}, "other": {}}
    if asked.out.exists():
        results |= json.loads(asked.out.read_text(encoding="utf-8"))
    if asked.table:
        print(tables(results), end="")
        return
    warnings.simplefilter("ignore")
    planted = planted_cases()
    cases: list[tuple[str, str, int | None, Make, int]]
    if asked.fits:
        cases = [("fits", name, k, make, 1) for name, (k, make) in planted.items()]
    else:
        cases = [("planted", name, k, make, DRAWS) for name, (k, make) in planted.items()]
        cases += [("plain", name, None, make, 5) for name, make in plain_cases().items()]
        cases += [("other", name, k, make, 1) for name, (k, make) in other_cases().items()]
    for kind, name, k, make, draws in cases:
        if not re.search(asked.only, name):
            continue
        if kind == "fits":
            results[kind][name] = beside_fits(make(0), k or 0)
        else:
            results[kind][name] = {"k": k, "rows": [measured(make(seed), seed) for seed in range(draws)]}
        print(name, [row["best"] for row in results[kind][name].get("rows", [])], flush=True)
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
