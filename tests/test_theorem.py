"""The paper's theorem on graphs so small that the optimum is found by looking at every partition.

The guarantee is about an ε-coreset. Here ε is not promised but measured: it is the relative error of the coreset's cost
for the very sets of centres that the proof uses. The kernel is positive semi-definite and the coreset graph has its weights
as degrees; without either the statements are not true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import problems
import pytest
import twins

from corecut import Coreset, coreset_graph, kernel_kmeans_cost, label_nodes, sample_seeds
from corecut.coreset import importance_sample


def loops_and_clusters() -> problems.Problem:
    A = np.kron(np.eye(3), np.ones((3, 3))) + 0.1 * problems.random_adjacency(np.random.default_rng(1), 9)
    return problems.graph_problem(A + 2 * np.eye(9), 0.0)


def products_of_features() -> problems.Problem:
    return problems.graph_problem(problems.random_kernel(np.random.default_rng(2), 10, rank=7), 0.0)


GRAPHS: dict[str, Callable[[], problems.Problem]] = {
    "no loops, shift 1": lambda: problems.graph_problem(problems.random_adjacency(np.random.default_rng(0), 9), 1.0),
    "loops and clusters": loops_and_clusters,
    "products of features": products_of_features,
    "weighted kernel": problems.weighted_kernel,
}


@dataclass
class Case:
    """A problem with a coreset, and everything about both that can be found by enumeration."""

    problem: problems.Problem
    coreset: Coreset
    k: int

    @cached_property
    def coreset_cuts(self) -> np.ndarray:
        """NC_{A_H,D_H} of every partition of the coreset, D_H = W_H."""
        graph = coreset_graph(self.problem.view, self.coreset, degrees="weights")
        A_H = graph.adjacency.toarray()
        return np.array([twins.normalized_cut_objective(A_H, graph.degrees, p) for p in self.partitions])

    @cached_property
    def partitions(self) -> np.ndarray:
        """Every k-partition of the coreset."""
        return twins.partitions(self.coreset.size, self.k)

    @cached_property
    def optimum(self) -> tuple[float, np.ndarray]:
        """OPTNC_{A_G,D_G}(k) and a partition Σ that reaches it. Points of weight zero belong to no cluster."""
        positive = np.flatnonzero(self.problem.w)
        K, w = self.problem.K[np.ix_(positive, positive)], self.problem.w[positive]
        every = twins.partitions(positive.size, self.k)
        costs = np.array([twins.trace_cost(K, w, p) for p in every])
        return float(costs.min()), every[costs.argmin()]

    def error(self, centres: np.ndarray) -> float:
        """Return the relative error |cost_H(V', S)/cost_G(V, S) - 1| for one set of centres."""
        nodes = self.coreset.indices
        full = twins.cost_of_centres(self.problem.K, self.problem.w, centres)
        sampled = self.coreset.weights @ twins.centre_distances(self.problem.K, centres)[nodes].min(axis=1)
        return abs(float(sampled) / full - 1.0)

    def coreset_centres(self, labels: np.ndarray) -> np.ndarray:
        """c_{w_H}(Π) of a partition of the coreset."""
        return twins.centroid_coefficients(self.problem.n, self.coreset.indices, self.coreset.weights, labels, self.k)

    def labelled_cut(self, labels: np.ndarray) -> float:
        """NC_{A_G,D_G}(Π'): the coreset's partition carried to all nodes, as the package does it."""
        found = label_nodes(self.problem.view, self.coreset, labels, n_clusters=self.k)
        return kernel_kmeans_cost(self.problem.view, found.labels)


@pytest.fixture(params=[(name, k, draws) for name in GRAPHS for k in (2, 3) for draws in (12, 40)], ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    name, k, draws = request.param
    problem = GRAPHS[name]()
    root = np.sqrt(problem.w)
    assert np.linalg.eigvalsh(root[:, None] * problem.K * root[None, :])[0] > -1e-12, "the theorem needs a PSD kernel"
    seeds = sample_seeds(problem.view, k, random_state=draws)
    coreset = importance_sample(problem.view, seeds, draws, random_state=draws + 1)
    assert coreset.size > k
    return Case(problem, coreset, k)


def test_every_partition_of_the_coreset_is_preserved(case: Case) -> None:
    # Lemma B.2: NC_G(Π') ≤ NC_H(Π)/(1 - ε), with the ε of Π's own centres.
    rng = np.random.default_rng(0)
    best = int(case.coreset_cuts.argmin())
    tested = 0
    for i in {best, *rng.integers(len(case.partitions), size=60).tolist()}:
        labels = case.partitions[i]
        epsilon = case.error(case.coreset_centres(labels))
        if epsilon < 1:
            tested += 1
            assert case.labelled_cut(labels) <= case.coreset_cuts[i] / (1 - epsilon) * (1 + 1e-9)
    assert tested > 10


def test_the_optimum_is_preserved_on_the_coreset(case: Case) -> None:
    # Lemma B.3: NC_H(Σ') ≤ (1 + ε)·NC_G(Σ), Σ' the coreset's points sent to Σ's nearest centre.
    optimal, sigma = case.optimum
    positive = np.flatnonzero(case.problem.w)
    centres = twins.centroid_coefficients(case.problem.n, positive, case.problem.w[positive], sigma, case.k)
    nearest = twins.centre_distances(case.problem.K, centres)[case.coreset.indices].argmin(axis=1)
    graph = coreset_graph(case.problem.view, case.coreset, degrees="weights")
    cut = twins.normalized_cut_objective(graph.adjacency.toarray(), graph.degrees, nearest)
    assert cut <= (1 + case.error(centres)) * optimal * (1 + 1e-9)


def test_an_approximation_on_the_coreset_graph_is_one_on_the_graph(case: Case) -> None:
    # Theorem 1: NC_G(Π') ≤ α(1 + ε)/(1 - ε)·OPTNC_G, for the best partition of the coreset graph and for worse ones.
    optimal, sigma = case.optimum
    positive = np.flatnonzero(case.problem.w)
    sigma_centres = twins.centroid_coefficients(case.problem.n, positive, case.problem.w[positive], sigma, case.k)
    order = case.coreset_cuts.argsort()
    best = case.coreset_cuts[order[0]]
    assert best > 0
    tested = 0
    for i in order[np.unique(np.geomspace(1, order.size, 12).astype(int)) - 1]:
        labels = case.partitions[i]
        alpha = case.coreset_cuts[i] / best
        epsilon = max(case.error(sigma_centres), case.error(case.coreset_centres(labels)))
        if epsilon < 1:
            tested += 1
            assert case.labelled_cut(labels) <= alpha * (1 + epsilon) / (1 - epsilon) * optimal * (1 + 1e-9)
    assert tested > 0


def test_the_guarantee_is_not_empty() -> None:
    # With a good coreset of a clear graph, ε is small and the best partition of the coreset is the best of the graph.
    problem = loops_and_clusters()
    seeds = sample_seeds(problem.view, 3, random_state=0)
    case = Case(problem, importance_sample(problem.view, seeds, 400, random_state=0), 3)
    labels = case.partitions[case.coreset_cuts.argmin()]
    optimal, sigma = case.optimum
    centres = twins.centroid_coefficients(9, np.arange(9), problem.w, sigma, 3)
    epsilon = max(case.error(centres), case.error(case.coreset_centres(labels)))
    assert (1 + epsilon) / (1 - epsilon) < 1.5
    assert case.labelled_cut(labels) == pytest.approx(optimal)
