"""Labels files beside a graph, for the commands that look at a finished partition."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from corecut._files import GraphFileError, PointsError
from corecut._typing import AnyArray, IntArray
from corecut.commands.options import Reading
from corecut.commands.screen import Screen
from corecut.edges import EdgeReport
from corecut.graph import Graph
from corecut.labels import LabelColumnError, align_labels, read_labels

LabelsPath = Annotated[Path, typer.Argument(metavar="LABELS", help="Labels file: .csv, .tsv, .txt, .npy or .parquet.")]
Column = Annotated[str | None, typer.Option(help="Column of LABELS that holds the labels, by name or by number from 0.")]

# What there is for points in place of the commands that take a graph and labels.
_LABELS_OF_POINTS = (
    "labels of points are judged by corecut cluster --points --report PAGE, or in Python by "
    "normalized_cut(neighbor_graph(points), labels)"
)

# A labels file's name, its ids (None when it has none) and its labels.
Labels = tuple[Path, AnyArray | None, IntArray]


def labels_of(path: Path, column: str | None, option: str = "--column") -> Labels:
    """Read a labels file; a column that is not there is misuse of an option."""
    if str(path) == "-":
        raise ValueError("labels are not read from standard input (-); give the name of a file")
    try:
        return (path, *read_labels(path, column=column))
    except LabelColumnError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


@contextmanager
def labelled_graph(path: Path, reading: Reading, screen: Screen, jobs: int | None) -> Iterator[tuple[Graph, EdgeReport]]:
    """Give the graph beside labels and what was merged; of a table of points say how its labels are judged."""
    try:
        with reading.load(path, screen, jobs) as loaded:
            yield loaded
    except PointsError as error:
        raise GraphFileError(f"{error}; {_LABELS_OF_POINTS}") from None


def aligned(graph: Graph, found: Labels) -> IntArray:
    """Return one label per node of the graph, -1 for none."""
    path, ids, labels = found
    return align_labels(ids, labels, graph.node_ids, n_nodes=graph.n_nodes, name=str(path))


def complete(graph: Graph, found: Labels) -> IntArray:
    """Return one label per node of the graph, and refuse nodes without one."""
    partition = aligned(graph, found)
    if (partition < 0).any():
        missing = int(np.count_nonzero(partition < 0))
        node = int(np.flatnonzero(partition < 0)[0])
        name = node if graph.node_ids is None else graph.node_ids[node]
        none = "; a label of -1, like all below 0, means none" if (found[2] < 0).any() else ""
        raise ValueError(f"{found[0]} has no label for {missing} of {graph.n_nodes} nodes, the first is node {name}{none}")
    return partition
