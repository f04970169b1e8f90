"""What all estimators share: parameters checked first, how `X` becomes a graph, and what is reported of the result.

Nothing here needs scikit-learn but points: the command line clusters graphs without loading it. `scikit_learn` makes
scikit-learn's estimators of these classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, cast, get_args

import numpy as np
import scipy.sparse as sp

from corecut._files import first_line
from corecut._progress import Stages
from corecut._random import check_random_state
from corecut._typing import AnyArray, FloatArray, LabelArray, RandomState
from corecut._validation import check_count, check_n_clusters, check_option, check_real, thread_count
from corecut.advice import of_strangers
from corecut.affinities import Affinity, check_affinity, shaping, tell_of_idle
from corecut.confidence import partition_measures
from corecut.engines import Engine, LocalEngine
from corecut.graph import (
    Check,
    Graph,
    NotSymmetricError,
    Symmetrize,
    adapter_named,
    adapter_of,
    as_graph,
)
from corecut.kinds import is_surely_graph, kind_of, looks_like_graph
from corecut.model_content import packed, unpacked
from corecut.model_files import ModelFile, write_model
from corecut.neighbors import (
    Kernel,
    NeighborMethod,
    auto_neighbors,
    callable_graph,
    check_finite,
    check_neighbors,
    find_neighbors,
    kernel_graph,
    neighbor_graph,
    rbf_graph,
    with_sound_structure,
)
from corecut.node_ids import labels_by_name
from corecut.objective import Objective
from corecut.prediction import (
    PREDICTED,
    FittedClusters,
    FittedInput,
    checked_rows,
    graph_fingerprints,
    matrix_fingerprints,
    predict_rows,
)
from corecut.selection import Selection, asked_range, check_range, refuse_beyond, select
from corecut.size_bounds import clusters_within

# What scikit-learn's `SpectralClustering` takes and is not offered, why, and what to use.
_REFUSED: dict[tuple[str, str], str] = {
    ("assign_labels", "discretize"): 'it rotates k dense vectors of every node; use "kmeans" or "cluster_qr"',
    ("eigen_solver", "lobpcg"): 'it is a solver for the Laplacian of all nodes; use "arpack" (exact), or "auto"',
    ("eigen_solver", "amg"): 'it is a solver for the Laplacian of all nodes; use "arpack" (exact), or "auto"',
}


class GraphClusterer:
    """What the estimators share: parameters checked first, how `X` becomes a graph, what is reported of the result."""

    labels_: LabelArray
    n_clusters: int | str
    n_clusters_: int
    selection_: Selection
    feature_names_in_: AnyArray
    affinity: Affinity
    n_neighbors: int | Literal["auto"]
    neighbors: NeighborMethod
    gamma: float
    symmetrize: Symmetrize
    check: Check
    random_state: RandomState
    n_jobs: int | None
    verbose: int
    # Of estimators that have no such parameters, scikit-learn's defaults.
    degree: float = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep
            Ignored, because no parameter is an estimator; here for scikit-learn's conventions.
        """
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def check_parameters(self) -> None:
        """Refuse parameters that no input could make right; `fit` does so before it looks at `X`."""
        if isinstance(self.n_clusters, tuple | list | range):
            raise TypeError(f'n_clusters must be an integer, "auto" or a range like "5..200", got {self.n_clusters!r}')
        if asked_range(self.n_clusters) is None:
            check_count(self.n_clusters, "n_clusters")
        check_affinity(self.affinity)
        for (name, value), why in _REFUSED.items():
            if getattr(self, name, None) == value:
                raise ValueError(f'{name}="{value}" of scikit-learn is not offered here: {why}')
        check_neighbors(self.n_neighbors)
        check_option(self.neighbors, "neighbors", get_args(NeighborMethod))
        check_real(self.gamma, "gamma", exclusive=True)
        check_real(self.degree, "degree")
        check_real(self.coef0, "coef0", minimum=-np.inf)
        if self.kernel_params is not None and not isinstance(self.kernel_params, dict):
            raise TypeError(
                f"kernel_params must be a dict of arguments for the affinity's function, got {self.kernel_params!r}"
            )
        check_option(self.symmetrize, "symmetrize", (None, "mean", "max", "min"))
        check_option(self.check, "check", get_args(Check))
        check_random_state(self.random_state)
        thread_count(self.n_jobs)
        if not isinstance(self.verbose, bool | np.bool_):
            check_count(self.verbose, "verbose", minimum=0)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster a graph or points."""
        raise NotImplementedError

    def _graph(self, X: Any, stage: Stages) -> Graph:
        """Return the graph that `X` is, or the neighbour graph of the points that it holds."""
        with stage("graph"):
            affinity = self.affinity
            if affinity == "auto":
                affinity = "precomputed" if looks_like_graph(X) else "nearest_neighbors"
            tell_of_idle(X, affinity, shaping(self))
            self._of_points = affinity != "precomputed"
            if not self._of_points:
                graph = self._checked(X)
                self.n_features_in_ = graph.n_nodes
                self._names = graph.node_ids
                # Of a directed graph the rows are known again as they were given.
                directed = self.symmetrize is not None and (sp.issparse(X) or isinstance(X, np.ndarray))
                given = matrix_fingerprints(X, n_jobs=self.n_jobs) if directed else None
                self._prepared = FittedInput(affinity, graph.n_nodes, fingerprints=given)
                return graph
            if is_surely_graph(X):
                raise ValueError(f'X is {kind_of(X)}, which affinity={affinity!r} does not take: use "auto" or "precomputed"')
            X = self._named_points(X)
            points = self._checked_points(X)
            self._prepared = self._kept(X, points, affinity)
            if affinity == "rbf":
                return rbf_graph(points, gamma=self.gamma, n_jobs=self.n_jobs)
            if affinity == "precomputed_nearest_neighbors":
                return neighbor_graph(points, n_neighbors=self.n_neighbors, metric="precomputed", n_jobs=self.n_jobs)
            if affinity == "nearest_neighbors":
                return self._neighbor_graph(points, stage)
            if not callable(affinity):
                return kernel_graph(
                    points, cast(Kernel, affinity), gamma=self.gamma, degree=self.degree, coef0=self.coef0, n_jobs=self.n_jobs
                )
            return callable_graph(points, affinity, kernel_params=self.kernel_params, n_jobs=self.n_jobs)

    def _checked_points(self, X: Any, *, new: bool = False) -> Any:
        """Return points as an array or a CSR matrix of finite numbers; scikit-learn words what is wrong with their form."""
        from sklearn.utils.validation import validate_data

        columns = [str(name) for name in getattr(X, "columns", ())]
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two columns of X are called {twice!r}: give every column a name of its own")
        options = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "ensure_all_finite": False}
        points = validate_data(self, with_sound_structure(X), **options, ensure_min_samples=1 if new else 2, reset=not new)
        check_finite(points)
        if sp.issparse(points) and not points.has_canonical_format:
            summed = points.copy()
            summed.sum_duplicates()
            if summed.nnz < points.nnz:  # entries were stored in parts; the order alone, that of distances, is kept
                points = summed
        return points

    def _neighbor_graph(self, points: Any, stage: Stages) -> Graph:
        """Return the neighbour graph of points, and keep how well it was found."""
        found = find_neighbors(
            points, n_neighbors=self.n_neighbors, neighbors=self.neighbors, n_jobs=self.n_jobs, progress=stage.share
        )
        self.neighbors_, self.neighbor_recall_ = found.method, found.recall
        self.n_neighbors_ = self._asked_neighbors(points.shape[0])
        if found.method == "approximate":
            stage.say(f"of a sample of points {found.recall:.1%} of the neighbours were found")
        return found.graph(self.n_jobs)

    def _asked_neighbors(self, n_points: int) -> int:
        """Return how many neighbours a point has, itself included."""
        return auto_neighbors(n_points) if self.n_neighbors == "auto" else int(self.n_neighbors)

    def _kept(self, X: Any, points: Any, affinity: Any) -> FittedInput:
        """Return what prediction needs of points, or of their distances. The caller may change `X` afterwards."""
        n, columns = points.shape
        count = self._asked_neighbors(n)
        if affinity == "precomputed_nearest_neighbors":
            return FittedInput(affinity, columns, count, fingerprints=matrix_fingerprints(points, n_jobs=self.n_jobs))
        shared = points is X or (points.data if sp.issparse(points) else points).base is not None
        points = points.copy() if shared else points
        if affinity == "nearest_neighbors":
            return FittedInput(affinity, columns, count, points=points)
        # A function comes back to a saved model by itself, with its parameters.
        names = () if callable(affinity) else ("gamma", "degree", "coef0")
        parameters = {name: float(getattr(self, name)) for name in names}
        return FittedInput(affinity, columns, parameters=parameters, points=points)

    def _number_of_clusters(self, graph: Graph, stage: Stages) -> int:
        """Return k, as it was asked for or as the graph tells it; `n_clusters_` from now on."""
        asked = asked_range(self.n_clusters)
        if hasattr(self, "selection_"):  # of an earlier fit
            del self.selection_
        if asked is None:
            self.n_clusters_ = check_n_clusters(self.n_clusters, graph.n_nodes)
            return self.n_clusters_
        asked = self._possible(*asked, graph)
        found = select(graph, *asked, random_state=self.random_state, n_jobs=self.n_jobs, stage=stage)
        stage.say(found.sentence)
        self.selection_, self.n_clusters_ = found, found.best
        return self.n_clusters_

    def _possible(self, low: int, high: int | None, graph: Graph) -> tuple[int, int | None]:
        """Return the part of a range of k that bounds on sizes leave."""
        least, most = getattr(self, "min_cluster_size", None), getattr(self, "max_cluster_size", None)
        fewest, many = clusters_within(least, most, graph.n_nodes)
        # Bounds may narrow the range; the graph itself does not do so in silence.
        refuse_beyond(self.n_clusters, high if high is None or many == graph.n_nodes else min(high, many), graph)
        if many < max(low, fewest) or (high is not None and high < fewest):
            bound = (
                f"min_cluster_size={least} leaves at most {many}" if many < low else f"max_cluster_size={most} needs {fewest}"
            )
            bound = f"{bound}, min_cluster_size={least} leaves {many}" if low <= many < fewest else bound
            raise ValueError(f"none of n_clusters={self.n_clusters} is possible with {graph.n_nodes} nodes: {bound}")
        low = max(low, fewest)
        if high is None and many < check_range(low, None, graph)[1]:
            high = many
        return low, high if high is None else min(high, many)

    def _checked(self, X: Any) -> Graph:
        try:
            return as_graph(X, symmetrize=self.symmetrize, check=self.check, n_jobs=self.n_jobs)
        except NotSymmetricError as error:
            if self.affinity != "auto" or is_surely_graph(X):
                raise
            kind = "square sparse matrix" if sp.issparse(X) else "square frame" if hasattr(X, "columns") else "tensor like X"
            raise NotSymmetricError(
                f'{error}; a {kind} is taken for a graph: pass affinity="nearest_neighbors" if its rows are points'
            ) from None

    def _named_points(self, X: Any) -> Any:
        """Return points in a form that scikit-learn takes, and keep their names: the index of a frame."""
        adapter = adapter_of(X)
        self._names = adapter.row_names(X) if hasattr(adapter, "row_names") else None
        return _points_of(X)

    def _fitted(
        self,
        graph: Graph,
        labels: LabelArray,
        stage: Stages,
        *,
        given: Any,
        fee: float = 0.0,
        engine: Engine | None = None,
    ) -> None:
        """Keep the labels, and measure them while the data are as they were.

        A caller may change a matrix after `fit`, so that its measures are taken at once: one pass over the edges, beside the
        one that checked them. A `Graph` does not change. It is measured when somebody asks, because through a coreset a fit
        reads but a part of it. The session of another `engine` ends with the fit, so that it measures at once, too.
        """
        self.labels_ = labels
        self.timings_ = stage.timings
        self._source = self._prepared  # a fit that fails leaves the model of before
        del self._prepared
        # A copy that a matrix had to be turned into would stay in memory for nobody.
        copied = isinstance(given, np.ndarray) or (sp.issparse(given) and not _shares_memory(graph, given))
        self._affinity = None if copied and not self._of_points else graph
        self._agreement: FloatArray | None = None
        # `labels_` and `n_clusters` can be changed by now; what was fitted cannot.
        self._to_measure: tuple[Graph, LabelArray, int, float, int | None] | None
        self._to_measure = (graph, labels.copy(), self.n_clusters_, fee, self.n_jobs)
        if not isinstance(given, Graph) or engine is not None:
            with stage("metrics"):
                self._measure(engine)

    def _check_fitted(self) -> None:
        if not hasattr(self, "labels_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"this {type(self).__name__} has no clusters yet: call fit first")

    def _measure(self, engine: Engine | None = None) -> None:
        """Take the measures that are due."""
        self._check_fitted()
        if self._to_measure is not None:
            graph, labels, k, fee, n_jobs = self._to_measure
            association, volume, margins = partition_measures(graph, labels, k, engine or LocalEngine(n_jobs))
            self._clusters = FittedClusters(labels, association, volume, fee)
            self._margins: FloatArray | None = margins
            if self._source.affinity == "precomputed" and self._source.fingerprints is None:
                self._source = replace(self._source, fingerprints=graph_fingerprints(graph, n_jobs=n_jobs))
            self._to_measure = None

    @property
    def conductances_(self) -> FloatArray:
        """Conductance cut_j/vol_j of every cluster."""
        self._measure()
        return Objective().terms(self._clusters.association, self._clusters.volume)

    @property
    def normalized_cut_(self) -> float:
        """Mean conductance of the clusters, the paper's normalised cut."""
        return float(self.conductances_.mean())

    @property
    def affinity_(self) -> str | Callable[..., float]:
        """The affinity, as "auto" came to it."""
        self._check_fitted()
        return self._source.affinity

    @property
    def node_ids_(self) -> AnyArray | None:
        """The fitted nodes' own ids, None where they are numbered."""
        self._check_fitted()
        return self._names

    @property
    def confidence_(self) -> FloatArray:
        """How sure each label is, between 0 and 1; see :mod:`corecut.confidence`."""
        self._measure()
        if self._margins is None:
            raise AttributeError(
                "confidence_ is not kept in a saved model; predict(X, return_confidence=True) gives the margins of any rows"
            )
        return self._margins if self._agreement is None else self._margins * self._agreement

    def predict(self, X: Any, *, return_confidence: bool = False) -> LabelArray | tuple[LabelArray, FloatArray]:
        """Return the clusters that new points or nodes join.

        Each joins the cluster of the fitted partition whose growth raises the objective least; see :mod:`corecut.prediction`.
        What was fitted keeps its label.

        Parameters
        ----------
        X
            Where points were fitted, points with the same features. Where a graph was fitted, a row for every new node, with
            its similarity to each of the fitted nodes: a sparse matrix of any format, an array, or a :class:`Graph`. With
            `affinity="precomputed_nearest_neighbors"` distances to the fitted points.
        return_confidence
            Also return how sure each label is, between 0 and 1: the share of a row's weight that speaks for its cluster more
            than for the next one.

        Returns
        -------
        labels : array of int32
            0..k-1. A row without any weight to a fitted node gets the cluster of largest volume, with confidence 0 and a
            warning.
        confidence : array of float
            Only with `return_confidence`.

        Notes
        -----
        A CSR matrix is read as it is, in O(entries); other input goes in blocks whose memory does not grow with the number of
        rows. Points cost the search for their neighbours.
        """
        self._check_fitted()
        self._measure()
        labels, confidence, n_strangers = predict_rows(self._clusters, self._source, self._new_rows(X), n_jobs=self.n_jobs)
        of_strangers(n_strangers, labels.size)
        return (labels, confidence) if return_confidence else labels

    def _new_rows(self, X: Any) -> Any:
        """Check new data against what was fitted."""
        of_graph = self._source.affinity == "precomputed"
        if is_surely_graph(X) and not (of_graph and isinstance(X, Graph)):
            raise TypeError(f"X is {kind_of(X)}; {PREDICTED['graph' if of_graph else 'points']}")
        if of_graph:
            return checked_rows(X, self._source.n_columns, self._names, owner=type(self).__name__)
        return self._checked_points(_points_of(X), new=True)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a file, which :func:`corecut.load` opens; a file of that name is replaced.

        The file appears whole or not at all, holds arrays and JSON and nothing that is executed, and is the same for the same
        fit; see :mod:`corecut.models` for what is kept.

        Parameters
        ----------
        path
            The file; any name.
        """
        self._check_fitted()
        self._measure()
        where = ("n_jobs", "verbose", "engine", "memory_limit", "scratch")  # and not what was done
        settings = {name: value for name, value in self.get_params(deep=False).items() if name not in where}
        write_model(path, *packed(self, settings, self._clusters, self._source, self._names))

    @classmethod
    def restored(cls, file: ModelFile, *, affinity: Callable[..., float] | None = None) -> Self:
        """Return the model of an opened file; :func:`corecut.load` finds the class."""
        found = unpacked(file, affinity)
        try:
            model = cls(**found.settings)
            for name, value in found.fitted.items():
                setattr(model, name, value)
        except (TypeError, AttributeError) as error:
            raise file.damaged(first_line(error)) from None
        model.labels_ = found.clusters.labels
        model._clusters, model._source, model._names = found.clusters, found.source, found.names
        model._to_measure = model._margins = model._agreement = None
        return model

    @property
    def affinity_matrix_(self) -> sp.csr_array:
        """The graph that was clustered, as a scipy matrix: of points their neighbours, else the graph that was given.

        It is there where it costs no copy: not in a pickled model, and not of a matrix that had to be converted.
        """
        self._check_fitted()
        kept: Graph | None = getattr(self, "_affinity", None)
        if kept is None:
            cure = (
                "Graph.from_matrix(X).adjacency gives it" if self.affinity_ == "precomputed" else "fit the points again for it"
            )
            raise AttributeError(
                f"affinity_matrix_ was not kept, as the matrix had to be converted or the model was pickled or saved; {cure}"
            )
        return kept.adjacency

    @property
    def labels_by_name_(self) -> dict[Any, int]:
        """The cluster of every node by its name: of a networkx graph its nodes, of a file its ids, of a frame its index."""
        self._check_fitted()
        return labels_by_name(self.labels_, self._names)

    def labels_as(self, library: Literal["networkx", "igraph", "pandas", "anndata", "torch"]) -> Any:
        """Return the labels in the form that another library's users expect.

        Parameters
        ----------
        library
            "networkx": a label by node, for `networkx.set_node_attributes`; "igraph": a membership list, for
            `igraph.VertexClustering`; "pandas": a Series with the nodes' names as index; "anndata": categories for a column of
            `obs`, by the cells' names or in their order; "torch": an integer tensor.
        """
        self._check_fitted()
        check_option(library, "library", ("networkx", "igraph", "pandas", "anndata", "torch"))
        try:
            return adapter_named(library).labels_of(self.labels_, self._names)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f'labels_as("{library}") needs {error.name}; install it with: pip install {error.name}'
            ) from None

    def __getstate__(self) -> dict[str, Any]:
        # A pickled model holds its measures, not the graph they are taken on.
        if getattr(self, "_to_measure", None) is not None:
            self._measure()
        state: Any = super().__getstate__()
        return {name: value for name, value in dict(state).items() if name != "_affinity"}

    def fit_predict(self, X: Any, y: Any = None) -> LabelArray:
        """Cluster `X` and return the labels; see :meth:`fit`."""
        self.fit(X, y)
        return self.labels_


def _points_of(X: Any) -> Any:
    """Return points in a form that scikit-learn takes; a column of text in a frame is refused by its name."""
    adapter = adapter_of(X)
    if hasattr(adapter, "check_features"):
        adapter.check_features(X)
    return adapter.matrix_of(X) if hasattr(adapter, "matrix_of") else X


def _shares_memory(graph: Graph, matrix: Any) -> bool:
    """Whether a graph uses a matrix as it is."""
    return np.may_share_memory(graph.indices, getattr(matrix, "indices", np.empty(0)))
