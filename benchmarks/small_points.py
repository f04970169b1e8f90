"""Samples of 100 to 2,000 points beside scikit-learn's spectral clustering: agreement with the classes, and cut.

    python benchmarks/small_points.py                                  blobs and scikit-learn's digits
    CORECUT_DATA=folder python benchmarks/small_points.py --rounds 12  pen digits, letters, movements and MNIST as well

On a single small set of points chance decides which of two good partitions is nearer to the classes. So many are drawn: 2 to 6
classes of a set of real points, or blobs of unequal spread, of equal size or with half of them up to ten times smaller. Both
sides get the same graph of 10 neighbours and the number of classes.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from graphs import data_folder
from measure import machine
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score

from corecut import CoresetSpectralClustering, neighbor_graph, normalized_cut

COUNTS, RATIOS = (100, 150, 250, 500, 1000, 2000), (1, 2, 5, 10)
REAL = ("pendigits", "har", "letter", "mnist")


def point_sets() -> list[tuple[Any, Any] | None]:
    """Return points and classes of every real set; None stands for blobs."""
    digits = load_digits()
    found: list[tuple[Any, Any] | None] = [None, (digits.data, digits.target)]
    folder = data_folder()
    for name in REAL if folder is not None else ():
        with np.load(folder / f"{name}.npz") as archive:
            found.append((archive["X"], archive["y"]))
    return found


def sample(given: tuple[Any, Any] | None, n: int, ratio: int, rng: np.random.Generator) -> tuple[Any, Any, int]:
    """Return points, their classes and the number of classes, about half of which are so many times smaller."""
    k = int(rng.integers(2, 7))
    shares = np.where(np.arange(k) < max(1, k // 2), 1 / ratio, 1.0)
    counts = np.maximum(5, np.rint(shares / shares.sum() * n)).astype(int)
    if given is None:
        features, spread = int(rng.choice([2, 5])), rng.uniform(0.5, 2.5)
        return *make_blobs(counts, features, cluster_std=spread, random_state=int(rng.integers(2**31))), k
    X, y = given
    members = [np.flatnonzero(y == c) for c in rng.choice(np.unique(y), k, replace=False)]
    rows = np.concatenate([rng.choice(m, min(count, m.size), replace=False) for m, count in zip(members, counts, strict=True)])
    return X[rows].astype(float), y[rows], k


def compare(points: Any, truth: Any, k: int) -> list[float]:
    """Return ARI and cut of corecut, then scikit-learn's."""
    graph = neighbor_graph(points, n_neighbors=10)
    ours = CoresetSpectralClustering(k, random_state=0).fit(graph).labels_
    theirs = SpectralClustering(k, affinity="precomputed", random_state=0).fit(sp.csr_matrix(graph.adjacency)).labels_
    both = (ours, theirs)
    return [figure for labels in both for figure in (adjusted_rand_score(truth, labels), normalized_cut(graph, labels))]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2, help="samples of each set, size and ratio of classes (default 2)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(", ".join(f"{name} {value}" for name, value in machine("scikit-learn", "scipy", "numpy").items()))
    heads = ("points", 7), ("samples", 9), ("ARI", 7), ("theirs", 8), ("lower by 0.02", 15), ("higher", 8)
    print("".join(f"{head:>{width}}" for head, width in (*heads, ("cut above 1.05", 16), ("below 1/1.05", 14))))
    sets = point_sets()
    everything = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parts, and their number
        for n in COUNTS:
            rng = np.random.default_rng((options.seed, n))
            each = product(range(options.rounds), sets, RATIOS)
            rows = np.array([compare(*sample(given, n, ratio, rng)) for _, given, ratio in each])
            everything.append(rows)
            print(line(str(n), rows), flush=True)
    print(line("all", np.concatenate(everything)))


def line(name: str, rows: Any) -> str:
    ours, cut, theirs, their_cut = rows.T
    shares = (ours < theirs - 0.02, ours > theirs + 0.02, cut > 1.05 * their_cut + 1e-12, 1.05 * cut < their_cut - 1e-12)
    return f"{name:>7}{len(rows):9}{ours.mean():7.3f}{theirs.mean():8.3f}" + "".join(
        f"{share.mean():{width}.1%}" for share, width in zip(shares, (15, 8, 16, 14), strict=True)
    )


if __name__ == "__main__":
    main()
