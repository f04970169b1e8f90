"""Spectral step: k clusters of a weighted graph from the leading eigenvectors of D^-½ A D^-½.

`problem` holds the operator, `solvers` the ways to its eigenvectors, `rounding` the ways from vectors to clusters. Of the
default solver, `components` has the vectors that are known, `hierarchy` the quotients, `iteration` the steps and `multilevel`
the plan.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from corecut._random import as_generator
from corecut._typing import FloatArray, LabelArray, RandomState
from corecut._validation import check_count, check_option, thread_count
from corecut.coreset_graphs import CoresetGraph
from corecut.spectral.blas import single_threaded_blas
from corecut.spectral.problem import SpectralProblem
from corecut.spectral.rounding import cluster_qr, kmeans
from corecut.spectral.solvers import Eigenvectors as Eigenvectors, exact_eigenvectors, power_vectors, subspace_eigenvectors
from corecut.spectral.spectrum import computed_count as computed_count, useful_count as useful_count

EigenSolver = Literal["auto", "arpack", "subspace", "power"]
AssignLabels = Literal["kmeans", "cluster_qr"]

# From this number of clusters on the power method's few vectors are both faster and, measured on block models with ten
# coreset nodes per cluster, better than as many eigenvectors as there are clusters.
MANY_CLUSTERS = 32


def choose_solver(eigen_solver: EigenSolver | None, n_clusters: int) -> EigenSolver:
    """Return the solver that "auto", or None, stands for."""
    asked = "auto" if eigen_solver is None else eigen_solver  # None is scikit-learn's default
    check_option(asked, "eigen_solver", ("auto", "arpack", "subspace", "power"))
    if asked != "auto":
        return asked
    return "power" if n_clusters >= MANY_CLUSTERS else "subspace"


def leading_eigenvectors(
    graph: SpectralProblem | CoresetGraph | Any,
    count: int,
    *,
    n_clusters: int | None = None,
    eigen_solver: EigenSolver | None = "auto",
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> Eigenvectors:
    r"""Return the largest eigenvalues of :math:`N = D^{-1/2} A D^{-1/2}` and their eigenvectors.

    Small distances :math:`1 - \lambda` tell slow mixing: a cut of :math:`\phi` between two halves gives :math:`1 - \lambda_2
    \le 2\phi`. They, and not the eigenvalues, are right to a few percent.

    Parameters
    ----------
    graph
        A :class:`CoresetGraph`, a :class:`SpectralProblem`, or anything a :class:`Graph` can be made from.
    count
        Number of vectors.
    n_clusters
        Number of clusters the vectors are for, `count` by default. It matters only where there are more components than
        `count`: these are then gathered into as many bins of about equal volume, each with a row of its own.
    eigen_solver
        "subspace" (what "auto" and None stand for) or "arpack" (to machine precision).
    random_state, n_jobs
        As everywhere. The vectors do not depend on the number of threads.

    Returns
    -------
    Eigenvectors

    Warns
    -----
    UserWarning
        If the eigenvectors have not converged.
    """
    problem = _as_problem(graph).scaled()
    check_option(eigen_solver, "eigen_solver", ("auto", "arpack", "subspace", None))
    check_count(count, "count", maximum=problem.size)
    solve = exact_eigenvectors if eigen_solver == "arpack" else subspace_eigenvectors
    with single_threaded_blas():
        return solve(problem, count, as_generator(random_state), threads=thread_count(n_jobs), n_clusters=n_clusters)


def spectral_embedding(
    graph: SpectralProblem | CoresetGraph | Any,
    n_clusters: int,
    *,
    eigen_solver: EigenSolver | None = "auto",
    n_components: int | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return one row of coordinates per node, in which clusters of small normalised cut lie apart.

    Parameters
    ----------
    graph
        A :class:`CoresetGraph`, a :class:`SpectralProblem`, or anything a :class:`Graph` can be made from.
    n_clusters
        Number of clusters k.
    eigen_solver
        "arpack" (exact), "subspace" (fast), "power" (the paper's fast method) or "auto" (also None); see `solvers`.
    n_components
        Number of vectors, k by default. The power method chooses its own, ⌈log₂k⌉, unless it is given.
    random_state, n_jobs
        As everywhere.

    Returns
    -------
    ndarray of shape (n_nodes, n_components)
        Eigenvectors (or their mixtures, for the power method) as columns.

    Examples
    --------
    >>> from corecut import make_sbm, spectral_embedding
    >>> graph, truth = make_sbm(50, 3, 0.5, 0.01, random_state=0)
    >>> spectral_embedding(graph, 3, eigen_solver="arpack").shape
    (150, 3)
    """
    problem = _as_problem(graph)
    solver = choose_solver(eigen_solver, n_clusters)
    if n_components is not None:
        check_count(n_components, "n_components", maximum=problem.size)
    if solver == "power":
        with single_threaded_blas():
            return power_vectors(
                problem.scaled(), n_clusters, as_generator(random_state), threads=thread_count(n_jobs), width=n_components
            )
    count = min(n_clusters if n_components is None else n_components, problem.size)
    found = leading_eigenvectors(
        problem, count, n_clusters=n_clusters, eigen_solver=solver, random_state=random_state, n_jobs=n_jobs
    )
    return found.vectors


def round_embedding(
    embedding: FloatArray,
    n_clusters: int,
    *,
    weights: FloatArray | None = None,
    assign_labels: AssignLabels = "kmeans",
    n_init: int = 1,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> LabelArray:
    """Return k clusters of the rows of an embedding.

    Parameters
    ----------
    embedding
        From :func:`spectral_embedding`. For k-means its rows are scaled to length 1 (Ng, Jordan and Weiss 2001): a row's
        length tells a node's degree and how well it is sampled, its direction tells the cluster.
    n_clusters
        Number of clusters k.
    weights
        Weight of each row in k-means, 1 by default.
    assign_labels
        "kmeans", or "cluster_qr", which needs exactly k columns.
    n_init
        Number of k-means runs, of which the best is kept.
    random_state, n_jobs
        As everywhere.

    Returns
    -------
    ndarray of shape (n_nodes,)

    Examples
    --------
    >>> import numpy as np
    >>> from corecut import round_embedding
    >>> rows = np.array([[1.0, 0.1], [2.0, 0.0], [0.0, 1.0]])
    >>> labels = round_embedding(rows, 2, random_state=0)
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """
    check_option(assign_labels, "assign_labels", ("kmeans", "cluster_qr"))
    check_count(n_init, "n_init")
    with single_threaded_blas():
        if assign_labels == "cluster_qr":
            if len(embedding) < n_clusters:
                raise ValueError(
                    f'assign_labels="cluster_qr" makes no more clusters than there are rows (nodes with edges, or a coreset): '
                    f'{len(embedding)} for n_clusters={n_clusters}; use assign_labels="kmeans"'
                )
            if embedding.shape[1] != n_clusters:
                raise ValueError(
                    f'assign_labels="cluster_qr" needs as many components as clusters, got {embedding.shape[1]} and '
                    f'{n_clusters}; use eigen_solver="arpack" or "subspace" without n_components'
                )
            return cluster_qr(embedding)
        lengths = np.linalg.norm(embedding, axis=1, keepdims=True)
        rows = np.divide(embedding, lengths, out=np.zeros_like(embedding), where=lengths > 0)
        return kmeans(
            rows,
            min(n_clusters, len(rows)),
            np.ones(len(rows)) if weights is None else weights,
            as_generator(random_state),
            n_init=n_init,
            threads=thread_count(n_jobs),
        )


def _as_problem(graph: Any) -> SpectralProblem:
    if isinstance(graph, SpectralProblem):
        return graph
    if isinstance(graph, CoresetGraph):
        return SpectralProblem.of(graph.adjacency, graph.degrees)
    from corecut.graph import as_graph

    checked = as_graph(graph)
    return SpectralProblem.of(checked.adjacency, checked.degrees)
