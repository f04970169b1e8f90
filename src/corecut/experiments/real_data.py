"""Experiment 2 (Figures 3, 5, 6 and 7): time, adjusted Rand index and normalised cut against the size of the coreset.

On nearest-neighbour graphs of four real sets of points. The time is that of the whole way from the graph to the labels of all
nodes; the graph itself is made before the clock starts, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corecut.datasets.points import points_file
from corecut.experiments import figures
from corecut.experiments.graphs import NeighborGraph, Prepared
from corecut.experiments.methods import METHODS, available
from corecut.experiments.plan import Claim, Level, Options, Plan, Table, show
from corecut.experiments.results import Cell, Measures, Point, Results
from corecut.metrics import normalized_cut

TITLE = "time, ARI and normalised cut of real data against the size of the coreset"
PAPER = "Figures 3, 5, 6 and 7"
WARM_UP = 0.2

# These do not depend on the size of the coreset: one cell for every run.
WHOLE = ("scikit-learn", "corecut")
MEASURES = {"seconds": "time (s)", "ari": "adjusted Rand index", "normalized_cut": "normalised cut"}


@dataclass(frozen=True)
class DataSet:
    """A set of points, with the paper's number of neighbours and figure."""

    title: str
    n_neighbors: int
    figure: int


DATA = {
    "pendigits": DataSet("PenDigits", 250, 5),
    "har": DataSet("HAR", 200, 3),
    "letter": DataSet("Letter", 300, 6),
    "mnist": DataSet("MNIST", 500, 7),
}


@dataclass(frozen=True)
class Sizes:
    """How large the experiment is; `subsets` are (points, neighbours) for sets that are not taken whole."""

    shares: tuple[float, ...]
    runs: int
    whole_runs: int
    limit: float
    subsets: dict[str, tuple[int, int]]


LEVELS: dict[Level, Sizes] = {
    "quick": Sizes((0.01, 0.02, 0.05, 0.1), 2, 1, 45.0, {"mnist": (10_000, 200)}),
    "full": Sizes((0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1), 20, 20, 300.0, {}),
}


def plan(options: Options) -> Plan:
    """Return the cells: all sets, methods and sizes of one run before those of the next."""
    sizes = LEVELS[options.level]
    recipes = {}
    for data, known in DATA.items():
        points, neighbors = sizes.subsets.get(data, (None, known.n_neighbors))
        recipes[data] = NeighborGraph(data, _title(data, options.data), neighbors, points, options.data)
    methods = available(tuple(METHODS))
    cells, last = [], []
    for run in range(options.runs or sizes.runs):
        for data, recipe in recipes.items():
            for method in methods:
                if method not in WHOLE:
                    cells += [Cell(recipe.name, method, share, run) for share in sizes.shares]
                # Like the paper, which says that it took too long on MNIST, this leaves out scikit-learn there. It takes
                # longer than all the others together and varies least: after the first run it comes last.
                elif method == "corecut" or (data != "mnist" and run == 0):
                    cells.append(Cell(recipe.name, method, 0.0, run))
                elif data != "mnist" and run < sizes.whole_runs:
                    last.append(Cell(recipe.name, method, 0.0, run))
    notes = [
        "scikit-learn's spectral clustering is left out on MNIST, as in the paper, and makes its further runs when all is done"
        f" ({sizes.whole_runs} at most).",
        "corecut's defaults choose the size of the coreset themselves and are drawn as a level.",
    ]
    for data, (points, neighbors) in sizes.subsets.items():
        known = DATA[data]
        notes.append(f"{known.title}: {points:,} points and {neighbors} neighbours (the paper: all, and {known.n_neighbors}).")
    return Plan({recipe.name: recipe for recipe in recipes.values()}, [*cells, *last], sizes.limit, notes)


def _title(data: str, folder: Path | None) -> str:
    """Return the name of a set. HAR's features are the published ones only where they come from OpenML."""
    recomputed = data == "har" and (folder is not None or points_file(data) is not None)
    return DATA[data].title + (" (recomputed features)" if recomputed else "")


def measure(prepared: Prepared, cell: Cell) -> Measures:
    """Cluster once and compare with the classes."""
    from sklearn.metrics import adjusted_rand_score

    size = max(prepared.n_classes, round(cell.at * prepared.graph.n_nodes))
    found = METHODS[cell.method](prepared.matrix, prepared.n_classes, size, cell.run)
    labels = found.labels.astype("int64")
    return {
        "seconds": found.seconds,
        "ari": float(adjusted_rand_score(prepared.classes, labels)),
        "normalized_cut": normalized_cut(prepared.graph, labels, n_clusters=prepared.n_classes),
    }


def draw(plan: Plan, results: Results, folder: Path) -> list[Path]:
    """Draw one figure for every set of points, with a panel for each measure."""
    files = []
    for name, recipe in plan.graphs.items():
        if name not in results.graphs:
            continue
        assert isinstance(recipe, NeighborGraph)
        number = DATA[recipe.data].figure
        figure, axes = figures.panels(1, 3, f"Figure {number} of the paper: {name}")
        for panel, (measure, label) in zip(axes, MEASURES.items(), strict=True):
            for method in METHODS:
                points = results.series(name, method, measure, of=set(plan.cells))
                if points and method in WHOLE:
                    figures.draw_level(panel, method, points[0])
                elif points:
                    percent = [point._replace(at=100 * point.at) for point in points]
                    figures.draw_line(panel, method, percent, positive=measure == "seconds")
            panel.set(xlabel="coreset size (% of the points)", ylabel=label)
            if measure == "seconds":
                figures.logarithmic(panel.yaxis)
            else:
                panel.set_ylim(bottom=0)
        files.append(figures.finish(figure, axes, folder / f"figure-{number}"))
    return files


def claims(plan: Plan, results: Results) -> list[Claim]:
    """Compare with Section 6.2, whose text speaks of HAR; the other sets are held to the same claim for information."""
    found = []
    for name, recipe in plan.graphs.items():
        assert isinstance(recipe, NeighborGraph)
        if recipe.data == "mnist":
            continue
        cells, har = set(plan.cells), recipe.data == "har"
        whole = results.series(name, "scikit-learn", "ari", of=cells)
        paper = "at a coreset of less than 5 %" if har else "figure only"
        for method in ("csc-exact", "csc-fast"):
            label = figures.LOOKS[method].label
            claim = f"{label} reaches the ARI of full spectral clustering, within 0.02, at a coreset of 5 % or less ({name})"
            found.append(_reached(claim, paper, results.series(name, method, "ari", of=cells), whole))
        ours = results.series(name, "csc-fast", "ari", of=cells)
        other = {p.at: p.mean for p in results.series(name, "coreset-kernel-kmeans", "ari", of=cells)}
        if ours and other:
            text = f"ARI at most {max(other.values()):.2f}, CSC (fast) {max(p.mean for p in ours):.2f}"
            below = all(other[p.at] < p.mean for p in ours if p.at in other)
            found.append(Claim(f"coreset kernel k-means stays below CSC at every size ({name})", "in the figure", text, below))
        if har:
            found.append(_fast(name, results, cells))
    return found


def _reached(claim: str, paper: str, points: list[Point], whole: list[Point]) -> Claim:
    if not points or not whole:
        return Claim(claim, paper, "full spectral clustering did not end in time" if points else "not measured", None)
    target = whole[0].mean - 0.02
    reached = [p for p in points if p.mean >= target]
    best = max((p for p in points if p.at <= 0.05), key=lambda p: p.mean, default=points[0])
    ours = f"full {whole[0].mean:.3f}; CSC {best.mean:.3f} at {100 * best.at:g} %"
    ours += f"; first reached at {100 * reached[0].at:g} %" if reached else "; not reached"
    return Claim(claim, paper, ours, bool(reached) and reached[0].at <= 0.05)


def _fast(name: str, results: Results, cells: set[Cell]) -> Claim:
    claim = f"CSC with a coreset of 5 % takes a fraction of a second and far less time than full spectral clustering ({name})"
    times = {m: results.series(name, m, "seconds", of=cells) for m in ("csc-exact", "csc-fast", "scikit-learn")}
    at = {m: next((p.mean for p in points if p.at in (0.0, 0.05)), None) for m, points in times.items()}
    exact, fast, whole = at.values()
    if exact is None or fast is None or whole is None:
        return Claim(claim, "in a fraction of a second", "not measured", None)
    ours = f"exact {exact:.2g} s, fast {fast:.2g} s, full {whole:.3g} s"
    return Claim(claim, "in a fraction of a second", ours, max(exact, fast) < min(1.0, whole / 5))


def tables(plan: Plan, results: Results) -> list[Table]:
    """Return every measure for every set, method and size."""
    found = []
    cells = set(plan.cells)
    places = sorted({cell.at for cell in cells if cell.at})
    for name in plan.graphs:
        for measure, label in MEASURES.items():
            rows = []
            for method in METHODS:
                points = {p.at: p for p in results.series(name, method, measure, of=cells)}
                if points:
                    rows.append([figures.LOOKS[method].label, *(show(points.get(at, points.get(0.0))) for at in places)])
            if rows:
                found.append(Table(f"{name}: {label}", ["coreset", *(f"{100 * at:g} %" for at in places)], rows))
    return found
