"""Results: finished cells in one JSON file that always holds whole cells, and what they come to on average."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corecut import __version__
from corecut._files import atomic_file, physical_memory
from corecut._validation import thread_count

Measures = dict[str, float]

TOO_LONG = "not done in"
"""How the failure of a cell begins that did not end in time."""


class Cell(NamedTuple):
    """One measurement: a method, on a graph, at one place of the horizontal axis (0 where a method has none), in one run.

    The run is the seed, the same for all methods. `draws` is the size of the coreset where the axis shows something else.
    """

    graph: str
    method: str
    at: float
    run: int
    draws: int = 0


class Point(NamedTuple):
    """Mean and standard deviation of a measure over runs."""

    at: float
    mean: float
    deviation: float
    runs: int


@dataclass
class Results:
    """Everything an experiment has found so far.

    Attributes
    ----------
    file
        Where it is kept.
    experiment
        Name of the experiment.
    cells
        Measures of every finished cell.
    failures
        Why a cell has none: the method failed, or did not end in time.
    graphs
        Numbers of nodes and entries of every graph.
    machines
        Where cells were measured, and with which versions.
    places
        For every finished cell its position in `machines`.
    """

    file: Path
    experiment: str
    cells: dict[Cell, Measures] = field(default_factory=dict)
    failures: dict[Cell, str] = field(default_factory=dict)
    graphs: dict[str, dict[str, int]] = field(default_factory=dict)
    machines: list[dict[str, Any]] = field(default_factory=list)
    places: dict[Cell, int] = field(default_factory=dict)

    @classmethod
    def open(cls, file: Path, experiment: str) -> Results:
        """Read what an earlier run has left, or begin anew."""
        results = cls(file, experiment)
        if not file.exists():
            return results
        try:
            known = json.loads(file.read_text(encoding="utf-8"))
            if known["experiment"] != experiment:
                raise ValueError(f"it belongs to {known['experiment']}")
            results.graphs, results.machines = known["graphs"], known["machines"]
            for entry in known["cells"]:
                cell = Cell(entry["graph"], entry["method"], float(entry["at"]), int(entry["seed"]), int(entry["draws"]))
                results.places[cell] = int(entry["machine"])
                if "failed" in entry:
                    results.failures[cell] = entry["failed"]
                else:
                    results.cells[cell] = entry["measures"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file} is damaged ({error}); move it away to measure anew") from None
        return results

    def add(self, cell: Cell, measures: Measures | str) -> None:
        """Keep a finished cell, or why it failed, and write the file."""
        if isinstance(measures, str):
            self.failures[cell] = measures
        else:
            self.cells[cell] = measures
        here = machine()
        if here not in self.machines:
            self.machines.append(here)
        self.places[cell] = self.machines.index(here)
        self.save()

    def save(self) -> None:
        """Write the file, one line for every cell."""
        lines = []
        for cell, place in self.places.items():
            told: dict[str, Any] = {"graph": cell.graph, "method": cell.method, "at": cell.at, "draws": cell.draws}
            told |= {"seed": cell.run, "machine": place}
            told |= {"measures": self.cells[cell]} if cell in self.cells else {"failed": self.failures[cell]}
            lines.append(json.dumps(told))
        head = {"experiment": self.experiment, "machines": self.machines, "graphs": self.graphs}
        text = json.dumps(head, indent=1)[:-2] + ',\n "cells": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"
        with atomic_file(self.file) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def finished(self, cell: Cell) -> bool:
        """Whether a cell needs no measuring any more."""
        return cell in self.places

    def hopeless(self, cell: Cell) -> bool:
        """Whether the same method did not end in time on no larger a graph at no larger a place: it is not asked again."""
        entries = self.graphs[cell.graph]["entries"]
        return any(
            why.startswith(TOO_LONG)
            and failed.method == cell.method
            and failed.at <= cell.at
            and self.graphs[failed.graph]["entries"] <= entries
            for failed, why in self.failures.items()
        )

    def series(self, graph: str | None, method: str, measure: str, *, of: set[Cell]) -> list[Point]:
        """Return a measure against the horizontal axis over the cells `of` a plan, of one graph or (None) of all."""
        found: dict[float, list[float]] = {}
        for cell, measures in self.cells.items():
            if cell in of and cell.method == method and graph in (None, cell.graph) and measure in measures:
                found.setdefault(cell.at, []).append(measures[measure])
        return [Point(at, float(np.mean(v)), float(np.std(v)), len(v)) for at, v in sorted(found.items())]

    def runs(self, of: set[Cell]) -> Iterator[int]:
        """Give the number of runs behind every point that the cells `of` a plan make."""
        counts: dict[tuple[str, str, float], int] = {}
        for cell in self.cells.keys() & of:
            counts[cell[:3]] = counts.get(cell[:3], 0) + 1
        yield from counts.values()


def machine() -> dict[str, Any]:
    """Return what the measurements depend on: the machine and the versions."""
    packages = {"corecut": __version__}
    for name in ("numpy", "scipy", "scikit-learn", "coreset-sc"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": thread_count(None),
        "memory_gb": round((physical_memory() or 0) / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": packages,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
