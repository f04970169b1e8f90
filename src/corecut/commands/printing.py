"""Standard output: what is printed there arrives, or a sentence says why not."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from corecut._files import first_line
from corecut._typing import AnyArray, LabelArray

READER_GONE = 128 + getattr(signal, "SIGPIPE", 13)
"""Exit code where who read a pipe has seen enough: that of a program that the system ends then, without a word."""


@contextmanager
def printing() -> Iterator[None]:
    """Let what the block prints to standard output be written at its end; an error becomes a sentence."""
    require_stdout()
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        let_go()
        raise OSError(
            f"standard output could not be written ({error.strerror or first_line(error)}); send it elsewhere"
        ) from None


def require_stdout() -> None:
    """Refuse to print where there is no standard output, before any work is done."""
    if sys.stdout is None:  # how Python says that it was closed
        raise OSError("standard output could not be written (it is closed); send it elsewhere")


def let_go() -> None:
    """Drop what standard streams cannot write: Python would try once more when it ends, and complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def print_labels(labels: LabelArray, node_ids: AnyArray | None, *, alone: bool = False) -> None:
    """Print labels to standard output: beside the nodes' ids, or alone, one in each line, as METIS has them."""
    with printing():
        if alone:
            sys.stdout.writelines(f"{label}\n" for label in labels.tolist())
            return
        ids = range(labels.size) if node_ids is None else node_ids.tolist()
        sys.stdout.writelines(f"{node}\t{label}\n" for node, label in zip(ids, labels.tolist(), strict=True))
