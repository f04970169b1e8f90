"""`corecut evaluate`: how good any labels are on any graph, and how like other labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from corecut._typing import IntArray
from corecut.commands.options import GraphPath, Jobs, Reading, reading, shared
from corecut.commands.screen import Screen, screen
from corecut.graph import Graph
from corecut.labels import align_labels, read_labels
from corecut.metrics import conductance, modularity


@shared(reading=reading, screen=screen)
def evaluate(
    graph: GraphPath,
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="Labels file: .parquet, .csv, .tsv, .txt or .npy.")],
    truth: Annotated[Path | None, typer.Argument(metavar="[TRUTH]", help="Labels to compare with.")] = None,
    jobs: Jobs = None,
    *,
    reading: Reading,
    screen: Screen,
) -> None:
    """Measure labels on a graph: normalised cut, modularity, sizes; with TRUTH also ARI and NMI.

    Example: corecut evaluate friends.store labels.parquet truth.csv
    """
    found = read_labels(labels)
    known = None if truth is None else read_labels(truth)
    loaded, report = reading.load(graph, screen, jobs)
    partition = _aligned(loaded, *found, labels)
    if (partition < 0).any():
        missing = int(np.count_nonzero(partition < 0))
        node = int(np.flatnonzero(partition < 0)[0])
        name = node if loaded.node_ids is None else loaded.node_ids[node]
        raise ValueError(f"{labels} has no label for {missing} of {loaded.n_nodes} nodes, the first is node {name}")
    _, partition = np.unique(partition, return_inverse=True)
    cuts = conductance(loaded, partition, n_jobs=jobs)
    sizes = np.bincount(partition)
    data: dict[str, Any] = {
        "nodes": loaded.n_nodes,
        "edges": report.edges,
        "clusters": int(sizes.size),
        "normalized_cut": float(cuts.mean()),
        "normalized_cut_sum": float(cuts.sum()),
        "modularity": modularity(loaded, partition, n_jobs=jobs),
        "conductances": cuts,
        "sizes": sizes,
    }
    rows = [
        ("graph", f"{loaded.n_nodes:,} nodes, {report.edges:,} edges"),
        ("clusters", f"{sizes.size:,}, of {sizes.min():,} to {sizes.max():,} nodes"),
        ("normalised cut", f"{cuts.mean():.4f} (mean conductance; best {cuts.min():.4f}, worst {cuts.max():.4f})"),
        ("modularity", f"{data['modularity']:.4f}"),
    ]
    if known is not None and truth is not None:
        from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

        other = _aligned(loaded, *known, truth)
        both = other >= 0
        if not both.any():
            raise ValueError(f"{truth} has no label (from 0 on) for any node of the graph")
        data["ari"] = float(adjusted_rand_score(other[both], partition[both]))
        data["nmi"] = float(normalized_mutual_info_score(other[both], partition[both]))
        data["compared"] = int(np.count_nonzero(both))
        rows += [("ARI", f"{data['ari']:.4f}"), ("NMI", f"{data['nmi']:.4f}"), ("compared on", f"{data['compared']:,} nodes")]
    screen.show("corecut evaluate", rows, data)


def _aligned(graph: Graph, ids: Any, labels: IntArray, path: Path) -> IntArray:
    return align_labels(ids, labels, graph.node_ids, n_nodes=graph.n_nodes, name=str(path))
