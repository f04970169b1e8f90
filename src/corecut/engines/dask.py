"""The Dask engine: stages as tasks on the workers of a cluster, with the labels of the local engine.

The client holds what a round decides: it gathers the proposals of all blocks, commits them with the native function that
threads use, and writes what was made to the scratch folder, where workers find it. These files are also the checkpoints that a
second run goes on from. A lost worker costs the tasks it had; Dask gives them to another one, which begins with the last state.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from corecut import _core
from corecut._files import first_line, require_free_space
from corecut._typing import AnyArray, FloatArray, IntArray, LabelArray
from corecut._validation import check_count
from corecut.engines import tasks
from corecut.engines.local import LocalEngine, Refined, Rows
from corecut.engines.scratch import Checkpoints, EngineError, Scratch, load, save, save_plain, unpacked
from corecut.graph import Graph
from corecut.store import GraphStore

# Blocks of rows for every thread of the cluster: a slow one must not keep all others waiting.
_BLOCKS_PER_THREAD = 3
# Seconds without any worker, after which a run ends.
_PATIENCE = 60.0


def connect(address: str, *, timeout: float = 10.0) -> tuple[Any, ExitStack]:
    """Return a client for "tcp://host:port", or for "local:4" with so many worker processes here, and what closes it.

    Raises EngineError in one sentence when there is no scheduler of that address.
    """
    distributed = _distributed()
    stack = ExitStack()
    local = re.fullmatch(r"local:([1-9]\d{0,3})", address)
    try:
        if local:
            cluster = distributed.LocalCluster(
                n_workers=int(local[1]), threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
            )
            stack.enter_context(cluster)
            return stack.enter_context(distributed.Client(cluster)), stack
        return stack.enter_context(distributed.Client(address, timeout=timeout)), stack
    except (OSError, ValueError, TimeoutError) as error:
        stack.close()
        raise EngineError(
            f"no Dask scheduler answers at {address!r} ({first_line(error)}): give the address that it printed when it was "
            "started, like tcp://host:8786, or local:4 for four worker processes on this machine"
        ) from None


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise EngineError('the Dask engine needs distributed; install it with: pip install "corecut[dask]"') from None
    return distributed


def as_engine(engine: Any) -> DaskEngine | None:
    """Return the engine that an estimator's parameter stands for; None for the local one."""
    if engine is None or isinstance(engine, DaskEngine):
        return engine
    if _is_client(engine):
        return DaskEngine(engine)
    raise TypeError(
        f"engine must be None, a distributed.Client or a corecut.DaskEngine, got {type(engine).__name__}: connect first, "
        'with distributed.Client("tcp://host:8786")'
    )


def _is_client(value: Any) -> bool:
    """Say whether something is a client of Dask, without importing it."""
    return any(kind.__module__.partition(".")[0] == "distributed" and kind.__name__ == "Client" for kind in type(value).__mro__)


class DaskEngine:
    """Run the stages that read all edges on a Dask cluster; labels are those of the local engine.

    Parameters
    ----------
    client
        A `distributed.Client`.
    scratch
        Folder for checkpoints and arrays of rounds, on storage that the client and all workers see; a folder beside the
        graph's store by default, in the system's temporary folder for a graph that is not in a store.
    resume
        Go on from the checkpoints of a run that was killed, with the same graph and parameters.
    retries
        How often a task that raises an error is tried again. (A task whose worker dies is given to another one, as often as
        Dask's setting `distributed.scheduler.allowed-failures` says.)
    least_entries
        Graphs and quotients of fewer entries stay in the client.
    block_entries
        Entries of a block of rows, about; None for a few blocks per thread of the cluster.

    Examples
    --------
    >>> from corecut import CoresetSpectralClustering, DaskEngine, GraphStore
    >>> engine = DaskEngine(client, scratch="/shared/scratch")                              # doctest: +SKIP
    >>> model = CoresetSpectralClustering(100, engine=engine, random_state=0)               # doctest: +SKIP
    >>> model.fit(GraphStore.open("/shared/friends.store").graph)                           # doctest: +SKIP
    """

    def __init__(
        self,
        client: Any,
        *,
        scratch: str | os.PathLike[str] | None = None,
        resume: bool = False,
        retries: int = 3,
        least_entries: int = 5_000_000,
        block_entries: int | None = None,
    ) -> None:
        if not _is_client(client):
            raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}")
        self.client = client
        self.scratch = None if scratch is None else Path(os.path.abspath(scratch))
        self.resume = bool(resume)
        self.retries = check_count(retries, "retries", minimum=0)
        self.least_entries = check_count(least_entries, "least_entries", minimum=0)
        self.block_entries = None if block_entries is None else check_count(block_entries, "block_entries")
        self._local = LocalEngine()
        self._session: _Session | None = None

    @property
    def threads(self) -> int:
        """Number of threads of the client's process, for what runs in it."""
        return self._local.threads

    def __deepcopy__(self, memo: Any) -> DaskEngine:
        # A clone of an estimator uses the same cluster.
        return self

    @contextmanager
    def session(self, graph: Graph, purpose: dict[str, Any]) -> Iterator[None]:
        """Check the cluster, hold the scratch folder, and remove it when all went well."""
        if self._session is not None:
            raise EngineError("this engine is at work already: make one for every fit that runs at the same time")
        known = json.dumps(purpose | {"graph": _fingerprint(graph)}, sort_keys=True, default=str)
        key = hashlib.sha256(known.encode()).hexdigest()
        folder = self.scratch or _beside(graph, key)
        if self.resume and purpose.get("random_state") is None:
            raise EngineError("resume needs a seed: the run that was killed, and this one, must have the same random_state=")
        with Scratch(folder).session(key, resume=self.resume):
            self._session = _Session(folder, secrets.token_hex(3))
            try:
                if graph.store is None:
                    place = folder / "graph.store"
                    if not GraphStore.is_store(place):
                        GraphStore.write(graph, place)
                    self._session.know(graph, place, whole=graph.weights is None)
                else:
                    self._session.know(graph, graph.store, whole=graph.weights is None)
                self._check_workers(self._session.place(graph))
                yield
                self._forget()
            finally:
                self._session = None

    def components(self, graph: Graph) -> tuple[int, IntArray]:
        """Return components; see :class:`~corecut.engines.local.Engine`."""
        if self._stays(graph):
            return self._local.components(graph)
        here, place = self._stage("components"), self._at(graph)
        if here.result.exists():
            leaders = load(here.result)["leaders"]
        else:
            leaders = np.arange(graph.n_nodes, dtype=np.int32)
            for function in (tasks.first_pairs, tasks.joining_pairs):
                for found in self._map("components", function, (place, str(here.folder)), self._blocks(graph)):
                    pairs = unpacked(found)
                    _core.join_pairs(leaders, pairs["one"], pairs["other"])
                _core.leaders(leaders)
                save_plain(here.folder / "leaders.npy", leaders)
            here.finish(leaders=leaders)
        names = np.cumsum(leaders == np.arange(graph.n_nodes, dtype=np.int32)) - 1
        return int(names[-1]) + 1, names[leaders].astype(np.int64)

    def group_nodes(self, graph: Graph, cap: float, max_passes: int) -> LabelArray:
        """Return groups; see :class:`~corecut.engines.local.Engine`."""
        if self._stays(graph):
            return self._local.group_nodes(graph, cap, max_passes)
        here, place, blocks = self._stage("aggregation"), self._at(graph), self._blocks(graph)
        if here.result.exists():
            return load(here.result)["groups"]
        threads, n = self._local.threads, graph.n_nodes
        rounds = _core.GroupRounds(graph.matrix, graph.degrees, cap, threads)
        base = here.last_state()
        if base is None:
            base, step, few = 0, 0, False
            here.begin_pass(0, labels=rounds.labels(), active=np.packbits(rounds.active()), position=np.array([0, 0]))
        else:
            state = load(here.state(base))
            rounds.set_labels(state["labels"])
            rounds.set_active(np.unpackbits(state["active"], count=n))
            step, few = int(state["position"][0]), bool(state["position"][1])
        number = base
        while step < max_passes:
            moves = 0
            for turn in range(_core.ROUNDS_OF_A_PASS):
                record = here.round(number)
                if record.exists():  # of a run that was killed
                    done = load(record)
                    rounds.replay(done["nodes"], done["targets"], done["made"], step, turn, few, threads)
                    moves += int(done["made"].sum())
                else:
                    job = tasks.Round(place, str(here.folder), (cap,), number, base, (step, turn))
                    nodes, targets = self._pairs("aggregation", tasks.propose_groups, job, blocks)
                    made = rounds.commit(nodes, targets, step, turn, few, threads)
                    active = {"active": np.packbits(rounds.active())} if few else {}
                    save(record, nodes=nodes, targets=targets, made=made, number=np.array(number), **active)
                    moves += int(made.sum())
                number += 1
            step += 1
            if moves * _core.FEW_MOVES < n:
                break
            if not few:
                rounds.set_active(np.ones(n, np.uint8))
            few = moves * _core.SOME_MOVES < n
            base = number
            position = np.array([step, int(few)])
            here.begin_pass(number, labels=rounds.labels(), active=np.packbits(rounds.active()), position=position)
        job = tasks.Round(place, str(here.folder), (cap,), number, base, (step, 0))
        rounds.finish(*self._pairs("aggregation", tasks.lone_nodes, job, blocks), threads)
        groups: LabelArray = rounds.labels()
        here.finish(groups=groups)
        return groups

    def contract(self, graph: Graph, groups: LabelArray, count: int) -> Rows:
        """Return the quotient's rows; see :class:`~corecut.engines.local.Engine`. They are mapped from the scratch folder."""
        if self._stays(graph):
            return self._local.contract(graph, groups, count)
        here, place = self._stage("contraction"), self._at(graph)
        session = self._running
        if not here.result.exists():
            require_free_space(here.folder, 12 * graph.n_entries, "the exchange of the quotient's rows")
            save_plain(here.folder / "groups.npy", groups)
            blocks = self._blocks(graph)
            whole = session.whole(graph)
            self._map("contraction", tasks.contract_rows, (place, str(here.folder), count, whole), blocks)
            begins = np.array([begin for begin, _ in blocks])
            entries = np.bincount(groups, np.diff(graph.indptr), minlength=count)
            parts = _divided(np.concatenate([[0], np.cumsum(entries)]), len(blocks), 1)
            self._map("contraction", tasks.merge_groups, (str(here.folder), count, begins), parts)
            sums = _assemble(here.folder, [first for first, _ in parts])
            here.finish(sums=sums, keep=("rows-",))
        elif self.resume:
            _verify(here)
        rows = tuple(np.load(here.folder / f"rows-{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "data"))
        indptr = np.array(rows[0])
        if rows[1].size <= self.least_entries:
            return indptr, np.array(rows[1]), np.array(rows[2])
        session.expect(rows[1], here.folder, whole=session.whole(graph))
        return indptr, rows[1], rows[2]

    def refine(
        self,
        graph: Graph,
        sizes: FloatArray,
        labels: LabelArray,
        k: int,
        objective: _core.Objective,
        due: FloatArray | None,
        max_passes: int,
        tolerance: float,
    ) -> Refined:
        """Refine labels in place; see :class:`~corecut.engines.local.Engine`."""
        return self._local.refine(graph, sizes, labels, k, objective, due, max_passes, tolerance)

    def margins(self, graph: Graph, labels: LabelArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Return margins; see :class:`~corecut.engines.local.Engine`."""
        if self._stays(graph):
            return self._local.margins(graph, labels, k)
        here = self._stage("metrics")
        save_plain(here.folder / "labels.npy", labels)
        own, other = np.empty(graph.n_nodes), np.empty(graph.n_nodes)
        blocks = self._blocks(graph)
        found = self._map("metrics", tasks.margins, (self._at(graph), str(here.folder), k), blocks)
        for (begin, end), message in zip(blocks, found, strict=True):
            part = unpacked(message)
            own[begin:end], other[begin:end] = part["own"], part["other"]
        return own, other

    @property
    def _running(self) -> _Session:
        if self._session is None:
            raise EngineError("the engine's stages run inside of its session")
        return self._session

    def _stays(self, graph: Graph) -> bool:
        """Whether a graph is so small that tasks would take longer than the work."""
        return graph.n_entries <= self.least_entries or graph.n_nodes == 0

    def _at(self, graph: Graph) -> tasks.Place:
        return tasks.Place(str(self._running.place(graph)))

    def _stage(self, name: str) -> Checkpoints:
        return self._running.stage(name)

    def _blocks(self, graph: Graph) -> list[tasks.Block]:
        """Return blocks of rows with about as many entries each; nothing but the time depends on where they begin."""
        if self.block_entries is not None:
            count = -(-graph.n_entries // self.block_entries)
        else:
            count = _BLOCKS_PER_THREAD * max(1, sum(self._workers().values()))
        return _divided(graph.indptr, count, _core.ROWS_OF_A_BLOCK)

    def _workers(self) -> dict[str, int]:
        try:
            return dict(self.client.nthreads())
        except Exception as error:
            raise EngineError(_lost(error)) from None

    def _pairs(
        self, stage: str, function: Callable[..., Any], job: tasks.Round, blocks: Sequence[tasks.Block]
    ) -> tuple[LabelArray, LabelArray]:
        """Return what all blocks propose, in their order."""
        found = [unpacked(message) for message in self._map(stage, function, (job,), blocks)]
        return np.concatenate([one["nodes"] for one in found]), np.concatenate([one["targets"] for one in found])

    def _map(
        self, stage: str, function: Callable[..., Any], shared: tuple[Any, ...], blocks: Sequence[tasks.Block]
    ) -> list[Any]:
        """Run a function on every block and return the results in the order of the blocks."""
        session, workers = self._running, sorted(self._workers())
        session.calls += 1
        futures = []
        for i, block in enumerate(blocks):
            # The same rows to the same worker, while it lives: it has them in its memory.
            at = [workers[i * len(workers) // len(blocks)]] if workers else None
            futures.append(
                self.client.submit(
                    function,
                    *shared,
                    block,
                    key=f"{stage}-{session.token}-{session.calls}-{i}",
                    pure=False,
                    retries=self.retries,
                    workers=at,
                    allow_other_workers=at is not None,
                )
            )
        try:
            self._wait(stage, futures)
            for future, block in zip(futures, blocks, strict=True):
                if future.status == "error":
                    raise _failed(stage, block, future.exception()) from None
                if future.status != "finished":
                    raise EngineError(_lost(f"{stage} was {future.status}"))
            try:
                results: list[Any] = self.client.gather(futures)
            except Exception as error:
                raise EngineError(_lost(error)) from None
            return results
        finally:
            for future in futures:
                with suppress(Exception):  # the connection may be gone
                    future.release()

    def _wait(self, stage: str, futures: list[Any]) -> None:
        """Wait until all tasks have ended, but not for ever without a worker."""
        distributed = _distributed()
        alone_since: float | None = None
        while True:
            try:
                distributed.wait(futures, timeout=5)
                return
            except TimeoutError:
                pass
            except Exception as error:  # futures are cancelled when the scheduler goes away
                raise EngineError(_lost(error)) from None
            if self._workers():
                alone_since = None
            elif alone_since is None:
                alone_since = monotonic()
            elif monotonic() - alone_since > _PATIENCE:
                raise EngineError(f"the cluster has had no worker for {_PATIENCE:.0f} s in {stage}; start some, then resume")

    def _check_workers(self, folder: Path) -> None:
        """Refuse workers that have other versions or do not see the graph."""
        try:
            found = self.client.run(tasks.describe, str(folder), on_error="return")
        except Exception as error:
            raise EngineError(_lost(error)) from None
        if not found:
            raise EngineError("the Dask cluster has no workers; start some first")
        mine = tasks.describe(str(folder))
        for worker, answer in sorted(found.items()):
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

    def _forget(self) -> None:
        """Let workers give back what they keep."""
        with suppress(Exception):  # a worker that is gone keeps nothing
            self.client.run(tasks.forget, on_error="ignore")


class _Session:
    """One fit: its folder, and where graphs lie."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder = folder
        self.token = token
        self.calls = 0
        self._stages = 0
        self._known: list[tuple[AnyArray, Path, bool]] = []

    def stage(self, name: str) -> Checkpoints:
        """Return the files of the next stage; the same stages come in the same order in every run."""
        self._stages += 1
        return Checkpoints(self.folder / f"{self._stages:03}-{name}")

    def know(self, graph: Graph, folder: Path, *, whole: bool) -> None:
        """Remember where a graph lies."""
        self._known.append((graph.indices, folder, whole))

    def expect(self, indices: AnyArray, folder: Path, *, whole: bool) -> None:
        """Remember where the graph lies that will be made of these columns."""
        self._known.append((indices, folder, whole))

    def whole(self, graph: Graph) -> bool:
        """Whether all weights are whole numbers, whose sums do not depend on the order."""
        return self._find(graph)[1]

    def place(self, graph: Graph) -> Path:
        """Return where a graph lies; a quotient's degrees are put beside it when they are first needed."""
        folder, _ = self._find(graph)
        if not GraphStore.is_store(folder):
            folder = folder / "level"
            if not (folder / "degrees.npy").exists():
                folder.mkdir(exist_ok=True)
                for name in ("indptr", "indices", "data"):
                    with suppress(FileExistsError):
                        os.link(folder.parent / f"rows-{name}.npy", folder / f"{name}.npy")
                save_plain(folder / "degrees.npy", graph.degrees)
        return folder

    def _find(self, graph: Graph) -> tuple[Path, bool]:
        for indices, folder, whole in self._known:
            if indices is graph.indices:
                return folder, whole
        raise EngineError("a graph of this stage lies in no folder that workers could read")


def _divided(borders: AnyArray, count: int, unit: int) -> list[tasks.Block]:
    """Cut rows into at most `count` blocks of about as many entries; they begin at multiples of `unit`."""
    rows, entries = borders.size - 1, int(borders[-1])
    # An empty row costs something, too.
    wanted = np.linspace(0, entries + rows, max(1, count) + 1)[1:-1]
    cuts = np.searchsorted(np.asarray(borders) + np.arange(rows + 1), wanted)
    edges = np.unique(np.concatenate([[0], np.minimum(cuts // unit * unit, rows), [rows]]))
    return [(int(begin), int(end)) for begin, end in zip(edges[:-1], edges[1:], strict=True)]


def _assemble(folder: Path, firsts: list[int]) -> IntArray:
    """Put the quotient's rows together from the blocks' files, without ever holding them all. Returns checksums."""
    lengths = np.concatenate([np.load(folder / f"merged-{first}.lengths.npy") for first in firsts])
    save_plain(folder / "rows-indptr.npy", np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    total = int(lengths.sum())
    for name, part, dtype in (("indices", "columns", np.int32), ("data", "weights", np.float64)):
        with (folder / f"rows-{name}.npy").open("wb") as file:
            header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (total,)}
            np.lib.format.write_array_header_1_0(file, header)
            for first in firsts:
                file.write(np.load(folder / f"merged-{first}.{part}.npy", mmap_mode="r").data)
    return _checksums(folder)


def _checksums(folder: Path) -> IntArray:
    sums = []
    for name in ("indptr", "indices", "data"):
        checksum = 0
        with (folder / f"rows-{name}.npy").open("rb") as file:
            while block := file.read(1 << 24):
                checksum = zlib.crc32(block, checksum)
        sums.append(checksum)
    return np.array(sums, np.int64)


def _verify(here: Checkpoints) -> None:
    try:
        good = np.array_equal(_checksums(here.folder), load(here.result)["sums"])
    except OSError:
        good = False
    if not good:
        raise EngineError(f"the checkpoint {here.folder} is damaged: its checksum is wrong; run again without resume")


def _fingerprint(graph: Graph) -> str:
    """Return what tells a graph from another: the checksums of a store, or those of the arrays."""
    if graph.store is not None:
        return str(tasks.describe(str(graph.store)).get("seen"))
    parts = [graph.indptr, graph.indices] + ([] if graph.weights is None else [graph.weights])
    return str([zlib.crc32(np.ascontiguousarray(part).data.cast("B")) for part in parts])


def _beside(graph: Graph, key: str) -> Path:
    if graph.store is None:
        return Path(tempfile.gettempdir()) / f"corecut-dask-{key[:12]}"
    return graph.store.with_name(f".{graph.store.name}.dask")


def _lost(error: object) -> str:
    reason = first_line(error) if isinstance(error, BaseException) else str(error)
    return f"the Dask scheduler is gone ({reason}): start the cluster again and go on with resume"


def _failed(stage: str, block: tasks.Block, error: BaseException | None) -> EngineError:
    """Say in one sentence why a task has failed for good."""
    if isinstance(error, EngineError):
        return error
    where = f"{stage} of rows {block[0]:,} to {block[1] - 1:,}"
    if type(error).__name__ == "KilledWorker":
        return EngineError(
            f"{where} failed: each worker that tried it died; give workers more memory, or make the blocks smaller with "
            "block_entries="
        )
    reason = first_line(error) if error is not None else "unknown"
    return EngineError(f"{where} failed again and again ({type(error).__name__}: {reason})")
