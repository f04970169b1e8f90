r"""Model files: arrays and a description in one file that appears whole or not at all, and is opened by memory map.

    bytes 0 to 15     b"\x93CORECUT MODEL\r\n"
    16 to 19          version of the format
    20 to 23          CRC-32 of the description
    24 to 31          its length in bytes
    32 on             the description: JSON, then blanks up to a multiple of 64 bytes
    then              the arrays, each beginning at a multiple of 64 bytes

All numbers are little-endian. The description lists every array with its type, shape, place and CRC-32, and the size of the
file. Nothing in a file is executed. It holds no time, no name of a place and no number of threads, so that the same fit gives
the same bytes. Sizes and checksums are compared when a file is opened.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

import corecut
from corecut._files import GraphFileError, atomic_file, check_target, first_line
from corecut._typing import AnyArray

_MAGIC = b"\x93CORECUT MODEL\r\n"
_FORMAT_VERSION = 1
_ALIGNMENT = 64
_PREFIX = len(_MAGIC) + 16
_MOST_DESCRIPTION = 1 << 26
_TYPES = frozenset({"<i4", "<i8", "<u8", "<f4", "<f8", "|u1"})
_CHUNK = 1 << 24
_CURE = "save the model again"


@dataclass(frozen=True, eq=False)
class ModelFile:
    """An opened file: its description, and its arrays, mapped and not to be written to."""

    path: Path
    description: dict[str, Any] = field(repr=False)
    arrays: dict[str, AnyArray] = field(repr=False)

    @classmethod
    def open(cls, path: str | Path) -> ModelFile:
        """Map a file; one that is cut short, damaged, of a newer format or no model at all is refused in a sentence."""
        file = Path(path)
        if file.is_dir():
            raise IsADirectoryError(f"{file} is a directory, not a model file; give the name of a file in it")
        if not file.is_file():
            if file.exists():
                raise OSError(f"{file} is a device or a pipe, not a model file; give the name of a file")
            raise FileNotFoundError(f"there is no file {file}")
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            description = _read_description(file, stream, size)
            mapped = np.memmap(stream, np.uint8, "r").view(np.ndarray)
        arrays = {}
        for name, known in description["arrays"].items():
            content = mapped[known["offset"] : known["offset"] + known["bytes"]]
            if _checksum(content) != known["crc32"]:
                raise GraphFileError(f"{file} is damaged: the checksum of its {name} is wrong; {_CURE}")
            array = content.view(known["type"]).reshape(known["shape"])
            arrays[name] = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        return cls(file, description, arrays)

    def damaged(self, what: str) -> GraphFileError:
        """Return the error for content that no model has, though its checksums are right."""
        return GraphFileError(f"{self.path} holds no model that this version of corecut knows ({what}); {_CURE}")


def write_model(path: str | Path, description: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    """Write a model so that the file appears whole or not at all; one of that name is replaced.

    Parameters
    ----------
    path
        The file.
    description
        Numbers, text, lists and mappings of these.
    arrays
        Arrays of numbers by name.
    """
    target = Path(path)
    check_target(target)
    content = {name: _plain(array) for name, array in arrays.items()}
    listed: dict[str, dict[str, Any]] = {}
    place = 0
    for name, array in content.items():
        flat = array.reshape(-1).view(np.uint8)
        listed[name] = {
            "type": array.dtype.str,
            "shape": list(array.shape),
            "offset": place,
            "bytes": flat.size,
            "crc32": _checksum(flat),
        }
        place += _aligned(flat.size)
    whole = dict(description) | {"corecut": corecut.__version__}
    text = _with_places(whole, listed, place)
    with atomic_file(target) as temporary, temporary.open("wb") as stream:
        stream.write(_MAGIC)
        for number, width in ((_FORMAT_VERSION, 4), (zlib.crc32(text), 4), (len(text), 8)):
            stream.write(number.to_bytes(width, "little"))
        stream.write(text)
        for array in content.values():
            flat = array.reshape(-1).view(np.uint8)
            for begin in range(0, flat.size, _CHUNK):
                stream.write(flat[begin : begin + _CHUNK].data)
            stream.write(bytes(_aligned(flat.size) - flat.size))


def _with_places(description: dict[str, Any], listed: dict[str, dict[str, Any]], size: int) -> bytes:
    """Return the description with places counted from the beginning of the file, which depend on its own length."""
    begin = 0
    while True:
        places = {name: known | {"offset": known["offset"] + begin} for name, known in listed.items()}
        whole = description | {"arrays": places, "bytes": begin + size}
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        if _aligned(_PREFIX + len(text)) <= begin:
            # A shorter description than there is room for is made longer: places must not change any more.
            return text + b" " * (begin - _PREFIX - len(text))
        begin = _aligned(_PREFIX + len(text))


def _read_description(file: Path, stream: BinaryIO, size: int) -> dict[str, Any]:
    prefix = stream.read(_PREFIX)
    if not prefix.startswith(_MAGIC):
        raise GraphFileError(f"{file} is not a model file of corecut; save one with model.save, or with corecut cluster --save")
    version, checksum, length = (int.from_bytes(prefix[a:b], "little") for a, b in ((16, 20), (20, 24), (24, 32)))
    if len(prefix) == _PREFIX and version != _FORMAT_VERSION:
        raise GraphFileError(
            f"{file} has format {version}, this version of corecut ({corecut.__version__}) reads format {_FORMAT_VERSION}; "
            f"update corecut, or {_CURE}"
        )
    if len(prefix) < _PREFIX or length > min(size - _PREFIX, _MOST_DESCRIPTION):
        raise GraphFileError(f"{file} is damaged: it ends before its description does; {_CURE}")
    text = stream.read(length)
    if zlib.crc32(text) != checksum:
        raise GraphFileError(f"{file} is damaged: the checksum of its description is wrong; {_CURE}")
    try:
        description = json.loads(text)
        problem = _problem(description, size)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        problem = first_line(error)
    if problem:
        raise GraphFileError(f"{file} is damaged: {problem}; {_CURE}")
    return dict(description)


def _problem(description: Any, size: int) -> str | None:
    """Say what is wrong with the list of arrays; None where all lie within the file."""
    if not isinstance(description["arrays"], dict):
        return "its description lists no arrays"
    if description["bytes"] != size:
        return f"it has {size:,} bytes instead of {description['bytes']:,}"
    for name, known in description["arrays"].items():
        shape, place, length = known["shape"], known["offset"], known["bytes"]
        if known["type"] not in _TYPES or not isinstance(shape, list):
            return f"its {name} are of a type that no model has"
        if not all(isinstance(number, int) and 0 <= number < 2**48 for number in (*shape, place, length, known["crc32"])):
            return f"its {name} have no place in it"
        if math.prod(shape) * np.dtype(known["type"]).itemsize != length or place + length > size or place % _ALIGNMENT:
            return f"its {name} do not lie within it"
    return None


def _plain(array: AnyArray) -> AnyArray:
    """Return an array as it is written: contiguous and little-endian."""
    return np.ascontiguousarray(array, dtype=np.asarray(array).dtype.newbyteorder("<"))


def _checksum(content: AnyArray) -> int:
    checksum = 0
    for begin in range(0, content.size, _CHUNK):
        checksum = zlib.crc32(content[begin : begin + _CHUNK].data, checksum)
    return checksum


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
