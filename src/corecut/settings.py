"""Settings: how to cluster, and what every "auto" stands for on a given graph.

The rules, each from measurements on real and planted graphs (docs/sparse-graphs.md):

- coreset_size: 20 draws per cluster, enough for an induced mean degree of 20, all nodes of a graph of up to 3,000.
- aggregate: yes on sparse graphs (fewer than 100 entries per node) and those of up to ten million entries, unless a coreset
  size was asked for; and where the induced mean degree of the coreset would fall below 15 (3 on dense graphs).
- regularization: 0 on dense graphs and without refinement; else 0.1 of the mean degree, less where clusters have fewer than
  80 nodes.
- max_cluster_size: 20 % of the nodes or twice the mean cluster, whichever is more, when refining a sparse graph.
- n_init: eight draws where the graph (or its quotient) is small, one otherwise.
"""

from __future__ import annotations

import math
import numbers
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from corecut._validation import check_count, check_n_clusters, check_option, check_real, thread_count
from corecut.coreset import Importance
from corecut.coreset_graphs import Degrees
from corecut.graph import Graph
from corecut.labelling import Candidates
from corecut.sampling import Sampler
from corecut.spectral import AssignLabels, EigenSolver

# A graph of at most this many nodes is its own coreset: the spectral step takes a fraction of a second on all of it.
SMALL_GRAPH = 3_000
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
# Up to this many entries further draws cost next to nothing.
_FEW_ENTRIES = 100_000

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
    min_cluster_size: int | None = None
    max_cluster_size: int | None = None
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no graph could make right, so that nobody waits for a file or a neighbour search to hear of it."""
        _check_values(self)


@dataclass(frozen=True)
class Choices:
    """The settings as numbers, after every "auto" has been decided for one graph.

    Attributes
    ----------
    asked
        The settings they come from.
    n_clusters, coreset_size, aggregate, regularization
        k, number of draws, whether to aggregate, τ in units of the mean degree.
    max_cluster_size
        Largest number of nodes that repair and refinement let a cluster grow to; None for no bound.
    slack
        How much the objective may rise when a cluster above that is split: without limit where the user set it.
    """

    asked: Settings
    n_clusters: int
    coreset_size: int
    aggregate: bool
    regularization: float
    max_cluster_size: float | None
    slack: float

    def on(self, top: Graph) -> Choices:
        """Return the choices for the graph that draws are made on: a quotient has a coreset size of its own."""
        if not self.aggregate or self.asked.coreset_size != "auto":
            return self
        small = top.n_nodes <= SMALL_QUOTIENT
        return replace(self, coreset_size=top.n_nodes if small else coreset_size_for(top, self.n_clusters, "auto"))

    def n_init(self, graph: Graph) -> int:
        """Return the number of draws for the graph that they are made on."""
        if self.asked.n_init == "auto":
            return 8 if graph.n_entries <= _FEW_ENTRIES and self.asked.refine else 1
        return int(self.asked.n_init)

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
        if not self.aggregate and self.coreset_size >= np.count_nonzero(graph.degrees):
            way = "all nodes, without a coreset"
        return (
            f"{graph.n_nodes:,} nodes with {graph.n_entries / graph.n_nodes:.1f} entries each, {self.n_clusters} clusters: "
            f"{way}, regularization {self.regularization:g}, {'with' if self.asked.refine else 'without'} refinement"
        )


def resolve(settings: Settings, graph: Graph) -> Choices:
    """Decide every "auto" for a graph, after checking what depends on it; warn of choices that will fail."""
    k = check_n_clusters(settings.n_clusters, graph.n_nodes)
    nodes = int(np.count_nonzero(graph.degrees))
    if nodes == 0:
        raise ValueError("the graph has no edges: there is nothing to cluster by")
    size = coreset_size_for(graph, k, settings.coreset_size)
    per_node = graph.n_entries / nodes
    induced = size * per_node / nodes
    least = LEAST_INDUCED_DEGREE if per_node < DENSE else LEAST_INDUCED_DEGREE_DENSE
    if settings.aggregate == "auto":
        falls_apart = induced < least and size < nodes
        cheap = per_node < DENSE or graph.n_entries <= MODERATE
        aggregate = falls_apart or (cheap and nodes > SMALL_GRAPH and settings.coreset_size == "auto")
    else:
        aggregate = settings.aggregate
        if not aggregate and size < nodes and induced < least:
            needed = min(nodes, math.ceil(least * nodes / per_node))
            warnings.warn(
                f"a coreset of {size:,} nodes keeps only about {induced:.1f} entries per node and its graph will fall into "
                f"pieces; set aggregate=True, or coreset_size={needed:,} or more",
                UserWarning,
                stacklevel=2,
            )
    if settings.regularization == "auto":
        dense = per_node >= DENSE
        regularization = 0.0 if dense or not settings.refine else 0.1 * min(1.0, graph.n_nodes / (80 * k))
    else:
        regularization = float(settings.regularization)
    _check_coreset_options(settings, nodes, size, aggregate=aggregate)
    return Choices(settings, k, size, aggregate, regularization, *_size_bound(settings, graph, k, per_node))


def _check_values(settings: Settings) -> None:
    """Check what does not depend on the graph, whether or not its stage will run."""
    check_count(settings.n_clusters, "n_clusters")
    _check_size(settings.coreset_size)
    for name, options in _OPTIONS.items():
        check_option(getattr(settings, name), name, options)
    check_real(settings.seeding_factor, "seeding_factor", exclusive=True)
    for name in ("shift", "regularization"):
        if not _is_auto(getattr(settings, name)):
            check_real(getattr(settings, name), name)
    if not _is_auto(settings.n_init):
        check_count(settings.n_init, "n_init")
    for name in ("n_components", "min_cluster_size", "max_cluster_size"):
        if getattr(settings, name) is not None:
            check_count(getattr(settings, name), name)
    for name in ("min_cluster_size", "max_cluster_size"):
        if getattr(settings, name) is not None and not settings.refine:
            raise ValueError(f"{name} needs refine=True: without refinement nothing keeps clusters within bounds")
    thread_count(settings.n_jobs)


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


def _size_bound(settings: Settings, graph: Graph, k: int, per_node: float) -> tuple[float | None, float]:
    n = graph.n_nodes
    smallest = 0 if settings.min_cluster_size is None else check_count(settings.min_cluster_size, "min_cluster_size")
    if smallest * k > n:
        raise ValueError(f"min_cluster_size={smallest} times n_clusters={k} is more than the {n} nodes")
    if settings.max_cluster_size is not None:
        largest = check_count(settings.max_cluster_size, "max_cluster_size")
        if largest * k < n:
            raise ValueError(f"max_cluster_size={largest} times n_clusters={k} is less than the {n} nodes")
        if largest < smallest:
            raise ValueError(f"max_cluster_size={largest} is below min_cluster_size={smallest}")
        return float(largest), math.inf
    if per_node >= DENSE:
        return None, 0.0
    return max(0.2 * n, 2 * n / k), 0.25


def coreset_size_for(graph: Graph, n_clusters: int, asked: Any) -> int:
    """Return a coreset size for a count, a fraction, or "auto": enough nodes per cluster and edges among them."""
    k, nodes = n_clusters, int(np.count_nonzero(graph.degrees))
    if _is_auto(asked):
        if nodes <= SMALL_GRAPH:
            return nodes
        for_edges = 20 * nodes * nodes / graph.n_entries  # an induced mean degree of 20
        return min(nodes, max(SMALL_GRAPH // 2, 20 * k, math.ceil(for_edges)))
    _check_size(asked)
    size = int(asked) if isinstance(asked, numbers.Integral) else max(1, round(float(asked) * graph.n_nodes))
    if size < k:
        raise ValueError(f"coreset_size={asked} gives {size} coreset nodes for n_clusters={k}: ask for at least {k}")
    return min(size, nodes)


def _check_size(asked: Any) -> None:
    """Check what a coreset size can be on any graph."""
    if _is_auto(asked):
        return
    if isinstance(asked, numbers.Integral) and not isinstance(asked, bool):
        check_count(asked, "coreset_size")
    elif not isinstance(asked, numbers.Real) or isinstance(asked, bool) or not 0 < float(asked) <= 1:
        raise ValueError(f'coreset_size must be a count, a fraction in (0, 1] or "auto", got {asked!r}')


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
