"""Paths of k: partitions into ever fewer clusters, each made from the one before by merging clusters and moving nodes.

Work is done on the quotient that draws are made on; a partition that is asked for is carried down to the nodes and refined
there. Nobody mends the draw that a path begins with, and merges cannot be undone. So what is reported is looked at once more,
from many clusters to few. The largest number of clusters is repaired by splits and merges (:mod:`corecut.repair`), and each
smaller one is also made by merging clusters of the mended one above it: the better one is taken. Few clusters are put together
anew from pieces, what all paths agree on at some hundred clusters: few enough to make that cheap. On a graph whose fits are
thorough, too, nodes are repaired themselves, at every number of clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from corecut._typing import BoolArray, FloatArray, LabelArray
from corecut.aggregation import Quotient
from corecut.merging import Merges, merge_clusters
from corecut.objective import Objective, volume_of_clusters
from corecut.placement import fill_empty, main_part, place_rest
from corecut.refinement import refine_weighted
from corecut.repair import repair_partition
from corecut.weighted import WeightedGraph

# Sweeps over the quotient, and over the nodes.
_PASSES, _NODE_PASSES = 10, 4
_TOLERANCE = 1e-3
# Clusters whose common pieces are put together anew, the largest number of clusters that is made of them, and rounds of repair;
# one for the first of many clusters, which all others gain by.
_PIECES, MENDED, _ROUNDS, _FIRST_ROUNDS = 100, 12, 4, 1


@dataclass(frozen=True, eq=False)
class Ground:
    """What a path is made on: the graph, its quotient, and the part of that without isolated nodes and tiny components."""

    whole: WeightedGraph
    top: WeightedGraph
    groups: LabelArray | None = field(repr=False)
    main: BoolArray = field(repr=False)
    part: WeightedGraph
    balance: float
    n_jobs: int | None

    @classmethod
    def of(cls, whole: WeightedGraph, levels: list[Quotient], n_clusters: int, *, balance: float, n_jobs: int | None) -> Ground:
        """Return the ground for paths that begin with so many clusters."""
        top = levels[-1] if levels else whole
        groups = None
        for level in reversed(levels):
            groups = level.groups if groups is None else groups[level.groups]
        main = main_part(top, n_clusters)
        return cls(whole, top, groups, main, top.restrict(main, n_jobs=n_jobs), balance, n_jobs)

    def divided(self, partitions: list[LabelArray], n_clusters: int) -> tuple[Ground, list[LabelArray]]:
        """Return the ground with its groups divided until all partitions respect them, and these partitions of it."""
        if self.groups is None:
            return self, [labels[self.main] for labels in partitions]
        groups = self.groups.astype(np.int64)
        for labels in partitions:
            groups = np.unique(groups * n_clusters + labels, return_inverse=True)[1]
        names, first = groups.astype(np.int32), np.unique(groups, return_index=True)[1]
        top = self.whole.contract(names, n_jobs=self.n_jobs)
        main = self.main[self.groups[first]]
        ground = Ground(self.whole, top, names, main, top.restrict(main, n_jobs=self.n_jobs), self.balance, self.n_jobs)
        return ground, [labels[first][main] for labels in partitions]

    def objective(self, n_clusters: int) -> Objective:
        """Return F for k clusters."""
        return Objective.of(volume_of_clusters(self.whole.graph.degrees, n_clusters), n_clusters, balance=self.balance)

    def refined(self, labels: LabelArray, n_clusters: int) -> tuple[LabelArray, float]:
        """Move nodes of the quotient; return labels and F."""
        found = refine_weighted(
            self.part,
            labels,
            self.objective(n_clusters),
            n_clusters,
            max_passes=_PASSES,
            tolerance=_TOLERANCE,
            n_jobs=self.n_jobs,
        )
        return found.labels, found.objective

    def between(self, labels: LabelArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights between clusters, and their volumes."""
        small = self.part.contract(labels, n_jobs=self.n_jobs).graph
        return small.adjacency.toarray().astype(np.float64), small.degrees

    def down(self, labels: LabelArray, n_clusters: int) -> LabelArray:
        """Carry a partition of the part down to all nodes, and refine it there."""
        everywhere = np.zeros(self.top.n_nodes, np.int32)
        everywhere[self.main] = labels
        found = place_rest(self.top, everywhere, self.main, n_clusters=n_clusters)
        if self.groups is not None:
            found = found[self.groups]
        return refine_weighted(
            self.whole,
            found,
            self.objective(n_clusters),
            n_clusters,
            max_passes=_NODE_PASSES,
            tolerance=_TOLERANCE / 10,
            n_jobs=self.n_jobs,
        ).labels


@dataclass(frozen=True, eq=False)
class Path:
    """A path of k from one partition.

    Attributes
    ----------
    labels, objective
        Refined partition of the ground's part at each stop, and its F.
    merges
        What was merged from each stop down to the next one.
    steps
        step(k) = F(k) - F(k - 1) at index k; NaN at 0 and 1.
    """

    labels: dict[int, LabelArray] = field(repr=False)
    objective: dict[int, float] = field(repr=False)
    merges: dict[int, Merges] = field(repr=False)
    steps: FloatArray = field(repr=False)

    def merged(self, n_clusters: int) -> LabelArray:
        """Return the partition into k clusters, as it was merged from the nearest stop above."""
        stop = min(k for k in self.labels if k >= n_clusters)
        if stop == n_clusters:
            return self.labels[stop]
        return self.merges[stop].names(n_clusters)[self.labels[stop]]


def follow_path(ground: Ground, labels: LabelArray, stops: Sequence[int]) -> Path:
    """Merge clusters from a partition into stops[0] clusters down to one, and refine at every stop; stops fall."""
    steps = np.full(stops[0] + 1, np.nan)
    kept: dict[int, LabelArray] = {}
    objective: dict[int, float] = {}
    merges: dict[int, Merges] = {}
    for k, below in zip(stops, [*stops[1:], 1], strict=True):
        kept[k], objective[k] = labels, _ = ground.refined(labels, k)
        if k == 1:
            break
        merges[k] = merge_clusters(*ground.between(labels), ground.objective(k), down_to=below)
        steps[below + 1 : k + 1] = merges[k].steps[::-1]
        labels = merges[k].names(below)[labels]
    return Path(kept, objective, merges, steps)


def _best(found: list[tuple[LabelArray, float]]) -> tuple[LabelArray, float]:
    return min(found, key=lambda one: one[1])


@dataclass(frozen=True, eq=False)
class Mender:
    """Looks once more at partitions of paths.

    Attributes
    ----------
    ground
        What the paths are made on.
    pieces
        Which piece each node of the ground's part belongs to.
    small
        The graph of the pieces.
    thorough
        Whether nodes are repaired as well.
    """

    ground: Ground
    pieces: LabelArray = field(repr=False)
    small: WeightedGraph
    thorough: bool

    @classmethod
    def of(cls, ground: Ground, paths: Sequence[Path], *, thorough: bool) -> Mender:
        """Return the mender of some paths over one ground, which have the same stops."""
        stops = sorted(paths[0].labels)
        stop = next((k for k in stops if k >= _PIECES), stops[-1])
        joint = np.zeros(ground.part.n_nodes, np.int64)
        for path in paths:
            joint = np.unique(joint * stop + path.labels[stop], return_inverse=True)[1]
        pieces = joint.astype(np.int32)
        return cls(ground, pieces, ground.part.contract(pieces, n_jobs=ground.n_jobs), thorough)

    def mended(self, labels: LabelArray, value: float, n_clusters: int, above: LabelArray | None) -> tuple[LabelArray, float]:
        """Return a partition with an objective that is no higher; the same one every time.

        `above` is a mended partition into more clusters, None where there is none.
        """
        if n_clusters == 1:
            return labels, value
        starts = [(labels, value)]
        if above is not None:
            more = int(above.max()) + 1
            merges = merge_clusters(*self.ground.between(above), self.ground.objective(more), down_to=n_clusters)
            starts.append(self.ground.refined(merges.names(n_clusters)[above], n_clusters))
        if not self.thorough:
            starts = [_best(starts)]
        return _best([self._repaired_start(start, n_clusters, above) for start in starts])

    def _repaired_start(
        self, start: tuple[LabelArray, float], n_clusters: int, above: LabelArray | None
    ) -> tuple[LabelArray, float]:
        found = [start]
        if n_clusters <= MENDED and self.small.n_nodes > n_clusters:
            # A piece goes where its first node is: at few clusters all of its nodes do, nearly always.
            first = np.unique(self.pieces, return_index=True)[1]
            put = self._repaired(self.small, start[0][first], n_clusters)[0]
            found.append(self.ground.refined(put[self.pieces], n_clusters))
        if self.thorough or above is None:
            rounds = _ROUNDS if self.thorough else _FIRST_ROUNDS
            found.append(self._repaired(self.ground.part, _best(found)[0], n_clusters, rounds=rounds))
        return _best(found)

    def _repaired(
        self, level: WeightedGraph, labels: LabelArray, n_clusters: int, *, rounds: int = _ROUNDS
    ) -> tuple[LabelArray, float]:
        found = repair_partition(
            level,
            fill_empty(labels, n_clusters, level.graph.degrees)[0],
            self.ground.objective(n_clusters),
            n_clusters,
            max_rounds=rounds,
            random_state=n_clusters,
            n_jobs=self.ground.n_jobs,
        )
        return found.labels, found.objective
