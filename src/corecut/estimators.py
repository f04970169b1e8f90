"""Coreset spectral clustering as an estimator: a thin adapter over `pipeline`. No numerics here.

It takes points or graphs (`affinity`), keeps scikit-learn's names for what scikit-learn has, and gives identical labels for
any `n_jobs`. This class is the command line's, which clusters graphs without loading scikit-learn; the public one of the same
name in `scikit_learn` adds what scikit-learn expects of its estimators.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, Literal, Self

from corecut._progress import Stages
from corecut._typing import RandomState
from corecut.advice import advise, remembered
from corecut.affinities import Affinity
from corecut.clusterer import GraphClusterer
from corecut.coreset import Importance
from corecut.coreset_graphs import Degrees
from corecut.engines.dask import as_engine
from corecut.graph import Check, Symmetrize
from corecut.labelling import Candidates
from corecut.neighbors import NeighborMethod
from corecut.pipeline import cluster_graph
from corecut.sampling import Sampler
from corecut.selection import asked_range
from corecut.settings import Choices, Settings, check_components, idle_coreset_options
from corecut.spectral import AssignLabels, EigenSolver


class CoresetSpectralClustering(GraphClusterer):
    """Cluster a large graph, or points through their neighbour graph, by coreset spectral clustering.

    Finds k clusters of small normalised cut Σ_j cut_j/vol_j: samples a coreset of the nodes in the kernel space where that
    cut is a k-means cost, clusters the coreset's graph by its eigenvectors, and labels every node by the nearest of the
    centres this implies (Jourdan, Schwartzman, Macgregor and Sun, ICLR 2025). By default most graphs are aggregated first:
    the eigenvectors are then those of their quotient graph, and no coreset is drawn where that is small. The result is
    refined node by node.

    Parameters
    ----------
    n_clusters
        Number of clusters k; "auto", or a range like "5..200", to have it chosen (:func:`select_n_clusters`).
    affinity
        What `X` is: "precomputed" (a graph), "nearest_neighbors" or "rbf" (points; also the other kernels of scikit-learn that
        are not negative: "cosine", "laplacian", "poly", "sigmoid", "linear", "chi2"), "precomputed_nearest_neighbors" (sparse
        distances), or a function of two points. "auto" takes for a graph: a :class:`Graph` or a store, the name of a file, a
        square sparse matrix, a graph of networkx or igraph, a table of edges or a square frame with equal index and columns
        (with a warning), an AnnData, an `edge_index`. Anything else is points; a square symmetric array or list draws a
        warning.
    n_neighbors
        Neighbours of each point, itself included, so at least 2; "auto" lets it grow slowly with the number of points.
    neighbors
        How they are searched for: "exact", "approximate", or "auto": exact up to 100,000 points or in up to 8 dimensions.
    gamma
        Coefficient of the "rbf" affinity, and of other kernels that have one.
    degree, coef0
        Of the "poly" affinity, and `coef0` of "sigmoid", as in scikit-learn.
    kernel_params
        Other arguments of an affinity that is a function, by name.
    coreset_size
        Number of draws, a fraction of the nodes, or "auto": all nodes of a graph of up to 3,000 (6,000 where it has at most
        150,000 entries); otherwise 20 draws per cluster, at least 1,500, and enough for an induced mean degree of 20. A
        quotient graph of up to 100,000 nodes is taken whole.
    aggregate
        Gather the nodes into small groups first and work on the quotient graph. "auto" does so, unless `coreset_size` is
        given, on graphs larger than that which are sparse (fewer than 100 entries per node) or have up to ten million
        entries; and wherever the coreset's graph would fall into pieces.
    regularization
        τ of the spectral step, in units of the mean degree: every node gets τ more degree, tied to all nodes alike, which
        steadies the eigenvectors of noisy graphs. "auto": 0.1 on sparse graphs (less for tiny clusters), 0 on dense ones,
        without refinement, and in every other draw.
    shift
        σ of the kernel D⁻¹AD⁻¹ + σD⁻¹; "auto" supplies the self-similarity that a graph without self-loops lacks. Seeding,
        sensitivities and the coreset's graph see it. Labelling does so under `candidates="all"` only.
    seeding_factor
        ⌈f·k⌉ D² draws are made before the coreset is sampled.
    sampler
        "rejection", "tree" (the paper's) or "naive"; the law is the same. "rounds" makes the draws in eight rounds, by races
        that blocks of nodes can run on their own.
    importance
        Second term of the sensitivity: "seeds" (as in the reference implementation) or "cluster" (as in the theorem). The
        latter gives weights so uneven that labels of the nodes suffer; see the docs for the measurement.
    degrees
        Degrees of the coreset's graph: its "rows" sums, or the "weights" that the theorem needs.
    eigen_solver
        "arpack" (exact), "subspace", "power" (the paper's fast method) or "auto": "subspace", but "power" on a coreset's graph
        from 32 clusters on. None, scikit-learn's default, is "auto".
    eigen_tol
        scikit-learn's tolerance of the eigenvectors. Only its default "auto" is taken: each solver ends by its own estimate of
        what is still wrong.
    n_components
        Number of vectors of the embedding; None for what the solver takes by itself.
    assign_labels
        "kmeans" or "cluster_qr".
    n_init
        Number of draws, of which the one with the lowest objective is kept, and which are combined to a better one where
        they differ. "auto" makes up to 5 (8 of two clusters, or under tight bounds), fewer where they are dear beside
        aggregation or agree, and 1 without refinement.
    effort
        Time to spend on a lower objective, the cut with its fee: 2 makes twice as many draws and combines them on all nodes,
        0.25 makes a quarter. Where `n_init` is given, it sets the number of draws.
    candidates
        Centres a node may be labelled by: those it has "touched", or "all" (the paper).
    refine
        Split and merge clusters that k-means mixed up and move single nodes while the objective falls.
    balance
        β of the objective F = Σ_j (cut_j + β·vol/k)/vol_j: a fee that every cluster pays for existing, and only small ones
        feel. 0 is the plain normalised cut, 0.1 comes near equal sizes. "auto" takes the least
        of a few values up to 0.1 under which most clusters are no crumbs and none is a giant that falls into parts, and 0
        where sizes are bounded on both sides, or tightly, and where clusters are communities of very different sizes;
        `balance_` has it. With 0 asked for, and without bounds, every part
        of the graph is a cluster before any is cut. Needs `refine=True`.
    min_cluster_size, max_cluster_size
        Bounds on the number of nodes of every cluster: a count, or a float as a factor of the mean cluster n/k (1.03 allows
        3 % above it, rounded to nodes: a largest size of at least 1 always allows ⌈n/k⌉, a smallest one of at most 1 never
        asks for more than ⌊n/k⌋). They hold in every result, whatever it costs; bounds that no partition can meet are refused.
        They need `refine=True`.
    symmetrize
        What to do with a directed graph: None refuses it; "mean", "max" and "min" say how to merge both directions.
    check
        Look for asymmetry in a "sample" of the entries, in all ("full") or not at all ("none").
    engine
        Where the stages that read all edges run: None for the threads of this process, a `distributed.Client` or a
        :class:`DaskEngine` for the workers of a Dask cluster. Labels do not depend on it.
    memory_limit
        Bound on the memory that the clustering takes beside the graph: bytes, or text such as "16GB"; None for none. Quotient
        graphs that would exceed it are kept in files and mapped. A limit that is too low is refused before any work, with what
        would do. Labels do not depend on it.
    scratch
        Folder for these files, the system's temporary folder by default. Nothing stays there.
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
    labels_by_name_
        The same by the nodes' names: nodes of networkx, names of igraph, ids of a file, the index of a frame. See `labels_as`.
    affinity_matrix_
        The graph that was clustered, where that costs no copy.
    n_clusters_, selection_
        k, and how it was chosen; the latter only where it was.
    coreset_indices_, coreset_weights_, coreset_labels_
        The coreset and its partition; of the quotient graph's groups where the graph was aggregated. All nodes (or groups)
        where no coreset was drawn.
    embedding_
        Coordinates of the coreset's nodes (or groups).
    normalized_cut_, conductances_
        Mean conductance of the clusters, and each one's, as they were at the end of `fit`.
    confidence_
        How sure each label is: the margin between a node's own cluster and the next one, times the share of draws that agree
        with the best one.
    n_untouched_
        Number of nodes without a neighbour in the coreset.
    n_levels_
        Number of levels of aggregation, 0 without.
    coreset_size_, aggregate_, regularization_, balance_, shift_, eigen_solver_, n_init_
        What "auto" came to. The shift is 0 where no coreset was drawn, because eigenvectors do not depend on it. The solver is
        "components" where the graph's components were the clusters, and no eigenvector was needed.
    n_neighbors_, neighbors_, neighbor_recall_
        How many neighbours points have, themselves included, how they were found, and the share of the true ones among them:
        1 for exact methods, measured on a sample otherwise.
    affinity_
        What `X` was taken for.
    node_ids_
        The nodes' own names where the graph has them, else None.
    timings_
        Seconds of each stage.
    advice_
        The warnings of `fit`, each with its cure.
    n_features_in_
        Number of features of the points, or of nodes of the graph.

    Notes
    -----
    Parameters are checked before `X` is looked at. Those that would have no effect are refused, or draw a warning where that
    is known only later: options of a coreset where none is drawn, options of another affinity. The measures of a matrix or of
    points are taken at the end of `fit`, one pass over the edges. A :class:`Graph` must not be changed; it is measured when a
    measure is first asked for, so that a fit through a coreset does not read every edge.

    :meth:`predict` labels new data, and :meth:`save` keeps the model in a file, which :func:`load` opens. A model of points
    holds a copy of them.

    Multiplying all weights by a power of two gives the same labels. Another factor changes the rounding of sums, and with it
    possibly which of two equally good moves comes first.

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
        n_clusters: int | str = 8,
        *,
        affinity: Affinity = "auto",
        n_neighbors: int | Literal["auto"] = "auto",
        neighbors: NeighborMethod = "auto",
        gamma: float = 1.0,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        coreset_size: float | Literal["auto"] = "auto",
        aggregate: bool | Literal["auto"] = "auto",
        regularization: float | Literal["auto"] = "auto",
        shift: float | Literal["auto"] = "auto",
        seeding_factor: float = 2.0,
        sampler: Sampler = "rejection",
        importance: Importance = "seeds",
        degrees: Degrees = "rows",
        eigen_solver: EigenSolver | None = "auto",
        eigen_tol: Literal["auto"] = "auto",
        n_components: int | None = None,
        assign_labels: AssignLabels = "kmeans",
        n_init: int | Literal["auto"] = "auto",
        effort: float = 1.0,
        candidates: Candidates = "touched",
        refine: bool = True,
        balance: float | Literal["auto"] = "auto",
        min_cluster_size: float | None = None,
        max_cluster_size: float | None = None,
        symmetrize: Symmetrize = None,
        check: Check = "sample",
        engine: Any = None,
        memory_limit: str | int | None = None,
        scratch: str | os.PathLike[str] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.neighbors = neighbors
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.coreset_size = coreset_size
        self.aggregate = aggregate
        self.regularization = regularization
        self.shift = shift
        self.seeding_factor = seeding_factor
        self.sampler = sampler
        self.importance = importance
        self.degrees = degrees
        self.eigen_solver = eigen_solver
        self.eigen_tol = eigen_tol
        self.n_components = n_components
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.effort = effort
        self.candidates = candidates
        self.refine = refine
        self.balance = balance
        self.min_cluster_size = min_cluster_size
        self.max_cluster_size = max_cluster_size
        self.symmetrize = symmetrize
        self.check = check
        self.engine = engine
        self.memory_limit = memory_limit
        self.scratch = scratch
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @remembered
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
        self.check_parameters()
        with Stages(None, verbose=self.verbose, description="corecut") as stage:
            graph, engine = self._graph(X, stage), as_engine(self.engine)
            settings = self._settings(self._number_of_clusters(graph, stage))
            check_components(
                settings.n_clusters, settings.n_components, solver=settings.eigen_solver, assign_labels=settings.assign_labels
            )
            where = dict.fromkeys(("n_jobs", "memory_limit", "scratch"))  # and not what is done
            purpose = asdict(settings) | {"random_state": self.random_state} | where
            with nullcontext() if engine is None else engine.session(graph, purpose, stage.note):
                found = cluster_graph(graph, settings, random_state=self.random_state, stage=stage, engine=engine)
                fee = found.choices.objective(graph.degrees, balance=found.balance).fee
                self._fitted(graph, found.labels, stage, given=X, fee=fee, engine=engine)
        sample, choices = found.sample, found.choices
        if sample.coreset.n_draws == 0:
            self._tell_of_idle_options(choices)
        self.coreset_indices_ = sample.coreset.indices
        self.coreset_weights_ = sample.coreset.weights
        self.coreset_labels_ = sample.labels
        self.embedding_ = sample.embedding
        self.n_untouched_ = sample.n_untouched
        self.n_levels_ = len(found.levels)
        self._has_coreset = sample.coreset.n_draws > 0
        self.coreset_size_ = sample.coreset.n_draws or sample.coreset.size
        self.aggregate_ = choices.aggregate
        self.regularization_ = choices.regularization
        self.balance_ = found.balance
        self.shift_ = sample.shift
        self.eigen_solver_ = sample.eigen_solver
        self.n_init_ = found.n_draws
        self._agreement = found.agreement
        return self

    def check_parameters(self) -> None:
        """Refuse parameters that no input could make right; `fit` does so before it looks at `X`."""
        super().check_parameters()
        as_engine(self.engine)
        if not (isinstance(self.eigen_tol, str) and self.eigen_tol == "auto"):
            raise ValueError(
                f"eigen_tol={self.eigen_tol!r} is not offered: each solver ends by its own estimate of what is still wrong; "
                'leave it at "auto", or use eigen_solver="arpack" for exact eigenvectors'
            )
        # What depends on k is looked at again when it is known.
        settings = self._settings(1 if asked_range(self.n_clusters) is not None else self.n_clusters)
        check_components(
            self.n_clusters, settings.n_components, solver=settings.eigen_solver, assign_labels=settings.assign_labels
        )

    def _settings(self, n_clusters: Any) -> Settings:
        """Return the parameters that say how to cluster. scikit-learn's None for `eigen_solver` is "auto" here."""
        values = {name: getattr(self, name) for name in Settings.__dataclass_fields__} | {"n_clusters": n_clusters}
        return Settings(**values | {"eigen_solver": "auto" if self.eigen_solver is None else self.eigen_solver})

    def _tell_of_idle_options(self, choices: Choices) -> None:
        """Tell the user of options for a coreset, where it was found on the way that none is drawn."""
        idle = idle_coreset_options(choices.asked)
        if idle:
            advise(
                f"{' and '.join(idle)} had no effect: the quotient graph is small and no coreset of it was drawn; "
                "set aggregate=False and coreset_size= to draw one"
            )
