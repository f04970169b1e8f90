r"""Selection: how many clusters a graph has, from one aggregation, one embedding and the whole path of k.

A few draws of more clusters than anybody would ask for are made from one embedding, and each is merged, pair by pair, down
to one cluster (:mod:`corecut.merging`), with nodes moved anew at every k that is reported. Along this path F falls by the steps

    step(k) = F(k) - F(k - 1),

what the k-th cluster costs. On a graph with k clusters that stand out alike, each of them costs about the same, its share of
edges that leave it; the next one must break a cluster, and costs a multiple. So the leap

    leap(k) = (1 - 1/k) · step(k + 1) / step(k),      as the geometric mean over the draws,

is about 1 wherever nothing happens, and well above 1 at the number of clusters. The factor 1 - 1/k allows for a path, a long
thin body without any clusters: there step(k) is proportional to k - 1. Bodies of more dimensions and random graphs leap even
less. The allowance is not made at the k of the shortest description of the graph (by a degree-corrected block model, among the
k that are reported), which a path has at 1, and other bodies at many small pieces.

The rule: the k of the largest leap, if that is at least 1.1. Where nothing leaps, the k of the shortest description, which is 1
for a random graph; it is a guess, and is called one. docs/choosing-k.md has the measurements, and what lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from corecut._progress import Stages
from corecut._random import as_generator
from corecut._typing import FloatArray, IntArray, LabelArray, RandomState
from corecut._validation import check_count, check_real
from corecut.aggregation import aggregate_graph
from corecut.description import agreement_of, saved_description
from corecut.draws import Run, embed, round_rows
from corecut.graph import Graph, as_graph
from corecut.merging import merge_clusters
from corecut.objective import Objective
from corecut.paths import Ground, Mender, Path, follow_path
from corecut.placement import fill_empty
from corecut.settings import Settings, resolve
from corecut.spectral.blas import single_threaded_blas
from corecut.weighted import WeightedGraph

# Where nobody says how far to look: up to this many times √n clusters, but no more than a quarter of the nodes or this many.
_ROOT, _LEAST_NODES, _MOST = 4.0, 4, 600
# The matrices of clusters are dense.
MOST_CLUSTERS = 5_000
# What is refined and reported: every k up to the first, and then each a quarter more than the one before.
_EVERY, _SPACING = 12, 1.25
# Clusters beyond k_max that the path begins with: the last k has a leap only if there is one more.
_BEYOND = 1.1
# A smaller leap than this happens by chance.
_LEAST_LEAP = 1.1
# The scale of confidence, and what its values are called: see Selection.
_SCALE, SURE, FAIRLY_SURE = 0.3, 0.8, 0.5
# Clusters below this share of the mean volume are crumbs: that they stand out says little of the rest.
_CRUMB = 0.1
# Entries of a graph whose nodes are repaired at every reported k: beyond, that costs more than two fits at k_max.
_THOROUGH = 200_000
# Where the shortest description has more than this share of k_max clusters, k_max was too small.
_TOO_FEW = 0.8


@dataclass(frozen=True, eq=False)
class Step:
    """Figures of one k.

    Attributes
    ----------
    n_clusters
        k.
    normalized_cut
        Mean conductance of the clusters.
    modularity
        Modularity of the partition.
    eigengap
        θ_k - θ_{k+1}, for the eigenvalues θ of the graph of the clusters that the path begins with: each a lower bound of the
        graph's own.
    stability
        Agreement of the draws at this k: the mean of their adjusted Rand indices; NaN for a single draw.
    leap
        What the next cluster costs, in units of what the last one did; NaN for k = 1.
    description
        How much shorter the partition makes a description of the graph, in nats per edge; 0 for one cluster, negative where
        the graph is described better without clusters.
    crumbs
        Number of clusters with less than a tenth of the mean volume.
    sizes
        Numbers of nodes of the clusters, falling.
    """

    n_clusters: int
    normalized_cut: float
    modularity: float
    eigengap: float
    stability: float
    leap: float
    description: float
    crumbs: int
    sizes: IntArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Selection:
    """The path of k, the number of clusters that was chosen from it, and how sure that is.

    Attributes
    ----------
    best, runner_up
        Number of clusters, and the one that comes next: by its leap, or, where no other k leaps, by its description. None
        where there is no other.
    confidence
        Between 0 and 1: (1 - exp(-(x/0.3)²)) · stability · (1 - crumbs/k), where x is the logarithm of the best leap less half
        of that of the next largest. 0.8 is sure, below 0.5 unsure; it is 0 where nothing leaps.
    path
        Figures of every reported k, rising.
    leaps
        leap(k) of every k in the range; NaN outside.
    linkage
        The merges of the clusters at k_max down to one, as scipy's `dendrogram` takes them; a merge's height is what it loses.
    k_min, k_max
        The range.
    timings
        Seconds of each stage.
    """

    best: int
    runner_up: int | None
    confidence: float
    path: list[Step] = field(repr=False)
    leaps: FloatArray = field(repr=False)
    linkage: FloatArray = field(repr=False)
    k_min: int
    k_max: int
    timings: dict[str, float] = field(repr=False)
    _partitions: _Partitions | None = field(repr=False)

    @property
    def stands_out(self) -> bool:
        """Whether the graph itself tells k, and it is not a guess."""
        return bool(self.best > 1 and self.leaps[self.best] >= _LEAST_LEAP)

    @property
    def sentence(self) -> str:
        """What was found, in plain words."""
        word = "sure" if self.confidence >= SURE else "fairly sure" if self.confidence >= FAIRLY_SURE else "unsure"
        other = "" if self.runner_up is None else f"; the runner-up is {self.runner_up}"
        if not self.stands_out:
            what = "one cluster describes the graph best" if self.best == 1 else f"{self.best} clusters describe it shortest"
            among = f"of {self.k_min:,} to {self.k_max:,} clusters no number stands out"
            return f"{among}, as in a graph without clusters; {what} (unsure{other})"
        leap = f"one more would cost {self.leaps[self.best]:.2f} times as much as it would if nothing set them apart"
        crumbs = next(one.crumbs for one in self.path if one.n_clusters == self.best)
        if crumbs:
            leap += f", but {crumbs} of them {'is a crumb' if crumbs == 1 else 'are crumbs'} beside the others"
        tried = f"; {self.k_min:,} to {self.k_max:,} were tried" if word == "unsure" else ""
        return f"{self.best} clusters: {leap} ({word}, {self.confidence:.2f}{other}{tried})"

    def labels_at(self, n_clusters: int) -> LabelArray:
        """Return the partition into any number of clusters of the range, refined; the same one every time.

        It needs the graph, which must not have changed, and which a pickled selection does not hold.
        """
        k = check_count(n_clusters, "n_clusters", minimum=self.k_min, maximum=self.k_max)
        if self._partitions is None:
            raise ValueError("a pickled selection does not hold the graph: run select_n_clusters again for labels_at")
        return self._partitions.labels_at(k)

    def __getstate__(self) -> dict[str, Any]:
        # The graph stays where it is, as with a pickled model.
        return self.__dict__ | {"_partitions": None}


def select_n_clusters(
    graph: Any,
    k_min: int = 1,
    k_max: int | None = None,
    *,
    balance: float = 0.002,
    n_init: int = 2,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Selection:
    """Choose the number of clusters of a graph, and report the path of k.

    Parameters
    ----------
    graph
        A :class:`Graph` or anything it can be made from.
    k_min, k_max
        Range of k. None for k_max is 4·√n, at most 600 and a quarter of the nodes; twice that where all of it was too few.
    balance
        β of F (:mod:`corecut.objective`) for the path; the default only keeps crumbs away.
    n_init
        Number of draws, each with a path of its own; the agreement of their partitions is the stability.
    random_state, n_jobs
        As everywhere. The result does not depend on the number of threads.
    verbose
        Show the stages as they run.

    Returns
    -------
    Selection

    Notes
    -----
    One aggregation and one embedding for the largest k, whatever the range: less than three times a fit at k_max.

    Examples
    --------
    >>> from corecut import make_sbm, select_n_clusters
    >>> graph, truth = make_sbm(100, 7, 0.3, 0.01, random_state=0)
    >>> found = select_n_clusters(graph, random_state=0)
    >>> found.best
    7
    >>> found.labels_at(7).shape
    (700,)
    """
    with Stages(None, verbose=verbose, description="corecut") as stage:
        found = select(
            as_graph(graph, n_jobs=n_jobs),
            k_min,
            k_max,
            balance=balance,
            n_init=n_init,
            random_state=random_state,
            n_jobs=n_jobs,
            stage=stage,
        )
        stage.say(found.sentence)
    return found


def select(
    graph: Graph,
    k_min: int,
    k_max: int | None,
    *,
    balance: float = 0.002,
    n_init: int = 2,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    stage: Stages,
) -> Selection:
    """Do the work of :func:`select_n_clusters` within the stages of a longer computation."""
    low, high = check_range(k_min, k_max, graph)
    check_count(n_init, "n_init")
    check_real(balance, "balance")
    generator = as_generator(random_state)
    ask = _Ask(balance, n_init, generator, n_jobs, stage)
    found = _select(graph, low, high, ask)
    room = min(2 * high, MOST_CLUSTERS, int(np.count_nonzero(graph.degrees)) // _LEAST_NODES)
    if k_max is None and not found.stands_out and found.best > _TOO_FEW * high and room > high:
        stage.say(f"{high} clusters are too few: looking up to {room}")
        found = _select(graph, low, room, ask)
    return found


def asked_range(n_clusters: Any) -> tuple[int, int | None] | None:
    """Return k_min and k_max of "auto" or a range "5..200"; None for anything else.

    Examples
    --------
    >>> from corecut.selection import asked_range
    >>> asked_range("auto"), asked_range("5..200"), asked_range(7)
    ((1, None), (5, 200), None)
    """
    if not isinstance(n_clusters, str):
        return None
    if n_clusters == "auto":
        return 1, None
    low, dots, high = n_clusters.partition("..")
    if not (dots and low.strip().isdecimal() and high.strip().isdecimal() and 1 <= int(low) <= int(high) <= MOST_CLUSTERS):
        raise ValueError(
            f'n_clusters must be a number, "auto" or a range like "5..200" (1 to {MOST_CLUSTERS}, rising), got {n_clusters!r}'
        )
    return int(low), int(high)


def check_range(k_min: Any, k_max: Any, graph: Graph) -> tuple[int, int]:
    """Return the range of k as two numbers; see :func:`select_n_clusters` for what None stands for."""
    low = check_count(k_min, "k_min")
    nodes = int(np.count_nonzero(graph.degrees))
    if nodes == 0:
        raise ValueError("the graph has no edges: there is nothing to cluster by")
    usual = min(math.ceil(_ROOT * math.sqrt(nodes)), _MOST, nodes // _LEAST_NODES)
    high = (
        max(low, min(max(usual, 2), nodes))
        if k_max is None
        else check_count(k_max, "k_max", minimum=low, maximum=MOST_CLUSTERS)
    )
    if high > nodes:
        name, value = ("k_min", low) if low > nodes else ("k_max", high)
        raise ValueError(f"{name}={value} is more than the {nodes} nodes that have edges: ask for at most as many clusters")
    return low, high


def refuse_beyond(n_clusters: Any, k_max: int | None, graph: Graph) -> None:
    """Refuse a range of k, named as it was asked for, that ends beyond the number of nodes that have edges."""
    nodes = int(np.count_nonzero(graph.degrees))
    if k_max is not None and k_max > nodes > 0:
        raise ValueError(
            f"n_clusters={n_clusters} goes up to {k_max}, more than the {nodes} nodes that have edges: ask for at most as many "
            "clusters"
        )


@dataclass(frozen=True, eq=False)
class _Ask:
    """What a selection is asked for, but for its range."""

    balance: float
    n_init: int
    generator: np.random.Generator
    n_jobs: int | None
    stage: Stages


def _select(graph: Graph, low: int, high: int, ask: _Ask) -> Selection:
    """Choose k in a range: aggregate, embed, draw, follow the paths down, measure, and apply the rule."""
    n_jobs, stage = ask.n_jobs, ask.stage
    whole = WeightedGraph.of(graph)
    beyond = min(math.ceil(_BEYOND * high) + 1, int(np.count_nonzero(graph.degrees)))
    choices = resolve(Settings(beyond, n_jobs=n_jobs), graph)
    levels = []
    if choices.aggregate or choices.samples(graph):
        with stage("aggregation"):
            levels = aggregate_graph(graph, beyond, sizes=whole.sizes, n_jobs=n_jobs)
    ground = Ground.of(whole, levels, beyond, balance=ask.balance, n_jobs=n_jobs)
    run = Run(choices, ask.generator, stage, n_jobs)
    rows, weights = embed(run, ground.part, regularization=choices.regularization)
    stops = _stops(low, high, beyond)
    starts = []
    for _ in range(ask.n_init):
        labels = fill_empty(round_rows(run, rows, weights), beyond, ground.part.graph.degrees)[0]
        with stage("refinement"):
            starts.append(ground.down(ground.refined(labels, beyond)[0], beyond))
    with stage("path"):
        # Aggregation for so many clusters joins nodes of different ones; the draws, refined on the nodes, tell which.
        ground, starts = ground.divided(starts, beyond)
        paths = [follow_path(ground, labels, stops) for labels in starts]
    thorough = not choices.aggregate and graph.n_entries <= _THOROUGH
    partitions = _Partitions(ground, paths, Mender.of(ground, paths, thorough=thorough))
    with stage("figures"):
        first = partitions.best_path(beyond).labels[beyond]
        between, volume = ground.between(first)
        root = np.sqrt(volume)  # each alone: a product of two volumes may leave the range of numbers
        with single_threaded_blas():
            theta: FloatArray = np.linalg.eigvalsh(between / root / root[:, None]).astype(np.float64)[::-1]
        figures = {k: partitions.figures(k, theta) for k in stops if low <= k <= high}
        shortest = max(sorted(figures), key=lambda k: figures[k].description)
        leaps = _leaps(paths, low, high, shortest)
        best, runner_up, beyond_chance = _ranked(leaps, figures)
        for k in (best, runner_up):
            if k is not None and k not in figures:
                figures[k] = partitions.figures(k, theta)
        path = [replace(figures[k], leap=float(leaps[k])) for k in sorted(figures)]
        start = partitions.best_path(high).merged(high)
        linkage = merge_clusters(*ground.between(start), ground.objective(high)).linkage()
    stability = figures[best].stability
    confidence = beyond_chance * (max(stability, 0.0) if ask.n_init > 1 else 1.0) * (1 - figures[best].crumbs / best)
    return Selection(best, runner_up, confidence, path, leaps, linkage, low, high, stage.timings, partitions)


def _stops(low: int, high: int, beyond: int) -> list[int]:
    """Return the numbers of clusters at which nodes are moved, falling: what is reported, and where the path begins."""
    stops, k = {low, high, beyond}, 2.0
    while k < beyond:
        stops.add(round(k))
        k = k + 1 if k < _EVERY else k * _SPACING
    return sorted(stops, reverse=True)


def _leaps(paths: list[Path], low: int, high: int, shortest: int) -> FloatArray:
    """Return leap(k), the geometric mean over the paths, for every k in the range."""
    steps = np.maximum([path.steps for path in paths], 1e-12)
    logs = np.diff(np.log(steps), axis=1).mean(axis=0)  # step(k + 1) over step(k) at k
    k = np.arange(logs.size)
    leaps = np.full(high + 1, np.nan)
    inside = slice(max(low, 2), min(high + 1, logs.size))
    leaps[inside] = np.exp(logs[inside]) * np.where(k[inside] == shortest, 1, 1 - 1 / k[inside])
    return leaps


def _ranked(leaps: FloatArray, figures: dict[int, Step]) -> tuple[int, int | None, float]:
    """Return the best number of clusters, the next one, and how far the best leap is beyond chance and beyond all others.

    By leaps; where nothing leaps, or nothing else, by the descriptions.
    """
    by_description = sorted(figures, key=lambda k: (-figures[k].description, k))
    order = np.argsort(-np.nan_to_num(leaps), kind="stable")
    leaping = [int(k) for k in order if leaps[k] >= _LEAST_LEAP]
    best, *others = dict.fromkeys([*leaping, *by_description])
    if not leaping:
        return best, others[0] if others else None, 0.0
    other = max(float(np.nan_to_num(leaps)[order[1]]), 1.0)
    x = math.log(leaps[best]) - 0.5 * math.log(other)
    return best, others[0] if others else None, 1.0 - math.exp(-((x / _SCALE) ** 2))


@dataclass(frozen=True, eq=False)
class _Partitions:
    """The partitions of all paths."""

    ground: Ground
    paths: list[Path]
    mender: Mender
    _found: dict[int, LabelArray] = field(default_factory=dict, repr=False)

    def refined(self, n_clusters: int) -> list[tuple[float, LabelArray]]:
        """Return F and labels of every path's partition into k clusters."""
        found = []
        for path in self.paths:
            if n_clusters in path.labels:
                found.append((path.objective[n_clusters], path.labels[n_clusters]))
            else:
                labels, value = self.ground.refined(path.merged(n_clusters), n_clusters)
                found.append((value, labels))
        return found

    def best_path(self, n_clusters: int) -> Path:
        """Return the path that has the lowest objective at k."""
        values = [value for value, _ in self.refined(n_clusters)]
        return self.paths[int(np.argmin(values))]

    def labels_at(self, n_clusters: int) -> LabelArray:
        """Return the best partition into k clusters, mended, and refined on the nodes."""
        if n_clusters not in self._found:
            value, labels = min(self.refined(n_clusters), key=lambda one: one[0])
            # Of what is reported, which is found first and from above: any other k would depend on what was asked before.
            reported = [k for k in self.paths[0].labels if k > n_clusters and k in self._found]
            above = self._found[min(reported)] if reported else None
            self._found[n_clusters] = self.mender.mended(labels, value, n_clusters, above)[0]
        return self.ground.down(self._found[n_clusters], n_clusters)

    def figures(self, k: int, theta: FloatArray) -> Step:
        """Measure the partition into k clusters, but for its leap."""
        pairs = [agreement_of(a, b, self.ground.part.sizes) for (_, a), (_, b) in combinations(self.refined(k), 2)]
        labels = self.labels_at(k)
        graph = self.ground.whole.graph
        between = self.ground.whole.contract(labels, n_jobs=self.ground.n_jobs).graph.adjacency.toarray().astype(np.float64)
        between /= between.max()  # sums of the largest weights that there are would be infinite
        inside, volume = between.diagonal(), between.sum(axis=1)
        total = volume.sum()
        sizes = np.bincount(labels, minlength=k)
        return Step(
            k,
            float(np.mean(Objective().terms(inside, volume))),
            float(np.sum(inside / total - (volume / total) ** 2)),
            float(theta[k - 1] - theta[k]) if k < theta.size else math.nan,
            float(np.mean(pairs)) if pairs else math.nan,
            math.nan,
            saved_description(between, sizes, graph.n_edges),
            int(np.count_nonzero(volume < _CRUMB * total / k)),
            np.sort(sizes)[::-1],
        )
