"""Segments of scikit-learn's sample photo: a graph of its pixels, clustered with the defaults.

python docs/pictures/segments.py          writes segments.png beside this file; needs matplotlib and pillow
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import grid_to_graph

from corecut import CoresetSpectralClustering

photo = load_sample_image("china.jpg")[::4, ::4].astype(float) / 255
height, width, _ = photo.shape
# Neighbouring pixels, the more alike the closer.
grid = sp.csr_array(grid_to_graph(height, width))
grid.setdiag(0)
grid.eliminate_zeros()
rows, columns = grid.nonzero()
colours = photo.reshape(-1, 3)
difference = np.linalg.norm(colours[rows] - colours[columns], axis=1)
weights = np.exp(-difference / difference.std()) + 1e-6
graph = sp.csr_array((weights, (rows, columns)), shape=grid.shape)

figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
axes[0].imshow(photo)
axes[0].set_title(f"{width} × {height} pixels")
for axis, k in zip(axes[1:], (8, 25), strict=True):
    labels = CoresetSpectralClustering(k, random_state=0).fit_predict(graph)
    means = np.array([colours[labels == j].mean(axis=0) for j in range(k)])
    segments = labels.reshape(height, width)
    shown = means[labels].reshape(photo.shape)
    border = np.zeros((height, width), bool)
    border[:, 1:] |= segments[:, 1:] != segments[:, :-1]
    border[1:] |= segments[1:] != segments[:-1]
    shown[border] = 1.0
    axis.imshow(shown)
    axis.set_title(f"k = {k}")
for axis in axes:
    axis.axis("off")
figure.savefig(Path(__file__).with_name("segments.png"), dpi=80)
