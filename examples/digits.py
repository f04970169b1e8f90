"""Handwritten digits: points, clustered without their labels.

scikit-learn's 1,797 digits are points with 64 pixels each. `fit` joins every one to its nearest neighbours and clusters that
graph. The picture shows each cluster's mean, its surest and its most doubtful member (`confidence_`).

    python examples/digits.py [FOLDER]        writes digits.png into FOLDER, 5 s; needs matplotlib
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from corecut import CoresetSpectralClustering

points, truth = load_digits(return_X_y=True)
model = CoresetSpectralClustering(n_clusters=10, random_state=0).fit(points)
agreement = adjusted_rand_score(truth, model.labels_)
print(f"agreement with the true digits (ARI): {agreement:.2f}")

figure, axes = plt.subplots(3, 10, figsize=(10, 4.1), layout="constrained")
for j in range(10):
    members = np.flatnonzero(model.labels_ == j)
    order = members[np.argsort(model.confidence_[members])]
    for axis, image in zip(axes[:, j], (points[members].mean(axis=0), points[order[-1]], points[order[0]]), strict=True):
        axis.imshow(image.reshape(8, 8), cmap="gray_r")
        axis.set(xticks=[], yticks=[])
    axes[0, j].set_title(f"{members.size}", fontsize=10)
for axis, text in zip(axes[:, 0], ("mean", "surest", "most\ndoubtful"), strict=True):
    axis.set_ylabel(text)
figure.suptitle(f"Ten clusters of handwritten digits, with their sizes; ARI {agreement:.2f} against the true digits")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "digits.png", dpi=80)
