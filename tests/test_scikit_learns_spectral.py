"""scikit-learn's own tests of spectral clustering, with its class swapped for ours.

Each passes, or is in REFUSED with the reason, which the migration table of docs/migration.md gives to users too.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corecut import CoresetSpectralClustering

# Its points lie so far apart that their neighbour graphs do, too.
pytestmark = pytest.mark.filterwarnings("ignore:the graph is not fully connected")

MIGRATION = Path(__file__).parents[1] / "docs" / "migration.md"

try:
    theirs: Any = importlib.import_module("sklearn.cluster.tests.test_spectral")
except ImportError:  # a scikit-learn without its tests
    pytest.skip("scikit-learn is installed without its tests", allow_module_level=True)
theirs.SpectralClustering = CoresetSpectralClustering

# What of a test's name is refused or different, how that shows, and the row of docs/migration.md that says why.
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


def test_kernels_of_scikit_learn_are_refused_and_functions_are_not() -> None:
    """What is left of `test_affinities` behind its first difference."""
    X = np.random.RandomState(10).rand(10, 5) * 10
    for name in theirs.kernel_metrics():
        if name != "rbf":
            with pytest.raises(ValueError, match="is not offered: use"):
                CoresetSpectralClustering(2, affinity=name).fit(X)
    for affinity in (lambda x, y: 1, lambda x, y: np.minimum(x, y).sum()):
        assert CoresetSpectralClustering(2, affinity=affinity, random_state=0).fit(X).labels_.shape == (10,)
