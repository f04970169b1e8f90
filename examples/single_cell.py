"""Single cells: the usual steps from counts to cell types, with the clustering done by corecut.

Counts of 1,200 cells and 2,000 genes are drawn from eight cell types, each with marker genes of its own (in your work they come
from a file). Then what scanpy's tutorials do: counts per ten thousand, logarithms, principal components, neighbours, clusters.
One asks for a number of types, where Leiden would take a resolution.

    python examples/single_cell.py [FOLDER]   writes single_cell.png into FOLDER, 15 s; needs matplotlib
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from corecut import CoresetSpectralClustering, neighbor_graph

CELLS, GENES, TYPES, MARKERS = 1_200, 2_000, 8, 25
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#444444"]

# Counts: a gamma for each gene's level, more of it in the type that it marks, Poisson noise, cells of unequal depth.
rng = np.random.default_rng(0)
share = 0.8 ** np.arange(TYPES)
cell_type = rng.choice(TYPES, CELLS, p=share / share.sum())
level = np.tile(rng.gamma(0.4, 1.0, GENES), (TYPES, 1))
for t in range(TYPES):
    level[t, t * MARKERS : (t + 1) * MARKERS] += rng.gamma(2.0, 1.0, MARKERS)
depth = rng.lognormal(0.0, 0.4, CELLS)
counts = rng.poisson(depth[:, None] * level[cell_type] * 0.6)

# The usual steps.
expression = np.log1p(counts / counts.sum(axis=1, keepdims=True) * 1e4)
components = PCA(20, random_state=0).fit_transform(expression)
graph = neighbor_graph(components, n_neighbors=15)
model = CoresetSpectralClustering(n_clusters=TYPES, random_state=0).fit(graph)
agreement = adjusted_rand_score(cell_type, model.labels_)
print(f"agreement with the cell types (ARI): {agreement:.2f}")

# The genes that mark each cluster: those whose mean differs most from the other cells'.
means = np.array([expression[model.labels_ == j].mean(axis=0) for j in range(TYPES)])
others = np.array([expression[model.labels_ != j].mean(axis=0) for j in range(TYPES)])
marking = [np.argsort(others[j] - means[j], kind="stable")[:3] for j in range(TYPES)]

# Two dimensions for the eye only; the clusters come from the graph.
with threadpool_limits(1):  # threads that wait for each other are slow on a busy machine
    places = TSNE(init="pca", max_iter=500, random_state=0).fit_transform(components)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", width_ratios=(1, 1.25))
for j in range(TYPES):
    members = model.labels_ == j
    left.scatter(*places[members].T, s=4, color=COLOURS[j], label=f"{j}: {members.sum()}", linewidths=0)
left.set(title=f"{CELLS:,} cells, {TYPES} clusters (ARI {agreement:.2f})", xlabel="t-SNE 1", ylabel="t-SNE 2")
left.set(xticks=[], yticks=[], xlim=(1.05 * places[:, 0].min(), 1.7 * places[:, 0].max()))
left.legend(title="cluster: cells", markerscale=4, fontsize=8, title_fontsize=8, loc="center right")
shown = np.concatenate(marking)
image = right.imshow(means[:, shown], aspect="auto", cmap="viridis")
right.set(title="mean expression of each cluster's three first marker genes", ylabel="cluster")
right.set_xticks(range(shown.size), [f"g{gene}" for gene in shown], rotation=90, fontsize=8)
right.set_yticks(range(TYPES))
figure.colorbar(image, ax=right, label="log(1 + counts per 10,000)")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "single_cell.png", dpi=80)
