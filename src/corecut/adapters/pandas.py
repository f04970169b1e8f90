"""pandas (and polars): tables of edges, and square frames whose index and columns are the same nodes.

A table of edges has columns `source` and `target`, and perhaps `weight`, or one of their usual other names; the rules are
those of edge lists in files (docs/files.md): edges are undirected, repeats of an edge with weights are added up, integer ids
are numbered in increasing order, text in the order of appearance. An adjacency frame keeps its index as names; columns in
another order are put into that of the index.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from corecut._typing import AnyArray, IntArray
from corecut._validation import thread_count
from corecut.adapters import checked_weights, node_names, unique_names
from corecut.advice import advise
from corecut.edges import EdgeRules
from corecut.graph import Check, Graph, NotSymmetricError, Symmetrize, with_names
from corecut.readers.dispatch import graph_of_edges
from corecut.readers.layout import SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES

# Names that features of points may have, too: coordinates, pixels, intervals.
_DOUBTFUL = ("u", "v", "i", "j", "row", "col", "head", "tail", "start", "end")
_MOST_COLUMNS = 4


def is_graph(frame: Any) -> bool:
    """Say whether a frame holds edges, or a matrix of nodes by nodes; warn where it may as well hold points."""
    if len(getattr(frame, "shape", ())) != 2:
        return False
    ends = _end_columns(frame)
    if ends is not None and has_edge_columns(frame):
        return _holds_edges(frame, ends)
    if not _is_square(frame) or frame.shape[0] <= 2 or _unequal(frame) is not None:
        return False
    if _is_numbered(frame):  # then nothing but the values can tell
        values = _numbers(frame[list(frame.index)])
        if not np.allclose(values, values.T) or (values < 0).any():
            return False
    advise(
        'X is a square frame with equal index and columns and is taken for a graph: pass affinity="precomputed" to say that it '
        'is one, or affinity="nearest_neighbors" if its rows are points'
    )
    return True


def _holds_edges(frame: Any, ends: tuple[Any, Any]) -> bool:
    """Say whether the columns that are called like ends of edges are; warn where they may as well be features of points."""
    if not any(str(name).lower() in _DOUBTFUL for name in ends):
        return True
    if frame.shape[1] > _MOST_COLUMNS or any(_values(frame, name)[0].dtype.kind == "f" for name in ends):
        return False
    advise(
        f'X has the columns {ends[0]!r} and {ends[1]!r} and is taken for a table of edges: pass affinity="nearest_neighbors" '
        'if its rows are points, or affinity="precomputed" to say that they are edges'
    )
    return True


def opened(frame: Any, *, symmetrize: Symmetrize, check: Check, n_jobs: int | None) -> Graph:
    """Return the graph of a table of edges, or of an adjacency frame."""
    if len(getattr(frame, "shape", ())) != 2:
        cure = "call collect() first" if hasattr(frame, "collect") else "pass a frame of edges or a square frame"
        raise TypeError(f"a graph cannot be made of a {type(frame).__name__}; {cure}")
    if has_edge_columns(frame):
        if symmetrize is not None:
            raise ValueError(
                f'symmetrize="{symmetrize}" has no meaning for a table of edges: they are undirected, (u, v) and (v, u) are '
                "one; read_graph(frame, duplicates=) says how the weights of both become one"
            )
        return to_graph(frame, n_jobs=n_jobs)
    if _is_square(frame) and (_unequal(frame) is None or all(getattr(kind, "kind", "O") in "biuf" for kind in frame.dtypes)):
        return adjacency_graph(frame, symmetrize=symmetrize, check=check, n_jobs=n_jobs)
    raise ValueError(
        f"a frame of shape {frame.shape} with the columns {_shown(frame)} is no graph: a table of edges has columns source, "
        "target and perhaps weight, or pass read_graph(frame, columns=(source, target, weight)); an adjacency frame is one of "
        "pandas, square with equal index and columns"
    )


def to_graph(
    frame: Any,
    *,
    columns: tuple[Any, ...] | None = None,
    weights: bool = True,
    rules: EdgeRules | None = None,
    n_jobs: int | None = None,
) -> Graph:
    """Return a table of edges as a :class:`~corecut.Graph`; `fit`, the metrics and `read_graph` do so by themselves.

    Parameters
    ----------
    frame
        A pandas or polars frame, one row per edge.
    columns
        Source, target and perhaps weight: names of columns, or their numbers from 0 where no column has that name. None takes
        the columns that are called source, target and weight, or like it.
    weights
        False ignores weights: every edge weighs 1.
    rules
        What to do with repeats and self-loops.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import pandas as pd
    >>> from corecut.adapters.pandas import to_graph
    >>> friends = pd.DataFrame({"who": ["anna", "bert"], "whom": ["bert", "carla"], "letters": [2, 5]})
    >>> graph = to_graph(friends, columns=("who", "whom", "letters"))
    >>> graph.node_ids.tolist(), graph.degrees.tolist()
    (['anna', 'bert', 'carla'], [2.0, 7.0, 5.0])
    """
    chosen = _chosen(frame, columns)
    if frame.shape[0] == 0:
        raise ValueError("the table of edges is empty: it has 0 rows")
    ends = [_ids(frame, name) for name in chosen[:2]]
    if ends[0].dtype != ends[1].dtype:
        raise TypeError(
            f"the column {chosen[0]!r} and the column {chosen[1]!r} name nodes in two ways, by integers and by text; turn both "
            "into text with frame.astype(str)"
        )
    source, target, names = _numbered(ends[0], ends[1])
    weight = None
    if weights and len(chosen) > 2:
        values, missing = _values(frame, chosen[2])
        _refuse_gaps(frame, chosen[2], missing, "weight")
        if values.dtype.kind in "mM":
            raise TypeError(
                f"the column {chosen[2]!r} holds times, which are no weights; turn them into numbers of 0 or more, or leave "
                "weights out with read_graph(frame, weights=False)"
            )
        weight = checked_weights(values, lambda i: f"row {_row(frame, i)} (column {chosen[2]!r})")
    return graph_of_edges(
        source,
        target,
        weight,
        rules=rules or EdgeRules(),
        n_nodes=None if names is None else len(names),
        node_ids=names,
        threads=thread_count(n_jobs),
    )


def adjacency_graph(frame: Any, *, symmetrize: Symmetrize = None, check: Check = "sample", n_jobs: int | None = None) -> Graph:
    """Return a square frame with equal index and columns as a :class:`~corecut.Graph` whose nodes have the index's names.

    Parameters
    ----------
    frame
        A pandas frame, dense or sparse.
    symmetrize, check, n_jobs
        As in :meth:`Graph.from_matrix`.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import pandas as pd
    >>> from corecut.adapters.pandas import adjacency_graph
    >>> frame = pd.DataFrame([[0, 2], [2, 0]], index=["a", "b"], columns=["a", "b"])
    >>> adjacency_graph(frame).node_ids.tolist()
    ['a', 'b']
    """
    if not _is_square(frame):
        raise ValueError(f"an adjacency frame is square, its rows and columns are the same nodes; got shape {frame.shape}")
    stranger = _unequal(frame)
    if stranger is not None:
        raise ValueError(
            f"the frame's index and columns are not the same nodes: {stranger}; if rows and columns are meant to be the same "
            "in this order pass frame.set_axis(frame.columns, axis=0), or pass frame.to_numpy() for a graph without names"
        )
    names = list(frame.index)
    if list(frame.columns) != names:
        frame = frame[names]
    ids = unique_names(names, "the frame's index")
    matrix = _numbers(frame)
    gaps = np.argwhere(np.isnan(matrix.data if hasattr(matrix, "tocoo") else matrix))
    if gaps.size:
        where = "" if hasattr(matrix, "tocoo") else f" in row {names[gaps[0][0]]!r}, column {names[gaps[0][1]]!r}"
        raise ValueError(f"the frame has no value (NaN){where}; pass frame.fillna(0) if that means no edge")
    try:
        return with_names(Graph.from_matrix(matrix, symmetrize=symmetrize, check=check, n_jobs=n_jobs), ids)
    except NotSymmetricError as error:
        raise NotSymmetricError(str(error).replace("the graph is", "the frame, its rows numbered from 0, is")) from None


def has_edge_columns(frame: Any) -> bool:
    """Whether columns are called like the ends of edges, and the frame is no adjacency matrix of nodes of such names."""
    if len(getattr(frame, "shape", ())) != 2 or _end_columns(frame) is None:
        return False
    return not (_is_square(frame) and _unequal(frame) is None)


def labels_of(labels: AnyArray, names: AnyArray | None) -> Any:
    """Return the labels as a pandas Series called "label", with the nodes' names as its index."""
    import pandas as pd

    index = pd.RangeIndex(labels.size) if names is None else pd.Index(names.tolist(), tupleize_cols=False)
    return pd.Series(labels, index=index.rename("node"), name="label")


def check_features(frame: Any) -> None:
    """Refuse a frame of points with a column of text, and say what to do if it is one of edges."""
    if len(getattr(frame, "shape", ())) != 2:
        return
    for name in frame.columns:
        column = frame[name]
        if len(column.shape) != 1 or (hasattr(column.dtype, "kind") and column.dtype.kind in "biufc"):
            continue
        value = next((value for value in column.to_numpy()[:1000].tolist() if isinstance(value, str)), None)
        if value is not None:
            raise ValueError(
                f"the column {name!r} holds text ({value!r}), and the rows are taken for points; "
                "drop the column, or, if the rows are edges, pass read_graph(frame, columns=(source, target, weight))"
            )


def row_names(frame: Any) -> AnyArray | None:
    """Return the index of a frame of points as their names; None where it is 0 .. n - 1, or does not tell rows apart."""
    index = getattr(frame, "index", None)
    if index is None or callable(index) or not hasattr(index, "is_unique"):
        return None
    if not index.is_unique:
        twice = index[index.duplicated()].tolist()[0]
        advise(
            f"more than one row of the frame has the name {twice!r} in its index, so that points are numbered and have no "
            "names here; give every row a name of its own for labels by name, or number them with frame.reset_index(drop=True)"
        )
        return None
    return node_names(list(index))


def columns_of_nodes(frame: Any, names: AnyArray | None) -> Any:
    """Return a frame of similarities with its columns in the order of the fitted nodes, where it calls them by their names.

    Columns without names of their own, numbered or as polars calls them, are in that order already. Where all columns are text,
    as those of polars always are, a node is known by its name as text.
    """
    if len(getattr(frame, "shape", ())) != 2:
        return frame
    columns = list(frame.columns)
    nodes: list[Any] = list(range(len(columns))) if names is None else names.tolist()
    unnamed: list[Any] = list(range(len(columns))) if hasattr(frame, "index") else [f"column_{i}" for i in range(len(columns))]
    if all(isinstance(name, str) for name in columns):
        nodes = unnamed if names is None and set(columns) == set(unnamed) else [str(name) for name in nodes]
    if columns == nodes or len(columns) != len(nodes):
        return frame
    if set(columns) == set(nodes) and len(set(nodes)) == len(nodes):
        return frame[nodes]
    if names is None or columns == unnamed:
        return frame
    known = set(columns)
    missing = next((name for name in nodes if name not in known), None)
    # All may be there where two nodes, 1 and "1", have one text.
    what = f"{missing!r} is not among them" if missing is not None else "as text two nodes have one name"
    raise ValueError(
        f"the frame's columns are not the fitted nodes: {what}; name the columns as the nodes are, or "
        "pass frame.to_numpy() if they are in the nodes' order"
    )


def _is_square(frame: Any) -> bool:
    """Whether a frame may be an adjacency matrix: one of polars has no names for its rows."""
    return bool(hasattr(frame, "index") and frame.shape[0] == frame.shape[1])


def _is_numbered(frame: Any) -> bool:
    """Whether rows and columns have no names but their numbers."""
    return list(frame.index) == list(range(len(frame.index)))


def _unequal(frame: Any) -> str | None:
    """Say how the index of a square frame differs from its columns; None where it does not."""
    index, columns = list(frame.index), list(frame.columns)
    if index == columns:
        return None
    rows, above = set(index), set(columns)
    if rows == above and len(rows) == len(index) == len(columns):
        return None
    for name in index:
        if name not in above:
            return f"{name!r} is in the index and not in the columns"
    return next((f"{name!r} is in the columns and not in the index" for name in columns if name not in rows), "a name is twice")


def _numbers(frame: Any) -> Any:
    """Return the values of a frame as a matrix of numbers, sparse where the frame is."""
    if hasattr(frame, "sparse") and all(type(kind).__name__ == "SparseDtype" for kind in frame.dtypes):
        return frame.sparse.to_coo()
    times = next(
        (name for name, kind in zip(frame.columns, frame.dtypes, strict=True) if getattr(kind, "kind", "") in "mM"), None
    )
    if times is not None:  # NumPy would take them for numbers
        raise TypeError(
            f"the column {times!r} of the frame holds times, which are no weights; pass a frame of numbers, one row and column "
            "per node"
        )
    try:
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError):
        raise TypeError(
            "the frame holds values that are no numbers; pass a frame of numbers, one row and column per node"
        ) from None


def _end_columns(frame: Any) -> tuple[Any, Any] | None:
    """Return the columns that are called like the ends of an edge."""
    found = [
        next(
            (name for known in kind for name in frame.columns if isinstance(name, str) and name.strip().lower() == known), None
        )
        for kind in (SOURCE_NAMES, TARGET_NAMES)
    ]
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def _chosen(frame: Any, columns: tuple[Any, ...] | None) -> list[Any]:
    """Return the names of the columns of sources, targets and perhaps weights."""
    names = list(frame.columns)
    if columns is None:
        ends = _end_columns(frame)
        if ends is None:
            raise ValueError(
                f"the frame has no columns source and target, but {_shown(frame)}; name them: "
                "read_graph(frame, columns=(source, target, weight))"
            )
        weight = next((name for known in WEIGHT_NAMES for name in names if str(name).strip().lower() == known), None)
        return [*ends, *([] if weight is None or weight in ends else [weight])]
    if len(columns) not in (2, 3):
        raise ValueError(f"columns must name source, target and perhaps weight, got {columns!r}")
    chosen = []
    for column in columns:
        if column in names:
            chosen.append(column)
        elif isinstance(column, int | np.integer) and 0 <= column < len(names):
            chosen.append(names[int(column)])
        else:
            raise ValueError(f"the frame has no column {column!r}; it has {_shown(frame)}")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"columns must name source, target and perhaps weight, each another one, got {columns!r}")
    return chosen


def _shown(frame: Any) -> str:
    names = [repr(name) for name in frame.columns]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} others" if len(names) > 8 else "")


def _values(frame: Any, name: Any) -> tuple[AnyArray, AnyArray]:
    """Return a column's values, and where it has none."""
    column = frame[name]
    if len(column.shape) != 1:
        raise ValueError(f"the frame has more than one column {name!r}; rename or drop one")
    missing = np.asarray(column.isna() if hasattr(column, "isna") else column.is_null(), dtype=bool)
    values = np.asarray(column.to_numpy())
    if values.dtype.kind == "f":
        missing = missing | np.isnan(values)
    return values, missing


def _row(frame: Any, i: int) -> str:
    """Return the name of a row as people write it: NumPy's numbers show their type."""
    name = frame.index[i] if hasattr(frame, "index") else i
    return repr(name.item() if isinstance(name, np.generic) else name)


def _refuse_gaps(frame: Any, name: Any, missing: AnyArray, what: str) -> None:
    if missing.any():
        first, count = int(np.flatnonzero(missing)[0]), int(np.count_nonzero(missing))
        cure = f"frame.dropna(subset=[{name!r}])" if hasattr(frame, "index") else f"frame.drop_nulls({name!r})"
        others = f", and {count - 1:,} more rows have none" if count > 1 else ""
        raise ValueError(f"row {_row(frame, first)} of the table of edges has no {what} (column {name!r}){others}; pass {cure}")


def _ids(frame: Any, name: Any) -> AnyArray:
    """Return a column of ids as int64, or as an array of text."""
    values, missing = _values(frame, name)
    _refuse_gaps(frame, name, missing, "node")
    if values.dtype.kind == "u" and values.size and int(values.max()) >= 2**63:
        raise ValueError(
            f"an id in column {name!r} does not fit in 64 bits with a sign; turn the ids into text with astype(str)"
        )
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    if values.dtype.kind in "mM":
        raise TypeError(
            f"the column {name!r} holds times, which are no ids; turn them into text with frame.astype({{{name!r}: str}})"
        )
    if values.dtype.kind == "f":
        # Integers become floats where a row was missing once.
        broken = np.flatnonzero((values != np.floor(values)) | (np.abs(values) >= 2**53))
        if broken.size == 0:
            return values.astype(np.int64)
        raise TypeError(f"the column {name!r} holds {values[broken[0]]:g}, which is no node's id; ids are integers or text")
    found = values.tolist()
    if all(isinstance(value, str) for value in found):
        return np.array([*found, None], dtype=object)[:-1]
    whole = all(isinstance(value, numbers.Integral) and not isinstance(value, bool) for value in found)
    if whole and all(-(2**63) <= int(value) < 2**63 for value in found):
        return np.array([int(value) for value in found], dtype=np.int64)
    wrong = next((value for value in found if not isinstance(value, str)), found[0])
    raise TypeError(
        f"the column {name!r} holds {wrong!r}, a {type(wrong).__name__}; ids are all integers or all text: turn them into text "
        f"with frame.astype({{{name!r}: str}})"
    )


def _numbered(source: AnyArray, target: AnyArray) -> tuple[IntArray, IntArray, AnyArray | None]:
    """Return both ends as node numbers, and the nodes' names: integers in increasing order, text in the order of appearance."""
    both = np.stack([source, target], axis=1).ravel()
    if both.dtype.kind == "i":
        ids, codes = np.unique(both, return_inverse=True)
        names = None if ids[0] == 0 and ids[-1] == ids.size - 1 else ids
    else:
        number: dict[str, int] = {}
        codes = np.array([number.setdefault(name, len(number)) for name in both.tolist()], dtype=np.int64)
        names = np.array([*number, None], dtype=object)[:-1]
    ends = codes.astype(np.int64).reshape(-1, 2)
    return ends[:, 0], ends[:, 1], names
