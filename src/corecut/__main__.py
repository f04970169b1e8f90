"""`python -m corecut` is the command line, and so is `corecut`."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line."""
    # Until the libraries are loaded there is nothing to clean up: Ctrl-C ends the process without a traceback from inside them.
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listening:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from corecut import cli

    if listening:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
