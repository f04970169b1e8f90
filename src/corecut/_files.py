"""Files that appear whole or not at all, room for them, and sizes as people write them."""

from __future__ import annotations

import bz2
import errno
import gzip
import importlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from corecut._locks import exchange, exclusive, is_alive, remove_if_free, try_lock, unlock

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Endings of compressed files, and the names of what they are packed with."""

PARQUET = (".parquet", ".pq")
"""Endings of Parquet files."""

# Two of the files of a graph store, by which one is known.
_STORED = {"graph.json", "indptr.npy"}

# The file in a temporary folder that is locked while its process lives.
_LOCK = "in-use.lock"

# Errors of writing alone: the disk is full, or a file longer than the system or a limit of the user allows.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Letters that the names of temporary files have more than those of the files, at most.
_ADDED_LETTERS = 48


class GraphFileError(ValueError):
    """A file that cannot be read as what it should be. The message names the file, the line where there is one, the cure."""


class PointsError(GraphFileError):
    """A file that holds no graph where one is read, but may hold points."""


TAKE_POINTS = "here a graph is read; corecut cluster and corecut scan take points with --points, fit takes them as an array"
"""The cure of a PointsError."""


class EndingError(ValueError):
    """A name that ends in no format that can be written."""


def shown(text: str) -> str:
    """Return a text in quotes as messages show it: not longer than people read."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its kind where it has none."""
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__


def require_arrow(what: str, *parts: str) -> tuple[Any, ...]:
    """Return pyarrow and parts of it; refuse `what` where it is not installed: it is large, and few need it."""
    try:
        return tuple(importlib.import_module(name) for name in ("pyarrow", *(f"pyarrow.{part}" for part in parts)))
    except ImportError:
        raise GraphFileError(f'{what} need pyarrow; install it with: pip install "corecut[parquet]"') from None


def ending_of(file: Path) -> str:
    """Return the ending of a name in small letters, without one for compression behind it."""
    stem = file.with_suffix("") if file.suffix.lower() in PACKED else file
    return stem.suffix.lower()


def require_packages(file: Path) -> None:
    """Refuse a name whose format needs a package that is not installed, before the work whose result it is to hold."""
    if ending_of(file) in PARQUET:
        require_arrow(f"{file}: Parquet files", "parquet")
    if file.suffix.lower() == ".zst":
        _zstd_library(f"{file}: files packed with zstd")


def parse_size(text: str | int) -> int:
    """Return a number of bytes for "2GB", "512MiB", "1.5g" or a plain number.

    Examples
    --------
    >>> parse_size("2GB")
    2000000000
    """
    if not isinstance(text, str):  # an integer of Python or NumPy
        return int(text)
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


def counted(count: int, thing: str) -> str:
    """Return a number of things as people write it: 1 node, 13,550 nodes.

    Examples
    --------
    >>> from corecut._files import counted
    >>> counted(1, "node"), counted(13550, "node")
    ('1 node', '13,550 nodes')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def physical_memory() -> int | None:
    """Return the bytes of memory of this machine, None where it does not tell."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PAGE_SIZE" not in names or "SC_PHYS_PAGES" not in names:
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def require_memory(needed: int, what: str) -> None:
    """Refuse what cannot fit in the machine's memory, before the system is asked for it."""
    memory = physical_memory()
    if memory is not None and needed > memory:
        raise GraphFileError(f"{what} needs about {show_size(needed)} of memory, this machine has {show_size(memory)}")


def require_free_space(folder: Path, needed: int, purpose: str) -> None:
    """Refuse work whose files would not fit on the disk."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"{purpose} needs about {show_size(needed)} in {folder}, where {show_size(free)} are free; "
            "make room or choose another place"
        )


def check_target(path: Path, *, make_folders: bool = False, directory: bool = False) -> None:
    """Refuse a name under which nothing can be written, before any work is done."""
    if str(path) == "-":
        raise ValueError("cannot write to standard output (-); give the name of a file")
    _refuse_special(path, directory=directory)
    final = led_to(path)
    folder = final.parent
    if not folder.is_dir():
        if make_folders:
            return
        raise FileNotFoundError(f"there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"cannot write {path}: the folder {folder} is read-only; choose another one")
    store = next((one for one in (folder, *folder.resolve().parents) if all((one / name).is_file() for name in _STORED)), None)
    if store is not None:
        raise OSError(f"cannot write {path}: {store} is a graph store, whose files belong together; give a name outside of it")
    longest = (os.pathconf(folder, "PC_NAME_MAX") if hasattr(os, "pathconf") else 255) - _ADDED_LETTERS
    if len(os.fsencode(final.name)) > longest:
        raise OSError(f"cannot write {path}: the name is too long; give one of at most {longest} letters")


def led_to(path: Path) -> Path:
    """Return where something under this name is written: what a symbolic link leads to, or the name itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def is_same(one: Path, other: Path) -> bool:
    """Whether two names mean the same file or directory, which need not exist."""
    try:
        return one.samefile(other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def lies_in(path: Path, folder: Path) -> bool:
    """Whether a name means a file in a directory, at any depth."""
    return folder.is_dir() and Path(os.path.realpath(folder)) in Path(os.path.realpath(path)).parents


def missing_folders(folder: Path) -> list[Path]:
    """Return a folder and those above it that are not there, the innermost first."""
    return [here for here in (folder, *folder.parents) if not os.path.lexists(here)]


def require_folder_name(folder: str | os.PathLike[str]) -> None:
    """Refuse a scratch folder without a name, which would be the folder that one happens to be in."""
    if os.fspath(folder) == "":
        raise ValueError("scratch must be the name of a folder, got an empty one: write '.' for the folder you are in")


def remove_empty(folders: list[Path]) -> None:
    """Remove folders, the innermost first, as far as nothing is in them."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:  # in use, or gone
            return


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let the system's errors, which may speak of temporary files, name what the user wanted to write."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # a sentence of ours
            raise
        raise type(error)(f"cannot write {path}: {error.strerror or first_line(error)}") from error


@contextmanager
def naming_where_full(path: Path) -> Iterator[None]:
    """Let errors of a disk without room for a file name what the user wanted to write: of several names, the outermost."""
    try:
        yield
    except OSError as error:
        cause = error if error.errno is not None else error.__cause__
        if not isinstance(cause, OSError) or cause.errno not in _NO_ROOM:
            raise
        raise OSError(f"cannot write {path}: {cause.strerror}; make room or choose another place") from cause


@contextmanager
def packed_stream(path: Path, name: Path) -> Iterator[BinaryIO]:
    """Open `path` for writing, compressed as the ending of `name` says."""
    packing = PACKED.get(name.suffix.lower())
    with path.open("wb") as raw:
        if packing == "gzip":
            # Without name and time the same content gives the same file.
            with gzip.GzipFile("", "wb", compresslevel=4, fileobj=raw, mtime=0) as stream:
                yield cast(BinaryIO, stream)
        elif packing == "bz2":
            with bz2.BZ2File(raw, "wb") as stream:
                yield cast(BinaryIO, stream)
        elif packing:
            with _zstd(raw, "wb", f"{name}: files packed with zstd") as stream:
                yield stream
        else:
            yield raw


def zstd_reader(raw: Any) -> Any:
    """Return a stream of the bytes that a file object holds packed with zstd."""
    return _zstd(raw, "rb", "files packed with zstd")


def _zstd(raw: Any, mode: str, what: str) -> Any:
    library = _zstd_library(what)
    if library.__name__ != "pyarrow":
        return library.ZstdFile(raw, mode)
    file = library.PythonFile(raw, mode[0])
    return library.CompressedInputStream(file, "zstd") if mode == "rb" else library.CompressedOutputStream(file, "zstd")


def _zstd_library(what: str) -> Any:
    """Return what packs with zstd: Python itself from 3.14 on, else pyarrow; refuse `what` where neither does."""
    try:
        return importlib.import_module("compression.zstd")
    except ImportError:
        return require_arrow(what)[0]


@contextmanager
def atomic_file(path: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it to `path` on success, remove it on failure.

    Whether there is a file to be replaced is decided at the renaming. Of a symbolic link it is the file that it leads to, and
    the link stays. Leftovers of writers that were killed are removed first.
    """
    _refuse_special(path)
    final = led_to(path)
    for stale in _siblings(final, r"\.", r"\.[0-9]+\.[0-9a-f]+\.partial"):
        # Where the disk knows no locks, the number of the process has to do.
        if not is_alive(int(stale.name.split(".")[-3])):
            remove_if_free(stale)
    with naming(path):
        temporary, handle = _locked_file(final)
    try:
        with naming(path):
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            if os.name == "nt":  # an open file cannot be renamed there
                unlock(handle)
                handle = -1
            if overwrite:
                temporary.replace(final)
            else:
                _rename_to_new(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)
        if handle >= 0:
            unlock(handle)


def _refuse_special(path: Path, *, directory: bool = False) -> None:
    """Refuse to put a file in the place of a directory, a device or a pipe, which a renaming would remove.

    One look at the name answers all questions: between two of them another process may exchange what is there. What will
    be written is a `directory` where it is a store.
    """
    try:
        with naming(path):
            mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISDIR(mode):
        if not directory:
            raise IsADirectoryError(f"{path} is a directory; give a file name")
    elif not stat.S_ISREG(mode):
        raise OSError(f"{path} is a device or a pipe, which a file would replace; give the name of a file")


def _locked_file(path: Path) -> tuple[Path, int]:
    """Make an empty file of a new name, locked while this process lives."""
    while True:
        temporary = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.partial"
        handle = try_lock(temporary)
        if handle is not None:
            return temporary, handle


def _rename_to_new(temporary: Path, path: Path) -> None:
    """Rename a file, unless there is one of that name."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise FileExistsError(f"{path} exists already; choose another name, or pass overwrite=True") from None
    except OSError:  # a disk without links
        if path.exists():
            raise FileExistsError(f"{path} exists already; choose another name, or pass overwrite=True") from None
        temporary.replace(path)


@contextmanager
def building_directory(path: Path, *, name: Path | None = None) -> Iterator[Path]:
    """Give a fresh directory beside `path`, removed in the end. One process at a time: a second one is refused.

    The caller renames it when it is complete. While the lock is held no other builder lives, so that whatever else is
    called like a build of `path` was left by one that was killed, and is removed. Messages call it `name`, if given.
    """
    with ExitStack() as stack:
        with naming(name or path):
            lock = path.with_name(f".{path.name}.lock")
            stack.enter_context(exclusive(lock, f"{path} is in use: another process is building this store"))
        for stale in _siblings(path, "", r"(\.[0-9a-f]{8})?\.partial"):
            shutil.rmtree(stale, ignore_errors=True)
        # A builder that was killed between two renamings left the store of before under another name.
        for old in _siblings(path, "", r"\.[0-9a-f]{8}\.old"):
            if path.exists():
                shutil.rmtree(old, ignore_errors=True)
            else:
                old.rename(path)
        folder = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
        with naming(name or path):
            folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a folder in the system's place for temporary files, removed in the end; those of killed processes go first."""
    for stale in Path(tempfile.gettempdir()).glob("corecut-*-*"):
        number = stale.name.split("-")[1]
        lock = stale / _LOCK
        # Where the disk knows no locks, the number of the process has to do.
        if number.isdecimal() and not is_alive(int(number)) and lock.is_file():
            remove_if_free(lock)
            if not lock.exists():
                shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"corecut-{os.getpid()}-"))
    try:
        with exclusive(folder / _LOCK, f"{folder} is in use"):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def new_folder(path: Path) -> Iterator[None]:
    """Make a folder for results before the work that they take; if that comes to nothing, no empty folder is left."""
    made = missing_folders(path)
    try:
        with naming(path):
            path.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        remove_empty(made)


def _siblings(path: Path, before: str, behind: str) -> list[Path]:
    """Return the neighbours of a path whose names are its own with something before and behind it, as patterns."""
    pattern = re.compile(before + re.escape(path.name) + behind)
    try:
        return [entry for entry in path.parent.iterdir() if pattern.fullmatch(entry.name)]
    except FileNotFoundError:
        return []


def publish_directory(folder: Path, path: Path) -> None:
    """Give a complete directory its final name; one that has the name goes away. Readers find one or the other, and whole."""
    try:
        if not path.exists():
            folder.rename(path)
        elif exchange(folder, path):
            _remove_directory(folder)
        else:
            old = folder.with_suffix(".old")
            path.rename(old)
            folder.rename(path)
            _remove_directory(old)
    except OSError as error:
        if path.exists() and folder.exists() and error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise FileExistsError(f"{path} exists already; choose another name") from None
        raise


def _remove_directory(folder: Path) -> None:
    """Remove a store: the description first, so that what is left is no store."""
    (folder / "graph.json").unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
