"""`corecut convert`: from one format to another; to a store also when the graph is larger than memory."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from corecut._files import counted, is_same, lies_in, show_size
from corecut.commands.options import Force, GraphPath, Jobs, Reading, reading, shared
from corecut.commands.screen import Screen, screen
from corecut.readers.dispatch import convert_graph
from corecut.store import scratch_store
from corecut.writers import check_graph_path, is_store_name, write_graph


@shared(reading=reading, screen=screen)
def convert(
    graph: GraphPath,
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET",
            help="A graph store (a name that ends in .store or in nothing), or a file: .csv, .tsv, .txt, .edges, "
            ".mtx, .graph, .npz, .parquet, .pq; text also with .gz, .bz2, .zst.",
        ),
    ],
    force: Force = False,
    jobs: Jobs = None,
    *,
    reading: Reading,
    screen: Screen,
) -> None:
    """Convert a graph, by default to a store: a directory that opens in milliseconds and need not fit in memory.

    Text also comes from standard input, as the graph `-`.

    Example: corecut convert friends.txt.gz friends.store --memory 1GB
    """
    check_graph_path(target, overwrite=force)
    if is_same(target, graph):
        raise typer.BadParameter(f"{target} is the graph that is read; give another name", param_hint="TARGET")
    if lies_in(target, graph):
        raise typer.BadParameter(f"{target} lies in {graph}, which is read; give another folder", param_hint="TARGET")
    begin = perf_counter()
    direct = is_store_name(target)
    kept = screen.keeping(lambda: f"{target} was not written, and what had its name is as it was")
    with kept, nullcontext(target) if direct else scratch_store(target) as place, screen.progress() as progress:
        store, report = convert_graph(
            graph,
            place,
            memory=reading.bound,
            overwrite=force or not direct,
            n_jobs=jobs,
            progress=progress,
            **reading.arguments,
        )
        made = store.graph
        if not direct:
            write_graph(made, target, overwrite=force)
    screen.tell(report)
    size = store.n_bytes if direct else target.stat().st_size
    seconds = perf_counter() - begin
    size_in_words = f"{counted(made.n_nodes, 'node')}, {counted(report.edges, 'edge')}"
    rows = [
        ("graph", f"{size_in_words}, {'unit' if made.weights is None else 'float64'} weights"),
        ("read", f"{counted(report.edges_read, 'edge')}, of which {report.merged:,} were repeats"),
        ("written", f"{target} ({show_size(size)})"),
        ("time", f"{seconds:.2f} s"),
    ]
    data = {"nodes": made.n_nodes, "weighted": made.weights is not None, **vars(report)}
    screen.show("corecut convert", rows, data | {"target": str(target), "bytes": size, "seconds": seconds})
