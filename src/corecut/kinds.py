"""What kind of thing the data are: surely a graph, a matrix that may be one, or points."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut._typing import AnyArray
from corecut.advice import advise
from corecut.graph import Graph, adapter_of, is_path, is_plain, is_store


def is_surely_graph(X: Any) -> bool:
    """Say whether `X` can be nothing but a graph: it is no table of any kind."""
    if isinstance(X, Graph) or is_store(X) or is_path(X) or is_plain(X):
        return True
    adapter = adapter_of(X)
    return adapter is not None and not (hasattr(adapter, "is_graph") and hasattr(X, "shape"))


def kind_of(X: Any) -> str:
    """Return what `X` is in words, with the library that made it: `Graph` is the name of many things."""
    if is_path(X):
        return "the name of a file"
    kind, library = type(X).__name__, type(X).__module__.partition(".")[0]
    article = "an" if kind[0] in "AEIOUaeiou" else "a"
    return f"{article} {kind}" + ("" if library == "builtins" else f" of {library}")


def looks_like_graph(X: Any) -> bool:
    """Say whether `X` is a graph or a square sparse matrix; warn of anything else that could be a graph, too."""
    if is_surely_graph(X):
        return True
    if sp.issparse(X):
        return len(X.shape) == 2 and X.shape[0] == X.shape[1]
    adapter = adapter_of(X)
    if adapter is not None and adapter.is_graph(X):
        return True
    table = _as_table(X)
    if table is not None and np.allclose(table, table.T):
        kind = "array" if isinstance(X, np.ndarray) else "table"
        advise(
            f'X is a square symmetric {kind} and is taken for points: pass affinity="precomputed" if it is a graph, or '
            'affinity="nearest_neighbors" to say that it is not'
        )
    return False


def _as_table(X: Any) -> AnyArray | None:
    """Return a square array, frame or nested list of more than two rows as an array of numbers; None for anything else."""
    shape = tuple(getattr(X, "shape", ()))
    if isinstance(X, list | tuple) and len(X) > 0 and hasattr(X[0], "__len__"):
        shape = (len(X), len(X[0]))
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] <= 2:
        return None
    try:
        table = np.asarray(X)
    except ValueError:  # rows of different lengths
        return None
    return table if table.dtype.kind in "biuf" and table.shape == shape else None
