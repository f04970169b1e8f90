"""Balancing: the best of several draws, under the β that was asked for or the least one under which clusters are clusters.

Where β is for the graph to decide, the plain cut is tried first. Where its clusters are crumbs beside a giant
(:mod:`corecut.soundness`), fees follow, from one that is just felt upwards, until they are not. There are three kinds of
graphs:

- on a noisy one a single crumb is enough for a fee, which hardly moves its optimum and steadies the way to it, unless that
  would spoil a clean cut;
- on most others the first draw under a β tells whether it will do;
- on one of which little need be cut, as of a web crawl, a fee can make the cut several times as large, and draws differ as
  much. All draws are made under a β, unless the first shows that it is far too small, and the best of them tells. Where next
  to nothing need be cut, as of a photograph's pixels, one whose clusters are clusters is enough.

A fee can be wrong, too: it cuts through a large community and makes one of two small ones. So the plain cut stays where all
of its clusters are communities, of whatever sizes. Where that is in doubt, and the graph is not noisy, the rows of eigenvectors
are asked which clusters they fit: they may speak for the plain cut though its clusters are uneven, and for a fee though they
are not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from corecut.draws import QUICK_ROUNDS, ROUNDS, Draw, Run, Starts, best_of_several, finish, with_pairs_tried
from corecut.objective import Balance, Objective
from corecut.refinement import refine_weighted
from corecut.soundness import FEW, MUCH_OF_CHANCE, acceptable, count_specks, most_specks, split_room, whole
from corecut.weighted import WeightedGraph, sums_by

# The values of β that are tried, of those that are felt: not less than this share of the mean conductance. A noisy graph has
# this one. Below the first of the list there are up to so many more, each that many times as large as the one before.
BALANCES, _FELT, _NOISY, _MORE, _STEP = (0.0005, 0.0015, 0.005, 0.05, 0.1), 0.1, 0.05, 3, 10.0
# Where a fee makes the cut so many times as large as it was with one that did not do, so many fees between the two are tried.
_DEAR, _BETWEEN = 2.5, 5
# Clusters of very different sizes are what there is to find where a fee makes the cut so many times as large, or fits the
# eigenvectors so much worse: as long as the median has this share of the mean, and no more than a quarter of them (or one) has
# less than the last figure.
_APART, _MISFIT, _APART_MEDIAN, _APART_LEAST = 2.5, 1.25, 0.2, 0.1
# Clusters that leave out more than this of the eigenvectors' space fit them badly: a cluster may be cut in two, and two be one.
# Those under the fee of noisy graphs are taken if they leave out this share of that, and cut so many times as much at most.
_MISSED, _FITTED, _FITTED_CUT = 0.3, 0.6, 1.6
# Where draws differ much, a first one whose median cluster has less than this share of the mean decides nevertheless, unless it
# is of the plain cut.
_HOPELESS = 0.1
# Up to the first mean conductance next to nothing need be cut, up to the second little, and above the third a graph is noisy.
_FINE, _LITTLE, _CLEAN = 0.001, 0.005, 0.15
# On a noisy graph no cluster may be so far from the mean, unless the fee would make the cut more than twice as large, or a
# sixth larger where there are no specks, as a greater fee may not, either. With this share of what clusters drawn by lot have,
# there is nothing to find but clusters of like size.
_LEAST, _GREATEST, _SPOILT, _GREATER, _LOT = 0.05, 4.0, 0.5, 0.86, 0.9


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
    spoilt = trials.will_do(found.balance, found.best) and not trials.will_do(found.balance, tried)
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
    if trials.noisy:
        if refused is not None and refused.balance > 0 and trials.spoils(found.best, refused.best):
            return trials.with_fee(refused.balance, last=True)
        return found
    if refused is None:
        return trials.fitted(found)
    if trials.apart(plain.best, found.best):
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
        if self.noisy and self._uneven(first) and self.acceptable(first) and not self._whole(first):
            spoilt = _SPOILT if count_specks(self._level, first.labels, k) else _GREATER
            self.noisy = first.objective > spoilt * self.plain_cut(self._look(_NOISY))
            if self.noisy:
                return _Trial(0.0, first, [first], False)
        found = self.with_fee(0.0)
        if self.noisy and self._uneven(found.best) and not self._whole(found.best):
            return replace(found, will_do=False)
        return found

    def fees(self) -> list[float]:
        """Return what follows where the plain cut does not do, the least first."""
        smaller = [BALANCES[0] / _STEP**power for power in range(_MORE, 0, -1)]
        return [fee for fee in (*smaller, *BALANCES) if fee >= self.least_fee]

    def with_fee(self, balance: float, *, last: bool = False) -> _Trial:
        """Try a β. The last one is not refused."""
        first = self._look(balance)
        hopeless = balance > 0 and self._hopeless(first) if self._several else not self.will_do(balance, first)
        if hopeless and not last and not (balance == 0 and self._second_thoughts()):
            return _Trial(balance, first, [first], False)
        found = self.all_draws(balance)
        will_do = last or self.will_do(balance, found.best)
        if not will_do and self._several and self._conductance <= _FINE:
            best = min(filter(self.acceptable, found.draws), key=lambda one: one.rank, default=None)
            return found if best is None else replace(found, best=best, will_do=True)
        return replace(found, will_do=will_do)

    def _second_thoughts(self) -> bool:
        """Say whether another draw of the plain cut finds whole clusters where the first one did not."""
        if self._run.choices.n_init == 1:
            return False
        return self._whole(self._starts.draw(self._run, 1, self._objective(0.0)))

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

    def spoils(self, one: Draw, other: Draw) -> bool:
        """Say whether one partition cuts so much more than another that the greater fee is not worth it."""
        return self.plain_cut(other) < _GREATER * self.plain_cut(one)

    def will_do(self, balance: float, one: Draw) -> bool:
        """Say whether clusters are clusters, or communities of any sizes, which no fee has put together or cut."""
        return self.acceptable(one) or (balance == 0 and self._whole(one))

    def _whole(self, one: Draw) -> bool:
        """Say whether every cluster is one, however large or small, and not drawn by lot."""
        if self._by_lot(one):
            return False
        return whole(self._level, one.labels, self._run.k, mean_degree=self._mean_degree, n_jobs=self._run.n_jobs)

    def fitted(self, plain: _Trial) -> _Trial:
        """Return the plain cut's clusters, or those under a fee if they fit eigenvectors far better and cut little more."""
        missed, cut = self._starts.misfit(plain.best.labels), self.plain_cut(plain.best)
        if missed <= _MISSED:
            return plain

        def fits(one: Draw) -> bool:
            return self._starts.misfit(one.labels) <= _FITTED * missed and self.plain_cut(one) <= _FITTED_CUT * cut

        if not fits(self._look(_NOISY)):
            return plain
        found = self.with_fee(_NOISY)
        return found if found.will_do and fits(found.best) else plain

    def apart(self, plain: Draw, found: Draw) -> bool:
        """Say whether clusters of very different sizes are what there is to find, and those found with a fee cut through them.

        The plain ones must be few crumbs at most. That the others cut through them is told by a far larger cut, or by rows of
        eigenvectors that they fit far worse. In the latter case the large ones may fall into parts, at the usual cost.
        """
        run, level, k = self._run, self._level, self._run.k
        sizes = sums_by(plain.labels, level.sizes, k)
        crumbs = np.count_nonzero(sizes < _APART_LEAST * sizes.mean())
        if crumbs > max(1, k // 4) or np.median(sizes) < _APART_MEDIAN * sizes.mean():
            return False
        few = count_specks(level, plain.labels, k, most=FEW) <= most_specks(k)
        if few and self._starts.misfit(found.labels) > _MISFIT * self._starts.misfit(plain.labels):
            large = sizes > sizes.mean()
            costs, usual, by_chance = split_room(
                level, plain.labels, large, k, mean_degree=self._mean_degree, n_jobs=run.n_jobs
            )
            if np.all(costs > np.maximum(usual, MUCH_OF_CHANCE * by_chance)):
                return True
        return self.plain_cut(found) > _APART * plain.objective and acceptable(
            level, plain.labels, k, least=_APART_MEDIAN, most=k, mean_degree=self._mean_degree, n_jobs=run.n_jobs
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

    def _by_lot(self, one: Draw) -> bool:
        return one.objective > _LOT * (self._run.k - 1)

    def _uneven(self, one: Draw) -> bool:
        """Say whether a cluster has less than a twentieth of the mean's nodes, or more than four times as many.

        Also where the cut is that of clusters drawn by lot: of a complete graph every partition has the same.
        """
        sizes = sums_by(one.labels, self._level.sizes, self._run.k)
        return bool(self._by_lot(one) or sizes.min() < _LEAST * sizes.mean() or sizes.max() > _GREATEST * sizes.mean())
