"""Draws: partitions of a graph, or quotient, small enough for the spectral step as it is, and the best of several.

A draw embeds the graph, rounds the rows to k clusters and repairs them. Draws must differ to be worth it: in the seeds of
k-means, and in the regularisation of their eigenvectors, of which every other draw has none (it steadies eigenvectors of noisy
graphs, and spoils those of thin ones, such as neighbour graphs of curves; the objective decides).

Draws are then combined. Nodes that agree in all of them make a group, and the quotient of these groups is small: k clusters can
be put together from pieces of all the draws, each draw itself among them. The spectral step and repair on that quotient, and
refinement on the graph, give a partition that is often better than any draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from corecut._progress import Stages
from corecut._typing import FloatArray, LabelArray
from corecut.bisection import bisect_graph
from corecut.objective import Objective
from corecut.placement import fill_empty
from corecut.refinement import refine_weighted
from corecut.repair import repair_partition, split_costs
from corecut.settings import Choices
from corecut.spectral import (
    EigenSolver,
    choose_solver,
    computed_count,
    leading_eigenvectors,
    round_embedding,
    spectral_embedding,
    useful_count,
)
from corecut.spectral.problem import SpectralProblem
from corecut.weighted import WeightedGraph, sums_by

# β where the plain cut gives crumbs and giants: the first that does not. A noisy graph has this one.
BALANCES, _NOISY = (0.005, 0.05, 0.1), 0.05
# What the clusters of the plain cut must be like: see _acceptable.
_LEAST_MEDIAN, _GIANT_SHARE, _GIANT_FACTOR, _DIVISIBLE = 0.3, 0.2, 2.5, 2.75
# Up to this mean conductance a graph counts as clean and does without a fee; above it, where the fee would double the cut.
_CLEAN, _SPOILT = 0.15, 0.5
# Regularisation of the eigenvectors along which parts are halved, draw by draw.
_HALVING = (2.0, 0.5, 1.0, 4.0)
# Draws of the quotient of common groups (one more under tight bounds), and how often what comes of them is combined again.
_COMBINED_DRAWS, _COMBINATIONS, _TIGHT_COMBINATIONS, _PARENTS = 2, 2, 3, 5
# Further eigenvectors whose order is tried where there are two clusters.
_SWEPT = 6
# Rounds of repair, and of a first look.
_ROUNDS, _QUICK_ROUNDS = 10, 2
# Two draws whose objectives differ by less than this share have found the same optimum.
_SETTLED = 1e-4


@dataclass(frozen=True, eq=False)
class Run:
    """What all stages of one clustering share: its choices, its random numbers, and its clock."""

    choices: Choices
    generator: np.random.Generator
    stage: Stages

    @property
    def k(self) -> int:
        """Number of clusters."""
        return self.choices.n_clusters

    @property
    def n_jobs(self) -> int | None:
        """Number of threads."""
        return self.choices.asked.n_jobs


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


def draw_partitions(run: Run, level: WeightedGraph, *, n_isolated: int = 0) -> tuple[Draw, list[Draw], float]:
    """Return the best partition, all draws, and the β they were judged by.

    Where β is for the graph to decide, it is the least under which clusters are clusters. A noisy graph gets a fee in any case,
    which hardly moves its optimum and steadies the way to it, unless that would spoil a clean cut.
    """
    choices, k = run.choices, run.k
    embeddings = [embed(run, level, regularization=tau) for tau in _regularizations(choices)]
    starts: dict[int, LabelArray] = {}  # the same for every β
    extra = embeddings[0][0].shape[1] - k if k == 2 and choices.asked.n_components is None else 0

    def draw(at: int, f: Objective, *, rounds: int = _ROUNDS) -> Draw:
        rows, weights = embeddings[at % len(embeddings)]
        if choices.halves(at):
            share = _HALVING[at % len(_HALVING)]
            bounds = f if f.bounded else f.bounded_by(0.5, 1.5, float(level.sizes.sum()) / k)
            found = bisect_graph(level, bounds, k, regularization=share, generator=run.generator, n_jobs=run.n_jobs)
            return finish(run, level, found, f, embedding=rows, max_rounds=rounds)
        if at not in starts:
            if extra and 0 < at <= extra:
                rows, weights = embeddings[-1]  # the plain ones
                found = sweep(level, rows[:, at] / np.sqrt(weights), f)
            else:
                found = round_rows(run, rows[:, : rows.shape[1] - extra], weights)
            starts[at] = fill_empty(found, k, level.graph.degrees)[0]
        return finish(run, level, starts[at], f, embedding=rows, max_rounds=rounds)

    def objective_for(beta: float) -> Objective:
        return choices.objective(level.graph.degrees, balance=beta, n_isolated=n_isolated)

    candidates = [0.0, *BALANCES] if choices.adaptive else [choices.balance]
    while True:
        balance = candidates.pop(0)
        objective = objective_for(balance)
        # Of a large graph a quick look decides whether this β will do.
        quick = bool(candidates) and choices.n_init == 1
        draws = [draw(0, objective, rounds=_QUICK_ROUNDS if quick else _ROUNDS)]
        noisy = balance == 0 and draws[0].objective > _CLEAN * k
        if candidates and not _acceptable(run, level, draws[0].labels):
            candidates = [beta for beta in candidates if beta >= _NOISY or not noisy]
            continue
        if candidates and noisy:
            with_fee = draw(0, objective_for(_NOISY))
            cut = refine_weighted(level, with_fee.labels, objective, k, max_passes=0, n_jobs=run.n_jobs).objective
            if draws[0].objective > _SPOILT * cut:
                balance, objective, draws = _NOISY, objective_for(_NOISY), [with_fee]
                candidates, quick = [beta for beta in candidates if beta > _NOISY], False
        if quick:
            draws = [finish(run, level, draws[0].labels, objective, embedding=draws[0].embedding)]
        best = _best_of_several(run, level, objective, draws, draw)
        if not candidates or _acceptable(run, level, best.labels):
            return best, draws, balance


def _best_of_several(
    run: Run, level: WeightedGraph, objective: Objective, draws: list[Draw], draw: Callable[[int, Objective], Draw]
) -> Draw:
    """Make further draws, which join the list, and combine them; return the best partition."""
    asked = run.choices.asked
    least = 1 + _SWEPT if run.k == 2 else 3  # every vector has its turn
    while len(draws) < run.choices.n_init:
        if asked.n_init == "auto" and len(draws) >= least and _settled(draws):
            break
        draws.append(draw(len(draws), objective))
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


def _acceptable(run: Run, level: WeightedGraph, labels: LabelArray) -> bool:
    """Say whether clusters are clusters: not crumbs beside a giant that falls into parts itself.

    Crumbs: the median cluster has less than 0.3 of the mean's nodes. A giant has more than a fifth of the nodes and 2.5 times
    the mean; it falls into parts where a split of it cuts no more than 2.75 times what usually separates clusters here.
    """
    sizes = sums_by(labels, level.sizes, run.k)
    if np.median(sizes) < _LEAST_MEDIAN * sizes.mean():
        return False
    giant = sizes > max(_GIANT_SHARE, _GIANT_FACTOR / run.k) * sizes.sum()
    if not giant.any():
        return True
    cuts, conductance = split_costs(level, labels, giant, run.k, n_jobs=run.n_jobs)
    return bool(np.all(cuts > _DIVISIBLE * conductance))


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
    starts = [best.labels[first]]
    rows, weights = embed(run, small, regularization=0.0, most=small.n_nodes)
    for _ in range(_COMBINED_DRAWS - 1 + run.choices.tight):
        starts.append(fill_empty(round_rows(run, rows, weights), run.k, small.graph.degrees)[0])
    made = []
    for start in starts:
        found = finish(run, small, start, objective, embedding=rows).labels
        made.append(finish(run, level, found[groups], objective, embedding=best.embedding))
    return made


def finish(
    run: Run,
    level: WeightedGraph,
    labels: LabelArray,
    objective: Objective,
    *,
    embedding: FloatArray,
    max_rounds: int = _ROUNDS,
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


def spectral_problem(level: WeightedGraph, regularization: float) -> SpectralProblem:
    """Return the spectral problem of A + (τ/n)·s sᵀ with degrees d + τ·s, for τ a share of the mean degree."""
    sizes, mean = level.sizes, level.graph.volume / level.sizes.sum()
    # In a unit in which the mean degree is about 1, so that roots are the same for weights that differ by a power of two.
    adjacency, exponent = level.graph.adjacency, -math.frexp(mean)[1]
    data, degrees = np.ldexp(adjacency.data, exponent), np.ldexp(level.graph.degrees, exponent)
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
        problem = spectral_problem(level, regularization)
        by_spectrum = not sampled and asked.n_components is None and asked.assign_labels == "kmeans"
        if by_spectrum and solver_for(choices) != "power":
            # The cut between two clusters may be along a later vector, where each of them is long and thin.
            more = _SWEPT if k == 2 and choices.n_init > 1 else 0
            found = leading_eigenvectors(
                problem,
                min(computed_count(k, level.n_nodes) + more, level.n_nodes),
                n_clusters=k,
                eigen_solver=solver_for(choices),
                random_state=run.generator,
                n_jobs=asked.n_jobs,
            )
            return found.vectors[:, : useful_count(found.values, k) + more], problem.degrees
        rows = spectral_embedding(
            problem,
            k,
            eigen_solver=solver_for(choices, sampled=sampled),
            n_components=asked.n_components if most is None or asked.n_components is None else min(asked.n_components, most),
            random_state=run.generator,
            n_jobs=asked.n_jobs,
        )
    return rows, problem.degrees


def sweep(level: WeightedGraph, position: FloatArray, objective: Objective) -> LabelArray:
    """Return the two clusters of the best border along an order of the nodes."""
    graph, n = level.graph, level.n_nodes
    rank = np.empty(n, np.int64)
    order = np.argsort(position, kind="stable")
    rank[order] = np.arange(n)
    a = graph.adjacency
    ends = np.stack([np.repeat(rank, np.diff(a.indptr)), rank[a.indices]])
    # An edge is cut by the borders between its two ends.
    opened, closed = sums_by(ends.min(axis=0), a.data, n), sums_by(ends.max(axis=0), a.data, n)
    cut = np.cumsum(opened - closed)[:-1] / 2
    before = np.cumsum(graph.degrees[order])[:-1]
    after = graph.volume - before
    terms = objective.terms(before - cut, before) + objective.terms(after - cut, after)
    return np.asarray(rank > int(np.argmin(terms)), dtype=np.int32)


def round_rows(run: Run, embedding: FloatArray, weights: FloatArray) -> LabelArray:
    """Return k clusters of the embedding's rows."""
    with run.stage("rounding"):
        return round_embedding(
            embedding,
            run.k,
            weights=weights,
            assign_labels=run.choices.asked.assign_labels,
            random_state=run.generator,
            n_jobs=run.n_jobs,
        )
