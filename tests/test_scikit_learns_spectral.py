"""scikit-learn's own tests of spectral clustering, with its class swapped for ours.

Each passes, or is in REFUSED with the reason, which the table of docs/migration/scikit-learn.md gives to users too.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.exceptions import NotFittedError

from corecut import CoresetSpectralClustering

# Its points lie so far apart that their neighbour graphs do, too.
pytestmark = pytest.mark.filterwarnings("ignore:the graph is not fully connected")

MIGRATION = Path(__file__).parents[1] / "docs" / "migration" / "scikit-learn.md"

try:
    theirs: Any = importlib.import_module("sklearn.cluster.tests.test_spectral")
except ImportError:  # a scikit-learn without its tests
    pytest.skip("scikit-learn is installed without its tests", allow_module_level=True)
theirs.SpectralClustering = CoresetSpectralClustering

# What of a test's name is refused or different, how that shows, and the row of docs/migration/scikit-learn.md that says why.
DIFFERENT: dict[str, tuple[type[BaseException], str]] = {
    "lobpcg": (ValueError, '`eigen_solver="lobpcg"`, `"amg"`'),
    "affinities": (UserWarning, "`gamma` beside another affinity"),
    "verbose": (AssertionError, "`verbose`"),
    "discretize": (ValueError, '`assign_labels="discretize"`'),
}


def uses_the_class(test: Any) -> bool:
    return "SpectralClustering" in inspect.getsource(test)


for _name, _test in vars(theirs).items():
    if _name.startswith("test_") and uses_the_class(_test):
        globals()[_name] = _test


@pytest.fixture
def global_random_seed() -> int:
    """Return the seed that scikit-learn's tests take from their own configuration."""
    return 42


@pytest.fixture(autouse=True)
def listed(request: pytest.FixtureRequest) -> None:
    """Expect a refusal where the table has one."""
    for part, (error, row) in DIFFERENT.items():
        if request.function.__module__ == theirs.__name__ and re.search(rf"(?<![a-z]){part}(?![a-z])", request.node.name):
            request.applymarker(pytest.mark.xfail(reason=row, raises=error, strict=True))
            return


@pytest.mark.parametrize("row", [row for _, row in DIFFERENT.values()])
def test_the_migration_table_names_it(row: str) -> None:
    assert f"| {row}" in MIGRATION.read_text(encoding="utf-8")


def test_kernels_and_functions_are_taken() -> None:
    """What is left of `test_affinities` behind its first difference."""
    X = np.random.RandomState(10).rand(10, 5) * 10
    for name in theirs.kernel_metrics():
        if name == "additive_chi2":
            with pytest.raises(ValueError, match="is not offered: use"):
                CoresetSpectralClustering(2, affinity=name).fit(X)
        else:
            assert CoresetSpectralClustering(2, affinity=name, random_state=0).fit(X).labels_.shape == (10,)
    for affinity in (lambda x, y: 1, lambda x, y: np.minimum(x, y).sum()):
        assert CoresetSpectralClustering(2, affinity=affinity, random_state=0).fit(X).labels_.shape == (10,)


KERNELS: list[tuple[str, dict[str, Any]]] = [
    ("cosine", {}),
    ("laplacian", {"gamma": 0.3}),
    ("poly", {"degree": 2, "coef0": 2.0, "gamma": 0.1}),
    ("sigmoid", {"gamma": 0.01, "coef0": 0.5}),
    ("chi2", {"gamma": 0.4}),
    ("linear", {}),
]


@pytest.mark.parametrize(("affinity", "settings"), KERNELS)
def test_kernels_are_those_of_scikit_learn(affinity: str, settings: dict[str, Any]) -> None:
    X = np.abs(np.random.RandomState(0).normal(size=(40, 4))) + np.repeat([[0.0], [4.0]], 20, axis=0)
    ours = CoresetSpectralClustering(2, affinity=affinity, random_state=0, **settings).fit(X)
    peer = SpectralClustering(2, affinity=affinity, random_state=0, **settings).fit(X)
    np.testing.assert_allclose(ours.affinity_matrix_.toarray(), peer.affinity_matrix_, rtol=1e-12)


def test_arguments_of_a_function() -> None:
    def affinity(x: np.ndarray, y: np.ndarray, scale: float) -> float:
        return float(np.exp(-scale * np.abs(x - y).sum()))

    X = np.random.RandomState(0).normal(size=(20, 2))
    settings: dict[str, Any] = {"affinity": affinity, "kernel_params": {"scale": 0.5}, "random_state": 0}
    ours, peer = CoresetSpectralClustering(2, **settings).fit(X), SpectralClustering(2, **settings).fit(X)
    np.testing.assert_allclose(ours.affinity_matrix_.toarray(), peer.affinity_matrix_, rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"assign_labels": "discretize"}, 'assign_labels="discretize" of scikit-learn is not offered here: .* use "kmeans"'),
        ({"eigen_solver": "lobpcg"}, 'eigen_solver="lobpcg" of scikit-learn is not offered here: .* use "arpack"'),
        ({"eigen_solver": "amg"}, 'eigen_solver="amg" of scikit-learn is not offered here: .* use "arpack"'),
        ({"eigen_tol": 1e-4}, 'eigen_tol=0.0001 is not offered: .* leave it at "auto"'),
        (
            {"affinity": "cosine"},
            "affinity='cosine' is negative between points .* make the points non-negative, or",
        ),
        ({"affinity": "poly", "degree": -1}, "degree must be a finite number not below 0"),
        ({"affinity": "poly", "coef0": np.inf}, "coef0 must be a finite number"),
    ],
)
def test_what_is_refused_says_what_to_use(settings: dict[str, Any], words: str) -> None:
    X = np.random.RandomState(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=words):
        CoresetSpectralClustering(2, **settings).fit(X)
    with pytest.raises(TypeError, match="kernel_params must be a dict"):
        CoresetSpectralClustering(2, kernel_params=[1]).fit(X)


@pytest.mark.parametrize("name", sorted(SpectralClustering().get_params()))
def test_every_parameter_of_scikit_learn_is_known(name: str) -> None:
    default = SpectralClustering().get_params()[name]
    CoresetSpectralClustering(**{name: default}).check_parameters()


def test_the_affinity_matrix_is_there_where_it_costs_nothing() -> None:
    X = np.random.RandomState(0).normal(size=(60, 2))
    model = CoresetSpectralClustering(2, n_neighbors=10, random_state=0).fit(X)
    peer = SpectralClustering(2, affinity="nearest_neighbors", n_neighbors=10, random_state=0).fit(X)
    assert abs(model.affinity_matrix_ - peer.affinity_matrix_).max() == 0
    given = model.affinity_matrix_
    again = CoresetSpectralClustering(2, random_state=0).fit(given)
    assert np.shares_memory(again.affinity_matrix_.indices, given.indices)
    for without in (
        pickle.loads(pickle.dumps(again)),
        CoresetSpectralClustering(2, affinity="precomputed", random_state=0).fit(given.toarray()),
    ):
        with pytest.raises(AttributeError, match=r"affinity_matrix_ was not kept.*Graph\.from_matrix"):
            _ = without.affinity_matrix_
    with pytest.raises(NotFittedError):
        _ = CoresetSpectralClustering(2).affinity_matrix_
