"""Every kind of graph that people try first, beside scikit-learn, METIS, KaMinPar and Leiden: the cases where corecut is worse.

    python benchmarks/zoo.py --quick                            graphs of at most 5,000 nodes, some minutes
    python benchmarks/zoo.py                                    these and graphs of up to 50,000 nodes
    python benchmarks/zoo.py --large                            all, up to 100,000 nodes
    python benchmarks/zoo.py --quick --peers peers.json         keep the peers' results in a file: later runs reuse them
    python benchmarks/zoo.py --only 'moons|grid' --settings eigen_solver=arpack n_init=8

Points are made into one neighbour graph that all methods get. Cuts are `corecut.normalized_cut` of that graph (means over the
clusters); corecut's figures are the median and the worst over the seeds, a peer's its median. The best peer is the one with
the lowest cut among those that give k clusters, none of them empty. METIS and KaMinPar get integer weights (100 times the
median weight, between 1 and a million) and no loops, scikit-learn only graphs of at most 6,000 nodes. Leiden is asked with
the resolution that gives k clusters, where one is found. ARI is held against the better of scikit-learn's two. A star marks a
best peer whose median cluster has less than 0.3 of the mean's nodes, or whose least one has less than a hundredth of the mean's
volume, as pairs of nodes apart from the rest: by default corecut pays for clusters that are more even, and cuts more for it,
unless they are communities of such sizes.
Where its cut is above 1.05 times the best peer's, what `balance=0`, the plain cut, finds is measured as well.

Flags: `cut` median cut above 1.05 times that of the best peer without a star (above 1e-12 where that is 0); `uneven` only above
that of one with a star; `ari` median ARI lower than scikit-learn's by more than 0.03, or below 0.999 for any seed where the
clusters are plain; `seed` either of the worst seed alone; `empty` a cluster without nodes; `error` an exception; `time` more
than two seconds and more than ten times METIS's time.
Linux only, since every run has a process of its own. Needs the extras `bench` and `test`.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import os
import random
import re
import statistics
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from measure import in_child, machine
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score
from zoo_graphs import DEFAULT, LARGE, QUICK, Member, make_member, zoo

from corecut import CoresetSpectralClustering, Graph, make_sbm, normalized_cut

SKLEARN_NODES = 6000
LEAST_MEDIAN, LEAST_VOLUME = 0.3, 0.01
HEADS = (
    f"{'':34}{'n':>7}{'k':>4} {'cut':>10}{'worst':>10}{'peer':>10}  {'best peer':15}{'ratio':>7}"
    f"{'ARI min':>9}{'median':>8}{'sklearn':>8}{'s':>8}{'METIS s':>8}  flags"
)
Figures = dict[str, Any]


# --- peers: prepare(matrix) before the clock starts, fit(prepared, k, seed) -> labels ---------------------------------------


def integer_weights(matrix: sp.csr_array) -> tuple[sp.csr_array, Any]:
    """Return the graph without loops, and integer weights where its weights differ."""
    bare = sp.csr_array(matrix - sp.diags_array(matrix.diagonal(), format="csr"))
    bare.eliminate_zeros()
    if bare.nnz == 0 or np.ptp(bare.data) == 0:
        return bare, None
    ratio = bare.data / bare.data.min()
    if np.all(ratio == np.rint(ratio)) and ratio.max() <= 1e6:
        return bare, ratio.astype(np.int64)
    return bare, np.clip(np.rint(100 * (bare.data / np.median(bare.data))), 1, 1e6).astype(np.int64)


def metis_input(matrix: sp.csr_array) -> Any:
    import pymetis

    bare, weights = integer_weights(matrix)
    return pymetis.CSRAdjacency(bare.indptr.astype(np.int64), bare.indices.astype(np.int64)), weights


def fit_metis(prepared: Any, k: int, seed: int) -> Any:
    import pymetis

    adjacency, weights = prepared
    options = pymetis.Options(seed=seed)
    return pymetis.part_graph(k, adjacency, eweights=weights, recursive=False, options=options).vertex_part


def kaminpar_input(matrix: sp.csr_array) -> Any:
    import kaminpar

    bare, weights = integer_weights(matrix)
    with tempfile.NamedTemporaryFile("w", suffix=".metis") as file:  # the package reads files only
        file.write(f"{bare.shape[0]} {bare.nnz // 2}{'' if weights is None else ' 1'}\n")
        columns = bare.indices + 1
        cells = columns if weights is None else np.column_stack([columns, weights]).ravel()
        bounds = bare.indptr * (1 if weights is None else 2)
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            file.write(" ".join(map(str, cells[start:end].tolist())) + "\n")
        file.flush()
        return kaminpar.load_graph(file.name, kaminpar.GraphFileFormat.METIS)


def fit_kaminpar(imbalance: float) -> Callable[[Any, int, int], Any]:
    def fit(graph: Any, k: int, seed: int) -> Any:
        import kaminpar

        kaminpar.reseed(seed)
        return kaminpar.KaMinPar(os.cpu_count(), kaminpar.default_context()).compute_partition(graph, k=k, eps=imbalance)

    return fit


def leiden_input(matrix: sp.csr_array) -> Any:
    import igraph

    upper = sp.triu(matrix, 1).tocoo()
    graph = igraph.Graph(n=matrix.shape[0], edges=np.column_stack(upper.coords))
    return graph, (upper.data / upper.data.max()).tolist() if upper.nnz else None


def fit_leiden(prepared: Any, k: int, seed: int) -> Any:
    """Search for the resolution that gives k communities, or the number next to it."""
    graph, weights = prepared
    low, high = 1e-4, 1e4
    labels = best = None
    for _ in range(14):
        middle = (low * high) ** 0.5
        random.seed(seed)
        labels = graph.community_leiden(objective_function="modularity", weights=weights, resolution=middle).membership
        found = max(labels) + 1
        if best is None or abs(found - k) < abs(max(best) + 1 - k):
            best = labels
        if found == k:
            break
        low, high = (middle, high) if found < k else (low, middle)
    return best


def fit_scikit_learn(assign: str) -> Callable[[Any, int, int], Any]:
    def fit(matrix: Any, k: int, seed: int) -> Any:
        return SpectralClustering(k, affinity="precomputed", assign_labels=assign, random_state=seed).fit(matrix).labels_

    return fit


def as_matrix(matrix: sp.csr_array) -> Any:
    """Return the class and the indices that scikit-learn's eigenvectors want."""
    narrow = sp.csr_matrix(matrix)
    narrow.indices, narrow.indptr = narrow.indices.astype(np.int32), narrow.indptr.astype(np.int32)
    return narrow


#: Name: (prepare, fit, seeds, most nodes).
PEERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, int, int], Any], int, float]] = {
    "METIS": (metis_input, fit_metis, 3, 1e9),
    "KaMinPar 3%": (kaminpar_input, fit_kaminpar(0.03), 3, 1e9),
    "KaMinPar 100%": (kaminpar_input, fit_kaminpar(1.0), 3, 1e9),
    "Leiden": (leiden_input, fit_leiden, 1, 2e5),
    "sklearn kmeans": (as_matrix, fit_scikit_learn("kmeans"), 1, SKLEARN_NODES),
    "sklearn qr": (as_matrix, fit_scikit_learn("cluster_qr"), 1, SKLEARN_NODES),
}
SKLEARN = ("sklearn kmeans", "sklearn qr")


# --- measurement ---------------------------------------------------------------------------------------------------------


def repeat(fit: Callable[[Any, int, int], Any], prepared: Any, k: int, seeds: int) -> list[Figures]:
    """Cluster a graph once for every seed: labels, seconds and warnings of each run, or why it failed."""
    runs: list[Figures] = []
    for seed in range(seeds):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            begin, worked = perf_counter(), process_time()
            try:
                labels = np.asarray(fit(prepared, k, seed))
            except Exception as error:
                runs.append({"failed": f"{type(error).__name__}: {error}"[:300]})
                continue
            # Other work on the machine slows the clock, threads add to the processor's time.
            seconds = min(perf_counter() - begin, process_time() - worked)
        runs.append({"labels": labels, "seconds": seconds, "warnings": [str(w.message)[:300] for w in said]})
    return runs


def quietly(prepare: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return prepare()


def figures(graph: Graph, k: int, truth: Any, answer: Figures) -> Figures:
    """Judge all runs of a method; the labels are dropped."""
    if "failed" in answer:
        return answer
    judged = []
    for run in answer["runs"]:
        if "failed" in run:
            judged.append(run)
            continue
        labels = run.pop("labels")
        # Nodes without edges do not count: a cluster of them is empty, and its cut of 0 says nothing.
        sizes = np.bincount(labels[~graph.isolated], minlength=k)
        run["clusters"] = int(np.count_nonzero(sizes))
        run["largest"], run["smallest"] = int(sizes.max()), int(sizes.min())
        run["median"] = float(np.median(sizes) / max(sizes.mean(), 1e-300))
        run["least_volume"] = float(np.bincount(labels, graph.degrees, minlength=k).min() * k / max(graph.volume, 1e-300))
        run["cut"] = normalized_cut(graph, labels, n_clusters=max(k, int(labels.max()) + 1))
        if truth is not None:
            known = truth >= 0
            run["ari"] = float(adjusted_rand_score(truth[known], labels[known]))
        judged.append(run)
    return {"runs": judged}


def values(answer: Figures, name: str) -> list[float]:
    return [run[name] for run in answer.get("runs", []) if name in run]


def middle(found: list[float]) -> float | None:
    return statistics.median(found) if found else None


def ask_corecut(matrix: sp.csr_array, k: int, seeds: int, limit: float, settings: dict[str, Any]) -> Figures:
    def fit(given: Any, k: int, seed: int) -> Any:
        return CoresetSpectralClustering(k, random_state=seed, **settings).fit(given).labels_

    def warm_up() -> None:
        CoresetSpectralClustering(3, random_state=0).fit(make_sbm(100, 3, 0.3, 0.01, random_state=0)[0])

    run = in_child(lambda _: repeat(fit, matrix, k, seeds), before=lambda: quietly(warm_up), limit=limit)
    return {"failed": run.failed} if run.failed else {"runs": run.result}


def ask_peers(matrix: sp.csr_array, k: int, limit: float) -> dict[str, Figures]:
    """Ask all peers in one child process; where that dies or takes too long, each in its own."""
    able = [name for name, peer in PEERS.items() if matrix.shape[0] <= peer[3]]

    def ask(names: list[str]) -> dict[str, Figures]:
        found: dict[str, Figures] = {}
        for name in names:
            prepare, fit, seeds, _ = PEERS[name]
            try:
                found[name] = {"runs": repeat(fit, quietly(lambda prepare=prepare: prepare(matrix)), k, seeds)}
            except Exception as error:
                found[name] = {"failed": f"{type(error).__name__}: {error}"[:300]}
        return found

    together = in_child(lambda _: ask(able), limit=limit)
    if not together.failed:
        return together.result
    apart = {name: in_child(lambda _, name=name: ask([name])[name], limit=limit) for name in able}
    return {name: {"failed": run.failed} if run.failed else run.result for name, run in apart.items()}


# --- the peers' results in a file ------------------------------------------------------------------------------------------


def load(path: Path | None) -> dict[str, Any]:
    return json.loads(path.read_text()) if path is not None and path.exists() else {}


def store(path: Path | None, key: str, entry: dict[str, Any]) -> None:
    if path is not None:
        found = load(path) | {key: entry}  # another run may have added to it
        written = path.with_name(f"{path.name}.{os.getpid()}")
        written.write_text(json.dumps(found))
        written.replace(path)


# --- judgement -----------------------------------------------------------------------------------------------------------


def is_even(run: Figures) -> bool:
    return run["median"] >= LEAST_MEDIAN and run["least_volume"] >= LEAST_VOLUME


def best_peer(peers: dict[str, Figures], k: int, *, even: bool = False) -> tuple[str, Figures]:
    """Return the peer with the lowest median cut, of all or of those with even clusters, and the run that has it."""
    found = {}
    for name, answer in peers.items():
        runs = [run for run in answer.get("runs", []) if run.get("clusters") == k and (is_even(run) or not even)]
        if runs:
            found[name] = sorted(runs, key=lambda run: run["cut"])[(len(runs) - 1) // 2]
    name = min(found, key=lambda name: found[name]["cut"], default="")
    return name, found.get(name, {"cut": float("nan"), "median": float("nan"), "least_volume": float("nan")})


def judge(member: Member, k: int, ours: Figures, peers: dict[str, Figures]) -> Figures:
    """Return the figures of a row and its flags."""
    peer, theirs_best = best_peer(peers, k)
    even_peer, even_best = best_peer(peers, k, even=True)
    cuts, aris, times = (values(ours, name) for name in ("cut", "ari", "seconds"))
    theirs = [ari for name in SKLEARN for ari in values(peers.get(name, {}), "ari")]
    metis = values(peers.get("METIS", {}), "seconds")
    row: Figures = {
        "cut": middle(cuts),
        "worst": max(cuts, default=None),
        "peer": peer,
        "peer_cut": theirs_best["cut"],
        "peer_median": theirs_best["median"],
        "peer_least_volume": theirs_best["least_volume"],
        "peer_ari": theirs_best.get("ari"),
        "even_peer": even_peer,
        "even_peer_cut": even_best["cut"],
        "smallest": min(values(ours, "smallest"), default=None),
        "median": min(values(ours, "median"), default=None),
        "least_volume": min(values(ours, "least_volume"), default=None),
        "ari_min": min(aris, default=None),
        "ari": middle(aris),
        "ari_sklearn": max(theirs, default=None),
        "seconds": middle(times),
        "metis_seconds": middle(metis),
    }
    flags, (allowed, allowed_even) = [], (max(1.05 * best["cut"], 1e-12) for best in (theirs_best, even_best))
    if "failed" in ours or any("failed" in run for run in ours["runs"]):
        flags.append("error")
    if any(count < k for count in values(ours, "clusters")):
        flags.append("empty")
    if cuts and row["cut"] > allowed:
        flags.append("cut" if row["cut"] > allowed_even else "uneven")
    least = max([ari - 0.03 for ari in theirs], default=-1.0)
    if aris and (row["ari"] < least or (member.exact and row["ari_min"] < 0.999)):
        flags.append("ari")
    if not flags and ((cuts and row["worst"] > allowed_even) or (aris and row["ari_min"] < least)):
        flags.append("seed")
    if times and metis and row["seconds"] > max(2.0, 10 * row["metis_seconds"]):
        flags.append("time")
    return row | {"flags": flags}


def line(member: Member, n: int, k: int, row: Figures) -> str:
    def cell(value: float | None, form: str, width: int) -> str:
        return f"{'' if value is None else format(value, form):>{width}}"

    bound = row["peer_cut"]
    uneven = row["peer_median"] < LEAST_MEDIAN or row["peer_least_volume"] < LEAST_VOLUME
    peer = row["peer"] + ("*" if uneven else "")
    ratio = row["cut"] / bound if row["cut"] is not None and bound > 0 else None
    return (
        f"{member.name:34}{n:7}{k:4} "
        + "".join(cell(row[name], ".3g", 10) for name in ("cut", "worst", "peer_cut"))
        + f"  {peer:15}"
        + cell(ratio, ".2f", 7)
        + "".join(cell(row[name], ".3f", width) for name, width in (("ari_min", 9), ("ari", 8), ("ari_sklearn", 8)))
        + "".join(cell(row[name], ".2f", 8) for name in ("seconds", "metis_seconds"))
        + f"  {' '.join(row['flags'])}"
    )


def chosen(options: argparse.Namespace) -> list[Member]:
    level = QUICK if options.quick else LARGE if options.large else DEFAULT
    pattern = re.compile(options.only or "")
    return [m for m in zoo() if m.level <= level and (pattern.search(m.name) or pattern.search(m.tag))]


def setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="graphs of at most 5,000 nodes")
    size.add_argument("--large", action="store_true", help="graphs of up to 100,000 nodes, too")
    parser.add_argument("--only", metavar="PATTERN", help="members whose name or tag matches this regular expression")
    parser.add_argument("--seeds", type=int, default=3, help="runs of corecut on each graph (default 3)")
    parser.add_argument("--graph-seed", type=int, default=0, help="seed of the graphs (default 0)")
    parser.add_argument("--settings", nargs="*", type=setting, default=[], metavar="NAME=VALUE", help="settings of corecut")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a peer is given up (corecut: thrice)")
    parser.add_argument("--peers", type=Path, metavar="PATH", help="keep the peers' results in this file, or take them from it")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write all figures to this file")
    options = parser.parse_args()

    about = machine("scikit-learn", "scipy", "numpy")
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(HEADS, flush=True)
    cached, rows, said, missing = load(options.peers), [], 0, {}
    begin = perf_counter()
    for member in chosen(options):
        # In a process of its own: threads that a search has started would block the processes forked after it.
        with multiprocessing.get_context("fork").Pool(1) as pool:
            matrix, truth = pool.apply(make_member, (member.name, options.graph_seed))
        graph, k = Graph.from_matrix(matrix), member.k or int(truth.max()) + 1
        key = f"{member.name} seed {options.graph_seed}"
        print_of = [*matrix.shape, matrix.nnz, float(matrix.data.sum()), k]
        if cached.get(key, {}).get("graph") != print_of:
            answers = ask_peers(matrix, k, options.limit)
            found = {name: figures(graph, k, truth, answer) for name, answer in answers.items()}
            cached[key] = {"graph": print_of, "peers": found}
            store(options.peers, key, cached[key])
        peers = cached[key]["peers"]
        answer = ask_corecut(matrix, k, options.seeds, 3 * options.limit, dict(options.settings))
        ours = figures(graph, k, truth, answer)
        row = judge(member, k, ours, peers)
        if {"cut", "uneven"} & set(row["flags"]) and not options.settings:
            plain = figures(graph, k, truth, ask_corecut(matrix, k, options.seeds, 3 * options.limit, {"balance": 0}))
            row |= {f"plain_{name}": middle(values(plain, name)) for name in ("cut", "ari")}
        print(line(member, matrix.shape[0], k, row), flush=True)
        for failure in {run["failed"] for run in [ours, *ours.get("runs", [])] if "failed" in run}:
            print(f"{'':34}{failure}")
        said += sum(len(texts) for texts in values(ours, "warnings"))
        missing |= {name: answer["failed"] for name, answer in peers.items() if "No module" in answer.get("failed", "")}
        rows.append({"name": member.name, "n": matrix.shape[0], "k": k, **row, "corecut": ours, "peers": peers})

    print(f"\nflagged, of {len(rows)} cases in {perf_counter() - begin:.0f} s ({said} warnings of corecut, in the JSON file):")
    flagged = [row for row in rows if row["flags"]]
    for row in flagged:
        print(f"  {row['name']:34}{' '.join(row['flags'])}")
    for name, why in missing.items():
        print(f"{name} took no part: {why}")
    counts = {
        flag: sum(flag in row["flags"] for row in rows) for flag in ("cut", "uneven", "ari", "seed", "empty", "error", "time")
    }
    print(f"{len(flagged)} of {len(rows)} flagged: " + ", ".join(f"{flag} {count}" for flag, count in counts.items()))
    if options.json is not None:
        found = {"machine": about, "settings": dict(options.settings), "rows": rows}
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
