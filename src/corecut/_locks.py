"""Locks between processes, and two names exchanged in one step: what several processes need to share a directory.

Locks are held by the system: they end with the process that holds them, however it ends.

A lock is a file. Who has opened and locked it, and finds it still under its name, holds the lock; the holder removes the file
before letting go. A file that was left by a killed process is not locked, and the next one takes it over.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def exclusive(path: Path, message: str) -> Iterator[None]:
    """Hold the lock of this name; refuse with `message` when somebody else does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = try_lock(path)
    if handle is None:
        raise BlockingIOError(message)
    try:
        yield
    finally:
        if os.name == "nt":  # an open file cannot be removed there
            unlock(handle)
            with suppress(OSError):
                path.unlink(missing_ok=True)
        else:
            path.unlink(missing_ok=True)
            unlock(handle)


def try_lock(path: Path) -> int | None:
    """Make the file, if it is not there, and lock it; None when another process, or another thread, has done so."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except PermissionError:
            if os.name == "nt" and path.exists():  # being removed
                return None
            raise
        if not _lock(handle):
            os.close(handle)
            return None
        # The holder before us may have removed the file between our opening and our locking it.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)


def unlock(handle: int) -> None:
    """Let go of a lock."""
    os.close(handle)


def remove_if_free(path: Path) -> None:
    """Remove a file that no living process has locked."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return  # gone, or not ours to remove
    free = _lock(handle)
    if os.name == "nt":
        os.close(handle)
    if free:
        # While the lock is held: whoever makes a file of this name finds out that it was removed.
        with suppress(OSError):
            path.unlink()
    if os.name != "nt":
        os.close(handle)


def is_alive(process: int) -> bool:
    """Whether a process of this number runs; True when in doubt, as on Windows, where asking would end it."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _lock(handle: int) -> bool:
    """Lock an open file; False when it is locked already. Where the disk knows no locks, all are free."""
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True
    msvcrt: Any = importlib.import_module("msvcrt")
    try:
        os.lseek(handle, 2**40, os.SEEK_SET)  # far behind what is written
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    except OSError:
        return False
    return True


def exchange(first: Path, second: Path) -> bool:
    """Exchange what two names stand for, in one step that nobody can see half done; False where the system cannot."""
    here, swap = -100, 2  # AT_FDCWD, and RENAME_EXCHANGE or RENAME_SWAP: the same number
    try:
        library = ctypes.CDLL(None, use_errno=True)
        names = os.fsencode(first), os.fsencode(second)
        if sys.platform == "linux":
            return bool(library.renameat2(here, names[0], here, names[1], swap) == 0)
        if sys.platform == "darwin":
            return bool(library.renamex_np(*names, swap) == 0)
    except (OSError, AttributeError, TypeError):
        pass
    return False
