"""Advice: warnings that point at the user's own line, whatever module of the package found the reason for them.

What there is to say about a clustering, with its cure, is all here.

A fixed `stacklevel` names a line inside the package as soon as a function is called from another depth, and Python then
shows a repeated warning once for all calls. The line to show is the first one outside the package.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar, cast

import numpy as np

from corecut._typing import LabelArray

# A bound is dear where the cut would be lower by this factor without it.
_DEAR = 1.5
_PACKAGE = Path(__file__).parent.as_posix() + "/"

_Fit = TypeVar("_Fit", bound=Callable[..., Any])

_LISTENERS: ContextVar[tuple[list[str], ...]] = ContextVar("listeners", default=())


@contextmanager
def listening() -> Iterator[list[str]]:
    """Give a list that every advice of the block joins, once each, whatever filters show of it: a report repeats it."""
    heard: list[str] = []
    token = _LISTENERS.set((*_LISTENERS.get(), heard))
    try:
        yield heard
    finally:
        _LISTENERS.reset(token)


def remembered(fit: _Fit) -> _Fit:
    """Let a model keep what its `fit` had to advise, as `advice_`."""

    @wraps(fit)
    def remembering(self: Any, X: Any, y: Any = None) -> Any:
        with listening() as heard:
            fit(self, X, y)
        self.advice_ = heard
        return self

    return cast(_Fit, remembering)


def advise(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the code that called into the package.

    Parameters
    ----------
    message
        What is wrong, and what to set so that it is not.
    category
        Class of the warning.
    """
    for heard in _LISTENERS.get():
        if message not in heard:
            heard.append(message)
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and Path(frame.f_code.co_filename).as_posix().startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def of_components(n_parts: int, share: float, n_clusters: int) -> None:
    """Tell that the graph is not connected."""
    if n_parts > 1:
        most = "more than 99%" if share > 0.99 else f"{share:.0%}"  # never all of them
        advise(
            f"the graph is not fully connected: it falls into {n_parts:,} parts without an edge between them, the largest with "
            f"{most} of the nodes that have edges, and was asked for {n_clusters} clusters; parts cost no cut: take the "
            "largest one, or connect them (more neighbours), if that is not meant"
        )


def of_thin_coreset(size: int, induced: float, needed: int) -> None:
    """Tell that a coreset that was asked for keeps too few edges."""
    advise(
        f"a coreset of {size:,} nodes keeps only about {induced:.1f} entries per node and its graph will fall into "
        f"pieces; set aggregate=True, or coreset_size={needed:,} or more"
    )


def of_shift(n_clipped: int, needed: float) -> None:
    """Tell that squared distances were negative under a shift that the user chose."""
    advise(
        f"{n_clipped:,} squared distances were negative and were set to 0: the kernel is not positive semi-definite; "
        f'shift={needed:.3g} or shift="auto" would mend those'
    )


def of_untouched(n_untouched: int, n_nodes: int, *, aggregated: bool) -> None:
    """Tell that the coreset has no contact with many nodes."""
    if n_untouched > 0.1 * n_nodes:
        cure = "a larger coreset_size" if aggregated else "aggregate=True or a larger coreset_size"
        advise(f"{n_untouched:,} of {n_nodes:,} nodes have no neighbour in the coreset and were labelled blindly; set {cure}")


def of_filled(n_filled: int, n_clusters: int) -> None:
    """Tell of clusters that attracted no node."""
    if n_filled:
        advise(
            f"{n_filled} of {n_clusters} clusters attracted no node and got a single one; "
            "a larger coreset_size or fewer clusters would help"
        )


def of_giant(labels: LabelArray, n_clusters: int, *, refined: bool, aggregated: bool) -> None:
    """Tell that one cluster holds most nodes though there were enough clusters to share them."""
    largest = np.bincount(labels).max() / labels.size
    if n_clusters >= 4 and largest > 0.75:
        cure = "a larger balance=" if refined else "refine=True" if aggregated else "aggregate=True and refine=True"
        advise(f"one cluster holds {largest:.0%} of the nodes; try {cure}, or max_cluster_size=")


def of_cost(asked: str, cut: float, free: float) -> None:
    """Tell that a bound on sizes, or a balance, that was asked for costs much cut."""
    if cut > _DEAR * free:
        advise(
            f"{asked} costs cut: the normalised cut is {cut:.3g}, and single moves alone would bring it to {free:.3g} without; "
            "allow more, or leave it out, if clusters need not be so alike"
        )


def of_strangers(n_strangers: int, n_rows: int) -> None:
    """Tell that new rows have no fitted neighbour."""
    if n_strangers:
        advise(
            f"{n_strangers:,} of {n_rows:,} rows have no weight to any fitted node: they are given the cluster of largest "
            "volume, with confidence 0; fit again with these nodes if they matter"
        )
