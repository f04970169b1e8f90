"""The graphs of the zoo: neighbour graphs of points, lattices, meshes, trees, communities, pictures, and graphs with flaws.

Every member is made from a seed, so that the same kinds can be tried again on other graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, pi
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp
from scipy.spatial import Delaunay
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_sample_image,
    load_wine,
    make_blobs,
    make_circles,
    make_moons,
    make_s_curve,
)
from sklearn.feature_extraction.image import img_to_graph
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from corecut import make_degree_corrected_sbm, make_sbm, neighbor_graph

Made = tuple[sp.csr_array, Any]
Maker = Callable[[int], Made]
QUICK, DEFAULT, LARGE = range(3)


@dataclass(frozen=True)
class Member:
    """A graph of the zoo: made from a seed; its clusters are known or not.

    `k` of None is the number of true clusters. An `exact` one has clusters so plain that every seed must find them.
    """

    name: str
    make: Maker = field(repr=False)
    k: int | None
    tag: str
    level: int = QUICK
    exact: bool = False


# --- helpers -------------------------------------------------------------------------------------------------------------


def from_edges(n: int, first: Any, second: Any, weights: Any = None) -> sp.csr_array:
    """Return the symmetric matrix of edges given once; repeated ones count once, loops are left out."""
    first, second = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    kept = first != second
    low, high = np.minimum(first, second)[kept], np.maximum(first, second)[kept]
    _, once = np.unique(low * n + high, return_index=True)
    values = np.ones(once.size) if weights is None else np.asarray(weights, dtype=float)[kept][once]
    half = sp.coo_array((values, (low[once], high[once])), shape=(n, n))
    return clean(half + half.T)


def clean(matrix: Any) -> sp.csr_array:
    matrix = sp.csr_array(matrix, dtype=np.float64)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def from_networkx(graph: nx.Graph) -> sp.csr_array:
    return clean(nx.to_scipy_sparse_array(nx.convert_node_labels_to_integers(graph), weight=None, dtype=float))


def union(*graphs: sp.csr_array) -> sp.csr_array:
    return clean(sp.block_diag(graphs, format="csr"))


def parts(*graphs: sp.csr_array) -> Made:
    """Return a graph whose components are the true clusters."""
    return union(*graphs), np.repeat(np.arange(len(graphs)), [graph.shape[0] for graph in graphs])


def shuffled(made: Made, seed: int) -> Made:
    """Put the nodes into no particular order."""
    matrix, truth = made
    order = np.random.default_rng(seed).permutation(matrix.shape[0])
    return clean(matrix[order][:, order]), None if truth is None else np.asarray(truth)[order]


def clique(n: int) -> sp.csr_array:
    return clean(np.ones((n, n)) - np.eye(n))


def random_graph(n: int, degree: float, seed: int) -> sp.csr_array:
    """Return a random graph that is connected by a path through all nodes."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(n, size=(2, int(n * degree / 2)))
    order = rng.permutation(n)
    return from_edges(n, np.r_[ends[0], order[:-1]], np.r_[ends[1], order[1:]])


def near(points: Any, n_neighbors: int = 10, *, loops: bool = True) -> sp.csr_array:
    matrix = neighbor_graph(points, n_neighbors=n_neighbors, n_jobs=1).adjacency
    return clean(matrix if loops else matrix - sp.diags_array(matrix.diagonal()))


# --- points --------------------------------------------------------------------------------------------------------------


def moons(n: int, loops: bool) -> Maker:
    def make(seed: int) -> Made:
        points, truth = make_moons(n, noise=0.05, random_state=seed)
        return near(points, loops=loops), truth

    return make


def circles(n: int, loops: bool) -> Maker:
    def make(seed: int) -> Made:
        points, truth = make_circles(n, noise=0.05, factor=0.5, random_state=seed)
        return near(points, loops=loops), truth

    return make


def rings(n: int, count: int, loops: bool) -> Maker:
    """Concentric rings of equal density."""

    def make(seed: int) -> Made:
        rng = np.random.default_rng(seed)
        sizes = np.full(count, n) * np.arange(1, count + 1) // (count * (count + 1) // 2)
        truth = np.repeat(np.arange(count), sizes)
        angle, radius = rng.uniform(0, 2 * pi, truth.size), truth + 1 + rng.normal(0, 0.08, truth.size)
        return near(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), loops=loops), truth

    return make


def rolls(n: int, height: float) -> Maker:
    """Two rolls wound into each other."""

    def make(seed: int) -> Made:
        rng = np.random.default_rng(seed)
        truth = np.arange(n) % 2
        turn = 1.5 * pi * (1 + 2 * rng.uniform(size=n))
        angle = turn + pi * truth
        points = np.column_stack([turn * np.cos(angle), rng.uniform(0, height, n), turn * np.sin(angle)])
        return near(points + rng.normal(0, 0.15, points.shape)), truth

    return make


def s_curves(n: int) -> Maker:
    """Two narrow ribbons side by side, both bent into an S."""

    def make(seed: int) -> Made:
        points, truth = make_s_curve(n, noise=0.03, random_state=seed)[0], np.arange(n) % 2
        points[:, 1] = points[:, 1] / 4 + 0.9 * truth
        return near(points), truth

    return make


def blobs(sizes: list[int] | int, *, k: int = 3, spread: Any = 1.0, stretch: bool = False, dims: int = 2) -> Maker:
    def make(seed: int) -> Made:
        centers = None if isinstance(sizes, list) else k
        points, truth = make_blobs(sizes, dims, centers=centers, cluster_std=spread, random_state=170 + seed)
        return near(points @ [[0.6, -0.6], [-0.4, 0.8]] if stretch else points), truth

    return make


def unequal_blobs(factor: int) -> Maker:
    """One blob of 1,000 points and ten of 100, all equally dense."""

    def make(seed: int) -> Made:
        rng = np.random.default_rng(seed)
        angle = np.arange(10) * 2 * pi / 10
        centers = np.vstack([[0.0, 0.0], 5.5 * np.column_stack([np.cos(angle), np.sin(angle)])])
        truth = np.repeat(np.arange(11), [1000 * factor] + [100 * factor] * 10)
        spread = np.where(truth == 0, 1.2, 1.2 / 10**0.5)
        return near(centers[truth] + spread[:, None] * rng.normal(size=(truth.size, 2))), truth

    return make


def table(load: Callable[..., Any]) -> Maker:
    def make(seed: int) -> Made:
        del seed
        points, truth = load(return_X_y=True)
        return near(points if load is load_digits else StandardScaler().fit_transform(points)), truth

    return make


def cells(n: int, k: int = 10) -> Maker:
    """Simulate single cells: unequal types, some of them kin, noise in 40 dimensions, weights that fall with distance."""

    def make(seed: int) -> Made:
        rng = np.random.default_rng(seed)
        shares = 0.75 ** np.arange(k)
        truth = np.repeat(np.arange(k), np.ceil(n * shares / shares.sum()).astype(int))[:n]
        families = rng.normal(0, 1.6, size=(ceil(k / 3), 40))
        centers = families[np.arange(k) % len(families)] + rng.normal(0, 0.75, size=(k, 40))
        points = centers[truth] + rng.normal(size=(truth.size, 40)) * rng.uniform(0.8, 1.3, k)[truth, None]
        distances = NearestNeighbors(n_neighbors=15).fit(points).kneighbors_graph(mode="distance").tocoo()
        rows = distances.coords[0]
        width = np.bincount(rows, distances.data) / np.bincount(rows)
        directed = sp.csr_array((np.exp(-((distances.data / width[rows]) ** 2)), distances.coords), shape=distances.shape)
        return clean(0.5 * (directed + directed.T)), truth

    return make


def scattered(n: int, dims: int) -> Maker:
    return lambda seed: (near(np.random.default_rng(seed).uniform(size=(n, dims)), max(10, 2 * dims)), None)


def delaunay(n: int) -> Maker:
    def make(seed: int) -> Made:
        corners = Delaunay(np.random.default_rng(seed).uniform(size=(n, 2))).simplices
        return from_edges(n, corners[:, [0, 1, 2]].ravel(), corners[:, [1, 2, 0]].ravel()), None

    return make


def uneven_mesh(n: int) -> Maker:
    """Return the maker of a mesh that is much finer in one corner."""

    def make(seed: int) -> Made:
        corners = Delaunay(np.random.default_rng(seed).uniform(size=(n, 2)) ** 3).simplices
        return from_edges(n, corners[:, [0, 1, 2]].ravel(), corners[:, [1, 2, 0]].ravel()), None

    return make


# --- lattices and trees --------------------------------------------------------------------------------------------------


def path(n: int) -> sp.csr_array:
    return from_edges(n, np.arange(n - 1), np.arange(1, n))


def cycle(n: int) -> sp.csr_array:
    return from_edges(n, np.arange(n), np.roll(np.arange(n), -1))


def grid(*shape: int, wrap: bool = False) -> sp.csr_array:
    nodes = np.arange(int(np.prod(shape))).reshape(shape)
    first, second = [], []
    for axis, length in enumerate(shape):
        here = nodes if wrap else np.take(nodes, range(length - 1), axis)
        first.append(here.ravel())
        second.append((np.roll(nodes, -1, axis) if wrap else np.take(nodes, range(1, length), axis)).ravel())
    return from_edges(nodes.size, np.concatenate(first), np.concatenate(second))


def triangles(side: int) -> sp.csr_array:
    nodes = np.arange(side * side).reshape(side, side)
    diagonal = from_edges(nodes.size, nodes[:-1, :-1].ravel(), nodes[1:, 1:].ravel())
    return clean(grid(side, side) + diagonal)


def hypercube(dims: int) -> sp.csr_array:
    nodes = np.arange(2**dims)
    return from_edges(nodes.size, np.tile(nodes, dims), np.concatenate([nodes ^ (1 << bit) for bit in range(dims)]))


def balanced_tree(branches: int, n: int) -> sp.csr_array:
    nodes = np.arange(1, n)
    return from_edges(n, nodes, (nodes - 1) // branches)


def random_tree(n: int, recent: int | None = None) -> Maker:
    """Every node hangs on an earlier one: any, or one of the last `recent` (a long tree)."""

    def make(seed: int) -> Made:
        rng, nodes = np.random.default_rng(seed), np.arange(1, n)
        reach = nodes if recent is None else np.minimum(nodes, recent)
        return from_edges(n, nodes, nodes - 1 - (rng.uniform(size=n - 1) * reach).astype(int)), None

    return make


def fixed(matrix: Callable[[], sp.csr_array], *, shuffle: bool = True) -> Maker:
    """Return the maker of a graph that has no seed but the order of its nodes."""
    return lambda seed: shuffled((matrix(), None), seed) if shuffle else (matrix(), None)


# --- communities ---------------------------------------------------------------------------------------------------------


def ring_of_cliques(count: int, size: int) -> sp.csr_array:
    starts = np.arange(count) * size
    links = from_edges(count * size, starts, np.roll(starts, -1) + 1)
    return clean(sp.kron(sp.eye_array(count), clique(size)) + links)


def caveman(count: int, size: int, moved: float | None = None) -> Maker:
    def make(seed: int) -> Made:
        connected = moved is None
        graph = (
            nx.connected_caveman_graph(count, size) if connected else nx.relaxed_caveman_graph(count, size, moved, seed=seed)
        )
        return shuffled((from_networkx(graph), np.repeat(np.arange(count), size)), seed)

    return make


def lfr(n: int, mixing: float, smallest: int = 20, largest: int = 100) -> Maker:
    """Return the maker of a graph after Lancichinetti, Fortunato and Radicchi: power laws of degrees and of sizes.

    Degrees from about 10 to 50, 20 on average. Stubs are matched, so that the share of edges between communities is about
    `mixing`; the generator of networkx gives more (0.45 for 0.3).
    """

    def make(seed: int) -> Made:
        rng = np.random.default_rng(seed)
        degrees = power_law(rng, n, 2.0, 10, 50)
        sizes = power_law(rng, n // smallest, 1.0, smallest, largest)
        sizes = sizes[: int(np.searchsorted(np.cumsum(sizes), n - smallest)) + 1]
        sizes[-1] += n - sizes.sum()
        truth = rng.permutation(np.repeat(np.arange(sizes.size), sizes))
        inner = np.minimum(rng.binomial(degrees, 1 - mixing), sizes[truth] - 1)
        ends = [
            matched(np.repeat(nodes, inner[nodes]), rng)
            for nodes in map(np.flatnonzero, truth == np.arange(sizes.size)[:, None])
        ]
        outer = np.repeat(np.arange(n), degrees - inner)
        while outer.size > 1:
            first, second = matched(outer, rng)
            apart = truth[first] != truth[second]
            if not apart.any():
                break
            ends.append((first[apart], second[apart]))
            outer = np.r_[first[~apart], second[~apart]]
        return from_edges(n, *(np.concatenate(side) for side in zip(*ends, strict=True))), truth

    return make


def power_law(rng: np.random.Generator, count: int, exponent: float, low: int, high: int) -> Any:
    values = np.arange(low, high + 1)
    weights = values**-exponent
    return rng.choice(values, count, p=weights / weights.sum())


def matched(stubs: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Pair stubs at random; an odd one is left out."""
    half = stubs.size // 2
    order = rng.permutation(stubs)
    return order[:half], order[half : 2 * half]


def planted(n: int, k: int, degree: float, mixing: float, sizes: Any = "equal") -> Maker:
    def make(seed: int) -> Made:
        made = make_degree_corrected_sbm(n, k, mean_degree=degree, mixing=mixing, sizes=sizes, random_state=seed)
        return shuffled(made, seed)

    return make


def rare(sizes: list[int], mixing: float, degree: int = 16) -> Maker:
    """Communities of very different sizes and one mean degree; a share of all edges may end anywhere."""

    def make(seed: int) -> Made:
        rng = np.random.default_rng(seed)
        truth, first = np.repeat(np.arange(len(sizes)), sizes), np.cumsum([0, *sizes])
        here = np.repeat(np.arange(truth.size), degree // 2)
        inside = first[truth[here]] + (rng.random(here.size) * np.array(sizes)[truth[here]]).astype(int)
        there = np.where(rng.random(here.size) > mixing, inside, rng.integers(0, truth.size, here.size))
        return shuffled((from_edges(truth.size, here, there), truth), seed)

    return make


def bipartite(n: int, k: int) -> Maker:
    """Communities of customers and their goods, with a tenth of all edges between communities."""

    def make(seed: int) -> Made:
        rng = np.random.default_rng(seed)
        truth, side = rng.integers(k, size=n), rng.uniform(size=n) < 0.3
        goods, customers = np.flatnonzero(side), np.flatnonzero(~side)
        buyer = rng.choice(customers, 8 * customers.size)
        bought = rng.choice(goods, buyer.size)
        for label in range(k):
            loyal = (truth[buyer] == label) & (rng.uniform(size=buyer.size) < 0.9)
            bought[loyal] = rng.choice(goods[truth[goods] == label], int(loyal.sum()))
        return from_edges(n, buyer, bought), truth

    return make


def stars(count: int, leaves: int) -> sp.csr_array:
    """Stars whose hubs form a ring."""
    hubs = np.arange(count)
    tips = np.arange(count, count * (leaves + 1))
    return from_edges(count * (leaves + 1), np.r_[hubs, tips], np.r_[np.roll(hubs, -1), np.repeat(hubs, leaves)])


def hubs(n: int, degree: int) -> Maker:
    return lambda seed: (from_networkx(nx.barabasi_albert_graph(n, degree, seed=seed)), None)


def two_cliques(first: int, second: int) -> Maker:
    def make(seed: int) -> Made:
        matrix, truth = parts(clique(first), clique(second))
        bridge = from_edges(first + second, [0], [first])
        return shuffled((clean(matrix + bridge), truth), seed)

    return make


# --- pictures ------------------------------------------------------------------------------------------------------------


def photo(name: str, step: int, sharpness: float = 5.0) -> Maker:
    """Pixels of a photo, averaged over squares of `step`, tied to their neighbours of similar brightness."""

    def make(seed: int) -> Made:
        del seed
        gray = load_sample_image(name).mean(axis=2)
        height, width = (length // step * step for length in gray.shape)
        small = gray[:height, :width].reshape(height // step, step, width // step, step).mean(axis=(1, 3))
        graph = sp.coo_array(img_to_graph(small))
        slope = np.abs(graph.data)
        off = graph.coords[0] != graph.coords[1]
        weights = np.exp(-sharpness * slope / slope[off].std()) + 1e-6
        return clean(sp.coo_array((weights[off], (graph.coords[0][off], graph.coords[1][off])), shape=graph.shape)), None

    return make


def discs(count: int) -> Maker:
    """Discs that touch, in a noisy picture: the segmentation example of scikit-learn's gallery."""

    def make(seed: int) -> Made:
        x, y = np.indices((100, 100))
        middles = [((28, 24), 16), ((40, 50), 14), ((67, 58), 15), ((24, 70), 14)][:count]
        inside = [(x - a) ** 2 + (y - b) ** 2 < radius**2 for (a, b), radius in middles]
        mask = np.any(inside, axis=0)
        picture = mask + 0.2 * np.random.default_rng(seed).normal(size=mask.shape)
        graph = img_to_graph(picture, mask=mask)
        graph.data = np.exp(-graph.data / graph.data.std())
        return clean(graph), np.argmax(inside, axis=0)[mask]

    return make


# --- flaws ---------------------------------------------------------------------------------------------------------------


def pieces(sizes: list[int], degree: float = 6) -> Maker:
    """Separate random graphs."""

    def make(seed: int) -> Made:
        return shuffled(parts(*(random_graph(size, degree, 1000 * seed + i) for i, size in enumerate(sizes))), seed)

    return make


def with_lone_nodes(make_main: Maker, count: int) -> Maker:
    def make(seed: int) -> Made:
        main, truth = make_main(seed)
        assert truth is not None
        # Isolated nodes belong to no cluster: -1 is not scored.
        return shuffled((union(main, sp.csr_array((count, count))), np.r_[truth, np.full(count, -1)]), seed)

    return make


def weighted(make_main: Maker, weights: Callable[[np.random.Generator, int], Any]) -> Maker:
    """Give the edges other weights."""

    def make(seed: int) -> Made:
        main, truth = make_main(seed)
        upper = sp.triu(main, 1).tocoo()
        values = weights(np.random.default_rng(seed), upper.nnz)
        return from_edges(main.shape[0], *upper.coords, values), truth

    return make


def one_heavy(weight: float) -> Callable[[np.random.Generator, int], Any]:
    def weights(rng: np.random.Generator, count: int) -> Any:
        values = np.ones(count)
        values[rng.integers(count)] = weight
        return values

    return weights


def pairs(count: int) -> Maker:
    """Return the maker of many separate edges."""
    ends = 2 * np.arange(count)
    return lambda seed: shuffled((from_edges(2 * count, ends, ends + 1), np.arange(2 * count) // 2), seed)


def exact_parts(*graphs: Callable[[], sp.csr_array]) -> Maker:
    return lambda seed: shuffled(parts(*(graph() for graph in graphs)), seed)


def chained(sizes: list[int]) -> Maker:
    """Random graphs of unequal size, each tied to the next by one edge."""

    def make(seed: int) -> Made:
        matrix, truth = parts(*(random_graph(size, 10, 1000 * seed + i) for i, size in enumerate(sizes)))
        starts = np.r_[0, np.cumsum(sizes)[:-1]]
        first, second = zip(*pairwise(starts), strict=True)
        return shuffled((clean(matrix + from_edges(matrix.shape[0], first, second)), truth), seed)

    return make


# --- the zoo -------------------------------------------------------------------------------------------------------------


def zoo() -> list[Member]:
    """Return all members; their names are unique."""
    members = [*_points(), *_lattices(), *_communities(), *_pictures(), *_flaws()]
    assert len({member.name for member in members}) == len(members)
    return members


def make_member(name: str, seed: int) -> Made:
    return next(member for member in zoo() if member.name == name).make(seed)


def _points() -> Iterator[Member]:
    for n, level in ((500, QUICK), (3000, QUICK), (20_000, DEFAULT), (50_000, LARGE)):
        for loops in (True, False):
            end = f"{n}" if loops else f"{n}_no_loops"
            yield Member(f"moons_{end}", moons(n, loops), 2, "points", level, exact=True)
            yield Member(f"circles_{end}", circles(n, loops), 2, "points", level, exact=True)
            yield Member(f"rings3_{end}", rings(n, 3, loops), 3, "points", level, exact=True)
    yield Member("rings6_4000", rings(4000, 6, True), 6, "points", QUICK, exact=True)
    yield Member("rings6_30000", rings(30_000, 6, False), 6, "points", DEFAULT, exact=True)
    for n, level in ((1500, QUICK), (4000, QUICK), (20_000, DEFAULT), (100_000, LARGE)):
        yield Member(f"rolls_thin_{n}", rolls(n, 2.0), 2, "points", level, exact=True)
        yield Member(f"rolls_wide_{n}", rolls(n, 21.0), 2, "points", level)
        yield Member(f"s_curves_{n}", s_curves(n), 2, "points", level, exact=True)
    for n, level in ((500, QUICK), (3000, QUICK), (30_000, DEFAULT)):
        yield Member(f"blobs_varied_{n}", blobs(n, spread=[1.0, 2.5, 0.5]), 3, "points", level)
        yield Member(f"blobs_stretched_{n}", blobs(n, stretch=True), 3, "points", level)
        yield Member(f"blobs_k30_10d_{n}", blobs(n, k=30, dims=10, spread=2.5), 30, "points", level)
    yield Member("blobs_10to1_2000", unequal_blobs(1), 11, "points")
    yield Member("blobs_10to1_20000", unequal_blobs(10), 11, "points", DEFAULT)
    yield Member("blobs_rare_1000", blobs([900, 70, 30], dims=10, spread=3.0), 3, "points")
    yield Member("blobs_rare_2300", blobs([2000, 100, 100, 100], dims=10, spread=3.5), 4, "points")
    yield Member("blobs_rare_13600", blobs([8000, 4000, *[200] * 8], dims=15, spread=3.5), 10, "points", DEFAULT)
    yield Member("blobs_sizes_2000", blobs([1000, 500, 300, 150, 50], spread=0.9), 5, "points")
    for name, load in (
        ("digits", load_digits),
        ("iris", load_iris),
        ("wine", load_wine),
        ("breast_cancer", load_breast_cancer),
    ):
        yield Member(name, table(load), None, "points")
    for n, level in ((700, QUICK), (3000, QUICK), (20_000, DEFAULT)):
        yield Member(f"cells_{n}", cells(n), 10, "points", level)
    for n, dims, k, level in (
        (2000, 2, 2, QUICK),
        (3000, 2, 12, QUICK),
        (3000, 3, 8, QUICK),
        (3000, 10, 5, QUICK),
        (20_000, 2, 2, DEFAULT),
        (20_000, 3, 16, DEFAULT),
        (20_000, 10, 10, DEFAULT),
        (100_000, 2, 20, LARGE),
        (100_000, 3, 50, LARGE),
    ):
        yield Member(f"scattered_{dims}d_{n}_k{k}", scattered(n, dims), k, "points", level)


def _lattices() -> Iterator[Member]:
    for n, k, level in ((100, 3, QUICK), (2000, 2, QUICK), (1500, 10, QUICK), (20_000, 8, DEFAULT), (100_000, 2, LARGE)):
        yield Member(f"path_{n}_k{k}", fixed(lambda n=n: path(n)), k, "lattices", level)
    for n, k, level in ((300, 2, QUICK), (2000, 4, QUICK), (3000, 25, QUICK), (50_000, 4, DEFAULT)):
        yield Member(f"cycle_{n}_k{k}", fixed(lambda n=n: cycle(n)), k, "lattices", level)
    for shape, k, level in (
        ((10, 10), 4, QUICK),
        ((45, 45), 2, QUICK),
        ((64, 64), 16, QUICK),
        ((10, 400), 8, QUICK),
        ((4, 1000), 3, QUICK),
        ((15, 15, 15), 8, QUICK),
        ((100, 100), 9, DEFAULT),
        ((300, 300), 2, LARGE),
        ((10, 3000), 8, DEFAULT),
        ((30, 30, 30), 10, DEFAULT),
        ((300, 300), 40, LARGE),
    ):
        name = "x".join(str(length) for length in shape)
        yield Member(f"grid_{name}_k{k}", fixed(lambda shape=shape: grid(*shape)), k, "lattices", level)
    yield Member("grid_in_order_50x50_k5", fixed(lambda: grid(50, 50), shuffle=False), 5, "lattices")
    yield Member("torus_60x60_k4", fixed(lambda: grid(60, 60, wrap=True)), 4, "lattices")
    yield Member("torus_200x200_k10", fixed(lambda: grid(200, 200, wrap=True)), 10, "lattices", DEFAULT)
    for side, k, level in ((40, 4, QUICK), (65, 9, QUICK), (120, 4, DEFAULT), (300, 4, LARGE)):
        yield Member(f"triangles_{side}_k{k}", fixed(lambda side=side: triangles(side)), k, "lattices", level)
    for dims, k, level in ((8, 4, QUICK), (10, 2, QUICK), (12, 16, QUICK), (11, 2, QUICK), (14, 2, DEFAULT), (16, 8, LARGE)):
        yield Member(f"hypercube_{dims}_k{k}", fixed(lambda dims=dims: hypercube(dims)), k, "lattices", level)
    for n, k, level in ((500, 3, QUICK), (3000, 8, QUICK), (5000, 32, QUICK), (20_000, 2, DEFAULT), (100_000, 20, LARGE)):
        yield Member(f"delaunay_{n}_k{k}", delaunay(n), k, "lattices", level)
    yield Member("uneven_mesh_4000_k6", uneven_mesh(4000), 6, "lattices")
    yield Member("uneven_mesh_30000_k12", uneven_mesh(30_000), 12, "lattices", DEFAULT)
    for branches, n, k, level in ((2, 1023, 4, QUICK), (3, 3280, 9, QUICK), (2, 4095, 2, QUICK), (2, 65_535, 16, LARGE)):
        name = f"tree_{branches}ary_{n}_k{k}"
        yield Member(name, fixed(lambda b=branches, n=n: balanced_tree(b, n)), k, "lattices", level)
    for n, k, level in ((1000, 5, QUICK), (5000, 20, QUICK), (50_000, 10, DEFAULT)):
        yield Member(f"random_tree_{n}_k{k}", random_tree(n), k, "lattices", level)
        yield Member(f"long_tree_{n}_k{k}", random_tree(n, 20), k, "lattices", level)


def _communities() -> Iterator[Member]:
    for count, size, k, level in (
        (20, 6, 20, QUICK),
        (100, 10, 10, QUICK),
        (300, 10, 2, QUICK),
        (2000, 10, 2, DEFAULT),
        (5000, 10, 50, LARGE),
    ):
        name = f"ring_of_cliques_{count}x{size}_k{k}"
        yield Member(name, fixed(lambda count=count, size=size: ring_of_cliques(count, size)), k, "communities", level)
    yield Member("caveman_20x20", caveman(20, 20), None, "communities")
    yield Member("caveman_relaxed_30x30", caveman(30, 30, 0.2), None, "communities")
    yield Member("caveman_relaxed_45x60", caveman(45, 60, 0.4), None, "communities")
    for step in range(1, 8):
        yield Member(f"lfr_1000_m{step / 10:g}", lfr(1000, step / 10), None, "communities")
    for mixing in (0.5, 0.6):
        yield Member(f"lfr_3000_m{mixing:g}", lfr(3000, mixing, 40, 300), None, "communities")
    for mixing in (0.3, 0.56, 0.65):
        yield Member(f"lfr_5000_m{mixing:g}", lfr(5000, mixing, 50, 500), None, "communities", DEFAULT)
    for mixing in (0.2, 0.5):
        yield Member(f"lfr_20000_m{mixing:g}", lfr(20_000, mixing, 200, 2000), None, "communities", DEFAULT)
    for mixing in (0.1, 0.3):
        yield Member(f"lfr_skewed_2000_m{mixing:g}", lfr(2000, mixing, 10, 800), None, "communities")
    yield Member("lfr_skewed_20000_m0.2", lfr(20_000, 0.2, 50, 8000), None, "communities", DEFAULT)
    for sizes, mixing in (([2000, 100, 100, 100], 0.02), ([2000, 100, 100, 100], 0.3), ([3000, 30, 30], 0.1)):
        yield Member(f"rare_{sum(sizes)}_k{len(sizes)}_m{mixing:g}", rare(sizes, mixing), len(sizes), "communities")
    yield Member("rare_2400_k10_m0.3", rare([1000, 1000, *[50] * 8], 0.3), 10, "communities")
    skewed = [1001, 802, 594, 368, 347, 200, 150, 120, 100, 80, 70, 60, 50, 40, 40, 30, 30, 20, 20, 15]
    yield Member("rare_4137_k20_m0.2", rare(skewed, 0.2), 20, "communities")
    yield Member("rare_41370_k20_m0.2", rare([10 * size for size in skewed], 0.2), 20, "communities", DEFAULT)
    yield Member("planted_3000_k20_m0.3", planted(3000, 20, 12, 0.3), 20, "communities")
    yield Member("planted_5000_k10_m0.3_unequal", planted(5000, 10, 10, 0.3, "powerlaw"), 10, "communities")
    yield Member("planted_30000_k30_m0.3_unequal", planted(30_000, 30, 12, 0.3, "powerlaw"), 30, "communities", DEFAULT)
    yield Member("block_model_2000_k5", lambda seed: make_sbm(400, 5, 0.1, 0.01, random_state=seed), 5, "communities")
    yield Member("bipartite_2000_k5", bipartite(2000, 5), 5, "communities")
    yield Member("bipartite_20000_k12", bipartite(20_000, 12), 12, "communities", DEFAULT)
    yield Member(
        "bipartite_complete_60_90_k2", fixed(lambda: from_networkx(nx.complete_bipartite_graph(60, 90))), 2, "communities"
    )
    yield Member("stars_10x100_k10", fixed(lambda: stars(10, 100)), 10, "communities")
    yield Member("stars_50x60_k4", fixed(lambda: stars(50, 60)), 4, "communities")
    yield Member("one_star_400_k3", fixed(lambda: stars(1, 400)), 3, "communities")
    yield Member("hubs_3000_k8", hubs(3000, 3), 8, "communities")
    yield Member("hubs_1000_k2", hubs(1000, 2), 2, "communities")
    yield Member("hubs_30000_k20", hubs(30_000, 4), 20, "communities", DEFAULT)
    yield Member("hubs_and_planted_4000_k8", planted(4000, 8, 6, 0.15, "powerlaw"), 8, "communities")
    yield Member("random_2000_k4", lambda seed: (random_graph(2000, 6, seed), None), 4, "communities")
    yield Member("complete_16_k10", fixed(lambda: clique(16)), 10, "communities")
    yield Member("complete_150_k5", fixed(lambda: clique(150)), 5, "communities")
    for first, second, level in ((50, 50, QUICK), (200, 20, QUICK), (600, 600, QUICK), (30, 6, QUICK), (1500, 100, DEFAULT)):
        yield Member(f"two_cliques_{first}_{second}", two_cliques(first, second), 2, "communities", level, exact=True)


def _pictures() -> Iterator[Member]:
    for name in ("china", "flower"):
        for step, k, level in ((10, 8, QUICK), (5, 20, DEFAULT), (2, 25, LARGE)):
            yield Member(f"photo_{name}_{step}_k{k}", photo(f"{name}.jpg", step), k, "pictures", level)
            yield Member(f"photo_soft_{name}_{step}_k{k}", photo(f"{name}.jpg", step, 1.0), k, "pictures", level)
    yield Member("discs_2", discs(2), 2, "pictures")
    yield Member("discs_4", discs(4), 4, "pictures")


def _flaws() -> Iterator[Member]:
    tag = "flaws"
    yield Member("parts_3_equal", pieces([700] * 3), 3, tag, exact=True)
    yield Member("parts_12_unequal", pieces([1500, 800, 400, 200, 100, 90, 80, 70, 60, 50, 40, 30]), 12, tag, exact=True)
    yield Member("parts_cliques_1000_20_20", exact_parts(lambda: clique(1000), *[lambda: clique(20)] * 2), 3, tag, exact=True)
    yield Member("parts_two_paths_1000", exact_parts(*[lambda: path(1000)] * 2), 2, tag, exact=True)
    yield Member(
        "parts_path_clique_grid", exact_parts(lambda: path(800), lambda: clique(60), lambda: grid(30, 30)), 3, tag, exact=True
    )
    yield Member("parts_30_k10", pieces([60] * 30), 10, tag)
    yield Member("parts_30_k45", pieces([60] * 30), 45, tag)
    yield Member("parts_3_k6", pieces([900, 600, 300]), 6, tag)
    yield Member("parts_one_large_300_tiny_k5", pieces([3000] + [3] * 300), 5, tag)
    yield Member("parts_large_and_pairs_k10", pieces([2000, 1000] + [2] * 400, 8), 10, tag)
    yield Member("parts_pairs_2000_k50", pairs(2000), 50, tag)
    yield Member(
        "parts_8_unequal_40000", pieces([20_000, 10_000, 5000, 2500, 1200, 800, 400, 100]), 8, tag, DEFAULT, exact=True
    )
    yield Member(
        "parts_two_grids_20000", exact_parts(lambda: grid(100, 100), lambda: grid(20, 500)), 2, tag, DEFAULT, exact=True
    )
    yield Member("parts_pairs_20000_k50", pairs(20_000), 50, tag, DEFAULT)
    yield Member("chained_1000_to_20", chained([1000, 500, 250, 120, 60, 30, 20]), 7, tag)
    yield Member("chained_20000_to_300", chained([20_000, 6000, 2000, 600, 300]), 5, tag, DEFAULT)
    yield Member("lone_600_and_1800_k2", with_lone_nodes(planted(600, 2, 8, 0.1), 1800), 2, tag)
    yield Member("lone_3000_and_500_k10", with_lone_nodes(planted(3000, 10, 10, 0.2), 500), 10, tag)
    yield Member("lone_20000_and_60000_k2", with_lone_nodes(planted(20_000, 2, 8, 0.1), 60_000), 2, tag, DEFAULT)
    ten = planted(3000, 10, 12, 0.2)
    yield Member("weights_lognormal_3000", weighted(ten, lambda rng, count: rng.lognormal(0, 4, count)), 10, tag)
    yield Member("weights_1e-12_to_1e12", weighted(ten, lambda rng, count: 10.0 ** rng.uniform(-12, 12, count)), 10, tag)
    yield Member("weights_one_1e8", weighted(ten, one_heavy(1e8)), 10, tag)
    yield Member("weights_one_1e12_k50", weighted(planted(4000, 50, 12, 0.2), one_heavy(1e12)), 50, tag)
    yield Member("weights_all_1e-300", weighted(ten, lambda rng, count: np.full(count, 1e-300)), 10, tag)
    yield Member("weights_all_1e-320", weighted(planted(200, 4, 8, 0.1), lambda rng, count: np.full(count, 1e-320)), 4, tag)
    yield Member("weights_one_1e8_20000", weighted(planted(20_000, 10, 12, 0.2), one_heavy(1e8)), 10, tag, DEFAULT)
    yield Member(
        "weights_grid_lognormal", weighted(fixed(lambda: grid(50, 50)), lambda rng, count: rng.lognormal(0, 2, count)), 6, tag
    )
