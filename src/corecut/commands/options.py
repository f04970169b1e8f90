"""Options that several commands share, declared once.

A provider is a function whose parameters are options and whose result is one object. `shared` gives a command the options of
its providers in addition to its own, and calls it with their results.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from corecut._files import EndingError, GraphFileError, parse_size, physical_memory, show_size, temporary_folder
from corecut.commands.screen import Screen
from corecut.edges import EdgeReport, EdgeRules
from corecut.graph import Graph
from corecut.readers.dispatch import convert_graph, load_graph, memory_needed
from corecut.readers.layout import EdgeOptions
from corecut.readers.points import Points, read_points

_PANEL = "Reading the graph"

_TYPED: ContextVar[str | None] = ContextVar("typed", default=None)


def shared(**providers: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of `providers`; each result becomes the argument of the provider's name."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True)
        parameters = [p for p in own.parameters.values() if p.name not in providers]
        taken = {name: inspect.signature(provider, eval_str=True).parameters for name, provider in providers.items()}
        parameters += [p for options in taken.values() for p in options.values()]

        @wraps(command)
        def run(**values: Any) -> None:
            made = {name: providers[name](**{p: values.pop(p) for p in options}) for name, options in taken.items()}
            try:
                command(**values, **made)
            except EndingError as error:  # of a name that was typed
                raise typer.BadParameter(str(error)) from None

        del run.__wrapped__
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


def typed_command() -> str | None:
    """Return the command line as it was typed, None outside of one."""
    return _TYPED.get()


def remember_command(arguments: list[str]) -> None:
    """Keep the command line: a report says how to repeat the run."""
    _TYPED.set(shlex.join(["corecut", *arguments]))


def size_option(text: str | None) -> str | None:
    """Check an option that is a size."""
    try:
        if text is not None:
            parse_size(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return text


def clusters_option(text: str) -> int | str:
    """Return a number of clusters: a count, "auto" or a range like 5..200."""
    from corecut.selection import MOST_CLUSTERS, asked_range

    if text.strip().isdecimal() and int(text) >= 1:
        return int(text)
    try:
        asked_range(text)
    except ValueError:
        rule = f"a whole number of 1 or more, auto, or a range A..B like 5..200, with A at most B and B at most {MOST_CLUSTERS}"
        raise typer.BadParameter(f"{text!r} is not a number of clusters: give {rule}") from None
    return text


class _Format(StrEnum):
    EDGELIST = "edgelist"
    MATRIX_MARKET = "matrix_market"
    METIS = "metis"
    GRAPHML = "graphml"
    GML = "gml"
    NPZ = "npz"
    PARQUET = "parquet"
    STORE = "store"


class _Ids(StrEnum):
    INTEGER = "integer"
    TEXT = "text"


class _Duplicates(StrEnum):
    AUTO = "auto"
    SUM = "sum"
    MAX = "max"
    UNIT = "unit"


class _Symmetrize(StrEnum):
    MEAN = "mean"
    MAX = "max"
    MIN = "min"


@dataclass(frozen=True)
class Reading:
    """How to read a graph.

    Attributes
    ----------
    arguments
        What `load_graph` and `convert_graph` take.
    memory
        Bytes to stay within, None for half of the machine's memory.
    """

    arguments: dict[str, Any]
    memory: str | None

    @property
    def bound(self) -> int:
        """Bytes to stay within."""
        return parse_size(self.memory) if self.memory else (physical_memory() or 4 * 10**9) // 2

    def check_points(self, points: bool, features: str | None) -> None:
        """Refuse what says how to read edges, where the file is a table of points, and the other way round."""
        if not points:
            if features is not None:
                raise typer.BadParameter("it names columns of points; add --points", param_hint="--features")
            return
        option = self.about_edges()
        if option is not None:
            cure = "; --features chooses columns of points" if option == "--columns" else ""
            raise typer.BadParameter(f"it is about edges, and --points are none{cure}", param_hint=option)

    def about_edges(self) -> str | None:
        """Return an option that was typed and says how to read edges, and edges alone."""
        options: EdgeOptions = self.arguments["options"]
        typed = {
            "--format": self.arguments["format"] is not None,
            "--columns": options.columns is not None,
            "--no-weights": not options.weights,
            "--ids": options.ids is not None,
            "--keep-ids": not self.arguments["compact"],
            "--duplicates": self.arguments["rules"].duplicates != "auto",
            "--drop-loops": self.arguments["rules"].loops != "keep",
            "--symmetrize": self.arguments["symmetrize"] is not None,
            "--memory": self.memory is not None,
        }
        return next((option for option, given in typed.items() if given), None)

    def points(self, path: Path, features: str | None, *, fitted: Sequence[str] | None = None, least: int = 1) -> Points:
        """Return the points of a file; `features` are names or numbers of columns, parted by commas, `fitted` a model's.

        Fewer points than `least` are refused.
        """
        options: EdgeOptions = self.arguments["options"]
        wanted = None
        if features is not None:
            wanted = [int(part) if part.strip().isdigit() else part.strip() for part in features.split(",")]
        found = read_points(
            path,
            features=wanted,
            fitted=fitted,
            delimiter=options.delimiter,
            header=options.header,
            comments=options.comments,
        )
        count = len(found.values)
        if count < least:
            cure = "; if its first line is a point, too, add --no-header" if found.named and options.header is None else ""
            raise GraphFileError(
                f"{path}: holds {count} point{'' if count == 1 else 's'}, and clusters are made of {least} or more: give a "
                f"file with a row for every point{cure}"
            )
        return found

    @contextmanager
    def load(self, path: Path, screen: Screen, jobs: int | None = None) -> Iterator[tuple[Graph, EdgeReport]]:
        """Give the graph of a file and what was merged; one that would not fit in memory is mapped from a temporary store."""
        with ExitStack() as stack:
            needed = memory_needed(path, self.arguments["format"])
            with screen.progress() as progress:
                if needed <= self.bound:
                    graph, report = load_graph(path, **self.arguments, n_jobs=jobs, progress=progress)
                else:
                    screen.say(f"the graph may take {show_size(needed)} of memory and is put into a temporary store on disk")
                    folder = stack.enter_context(temporary_folder())
                    place = folder / "graph.store"
                    made, report = convert_graph(
                        path, place, memory=self.bound, n_jobs=jobs, progress=progress, **self.arguments
                    )
                    graph = made.graph
            screen.tell(report)
            yield graph, report


def reading(
    *,
    format: Annotated[
        _Format | None, typer.Option(help="Format; found by content and name by default.", rich_help_panel=_PANEL)
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(help="Column delimiter of an edge list; '' for any blanks, '\\t' for a tab.", rich_help_panel=_PANEL),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line names the columns.", rich_help_panel=_PANEL),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns SOURCE,TARGET[,WEIGHT] by name, or by number from 0.", rich_help_panel=_PANEL),
    ] = None,
    weights: Annotated[
        bool, typer.Option("--weights/--no-weights", help="Use the weight column.", rich_help_panel=_PANEL)
    ] = True,
    ids: Annotated[_Ids | None, typer.Option(help="What node ids are.", rich_help_panel=_PANEL)] = None,
    comments: Annotated[str, typer.Option(help="Characters that begin a comment line.", rich_help_panel=_PANEL)] = "#%",
    keep_ids: Annotated[
        bool,
        typer.Option(
            "--keep-ids",
            help="Ids are node numbers from 0; ids that do not occur are nodes without edges.",
            rich_help_panel=_PANEL,
        ),
    ] = False,
    duplicates: Annotated[
        _Duplicates,
        typer.Option(
            help="Weight of an edge that is listed more than once, in either direction: the sum, the largest, or 1. "
            "auto: 1 in a list without weights, else the sum.",
            rich_help_panel=_PANEL,
        ),
    ] = _Duplicates.AUTO,
    drop_loops: Annotated[bool, typer.Option("--drop-loops", help="Leave out self-loops.", rich_help_panel=_PANEL)] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            callback=size_option,
            help="Stay within this much memory, for example 512MB or 2GB: a larger graph, and quotients that `cluster` makes, "
            "go through the disk. By default half of what the machine has while reading, and no bound beyond.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    symmetrize: Annotated[
        _Symmetrize | None, typer.Option(help="Make a directed matrix symmetric.", rich_help_panel=_PANEL)
    ] = None,
) -> Reading:
    """Return how to read a graph, from the options that say so."""
    wanted = None
    if columns is not None:
        wanted = tuple(int(part) if part.strip().isdigit() else part.strip() for part in columns.split(","))
    try:
        options = EdgeOptions(
            "\t" if delimiter == "\\t" else delimiter, header, wanted, weights, ids.value if ids else None, comments
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return Reading(
        {
            "format": format.value if format else None,
            "options": options,
            "rules": EdgeRules(duplicates.value, "drop" if drop_loops else "keep"),
            "compact": not keep_ids,
            "symmetrize": symmetrize.value if symmetrize else None,
        },
        memory,
    )


GraphPath = Annotated[
    Path, typer.Argument(metavar="GRAPH", help="Edge list, CSV, MatrixMarket, METIS, npz, Parquet, GraphML, GML or store.")
]
AsPoints = Annotated[
    bool, typer.Option("--points", help="GRAPH is a table of points (CSV, TSV, .npy, Parquet): cluster their neighbours.")
]
Features = Annotated[
    str | None, typer.Option(help="With --points: the columns to take, by name or by number from 0; all by default.")
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Number of threads; all cores by default.")]
Memory = Annotated[
    str, typer.Option(metavar="SIZE", callback=size_option, help="Stay within this much memory, for example 512MB or 2GB.")
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace what is there.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed; the same seed gives the same result.")]
