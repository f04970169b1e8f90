"""Progress: what a long computation tells its user, and how long each of its stages took.

    with Stages(2, verbose=verbose, description="clustering") as stage:
        with stage("seeds"):
            ...
        with stage.group("draws"):
            with stage("eigenvectors"):
                ...
    stage.timings        # {"seeds": 0.12, "eigenvectors": 0.03}

On a terminal a bar shows the stage that runs, how far the work is and how long it will go on; elsewhere (a pipe, a log file, a
notebook) each finished stage, or group of stages, is one line. All of it goes to stderr, so that results on stdout stay clean.
With verbose=0 nothing is shown and rich is not imported.

The end of the work is known from `total`, a number of stages that take about as long as each other, or from `expect`: seconds
that stages will take on some machine. The stages that are over tell how much faster or slower this machine is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

# A stage that is over in less is not worth a line.
_WORTH_A_LINE = 0.01
# A stage that takes longer than expected is said to need this share of its time once more.
_OVERDUE = 0.15
# A machine is not believed to be more than this many times faster or slower than the one that was measured.
_SPEED = 5.0
# Off a terminal a stage that is expected to take longer is announced, and one that knows how far it is tells so this often.
_LONG = _SILENCE = 10.0
# A stage tells its end when it has done so much more than when it first said how far it is.
_TELLING = 0.03


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
        self._sharing: float | None = None  # since when pieces of work run at the same time
        self._group: str | None = None
        self._since = 0.0
        self._told = perf_counter()
        self._bar: Progress | None = None
        self._expected: dict[str, float] = {}
        # The stage that says how far it is, with the seconds spent and the share done when it first did.
        self._first = ("", 0.0, 0.0)
        # Seconds of all of the stage that runs, where it knows how far it is.
        self._whole: tuple[str, float] | None = None
        # Seconds expected of, and spent in, the stages that are over; and how many there were.
        self._over = (0.0, 0.0)
        self._count = 0
        self._complete = False
        self._spoke = False

    def __enter__(self) -> Self:
        if self._verbose and sys.stderr is not None and sys.stderr.isatty():
            self._bar = _bar(self)
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # Also after an error or Ctrl-C: a bar that is not stopped leaves its thread running and the cursor hidden.
        if self._bar is not None:
            if kind is None:
                self._complete = True
                self._bar.update(self._bar.task_ids[0], description=self._description)
            self._bar.stop()
            self._bar = None
        elif kind is None and self.timings and not self._spoke:
            self.say(f"{self._description}: done in {sum(self.timings.values()):.3f} s")

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Say how long stages that are still to come will take; what is not named stays as it was."""
        self._expected |= seconds

    def share(self, done: float) -> None:
        """Say how much of the stage that runs is done, between 0 and 1; a stage that knows is believed more than `expect`.

        The time left follows from what was done since the first call: what came before, such as sorting the data, says nothing
        of the work that has shares.
        """
        if not self._verbose or not self._running:
            return
        name = self._running[-1]
        self._tick()
        spent = self.timings[name]
        if self._first[0] != name or done < self._first[2]:
            self._first = name, spent, done
        _, begin, before = self._first
        words = ""
        if done - before >= _TELLING:
            left = (spent - begin) * (1.0 - min(done, 1.0)) / (done - before)
            self._whole = name, spent + left
            words = f", about {show_seconds(left)} left"
        if self._bar is None and self._since - self._told > _SILENCE:
            self._told = self._since
            self.say(f"{self._description}: {name} {done:.0%}{words}")

    @contextmanager
    def group(self, name: str) -> Iterator[None]:
        """Show the stages of the `with` block, which may come again and again, as one; their times stay their own."""
        begin, before = perf_counter(), dict(self.timings)
        self._group = name
        if not self._running and self._bar is None:
            self._announce(name, sum(self._expected.values()))
        try:
            yield
        finally:
            self._group = None
        spent = {part: seconds - before.get(part, 0.0) for part, seconds in self.timings.items()}
        spent = {part: seconds for part, seconds in spent.items() if seconds > 0}
        for part in spent:
            self._finish(part)
        self._count += 1
        parts = ", ".join(f"{part} {seconds:.2f}" for part, seconds in spent.items() if seconds >= _WORTH_A_LINE)
        self._tell(name, perf_counter() - begin, f" ({parts})" if parts else "")

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the time of the `with` block for the stage `name`."""
        before = self.timings.get(name, 0.0)
        outermost = not self._running and self._group is None
        if outermost and self._bar is None:
            self._announce(name, self._expected.get(name, 0.0))
        self._tick()
        self.timings.setdefault(name, 0.0)
        self._running.append(name)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=f"{self._description}: {name}")
        try:
            yield
        finally:
            self._tick()
            self._running.pop()
        if outermost:
            self._finish(name)
            self._count += 1
            self._tell(name, self.timings[name] - before)

    @contextmanager
    def shared(self, count: int) -> Iterator[list[Stages]]:
        """Give silent clocks for pieces of work that run at the same time; what the block takes is shared out as they say."""
        clocks = [Stages() for _ in range(count)]
        self._tick()
        self._sharing = begin = self._since
        try:
            yield clocks
        finally:
            now, self._sharing = perf_counter(), None
            names = dict.fromkeys(name for clock in clocks for name in clock.timings)
            spent = {name: sum(clock.timings.get(name, 0.0) for clock in clocks) for name in names}
            whole = sum(spent.values())
            for name, seconds in spent.items():
                self.timings[name] = self.timings.get(name, 0.0) + (now - begin) * (seconds / whole if whole else 0.0)
            if whole:
                self._since = now

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

    def outlook(self) -> tuple[float, float | None]:
        """Return the seconds spent so far, and those still to come as far as that is known."""
        # A bar asks from a thread of its own: copies first.
        spent, running, expected = dict(self.timings), list(self._running), dict(self._expected)
        if running:
            spent[running[-1]] += perf_counter() - self._since
        done = sum(spent.values())
        if self._complete:
            return done, 0.0
        if self._total:
            return done, done * (self._total - self._count) / self._count if self._count else None
        left, whole = 0.0, self._whole
        if whole is not None and whole[0] in running:
            expected.pop(whole[0], None)
            left = max(whole[1] - spent[whole[0]], 0.0)
        elif not expected:
            return done, None
        for name, seconds in expected.items():
            passed = spent.get(name, 0.0)
            left += max(self._speed * seconds - passed, _OVERDUE * passed if name in running else 0.0)
        if self._sharing is not None:
            passed = perf_counter() - self._sharing
            return done + passed, max(left - passed, _OVERDUE * passed)
        return done, left

    @property
    def _speed(self) -> float:
        """How many times longer than expected the stages took that are over."""
        expected, spent = self._over
        return min(max(spent / expected, 1 / _SPEED), _SPEED) if expected > 0 else 1.0

    def _finish(self, name: str) -> None:
        """Take a stage from those to come; it tells how fast this machine is."""
        expected = self._expected.pop(name, 0.0)
        if expected:
            self._over = (self._over[0] + expected, self._over[1] + self.timings[name])

    def _tell(self, name: str, seconds: float, parts: str = "") -> None:
        """Say that a stage is over, where no bar does."""
        if self._bar is None and seconds >= _WORTH_A_LINE:
            self._spoke = True
            self.say(f"{self._description}: {name} {seconds:.2f} s{parts}")

    def _announce(self, name: str, seconds: float) -> None:
        """Say that a long stage begins, where no bar does."""
        if self._speed * seconds >= _LONG:
            self.say(f"{self._description}: {name}, about {show_seconds(self._speed * seconds)}")

    def _tick(self) -> None:
        """Give the time since the last change to the innermost stage that was running."""
        now = perf_counter()
        if self._running:
            self.timings[self._running[-1]] += now - self._since
        self._since = now


def show_seconds(seconds: float) -> str:
    """Return a time in words, no more exactly than one can know it.

    Examples
    --------
    >>> from corecut._progress import show_seconds
    >>> show_seconds(0.4), show_seconds(47.2), show_seconds(200), show_seconds(9000)
    ('1 s', '47 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _bar(stages: Stages) -> Progress:
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    class Outlook(Progress):
        """A bar that asks the clock how far the work is whenever it is drawn."""

        def get_renderables(self) -> Iterator[RenderableType]:
            spent, left = stages.outlook()
            for task in self.tasks:
                if left is not None:
                    task.total, task.completed = max(spent + left, 1e-9), max(spent, 1e-9)
                task.fields["left"] = f"about {show_seconds(left)} left" if left else ""
            yield from super().get_renderables()

    bar = Outlook(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        console=Console(stderr=True),
    )
    bar.add_task(stages._description, total=None, left="")
    return bar
