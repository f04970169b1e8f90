"""Checks of plain arguments, shared by all stages: one clear sentence, naming the argument and the cure."""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np

from corecut._typing import AnyArray, FloatArray, IntArray, LabelArray

_MOST_THREADS = 1024
# Labels may have gaps, and clusters may be empty: up to so many labels for every node, and so many empty clusters in any case.
_MOST_GAPS, _MOST_EMPTY = 64, 1 << 20


def check_count(value: Any, name: str, *, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as an int within bounds."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}")
    number = int(value)
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {number}")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {number}")
    return number


def check_real(value: Any, name: str, *, minimum: float = 0.0, exclusive: bool = False) -> float:
    """Return `value` as a finite float that is at least (or above) `minimum`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large a number") from None
    if not np.isfinite(number) or number < minimum or (exclusive and number == minimum):
        raise ValueError(f"{name} must be a finite number {'above' if exclusive else 'not below'} {minimum:g}, got {value}")
    return number


def check_option(value: Any, name: str, options: tuple[Any, ...]) -> Any:
    """Return `value` if it is one of `options`."""
    if not any(value is option or (type(value) is type(option) and value == option) for option in options):
        raise ValueError(f"{name} must be one of {', '.join(repr(o) for o in options)}; got {value!r}")
    return value


def check_n_clusters(n_clusters: Any, n_nodes: int) -> int:
    """Return the number of clusters, between 1 and the number of nodes."""
    k = check_count(n_clusters, "n_clusters")
    if k > n_nodes:
        raise ValueError(
            f"n_clusters={k} is more than n_samples={n_nodes}: ask for at most as many clusters as there are nodes"
        )
    return k


def check_labels(labels: Any, n_nodes: int, *, name: str = "labels", n_clusters: int | None = None) -> tuple[LabelArray, int]:
    """Return labels as int32 in 0..k-1 with k, which is `n_clusters` or the largest label plus one."""
    array = np.asarray(labels)
    if array.ndim != 1 or array.shape[0] != n_nodes:
        raise ValueError(f"{name} must be one label per node: expected shape ({n_nodes},), got {array.shape}")
    if array.dtype.kind not in "iub":
        raise TypeError(f"{name} must be integers 0..k-1, got dtype {array.dtype}")
    if array.size == 0:
        return array.astype(np.int32), n_clusters or 0
    low, high = int(array.min()), int(array.max())
    if low < 0:
        raise ValueError(f"{name} must not be negative, got {low} at node {int(array.argmin())}")
    if high >= max(n_nodes, 1) * _MOST_GAPS or high >= 2**31 - 1:
        raise ValueError(f"{name} must be numbered 0..k-1 without large gaps, got {high} for {n_nodes} nodes")
    if n_clusters is not None and check_count(n_clusters, "n_clusters") <= high:
        raise ValueError(f"n_clusters={n_clusters} is below the largest label plus one, {high + 1}")
    if n_clusters is not None and n_clusters > max(n_nodes * _MOST_GAPS, _MOST_EMPTY):
        raise ValueError(
            f"n_clusters={n_clusters} is far more than {n_nodes} nodes can fill: ask for at most one for each node"
        )
    return np.ascontiguousarray(array, dtype=np.int32), high + 1 if n_clusters is None else n_clusters


def compact_labels(labels: Any, n_nodes: int, *, name: str = "labels", n_clusters: int | None = None) -> tuple[LabelArray, int]:
    """Return any labels as int32 in 0..k-1 with k, the number of distinct ones.

    Integers of any size, whole floats, text and categories are numbered in sorted order. With `n_clusters` the labels are
    the numbers 0..n_clusters-1, of which some may not occur.
    """
    if n_clusters is not None:
        return check_labels(labels, n_nodes, name=name, n_clusters=n_clusters)
    array = np.asarray(labels)
    if array.ndim != 1 or array.shape[0] != n_nodes:
        raise ValueError(f"{name} must be one label per node: expected shape ({n_nodes},), got {array.shape}")
    if array.dtype.kind == "O":
        array = _plain_labels(array, name)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all() or (array != np.floor(array)).any():
            raise ValueError(f"{name} must be whole numbers or text without gaps, got {array[array != np.floor(array)][0]}")
    elif array.dtype.kind not in "iubUST":
        raise TypeError(f"{name} must be integers, text or categories, got dtype {array.dtype}")
    if array.dtype.kind in "if" and array.size and array.min() < 0:
        raise ValueError(
            f"{name} must not be negative, got {array.min():g} at node {int(array.argmin())}: a negative label means none; "
            "leave such nodes out, or give them a label"
        )
    kinds, numbers = np.unique(array, return_inverse=True)
    return np.ascontiguousarray(numbers, dtype=np.int32), kinds.size


def _plain_labels(array: AnyArray, name: str) -> AnyArray:
    """Return labels that are Python objects as numbers or text, whichever they all are."""
    values = array.tolist()
    # Python's, NumPy's and pandas' words for no value; the last one refuses to be compared.
    gaps = ("None", "nan", "NaT", "<NA>")
    missing = next((i for i, value in enumerate(values) if not isinstance(value, str) and str(value) in gaps), None)
    if missing is not None:
        raise ValueError(f"{name} must not have gaps: node {missing} has the label {values[missing]!r}")
    if all(isinstance(value, str) for value in values):
        return np.array(values, dtype=np.str_)
    if all(isinstance(value, numbers.Real) for value in values):
        return np.array(values)
    raise TypeError(f"{name} must be all numbers or all text, got {type(values[0]).__name__} and other types")


def check_weights(weights: Any, n_nodes: int, *, name: str = "weights") -> FloatArray:
    """Return finite non-negative float64 weights, one per node, not all zero."""
    array = np.ascontiguousarray(weights, dtype=np.float64)
    if array.shape != (n_nodes,):
        raise ValueError(f"{name} must be one number per node: expected shape ({n_nodes},), got {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"{name} must be finite and not negative")
    if n_nodes and not array.any():
        raise ValueError(f"{name} must not all be zero")
    return array


def check_nodes(nodes: Any, n_nodes: int, *, name: str) -> IntArray:
    """Return node numbers within range as int64."""
    array = np.asarray(nodes)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name} must be a list of node numbers")
    if array.size and (array.min() < 0 or array.max() >= n_nodes):
        raise ValueError(f"{name} must lie between 0 and {n_nodes - 1}")
    return np.ascontiguousarray(array, dtype=np.int64)


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: None and -1 mean every core this process may use.

    Results never depend on it, so there is no reason to leave cores idle by default.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is not None:
        n_jobs = check_count(n_jobs, "n_jobs", minimum=-(2**31), maximum=max(_MOST_THREADS, cores))
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: give a number of threads, or -1 for all cores")
    if n_jobs is None:
        return cores
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
