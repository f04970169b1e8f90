"""Progress: what a long computation tells its user, and how long each of its stages took.

    with Stages(2, verbose=verbose, description="clustering") as stage:
        with stage("seeds"):
            ...
        with stage("coreset"):
            ...
    stage.timings        # {"seeds": 0.12, "coreset": 0.03}

On a terminal a bar shows the stage that runs; elsewhere (a pipe, a log file, a notebook) each finished stage is one line. All
of it goes to stderr, so that results on stdout stay clean. With verbose=0 nothing is shown and rich is not imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress


class Stages:
    """A clock for the stages of a computation and, when it is verbose, their display.

    Every moment is counted for one stage only: a stage inside another stops the outer one's clock while it runs. So the
    timings add up to the time spent in all stages, and a name used again (a restart, a level) adds to what it has.

    Attributes
    ----------
    timings
        Seconds of each stage, in the order in which the stages were first entered.
    """

    def __init__(self, total: int | None = None, *, verbose: int = 0, description: str = "corecut") -> None:
        """Prepare the clock; `total` is the number of outermost stages to come, None when it is not known."""
        self.timings: dict[str, float] = {}
        self._total = total
        self._verbose = bool(verbose)
        self._description = description
        self._running: list[str] = []
        self._since = 0.0
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        if self._verbose and sys.stderr is not None and sys.stderr.isatty():
            self._bar = _bar(self._description, self._total)
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # Also after an error or Ctrl-C: a bar that is not stopped leaves its thread running and the cursor hidden.
        if self._bar is not None:
            if kind is None:
                self._bar.update(self._bar.task_ids[0], description=self._description)
            self._bar.stop()
            self._bar = None

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the time of the `with` block for the stage `name`."""
        before = self.timings.get(name, 0.0)
        self._tick()
        self._running.append(name)
        self.timings.setdefault(name, 0.0)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=f"{self._description}: {name}")
        try:
            yield
        finally:
            self._tick()
            self._running.pop()
        if self._bar is not None:
            if not self._running:
                self._bar.advance(self._bar.task_ids[0])
        elif self._verbose:
            self.say(f"{self._description}: {name} {self.timings[name] - before:.3f} s")

    def say(self, text: str) -> None:
        """Tell the user one sentence, above the bar where there is one; nothing unless verbose."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        elif self._verbose and sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """Show how far the running stage is, where there is a bar."""
        if self._bar is not None and self._running:
            self._bar.update(self._bar.task_ids[0], description=f"{self._description}: {self._running[-1]} ({text})")

    def _tick(self) -> None:
        """Give the time since the last change to the innermost stage that was running."""
        now = perf_counter()
        if self._running:
            self.timings[self._running[-1]] += now - self._since
        self._since = now


def _bar(description: str, total: int | None) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    bar.add_task(description, total=total)
    return bar
