"""The nodes' own ids: integers of 64 bits, or text. As text they are kept as UTF-8 bytes, one name after another."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from corecut._typing import AnyArray, IntArray
from corecut.graph import Graph


def checked_ids(node_ids: AnyArray | None) -> AnyArray | None:
    """Return ids as int64, or as an array of str; None stays None. Anything else is refused.

    Examples
    --------
    >>> import numpy as np
    >>> checked_ids(np.array(["a", "b"])).dtype
    dtype('O')
    """
    if node_ids is None:
        return None
    ids = np.asarray(node_ids)
    if ids.dtype.kind in "UT":
        ids = ids.astype(object)
    if ids.dtype.kind == "O":
        if all(isinstance(name, str) for name in ids):
            return ids
        whole = [isinstance(name, int | np.integer) and not isinstance(name, bool) for name in ids]
        if not all(whole):
            other = ids[whole.index(False)]
            raise ValueError(
                f"node ids must be integers, or text throughout, and one is {other!r}; turn them into text with str, as "
                "networkx.relabel_nodes(G, str) does"
            )
        if any(not -(2**63) <= int(name) < 2**63 for name in ids):
            raise ValueError("a node id does not fit in 64 bits; turn the ids into text with str")
    elif ids.dtype.kind not in "iu":
        raise ValueError(f"node ids must be integers or text, got {ids.dtype}; turn them into text with str")
    elif ids.dtype.kind == "u" and ids.size and int(ids.max()) >= 2**63:
        raise ValueError(f"the node id {int(ids.max())} does not fit in 64 bits with a sign; turn the ids into text with str")
    return ids.astype(np.int64)


def labels_by_name(labels: AnyArray, node_ids: AnyArray | None) -> dict[Any, int]:
    """Return the label of every node by its name, or by its number where it has none."""
    return dict(zip(range(labels.size) if node_ids is None else node_ids.tolist(), labels.tolist(), strict=True))


def in_node_order(labels: Any, graph: Graph, *, name: str = "labels") -> Any:
    """Return labels in the order of the graph's nodes, where they come by name; any other labels as they are.

    Taken by name are a mapping from names to labels, a list of sets of nodes (networkx's communities), and a pandas Series
    whose index is the nodes' names in some order. Of a clustering of igraph the membership is taken.
    """
    if hasattr(labels, "membership") and hasattr(labels, "graph"):
        return labels.membership
    if isinstance(labels, Mapping):
        by_name: Mapping[Any, Any] = labels
    elif isinstance(labels, list | tuple) and labels and all(isinstance(part, set | frozenset) for part in labels):
        by_name = {node: number for number, part in enumerate(labels) for node in part}
        if len(by_name) < sum(map(len, labels)):
            raise ValueError(f"{name} must be a partition: some node is in more than one of the {len(labels)} sets")
    elif type(labels).__name__ == "Series" and hasattr(labels, "index") and _names_nodes(labels.index, graph):
        by_name = labels.to_dict()
    else:
        return labels
    names = range(graph.n_nodes) if graph.node_ids is None else graph.node_ids.tolist()
    missing = [node for node in names if node not in by_name]
    if missing:
        raise ValueError(f"{name} has no label for {len(missing):,} of {graph.n_nodes:,} nodes, the first is {missing[0]!r}")
    if len(by_name) > graph.n_nodes:
        known = set(names)
        stranger = next(node for node in by_name if node not in known)
        raise ValueError(f"{name} has a label for {stranger!r}, which is no node of the graph; leave it out")
    found = np.empty(graph.n_nodes, object)
    found[:] = [by_name[node] for node in names]
    return found


def _names_nodes(index: Any, graph: Graph) -> bool:
    """Whether an index of pandas is the nodes' names, in another order than the graph's."""
    names = list(range(graph.n_nodes)) if graph.node_ids is None else graph.node_ids.tolist()
    own = list(index)
    return own != names and len(own) == len(names) and set(own) == set(names)


def first_repeat(ids: AnyArray) -> Any:
    """Return an id that occurs more than once, None where all differ."""
    if ids.dtype.kind == "O":
        seen: set[Any] = set()
        return next((name for name in ids.tolist() if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]
    order = np.sort(ids)
    twice = order[1:][order[1:] == order[:-1]]
    return int(twice[0]) if twice.size else None


def numbers_of(ids: AnyArray, node_ids: AnyArray | None, n_nodes: int) -> IntArray:
    """Return the number of the node that each id belongs to, -1 where none has it; numbers and text are compared as text.

    Examples
    --------
    >>> import numpy as np
    >>> numbers_of(np.array([7, 5, 6]), np.array([5, 7]), 2)
    array([ 1,  0, -1])
    """
    known = np.arange(n_nodes) if node_ids is None else np.asarray(node_ids)
    if known.dtype.kind == "O" or ids.dtype.kind == "O":
        number_of = {str(node): number for number, node in enumerate(known.tolist())}
        return np.fromiter((number_of.get(str(node), -1) for node in ids.tolist()), np.int64, ids.size)
    order = np.argsort(known, kind="stable")
    places = np.minimum(np.searchsorted(known, ids, sorter=order), n_nodes - 1)
    numbers = order[places]
    return np.where(known[numbers] == ids, numbers, -1)


def packed_names(names: list[str]) -> tuple[bytes, IntArray]:
    """Return the UTF-8 bytes of all names, and the places where each begins and ends."""
    try:
        packed = [name.encode() for name in names]
    except UnicodeEncodeError:
        bad = next(name for name in names if any("\ud800" <= letter <= "\udfff" for letter in name))
        raise ValueError(f"the node id {bad!r} is no text that can be written: it holds half of a letter") from None
    return b"".join(packed), np.cumsum([0, *map(len, packed)], dtype=np.int64)


def names_array(text: bytes, offsets: IntArray) -> AnyArray:
    """Return names as an array of objects, from what `packed_names` gave."""
    names = np.empty(offsets.size - 1, object)
    if text.isascii():  # a place among the bytes is one among the letters
        letters = text.decode("ascii")
        names[:] = [letters[a:b] for a, b in pairwise(offsets.tolist())]
    else:
        names[:] = [text[a:b].decode() for a, b in pairwise(offsets.tolist())]
    return names
