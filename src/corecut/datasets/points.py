"""Real points with known classes: the four sets of the paper's second experiment.

=====================  ======  ========  =======  ============================================================
loader                 points  features  classes  what
=====================  ======  ========  =======  ============================================================
:func:`load_mnist`     70,000  784       10       images of handwritten digits
:func:`load_pendigits` 10,992  16        10       digits as movements of a pen
:func:`load_har`       10,299  561       6        human activity from a telephone's sensors
:func:`load_letter`    20,000  16        26       printed capital letters
=====================  ======  ========  =======  ============================================================

A set is read from the file NAME.npz (arrays `X` and `y`) of a folder: the one given, or the one that the environment variable
CORECUT_DATA names. Without such a file it is fetched from OpenML through scikit-learn, which keeps it for the next time.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from corecut._files import GraphFileError
from corecut._typing import AnyArray, LabelArray
from corecut._validation import check_option

_ON_OPENML = {"mnist": "mnist_784", "pendigits": "pendigits", "har": "har", "letter": "letter"}


def load_mnist(folder: str | Path | None = None) -> tuple[AnyArray, LabelArray]:
    """Return MNIST: 70,000 images of 28 × 28 pixels, and the digit of each; see :func:`load_points`."""
    return load_points("mnist", folder)


def load_pendigits(folder: str | Path | None = None) -> tuple[AnyArray, LabelArray]:
    """Return PenDigits: 10,992 digits as 8 positions of a pen, and the digit of each; see :func:`load_points`."""
    return load_points("pendigits", folder)


def load_har(folder: str | Path | None = None) -> tuple[AnyArray, LabelArray]:
    """Return HAR: 10,299 windows of sensor readings, and the activity of each; see :func:`load_points`."""
    return load_points("har", folder)


def load_letter(folder: str | Path | None = None) -> tuple[AnyArray, LabelArray]:
    """Return Letter: 20,000 printed capitals in 16 features, and the letter of each; see :func:`load_points`."""
    return load_points("letter", folder)


def load_points(name: str, folder: str | Path | None = None) -> tuple[AnyArray, LabelArray]:
    """Return the points and classes of a set by name.

    Parameters
    ----------
    name
        "mnist", "pendigits", "har" or "letter".
    folder
        Folder that holds NAME.npz. When it is given, the file must be there. None for the folder that CORECUT_DATA names, and
        where that is not set or has no such file, for OpenML.

    Returns
    -------
    points : array of shape (n, features)
        In the type in which they are kept.
    classes : array of int32
        Class of every point, 0..k-1.
    """
    check_option(name, "name", tuple(_ON_OPENML))
    file = points_file(name, folder)
    points, classes = _fetched(name) if file is None else _read(file)
    if points.ndim != 2 or classes.shape != points.shape[:1]:
        raise GraphFileError(
            f"{file or 'OpenML'} does not hold the points of {name}: X has shape {points.shape} and y {classes.shape}, "
            "expected one row of X and one class in y for every point"
        )
    return points, np.unique(classes, return_inverse=True)[1].astype(np.int32)


def points_file(name: str, folder: str | Path | None = None) -> Path | None:
    """Return the file that a set is read from, or None when it has to be fetched."""
    if folder is not None:
        file = Path(folder) / f"{name}.npz"
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file}; name another folder, or none to fetch {name} from OpenML")
        return file
    named = os.environ.get("CORECUT_DATA")
    if named and (file := Path(named) / f"{name}.npz").is_file():
        return file
    return None


def _read(file: Path) -> tuple[AnyArray, AnyArray]:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return archive["X"], archive["y"]
    except KeyError as error:
        raise GraphFileError(f"{file} does not hold points: {error.args[0]}; it needs the arrays X and y") from None
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise GraphFileError(f"{file} cannot be read as a NumPy archive ({error}); get the file again") from None


def _fetched(name: str) -> tuple[AnyArray, AnyArray]:
    from sklearn.datasets import fetch_openml

    print(f"corecut: fetching {name} from OpenML, unless scikit-learn has kept it from an earlier time", file=sys.stderr)
    try:
        found: Any = fetch_openml(_ON_OPENML[name], version=1, as_frame=False, parser="liac-arff")
    except OSError as error:
        raise ConnectionError(
            f"{name} is in no folder and cannot be fetched from OpenML ({error}); put {name}.npz with the arrays X and y into "
            "a folder and name it by CORECUT_DATA, or connect to the network"
        ) from None
    return np.asarray(found.data), np.asarray(found.target)
