"""D² sampling: three samplers, one law; the tree; distances by their definition; how much work was done."""

from __future__ import annotations

from collections import Counter
from typing import Any

import checks
import numpy as np
import problems
import pytest
import scipy.sparse as sp
import twins
from hypothesis import given, strategies as st

from corecut import Graph, KernelView, Seeds, _core, sample_seeds

METHODS = ("naive", "tree", "rejection")


def draw_sequences(problem: problems.Problem, method: str, draws: int, runs: int, start: Any = None) -> list[Seeds]:
    """Return many independent samples from one stream of random numbers."""
    rng = np.random.default_rng(99)
    return [sample_seeds(problem.view, draws, method=method, start=start, random_state=rng, n_jobs=1) for _ in range(runs)]


# --- one law, three samplers ---------------------------------------------------------------------------------------------


def check_conditional_law(problem: problems.Problem, method: str, runs: int) -> list[Seeds]:
    """Compare the first draw after a given C, and the sequence of three draws, with their enumerated laws."""
    start = problem.start
    samples = draw_sequences(problem, method, 3, runs, start)
    sequences = Counter(tuple(seeds.points[2:].tolist()) for seeds in samples)
    assert all(seeds.points[:2].tolist() == start for seeds in samples)
    checks.follows_law(
        Counter(seeds.points[2].item() for seeds in samples),
        dict(enumerate(twins.d2_law(problem.K, problem.w, start))),
    )
    checks.follows_law(sequences, twins.joint_law(problem.K, problem.w, start, 3))
    return samples


def test_draws_follow_the_d2_law_given_the_same_seeds(problem: problems.Problem, method: str) -> None:
    check_conditional_law(problem, method, 3000)


@pytest.mark.deep
def test_draws_follow_the_d2_law_given_the_same_seeds_in_depth(problem: problems.Problem, method: str) -> None:
    check_conditional_law(problem, method, 40_000)


def test_rejection_follows_the_law_after_rebuilding_its_table() -> None:
    samples = check_conditional_law(problems.collapsing_kernel(), "rejection", 8000)
    rebuilds = Counter(seeds.n_rebuilds for seeds in samples)
    # The first draw nearly always makes the table worthless, the second sometimes does: all cases must have been tested.
    assert rebuilds[1] < 0.1 * len(samples)
    assert rebuilds[2] > 0.1 * len(samples)
    assert rebuilds[3] > 0.1 * len(samples)


def test_law_without_start(problem: problems.Problem, method: str) -> None:
    # The naive sampler starts from a uniform point, the others from x* and a uniform point, which may be x* itself.
    K, w = problem.K, problem.w
    first = np.flatnonzero(w).tolist()
    star = [] if method == "naive" else [twins.smallest_point(K, w)]
    law: Counter[Any] = Counter()
    for x in first:
        start = star if [x] == star else [*star, x]
        for rest, p in twins.joint_law(K, w, start, 1).items():
            law[(*start, *rest)] += p / len(first)
    samples = draw_sequences(problem, method, 1, 3000)
    checks.follows_law(Counter(tuple(seeds.points.tolist()) for seeds in samples), law)


def probability_transforms(view: KernelView, K: sp.csc_array, seeds: Seeds, rng: np.random.Generator) -> np.ndarray:
    """Return Rosenblatt's transform of each draw given the draws before it: independent and uniform under the D² law.

    Two rows, for two orders of the points: by their numbers, and by their probabilities.
    """
    diagonal, w = K.diagonal(), view.weights
    distance = np.full(view.n_points, np.inf)
    transforms = []
    for i, y in enumerate(seeds.points):
        if i >= 2:  # the first two are starting points
            contributions = w * distance
            total, own, v = contributions.sum(), contributions[y], rng.random()
            lower, equal = contributions[contributions < own].sum(), contributions[contributions == own].sum()
            transforms.append([(contributions[:y].sum() + v * own) / total, (lower + v * equal) / total])
        delta = diagonal + diagonal[y]
        column = slice(K.indptr[y], K.indptr[y + 1])
        delta[K.indices[column]] -= 2.0 * K.data[column]
        distance = np.minimum(distance, np.where(w > 0, np.maximum(delta, 0.0), 0.0))
    return np.array(transforms).T


@pytest.mark.parametrize(("n", "draws", "runs"), [(1400, 900, 3), (20_000, 40, 8)])
def test_long_runs_follow_the_law_at_every_draw(method: Any, n: int, draws: int, runs: int, rng: np.random.Generator) -> None:
    # More points than one block of the sums holds, weights of all sizes, and so many draws that tables become stale.
    graph, _ = problems.planted_graph(rng, [n // 2, n // 4, n // 4], degree=30.0)
    strength = np.exp(rng.uniform(-2, 2, n))
    view = KernelView.from_graph(graph * strength[:, None] * strength[None, :])
    K = sp.csc_array(view.to_matrix())
    star = _core.smallest_point(view.diagonal, view.weights)
    samples = [
        sample_seeds(view, draws, method=method, start=[star, (star + 1 + run) % n], random_state=run) for run in range(runs)
    ]
    transforms = np.hstack([probability_transforms(view, K, seeds, rng) for seeds in samples])
    assert transforms.shape == (2, draws * runs)
    for row in transforms:
        checks.uniform(row, 30)
    if method == "rejection" and draws == 900:
        assert all(seeds.n_rebuilds > 1 for seeds in samples)


# --- the sampling tree ---------------------------------------------------------------------------------------------------

SMALLEST, LARGEST = 0.0, float(np.nextafter(1.0, 0.0))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40).filter(any))
def test_tree_inverts_the_cumulative_distribution(leaves: list[int]) -> None:
    # Integer leaves add up without rounding, so that the answer is known exactly, borders included.
    tree = _core.SamplingTree(np.array(leaves, dtype=float))
    cumulative = np.cumsum(leaves)
    total = int(cumulative[-1])
    assert tree.total == total
    for u in [*(np.arange(4 * total) / (4 * total)), LARGEST]:
        assert tree.sample(u) == np.searchsorted(cumulative, u * total, side="right")


def test_tree_of_one_leaf() -> None:
    tree = _core.SamplingTree(np.array([3.0]))
    assert [tree.sample(u) for u in (SMALLEST, 0.5, LARGEST)] == [0, 0, 0]
    tree.update(0, 5.0)
    assert (tree.total, tree.leaf(0)) == (5.0, 5.0)


@given(st.lists(st.sampled_from([0.0, 0.0, 5e-324, 1e-300, 1e-17, 0.1, 1.0, 3.0, 1e17]), min_size=1, max_size=70).filter(any))
def test_tree_never_returns_a_leaf_without_contribution(leaves: list[float]) -> None:
    tree = _core.SamplingTree(np.array(leaves))
    borders = np.cumsum(leaves) / np.sum(leaves)
    for u in [SMALLEST, LARGEST, *np.linspace(0, 1, 101)[:-1], *np.clip(borders, 0, LARGEST)]:
        assert leaves[tree.sample(u)] > 0


def test_tree_agrees_with_its_leaves_after_many_updates(rng: np.random.Generator) -> None:
    n = 1000
    leaves = rng.uniform(0, 1, n)
    tree = _core.SamplingTree(leaves)
    nodes = rng.integers(n, size=100_000)
    # Contributions over twenty orders of magnitude, a third of them zero: subtracting along paths would drift far.
    values = np.where(rng.random(nodes.size) < 0.33, 0.0, 10.0 ** rng.uniform(-12, 8, nodes.size))
    for x, value in zip(nodes.tolist(), values.tolist(), strict=True):
        tree.update(x, value)
        leaves[x] = value
    fresh = _core.SamplingTree(leaves)
    assert [tree.leaf(x) for x in range(n)] == leaves.tolist()
    assert tree.total == fresh.total
    assert tree.total == pytest.approx(leaves.sum(), rel=1e-14)
    for u in rng.random(2000):
        x = tree.sample(u)
        assert x == fresh.sample(u)
        assert leaves[x] > 0
    for x in range(n - 1):
        tree.update(x, 0.0)
    tree.update(n - 1, 1e-30)
    assert tree.total == 1e-30
    assert {tree.sample(u) for u in rng.random(50)} == {n - 1}


def test_tree_without_contribution_refuses_to_sample() -> None:
    tree = _core.SamplingTree(np.array([1.0, 0.0, 2.0]))
    tree.update(0, 0.0)
    tree.update(2, 0.0)
    assert tree.total == 0.0
    with pytest.raises(ValueError, match="no leaf of the tree has a contribution"):
        tree.sample(0.5)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_tree_refuses_impossible_contributions(value: float) -> None:
    with pytest.raises(ValueError, match="contribution must be finite and not negative"):
        _core.SamplingTree(np.array([1.0, value]))
    with pytest.raises(ValueError, match="contribution must be finite and not negative"):
        _core.SamplingTree(np.ones(2)).update(1, value)


def test_tree_refuses_what_lies_outside_it() -> None:
    tree = _core.SamplingTree(np.ones(3))
    for x in (-1, 3):
        with pytest.raises(IndexError, match="no such leaf"):
            tree.leaf(x)
        with pytest.raises(IndexError, match="no such leaf"):
            tree.update(x, 1.0)
    for u in (-0.1, 1.0, np.nan):
        with pytest.raises(ValueError, match=r"u must lie in \[0, 1\)"):
            tree.sample(u)
    with pytest.raises(ValueError, match="at least one leaf"):
        _core.SamplingTree(np.zeros(0))


# --- distances by their definition ---------------------------------------------------------------------------------------


def check_distances(problem: problems.Problem, seeds: Seeds) -> None:
    """Δ(x, C) and the nearest seed of every point, from the dense kernel."""
    checks.valid_seeds(seeds, problem.view)
    expected = twins.distances_to_seeds(problem.K, problem.w, seeds.points.tolist())
    rounding = 1e-13 * np.diag(problem.K).max()
    np.testing.assert_allclose(seeds.distances, expected.min(axis=1), rtol=1e-12, atol=rounding)
    chosen = expected[np.arange(problem.n), seeds.nearest]
    np.testing.assert_allclose(chosen, expected.min(axis=1), rtol=1e-12, atol=rounding)


@given(st.integers(0, 2**32 - 1), st.sampled_from(METHODS), st.integers(0, 30))
def test_distances_and_nearest_seeds_by_definition(seed: int, method: Any, draws: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    if rng.random() < 0.3:
        w = rng.uniform(0, 2, n) * (rng.random(n) < 0.8)
        w[0] = 1.0
        problem = problems.kernel_problem(problems.random_kernel(rng, n), w)
    else:
        A = problems.random_adjacency(
            rng, n, unit=rng.random() < 0.5, loops=rng.choice([0, 0.5, 1]), components=rng.integers(1, 4), isolated=n // 5
        )
        A[0, 0] += 1.0
        problem = problems.graph_problem(A, rng.choice([0.0, 0.2, 1.0]), dtype=rng.choice([np.float32, np.float64]))
    check_distances(problem, sample_seeds(problem.view, draws, method=method, random_state=seed))


def test_distances_of_given_seeds_are_the_same_for_all_samplers(problem: problems.Problem) -> None:
    start = [*problem.start, *np.flatnonzero(problem.w)[1:4].tolist()]
    naive, *others = (sample_seeds(problem.view, 0, method=method, start=start) for method in METHODS)
    check_distances(problem, naive)
    for seeds in others:
        np.testing.assert_array_equal(seeds.points, naive.points)
        np.testing.assert_allclose(seeds.distances, naive.distances, rtol=1e-13, atol=1e-14 * np.diag(problem.K).max())
        assert seeds.n_clipped == naive.n_clipped
        assert seeds.missing_shift == pytest.approx(naive.missing_shift, rel=1e-9)


def test_fast_samplers_check_no_more_than_the_neighbours_of_seeds(fast_method: Any, many_blocks: sp.csr_array) -> None:
    degrees = np.diff(many_blocks.indptr)
    for draws in (1, 50, 500):
        seeds = sample_seeds(many_blocks, draws, method=fast_method, random_state=0)
        assert 0 < seeds.n_checks <= degrees[seeds.points].sum()


def test_naive_sampler_checks_every_point_for_every_seed(problem: problems.Problem) -> None:
    seeds = sample_seeds(problem.view, 2, method="naive", random_state=0)
    assert seeds.n_checks == problem.n * seeds.points.size


def test_drawing_ends_when_no_point_is_left(problem: problems.Problem, method: Any) -> None:
    seeds = sample_seeds(problem.view, 10 * problem.n, method=method, random_state=1)
    np.testing.assert_array_equal(seeds.distances, 0.0)
    check_distances(problem, seeds)
    if seeds.n_clipped == 0:  # no two points coincide in these problems, so every one of positive weight is drawn
        np.testing.assert_array_equal(np.sort(seeds.points), np.flatnonzero(problem.w))


def test_negative_distances_are_counted_and_the_named_shift_mends_them(method: Any, rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 40, density=0.2)
    problem = problems.graph_problem(A, 0.05)
    seeds = sample_seeds(problem.view, 12, method=method, random_state=3)
    delta = twins.pair_distances(problem.K)[:, seeds.points]
    per_shift = 1 / problem.w[:, None] + 1 / problem.w[seeds.points][None, :]
    assert seeds.n_clipped == np.count_nonzero(delta < -1e-9) > 0
    assert seeds.missing_shift == pytest.approx((-delta / per_shift).max())
    for factor, clean in ((1 + 1e-9, True), (0.9, False)):
        mended = KernelView.from_graph(A, shift=0.05 + factor * seeds.missing_shift)
        star = twins.smallest_point(mended.to_matrix().toarray(), mended.weights)
        assert (sample_seeds(mended, 0, method=method, start=[*seeds.points, star]).n_clipped == 0) == clean


# --- the starting points -------------------------------------------------------------------------------------------------


def test_starting_points_come_first_and_once(problem: problems.Problem, method: Any) -> None:
    start = problem.start
    seeds = sample_seeds(problem.view, 1, method=method, start=[*start, start[0], start[1]], random_state=0)
    assert seeds.points[:2].tolist() == start
    assert seeds.points.size == 3


def test_fast_samplers_need_a_point_of_smallest_self_similarity(fast_method: Any) -> None:
    view = problems.collapsing_kernel().view
    with pytest.raises(ValueError, match=r"smallest self-similarity, 0, for this sampler; use method=\"naive\""):
        sample_seeds(view, 1, method=fast_method, start=[3])
    assert sample_seeds(view, 1, method="naive", start=[3], random_state=0).points[0] == 3


def test_any_of_several_points_of_smallest_self_similarity_will_do(fast_method: Any) -> None:
    cycle = np.roll(np.eye(9), 1, axis=0)
    problem = problems.graph_problem(cycle + cycle.T, 1.0)
    check_distances(problem, sample_seeds(problem.view, 2, method=fast_method, start=[4], random_state=0))


@pytest.mark.parametrize(
    ("start", "error", "words"),
    [
        ([], ValueError, "at least one point"),
        ([2], ValueError, "start holds 2, which is not a point of positive weight"),
        ([8], ValueError, "start must lie between 0 and 7"),
        ([-1], ValueError, "start must lie between 0 and 7"),
        ([0.5], TypeError, "start must be a list of node numbers"),
        ([[0]], TypeError, "start must be a list of node numbers"),
    ],
)
def test_wrong_starts_are_refused(start: Any, error: type[Exception], words: str, method: Any) -> None:
    with pytest.raises(error, match=words):
        sample_seeds(problems.weighted_kernel().view, 1, method=method, start=start)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"n_draws": -1}, ValueError, "n_draws must be at least 0"),
        ({"n_draws": 2.5}, TypeError, "n_draws must be an integer"),
        ({"n_draws": 1, "method": "fast"}, ValueError, "method must be one of 'rejection', 'tree', 'naive'"),
        ({"n_draws": 1, "random_state": -1}, ValueError, "random_state must be"),
        ({"n_draws": 1, "random_state": "seed"}, ValueError, "random_state must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        sample_seeds(np.ones((3, 3)), **arguments)


def test_graph_without_edges_has_nothing_to_sample(method: Any) -> None:
    with pytest.raises(ValueError, match="every node is isolated"):
        sample_seeds(np.zeros((5, 5)), 2, method=method)


# --- sameness ------------------------------------------------------------------------------------------------------------


def test_equal_bits_for_any_number_of_threads_and_again(method: Any, many_blocks: sp.csr_array) -> None:
    view = KernelView.from_graph(many_blocks)
    draws = 8 if method == "naive" else 300
    one = sample_seeds(view, draws, method=method, random_state=5, n_jobs=1)
    checks.valid_seeds(one, view)
    for jobs in (1, 2, 3, None):
        checks.same_bits(one, sample_seeds(view, draws, method=method, random_state=5, n_jobs=jobs))
    assert sample_seeds(view, draws, method=method, random_state=6).points.tolist() != one.points.tolist()


def test_equal_bits_for_every_type_of_array(method: Any, rng: np.random.Generator) -> None:
    for unit in (True, False):
        # Quarters are exact in single precision.
        A = np.ceil(4 * problems.random_adjacency(rng, 60, loops=0.5, unit=unit)) / 4
        results = []
        for value in (np.float32, np.float64):
            for index in (np.int32, np.int64):
                csr = sp.csr_array(A.astype(value))
                csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
                results.append(sample_seeds(csr, 20, method=method, random_state=0))
        if unit:
            stored = sp.csr_array(A)
            plain = Graph.from_matrix(stored)
            assert plain.weights is None
            weighted = Graph(plain.indptr, plain.indices, stored.data, plain.degrees, plain.diagonal)
            results.append(sample_seeds(weighted, 20, method=method, random_state=0))
        for other in results[1:]:
            checks.same_bits(results[0], other)


@pytest.mark.parametrize("factor", [1e-200, 1e200, 2.0**-600, 2.0**600])
def test_scaling_all_weights_changes_no_draw(factor: float, method: Any, rng: np.random.Generator) -> None:
    A = problems.random_adjacency(rng, 80, loops=0.3, density=0.1)
    one = sample_seeds(A, 25, method=method, random_state=0)
    other = sample_seeds(A * factor, 25, method=method, random_state=0)
    np.testing.assert_array_equal(one.points, other.points)
    np.testing.assert_array_equal(one.nearest, other.nearest)


def test_random_states_of_every_kind() -> None:
    A = problems.random_adjacency(np.random.default_rng(0), 40)

    def draw(random_state: Any) -> list[int]:
        return sample_seeds(A, 10, random_state=random_state).points.tolist()

    assert draw(3) == draw(np.int64(3)) == draw(np.random.default_rng(3))
    assert draw(np.random.RandomState(3)) == draw(np.random.RandomState(3))
    generator = np.random.default_rng(3)
    assert draw(generator) != draw(generator)
    assert draw(None) != draw(None)
