"""Points in files: one row per point, a column per feature.

A NumPy array (.npy), a Parquet table, or text: CSV, TSV, or numbers between blanks, perhaps compressed (.gz, .bz2), perhaps
below a line of names.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corecut._files import GraphFileError, ending_of, first_line, require_arrow
from corecut._typing import AnyArray
from corecut.readers.streams import LineBlocks


@dataclass(frozen=True, eq=False)
class Points:
    """Points of a file.

    Attributes
    ----------
    values
        One row per point.
    names
        The points' names, None where the file has none.
    """

    values: AnyArray
    names: AnyArray | None = None


def read_points(path: str | Path) -> Points:
    """Read points from a file.

    Parameters
    ----------
    path
        The file; its ending tells the format, and anything unknown is text.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file} of points")
    ending = ending_of(file)
    try:
        if ending == ".npy":
            points = np.load(file, allow_pickle=False)
        elif ending in (".parquet", ".pq"):
            points = _of_table(file)
        else:
            points = _of_text(file)
    except GraphFileError:
        raise
    except Exception as error:  # NumPy's, zipfile's and Arrow's parsers raise what they like
        raise GraphFileError(f"{file}: is no table of numbers ({first_line(error)})") from None
    if points.ndim != 2 or points.dtype.kind not in "biuf":
        raise GraphFileError(f"{file}: holds {points.dtype} of shape {points.shape}, expected a row of numbers for every point")
    return Points(points)


def _of_table(file: Path) -> AnyArray:
    _, pq = require_arrow(f"{file}: Parquet files", "parquet")
    table = pq.read_table(file)
    return np.column_stack([column.to_numpy() for column in table.columns])


def _of_text(file: Path) -> AnyArray:
    with LineBlocks(file) as lines:
        start = lines.start(1 << 16).removeprefix(b"\xef\xbb\xbf").decode(errors="replace").splitlines()
    skipped, first = next(((i, line) for i, line in enumerate(start) if line.strip() and line[0] not in "#%"), (0, ""))
    delimiter = next((mark for mark in (",", ";", "\t") if mark in first), None)
    names = not all(_is_number(field) for field in first.split(delimiter))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # a file without a row
        return np.loadtxt(
            file, delimiter=delimiter, comments=("#", "%"), skiprows=skipped + names, ndmin=2, encoding="utf-8-sig"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
