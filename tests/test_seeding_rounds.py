"""Seeding in rounds: races that follow the D² law, whatever the blocks, and coresets as good as those of sequential draws."""

from __future__ import annotations

from collections import Counter

import checks
import numpy as np
import problems
import pytest
import twins

from corecut import KernelView, build_coreset, make_sbm, races, sample_seeds


def test_the_winner_of_a_race_follows_the_masses() -> None:
    mass = np.array([0.0, 1.0, 3.0, 0.5, 2.0])
    runs = [races.first_of_race(mass, 2, seed, 3)[1].tolist() for seed in range(4000)]
    checks.follows_law(Counter(run[0] for run in runs), dict(enumerate(mass / mass.sum())))
    law = {
        (a, b): mass[a] / mass.sum() * mass[b] / (mass.sum() - mass[a])
        for a in range(5)
        for b in range(5)
        if a != b and mass[a] > 0 and mass[b] > 0
    }
    checks.follows_law(Counter(tuple(run) for run in runs), law)


def test_races_of_different_rounds_and_seeds_differ() -> None:
    mass = np.ones(1000)
    winners = [races.first_of_race(mass, 30, seed, number)[1] for seed in (0, 1) for number in (0, 1)]
    assert len({tuple(one) for one in winners}) == 4


@pytest.mark.parametrize("block", [1, 7, 100, 10**6])
def test_winners_do_not_depend_on_the_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mass = np.random.default_rng(0).random(500) * (np.arange(500) % 3 > 0)
    expected = races.first_of_race(mass, 40, 5, 1)[1]
    monkeypatch.setattr(races, "_BLOCK", block)
    assert np.array_equal(races.first_of_race(mass, 40, 5, 1)[1], expected)


def test_seeds_are_those_of_their_definition() -> None:
    problem = problems.graph_problem(problems.random_adjacency(np.random.default_rng(3), 60))
    seeds = sample_seeds(problem.view, 16, method="rounds", random_state=0)
    checks.valid_seeds(seeds, problem.view)
    assert seeds.points.size == 18
    distances = twins.distances_to_seeds(problem.K, problem.w, seeds.points.tolist())
    assert np.allclose(seeds.distances, distances.min(axis=1))
    for n_jobs in (1, 3):
        checks.same_bits(seeds, sample_seeds(problem.view, 16, method="rounds", random_state=0, n_jobs=n_jobs))


def test_fewer_draws_than_rounds_and_none() -> None:
    problem = problems.graph_problem(problems.random_adjacency(np.random.default_rng(3), 60))
    assert sample_seeds(problem.view, 3, method="rounds", random_state=0).points.size == 5
    assert sample_seeds(problem.view, 0, method="rounds", random_state=0).points.size == 2


def test_the_error_of_a_coreset_is_that_of_sequential_draws() -> None:
    graph, labels = make_sbm(250, 8, 0.3, 0.01, random_state=0)
    view = KernelView.from_graph(graph)
    rng = np.random.default_rng(0)
    K, w = view.to_matrix().toarray(), view.weights
    centres = [labels, *(rng.permutation(labels) for _ in range(3)), rng.integers(0, 8, labels.size)]
    distances = []
    for partition in centres:
        member = np.zeros((labels.size, 8))
        member[np.arange(labels.size), partition] = w
        member /= member.sum(axis=0)
        inner = K @ member
        distances.append((np.diag(K)[:, None] - 2 * inner + (member * inner).sum(axis=0)).min(axis=1))
    errors = {}
    for sampler in ("rejection", "rounds"):
        found = []
        for seed in range(25):
            coreset = build_coreset(view, 8, size=300, sampler=sampler, random_state=seed)
            for distance in distances:
                found.append(coreset.weights @ distance[coreset.indices] / (w @ distance) - 1)
        errors[sampler] = float(np.sqrt(np.mean(np.square(found))))
    assert errors["rounds"] < 1.3 * errors["rejection"]
