"""Bounds on the sizes of clusters: what they are in nodes, and the numbers of clusters that they leave.

A whole number counts nodes; any other number is a factor of the mean cluster, n/k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral


def bounds_in_nodes(least: float | None, most: float | None, n_nodes: int, n_clusters: int) -> tuple[float, float]:
    """Return the least and the largest number of nodes of a cluster; refuse what no partition keeps.

    Examples
    --------
    >>> from corecut.size_bounds import bounds_in_nodes
    >>> bounds_in_nodes(20, 1.5, 100, 4)
    (20.0, 37.0)
    """
    smallest = 0 if least is None else least_nodes(least, n_nodes, n_clusters)
    largest = n_nodes if most is None else most_nodes(most, n_nodes, n_clusters)
    # A bound is named as it was given, with the cure for one of its kind.
    if least is not None and smallest * n_clusters > n_nodes:
        given, cure = f"{least}", f"ask for at most {n_nodes // n_clusters}"
        if not _is_count(least):
            given, cure = f"{least} ({smallest} nodes)", "a factor of the mean cluster is at most 1"
        raise ValueError(f"min_cluster_size={given} times n_clusters={n_clusters} is more than the {n_nodes} nodes: {cure}")
    if most is not None and largest * n_clusters < n_nodes:
        given, cure = f"{most}", f"ask for at least {-(-n_nodes // n_clusters)}; 1.0, with a point, is the mean cluster"
        if not _is_count(most):
            given, cure = f"{most} ({largest} nodes)", "a factor of the mean cluster is at least 1"
        raise ValueError(f"max_cluster_size={given} times n_clusters={n_clusters} is less than the {n_nodes} nodes: {cure}")
    if largest < smallest:
        raise ValueError(f"max_cluster_size={largest} is below min_cluster_size={smallest}")
    return float(smallest), float(largest) if most is not None else math.inf


def least_nodes(bound: float, n_nodes: int, n_clusters: int) -> int:
    """Return a lower bound in nodes. The mean itself may lie between two numbers of nodes: then it is the one below."""
    nodes = _nodes(bound, math.ceil, n_nodes, n_clusters)
    return nodes if _is_count(bound) or bound > 1 else min(nodes, n_nodes // n_clusters)


def most_nodes(bound: float, n_nodes: int, n_clusters: int) -> int:
    """Return an upper bound in nodes; the mean, between two numbers of nodes, is the one above."""
    nodes = _nodes(bound, math.floor, n_nodes, n_clusters)
    return nodes if _is_count(bound) or bound < 1 else max(nodes, -(-n_nodes // n_clusters))


def clusters_within(least: float | None, most: float | None, n_nodes: int) -> tuple[int, int]:
    """Return how few clusters bounds allow, and how many. A factor of the mean cluster suits any number of clusters."""
    fewest = -(-n_nodes // int(most)) if most is not None and _is_count(most) and most > 0 else 1
    many = n_nodes // int(least) if least is not None and _is_count(least) and least > 0 else n_nodes
    return fewest, many


def _is_count(bound: float) -> bool:
    return isinstance(bound, Integral)


def _nodes(bound: float, rounded: Callable[[float], int], n_nodes: int, n_clusters: int) -> int:
    return int(bound) if _is_count(bound) else rounded(min(float(bound), n_clusters) * n_nodes / n_clusters)
