"""Options of a run on several machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

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


def machines(
    *,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Run on a Dask cluster: tcp://HOST:PORT of its scheduler, or local:4 for worker processes on this machine. "
            "GRAPH must be seen by all workers under the same name.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    scratch: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints that all workers see; beside the graph by default.", rich_help_panel=_PANEL),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoints of a run that was killed.", rich_help_panel=_PANEL)
    ] = False,
) -> Machines:
    """Return where to run, from the options that say so."""
    if dask is None and (scratch is not None or resume):
        raise typer.BadParameter(
            "only a run with --dask has checkpoints; add --dask", param_hint="--resume" if resume else "--scratch"
        )
    return Machines(dask, scratch, resume)
