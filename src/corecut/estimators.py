"""scikit-learn estimators: thin adapters over the stages. No numerics here.

All take points or graphs (`affinity`), keep scikit-learn's names for what scikit-learn has, and give identical labels for any
`n_jobs`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from corecut._progress import Stages
from corecut._random import as_generator
from corecut._typing import FloatArray, LabelArray, RandomState
from corecut._validation import check_n_clusters
from corecut.coreset import Importance, build_coreset
from corecut.graph import Check, Graph, Symmetrize
from corecut.induced import Degrees
from corecut.kernel import KernelView
from corecut.kernel_kmeans import coreset_kernel_kmeans, kernel_kmeans
from corecut.labelling import Candidates, label_nodes
from corecut.metrics import conductance
from corecut.neighbors import callable_graph, neighbor_graph, rbf_graph
from corecut.pipeline import Settings, cluster_graph, coreset_size_for, place_isolated
from corecut.sampling import Sampler
from corecut.spectral import AssignLabels, EigenSolver, choose_solver, round_embedding, spectral_embedding

Affinity = (
    Literal["auto", "precomputed", "precomputed_nearest_neighbors", "nearest_neighbors", "rbf"] | Callable[[Any, Any], float]
)


class _GraphClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """What the estimators share: how `X` becomes a graph, and what is reported of the result."""

    affinity: Affinity
    n_neighbors: int | Literal["auto"]
    gamma: float
    symmetrize: Symmetrize
    check: Check
    n_jobs: int | None
    verbose: int

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.affinity in ("precomputed", "precomputed_nearest_neighbors")
        return tags

    def _graph(self, X: Any, stage: Stages) -> Graph:
        """Return the graph that `X` is, or the neighbour graph of the points that it holds."""
        with stage("graph"):
            affinity = self.affinity
            if affinity == "auto":
                affinity = "precomputed" if _looks_like_graph(X) else "nearest_neighbors"
            if affinity == "precomputed":
                graph = self._checked(X)
                self.n_features_in_ = graph.n_nodes
                return graph
            if affinity not in ("nearest_neighbors", "precomputed_nearest_neighbors", "rbf") and not callable(affinity):
                raise ValueError(
                    f'affinity={affinity!r} is not offered: use "auto", "precomputed", "precomputed_nearest_neighbors", '
                    '"nearest_neighbors", "rbf", or a function of two points that returns their similarity'
                )
            points = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=2)
            if affinity == "rbf":
                return rbf_graph(points, gamma=self.gamma, n_jobs=self.n_jobs)
            if affinity == "precomputed_nearest_neighbors":
                return neighbor_graph(points, n_neighbors=self.n_neighbors, metric="precomputed", n_jobs=self.n_jobs)
            if affinity == "nearest_neighbors":
                return neighbor_graph(points, n_neighbors=self.n_neighbors, n_jobs=self.n_jobs)
            return callable_graph(points, affinity, n_jobs=self.n_jobs)

    def _checked(self, X: Any) -> Graph:
        if isinstance(X, Graph):
            return X
        try:
            return Graph.from_matrix(X, symmetrize=self.symmetrize, check=self.check, n_jobs=self.n_jobs)
        except ValueError as error:
            if self.affinity == "auto" and "not symmetric" in str(error):
                raise ValueError(
                    f'{error}; a square sparse matrix is taken for a graph: pass affinity="nearest_neighbors" if its rows are points'
                ) from None
            raise

    def _fitted(self, graph: Graph, labels: LabelArray, stage: Stages) -> None:
        self.labels_ = labels
        self.timings_ = stage.timings
        self._measured: Graph | FloatArray = graph

    @property
    def conductances_(self) -> FloatArray:
        """Conductance cut_j/vol_j of every cluster: one pass over the edges when it is first asked for."""
        check_is_fitted(self)
        if isinstance(self._measured, Graph):
            self._measured = conductance(self._measured, self.labels_, n_clusters=self.n_clusters, n_jobs=self.n_jobs)
        return self._measured

    @property
    def normalized_cut_(self) -> float:
        """Mean conductance of the clusters, the paper's normalised cut."""
        return float(self.conductances_.mean())

    def __getstate__(self) -> dict[str, Any]:
        # A pickled model holds its measures, not the graph they are taken on.
        if hasattr(self, "labels_"):
            _ = self.conductances_
        state: dict[str, Any] = super().__getstate__()
        return state

    def fit_predict(self, X: Any, y: Any = None) -> LabelArray:
        """Cluster `X` and return the labels; see :meth:`fit`."""
        labels: LabelArray = self.fit(X, y).labels_
        return labels


class CoresetSpectralClustering(_GraphClusterer):
    """Cluster a large graph, or points through their neighbour graph, by coreset spectral clustering.

    Finds k clusters of small normalised cut Σ_j cut_j/vol_j: samples a coreset of the nodes in the kernel space where that
    cut is a k-means cost, clusters the coreset's graph by its eigenvectors, and labels every node by the nearest of the
    centres this implies (Jourdan, Schwartzman, Macgregor and Sun, ICLR 2025).

    Parameters
    ----------
    n_clusters
        Number of clusters k.
    affinity
        What `X` is: "precomputed" (a graph), "nearest_neighbors" or "rbf" (points), "precomputed_nearest_neighbors" (sparse
        distances), or a function of two points. "auto" takes a :class:`Graph` or a square sparse matrix for a graph and
        anything else for points.
    n_neighbors
        Neighbours of each point, itself included; "auto" lets it grow slowly with the number of points.
    gamma
        Coefficient of the "rbf" affinity.
    coreset_size
        Number of draws, a fraction of the nodes, or "auto": at least 20 per cluster, an induced mean degree of 20, and all
        nodes of a small graph.
    shift
        σ of the kernel D⁻¹AD⁻¹ + σD⁻¹; "auto" supplies the self-similarity that a graph without self-loops lacks.
    seeding_factor
        ⌈f·k⌉ D² draws are made before the coreset is sampled.
    sampler
        "rejection", "tree" (the paper's) or "naive"; the law is the same.
    importance
        Second term of the sensitivity: "seeds" (as in the reference implementation) or "cluster" (as in the theorem). The
        latter gives weights so uneven that labels of the nodes suffer; see the docs for the measurement.
    degrees
        Degrees of the coreset's graph: its "rows" sums, or the "weights" that the theorem needs.
    eigen_solver
        "arpack" (exact), "subspace", "power" (the paper's fast method) or "auto": "power" from 32 clusters on.
    n_components
        Number of vectors of the embedding; None for what the solver takes by itself.
    assign_labels
        "kmeans" or "cluster_qr".
    n_init
        Number of k-means runs; "auto" makes 3 for few clusters and 1 for many.
    candidates
        Centres a node may be labelled by: those it has "touched", or "all" (the paper).
    symmetrize
        What to do with a directed graph: None refuses it; "mean", "max" and "min" say how to merge both directions.
    check
        Look for asymmetry in a "sample" of the entries, in all ("full") or not at all ("none").
    random_state
        Seed. The same seed gives the same labels.
    n_jobs
        Number of threads; None for all cores. Labels do not depend on it.
    verbose
        Show the stages as they run.

    Attributes
    ----------
    labels_
        Cluster of every node, 0..k-1.
    coreset_indices_, coreset_weights_, coreset_labels_
        The coreset and its partition.
    embedding_
        Coordinates of the coreset's nodes.
    normalized_cut_, conductances_
        Mean conductance of the clusters, and each one's.
    n_untouched_
        Number of nodes without a neighbour in the coreset.
    coreset_size_, shift_, eigen_solver_, n_init_
        What "auto" came to.
    timings_
        Seconds of each stage.
    n_features_in_
        Number of features of the points, or of nodes of the graph.

    Examples
    --------
    >>> from corecut import CoresetSpectralClustering, make_sbm
    >>> graph, truth = make_sbm(500, 10, 0.3, 0.001, random_state=0)
    >>> model = CoresetSpectralClustering(n_clusters=10, random_state=0).fit(graph)
    >>> model.labels_.shape
    (5000,)
    >>> model.normalized_cut_ < 0.1
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: Affinity = "auto",
        n_neighbors: int | Literal["auto"] = "auto",
        gamma: float = 1.0,
        coreset_size: float | Literal["auto"] = "auto",
        shift: float | Literal["auto"] = "auto",
        seeding_factor: float = 2.0,
        sampler: Sampler = "rejection",
        importance: Importance = "seeds",
        degrees: Degrees = "rows",
        eigen_solver: EigenSolver = "auto",
        n_components: int | None = None,
        assign_labels: AssignLabels = "kmeans",
        n_init: int | Literal["auto"] = "auto",
        candidates: Candidates = "touched",
        symmetrize: Symmetrize = None,
        check: Check = "sample",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.coreset_size = coreset_size
        self.shift = shift
        self.seeding_factor = seeding_factor
        self.sampler = sampler
        self.importance = importance
        self.degrees = degrees
        self.eigen_solver = eigen_solver
        self.n_components = n_components
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.candidates = candidates
        self.symmetrize = symmetrize
        self.check = check
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster a graph or points.

        Parameters
        ----------
        X
            Graph or points; see `affinity`.
        y
            Ignored; here for scikit-learn's conventions.

        Returns
        -------
        self
        """
        with Stages(8, verbose=self.verbose, description="corecut") as stage:
            graph = self._graph(X, stage)
            names = Settings.__dataclass_fields__
            settings = Settings(**{name: getattr(self, name) for name in names})
            found = cluster_graph(graph, settings, random_state=self.random_state, stage=stage)
            self._fitted(graph, found.labels, stage)
        coreset = found.coreset
        self.coreset_indices_ = coreset.coreset.indices
        self.coreset_weights_ = coreset.coreset.weights
        self.coreset_labels_ = coreset.labels
        self.embedding_ = coreset.embedding
        self.n_untouched_ = found.labelling.n_untouched
        self.coreset_size_ = coreset.settings.coreset_size
        self.shift_ = coreset.kernel.shift
        self.eigen_solver_ = coreset.settings.eigen_solver
        self.n_init_ = coreset.settings.n_init
        return self


class FastSpectralClustering(_GraphClusterer):
    """Spectral clustering of a whole graph, fast (Macgregor 2023) or exact: the baseline without a coreset.

    Parameters
    ----------
    n_clusters, affinity, n_neighbors, gamma, n_components, assign_labels, symmetrize, check, random_state, n_jobs, verbose
        As in :class:`CoresetSpectralClustering`.
    eigen_solver
        "power" (the default: ⌈log₂k⌉ vectors), "subspace" or "arpack".
    n_init
        Number of k-means runs.

    Attributes
    ----------
    labels_, embedding_, normalized_cut_, conductances_, eigen_solver_, timings_, n_features_in_
        As in :class:`CoresetSpectralClustering`.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: Affinity = "auto",
        n_neighbors: int | Literal["auto"] = "auto",
        gamma: float = 1.0,
        eigen_solver: EigenSolver = "power",
        n_components: int | None = None,
        assign_labels: AssignLabels = "kmeans",
        n_init: int = 3,
        symmetrize: Symmetrize = None,
        check: Check = "sample",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.eigen_solver = eigen_solver
        self.n_components = n_components
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.symmetrize = symmetrize
        self.check = check
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster a graph or points; see :meth:`CoresetSpectralClustering.fit`."""
        with Stages(4, verbose=self.verbose, description="corecut") as stage:
            graph = self._graph(X, stage)
            k = check_n_clusters(self.n_clusters, graph.n_nodes)
            generator = as_generator(self.random_state)
            self.eigen_solver_ = choose_solver(self.eigen_solver, k)
            with stage("eigenvectors"):
                self.embedding_ = spectral_embedding(
                    graph,
                    k,
                    eigen_solver=self.eigen_solver_,
                    n_components=self.n_components,
                    random_state=generator,
                    n_jobs=self.n_jobs,
                )
            with stage("rounding"):
                labels = round_embedding(
                    self.embedding_,
                    k,
                    weights=np.where(graph.isolated, 1.0, graph.degrees),
                    assign_labels=self.assign_labels,
                    n_init=self.n_init,
                    random_state=generator,
                    n_jobs=self.n_jobs,
                )
            self._fitted(graph, place_isolated(graph, labels, k), stage)
        return self


class KernelKMeans(_GraphClusterer):
    """Weighted kernel k-means with a graph's normalised-cut kernel: Lloyd's algorithm in kernel space (Dhillon et al. 2004).

    Parameters
    ----------
    n_clusters, affinity, n_neighbors, gamma, shift, sampler, symmetrize, check, random_state, n_jobs, verbose
        As in :class:`CoresetSpectralClustering`. The cost falls in every step when the kernel is positive semi-definite,
        which shift=1 ensures.
    n_init, max_iter, tol
        Runs from different seeds, and when to end one.

    Attributes
    ----------
    labels_, normalized_cut_, conductances_, shift_, timings_, n_features_in_
        As in :class:`CoresetSpectralClustering`.
    cost_, n_iter_
        Weighted kernel k-means cost of the result, and the steps of the best run.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: Affinity = "auto",
        n_neighbors: int | Literal["auto"] = "auto",
        gamma: float = 1.0,
        shift: float | Literal["auto"] = "auto",
        sampler: Sampler = "rejection",
        n_init: int = 3,
        max_iter: int = 100,
        tol: float = 1e-6,
        symmetrize: Symmetrize = None,
        check: Check = "sample",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.shift = shift
        self.sampler = sampler
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.symmetrize = symmetrize
        self.check = check
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster a graph or points; see :meth:`CoresetSpectralClustering.fit`."""
        with Stages(3, verbose=self.verbose, description="corecut") as stage:
            graph = self._graph(X, stage)
            k = check_n_clusters(self.n_clusters, graph.n_nodes)
            kernel = KernelView.from_graph(graph, shift=self.shift)
            with stage("kernel k-means"):
                found = kernel_kmeans(
                    kernel,
                    k,
                    n_init=self.n_init,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    sampler=self.sampler,
                    random_state=self.random_state,
                    n_jobs=self.n_jobs,
                )
            self._fitted(graph, place_isolated(graph, found.labels, k), stage)
        self.cost_ = found.cost
        self.n_iter_ = found.n_iter
        self.shift_ = kernel.shift
        return self


class CoresetKernelKMeans(_GraphClusterer):
    """Kernel k-means on a coreset, then labels for every node (Jiang et al. 2022): what the paper compares with.

    Parameters
    ----------
    n_clusters, affinity, n_neighbors, gamma, coreset_size, shift, seeding_factor, importance, candidates, symmetrize, check, \
random_state, n_jobs, verbose
        As in :class:`CoresetSpectralClustering`.
    sampler
        "naive" by default, as the paper compares it.
    n_init, max_iter, tol
        As in :class:`KernelKMeans`.

    Attributes
    ----------
    labels_, coreset_indices_, coreset_weights_, coreset_labels_, normalized_cut_, conductances_, n_untouched_, coreset_size_, \
shift_, timings_, n_features_in_
        As in :class:`CoresetSpectralClustering`.
    n_iter_
        Steps of the best run.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: Affinity = "auto",
        n_neighbors: int | Literal["auto"] = "auto",
        gamma: float = 1.0,
        coreset_size: float | Literal["auto"] = "auto",
        shift: float | Literal["auto"] = "auto",
        seeding_factor: float = 2.0,
        sampler: Sampler = "naive",
        importance: Importance = "seeds",
        candidates: Candidates = "touched",
        n_init: int = 3,
        max_iter: int = 100,
        tol: float = 1e-6,
        symmetrize: Symmetrize = None,
        check: Check = "sample",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.coreset_size = coreset_size
        self.shift = shift
        self.seeding_factor = seeding_factor
        self.sampler = sampler
        self.importance = importance
        self.candidates = candidates
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.symmetrize = symmetrize
        self.check = check
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster a graph or points; see :meth:`CoresetSpectralClustering.fit`."""
        with Stages(5, verbose=self.verbose, description="corecut") as stage:
            graph = self._graph(X, stage)
            k = check_n_clusters(self.n_clusters, graph.n_nodes)
            generator = as_generator(self.random_state)
            kernel = KernelView.from_graph(graph, shift=self.shift)
            with stage("coreset"):
                self.coreset_size_ = coreset_size_for(graph, k, self.coreset_size)
                coreset = build_coreset(
                    kernel,
                    k,
                    size=self.coreset_size_,
                    seeding_factor=self.seeding_factor,
                    sampler=self.sampler,
                    importance=self.importance,
                    random_state=generator,
                    n_jobs=self.n_jobs,
                )
            with stage("kernel k-means"):
                found = coreset_kernel_kmeans(
                    kernel,
                    k,
                    coreset,
                    n_init=self.n_init,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    random_state=generator,
                    n_jobs=self.n_jobs,
                )
            with stage("labelling"):
                labelling = label_nodes(
                    kernel, coreset, found.labels, n_clusters=k, candidates=self.candidates, n_jobs=self.n_jobs
                )
            self._fitted(graph, place_isolated(graph, labelling.labels, k), stage)
        self.coreset_indices_ = coreset.indices
        self.coreset_weights_ = coreset.weights
        self.coreset_labels_ = found.labels
        self.n_iter_ = found.n_iter
        self.n_untouched_ = labelling.n_untouched
        self.shift_ = kernel.shift
        return self


def _looks_like_graph(X: Any) -> bool:
    """A Graph or a square sparse matrix; a square symmetric array could be either, and is taken for points with a warning."""
    if isinstance(X, Graph):
        return True
    shape: tuple[int, ...] = getattr(X, "shape", ())
    square = len(shape) == 2 and shape[0] == shape[1]
    if sp.issparse(X):
        return square
    if square and shape[0] > 2 and isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and np.array_equal(X, X.T):
        warnings.warn(
            'X is a square symmetric array and is taken for points: pass affinity="precomputed" if it is a graph, or '
            'affinity="nearest_neighbors" to say that it is not',
            UserWarning,
            stacklevel=4,
        )
    return False
