"""What all estimators share: how `X` becomes a graph, and what is reported of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from corecut._progress import Stages
from corecut._typing import FloatArray, LabelArray
from corecut.advice import advise
from corecut.confidence import label_confidence
from corecut.graph import Check, Graph, Symmetrize
from corecut.metrics import conductance
from corecut.neighbors import callable_graph, neighbor_graph, rbf_graph

Affinity = (
    Literal["auto", "precomputed", "precomputed_nearest_neighbors", "nearest_neighbors", "rbf"] | Callable[[Any, Any], float]
)


class GraphClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
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
                    f"{error}; a square sparse matrix is taken for a graph: "
                    'pass affinity="nearest_neighbors" if its rows are points'
                ) from None
            raise

    def _fitted(self, graph: Graph, labels: LabelArray, stage: Stages) -> None:
        self.labels_ = labels
        self.timings_ = stage.timings
        # What costs a pass over the edges is measured when it is first asked for.
        self._graph_to_measure: Graph | None = graph
        self._measures: dict[str, FloatArray] = {}

    def _measure(self, name: str) -> FloatArray:
        check_is_fitted(self)
        if name not in self._measures:
            graph = self._graph_to_measure
            assert graph is not None, "all measures are taken before the graph is dropped"
            if name == "conductances":
                value = conductance(graph, self.labels_, n_clusters=self.n_clusters, n_jobs=self.n_jobs)
            else:
                value = label_confidence(graph, self.labels_, n_jobs=self.n_jobs)
            self._measures[name] = value
        return self._measures[name]

    @property
    def conductances_(self) -> FloatArray:
        """Conductance cut_j/vol_j of every cluster: one pass over the edges when it is first asked for."""
        return self._measure("conductances")

    @property
    def normalized_cut_(self) -> float:
        """Mean conductance of the clusters, the paper's normalised cut."""
        return float(self.conductances_.mean())

    @property
    def confidence_(self) -> FloatArray:
        """Margin between each node's own cluster and the next one, between 0 and 1."""
        return self._measure("margins")

    def __getstate__(self) -> dict[str, Any]:
        # A pickled model holds its measures, not the graph they are taken on.
        state: dict[str, Any] = dict(super().__getstate__())
        if state.get("_graph_to_measure") is not None:
            for name in ("conductances", "margins"):
                self._measure(name)
            state["_graph_to_measure"] = None
        return state

    def fit_predict(self, X: Any, y: Any = None) -> LabelArray:
        """Cluster `X` and return the labels; see :meth:`fit`."""
        labels: LabelArray = self.fit(X, y).labels_
        return labels


def _looks_like_graph(X: Any) -> bool:
    """Say whether `X` is a Graph or a square sparse matrix; warn of an array that could be a graph, too."""
    if isinstance(X, Graph):
        return True
    shape: tuple[int, ...] = getattr(X, "shape", ())
    square = len(shape) == 2 and shape[0] == shape[1]
    if sp.issparse(X):
        return square
    if square and shape[0] > 2 and isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and np.allclose(X, X.T):
        advise(
            'X is a square symmetric array and is taken for points: pass affinity="precomputed" if it is a graph, or '
            'affinity="nearest_neighbors" to say that it is not'
        )
    return False
