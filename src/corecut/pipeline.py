"""The algorithm, from a graph to the labels of its nodes.

    Graph -> (aggregation) -> KernelView -> Seeds -> Coreset -> CoresetGraph -> partition of the coreset
          -> labels of every node -> refined labels

Read :func:`cluster_coreset` beside Algorithm 3 of the paper, lines 2 to 5, and :func:`partition_by_coreset` for line 6. What
goes beyond the paper is around them, in :func:`cluster_graph`: a sparse graph is first aggregated to its quotient, several
draws compete, and the best one is refined on every level on the way back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from corecut import steps
from corecut._progress import Stages
from corecut._random import as_generator
from corecut._typing import FloatArray, LabelArray, RandomState
from corecut.aggregation import Quotient, aggregate_graph
from corecut.confidence import agreement
from corecut.coreset import Coreset, importance_sample, stratified_sample
from corecut.coreset_graphs import CoresetGraph, coreset_graph
from corecut.graph import Graph
from corecut.kernel import KernelView
from corecut.placement import fill_empty, main_part, place_isolated, place_rest
from corecut.sampling import sample_seeds
from corecut.settings import Choices, Settings, resolve


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
class Draw:
    """A partition of the graph (or quotient) that draws are made on, and its objective."""

    labels: LabelArray
    objective: float
    sample: Sample


@dataclass(frozen=True, eq=False)
class Clustering:
    """Labels of all nodes, and how they came about."""

    labels: LabelArray
    sample: Sample
    choices: Choices
    levels: list[Quotient] = field(repr=False)
    n_draws: int
    agreement: FloatArray | None = field(repr=False)


def cluster_graph(graph: Graph, settings: Settings, *, random_state: RandomState = None, stage: Stages) -> Clustering:
    """Cluster a graph: aggregate it if that suits it, draw, keep the best partition, refine it down to the nodes."""
    choices = resolve(settings, graph)
    stage.say(choices.sentence(graph))
    generator, n_jobs = as_generator(random_state), settings.n_jobs
    levels: list[Quotient] = []
    if choices.aggregate:
        with stage("aggregation"):
            levels = aggregate_graph(graph, choices.n_clusters, n_jobs=n_jobs)
    top = levels[-1].graph if levels else graph
    sizes = levels[-1].sizes if levels else np.ones(graph.n_nodes)
    choices = choices.on(top)
    if choices.coreset_size < np.count_nonzero(top.degrees):
        draws = [_draw_by_coreset(top, sizes, choices, generator, stage) for _ in range(choices.n_init(top))]
    else:
        draws = _draw_directly(top, sizes, choices, generator, stage)
    best = min(draws, key=lambda draw: draw.objective)
    labels = best.labels
    if settings.refine:
        with stage("refinement"):
            labels = refine_down(graph, levels, labels, choices)
    else:
        for level in reversed(levels):
            labels = labels[level.groups]
    steps.warn_of_giant(labels, choices)
    agreed = None
    if len(draws) > 1:
        agreed = agreement(best.labels, [draw.labels for draw in draws], choices.n_clusters)
        for level in reversed(levels):
            agreed = agreed[level.groups]
    return Clustering(labels, best.sample, choices, levels, len(draws), agreed)


def _draw_by_coreset(graph: Graph, sizes: FloatArray, choices: Choices, generator: np.random.Generator, stage: Stages) -> Draw:
    """Partition a graph through a coreset of its nodes: the paper's method."""
    k = choices.n_clusters
    labels, sample = partition_by_coreset(graph, sizes, choices, random_state=generator, stage=stage)
    labels = fill_empty(place_isolated(graph, labels, k), k, graph.degrees)
    objective = 0.0
    if choices.n_init(graph) > 1:  # draws compete by the objective on all nodes
        with stage("metrics"):
            objective = steps.refine(graph, sizes, labels, choices, max_passes=0)[1]
    steps.warn_of_untouched(sample.n_untouched, graph.n_nodes, choices)
    return Draw(labels, objective, sample)


def partition_by_coreset(
    graph: Graph, sizes: FloatArray, choices: Choices, *, random_state: RandomState = None, stage: Stages
) -> tuple[LabelArray, Sample]:
    """Cluster a coreset, then label every node by its nearest implied centre: Algorithm 3."""
    generator = as_generator(random_state)
    kernel, coreset, coreset_labels, embedding = cluster_coreset(graph, sizes, choices, random_state=generator, stage=stage)
    with stage("labelling"):
        labels, n_untouched = steps.label(kernel, sizes, coreset, coreset_labels, choices)
    per_cluster = choices.second_look(graph)
    if per_cluster:
        # A true cluster of few coreset points is easily missed. Now that there are clusters, a sample with as many points of
        # each shows which of them are two, and which two are one.
        with stage("repair"):
            second = stratified_sample(kernel, labels, choices.n_clusters, per_cluster, random_state=generator)
            small = coreset_graph(kernel, second, degrees=choices.asked.degrees, n_jobs=choices.asked.n_jobs)
            stands_for = steps.nodes_behind(kernel, sizes, second)
            found = steps.repair(small.as_graph(), stands_for, labels[second.indices], choices, generator)[0]
        with stage("labelling"):
            labels, n_untouched = steps.label(kernel, sizes, second, found, choices)
    solver = steps.solver_for(choices, sampled=True)
    return labels, Sample(coreset, coreset_labels, embedding, solver, kernel.shift, n_untouched)


def cluster_coreset(
    graph: Graph, sizes: FloatArray, choices: Choices, *, random_state: RandomState = None, stage: Stages
) -> tuple[KernelView, Coreset, LabelArray, FloatArray]:
    """Sample a coreset and cluster it: Algorithm 3, lines 2 to 5. Returns the kernel, coreset, its labels and embedding."""
    settings, generator, k = choices.asked, as_generator(random_state), choices.n_clusters
    with stage("kernel"):  # K = D⁻¹AD⁻¹ + σD⁻¹, W = D
        kernel = KernelView.from_graph(graph, shift=settings.shift)
    with stage("seeds"):  # D² sampling
        draws = math.ceil(settings.seeding_factor * k)
        seeds = sample_seeds(kernel, draws, method=settings.sampler, random_state=generator, n_jobs=settings.n_jobs)
        steps.warn_of_shift(settings, seeds.n_clipped, kernel.shift + seeds.missing_shift)
    with stage("coreset"):  # V', W_H by importance sampling
        coreset = importance_sample(
            kernel,
            seeds,
            choices.coreset_size,
            importance=settings.importance,
            random_state=generator,
            n_jobs=settings.n_jobs,
        )
    with stage("coreset graph"):  # A_H = W_H K(V') W_H
        small = coreset_graph(kernel, coreset, degrees=settings.degrees, n_jobs=settings.n_jobs)
        stands_for = steps.nodes_behind(kernel, sizes, coreset)
    embedding = steps.embed(small, stands_for, choices, generator, stage, sampled=True)
    labels = steps.round_rows(embedding, small.degrees, choices, generator, stage)
    if settings.refine:
        with stage("repair"):
            labels = steps.repair(small.as_graph(), stands_for, labels, choices, generator)[0]
    return kernel, coreset, labels, embedding


def _draw_directly(
    graph: Graph, sizes: FloatArray, choices: Choices, generator: np.random.Generator, stage: Stages
) -> list[Draw]:
    """Partition a graph, or quotient, that is small enough for the spectral step as it is."""
    main = main_part(graph, sizes, choices.n_clusters)
    part, inner = (graph, sizes) if main.all() else (steps.restricted(graph, main, choices.asked.n_jobs), sizes[main])
    whole = CoresetGraph(part.adjacency, part.degrees)
    embedding = steps.embed(whole, inner, choices, generator, stage)
    weights = steps.problem_of(whole, inner, choices).degrees
    draws = []
    for _ in range(choices.n_init(graph)):
        found = steps.round_rows(embedding, weights, choices, generator, stage)
        found = fill_empty(found, choices.n_clusters, part.degrees, final=not choices.asked.refine)
        objective = 0.0
        if choices.asked.refine:
            with stage("repair"):
                found, objective = steps.repair(part, inner, found, choices, generator)
        elif choices.n_init(graph) > 1:
            objective = steps.refine(part, inner, found, choices, max_passes=0)[1]
        labels = np.zeros(graph.n_nodes, np.int32)
        labels[main] = found
        labels = place_rest(graph, sizes, labels, main, n_clusters=choices.n_clusters, max_size=choices.max_cluster_size)
        sample = Sample(Coreset(np.flatnonzero(main), part.degrees, 0), found, embedding, steps.solver_for(choices))
        draws.append(Draw(labels, objective, sample))
    return draws


def refine_down(graph: Graph, levels: list[Quotient], labels: LabelArray, choices: Choices) -> LabelArray:
    """Refine a partition of the coarsest level on every level down to the graph itself."""
    for position in range(len(levels) - 1, -1, -1):
        labels = labels[levels[position].groups]
        below = levels[position - 1] if position else None
        level, sizes = (below.graph, below.sizes) if below else (graph, np.ones(graph.n_nodes))
        labels = steps.refine(level, sizes, labels, choices, max_passes=20)[0]
    return labels if levels else steps.refine(graph, np.ones(graph.n_nodes), labels, choices, max_passes=20)[0]
