"""What a model file holds of an estimator, and how that is put together again; what a file says is checked first."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut._files import first_line
from corecut._typing import AnyArray
from corecut.model_files import ModelFile
from corecut.node_ids import checked_ids, names_array, packed_names
from corecut.prediction import FittedClusters, FittedInput

_FITTED_NAME = re.compile(r"[a-z][a-z0-9_]*[a-z0-9]_")


@dataclass(frozen=True, eq=False)
class Content:
    """What was read from a file.

    Attributes
    ----------
    settings
        Parameters of the estimator.
    fitted
        Attributes that are single numbers or words, and the names of features.
    clusters, source, names
        What prediction needs, and the nodes' own ids.
    """

    settings: dict[str, Any]
    fitted: dict[str, Any]
    clusters: FittedClusters
    source: FittedInput
    names: AnyArray | None


def packed(
    model: Any, settings: Mapping[str, Any], clusters: FittedClusters, source: FittedInput, names: AnyArray | None
) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return the description and the arrays of a model."""
    fitted = {name: _scalar(value) for name, value in vars(model).items() if _FITTED_NAME.fullmatch(name)}
    arrays: dict[str, AnyArray] = {"labels": clusters.labels, "association": clusters.association, "volume": clusters.volume}
    if source.fingerprints is not None:
        arrays["fingerprints"] = source.fingerprints
    if sp.issparse(source.points):
        points = sp.csr_array(source.points)
        arrays |= {"points_data": points.data}
        arrays |= {"points_indices": points.indices.astype(np.int64), "points_indptr": points.indptr.astype(np.int64)}
    elif source.points is not None:
        arrays["points"] = source.points
    ids = checked_ids(names)
    if ids is not None and ids.dtype.kind == "O":
        text, offsets = packed_names(ids.tolist())
        arrays |= {"names": np.frombuffer(text, np.uint8), "names_offsets": offsets}
    elif ids is not None:
        arrays["names"] = ids
    features = getattr(model, "feature_names_in_", None)
    description = {
        "estimator": type(model).__name__,
        "settings": {name: _setting(name, value) for name, value in settings.items()},
        "fitted": {name: value for name, value in fitted.items() if value is not None},
        "feature_names": None if features is None else [str(name) for name in features],
        "fee": float(clusters.fee),
        "input": {
            "affinity": source.affinity if isinstance(source.affinity, str) else None,
            "columns": source.n_columns,
            "neighbors": source.n_neighbors,
            "parameters": {name: _setting(name, value) for name, value in source.parameters.items()},
        },
    }
    return description, arrays


def unpacked(file: ModelFile, affinity: Callable[..., float] | None) -> Content:
    """Return what a file holds; `affinity` is the function of a model that was fitted with one."""
    try:
        return _content(file, affinity)
    except (KeyError, AttributeError, IndexError, TypeError) as error:
        raise file.damaged(f"it lacks {first_line(error)}") from None


def _content(file: ModelFile, affinity: Callable[..., float] | None) -> Content:
    said, arrays = file.description, file.arrays
    labels, association, volume = arrays["labels"], arrays["association"], arrays["volume"]
    k, fee = volume.size, said["fee"]
    _require(file, labels.ndim == 1 and labels.dtype == np.int32 and labels.size > 0, "no labels")
    _require(file, association.dtype == volume.dtype == np.float64 and association.shape == volume.shape == (k,), "no clusters")
    _require(file, bool(labels.min() >= 0 and labels.max() < k), "labels of clusters that there are not")
    _require(file, bool(np.isfinite(association).all() and np.isfinite(volume).all()), "clusters that are not finite")
    _require(file, isinstance(fee, float) and math.isfinite(fee), "no fee")
    source = _source(file, affinity, labels.size)
    _require(file, isinstance(said["settings"], dict) and isinstance(said["fitted"], dict), "no settings")
    settings, fitted = dict(said["settings"]), dict(said["fitted"])
    _require(file, all(_FITTED_NAME.fullmatch(name) and name != "labels_" for name in fitted), "an attribute that no model has")
    _require(file, fitted.get("n_features_in_") == source.n_columns, "another number of features than of columns")
    if callable(source.affinity):
        settings["affinity"] = source.affinity
    if said["feature_names"] is not None:
        _require(file, all(isinstance(name, str) for name in said["feature_names"]), "no names of its features")
        fitted["feature_names_in_"] = np.array(said["feature_names"], dtype=object)
    return Content(settings, fitted, FittedClusters(labels, association, volume, fee), source, _names(file, labels.size))


def _source(file: ModelFile, affinity: Callable[..., float] | None, n: int) -> FittedInput:
    """Return how rows become weights."""
    said, arrays = file.description["input"], file.arrays
    kind, columns, neighbors = said["affinity"], said["columns"], said["neighbors"]
    _require(file, all(isinstance(number, int) and number >= 0 for number in (columns, neighbors)), "no number of columns")
    _require(file, _are_numbers(said["parameters"]), "no parameters of its affinity")
    if kind is None:
        kind = affinity or _missing_function(file)
    elif affinity is not None:
        raise ValueError(f"{file.path} was fitted with affinity={kind!r}: leave affinity out")
    if kind in ("precomputed", "precomputed_nearest_neighbors"):
        numbers = arrays["fingerprints"]
        _require(file, columns == n and numbers.dtype == np.uint64 and numbers.shape == (n,), "no fingerprints")
        return FittedInput(kind, columns, neighbors, fingerprints=numbers)
    if "points" in arrays:
        points = arrays["points"]
        _require(file, points.shape == (n, columns) and points.dtype.kind == "f", "no points")
    else:
        data, indices, indptr = parts = [arrays[f"points_{part}"] for part in ("data", "indices", "indptr")]
        _require(file, all(part.ndim == 1 for part in parts) and data.dtype.kind == "f", "no points")
        # scipy lets borders below 0 pass, which kernels would follow.
        _require(file, indptr.shape == (n + 1,) and bool((np.diff(indptr) >= 0).all()), "no points")
        _require(file, indptr[0] == 0 and indptr[-1] == data.size == indices.size, "no points")
        try:
            points = sp.csr_array((data, indices, indptr), shape=(n, columns))
            points.check_format(full_check=True)
        except ValueError as error:
            raise file.damaged(first_line(error)) from None
    _require(file, neighbors <= n and (kind != "nearest_neighbors" or neighbors >= 2), "no number of neighbours")
    return FittedInput(kind, columns, neighbors, said["parameters"], points)


def _are_numbers(parameters: Any) -> bool:
    return isinstance(parameters, dict) and all(isinstance(value, float) for value in parameters.values())


def _missing_function(file: ModelFile) -> Callable[..., float]:
    """Stand for the function of a model that is opened without it: labels can be read, and prediction says what it lacks."""
    path = file.path

    def missing(*_: Any, **__: Any) -> float:
        raise ValueError(
            f"{path} was fitted with a function of two points; open it with load(path, affinity=function) to predict"
        )

    return missing


def _names(file: ModelFile, n: int) -> AnyArray | None:
    """Return the nodes' own ids."""
    if "names" not in file.arrays:
        return None
    names = file.arrays["names"]
    if "names_offsets" not in file.arrays:
        _require(file, names.dtype == np.int64 and names.shape == (n,), "no names")
        return names
    offsets = file.arrays["names_offsets"]
    _require(file, names.dtype == np.uint8 and offsets.dtype == np.int64 and offsets.shape == (n + 1,), "no names")
    _require(file, offsets[0] == 0 and offsets[-1] == names.size and bool((np.diff(offsets) >= 0).all()), "no names")
    try:
        return names_array(names.tobytes(), offsets)
    except UnicodeDecodeError as error:
        raise file.damaged(first_line(error)) from None


def _require(file: ModelFile, holds: bool, what: str) -> None:
    if not holds:
        raise file.damaged(f"it has {what}")


def _scalar(value: Any) -> bool | int | float | str | None:
    """Return a single number or word as Python's own; None for anything else."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return None
    return plain if isinstance(plain, bool | int | float | str) else None


def _setting(name: str, value: Any) -> Any:
    """Return a parameter as it is written; functions and generators are not."""
    if value is None or callable(value) or isinstance(value, np.random.Generator | np.random.RandomState):
        return None
    if isinstance(value, dict):
        return {str(key): _setting(f"{name}[{key!r}]", one) for key, one in value.items()}
    plain = _scalar(value)
    if plain is None:
        raise ValueError(
            f"{name}={value!r} cannot be kept in a file: only numbers and words can; set another value, and fit again"
        )
    return plain
