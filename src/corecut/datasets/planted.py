"""Planted graphs: random graphs whose clusters are known, made in time linear in their edges.

================================  ==================================================================================
:func:`make_sbm`                  stochastic block model: dense or sparse blocks of like nodes, as in the paper
:func:`make_degree_corrected_sbm`  power-law degrees and sparse, mixed clusters: closer to what people really have
================================  ==================================================================================

Both return a symmetric `scipy.sparse.csr_array` without self-loops, whose stored entries are all 1, and the cluster of every
node. Nodes are sorted by cluster. The graph depends on `random_state` only, not on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from corecut import _core
from corecut._files import physical_memory
from corecut._random import as_generator, draw_seed
from corecut._typing import AnyArray, FloatArray, IntArray, LabelArray, RandomState
from corecut._validation import check_count, check_n_clusters, check_option, check_real, thread_count

Sizes = Literal["equal", "powerlaw"] | Sequence[int] | IntArray

_MAX_NODES = 2**31 - 1
# Near saturation ever more of the edges drawn fall on pairs that are joined already: a bound, so that cost stays linear.
_MAX_DRAWS_PER_EDGE = 10.0
_BLOCK_EDGES = 1 << 22


def make_sbm(
    n_per_cluster: int | Sequence[int] | IntArray,
    n_clusters: int,
    p: float,
    q: float,
    *,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    dtype: DTypeLike = np.float64,
) -> tuple[sp.csr_array, LabelArray]:
    r"""Draw a graph from the stochastic block model.

    Independently for all pairs x < y,

    .. math:: P(A_{xy} = 1) = p \text{ if } c(x) = c(y), \quad q \text{ otherwise,}

    with :math:`A_{yx} = A_{xy}` and :math:`A_{xx} = 0`. Cost: O(n + number of edges), because the gaps between the edges of a
    row are drawn (they are geometric), not the pairs.

    Parameters
    ----------
    n_per_cluster
        Number of nodes in each cluster, or a sequence of `n_clusters` sizes.
    n_clusters
        Number of clusters k.
    p, q
        Probability of an edge between two nodes of the same cluster, and of different clusters.
    random_state, n_jobs
        As everywhere.
    dtype
        Type of the stored ones. A smaller type than float64 saves memory where the reader takes it.

    Returns
    -------
    graph : csr_array of shape (n, n)
        Canonical, with 32-bit indices while they suffice.
    labels : array of int32
        Cluster of every node, in increasing order.

    Examples
    --------
    >>> from corecut import make_sbm
    >>> graph, labels = make_sbm(50, 3, 0.5, 0.01, random_state=0)
    >>> graph.shape, labels[[0, 50, 149]].tolist()
    ((150, 150), [0, 1, 2])
    """
    k = check_count(n_clusters, "n_clusters", maximum=_MAX_NODES)
    if np.iterable(n_per_cluster):
        sizes = _check_sizes(n_per_cluster, k, "n_per_cluster")
    else:
        size = check_count(n_per_cluster, "n_per_cluster")
        _check_nodes(size * k, "n_per_cluster * n_clusters")
        sizes = np.full(k, size, dtype=np.int64)
    p, q = _check_fraction(p, "p"), _check_fraction(q, "q")
    values = _check_dtype(dtype)
    n, squares = int(sizes.sum()), float(np.square(sizes, dtype=np.float64).sum())
    entries = (squares - n) * p + (float(n) ** 2 - squares) * q
    _check_memory(n, entries, 0.5 * entries, values)
    seed = draw_seed(as_generator(random_state))
    indptr, indices = _core.stochastic_block_model(_borders(sizes), p, q, seed, thread_count(n_jobs))
    return _planted(indptr, indices, sizes, values)


def make_degree_corrected_sbm(
    n_nodes: int,
    n_clusters: int,
    *,
    mean_degree: float = 16.0,
    mixing: float = 0.2,
    degree_exponent: float = 2.5,
    sizes: Sizes = "equal",
    size_ratio: float = 10.0,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    dtype: DTypeLike = np.float64,
) -> tuple[sp.csr_array, LabelArray]:
    r"""Draw a simple graph with power-law degrees and planted clusters (degree-corrected block model [1]_).

    Every node has a propensity :math:`\theta_x`, drawn from the density :math:`\theta^{-\gamma}` on
    :math:`[1, \sqrt n]`. The number of edges drawn between x and y is Poisson with mean

    .. math:: \lambda_{xy} = 2 \theta_x \theta_y \left( \frac{\alpha [c(x) = c(y)]}{S_{c(x)}} + \frac{\beta}{S} \right),
              \qquad S_c = \sum_{c(x) = c} \theta_x, \quad S = \sum_x \theta_x,

    so that expected degrees are proportional to :math:`\theta`; x and y are then joined if that number is not 0. Before
    merging, :math:`\beta / (\alpha + \beta)` of the edges take their other end from the whole graph, the rest from the own
    cluster. :math:`\alpha` and :math:`\beta` are set so that **after** merging the expected mean degree is `mean_degree`, and
    the expected share of the edges that run between clusters is `mixing` times the chance that another node, taken with
    probability proportional to :math:`\theta`, is of another cluster. (The degrees of the largest hubs stay below proportion
    where they have met most of their cluster already.) Cost: O(n + number of edges).

    Parameters
    ----------
    n_nodes, n_clusters
        Numbers of nodes n and clusters k.
    mean_degree
        Expected mean degree. Refused when it nearly fills the clusters.
    mixing
        Share of the edges whose other end comes from the whole graph: 0 gives separate clusters, 1 none.
    degree_exponent
        Exponent :math:`\gamma > 1` of the power law of the degrees; the larger, the more alike they are.
    sizes
        "equal", "powerlaw" (density :math:`s^{-2}`) or a sequence of `n_clusters` sizes that sum to `n_nodes`.
    size_ratio
        Largest possible over smallest possible size for "powerlaw".
    random_state, n_jobs
        As everywhere.
    dtype
        Type of the stored ones. A smaller type than float64 saves memory where the reader takes it.

    Returns
    -------
    graph : csr_array of shape (n, n)
        Canonical, with 32-bit indices while they suffice. Nodes without an edge are possible.
    labels : array of int32
        Cluster of every node, in increasing order.

    References
    ----------
    .. [1] B. Karrer, M. E. J. Newman, "Stochastic blockmodels and community structure in networks", Physical Review E 83,
       016107, 2011.

    Examples
    --------
    >>> from corecut import make_degree_corrected_sbm
    >>> graph, labels = make_degree_corrected_sbm(20_000, 10, mean_degree=12, random_state=0)
    >>> round(graph.nnz / 20_000)
    12
    """
    values = _check_dtype(dtype)
    law = PlantedLaw.of(
        n_nodes,
        n_clusters,
        mean_degree=mean_degree,
        mixing=mixing,
        degree_exponent=degree_exponent,
        sizes=sizes,
        size_ratio=size_ratio,
        random_state=random_state,
        in_memory_as=values,
    )
    indptr, indices = _core.degree_corrected(law.borders, law.theta, law.inside, law.anywhere, law.seed, thread_count(n_jobs))
    return _planted(indptr, indices, np.diff(law.borders), values)


@dataclass(frozen=True, eq=False)
class PlantedLaw:
    """The law of :func:`make_degree_corrected_sbm` with all its numbers, and a seed: one graph, which can be had in pieces.

    Attributes
    ----------
    borders
        Cluster c holds the nodes borders[c] .. borders[c + 1].
    theta
        Propensity of every node.
    inside, anywhere
        α and β.
    seed
        Fixes the edges.
    draws
        Expected number of edges drawn before repeats are merged.
    """

    borders: IntArray
    theta: FloatArray
    inside: float
    anywhere: float
    seed: int
    draws: float

    @classmethod
    def of(
        cls,
        n_nodes: int,
        n_clusters: int,
        *,
        mean_degree: float = 16.0,
        mixing: float = 0.2,
        degree_exponent: float = 2.5,
        sizes: Sizes = "equal",
        size_ratio: float = 10.0,
        random_state: RandomState = None,
        in_memory_as: np.dtype[Any] | None = None,
    ) -> PlantedLaw:
        """Check the parameters of :func:`make_degree_corrected_sbm`, draw sizes and propensities and solve for α and β.

        With `in_memory_as`, refuse a graph that would not fit in memory with values of that type.
        """
        n = _check_nodes(check_count(n_nodes, "n_nodes"), "n_nodes")
        k = check_n_clusters(n_clusters, n)
        degree = check_real(mean_degree, "mean_degree", exclusive=True)
        mixing = _check_fraction(mixing, "mixing")
        exponent = check_real(degree_exponent, "degree_exponent", minimum=1.0, exclusive=True)
        ratio = check_real(size_ratio, "size_ratio", minimum=1.0)
        generator = as_generator(random_state)
        if isinstance(sizes, str):
            check_option(sizes, "sizes", ("equal", "powerlaw"))
            sizes = _apportion(n, np.ones(k) if sizes == "equal" else _power_law(k, 2.0, ratio, generator))
        else:
            sizes = _check_sizes(sizes, k, "sizes")
            if sizes.sum() != n:
                raise ValueError(f"sizes must sum to n_nodes={n}, got {sizes.sum()}")
        edges = 0.5 * n * degree
        if in_memory_as is not None:
            _check_memory(n, 2 * edges, edges, in_memory_as)
        theta = _power_law(n, exponent, np.sqrt(n), generator)
        borders = _borders(sizes)
        inside, anywhere = _rates(borders, theta, edges, mixing)
        draws = float((inside + anywhere) * theta.sum())
        if in_memory_as is not None:
            _check_memory(n, 2 * edges, draws, in_memory_as)
        return cls(borders, theta, inside, anywhere, draw_seed(generator), draws)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.theta.size

    @property
    def labels(self) -> LabelArray:
        """Cluster of every node."""
        return np.repeat(np.arange(self.borders.size - 1, dtype=np.int32), np.diff(self.borders))

    def edges(self, *, n_jobs: int | None = None) -> Iterator[tuple[LabelArray, LabelArray]]:
        """Give sources and targets of all edges in blocks of some millions, repeats not merged, in the order of the rows."""
        law = _core.DegreeCorrected(self.borders, self.theta, self.inside, self.anywhere, self.seed)
        rows = max(1, int(self.n_nodes * min(1.0, _BLOCK_EDGES / max(self.draws, 1.0))))
        for begin in range(0, self.n_nodes, rows):
            yield law.edges(begin, min(begin + rows, self.n_nodes), thread_count(n_jobs))


def _power_law(count: int, exponent: float, maximum: float, generator: np.random.Generator) -> FloatArray:
    """Draw numbers from the density x^-exponent on [1, maximum], by inverting its distribution function."""
    tail = maximum ** (1.0 - exponent)
    # In place: there is one number per node, and there may be many.
    draws = generator.random(count)
    draws *= tail - 1.0
    draws += 1.0
    np.power(draws, 1.0 / (1.0 - exponent), out=draws)
    return draws


def _apportion(n: int, shares: FloatArray) -> IntArray:
    """Split n nodes into clusters of at least one node, in proportion to the shares and otherwise to rounding."""
    extra = np.maximum(n * (shares / shares.sum()) - 1.0, 0.0).cumsum()
    ends: IntArray = np.floor(extra * ((n - shares.size) / max(extra[-1], 1.0)) + 0.5).astype(np.int64)
    ends[-1] = n - shares.size
    sizes: IntArray = np.diff(ends, prepend=0) + 1
    return sizes


def _rates(borders: IntArray, theta: FloatArray, edges: float, mixing: float) -> tuple[float, float]:
    """Return α and β for which the merged graph is expected to have that many edges, and its share of them between clusters."""
    mass = np.add.reduceat(theta, borders[:-1])
    total = mass.sum()
    profile = _core.PairProfile(borders, theta)
    between = anywhere = present = 0.0
    if mixing > 0.0 and mass.size > 1:  # one cluster is the whole graph: nothing to mix
        apart = 1.0 - np.square(mass / total).sum()
        between = edges * mixing * apart / (1.0 - np.square(theta).sum() / total**2)
        anywhere = _rate(lambda rate: profile.expected(0.0, rate)[1], between, total * apart)
        if mixing == 1.0:
            return 0.0, anywhere
        present = profile.expected(0.0, anywhere)[0]
    return _rate(lambda rate: profile.expected(rate, anywhere)[0] - present, edges - between - present, total), anywhere


def _rate(expected: Callable[[float], float], wanted: float, mass: float) -> float:
    """Solve expected(rate) = wanted, for an increasing concave function with slope at most `mass`."""
    if wanted <= 0.0:
        return 0.0
    first = rate = wanted / mass
    while rate <= _MAX_DRAWS_PER_EDGE * first:
        found = expected(rate)
        if found >= 0.9999 * wanted:
            return rate
        # By concavity this never steps beyond the solution.
        rate *= wanted / found if found > 0.0 else np.inf
    raise ValueError(
        "mean_degree is too large for these clusters: too many of the edges would fall on pairs that are joined already; "
        "lower mean_degree, or ask for more nodes or fewer clusters"
    )


def _borders(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def _planted(indptr: IntArray, indices: AnyArray, sizes: IntArray, dtype: np.dtype[Any]) -> tuple[sp.csr_array, LabelArray]:
    if indices.size < 2**31:  # scipy would widen the indices to match a wide indptr
        indptr = indptr.astype(np.int32)
    n = indptr.size - 1
    graph = sp.csr_array((np.ones(indices.size, dtype), indices, indptr), shape=(n, n))
    graph.has_canonical_format = True  # spares scipy a pass to find out
    return graph, np.repeat(np.arange(sizes.size, dtype=np.int32), sizes)


def _check_fraction(value: Any, name: str) -> float:
    number = check_real(value, name)
    if number > 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")
    return number


def _check_nodes(n: int, name: str) -> int:
    if n > _MAX_NODES:
        raise ValueError(f"{name} must be at most {_MAX_NODES}, got {n}: nodes are numbered with 32 bits")
    return n


def _check_sizes(sizes: Any, n_clusters: int, name: str) -> IntArray:
    try:
        array = np.asarray(sizes)
    except ValueError:  # a list of lists of different lengths
        array = np.asarray(None)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be a sequence of integers, one per cluster, got {type(sizes).__name__} of {array.dtype}")
    if array.size != n_clusters:
        raise ValueError(f"{name} must hold one size for each of n_clusters={n_clusters} clusters, got {array.size}")
    if array.min() < 1:
        raise ValueError(f"{name} must be at least 1 for every cluster, got {array.min()} for cluster {array.argmin()}")
    # Summed as floats: integers could wrap around before they are found too large.
    _check_nodes(int(array.sum(dtype=np.float64)), f"the sum of {name}")
    return array.astype(np.int64)


def _check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found.kind not in "biuf":
        raise TypeError(f"dtype must be a type of real numbers such as np.float64, got {dtype!r}")
    return found


def _check_memory(n: int, entries: float, draws: float, dtype: np.dtype[Any]) -> None:
    """Refuse a graph that outgrows the machine, which would bring it down before there was an error to show."""
    memory = physical_memory()
    if memory is None:
        return  # not known here: let the allocation fail
    index = 4 if entries < 2**31 else 12  # scipy widens the indices of a larger graph, and holds both for a while
    # Both ends of all edges drawn are gone before the ones are written.
    needed = n * 48.0 + entries * index + max(entries * dtype.itemsize, draws * 12.0)
    if needed > memory:
        raise MemoryError(
            f"a graph of {n} nodes and about {entries:.3g} entries needs about {needed / 2**30:.3g} GiB of memory, and this "
            f"machine has {memory / 2**30:.3g}: ask for fewer nodes or edges, or for a smaller dtype"
        )
