"""summary.md: for every experiment the figures, the table claim / paper / ours, the numbers, and what was not measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from corecut._files import atomic_file
from corecut.experiments.plan import EXPERIMENTS, Options, Plan, Table, experiment_of
from corecut.experiments.results import Results

_HOLDS = {True: "yes", False: "**no**", None: "not measured"}


def write_report(name: str, plan: Plan, results: Results, options: Options) -> list[Path]:
    """Draw an experiment's figures, write its part of the summary, and join the parts of all experiments in summary.md."""
    folder = results.file.parent
    files = experiment_of(name).draw(plan, results, folder)
    _write(folder / "summary.md", "\n".join(_part(name, plan, results, options, files)))
    parts = {known: folder.parent / known / "summary.md" for known in EXPERIMENTS}
    # Figures are named relative to the file that shows them.
    texts = [part.read_text(encoding="utf-8").replace("](", f"]({known}/") for known, part in parts.items() if part.exists()]
    head = "# The paper's experiments\n\nWritten by `corecut experiment`; every number can be found in `NAME/results.json`.\n\n"
    _write(folder.parent / "summary.md", head + "\n".join(texts))
    return files


def claims_table(name: str, plan: Plan, results: Results) -> str:
    """Return the table claim / paper / ours."""
    rows = [[c.claim, c.paper, c.ours, _HOLDS[c.holds]] for c in experiment_of(name).claims(plan, results)]
    return _markdown(Table("", ["claim", "paper", "ours", "holds"], rows))


def _part(name: str, plan: Plan, results: Results, options: Options, files: Sequence[Path]) -> Iterator[str]:
    experiment = experiment_of(name)
    cells = set(plan.cells)
    yield f"## {name}: {experiment.TITLE} ({experiment.PAPER})\n"
    counts = sorted(results.runs(cells))
    runs = "no" if not counts else f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    done = len(cells & results.places.keys())
    yield f"`--{options.level}`, {runs} runs behind each point, {done} of {len(cells)} cells measured.\n"
    for file in files:
        yield f"![{file.stem}]({file.name})\n"
    yield claims_table(name, plan, results)
    yield from (f"- {note}" for note in (*plan.notes, *_gaps(plan, results)))
    yield ""
    for table in experiment.tables(plan, results):
        yield f"### {table.title}\n"
        yield _markdown(table)
    for place in sorted({results.places[cell] for cell in cells & results.places.keys()}):
        yield f"Measured on: `{json.dumps(results.machines[place])}`\n"


def _gaps(plan: Plan, results: Results) -> Iterator[str]:
    """Say what was not measured, and why."""
    for name in plan.graphs:
        if name not in results.graphs:
            yield f"{name} is not here: its data could not be had, or time was up before."
    cells = set(plan.cells)
    for cell in sorted(results.failures.keys() & cells):
        yield f"{cell.method} on {cell.graph} at {cell.at:g}, run {cell.run}: {results.failures[cell]}."
    skipped = {(c.method, c.graph) for c in cells - results.places.keys() if c.graph in results.graphs and results.hopeless(c)}
    for method, graph in sorted(skipped):
        yield f"{method} was not asked (again) on {graph}: it had not ended in time on no more than that."


def _markdown(table: Table) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (table.header, ["---"] * len(table.header), *table.rows)]
    return "\n".join(lines) + "\n"


def _write(file: Path, text: str) -> None:
    with atomic_file(file) as temporary:
        temporary.write_text(text, encoding="utf-8")
