"""Files that appear whole or not at all, room for them, and sizes as people write them."""

from __future__ import annotations

import glob
import gzip
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

try:
    import fcntl
except ImportError:  # Windows: no lock, hence no check for a second writer
    fcntl = None  # type: ignore[assignment]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Endings of compressed files, and Arrow's names for them."""


class GraphFileError(ValueError):
    """A file that cannot be read as what it should be. The message names the file, the line where there is one, the cure."""


def ending_of(file: Path) -> str:
    """Return the ending of a name in small letters, without one for compression behind it."""
    stem = file.with_suffix("") if file.suffix.lower() in PACKED else file
    return stem.suffix.lower()


def parse_size(text: str | int) -> int:
    """Return a number of bytes for "2GB", "512MiB", "1.5g" or a plain number.

    Examples
    --------
    >>> parse_size("2GB")
    2000000000
    """
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?i?)b?\s*", text.lower())
    try:
        if match is None or match[2] == "i":
            raise ValueError
        size = int(float(match[1]) * _UNITS[match[2]])
    except ValueError:
        raise ValueError(f"{text!r} is not a size; write for example 512MB, 2GB or 1.5GiB") from None
    if size <= 0:
        raise ValueError(f"a size must be above 0, got {text!r}")
    return size


def show_size(size: float) -> str:
    """Return a number of bytes as people read it: 1.5 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def physical_memory() -> int | None:
    """Return the bytes of memory of this machine, None where it does not tell."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PAGE_SIZE" not in names or "SC_PHYS_PAGES" not in names:
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def require_free_space(folder: Path, needed: int, purpose: str) -> None:
    """Refuse work whose files would not fit on the disk."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"{purpose} needs about {show_size(needed)} in {folder}, where {show_size(free)} are free; "
            "make room or choose another place"
        )


@contextmanager
def packed_stream(path: Path, name: Path) -> Iterator[BinaryIO]:
    """Open `path` for writing, compressed as the ending of `name` says."""
    import pyarrow as pa

    packing = PACKED.get(name.suffix.lower())
    with path.open("wb") as raw:
        if packing == "gzip":
            # Arrow packs at the slowest level; without name and time the same content gives the same file.
            with gzip.GzipFile("", "wb", compresslevel=4, fileobj=raw, mtime=0) as stream:
                yield cast(BinaryIO, stream)
        elif packing:
            with pa.CompressedOutputStream(pa.PythonFile(raw, "wb"), packing) as stream:
                yield stream
        else:
            yield raw


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it to `path` on success, remove it on failure.

    Leftovers of writers that were killed are removed first.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; give a file name")
    for stale in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        if not _alive(stale.name.split(".")[-3]):
            stale.unlink(missing_ok=True)
    temporary = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.partial"
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def building_directory(path: Path) -> Iterator[Path]:
    """Give the fresh directory `path`.partial, locked while this process lives; removed on failure.

    A leftover of a build that was killed is removed first; a directory that a living process holds is refused. The caller
    renames it when it is complete.
    """
    partial = path.with_name(path.name + ".partial")
    if partial.exists():
        handle = _lock(partial)
        shutil.rmtree(partial)
        _unlock(handle)
    partial.mkdir(parents=True)
    handle = _lock(partial)
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        _unlock(handle)


def _lock(folder: Path) -> int:
    if fcntl is None:
        return -1
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise OSError(f"{folder} is in use: another process is building this store") from None
    return handle


def _unlock(handle: int) -> None:
    if handle >= 0:
        os.close(handle)


def _alive(process: str) -> bool:
    """Whether a process of this number runs; True when in doubt, as on Windows, where asking would end it."""
    if os.name == "nt":
        return True
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except (ValueError, OSError):
        return True
    return True
