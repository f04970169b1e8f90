"""`corecut predict`: the clusters of new nodes or points, by a model that was saved."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer

from corecut._files import GraphFileError, counted, ending_of, first_line, is_same
from corecut._typing import AnyArray
from corecut.commands.options import Jobs, Reading, reading, shared
from corecut.commands.printing import print_labels, require_stdout
from corecut.commands.screen import Screen, screen
from corecut.graph import Graph
from corecut.labels import check_labels_path, write_labels
from corecut.node_ids import numbers_of
from corecut.readers.npz import ArchivedMatrix, read_npz


@shared(reading=reading, screen=screen)
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File that `corecut cluster --save` or `model.save` wrote.")],
    new: Annotated[
        Path,
        typer.Argument(
            metavar="NEW",
            help="A graph's file with the edges between new nodes and nodes that were clustered, by their names; or a row of "
            "similarities to all clustered nodes for every new one (.npy, or .npz of scipy). For a model of points a row for "
            "every point: .npy, .csv, .tsv or .parquet.",
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Labels file: .csv, .tsv, .txt (also .gz, .bz2, .zst), .npy or .parquet; - for TSV on stdout.",
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="For a model of points: the columns to take, by name or by number from 0. Columns with the names of the "
            "fitted features are told by them, others are in their order; by default those of their names, or all."
        ),
    ] = None,
    jobs: Jobs = None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Give new nodes or points the clusters that they join, by a saved model.

    Example: corecut predict friends.model newcomers.txt -o labels.csv
    """
    from corecut.models import load

    to_stdout = output is not None and str(output) == "-"
    if to_stdout and screen.as_json:
        raise typer.BadParameter("-o - and --json both print to stdout; give -o a file name", param_hint="--json")
    if output is not None and not to_stdout:
        if is_same(output, new) or is_same(output, model):
            raise typer.BadParameter(f"{output} is a file that is read; give the labels another name", param_hint="--output")
        check_labels_path(output)
    if to_stdout:
        require_stdout()
    if str(model) == "-":
        raise ValueError("a model is not read from standard input (-); give the name of its file")
    begin = perf_counter()
    fitted = load(model)
    fitted.n_jobs = jobs
    if features is not None and fitted.affinity_ == "precomputed":
        raise typer.BadParameter(f"it chooses columns of points, and {model} is a model of a graph", param_hint="--features")
    if not reading.arguments["compact"] and fitted.affinity_ == "precomputed":
        raise typer.BadParameter(
            "it makes nodes without edges of ids that do not occur, and such nodes join no cluster; leave it out, ids are "
            "names here",
            param_hint="--keep-ids",
        )
    X, names = _rows(fitted, new, reading, screen, features=features, jobs=jobs)
    read = perf_counter() - begin
    try:
        labels, confidence = fitted.predict(X, return_confidence=True)
    except (ValueError, TypeError) as error:
        raise GraphFileError(f"{new}: {first_line(error)}") from None
    if to_stdout:
        print_labels(labels, names)
        return
    if output is not None:
        write_labels(output, labels, names)
    sizes = np.bincount(labels, minlength=fitted.conductances_.size)
    seconds = perf_counter() - begin
    unsure = int(np.count_nonzero(confidence < 0.1))
    rows = [
        ("model", f"{type(fitted).__name__}, {fitted.labels_.size:,} fitted, {counted(sizes.size, 'cluster')}"),
        ("new", f"{labels.size:,} in {counted(int(np.count_nonzero(sizes)), 'cluster')}"),
        ("confidence", f"{confidence.mean() if confidence.size else 0:.3f} on average; {unsure:,} below 0.1"),
        ("total", f"{seconds:,.3f} s, of which reading {read:,.3f} s"),
    ]
    if output is not None:
        rows.append(("labels", str(output)))
    data = {
        "fitted": fitted.labels_.size,
        "new": labels.size,
        "sizes": sizes,
        "confidence": float(confidence.mean()) if confidence.size else 0.0,
        "unsure": unsure,
        "seconds": {"read": read, "total": seconds},
        "labels": None if output is None else str(output),
    }
    screen.show("corecut predict", rows, data)
    if output is None:
        screen.tell_unsaved()


def _rows(
    fitted: Any, new: Path, reading: Reading, screen: Screen, *, features: str | None, jobs: int | None
) -> tuple[Any, AnyArray | None]:
    """Return what `predict` takes, and the names of its rows; None where they are numbered."""
    if ending_of(new) == ".npz":
        content = read_npz(new)
        if isinstance(content, ArchivedMatrix) and content.matrix.shape[1] == fitted.n_features_in_:
            return content.matrix, content.node_ids
        if isinstance(content, ArchivedMatrix) and content.matrix.shape[0] != content.matrix.shape[1]:
            found, expected = content.matrix.shape[1], fitted.n_features_in_
            raise GraphFileError(
                f"{new}: its rows have {found:,} columns, and the model expects {expected:,}; give a column each"
            )
    if fitted.affinity_ != "precomputed" or ending_of(new) == ".npy":
        return _points(fitted, new, features, reading)
    with reading.load(new, screen, jobs) as (graph, _):
        return _new_nodes(graph, fitted.node_ids_, fitted.labels_.size, new, screen)


def _points(fitted: Any, new: Path, features: str | None, reading: Reading) -> tuple[AnyArray, AnyArray | None]:
    """Return the points of a table, its columns found by the names that they had when the model was fitted, and their names."""
    option = reading.about_edges()
    if option is not None:
        raise typer.BadParameter(f"it is about edges, and {new} is a table of rows", param_hint=option)
    known = vars(fitted).pop("feature_names_in_", None)  # scikit-learn would miss them in an array
    points = reading.points(new, features, fitted=known if features is None else None)
    if known is None or not points.named or len(points.features) != len(known):
        return points.values, points.names
    return points.values[:, _as_fitted(points.features, known.tolist(), new)], points.names


def _as_fitted(chosen: list[str], known: list[str], file: Path) -> list[int]:
    """Return the chosen columns in the order of the fitted features where they have their names; other names go by places."""
    if set(chosen) == set(known):
        return [chosen.index(name) for name in known]
    if any(name in known and known.index(name) != i for i, name in enumerate(chosen)):
        given, fitted = ", ".join(chosen), ", ".join(known)
        raise GraphFileError(
            f"{file}: the columns {given} are not in the order of the fitted features {fitted}; name them by --features in "
            "that order"
        )
    return list(range(len(chosen)))


def _new_nodes(graph: Graph, known: AnyArray | None, n_known: int, file: Path, screen: Screen) -> tuple[sp.csr_array, AnyArray]:
    """Return the rows of the nodes that were not fitted, with the fitted nodes as columns, and their names."""
    ids = np.arange(graph.n_nodes) if graph.node_ids is None else graph.node_ids
    number = numbers_of(ids, known, n_known)
    if not (number >= 0).any():
        first = 0 if known is None else known[0]
        raise GraphFileError(
            f"{file} names no node of the model: its first is {ids[0]!s}, the model's first is {first!s}; "
            "give the edges of new nodes to nodes that were clustered"
        )
    new = np.flatnonzero(number < 0)
    if new.size == 0:
        raise GraphFileError(f"{file} has no new node: all {ids.size:,} were clustered, and have their labels")
    lengths = np.diff(graph.indptr)[new]
    row = np.repeat(np.arange(new.size), lengths)
    entry = np.arange(row.size) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(graph.indptr[new], lengths)
    column = number[graph.indices[entry]]
    kept = column >= 0
    if not kept.all():
        screen.say(f"edges between new nodes are left out: {np.count_nonzero(~kept & (graph.indices[entry] >= new[row])):,}")
    weight = np.ones(entry.size) if graph.weights is None else graph.weights[entry]
    rows = sp.csr_array((weight[kept], (row[kept], column[kept])), shape=(new.size, n_known))
    return rows, ids[new]
