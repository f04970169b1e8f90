"""AnnData, in scanpy's manner: clusters of cells from their neighbour graph, as a categorical column of `obs`.

`cluster` reads the graph that `scanpy.pp.neighbors` made (`obsp["connectivities"]`, or what `neighbors_key` names), and leaves
labels in `obs[key_added]` and the parameters in `uns[key_added]`, where `scanpy.pl` and others find them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corecut._typing import AnyArray
from corecut.adapters import node_names
from corecut.advice import advise
from corecut.estimators import CoresetSpectralClustering
from corecut.graph import Check, Graph, Symmetrize, with_names

# What scanpy's functions take besides, and what does it here.
_SCANPYS = {
    "resolution": 'the number of clusters is chosen by n_clusters=, or found with n_clusters="auto"',
    "adjacency": "CoresetSpectralClustering(k).fit(adjacency) takes a matrix",
    "restrict_to": "cluster a part: part = adata[adata.obs[key] == value].copy()",
    "partition_type": "the objective is the normalised cut",
    "n_iterations": "refinement goes on until no move is left",
    "use_weights": "weights are used; pass obsp= of a graph without them",
    "directed": "graphs are undirected; symmetrize= merges both directions",
    "flavor": "there is one method",
    "affinity": "the graph is that of obsp=, or of neighbors_key=",
}


def cluster(
    adata: Any,
    n_clusters: int | str = 8,
    *,
    key_added: str = "corecut",
    obsp: str = "connectivities",
    neighbors_key: str | None = None,
    random_state: int = 0,
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Cluster cells by the normalised cut of their neighbour graph, like `scanpy.tl.leiden`, but into the k that you choose.

    Parameters
    ----------
    adata
        The annotated data; `scanpy.pp.neighbors(adata)` must have been run, or `obsp` hold another graph.
    n_clusters
        Number of clusters k.
    key_added
        Where the result goes: labels to `adata.obs[key_added]`, parameters and the normalised cut to `adata.uns[key_added]`,
        and how sure the number of clusters is where it was found.
    obsp
        Key of the graph in `adata.obsp`.
    neighbors_key
        As in scanpy: take the graph of `adata.uns[neighbors_key]["connectivities_key"]`. Not together with `obsp`.
    random_state
        Seed; the same seed gives the same labels.
    copy
        Return a copy with the result, and leave `adata` as it is.
    **parameters
        Other parameters of :class:`~corecut.CoresetSpectralClustering`, for example `balance` or `min_cluster_size`.

    Returns
    -------
    The copy with `copy=True`, else None.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from corecut import make_sbm
    >>> from corecut.adapters.anndata import cluster
    >>> graph, truth = make_sbm(50, 3, 0.5, 0.01, random_state=0)
    >>> adata = anndata.AnnData(np.zeros((150, 2)), obsp={"connectivities": graph.tocsr()})
    >>> cluster(adata, n_clusters=3)
    >>> adata.obs["corecut"].value_counts().tolist()
    [50, 50, 50]
    """
    import pandas as pd

    if not hasattr(adata, "obsp"):
        raise TypeError(
            f"adata must be an AnnData, got {type(adata).__name__}; CoresetSpectralClustering(k).fit takes other data"
        )
    for name in parameters:
        if name in _SCANPYS:
            raise TypeError(f"cluster has no {name}=: {_SCANPYS[name]}")
    key = graph_key(adata, obsp=obsp, neighbors_key=neighbors_key)
    model = CoresetSpectralClustering(n_clusters, affinity="precomputed", random_state=random_state, **parameters)
    model.fit(adata.obsp[key])
    adata = adata.copy() if copy else adata
    # As text, in scanpy's order: "10" comes behind "9".
    names = [str(label) for label in range(int(model.labels_.max()) + 1)]
    adata.obs[key_added] = pd.Categorical.from_codes(model.labels_, categories=names)
    told = {"n_clusters": n_clusters, "random_state": random_state, "obsp": key, **parameters}
    if neighbors_key is not None:
        told["neighbors_key"] = neighbors_key
    # Files of AnnData hold neither None nor a generator.
    params = {name: value for name, value in told.items() if isinstance(value, bool | int | float | str | np.generic)}
    adata.uns[key_added] = {"params": params, "normalized_cut": model.normalized_cut_}
    if hasattr(model, "selection_"):
        adata.uns[key_added]["selection"] = model.selection_.sentence
    return adata if copy else None


def graph_key(adata: Any, *, obsp: str = "connectivities", neighbors_key: str | None = None) -> str:
    """Return the key of `adata.obsp` under which the graph is; refuse one that is not there, with the cure."""
    if neighbors_key is not None:
        if obsp != "connectivities":
            raise ValueError(
                f"obsp={obsp!r} and neighbors_key={neighbors_key!r} both say which graph to take; give one of them"
            )
        if neighbors_key not in adata.uns:
            raise KeyError(
                f"adata.uns has no {neighbors_key!r}; run scanpy.pp.neighbors(adata, key_added={neighbors_key!r}) first"
            )
        obsp = adata.uns[neighbors_key].get("connectivities_key", "connectivities")
    if obsp not in adata.obsp:
        there = ", ".join(repr(name) for name in adata.obsp) or "nothing"
        cure = "run scanpy.pp.neighbors(adata) first" if obsp == "connectivities" else "name one of these"
        raise KeyError(f"adata.obsp has no graph {obsp!r}, it holds {there}; {cure}")
    return obsp


def opened(adata: Any, *, symmetrize: Symmetrize, check: Check, n_jobs: int | None) -> Graph:
    """Return the graph of the cells' neighbours with their names."""
    matrix = adata.obsp[graph_key(adata)]
    names = None
    if adata.obs_names.is_unique:
        names = node_names(list(adata.obs_names))
    else:
        twice = adata.obs_names[adata.obs_names.duplicated()][0]
        advise(
            f"more than one cell has the name {twice!r} in adata.obs_names, so that cells are numbered and have no names here; "
            "call adata.obs_names_make_unique() for labels by name"
        )
    return with_names(Graph.from_matrix(matrix, symmetrize=symmetrize, check=check, n_jobs=n_jobs), names)


def labels_of(labels: AnyArray, names: AnyArray | None) -> Any:
    """Return labels as a categorical column for `adata.obs`: by the cells' names, or in their order where they have none."""
    import pandas as pd

    from corecut.adapters.pandas import labels_of as series_of

    column = pd.Categorical.from_codes(labels, categories=[str(label) for label in range(int(labels.max()) + 1)])
    # An index of numbers would match no cell, and leave the column empty.
    return column if names is None else pd.Series(column, index=series_of(labels, names).index, name="label")
