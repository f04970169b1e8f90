"""The documents' tables of measurements, written from the stored results of the benchmarks.

    python benchmarks/sparse.py --json benchmarks/results/sparse.json
    python benchmarks/sparse.py --knn --dense --json benchmarks/results/dense.json
    python benchmarks/peers.py --sbm 250 --json benchmarks/results/peers.json
    python benchmarks/own_terms.py --json benchmarks/results/own_terms.json
    python benchmarks/own_terms.py --others --json benchmarks/results/other_terms.json
    python benchmarks/zoo.py --json benchmarks/results/zoo.json
    python benchmarks/readme_tables.py

A table stands between two comments, which name it: all of them in `docs/comparison.md`, some in the README.
`tests/test_docs.py` compares them with the results, so that no figure can be there that was not measured.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
# All tables are in the first one.
DOCUMENTS = [ROOT / "docs" / "comparison.md", ROOT / "README.md"]
REFINED = "METIS + plain refinement"
POINTS = {"pendigits": "PenDigits", "har": "HAR", "letter": "Letter", "mnist": "MNIST"}

Record = dict[str, Any]


def seconds(value: float) -> str:
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


def about(found: Record) -> str:
    machine = found["machine"]
    python = ".".join(str(machine["python"]).split(".")[:2])
    note = f"; {found['note']}" if "note" in found else ""
    return f"{machine['date']}, {machine['cores']} cores, Python {python}{note}"


def median(row: Record, name: str) -> float:
    return statistics.median(run[name] for run in row["runs"])


def failure(row: Record) -> str:
    return next((str(run["failed"]) for run in row["runs"] if "failed" in run), "")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"|{'|'.join(c if c == '---' else f' {c} ' if c else ' ' for c in cells)}|" for cells in lines)


def sparse(found: Record) -> str:
    """Compare with METIS and coreset-sc on real graphs."""
    graphs: dict[tuple[str, int], dict[str, Record]] = {}
    for row in found["rows"]:
        if row["part"] == "graphs" and not row["graph"].startswith("planted"):
            graphs.setdefault((row["graph"], row["k"]), {})[row["method"]] = row
    rows, ours, theirs = [], 0.0, 0.0
    for (name, k), methods in graphs.items():
        corecut, metis, refined, peer = (methods[m] for m in ("corecut", "METIS", REFINED, "coreset-sc"))
        ours, theirs = ours + median(corecut, "seconds"), theirs + median(metis, "seconds")
        largest = [f"{100 * median(row, 'largest'):.0f} %" for row in (corecut, peer)]
        rows.append(
            [
                f"{name}, {k}",
                f"{median(corecut, 'ncut'):.3f}, {largest[0]}, {seconds(median(corecut, 'seconds'))}",
                f"{median(metis, 'ncut'):.3f}, {seconds(median(metis, 'seconds'))}",
                f"{median(refined, 'ncut'):.3f}",
                f"{median(peer, 'ncut'):.3f}, {largest[1]}",
            ]
        )
    head = [
        "graph, k",
        "corecut: cut, largest cluster, s",
        "METIS: cut, s",
        "METIS + `refine_partition`: cut",
        "coreset-sc: cut, largest cluster",
    ]
    return (
        f"`python benchmarks/sparse.py` on real graphs ({about(found)}); medians of {found['machine']['seeds']} seeds; "
        f"normalised cut as the mean over clusters:\n\n{table(head, rows)}\n\n"
        f"Summed over these graphs corecut takes {ours / theirs:.2f} of METIS's time. METIS makes clusters of equal size, "
        "which costs it cut."
    )


def peers(found: Record) -> str:
    """Compare the path through a coreset with the authors' code."""
    pairs: dict[tuple[str, int], dict[str, Record]] = {}
    for row in found["rows"]:
        pairs.setdefault((row["part"], row["k"]), {})[row["method"]] = row
    rows = []
    for (part, k), methods in pairs.items():
        ours, peer = methods["corecut"], methods["coreset-sc"]
        if part == "sbm":
            what = f"block model, {k} clusters, {ours['entries'] / 1e6:.0f} M entries, coreset 1 %: whole fit"
            times = [f"{seconds(row['total_s'])} s, ARI {row['ari']:.2f}" for row in (ours, peer)]
            rows.append([what, *times, f"{peer['times_slower']:.0f}"])
            memory = [f"{row['peak_mb']:.0f} MB" for row in (ours, peer)]
            rows.append(["its peak memory above the input", *memory, f"{peer['times_memory']:.0f}"])
        else:
            first = not any("M nodes" in row[0] for row in rows)
            size = f"4 M nodes, {ours['entries'] / 1e6:.0f} M entries, coreset of {ours['size']:,} points"
            what = f"{size if first else 'the same'}, k = {k:,}"
            times = [f"{seconds(t)} s" for t in (ours["seconds"]["coreset"], peer["seconds"]["coreset_embeddings"])]
            rows.append([what, *times, f"{peer['times_slower']:.0f}"])
    return (
        f"`python benchmarks/peers.py` ({about(found)}), the path through a coreset alone (`aggregate=False, refine=False`) "
        "beside the authors' own code. Its steps are the published ones, but seeds are drawn by rejection and nodes choose "
        "among the centres that they touch, which are the defaults here:\n\n"
        f"{table(['', 'corecut', 'coreset-sc', 'ratio'], rows)}"
    )


def dense(found: Record) -> str:
    """Compare the defaults on dense graphs with the peers."""
    pairs: dict[tuple[str, str], dict[str, Record]] = {}
    for row in found["rows"]:
        if row["part"] in ("knn", "dense"):
            pairs.setdefault((row["part"], row["graph"]), {})[row["method"]] = row
    rows = []
    for (part, graph), methods in pairs.items():
        ours = methods.pop("corecut")
        ((name, peer),) = methods.items()
        k = ours["k"]
        if part == "knn":
            points, count = re.fullmatch(r"(\w+)_(\d+)nn", graph).groups()  # type: ignore[union-attr]
            what = f"{POINTS[points]}, {count} neighbours, k = {k}"
        else:
            what = f"block model, {k} clusters, coreset 1 %"
        ratio = "" if failure(peer) else f"{median(peer, 'seconds') / median(ours, 'seconds'):.0f}"
        rows.append([what, dense_cell(ours), f"{name}: {failure(peer) or dense_cell(peer)}", ratio])
    return (
        f"`python benchmarks/sparse.py --knn --dense` ({about(found)}), the defaults on dense graphs. Every method is given "
        "the finished graph: times of points do not include the search for neighbours.\n\n"
        f"{table(['', 'corecut: cut, ARI, s', 'peer: cut, ARI, s', 'ratio of times'], rows)}"
    )


def dense_cell(row: Record) -> str:
    return f"{median(row, 'ncut'):.3f}, {median(row, 'ari'):.2f}, {seconds(median(row, 'seconds'))}"


def own_terms(found: Record) -> str:
    """Compare with every peer within its own bounds."""
    peers: dict[str, list[Record]] = {}
    for row in found["rows"]:
        peers.setdefault(row["peer"], []).append(row)
    rows = []
    for name, cases in peers.items():
        kept = sum(case["ours"]["kept"] == case["ours"]["runs"] for case in cases)
        lower = sum(case["ours"]["ratio"] <= 1 for case in cases)
        ratios = sorted((case["ours"]["ratio"], case["graph"]) for case in cases)
        times = [sum(case[side]["seconds"] for case in cases) for side in ("ours", "terms")]
        shown = f"{ratios[0][0]:.2f} to {ratios[-1][0]:.2f} ({ratios[-1][1]})"
        rows.append([name, f"{kept} of {len(cases)}", f"{lower} of {len(cases)}", shown, f"{times[0]:.0f} s, {times[1]:.0f} s"])
    head = ["peer", "bounds kept", "cut at most the peer's", "ratio of cuts", "time, peer's"]
    return (
        f"`python benchmarks/own_terms.py` ({about(found)}): the peer's k, and the sizes of its smallest and largest cluster "
        "as bounds, on the eight real graphs (medians of three seeds; a bound counts as kept if every seed keeps it):\n\n"
        f"{table(head, rows)}"
    )


def other_terms(found: Record) -> str:
    """Sum up the comparison on graphs that nothing was tuned on, and list where a peer is better."""
    cases = found["rows"]
    kept = sum(case["ours"]["kept"] == case["ours"]["runs"] for case in cases)
    worse = sorted((case for case in cases if case["ours"]["ratio"] > 1), key=lambda case: -case["ours"]["ratio"])
    shown = "; ".join(f"{case['graph']} beside {case['peer']} {case['ours']['ratio']:.3f}" for case in worse)
    graphs = {case["graph"] for case in cases}
    return (
        f"`python benchmarks/own_terms.py --others` ({about(found)}): the same on {len(graphs)} graphs nothing was tuned on "
        "(the real ones at other k, neighbours of points, planted graphs, lattices, meshes). The bounds "
        f"are kept in {kept} of {len(cases)} cases, and the cut is at most the peer's in {len(cases) - len(worse)}; the ratios "
        f"of the others: {shown or 'none'}."
    )


def zoo(found: Record) -> str:
    """Sum up the zoo, and list where a peer is better."""
    rows, plain_above = [], 0
    for case in found["rows"]:
        if {"cut", "uneven"} & set(case["flags"]):
            ratio = f"{case['cut'] / case['peer_cut']:.2f}" if case["peer_cut"] > 0 else "its cut is 0"
            even = [f"{case[own + 'median']:.2f}, {case[own + 'least_volume']:.2g}" for own in ("", "peer_")]
            known = [] if case["ari"] is None else [case["ari"], case["peer_ari"], case["plain_ari"]]
            agreement = ", ".join(f"{max(ari, 0.0):.2f}" for ari in known)
            rows.append([case["name"], f"{case['cut']:.3g}", case["peer"], ratio, *even, f"{case['plain_cut']:.3g}", agreement])
            plain_above += case["plain_cut"] > max(1.05 * case["peer_cut"], 1e-12)
    flags = [flag for case in found["rows"] for flag in case["flags"]]
    disagreeing = ", ".join(
        f"{case['name']} {case['ari']:.2f} instead of {case['ari_sklearn']:.2f}"
        for case in found["rows"]
        if "ari" in case["flags"]
    )
    head = [
        "graph",
        "cut",
        "best peer",
        "ratio",
        "median size, least volume",
        "the peer's",
        "cut with `balance=0`",
        "ARI: default, peer, `balance=0`",
    ]
    return (
        f"`python benchmarks/zoo.py` ({about(found)}): {len(found['rows'])} graphs of every kind (points on curves, meshes, "
        "grids, trees, cliques, communities, pictures, parts, odd weights), beside scikit-learn, METIS, KaMinPar and Leiden at "
        f"the same k. The cut is at most 1.05 times the best peer's on all but {len(rows)}, listed here. By default "
        "clusters are even (the median has at least 0.3 of the mean's nodes, and none is a pair of nodes apart from the rest) "
        "unless they are communities of very different sizes; where a peer has crumbs instead, that costs cut. Beside "
        "peers with a median of as much and a least cluster of a hundredth of the mean's volume "
        f"it is more than 1.05 times theirs on {flags.count('cut')}. The plain cut, `balance=0`, is more than 1.05 times the "
        f"best peer's on {plain_above} of those listed. {flags.count('empty')} empty clusters, "
        f"{flags.count('error')} errors; agreement with the truth is lower than scikit-learn's by more than 0.03 on "
        f"{flags.count('ari')} ({disagreeing}).\n\n{table(head, rows)}"
    )


def partitioners(found: Record) -> str:
    """Compare times and cuts with those of partitioners."""
    graphs: dict[str, dict[tuple[str, int], Record]] = {}
    for row in found["rows"]:
        graphs.setdefault(row["graph"], {})[row["method"], row["threads"]] = row
    rows, real = [], [0.0, 0.0]
    for name, runs in graphs.items():
        ours, peer, metis = runs["corecut", 2], runs["KaMinPar", 2], runs["METIS", 1]
        alone = runs["corecut", 1]["seconds"]
        if not name.startswith("planted"):
            real = [real[0] + ours["seconds"], real[1] + peer["seconds"]]
        cells = [
            f"{seconds(ours['seconds'])} ({ours['seconds'] / alone:.2f})",
            seconds(peer["seconds"]),
            seconds(metis["seconds"]),
        ]
        cuts = [f"{run['cut']:.3f}" for run in (ours, peer, metis)]
        rows.append([name.removesuffix("_equal"), f"{ours['edges'] / 1e6:.1f} M", *cells, ", ".join(cuts)])
    head = ["graph", "edges", "corecut, s (of one thread's)", "KaMinPar, s", "METIS, s", "cuts in this order"]
    return (
        f"`python benchmarks/partitioners.py` ({about(found)}): a whole `fit` in a process of its own that has its libraries "
        f"loaded, and KaMinPar (3 %) with two threads each, METIS with its one:\n\n{table(head, rows)}\n\n"
        f"Summed over the real graphs corecut takes {real[0]:.1f} s, KaMinPar {real[1]:.1f} s."
    )


TABLES: dict[str, Callable[[Record], str]] = {
    "sparse": sparse,
    "own_terms": own_terms,
    "other_terms": other_terms,
    "zoo": zoo,
    "partitioners": partitioners,
    "dense": dense,
    "peers": peers,
}


def rewritten(text: str) -> str:
    """Return a document with its tables as the results have them."""
    for name, render in TABLES.items():
        begin, end = f"<!-- from benchmarks/results/{name}.json -->", f"<!-- end of {name} -->"
        if begin not in text:
            continue
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"there is no place for the table {name}: it needs the lines {begin} and {end} once")
        found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        before, _, rest = text.partition(begin)
        after = rest.partition(end)[2]
        text = f"{before}{begin}\n{render(found)}\n{end}{after}"
    return text


def main() -> None:
    for document in DOCUMENTS:
        document.write_text(rewritten(document.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
