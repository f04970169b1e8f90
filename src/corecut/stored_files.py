"""The files of a store, all of one state: opened together, from one directory, however often its name is given to another.

A store is replaced by exchanging directories. The directory is opened first and its files from it, so that they belong
together; when one is missing because the directory has been replaced meanwhile, the next one is tried.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np

from corecut._files import GraphFileError, first_line
from corecut._typing import AnyArray

_Made = TypeVar("_Made")
# Where two directories cannot be exchanged in one step, a name is missing for a moment while a store is replaced.
_PATIENCE = 2.0
_CHUNK = 1 << 24


class StoredFiles:
    """Files of a directory, kept open."""

    def __init__(self, folder: Path) -> None:
        """Open the directory."""
        self._folder = folder
        self._handle = os.open(folder, os.O_RDONLY) if os.open in os.supports_dir_fd else -1
        self._files: dict[str, BinaryIO] = {}

    @classmethod
    def opened(cls, folder: Path, make: Callable[[StoredFiles], _Made]) -> _Made:
        """Return what `make` makes of the directory's files; again when the directory was replaced under its hands."""
        end = time.monotonic() + _PATIENCE
        whole = Path(os.path.abspath(folder))
        lock = whole.with_name(f".{whole.name}.lock")
        while True:
            files = None
            try:
                files = cls(folder)
                return make(files)
            except (FileNotFoundError, NotADirectoryError):
                # Between the two renamings of a builder there is no directory of this name. The lock is looked at first: a
                # builder that has ended since has left a directory.
                building = lock.exists()
                if not (building or folder.is_dir()) or time.monotonic() > end:
                    raise GraphFileError(f"{folder} is not a graph store: it has no graph.json") from None
                time.sleep(0.001)
            except GraphFileError:
                if files is None or files.is_current() or time.monotonic() > end:
                    raise
            finally:
                if files is not None:
                    files.close_directory()

    def is_current(self) -> bool:
        """Whether the directory still has its name."""
        if self._handle < 0:
            return True
        try:
            return os.path.samestat(os.fstat(self._handle), self._folder.stat())
        except FileNotFoundError:
            return False

    def close_directory(self) -> None:
        """Let go of the directory; the files stay open."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def read(self, name: str, most: int) -> bytes | None:
        """Return the content of a file, None when there is none."""
        if self.add(name) is None:
            return None
        with self._files.pop(name) as file:
            return file.read(most)

    def add(self, name: str) -> int | None:
        """Open a file and return its size, None when there is no such file."""
        path = self._folder / name
        try:
            file = open(path, "rb", opener=self._opener(name))  # noqa: SIM115 (kept open)
        except (FileNotFoundError, IsADirectoryError):
            return None
        self._files[name] = file
        return os.fstat(file.fileno()).st_size

    def checksum(self, name: str, begin: int) -> int:
        """Return the CRC-32 of a file from byte `begin` on."""
        file, checksum = self._files[name], 0
        file.seek(begin)
        while block := file.read(_CHUNK):
            checksum = zlib.crc32(block, checksum)
        return checksum

    def array(self, name: str, length: int) -> AnyArray:
        """Map the array of a .npy file; refuse one that is not a vector of this length."""
        file = self._files[name]
        file.seek(0)
        try:
            version = np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        except Exception as error:  # whatever Python's own parser raises
            raise ValueError(f"no header of a NumPy file: {first_line(error)}") from None
        if version != (1, 0):
            raise ValueError(f"format {version} of NumPy's files")
        if shape != (length,) or dtype.hasobject:
            raise ValueError(f"{dtype} of shape {shape}, expected ({length},)")
        if file.tell() + length * dtype.itemsize != os.fstat(file.fileno()).st_size:
            raise ValueError("header and size of the file do not agree")
        if not length:
            return np.empty(0, dtype)
        return np.memmap(file, dtype=dtype, mode="r", offset=file.tell(), shape=shape).view(np.ndarray)

    def _opener(self, name: str) -> Callable[[str, int], int] | None:
        if self._handle < 0:
            return None
        return lambda _, flags: os.open(name, flags, dir_fd=self._handle)

    def __del__(self) -> None:
        with suppress(Exception):
            for file in self._files.values():
                file.close()
