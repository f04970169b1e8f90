"""The Dask engine: stages as tasks on the workers of a cluster, with the labels of the local engine.

The client holds what a round decides: it gathers the proposals of all blocks, commits them with the native function that
threads use, and writes what was made to the scratch folder, where workers find it. These files are also the checkpoints that a
second run goes on from. A lost worker costs the tasks it had; Dask gives them to another one, which begins with the last state.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._files import require_folder_name, require_free_space
from corecut._typing import AnyArray, FloatArray, IntArray, LabelArray
from corecut._validation import check_count
from corecut.engines import coresets, tasks
from corecut.engines.cluster import Cluster, is_client
from corecut.engines.local import Centres, Distances, Drawn, Labelled, LocalEngine, Refined, Rows
from corecut.engines.scratch import Arrays, Checkpoints, EngineError, Scratch, load, save, save_plain, unpacked
from corecut.engines.session import Session, assemble, beside, divided, fingerprint, verify
from corecut.graph import Graph
from corecut.kernel import KernelView
from corecut.store import GraphStore

# Blocks of rows for every thread of the cluster, where they are worth a task: a slow one must not keep all others waiting.
_BLOCKS_PER_THREAD, _BLOCK_ENTRIES = 3, 16_000_000


def as_engine(engine: Any) -> DaskEngine | None:
    """Return the engine that an estimator's parameter stands for; None for the local one."""
    if engine is None or isinstance(engine, DaskEngine):
        return engine
    if is_client(engine):
        return DaskEngine(engine)
    raise ValueError(
        f"engine must be None, a distributed.Client or a corecut.DaskEngine, got {type(engine).__name__}: connect first, "
        'with distributed.Client("tcp://host:8786")'
    )


class DaskEngine:
    """Run the stages that read all edges on a Dask cluster; labels are those of the local engine.

    Parameters
    ----------
    client
        A `distributed.Client`.
    scratch
        Folder on storage that the client and all workers see, in which a folder `corecut-dask` for checkpoints and arrays of
        rounds is made; by default one beside the graph's store, or in the system's temporary folder for a graph that is not
        in a store.
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
        self.cluster = Cluster(client, check_count(retries, "retries", minimum=0))
        if scratch is not None:
            require_folder_name(scratch)
        self.scratch = None if scratch is None else Path(os.path.abspath(scratch))
        # What the graph's store is made of in every run, and so removed: checkpoints lie beside it instead.
        self.source: Path | None = None
        self.resume = bool(resume)
        self.least_entries = check_count(least_entries, "least_entries", minimum=0)
        self.block_entries = None if block_entries is None else check_count(block_entries, "block_entries")
        self._local = LocalEngine()
        self._session: Session | None = None
        self._note: Callable[[str], None] = _say_nothing

    @property
    def threads(self) -> int:
        """Number of threads of the client's process, for what runs in it."""
        return self._local.threads

    def __deepcopy__(self, memo: Any) -> DaskEngine:
        # A clone of an estimator uses the same cluster.
        return self

    @contextmanager
    def session(self, graph: Graph, purpose: dict[str, Any], note: Callable[[str], None] | None = None) -> Iterator[None]:
        """Check the cluster, hold the scratch folder, and remove it when all went well."""
        self._note = note or _say_nothing
        if self._session is not None:
            raise EngineError("this engine is at work already: make one for every fit that runs at the same time")
        # What stays in the client has no checkpoint, so that it decides which stage has which.
        decided = purpose | {"graph": fingerprint(graph), "least_entries": self.least_entries}
        known = json.dumps(decided, sort_keys=True, default=str)
        key = hashlib.sha256(known.encode()).hexdigest()
        # One of our own in the folder that was named: that may hold other files.
        folder = beside(self.source or graph.store, key) if self.scratch is None else self.scratch / "corecut-dask"
        # A generator has another state in every run, which its name does not tell.
        if self.resume and not isinstance(purpose.get("random_state"), Integral):
            raise EngineError("resume needs a seed: the run that was killed, and this one, must have the same random_state=")
        if graph.store is not None:
            self.cluster.check(graph.store)  # before anything is written, or removed
        with Scratch(folder).session(key, resume=self.resume):
            self._session = Session(folder)
            try:
                place = graph.store or folder / "graph.store"
                if graph.store is None:
                    if not GraphStore.is_store(place):
                        GraphStore.write(graph, place)
                    self.cluster.check(place)
                self._session.know(graph.indices, place)
                yield
                self.cluster.forget()
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
                for found in self.cluster.map("components", function, (place, str(here.folder)), self._blocks(graph)):
                    pairs = unpacked(found)
                    _core.join_pairs(leaders, pairs["one"], pairs["other"])
                _core.leaders(leaders)
                save_plain(here.folder / "leaders.npy", leaders)
            here.finish(leaders=leaders)
        names = np.cumsum(leaders == np.arange(graph.n_nodes, dtype=np.int32)) - 1
        return int(names[-1]) + 1, names[leaders].astype(np.int64)

    def group_nodes(self, graph: Graph, masses: FloatArray, cap: float, *, max_passes: int) -> LabelArray:
        """Return groups; see :class:`~corecut.engines.local.Engine`."""
        if self._stays(graph):
            return self._local.group_nodes(graph, masses, cap, max_passes=max_passes)
        here, place, blocks = self._stage("aggregation"), self._at(graph), self._blocks(graph, share=_core.ROUNDS_OF_A_PASS)
        if here.result.exists():
            return load(here.result)["groups"]
        if masses is not graph.degrees:  # which workers know
            save_plain(here.folder / "masses.npy", masses)
        threads, n = self._local.threads, graph.n_nodes
        rounds = _core.GroupRounds(graph.matrix, masses, cap, threads)
        base, step, few = self._begun_groups(here, rounds)
        number = base
        while step < max_passes:
            moves = 0
            for turn in range(_core.ROUNDS_OF_A_PASS):
                record = here.round(number)
                self._note(f"pass {step + 1}, round {turn + 1}")
                known = load(record) if record.exists() else None  # of a run that was killed
                if known is not None:
                    found = known
                elif rounds.entries_of_round(step, turn, self._least_of_a_round) < self._least_of_a_round:
                    found = dict(zip(("nodes", "targets"), rounds.propose(0, n, step, turn), strict=True))
                else:
                    # Without marks all rows of a pass are looked at.
                    told = self._tell(here, number, base, active=rounds.active()) if few else base
                    job = tasks.Round(place, str(here.folder), "aggregation", (cap,), number, base, told, (step, turn))
                    found = self._gathered("aggregation", tasks.propose_groups, job, blocks)
                made = rounds.commit(found["nodes"], found["targets"], step, turn, few, threads)
                if known is None:
                    save(record, **found, made=made)
                moves += int(made.sum())
                number += 1
            step += 1
            if moves * _core.FEW_MOVES < n:
                break
            if not few:
                rounds.all_active()
            few = moves * _core.SOME_MOVES < n
            base = number
            position = np.array([step, int(few)])
            here.begin_pass(number, labels=rounds.labels(), active=rounds.active(), position=position)
        job = tasks.Round(place, str(here.folder), "aggregation", (cap,), number, base, base, (step, 0))
        lone = self._gathered("aggregation", tasks.lone_nodes, job, blocks)
        rounds.finish(lone["nodes"], lone["targets"], threads)
        groups: LabelArray = rounds.labels()
        here.finish(groups=groups)
        return groups

    @staticmethod
    def _begun_groups(here: Checkpoints, rounds: Any) -> tuple[int, int, bool]:
        """Bring rounds of aggregation to their beginning, or to the last state of a run that was killed.

        Returns the numbers of rounds and passes before it, and whether only neighbours of moved nodes are looked at.
        """
        base = here.last_state()
        if base is None:
            here.begin_pass(0, labels=rounds.labels(), active=rounds.active(), position=np.array([0, 0]))
            return 0, 0, False
        state = load(here.state(base))
        rounds.set_labels(state["labels"])
        rounds.set_active(state["active"])
        step, few = state["position"].tolist()
        return base, step, bool(few)

    def contract(self, graph: Graph, groups: LabelArray, count: int) -> Rows:
        """Return the quotient's rows; see :class:`~corecut.engines.local.Engine`. They are mapped from the scratch folder."""
        if self._stays(graph):
            return self._local.contract(graph, groups, count)
        here, place = self._stage("contraction"), self._at(graph)
        session = self._running
        if not here.result.exists():
            require_free_space(here.folder, 12 * graph.n_entries, "the exchange of the quotient's rows")
            save_plain(here.folder / "groups.npy", groups)
            blocks = self._blocks(graph, small=True)
            entries = np.bincount(groups, np.diff(graph.indptr), minlength=count)
            parts = divided(np.concatenate([[0], np.cumsum(entries)]), len(blocks), 1)
            borders = np.array([0, *(end for _, end in parts)])
            self.cluster.map("contraction", tasks.contract_rows, (place, str(here.folder), count, borders), blocks)
            begins = np.array([begin for begin, _ in blocks])
            self.cluster.map("contraction", tasks.merge_groups, (str(here.folder), count, borders, begins), parts)
            here.drop("piece-")
            sums = assemble(here.folder, [first for first, _ in parts])
            here.finish(sums=sums, keep=("level",))
        elif self.resume:
            verify(here)
        level = here.folder / "level"
        rows = tuple(np.load(level / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices", "data"))
        indptr = np.array(rows[0])
        if rows[1].size <= self.least_entries:
            return indptr, np.array(rows[1]), np.array(rows[2])
        session.know(rows[1], level)
        return indptr, rows[1], rows[2]

    def refine(
        self,
        graph: Graph,
        sizes: FloatArray,
        labels: LabelArray,
        *,
        k: int,
        objective: _core.Objective,
        max_passes: int,
        tolerance: float,
    ) -> Refined:
        """Refine labels in place; see :class:`~corecut.engines.local.Engine`."""
        if self._stays(graph):
            return self._local.refine(
                graph, sizes, labels, k=k, objective=objective, max_passes=max_passes, tolerance=tolerance
            )
        here, place, blocks = self._stage("refinement"), self._at(graph), self._blocks(graph, share=_core.ROUNDS_OF_A_PASS)
        if here.result.exists():
            done = load(here.result)
            labels[:] = done["labels"]
            return _refined(done["counts"], done["values"])
        save_plain(here.folder / "sizes.npy", sizes)
        rounds = _core.RefineRounds(graph.matrix, graph.degrees, sizes, labels, k, objective, self.threads)
        settings = (k, objective.fee, objective.min_size, objective.max_size)
        number, (passes, moves, full, converged), (before, value) = self._begun(graph, here, rounds, labels)
        while passes < max_passes:
            base = number
            known = {
                "lacking": rounds.lacking(),
                "counts": np.array([passes, moves, full, 0]),
                "values": np.array([before, value]),
            }
            if not here.state(base).exists():
                here.begin_pass(base, labels=rounds.labels(), **known, **_round_state(rounds))
            made_now = 0
            for turn in range(_core.ROUNDS_OF_A_PASS):
                record = here.round(number)
                self._note(f"pass {passes + 1}, round {turn + 1}")
                recorded = load(record) if record.exists() else None  # of a run that was killed
                if recorded is not None:
                    found = recorded
                elif rounds.entries_of_round(passes, turn, self._least_of_a_round) < self._least_of_a_round:
                    found = dict(zip(("nodes", "targets", "lacks"), rounds.propose_all(passes, turn), strict=True))
                else:
                    told = self._tell(here, number, base, **_round_state(rounds))
                    job = tasks.Round(place, str(here.folder), "refinement", settings, number, base, told, (passes, turn))
                    found = self._gathered("refinement", tasks.propose_moves, job, blocks)
                made = rounds.commit(found["nodes"], found["targets"], found["lacks"], passes, turn)
                if recorded is None:
                    save(record, **found, made=made)
                made_now += int(made.sum())
                number += 1
            # As in `refine` of the native kernel.
            passes, moves = passes + 1, moves + made_now
            last, value = value, rounds.value()
            if made_now == 0 and full:
                converged = True
                break
            if tolerance > 0 and last - value < tolerance * value:
                break
            full = False
            if made_now == 0:
                rounds.count(self._within(graph, here, rounds.labels()))
                full = True
        labels[:] = rounds.labels()
        done = {"counts": np.array([passes, moves, full, converged]), "values": np.array([before, rounds.value()])}
        here.finish(labels=labels, counts=done["counts"], values=done["values"])
        return _refined(**done)

    def _begun(
        self, graph: Graph, here: Checkpoints, rounds: Any, labels: LabelArray
    ) -> tuple[int, tuple[int, int, bool, bool], tuple[float, float]]:
        """Bring rounds of refinement to their beginning, or to the last state of a run that was killed.

        Returns the number of rounds before it; passes, moves, and whether all nodes are looked at; F in the beginning and now.
        """
        number = here.last_state()
        if number is None:
            rounds.count(self._within(graph, here, labels))
            return 0, (0, 0, True, False), (rounds.value(), rounds.value())
        state = load(here.state(number))
        rounds.set_labels(state["labels"])
        rounds.set_lacking(state["lacking"])
        rounds.set_sums(*(state[name] for name in tasks.SUMS))
        passes, moves, full, _ = state["counts"].tolist()
        before, value = state["values"].tolist()
        return number, (passes, moves, bool(full), False), (before, value)

    def _within(self, graph: Graph, here: Checkpoints, labels: LabelArray) -> FloatArray:
        """Return every node's weight towards its own cluster."""
        save_plain(here.folder / "labels.npy", labels)
        shared = (self._at(graph), str(here.folder))
        found = self.cluster.map("refinement", tasks.weights_within, shared, self._blocks(graph))
        return np.concatenate([unpacked(message)["within"] for message in found])

    def margins(self, graph: Graph, labels: LabelArray, k: int) -> tuple[FloatArray, FloatArray]:
        """Return margins; see :class:`~corecut.engines.local.Engine`."""
        if self._stays(graph):
            return self._local.margins(graph, labels, k)
        here = self._stage("metrics")
        save_plain(here.folder / "labels.npy", labels)
        own, other = np.empty(graph.n_nodes), np.empty(graph.n_nodes)
        blocks = self._blocks(graph)
        found = self.cluster.map("metrics", tasks.margins, (self._at(graph), str(here.folder), k), blocks)
        for (begin, end), message in zip(blocks, found, strict=True):
            part = unpacked(message)
            own[begin:end], other[begin:end] = part["own"], part["other"]
        return own, other

    def race(self, kernel: KernelView, points: IntArray, count: int, *, seed: int, number: int) -> IntArray:
        """Return the winners; see :class:`~corecut.engines.local.Engine`."""
        if self._stays(kernel.graph):
            return self._local.race(kernel, points, count, seed=seed, number=number)
        stage = self._by_rows("seeds", kernel.graph)
        return coresets.race(stage, self._running.kernel(kernel), points, count, (seed, number))

    def distances(self, kernel: KernelView, points: IntArray) -> Distances:
        """Return distances; see :class:`~corecut.engines.local.Engine`."""
        if self._stays(kernel.graph):
            return self._local.distances(kernel, points)
        return coresets.distances(self._by_rows("seeds", kernel.graph), self._running.kernel(kernel), points)

    def draw(
        self,
        kernel: KernelView,
        points: IntArray,
        *,
        distances: FloatArray,
        nearest: LabelArray,
        by_seeds: bool,
        n_draws: int,
        seed: int,
    ) -> Drawn:
        """Draw points; see :class:`~corecut.engines.local.Engine`. Workers find the distances again."""
        settings: dict[str, Any] = {"by_seeds": by_seeds, "n_draws": n_draws, "seed": seed}
        if self._stays(kernel.graph):
            return self._local.draw(kernel, points, distances=distances, nearest=nearest, **settings)
        stage = self._by_rows("coreset", kernel.graph)
        return coresets.draw(stage, self._running.kernel(kernel), kernel.weights, points, threads=self.threads, **settings)

    def induced(self, graph: Graph, nodes: IntArray) -> sp.csr_array:
        """Return the submatrix; see :class:`~corecut.engines.local.Engine`."""
        if self._stays(graph) or nodes.size == 0:
            return self._local.induced(graph, nodes)
        lengths = graph.indptr[nodes + 1] - graph.indptr[nodes]
        blocks = divided(np.concatenate([[0], np.cumsum(lengths)]), self._count(int(lengths.sum())), 1)
        stage = coresets.Stage("coreset", self.cluster, self._stage("coreset"), self._at(graph), blocks)
        return coresets.induced(stage, nodes)

    def label(self, kernel: KernelView, centres: Centres) -> Labelled:
        """Return nearest centres; see :class:`~corecut.engines.local.Engine`."""
        if self._stays(kernel.graph):
            return self._local.label(kernel, centres)
        return coresets.label(self._by_rows("labelling", kernel.graph), kernel, centres)

    def _by_rows(self, name: str, graph: Graph) -> coresets.Stage:
        """Return a stage whose sums are those of fixed blocks of rows."""
        blocks = divided(graph.indptr, self._count(graph.n_entries), _core.ROWS_OF_A_MASS)
        return coresets.Stage(name, self.cluster, self._stage(name), self._at(graph), blocks)

    def write_labels(self, graph: Graph, labels: LabelArray, folder: str | os.PathLike[str]) -> None:
        """Write labels as a folder of Parquet files, one for each block of nodes; all workers must see the folder.

        Parts appear under their names when they are whole, and the list of them, `_manifest.json`, when all are.
        """
        from corecut.engines.tables import write_label_parts

        write_label_parts(self.cluster, graph, labels, Path(os.path.abspath(folder)))

    @property
    def _running(self) -> Session:
        if self._session is None:
            raise EngineError("the engine's stages run inside of its session")
        return self._session

    def _stays(self, graph: Graph) -> bool:
        """Whether a graph is so small that tasks would take longer than the work."""
        return graph.n_entries <= self.least_entries or graph.n_nodes == 0

    def _at(self, graph: Graph) -> tasks.Place:
        return self._running.place(graph)

    def _stage(self, name: str) -> Checkpoints:
        return self._running.stage(name)

    @property
    def _least_of_a_round(self) -> int:
        """Rounds that look at rows of fewer entries stay in the client."""
        return self.least_entries // _core.ROUNDS_OF_A_PASS

    @staticmethod
    def _tell(here: Checkpoints, number: int, base: int, **arrays: AnyArray) -> int:
        """Write what workers must know before a round, unless the state has it. Returns the number of the file."""
        if number > base:
            save(here.asked(number), **arrays)
        return number

    def _blocks(self, graph: Graph, *, small: bool = False, share: int = 1) -> list[tasks.Block]:
        """Return blocks of rows with about as many entries each; nothing but the time depends on where they begin.

        A task that holds all of its entries wants `small` ones, however many; one that reads but a `share` of its rows, one in
        so many, larger ones.
        """
        return divided(graph.indptr, self._count(graph.n_entries, small=small, share=share), _core.ROWS_OF_A_BLOCK)

    def _count(self, entries: int, *, small: bool = False, share: int = 1) -> int:
        if self.block_entries is not None:
            return -(-entries // self.block_entries)
        threads = max(1, sum(self.cluster.workers().values()))
        count = max(threads, entries // share // _BLOCK_ENTRIES)
        return count if small else min(count, _BLOCKS_PER_THREAD * threads)

    def _gathered(self, stage: str, function: Callable[..., Any], job: tasks.Round, blocks: Sequence[tasks.Block]) -> Arrays:
        """Return the arrays that all blocks return, put together in their order."""
        found = [unpacked(message) for message in self.cluster.map(stage, function, (job,), blocks)]
        return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


def _say_nothing(text: str) -> None:
    del text


def _round_state(rounds: Any) -> Arrays:
    """Return what workers need to know before a round of refinement, beside the labels."""
    return {"active": rounds.active(), **dict(zip(tasks.SUMS, rounds.sums(), strict=True))}


def _refined(counts: IntArray, values: FloatArray) -> Refined:
    passes, moves, _, converged = counts.tolist()
    return moves, passes, float(values[0]), float(values[1]), bool(converged)
