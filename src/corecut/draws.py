"""Draws: partitions of a graph, or quotient, small enough for the spectral step as it is, and the best of several.

A draw embeds the graph, rounds the rows to k clusters and repairs them. Draws must differ to be worth it: in the seeds of
k-means, in what they begin with (nodes, halves, or small groups of nodes), and in the regularisation of their eigenvectors, of
which every other draw has none (it steadies eigenvectors of noisy graphs, and spoils those of thin ones, such as neighbour
graphs of curves; the objective decides).

Draws are then combined. Nodes that agree in all of them make a group, and the quotient of these groups is small: k clusters can
be put together from pieces of all the draws, each draw itself among them. The spectral step and repair on that quotient, and
refinement on the graph, give a partition that is often better than any draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
import scipy.sparse as sp

from corecut._progress import Stages
from corecut._typing import FloatArray, LabelArray
from corecut._validation import thread_count
from corecut.aggregation import gather_levels
from corecut.borders import best_borders, best_union
from corecut.engines import LocalEngine
from corecut.halving import ATTEMPTS, ATTEMPTS_LOOSE, halve_graph
from corecut.objective import Objective
from corecut.placement import fill_empty
from corecut.refinement import refine_weighted
from corecut.repair import repair_partition, try_pairs
from corecut.settings import Choices
from corecut.side_by_side import side_by_side
from corecut.spectral import (
    EigenSolver,
    choose_solver,
    computed_count,
    leading_eigenvectors,
    round_embedding,
    spectral_embedding,
    useful_count,
)
from corecut.spectral.problem import SpectralProblem, times_power
from corecut.weighted import WeightedGraph, sums_by

T = TypeVar("T")

# Draws of the quotient of common groups (one more under tight bounds), and how often what comes of them is combined again.
_COMBINED_DRAWS, _COMBINATIONS, _TIGHT_COMBINATIONS, _PARENTS = 2, 2, 3, 5
# The draw that begins with groups, where the others begin with nodes.
_GROUPED = 2
# Further eigenvectors whose order is tried where there are two clusters.
_SWEPT = 6
# Rounds of repair, and of a first look.
ROUNDS, QUICK_ROUNDS = 10, 2
# Two draws whose objectives differ by less than this share have found the same optimum.
_SETTLED = 1e-4


@dataclass(frozen=True, eq=False)
class Run:
    """What all stages of one clustering share: its choices, its random numbers, and its clock."""

    choices: Choices
    generator: np.random.Generator
    stage: Stages
    n_jobs: int | None

    @property
    def k(self) -> int:
        """Number of clusters."""
        return self.choices.n_clusters

    def seeded(self, *key: int) -> Run:
        """Return the same with random numbers that depend on the key only."""
        return replace(self, generator=np.random.default_rng(key))

    def side_by_side(self, pieces: Sequence[Callable[[Run], T]]) -> list[T]:
        """Return what pieces of this clustering find; each seeds its random numbers itself."""

        def piece(find: Callable[[Run], T]) -> Callable[[int, Stages], T]:
            return lambda threads, clock: find(replace(self, n_jobs=threads, stage=clock))

        return side_by_side([piece(find) for find in pieces], n_jobs=self.n_jobs, stage=self.stage)


@dataclass(frozen=True, eq=False)
class Draw:
    """A partition, how far its sizes are outside of the bounds, and its objective."""

    labels: LabelArray = field(repr=False)
    outside: float
    objective: float
    embedding: FloatArray = field(repr=False)

    @property
    def rank(self) -> tuple[float, float]:
        """What the best draw has least of."""
        return self.outside, self.objective


class Starts:
    """What draws begin with: rows of eigenvectors, borders along them, halves, groups. The same for every β."""

    def __init__(self, run: Run, level: WeightedGraph) -> None:
        choices = run.choices
        self._level, self._choices = level, choices
        self._embeddings = [embed(run, level, regularization=tau) for tau in _regularizations(choices)]
        self._found: dict[int, LabelArray] = {}
        width = self._embeddings[0][0].shape[1]
        self._extra = width - run.k if run.k == 2 and choices.asked.n_components is None else 0
        plain = choices.objective(level.graph.degrees)
        self._borders = self._divided(run, plain) if self._extra else []
        self._seed = int(run.generator.integers(2**63))

    def _divided(self, run: Run, objective: Objective) -> list[LabelArray]:
        """Return two clusters that are unions of more, and those along eigenvectors."""
        rows, weights = self._embeddings[-1]
        pieces = round_rows(run.seeded(0), rows, weights, rows.shape[1])
        union = best_union(self._level, pieces, objective, n_jobs=run.n_jobs)
        return [*([] if union is None else [union]), *best_borders(self._level, rows, weights, objective)]

    def draw(self, run: Run, at: int, objective: Objective, trial: int = 1, *, rounds: int = ROUNDS) -> Draw:
        """Return the draw of a number under an objective; trials of the same number begin with the same, and differ after."""
        seeded, level, k = run.seeded(self._seed, at, trial), self._level, run.k
        if self._choices.halves(at):
            bounds = objective if objective.bounded else objective.bounded_by(0.5, 1.5, float(level.sizes.sum()) / k)
            attempts = ATTEMPTS if self._choices.tight else ATTEMPTS_LOOSE
            seed = int(seeded.generator.integers(2**63))
            found = halve_graph(level, bounds, k, seed=seed, attempts=attempts, n_jobs=run.n_jobs)
            found = fill_empty(found, k, level.graph.degrees)[0]
        else:
            if at not in self._found:
                self._found[at] = fill_empty(self._start(run, at, objective), k, level.graph.degrees)[0]
            found = self._found[at]
        rows = self._embeddings[at % len(self._embeddings)][0]
        return finish(seeded, level, found, objective, embedding=rows, max_rounds=rounds)

    def misfit(self, labels: LabelArray) -> float:
        """Return the cost of k-means on rows of eigenvectors: how much of their space the clusters leave out."""
        rows, weights = self._embeddings[-1]
        rows = rows[:, : self._choices.n_clusters]
        rows = rows / np.linalg.norm(rows, axis=0)
        volumes = np.bincount(labels, weights)
        sums = np.stack([np.bincount(labels, np.sqrt(weights) * column) for column in rows.T])
        return float(rows.shape[1] - (sums**2 / np.where(volumes > 0, volumes, 1.0)).sum())

    def _start(self, run: Run, at: int, objective: Objective) -> LabelArray:
        seeded = run.seeded(self._seed, at)
        if at == _GROUPED and not self._choices.aggregate and run.k > 2:
            found = _by_groups(seeded, self._level, objective)
            if found is not None:
                return found
        turn = sum(not self._choices.halves(other) for other in range(1, at))  # of the draws that begin with a border
        if at > 0 and turn < len(self._borders):
            return self._borders[turn]
        rows, weights = self._embeddings[at % len(self._embeddings)]
        return round_rows(seeded, rows[:, : rows.shape[1] - self._extra], weights)


def _by_groups(run: Run, level: WeightedGraph, objective: Objective) -> LabelArray | None:
    """Return a partition of the quotient of small, tight groups; None where there are too few nodes for it."""
    per_cluster = run.choices.groups_per_cluster
    few = max(int(2 * per_cluster * run.k), level.n_nodes // 4)
    levels = gather_levels(
        level,
        run.k,
        groups_per_cluster=per_cluster,
        n_groups=few,
        equal_sizes=run.choices.tight,
        engine=LocalEngine(run.n_jobs),
    )
    if not levels:
        return None
    top = levels[-1]
    rows, weights = embed(run, top, regularization=0.0, most=top.n_nodes)
    labels = fill_empty(round_rows(run, rows, weights), run.k, top.graph.degrees)[0]
    labels = finish(run, top, labels, objective, embedding=rows).labels
    for quotient in reversed(levels):
        labels = labels[quotient.groups]
    return labels


def best_of_several(
    run: Run, level: WeightedGraph, objective: Objective, draws: list[Draw], starts: Starts, *, trial: int = 1
) -> Draw:
    """Make further draws, which join the list, and combine them; return the best partition."""
    asked, wanted = run.choices.asked, run.choices.n_init
    least = min(1 + _SWEPT if run.k == 2 else 3, wanted) if asked.n_init == "auto" else wanted  # every vector has its turn
    while len(draws) < wanted and not (len(draws) >= least and _settled(draws)):
        # As many at once as are needed in any case, or as there are threads for. Which ones count does not depend on it.
        count = min(max(least - len(draws), thread_count(run.n_jobs)), wanted - len(draws))
        numbers = range(len(draws), len(draws) + count)
        made = run.side_by_side([partial(starts.draw, at=at, objective=objective, trial=trial) for at in numbers])
        for one in made:
            if not (len(draws) >= least and _settled(draws)):
                draws.append(one)
    best = min(draws, key=lambda one: one.rank)
    # Under tight bounds groups of nodes are not combined, but nodes, which can meet them (:mod:`corecut.polishing`).
    later = run.choices.tight and level.n_nodes < run.choices.n_nodes // 2
    if not asked.refine or len(draws) == 1 or _agree(draws) or later:
        return best
    # What more draws agree on is too fine to be put together well.
    pool = sorted(draws, key=lambda one: one.rank)[:_PARENTS]
    for _ in range(_TIGHT_COMBINATIONS if run.choices.tight else _COMBINATIONS):
        pool = combine(run, level, pool, objective)
        found = min(pool, key=lambda one: one.rank)
        if found.rank >= best.rank:
            break
        best = found
    return best


def with_pairs_tried(run: Run, level: WeightedGraph, best: Draw, objective: Objective) -> Draw:
    """Try splits with merges that do not pay at once: few draws may all have come to the same wrong optimum."""
    tries = run.choices.tries(level.graph)
    if not tries:
        return best
    with run.stage("repair"):
        labels, value = try_pairs(
            level, best.labels, best.objective, objective, run.k, tries=tries, random_state=run.generator, n_jobs=run.n_jobs
        )
    return replace(best, labels=labels, objective=value)


def _agree(draws: list[Draw]) -> bool:
    """Say whether all draws have reached the same objective: there is nothing to combine."""
    ranks = [one.rank for one in draws]
    return max(ranks)[0] == min(ranks)[0] and max(ranks)[1] - min(ranks)[1] <= _SETTLED * min(ranks)[1]


def _settled(draws: list[Draw]) -> bool:
    """Say whether two draws have reached the same lowest objective: further ones would find it again."""
    values = sorted(one.rank for one in draws)
    return len(values) > 1 and values[1][0] == values[0][0] and values[1][1] - values[0][1] <= _SETTLED * values[0][1]


def _regularizations(choices: Choices) -> list[float]:
    if choices.regularization == 0 or choices.n_init == 1 or choices.asked.regularization != "auto":
        return [choices.regularization]
    return [choices.regularization, 0.0]


def combine(run: Run, level: WeightedGraph, draws: list[Draw], objective: Objective) -> list[Draw]:
    """Return new partitions of the graph, put together from groups of nodes that agree in all draws."""
    with run.stage("combination"):
        agreed = np.zeros(level.n_nodes, np.int64)
        for one in draws:
            agreed = np.unique(agreed * run.k + one.labels, return_inverse=True)[1]
        groups = agreed.astype(np.int32)
        small = level.contract(groups, n_jobs=run.n_jobs)
    if small.n_nodes <= run.k:
        return draws
    first = np.unique(groups, return_index=True)[1]
    best = min(draws, key=lambda one: one.rank)
    rows, weights = embed(run, small, regularization=0.0, most=small.n_nodes)
    seed = int(run.generator.integers(2**63))

    def draw(own: Run, at: int) -> Draw:
        seeded = own.seeded(seed, at)
        start = best.labels[first]
        if at > 0:
            start = fill_empty(round_rows(seeded, rows, weights), run.k, small.graph.degrees)[0]
        found = finish(seeded, small, start, objective, embedding=rows).labels
        return finish(seeded, level, found[groups], objective, embedding=best.embedding)

    return run.side_by_side([partial(draw, at=at) for at in range(_COMBINED_DRAWS + run.choices.tight)])


def finish(
    run: Run,
    level: WeightedGraph,
    labels: LabelArray,
    objective: Objective,
    *,
    embedding: FloatArray,
    max_rounds: int = ROUNDS,
) -> Draw:
    """Repair a partition, where that is wanted, and measure it."""
    with run.stage("repair"):
        if run.choices.asked.refine:
            found = repair_partition(
                level, labels, objective, run.k, max_rounds=max_rounds, random_state=run.generator, n_jobs=run.n_jobs
            )
            labels, value = found.labels, found.objective
        else:
            value = refine_weighted(level, labels, objective, run.k, max_passes=0, n_jobs=run.n_jobs).objective
    return Draw(labels, objective.outside(sums_by(labels, level.sizes, run.k)), value, embedding)


def spectral_problem(level: WeightedGraph, regularization: float, *, n_jobs: int | None = None) -> SpectralProblem:
    """Return the spectral problem of A + (τ/n)·s sᵀ with degrees d + τ·s, for τ a share of the mean degree."""
    sizes, mean = level.sizes, level.graph.volume / level.sizes.sum()
    # In a unit in which the mean degree is about 1, so that roots are the same for weights that differ by a power of two.
    adjacency, exponent = level.graph.adjacency, -math.frexp(mean)[1]
    data, degrees = (times_power(values, exponent, n_jobs=n_jobs) for values in (adjacency.data, level.graph.degrees))
    adjacency = sp.csr_array((data, adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    if regularization == 0:
        return SpectralProblem(adjacency, np.where(degrees > 0, degrees, 1.0))
    tau = regularization * math.ldexp(mean, exponent)
    return SpectralProblem(adjacency, degrees + tau * sizes, np.sqrt(tau / sizes.sum()) * sizes)


def solver_for(choices: Choices, *, sampled: bool = False) -> EigenSolver:
    """Return the solver that was asked for, or the one that suits a coreset's graph (`sampled`) or a whole one.

    Pivoted QR needs as many vectors as clusters, more than the power method has.
    """
    asked = choices.asked.eigen_solver
    if asked == "auto" and (not sampled or choices.asked.assign_labels == "cluster_qr"):
        return "subspace"
    return choose_solver(asked, choices.n_clusters)


def embed(
    run: Run, level: WeightedGraph, *, regularization: float, sampled: bool = False, most: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the spectral embedding of a coreset's graph (`sampled`) or of a whole one, and the weights of its rows.

    `most` bounds the number of vectors that was asked for.
    """
    k, choices, asked = run.k, run.choices, run.choices.asked
    with run.stage("eigenvectors"):
        problem = spectral_problem(level, regularization, n_jobs=run.n_jobs)
        by_spectrum = not sampled and asked.n_components is None and asked.assign_labels == "kmeans"
        if by_spectrum and solver_for(choices) != "power":
            more = _SWEPT if k == 2 and choices.n_init > 1 else 0
            found = leading_eigenvectors(
                problem,
                min(computed_count(k, level.n_nodes) + more, level.n_nodes),
                n_clusters=k,
                eigen_solver=solver_for(choices),
                random_state=run.generator,
                n_jobs=run.n_jobs,
            )
            return found.vectors[:, : useful_count(found.values, k) + more], problem.degrees
        rows = spectral_embedding(
            problem,
            k,
            eigen_solver=solver_for(choices, sampled=sampled),
            n_components=asked.n_components if most is None or asked.n_components is None else min(asked.n_components, most),
            random_state=run.generator,
            n_jobs=run.n_jobs,
        )
    return rows, problem.degrees


def round_rows(run: Run, embedding: FloatArray, weights: FloatArray, n_clusters: int | None = None) -> LabelArray:
    """Return k clusters of the embedding's rows, or another number."""
    with run.stage("rounding"):
        return round_embedding(
            embedding,
            n_clusters or run.k,
            weights=weights,
            assign_labels=run.choices.asked.assign_labels,
            random_state=run.generator,
            n_jobs=run.n_jobs,
        )
