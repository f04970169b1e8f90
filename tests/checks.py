"""Invariants that results of the stages must meet, shared by all tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import chi2
from twins import Array

from corecut import Coreset, Graph, KernelView, Seeds

#: Probability at which a right sampler fails a test of its law. Seeds are fixed, so a test that passes keeps passing.
FALSE_ALARM = 1e-6


def valid_graph(graph: Graph) -> None:
    """Canonical arrays of a symmetric matrix; degrees and diagonal that belong to it."""
    assert graph.indptr[0] == 0
    assert graph.indptr[-1] == graph.indices.size == graph.n_entries
    A = graph.adjacency.toarray().astype(float)
    for x in range(graph.n_nodes):
        row = graph.indices[graph.indptr[x] : graph.indptr[x + 1]]
        assert np.all(np.diff(row) > 0), "columns must increase strictly"
        assert np.all((row >= 0) & (row < graph.n_nodes))
    if graph.weights is not None:
        assert np.all(graph.weights > 0)
        assert np.any(graph.weights != 1) or graph.n_entries == 0, "unit weights must be dropped"
    np.testing.assert_allclose(A, A.T, rtol=1e-6)
    np.testing.assert_allclose(graph.degrees, A.sum(axis=1), rtol=1e-12)
    diagonal = np.zeros(graph.n_nodes) if graph.diagonal is None else graph.diagonal
    np.testing.assert_array_equal(diagonal, np.diag(A))
    assert (graph.diagonal is None) == (not np.diag(A).any())


def valid_labels(labels: Array, n: int, k: int) -> None:
    """One label 0..k-1 for every node."""
    assert labels.shape == (n,)
    assert labels.dtype == np.int32
    assert n == 0 or (labels.min() >= 0 and labels.max() < k)


def valid_seeds(seeds: Seeds, view: KernelView) -> None:
    """Distinct points of positive weight, each its own nearest seed; distances that are distances."""
    points = seeds.points
    assert points.size >= 1
    assert np.unique(points).size == points.size
    assert np.all(view.weights[points] > 0)
    assert seeds.distances.shape == seeds.nearest.shape == (view.n_points,)
    assert np.all(seeds.distances >= 0)
    assert np.all(np.isfinite(seeds.distances))
    np.testing.assert_array_equal(seeds.distances[points], 0.0)
    np.testing.assert_array_equal(seeds.nearest[points], np.arange(points.size))
    assert seeds.nearest.min() >= 0
    assert seeds.nearest.max() < points.size
    assert (seeds.missing_shift > 0) == (seeds.n_clipped > 0)


def valid_coreset(coreset: Coreset, view: KernelView) -> None:
    """Distinct increasing points of positive weight with positive weights, no more of them than draws."""
    assert coreset.indices.dtype == np.int64
    assert coreset.indices.shape == coreset.weights.shape == (coreset.size,)
    assert coreset.size >= 1
    assert np.all(np.diff(coreset.indices) > 0)
    assert coreset.indices[0] >= 0
    assert coreset.indices[-1] < view.n_points
    assert np.all(view.weights[coreset.indices] > 0)
    assert np.all(coreset.weights > 0)
    assert np.all(np.isfinite(coreset.weights))
    assert coreset.n_draws == 0 or coreset.size <= coreset.n_draws


def follows_law(counts: Mapping[Hashable, int], law: Mapping[Hashable, float]) -> None:
    """Chi-square test of observed counts against exact probabilities; what cannot happen must not have happened.

    Outcomes that are expected fewer than five times are counted together.
    """
    impossible = {outcome for outcome in counts if law.get(outcome, 0.0) == 0.0}
    assert not impossible, f"outcomes of probability zero were drawn: {sorted(map(str, impossible))[:5]}"
    n = sum(counts.values())
    ordered = sorted((p * n, counts.get(outcome, 0)) for outcome, p in law.items() if p > 0)
    expected, observed, rare = [], [], [0.0, 0.0]
    for e, o in ordered:
        if e < 5 or (rare[0] and rare[0] < 5):
            rare = [rare[0] + e, rare[1] + o]
        else:
            expected.append(e)
            observed.append(o)
    if rare[0]:
        expected.append(rare[0])
        observed.append(rare[1])
    if len(expected) == 1:
        return  # a certain event, and it happened
    statistic = float(np.sum((np.array(observed) - expected) ** 2 / np.array(expected)))
    p_value = chi2.sf(statistic, len(expected) - 1)
    assert p_value > FALSE_ALARM, f"chi-square {statistic:.1f} over {len(expected)} cells, p = {p_value:.2g}"


def uniform(values: Array, cells: int = 50) -> None:
    """Chi-square test of numbers against the uniform law on [0, 1)."""
    counts = np.bincount(np.minimum((np.asarray(values) * cells).astype(int), cells - 1), minlength=cells)
    follows_law(dict(enumerate(counts.tolist())), dict.fromkeys(range(cells), 1.0 / cells))


def same_bits(one: Any, other: Any) -> None:
    """Two results of a stage are equal to the last bit, field by field."""
    assert type(one) is type(other)
    if dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            same_bits(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            same_bits(a, b)
    elif sp.issparse(one):
        for name in ("indptr", "indices", "data"):
            same_bits(getattr(one, name), getattr(other, name))
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other
