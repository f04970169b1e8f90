"""Every parameter of every estimator: a changed value changes the result or what is reported of it, or draws a sentence."""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stderr
from typing import Any

import numpy as np
import problems
import pytest
import scipy.sparse as sp

from corecut import CoresetKernelKMeans, CoresetSpectralClustering, FastSpectralClustering, Graph, KernelKMeans

ESTIMATORS: list[Any] = [CoresetSpectralClustering, FastSpectralClustering, KernelKMeans, CoresetKernelKMeans]

GRAPH, _ = problems.planted_graph(np.random.default_rng(0), [90, 80, 70, 60], degree=30.0, mixing=0.5)
DIRECTED = sp.csr_array(GRAPH + 0.5 * sp.triu(GRAPH, 1))
POINTS = np.random.default_rng(1).normal(size=(200, 3))
CROWDS = np.repeat(10 * np.random.default_rng(2).normal(size=(20, 9)), 100, axis=0) + np.random.default_rng(3).normal(
    size=(2000, 9)
)

# Name: (data, what is set beside it, the value, another value). The names in the second column are left out where an
# estimator has no such parameter.
CORESET = {"coreset_size": 150, "aggregate": False}
Case = tuple[Any, dict[str, Any], Any, Any]
CASES: dict[str, Case] = {
    "n_clusters": (GRAPH, {}, 4, 5),
    "affinity": (POINTS, {}, "nearest_neighbors", "rbf"),
    "n_neighbors": (POINTS, {"affinity": "nearest_neighbors"}, 10, 30),
    "neighbors": (CROWDS, {"affinity": "nearest_neighbors"}, "exact", "approximate"),
    "gamma": (POINTS, {"affinity": "rbf"}, 1.0, 0.1),
    "degree": (POINTS, {"affinity": "poly", "gamma": 0.1}, 2, 4),
    "coef0": (POINTS, {"affinity": "poly", "gamma": 1.0, "degree": 2}, 1, 30),
    "kernel_params": (
        POINTS,
        {"affinity": lambda x, y, scale: np.exp(-scale * np.abs(x - y).sum())},
        {"scale": 1},
        {"scale": 3},
    ),
    "eigen_tol": (POINTS, {}, "auto", 1e-3),
    "coreset_size": (GRAPH, {"aggregate": False}, 150, 120),
    "aggregate": (GRAPH, {}, False, True),
    "regularization": (GRAPH, {}, 0.0, 0.5),
    "shift": (GRAPH, CORESET, "auto", 0.7),
    "seeding_factor": (GRAPH, CORESET, 2.0, 5.0),
    "sampler": (GRAPH, CORESET, "naive", "tree"),
    "importance": (GRAPH, CORESET, "seeds", "cluster"),
    "degrees": (GRAPH, CORESET, "rows", "weights"),
    "eigen_solver": (GRAPH, {}, "subspace", "power"),
    "n_components": (GRAPH, {}, 4, 6),
    "assign_labels": (GRAPH, {"eigen_solver": "arpack", "refine": False}, "kmeans", "cluster_qr"),
    "n_init": (GRAPH, {"refine": False, "n_clusters": 12}, 1, 7),
    "effort": (GRAPH, {"refine": True, "n_clusters": 12}, 0.1, 3.0),
    "max_iter": (GRAPH, {"n_init": 1}, 100, 1),
    "tol": (GRAPH, {"n_init": 1}, 0.0, 0.2),
    "candidates": (GRAPH, {"coreset_size": 30, "aggregate": False, "regularization": 0.0, "refine": False}, "touched", "all"),
    "refine": (GRAPH, {}, True, False),
    "balance": (GRAPH, {"n_clusters": 8}, 0.0, 0.5),
    "min_cluster_size": (GRAPH, {"n_clusters": 8}, None, 35),
    "max_cluster_size": (GRAPH, {}, None, 80),
    "symmetrize": (DIRECTED, {}, "mean", "min"),
    "check": (DIRECTED, {}, "none", "full"),
    "engine": (GRAPH, {}, None, "nonsense"),
    "scratch": (GRAPH, {}, None, "needs a limit on memory"),
    "random_state": (GRAPH, CORESET | {"n_init": 1}, 0, 1),
    "verbose": (GRAPH, {}, 0, 1),
}
# By promise nothing but time and memory depend on these.
SILENT: dict[str, tuple[Any, Any]] = {"n_jobs": (1, 2), "memory_limit": (None, "1GB")}


def outcome(kind: Any, X: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return all that a user can see of a fit: labels and attributes, words on stderr, or the refusal."""
    known = kind().get_params()
    settings = {"n_clusters": 4, "random_state": 0} | {name: value for name, value in settings.items() if name in known}
    words = io.StringIO()
    with redirect_stderr(words), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = kind(**settings).fit(X)
        except ValueError as error:
            return {"refused": str(error)}
    seen = {name: value for name, value in vars(model).items() if name.endswith("_") and name != "timings_"}
    return seen | {"cut": model.normalized_cut_, "stages": list(model.timings_), "told": bool(words.getvalue())}


def same(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in ESTIMATORS for name in kind().get_params()])
def test_every_parameter_is_obeyed(kind: Any, name: str) -> None:
    if name in SILENT:
        assert same(*(outcome(kind, GRAPH, {name: value}) for value in SILENT[name]))
        return
    X, beside, *values = CASES[name]
    for seed in range(4):  # by chance, the best of many draws is sometimes the first
        first, second = (outcome(kind, X, {"random_state": seed} | beside | {name: value}) for value in values)
        assert "refused" not in first
        if not same(first, second):
            return
    pytest.fail(f"{name}={values[1]!r} changes nothing")


def test_every_case_belongs_to_a_parameter() -> None:
    known = {name for kind in ESTIMATORS for name in kind().get_params()}
    assert known == CASES.keys() | SILENT.keys()


IDLE: list[tuple[Any, dict[str, Any], str]] = [
    (POINTS, {"gamma": 0.5}, r"gamma=0\.5 has no effect on this affinity 'nearest_neighbors': it belongs to affinity='rbf'"),
    (POINTS, {"affinity": "rbf", "n_neighbors": 5}, "n_neighbors=5 has no effect on this affinity 'rbf'"),
    (POINTS, {"affinity": "rbf", "neighbors": "exact"}, "neighbors='exact' has no effect on this affinity 'rbf'"),
    (POINTS, {"symmetrize": "mean"}, "symmetrize='mean' has no effect"),
    (POINTS, {"check": "full"}, "check='full' has no effect"),
    (GRAPH, {"n_neighbors": 5}, "n_neighbors=5 has no effect on this graph"),
    (GRAPH, {"gamma": 0.5}, r"gamma=0\.5 has no effect on this graph"),
    (Graph.from_matrix, {"symmetrize": "max"}, "symmetrize='max' has no effect on a Graph"),
    (Graph.from_matrix, {"check": "full"}, "check='full' has no effect on a Graph"),
]


@pytest.mark.parametrize(("X", "settings", "words"), IDLE)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_parameters_of_another_affinity_draw_a_warning(kind: Any, X: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.warns(UserWarning, match=words):
        kind(4, random_state=0, **settings).fit(X(GRAPH) if callable(X) else X)


@pytest.mark.parametrize("name", ["shift", "seeding_factor", "sampler", "importance", "degrees", "candidates"])
def test_options_of_a_coreset_without_one_are_refused(name: str) -> None:
    value = CASES[name][3]
    with pytest.raises(ValueError, match=rf"{name}=.* has no effect: all 300 nodes are used .* set coreset_size= to less"):
        CoresetSpectralClustering(4, **{name: value}).fit(GRAPH)
    with pytest.raises(ValueError, match=rf"{name}=.* has no effect: the graph is aggregated"):
        CoresetSpectralClustering(4, aggregate=True, **{name: value}).fit(GRAPH)
    # Known only when the quotient is there: too late to refuse.
    with pytest.warns(UserWarning, match=rf"{name}=.* had no effect: the quotient graph is small"):
        CoresetSpectralClustering(4, aggregate=True, coreset_size=300, random_state=0, **{name: value}).fit(GRAPH)
    if name in ("seeding_factor", "importance"):
        with pytest.raises(ValueError, match=rf"{name}=.* has no effect: all 300 nodes are used"):
            CoresetKernelKMeans(4, **{name: value}).fit(GRAPH)


def test_runs_of_k_means_that_are_not_made_draw_a_warning() -> None:
    model = FastSpectralClustering(4, eigen_solver="arpack", assign_labels="cluster_qr", n_init=5, random_state=0)
    with pytest.warns(UserWarning, match="n_init=5 has no effect with assign_labels"):
        model.fit(GRAPH)


def test_the_balance_that_was_taken_is_reported() -> None:
    assert CoresetSpectralClustering(4, balance=0.03, random_state=0).fit(GRAPH).balance_ == 0.03
    assert CoresetSpectralClustering(4, refine=False, random_state=0).fit(GRAPH).balance_ == 0.0
    # Bounds do what a fee is for.
    assert CoresetSpectralClustering(4, max_cluster_size=1.2, random_state=0).fit(GRAPH).balance_ == 0.0
