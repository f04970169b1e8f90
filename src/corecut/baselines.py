"""The baselines as scikit-learn estimators: what coreset spectral clustering is compared with."""

from __future__ import annotations

from typing import Any, Literal, Self, get_args

import numpy as np

from corecut._progress import Stages
from corecut._random import as_generator
from corecut._typing import RandomState
from corecut._validation import check_count, check_option, check_real
from corecut.advice import advise, remembered
from corecut.affinities import Affinity
from corecut.coreset import Importance, build_coreset
from corecut.durations import baseline_seconds
from corecut.graph import Check, Symmetrize
from corecut.kernel import KernelView
from corecut.labelling import Candidates, label_nodes
from corecut.lloyd import coreset_kernel_kmeans, kernel_kmeans
from corecut.neighbors import NeighborMethod
from corecut.placement import place_isolated
from corecut.sampling import Sampler
from corecut.scikit_learn import ScikitLearnClusterer
from corecut.selection import asked_range
from corecut.settings import Settings, check_components, coreset_size_for
from corecut.spectral import AssignLabels, EigenSolver, choose_solver, round_embedding, spectral_embedding


class FastSpectralClustering(ScikitLearnClusterer):
    """Spectral clustering of a whole graph, fast (Macgregor 2023) or exact: the baseline without a coreset.

    Parameters
    ----------
    n_clusters, affinity, n_neighbors, neighbors, gamma, n_components, assign_labels, symmetrize, check, random_state, n_jobs, \
verbose
        As in :class:`CoresetSpectralClustering`.
    eigen_solver
        "power" (the published method: ⌈log₂k⌉ vectors), "subspace", "arpack" or "auto" (None is the same): "subspace" for
        fewer than 32 clusters, for which so few vectors do not suffice (one for two moons), and "power" from there on.
    n_init
        Number of k-means runs; `assign_labels="cluster_qr"` makes none.

    Attributes
    ----------
    labels_, embedding_, normalized_cut_, conductances_, eigen_solver_, timings_, advice_, n_features_in_
        As in :class:`CoresetSpectralClustering`.

    Examples
    --------
    >>> from corecut import FastSpectralClustering, make_sbm
    >>> graph, truth = make_sbm(100, 4, 0.5, 0.01, random_state=0)
    >>> model = FastSpectralClustering(n_clusters=4, random_state=0).fit(graph)
    >>> model.labels_.shape
    (400,)
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        affinity: Affinity = "auto",
        n_neighbors: int | Literal["auto"] = "auto",
        neighbors: NeighborMethod = "auto",
        gamma: float = 1.0,
        eigen_solver: EigenSolver | None = "auto",
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
        self.neighbors = neighbors
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

    @remembered
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster a graph or points; see :meth:`CoresetSpectralClustering.fit`."""
        self.check_parameters()
        with Stages(verbose=self.verbose, description="corecut") as stage:
            graph = self._graph(X, stage)
            k = self._number_of_clusters(graph, stage)
            if graph.isolated.all():
                raise ValueError("the graph has no edges: there is nothing to cluster by")
            if self.assign_labels == "cluster_qr" and self.n_init != 3:
                advise(f'n_init={self.n_init} has no effect with assign_labels="cluster_qr", which has no random start')
            generator = as_generator(self.random_state)
            self.eigen_solver_ = choose_solver(self.eigen_solver, k)
            if self.eigen_solver in ("auto", None) and self.assign_labels == "cluster_qr":
                self.eigen_solver_ = "subspace"  # pivoted QR needs as many vectors as clusters, more than the power method has
            stage.expect(baseline_seconds(("eigenvectors", "rounding"), graph, k, self.n_init))
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
            self._fitted(graph, place_isolated(graph, labels, k), stage, given=X)
        return self

    def check_parameters(self) -> None:
        """Refuse parameters that no input could make right; `fit` does so before it looks at `X`."""
        super().check_parameters()
        if self.eigen_solver is not None:
            check_option(self.eigen_solver, "eigen_solver", get_args(EigenSolver))
        check_option(self.assign_labels, "assign_labels", get_args(AssignLabels))
        if self.n_components is not None:
            check_count(self.n_components, "n_components")
        check_count(self.n_init, "n_init")
        check_components(self.n_clusters, self.n_components, solver=self.eigen_solver, assign_labels=self.assign_labels)


def check_descent(n_init: Any, max_iter: Any, tol: Any) -> None:
    """Check how often Lloyd's algorithm is to begin, and when it ends."""
    check_count(n_init, "n_init")
    check_count(max_iter, "max_iter")
    check_real(tol, "tol")


def check_shift(shift: Any) -> None:
    """Check the shift of a kernel."""
    if not (isinstance(shift, str) and shift == "auto"):
        check_real(shift, "shift")


class KernelKMeans(ScikitLearnClusterer):
    """Weighted kernel k-means with a graph's normalised-cut kernel: Lloyd's algorithm in kernel space (Dhillon et al. 2004).

    Parameters
    ----------
    n_clusters, affinity, n_neighbors, neighbors, gamma, shift, sampler, symmetrize, check, random_state, n_jobs, verbose
        As in :class:`CoresetSpectralClustering`. The cost falls in every step when the kernel is positive semi-definite,
        which shift=1 ensures.
    n_init, max_iter, tol
        Runs from different seeds, and when to end one.

    Attributes
    ----------
    labels_, normalized_cut_, conductances_, shift_, timings_, advice_, n_features_in_
        As in :class:`CoresetSpectralClustering`.
    cost_, n_iter_
        Weighted kernel k-means cost of the result, and the steps of the best run.

    Examples
    --------
    >>> from corecut import KernelKMeans, make_sbm
    >>> graph, truth = make_sbm(100, 4, 0.5, 0.01, random_state=0)
    >>> model = KernelKMeans(n_clusters=4, random_state=0).fit(graph)
    >>> model.labels_.shape
    (400,)
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        affinity: Affinity = "auto",
        n_neighbors: int | Literal["auto"] = "auto",
        neighbors: NeighborMethod = "auto",
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
        self.neighbors = neighbors
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

    @remembered
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster a graph or points; see :meth:`CoresetSpectralClustering.fit`."""
        self.check_parameters()
        with Stages(verbose=self.verbose, description="corecut") as stage:
            graph = self._graph(X, stage)
            k = self._number_of_clusters(graph, stage)
            kernel = KernelView.from_graph(graph, shift=self.shift)
            stage.expect(baseline_seconds(("kernel k-means",), graph, k, self.n_init))
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
            self._fitted(graph, place_isolated(graph, found.labels, k), stage, given=X)
        self.cost_ = found.cost
        self.n_iter_ = found.n_iter
        self.shift_ = kernel.shift
        return self

    def check_parameters(self) -> None:
        """Refuse parameters that no input could make right; `fit` does so before it looks at `X`."""
        super().check_parameters()
        check_shift(self.shift)
        check_option(self.sampler, "sampler", get_args(Sampler))
        check_descent(self.n_init, self.max_iter, self.tol)


class CoresetKernelKMeans(ScikitLearnClusterer):
    """Kernel k-means on a coreset, then labels for every node (Jiang et al. 2022): what the paper compares with.

    Parameters
    ----------
    n_clusters, affinity, n_neighbors, neighbors, gamma, coreset_size, shift, seeding_factor, importance, candidates, \
symmetrize, check, random_state, n_jobs, verbose
        As in :class:`CoresetSpectralClustering`.
    sampler
        "naive" by default, as the paper compares it.
    n_init, max_iter, tol
        As in :class:`KernelKMeans`.

    Attributes
    ----------
    labels_, coreset_indices_, coreset_weights_, coreset_labels_, normalized_cut_, conductances_, n_untouched_, coreset_size_, \
shift_, timings_, advice_, n_features_in_
        As in :class:`CoresetSpectralClustering`.
    n_iter_
        Steps of the best run.

    Examples
    --------
    >>> from corecut import CoresetKernelKMeans, make_sbm
    >>> graph, truth = make_sbm(100, 4, 0.5, 0.01, random_state=0)
    >>> model = CoresetKernelKMeans(n_clusters=4, coreset_size=100, random_state=0).fit(graph)
    >>> model.labels_.shape
    (400,)
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        affinity: Affinity = "auto",
        n_neighbors: int | Literal["auto"] = "auto",
        neighbors: NeighborMethod = "auto",
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
        self.neighbors = neighbors
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

    @remembered
    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster a graph or points; see :meth:`CoresetSpectralClustering.fit`."""
        self.check_parameters()
        with Stages(verbose=self.verbose, description="corecut") as stage:
            graph = self._graph(X, stage)
            k = self._number_of_clusters(graph, stage)
            generator = as_generator(self.random_state)
            kernel = KernelView.from_graph(graph, shift=self.shift)
            self.coreset_size_ = coreset_size_for(graph, k, self.coreset_size)
            self._refuse_idle_options(int(np.count_nonzero(graph.degrees)))
            stages = ("coreset", "kernel k-means", "labelling")
            stage.expect(baseline_seconds(stages, graph, k, self.n_init, self.coreset_size_))
            with stage("coreset"):
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
            self._fitted(graph, place_isolated(graph, labelling.labels, k), stage, given=X)
        self.coreset_indices_ = coreset.indices
        self.coreset_weights_ = coreset.weights
        self.coreset_labels_ = found.labels
        self.n_iter_ = found.n_iter
        self.n_untouched_ = labelling.n_untouched
        self.shift_ = kernel.shift
        return self

    def check_parameters(self) -> None:
        """Refuse parameters that no input could make right; `fit` does so before it looks at `X`."""
        super().check_parameters()
        self._settings()
        check_descent(self.n_init, self.max_iter, self.tol)

    def _settings(self) -> Settings:
        names = ("n_clusters", "coreset_size", "shift", "seeding_factor", "sampler", "importance", "candidates")
        asked = {name: getattr(self, name) for name in names}
        return Settings(**asked if asked_range(self.n_clusters) is None else asked | {"n_clusters": 1})

    def _refuse_idle_options(self, nodes: int) -> None:
        """Refuse options for drawing a coreset where all nodes are taken. The shift and `candidates` still count."""
        if self.coreset_size_ < nodes:
            return
        for name, default in {"seeding_factor": 2.0, "sampler": "naive", "importance": "seeds"}.items():
            if getattr(self, name) != default:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} has no effect: all {nodes:,} nodes are used and no coreset is drawn; "
                    f"set coreset_size= to less than {nodes:,}"
                )
