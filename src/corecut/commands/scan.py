"""`corecut scan`: how many clusters a graph has, with the figures of every k that was looked at."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corecut.commands.options import GraphPath, Jobs, Reading, Seed, clusters_option, reading, shared
from corecut.commands.screen import Screen, screen

if TYPE_CHECKING:
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
    seed: Seed = 0,
    jobs: Jobs = None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Choose the number of clusters, and show the path of k that it was chosen from.

    Example: corecut scan friends.txt -k 5..200
    """
    from corecut.selection import asked_range, select_n_clusters

    asked = asked_range(clusters)
    if asked is None:
        raise typer.BadParameter(f"{clusters} is one number: give a range like 2..{clusters}, or auto", param_hint="-k")
    with reading.load(graph, screen, jobs) as (loaded, report):
        found = select_n_clusters(
            loaded,
            *asked,
            balance=balance,
            n_init=draws,
            random_state=seed,
            n_jobs=jobs,
            verbose=not screen.quiet,
        )
        nodes = loaded.n_nodes
    data = {"nodes": nodes, "edges": report.edges} | selection_data(found)
    screen.show_columns(f"corecut scan: {nodes:,} nodes, {report.edges:,} edges", _HEADER, _rows(found), data)


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
