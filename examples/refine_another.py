"""Another program's partition, refined: lower cut, same number of clusters, and no cluster of it lost.

A partition by networkx's fluid communities (it could as well be METIS's, Leiden's, or one from a file) is improved by moving
single nodes while the normalised cut falls. `refine_partition` never makes it worse. Beside it a clustering from scratch with
as many clusters.

    python examples/refine_another.py [FOLDER]   writes refine_another.png into FOLDER, 15 s; needs matplotlib and networkx
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from corecut import CoresetSpectralClustering, conductance, make_degree_corrected_sbm, refine_partition

graph, _ = make_degree_corrected_sbm(4_000, 25, mean_degree=14, mixing=0.45, sizes="powerlaw", random_state=2)
theirs = nx.from_scipy_sparse_array(graph)
connected = max(nx.connected_components(theirs), key=len)
graph = graph[sorted(connected)][:, sorted(connected)]
communities = list(nx.community.asyn_fluidc(nx.from_scipy_sparse_array(graph), 25, seed=0))
labels = np.empty(graph.shape[0], int)
for number, members in enumerate(communities):
    labels[list(members)] = number

refined = refine_partition(graph, labels)
scratch = CoresetSpectralClustering(len(communities), random_state=0).fit(graph)
results = {
    f"fluid communities, {len(communities)} clusters": (labels, "#999999", "o"),
    f"refined: {refined.n_moves:,} moves": (refined.labels, "#0072B2", "s"),
    "corecut from scratch": (scratch.labels_, "#D55E00", "^"),
}
figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
for name, (found, colour, marker) in results.items():
    cuts = np.sort(conductance(graph, found))
    print(f"{name}: normalised cut {cuts.mean():.4f}")
    axis.plot(cuts, marker=marker, markersize=4, color=colour, label=f"{name}; mean {cuts.mean():.3f}")
axis.set(xlabel="clusters, from best to worst", ylabel="conductance", title="Conductance of every cluster: lower is better")
axis.legend()
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "refine_another.png", dpi=80)
