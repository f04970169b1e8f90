"""The pipeline's steps with the settings filled in, and the warnings that belong to them.

All of them work on the same objective: `problem_of` and `tau_of` say how the regularisation enters a graph whose nodes stand
for several original ones.
"""

from __future__ import annotations

import warnings

import numpy as np

from corecut._progress import Stages
from corecut._typing import BoolArray, FloatArray, LabelArray
from corecut.coreset import Coreset
from corecut.coreset_graphs import CoresetGraph
from corecut.graph import Graph
from corecut.kernel import KernelView
from corecut.labelling import label_nodes
from corecut.refinement import refine_weighted
from corecut.repair import repair_partition
from corecut.settings import Choices, Settings
from corecut.spectral import EigenSolver, choose_solver, round_embedding, spectral_embedding
from corecut.spectral.problem import SpectralProblem

# Refinement ends when a sweep lowers the objective by less than this share.
_TOLERANCE = 1e-4
# More eigenvectors than this cost time and win nothing, even for thousands of clusters.
_MOST_VECTORS = 64


def tau_of(choices: Choices, volume: float, sizes: FloatArray) -> float:
    """Return τ in units of weight: the chosen share of the mean degree."""
    return float(choices.regularization * volume / sizes.sum())


def problem_of(graph: CoresetGraph, sizes: FloatArray, choices: Choices) -> SpectralProblem:
    """Return the spectral problem of A + (τ/n)·s sᵀ with degrees d + τ·s."""
    tau = tau_of(choices, float(graph.degrees.sum()), sizes)
    if tau == 0:
        return SpectralProblem(graph.adjacency, graph.degrees)
    return SpectralProblem(graph.adjacency, graph.degrees + tau * sizes, np.sqrt(tau / sizes.sum()) * sizes)


def solver_for(choices: Choices, *, sampled: bool = False) -> EigenSolver:
    """Return the solver that was asked for, or the one that suits a coreset's graph (`sampled`) or a whole one.

    Pivoted QR needs as many vectors as clusters, more than the power method has.
    """
    asked = choices.asked.eigen_solver
    if asked == "auto" and (not sampled or choices.asked.assign_labels == "cluster_qr"):
        return "subspace"
    return choose_solver(asked, choices.n_clusters)


def embed(
    graph: CoresetGraph,
    sizes: FloatArray,
    choices: Choices,
    generator: np.random.Generator,
    stage: Stages,
    *,
    sampled: bool = False,
) -> FloatArray:
    """Return the spectral embedding of a coreset's graph (`sampled`) or of a whole one.

    A whole graph has clean eigenvectors, of which half of k are enough, and at most 64: k-means only has to tell clusters
    apart, and repair and refinement mend what it mixes up. A coreset's graph is noisy, and there the power method's smoothing
    wins for many clusters.
    """
    k, count = choices.n_clusters, choices.asked.n_components
    automatic = choices.asked.eigen_solver == "auto" and count is None and choices.asked.assign_labels == "kmeans"
    if automatic and not sampled:
        count = min(_MOST_VECTORS, max(min(k, 16), k // 2 + 1), graph.n_nodes)
    with stage("eigenvectors"):
        return spectral_embedding(
            problem_of(graph, sizes, choices),
            k,
            eigen_solver=solver_for(choices, sampled=sampled),
            n_components=count,
            random_state=generator,
            n_jobs=choices.asked.n_jobs,
        )


def round_rows(
    embedding: FloatArray, weights: FloatArray, choices: Choices, generator: np.random.Generator, stage: Stages
) -> LabelArray:
    """Return k clusters of the embedding's rows."""
    with stage("rounding"):
        return round_embedding(
            embedding,
            choices.n_clusters,
            weights=weights,
            assign_labels=choices.asked.assign_labels,
            random_state=generator,
            n_jobs=choices.asked.n_jobs,
        )


def nodes_behind(kernel: KernelView, sizes: FloatArray, coreset: Coreset) -> FloatArray:
    """Return how many nodes each coreset node stands for."""
    behind: FloatArray = coreset.weights / kernel.weights[coreset.indices] * sizes[coreset.indices]
    return behind


def label(
    kernel: KernelView, sizes: FloatArray, coreset: Coreset, coreset_labels: LabelArray, choices: Choices
) -> tuple[LabelArray, int]:
    """Return every node's nearest implied centre, and the number of nodes that touch none."""
    settings = choices.asked
    if settings.candidates == "touched" and kernel.shift > 0:
        # The shift made squared distances of *points* non-negative. Between points and centres it only adds a bias that
        # depends on how many coreset nodes a cluster has, so that it is left out unless the paper's rule is asked for.
        kernel = KernelView.from_graph(kernel.graph, shift=0.0)
    if choices.regularization > 0:
        regular = kernel.regularized(tau_of(choices, float(kernel.weights.sum()), sizes), sizes)
        grown = regular.weights[coreset.indices] / kernel.weights[coreset.indices]
        kernel, coreset = regular, coreset.reweighted(coreset.weights * grown)
    found = label_nodes(
        kernel,
        coreset,
        coreset_labels,
        n_clusters=choices.n_clusters,
        candidates=settings.candidates,
        n_jobs=settings.n_jobs,
    )
    return found.labels, found.n_untouched


def repair(
    graph: Graph, sizes: FloatArray, labels: LabelArray, choices: Choices, generator: np.random.Generator
) -> tuple[LabelArray, float]:
    """Split and merge clusters, and move single nodes, while the objective falls; return labels and objective."""
    result = repair_partition(
        graph,
        labels,
        sizes=sizes,
        tau=tau_of(choices, graph.volume, sizes),
        n_clusters=choices.n_clusters,
        min_cluster_size=choices.asked.min_cluster_size,
        max_cluster_size=choices.max_cluster_size,
        slack=choices.slack,
        random_state=generator,
        n_jobs=choices.asked.n_jobs,
    )
    return result.labels, result.objective


def refine(
    graph: Graph, sizes: FloatArray, labels: LabelArray, choices: Choices, *, max_passes: int
) -> tuple[LabelArray, float]:
    """Move single nodes while the objective falls; return labels and objective."""
    result = refine_weighted(
        graph,
        labels,
        sizes=sizes,
        tau=tau_of(choices, graph.volume, sizes),
        n_clusters=choices.n_clusters,
        min_cluster_size=choices.asked.min_cluster_size,
        max_cluster_size=choices.max_cluster_size,
        max_passes=max_passes,
        tolerance=_TOLERANCE,
        n_jobs=choices.asked.n_jobs,
    )
    return result.labels, result.objective


def restricted(graph: Graph, keep: BoolArray, n_jobs: int | None = None) -> Graph:
    """Return the graph on the nodes of a mask that no edge leaves."""
    nodes = np.flatnonzero(keep)
    part = graph.subgraph(nodes, n_jobs)
    diagonal = None if graph.diagonal is None else graph.diagonal[nodes]
    return Graph(part.indptr, part.indices, part.data, graph.degrees[nodes], diagonal)


def warn_of_shift(settings: Settings, n_clipped: int, needed: float) -> None:
    """Tell the user, who chose the shift, that squared distances were negative and which shift would mend it."""
    if n_clipped and settings.shift != "auto":
        warnings.warn(
            f"{n_clipped:,} squared distances were negative and were set to 0: the kernel is not positive semi-definite; "
            f'shift={needed:.3g} or shift="auto" would mend those',
            UserWarning,
            stacklevel=2,
        )


def warn_of_untouched(n_untouched: int, n_nodes: int, choices: Choices) -> None:
    """Tell the user that the coreset has no contact with many nodes."""
    if n_untouched > 0.1 * n_nodes:
        cure = "a larger coreset_size" if choices.aggregate else "aggregate=True or a larger coreset_size"
        warnings.warn(
            f"{n_untouched:,} of {n_nodes:,} nodes have no neighbour in the coreset and were labelled blindly; set {cure}",
            UserWarning,
            stacklevel=2,
        )


def warn_of_giant(labels: LabelArray, choices: Choices) -> None:
    """Tell the user that one cluster holds most nodes though there were enough clusters to share them."""
    largest = np.bincount(labels).max() / labels.size
    if choices.n_clusters >= 4 and largest > 0.75:
        cure = "regularization=0.3" if choices.aggregate and choices.asked.refine else "aggregate=True and refine=True"
        warnings.warn(
            f"one cluster holds {largest:.0%} of the nodes; try {cure}, or max_cluster_size=",
            UserWarning,
            stacklevel=2,
        )
