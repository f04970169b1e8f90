"""What an experiment is: which cells to measure, how to measure one, what to draw, and what the paper claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol

from corecut.experiments.graphs import Prepared, Recipe
from corecut.experiments.results import Cell, Measures, Point, Results

Level = Literal["quick", "full"]

EXPERIMENTS = {"coreset-time": "coreset_time", "real-data": "real_data", "many-clusters": "many_clusters"}


@dataclass(frozen=True)
class Options:
    """What the user may choose.

    Attributes
    ----------
    level
        "quick" (smaller graphs, few runs) or "full" (the paper's sizes and runs).
    runs
        Number of runs of every cell, None for the level's own.
    data
        Folder with the real sets of points; see :func:`corecut.datasets.points.load_points`.
    graphs
        Graph files to build coresets of, in addition to the generated stand-ins.
    friendster
        Size of Friendster's stand-in relative to Friendster, None for the level's own.
    """

    level: Level = "quick"
    runs: int | None = None
    data: Path | None = None
    graphs: tuple[Path, ...] = ()
    friendster: float | None = None


@dataclass(frozen=True)
class Plan:
    """The cells of an experiment.

    Attributes
    ----------
    graphs
        How to make each graph, by its name, from the smallest to the largest.
    cells
        What to measure: all of the first run, then all of the second, so that whatever time there is gives whole runs.
    limit
        Seconds after which a cell is given up.
    notes
        What differs from the paper, in sentences.
    """

    graphs: Mapping[str, Recipe]
    cells: Sequence[Cell]
    limit: float
    notes: Sequence[str] = field(default=())


@dataclass(frozen=True)
class Claim:
    """One line of the table: what is claimed, the paper's figure, ours, and whether it holds (None: not measured)."""

    claim: str
    paper: str
    ours: str
    holds: bool | None


@dataclass(frozen=True)
class Table:
    """Rows of text under a heading."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def show(point: Point | None, digits: int = 3) -> str:
    """Return mean ± standard deviation as text, the mean alone of a single run, nothing where nothing was measured."""
    if point is None:
        return ""
    return f"{point.mean:.{digits}g}" + (f" ± {point.deviation:.1g}" if point.runs > 1 else "")


class Experiment(Protocol):
    """What the module of an experiment offers."""

    TITLE: str
    PAPER: str
    WARM_UP: float  # a place of the horizontal axis that suits a graph of 400 nodes in 4 clusters

    def plan(self, options: Options) -> Plan:
        """Return the cells."""

    def measure(self, prepared: Prepared, cell: Cell) -> Measures:
        """Measure one cell. Runs in a process of its own."""

    def draw(self, plan: Plan, results: Results, folder: Path) -> list[Path]:
        """Draw the figures and return their PNG files."""

    def claims(self, plan: Plan, results: Results) -> list[Claim]:
        """Compare with the paper's claims."""

    def tables(self, plan: Plan, results: Results) -> list[Table]:
        """Return the numbers behind the figures."""


def experiment_of(name: str) -> Experiment:
    """Return an experiment by name."""
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)}")
    module: Experiment = import_module(f"corecut.experiments.{EXPERIMENTS[name]}")
    return module
