"""The algorithm, from a graph to the labels of its nodes.

    Graph -> KernelView -> Seeds -> Coreset -> CoresetGraph -> partition of the coreset -> labels of every node

Read :func:`cluster_coreset` beside Algorithm 3 of the paper, lines 2 to 5, and :func:`cluster_graph` for line 6.
"""

from __future__ import annotations

import math
import numbers
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from corecut._progress import Stages
from corecut._random import as_generator
from corecut._typing import FloatArray, LabelArray, RandomState
from corecut._validation import check_count, check_n_clusters
from corecut.coreset import Coreset, Importance, everything, importance_sample
from corecut.graph import Graph
from corecut.induced import Degrees, coreset_graph
from corecut.kernel import KernelView
from corecut.labelling import Candidates, Labelling, label_nodes
from corecut.sampling import Sampler, sample_seeds
from corecut.spectral import AssignLabels, EigenSolver, choose_solver, round_embedding, spectral_embedding

# A graph of at most this many nodes is its own coreset: the spectral step takes a fraction of a second on all of it.
SMALL_GRAPH = 3_000


@dataclass(frozen=True)
class Settings:
    """How to cluster; the estimator's parameters of the same names."""

    n_clusters: int
    coreset_size: int | float | Literal["auto"] = "auto"
    shift: float | Literal["auto"] = "auto"
    seeding_factor: float = 2.0
    sampler: Sampler = "rejection"
    importance: Importance = "seeds"
    degrees: Degrees = "rows"
    eigen_solver: EigenSolver = "auto"
    n_components: int | None = None
    assign_labels: AssignLabels = "kmeans"
    n_init: int | Literal["auto"] = "auto"
    candidates: Candidates = "touched"
    n_jobs: int | None = None


@dataclass(frozen=True, eq=False)
class CoresetClustering:
    """A coreset with its partition, and the settings with every "auto" replaced by what it stood for."""

    kernel: KernelView
    coreset: Coreset
    labels: LabelArray
    embedding: FloatArray = field(repr=False)
    settings: Settings


@dataclass(frozen=True, eq=False)
class Clustering:
    """Labels of all nodes, and how they came about."""

    labels: LabelArray
    labelling: Labelling
    coreset: CoresetClustering


def cluster_coreset(graph: Graph, settings: Settings, *, random_state: RandomState = None, stage: Stages) -> CoresetClustering:
    """Sample a coreset of the graph and cluster it: Algorithm 3, lines 2 to 5."""
    settings = resolve(settings, graph)
    generator, k, n_jobs = as_generator(random_state), settings.n_clusters, settings.n_jobs

    with stage("kernel"):  # K = D⁻¹AD⁻¹ + σD⁻¹, W = D
        kernel = KernelView.from_graph(graph, shift=settings.shift)
    if int(settings.coreset_size) >= np.count_nonzero(kernel.weights):
        coreset = everything(kernel)
    else:
        with stage("seeds"):  # D² sampling
            draws = math.ceil(settings.seeding_factor * k)
            seeds = sample_seeds(kernel, draws, method=settings.sampler, random_state=generator, n_jobs=n_jobs)
        with stage("coreset"):  # V', W_H by importance sampling
            size = int(settings.coreset_size)
            coreset = importance_sample(
                kernel, seeds, size, importance=settings.importance, random_state=generator, n_jobs=n_jobs
            )
    with stage("coreset graph"):  # A_H = W_H K(V') W_H
        small = coreset_graph(kernel, coreset, degrees=settings.degrees, n_jobs=n_jobs)
    with stage("eigenvectors"):
        embedding = spectral_embedding(
            small,
            k,
            eigen_solver=settings.eigen_solver,
            n_components=settings.n_components,
            random_state=generator,
            n_jobs=n_jobs,
        )
    with stage("rounding"):  # Π, a partition of the coreset
        labels = round_embedding(
            embedding,
            k,
            weights=small.degrees,
            assign_labels=settings.assign_labels,
            n_init=int(settings.n_init),
            random_state=generator,
            n_jobs=n_jobs,
        )
    return CoresetClustering(kernel, coreset, labels, embedding, settings)


def cluster_graph(graph: Graph, settings: Settings, *, random_state: RandomState = None, stage: Stages) -> Clustering:
    """Cluster the coreset, then label every node by its nearest implied centre: Algorithm 3."""
    found = cluster_coreset(graph, settings, random_state=random_state, stage=stage)
    k, n_jobs = settings.n_clusters, settings.n_jobs
    with stage("labelling"):
        # The shift made squared distances of *points* non-negative. Between points and centres it only adds a bias that
        # depends on how many coreset nodes a cluster has, so that it is left out unless the paper's rule is asked for.
        kernel = found.kernel if settings.candidates == "all" else KernelView.from_graph(graph, shift=0.0)
        labelling = label_nodes(
            kernel, found.coreset, found.labels, n_clusters=k, candidates=settings.candidates, n_jobs=n_jobs
        )
        labels = place_isolated(graph, labelling.labels, k)
        labels = fill_empty(labels, k, found.coreset, found.labels)
    return Clustering(labels, labelling, found)


def resolve(settings: Settings, graph: Graph) -> Settings:
    """Return the settings with every "auto" replaced, after checking what depends on the graph."""
    k = check_n_clusters(settings.n_clusters, graph.n_nodes)
    nodes = int(np.count_nonzero(graph.degrees))
    if nodes == 0:
        raise ValueError("the graph has no edges: there is nothing to cluster by")
    return replace(
        settings,
        coreset_size=coreset_size_for(graph, k, settings.coreset_size),
        eigen_solver=choose_solver(settings.eigen_solver, k),
        n_init=(3 if k < 32 else 1) if settings.n_init == "auto" else check_count(settings.n_init, "n_init"),
    )


def coreset_size_for(graph: Graph, n_clusters: int, asked: Any) -> int:
    """Return a coreset size for a count, a fraction, or "auto": enough nodes per cluster and edges among them."""
    k, nodes = n_clusters, int(np.count_nonzero(graph.degrees))
    if asked == "auto":
        if nodes <= SMALL_GRAPH:
            return nodes
        for_edges = 20 * nodes * nodes / graph.n_entries  # an induced mean degree of 20
        return min(nodes, max(SMALL_GRAPH // 2, 20 * k, math.ceil(for_edges)))
    if isinstance(asked, numbers.Integral) and not isinstance(asked, bool):
        size = check_count(asked, "coreset_size")
    elif isinstance(asked, numbers.Real) and not isinstance(asked, bool) and 0 < float(asked) <= 1:
        size = max(1, round(float(asked) * graph.n_nodes))
    else:
        raise ValueError(f'coreset_size must be a count, a fraction in (0, 1] or "auto", got {asked!r}')
    if size < k:
        raise ValueError(f"coreset_size={asked} gives {size} coreset nodes for n_clusters={k}: ask for at least {k}")
    return min(size, nodes)


def place_isolated(graph: Graph, labels: LabelArray, n_clusters: int) -> LabelArray:
    """Put the nodes without edges into the cluster of largest volume, where they weigh least; no cut depends on them."""
    if not graph.isolated.any():
        return labels
    volume = np.bincount(labels, graph.degrees, minlength=n_clusters)
    return np.where(graph.isolated, np.int32(volume.argmax()), labels).astype(np.int32)


def fill_empty(labels: LabelArray, n_clusters: int, coreset: Coreset, coreset_labels: LabelArray) -> LabelArray:
    """Give a cluster that labelling left empty its heaviest coreset node, or one of the largest cluster."""
    sizes = np.bincount(labels, minlength=n_clusters)
    empty = np.flatnonzero(sizes == 0)
    if empty.size == 0:
        return labels
    labels = labels.copy()
    heaviest = coreset.indices[np.argsort(-coreset.weights, kind="stable")]
    wanted = coreset_labels[np.argsort(-coreset.weights, kind="stable")]
    for j in empty:
        own = heaviest[wanted == j]
        own = own[sizes[labels[own]] > 1]
        node = own[0] if own.size else np.flatnonzero(labels == sizes.argmax())[0]
        sizes[labels[node]] -= 1
        sizes[j] += 1
        labels[node] = j
    warnings.warn(
        f"{empty.size} of {n_clusters} clusters attracted no node and keep a single one; "
        "a larger coreset_size or fewer clusters would help",
        UserWarning,
        stacklevel=2,
    )
    return labels
