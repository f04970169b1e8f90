"""The adjacency matrix as a heat map, before and after sorting by cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corecut._validation import check_count
from corecut.drawing import logarithmic, node_order, palette_of, shade_matrix
from corecut.plots.canvas import Drawing, clusters_in_words, facts_of, finished, new_axes, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Up to so many clusters their borders are drawn.
_MOST_BORDERS = 40


def adjacency(
    graph: Any,
    labels: Any = None,
    *,
    ax: Axes | tuple[Axes, Axes] | None = None,
    pixels: int = 400,
    n_jobs: int | None = None,
) -> Drawing:
    """Draw the adjacency matrix, in the order of the nodes and sorted by cluster, from one pass over the edges.

    Parameters
    ----------
    graph
        A graph of any size, or the :class:`corecut.PartitionFacts` of a graph and its labels.
    labels
        Labels or a fitted model; None with facts.
    ax
        Axes for the sorted matrix, or a pair for the matrix before and after; None for a figure with both.
    pixels
        Cells on each side, at most as many as nodes.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Drawing
        Its artists are "before" (where there is one), "after" and "borders".
    """
    facts = facts_of(graph, labels, n_jobs)
    side = check_count(pixels, "pixels", maximum=4096)
    pair: tuple[Axes, ...]
    if ax is None:
        require_matplotlib()
        from matplotlib.figure import Figure

        figure, own = Figure(figsize=(9.2, 5.4), layout="constrained"), True
        pair = tuple(figure.subplots(1, 2))
    elif isinstance(ax, tuple | list | np.ndarray):
        pair = tuple(ax)
        if len(pair) != 2:
            raise ValueError(f"ax must be one axes, or a pair for before and after; got {len(pair)}")
        figure, own = new_axes(pair[0])[0], False
    else:
        figure, only, own = new_axes(ax)
        pair = (only,)
    by_cluster = palette_of(facts).order
    after = node_order(facts, by_cluster)
    orders = [after] if len(pair) == 1 else [np.arange(facts.graph.n_nodes), after]
    artists: dict[str, Any] = {}
    n = facts.graph.n_nodes
    squares = logarithmic(shade_matrix(facts.graph, orders, side))
    for axes, shades, name in zip(pair, squares, ("before", "after")[-len(pair) :], strict=True):
        image = axes.imshow(shades, cmap="Blues", vmin=0.0, vmax=1.0, extent=(0, n, n, 0), interpolation="nearest")
        axes.set_title("order of the nodes" if name == "before" else "sorted by cluster", fontsize="medium")
        axes.set_xlabel("node")
        axes.ticklabel_format(useOffset=False, style="plain")
        axes.tick_params(labelsize="small")
        axes.locator_params(nbins=4)
        artists[name] = image
    borders = np.cumsum(facts.sizes[by_cluster])[:-1]
    artists["borders"] = []
    if borders.size < _MOST_BORDERS:
        for draw in (pair[-1].axhline, pair[-1].axvline):
            artists["borders"] += [draw(float(at), color="#D55E00", linewidth=0.4, alpha=0.8) for at in borders]
    caption = (
        "Each cell stands for many pairs of nodes, the darker the more edges there are among them (a logarithmic scale). Good "
        "clusters are dark squares on the diagonal, with little outside them."
    )
    title = f"Adjacency matrix of {n:,} nodes, {clusters_in_words(facts.n_clusters)}"
    return finished(figure, pair if len(pair) > 1 else pair[0], artists, title=title, caption=caption, own=own)
