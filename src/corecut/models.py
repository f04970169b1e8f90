"""Saved models: an estimator after `fit` as one file, for prediction later and elsewhere; see :mod:`corecut.model_files`.

Kept are the settings, the labels, two sums of every cluster, the nodes' names, what `fit` settled on, and what prediction needs
of the input: the points, or of a graph a number of 64 bits for every row. A model of a graph takes 12 bytes per node (and its
name) and 16 per cluster. Not kept are the graph, the coreset and its embedding, `confidence_` and `timings_`, `n_jobs` and
`verbose`, and a `random_state` that is a generator.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from corecut.baselines import CoresetKernelKMeans, FastSpectralClustering, KernelKMeans
from corecut.clusterer import GraphClusterer
from corecut.model_files import ModelFile
from corecut.scikit_learn import CoresetSpectralClustering

_ESTIMATORS: dict[str, type[GraphClusterer]] = {
    kind.__name__: kind for kind in (CoresetSpectralClustering, FastSpectralClustering, KernelKMeans, CoresetKernelKMeans)
}


def load(path: str | Path, *, affinity: Callable[..., float] | None = None) -> GraphClusterer:
    """Open a model that :meth:`CoresetSpectralClustering.save` or `corecut cluster --save` has written.

    Parameters
    ----------
    path
        The file. It is mapped, not read into memory; its checksums are compared first. While the model is in use, replace it by
        `save` or by renaming, not by writing into it.
    affinity
        The function of two points that the model was fitted with, if it was: no file can hold it.

    Returns
    -------
    An estimator of the class that was saved, with `predict`, `labels_`, `normalized_cut_` and the values that "auto" took.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from corecut import CoresetSpectralClustering, load, make_sbm
    >>> graph, _ = make_sbm(100, 4, 0.5, 0.01, random_state=0)
    >>> model = CoresetSpectralClustering(n_clusters=4, random_state=0).fit(graph)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(pathlib.Path(folder) / "blocks.model")
    ...     same = load(pathlib.Path(folder) / "blocks.model")
    ...     bool((same.predict(graph) == model.labels_).all())
    True
    """
    file = ModelFile.open(path)
    kind = _ESTIMATORS.get(str(file.description.get("estimator")))
    if kind is None:
        raise file.damaged(f"it is a {file.description.get('estimator')!r}")
    return kind.restored(file, affinity=affinity)
