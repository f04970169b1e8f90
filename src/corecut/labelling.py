"""Labelling: every node goes to the nearest of the centres that the coreset's partition implies (Algorithm 3, line 6).

    x → argmin_j ‖c_j‖² - 2⟨φ(x), c_j⟩,
    ‖c_j‖² = Σ_{a,b ∈ π_j} w_a w_b K_ab / W_j²,      ⟨φ(x), c_j⟩ = Σ_{y ∈ π_j} w_y K_xy / W_j,      W_j = Σ_{y ∈ π_j} w_y.

The graph is symmetric, so the inner products of all nodes are read from the rows of the coreset: O(n + Σ deg over the
coreset), where the reference implementation reads every edge. A node without a neighbour in the coreset has inner product 0
with every centre and goes to the one of smallest norm; `n_untouched` counts those.

That definition has a weakness on small coresets. The centre of smallest norm, usually one of very few coreset nodes, is
nearer than the right one to every node that happens to have few neighbours in the coreset, though they share no edge. With
`candidates="touched"` a node that touches some centres chooses among those only. On a block model with 250 clusters and ten
coreset nodes in each this lifts the adjusted Rand index over all nodes from 0.78 to 0.96.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from corecut._typing import FloatArray, LabelArray
from corecut._validation import check_labels, check_option
from corecut.coreset import Coreset
from corecut.engines import Engine, LocalEngine
from corecut.engines.local import Centres
from corecut.kernel import KernelView

Candidates = Literal["all", "touched"]


@dataclass(frozen=True, eq=False)
class Labelling:
    """Labels of all nodes with the squared distances they follow from.

    Attributes
    ----------
    labels
        Cluster of every node.
    distances, second_distances
        ‖φ(x) - c_j‖² of the nearest and the second nearest centre.
    n_untouched
        Number of nodes without a neighbour in the coreset.
    """

    labels: LabelArray
    distances: FloatArray = field(repr=False)
    second_distances: FloatArray = field(repr=False)
    n_untouched: int


def label_nodes(
    kernel: KernelView,
    coreset: Coreset,
    coreset_labels: Any,
    *,
    n_clusters: int | None = None,
    candidates: Candidates = "all",
    n_jobs: int | None = None,
) -> Labelling:
    """Assign every node to the nearest centre implied by a partition of the coreset.

    Parameters
    ----------
    kernel, coreset
        The problem and its sample.
    coreset_labels
        Cluster of each coreset point.
    n_clusters
        Number of clusters k, the largest label plus one by default. Empty clusters attract nobody.
    candidates
        "all" centres (the paper), or for each node only those it has "touched"; see the module.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Labelling

    Examples
    --------
    Points 0, 1, 2 form a triangle, points 3, 4, 5 another; the coreset holds one point of each and one more.

    >>> import numpy as np
    >>> from corecut import Coreset, KernelView, label_nodes
    >>> triangle = np.ones((3, 3))
    >>> kernel = KernelView.from_graph(np.kron(np.eye(2), triangle))
    >>> coreset = Coreset(np.array([0, 1, 3]), np.array([3.0, 3.0, 6.0]), 3)
    >>> label_nodes(kernel, coreset, [0, 0, 1]).labels
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """
    check_option(candidates, "candidates", ("all", "touched"))
    coreset.check_within(kernel.n_points)
    labels, k = check_labels(coreset_labels, coreset.size, name="coreset_labels", n_clusters=n_clusters)
    return label_by(kernel, coreset, labels, k, candidates=candidates, engine=LocalEngine(n_jobs))


def label_by(
    kernel: KernelView, coreset: Coreset, labels: LabelArray, k: int, *, candidates: Candidates, engine: Engine
) -> Labelling:
    """Assign every node to its nearest centre; see :func:`label_nodes`. The coreset's rows are read on the engine."""
    mass = np.bincount(labels, coreset.weights, minlength=k)
    nodes = coreset.indices
    scale = np.ones(nodes.size) if kernel.scale is None else kernel.scale[nodes]
    share = np.divide(coreset.weights, mass[labels], out=np.zeros(nodes.size), where=mass[labels] > 0)
    stored = 0.0 if kernel.graph.diagonal is None else kernel.graph.diagonal[nodes]
    own = share * (kernel.diagonal[nodes] - scale * scale * stored)
    norms = centre_norms(kernel, coreset, labels, k, engine=engine)
    pull: Any = None  # Any: NumPy's types do not know that a weighted count is a float
    if kernel.rank_one is not None:  # it is dense: every centre has an inner product with every node
        r = kernel.rank_one[nodes]
        pull = kernel.rank_factor * np.bincount(labels, share * r, minlength=k)
        own = own - share * kernel.rank_factor * r * r
    centres = Centres(nodes, labels, share * scale, own, norms, pull, candidates == "touched")
    found, best, second, untouched = engine.label(kernel, centres)
    # In place: these arrays are ours, and n can be large.
    best += kernel.diagonal
    second += kernel.diagonal
    return Labelling(found, best, second, untouched)


def centre_norms(
    kernel: KernelView, coreset: Coreset, labels: LabelArray, n_clusters: int, *, engine: Engine | None = None
) -> FloatArray:
    """Return ‖c_j‖² of each cluster's centre; infinity for an empty cluster."""
    nodes = coreset.indices
    matrix = kernel.of_submatrix(nodes, (engine or LocalEngine()).induced(kernel.graph, nodes))
    if kernel.rank_one is not None:
        matrix = matrix - sp.diags_array(kernel.rank_factor * kernel.rank_one[nodes] ** 2)
    rows = np.repeat(np.arange(coreset.size), np.diff(matrix.indptr))
    same = labels[rows] == labels[matrix.indices]
    rows, columns = rows[same], matrix.indices[same]
    pairs = coreset.weights[rows] * coreset.weights[columns] * matrix.data[same]
    association = np.bincount(labels[rows], pairs, minlength=n_clusters)
    mass = np.bincount(labels, coreset.weights, minlength=n_clusters)
    if kernel.rank_one is not None:
        # Not in place: without a single pair the sums are integers to NumPy.
        loads = np.bincount(labels, coreset.weights * kernel.rank_one[nodes], minlength=n_clusters)
        association = association + kernel.rank_factor * loads * loads
    norms: FloatArray = np.divide(association, mass * mass, out=np.full(n_clusters, np.inf), where=mass > 0)
    return norms
