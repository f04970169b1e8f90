"""Threads: work on many items at once, of which Ctrl-C can interrupt the caller at any moment.

The standard library's pools wait by `threading.Condition`, which is written in Python: Ctrl-C between two of its instructions
leaves a lock that nobody releases. And a signal that comes just before a thread begins to wait does not wake it. Either leaves
a program that does not end. Here the caller waits in functions written in C, and looks up now and then.
"""

from __future__ import annotations

from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from itertools import repeat
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

# How long the caller waits before it looks up, in seconds.
_LOOK = 0.05


def on_threads(
    work: Callable[[T], R],
    items: Sequence[T],
    threads: int,
    *,
    progress: Callable[[float], None] | None = None,
    stop: Callable[[], None] | None = None,
) -> list[R]:
    """Return work(item) for all items, computed on several threads, each with a copy of the caller's context variables.

    `progress` is told the share of the items that are done. After an error of `work`, which is raised here, or when the caller
    is interrupted, no further item is begun, `stop` is called, and the items that were begun come to their end.
    """
    waiting = deque(enumerate(items))
    outcomes: dict[int, tuple[R | None, BaseException | None]] = {}
    news: SimpleQueue[None] = SimpleQueue()
    started: list[int] = []
    ended: list[None] = []

    def run() -> None:
        try:
            while True:
                i, item = waiting.popleft()
                try:
                    outcomes[i] = work(item), None
                except BaseException as error:
                    outcomes[i] = None, error
                    waiting.clear()
                news.put(None)
        except IndexError:  # nothing waits any more
            ended.append(None)
            news.put(None)

    def wait() -> None:
        with suppress(Empty):
            news.get(timeout=_LOOK)

    contexts: list[Any] = [copy_context().run for _ in range(min(threads, len(items)))]
    results: list[R] = []
    try:
        # In one instruction: no thread is started that is not known.
        started.extend(map(start_new_thread, contexts, repeat((run,))))
        for i in range(len(items)):
            while i not in outcomes:
                wait()
            result, error = outcomes.pop(i)
            if error is not None:
                raise error
            results.append(cast(R, result))
            if progress is not None:
                progress((i + 1) / len(items))
    finally:
        waiting.clear()
        if stop is not None and len(results) < len(items):
            stop()
        late: KeyboardInterrupt | None = None
        while len(ended) < len(started):
            try:
                wait()
            except KeyboardInterrupt as error:  # a program that ends must not leave threads in native code
                late = error
        if late is not None:
            raise late
    return results
