"""The points nearest to a point by Euclidean distance: exactly, or nearly so and faster.

A map that never lengthens a distance is laid over the points: z(x) = (Vᵀ(x - c), ‖(I - VVᵀ)(x - c)‖) for a few directions V in
which the points vary most and a centre c. In so few dimensions a matrix product gives lower bounds of all distances,

    ‖x - y‖² ≥ ‖z(x) - z(y)‖² = ‖z(x)‖² + ‖z(y)‖² - 2⟨z(x), z(y)⟩,

from which every query keeps a short list of the smallest. Distances are computed in the order of that list, in float64, until
a bound is above the k-th distance found. Products are in float32; their squared norms are lowered by as much as rounding may
have added, so that bounds are bounds.

    "exact"         every point is offered to every query. A query whose list has ended too early is asked again with a longer
                    one. The result is that of comparing all pairs, of equal distances the lowest number first.
    "trees"         a tree of boxes spares a query what lies in boxes further away than the neighbours it has found. The result
                    is the same. Points of up to 63 features are searched so, unless a sample of queries looks at most of them.
    "approximate"   points are gathered in cells, and a query meets the cells with the nearest centres, so many that a sample of
                    queries with known neighbours finds 99.5 % of them; the recall of another sample is reported. A query that
                    meets too few points is asked exactly. Where that other sample finds less than 99 %, most often because
                    crowds lie so far apart that float32 confuses the points of each, a wide gap divides the search in two;
                    without one, all queries whose lists ended too early are asked exactly.

Blocks of queries run side by side and do not know of each other: nothing depends on the number of threads. What is random
begins with the same seed every time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from corecut import _core
from corecut._threads import on_threads
from corecut._typing import AnyArray, BoolArray, FloatArray
from corecut.point_cells import Cells
from corecut.point_gaps import widest_gap
from corecut.point_screens import Rows, ScreenMap, bounds_met, panels_of
from corecut.spectral.blas import single_threaded_blas

Progress = Callable[[float], None]
Numbers = NDArray[np.int32]

# Queries and points of one product, and queries of one task among the cells.
_QUERIES, _POINTS, _AMONG_CELLS = 512, 4096, 4096
# Up to so many features points are compared as they are; beyond, the numbers of directions to choose from.
_FEW_FEATURES, _WIDTHS = 64, (24, 32, 48, 64, 96, 128, 192)
# In up to so many features a tree spares queries most of the points, however many there are.
TREE_FEATURES = 8
# Trees: the most features (distances are then added up in the same order as elsewhere), and the fewest queries that make up for
# building one, in more features than the above also as a share of the points. Up to so many points a tree is the fastest way in
# any case, and beyond if so many tried queries look at no more than a share of them. Queries of one call.
_TREE_WIDTH, _TREE_QUERIES, _TREE_ASKED = 63, 200, 1 / 16
_TREE_POINTS, _TREE_TRIED, _TREE_SHARE, _IN_TREE = 6_000, 64, 0.8, 4096
# Up to so many points an exact search is a matter of a minute or less on two cores.
EXACT_POINTS = 100_000
# Queries that a plan is made with.
_TRIED = 256
# What looking at a bound costs, taking it up, one feature of a distance and the rest of it, in multiplications of a product
# (measured).
_LOOK, _TAKE, _FEATURE, _DISTANCE = 6.0, 1400.0, 20.0, 1000.0
# Below so many multiplications a plan costs more than it saves.
_PLANNED = 4e9
# The share of all points that cells are thought to lead a query to when a plan is made; the recall aimed at among the cells,
# and the one below which they are not relied on.
_SHARE, _AIM, _PROMISED = 0.05, 0.995, 0.99
# Where points are cut in two: the share of them on either side at least, and of sample queries that may look across at most.
_LEAST_PART, _ACROSS = 1 / 64, 0.01
# Points that are asked for together, a whole number of panels, which a tree leaves together.
_GROUP = 256
# Points on the longest list of a plan.
_LONGEST = 4096
# Points whose squares would leave the range of numbers are scaled to about two to this power.
_ROOM = 330


@dataclass(frozen=True)
class Neighbors:
    """The nearest points of every query.

    Attributes
    ----------
    indices : array of shape (queries, k)
        Their numbers, nearest first; of equal distances the lowest number first.
    distances : array of shape (queries, k)
        Their Euclidean distances.
    method
        How they were found: "exact", "trees" or "approximate".
    recall
        Share of the true neighbours that were found: 1 for exact methods, measured on a sample of the queries otherwise.
    """

    indices: Numbers
    distances: FloatArray
    method: Literal["exact", "trees", "approximate"]
    recall: float


def nearest_points(
    points: AnyArray,
    queries: AnyArray | None,
    n_neighbors: int,
    *,
    approximate: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
) -> Neighbors:
    """Return the nearest points of every query.

    Parameters
    ----------
    points, queries : arrays of shape (n, features) and (q, features)
        Finite, float32 or float64. Without queries the points are asked for each other, none for itself.
    n_neighbors
        Number of points to find, at most n, or n - 1 without queries.
    approximate
        Look among the nearest cells only. Needs points that are asked for each other.
    threads
        Number of threads.
    progress
        Called with the share of the work that is done.

    Notes
    -----
    Exact: about O((n + q) log n) with trees, in few dimensions or where points lie in clusters. Otherwise O(q·n·w) for w
    directions, at most the number of features, and O(q) distances of full length. Memory O(n·w).
    """
    points = np.ascontiguousarray(_narrow(points))
    if queries is not None:
        queries = np.ascontiguousarray(_narrow(queries))
        kind = np.result_type(points, queries)
        points, queries = points.astype(kind, copy=False), queries.astype(kind, copy=False)
    largest = _largest(points, queries)
    if not 1e-100 < largest < 1e100 and largest > 0:
        # Squares would not be numbers any more. A power of two changes no digit; small values have room beside the largest.
        exponent = int(np.frexp(largest)[1]) - _ROOM
        points = np.ldexp(points, -exponent)
        queries = None if queries is None else np.ldexp(queries, -exponent)
        scaled = nearest_points(points, queries, n_neighbors, approximate=approximate, threads=threads, progress=progress)
        with np.errstate(over="ignore"):  # a distance may be beyond all numbers
            return replace(scaled, distances=np.ldexp(scaled.distances, exponent))
    found = None if approximate else _from_trees(points, queries, n_neighbors, threads, progress)
    if found is not None:
        return found
    with single_threaded_blas():
        search = _Search(points, queries, n_neighbors, threads, progress)
        return search.approximate() if approximate else search.exact()


class _Lists:
    """Short lists of a block of queries; see `_kernels/neighbor_search.hpp`."""

    def __init__(self, n_queries: int, keep: int, limits: Rows | None = None) -> None:
        self.bounds = np.empty((n_queries, 2 * keep), np.float32)
        self.points = np.empty((n_queries, 2 * keep), np.int32)
        self.counts = np.zeros(n_queries, np.int32)
        self.limits = np.full(n_queries, np.inf, np.float32) if limits is None else limits

    @property
    def arrays(self) -> tuple[Rows, Numbers, Numbers, Rows]:
        return self.bounds, self.points, self.counts, self.limits


class _Search:
    """One search: the points, the queries, and both under the map."""

    def __init__(
        self, points: AnyArray, queries: AnyArray | None, n_neighbors: int, threads: int, progress: Progress | None = None
    ) -> None:
        self.points, self.k, self.threads = points, n_neighbors, threads
        self.queries = points if queries is None else queries
        self.own = np.arange(len(points), dtype=np.int32) if queries is None else None
        self.progress = progress
        self.keep = max(2 * n_neighbors, _core.SHORTEST_LIST)
        n, d = points.shape
        planned = d > _FEW_FEATURES and float(n) * len(self.queries) * d > _PLANNED
        self.map = ScreenMap.of(points, _largest(points, queries), width=_WIDTHS[-1] if planned else None)
        self._lay_out()

    def _lay_out(self) -> None:
        self.screen = self.map.screen(self.points, self.threads)
        self.asked = self.screen if self.queries is self.points else self.map.screen(self.queries, self.threads)

    def exact(self) -> Neighbors:
        """Return the neighbours of every query."""
        if self.map.directions is not None:
            self._plan(*self._sample(0), share=1.0)
        if self.own is not None and self.screen.rows.shape[1] <= _FEW_FEATURES and len(self.points) > 2 * _GROUP:
            indices, squares = self._by_groups()
        else:
            indices, squares = self._certain(np.arange(len(self.queries)), self.progress)
        return Neighbors(indices, np.sqrt(squares), "exact", 1.0)

    def _by_groups(self) -> tuple[Numbers, FloatArray]:
        """Return the neighbours of all points, and squared distances, asking groups of points that are near each other.

        Such a group has most of its neighbours among itself. Their distances are bounds of the true ones from above, beyond
        which most bounds of other points lie, and most groups altogether: ‖x - y‖ ≥ ‖z(x) - c‖ - r for every point y of a group
        around c with radius r.
        """
        order = _core.FloatBoxes(self.screen.rows, self.threads).order()
        screen = self.screen.taken(order)
        panels, terms = panels_of(screen)
        n, each = len(order), _GROUP // _core.SHORTEST_LIST
        begins = np.arange(0, n, _GROUP)
        sizes = np.minimum(_GROUP, n - begins)
        centres = np.add.reduceat(screen.rows.astype(np.float64), begins, axis=0) / sizes[:, None]
        group_of = np.repeat(np.arange(len(begins)), sizes)
        radii = np.maximum.reduceat(np.linalg.norm(screen.rows - centres[group_of], axis=1), begins)
        spread = float(np.linalg.norm(screen.rows, axis=1).max())

        indices, squares = np.empty((n, self.k), np.int32), np.empty((n, self.k))

        def task(group: int) -> Any:
            part = slice(int(begins[group]), int(begins[group] + sizes[group]))
            which = order[part]
            rows = np.float32(-2.0) * screen.rows[part]
            first = slice(group * each, (group + 1) * each)
            lists = _Lists(len(which), self.keep)
            _core.offer_panels(rows, panels[first], terms[first], group * each, *lists.arrays)
            _, own, _ = self._choose(lists, which, order)
            lists = _Lists(len(which), self.keep, self._limits(own[:, -1], which))
            reach = np.sqrt(own[:, -1:]) / self.map.unit + radii + 1e-5 * spread
            near = np.any(np.linalg.norm(screen.rows[part, None] - centres, axis=2) <= reach, axis=0)
            for begin, end in _runs(near):
                some = slice(begin * each, end * each)
                _core.offer_panels(rows, panels[some], terms[some], begin * each, *lists.arrays)
            indices[which], squares[which], certain = self._choose(lists, which, order)
            return which[~certain]

        due = np.concatenate(on_threads(task, range(len(begins)), self.threads, progress=self.progress))
        if due.size:
            indices[due], squares[due] = self._certain(due)
        return indices, squares

    def _limits(self, squares: FloatArray, which: Any) -> Rows:
        """Return limits that turn away what is beyond distances found so far: those are not below the true ones."""
        limits = (squares / self.map.unit**2 - self.asked.norms[which]).astype(np.float32)
        above: Rows = np.nextafter(np.nextafter(limits, np.float32(np.inf)), np.float32(np.inf))
        return above

    def approximate(self) -> Neighbors:
        """Return the neighbours of every query among the points of the cells that are nearest to it."""
        which, known, squares = self._sample(0)
        if self.map.directions is not None:
            self._plan(which, known, squares, share=_SHARE)
        cells = Cells.of(self.screen, self.threads)
        probes = cells.probes(self.asked.taken(which), known, _AIM)
        spared = 2 * probes <= len(cells.centres)
        order = np.argsort(cells.cell_of, kind="stable").astype(np.int32)
        screen, starts = self.screen.taken(order), np.searchsorted(cells.cell_of[order], np.arange(len(cells.centres) + 1))
        terms = screen.norms.astype(np.float32)

        def meet(queries: Numbers) -> tuple[Numbers, FloatArray, BoolArray]:
            asked = self.asked.taken(queries)
            lists = _Lists(len(queries), self.keep)
            for cell, asking in cells.visits(asked, probes):
                part = slice(starts[cell], starts[cell + 1])
                products: Any = (np.float32(-2.0) * asked.rows[asking]) @ screen.rows[part].T
                _core.offer_points(products, terms[part], int(starts[cell]), asking, *lists.arrays)
            return self._choose(lists, queries, order)

        # By distance: of equally far points any one will do.
        tested, _, truth = self._sample(1)
        relied_on = spared and float(np.mean(meet(tested)[1] <= truth[:, -1:])) >= _PROMISED
        if not relied_on and (parts := self._apart(tested, truth)) is not None:
            return parts
        if not spared:
            return self.exact()
        indices, found = np.empty((len(order), self.k), np.int32), np.empty((len(order), self.k))

        def task(queries: Numbers) -> Numbers:
            indices[queries], found[queries], certain = meet(queries)
            # Cells far out may hold fewer points than are asked for.
            short = indices[queries, -1] < 0
            doubtful: Numbers = queries[short if relied_on else short | ~certain]
            return doubtful

        # In the order of their cells, so that the queries of a task meet the same cells.
        blocks = [order[begin : begin + _AMONG_CELLS] for begin in range(0, len(order), _AMONG_CELLS)]
        due = np.concatenate(on_threads(task, blocks, self.threads, progress=self.progress))
        if due.size:
            indices[due], found[due] = self._certain(due)
        recall = float(np.mean(found[tested] <= truth[:, -1:]))
        return Neighbors(indices, np.sqrt(found), "approximate", recall)

    def _apart(self, which: Any, squares: FloatArray) -> Neighbors | None:
        """Return the neighbours where a wide gap parts the points, each side searched by itself; None where none does.

        Each side has a centre and a unit of its own, and cells that its points fill. Whoever is further from its last neighbour
        than from the other side is asked exactly.
        """
        side, across = widest_gap(self.points, max(self.k + 1, int(_LEAST_PART * len(self.points))), self.threads)
        if np.mean(np.sqrt(squares[:, -1]) >= across[which]) > _ACROSS:
            return None
        n = len(self.points)
        indices, distances = np.empty((n, self.k), np.int32), np.empty((n, self.k))
        exact, recall, done = True, 0.0, 0
        for part in (np.flatnonzero(side), np.flatnonzero(~side)):
            few = part.size <= _TREE_POINTS
            progress = None if self.progress is None else _stretch(self.progress, done / n, part.size / n)
            found = nearest_points(
                self.points[part], None, self.k, approximate=not few, threads=self.threads, progress=progress
            )
            indices[part], distances[part] = part[found.indices], found.distances
            exact, recall = exact and found.method != "approximate", recall + found.recall * part.size / n
            done += part.size
        due = np.flatnonzero(distances[:, -1] >= across)
        if due.size:
            indices[due], squares = self._certain(due)
            distances[due] = np.sqrt(squares)
        return Neighbors(indices, distances, "exact" if exact else "approximate", 1.0 if exact else recall)

    def _certain(self, which: Any, progress: Progress | None = None) -> tuple[Numbers, FloatArray]:
        """Return the neighbours of some queries, and squared distances; lists grow until they have surely held them all."""
        indices = np.empty((len(which), self.k), np.int32)
        squares = np.empty((len(which), self.k))
        limits = np.full(len(which), np.inf, np.float32)
        terms = self.screen.norms.astype(np.float32)
        panels = panels_of(self.screen) if self.screen.rows.shape[1] <= _FEW_FEATURES else None
        due, keep = np.arange(len(which)), self.keep

        def task(block: Any) -> Any:
            rows = np.float32(-2.0) * self.asked.rows[which[block]]
            lists = _Lists(len(block), keep, limits[block])
            if panels is not None:
                _core.offer_panels(rows, panels[0], panels[1], 0, *lists.arrays)
            else:
                products = np.empty((len(block), min(_POINTS, len(terms))), np.float32)
                for begin in range(0, len(terms), _POINTS):
                    part = slice(begin, begin + _POINTS)
                    if begin + _POINTS > len(terms) and begin:
                        products = np.empty((len(block), len(terms) - begin), np.float32)
                    np.matmul(rows, self.screen.rows[part].T, out=products)
                    _core.offer_points(products, terms[part], begin, None, *lists.arrays)
            indices[block], squares[block], certain = self._choose(lists, which[block], None)
            return block[~certain]

        while due.size:
            blocks = [due[begin : begin + _QUERIES] for begin in range(0, due.size, _QUERIES)]
            due = np.concatenate(on_threads(task, blocks, self.threads, progress=progress))
            limits[due] = self._limits(squares[due, -1], which[due])
            keep = min(4 * keep, max(len(terms), _core.SHORTEST_LIST))
        return indices, squares

    def _choose(self, lists: _Lists, which: Any, rows: Numbers | None) -> tuple[Numbers, FloatArray, BoolArray]:
        """Return the nearest points of the short lists, their squared distances, and whether there can be no others."""
        found = np.empty((len(which), self.k), np.int32)
        squares = np.empty((len(which), self.k))
        certain = np.empty(len(which), np.uint8)
        own = None if self.own is None else self.own[which]
        terms, unit = self.asked.norms[which], self.map.unit**2
        _core.choose_nearest(self.points, self.queries[which], rows, *lists.arrays, terms, unit, own, found, squares, certain)
        return found, squares, certain.astype(bool)

    def _sample(self, seed: int) -> tuple[Any, Numbers, FloatArray]:
        """Return some queries with their true neighbours and the squared distances of these."""
        count = min(_TRIED, len(self.queries))
        which = np.random.default_rng(seed).choice(len(self.queries), count, replace=False)
        return which, *self._certain(which)

    def _plan(self, which: Any, known: Numbers, squares: FloatArray, *, share: float) -> None:
        """Choose the number of directions that makes a search cheapest, and the length of the lists.

        A query's list must hold all points whose bounds are not above the distance of its last neighbour; they are counted for
        a sample. A query meets a `share` of all points.
        """
        n, d = self.points.shape
        distance = d * _FEATURE + _DISTANCE
        last = squares[:, -1] / self.map.unit**2
        best, best_cost, length = 0, share * n * (d + _LOOK) + self.k * distance, 0.0
        for width in [w for w in _WIDTHS if w < self.screen.rows.shape[1]]:
            counts = bounds_met(self.screen.narrowed(width), self.asked.taken(which).narrowed(width), last)
            longest = max(1.25 * float(np.quantile(counts, 0.9)), self.keep)
            taken = longest * (1.0 + np.log(max(share * n / longest, 1.0)))
            cost = share * n * (width + _LOOK) + taken * _TAKE + float(counts.mean()) * distance
            if cost < best_cost:
                best, best_cost, length = width, cost, longest
        if best == 0:
            self.map = replace(self.map, directions=None)
            self._lay_out()
            return
        same = self.asked is self.screen
        self.screen = self.screen.narrowed(best)
        self.asked = self.screen if same else self.asked.narrowed(best)
        self.keep = int(min(length, _LONGEST))


def _narrow(points: AnyArray) -> AnyArray:
    """Return points as float32 where that loses nothing, as with pixels and counts: half the memory to go through."""
    if points.dtype == np.float64:
        with np.errstate(over="ignore", under="ignore"):
            short = points.astype(np.float32)
        if np.array_equal(short, points):
            return short
    return points


def _largest(points: AnyArray, queries: AnyArray | None) -> float:
    extremes = [bound for rows in (points, queries) if rows is not None and rows.size for bound in (rows.max(), -rows.min())]
    return max(float(bound) for bound in extremes)


def _from_trees(
    points: AnyArray, queries: AnyArray | None, n_neighbors: int, threads: int, progress: Progress | None
) -> Neighbors | None:
    """Return the neighbours that a tree of boxes finds, or None where it would not pay."""
    n, d = points.shape
    asked = points if queries is None else queries
    fewest = max(_TREE_QUERIES, 0 if d <= TREE_FEATURES else int(_TREE_ASKED * n))
    if d > _TREE_WIDTH or len(asked) < fewest:
        return None
    tree = (_core.FloatBoxes if points.dtype == np.float32 else _core.DoubleBoxes)(points, threads)
    # One after the other in the tree, queries find what they look at in the cache.
    order = tree.order() if queries is None else None
    indices, squares = np.empty((len(asked), n_neighbors), np.int32), np.empty((len(asked), n_neighbors))
    if n > _TREE_POINTS:
        some = slice(None, None, max(1, len(asked) // _TREE_TRIED))
        tried = np.ascontiguousarray(asked[some] if order is None else order[some])
        if order is None:
            looked = tree.search(tried, None, indices[: len(tried)], squares[: len(tried)], threads)
        else:
            looked = tree.search(asked, tried, indices, squares, threads)
        if looked * _core.SHORTEST_LIST > _TREE_SHARE * n * len(tried):
            return None
    for begin in range(0, len(asked), _IN_TREE):
        part = slice(begin, begin + _IN_TREE)
        if order is not None:
            tree.search(asked, order[part], indices, squares, threads)
        else:
            tree.search(asked[part], None, indices[part], squares[part], threads)
        if progress is not None:
            progress(min(1.0, (begin + _IN_TREE) / len(asked)))
    return Neighbors(indices, np.sqrt(squares), "trees", 1.0)


def _stretch(progress: Progress, begin: float, length: float) -> Progress:
    """Return a call that tells the progress of a part of the work as that of the whole."""
    return lambda share: progress(begin + share * length)


def _runs(chosen: BoolArray) -> list[tuple[int, int]]:
    """Return the borders of the stretches that are chosen."""
    edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
