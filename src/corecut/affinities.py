"""Affinities: what the estimators take `X` for, and which of their parameters have a meaning for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from corecut.advice import advise
from corecut.graph import Graph, is_path, is_store
from corecut.neighbors import Kernel

Affinity = (
    Literal["auto", "precomputed", "precomputed_nearest_neighbors", "nearest_neighbors", "rbf"] | Kernel | Callable[..., float]
)
_NAMED = (*get_args(get_args(Affinity)[0]), *get_args(Kernel))

# Which affinities a parameter belongs to, and its default: what is set for another one would be ignored.
_SHAPERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "n_neighbors": ("auto", ("nearest_neighbors", "precomputed_nearest_neighbors")),
    "neighbors": ("auto", ("nearest_neighbors",)),
    "gamma": (1.0, ("rbf", "laplacian", "poly", "polynomial", "sigmoid", "chi2")),
    "degree": (3, ("poly", "polynomial")),
    "coef0": (1, ("poly", "polynomial", "sigmoid")),
    "kernel_params": (None, ("a function",)),
    "symmetrize": (None, ("precomputed",)),
    "check": ("sample", ("precomputed",)),
}


def check_affinity(affinity: Any) -> None:
    """Refuse an affinity that is not offered."""
    if not (isinstance(affinity, str) and affinity in _NAMED) and not callable(affinity):
        raise ValueError(
            f'affinity={affinity!r} is not offered: use "auto", "precomputed", "precomputed_nearest_neighbors", '
            '"nearest_neighbors", "rbf", another kernel of scikit-learn ("chi2", "cosine", "laplacian", "linear", "poly", '
            '"sigmoid"), or a function of two points that returns their similarity'
        )


def tell_of_idle(X: Any, affinity: Affinity, parameters: Mapping[str, Any]) -> None:
    """Tell the user of parameters that are set and belong to another affinity."""
    for name, (default, meant_for) in _SHAPERS.items():
        value = parameters[name]
        if value == default:
            continue
        if ("a function" if callable(affinity) else affinity) not in meant_for:
            what = "graph" if affinity == "precomputed" else f"affinity {affinity!r}"
            home = meant_for[0] if meant_for[0] == "a function" else repr(meant_for[0])
            advise(f"{name}={value!r} has no effect on this {what}: it belongs to affinity={home}")
        elif isinstance(X, Graph) or is_store(X) or (is_path(X) and name == "check"):
            advise(f"{name}={value!r} has no effect on a Graph, which was checked when it was made: pass it the matrix's")


def shaping(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that belong to affinities."""
    return {name: getattr(model, name) for name in _SHAPERS}
