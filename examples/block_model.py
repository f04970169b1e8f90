"""A block model: the adjacency matrix before and after, and what it takes to find clusters that overlap.

Graphs with 12 planted clusters and ever more edges between them. Up to a point every node is found; where half of a node's
edges leave its cluster, some are not, and `confidence_` says which.

    python examples/block_model.py [FOLDER]   writes block_model.png into FOLDER, 10 s; needs matplotlib
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from corecut import CoresetSpectralClustering, make_degree_corrected_sbm

CLUSTERS, NODES, CELLS = 12, 12_000, 80


def picture(graph, order):
    """Return the matrix in an order of the nodes, as counts of edges in square cells."""
    place = np.empty(order.size, int)
    place[order] = np.arange(order.size)
    rows, columns = graph.nonzero()
    edges = [place[rows], place[columns]]
    return np.histogram2d(*edges, bins=CELLS, range=[(0, order.size)] * 2)[0]


figure, axes = plt.subplots(2, 3, figsize=(10, 6.8), layout="constrained")
for column, mixing in zip(axes.T, (0.1, 0.4, 0.6), strict=True):
    graph, truth = make_degree_corrected_sbm(NODES, CLUSTERS, mean_degree=20, mixing=mixing, sizes="powerlaw", random_state=0)
    # As in real life the nodes come in no order.
    shuffled = np.random.default_rng(0).permutation(NODES)
    graph, truth = graph[shuffled][:, shuffled], truth[shuffled]
    model = CoresetSpectralClustering(CLUSTERS, random_state=0).fit(graph)
    agreement = adjusted_rand_score(truth, model.labels_)
    sure = model.confidence_ >= np.median(model.confidence_)
    surer = adjusted_rand_score(truth[sure], model.labels_[sure])
    print(f"mixing {mixing}: ARI {agreement:.3f}, of the surer half {surer:.3f}, normalised cut {model.normalized_cut_:.3f}")
    by_size = np.argsort(-np.bincount(model.labels_))
    sorted_order = np.argsort(np.argsort(by_size)[model.labels_], kind="stable")
    for axis, order in zip(column, (np.arange(NODES), sorted_order), strict=True):
        axis.imshow(np.log1p(picture(graph, order)), cmap="gray_r")
        axis.set(xticks=[], yticks=[])
    column[0].set_title(f"{100 * mixing:.0f} % of the edges leave their cluster")
    column[1].set_title(f"found: ARI {agreement:.2f}, of the surer half {surer:.2f}", fontsize=11)
axes[0, 0].set_ylabel("nodes as they come")
axes[1, 0].set_ylabel("nodes sorted by cluster")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "block_model.png", dpi=80)
