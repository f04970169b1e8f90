"""Options of a run on several machines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from corecut._files import check_target, require_arrow
from corecut._typing import AnyArray, LabelArray
from corecut.commands.options import Reading
from corecut.commands.screen import Screen
from corecut.edges import EdgeReport
from corecut.graph import Graph
from corecut.labels import check_labels_path, write_labels
from corecut.store import GraphStore, scratch_store

_PANEL = "More than one machine"


@dataclass(frozen=True)
class Machines:
    """Where the stages that read all edges run.

    Attributes
    ----------
    address
        Of a Dask scheduler, or "local:4"; None for the threads of this process.
    scratch, resume
        As of :class:`~corecut.engines.dask.DaskEngine`.
    """

    address: str | None
    scratch: Path | None
    resume: bool

    @contextmanager
    def engine(self) -> Iterator[Any]:
        """Give the engine; None for the local one. Worker processes that were started for it end with it."""
        if self.address is None:
            yield None
            return
        from corecut.engines.cluster import connect
        from corecut.engines.dask import DaskEngine

        with connect(self.address) as client:
            yield DaskEngine(client, scratch=self.scratch, resume=self.resume)

    @contextmanager
    def load(
        self, engine: Any, path: Path, reading: Reading, screen: Screen, jobs: int | None
    ) -> Iterator[tuple[Graph, EdgeReport]]:
        """Give the graph and what was merged; the cluster builds a store of a folder of Parquet files."""
        from corecut.engines.tables import build_store
        from corecut.engines.tasks import edge_files

        if engine is None or not edge_files(path):
            with reading.load(path, screen, jobs) as loaded:
                yield loaded
            return
        with scratch_store(path) as place:
            engine.source = Path(os.path.abspath(path))
            given = {name: reading.arguments[name] for name in ("options", "rules", "compact")}
            report = build_store(engine.cluster, path, place, **given)
            screen.tell(report)
            yield GraphStore.open(place).graph, report

    def folder(self, memory: str | None) -> Path | None:
        """Return where files of this process go that a bound on memory asks for; None for the usual place."""
        if self.address is not None:
            return None
        if self.scratch is not None and memory is None:
            raise typer.BadParameter(
                "only a run with --dask has checkpoints, and only one with --memory has other files; add one of them",
                param_hint="--scratch",
            )
        return self.scratch

    def in_parts(self, output: Path) -> bool:
        """Say whether labels are wanted as a folder of parts: the name has no ending."""
        return self.address is not None and output.suffix == ""

    def check_output(self, output: Path) -> None:
        """Refuse a name that labels cannot be written to."""
        if self.in_parts(output):
            check_target(output, directory=True)
            require_arrow(f"{output}: Parquet files", "parquet")
        else:
            check_labels_path(output)

    def write(self, engine: Any, output: Path, labels: LabelArray, data: Any, node_ids: AnyArray | None) -> None:
        """Write the labels of the nodes of a graph, or of points."""
        if self.in_parts(output):
            engine.write_labels(data, labels, output)
        else:
            write_labels(output, labels, node_ids)


def machines(
    *,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on a Dask cluster: tcp://HOST:PORT of its scheduler, or local:4 for worker processes on this machine. "
            "GRAPH, a store or a folder of Parquet edge files, must be seen by all workers under the same name. Labels are "
            "written in parts where the name of -o has no ending.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    scratch: Annotated[
        str | None,  # a Path would make the current folder of an empty name
        typer.Option(
            metavar="PATH",
            help="Folder for checkpoints that all workers see, beside the graph by default; without --dask, for what --memory "
            "puts on disk, the system's temporary folder by default.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoints of a run that was killed.", rich_help_panel=_PANEL)
    ] = False,
) -> Machines:
    """Return where to run, from the options that say so."""
    if dask is None and resume:
        raise typer.BadParameter("only a run with --dask has checkpoints; add --dask", param_hint="--resume")
    if scratch == "":
        raise typer.BadParameter("give the name of a folder, or . for the one you are in", param_hint="--scratch")
    return Machines(dask, None if scratch is None else Path(scratch), resume)
