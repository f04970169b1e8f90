"""The graphs of the benchmark of sparse graphs: real ones, planted ones, and neighbour graphs of real points."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from measure import in_child

from corecut import make_degree_corrected_sbm, neighbor_graph, read_graph
from corecut.datasets.points import load_points

#: Number of clusters asked for in each real graph.
REAL = {
    "email_eu_core": 42,
    "amazon_photo": 8,
    "cord19_entities": 9,
    "uk_2007_05_100k": 100,
    "com_dblp": 500,
    "js_dependencies_2017": 100,
}

#: Neighbours of each point, itself included, and number of classes.
NEIGHBORS = {"pendigits": (250, 10), "letter": (300, 26), "har": (200, 6), "mnist": (500, 10)}


@dataclass(frozen=True)
class Planted:
    """A planted graph with power-law degrees, whose nodes are in no particular order."""

    n_nodes: int
    n_clusters: int
    mean_degree: float
    mixing: float
    sizes: Literal["equal", "powerlaw"] = "equal"

    @property
    def name(self) -> str:
        sizes = "equal" if self.sizes == "equal" else "unequal"
        return f"planted_{self.n_nodes // 1000}k_k{self.n_clusters}_d{self.mean_degree:g}_m{self.mixing:g}_{sizes}"

    def make(self, dtype: type = np.float64) -> tuple[sp.csr_array, Any]:
        settings: Any = {"mean_degree": self.mean_degree, "mixing": self.mixing, "sizes": self.sizes, "dtype": dtype}
        graph, truth = make_degree_corrected_sbm(self.n_nodes, self.n_clusters, random_state=0, **settings)
        order = np.random.default_rng(1).permutation(self.n_nodes)
        shuffled = graph[order][:, order]
        shuffled.sort_indices()
        return shuffled, truth[order]


#: The planted graphs that a clustering is judged by.
EQUAL, UNEQUAL = (Planted(400_000, 500, 16, 0.3, sizes) for sizes in ("equal", "powerlaw"))
DENSER = Planted(100_000, 100, 49, 0.17)
MANY = Planted(200_000, 4000, 44, 0.18)

PLANTED = [
    Planted(50_000, 10, 8, 0.1),
    Planted(50_000, 10, 8, 0.3, "powerlaw"),
    Planted(100_000, 100, 8, 0.2, "powerlaw"),
    Planted(100_000, 100, 16, 0.4),
    Planted(100_000, 1000, 16, 0.2, "powerlaw"),
    Planted(100_000, 1000, 49, 0.4),
    EQUAL,
    UNEQUAL,
    DENSER,
    MANY,
]

#: Small ones, for a quick look.
QUICK = [Planted(20_000, 20, 16, 0.3), Planted(20_000, 20, 16, 0.3, "powerlaw")]


@dataclass(frozen=True)
class Problem:
    """A graph to be clustered: made when it is needed, and not kept."""

    name: str
    n_clusters: int
    make: Callable[[], tuple[sp.csr_array, Any]] = field(repr=False)


def real(name: str) -> Problem:
    return Problem(name, REAL[name], partial(_read, name))


def planted(graph: Planted) -> Problem:
    return Problem(graph.name, graph.n_clusters, graph.make)


def neighbors(name: str) -> Problem:
    return Problem(f"{name}_{NEIGHBORS[name][0]}nn", NEIGHBORS[name][1], partial(_neighbors_of, name))


def data_folder() -> Path | None:
    named = os.environ.get("CORECUT_DATA")
    return Path(named) if named else None


def _read(name: str) -> tuple[sp.csr_array, Any]:
    folder = data_folder()
    assert folder is not None
    path = folder / f"{name}.npz"
    with np.load(path) as archive:
        truth = archive["y"] if "y" in archive.files else None
    return read_graph(path).adjacency, truth


def _neighbors_of(name: str) -> tuple[sp.csr_array, Any]:
    points, classes = load_points(name)
    return neighbor_matrix(points.astype(np.float32), NEIGHBORS[name][0]), classes


def neighbor_matrix(points: Any, n_neighbors: int) -> sp.csr_array:
    # In a process of its own: threads that the search has started would block the processes forked after it.
    run = in_child(lambda _: neighbor_graph(points, n_neighbors=n_neighbors).adjacency)
    if run.failed:
        raise RuntimeError(run.failed)
    matrix: sp.csr_array = run.result
    return matrix
