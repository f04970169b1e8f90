"""`corecut info`: what a graph is like, and what clustering it will take."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from corecut._files import counted, show_size
from corecut.commands.options import GraphPath, Jobs, Reading, reading, shared
from corecut.commands.screen import Screen, screen
from corecut.graph import Graph

_QUANTILES = {"min": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "max": 1.0}
# The number of clusters that memory and time are told for where none is given.
_CLUSTERS = 100


@shared(reading=reading, screen=screen)
def info(
    graph: GraphPath,
    clusters: Annotated[
        int | None, typer.Option("--clusters", "-k", min=1, help="Suggest settings for this many clusters.")
    ] = None,
    components: Annotated[
        bool, typer.Option("--components/--no-components", help="Count connected components (reads every edge).")
    ] = True,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate/--no-estimate",
            help="Tell the memory and time of a clustering, by its first step (about a fifth of its time).",
        ),
    ] = True,
    *,
    verify: Annotated[bool, typer.Option("--verify", help="Compare a store's files with their checksums.")] = False,
    jobs: Jobs = None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Describe a graph: nodes, edges, degrees, components, memory and time of a clustering; with -k also suggested settings.

    Example: corecut info friends.store -k 50
    """
    from corecut.readers.dispatch import guess_format
    from corecut.store import GraphStore

    if verify:
        if not graph.is_dir() or guess_format(graph) != "store":
            raise typer.BadParameter("only a graph store has checksums", param_hint="--verify")
        GraphStore.open(graph, verify=True)
    with reading.load(graph, screen, jobs) as (loaded, report):
        data: dict[str, Any] = {
            "nodes": loaded.n_nodes,
            "edges": report.edges,
            "loops": report.loops,
            "merged": report.merged,
            "isolated": int(np.count_nonzero(loaded.isolated)),
            "weights": "unit" if loaded.weights is None else str(loaded.weights.dtype),
            "ids": "numbers" if loaded.node_ids is None else "text" if loaded.node_ids.dtype.kind == "O" else "integers",
            "degrees": _quantiles(np.diff(loaded.indptr)),
            "memory_bytes": _graph_bytes(loaded),
        }
        if estimate and loaded.n_entries:
            data["estimates"] = _estimates(loaded, clusters or _CLUSTERS, jobs)
        if components:
            data |= _components(loaded)
        if clusters is not None:
            data["suggested"] = _suggested(loaded, clusters)
        screen.show(f"corecut info {graph}", _rows(data), data)


def _rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("nodes", f"{data['nodes']:,} ({data['isolated']:,} without edges; ids: {data['ids']})"),
        ("edges", f"{data['edges']:,} ({counted(data['loops'], 'self-loop')}; {data['weights']} weights)"),
        ("neighbours", ", ".join(f"{name} {value:,.{2 * (name == 'mean')}f}" for name, value in data["degrees"].items())),
    ]
    if "components" in data:
        rows.append(("components", _words_of_components(data["components"], data["largest_component"], data["nodes"])))
    rows.append(("memory", f"{show_size(data['memory_bytes'])} for the graph"))
    if "estimates" in data:
        known = data["estimates"]
        for name, words in {"aggregation": "with aggregation", "coreset": "through a coreset"}.items():
            took = f"{show_size(known[name]['bytes'])} beside the graph, {_duration(known[name]['seconds'])}"
            rows.append(
                (words, f"about {took} for {counted(known['clusters'], 'cluster')}, on this machine as busy as it is now")
            )
    if "suggested" in data:
        rows.append(("suggested", data["suggested"]["in_words"]))
    return rows


def _words_of_components(count: int, largest: int, nodes: int) -> str:
    if count == 1:
        return "1: all nodes are connected"
    share = 100 * largest / nodes
    # What lies apart may be too little for a percentage to show.
    words = f"all but {nodes - largest:,}" if share >= 99.95 else f"{share:.1f} %"
    return f"{count:,}; the largest has {counted(largest, 'node')} ({words})"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _quantiles(values: Any) -> dict[str, float]:
    # By partition, not by sorting: there may be many millions of nodes.
    found = np.quantile(values, list(_QUANTILES.values()), method="lower")
    return {name: float(value) for name, value in zip(_QUANTILES, found, strict=True)} | {"mean": float(values.mean())}


def _components(graph: Graph) -> dict[str, int]:
    count, labels = graph.components()
    return {"components": count, "largest_component": int(np.bincount(labels).max())}


def _graph_bytes(graph: Graph) -> int:
    arrays = (graph.indptr, graph.indices, graph.weights, graph.degrees, graph.diagonal)
    return sum(array.nbytes for array in arrays if array is not None)


def _estimates(graph: Graph, clusters: int, jobs: int | None) -> dict[str, Any]:
    """Return what a run holds beside the graph and how long it takes here, on both paths."""
    from corecut.estimates import estimate_aggregation, estimate_coreset, probe

    clusters = min(clusters, graph.n_nodes)
    found = probe(graph, clusters, n_jobs=jobs)
    paths = {"aggregation": estimate_aggregation, "coreset": estimate_coreset}
    made = {name: path(graph, clusters, found, n_jobs=jobs) for name, path in paths.items()}
    return {"clusters": clusters} | {name: {"bytes": one.n_bytes, "seconds": one.seconds} for name, one in made.items()}


def _suggested(graph: Graph, clusters: int) -> dict[str, Any]:
    """Return what a run with this many clusters would settle on by itself."""
    from corecut.settings import Settings, resolve

    choices = resolve(Settings(n_clusters=clusters), graph)
    drawn = not choices.aggregate and choices.samples(graph)
    names = ("aggregate", *(["coreset_size"] if drawn else []), "regularization")
    chosen = {name: getattr(choices, name) for name in names}
    return chosen | {"in_words": choices.sentence(graph)}
