"""Dense products whose results do not depend on the number of threads.

BLAS adds up in an order that depends on how many threads it runs on. It is therefore held to one, and tall products are cut
into blocks of rows at fixed borders, which run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from corecut._threads import on_threads
from corecut._typing import AnyArray

# Rows of one matrix product. The borders do not depend on the threads, and neither do the results.
ROWS = 4096


@cache
def _libraries() -> list[Any]:
    """Return the controllers of the BLAS libraries of this process."""
    import scipy.linalg  # noqa: F401  (it may bring a BLAS of its own, and only libraries that are loaded are found)
    from threadpoolctl import ThreadpoolController

    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


class _SingleThread:
    """Holds BLAS to one thread from the first entry to the last exit, whichever threads they come from.

    Most libraries have one number of threads for the whole process. If each entry restored at its exit what it had found, the
    last of several that overlap would restore the 1 of another.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before: list[int] = []

    def enter(self) -> list[int]:
        """Hold BLAS, and return what this thread has found."""
        with self._lock:
            libraries = _libraries()
            found = [library.get_num_threads() for library in libraries]
            if self._inside == 0:
                self._before = found
            self._inside += 1
            for library in libraries:
                _set_threads(library, 1)
        return found

    def leave(self, found: list[int]) -> None:
        """Let BLAS go if nobody else holds it."""
        with self._lock:
            self._inside -= 1
            for library, own, before in zip(_libraries(), found, self._before, strict=True):
                if getattr(library, "threading_layer", None) == "openmp":  # a number for each thread
                    _set_threads(library, own)
                elif self._inside == 0:
                    _set_threads(library, before)


def _set_threads(library: Any, count: int) -> None:
    # Newer versions of threadpoolctl let only one thread set the number, the first that did. That thread may be gone, or not be
    # the last to leave; the lock above is what keeps order here.
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    library.set_num_threads(count)
    if release is not None:
        release(force=True)


_single = _SingleThread()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS on one thread: its sums, and with them the labels, would otherwise depend on the number of cores."""
    found = _single.enter()
    try:
        yield
    finally:
        _single.leave(found)


def each_block(block: Callable[[int], Any], n_rows: int, threads: int) -> list[Any]:
    """Return block(begin) for the fixed blocks of rows, computed on several threads (matrix products release the GIL)."""
    begins = range(0, n_rows, ROWS)
    if threads == 1 or len(begins) <= 1:
        return [block(begin) for begin in begins]
    return on_threads(block, begins, threads)


def gram(x: AnyArray, y: AnyArray, threads: int) -> AnyArray:
    """Return xᵀy of two tall blocks, summed over blocks of rows in their order."""
    parts = each_block(lambda begin: x[begin : begin + ROWS].T @ y[begin : begin + ROWS], len(x), threads)
    total = np.zeros((x.shape[1], y.shape[1]), x.dtype)
    for part in parts:
        total += part
    return total


def times(x: AnyArray, small: AnyArray, threads: int) -> AnyArray:
    """Return a tall block times a small matrix."""
    out = np.empty((len(x), small.shape[1]), x.dtype)

    def block(begin: int) -> None:
        np.matmul(x[begin : begin + ROWS], small, out=out[begin : begin + ROWS])

    each_block(block, len(x), threads)
    return out
