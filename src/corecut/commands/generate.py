"""`corecut generate`: test graphs of any size, whose clusters are known."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from corecut._files import counted, is_same, show_size
from corecut.commands.options import Force, Jobs, Memory, Seed, shared
from corecut.commands.screen import Screen, screen
from corecut.datasets.planted import PlantedLaw
from corecut.datasets.stores import planted_store
from corecut.labels import check_labels_path, write_labels
from corecut.store import scratch_store
from corecut.writers import check_graph_path, is_store_name, write_graph

app = typer.Typer(no_args_is_help=True, help="Generate test graphs whose clusters are known.")


class _Sizes(StrEnum):
    EQUAL = "equal"
    POWERLAW = "powerlaw"


@app.command()
@shared(screen=screen)
def planted(
    *,
    nodes: Annotated[int, typer.Option(min=2, help="Number of nodes.")],
    clusters: Annotated[int, typer.Option("--clusters", "-k", min=1, help="Number of clusters.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Graph store (name ending in .store or nothing) or file, format by its ending."),
    ],
    mean_degree: Annotated[float, typer.Option(help="Expected mean degree.")] = 16.0,
    mixing: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of the edges whose other end comes from the whole graph.")
    ] = 0.2,
    degree_exponent: Annotated[float, typer.Option(help="Exponent of the power law of the degrees.")] = 2.5,
    sizes: Annotated[_Sizes, typer.Option(help="Sizes of the clusters.")] = _Sizes.EQUAL,
    truth: Annotated[Path | None, typer.Option(help="Write the planted cluster of every node to this labels file.")] = None,
    seed: Seed = 0,
    memory: Memory = "2GB",
    force: Force = False,
    jobs: Jobs = None,
    screen: Screen,
) -> None:
    """Generate a graph with planted clusters and power-law degrees, in pieces, so that it need not fit in memory.

    The graph is that of corecut.make_degree_corrected_sbm with the same numbers and seed.

    Example: corecut generate planted --nodes 1000000 --mean-degree 20 -k 100 -o test.store --truth truth.csv
    """
    check_graph_path(output, overwrite=force)
    if truth is not None:
        if is_same(truth, output):
            raise typer.BadParameter(f"{truth} is the graph's name (-o); give the labels another one", param_hint="--truth")
        check_labels_path(truth, overwrite=force)
    begin = perf_counter()
    law = PlantedLaw.of(
        nodes,
        clusters,
        mean_degree=mean_degree,
        mixing=mixing,
        degree_exponent=degree_exponent,
        sizes=sizes.value,
        random_state=seed,
    )
    kept = screen.keeping(lambda: f"{output} was not written, and what had its name is as it was")
    with kept, screen.progress() as progress:
        direct = is_store_name(output)
        with nullcontext(output) if direct else scratch_store(output) as place:
            store = planted_store(law, place, memory=memory, overwrite=force or not direct, jobs=jobs, progress=progress)
            if not direct:
                write_graph(store.graph, output, overwrite=force)
    size = store.n_bytes if direct else output.stat().st_size
    if truth is not None:
        write_labels(truth, law.labels, overwrite=force)
    seconds = perf_counter() - begin
    rows = [
        ("graph", f"{store.n_nodes:,} nodes, {counted(store.n_entries // 2, 'edge')}, {counted(clusters, 'cluster')}"),
        ("written", f"{output} ({show_size(size)})" + ("" if truth is None else f", {truth}")),
        ("time", f"{seconds:.2f} s"),
    ]
    data = {"nodes": store.n_nodes, "edges": store.n_entries // 2, "clusters": clusters, "target": str(output), "bytes": size}
    screen.show("corecut generate planted", rows, data | {"seconds": seconds})
