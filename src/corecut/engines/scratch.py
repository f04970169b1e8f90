"""The scratch folder: small arrays that travel between client and workers, and checkpoints, all of them files.

Every file appears whole or not at all, and carries checksums that are compared when it is read (the members of an npz file have
them). So what workers read, and what a second run goes on from, is what was written.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from corecut._files import first_line, missing_folders, remove_empty, show_size
from corecut._locks import exclusive
from corecut._typing import AnyArray

Arrays = dict[str, AnyArray]


class EngineError(RuntimeError):
    """A run on several machines that cannot go on. The message names the stage and the block, and the cure."""


class ScratchError(EngineError):
    """A file of the scratch folder that cannot be written or read."""


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path` that becomes `path` in the end."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if not path.parent.is_dir():
            raise _unseen(path.parent) from None
        free = show_size(shutil.disk_usage(path.parent).free)
        raise ScratchError(
            f"cannot write {path.name} into the scratch folder {path.parent} ({first_line(error)}); {free} are free there: "
            "make room, or choose another folder with scratch="
        ) from None
    finally:
        with suppress(OSError):  # what cannot be written here cannot be removed, and the first error says more
            temporary.unlink(missing_ok=True)


def save(path: Path, **arrays: AnyArray) -> None:
    """Write arrays as one file."""
    with writing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def load(path: Path, *names: str) -> Arrays:
    """Return arrays of a file, all or those of some names that it has, compared with their checksums."""
    try:
        # Opened here: NumPy leaves a file that is no archive open.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in (names or file.files) if name in file.files}
    except FileNotFoundError:
        raise _unseen(path) from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ScratchError(f"{path} is damaged ({first_line(error)}); run again without resume") from None


def save_plain(path: Path, array: AnyArray) -> None:
    """Write one array as a file that can be mapped."""
    with writing(path) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def mapped(path: Path) -> AnyArray:
    """Map the array of a file that the client has written."""
    try:
        found: AnyArray = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise _unseen(path) from None
    except (OSError, ValueError, EOFError) as error:
        raise ScratchError(f"{path} is damaged ({first_line(error)}); run again without resume") from None
    return found


def _unseen(path: Path) -> ScratchError:
    return ScratchError(
        f"{path} is missing: the scratch folder must lie on storage that the client and all workers see; choose it with "
        "scratch="
    )


class Scratch:
    """A folder of one run, locked while it lasts.

    Parameters
    ----------
    folder
        Where; it is made, and removed when the run has ended well.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def session(self, purpose: str, *, resume: bool) -> Iterator[None]:
        """Hold the folder for a run known by `purpose`: go on with what is there for the same one, or begin anew."""
        note = self.folder / "run.json"
        lock = self.folder.with_name(f"{self.folder.name}.lock")
        with ExitStack() as stack:
            # Last of all, when the lock is gone: where checkpoints stay, so does the folder that holds them.
            stack.callback(remove_empty, missing_folders(self.folder.parent))
            try:
                busy = f"{self.folder} is in use: another run has its files there; choose another folder with scratch="
                stack.enter_context(exclusive(lock, busy))
            except BlockingIOError as error:
                raise EngineError(str(error)) from None
            except OSError as error:
                raise _unmade(self.folder, error) from None
            known = self._purpose(note)
            if resume and known is not None and known != purpose:
                raise EngineError(
                    f"{self.folder} holds the checkpoints of another run (another graph, k, seed or other parameters); "
                    "give the same ones, or run again without resume"
                )
            if not resume or known is None:
                shutil.rmtree(self.folder, ignore_errors=True)
                try:
                    self.folder.mkdir(parents=True)
                except OSError as error:
                    raise _unmade(self.folder, error) from None
                with writing(note) as temporary:
                    temporary.write_text(json.dumps({"purpose": purpose}), encoding="utf-8")
            try:
                yield
            except BaseException:
                if not self._begun():
                    shutil.rmtree(self.folder, ignore_errors=True)
                raise
            # Only what ended well is not needed any more.
            shutil.rmtree(self.folder, ignore_errors=True)

    def _begun(self) -> bool:
        """Whether there is anything to go on from: a result of a stage, or the state of one."""
        return any(any(self.folder.glob(f"*-*/{name}.npz")) for name in ("result", "state-*"))

    @staticmethod
    def _purpose(note: Path) -> str | None:
        try:
            return str(json.loads(note.read_text(encoding="utf-8"))["purpose"])
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _unmade(folder: Path, error: OSError) -> ScratchError:
    return ScratchError(f"cannot make the scratch folder {folder} ({first_line(error)}): choose another one with scratch=")


class Checkpoints:
    """The files of one stage: states, rounds since the last one, and in the end the result alone.

    A state is known by the number of rounds before it. Rounds before the last state are removed, so that the files take no
    more than a few times what a state takes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        """Make the folder; the client does, and workers must see it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unmade(self.folder, error) from None

    @property
    def result(self) -> Path:
        """Name of the result."""
        return self.folder / "result.npz"

    def state(self, step: int) -> Path:
        """Name of the state before a round."""
        return self.folder / f"state-{step:06}.npz"

    def round(self, step: int) -> Path:
        """Name of what a round did."""
        return self.folder / f"round-{step:06}.npz"

    def asked(self, step: int) -> Path:
        """Name of what workers are told before a round that is not the first behind a state, beside the moves so far."""
        return self.folder / f"asked-{step:06}.npz"

    def last_state(self) -> int | None:
        """Return the last state's number, None without one."""
        found = sorted(self.folder.glob("state-*.npz"))
        return int(found[-1].stem.partition("-")[2]) if found else None

    def begin_pass(self, step: int, **arrays: AnyArray) -> None:
        """Write a state, and forget what led to it."""
        save(self.state(step), **arrays)
        self._forget(lambda name: name.startswith(("state-", "round-", "asked-")) and int(name[6:12]) < step)

    def finish(self, *, keep: tuple[str, ...] = (), **arrays: AnyArray) -> None:
        """Write the result, and forget everything else but files whose names begin with one of `keep`."""
        save(self.result, **arrays)
        self._forget(lambda name: name != self.result.name and not name.startswith(keep))

    def drop(self, begin: str) -> None:
        """Remove files whose names begin so: a disk need not have room for them and for what was made of them."""
        self._forget(lambda name: name.startswith(begin))

    def _forget(self, chosen: Callable[[str], bool]) -> None:
        for file in list(self.folder.iterdir()):
            if chosen(file.name):
                if file.is_dir():
                    shutil.rmtree(file, ignore_errors=True)
                else:
                    file.unlink(missing_ok=True)


# Arrays up to this many bytes travel in messages, larger ones as files of the scratch folder.
_SMALL = 1 << 18


def packed(path: Path, **arrays: AnyArray) -> dict[str, Any]:
    """Return arrays as a message: themselves where they are small, else the name of a file that holds them."""
    if sum(array.nbytes for array in arrays.values()) <= _SMALL:
        return {"arrays": arrays}
    save(path, **arrays)
    return {"file": os.fspath(path)}


def aligned(value: Any) -> Any:
    """Return an array whose numbers lie where numbers may: what came over the wire lies as it did in the stream."""
    return np.require(value, requirements="A") if isinstance(value, np.ndarray) else value


def unpacked(message: dict[str, Any]) -> Arrays:
    """Return the arrays of a message; its file goes away."""
    if "file" not in message:
        return {name: aligned(array) for name, array in message["arrays"].items()}
    file = Path(message["file"])
    found = load(file)
    file.unlink(missing_ok=True)
    return found
