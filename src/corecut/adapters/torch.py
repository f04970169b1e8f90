"""PyTorch and PyTorch Geometric: `edge_index`, `Data`, sparse and dense square tensors.

An edge index is an integer tensor of shape (2, edges) that holds every edge in both directions, as PyTorch Geometric has them;
repeats are added up. Tensors may be on any device and may need gradients: a copy is taken to main memory.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut._typing import AnyArray
from corecut._validation import check_count
from corecut.adapters import checked_weights
from corecut.advice import advise
from corecut.graph import Check, Graph, NotSymmetricError, Symmetrize


def is_graph(X: Any) -> bool:
    """Say whether X is a graph: a `Data`, an edge index, or a square sparse tensor. Other tensors are points."""
    if not _is_tensor(X):
        return True
    return _is_edge_index(X) or (_is_sparse(X) and X.dim() == 2 and X.shape[0] == X.shape[1])


def opened(X: Any, *, symmetrize: Symmetrize, check: Check, n_jobs: int | None) -> Graph:
    """Return the graph."""
    return to_graph(X, symmetrize=symmetrize, check=check, n_jobs=n_jobs)


def to_graph(
    X: Any,
    *,
    edge_weight: Any = None,
    num_nodes: int | None = None,
    symmetrize: Symmetrize = None,
    check: Check = "sample",
    n_jobs: int | None = None,
) -> Graph:
    """Return a tensor or a `Data` of PyTorch Geometric as a :class:`~corecut.Graph`; `fit` and the metrics do so by themselves.

    Parameters
    ----------
    X
        An edge index of shape (2, edges), a `Data` (its `edge_index`, `edge_weight` and `num_nodes`), or a square tensor,
        sparse or dense.
    edge_weight
        Weights of the edges of an edge index; by default those of a `Data`: its `edge_weight`, or its `weight`, as
        `from_networkx` calls it.
    num_nodes
        Number of nodes of an edge index; the highest number plus one by default.
    symmetrize, check, n_jobs
        As in :meth:`Graph.from_matrix`.

    Returns
    -------
    Graph
    """
    index = X if _is_tensor(X) else getattr(X, "edge_index", None)
    if index is None:
        raise TypeError(
            f"{type(X).__name__} has no edge_index; pass that of one kind of edge, or the adjacency as a sparse tensor"
        )
    if not _is_edge_index(index):
        if edge_weight is not None or num_nodes is not None:
            raise ValueError("edge_weight and num_nodes belong to an edge index of shape (2, edges), this tensor is a matrix")
        return Graph.from_matrix(matrix_of(index), symmetrize=symmetrize, check=check, n_jobs=n_jobs)
    if index is not X:
        edge_weight = _weights_of(X, index.shape[1]) if edge_weight is None else edge_weight
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it is inferred from the edges, where nothing else tells
            num_nodes = X.num_nodes if num_nodes is None else num_nodes
    source, target = matrix_of(index).astype(np.int64, copy=False)
    weights = np.ones(source.size)
    if edge_weight is not None:
        given = matrix_of(edge_weight) if _is_tensor(edge_weight) else np.asarray(edge_weight)
        if given.shape != (source.size,):
            raise ValueError(f"edge_weight must be one number per edge: expected shape ({source.size},), got {given.shape}")
        weights = checked_weights(given, lambda i: f"edge ({source[i]}, {target[i]})")
    ends = np.stack([source, target])
    n = int(ends.max(initial=-1)) + 1 if num_nodes is None else check_count(num_nodes, "num_nodes", minimum=0)
    if ends.min(initial=0) < 0 or ends.max(initial=-1) >= n:
        at = int(np.flatnonzero((ends < 0).any(axis=0) | (ends >= n).any(axis=0))[0])
        raise ValueError(
            f"edge {at} of the edge index, ({source[at]}, {target[at]}), names a node that there is not; they are "
            f"0 to {n - 1}: set num_nodes=, or mend the edge index"
        )
    matrix = sp.coo_array((weights, (source, target)), shape=(n, n))
    try:
        return Graph.from_matrix(matrix, symmetrize=symmetrize, check=check, n_jobs=n_jobs)
    except NotSymmetricError as error:
        raise NotSymmetricError(
            f"{error}; an edge index holds every edge in both directions, torch_geometric.utils.to_undirected adds them"
        ) from None


def matrix_of(X: Any) -> Any:
    """Return a tensor as an array, or as a scipy matrix where it is sparse."""
    X = X.detach().cpu()
    if "bfloat16" in str(X.dtype):  # which NumPy does not know
        X = X.float()
    if not _is_sparse(X):
        return np.asarray(X)
    X = X.to_sparse_coo().coalesce()
    return sp.coo_array((np.asarray(X.values()), tuple(np.asarray(X.indices()))), shape=tuple(X.shape))


def labels_of(labels: AnyArray, names: AnyArray | None) -> Any:
    """Return the labels as an integer tensor, in the order of the nodes."""
    import torch

    del names  # nodes are known by their numbers
    return torch.as_tensor(labels.astype(np.int64))


def _weights_of(data: Any, n_edges: int) -> Any:
    """Return the weights of the edges of a `Data`, None where it has none; tell of an attribute that may be meant for them."""
    for name in ("edge_weight", "weight"):
        found = getattr(data, name, None)
        if found is not None and (name == "edge_weight" or tuple(getattr(found, "shape", ())) == (n_edges,)):
            return found
    shape = tuple(getattr(getattr(data, "edge_attr", None), "shape", ()))
    if shape in ((n_edges,), (n_edges, 1)):
        advise(
            "the Data has no edge_weight, and its edge_attr is left out: every edge weighs 1; if it holds the weights set "
            "data.edge_weight = data.edge_attr.flatten()"
        )
    return None


def _is_tensor(X: Any) -> bool:
    return hasattr(X, "detach") and hasattr(X, "dim")


def _is_sparse(X: Any) -> bool:
    return "strided" not in str(X.layout)


def _is_edge_index(X: Any) -> bool:
    whole = not X.is_floating_point() and not X.is_complex() and "bool" not in str(X.dtype)
    return bool(whole and not _is_sparse(X) and X.dim() == 2 and X.shape[0] == 2 and X.shape[1] != 2)
