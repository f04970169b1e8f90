"""igraph: its vertices in their order, the vertex attribute `name` as their names, the edge attribute `weight`.

Parallel edges are added up. A directed graph is refused, unless `symmetrize` says how to merge both directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut._typing import AnyArray
from corecut._validation import thread_count
from corecut.adapters import checked_weights, unique_names
from corecut.edges import EdgeRules
from corecut.graph import Graph, Symmetrize, with_names
from corecut.readers.dispatch import graph_of_edges


def opened(G: Any, *, symmetrize: Symmetrize, n_jobs: int | None, **_: Any) -> Graph:
    """Return the graph; there is no asymmetry to look for in one that is not directed."""
    return to_graph(G, symmetrize=symmetrize, n_jobs=n_jobs)


def to_graph(G: Any, *, weight: str | None = "weight", symmetrize: Symmetrize = None, n_jobs: int | None = None) -> Graph:
    """Return an igraph graph as a :class:`~corecut.Graph`; `fit` and the metrics do so by themselves.

    Parameters
    ----------
    G
        An igraph graph; the vertex attribute "name" is kept as :attr:`Graph.node_ids`.
    weight
        The edge attribute that holds the weights; where the graph has none of that name, every edge weighs 1. None for none.
    symmetrize
        For directed graphs: "mean", "max" or "min" of both directions.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import igraph
    >>> from corecut.adapters.igraph import to_graph
    >>> to_graph(igraph.Graph.Famous("Zachary"))
    Graph(34 nodes, 156 entries, unit weights)
    """
    if not hasattr(G, "get_edgelist"):
        raise TypeError(f"{type(G).__name__} of igraph is no graph; pass an igraph.Graph")
    if weight is not None and not isinstance(weight, str):
        raise TypeError(f"weight must be the name of an edge attribute, or None for none, got {weight!r}")
    if G.is_directed() and symmetrize is None:
        raise ValueError(
            "the igraph graph is directed, and clusters are those of an undirected one; pass "
            'G.as_undirected(combine_edges="sum"), or symmetrize="mean", "max" or "min" to fit or read_graph'
        )
    n = G.vcount()
    if n == 0:
        raise ValueError("the graph is empty: it has 0 nodes")
    names = _names(G)
    ends = np.array(G.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    weights = None
    if weight in G.es.attributes():

        def edge(i: int) -> str:
            u, v = ends[i].tolist() if names is None else names[ends[i]].tolist()
            return f"edge ({u!r}, {v!r})"

        weights = checked_weights(G.es[weight], edge)
    if G.is_directed():
        data = np.ones(len(ends)) if weights is None else weights
        matrix = sp.coo_array((data, (ends[:, 0], ends[:, 1])), shape=(n, n))
        return with_names(Graph.from_matrix(matrix, symmetrize=symmetrize, n_jobs=n_jobs), names)
    return graph_of_edges(
        ends[:, 0], ends[:, 1], weights, rules=EdgeRules("sum"), n_nodes=n, node_ids=names, threads=thread_count(n_jobs)
    )


def _names(G: Any) -> AnyArray | None:
    """Return the vertices' names, None where they have none; refuse a name that no dict of labels could hold."""
    names = G.vs["name"] if "name" in G.vs.attributes() else [None]
    if all(name is None for name in names):
        return None
    for i, name in enumerate(names):
        try:
            hash(name)
            good = name is not None and not (isinstance(name, float) and np.isnan(name))
        except TypeError:
            good = False
        if not good:
            raise ValueError(
                f"vertex {i} has {name!r} for a name in igraph's vertex attribute 'name'; give every vertex a text or a "
                'number, or number them with del G.vs["name"]'
            )
    return unique_names(names, "igraph's vertex attribute 'name'")


def labels_of(labels: AnyArray, names: AnyArray | None) -> list[int]:
    """Return the membership list that `igraph.VertexClustering(G, membership)` takes, in the order of the vertices."""
    del names  # igraph knows its vertices by their numbers
    return [int(label) for label in labels]
