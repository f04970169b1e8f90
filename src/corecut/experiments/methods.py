"""The methods that the second and third experiment compare, as functions of (matrix, clusters, coreset size, seed).

===========================  =========================================================================================
"csc-exact"                  the published method with exact eigenvectors of the coreset's graph
"csc-fast"                   the published method with the fast spectral step (Macgregor 2023)
"coreset-kernel-kmeans"      kernel k-means on the coreset, with naive D² sampling (Jiang et al. 2022)
"scikit-learn"               spectral clustering of the whole graph
"coreset-sc"                 the authors' own package, with its defaults
"corecut"                    CoresetSpectralClustering with its defaults, which choose the size of the coreset themselves
===========================  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut._typing import AnyArray
from corecut.baselines import CoresetKernelKMeans
from corecut.scikit_learn import CoresetSpectralClustering
from corecut.spectral import EigenSolver

# The published method as its authors run it: sensitivities over the seeds' weight, twice as many D² draws as clusters, row sums
# for degrees, every centre a candidate for every node; and nothing of what this package adds to it.
PUBLISHED: dict[str, Any] = {
    "aggregate": False,
    "refine": False,
    "n_init": 1,
    "regularization": 0.0,
    "sampler": "tree",
    "importance": "seeds",
    "seeding_factor": 2.0,
    "degrees": "rows",
    "candidates": "all",
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """Labels, and how long they took.

    Attributes
    ----------
    seconds
        Time from the matrix to the labels of all nodes.
    labelling
        The part of it in which the nodes outside the coreset were labelled.
    labels
        Cluster of every node.
    coreset, coreset_labels
        The coreset's nodes and their clusters, where there is a coreset of nodes.
    """

    seconds: float
    labelling: float
    labels: AnyArray
    coreset: AnyArray | None = None
    coreset_labels: AnyArray | None = None


Method = Callable[[sp.csr_matrix, int, int, int], Outcome]


def available(methods: tuple[str, ...]) -> tuple[str, ...]:
    """Return the methods whose packages are installed."""
    return methods if find_spec("coreset_sc") else tuple(m for m in methods if not m.startswith("coreset-sc"))


def _published(matrix: sp.csr_matrix, k: int, size: int, seed: int, *, eigen_solver: EigenSolver) -> Outcome:
    return _timed(
        CoresetSpectralClustering(k, coreset_size=size, eigen_solver=eigen_solver, random_state=seed, **PUBLISHED), matrix
    )


def _csc_exact(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> Outcome:
    return _published(matrix, k, size, seed, eigen_solver="arpack")


def _csc_fast(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> Outcome:
    return _published(matrix, k, size, seed, eigen_solver="power")


def _coreset_kernel_kmeans(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> Outcome:
    return _timed(CoresetKernelKMeans(k, coreset_size=size, sampler="naive", candidates="all", random_state=seed), matrix)


def _timed(model: Any, matrix: sp.csr_matrix) -> Outcome:
    begin = perf_counter()
    model.fit(matrix)
    seconds = perf_counter() - begin
    return Outcome(seconds, model.timings_["labelling"], model.labels_, model.coreset_indices_, model.coreset_labels_)


def _corecut(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> Outcome:
    del size  # chosen by the method itself
    begin = perf_counter()
    labels = CoresetSpectralClustering(k, random_state=seed).fit_predict(matrix)
    return Outcome(perf_counter() - begin, 0.0, labels)


def _scikit_learn(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> Outcome:
    from sklearn.cluster import SpectralClustering

    del size  # there is no coreset
    begin = perf_counter()
    labels = SpectralClustering(k, affinity="precomputed", random_state=seed).fit_predict(matrix)
    return Outcome(perf_counter() - begin, 0.0, labels)


def _coreset_sc(matrix: sp.csr_matrix, k: int, size: int, seed: int) -> Outcome:
    import coreset_sc

    np.random.seed(seed)  # noqa: NPY002  (its k-means draws from there; its native code cannot be seeded)
    begin = perf_counter()
    model = coreset_sc.CoresetSpectralClustering(
        k, coreset_ratio=size / matrix.shape[0], full_labels=False, ignore_warnings=True
    ).fit(matrix)
    middle = perf_counter()
    model.label_full_graph()
    end = perf_counter()
    return Outcome(end - begin, end - middle, model.labels_, model.coreset_indices_, model.coreset_labels_)


METHODS: dict[str, Method] = {
    "csc-exact": _csc_exact,
    "csc-fast": _csc_fast,
    "coreset-kernel-kmeans": _coreset_kernel_kmeans,
    "scikit-learn": _scikit_learn,
    "coreset-sc": _coreset_sc,
    "corecut": _corecut,
}
