"""Dense products whose results do not depend on the number of threads.

BLAS adds up in an order that depends on how many threads it runs on. It is therefore held to one, and tall products are cut
into blocks of rows at fixed borders, which run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from corecut._typing import AnyArray

# Rows of one matrix product. The borders do not depend on the threads, and neither do the results.
ROWS = 4096


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (it may bring a BLAS of its own, and only libraries that are loaded are found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _SingleThread:
    """Holds BLAS to one thread from the first entry to the last exit.

    The number of threads belongs to the whole process. Each entry on its own would remember what another one has set, and the
    last exit would restore that.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()
                self._limit = None


_single = _SingleThread()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS on one thread: its sums, and with them the labels, would otherwise depend on the number of cores."""
    _single.enter()
    try:
        yield
    finally:
        _single.leave()


def each_block(block: Callable[[int], Any], n_rows: int, threads: int) -> list[Any]:
    """Return block(begin) for the fixed blocks of rows, computed on several threads (matrix products release the GIL)."""
    begins = range(0, n_rows, ROWS)
    if threads == 1 or len(begins) <= 1:
        return [block(begin) for begin in begins]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(block, begins))


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
