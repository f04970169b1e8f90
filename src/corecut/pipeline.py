"""The algorithm, from a graph to the labels of its nodes.

    Graph -> (components) -> (aggregation) -> draws on the graph, or its quotient -> refined labels of every node

What usually happens is in :func:`cluster_graph`: a sparse graph is aggregated to its quotient, :mod:`corecut.draws` partitions
that by its eigenvectors, and the best partition is refined on every level on the way back. A dense graph goes through a coreset
instead:

    KernelView -> Seeds -> Coreset -> its graph -> partition of the coreset -> labels of every node

Read :func:`cluster_coreset` beside Algorithm 3 of the paper, lines 2 to 5, and :func:`partition_by_coreset` for line 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from corecut import advice
from corecut._files import show_size
from corecut._progress import Stages
from corecut._random import as_generator
from corecut._typing import FloatArray, IntArray, LabelArray, RandomState
from corecut.aggregation import Quotient, gather_levels
from corecut.balancing import draw_partitions
from corecut.confidence import agreement
from corecut.coreset import Coreset, importance_sample, stratified_sample
from corecut.coreset_graphs import graph_of_coreset
from corecut.descent import Start, descend
from corecut.draws import Draw, Run, embed, finish, round_rows, solver_for
from corecut.durations import expected_seconds
from corecut.engines import Engine, LocalEngine
from corecut.graph import Graph
from corecut.kernel import KernelView
from corecut.labelling import label_by
from corecut.objective import Objective
from corecut.placement import TINY, fill_empty, place_isolated, split_by_components
from corecut.refinement import bring_into_bounds, refine_weighted
from corecut.sampling import draw_seeds
from corecut.settings import MODERATE, Choices, Settings, resolve
from corecut.shelf import Shelf
from corecut.small_parts import SmallParts
from corecut.weighted import WeightedGraph, sums_by

# A graph does not come apart where the best clusters have this mean conductance, and draws agree with them on no more than this
# share of the volume (at most 0.65 on random graphs, 0.8 and more on noisy communities). It is not cut where its components
# alone make clusters that are not tiny; nor, with this share of the conductance of clusters drawn by lot, where they are.
_COHERENT, _DOUBTFUL, _LOT = 0.25, 0.7, 0.97
# Below this conductance a cluster is cut off by rounding alone.
_CLEAN = 1e-9
# Sweeps that tell what bounds cost: nearly all of the gain is in the first few.
_FREE_SWEEPS = 3


@dataclass(frozen=True, eq=False)
class Sample:
    """What the spectral step worked on: the coreset (or all nodes) of the graph, or of its quotient."""

    coreset: Coreset
    labels: LabelArray
    embedding: FloatArray = field(repr=False)
    eigen_solver: str
    shift: float = 0.0
    n_untouched: int = 0


@dataclass(frozen=True, eq=False)
class Clustering:
    """Labels of all nodes, and how they came about."""

    labels: LabelArray
    sample: Sample
    choices: Choices
    balance: float
    levels: list[Quotient] = field(repr=False)
    n_draws: int
    agreement: FloatArray | None = field(repr=False)


def cluster_graph(
    graph: Graph,
    settings: Settings,
    *,
    random_state: RandomState = None,
    stage: Stages,
    engine: Engine | None = None,
) -> Clustering:
    """Cluster a graph: aggregate it if that suits it, draw, keep the best partition, refine it down to the nodes.

    Stages that read all edges run on `engine`, by default on the threads of this process. Levels beyond the bound on memory
    lie on disk while this runs.
    """
    choices = resolve(settings, graph)
    with Shelf.opened(choices.room(graph), settings.scratch) as shelf:
        run = Run(choices, as_generator(random_state), stage, settings.n_jobs)
        return _cluster(graph, run, engine=engine or LocalEngine(settings.n_jobs), shelf=shelf)


def _cluster(graph: Graph, run: Run, *, engine: Engine, shelf: Shelf) -> Clustering:
    choices, settings, stage = run.choices, run.choices.asked, run.stage
    stage.say(f"corecut: {choices.sentence(graph)}")
    stage.expect(expected_seconds(choices, graph))
    whole = WeightedGraph.of(graph)
    parts = components = None
    # A coreset of a large graph is drawn without a look at every edge, which components would need. Without refinement it is
    # the published method, which knows nothing of components.
    if choices.aggregate or not choices.samples(graph) or graph.n_entries <= MODERATE:
        with stage("components"):
            components = engine.components(graph)
            _warn_of_components(whole, components, choices)
            objective = choices.objective(graph.degrees, n_isolated=_isolated(graph))
            if settings.refine:
                parts = split_by_components(
                    whole, choices.n_clusters, objective, components, least=0.0 if choices.wants_crumbs else None
                )
    if parts is not None:
        return _by_components(graph, parts, choices)
    levels: list[Quotient] = []
    if choices.aggregate:
        with stage("aggregation"):
            levels = gather_levels(
                whole,
                choices.n_clusters,
                groups_per_cluster=choices.groups_per_cluster,
                equal_sizes=choices.tight,
                engine=engine,
                shelf=shelf,
            )
        if shelf.spilled:
            stage.say(f"corecut: {show_size(shelf.spilled)} of quotient graphs are on disk, to stay within the memory limit")
    top = levels[-1] if levels else whole
    choices = choices.on(top.graph)
    stage.expect(expected_seconds(choices, graph, top.graph))
    run = replace(run, choices=choices)
    n_isolated = _isolated(graph)
    by_coreset, directly = partial(_draw_by_coreset, engine=engine), partial(_draw_directly, shelf=shelf)
    with stage.group("draws"):
        draw = by_coreset if choices.samples(top.graph) else directly
        found = draw(run, top, n_isolated=n_isolated)
    if components is not None and choices.adaptive:
        parts = _rather_whole(run, whole, components, top, found[0][0])
        if parts is not None:
            return _by_components(graph, parts, choices)
    with stage("refinement"):
        labels, start = descend(run, whole, levels, [one for one, _ in found], engine=engine)
        labels = place_isolated(graph, labels, choices.n_clusters, choices.objective(graph.degrees))
        # Bounds may need clusters of isolated nodes alone; otherwise these count as empty.
        counting = np.ones(graph.n_nodes) if choices.bounded else graph.degrees
        labels, n_filled = fill_empty(labels, choices.n_clusters, counting)
        advice.of_filled(n_filled, choices.n_clusters)
        if settings.refine:
            labels = _within_bounds(graph, labels, choices, start.balance.final)
    _warn_of_cost(run, whole, labels, engine=engine)
    advice.of_giant(labels, choices.n_clusters, refined=settings.refine, aggregated=choices.aggregate)
    agreed = None
    if len(start.draws) > 1:
        agreed = agreement(start.labels, start.draws, choices.n_clusters)
        for level in reversed(levels):
            agreed = agreed[level.groups]
    sample = next(sample for one, sample in found if one is start)
    return Clustering(labels, sample, choices, start.balance.final, levels, len(start.draws), agreed)


def _rather_whole(
    run: Run,
    whole: WeightedGraph,
    components: tuple[int, IntArray],
    top: WeightedGraph,
    start: Start,
) -> LabelArray | None:
    """Return the clusters that components alone make, where the draws say that these do not come apart."""
    k, objective = run.k, run.choices.objective(whole.graph.degrees)
    if k == 1 or split_by_components(whole, k, objective, components, least=0.0) is None:
        return None
    terms = _conductances(top, start.labels, k, n_jobs=run.n_jobs)
    # Clusters of whole components say nothing of the others.
    cut, n_cut = float(terms.sum()), np.count_nonzero(terms > _CLEAN)
    if cut > _LOT * (n_cut - 1) > 0:
        return split_by_components(whole, k, objective, components, least=0.0)
    if cut <= _COHERENT * n_cut:
        return None
    # A single draw agrees with itself.
    weights = np.where(terms[start.labels] > _CLEAN, top.graph.degrees, 0.0)
    if np.average(agreement(start.labels, start.draws, k), weights=weights) > _DOUBTFUL:
        return None
    return split_by_components(whole, k, objective, components, least=TINY)


def _conductances(level: WeightedGraph, labels: LabelArray, k: int, *, n_jobs: int | None) -> FloatArray:
    """Return cut_j/vol_j of all clusters."""
    small, volume = level.contract(labels, n_jobs=n_jobs).graph, sums_by(labels, level.graph.degrees, k)
    inside = np.zeros(k)
    if small.diagonal is not None:
        inside[: small.n_nodes] = small.diagonal
    return Objective().terms(inside, volume)


def _warn_of_cost(run: Run, whole: WeightedGraph, labels: LabelArray, *, engine: Engine) -> None:
    """Tell where what was asked of sizes costs much cut, by what moves of nodes would gain without it."""
    asked = run.choices.asked.limits()
    if asked:
        with run.stage("metrics"):
            free = refine_weighted(whole, labels, Objective(), run.k, max_passes=_FREE_SWEEPS, engine=engine)
        advice.of_cost(asked, free.objective_before / run.k, free.objective / run.k)


def _isolated(graph: Graph) -> int:
    return int(np.count_nonzero(graph.isolated))


def _warn_of_components(whole: WeightedGraph, components: tuple[int, IntArray], choices: Choices) -> None:
    count, component = components
    nodes = np.bincount(component, whole.sizes, minlength=count)
    advice.of_components(int(np.count_nonzero(nodes)), nodes.max() / nodes.sum(), choices.n_clusters)


def _by_components(graph: Graph, labels: LabelArray, choices: Choices) -> Clustering:
    """Return the clustering that the components make; its eigenvectors are the clusters' own D^½1, all of eigenvalue 1."""
    nodes = np.flatnonzero(graph.degrees > 0)
    vectors = np.zeros((nodes.size, min(choices.n_clusters, 64)))
    shown = np.flatnonzero(labels[nodes] < vectors.shape[1])
    vectors[shown, labels[nodes[shown]]] = np.sqrt(graph.degrees[nodes[shown]])
    sample = Sample(Coreset(nodes, graph.degrees[nodes], 0), labels[nodes], vectors, "components")
    labels = place_isolated(graph, labels, choices.n_clusters, choices.objective(graph.degrees))
    return Clustering(_within_bounds(graph, labels, choices, 0.0), sample, choices, 0.0, [], 1, None)


def _draw_directly(run: Run, top: WeightedGraph, *, n_isolated: int, shelf: Shelf) -> list[tuple[Start, Sample]]:
    """Partition a graph, or quotient, that is small enough for the spectral step as it is."""
    small = SmallParts.beside(top, run.choices)
    part = shelf.restrict(top, small.main, n_jobs=run.n_jobs)
    own = replace(run, choices=small.for_main(run.choices))
    most = run.choices.max_cluster_size
    found = []
    for drawn in draw_partitions(own, part, n_isolated=n_isolated):
        best, draws = drawn.best, sorted(drawn.draws, key=lambda one: one.rank)
        n_founders = small.founders(part, best.labels, own.k, run.choices)

        def everywhere(one: Draw, n_founders: int = n_founders) -> LabelArray:
            if n_founders:
                return small.with_founders(part, one.labels, own.k, n_founders, n_jobs=run.n_jobs)
            return small.everywhere(one.labels, own.k, most)

        coreset = Coreset(np.flatnonzero(small.main), part.graph.degrees, 0)
        sample = Sample(coreset, best.labels, best.embedding, solver_for(run.choices))
        found.append((Start(everywhere(best), [everywhere(one) for one in draws], drawn.balance), sample))
    return found


def _draw_by_coreset(run: Run, top: WeightedGraph, *, n_isolated: int, engine: Engine) -> list[tuple[Start, Sample]]:
    """Partition a graph through coresets of its nodes, the paper's method, and keep the best of several."""
    choices, k, found = run.choices, run.k, []
    objective = choices.objective(top.graph.degrees, n_isolated=n_isolated)
    for _ in range(choices.n_init):
        labels, sample = partition_by_coreset(run, top, engine=engine)
        labels, n_filled = fill_empty(place_isolated(top.graph, labels, k), k, top.graph.degrees)
        advice.of_filled(n_filled, k)
        advice.of_untouched(sample.n_untouched, top.n_nodes, aggregated=choices.aggregate)
        value = 0.0
        if choices.n_init > 1:  # draws compete by the objective on all nodes
            with run.stage("metrics"):
                value = refine_weighted(top, labels, objective, k, max_passes=0, engine=engine).objective
        found.append((value, labels, sample))
    _, best, sample = min(found, key=lambda one: one[0])
    return [(Start(best, [labels for _, labels, _ in found], choices.balances[0]), sample)]


def partition_by_coreset(run: Run, level: WeightedGraph, *, engine: Engine) -> tuple[LabelArray, Sample]:
    """Cluster a coreset, then label every node by its nearest implied centre: Algorithm 3."""
    kernel, coreset, coreset_labels, embedding = cluster_coreset(run, level, engine=engine)
    with run.stage("labelling"):
        labels, n_untouched = _label(run.choices, level, kernel, coreset, coreset_labels, engine=engine)
    per_cluster = run.choices.second_look(level.graph)
    if per_cluster:
        # A true cluster of few coreset points is easily missed. Now that there are clusters, a sample with as many points of
        # each shows which of them are two, and which two are one.
        with run.stage("repair"):
            second = stratified_sample(kernel, labels, run.k, per_cluster, random_state=run.generator)
            small = _coreset_level(run.choices, level, kernel, second, engine=engine)
            found = _finished(run, small, labels[second.indices])
        with run.stage("labelling"):
            labels, n_untouched = _label(run.choices, level, kernel, second, found, engine=engine)
    solver = solver_for(run.choices, sampled=True)
    return labels, Sample(coreset, coreset_labels, embedding, solver, kernel.shift, n_untouched)


def cluster_coreset(run: Run, level: WeightedGraph, *, engine: Engine) -> tuple[KernelView, Coreset, LabelArray, FloatArray]:
    """Sample a coreset and cluster it: Algorithm 3, lines 2 to 5. Returns the kernel, coreset, its labels and embedding."""
    settings, generator, stage = run.choices.asked, run.generator, run.stage
    with stage("kernel"):  # K = D⁻¹AD⁻¹ + σD⁻¹, W = D
        kernel = KernelView.from_graph(level.graph, shift=settings.shift)
    with stage("seeds"):  # D² sampling
        draws = math.ceil(settings.seeding_factor * run.k)
        seeds = draw_seeds(kernel, draws, method=settings.sampler, random_state=generator, engine=engine)
        if seeds.n_clipped and settings.shift != "auto":
            advice.of_shift(seeds.n_clipped, kernel.shift + seeds.missing_shift)
    with stage("coreset"):  # V', W_H by importance sampling
        coreset = importance_sample(
            kernel,
            seeds,
            run.choices.coreset_size,
            importance=settings.importance,
            random_state=generator,
            # Distances to seeds without x* are known to this process alone.
            engine=LocalEngine(settings.n_jobs) if settings.sampler == "naive" else engine,
        )
    with stage("coreset graph"):  # A_H = W_H K(V') W_H
        small = _coreset_level(run.choices, level, kernel, coreset, engine=engine)
    embedding, _ = embed(run, small, regularization=run.choices.regularization, sampled=True)
    labels = round_rows(run, embedding, small.graph.degrees)
    if settings.refine:
        labels = _finished(run, small, labels)
    return kernel, coreset, labels, embedding


def _coreset_level(
    choices: Choices, level: WeightedGraph, kernel: KernelView, coreset: Coreset, *, engine: Engine
) -> WeightedGraph:
    """Return the coreset's graph, with how many nodes each of its nodes stands for."""
    small = graph_of_coreset(kernel, coreset, degrees=choices.asked.degrees, engine=engine)
    behind: FloatArray = coreset.weights / kernel.weights[coreset.indices] * level.sizes[coreset.indices]
    return WeightedGraph(small.as_graph(), behind)


def _finished(run: Run, small: WeightedGraph, labels: LabelArray) -> LabelArray:
    """Repair a coreset's partition. A sample's sizes are estimates: bounds are kept by the nodes themselves."""
    objective = run.choices.objective(small.graph.degrees).unbounded()
    return finish(run, small, labels, objective, embedding=np.empty((0, 0))).labels


def _label(
    choices: Choices,
    level: WeightedGraph,
    kernel: KernelView,
    coreset: Coreset,
    coreset_labels: LabelArray,
    *,
    engine: Engine,
) -> tuple[LabelArray, int]:
    """Return every node's nearest implied centre, and the number of nodes that touch none."""
    settings = choices.asked
    if settings.candidates == "touched" and kernel.shift > 0:
        # The shift made squared distances of *points* non-negative. Between points and centres it only adds a bias that
        # depends on how many coreset nodes a cluster has, so that it is left out unless the paper's rule is asked for.
        kernel = KernelView.from_graph(kernel.graph, shift=0.0)
    if choices.regularization > 0:
        tau = choices.regularization * float(kernel.weights.sum()) / level.sizes.sum()
        regular = kernel.regularized(tau, level.sizes)
        grown = regular.weights[coreset.indices] / kernel.weights[coreset.indices]
        kernel, coreset = regular, coreset.reweighted(coreset.weights * grown)
    k = choices.n_clusters
    found = label_by(kernel, coreset, coreset_labels, k, candidates=settings.candidates, engine=engine)
    return found.labels, found.n_untouched


def _within_bounds(graph: Graph, labels: LabelArray, choices: Choices, balance: float) -> LabelArray:
    """Keep the bounds with every node counted, isolated ones too."""
    objective = choices.objective(graph.degrees, balance=balance)
    everybody = WeightedGraph(graph, np.ones(graph.n_nodes))
    if objective.outside(sums_by(labels, everybody.sizes, choices.n_clusters)) == 0:
        return labels
    return bring_into_bounds(everybody, labels, objective, choices.n_clusters)
