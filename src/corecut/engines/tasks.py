"""What a worker does: pure functions of a block of rows, of arrays in the scratch folder, and of a few numbers.

A worker maps its rows from the graph's files. The state of rounds (labels, sums) it keeps between tasks, and brings it up to
date from the files that the client writes after each round; a new worker, or one that fell behind, begins with the last state.
So a task may run anywhere, again, or twice.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import corecut
from corecut import _core
from corecut._files import GraphFileError
from corecut._typing import AnyArray, IntArray
from corecut.engines.scratch import Checkpoints, EngineError, aligned, load, mapped, packed, save_plain
from corecut.store import GraphStore

Block = tuple[int, int]


@dataclass(frozen=True)
class Place:
    """Where a graph lies: a store, or the files of a quotient in the scratch folder.

    Attributes
    ----------
    folder
        Its name.
    run
        Of which run: what a worker keeps of another one that had the same folder is not taken for this one's.
    """

    folder: str
    run: str

    def files(self) -> dict[str, AnyArray]:
        """Map the arrays of the graph; degrees too."""
        folder = Path(self.folder)
        try:
            if GraphStore.is_store(folder):
                graph = GraphStore.open(folder).graph
                found = {"indptr": graph.indptr, "indices": graph.indices, "degrees": graph.degrees}
                return found if graph.weights is None else found | {"data": graph.weights}
            return {file.stem: np.load(file, mmap_mode="r") for file in folder.glob("*.npy")}
        except (OSError, GraphFileError) as error:
            raise EngineError(_unseen(folder, error)) from None


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task with what it was sent."""
    return function(*map(aligned, arguments))


def edge_files(path: Path) -> list[Path]:
    """Return the Parquet files of a folder that is not a store; none for anything else."""
    return sorted(path.glob("*.parquet")) if path.is_dir() and not GraphStore.is_store(path) else []


def _unseen(folder: Path, error: object) -> str:
    return f"a worker cannot read {folder} ({error}): the graph must lie on storage that all workers see under the same name"


@dataclass(frozen=True)
class Round:
    """A round of a stage: the state it begins with is that of `base` and what the rounds since then did.

    Attributes
    ----------
    place
        The graph.
    stage
        Folder of the stage's checkpoints.
    kind
        "aggregation" or "refinement".
    settings
        What the stage's rounds are made with: the bound on volumes; or k, fee, smallest and largest size.
    number, base, told
        Rounds before this one, before the last state that was written, and before the one when sums and rows to look at were.
    turn
        Pass, and round of the pass.
    """

    place: Place
    stage: str
    kind: str
    settings: tuple[float, ...]
    number: int
    base: int
    told: int
    turn: tuple[int, int]


class _Kept:
    """What a worker process keeps: the arrays of one graph, and the state of one stage. Older ones are let go."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.place: Place | None = None
        self.files: dict[str, AnyArray] = {}
        self.matrix: Any = None
        self.stage: tuple[Any, ...] | None = None
        self.number = -1
        self.told: tuple[Any, int] | None = None
        self.rounds: Any = None

    def let_go(self) -> None:
        """Forget everything."""
        self.rounds = self.stage = self.told = self.matrix = self.place = None
        self.files = {}

    def graph(self, place: Place) -> tuple[Any, dict[str, AnyArray]]:
        """Return the graph's matrix and files."""
        if self.place != place:
            files = place.files()
            self.matrix = _core.Matrix(files["indptr"], files["indices"], files.get("data"))
            self.place, self.files = place, files
        return self.matrix, self.files

    def before(self, job: Round) -> Any:
        """Return the state before a round."""
        stage = (job.place, job.stage)
        checkpoints = Checkpoints(Path(job.stage))
        if self.stage != stage:
            self.rounds = self.stage = self.told = None  # before the next one takes memory
            self.rounds = self._begun(job, checkpoints)
            self.stage, self.number = stage, -1
        if self.number > job.number or self.number < job.base:
            self.rounds.set_labels(load(checkpoints.state(job.base), "labels")["labels"])
            self.number = job.base
        while self.number < job.number:
            number, self.number = self.number, -1  # should this fail half-way
            made = load(checkpoints.round(number), "nodes", "targets", "made")
            chosen = made["made"].astype(bool)
            self.rounds.move(made["nodes"][chosen], made["targets"][chosen])
            self.number = number + 1
        if self.told != (stage, job.told):
            # A round may begin with other sums, or other rows to look at, than the last one ended with.
            told = checkpoints.state(job.base) if job.told == job.base else checkpoints.asked(job.told)
            self._know(load(told, *_KNOWN))
            self.told = stage, job.told
        return self.rounds

    def _begun(self, job: Round, checkpoints: Checkpoints) -> Any:
        matrix, files = self.graph(job.place)
        if job.kind == "aggregation":
            (cap,) = job.settings
            masses = checkpoints.folder / "masses.npy"
            return _core.GroupRounds(matrix, np.load(masses, mmap_mode="r") if masses.exists() else files["degrees"], cap, 1)
        k, *objective = job.settings
        sizes = mapped(checkpoints.folder / "sizes.npy")
        labels = load(checkpoints.state(job.base), "labels")["labels"]
        return _core.RefineRounds(matrix, files["degrees"], sizes, labels, int(k), _core.Objective(*objective), 1)

    def _know(self, arrays: dict[str, AnyArray]) -> None:
        if "active" in arrays:
            self.rounds.set_active(arrays["active"])
        if "inside" in arrays:
            self.rounds.set_sums(*(arrays[name] for name in SUMS))


def matrix_at(place: Place) -> Any:
    """Return the matrix of a graph."""
    with _KEPT.lock:
        return _KEPT.graph(place)[0]


SUMS = ("inside", "volume", "size", "members")
_KNOWN = ("active", *SUMS)
_KEPT = _Kept()


def describe(folder: str) -> dict[str, str]:
    """Return a worker's versions, and what it sees of the graph: the checksums of a store, or the sizes of edge files."""
    versions = {"python": ".".join(map(str, sys.version_info[:2])), "numpy": np.__version__, "corecut": corecut.__version__}
    try:
        files = edge_files(Path(folder))
        if files:
            seen = str([(file.name, file.stat().st_size) for file in files])
        else:
            store = GraphStore.open(folder)
            seen = str(sorted((name, known["crc32"]) for name, known in store.description["corecut"]["files"].items()))
    except (OSError, GraphFileError) as error:
        return versions | {"error": str(error)}
    return versions | {"seen": seen}


def forget() -> None:
    """Give back what this process keeps."""
    with _KEPT.lock:
        _KEPT.let_go()


def propose_groups(job: Round, block: Block) -> dict[str, Any]:
    """Return the moves that rows of a block propose in a round of aggregation."""
    with _KEPT.lock:
        rounds = _KEPT.before(job)
    nodes, targets = rounds.propose(*block, *job.turn)
    return packed(Path(job.stage) / f"moves-{job.number}-{block[0]}.npz", nodes=nodes, targets=targets)


def lone_nodes(job: Round, block: Block) -> dict[str, Any]:
    """Return the nodes of a block that are alone after the last round, and the groups that they would like to be in."""
    with _KEPT.lock:
        rounds = _KEPT.before(job)
    nodes, targets = rounds.lone(*block)
    return packed(Path(job.stage) / f"lone-{block[0]}.npz", nodes=nodes, targets=targets)


def propose_moves(job: Round, block: Block) -> dict[str, Any]:
    """Return the moves that rows of a block propose in a round of refinement, and what other rows lack for one."""
    with _KEPT.lock:
        rounds = _KEPT.before(job)
    nodes, targets, lacks = rounds.propose(*block, *job.turn)
    name = f"moves-{job.number}-{block[0]}.npz"
    return packed(Path(job.stage) / name, nodes=nodes, targets=targets, lacks=lacks)


def weights_within(place: Place, stage: str, block: Block) -> dict[str, Any]:
    """Return the weight of every row towards its own cluster."""
    matrix = matrix_at(place)
    labels = mapped(Path(stage) / "labels.npy")
    within = _core.weights_within(matrix, labels, *block)
    return packed(Path(stage) / f"within-{block[0]}.npz", within=within)


_PIECES = ("groups", "lengths", "columns", "weights")


def contract_rows(place: Place, stage: str, count: int, borders: IntArray, block: Block) -> int:
    """Write what the rows of a block add to the quotient, by parts of the groups. Returns the number of entries."""
    matrix = matrix_at(place)
    groups = mapped(Path(stage) / "groups.npy")
    found: tuple[AnyArray, ...] = _core.contract_rows(matrix, groups, count, *block, borders)
    for name, array in zip((*_PIECES, "starts"), found, strict=True):
        save_plain(Path(stage) / f"piece-{block[0]}.{name}.npy", array)
    return int(found[2].size)


def merge_groups(stage: str, count: int, borders: IntArray, begins: IntArray, block: Block) -> int:
    """Write the quotient's rows of a part of the groups, from what all blocks of rows add. Returns the number of entries."""
    first, last = block
    part = int(np.searchsorted(borders, first))
    pieces: dict[str, list[AnyArray]] = {name: [] for name in _PIECES}
    for begin in begins.tolist():
        starts = np.array(mapped(Path(stage) / f"piece-{begin}.starts.npy")).reshape(2, -1)[:, part : part + 2].tolist()
        for name, (low, high) in zip(_PIECES, (starts[0], starts[0], starts[1], starts[1]), strict=True):
            # Of a graph without weights there are none.
            pieces[name].append(mapped(Path(stage) / f"piece-{begin}.{name}.npy")[low:high])
    of, lengths, columns, weights = (np.concatenate(part) for part in pieces.values())
    lengths, columns, weights = _core.merge_pieces(of, lengths, columns, weights, first, last, count)
    for name, array in (("lengths", lengths), ("columns", columns), ("weights", weights)):
        save_plain(Path(stage) / f"merged-{first}.{name}.npy", array)
    return int(columns.size)


def first_pairs(place: Place, stage: str, block: Block) -> dict[str, Any]:
    """Return pairs of nodes that the first entries of the rows join."""
    matrix = matrix_at(place)
    one, other = _core.first_pairs(matrix, *block)
    return packed(Path(stage) / f"first-{block[0]}.npz", one=one, other=other)


def joining_pairs(place: Place, stage: str, block: Block) -> dict[str, Any]:
    """Return pairs of components, as far as they are known, that entries of the rows join."""
    matrix = matrix_at(place)
    leaders = mapped(Path(stage) / "leaders.npy")
    one, other = _core.joining_pairs(matrix, leaders, *block)
    return packed(Path(stage) / f"joining-{block[0]}.npz", one=one, other=other)


def margins(place: Place, stage: str, k: int, block: Block) -> dict[str, Any]:
    """Return the weight of every row towards its own cluster and towards the strongest other one."""
    matrix = matrix_at(place)
    labels = mapped(Path(stage) / "labels.npy")
    own, other = _core.margins_of_rows(matrix, labels, k, *block)
    return packed(Path(stage) / f"margins-{block[0]}.npz", own=own, other=other)
