"""Labelling from the coreset's rows equals the dense definition: nearest implied centre of every node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.linalg
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import Coreset, Graph, KernelView, Labelling, build_coreset, kernel_kmeans_cost, label_nodes, sample_seeds
from corecut.coreset import everything
from corecut.labelling import centre_norms


def random_coreset(problem: problems.Problem, rng: np.random.Generator, size: int) -> Coreset:
    """Return any points of positive weight with any weights; labelling does not ask where a coreset comes from."""
    positive = np.flatnonzero(problem.w)
    nodes = np.sort(rng.choice(positive, min(size, positive.size), replace=False))
    return Coreset(nodes, rng.uniform(0.1, 5.0, nodes.size), nodes.size)


def check_labelling(
    problem: problems.Problem,
    coreset: Coreset,
    labels: np.ndarray,
    k: int,
    candidates: Any = "all",
    *,
    edges: np.ndarray | None = None,
) -> Labelling:
    """Compare with the dense definition; labels may differ only between centres at equal distance.

    Contact is by the entries of K, or by `edges` where a regularised K has no zeros.
    """
    found = label_nodes(problem.view, coreset, labels, n_clusters=k, candidates=candidates)
    checks.valid_labels(found.labels, problem.n, k)
    centres = twins.centroid_coefficients(problem.n, coreset.indices, coreset.weights, labels, k)
    distances = twins.centre_distances(problem.K, centres)
    # A coreset node is in contact with its own cluster even where K_xx = 0.
    neighbours = ((problem.K if edges is None else edges) + np.eye(problem.n))[:, coreset.indices] != 0
    contact = neighbours @ twins.membership(labels, k) > 0
    assert found.n_untouched == np.count_nonzero(~contact.any(axis=1))
    if candidates == "touched":
        distances[contact.any(axis=1)[:, None] & ~contact] = np.inf
    nearest, second = np.sort(np.hstack([distances, np.full((problem.n, 1), np.inf)]), axis=1)[:, :2].T
    rounding = 1e-12 * distances[np.isfinite(distances)].max()
    np.testing.assert_allclose(found.distances, nearest, rtol=1e-11, atol=rounding)
    np.testing.assert_allclose(found.second_distances, second, rtol=1e-11, atol=rounding)
    clear = second - nearest > 10 * rounding
    np.testing.assert_array_equal(found.labels[clear], distances.argmin(axis=1)[clear])
    own = distances[np.arange(problem.n), found.labels]
    np.testing.assert_allclose(own, nearest, rtol=1e-11, atol=rounding)
    return found


# --- the definition ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", ["all", "touched"])
def test_labels_and_distances_by_definition(problem: problems.Problem, candidates: str, rng: np.random.Generator) -> None:
    for size in (1, 3, 5, 100):
        coreset = random_coreset(problem, rng, size)
        for k in (1, 2, 3):
            check_labelling(problem, coreset, rng.integers(k, size=coreset.size), k, candidates)


@pytest.mark.parametrize("candidates", ["all", "touched"])
def test_regularised_kernels_by_definition(candidates: str, rng: np.random.Generator) -> None:
    for regularization in (0.1, 2.0):
        A = problems.random_adjacency(rng, 20, density=0.2, loops=0.3, isolated=3)
        sizes = rng.integers(1, 4, size=20).astype(float)
        plain = problems.graph_problem(A, 0.0)
        tau = regularization * plain.w.sum() / sizes.sum()
        weights = plain.w + tau * sizes
        full = A * (plain.w.sum() / A.sum()) + tau / sizes.sum() * np.outer(sizes, sizes)
        problem = problems.Problem(plain.view.regularized(tau, sizes), full / np.outer(weights, weights), weights)
        for size in (1, 2, 6, 100):
            coreset = random_coreset(problem, rng, size)
            for k in (1, 2, 3):
                check_labelling(problem, coreset, rng.integers(k, size=coreset.size), k, candidates, edges=A)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["all", "touched"]))
def test_random_problems_by_definition(seed: int, candidates: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    if rng.random() < 0.3:
        problem = problems.kernel_problem(problems.random_kernel(rng, n), rng.uniform(0.1, 2, n))
    else:
        A = problems.random_adjacency(
            rng, n, density=0.15, unit=rng.random() < 0.5, loops=rng.choice([0, 0.5, 1]), isolated=n // 8
        )
        A[0, 0] += 1.0
        problem = problems.graph_problem(A, rng.choice([0.0, 0.3, 1.0]), dtype=rng.choice([np.float32, np.float64]))
    coreset = random_coreset(problem, rng, int(rng.integers(1, n + 1)))
    k = int(rng.integers(1, 8))
    check_labelling(problem, coreset, rng.integers(k, size=coreset.size), k, candidates)


def test_real_coreset_of_a_planted_graph_by_definition(rng: np.random.Generator) -> None:
    graph, planted = problems.planted_graph(rng, [120, 100, 80], degree=12.0)
    problem = problems.graph_problem(graph.toarray())
    coreset = build_coreset(problem.view, 3, size=90, importance="seeds", random_state=0)
    found = check_labelling(problem, coreset, planted[coreset.indices], 3)
    assert np.mean(found.labels == planted) > 0.6  # far above a third


def test_norms_of_centres_by_definition(problem: problems.Problem, rng: np.random.Generator) -> None:
    coreset = random_coreset(problem, rng, 5)
    labels = rng.integers(3, size=coreset.size).astype(np.int32)
    centres = twins.centroid_coefficients(problem.n, coreset.indices, coreset.weights, labels, 4)
    norms = np.einsum("ij,ik,kj->j", centres, problem.K, centres)
    found = centre_norms(problem.view, coreset, labels, 4)
    np.testing.assert_allclose(found, np.where(np.isnan(norms), np.inf, norms), rtol=1e-12)


def test_labelling_by_everything_is_one_step_of_kernel_k_means(problem: problems.Problem, rng: np.random.Generator) -> None:
    coreset = everything(problem.view)
    labels = rng.integers(3, size=coreset.size)
    labels[:3] = np.arange(3)
    found = label_nodes(problem.view, coreset, labels)
    centres = sp.csr_array(twins.centroid_coefficients(problem.n, coreset.indices, coreset.weights, labels, 3))
    cost = kernel_kmeans_cost(problem.view, centers=centres)
    assert problem.view.weights @ found.distances == pytest.approx(cost, rel=1e-10, abs=1e-12)


# --- corners -------------------------------------------------------------------------------------------------------------


def test_one_cluster_has_no_second_centre() -> None:
    view = problems.weighted_kernel().view
    found = label_nodes(view, everything(view), np.zeros(6, dtype=int))
    np.testing.assert_array_equal(found.labels, 0)
    assert np.all(np.isinf(found.second_distances))


def test_empty_clusters_attract_nobody(rng: np.random.Generator) -> None:
    problem = problems.graph_problem(problems.random_adjacency(rng, 20))
    coreset = random_coreset(problem, rng, 8)
    labels = np.array([1, 4, 1, 4, 4, 1, 1, 4])
    found = check_labelling(problem, coreset, labels, 9)
    assert set(found.labels.tolist()) <= {1, 4}


def test_nodes_without_contact_go_to_the_centre_of_smallest_norm() -> None:
    # Two triangles and a lone pair; the coreset knows the triangles only.
    A = scipy.linalg.block_diag(np.ones((3, 3)), 2 * np.ones((3, 3)), np.ones((2, 2)))
    view = KernelView.from_graph(A, shift=0.0)
    coreset = Coreset(np.array([0, 3]), np.array([1.0, 1.0]), 2)
    for candidates in ("all", "touched"):
        found = label_nodes(view, coreset, [0, 1], candidates=candidates)  # type: ignore[arg-type]
        assert found.labels.tolist() == [0, 0, 0, 1, 1, 1, 1, 1]  # K_yy = 1/3 and 1/6
        assert found.n_untouched == 2


def test_touched_candidates_keep_a_node_with_its_only_contact() -> None:
    # Node 2 shares one weak edge with centre 0; centre 1 has a far smaller norm but nothing to do with it.
    A = np.zeros((5, 5))
    A[0, 1] = A[1, 0] = A[3, 3] = A[4, 4] = 10.0
    A[1, 2] = A[2, 1] = 0.1
    A[2, 2] = 1.0
    A[3, 4] = A[4, 3] = 100.0
    A[0, 0] = A[1, 1] = 10.0
    view = KernelView.from_graph(A, shift=0.0)
    coreset = Coreset(np.array([0, 1, 3, 4]), np.array([20.0, 20.0, 110.0, 110.0]), 4)
    assert label_nodes(view, coreset, [0, 0, 1, 1]).labels.tolist() == [0, 0, 1, 1, 1]
    assert label_nodes(view, coreset, [0, 0, 1, 1], candidates="touched").labels.tolist() == [0, 0, 0, 1, 1]


def test_equal_distances_go_to_the_lower_label() -> None:
    # The middle of a path is as far from one end as from the other.
    A = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=float)
    view = KernelView.from_graph(A)
    coreset = Coreset(np.array([0, 2]), np.array([1.0, 1.0]), 2)
    for labels in ([0, 1], [1, 0]):
        found = label_nodes(view, coreset, labels)
        assert found.labels[1] == 0
        assert found.distances[1] == found.second_distances[1]


def test_only_the_rows_of_the_coreset_and_of_seeds_are_read() -> None:
    # Every other row is broken: whoever reads one fails.
    graph = Graph.from_matrix(sp.csr_array(problems.random_adjacency(np.random.default_rng(3), 60, loops=1.0)))
    view = KernelView.from_graph(graph)
    nodes = np.arange(5, 60, 7)
    coreset = Coreset(nodes, np.linspace(1, 2, nodes.size), nodes.size)
    star = int(np.argmin(view.diagonal))
    labels = np.arange(nodes.size) % 3
    before = label_nodes(view, coreset, labels), sample_seeds(view, 0, start=[star, 5])
    read = np.zeros(60, dtype=bool)
    read[nodes] = read[star] = True
    graph.indices[~np.repeat(read, np.diff(graph.indptr))] = -1
    checks.same_bits(before, (label_nodes(view, coreset, labels), sample_seeds(view, 0, start=[star, 5])))
    with pytest.raises(ValueError, match="out of range"):
        label_nodes(view, everything(view), np.zeros(60, dtype=int))


# --- what is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "arguments", "error", "words"),
    [
        ([0, 1], {}, ValueError, r"coreset_labels must be one label per node: expected shape \(3,\), got \(2,\)"),
        ([0, -1, 1], {}, ValueError, "coreset_labels must not be negative"),
        ([0.0, 1.0, 1.0], {}, TypeError, "coreset_labels must be integers"),
        ([0, 2, 1], {"n_clusters": 2}, ValueError, "n_clusters=2 is below the largest label plus one, 3"),
        ([0, 2, 1], {"n_clusters": 3.0}, TypeError, "n_clusters must be an integer"),
        ([0, 2, 1], {"candidates": "near"}, ValueError, "candidates must be one of 'all', 'touched'"),
    ],
)
def test_wrong_labels_are_refused(labels: Any, arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    view = problems.weighted_kernel().view
    coreset = Coreset(np.array([0, 1, 3]), np.ones(3), 3)
    with pytest.raises(error, match=words):
        label_nodes(view, coreset, labels, **arguments)


@pytest.mark.parametrize("nodes", [[1, 0], [1, 1], [0, 8], [-1, 0]])
def test_coreset_of_another_problem_is_refused(nodes: list[int]) -> None:
    view = problems.weighted_kernel().view
    with pytest.raises(ValueError, match="increasing node numbers"):
        label_nodes(view, Coreset(np.array(nodes), np.ones(2), 2), [0, 1])


# --- sameness ------------------------------------------------------------------------------------------------------------


def test_equal_bits_for_every_type_of_array(rng: np.random.Generator) -> None:
    for unit in (True, False):
        # Quarters are exact in single precision.
        A = np.ceil(4 * problems.random_adjacency(rng, 60, loops=0.5, unit=unit)) / 4
        csr = sp.csr_array(A)
        checked = Graph.from_matrix(csr)
        assert (checked.weights is None) == unit
        coreset = random_coreset(problems.graph_problem(A), rng, 25)
        labels = rng.integers(4, size=25)
        results = []
        for value in (np.float32, np.float64, None) if unit else (np.float32, np.float64):
            for index in (np.int32, np.int64):
                graph = Graph(
                    csr.indptr.astype(index),
                    csr.indices.astype(index),
                    None if value is None else csr.data.astype(value),
                    checked.degrees,
                    checked.diagonal,
                )
                results.append(label_nodes(KernelView.from_graph(graph), coreset, labels))
        for other in results[1:]:
            checks.same_bits(results[0], other)


@pytest.mark.parametrize("candidates", ["all", "touched"])
def test_equal_bits_for_any_number_of_threads(many_blocks: sp.csr_array, candidates: Any, rng: np.random.Generator) -> None:
    view = KernelView.from_graph(many_blocks)
    coreset = build_coreset(view, 3, size=20_000, random_state=5)
    labels = rng.integers(30, size=coreset.size)
    one = label_nodes(view, coreset, labels, candidates=candidates, n_jobs=1)
    checks.valid_labels(one.labels, view.n_points, 30)
    for jobs in (1, 2, 3, None):
        checks.same_bits(one, label_nodes(view, coreset, labels, candidates=candidates, n_jobs=jobs))


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_scaling_all_weights_changes_no_label(factor: float, rng: np.random.Generator) -> None:
    graph, planted = problems.planted_graph(rng, [300, 200])
    views = [KernelView.from_graph(g) for g in (graph, graph * factor)]
    one, other = (build_coreset(view, 2, size=80, random_state=0) for view in views)
    np.testing.assert_array_equal(
        label_nodes(views[0], one, planted[one.indices]).labels, label_nodes(views[1], other, planted[other.indices]).labels
    )


def test_labels_of_a_real_graph_by_definition(dataset: Callable[[str], sp.csr_array], rng: np.random.Generator) -> None:
    problem = problems.graph_problem(dataset("email_eu_core").toarray())  # has isolated nodes
    coreset = build_coreset(problem.view, 10, size=300, random_state=0)
    check_labelling(problem, coreset, rng.integers(10, size=coreset.size), 10)
