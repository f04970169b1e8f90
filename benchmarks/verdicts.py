"""Rows of the benchmark of sparse graphs, and the bounds that they are judged by."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphs import DENSER, EQUAL, MANY, NEIGHBORS, REAL, UNEQUAL

#: Largest share of the nodes that a single cluster may hold.
LARGEST = dict.fromkeys(REAL, 0.40) | dict.fromkeys(("uk_2007_05_100k", "com_dblp", "js_dependencies_2017"), 0.25)
LEAST_ARI = {"amazon_photo": 0.45, "email_eu_core": 0.35, EQUAL.name: 0.95, DENSER.name: 0.99, MANY.name: 0.90}
PLAIN = "METIS + plain refinement"


@dataclass(frozen=True)
class Row:
    """All runs of a method on a graph."""

    part: str
    graph: str
    k: int
    method: str
    runs: list[dict[str, Any]]
    edges: int = 0

    @property
    def failed(self) -> str:
        """Why a run failed, or nothing."""
        return next((str(run["failed"]) for run in self.runs if "failed" in run), "")

    def values(self, name: str) -> list[float]:
        return [run[name] for run in self.runs if run.get(name) is not None]

    def median(self, name: str) -> float:
        values = self.values(name)
        return float(statistics.median(values)) if values else float("nan")

    def line(self) -> str:
        """Return the row of a table."""
        if self.failed:
            return f"{self.method:32}{self.failed}"
        cells = [f"{self.median('seconds'):.2f}", f"{max(self.values('peak_mb')):.0f}"]
        cells.append(f"{self.median('ncut'):.4f}")
        cells += [f"{self.median(name):.3f}" if self.values(name) else "" for name in ("ari", "nmi")]
        cells += [f"{100 * self.median('largest'):.1f}", f"{self.median('median'):.0f}", f"{self.median('clusters'):.0f}"]
        return f"{self.method:32}" + "".join(f"{cell:>10}" for cell in cells)

    def record(self) -> dict[str, Any]:
        """Return what is written to a file."""
        shared = {"part": self.part, "graph": self.graph, "k": self.k, "method": self.method}
        return shared | ({"edges": self.edges} if self.edges else {}) | {"runs": self.runs}


@dataclass(frozen=True)
class Verdict:
    """A claim, whether it holds, and the figures it is decided by."""

    claim: str
    holds: bool
    figures: str

    def __str__(self) -> str:
        return f"{'pass' if self.holds else 'FAIL'}  {self.claim}: {self.figures}"


def judge(rows: list[Row]) -> list[Verdict]:
    """Return a verdict on everything that was measured and has a bound."""
    found = {(row.part, row.graph, row.method): row for row in rows}
    failed = [
        Verdict(f"{row.graph}: corecut ends", False, row.failed) for row in rows if row.method == "corecut" and row.failed
    ]
    good = {key: row for key, row in found.items() if not row.failed}
    graphs: dict[str, dict[str, Row]] = {}
    for (part, graph, method), row in good.items():
        if part == "graphs":
            graphs.setdefault(graph, {})[method] = row
    graphs = {name: methods for name, methods in graphs.items() if "corecut" in methods}
    parts = (_cuts(graphs), _giants(graphs), _agreement(graphs), _time(graphs), _neighbors(good), _dense(good), _growth(good))
    return failed + [verdict for part in parts for verdict in part]


def _cuts(graphs: dict[str, dict[str, Row]]) -> Iterator[Verdict]:
    shares = {}
    for graph in REAL:
        methods = graphs.get(graph, {})
        if PLAIN in methods:
            ours, theirs = methods["corecut"].median("ncut"), methods[PLAIN].median("ncut")
            claim = f"{graph}: ncut at most that of {PLAIN}"
            yield Verdict(claim, ours <= theirs, f"{ours:.4f} and {theirs:.4f}, ratio {ours / theirs:.3f}")
        if "METIS" in methods:
            shares[graph] = methods["corecut"].median("ncut") / methods["METIS"].median("ncut")
    if len(shares) >= 4:
        low = sum(share <= 0.6 for share in shares.values())
        figures = ", ".join(f"{graph} {share:.2f}" for graph, share in shares.items())
        yield Verdict("ncut at most 0.6 times METIS's on four graphs", low >= 4, f"{low} ({figures})")


def _giants(graphs: dict[str, dict[str, Row]]) -> Iterator[Verdict]:
    for graph, bound in LARGEST.items():
        if graph in graphs:
            row = graphs[graph]["corecut"]
            share, cut = row.median("largest"), row.median("conductance_of_largest")
            figures = f"{100 * share:.1f} %, its conductance {cut:.3f}"
            yield Verdict(f"{graph}: largest cluster at most {100 * bound:.0f} % of the nodes", share <= bound, figures)


def _agreement(graphs: dict[str, dict[str, Row]]) -> Iterator[Verdict]:
    for graph, bound in LEAST_ARI.items():
        if graph in graphs:
            scores = {method: row.median("ari") for method, row in graphs[graph].items()}
            yield Verdict(f"{graph}: ARI at least {bound:g}", scores["corecut"] >= bound, _listed(scores))
    if "METIS" in graphs.get(UNEQUAL.name, {}):
        scores = {method: row.median("ari") for method, row in graphs[UNEQUAL.name].items()}
        yield Verdict(f"{UNEQUAL.name}: ARI above METIS's", scores["corecut"] > scores["METIS"], _listed(scores))


def _listed(scores: dict[str, float]) -> str:
    return ", ".join(f"{method} {score:.3f}" for method, score in scores.items())


def _time(graphs: dict[str, dict[str, Row]]) -> Iterator[Verdict]:
    both = [methods for methods in graphs.values() if "METIS" in methods]
    if both:
        ours, theirs = (sum(methods[name].median("seconds") for methods in both) for name in ("corecut", "METIS"))
        figures = f"{ours:.1f} s and {theirs:.1f} s, ratio {ours / theirs:.2f} (aim: 0.5)"
        yield Verdict(f"time summed over {len(both)} graphs at most METIS's", ours <= theirs, figures)


def _neighbors(good: dict[tuple[str, str, str], Row]) -> Iterator[Verdict]:
    for name, (count, _) in NEIGHBORS.items():
        graph = f"{name}_{count}nn"
        ours, full = good.get(("knn", graph, "corecut")), good.get(("knn", graph, "scikit-learn"))
        if ours and full:
            cuts, times = ([row.median(what) for row in (ours, full)] for what in ("ncut", "seconds"))
            figures = f"{cuts[0]:.4f} and {cuts[1]:.4f}"
            yield Verdict(f"{graph}: ncut not above scikit-learn's", cuts[0] <= cuts[1] + 1e-9, figures)
            figures = f"{times[0]:.2f} s and {times[1]:.2f} s, {times[1] / times[0]:.0f} times"
            yield Verdict(f"{graph}: 20 or more times scikit-learn's speed", times[1] >= 20 * times[0], figures)
    ours, full = (good.get(("digits", "digits_10nn", method)) for method in ("corecut", "scikit-learn"))
    if ours and full:
        scores = [statistics.mean(row.values("ari")) for row in (ours, full)]
        claim = f"digits_10nn: mean ARI over {len(ours.runs)} seeds at least scikit-learn's - 0.01"
        yield Verdict(claim, scores[0] >= scores[1] - 0.01, f"{scores[0]:.3f} and {scores[1]:.3f}")


def _dense(good: dict[tuple[str, str, str], Row]) -> Iterator[Verdict]:
    for (part, graph, method), ours in good.items():
        if part != "dense" or method != "corecut":
            continue
        peer = good.get((part, graph, "coreset-sc"))
        yield Verdict(f"{graph}, coreset 1 %: ARI at least 0.99", ours.median("ari") >= 0.99, f"{ours.median('ari'):.4f}")
        if peer:
            times = [row.median("seconds") for row in (ours, peer)]
            figures = f"{times[0]:.2f} s and {times[1]:.2f} s, {times[1] / times[0]:.1f} times"
            yield Verdict(f"{graph}, coreset 1 %: 4 or more times coreset-sc's speed", times[1] >= 4 * times[0], figures)


def _growth(good: dict[tuple[str, str, str], Row]) -> Iterator[Verdict]:
    sizes = [row for (part, _, _), row in good.items() if part == "growth"]
    if len(sizes) > 1:
        edges, seconds = [row.edges for row in sizes], [row.median("seconds") for row in sizes]
        exponent = float(np.polyfit(np.log(edges), np.log(seconds), 1)[0])
        figures = ", ".join(f"{count:,}: {time:.2f} s" for count, time in zip(edges, seconds, strict=True))
        yield Verdict("time grows linearly in the edges (exponent at most 1.1)", exponent <= 1.1, f"{exponent:.2f} ({figures})")
