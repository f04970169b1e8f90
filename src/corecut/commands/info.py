"""`corecut info`: what a graph is like, and what clustering it will take."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from corecut._files import show_size
from corecut.commands.options import GraphPath, Jobs, Reading, reading, shared
from corecut.commands.screen import Screen, screen
from corecut.graph import Graph

_QUANTILES = {"min": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "max": 1.0}
# The number of clusters that memory is told for where none is given.
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
    verify: Annotated[bool, typer.Option("--verify", help="Compare a store's files with their checksums.")] = False,
    jobs: Jobs = None,
    *,
    reading: Reading,
    screen: Screen,
) -> None:
    """Describe a graph: nodes, edges, degrees, components, memory, suggested settings.

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
            **_memory_bounds(loaded, clusters or _CLUSTERS, jobs),
        }
        if components:
            data |= _components(loaded)
        if clusters is not None:
            data["suggested"] = _suggested(loaded, clusters)
        screen.show(f"corecut info {graph}", _rows(data), data)


def _rows(data: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("nodes", f"{data['nodes']:,} ({data['isolated']:,} without edges; ids: {data['ids']})"),
        ("edges", f"{data['edges']:,} ({data['loops']:,} self-loops; {data['weights']} weights)"),
        ("neighbours", ", ".join(f"{name} {value:,.4g}" for name, value in data["degrees"].items())),
    ]
    if "components" in data:
        share = 100 * data["largest_component"] / max(data["nodes"], 1)
        rows.append(
            ("components", f"{data['components']:,}; the largest has {data['largest_component']:,} nodes ({share:.1f} %)")
        )
    rows.append(
        (
            "memory",
            f"{show_size(data['memory_bytes'])} for the graph; to cluster it about {show_size(data['coreset_bytes'])} "
            f"through a coreset, up to {show_size(data['aggregation_bytes'])} with aggregation",
        )
    )
    if "suggested" in data:
        rows.append(("suggested", data["suggested"]["in_words"]))
    return rows


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


def _memory_bounds(graph: Graph, clusters: int, jobs: int | None) -> dict[str, int]:
    """Return bounds on what a run holds beside the graph, on both paths."""
    from corecut.memory import aggregation_bytes, coreset_bytes
    from corecut.settings import coreset_size_for

    n, m = graph.n_nodes, graph.n_entries
    size = coreset_size_for(graph, min(clusters, n), "auto") if m else 0
    return {
        "coreset_bytes": coreset_bytes(n, m, clusters, coreset_size=size, n_jobs=jobs),
        "aggregation_bytes": aggregation_bytes(n, m, clusters, n_jobs=jobs),
    }


def _suggested(graph: Graph, clusters: int) -> dict[str, Any]:
    """Return what a run with this many clusters would settle on by itself."""
    from corecut.settings import Settings, resolve

    choices = resolve(Settings(n_clusters=clusters), graph)
    chosen = {name: getattr(choices, name) for name in ("aggregate", "coreset_size", "regularization")}
    return chosen | {"in_words": choices.sentence(graph)}
