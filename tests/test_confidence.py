"""Confidence: margins against their dense definition, agreement of draws, and both in the estimator."""

from __future__ import annotations

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import CoresetSpectralClustering, label_confidence
from corecut.confidence import agreement


@given(problems.adjacency_matrices(), st.data())
def test_margins_by_definition(A: np.ndarray, data: st.DataObject) -> None:
    n = len(A)
    labels = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    np.testing.assert_allclose(label_confidence(A, labels), twins.margins(A, labels), atol=1e-12)


def test_margins_of_a_larger_graph_by_definition(rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 200, density=0.05, loops=0.4, isolated=10)
    for k in (1, 2, 9):
        labels = rng.integers(k, size=200)
        found = label_confidence(A, labels)
        np.testing.assert_allclose(found, twins.margins(A, labels), atol=1e-12)
        assert found.min() >= 0.0
        assert found.max() <= 1.0


def test_inside_border_and_isolated() -> None:
    # Two triangles that share an edge, and a node without any.
    A = np.zeros((7, 7))
    for x, y in ((0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)):
        A[x, y] = A[y, x] = 1.0
    A[0, 0] = 50.0  # a loop speaks for no cluster
    np.testing.assert_allclose(label_confidence(A, [0, 0, 0, 1, 1, 1, 0]), [1, 1, 1 / 3, 1 / 3, 1, 1, 0])
    np.testing.assert_allclose(label_confidence(A, [0, 0, 1, 1, 1, 1, 0]), [0, 0, 0, 1, 1, 1, 0])


def test_equal_bits_for_any_number_of_threads(many_blocks: sp.csr_array, rng: np.random.Generator) -> None:
    labels = rng.integers(5, size=many_blocks.shape[0])
    one = label_confidence(many_blocks, labels, n_jobs=1)
    for jobs in (2, 3):
        checks.same_bits(one, label_confidence(many_blocks, labels, n_jobs=jobs))


def test_wrong_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="labels must be one label per node"):
        label_confidence(np.ones((3, 3)), [0, 1])


def test_agreement_is_blind_to_the_names_of_clusters() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2], np.int32)
    renamed = np.array([2, 2, 2, 0, 0, 0, 1, 1, 1], np.int32)
    np.testing.assert_array_equal(agreement(labels, [labels, renamed], 3), 1.0)


def test_agreement_counts_draws_node_by_node() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1], np.int32)
    other = np.array([1, 1, 0, 0, 0, 0], np.int32)  # its cluster 0 is our 1, but for node 2
    third = np.array([0, 0, 0, 1, 1, 0], np.int32)
    np.testing.assert_allclose(agreement(labels, [labels, other, third], 2), [1, 1, 2 / 3, 1, 1, 2 / 3])


def test_agreement_with_a_cluster_that_a_draw_does_not_use() -> None:
    labels = np.array([0, 0, 1, 1, 2], np.int32)
    merged = np.array([3, 3, 1, 1, 1], np.int32)
    np.testing.assert_array_equal(agreement(labels, [merged], 4), [1, 1, 1, 1, 0])


def test_estimator_multiplies_margin_and_agreement(rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [80, 80, 80], degree=6.0, mixing=0.5)
    one = CoresetSpectralClustering(3, n_init=1, random_state=0).fit(graph)
    np.testing.assert_allclose(one.confidence_, twins.margins(graph.toarray(), one.labels_), atol=1e-12)
    several = CoresetSpectralClustering(3, n_init=6, refine=False, random_state=0).fit(graph)
    margins = twins.margins(graph.toarray(), several.labels_)
    assert np.all(several.confidence_ <= margins + 1e-12)
    shares = several.confidence_[margins > 0] / margins[margins > 0] * 6
    np.testing.assert_allclose(shares, shares.round(), atol=1e-9)
    assert shares.min() < 5.5  # draws of so mixed a graph do not all agree
