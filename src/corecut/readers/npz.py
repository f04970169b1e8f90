"""NumPy archives: a sparse matrix as scipy.sparse.save_npz writes it, or an edge list as arrays."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut._files import GraphFileError
from corecut._typing import AnyArray
from corecut.readers.layout import SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES


def read_npz(path: Path) -> Any | tuple[AnyArray, AnyArray, AnyArray | None, int | None]:
    """Return a scipy matrix, or (sources, targets, weights or None, number of nodes or None)."""
    if not zipfile.is_zipfile(path):
        raise GraphFileError(f"{path}: is not a complete NumPy archive; save a matrix with scipy.sparse.save_npz")
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = set(archive.files)
            if {"format", "shape"} <= names:
                return sp.load_npz(path)
            source = next((name for name in SOURCE_NAMES if name in names), None)
            target = next((name for name in TARGET_NAMES if name in names), None)
            if source is None or target is None:
                raise GraphFileError(
                    f"{path}: holds neither a scipy sparse matrix nor arrays src and dst, but {', '.join(sorted(names))}"
                )
            weight = next((name for name in WEIGHT_NAMES if name in names), None)
            n_nodes = int(archive["n"]) if "n" in names else None
            return archive[source], archive[target], None if weight is None else archive[weight], n_nodes
    except GraphFileError:
        raise
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, KeyError, NotImplementedError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise GraphFileError(f"{path}: is not a complete NumPy archive of a graph ({text})") from None
