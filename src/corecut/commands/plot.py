"""`corecut plot`: a picture of labels on a graph."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from corecut._files import is_same, naming
from corecut.commands.labelled import Column, complete, labelled_graph, labels_of
from corecut.commands.options import Jobs, Reading, reading, shared
from corecut.commands.screen import Screen, screen


class Kind(StrEnum):
    """What can be drawn."""

    EMBEDDING = "embedding"
    ADJACENCY = "adjacency"
    SIZES = "sizes"
    QUOTIENT = "quotient"
    CONFIDENCE = "confidence"
    STAGES = "stages"
    K_PATH = "k-path"


# Drawn from what a run printed with --json, not from a graph.
_OF_A_RUN = {Kind.STAGES: "times", Kind.K_PATH: "path of k"}

# Seconds of a picture for each entry of the graph.
_DRAWING = 1e-7

_PRINTED = {Kind.STAGES: "cluster", Kind.K_PATH: "scan"}


@shared(reading=reading, screen=screen)
def plot(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"One of {', '.join(Kind)}.")],
    graph: Annotated[
        Path,
        typer.Argument(
            metavar="GRAPH", help="A graph file of any format; for stages and k-path what a run printed with --json."
        ),
    ],
    labels: Annotated[
        Path | None, typer.Argument(metavar="LABELS", help="Labels file: .csv, .tsv, .txt, .npy or .parquet.")
    ] = None,
    jobs: Jobs = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Picture: .svg, .png or .pdf.")],
    three: Annotated[bool, typer.Option("--three", help="Draw the embedding in three dimensions.")] = False,
    column: Column = None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Draw labels on a graph: embedding, adjacency matrix, sizes, graph of clusters, confidence; or a run's stages and k-path.

    Example: corecut plot quotient friends.store labels.csv -o clusters.svg
    """
    from corecut import plots
    from corecut.facts import partition_facts
    from corecut.plots.canvas import check_picture_path, require_matplotlib

    if three and kind != Kind.EMBEDDING:
        raise typer.BadParameter(f"it has no effect on {kind}; it belongs to embedding", param_hint="--three")
    for read in (graph, labels):
        if read is not None and is_same(output, read):
            raise typer.BadParameter(f"{output} is read; give the picture another name", param_hint="--output")
    check_picture_path(output)
    require_matplotlib()
    if kind in _OF_A_RUN:
        if labels is not None or column is not None:
            raise typer.BadParameter(f"{kind} is drawn from a run, without labels", param_hint="LABELS")
        known = _of_run(graph, kind)
        drawing = plots.stages(known) if kind == Kind.STAGES else plots.k_path(known)
        drawing.save(output)
    else:
        if labels is None:
            raise typer.BadParameter(f"{kind} needs the labels beside the graph", param_hint="LABELS")
        found = labels_of(labels, column)
        with labelled_graph(graph, reading, screen, jobs) as (loaded, _):
            partition = complete(loaded, found)
            with screen.waiting("drawing", _DRAWING * loaded.n_entries):
                facts = partition_facts(loaded, partition, n_jobs=jobs)
                if kind == Kind.EMBEDDING:
                    drawing = plots.embedding(facts, dimensions=3 if three else 2)
                else:
                    drawing = getattr(plots, kind.value)(facts)
                drawing.save(output)
    data = {"kind": str(kind), "picture": str(output), "caption": drawing.caption}
    screen.show("corecut plot", [("written", str(output)), ("shows", drawing.caption)], data)


def _of_run(file: Path, kind: Kind) -> Any:
    """Return the part of a run's results that is to be drawn."""
    from corecut.drawing import path_of

    if str(file) == "-":
        raise ValueError(f"{kind} is not drawn from standard input (-); give the file of what a run printed with --json")
    with naming(file):
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else None
    if text is None:
        raise FileNotFoundError(f"there is no file {file}")
    try:
        known = json.loads(text)
        if kind == Kind.STAGES:
            return known["seconds"]
        return path_of(known.get("selection", known))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{file} has no {_OF_A_RUN[kind]} of a run; {kind} is drawn from what `corecut {_PRINTED[kind]} --json` printed"
        ) from None
