"""Experiment 3 (Figure 4): block models with k clusters of 1,000 nodes and a coreset of 1 %, for k up to 500.

The paper reports time and adjusted Rand index on the coreset's nodes only, because labelling dominates its time; here are both,
and both for all nodes too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corecut.experiments import figures
from corecut.experiments.graphs import BlockModel, Prepared
from corecut.experiments.methods import METHODS, available
from corecut.experiments.plan import Claim, Level, Options, Plan, Table, show
from corecut.experiments.results import Cell, Measures, Point, Results

TITLE = "block models with many clusters"
PAPER = "Figure 4"
WARM_UP = 4.0

COMPARED = ("csc-fast", "coreset-kernel-kmeans", "coreset-sc", "corecut")
MEASURES = {
    "coreset_seconds": "time without labelling (s)",
    "coreset_ari": "ARI on the coreset's nodes",
    "seconds": "time with labelling (s)",
    "ari": "ARI on all nodes",
}
# Of every cluster, on average: 1 % of 1,000.
CORESET_NODES = 10


@dataclass(frozen=True)
class Sizes:
    """How large the experiment is."""

    clusters: tuple[int, ...]
    n_per_cluster: int
    runs: int
    limit: float


LEVELS: dict[Level, Sizes] = {
    "quick": Sizes((10, 25, 50, 100, 250), 1000, 2, 60.0),
    "full": Sizes((10, 25, 50, 100, 150, 200, 250, 300, 400, 500), 1000, 20, 300.0),
}


def plan(options: Options) -> Plan:
    """Return the cells: all k and methods of one run before those of the next."""
    sizes = LEVELS[options.level]
    recipes = {k: BlockModel(k, sizes.n_per_cluster) for k in sizes.clusters}
    cells = [
        Cell(recipe.name, method, float(k), run)
        for run in range(options.runs or sizes.runs)
        for k, recipe in recipes.items()
        for method in available(COMPARED)
    ]
    notes = [
        "One graph for every k; the runs differ in the methods' seeds.",
        "Every graph has self-loops of weight 1, as the authors' package needs them.",
        "corecut's defaults have no coreset to be judged by, and are shown for all nodes only.",
    ]
    return Plan({recipe.name: recipe for recipe in recipes.values()}, cells, sizes.limit, notes)


def measure(prepared: Prepared, cell: Cell) -> Measures:
    """Cluster once and compare with the planted clusters, on the coreset's nodes and on all."""
    from sklearn.metrics import adjusted_rand_score

    k = int(cell.at)
    found = METHODS[cell.method](prepared.matrix, k, CORESET_NODES * k, cell.run)
    ari = float(adjusted_rand_score(prepared.classes, found.labels))
    on_coreset = ari
    if found.coreset is not None and found.coreset_labels is not None:
        assert prepared.classes is not None
        on_coreset = float(adjusted_rand_score(prepared.classes[found.coreset.astype("int64")], found.coreset_labels))
    return {"coreset_seconds": found.seconds - found.labelling, "coreset_ari": on_coreset, "seconds": found.seconds, "ari": ari}


def draw(plan: Plan, results: Results, folder: Path) -> list[Path]:
    """Draw Figure 4: time and ARI, above as in the paper and below for all nodes."""
    title = "Figure 4 of the paper: block models with k clusters of 1,000 nodes, coreset of 1 %"
    figure, axes = figures.panels(2, 2, title)
    for panel, (measure, label) in zip(axes, MEASURES.items(), strict=True):
        for method in _compared_by(measure):
            if points := results.series(None, method, measure, of=set(plan.cells)):
                figures.draw_line(panel, method, points, positive="seconds" in measure)
        panel.set(xlabel="clusters k", ylabel=label)
        if "seconds" in measure:
            figures.logarithmic(panel.yaxis)
        else:
            panel.set_ylim(-0.02, 1.05)
    return [figures.finish(figure, axes, folder / "figure-4")]


def _compared_by(measure: str) -> list[str]:
    """Return the methods that a measure says something about: the defaults choose a coreset, or none, themselves."""
    return [method for method in COMPARED if method != "corecut" or not measure.startswith("coreset_")]


def claims(plan: Plan, results: Results) -> list[Claim]:
    """Compare with Section 6.3."""
    cells = set(plan.cells)

    def at(method: str, measure: str, k: int) -> Point | None:
        return next((p for p in results.series(None, method, measure, of=cells) if p.at == k), None)

    found = []
    for method, paper in (("csc-fast", "ARI 0.5 in less than 3 s"), ("corecut", "not in the paper")):
        label = figures.LOOKS[method].label
        claim = f"{label}: ARI of at least 0.5 in less than 3 s at k = 250 (on the coreset's nodes, without labelling)"
        ari, seconds = at(method, "coreset_ari", 250), at(method, "coreset_seconds", 250)
        every, total = at(method, "ari", 250), at(method, "seconds", 250)
        if method == "corecut":
            claim = f"{label}: the same on all nodes, with labelling"
        if ari is None or seconds is None or every is None or total is None:
            found.append(Claim(claim, paper, "not measured", None))
        elif method == "corecut":
            found.append(Claim(claim, paper, f"ARI {show(every)} in {total.mean:.2f} s", every.mean >= 0.5 and total.mean < 3))
        else:
            ours = f"ARI {show(ari)} in {seconds.mean:.2f} s; on all nodes {show(every)} in {total.mean:.2f} s"
            found.append(Claim(claim, paper, ours, ari.mean >= 0.5 and seconds.mean < 3))
    points = [p for p in results.series(None, "coreset-kernel-kmeans", "coreset_ari", of=cells) if p.at > 50]
    claim = "coreset kernel k-means is useless after 50 clusters"
    if not points:
        found.append(Claim(claim, "useless", "not measured", None))
    else:
        best = max(points, key=lambda p: p.mean)
        ours = f"ARI {best.mean:.2f} or less from k = {points[0].at:g} on"
        beside = at("csc-fast", "coreset_ari", int(best.at))
        if beside is not None:
            ours += f" (CSC, fast: {beside.mean:.2f} at k = {best.at:g})"
        found.append(Claim(claim, "useless", ours, best.mean < 0.2))
    return found


def tables(plan: Plan, results: Results) -> list[Table]:
    """Return every measure for every method and k."""
    found = []
    cells = set(plan.cells)
    places = sorted({cell.at for cell in cells})
    for measure, label in MEASURES.items():
        rows = []
        for method in _compared_by(measure):
            points = {p.at: p for p in results.series(None, method, measure, of=cells)}
            if points:
                rows.append([figures.LOOKS[method].label, *(show(points.get(at)) for at in places)])
        if rows:
            found.append(Table(label, ["", *(f"k = {at:g}" for at in places)], rows))
    return found
