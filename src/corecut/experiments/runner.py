"""The runner: measures the cells of a plan that are not finished, one after the other, and keeps each as soon as it is done.

Cells are measured in a worker process, so that a method that does not end can be ended, and one that crashes takes nothing
down but its cell. Stopped at any moment, the next run goes on where this one was.
"""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from corecut._progress import Stages
from corecut.datasets import make_sbm
from corecut.experiments.graphs import Prepared, Recipe, prepare, with_loops
from corecut.experiments.plan import Plan, experiment_of
from corecut.experiments.results import TOO_LONG, Cell, Results


class CellError(Exception):
    """A cell that has no measures, and why."""


class Worker:
    """A process that prepares graphs and measures cells of one experiment; a new one takes its place when it is ended."""

    def __init__(self, experiment: str, graphs: Path) -> None:
        """Prepare for an experiment whose graphs are kept in the folder `graphs`; the process starts when it is needed."""
        self._arguments = (experiment, graphs)
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def ask(self, recipe: Recipe, cell: Cell | None, limit: float | None) -> Any:
        """Return the measures of a cell, or with None the size of the graph, which is made first if need be.

        Raises :class:`CellError` when the cell fails, does not end in `limit` seconds or brings the process down, and what
        went wrong itself when the graph cannot be made.
        """
        if self._process is None:
            # A fresh interpreter: a forked one inherits the state of thread pools whose threads it does not have.
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, *self._arguments), daemon=True)
            self._process.start()
            theirs.close()
        assert self._connection is not None
        try:
            # The graph's preparation has no limit: only what is measured may take too long.
            self._connection.send((recipe, cell))
            answer = self._connection.recv()
            if answer == "ready":
                if not self._connection.poll(limit):
                    self._end()
                    raise CellError(f"{TOO_LONG} {limit:g} s")
                answer = self._connection.recv()
        except (EOFError, ConnectionError):
            self._end()
            raise CellError("the process died") from None
        except BaseException:
            self._end()
            raise
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _end(self) -> None:
        if self._process is not None and self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
        self._process = self._connection = None


def run_plan(name: str, plan: Plan, out: Path, *, minutes: float | None = None, verbose: bool = True) -> Results:
    """Measure what is left of a plan, and return all that is known.

    Parameters
    ----------
    name
        The experiment.
    plan
        Its cells.
    out
        Folder for the results (`NAME/results.json`) and the graphs (`graphs`).
    minutes
        Begin no further cell after this time; None for no bound.
    verbose
        Show the progress.
    """
    folder, graphs = out / name, out / "graphs"
    folder.mkdir(parents=True, exist_ok=True)
    graphs.mkdir(exist_ok=True)
    results = Results.open(folder / "results.json", name)
    todo = [cell for cell in plan.cells if not results.finished(cell)]
    missing: dict[str, Exception] = {}
    until = float("inf") if minutes is None else perf_counter() + 60 * minutes
    ready = None
    with Stages(len(todo), verbose=verbose, description=name) as stage, Worker(name, graphs) as worker:
        if len(todo) < len(plan.cells):
            stage.say(f"{name}: {len(plan.cells) - len(todo)} of {len(plan.cells)} cells are finished already")
        for cell in todo:
            if cell.graph in missing:
                continue
            if perf_counter() > until:
                stage.say(f"{name}: the time is up; run the command again to go on")
                break
            recipe = plan.graphs[cell.graph]
            if cell.graph != ready:
                try:
                    stage.say(f"{name}: {cell.graph}")
                    results.graphs[cell.graph] = worker.ask(recipe, None, None)
                    ready = cell.graph
                except (OSError, CellError) as error:
                    missing[cell.graph] = error
                    stage.say(f"{name}: {cell.graph} is left out: {error}")
                    continue
            if results.hopeless(cell):
                continue
            with stage(f"{cell.graph}, {cell.method}, {cell.at:g}, run {cell.run}"):
                try:
                    results.add(cell, worker.ask(recipe, cell, plan.limit))
                except CellError as error:
                    results.add(cell, str(error))
    if missing and not results.cells:
        raise OSError(str(next(iter(missing.values()))))
    return results


def _serve(connection: Connection, name: str, folder: Path) -> None:
    """Answer requests until the other side hangs up."""
    # Ctrl-C reaches every process of a terminal; the runner ends its worker by itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    prepared: tuple[Recipe, Prepared] | None = None
    warm: set[str] = set()
    with suppress(EOFError, ConnectionError):
        while True:
            recipe, cell = connection.recv()
            answer: Any
            try:
                if prepared is None or prepared[0] != recipe:
                    prepared = None  # frees the last graph before the next one comes
                    prepared = recipe, prepare(recipe, folder)
                graph = prepared[1].graph
                answer = {"nodes": graph.n_nodes, "entries": graph.n_entries}
                if cell is not None:
                    if cell.method not in warm:
                        warm.add(cell.method)
                        _warm_up(name, cell.method)
                    connection.send("ready")
                    answer = _measured(name, prepared[1], cell)
            except (OSError, ValueError, TypeError, MemoryError) as error:
                answer = error
            connection.send(answer)


def _measured(name: str, prepared: Prepared, cell: Cell) -> Any:
    try:
        return experiment_of(name).measure(prepared, cell)
    except BaseException as error:  # a panic of a native peer is no Exception
        return CellError(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


def _warm_up(name: str, method: str) -> None:
    """Run a method once on a small graph, so that no cell pays for imports and threads."""
    matrix, labels = make_sbm(100, 4, 0.5, 0.01, random_state=0)
    small = Prepared(with_loops(matrix), labels)
    _measured(name, small, Cell("", method, experiment_of(name).WARM_UP, 0))
