"""Text documents: what SciPy's functions are about, from their documentation alone.

The documents are the docstrings of SciPy's public functions and classes, which are on your machine already. TF-IDF turns them
into points, a cosine neighbour graph joins those that use the same words, and clusters of that graph are topics. The
subpackage that a function comes from is not used, but compared with at the end.

    python examples/documents.py [FOLDER]     writes documents.png into FOLDER, 20 s; needs matplotlib
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from corecut import CoresetSpectralClustering, neighbor_graph

TOPICS = 12
PACKAGES = (
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
)

documents: dict[str, tuple[str, str]] = {}
for package in PACKAGES:
    module = importlib.import_module(f"scipy.{package}")
    for name in module.__all__:
        value = getattr(module, name)
        text = inspect.getdoc(value) or ""
        if callable(value) and len(text) > 300:
            documents.setdefault(text, (package, name))
packages = np.array([package for package, _ in documents.values()])
names = np.array([name for _, name in documents.values()])

stop = "the of and to in is for a an be by that with as are this if or it on see also note notes examples example import scipy"
stop += " numpy np parameters returns array_like float int optional default none true false ndarray array type shape axis x y"
vectorizer = TfidfVectorizer(token_pattern=r"[a-z]{3,}", stop_words=stop.split(), max_df=0.3, min_df=4, sublinear_tf=True)
points = vectorizer.fit_transform(documents)
# Rows of TF-IDF have length one, so that the nearest in angle are the nearest.
graph = neighbor_graph(points, n_neighbors=12)
model = CoresetSpectralClustering(n_clusters=TOPICS, random_state=0).fit(graph)

words = vectorizer.get_feature_names_out()
table = np.zeros((TOPICS, len(PACKAGES)))
titles = []
mean = np.asarray(points.mean(axis=0)).ravel()
for j in range(TOPICS):
    members = np.flatnonzero(model.labels_ == j)
    typical = np.asarray(points[members].mean(axis=0)).ravel() - mean
    surest = members[np.argsort(-model.confidence_[members])[:3]]
    titles.append(", ".join(words[np.argsort(-typical)[:4]]))
    table[j] = [np.count_nonzero(packages[members] == package) for package in PACKAGES]
    print(f"{members.size:4} documents about {titles[-1]}: {', '.join(names[surest])}")

# Topics beside the subpackage that most of their documents come from.
order = np.lexsort((-table.max(axis=1), table.argmax(axis=1)))
figure, axis = plt.subplots(figsize=(9.5, 5), layout="constrained")
axis.imshow(np.sqrt(table[order]), cmap="Blues", aspect="auto")
for row, j in enumerate(order):
    for column, count in enumerate(table[j]):
        if count:
            colour = "white" if count > 0.4 * table.max() else "black"
            axis.text(column, row, f"{count:.0f}", ha="center", va="center", color=colour, fontsize=8)
axis.set_xticks(range(len(PACKAGES)), PACKAGES, rotation=45)
axis.set_yticks(range(TOPICS), [titles[j] for j in order])
figure.suptitle(f"{names.size} docstrings of SciPy in {TOPICS} clusters: their words, and the subpackages they come from")
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)
figure.savefig(folder / "documents.png", dpi=80)
