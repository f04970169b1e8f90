"""Fixtures for all tests: problems with dense twins, a graph of several blocks, real data where it is to be had."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import problems
import pytest
import scipy.sparse as sp
from hypothesis import settings

from corecut import KernelView

# Examples are derived from the test alone, so that a run repeats; deadlines would only measure how busy the machine is.
settings.register_profile("corecut", derandomize=True, deadline=None, max_examples=60, print_blob=True)
settings.load_profile("corecut")


def pytest_configure(config: pytest.Config) -> None:
    """Know the marks of scikit-learn's tests, which test_scikit_learns_spectral.py runs."""
    config.addinivalue_line("markers", "no_check_spmatrix: scikit-learn's, of no meaning here")


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator with a fixed seed."""
    return np.random.default_rng(20250)


@pytest.fixture(params=["naive", "tree", "rejection"])
def method(request: pytest.FixtureRequest) -> str:
    """Every sampler."""
    return str(request.param)


@pytest.fixture(params=["tree", "rejection"])
def fast_method(request: pytest.FixtureRequest) -> str:
    """Every sampler that looks at the neighbours of its seeds only."""
    return str(request.param)


@pytest.fixture(params=["cluster", "seeds"])
def importance(request: pytest.FixtureRequest) -> str:
    """Both forms of the sensitivity."""
    return str(request.param)


@pytest.fixture(params=list(problems.SMALL))
def problem(request: pytest.FixtureRequest) -> problems.Problem:
    """Every small problem."""
    return problems.SMALL[request.param]()


@pytest.fixture(scope="session")
def planted() -> tuple[KernelView, np.ndarray]:
    """Return a planted graph of 8,000 nodes with self-loops as a kernel, and its clusters."""
    graph, labels = problems.planted_graph(np.random.default_rng(11), [2500, 2000, 1500, 1200, 800], loops=True)
    return KernelView.from_graph(graph, shift=0.0), labels


@pytest.fixture(scope="session")
def many_blocks() -> sp.csr_array:
    """Return a graph so large that every stage splits its work into several blocks; a few nodes are isolated."""
    graph, _ = problems.planted_graph(np.random.default_rng(12), [70_000, 50_000, 30_000], degree=4.0)
    return graph


@pytest.fixture(scope="session")
def dataset() -> Callable[[str], sp.csr_array]:
    """Return a loader of real graphs by name from the folder that CORECUT_DATA names."""

    def load(name: str) -> sp.csr_array:
        folder = os.environ.get("CORECUT_DATA")
        if not folder:
            pytest.skip("CORECUT_DATA does not name a folder with real datasets")
        path = Path(folder) / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"CORECUT_DATA holds no {name}.npz")
        with np.load(path) as archive:
            n, src, dst = int(archive["n"]), archive["src"], archive["dst"]
            weights = archive["w"].astype(np.float64) if "w" in archive.files else np.ones(src.size)
        half = sp.coo_array((weights, (src, dst)), shape=(n, n))
        return sp.csr_array(half + half.T)

    return load
