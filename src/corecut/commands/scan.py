"""`corecut scan`: how many clusters a graph has, with the figures of every k that was looked at."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corecut._files import counted
from corecut._progress import Stages
from corecut.commands.cluster import estimator, estimator_parameters
from corecut.commands.options import AsPoints, Features, GraphPath, Jobs, Reading, Seed, clusters_option, reading, shared
from corecut.commands.screen import Screen, screen
from corecut.commands.words import OF_POINTS, in_options

if TYPE_CHECKING:
    from pathlib import Path

    from corecut.graph import Graph
    from corecut.selection import Selection

_HEADER = ["", "k", "cut", "modularity", "eigengap", "stability", "leap", "largest", "smallest"]


@shared(reading=reading, screen=screen)
def scan(
    graph: GraphPath,
    *,
    clusters: Annotated[
        str,
        typer.Option(
            "--clusters",
            "-k",
            metavar="RANGE",
            callback=lambda text: clusters_option(str(text)),
            help="Range of k like 5..200; auto takes one that suits the graph.",
        ),
    ] = "auto",
    balance: Annotated[float, typer.Option(min=0.0, help="Fee that keeps crumbs away; 0 for the plain cut.")] = 0.002,
    draws: Annotated[int, typer.Option(min=1, help="Number of draws, whose agreement is the stability.")] = 2,
    points: AsPoints = False,
    features: Features = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help=f"With --points: how their graph is made; may be repeated. One of {', '.join(OF_POINTS)}.",
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Choose the number of clusters of a graph, or of points, and show the path of k that it was chosen from.

    Example: corecut scan friends.txt -k 5..200, or corecut scan points.csv --points
    """
    from corecut.selection import asked_range, refuse_beyond, select

    asked = asked_range(clusters)
    if asked is None:
        raise typer.BadParameter(f"{clusters} is one number: give a range like 2..{clusters}, or auto", param_hint="-k")
    reading.check_points(points, features)
    how = _points_settings(settings or [], points=points)
    with ExitStack() as stack:
        if points:
            loaded = _graph_of_points(reading, graph, features, how | {"n_jobs": jobs, "verbose": not screen.quiet})
            edges = loaded.n_edges
        else:
            loaded, report = stack.enter_context(reading.load(graph, screen, jobs))
            edges = report.edges
        refuse_beyond(clusters, asked[1], loaded)
        with Stages(None, verbose=not screen.quiet) as stage:
            found = select(loaded, *asked, balance=balance, n_init=draws, random_state=seed, n_jobs=jobs, stage=stage)
        nodes = loaded.n_nodes
    data = {("points" if points else "nodes"): nodes, "edges": edges} | selection_data(found)
    title = f"corecut scan: {counted(nodes, 'point' if points else 'node')}, {counted(edges, 'edge')}"
    screen.show_columns(title, _HEADER, _rows(found), data)
    screen.conclude(found.sentence)


def _points_settings(settings: list[str], *, points: bool) -> dict[str, Any]:
    """Return the parameters of the points' graph that `--set` names; a scan has no others."""
    for setting in settings:
        if setting.partition("=")[0] not in OF_POINTS:
            raise typer.BadParameter(
                f"{setting!r}: a scan takes what says how points become a graph: {', '.join(OF_POINTS)}", param_hint="--set"
            )
    if settings and not points:
        raise typer.BadParameter("it says how points become a graph; add --points", param_hint="--set")
    return {"affinity": "nearest_neighbors"} | estimator_parameters(settings, points=True)


def _graph_of_points(reading: Reading, path: Path, features: str | None, parameters: dict[str, Any]) -> Graph:
    """Return the graph that `corecut cluster --points` would make of a table."""
    model = estimator(of_points=True)(**parameters)
    try:
        model.check_parameters()
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(in_options(str(error))) from None
    table = reading.points(path, features, least=2)
    with Stages(None, verbose=model.verbose, description="corecut") as stage:
        return model._graph(table.values, stage)


def _rows(found: Selection) -> list[list[str]]:
    """Return the path as a table; the chosen k and the runner-up are marked."""
    marks = {found.best: "chosen", found.runner_up: "runner-up"}
    return [
        [
            marks.get(one.n_clusters, ""),
            f"{one.n_clusters:,}",
            f"{one.normalized_cut:.4f}",
            f"{one.modularity:.3f}",
            _figure(one.eigengap),
            _figure(one.stability),
            _figure(one.leap),
            f"{one.sizes[0]:,}",
            f"{one.sizes[-1]:,}",
        ]
        for one in found.path
    ]


def _figure(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def selection_data(found: Selection) -> dict[str, Any]:
    """Return what was found for machines; what is not known is null."""
    path = [
        {
            "k": one.n_clusters,
            "normalized_cut": one.normalized_cut,
            "modularity": one.modularity,
            "eigengap": _number(one.eigengap),
            "stability": _number(one.stability),
            "leap": _number(one.leap),
            "description": one.description,
            "crumbs": one.crumbs,
            "sizes": one.sizes,
        }
        for one in found.path
    ]
    return {
        "best": found.best,
        "runner_up": found.runner_up,
        "confidence": found.confidence,
        "stands_out": found.stands_out,
        "sentence": found.sentence,
        "k_min": found.k_min,
        "k_max": found.k_max,
        "path": path,
        "linkage": found.linkage,
        "seconds": found.timings,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
