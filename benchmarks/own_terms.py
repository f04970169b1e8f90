"""Real graphs on each peer's own terms: its number of clusters and its largest and smallest cluster are corecut's bounds.

    CORECUT_DATA=folder python benchmarks/own_terms.py                             the eight real graphs
    CORECUT_DATA=folder python benchmarks/own_terms.py --others                    others, which nothing was tuned on
    CORECUT_DATA=folder python benchmarks/own_terms.py --only 'cora|email' --peers peers.json --json out.json

Peers: METIS, KaMinPar with 3 % and with 100 % imbalance, Leiden (modularity; the number of clusters is its own). A peer runs
once on the main component of a graph; corecut then gets its k, and the sizes of its smallest and largest cluster as
`min_cluster_size` and `max_cluster_size`. A bound is kept only if every seed keeps it. Cuts are means over the clusters. With
--peers the peers' results are kept in a file and taken from it in later runs; METIS is timed again in every run, so that its
times and corecut's come from the same machine under the same load. Linux only. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from graphs import Planted, data_folder, load_points, neighbor_matrix
from measure import in_child, machine
from scipy.sparse.csgraph import connected_components
from zoo import (
    Figures,
    ask_corecut,
    figures,
    fit_kaminpar,
    fit_metis,
    kaminpar_input,
    leiden_input,
    load,
    metis_input,
    repeat,
    setting,
    store,
    values,
)
from zoo_graphs import make_member

from corecut import Graph, read_graph


def read(name: str) -> sp.csr_array:
    folder = data_folder()
    assert folder is not None
    return read_graph(folder / f"{name}.npz").adjacency


def near(name: str, count: int) -> sp.csr_array:
    return neighbor_matrix(load_points(name)[0].astype(np.float32), count)


#: Graphs of the zoo, and their numbers of clusters here.
ZOO = {"delaunay_20000_k2": 16, "grid_100x100_k9": 9, "triangles_120_k4": 12, "hypercube_12_k16": 16, "uneven_mesh_4000_k6": 6}
#: The number of clusters that METIS and KaMinPar are asked for.
GRAPHS = {
    "email_eu_core": 42,
    "cora": 7,
    "amazon_photo": 8,
    "coauthor_cs": 15,
    "cord19_entities": 9,
    "uk_2007_05_100k": 100,
    "com_dblp": 500,
    "js_dependencies_2017": 100,
}
#: Others: numbers of clusters that were not asked for above, neighbours of points, planted graphs, lattices and meshes.
OTHERS: dict[str, tuple[Callable[[], sp.csr_array], int]] = {
    "email_eu_core": (partial(read, "email_eu_core"), 10),
    "cora": (partial(read, "cora"), 30),
    "amazon_photo": (partial(read, "amazon_photo"), 30),
    "coauthor_cs": (partial(read, "coauthor_cs"), 40),
    "cord19_entities": (partial(read, "cord19_entities"), 30),
    "uk_2007_05_100k": (partial(read, "uk_2007_05_100k"), 30),
    "com_dblp": (partial(read, "com_dblp"), 60),
    "js_dependencies_2017": (partial(read, "js_dependencies_2017"), 30),
    "letter_10nn": (partial(near, "letter", 10), 26),
    "pendigits_10nn": (partial(near, "pendigits", 10), 10),
    "pendigits_30nn": (partial(near, "pendigits", 30), 25),
    "har_15nn": (partial(near, "har", 15), 6),
    "planted_20k_powerlaw": (lambda: Planted(20_000, 20, 16, 0.3, "powerlaw").make()[0], 20),
    "planted_50k_powerlaw": (lambda: Planted(50_000, 50, 10, 0.35, "powerlaw").make()[0], 50),
    "planted_30k": (lambda: Planted(30_000, 100, 12, 0.3).make()[0], 100),
    **{name: (lambda name=name: make_member(name, 7)[0], k) for name, k in ZOO.items()},  # type: ignore[misc]
}
HEADS = (
    f"{'':22}{'peer':15}{'k':>6}{'smallest':>9}{'largest':>9}  {'ours':>15}  {'kept':6}"
    f"{'cut':>9}{'worst':>9}{'peer':>9}{'ratio':>7}{'s':>8}{'peer s':>8}"
)


def fit_leiden(prepared: Any, k: int, seed: int) -> Any:
    del k  # it finds its own number
    graph, weights = prepared
    random.seed(seed)
    return graph.community_leiden(objective_function="modularity", weights=weights).membership


PEERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, int, int], Any]]] = {
    "METIS": (metis_input, fit_metis),
    "KaMinPar 3%": (kaminpar_input, fit_kaminpar(0.03)),
    "KaMinPar 100%": (kaminpar_input, fit_kaminpar(1.0)),
    "Leiden": (leiden_input, fit_leiden),
}


def main_component(matrix: sp.csr_array) -> sp.csr_array:
    matrix = sp.csr_array(matrix)
    parts = connected_components(matrix, directed=False)[1]
    inside = np.flatnonzero(parts == np.bincount(parts).argmax())
    return sp.csr_array(matrix[inside][:, inside])


def ask_peer(name: str, graph: Graph, matrix: sp.csr_array, k: int, limit: float) -> Figures:
    """Return the figures of a peer's only run, with its own number of clusters, or why it failed."""
    prepare, fit = PEERS[name]
    run = in_child(lambda given: repeat(fit, given, k, 1)[0], before=lambda: prepare(matrix), limit=limit)
    if run.failed or "failed" in run.result:
        return {"failed": run.failed or run.result["failed"]}
    used, labels = np.unique(run.result["labels"], return_inverse=True)
    answer = {"runs": [run.result | {"labels": labels}]}
    return figures(graph, used.size, None, answer)["runs"][0]


def compare(peer: Figures, ours: Figures) -> Figures:
    """Hold corecut's runs against the bounds and the cut of a peer."""
    low, high = peer["smallest"], peer["largest"]
    runs = ours.get("runs", [])
    good = [run for run in runs if "failed" not in run]
    row: Figures = {
        "failed": ours.get("failed") or next((run["failed"] for run in runs if "failed" in run), ""),
        "kept": sum(low <= run["smallest"] and run["largest"] <= high for run in good),
        "runs": len(runs),
    }
    if good:
        cuts = values(ours, "cut")
        row |= {"cut": statistics.median(cuts), "worst": max(cuts), "ratio": statistics.median(cuts) / peer["cut"]}
        row |= {"seconds": statistics.median(values(ours, "seconds"))}
        row |= {"smallest": min(values(ours, "smallest")), "largest": max(values(ours, "largest"))}
    return row


def whole(row: Figures) -> bool:
    """Tell whether every seed kept the bounds."""
    return row["runs"] > 0 and row["kept"] == row["runs"]


def line(row: Figures) -> str:
    peer, ours = row["terms"], row["ours"]
    start = f"{row['graph']:22}{row['peer']:15}{peer['clusters']:6}{peer['smallest']:9}{peer['largest']:9}"
    if "cut" not in ours:
        return f"{start}  {ours['failed']}"
    sizes = f"{ours['smallest']}..{ours['largest']}"
    kept = f"{ours['kept']}/{ours['runs']}"
    cells = [f"{ours[name]:.4f}" for name in ("cut", "worst")] + [f"{peer['cut']:.4f}"]
    return (
        f"{start}  {sizes:>15}  {kept:6}"
        + "".join(f"{cell:>9}" for cell in cells)
        + f"{ours['ratio']:7.3f}{ours['seconds']:8.2f}{peer['seconds']:8.2f}"
        + (f"  {ours['failed']}" if ours["failed"] else "")
    )


def summary(rows: list[Figures], metis_seconds: dict[str, float]) -> list[str]:
    lines = []
    for peer in PEERS:
        mine = [row for row in rows if row["peer"] == peer]
        done = [row for row in mine if "cut" in row["ours"]]
        if not done:
            continue
        kept = sum(whole(row["ours"]) for row in mine)
        lower = sum(row["ours"]["ratio"] <= 1 for row in done)
        both = sum(row["ours"]["ratio"] <= 1 and whole(row["ours"]) for row in done)
        worst = max(done, key=lambda row: row["ours"]["ratio"])
        text = f"{peer:14} bounds kept {kept} of {len(mine)}, cut at most the peer's {lower} (within the bounds {both}), "
        text += f"largest ratio {worst['ours']['ratio']:.3f} ({worst['graph']})"
        timed = [row for row in done if row["graph"] in metis_seconds]
        if timed:
            ours, theirs = sum(row["ours"]["seconds"] for row in timed), sum(metis_seconds[row["graph"]] for row in timed)
            text += f", time {ours:.1f} s, {ours / theirs:.2f} times METIS's {theirs:.1f} s"
        lines.append(text)
    kept = sum(whole(row["ours"]) for row in rows)
    lower = sum(row["ours"].get("ratio", 2) <= 1 and whole(row["ours"]) for row in rows)
    return [*lines, f"{len(rows)} cases: bounds kept in {kept}, cut at most the peer's within them in {lower}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", default="", help='"graph/peer" pairs that match this regular expression')
    parser.add_argument("--others", action="store_true", help="graphs beside the eight real ones with their k")
    parser.add_argument("--seeds", type=int, default=3, help="runs of corecut in each case (default 3)")
    parser.add_argument("--settings", nargs="*", type=setting, default=[], metavar="NAME=VALUE", help="settings of corecut")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a case is given up")
    parser.add_argument("--peers", type=Path, metavar="PATH", help="keep the peers' results in this file, or take them from it")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write all figures to this file")
    options = parser.parse_args()
    if data_folder() is None:
        sys.exit("CORECUT_DATA names no folder with the graphs")

    about = machine("scipy", "numpy")
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(HEADS, flush=True)
    cached, rows, metis_seconds = load(options.peers), [], {}
    graphs = OTHERS if options.others else {name: (partial(read, name), k) for name, k in GRAPHS.items()}
    for name, (make, k) in graphs.items():
        wanted = [peer for peer in PEERS if re.search(options.only, f"{name}/{peer}")]
        if not wanted:
            continue
        matrix = main_component(make())
        ask = partial(ask_peer, graph=Graph.from_matrix(matrix), matrix=matrix, k=k, limit=options.limit)
        timed = ask("METIS")
        if "failed" not in timed:
            metis_seconds[name] = timed["seconds"]
        for peer in wanted:
            key = f"{name} k {k} {peer}"
            if peer == "METIS":
                cached[key] = timed
            elif key not in cached:
                cached[key] = ask(peer)
                store(options.peers, key, cached[key])
            terms = cached[key]
            if "failed" in terms:
                print(f"{name:22}{peer:15}took no part: {terms['failed']}")
                continue
            bounds = {"min_cluster_size": terms["smallest"], "max_cluster_size": terms["largest"]}
            settings = dict(options.settings) | bounds
            answer = ask_corecut(matrix, terms["clusters"], options.seeds, options.limit, settings)
            ours = figures(ask.keywords["graph"], terms["clusters"], None, answer)
            rows.append({"graph": name, "peer": peer, "terms": terms, "ours": compare(terms, ours), "corecut": ours})
            print(line(rows[-1]), flush=True)
    print()
    lines = summary(rows, metis_seconds)
    print("\n".join(lines))
    if options.json is not None:
        found = {"machine": about, "settings": dict(options.settings), "rows": rows, "summary": lines}
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
