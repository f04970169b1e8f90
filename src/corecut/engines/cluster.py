"""The cluster: tasks on the workers of a Dask scheduler, results in order, and one sentence when something is wrong."""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from time import monotonic
from typing import Any

from corecut._files import GraphFileError, first_line
from corecut.engines import tasks
from corecut.engines.scratch import EngineError

# Seconds without any worker, after which a run ends; and for which a list of workers counts.
_PATIENCE, _FRESH = 60.0, 2.0
# What processes of this machine do without: looks at each other that take as long as a small task, at any time.
_QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
}


@contextmanager
def connect(address: str, *, timeout: float = 10.0) -> Iterator[Any]:
    """Give a client for "tcp://host:port", or for "local:4" with so many worker processes here, which end with it."""
    distributed = _distributed()
    local = re.fullmatch(r"local:([1-9]\d{0,3})", address)
    if local is None and address.lower().startswith("local:"):
        raise EngineError(f"{address!r} names no number of worker processes on this machine: local:1 to local:9999 do")
    with ExitStack() as stack:
        try:
            if local:
                import dask

                stack.enter_context(dask.config.set(_QUIET))
                with _deaf():
                    cluster = stack.enter_context(
                        distributed.LocalCluster(
                            n_workers=int(local[1]),
                            threads_per_worker=1,
                            processes=True,
                            dashboard_address=":0",
                            silence_logs=50,
                        )
                    )
                client = distributed.Client(cluster, direct_to_workers=True)
            else:
                # Of a scheduler that goes away Dask tells in thirty lines, and we in one.
                stack.enter_context(distributed.utils.silence_logging_cmgr(50))
                asyncio.run(_greet(address, timeout))
                client = distributed.Client(address, timeout=timeout)
        except (OSError, ValueError, TypeError, TimeoutError) as error:
            reason = first_line(error) if str(error) else "something else may listen there: it does not greet as Dask does"
            raise EngineError(
                f"no Dask scheduler answers at {address!r} ({reason}): give the address that it printed when it was "
                "started, like tcp://host:8786, or local:4 for four worker processes on this machine"
            ) from None
        yield stack.enter_context(client)


async def _greet(address: str, timeout: float) -> None:
    """Find out whether a server of Dask is there: a client waits for ever for the greeting of any other, a web page, say."""
    distributed = _distributed()
    settings = distributed.Security().get_connection_args("client")
    comm = await asyncio.wait_for(distributed.comm.connect(address, timeout=timeout, **settings), 1.5 * timeout)
    await comm.close()


@contextmanager
def _deaf() -> Iterator[None]:
    """Let processes that are started inside never hear Ctrl-C: a terminal tells all of them, and this one ends the others."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # whose start would end what follows
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise EngineError('the Dask engine needs distributed; install it with: pip install "corecut[dask]"') from None
    return distributed


def is_client(value: Any) -> bool:
    """Say whether something is a client of Dask, without importing it."""
    return any(kind.__module__.partition(".")[0] == "distributed" and kind.__name__ == "Client" for kind in type(value).__mro__)


class Cluster:
    """The workers of a client.

    Parameters
    ----------
    client
        A `distributed.Client`.
    retries
        How often a task that raises an error is tried again.
    """

    def __init__(self, client: Any, retries: int) -> None:
        if not is_client(client):
            raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}")
        if client.asynchronous:
            raise TypeError("client must not be asynchronous: make one with distributed.Client(..., asynchronous=False)")
        self.client = client
        self.retries = retries
        self._token = secrets.token_hex(3)
        self._calls = 0
        self._known: tuple[float, dict[str, int]] = (-_FRESH, {})

    def workers(self) -> dict[str, int]:
        """Return the addresses of all workers and their numbers of threads, as they were a moment ago."""
        asked, found = self._known
        # Without any, the next look may find some.
        if not found or monotonic() - asked > _FRESH:
            try:
                found = dict(self.client.nthreads())
            except Exception as error:
                raise EngineError(_lost(error)) from None
            self._known = monotonic(), found
        return found

    def map(
        self, stage: str, function: Callable[..., Any], shared: tuple[Any, ...], blocks: Sequence[tasks.Block]
    ) -> list[Any]:
        """Run a function on every block and return the results in the order of the blocks."""
        workers = sorted(self.workers())
        self._calls += 1
        # The same rows to the same worker, while it lives: it has them in its memory.
        meant: list[str | None] = [workers[i * len(workers) // len(blocks)] if workers else None for i in range(len(blocks))]
        futures: list[Any] = []

        def submit(i: int, key: str) -> Any:
            at = meant[i]
            options = {} if at is None else {"workers": [at], "allow_other_workers": True}
            try:
                return self.client.submit(
                    tasks.run, function, *shared, blocks[i], key=key, pure=False, retries=self.retries, **options
                )
            except Exception as error:  # a client whose scheduler went away takes nothing any more
                raise EngineError(_lost(error)) from None

        try:
            futures += [submit(i, f"{stage}-{self._token}-{self._calls}-{i}") for i in range(len(blocks))]
            alone_since: float | None = None
            # A worker that dies takes its finished results along, and their tasks run again.
            while any(future.status != "finished" for future in futures):
                if not self._ended(futures):
                    alone_since = self._alone(stage, alone_since)
                for future, block in zip(futures, blocks, strict=True):
                    if future.status == "error":
                        raise _failed(stage, block, future.exception()) from None
                    if future.status == "cancelled":
                        raise EngineError(_lost(f"{stage} was cancelled"))
                # Tasks that were meant for a worker which died, when no other lived, Dask gives to nobody who comes later.
                alive = self.workers()
                for i, future in enumerate(futures):
                    if future.status == "pending" and meant[i] is not None and alive and meant[i] not in alive:
                        meant[i] = None
                        futures[i] = submit(i, f"{future.key}-again")
                        future.release()
            try:
                results: list[Any] = self.client.gather(futures)
            except Exception as error:
                raise EngineError(_lost(error)) from None
            return results
        finally:
            for future in futures:
                with suppress(Exception):  # the connection may be gone
                    future.release()

    @staticmethod
    def _ended(futures: list[Any]) -> bool:
        """Wait a few seconds, and say whether all tasks have ended."""
        try:
            _distributed().wait(futures, timeout=5)
        except TimeoutError:
            return False
        except Exception as error:  # futures are cancelled when the scheduler goes away
            raise EngineError(_lost(error)) from None
        return True

    def _alone(self, stage: str, since: float | None) -> float | None:
        """Return since when there has been no worker, None if there is one. A run does not wait for ever."""
        if self.workers():
            return None
        if since is not None and monotonic() - since > _PATIENCE:
            raise EngineError(f"the cluster has had no worker for {_PATIENCE:.0f} s in {stage}; start some, then resume")
        return monotonic() if since is None else since

    def check(self, folder: Path) -> None:
        """Refuse workers that have other versions or do not see the graph."""
        if self.client.status in ("closing", "closed"):
            raise EngineError("the Dask client is closed: connect again, and leave it open until the end")
        try:
            found = self.client.run(tasks.describe, str(folder), on_error="return")
        except Exception as error:
            raise EngineError(_lost(error)) from None
        if not found:
            raise EngineError("the Dask cluster has no workers; start some first")
        mine = tasks.describe(str(folder))
        for worker, answer in sorted(found.items()):
            if isinstance(answer, OSError):  # it has just died
                continue
            if isinstance(answer, BaseException):
                raise EngineError(
                    f"the worker {worker} cannot run corecut ({first_line(answer)}): install corecut {mine['corecut']} there"
                )
            for name in ("corecut", "python", "numpy"):
                if answer[name] != mine[name]:
                    raise EngineError(
                        f"the worker {worker} has {name} {answer[name]}, the client {mine[name]}: labels are only the same "
                        "with the same versions; install them alike"
                    )
            if "error" in answer:
                raise EngineError(
                    f"the worker {worker} does not see {folder} ({answer['error']}): put the graph on storage that all "
                    "workers see under the same name"
                )
            if answer.get("seen") != mine.get("seen"):
                raise EngineError(
                    f"the worker {worker} sees another graph at {folder} than the client: give one that all share"
                )

    def forget(self) -> None:
        """Let workers give back what they keep."""
        with suppress(Exception):  # a worker that is gone keeps nothing
            self.client.run(tasks.forget, on_error="ignore")


def _lost(error: object) -> str:
    reason = first_line(error) if isinstance(error, BaseException) else str(error)
    return f"the Dask scheduler is gone ({reason}): start the cluster again and go on with resume"


def _failed(stage: str, block: tasks.Block, error: BaseException | None) -> EngineError:
    """Say in one sentence why a task has failed for good."""
    if isinstance(error, EngineError):
        return error
    if isinstance(error, GraphFileError):  # which says all
        return EngineError(str(error))
    where = f"{stage} of {'files' if stage == 'edges' else 'rows'} {block[0]:,} to {block[1] - 1:,}"
    if type(error).__name__ == "KilledWorker":
        return EngineError(
            f"{where} failed: each worker that tried it died; give workers more memory, or make the blocks smaller with "
            "block_entries="
        )
    reason = first_line(error) if error is not None else "unknown"
    return EngineError(f"{where} failed again and again ({type(error).__name__}: {reason})")
