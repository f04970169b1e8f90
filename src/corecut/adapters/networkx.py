"""networkx: its nodes in their order, whatever they are (text, numbers, tuples), and the edge attribute `weight`.

As in networkx itself, an edge without the attribute weighs 1, and parallel edges of a multigraph are added up. A directed graph
is refused, unless `symmetrize` says how to merge both directions.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut._typing import AnyArray
from corecut._validation import thread_count
from corecut.adapters import checked_weights, node_names
from corecut.advice import advise
from corecut.edges import EdgeRules
from corecut.graph import Graph, Symmetrize, with_names
from corecut.node_ids import labels_by_name
from corecut.readers.dispatch import graph_of_edges


def opened(G: Any, *, symmetrize: Symmetrize, n_jobs: int | None, **_: Any) -> Graph:
    """Return the graph; there is no asymmetry to look for in one that is not directed."""
    return to_graph(G, symmetrize=symmetrize, n_jobs=n_jobs)


def to_graph(G: Any, *, weight: Hashable | None = "weight", symmetrize: Symmetrize = None, n_jobs: int | None = None) -> Graph:
    """Return a networkx graph as a :class:`~corecut.Graph`; `fit` and the metrics do so by themselves.

    Parameters
    ----------
    G
        A networkx graph; its nodes are kept as :attr:`Graph.node_ids`.
    weight
        The edge attribute that holds the weights; None for none.
    symmetrize
        For directed graphs: "mean", "max" or "min" of both directions.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import networkx as nx
    >>> from corecut.adapters.networkx import to_graph
    >>> G = nx.Graph()
    >>> G.add_edge("anna", "bert", strength=3.0)
    >>> graph = to_graph(G, weight="strength")
    >>> graph.node_ids, graph.degrees
    (array(['anna', 'bert'], dtype=object), array([3., 3.]))
    """
    if not hasattr(G, "is_directed"):
        raise TypeError(f"{type(G).__name__} is no graph of networkx; pass a networkx.Graph")
    if isinstance(weight, bool) or callable(weight):
        raise TypeError(f"weight must be the name of an edge attribute, or None for none, got {weight!r}")
    if G.is_directed() and symmetrize is None:
        raise ValueError(
            f"the networkx graph is directed ({type(G).__name__}), and clusters are those of an undirected one; pass "
            'G.to_undirected(), or symmetrize="mean", "max" or "min" to fit or read_graph'
        )
    names = list(G)
    if not names:
        raise ValueError("the graph is empty: it has 0 nodes")
    number = dict(zip(names, range(len(names)), strict=True))
    missing = object()
    edges = list(G.edges(data=weight if weight is not None else False, default=missing))
    source, target = (np.fromiter((number[edge[end]] for edge in edges), np.int64, len(edges)) for end in (0, 1))
    weights = None
    if weight is not None:
        absent = sum(edge[2] is missing for edge in edges)
        if absent < len(edges):
            if absent:
                advise(
                    f"{absent:,} of {len(edges):,} edges have no attribute {weight!r} and weigh 1, as in networkx; give them "
                    "one, or leave weights out with corecut.adapters.networkx.to_graph(G, weight=None)"
                )
            values = [1.0 if edge[2] is missing else edge[2] for edge in edges]
            weights = checked_weights(values, lambda i: f"edge ({edges[i][0]!r}, {edges[i][1]!r})")
    ids = node_names(names)
    if G.is_directed():
        data = np.ones(len(edges)) if weights is None else weights
        matrix = sp.coo_array((data, (source, target)), shape=(len(names), len(names)))
        return with_names(Graph.from_matrix(matrix, symmetrize=symmetrize, n_jobs=n_jobs), ids)
    return graph_of_edges(
        source, target, weights, rules=EdgeRules("sum"), n_nodes=len(names), node_ids=ids, threads=thread_count(n_jobs)
    )


def labels_of(labels: AnyArray, names: AnyArray | None) -> dict[Any, int]:
    """Return a label for every node, as `networkx.set_node_attributes(G, labels, "cluster")` takes them."""
    return labels_by_name(labels, names)
