"""Settings: how to cluster, and what every "auto" stands for on a given graph.

Settings check themselves when they are made, before anything is read or searched. What depends on the graph is decided by
:func:`resolve`, before the first stage; the stages read nothing else. The rules, each from measurements on real and planted
graphs (docs/sparse-graphs.md):

- coreset_size: 20 draws per cluster, at least 1,500, enough for an induced mean degree of 20; all nodes of a graph of up to
  3,000, or 6,000 with no more than 150,000 entries.
- aggregate: yes on sparse graphs (fewer than 100 entries per node) and those of up to ten million entries, unless a coreset
  size was asked for; and where the induced mean degree of the coreset would fall below 15 (3 on dense graphs).
- regularization (of the spectral step): 0 on dense graphs and without refinement; else 0.1 of the mean degree, less where
  clusters have fewer than 80 nodes. Where several draws are made, every other one has none.
- balance: the least of 0, 0.0005, 0.0015, 0.005, 0.05 and 0.1, or one between two of them, under which most clusters are no
  crumbs and no giant falls into parts (:mod:`corecut.balancing`); 0 where sizes are bounded on both sides, or tightly, and
  where clusters of any sizes are communities (:mod:`corecut.soundness`).
- n_init: up to five draws (eleven of two clusters, eight under tight bounds), fewer where the graph that they are made on is
  large beside the one that was aggregated; times `effort`.
- bounds up to 1.3 times the mean cluster are tight: groups are then bounded by their number of nodes, draws begin with halving,
  and the best of them are combined node by node, with bounds loosened for a while (:mod:`corecut.polishing`), as far as the
  number of entries allows; on larger graphs, and there up to 2.2 times the mean cluster, one is loosened alone.
"""

from __future__ import annotations

import math
import numbers
import os
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from corecut import advice
from corecut._files import counted, parse_size
from corecut._typing import FloatArray
from corecut._validation import check_count, check_n_clusters, check_option, check_real, thread_count
from corecut.coreset import Importance
from corecut.coreset_graphs import Degrees
from corecut.graph import Graph
from corecut.labelling import Candidates
from corecut.memory import check_limit, coreset_bytes, least_bytes, require_limit
from corecut.objective import Balance, Objective, volume_of_clusters
from corecut.sampling import Sampler
from corecut.size_bounds import bounds_in_nodes
from corecut.spectral import AssignLabels, EigenSolver

# A graph of at most this many nodes is its own coreset, also one of a few more with few entries: the spectral step takes a
# fraction of a second on all of it.
SMALL_GRAPH, SMALL_SPARSE, SMALL_ENTRIES = 3_000, 6_000, 150_000
# From this many entries per node on a graph counts as dense.
DENSE = 100
# Up to this many entries aggregation takes a second or two, and its partitions are better than a coreset's.
MODERATE = 10_000_000
# Below this mean degree the graph of a coreset falls into pieces: on sparse graphs, and on dense ones, where the few neighbours
# of a coreset node are likely to know each other.
LEAST_INDUCED_DEGREE, LEAST_INDUCED_DEGREE_DENSE = 15, 3
# Up to this many nodes a quotient graph goes to the spectral step as it is.
SMALL_QUOTIENT = 100_000
# Nodes of each cluster in the sample that a coreset's partition is repaired on.
_SECOND_LOOK = 32
# Draws: as many as cost a fraction of aggregation, or of a second, but two of a small graph, however dense. More under tight
# bounds, and of two clusters, for which several vectors are tried.
_LEAST_DRAWS = 2
_DRAW_SHARE, _FEW_ENTRIES, _MOST_DRAWS, _TIGHT_DRAWS, _DRAWS_OF_TWO = 8, 1_600_000, 5, 8, 11
# Several coresets are drawn only from graphs of so few entries.
_FEW_SAMPLED = 100_000
# Turns of polishing where bounds are tight, fewer where a graph has more entries, and nodes times clusters; and for every unit
# of effort above 1, whatever the graph.
_TURNS, _TURN_ENTRIES, _EXTRA_TURNS, _MOST_EFFORT = 90, 4_000_000, 8, 100.0
# Cycles that improve borders where draws do not agree, on graphs of up to so many entries; and for every unit of effort above
# 1, whatever the graph.
_CYCLES, _CYCLE_ENTRIES, _EXTRA_CYCLES = 3, 500_000, 2
# Nodes are halved up to so many entries times rounds of halving; up to so many it takes no time to speak of.
_HALVED_ENTRIES, _SOON_HALVED = 50_000_000, 500_000
# Splits with merges that do not pay at once, tried on the best draw where that has at most so many entries and clusters: of
# many clusters one pair is a small part of F.
_TRIES, _TRIED_ENTRIES, _TRIED_CLUSTERS = 6, 1_000_000, 100
# Partitions that are carried down to the nodes to be polished.
_POLISHED, _POLISHED_LARGE = 6, 2
# Bounds are tight up to this factor of the mean cluster, and loosened for a while on large graphs up to the second.
_TIGHT, _LOOSENED = 1.3, 2.2
# Groups per cluster of a quotient; under tight bounds as many as make about so many groups, which are halved best.
_GROUPS, _TIGHT_GROUPS, _FEWEST, _MOST_GROUPS = 10.0, 300, 2.0, 20.0
# No shift, regularisation or balance makes sense beyond this.
_MOST = 1e6
# β where no draw can tell how much is needed: through a coreset. And the least one by which groups are moved under tight bounds
# where nodes are not polished: a fee steadies the way to a low cut that has none.
_BALANCE, _STEADYING = 0.02, 0.1
# Where the largest allowed cluster is above this factor of the mean, and the least below half of it, some may be small.
_ROOMY = 1.05

Auto = Literal["auto"]

_OPTIONS: dict[str, tuple[Any, ...]] = {
    "sampler": get_args(Sampler),
    "importance": get_args(Importance),
    "degrees": get_args(Degrees),
    "eigen_solver": get_args(EigenSolver),
    "assign_labels": get_args(AssignLabels),
    "candidates": get_args(Candidates),
    "refine": (True, False),
    "aggregate": ("auto", True, False),
}


@dataclass(frozen=True)
class Settings:
    """How to cluster; the estimator's parameters of the same names."""

    n_clusters: int
    coreset_size: float | Auto = "auto"
    aggregate: bool | Auto = "auto"
    regularization: float | Auto = "auto"
    shift: float | Auto = "auto"
    seeding_factor: float = 2.0
    sampler: Sampler = "rejection"
    importance: Importance = "seeds"
    degrees: Degrees = "rows"
    eigen_solver: EigenSolver = "auto"
    n_components: int | None = None
    assign_labels: AssignLabels = "kmeans"
    n_init: int | Auto = "auto"
    candidates: Candidates = "touched"
    refine: bool = True
    effort: float = 1.0
    balance: float | Auto = "auto"
    min_cluster_size: float | None = None
    max_cluster_size: float | None = None
    memory_limit: str | int | None = None
    scratch: str | os.PathLike[str] | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        """Check what does not depend on the graph, before any work and whether or not its stage will run."""
        check_count(self.n_clusters, "n_clusters")
        for name, options in _OPTIONS.items():
            check_option(getattr(self, name), name, options)
        check_real(self.seeding_factor, "seeding_factor", exclusive=True)
        for name in ("shift", "regularization", "balance"):
            if not _is_auto(getattr(self, name)) and check_real(getattr(self, name), name) > _MOST:
                raise ValueError(f"{name} must be at most {_MOST:g}, got {getattr(self, name):g}")
        if not _is_auto(self.n_init):
            check_count(self.n_init, "n_init")
        if check_real(self.effort, "effort", exclusive=True) > _MOST_EFFORT:
            raise ValueError(f"effort must be at most {_MOST_EFFORT:g}, got {self.effort:g}: beyond it nothing is gained")
        if self.n_components is not None:
            check_count(self.n_components, "n_components")
        thread_count(self.n_jobs)
        check_limit(self.memory_limit, self.scratch)
        _checked_coreset_size(self.coreset_size, self.n_clusters)
        for name in ("min_cluster_size", "max_cluster_size"):
            value = getattr(self, name)
            if value is None:
                continue
            if not self.refine:
                raise ValueError(f"{name} needs refine=True: without refinement nothing keeps clusters within bounds")
            if isinstance(value, numbers.Integral):
                check_count(value, name)
            else:
                check_real(value, name, exclusive=True)
        if self.balance not in ("auto", 0) and not self.refine:
            raise ValueError("balance needs refine=True: only repair and refinement know the objective")

    def limits(self) -> str:
        """Return what was asked of the sizes of clusters, in words; nothing for nothing."""
        names = [name for name in ("min_cluster_size", "max_cluster_size") if getattr(self, name) is not None]
        names += [] if self.balance in ("auto", 0) else ["balance"]
        return " with ".join(f"{name}={getattr(self, name)}" for name in names)


@dataclass(frozen=True)
class Choices:
    """The settings as numbers, after every "auto" has been decided for one graph.

    Attributes
    ----------
    asked
        The settings they come from.
    n_nodes, n_entries, n_clusters
        Of the graph, and k.
    coreset_size, aggregate, regularization
        Number of draws, whether to aggregate, τ of the spectral step in units of the mean degree.
    balance
        β of the objective, where it is not left to the draws (`adaptive`).
    min_cluster_size, max_cluster_size
        Bounds on the number of nodes of a cluster; 0 and infinity for none.
    n_init
        Number of draws.
    """

    asked: Settings
    n_nodes: int
    n_entries: int
    n_clusters: int
    coreset_size: int
    aggregate: bool
    regularization: float
    balance: float
    min_cluster_size: float
    max_cluster_size: float
    n_init: int

    def on(self, top: Graph) -> Choices:
        """Return the choices for the graph that draws are made on: a quotient has a coreset size of its own."""
        choices = self
        if self.aggregate and self.asked.coreset_size == "auto":
            small = top.n_nodes <= SMALL_QUOTIENT
            choices = replace(self, coreset_size=top.n_nodes if small else coreset_size_for(top, self.n_clusters, "auto"))
        if self.asked.n_init != "auto":
            return choices
        if not self.asked.refine or (choices.samples(top) and top.n_entries > _FEW_SAMPLED):
            return replace(choices, n_init=1)
        # A draw costs passes over the entries, and k-means.
        cost = top.n_entries + top.n_nodes * self.n_clusters + 1
        cheap = max(self.n_entries // (_DRAW_SHARE * cost), _FEW_ENTRIES // cost)
        if not self.aggregate and top.n_nodes <= SMALL_GRAPH:
            cheap = max(cheap, _LEAST_DRAWS)  # of few nodes with many entries
        most = _DRAWS_OF_TWO if self.n_clusters == 2 else _TIGHT_DRAWS if self.tight else _MOST_DRAWS
        return replace(choices, n_init=max(1, round(self.asked.effort * min(max(cheap, 1), most))))

    def room(self, graph: Graph) -> int | None:
        """Return the bytes of memory that levels may take within the limit; None without one."""
        limit = self.asked.memory_limit
        if limit is None:
            return None
        needed = least_bytes(graph.n_nodes, graph.n_entries, self.n_clusters, n_jobs=self.asked.n_jobs)
        return max(0, parse_size(limit) - needed)

    @property
    def turns(self) -> int:
        """Return how many turns of polishing the partition of all nodes gets."""
        if not self.asked.refine:
            return 0
        usual = self._usual_turns if self.tight else 0
        return round(usual * min(self.asked.effort, 1.0) + _EXTRA_TURNS * max(self.asked.effort - 1.0, 0.0))

    @property
    def loosens(self) -> bool:
        """Say whether bounds that many clusters will reach are loosened for a while, on a graph that is too large for turns."""
        return self.max_cluster_size <= _LOOSENED * self.n_nodes / self.n_clusters and self._usual_turns == 0

    @property
    def _usual_turns(self) -> int:
        turns = min(_TURNS, _TURN_ENTRIES // (self.n_entries + self.n_nodes * self.n_clusters + 1))
        return turns if turns > 3 else 0  # a few turns hardly ever find anything

    @property
    def cycles(self) -> int:
        """Return how many cycles of refinement on every scale the partition of all nodes may get."""
        usual = _CYCLES if self.n_entries <= _CYCLE_ENTRIES and not self.tight else 0
        return round(usual * min(self.asked.effort, 1.0) + _EXTRA_CYCLES * max(self.asked.effort - 1.0, 0.0))

    @property
    def may_halve(self) -> bool:
        """Say whether there is time to halve the graph node by node, where its groups do not fit."""
        return self._halved_entries <= _HALVED_ENTRIES and not self.bounded

    @property
    def soon_halved(self) -> bool:
        """Say whether halving the graph node by node takes so little time that it may be tried without need."""
        return self._halved_entries <= _SOON_HALVED

    @property
    def _halved_entries(self) -> float:
        return self.n_entries * math.log2(max(self.n_clusters, 2))

    @property
    def balances(self) -> tuple[Balance, ...]:
        """Return what is tried where β is not for the graph to decide.

        Tight bounds may leave room for a few small clusters. A fee on groups keeps those away, which makes some cuts higher.
        """
        plain = Balance.both(self.balance)
        if not self.tight or self.turns > 0 or self.asked.balance != "auto":
            return (plain,)
        mean = self.n_nodes / self.n_clusters
        roomy = self.max_cluster_size > _ROOMY * mean and self.min_cluster_size < mean / 2
        steadied = Balance(self.balance, _STEADYING)
        return (steadied, plain) if roomy else (steadied,)

    def tries(self, top: Graph) -> int:
        """Return how many splits with merges that do not pay at once are tried on the best draw."""
        few = top.n_entries <= _TRIED_ENTRIES and self.n_clusters <= _TRIED_CLUSTERS
        return math.ceil(_TRIES * self.asked.effort) if self.asked.refine and few else 0

    @property
    def polished(self) -> int:
        """Return how many partitions polishing begins with."""
        return _POLISHED if self.n_entries <= _FEW_ENTRIES else _POLISHED_LARGE

    @property
    def adaptive(self) -> bool:
        """Whether β is for the graph to decide: 0 where the plain cut gives clusters, `balance` where it gives crumbs.

        Bounds on both sides, or tight ones, say what sizes are wanted; a single wide one says nothing of the other end.
        """
        return self.asked.refine and self.asked.balance == "auto" and not self.sized

    @property
    def sized(self) -> bool:
        """Whether bounds say how large clusters should be, at both ends."""
        return self.tight or (self.min_cluster_size > 0 and math.isfinite(self.max_cluster_size))

    @property
    def wants_crumbs(self) -> bool:
        """Whether the plain cut was asked for, without bounds: tiny components are clusters then."""
        return self.asked.refine and self.asked.balance == 0 and not self.bounded

    @property
    def bounded(self) -> bool:
        """Whether sizes are bounded."""
        return self.min_cluster_size > 0 or math.isfinite(self.max_cluster_size)

    def halves(self, draw: int) -> bool:
        """Say whether a draw begins with halving, not k-means: every fourth; where bounds are tight, all but every third."""
        return draw % 3 != 2 if self.tight else draw % 4 == 3

    @property
    def tight(self) -> bool:
        """Whether the bounds leave so little room that k-means cannot be expected to come near them."""
        return self.max_cluster_size <= _TIGHT * self.n_nodes / self.n_clusters

    @property
    def groups_per_cluster(self) -> float:
        """How many groups a cluster has at least, where the graph is aggregated."""
        return min(max(_TIGHT_GROUPS / self.n_clusters, _FEWEST), _MOST_GROUPS) if self.tight else _GROUPS

    def samples(self, top: Graph) -> bool:
        """Say whether draws on this graph go through a coreset, and not all of its nodes."""
        return self.coreset_size < int(np.count_nonzero(top.degrees))

    def objective(self, degrees: FloatArray, *, balance: float | None = None, n_isolated: int = 0) -> Objective:
        """Return F for a graph of these degrees; nodes without edges, which are placed at the end, may fill small clusters."""
        return Objective.of(
            volume_of_clusters(degrees, self.n_clusters),
            self.n_clusters,
            balance=self.balance if balance is None else balance,
            min_size=max(0.0, self.min_cluster_size - n_isolated),
            max_size=self.max_cluster_size,
        )

    def second_look(self, graph: Graph) -> int:
        """Return how many nodes of each cluster a second sample takes, after a coreset of `graph`; 0 for none.

        It is worth while where it has more points than the coreset, and neighbours inside its clusters.
        """
        if not self.asked.refine or self.coreset_size >= _SECOND_LOOK * self.n_clusters:
            return 0
        share = _SECOND_LOOK * self.n_clusters / graph.n_nodes
        return _SECOND_LOOK if share * graph.n_entries / graph.n_nodes >= LEAST_INDUCED_DEGREE else 0

    def sentence(self, graph: Graph) -> str:
        """Say what was chosen."""
        way = "aggregated to a quotient graph" if self.aggregate else f"a coreset of {self.coreset_size:,} draws"
        if not self.aggregate and not self.samples(graph):
            way = "all nodes, without a coreset"
        return (
            f"{counted(graph.n_nodes, 'node')} with {graph.n_entries / graph.n_nodes:.1f} entries each, "
            f"{counted(self.n_clusters, 'cluster')}: "
            f"{way}, regularization {self.regularization:g}, {'with' if self.asked.refine else 'without'} refinement"
        )


def resolve(settings: Settings, graph: Graph) -> Choices:
    """Decide every "auto" for a graph, after checking what depends on it; warn of choices that will fail."""
    k = check_n_clusters(settings.n_clusters, graph.n_nodes)
    nodes = int(np.count_nonzero(graph.degrees))
    if nodes == 0:
        raise ValueError("the graph has no edges: there is nothing to cluster by")
    smallest, largest = bounds_in_nodes(settings.min_cluster_size, settings.max_cluster_size, graph.n_nodes, k)
    size = coreset_size_for(graph, k, settings.coreset_size)
    per_node = graph.n_entries / nodes
    induced = size * per_node / nodes
    least = LEAST_INDUCED_DEGREE if per_node < DENSE else LEAST_INDUCED_DEGREE_DENSE
    if settings.aggregate == "auto":
        falls_apart = induced < least and size < nodes
        cheap = per_node < DENSE or graph.n_entries <= MODERATE
        aggregate = falls_apart or (cheap and not _is_small(graph, nodes, k) and _is_auto(settings.coreset_size))
    else:
        aggregate = bool(settings.aggregate)
        if not aggregate and size < nodes and induced < least:
            advice.of_thin_coreset(size, induced, min(nodes, math.ceil(least * nodes / per_node)))
    if settings.regularization == "auto":
        dense = per_node >= DENSE
        regularization = 0.0 if dense or not settings.refine else 0.1 * min(1.0, graph.n_nodes / (80 * k))
    else:
        regularization = float(settings.regularization)
    _check_coreset_options(settings, nodes, size, aggregate=aggregate)
    n_init = 1 if settings.n_init == "auto" else int(settings.n_init)
    if settings.memory_limit is not None:
        n, m, jobs = graph.n_nodes, graph.n_entries, settings.n_jobs
        by_coreset = not aggregate and size < nodes
        require_limit(
            settings.memory_limit,
            coreset_bytes(n, m, k, coreset_size=size, n_jobs=jobs) if by_coreset else least_bytes(n, m, k, n_jobs=jobs),
        )
    choices = Choices(
        settings, graph.n_nodes, graph.n_entries, k, size, aggregate, regularization, 0.0, smallest, largest, n_init
    )
    if not _is_auto(settings.balance):
        return replace(choices, balance=float(settings.balance))
    return replace(choices, balance=_BALANCE if choices.adaptive else 0.0)


def check_components(n_clusters: int | str, n_components: int | None, *, solver: str | None, assign_labels: str) -> None:
    """Refuse pivoted QR without exactly as many vectors as clusters, before they are computed."""
    if assign_labels != "cluster_qr" or isinstance(n_clusters, str):
        return
    count = n_components if n_components is not None else None if solver == "power" else n_clusters
    if count != n_clusters:
        raise ValueError(
            f'assign_labels="cluster_qr" needs as many components as clusters, got '
            f"{'the few of the power method' if count is None else count} for n_clusters={n_clusters}; "
            'use eigen_solver="arpack" or "subspace" without n_components'
        )


# What a coreset is drawn and used by. Without a coreset none of it has a meaning.
CORESET_OPTIONS = ("shift", "seeding_factor", "sampler", "importance", "degrees", "candidates")


def idle_coreset_options(settings: Settings) -> list[str]:
    """Return "name=value" of the options about a coreset that are not at their defaults."""
    defaults = {name: Settings.__dataclass_fields__[name].default for name in CORESET_OPTIONS}
    return [f"{name}={getattr(settings, name)!r}" for name in CORESET_OPTIONS if getattr(settings, name) != defaults[name]]


def _check_coreset_options(settings: Settings, nodes: int, size: int, *, aggregate: bool) -> None:
    """Refuse options about the coreset where it is known that none will be drawn."""
    idle = idle_coreset_options(settings)
    if not idle:
        return
    if aggregate and _is_auto(settings.coreset_size) and nodes <= SMALL_QUOTIENT:
        raise ValueError(
            f"{idle[0]} has no effect: the graph is aggregated and no coreset is drawn from the quotient; "
            "set aggregate=False and coreset_size= to draw one"
        )
    if not aggregate and size >= nodes:
        raise ValueError(
            f"{idle[0]} has no effect: all {nodes:,} nodes are used and no coreset is drawn; "
            f"set coreset_size= to less than {nodes:,}"
        )


def coreset_size_for(graph: Graph, n_clusters: int, asked: Any) -> int:
    """Return a coreset size for a count, a fraction, or "auto": enough nodes per cluster and edges among them."""
    k, nodes = n_clusters, int(np.count_nonzero(graph.degrees))
    if _is_auto(asked):
        if _is_small(graph, nodes, k):
            return nodes
        for_edges = 20 * nodes * nodes / graph.n_entries  # an induced mean degree of 20
        return min(nodes, max(SMALL_GRAPH // 2, 20 * k, math.ceil(for_edges)))
    return min(_checked_coreset_size(asked, k, graph.n_nodes), nodes)


def _checked_coreset_size(asked: Any, k: int, n_nodes: int | None = None) -> int:
    """Return a count, or a fraction of `n_nodes`, as a number of draws; without `n_nodes` only check what can be checked."""
    if _is_auto(asked):
        return 0
    if isinstance(asked, numbers.Integral) and not isinstance(asked, bool):
        size = check_count(asked, "coreset_size")
    elif isinstance(asked, numbers.Real) and not isinstance(asked, bool) and 0 < float(asked) <= 1:
        if n_nodes is None:
            return 0
        size = max(1, round(float(asked) * n_nodes))
    else:
        raise ValueError(f'coreset_size must be a count, a fraction in (0, 1] or "auto", got {asked!r}')
    if size < k:
        raise ValueError(f"coreset_size={asked} gives {size} coreset nodes for n_clusters={k}: ask for at least {k}")
    return size


def _is_small(graph: Graph, nodes: int, k: int) -> bool:
    few = nodes <= SMALL_SPARSE and graph.n_entries <= SMALL_ENTRIES
    # Two or three clusters are found as well on the quotient, and very many take too long.
    return nodes <= SMALL_GRAPH or (few and k > 3 and nodes * k <= SMALL_ENTRIES)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
