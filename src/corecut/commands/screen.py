"""What the command line shows: progress and messages on stderr, results on stdout as a table or as JSON."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from shutil import get_terminal_size
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corecut._files import show_size
from corecut._progress import Stages
from corecut.commands.printing import printing
from corecut.edges import EdgeReport, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bars, TaskID

_SECONDS_BETWEEN_LINES = 5.0
_WORTH_A_LINE = 0.1


class Stopped(KeyboardInterrupt):
    """Ctrl-C, with what was kept of the work."""


@dataclass(frozen=True)
class Listing:
    """A table below the results.

    Attributes
    ----------
    title
        What it is about.
    columns
        Heads of its columns, which are numbers.
    rows
        Its cells.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Screen:
    """Where a command's words go.

    Attributes
    ----------
    as_json
        Print the results as one JSON object instead of a table.
    quiet
        Show neither progress nor messages nor the table, only warnings.
    """

    as_json: bool
    quiet: bool

    def say(self, text: str) -> None:
        """Tell the user one sentence."""
        if not self.quiet:
            typer.echo(f"corecut: {text}", err=True)

    def warn(self, text: str) -> None:
        """Tell the user one sentence, also where only warnings are wanted."""
        typer.echo(f"corecut: {text}", err=True)

    def tell_unsaved(self) -> None:
        """Tell the user that the labels are gone when the run is over."""
        self.warn("the labels were not saved; add -o labels.csv (or .tsv, .npy, .parquet) to keep them")

    @contextmanager
    def keeping(self, kept: Callable[[], str]) -> Iterator[None]:
        """Let a Ctrl-C in the `with` block say what was kept; `kept` is asked at that moment."""
        try:
            yield
        except KeyboardInterrupt:
            raise Stopped(kept()) from None

    def show(self, title: str, rows: list[tuple[str, str]], data: dict[str, Any], listings: Sequence[Listing] = ()) -> None:
        """Print a command's results: `rows` and `listings` for people, or `data` for machines."""
        if self.as_json:
            with printing():
                typer.echo(json.dumps(data, default=_plain))
        elif not self.quiet:
            with printing():
                _print_table(title, rows, listings)

    def conclude(self, sentence: str) -> None:
        """Print a result that is one sentence, also where no table is wanted; as JSON it is among the data."""
        if not self.as_json:
            with printing():
                typer.echo(sentence)

    def show_columns(self, title: str, header: list[str], rows: list[list[str]], data: dict[str, Any]) -> None:
        """Print results that have several figures each: `rows` under a header for people, or `data` for machines."""
        if self.as_json or self.quiet:
            self.show(title, [], data)
            return
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title, title_justify="left")
        for name in header:
            table.add_column(name, justify="right")
        for row in rows:
            table.add_row(*row)
        with printing():
            Console(width=None if sys.stdout.isatty() else 120).print(table, markup=False, highlight=False)

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """Give a function that shows how far the work is: bars on a terminal, plain lines elsewhere."""
        if self.quiet:
            yield None
        elif sys.stderr.isatty():
            bars = _bars()
            with bars:
                yield _BarDisplay(bars)
        else:
            yield _LineDisplay()

    @contextmanager
    def waiting(self, stage: str, seconds: float) -> Iterator[None]:
        """Show the progress of work that does not tell how far it is, if it is expected to take longer than a second."""
        with Stages(verbose=not self.quiet and seconds > 1) as stages:
            stages.expect({stage: seconds})
            with stages(stage):
                yield

    def tell(self, report: EdgeReport) -> None:
        """Say what became of the edges that did not enter the graph as they were."""
        facts = {
            "repeated edges merged": report.merged,
            "self-loops kept": report.loops,
            "self-loops dropped": report.loops_dropped,
            "edges of weight 0 dropped": report.zeros,
            "comment lines skipped": report.comments,
        }
        told = [f"{text}: {count:,}" for text, count in facts.items() if count]
        if told:
            self.say("; ".join(told))


def screen(
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor messages nor the table.")] = False,
) -> Screen:
    """Return the screen for the options that every command has."""
    return Screen(as_json, quiet)


def _print_table(title: str, rows: list[tuple[str, str]], listings: Sequence[Listing]) -> None:
    """Print results for people: names and values, and tables below them."""
    typer.echo(title)
    left = 4 + max(len(name) for name, _ in rows)
    # A pipe has no width: long values must not be folded there.
    room = max(get_terminal_size().columns - left, 20) if sys.stdout.isatty() else sys.maxsize
    for name, value in rows:
        for i, line in enumerate(textwrap.wrap(value, room) or [""]):
            typer.echo(f"  {'' if i else name}".ljust(left) + line)
    for listing in listings:
        typer.echo(f"\n{listing.title}")
        table = [listing.columns, *listing.rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(listing.columns))]
        for row in table:
            typer.echo("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _rate(stage: str, per_second: float) -> str:
    return f"{show_size(per_second)}/s" if stage == "reading" else f"{per_second / 1e6:.1f} M edges/s"


class _BarDisplay:
    """A bar for the stage that runs, with the time it will still take."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._stage, self._since = "", 0.0
        self._task: TaskID | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage != self._stage or self._task is None:
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task = self._bars.add_task(stage, total=total, rate="")
            self._stage, self._since = stage, perf_counter()
        passed = perf_counter() - self._since
        self._bars.update(self._task, completed=done, total=total, rate=_rate(stage, done / passed) if passed > 0.5 else "")


class _LineDisplay:
    """A line for every stage that took a moment, and one every few seconds in between."""

    def __init__(self) -> None:
        self._stage = ""
        self._since = self._last = perf_counter()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = perf_counter()
        if stage != self._stage:
            self._stage, self._since, self._last = stage, now, now
        passed = now - self._since
        if done >= total:
            if passed >= _WORTH_A_LINE:
                typer.echo(f"corecut: {stage}: done in {passed:.1f} s", err=True)
            self._stage = ""
        elif now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            left = passed * (total - done) / max(done, 1)
            share = 100 * done // max(total, 1)
            typer.echo(f"corecut: {stage}: {share} %, {_rate(stage, done / passed)}, {left:.0f} s left", err=True)


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,  # what was read is told in the table
    )
