"""`python -m corecut` is the command line, and so is `corecut`."""

from __future__ import annotations

import os
import signal
import sys

# Commands in which nothing but this library computes: it holds BLAS to one thread, whose results do not depend on their number.
# More would only be started and wait, for a third of the processor time that clustering a small graph takes. Others race with
# libraries that may use them.
_ALONE = ("cluster", "predict", "scan", "convert", "info", "evaluate", "generate")
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def main() -> None:
    """Run the command line."""
    # Until the libraries are loaded there is nothing to clean up: Ctrl-C ends the process without a traceback from inside them.
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listening:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1:2] and sys.argv[1] in _ALONE:
        for name in _THREADS:  # read when NumPy and SciPy are loaded
            os.environ.setdefault(name, "1")
    from corecut import cli

    if listening:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
