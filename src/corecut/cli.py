"""The command line. Each command lives in a module of `commands`; here they are gathered, and errors become messages.

Results go to stdout, progress and messages to stderr. Exit codes: 0 done, 1 failed, 2 misuse.
"""

from __future__ import annotations

import signal
import sys
import warnings
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from corecut import __version__
from corecut.commands import generate
from corecut.commands.cluster import cluster
from corecut.commands.convert import convert
from corecut.commands.demo import demo
from corecut.commands.evaluate import evaluate
from corecut.commands.experiment import experiment
from corecut.commands.info import info
from corecut.commands.words import in_options
from corecut.engines.scratch import EngineError


class _Commands(TyperGroup):
    """Turns what can go wrong with files, input and memory into one sentence and exit code 1; bugs keep their traceback."""

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                raise
            except MemoryError as error:
                _fail(f"there is not enough memory ({error})" if str(error) else "there is not enough memory")
            except (ValueError, TypeError, OSError, EngineError) as error:
                _fail(in_options(str(error)) or type(error).__name__)


app = typer.Typer(
    cls=_Commands, no_args_is_help=True, help="Coreset spectral clustering of large graphs.", pretty_exceptions_enable=False
)
app.command()(cluster)
app.command()(convert)
app.command()(info)
app.command()(evaluate)
app.command()(demo)
app.command()(experiment)
app.add_typer(generate.app, name="generate")


def main() -> None:
    """Run the command line."""
    # Told to stop, clean up like after Ctrl-C: temporary files go away.
    signal.signal(signal.SIGTERM, _stop)
    app()


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _fail(message: str) -> None:
    typer.echo(f"corecut: error: {message}", err=True)
    raise typer.Exit(1)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"corecut: warning: {in_options(str(message))}", file=sys.stderr)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"corecut {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before the command's name; --version has done its work when this runs."""
