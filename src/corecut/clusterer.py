"""What all estimators share: parameters checked first, how `X` becomes a graph, and what is reported of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from corecut._progress import Stages
from corecut._random import check_random_state
from corecut._typing import AnyArray, FloatArray, LabelArray, RandomState
from corecut._validation import check_count, check_matrix_like, check_option, check_real, thread_count
from corecut.advice import advise
from corecut.confidence import partition_measures
from corecut.engines import Engine, LocalEngine
from corecut.graph import Check, Graph, NotSymmetricError, Symmetrize
from corecut.neighbors import callable_graph, check_neighbors, neighbor_graph, rbf_graph

Affinity = (
    Literal["auto", "precomputed", "precomputed_nearest_neighbors", "nearest_neighbors", "rbf"] | Callable[[Any, Any], float]
)
_NAMED = get_args(get_args(Affinity)[0])

# Which affinities a parameter belongs to, and its default: what is set for another one would be ignored.
_SHAPERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "n_neighbors": ("auto", ("nearest_neighbors", "precomputed_nearest_neighbors")),
    "gamma": (1.0, ("rbf",)),
    "symmetrize": (None, ("precomputed",)),
    "check": ("sample", ("precomputed",)),
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
                '"nearest_neighbors", "rbf", or a function of two points that returns their similarity'
            )
        check_neighbors(self.n_neighbors)
        check_real(self.gamma, "gamma", exclusive=True)
        check_option(self.symmetrize, "symmetrize", (None, "mean", "max", "min"))
        check_option(self.check, "check", get_args(Check))
        check_random_state(self.random_state)
        thread_count(self.n_jobs)
        if not isinstance(self.verbose, bool | np.bool_):
            check_count(self.verbose, "verbose", minimum=0)

    def _graph(self, X: Any, stage: Stages) -> Graph:
        """Return the graph that `X` is, or the neighbour graph of the points that it holds."""
        with stage("graph"):
            check_matrix_like(X)
            affinity = self.affinity
            if affinity == "auto":
                affinity = "precomputed" if _looks_like_graph(X) else "nearest_neighbors"
            self._tell_of_idle(X, affinity)
            if affinity == "precomputed":
                graph = self._checked(X)
                self.n_features_in_ = graph.n_nodes
                return graph
            if isinstance(X, Graph):
                raise ValueError(f'X is a Graph, which affinity={affinity!r} does not take: use "auto" or "precomputed"')
            points = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_min_samples=2)
            if affinity == "rbf":
                return rbf_graph(points, gamma=self.gamma, n_jobs=self.n_jobs)
            if affinity == "precomputed_nearest_neighbors":
                return neighbor_graph(points, n_neighbors=self.n_neighbors, metric="precomputed", n_jobs=self.n_jobs)
            if affinity == "nearest_neighbors":
                return neighbor_graph(points, n_neighbors=self.n_neighbors, n_jobs=self.n_jobs)
            assert callable(affinity)
            return callable_graph(points, affinity, n_jobs=self.n_jobs)

    def _tell_of_idle(self, X: Any, affinity: Any) -> None:
        """Tell the user of parameters that are set and belong to another affinity."""
        for name, (default, meant_for) in _SHAPERS.items():
            value = getattr(self, name)
            if value == default:
                continue
            if affinity not in meant_for:
                what = "graph" if affinity == "precomputed" else f"affinity {affinity!r}"
                advise(f"{name}={value!r} has no effect on this {what}: it belongs to affinity={meant_for[0]!r}")
            elif isinstance(X, Graph):
                advise(f"{name}={value!r} has no effect on a Graph, which was checked when it was made: pass it the matrix's")

    def _checked(self, X: Any) -> Graph:
        if isinstance(X, Graph):
            return X
        try:
            return Graph.from_matrix(X, symmetrize=self.symmetrize, check=self.check, n_jobs=self.n_jobs)
        except NotSymmetricError as error:
            if self.affinity != "auto":
                raise
            raise NotSymmetricError(
                f"{error}; a square sparse matrix is taken for a graph: "
                'pass affinity="nearest_neighbors" if its rows are points'
            ) from None

    def _fitted(self, graph: Graph, labels: LabelArray, stage: Stages, *, given: Any, engine: Engine | None = None) -> None:
        """Keep the labels, and measure them while the data are as they were.

        A caller may change a matrix after `fit`, so that its measures are taken at once: one pass over the edges, beside the
        one that checked them. A `Graph` does not change. It is measured when somebody asks, because through a coreset a fit
        reads but a part of it. The session of another `engine` ends with the fit, so that it measures at once, too.
        """
        self.labels_ = labels
        self.timings_ = stage.timings
        self._agreement: FloatArray | None = None
        # `labels_` and `n_clusters` can be changed by now; what was fitted cannot.
        self._to_measure: tuple[Graph, LabelArray, int, int | None] | None
        self._to_measure = (graph, labels.copy(), int(self.n_clusters), self.n_jobs)
        if not isinstance(given, Graph) or engine is not None:
            with stage("metrics"):
                self._measure(engine)

    def _measure(self, engine: Engine | None = None) -> None:
        """Take the measures that are due."""
        check_is_fitted(self)
        if self._to_measure is not None:
            graph, labels, k, n_jobs = self._to_measure
            self._conductances, self._margins = partition_measures(graph, labels, k, engine or LocalEngine(n_jobs))
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

    def __getstate__(self) -> dict[str, Any]:
        # A pickled model holds its measures, not the graph they are taken on.
        if getattr(self, "_to_measure", None) is not None:
            self._measure()
        return dict(super().__getstate__())

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


def _looks_like_graph(X: Any) -> bool:
    """Say whether `X` is a Graph or a square sparse matrix; warn of anything else that could be a graph, too."""
    if isinstance(X, Graph):
        return True
    if sp.issparse(X):
        return len(X.shape) == 2 and X.shape[0] == X.shape[1]
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
