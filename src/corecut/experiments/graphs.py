"""The experiments' graphs: recipes, and stores in which a graph is kept once it is made.

All graphs have a self-loop at every node, because the published method expects that; nearest-neighbour graphs have them by
themselves, the others get loops of weight 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from corecut._files import atomic_file, physical_memory, show_size
from corecut._typing import AnyArray, LabelArray
from corecut.datasets.planted import PlantedLaw, make_sbm
from corecut.datasets.points import load_points
from corecut.datasets.stores import planted_store
from corecut.graph import Graph
from corecut.neighbors import neighbor_graph
from corecut.readers.dispatch import load_graph
from corecut.store import GraphStore


class Recipe(Protocol):
    """How to make a graph."""

    @property
    def name(self) -> str:
        """Name of the graph, which says everything that it depends on."""

    def make(self, store: Path) -> LabelArray | None:
        """Make the store, and return the classes of the nodes where there are any."""


@dataclass(frozen=True)
class BlockModel:
    """Clusters of equal size, p = 0.5 inside and q = 0.001/k between them: the paper's third experiment."""

    n_clusters: int
    n_per_cluster: int = 1000

    @property
    def name(self) -> str:
        """Name of the graph."""
        return f"block model, {self.n_clusters} clusters of {self.n_per_cluster}"

    def make(self, store: Path) -> LabelArray:
        """Draw the graph; its seed is k."""
        k = self.n_clusters
        matrix, labels = make_sbm(self.n_per_cluster, k, 0.5, 0.001 / k, random_state=k, dtype=np.uint8)
        GraphStore.write(with_loops(matrix), store, overwrite=True)
        return labels


@dataclass(frozen=True)
class StandIn:
    """A planted graph with power-law degrees and the numbers of nodes and edges of a known graph, or a share of both."""

    of: str
    scale: float

    SIZES: ClassVar[dict[str, tuple[int, int]]] = {
        "wiki-topcats": (1_791_489, 28_511_807),
        "LiveJournal": (3_997_962, 34_681_189),
        "Friendster": (65_608_366, 1_806_067_135),
    }

    @property
    def name(self) -> str:
        """Name of the graph."""
        return f"{self.of} stand-in" + ("" if self.scale == 1 else f" × {self.scale:g}")

    def make(self, store: Path) -> None:
        """Draw the graph in pieces, within 2 GB of memory."""
        nodes, edges = self.SIZES[self.of]
        n = max(2, round(nodes * self.scale))
        # Communities of a few thousand nodes; the coreset's cost does not depend on them.
        law = PlantedLaw.of(n, max(1, n // 4000), mean_degree=2 * edges / nodes, mixing=0.3, random_state=0)
        planted_store(law, store, loops=True, overwrite=True)


@dataclass(frozen=True)
class NeighborGraph:
    """The nearest-neighbour graph of a real set of points, or of as many of them as are wanted, drawn at random."""

    data: str
    title: str
    n_neighbors: int
    n_points: int | None = None
    folder: Path | None = None

    @property
    def name(self) -> str:
        """Name of the graph."""
        some = "" if self.n_points is None else f" of {self.n_points:,} points"
        return f"{self.title}, {self.n_neighbors}-NN{some}"

    def make(self, store: Path) -> LabelArray:
        """Search the neighbours."""
        points, classes = load_points(self.data, self.folder)
        if self.n_points is not None and self.n_points < classes.size:
            some = np.sort(np.random.default_rng(0).choice(classes.size, self.n_points, replace=False))
            points, classes = points[some], classes[some]
        # The paper's "k nearest neighbours" as scikit-learn counts them: the point itself is the first.
        GraphStore.write(neighbor_graph(points.astype(np.float32), n_neighbors=self.n_neighbors), store, overwrite=True)
        return classes


@dataclass(frozen=True)
class GraphFile:
    """A graph of the user's own, made undirected."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the graph; with the size, so that another file of that name is another graph."""
        return f"{self.path.name} ({self.path.stat().st_size:,} bytes)"

    def make(self, store: Path) -> None:
        """Read the file."""
        graph, _ = load_graph(self.path, symmetrize="max")
        GraphStore.write(with_loops(graph.adjacency), store, overwrite=True)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A graph that is ready to be measured on.

    Attributes
    ----------
    graph
        Mapped from its store.
    classes
        True cluster of every node, where it is known.
    """

    graph: Graph
    classes: LabelArray | None

    @cached_property
    def matrix(self) -> sp.csr_matrix:
        """The graph in the one format that every library takes."""
        graph = self.graph
        data = np.ones(graph.n_entries) if graph.weights is None else graph.weights.astype(np.float64)
        # scipy would widen the indices to match a wide indptr.
        indptr = graph.indptr.astype(np.int32) if graph.n_entries < 2**31 else graph.indptr
        matrix = sp.csr_matrix((data, graph.indices, indptr), shape=(graph.n_nodes, graph.n_nodes))
        matrix.has_canonical_format = True  # spares every library the pass to find out
        return matrix

    @cached_property
    def wide_arrays(self) -> tuple[AnyArray, ...]:
        """The graph as coreset-sc's native functions take it: values, 64-bit indices, row borders and lengths, degrees."""
        needed, memory = 20 * self.graph.n_entries, physical_memory() or 0
        if memory and needed > memory / 2:
            raise MemoryError(f"its copy of the graph takes {show_size(needed)}, more than half of this machine's memory")
        matrix = self.matrix
        borders = matrix.indptr.astype(np.uintp)
        return matrix.data, matrix.indices.astype(np.uintp), borders, np.diff(borders), self.graph.degrees.copy()

    @property
    def n_classes(self) -> int:
        """Number of true clusters."""
        assert self.classes is not None
        return int(self.classes.max()) + 1


def prepare(recipe: Recipe, folder: Path) -> Prepared:
    """Return a graph, from its store in `folder` where it has been made before."""
    stem = re.sub(r"[^A-Za-z0-9.]+", "-", recipe.name).strip("-")
    store, truth = folder / f"{stem}.store", folder / f"{stem}.classes.npy"
    if not GraphStore.is_store(store):
        # The store gets its name last: where it is, the classes are too, even if this process is killed.
        new = folder / f"{stem}.new.store"
        classes = recipe.make(new)
        if classes is not None:
            with atomic_file(truth) as temporary, temporary.open("wb") as stream:
                np.save(stream, classes)
        new.rename(store)
    return Prepared(GraphStore.open(store).graph, np.load(truth) if truth.exists() else None)


def with_loops(matrix: sp.csr_array) -> Graph:
    """Return a graph with a self-loop of weight 1 at every node that has none."""
    missing = (matrix.diagonal() == 0).astype(matrix.dtype)
    return Graph.from_matrix(sp.csr_array(matrix + sp.diags_array(missing, format="csr", dtype=matrix.dtype)))
