"""Time and peak memory of a call, measured in a child process of its own that inherits everything by fork.

Peak memory is the growth of the child's high-water mark, so that native allocations of every library count, and nothing that
another method left behind. Linux only, for that reason.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import platform
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from math import nan
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from threadpoolctl import threadpool_limits

import corecut

# Threads of a BLAS library spin for a while after their start and after each product. A fork ends them, and the first call that
# sets their number starts them again: on 2 cores they would halve the speed of what comes next, for a tenth of a second. So
# they are started before the race, and it waits until they sleep.
_SETTLE = 0.5


@dataclass(frozen=True)
class Run:
    """What a call returned and what it took, or why it failed."""

    result: Any = None
    seconds: float = nan
    peak_mb: float = nan
    failed: str = ""


def in_child(task: Callable[[Any], Any], *, before: Callable[[], Any] = lambda: None, limit: float = 1e6) -> Run:
    """Measure `task(before())` in a child process. What `before` does (a warm-up, a conversion) is not counted.

    A child that takes more than `limit` seconds in all is killed.
    """
    if not sys.platform.startswith("linux"):
        sys.exit("peak memory is measured through /proc: this benchmark runs on Linux only")
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(sender, task, before))
    child.start()
    sender.close()
    try:
        run = receiver.recv() if receiver.poll(limit) else Run(failed=f"not done in {limit:.0f} s")
    except EOFError:
        run = Run(failed="the process died")
    child.kill()
    child.join()
    assert isinstance(run, Run)
    return run


def _work(connection: Connection, task: Callable[[Any], Any], before: Callable[[], Any]) -> None:
    try:
        prepared = before()
        with threadpool_limits(1):
            sleep(_SETTLE)
        _reset_high_water_mark()
        held = _high_water_mark()
        begin = perf_counter()
        result = task(prepared)
        seconds = perf_counter() - begin
        connection.send(Run(result, seconds, _high_water_mark() - held))
    except BaseException as error:  # a panic of a native peer is no Exception
        traceback.print_exc()
        connection.send(Run(failed=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"))


def _high_water_mark() -> float:
    """Return the largest resident size of this process since the last reset, in megabytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def _reset_high_water_mark() -> None:
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)  # what the allocator keeps in reserve must not hide what the method takes
    Path("/proc/self/clear_refs").write_text("5")


class Clock:
    """Seconds between calls, by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = perf_counter()

    def stop(self, name: str) -> None:
        now = perf_counter()
        self.seconds[name] = now - self._since
        self._since = now


def machine(*packages: str) -> dict[str, Any]:
    """Return what the figures depend on: day, cores, system, and versions of the packages."""
    return {
        "date": date.today().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "corecut": corecut.__version__,
        **{name: version(name) for name in packages},
    }
