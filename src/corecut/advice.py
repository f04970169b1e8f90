"""Advice: warnings that point at the user's own line, whatever module of the package found the reason for them.

A fixed `stacklevel` names a line inside the package as soon as a function is called from another depth, and Python then
shows a repeated warning once for all calls. The line to show is the first one outside the package.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType

_PACKAGE = Path(__file__).parent.as_posix() + "/"


def advise(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the code that called into the package.

    Parameters
    ----------
    message
        What is wrong, and what to set so that it is not.
    category
        Class of the warning.
    """
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and Path(frame.f_code.co_filename).as_posix().startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
