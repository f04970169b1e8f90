"""NumPy archives: a sparse matrix as scipy.sparse.save_npz writes it, or an edge list as arrays."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut._files import GraphFileError, PointsError, first_line
from corecut._typing import AnyArray
from corecut.node_ids import checked_ids, first_repeat, names_array
from corecut.readers.layout import SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES, EdgeOptions


@dataclass(frozen=True)
class ArchivedMatrix:
    """A matrix, and the ids of its nodes where the archive has them."""

    matrix: Any
    node_ids: AnyArray | None


@dataclass(frozen=True)
class ArchivedEdges:
    """Both ends of all edges, their weights or None, and the number of nodes where the archive tells it."""

    source: AnyArray
    target: AnyArray
    weight: AnyArray | None
    n_nodes: int | None


def read_npz(path: Path, options: EdgeOptions | None = None) -> ArchivedMatrix | ArchivedEdges:
    """Return what an archive holds."""
    if not zipfile.is_zipfile(path):
        raise GraphFileError(f"{path}: is not a complete NumPy archive; save a matrix with scipy.sparse.save_npz")
    try:
        # NumPy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if {"format", "shape"} <= set(archive.files):
                for name in {"indices", "indptr", "row", "col"} & set(archive.files):
                    if archive[name].dtype.kind not in "iu":
                        raise GraphFileError(f"{path}: its {name} are {archive[name].dtype}, not integers")
                ids = _node_ids(archive)
                twice = None if ids is None else first_repeat(ids)
                if twice is not None:
                    raise GraphFileError(
                        f"{path}: the id {twice!r} in node_ids stands for more than one node; give each its own"
                    )
                file.seek(0)
                return ArchivedMatrix(sp.load_npz(file), ids)
            return _edges(path, archive, options or EdgeOptions())
    except GraphFileError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy's header parser raise what they like
        raise GraphFileError(f"{path}: is not a complete NumPy archive of a graph ({first_line(error)})") from None


def _no_edges(path: Path, archive: Any) -> GraphFileError:
    found = f"{path}: holds neither a scipy sparse matrix nor arrays src and dst, but {', '.join(sorted(archive.files))}"
    if _table_of(archive) is None:
        return GraphFileError(f"{found}; save a matrix with scipy.sparse.save_npz")
    return PointsError(f"{found}; {points_cure(path)}")


def points_cure(path: Path) -> str:
    """Say how an archive's points are clustered: saved alone, as .npy."""
    name = None
    with suppress(Exception), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        name = _table_of(archive)
    if name is None:
        return "points are a table with a row for each"
    alone = f"{path.stem}.npy"
    return (
        f'for points save their table alone, in Python: numpy.save("{alone}", numpy.load("{path}")["{name}"]), and then '
        f"corecut cluster {alone} --points takes it"
    )


def _table_of(archive: Any) -> str | None:
    """Return the name of an array that may hold points, a row for each; None without one."""
    return next((name for name in archive.files if archive[name].ndim == 2 and archive[name].dtype.kind in "biuf"), None)


def _node_ids(archive: Any) -> AnyArray | None:
    if "node_ids" not in archive.files:
        return None
    ids = archive["node_ids"]
    if "node_ids_offsets" not in archive.files:
        return checked_ids(ids)
    offsets = archive["node_ids_offsets"]
    if ids.dtype != np.uint8 or offsets.dtype != np.int64 or offsets.ndim != 1 or not offsets.size:
        raise ValueError("its node ids are damaged")
    if offsets[0] != 0 or offsets[-1] != ids.size or (np.diff(offsets) < 0).any():
        raise ValueError("its node ids are damaged")
    return names_array(ids.tobytes(), offsets)


def _edges(path: Path, archive: Any, options: EdgeOptions) -> ArchivedEdges:
    names = archive.files
    if options.columns is not None:
        chosen = [str(column) for column in options.columns]
        missing = [name for name in chosen if name not in names]
        if missing:
            raise GraphFileError(f"{path}: there is no array {missing[0]!r}; the arrays are {', '.join(sorted(names))}")
    else:
        found = [next((name for name in known if name in names), None) for known in (SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES)]
        if found[0] is None or found[1] is None:
            raise _no_edges(path, archive)
        chosen = [name for name in found if name is not None]
    arrays = [archive[name] for name in chosen]
    if any(array.ndim != 1 or array.size != arrays[0].size for array in arrays):
        raise GraphFileError(f"{path}: the arrays of sources, targets and weights must be vectors of one length")
    for name, array in zip(chosen[:2], arrays[:2], strict=True):
        if array.dtype.kind not in "iu":
            raise GraphFileError(f"{path}: the array {name!r} holds {array.dtype}; sources and targets must be integers")
        if array.size and int(array.max()) >= 2**63:
            raise GraphFileError(f"{path}: the id {int(array.max())} in {name!r} does not fit in 64 bits with a sign")
    weight = arrays[2] if len(arrays) > 2 and options.weights else None
    if weight is not None:
        if weight.dtype.kind not in "biuf" or not np.isfinite(weight).all() or (weight < 0).any():
            raise GraphFileError(f"{path}: weights must be finite numbers, and not negative")
        weight = weight.astype(np.float64)
    n_nodes = None
    if "n" in names:
        if archive["n"].shape not in ((), (1,)) or archive["n"].dtype.kind not in "iu" or archive["n"].max() < 0:
            raise GraphFileError(f"{path}: the array 'n' must be one number, that of the nodes")
        n_nodes = int(archive["n"].max())
    return ArchivedEdges(arrays[0].astype(np.int64), arrays[1].astype(np.int64), weight, n_nodes)
