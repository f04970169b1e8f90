"""Descent: from a partition of the coarsest graph to one of all nodes.

The partition is refined on every level on the way down, by moves of single nodes (or groups) and in chains of them. What comes
of it is looked at again where there is a reason for doubt:

- under tight bounds on sizes, which groups cannot meet, several draws are carried down and combined, and bounds
  loosened for a while (:mod:`corecut.polishing`); graphs that are long and thin are cut along their length, too
  (:mod:`corecut.stretches`);
- where draws did not agree, as on lattices and tori, borders are improved on every scale (:mod:`corecut.cycles`);
- where draws did not agree and much of the cut has gone on the way down, groups did not fit the graph, nor may what was found
  on their quotient: nodes are halved instead (:mod:`corecut.halving`). Hypercubes are like that: they have very many vectors
  of one eigenvalue, in no order, and groups that are no cubes hide where halves would meet. Small graphs are halved wherever
  draws did not agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from corecut._typing import LabelArray
from corecut.aggregation import Quotient
from corecut.confidence import agreement
from corecut.cycles import improve_by_cycles
from corecut.draws import Run
from corecut.engines import Engine, LocalEngine
from corecut.halving import halve_graph
from corecut.objective import Balance, Objective
from corecut.placement import fill_empty
from corecut.polishing import loosen, polish
from corecut.refinement import CLIMB, bring_into_bounds, climb_weighted, refine_weighted
from corecut.repair import found_clusters
from corecut.settings import Choices
from corecut.stretches import stretches
from corecut.weighted import WeightedGraph

# Refinement ends when a sweep lowers the objective by less than this share.
_TOLERANCE = 1e-4
# Draws agree where they put the first share of the volume into the same clusters, and are the same with the second.
_AGREED, _SAME = 0.93, 0.99
# Groups do not fit a graph where less than the first share of the cut is left at the end of the way down, or, if draws did not
# agree, the second one. (Of noisy communities, on which draws agree, 0.6 and more is left.)
_LITTLE, _LESS = 0.5, 0.8
# The least and the greatest cluster, as shares of the mean, when nodes are halved then: narrow bounds find cubes, wide ones
# what lies between.
_HALVES = (0.9, 1.1), (0.6, 1.4)
# Where the first halves cost so many times as much, others are not tried: on large grids they never pay.
_FAR = 1.05
# Pieces of a thin graph are refined where they cost less than so many times what was found.
_NEAR = 1.3


@dataclass(frozen=True, eq=False)
class Start:
    """A partition of the coarsest level, all draws of it, the best first, and the β they are judged by."""

    labels: LabelArray
    draws: list[LabelArray]
    balance: Balance


def descend(
    run: Run,
    whole: WeightedGraph,
    levels: list[Quotient],
    starts: list[Start],
    *,
    engine: Engine,
) -> tuple[LabelArray, Start]:
    """Return a partition of all nodes, refined, and the start that it comes from, the best of those given."""
    choices, k = run.choices, run.k
    each = [(*_first_descent(run, whole, levels, start, engine=engine), start) for start in starts]
    labels, value, start = min(each, key=lambda one: one[1]) if len(each) > 1 else each[0]
    if not choices.asked.refine:
        return labels, start
    best, draws, balance = start.labels, start.draws, start.balance
    objective = final_objective(whole, choices, balance.final)
    if choices.turns:
        labels, value = _polish(run, whole, levels, labels, draws, balance=balance)
    if choices.tight and k > 1:
        labels, value = _in_stretches(run, whole, labels, value, objective, engine=engine)
    top = levels[-1] if levels else whole
    agreed = float(np.average(agreement(best, draws, k), weights=top.graph.degrees)) if len(draws) > 1 else _AGREED
    fitting = True
    if levels and choices.may_halve and agreed < _SAME:
        coarse = refine_weighted(top, best, objective, k, max_passes=0, n_jobs=run.n_jobs).objective
        fitting = value >= (_LESS if agreed < _AGREED else _LITTLE) * coarse
        labels, value = _halved(run, whole, labels, value, objective, tries=_tries(choices, agreed, fitting), engine=engine)
    if choices.cycles and (agreed < _AGREED or not fitting or choices.asked.effort > 1):
        seed = int(run.generator.integers(2**31))
        labels = improve_by_cycles(whole, labels, value, objective, k, cycles=choices.cycles, seed=seed, n_jobs=run.n_jobs)
    return labels, start


def _first_descent(
    run: Run, whole: WeightedGraph, levels: list[Quotient], start: Start, *, engine: Engine
) -> tuple[LabelArray, float]:
    """Carry a partition down, bounds loosened for a while where that is all there is time for; return it and its F."""
    labels, value = refine_down(whole, levels, start.labels, run.choices, start.balance, engine=engine)
    if run.choices.asked.refine and run.choices.loosens:
        objective = final_objective(whole, run.choices, start.balance.final)
        labels, value = loosen(whole, labels, value, objective, run.k, engine=engine)
    return labels, value


def _tries(choices: Choices, agreed: float, fitting: bool) -> tuple[tuple[float, float], ...]:
    """Return the bounds within which nodes are halved: all where groups do not fit, and the first where it is worth a try."""
    if not fitting:
        return _HALVES
    return _HALVES[:1] if choices.soon_halved and agreed < _AGREED else ()


def _halved(
    run: Run,
    whole: WeightedGraph,
    labels: LabelArray,
    value: float,
    objective: Objective,
    *,
    tries: tuple[tuple[float, float], ...],
    engine: Engine,
) -> tuple[LabelArray, float]:
    """Return the best of a partition and those that come of halving nodes, refined, and its F."""
    seed = int(run.generator.integers(2**63))
    for least, most in tries:
        bounds = objective.bounded_by(least, most, whole.n_nodes / run.k)
        halves = halve_graph(whole, bounds, run.k, seed=seed, n_jobs=run.n_jobs)
        halves = fill_empty(halves, run.k, whole.graph.degrees)[0]
        found = _refine(whole, halves, objective, run.choices, engine)
        far = found[1] > _FAR * value
        labels, value = min((labels, value), found, key=lambda one: one[1])
        if far:
            break
    return labels, value


def _in_stretches(
    run: Run, whole: WeightedGraph, labels: LabelArray, value: float, objective: Objective, *, engine: Engine
) -> tuple[LabelArray, float]:
    """Return the best of a partition and the pieces of a thin graph, refined where they come near it, and its F."""
    for pieces in stretches(whole, run.k):
        plain = refine_weighted(whole, pieces, objective, run.k, max_passes=0, engine=engine)
        if plain.objective < _NEAR * value:
            found = _refine(whole, pieces, objective, run.choices, engine)
            labels, value = min((labels, value), found, key=lambda one: one[1])
    return labels, value


def final_objective(whole: WeightedGraph, choices: Choices, balance: float) -> Objective:
    """Return F of all nodes; those without edges, which are placed at the end, may fill small clusters."""
    n_isolated = int(np.count_nonzero(whole.graph.isolated))
    return choices.objective(whole.graph.degrees, balance=balance, n_isolated=n_isolated)


def refine_down(
    whole: WeightedGraph, levels: list[Quotient], labels: LabelArray, choices: Choices, balance: Balance, *, engine: Engine
) -> tuple[LabelArray, float]:
    """Carry a partition of the coarsest level down to the graph itself, refined on every level; return it and its F."""
    below: list[WeightedGraph] = [whole, *levels[:-1]]
    value = np.inf
    for level, quotient in zip(reversed(below), reversed(levels), strict=True) if levels else [(whole, None)]:
        if quotient is not None:
            labels = labels[quotient.groups]
        if choices.asked.refine:
            beta = balance.final if level is whole else balance.of_groups
            labels, value = _refine(level, labels, final_objective(whole, choices, beta), choices, engine)
    return labels, value


def _refine(
    level: WeightedGraph, labels: LabelArray, objective: Objective, choices: Choices, engine: Engine
) -> tuple[LabelArray, float]:
    """Move nodes, one by one and in chains, while the objective falls."""
    k = choices.n_clusters
    labels = bring_into_bounds(level, labels, objective, k)
    found = refine_weighted(level, labels, objective, k, max_passes=20, tolerance=_TOLERANCE, engine=engine)
    # Where it was asked for clusters as small as they like, or as bounds allow, groups may make clusters as well.
    plain = objective.fee == 0 and (choices.sized or choices.asked.balance == 0)
    if plain and not choices.tight and level.graph.diagonal is not None:
        labels, founded = found_clusters(level, found.labels, objective, k, n_jobs=choices.asked.n_jobs)
        if founded:
            found = refine_weighted(level, labels, objective, k, max_passes=20, tolerance=_TOLERANCE, engine=engine)
    if level.graph.n_entries <= CLIMB:
        return climb_weighted(level, found.labels, objective, k)
    return found.labels, found.objective


def _polish(
    run: Run,
    whole: WeightedGraph,
    levels: list[Quotient],
    labels: LabelArray,
    draws: list[LabelArray],
    *,
    balance: Balance,
) -> tuple[LabelArray, float]:
    """Combine the refined partition with what becomes of the best draws."""
    choices = run.choices
    some = draws[: choices.polished]

    def down(one: LabelArray, own: Run) -> LabelArray:
        return refine_down(whole, levels, one, choices, balance, engine=LocalEngine(own.n_jobs))[0]

    others = run.side_by_side([partial(down, one) for one in some])
    return polish(
        whole,
        [labels, *others],
        final_objective(whole, choices, balance.final),
        run.k,
        turns=choices.turns,
        seed=int(run.generator.integers(2**63)),
        n_jobs=run.n_jobs,
        stage=run.stage,
    )
