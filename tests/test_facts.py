"""Facts about a partition: they agree with their definitions, and the verdict with what was planted."""

from __future__ import annotations

from typing import Any

import numpy as np
import problems
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.image import grid_to_graph

import corecut
from corecut import CoresetSpectralClustering, Graph, partition_facts
from corecut.reporting.words import STATUSES, statuses, verdict


@pytest.fixture(scope="module")
def planted() -> tuple[sp.csr_array, Any]:
    return corecut.make_sbm(200, 6, 0.15, 0.003, random_state=0)


def said(facts: corecut.PartitionFacts) -> str:
    return " ".join(sentence.text for sentence in verdict(facts).sentences)


def test_sums_follow_their_definitions(rng: np.random.Generator) -> None:
    matrix, _ = problems.planted_graph(rng, [30, 20, 10], degree=8.0, mixing=0.4)
    labels = rng.integers(0, 4, 60)
    facts, dense = partition_facts(matrix, labels), matrix.toarray()
    member = np.eye(4)[labels]
    between = member.T @ dense @ member
    np.testing.assert_allclose(facts.between.toarray(), between)
    np.testing.assert_allclose(facts.volumes, between.sum(axis=1))
    np.testing.assert_allclose(facts.conductances, corecut.conductance(matrix, labels))
    assert facts.modularity == pytest.approx(corecut.modularity(matrix, labels))
    np.testing.assert_allclose(facts.confidence, corecut.label_confidence(matrix, labels))
    inside = np.diag(between)
    for i in range(4):
        for j in range(4):
            if i != j and between[i, j]:
                tie = between[i, j] / (min(inside[i], inside[j]) + between[i, j])
                assert facts.ties[i, j] == pytest.approx(tie)
    assert facts.nearest.tolist() == facts.ties.toarray().argmax(axis=1).tolist()
    np.testing.assert_allclose(facts.strongest_tie, facts.ties.toarray().max(axis=1))
    np.testing.assert_array_equal(facts.sizes, np.bincount(labels))


def test_cohesion_is_the_border_between_the_halves() -> None:
    # Two cliques of 10 with one edge between them: inside the union the border has 1 of 91 of either half's volume.
    clique = np.ones((10, 10)) - np.eye(10)
    bar = sp.csr_array(sp.block_diag([clique, clique])).tolil()
    bar[9, 10] = bar[10, 9] = 1
    facts = partition_facts(sp.csr_array(bar), np.zeros(20, int))
    assert facts.cohesion == pytest.approx([1 / 91])
    # And clusters that are too small for it are not split.
    assert partition_facts(clique[:5, :5], np.zeros(5, int)).cohesion.tolist() == [1.0]


def test_nodes_and_quantiles_of_every_cluster(rng: np.random.Generator) -> None:
    matrix, labels = problems.planted_graph(rng, [40, 30, 20], degree=8.0, mixing=0.5)
    facts = partition_facts(matrix, labels)
    own = (matrix.toarray() * (labels[:, None] == labels)).sum(axis=1)
    quantiles = facts.confidence_quantiles((0.0, 0.5, 1.0))
    for j in range(3):
        nodes = np.flatnonzero(labels == j)
        central, doubtful = facts.central_nodes(3)[j], facts.doubtful_nodes(3)[j]
        assert sorted(own[central], reverse=True) == sorted(own[nodes], reverse=True)[:3]
        np.testing.assert_allclose(facts.confidence[doubtful], np.sort(facts.confidence[nodes])[:3], atol=1e-4)
        assert quantiles[j, 0] == pytest.approx(facts.confidence[nodes].min(), abs=1e-4)
        assert quantiles[j, 2] == pytest.approx(facts.confidence[nodes].max(), abs=1e-4)
    assert facts.doubtful_share == np.mean(facts.confidence <= 0.1)


def test_strongest_connections_are_three_of_each_cluster(rng: np.random.Generator) -> None:
    matrix, _ = problems.planted_graph(rng, [40] * 9, degree=12.0, mixing=0.6)
    facts = partition_facts(matrix, np.repeat(np.arange(9), 40))
    between = facts.between.toarray()
    np.fill_diagonal(between, 0)
    kept = facts.strongest.toarray()
    assert (np.tril(kept) == 0).all()
    kept = kept + kept.T
    for j in range(9):
        assert np.count_nonzero(kept[j]) >= 3
        assert kept[j][np.argsort(between[j])[-3:]].all()
        np.testing.assert_allclose(kept[j][kept[j] > 0], between[j][kept[j] > 0])


def test_planted_clusters_are_well_separated(planted: Any) -> None:
    graph, truth = planted
    facts = partition_facts(graph, truth)
    assert facts.separated.all()
    assert facts.near_pairs == []
    assert not facts.falling.any()
    assert verdict(facts).grade == "clear"
    assert said(facts) == "6 of 6 clusters are well separated."


def test_a_cluster_that_is_two_falls_into_two(planted: Any) -> None:
    graph, truth = planted
    facts = partition_facts(graph, np.where(truth == 1, 0, truth))
    assert np.flatnonzero(facts.falling).tolist() == [0]
    assert STATUSES[statuses(facts)[0]] == "falls into two"
    assert "4 of 5 clusters are well separated. This cluster falls into two:" in said(facts)
    assert "About 6 clusters may describe this graph better." in said(facts)


def test_two_clusters_that_are_one_are_nearly_one(planted: Any) -> None:
    graph, truth = planted
    labels = CoresetSpectralClustering(7, random_state=0).fit_predict(graph)
    facts = partition_facts(graph, labels)
    ((i, j),) = facts.near_pairs
    assert len(set(truth[np.isin(labels, [i, j])])) == 1
    assert int(facts.separated.sum()) == 5
    assert "This pair is nearly one cluster:" in said(facts)
    assert "About 6 clusters may describe this graph as well." in said(facts)


@pytest.mark.parametrize("mixing", [0.1, 0.35])
def test_many_merged_and_halved_clusters_are_told_apart(mixing: float, rng: np.random.Generator) -> None:
    # Clusters that fall into two hold together by little: their weak borders to each other do not make them one.
    degree, size, k = 16, 100, 60
    graph, truth = corecut.make_sbm(size, k, degree * (1 - mixing) / size, degree * mixing / (size * k), random_state=0)
    labels = truth.copy()
    for j in range(6):
        labels[truth == 2 * j + 1] = 2 * j
        labels[(truth == 12 + j) & (rng.random(truth.size) < 0.5)] = k + j
    facts = partition_facts(graph, labels)
    assert facts.cluster_names[facts.falling].tolist() == [2 * j for j in range(6)]
    named = {tuple(facts.cluster_names[list(pair)].tolist()) for pair in facts.near_pairs}
    assert named == {(12 + j, k + j) for j in range(6)}


def test_random_labels_are_no_clusters(planted: Any, rng: np.random.Generator) -> None:
    facts = partition_facts(planted[0], rng.integers(0, 6, 1200))
    assert not facts.separated.any()
    assert facts.loose.all()
    assert verdict(facts).headline == "No clear clusters"
    assert "More than half of the edges of these 6 clusters lead out of them:" in said(facts)


def test_a_grid_has_no_natural_number_of_clusters() -> None:
    grid = sp.csr_array(grid_to_graph(40, 40))
    grid.setdiag(0)
    grid.eliminate_zeros()
    rows, columns = np.divmod(np.arange(1600), 40)
    facts = partition_facts(grid, rows // 20 * 4 + columns // 10)
    assert facts.separated.mean() < 0.5
    assert verdict(facts).grade != "clear"


def test_giants_crumbs_and_doubts_are_told(rng: np.random.Generator) -> None:
    matrix, truth = problems.planted_graph(rng, [900, 40, 40, 3], degree=10.0, mixing=0.2)
    text = said(partition_facts(matrix, truth))
    assert "One cluster holds 92 % of all nodes:" in text
    assert "has less than a tenth of the mean size:" in text
    assert "of the nodes are doubtful" in text
    assert said(partition_facts(matrix, np.zeros(983, int))) == "There is one cluster: nothing is told apart."


def test_labels_keep_their_names_and_nodes_their_ids() -> None:
    matrix = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    plain = Graph.from_matrix(matrix)
    ids = np.array(list("abcdef"), dtype=object)
    graph = Graph(plain.indptr, plain.indices, plain.weights, plain.degrees, plain.diagonal, ids)
    facts = partition_facts(graph, ["x", "x", "x", "y", "y", "y"])
    assert [facts.name(0), facts.name(1), facts.node_name(4)] == ["x", "y", "e"]
    assert facts.nearest.tolist() == [-1, -1]
    assert facts.strongest_tie.tolist() == [0.0, 0.0]
    assert partition_facts(matrix, [7, 7, 7, 30, 30, 30]).cluster_names.tolist() == [7, 30]


def test_a_models_confidence_is_taken(planted: Any) -> None:
    graph, _ = planted
    model = CoresetSpectralClustering(7, random_state=0).fit(graph)
    np.testing.assert_array_equal(partition_facts(graph, model).confidence, model.confidence_)
    assert (partition_facts(graph, model, confidence=np.zeros(1200)).confidence == 0).all()


def test_bad_input_is_refused(planted: Any) -> None:
    graph, truth = planted
    with pytest.raises(ValueError, match="is not fitted: call fit first"):
        partition_facts(graph, CoresetSpectralClustering(3))
    with pytest.raises(ValueError, match="one label per node"):
        partition_facts(graph, truth[:-1])


def test_facts_do_not_depend_on_the_number_of_threads(many_blocks: sp.csr_array) -> None:
    labels = np.repeat([0, 1, 2], [70_000, 50_000, 30_000])
    one, two = (partition_facts(many_blocks, labels, n_jobs=jobs) for jobs in (1, 2))
    for name in ("conductances", "cohesion", "strongest_tie", "confidence", "separated"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.near_pairs == two.near_pairs
