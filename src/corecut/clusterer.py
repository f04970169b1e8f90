"""What all estimators share: parameters checked first, how `X` becomes a graph, and what is reported of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from corecut._progress import Stages
from corecut._random import check_random_state
from corecut._typing import AnyArray, FloatArray, LabelArray, RandomState
from corecut._validation import check_count, check_option, check_real, thread_count
from corecut.advice import advise
from corecut.confidence import partition_measures
from corecut.graph import (
    Check,
    Graph,
    NotSymmetricError,
    Symmetrize,
    adapter_named,
    adapter_of,
    as_graph,
    is_path,
    is_plain,
    is_store,
)
from corecut.neighbors import Kernel, callable_graph, check_neighbors, kernel_graph, neighbor_graph, rbf_graph
from corecut.node_ids import labels_by_name

Affinity = (
    Literal["auto", "precomputed", "precomputed_nearest_neighbors", "nearest_neighbors", "rbf"] | Kernel | Callable[..., float]
)
_NAMED = (*get_args(get_args(Affinity)[0]), *get_args(Kernel))

# Which affinities a parameter belongs to, and its default: what is set for another one would be ignored.
_SHAPERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "n_neighbors": ("auto", ("nearest_neighbors", "precomputed_nearest_neighbors")),
    "gamma": (1.0, ("rbf", "laplacian", "poly", "polynomial", "sigmoid", "chi2")),
    "degree": (3, ("poly", "polynomial")),
    "coef0": (1, ("poly", "polynomial", "sigmoid")),
    "kernel_params": (None, ("a function",)),
    "symmetrize": (None, ("precomputed",)),
    "check": ("sample", ("precomputed",)),
}

# What scikit-learn's `SpectralClustering` takes and is not offered, why, and what to use.
_REFUSED: dict[tuple[str, str], str] = {
    ("assign_labels", "discretize"): 'it rotates k dense vectors of every node; use "kmeans" or "cluster_qr"',
    ("eigen_solver", "lobpcg"): 'it is a solver for the Laplacian of all nodes; use "arpack" (exact), or "auto"',
    ("eigen_solver", "amg"): 'it is a solver for the Laplacian of all nodes; use "arpack" (exact), or "auto"',
}


class GraphClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """What the estimators share: parameters checked first, how `X` becomes a graph, what is reported of the result."""

    n_clusters: int
    affinity: Affinity
    n_neighbors: int | Literal["auto"]
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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.affinity in ("precomputed", "precomputed_nearest_neighbors")
        return tags

    def check_parameters(self) -> None:
        """Refuse parameters that no input could make right; `fit` does so before it looks at `X`."""
        check_count(self.n_clusters, "n_clusters")
        if not (isinstance(self.affinity, str) and self.affinity in _NAMED) and not callable(self.affinity):
            raise ValueError(
                f'affinity={self.affinity!r} is not offered: use "auto", "precomputed", "precomputed_nearest_neighbors", '
                '"nearest_neighbors", "rbf", another kernel of scikit-learn ("chi2", "cosine", "laplacian", "linear", "poly", '
                '"sigmoid"), or a function of two points that returns their similarity'
            )
        for (name, value), why in _REFUSED.items():
            if getattr(self, name, None) == value:
                raise ValueError(f'{name}="{value}" of scikit-learn is not offered here: {why}')
        check_neighbors(self.n_neighbors)
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

    def _graph(self, X: Any, stage: Stages) -> Graph:
        """Return the graph that `X` is, or the neighbour graph of the points that it holds."""
        with stage("graph"):
            affinity = self.affinity
            if affinity == "auto":
                affinity = "precomputed" if _looks_like_graph(X) else "nearest_neighbors"
            self._tell_of_idle(X, affinity)
            self._of_points = affinity != "precomputed"
            if not self._of_points:
                graph = self._checked(X)
                self.n_features_in_ = graph.n_nodes
                self._names = graph.node_ids
                return graph
            if _is_surely_graph(X):
                kind = "the name of a file" if is_path(X) else f"a {type(X).__name__} of {type(X).__module__.partition('.')[0]}"
                raise ValueError(f'X is {kind}, which affinity={affinity!r} does not take: use "auto" or "precomputed"')
            X = self._named_points(X)
            points = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=2)
            if affinity == "rbf":
                return rbf_graph(points, gamma=self.gamma, n_jobs=self.n_jobs)
            if affinity == "precomputed_nearest_neighbors":
                return neighbor_graph(points, n_neighbors=self.n_neighbors, metric="precomputed", n_jobs=self.n_jobs)
            if affinity == "nearest_neighbors":
                return neighbor_graph(points, n_neighbors=self.n_neighbors, n_jobs=self.n_jobs)
            if not callable(affinity):
                return kernel_graph(
                    points, cast(Kernel, affinity), gamma=self.gamma, degree=self.degree, coef0=self.coef0, n_jobs=self.n_jobs
                )
            return callable_graph(points, affinity, kernel_params=self.kernel_params, n_jobs=self.n_jobs)

    def _tell_of_idle(self, X: Any, affinity: Any) -> None:
        """Tell the user of parameters that are set and belong to another affinity."""
        for name, (default, meant_for) in _SHAPERS.items():
            value = getattr(self, name)
            if value == default:
                continue
            if ("a function" if callable(affinity) else affinity) not in meant_for:
                what = "graph" if affinity == "precomputed" else f"affinity {affinity!r}"
                home = meant_for[0] if meant_for[0] == "a function" else repr(meant_for[0])
                advise(f"{name}={value!r} has no effect on this {what}: it belongs to affinity={home}")
            elif isinstance(X, Graph) or is_store(X) or (is_path(X) and name == "check"):
                advise(f"{name}={value!r} has no effect on a Graph, which was checked when it was made: pass it the matrix's")

    def _checked(self, X: Any) -> Graph:
        try:
            return as_graph(X, symmetrize=self.symmetrize, check=self.check, n_jobs=self.n_jobs)
        except NotSymmetricError as error:
            if self.affinity != "auto" or _is_surely_graph(X):
                raise
            kind = "sparse matrix" if sp.issparse(X) else "frame"
            raise NotSymmetricError(
                f'{error}; a square {kind} is taken for a graph: pass affinity="nearest_neighbors" if its rows are points'
            ) from None

    def _named_points(self, X: Any) -> Any:
        """Return points in a form that scikit-learn takes, and keep their names: the index of a frame."""
        adapter = adapter_of(X)
        self._names = None
        if hasattr(adapter, "row_names"):
            adapter.check_features(X)
            self._names = adapter.row_names(X)
        return adapter.matrix_of(X) if hasattr(adapter, "matrix_of") else X

    def _fitted(self, graph: Graph, labels: LabelArray, stage: Stages, *, given: Any) -> None:
        """Keep the labels, and measure them while the data are as they were.

        A caller may change a matrix after `fit`, so that its measures are taken at once: one pass over the edges, beside the
        one that checked them. A `Graph` does not change. It is measured when somebody asks, because through a coreset a fit
        reads but a part of it.
        """
        self.labels_ = labels
        self.timings_ = stage.timings
        # A copy that a matrix had to be turned into would stay in memory for nobody.
        copied = isinstance(given, np.ndarray) or (sp.issparse(given) and not _shares_memory(graph, given))
        self._affinity = None if copied and not self._of_points else graph
        self._agreement: FloatArray | None = None
        # `labels_` and `n_clusters` can be changed by now; what was fitted cannot.
        self._to_measure: tuple[Graph, LabelArray, int, int | None] | None
        self._to_measure = (graph, labels.copy(), int(self.n_clusters), self.n_jobs)
        if not isinstance(given, Graph):
            with stage("metrics"):
                self._measure()

    def _measure(self) -> None:
        """Take the measures that are due."""
        check_is_fitted(self)
        if self._to_measure is not None:
            graph, labels, k, n_jobs = self._to_measure
            self._conductances, self._margins = partition_measures(graph, labels, k, n_jobs=n_jobs)
            self._to_measure = None

    @property
    def conductances_(self) -> FloatArray:
        """Conductance cut_j/vol_j of every cluster."""
        self._measure()
        return self._conductances

    @property
    def normalized_cut_(self) -> float:
        """Mean conductance of the clusters, the paper's normalised cut."""
        return float(self.conductances_.mean())

    @property
    def confidence_(self) -> FloatArray:
        """How sure each label is, between 0 and 1; see :mod:`corecut.confidence`."""
        self._measure()
        return self._margins if self._agreement is None else self._margins * self._agreement

    @property
    def affinity_matrix_(self) -> sp.csr_array:
        """The graph that was clustered, as a scipy matrix: of points their neighbours, else the graph that was given.

        It is there where it costs no copy: not in a pickled model, and not of a matrix that had to be converted.
        """
        check_is_fitted(self)
        kept: Graph | None = getattr(self, "_affinity", None)
        if kept is None:
            raise AttributeError(
                "affinity_matrix_ was not kept, because the matrix had to be converted or the model was pickled; "
                "Graph.from_matrix(X).adjacency gives it"
            )
        return kept.adjacency

    @property
    def labels_by_name_(self) -> dict[Any, int]:
        """The cluster of every node by its name: of a networkx graph its nodes, of a file its ids, of a frame its index."""
        check_is_fitted(self)
        return labels_by_name(self.labels_, self._names)

    def labels_as(self, library: Literal["networkx", "igraph", "pandas", "anndata", "torch"]) -> Any:
        """Return the labels in the form that another library's users expect.

        Parameters
        ----------
        library
            "networkx": a label by node, for `networkx.set_node_attributes`; "igraph": a membership list, for
            `igraph.VertexClustering`; "pandas": a Series with the nodes' names as index; "anndata": the same as categories, for
            a column of `obs`; "torch": an integer tensor.
        """
        check_is_fitted(self)
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
        state = dict(super().__getstate__())
        state.pop("_affinity", None)
        return state

    def fit_predict(self, X: Any, y: Any = None) -> LabelArray:
        """Cluster `X` and return the labels; see :meth:`fit`."""
        labels: LabelArray = self.fit(X, y).labels_
        return labels


def check_components(n_clusters: int, n_components: int | None, *, solver: str | None, assign_labels: str) -> None:
    """Refuse pivoted QR without exactly as many vectors as clusters, before they are computed."""
    if assign_labels != "cluster_qr":
        return
    count = n_components if n_components is not None else None if solver == "power" else n_clusters
    if count != n_clusters:
        raise ValueError(
            f'assign_labels="cluster_qr" needs as many components as clusters, got '
            f"{'the few of the power method' if count is None else count} for n_clusters={n_clusters}; "
            'use eigen_solver="arpack" or "subspace" without n_components'
        )


def _shares_memory(graph: Graph, matrix: Any) -> bool:
    """Whether a graph uses a matrix as it is."""
    return np.may_share_memory(graph.indices, getattr(matrix, "indices", np.empty(0)))


def _is_surely_graph(X: Any) -> bool:
    """Say whether `X` can be nothing but a graph: it is no table of any kind."""
    if isinstance(X, Graph) or is_store(X) or is_path(X) or is_plain(X):
        return True
    adapter = adapter_of(X)
    return adapter is not None and not (hasattr(adapter, "is_graph") and hasattr(X, "shape"))


def _looks_like_graph(X: Any) -> bool:
    """Say whether `X` is a graph or a square sparse matrix; warn of anything else that could be a graph, too."""
    if _is_surely_graph(X):
        return True
    if sp.issparse(X):
        return len(X.shape) == 2 and X.shape[0] == X.shape[1]
    adapter = adapter_of(X)
    if adapter is not None and adapter.is_graph(X):
        return True
    table = _as_table(X)
    if table is not None and np.allclose(table, table.T):
        kind = "array" if isinstance(X, np.ndarray) else "table"
        advise(
            f'X is a square symmetric {kind} and is taken for points: pass affinity="precomputed" if it is a graph, or '
            'affinity="nearest_neighbors" to say that it is not'
        )
    return False


def _as_table(X: Any) -> AnyArray | None:
    """Return a square array, frame or nested list of more than two rows as an array of numbers; None for anything else."""
    shape = tuple(getattr(X, "shape", ()))
    if isinstance(X, list | tuple) and len(X) > 0 and hasattr(X[0], "__len__"):
        shape = (len(X), len(X[0]))
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] <= 2:
        return None
    try:
        table = np.asarray(X)
    except ValueError:  # rows of different lengths
        return None
    return table if table.dtype.kind in "biuf" and table.shape == shape else None
