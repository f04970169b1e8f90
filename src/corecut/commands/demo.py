"""`corecut demo`: the whole way on a small example, without any file of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from corecut._files import new_folder
from corecut._progress import Stages
from corecut.commands.cluster import summary_data, summary_rows
from corecut.commands.options import Seed, shared
from corecut.commands.picture import adjacency_picture
from corecut.commands.screen import Screen, screen
from corecut.graph import Graph
from corecut.labels import check_labels_path, write_labels

_CLUSTERS = 20


@shared(screen=screen)
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the picture and the labels.")] = Path(
        "corecut-demo"
    ),
    seed: Seed = 0,
    *,
    screen: Screen,
) -> None:
    """Generate a graph with planted clusters, cluster it, compare with the truth, and draw it."""
    if output.exists() and not output.is_dir():
        raise FileExistsError(f"{output} is a file; name another folder with -o")
    with new_folder(output):
        check_labels_path(output / "labels.csv")
        _show_demo(output, seed, screen)


def _show_demo(output: Path, seed: int, screen: Screen) -> None:
    """Do it all and show the facts."""
    from sklearn.metrics import adjusted_rand_score

    from corecut.datasets import make_sbm
    from corecut.estimators import CoresetSpectralClustering

    clock = Stages()
    with clock("generate"):
        matrix, truth = make_sbm(500, _CLUSTERS, 0.1, 0.001, random_state=seed)
        # As in real life the nodes come in no order; otherwise the picture would show clusters before they are found.
        order = np.random.default_rng(seed).permutation(truth.size)
        graph, truth = Graph.from_matrix(matrix[order][:, order]), truth[order]
    model = CoresetSpectralClustering(n_clusters=_CLUSTERS, random_state=seed, verbose=not screen.quiet).fit(graph)
    cuts, sizes = model.conductances_, np.bincount(model.labels_, minlength=_CLUSTERS)
    with clock("write"):
        write_labels(output / "labels.csv", model.labels_)
        adjacency_picture(graph, model.labels_, output / "clusters.png")
    times = {"generate": clock.timings.pop("generate")} | model.timings_ | clock.timings
    ari = float(adjusted_rand_score(truth, model.labels_))
    rows = [("graph", f"{graph.n_nodes:,} nodes, {graph.n_entries // 2:,} edges, {_CLUSTERS} planted clusters")]
    rows += summary_rows(model, times, sizes, cuts)
    rows += [
        ("ARI", f"{ari:.4f} against the planted clusters"),
        ("written", f"{output / 'labels.csv'}, {output / 'clusters.png'}"),
    ]
    data = {"nodes": graph.n_nodes, "edges": graph.n_entries // 2, "ari": ari, **summary_data(model, times, sizes, cuts)}
    screen.show("corecut demo", rows, data | {"labels": str(output / "labels.csv"), "picture": str(output / "clusters.png")})
