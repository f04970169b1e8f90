"""Side by side: independent pieces of work, such as draws, on threads that each have their share of the cores.

A kernel that is given several threads has to wait for its slowest one again and again; whole draws have not. What a piece
computes must not depend on what runs beside it: it gets random numbers of its own, and results come in the order of the pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from corecut import _core
from corecut._progress import Stages
from corecut._threads import on_threads
from corecut._validation import thread_count

T = TypeVar("T")


def side_by_side(pieces: Sequence[Callable[[int, Stages], T]], *, n_jobs: int | None, stage: Stages) -> list[T]:
    """Return the results of all pieces, each called with its number of threads and with a clock for its stages.

    Where there is one thread, or one piece, they run one after the other on the clock that is given. An error, or Ctrl-C, ends
    all of them.
    """
    threads = thread_count(n_jobs)
    workers = min(threads, len(pieces))
    if workers <= 1:
        return [piece(threads, stage) for piece in pieces]
    flag = _core.StopFlag()

    def work(task: tuple[Callable[[int, Stages], T], Stages]) -> T:
        piece, clock = task
        _core.obey(flag)
        try:
            return piece(threads // workers, clock)
        finally:
            _core.obey(None)

    with stage.shared(len(pieces)) as clocks:
        # Advice that a piece has to give is heard where it would be without threads.
        return on_threads(work, list(zip(pieces, clocks, strict=True)), workers, stop=flag.set)
