"""The command line. Each command lives in a module of `commands`; here they are gathered, and errors become messages.

A command's module is loaded when the command is called: a run of one does not wait for what the others need.

Results go to stdout, progress and messages to stderr. Exit codes: 0 done, 1 failed, 2 misuse, 130 stopped by Ctrl-C, 141 where
nobody reads the results any longer (`| head`).
"""

from __future__ import annotations

import signal
import sys
import warnings
from importlib import import_module
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from corecut import __version__
from corecut.commands.options import remember_command
from corecut.commands.printing import READER_GONE, let_go
from corecut.commands.words import in_options
from corecut.engines.scratch import EngineError

# In the order of the help. Each is a function of the name of its module, or a group of commands that is called `app` there.
_COMMANDS = ("cluster", "predict", "scan", "convert", "info", "evaluate", "report", "plot", "demo", "experiment", "generate")
# What a shell expects of a program that Ctrl-C ended.
_INTERRUPTED = 128 + signal.SIGINT


class _Commands(TyperGroup):
    """Turns what can go wrong with files, input and memory into one sentence and exit code 1; bugs keep their traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # All of them where there is no such command: the message proposes names that are like it.
        for name in [cmd_name] if cmd_name in _COMMANDS else _COMMANDS:
            if name not in self.commands:
                self.add_command(_load(name), name)
        return self.commands.get(cmd_name)

    def make_context(self, info_name: str | None, args: list[str], *parent: Any, **extra: Any) -> Any:
        remember_command(args)
        return super().make_context(info_name, args, *parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except typer.BadParameter as error:  # typer lets pydantic's own words stand before a choice that is none
                error.message = error.message.removeprefix("Value error, ")
                raise
            except BrokenPipeError:
                let_go()
                raise typer.Exit(READER_GONE) from None
            except KeyboardInterrupt as stopped:
                typer.echo(f"corecut: stopped; {str(stopped) or 'nothing was written'}", err=True)
                raise typer.Exit(_INTERRUPTED) from None
            except MemoryError as error:
                _fail(f"there is not enough memory ({error})" if str(error) else "there is not enough memory")
            except (ValueError, TypeError, OSError, EngineError) as error:
                _fail(in_options(str(error)) or type(error).__name__)


def _load(name: str) -> Any:
    """Return a command, or a group of commands, from its module."""
    module = import_module(f"corecut.commands.{name}")
    if hasattr(module, "app"):
        group = typer.main.get_group(module.app)
        group.name = name  # which the help shows
        return group
    alone = typer.Typer(add_completion=False)
    alone.command(name)(getattr(module, name))
    return typer.main.get_command(alone)


app = typer.Typer(
    cls=_Commands, no_args_is_help=True, help="Coreset spectral clustering of large graphs.", pretty_exceptions_enable=False
)


def main() -> None:
    """Run the command line."""
    # Told to stop, clean up like after Ctrl-C: temporary files go away.
    signal.signal(signal.SIGTERM, _stop)
    try:
        app()
    except OSError as error:  # of --help and --version, which are printed before a command runs
        let_go()
        typer.echo(f"corecut: error: standard output could not be written ({error.strerror}); send it elsewhere", err=True)
        sys.exit(1)


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
