"""What a worker does on the way through a coreset: pure functions of a block of rows, the kernel's arrays and the seeds.

Distances to the seeds follow from these alone, so that every task finds its own again, from the seeds' rows: nothing as long as
the graph travels but what is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corecut import _core
from corecut._typing import AnyArray, FloatArray
from corecut.engines.scratch import load, mapped, packed
from corecut.engines.tasks import Block, Place, matrix_at
from corecut.races import first_of_race


@dataclass(frozen=True)
class Seeded:
    """A kernel and seeds: the graph, the folder of the kernel's arrays, and the one of the stage, which has `points.npy`."""

    place: Place
    kernel: str
    stage: str


def _mapped(folder: str, name: str) -> AnyArray | None:
    file = Path(folder) / f"{name}.npy"
    found: AnyArray | None = np.load(file, mmap_mode="r") if file.exists() else None
    return found


def _distances(job: Seeded, block: Block) -> tuple[Any, ...]:
    """Return distances and nearest seeds of the rows, what was looked at and clipped, and the rows' weights."""
    scale, diagonal, weights = (_mapped(job.kernel, name) for name in ("scale", "diagonal", "weights"))
    assert diagonal is not None
    assert weights is not None
    points = np.array(mapped(Path(job.stage) / "points.npy"))
    found = _core.distances_of_rows(matrix_at(job.place), scale, diagonal, weights, points, *block)
    return *found, np.asarray(weights[block[0] : block[1]])


def race_of_rows(job: Seeded, count: int, seed: int, number: int, block: Block) -> dict[str, Any]:
    """Return the first points of the rows in a race by w(x)Δ(x, C), and their times."""
    distance, *_, weights = _distances(job, block)
    times, points = first_of_race(weights * distance, count, seed, number, begin=block[0])
    return packed(Path(job.stage) / f"race-{block[0]}.npz", times=times, points=points)


def distances_of_rows(job: Seeded, block: Block) -> dict[str, Any]:
    """Return the distances of the rows, and their nearest seeds."""
    distance, nearest, checks, clipped, missing, _ = _distances(job, block)
    path = Path(job.stage) / f"distances-{block[0]}.npz"
    counts, shifts = np.array([[checks, clipped]]), np.array([missing])
    return packed(path, distance=distance, nearest=nearest, counts=counts, missing=shifts)


def sums_of_rows(job: Seeded, block: Block) -> dict[str, Any]:
    """Return sums that sensitivities are made of: the cost, and the weights by nearest seed."""
    distance, nearest, *_, weights = _distances(job, block)
    points = mapped(Path(job.stage) / "points.npy")
    seeds, masses = _core.masses_by_seed(weights, nearest, points.size)
    path = Path(job.stage) / f"sums-{block[0]}.npz"
    return packed(path, cost=_core.block_sums(weights * distance), seeds=seeds, masses=masses)


def _sensitivities(job: Seeded, block: Block) -> FloatArray:
    """Return s_x of the rows, in the operations of the native function that threads run."""
    distance, nearest, *_, weights = _distances(job, block)
    terms = load(Path(job.stage) / "terms.npz")
    found: FloatArray = weights * (distance * terms["cost"][0] + terms["inverse"][nearest])
    return found


def mass_of_rows(job: Seeded, block: Block) -> dict[str, Any]:
    """Return the sums of the sensitivities."""
    return packed(Path(job.stage) / f"mass-{block[0]}.npz", mass=_core.block_sums(_sensitivities(job, block)))


def draw_in_rows(job: Seeded, block: Block) -> dict[str, Any]:
    """Return the points of the rows that were drawn, how often, and their sensitivities."""
    begin, end = block
    mass = _sensitivities(job, block)
    prefix, targets = (mapped(Path(job.stage) / f"{name}.npy") for name in ("prefix", "targets"))
    first, last = begin // _core.ROWS_OF_A_SUM, -(-end // _core.ROWS_OF_A_SUM)
    low = int(np.searchsorted(targets, prefix[first]))
    high = int(np.searchsorted(targets, prefix[last])) if last < prefix.size - 1 else targets.size
    indices, counts = _core.draw_in_blocks(mass, np.array(prefix[first : last + 1]), np.array(targets[low:high]))
    path = Path(job.stage) / f"drawn-{begin}.npz"
    return packed(path, indices=indices + begin, counts=counts, mass=mass[indices])


def induced_rows(place: Place, stage: str, block: Block) -> dict[str, Any]:
    """Return rows of the principal submatrix on the nodes of `nodes.npy`."""
    nodes = np.array(mapped(Path(stage) / "nodes.npy"))
    indptr, indices, data = _core.induced(matrix_at(place), nodes, 1, part=block)
    return packed(Path(stage) / f"induced-{block[0]}.npz", lengths=np.diff(indptr), indices=indices, data=data)


def label_rows(place: Place, stage: str, touched_only: bool, block: Block) -> dict[str, Any]:
    """Return the nearest of the centres in `centres.npz` for the rows."""
    centres = load(Path(stage) / "centres.npz")
    scale, rank_one = (_mapped(stage, name) for name in ("scale", "rank_one"))
    labels, best, second, untouched = _core.label_nodes(
        matrix_at(place),
        scale,
        centres["nodes"],
        centres["labels"],
        centres["load"],
        centres["own"],
        centres["norms"],
        rank_one,
        centres.get("pull"),
        touched_only,
        threads=1,
        rows=block,
    )
    path = Path(stage) / f"labels-{block[0]}.npz"
    return packed(path, labels=labels, best=best, second=second, untouched=np.array([untouched]))
