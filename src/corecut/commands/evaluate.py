"""`corecut evaluate`: how good any labels are on any graph, and how like other labels."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from corecut._files import counted
from corecut.commands.labelled import Column, Labels, LabelsPath, aligned, complete, labelled_graph, labels_of
from corecut.commands.options import GraphPath, Jobs, Reading, reading, shared
from corecut.commands.screen import Screen, screen
from corecut.graph import Graph
from corecut.metrics import Balance, conductance, modularity


@shared(reading=reading, screen=screen)
def evaluate(
    graph: GraphPath,
    labels: LabelsPath,
    truth: Annotated[Path | None, typer.Argument(metavar="[TRUTH]", help="Labels to compare with.")] = None,
    jobs: Jobs = None,
    *,
    column: Column = None,
    truth_column: Annotated[str | None, typer.Option(help="The same for TRUTH.")] = None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Measure labels on a graph: normalised cut, modularity, sizes; with TRUTH also ARI and NMI.

    Example: corecut evaluate friends.store labels.csv truth.csv
    """
    if truth is None and truth_column is not None:
        raise typer.BadParameter("there is no TRUTH whose column it could name", param_hint="--truth-column")
    found = labels_of(labels, column)
    known = None if truth is None else labels_of(truth, truth_column, "--truth-column")
    with labelled_graph(graph, reading, screen, jobs) as (loaded, report):
        rows, data = _measured(loaded, report.edges, found, known, jobs)
    screen.show("corecut evaluate", rows, data)


def _measured(
    graph: Graph, edges: int, found: Labels, known: Labels | None, jobs: int | None
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Return the facts about labels on a graph, as rows for people and as data for machines."""
    _, partition = np.unique(complete(graph, found), return_inverse=True)
    cuts = conductance(graph, partition, n_jobs=jobs)
    sizes = np.bincount(partition)
    data: dict[str, Any] = {
        "nodes": graph.n_nodes,
        "edges": edges,
        "clusters": int(sizes.size),
        "normalized_cut": float(cuts.mean()),
        "normalized_cut_sum": float(cuts.sum()),
        "modularity": modularity(graph, partition, n_jobs=jobs),
        "conductances": cuts,
        "sizes": sizes,
        "balance": asdict(Balance.of(sizes)),
    }
    rows = [
        ("graph", f"{counted(graph.n_nodes, 'node')}, {counted(edges, 'edge')}"),
        ("clusters", f"{sizes.size:,}, of {Balance.of(sizes)}"),
        ("normalised cut", f"{cuts.mean():.4f} (mean conductance; best {cuts.min():.4f}, worst {cuts.max():.4f})"),
        ("modularity", f"{data['modularity']:.4f}"),
    ]
    if known is not None:
        from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

        other = aligned(graph, known)
        both = other >= 0
        if not both.any():
            raise ValueError(f"{known[0]} has no label for any node of the graph; a label of -1, like all below 0, means none")
        data["ari"] = float(adjusted_rand_score(other[both], partition[both]))
        data["nmi"] = float(normalized_mutual_info_score(other[both], partition[both]))
        data["compared"] = int(np.count_nonzero(both))
        rows += [
            ("ARI", f"{data['ari']:.4f}"),
            ("NMI", f"{data['nmi']:.4f}"),
            ("compared on", counted(data["compared"], "node")),
        ]
    return rows, data
