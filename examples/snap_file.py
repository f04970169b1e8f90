"""A file as SNAP publishes them: from the file to labels under its own ids.

SNAP's files are edge lists, `FromNodeId<tab>ToNodeId` below a few comments, often compressed. This script writes one (a graph
with planted communities, so that nothing has to be fetched); put the name of your own file in its place.

    python examples/snap_file.py [FOLDER]     writes snap_file.png into FOLDER, 10 s; needs matplotlib

On the command line the same is

    corecut cluster com-example.ungraph.txt.gz -k 40 -o labels.csv
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

from corecut import CoresetSpectralClustering, make_degree_corrected_sbm, read_graph
from corecut.labels import write_labels


def write_snap_file(path):
    """Write a graph in SNAP's format, with ids that have gaps."""
    graph, _ = make_degree_corrected_sbm(30_000, 40, mean_degree=12, mixing=0.3, sizes="powerlaw", random_state=1)
    rows, columns = graph.nonzero()
    ids = 7 * np.arange(30_000) + 3
    with gzip.open(path, "wt") as file:
        file.write(f"# Undirected graph: {path.name}\n# Nodes: 30000 Edges: {graph.nnz // 2}\n# FromNodeId\tToNodeId\n")
        file.writelines(f"{ids[u]}\t{ids[v]}\n" for u, v in zip(rows, columns, strict=True) if u < v)


with TemporaryDirectory() as folder:
    path = Path(folder) / "com-example.ungraph.txt.gz"
    write_snap_file(path)
    graph = read_graph(path)  # the format, the comments and the columns are found by themselves
    model = CoresetSpectralClustering(n_clusters=40, random_state=0).fit(graph)
    write_labels(Path(folder) / "labels.csv", model.labels_, graph.node_ids)  # under the file's own ids
    print(f"{graph}; the first labels:", (Path(folder) / "labels.csv").read_text().split()[:4])

sizes = np.bincount(model.labels_)
order = np.argsort(-sizes)
figure, axes = plt.subplots(2, 1, figsize=(9, 4.6), layout="constrained", sharex=True)
axes[0].bar(range(40), sizes[order], color="#0072B2")
axes[0].set(ylabel="nodes", title="Clusters of a SNAP file, by size")
axes[1].bar(range(40), model.conductances_[order], color="#D55E00")
axes[1].axhline(model.normalized_cut_, color="black", linewidth=1, linestyle="--")
axes[1].text(39.6, model.normalized_cut_ + 0.01, f"mean {model.normalized_cut_:.2f}", ha="right", va="bottom")
axes[1].set(ylabel="conductance", xlabel="cluster", ylim=(0, 1.25 * model.conductances_.max()), xlim=(-0.8, 39.8))
axes[1].text(0, 1.12 * model.conductances_.max(), "share of a cluster's edges that leave it: lower is better", va="center")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "snap_file.png", dpi=80)
