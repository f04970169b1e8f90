"""Segments of a photo: a graph of its pixels, clustered with the defaults.

Every pixel of scikit-learn's sample photo is joined to its four neighbours, by a weight that falls with the difference of their
colours. A normalised cut of that graph cuts along edges of the picture.

    python examples/photo.py [FOLDER]         writes photo.png into FOLDER, 15 s; needs matplotlib and pillow
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import grid_to_graph

from corecut import CoresetSpectralClustering

photo = load_sample_image("china.jpg")[::4, ::4].astype(float) / 255
height, width, _ = photo.shape
grid = sp.csr_array(grid_to_graph(height, width))
grid.setdiag(0)
grid.eliminate_zeros()
rows, columns = grid.nonzero()
colours = photo.reshape(-1, 3)
difference = np.linalg.norm(colours[rows] - colours[columns], axis=1)
weights = np.exp(-difference / difference.std()) + 1e-6
graph = sp.csr_array((weights, (rows, columns)), shape=grid.shape)

figure, axes = plt.subplots(1, 3, figsize=(12, 2.9), layout="constrained")
axes[0].imshow(photo)
axes[0].set_title(f"{width} × {height} pixels")
for axis, k in zip(axes[1:], (8, 25), strict=True):
    model = CoresetSpectralClustering(k, random_state=0).fit(graph)
    print(f"k = {k}: normalised cut {model.normalized_cut_:.4f}, {sum(model.timings_.values()):.1f} s")
    means = np.array([colours[model.labels_ == j].mean(axis=0) for j in range(k)])
    segments = model.labels_.reshape(height, width)
    shown = means[model.labels_].reshape(photo.shape)
    border = np.zeros((height, width), bool)
    border[:, 1:] |= segments[:, 1:] != segments[:, :-1]
    border[1:] |= segments[1:] != segments[:-1]
    shown[border] = 1.0
    axis.imshow(shown)
    axis.set_title(f"{k} segments")
for axis in axes:
    axis.axis("off")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "photo.png", dpi=80)
