"""`corecut report`: a page about any labels of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corecut._files import counted, is_same, show_size
from corecut._progress import Stages
from corecut.advice import listening
from corecut.commands.labelled import Column, LabelsPath, complete, labelled_graph, labels_of
from corecut.commands.options import GraphPath, Jobs, Reading, reading, shared, typed_command
from corecut.commands.screen import Screen, screen
from corecut.commands.words import in_options

# Seconds of a report for each entry of the graph.
_REPORTING = 2e-7


@shared(reading=reading, screen=screen)
def report(
    graph: GraphPath,
    labels: LabelsPath,
    jobs: Jobs = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Page to write: .html.")],
    title: Annotated[str | None, typer.Option(help="Heading of the page; the name of the graph by default.")] = None,
    column: Column = None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Write a page about any labels on a graph, also METIS's or Leiden's: how good they are, cluster by cluster.

    Example: corecut report friends.store labels.csv -o report.html
    """
    from corecut.facts import partition_facts
    from corecut.reporting.build import RunNotes, build_report, check_report_path

    for read in (graph, labels):
        if is_same(output, read):
            raise typer.BadParameter(f"{output} is read; give the report another name", param_hint="--output")
    check_report_path(output)
    found = labels_of(labels, column)
    clock = Stages()
    with listening() as heard, labelled_graph(graph, reading, screen, jobs) as (loaded, _):
        partition = complete(loaded, found)
        with clock("report"), screen.waiting("report", _REPORTING * loaded.n_entries):
            facts = partition_facts(loaded, partition, n_jobs=jobs)
            advice = [in_options(one) for one in heard]
            notes = RunNotes(title=title or f"{labels.name} on {graph.name}", command=typed_command(), advice=advice)
            build_report(facts, None, notes).save(output)
    size = output.stat().st_size
    rows = [
        ("graph", f"{counted(facts.graph.n_nodes, 'node')}, {counted(facts.graph.n_edges, 'edge')}"),
        ("clusters", f"{facts.n_clusters:,}, {int(facts.separated.sum()):,} of them well separated"),
        ("report", f"{output} ({show_size(size)})"),
    ]
    data = {
        "nodes": facts.graph.n_nodes,
        "edges": facts.graph.n_edges,
        "clusters": facts.n_clusters,
        "well_separated": int(facts.separated.sum()),
        "nearly_one": [[facts.name(i), facts.name(j)] for i, j in facts.near_pairs],
        "report": str(output),
        "bytes": size,
        "seconds": clock.timings,
    }
    screen.show("corecut report", rows, data)
