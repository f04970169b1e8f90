"""The way through a coreset on a cluster: what the client does between its tasks, with the results of threads, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut import _core
from corecut._typing import FloatArray, IntArray
from corecut.engines import coreset_tasks, tasks
from corecut.engines.cluster import Cluster
from corecut.engines.local import Centres, Distances, Drawn, Labelled
from corecut.engines.scratch import Arrays, Checkpoints, load, save, save_plain, unpacked
from corecut.graph import as_submatrix
from corecut.kernel import KernelView
from corecut.races import first_of_all


@dataclass(frozen=True)
class Stage:
    """A stage on a cluster: its name and files, where the graph lies, and the blocks of rows."""

    name: str
    cluster: Cluster
    here: Checkpoints
    place: tasks.Place
    blocks: list[tasks.Block]

    def each(self, function: Callable[..., Any], *shared: Any) -> list[Arrays]:
        """Return the arrays of every block."""
        found = self.cluster.map(self.name, function, shared, self.blocks)
        return [unpacked(message) for message in found]

    def all(self, function: Callable[..., Any], *shared: Any) -> Arrays:
        """Return the arrays of all blocks, put together in their order."""
        found = self.each(function, *shared)
        return {name: np.concatenate([one[name] for one in found]) for name in found[0]}

    def seeded(self, kernel: Path, points: IntArray) -> coreset_tasks.Seeded:
        """Write the seeds where tasks find them."""
        save_plain(self.here.folder / "points.npy", np.asarray(points, np.int64))
        return coreset_tasks.Seeded(self.place, str(kernel), str(self.here.folder))

    def result(self, make: Callable[[], Arrays]) -> Arrays:
        """Return the result: that of a run which was killed, or a new one."""
        if not self.here.result.exists():
            self.here.finish(keep=(), **make())
        return load(self.here.result)


def race(stage: Stage, kernel: Path, points: IntArray, count: int, turn: tuple[int, int]) -> IntArray:
    """Return the winners; see :class:`~corecut.engines.local.Engine`. A turn is a seed and the number of the race."""

    def run() -> Arrays:
        found = stage.each(coreset_tasks.race_of_rows, stage.seeded(kernel, points), count, *turn)
        return {"points": first_of_all([(one["times"], one["points"]) for one in found], count)[1]}

    return stage.result(run)["points"]


def distances(stage: Stage, kernel: Path, points: IntArray) -> Distances:
    """Return distances; see :class:`~corecut.engines.local.Engine`."""
    found = stage.result(lambda: stage.all(coreset_tasks.distances_of_rows, stage.seeded(kernel, points)))
    checks, clipped = found["counts"].sum(axis=0).tolist()
    return found["distance"], found["nearest"], checks, clipped, float(found["missing"].max(initial=0.0))


def draw(
    stage: Stage, kernel: Path, weights: FloatArray, points: IntArray, *, by_seeds: bool, n_draws: int, seed: int, threads: int
) -> Drawn:
    """Draw points; see :class:`~corecut.engines.local.Engine`: a multinomial over blocks of rows, then one inside of each."""
    folder = stage.here.folder

    def run() -> Arrays:
        job = stage.seeded(kernel, points)
        sums = stage.all(coreset_tasks.sums_of_rows, job)
        masses = np.zeros(points.size)
        if by_seeds:
            masses[:] = _in_order(weights[points])
        else:
            np.add.at(masses, sums["seeds"], sums["masses"])
        cost = _in_order(sums["cost"])
        inverse = np.divide(1.0, masses, out=np.zeros(points.size), where=masses > 0)
        save(folder / "terms.npz", cost=np.array([1.0 / cost if cost > 0 else 0.0]), inverse=inverse)
        mass = stage.all(coreset_tasks.mass_of_rows, job)["mass"]
        prefix = np.concatenate([[0.0], np.cumsum(mass)])
        save_plain(folder / "prefix.npy", prefix)
        save_plain(folder / "targets.npy", _core.draw_targets(n_draws, float(prefix[-1]), seed, threads))
        return stage.all(coreset_tasks.draw_in_rows, job) | {"total": prefix[-1:]}

    found = stage.result(run)
    return found["indices"], found["counts"], found["mass"], float(found["total"][0])


def _in_order(terms: FloatArray) -> float:
    """Return a sum, added up from the first term to the last as native functions do."""
    return float(np.cumsum(terms)[-1])


def induced(stage: Stage, nodes: IntArray) -> sp.csr_array:
    """Return the submatrix; see :class:`~corecut.engines.local.Engine`. Blocks are those of its rows."""

    def run() -> Arrays:
        save_plain(stage.here.folder / "nodes.npy", nodes)
        return stage.all(coreset_tasks.induced_rows, stage.place, str(stage.here.folder))

    found = stage.result(run)
    indptr = np.concatenate([[0], np.cumsum(found["lengths"])])
    return as_submatrix(indptr, found["indices"], found["data"])


def label(stage: Stage, kernel: KernelView, centres: Centres) -> Labelled:
    """Return nearest centres; see :class:`~corecut.engines.local.Engine`."""
    folder = stage.here.folder

    def run() -> Arrays:
        names = ("nodes", "labels", "load", "own", "norms", "pull")
        arrays = {name: getattr(centres, name) for name in names}
        save(folder / "centres.npz", **{name: array for name, array in arrays.items() if array is not None})
        for name, array in (("scale", kernel.scale), ("rank_one", kernel.rank_one)):
            if array is not None:
                save_plain(folder / f"{name}.npy", array)
        return stage.all(coreset_tasks.label_rows, stage.place, str(folder), centres.touched_only)

    found = stage.result(run)
    return found["labels"], found["best"], found["second"], int(found["untouched"].sum())
