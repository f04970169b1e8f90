"""The estimators as scikit-learn's own: clones, tags, pipelines, parameters by name, a picture in notebooks."""

from __future__ import annotations

from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags

from corecut import estimators
from corecut.clusterer import GraphClusterer


class ScikitLearnClusterer(GraphClusterer, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """A clusterer that scikit-learn takes for one of its own."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.affinity in ("precomputed", "precomputed_nearest_neighbors")
        return tags


class CoresetSpectralClustering(estimators.CoresetSpectralClustering, ScikitLearnClusterer):  # noqa: D101  (it is inherited)
    __doc__ = estimators.CoresetSpectralClustering.__doc__
