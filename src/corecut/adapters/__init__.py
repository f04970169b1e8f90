"""Graphs of other libraries: in as a :class:`~corecut.Graph` with the nodes' own names, out again as labels.

One module per library, imported when an object of that library is met. None of them imports its library to read an object that
is already there. The door that finds them is :func:`corecut.graph.as_graph`. Each has

    is_graph(X)         whether a table is a graph and not points, for affinity="auto" (pandas and torch, which have both),
    opened(X, ...)      the graph, by the library's own conventions, for the door,
    to_graph(X, ...)    the same for users, with what there is to say (the name of a weight attribute, columns),
    labels_of(...)      labels as the library's users want them, for `model.labels_as`.

What is shared is here: names of nodes, and weights that are checked where the edge can still be named.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corecut._typing import AnyArray, FloatArray
from corecut.node_ids import first_repeat

__all__ = ["checked_weights", "node_names", "unique_names"]


def node_names(names: Sequence[Any]) -> AnyArray | None:
    """Return names as int64 if all are integers that fit, else as an array of objects; None where they are 0 .. n - 1.

    Examples
    --------
    >>> from corecut.adapters import node_names
    >>> node_names(["anna", "bert"])
    array(['anna', 'bert'], dtype=object)
    >>> node_names([0, 1, 2]) is None
    True
    """
    if all(isinstance(name, numbers.Integral) and not isinstance(name, bool | np.bool_) for name in names):
        whole = [int(name) for name in names]
        if whole == list(range(len(whole))):
            return None
        if all(-(2**63) <= name < 2**63 for name in whole):
            return np.array(whole, dtype=np.int64)
    found = np.empty(len(names), dtype=object)
    found[:] = list(names)  # one by one: NumPy would make a matrix of tuples
    return found


def unique_names(names: Sequence[Any], what: str) -> AnyArray | None:
    """Return names as `node_names` does; refuse one that two nodes have."""
    found = node_names(names)
    if found is not None:
        twice = first_repeat(found)
        if twice is not None:
            raise ValueError(f"two nodes have the name {twice!r} in {what}; give every node a name of its own")
    return found


def checked_weights(values: Sequence[Any] | AnyArray, edge: Callable[[int], str]) -> FloatArray:
    """Return weights as float64; refuse the first that is no finite number of 0 or more, by the name of its edge."""
    array = values if isinstance(values, np.ndarray) else np.array([*values, None], dtype=object)[:-1]
    if array.dtype.kind == "O" and all(isinstance(value, int | float) for value in array.tolist()):
        array = np.array([_float(value) for value in array.tolist()])
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        found = values.tolist() if isinstance(values, np.ndarray) else list(values)
        wrong = next((i for i, value in enumerate(found) if not isinstance(value, numbers.Real)), None)
        if wrong is not None:
            cure = "remove the edge, or give it a weight" if found[wrong] is None else "turn the weights into numbers"
            raise TypeError(f"the weight of {edge(wrong)} is {found[wrong]!r}, not a number; {cure}")
        array = np.array([_float(value) for value in found])
    weights = array.astype(np.float64)
    bad = np.flatnonzero(~(weights >= 0) | np.isinf(weights))
    if bad.size:
        first = int(bad[0])
        value = weights[first]
        cure = (
            "weights are similarities, 0 or more: shift or drop negative ones"
            if value < 0
            else "remove the edge, or give it a finite weight"
        )
        raise ValueError(f"the weight of {edge(first)} is {value:g}; {cure}")
    return weights


def _float(value: Any) -> float:
    """Return a number as a float; an integer that is too large for one is infinite, and refused as such."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
