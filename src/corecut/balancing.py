"""Balancing: the best of several draws, under the β that was asked for or the least one under which clusters are clusters.

Where β is for the graph to decide, the plain cut is tried first. Where its clusters are crumbs beside a giant, fees follow,
from one that is just felt upwards, until they are not (:func:`acceptable`). There are three kinds of graphs:

- on a noisy one a single crumb is enough for a fee, which hardly moves its optimum and steadies the way to it, unless that
  would spoil a clean cut;
- on most others the first draw under a β tells whether it will do;
- on one of which little need be cut, as of a web crawl, a fee can make the cut several times as large, and draws differ as
  much. All draws are made under a β, unless the first shows that it is far too small, and the best of them tells. Where next
  to nothing need be cut, as of a photograph's pixels, one whose clusters are clusters is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from corecut._typing import LabelArray
from corecut.draws import QUICK_ROUNDS, ROUNDS, Draw, Run, Starts, best_of_several, finish, with_pairs_tried
from corecut.objective import Balance, Objective
from corecut.refinement import refine_weighted
from corecut.repair import split_costs
from corecut.weighted import WeightedGraph, sums_by

# The values of β that are tried, of those that are felt: not less than this share of the mean conductance. A noisy graph has
# this one. Below the first of the list there are up to so many more, each that many times as large as the one before.
BALANCES, _FELT, _NOISY, _MORE, _STEP = (0.0005, 0.0015, 0.005, 0.05, 0.1), 0.1, 0.05, 3, 10.0
# Where a fee makes the cut so many times as large as it was with one that did not do, so many fees between the two are tried.
_DEAR, _BETWEEN = 2.5, 5
# Clusters of very different sizes are what there is to find where a fee makes the cut so many times as large: as long as the
# median has this share of the mean, and no more than a quarter of them (or one) has less than the last figure.
_APART, _APART_MEDIAN, _APART_LEAST = 2.5, 0.2, 0.1
# What clusters must be like: see acceptable. Where draws differ much, a first one below the second figure decides nevertheless,
# unless it is of the plain cut.
_LEAST_MEDIAN, _HOPELESS, _GIANT_SHARE, _GIANT_FACTOR, _DIVISIBLE = 0.3, 0.1, 0.2, 2.5, 1.6
# A speck has less than this share of the mean's nodes, and of its volume; one cluster of so many may be one.
_SPECK, _SPECKS = 0.05, 6
# The best halves of a random graph with d neighbours per node cut 1/2 - _GROUND_STATE/√d of its edges (Dembo, Montanari and Sen
# 2017), but never less than what follows. A split below this share of that is no chance.
_GROUND_STATE, _LEAST_CHANCE, _STRUCTURE = 0.7632, 0.1, 0.95
# Up to the first mean conductance next to nothing need be cut, up to the second little, and above the third a graph is noisy.
_FINE, _LITTLE, _CLEAN = 0.001, 0.005, 0.15
# On a noisy graph no cluster may be so far from the mean, unless the fee would make the cut more than twice as large. With this
# share of what clusters drawn by lot have, there is nothing to find but clusters of like size.
_LEAST, _GREATEST, _SPOILT, _LOT = 0.05, 4.0, 0.5, 0.9


@dataclass(frozen=True, eq=False)
class Drawn:
    """The best partition under a balance, and all draws, which were judged by the β of groups."""

    best: Draw
    draws: list[Draw]
    balance: Balance


def draw_partitions(run: Run, level: WeightedGraph, *, n_isolated: int = 0) -> list[Drawn]:
    """Return the best partition and all draws: once, or once for each balance of which only all nodes tell which is best."""
    trials = _Trials(run, level, n_isolated)
    if not run.choices.adaptive:
        each = [(trials.all_draws(balance.of_groups), balance) for balance in run.choices.balances]
        return [Drawn(trials.with_pairs_tried(found), found.draws, balance) for found, balance in each]
    found = _least_balance(trials)
    tried = trials.with_pairs_tried(found)
    spoilt = trials.acceptable(found.best) and not trials.acceptable(tried)
    return [Drawn(found.best if spoilt else tried, found.draws, Balance.both(found.balance))]


@dataclass(frozen=True, eq=False)
class _Trial:
    """What came of a β: its best draw, all draws, and whether clusters are clusters."""

    balance: float
    best: Draw
    draws: list[Draw]
    will_do: bool


def _least_balance(trials: _Trials) -> _Trial:
    """Return what comes of the least β that will do, or of the greatest one."""
    refused, found = None, trials.plain()
    plain, fees = found, trials.fees()
    while not found.will_do and fees:
        refused, found = found, trials.with_fee(fees.pop(0), last=not fees)
    if refused is None or trials.noisy:
        return found
    if trials.apart(plain.best) and trials.plain_cut(found.best) > _APART * plain.best.objective:
        return plain
    # The least fee that will do may be far below the first one on the list that does.
    for _ in range(_BETWEEN):
        if trials.plain_cut(found.best) <= _DEAR * trials.plain_cut(refused.best):
            break
        between = trials.with_fee(float(np.sqrt(max(refused.balance, trials.least_fee) * found.balance)))
        if between.will_do:
            found = between
        else:
            refused = between
    return found


class _Trials:
    """Partitions of one graph under several β. All begin with the same rows of eigenvectors."""

    def __init__(self, run: Run, level: WeightedGraph, n_isolated: int) -> None:
        self._run, self._level, self._n_isolated = run, level, n_isolated
        self._starts = Starts(run, level)
        self._mean_degree = run.choices.n_entries / run.choices.n_nodes
        self._looks: dict[float, Draw] = {}
        self.noisy, self._conductance, self.least_fee = False, np.inf, 0.0

    def plain(self) -> _Trial:
        """Try the plain cut, which also tells what kind of graph this is."""
        k, first = self._run.k, self._look(0.0)
        self._conductance = first.objective / k
        self.noisy = self._conductance > _CLEAN
        # A fee far below the mean conductance moves nothing.
        self.least_fee = _NOISY if self.noisy else _FELT * self._conductance
        if self.noisy and self.acceptable(first) and self._uneven(first):
            self.noisy = first.objective > _SPOILT * self.plain_cut(self._look(_NOISY))
            if self.noisy:
                return _Trial(0.0, first, [first], False)
        found = self.with_fee(0.0)
        return replace(found, will_do=False) if self.noisy and self._uneven(found.best) else found

    def fees(self) -> list[float]:
        """Return what follows where the plain cut does not do, the least first."""
        smaller = [BALANCES[0] / _STEP**power for power in range(_MORE, 0, -1)]
        return [fee for fee in (*smaller, *BALANCES) if fee >= self.least_fee]

    def with_fee(self, balance: float, *, last: bool = False) -> _Trial:
        """Try a β. The last one is not refused."""
        first = self._look(balance)
        hopeless = balance > 0 and self._hopeless(first) if self._several else not self.acceptable(first)
        if hopeless and not last:
            return _Trial(balance, first, [first], False)
        found = self.all_draws(balance)
        will_do = last or self.acceptable(found.best)
        if not will_do and self._several and self._conductance <= _FINE:
            best = min(filter(self.acceptable, found.draws), key=lambda one: one.rank, default=None)
            return found if best is None else replace(found, best=best, will_do=True)
        return replace(found, will_do=will_do)

    def all_draws(self, balance: float) -> _Trial:
        """Return the best of all draws under a β."""
        run, objective = self._run, self._objective(balance)
        draws = [self._look(balance)]
        if self._quick:
            draws = [finish(run, self._level, draws[0].labels, objective, embedding=draws[0].embedding)]
        trial = 1 + list(self._looks).index(balance)
        best = best_of_several(run, self._level, objective, draws, self._starts, trial=trial)
        return _Trial(balance, best, draws, False)

    def with_pairs_tried(self, found: _Trial) -> Draw:
        """Try splits with merges on what was found."""
        return with_pairs_tried(self._run, self._level, found.best, self._objective(found.balance))

    def acceptable(self, one: Draw) -> bool:
        """Say whether clusters are clusters."""
        return acceptable(self._level, one.labels, self._run.k, mean_degree=self._mean_degree, n_jobs=self._run.n_jobs)

    def apart(self, one: Draw) -> bool:
        """Say whether clusters of very different sizes may be what there is: few crumbs, and no giant that falls into parts."""
        k, sizes = self._run.k, sums_by(one.labels, self._level.sizes, self._run.k)
        few = np.count_nonzero(sizes < _APART_LEAST * sizes.mean()) <= max(1, k // 4)
        return bool(few) and acceptable(
            self._level,
            one.labels,
            k,
            least=_APART_MEDIAN,
            specks=k,
            mean_degree=self._mean_degree,
            n_jobs=self._run.n_jobs,
        )

    def _hopeless(self, one: Draw) -> bool:
        """Say whether clusters are so far from being clusters that no other draw can be expected to do."""
        sizes = sums_by(one.labels, self._level.sizes, self._run.k)
        return bool(np.median(sizes) < _HOPELESS * sizes.mean())

    def plain_cut(self, one: Draw) -> float:
        """Return F without a fee."""
        plain = self._objective(0.0)
        return refine_weighted(self._level, one.labels, plain, self._run.k, max_passes=0, n_jobs=self._run.n_jobs).objective

    @property
    def _quick(self) -> bool:
        """Whether a quick look decides if a β will do: of a large graph."""
        return self._run.choices.adaptive and self._run.choices.n_init == 1

    @property
    def _several(self) -> bool:
        """Whether all draws have a say."""
        return self._conductance <= _LITTLE and not self._quick

    def _look(self, balance: float) -> Draw:
        """Return the first draw under a β."""
        if balance not in self._looks:
            trial, rounds = 1 + len(self._looks), QUICK_ROUNDS if self._quick else ROUNDS
            self._looks[balance] = self._starts.draw(self._run, 0, self._objective(balance), trial, rounds=rounds)
        return self._looks[balance]

    def _objective(self, balance: float) -> Objective:
        return self._run.choices.objective(self._level.graph.degrees, balance=balance, n_isolated=self._n_isolated)

    def _uneven(self, one: Draw) -> bool:
        """Say whether a cluster has less than a twentieth of the mean's nodes, or more than four times as many.

        Also where the cut is that of clusters drawn by lot: of a complete graph every partition has the same.
        """
        sizes = sums_by(one.labels, self._level.sizes, self._run.k)
        by_lot = one.objective > _LOT * (self._run.k - 1)
        return bool(by_lot or sizes.min() < _LEAST * sizes.mean() or sizes.max() > _GREATEST * sizes.mean())


def acceptable(
    level: WeightedGraph,
    labels: LabelArray,
    k: int,
    *,
    least: float = _LEAST_MEDIAN,
    specks: int | None = None,
    mean_degree: float = np.inf,
    n_jobs: int | None = None,
) -> bool:
    """Say whether clusters are clusters: not crumbs beside a giant that falls into parts itself.

    Crumbs: the median cluster has less than 0.3 of the mean's nodes, or another share. The median does not notice one crumb of
    two or three clusters: no more clusters than so many, by default a sixth of them, may be specks of less than a twentieth of
    the mean's nodes and volume. A giant has more than a fifth of the nodes and 2.5 times the mean. It falls into parts where a
    split of it cuts no more than 1.6 times what usually separates clusters here, and less than the best split of a random graph
    of so many neighbours per node: where clusters are noisy, any split of a homogeneous one cuts less than what separates them.
    """
    sizes, volumes = sums_by(labels, level.sizes, k), sums_by(labels, level.graph.degrees, k)
    speck = (sizes < _SPECK * sizes.mean()) & (volumes < _SPECK * volumes.mean())
    few = np.count_nonzero(speck) <= (k // _SPECKS if specks is None else specks)
    if not few or np.median(sizes) < least * sizes.mean():
        return False
    giant = sizes > max(_GIANT_SHARE, _GIANT_FACTOR / k) * sizes.sum()
    if not giant.any():
        return True
    cuts, conductances = split_costs(level, labels, giant, k, n_jobs=n_jobs)
    by_chance = np.maximum(0.5 - _GROUND_STATE * np.sqrt((1.0 - conductances[giant]) / mean_degree), _LEAST_CHANCE)
    return bool(np.all(cuts > np.minimum(_DIVISIBLE * conductances.mean(), _STRUCTURE * by_chance)))
