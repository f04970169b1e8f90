"""Plots of one mark per cluster: sizes and conductances, the graph of clusters, confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from corecut._typing import IntArray
from corecut.drawing import map_clusters, palette_of
from corecut.facts import DOUBTFUL, PartitionFacts
from corecut.plots.canvas import (
    Drawing,
    cluster_legend,
    clusters_in_words,
    facts_of,
    finished,
    new_axes,
    shortened,
    written_out,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Up to so many clusters each has a bar or a box with its name.
_MOST_BARS = 40
# And so many have their name in the graph of clusters.
_MOST_NAMES = 60
# Radius of a mark, as a share of the picture, that has room for a short name.
_ROOM = 0.018
_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#7F7F7F"


def sizes(graph: Any, labels: Any = None, *, ax: Axes | None = None, n_jobs: int | None = None) -> Drawing:
    """Draw size and conductance of every cluster: bars up to 40 clusters, points for more.

    Parameters
    ----------
    graph
        A graph, or the :class:`corecut.PartitionFacts` of a graph and its labels.
    labels
        Labels or a fitted model; None with facts.
    ax
        Axes to draw in; None for a figure of its own.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Drawing
        Its artists are "clusters", and "colorbar" for bars or "median" for points.
    """
    facts = facts_of(graph, labels, n_jobs)
    figure, axes, own = new_axes(ax)
    k, cuts = facts.n_clusters, facts.conductances
    artists: dict[str, Any]
    if k <= _MOST_BARS:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize

        order = np.argsort(-facts.sizes, kind="stable")
        # One scale for most graphs: a bar is dark where half of the edges lead out of the cluster.
        scale = ScalarMappable(Normalize(0.0, max(float(cuts.max()), 0.5)), "cividis_r")
        bars = axes.bar(np.arange(k), facts.sizes[order], color=scale.to_rgba(cuts[order]))
        _name_ticks(axes, facts, order)
        axes.set_xlabel("cluster")
        axes.set_ylabel("nodes")
        artists = {"clusters": list(bars), "colorbar": figure.colorbar(scale, ax=axes, label="conductance")}
        reading = "The darker a bar, the more of the cluster's edges lead out of it."
    else:
        from matplotlib.ticker import MaxNLocator

        points = axes.scatter(facts.sizes, cuts, s=14, c=_BLUE, alpha=0.5, linewidths=0)
        if facts.sizes.max() > 20 * facts.sizes.min():
            axes.set_xscale("log")
            written_out(axes.xaxis)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_xlabel("nodes of a cluster")
        axes.set_ylabel("conductance")
        axes.set_ylim(bottom=0.0, top=max(1.08 * float(cuts.max()), 1e-3))
        axes.grid(alpha=0.3)
        median = axes.axhline(float(np.median(cuts)), color=_ORANGE, linestyle="--", linewidth=1, label="median conductance")
        axes.legend(handles=[median], frameon=False, fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 1.0))
        for j in _extremes(facts):
            axes.annotate(
                shortened(facts.name(j)), (float(facts.sizes[j]), float(cuts[j])), xytext=(3, 3),
                textcoords="offset points", fontsize="x-small",
            )  # fmt: skip
        artists = {"clusters": points, "median": median}
        reading = "Each point is a cluster. Good ones are low; the largest, the smallest and the worst one are named."
    caption = (
        f"{reading} Sizes {facts.sizes.min():,} to {facts.sizes.max():,}, conductance {cuts.min():.3f} to {cuts.max():.3f}, "
        f"mean {cuts.mean():.3f} (the normalised cut)."
    )
    return finished(figure, axes, artists, title=f"Sizes and conductances of {clusters_in_words(k)}", caption=caption, own=own)


def quotient(graph: Any, labels: Any = None, *, ax: Axes | None = None, n_jobs: int | None = None) -> Drawing:
    """Draw the graph of clusters: disc areas are volumes, line widths the weights between clusters.

    See :func:`sizes` for the parameters.

    Returns
    -------
    Drawing
        Its artists are "clusters", "ties", "names" and "legend".
    """
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Circle, Polygon, Rectangle
    from matplotlib.patheffects import withStroke

    facts = facts_of(graph, labels, n_jobs)
    figure, axes, own = new_axes(ax, size=(7.6, 6.6))
    layout, palette = map_clusters(facts), palette_of(facts)
    places, radii = layout.places, layout.radii
    heaviest = float(layout.weights.max(initial=0.0)) or 1.0
    widths = 0.3 + 5.7 * layout.weights / heaviest if facts.n_clusters <= _MOST_NAMES else 0.2 + 2.3 * layout.weights / heaviest
    lines = LineCollection(
        [places[[a, b]] for a, b in zip(layout.first, layout.second, strict=True)],
        linewidths=widths,
        colors=_GREY,
        alpha=0.5 if facts.n_clusters <= _MOST_NAMES else 0.3,
    )
    axes.add_collection(lines)

    def patch(j: int) -> Any:
        (x, y), r = places[j], radii[j]
        if palette.shapes[j] == 1:
            half = r * np.sqrt(np.pi) / 2
            return Rectangle((x - half, y - half), 2 * half, 2 * half)
        if palette.shapes[j] == 2:
            reach = r * np.sqrt(4 * np.pi / np.sqrt(27))  # from the middle of a triangle to its corners, for the same area
            angles = np.pi / 2 + 2 * np.pi / 3 * np.arange(3)
            return Polygon(np.stack([x + reach * np.cos(angles), y + reach * np.sin(angles)], axis=1))
        return Circle((x, y), r)

    discs = PatchCollection(
        [patch(j) for j in range(facts.n_clusters)],
        facecolors=[palette.colour(j) for j in range(facts.n_clusters)], edgecolors="white", linewidths=0.4, zorder=2,
    )  # fmt: skip
    axes.add_collection(discs)
    named = np.argsort(-facts.volumes, kind="stable")[: _MOST_NAMES if facts.n_clusters <= _MOST_NAMES else 20]
    halo: list[Any] = [withStroke(linewidth=1.8, foreground="white")]
    names: list[Any] = []
    taken: list[tuple[float, float]] = []
    for j in named.tolist():
        x, y = places[j].tolist()
        if facts.n_clusters > _MOST_NAMES and any(abs(x - a) < 0.06 and abs(y - b) < 0.025 for a, b in taken):
            continue  # a name on another could not be read
        taken.append((x, y))
        # Above a mark that the name would cover.
        above = radii[j] < _ROOM
        word = axes.text(
            x, y + above * radii[j], shortened(facts.name(j), 12), ha="center", va="bottom" if above else "center",
            fontsize="x-small", zorder=3,
        )  # fmt: skip
        word.set_path_effects(halo)
        names.append(word)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")
    axes.set_axis_off()
    shown, total = layout.weights.size, facts.ties.nnz // 2
    some = f"{'All' if shown == total else f'The strongest {shown:,} of'} {total:,} connections are shown."
    caption = (
        "The area of a mark is the volume of its cluster, the width of a line the weight between two clusters, which draws "
        f"them together. {some if total > 1 else 'No edge joins two clusters.' if total == 0 else 'There is one connection.'}"
    )
    artists = {"clusters": discs, "ties": lines, "names": names, "legend": cluster_legend(axes, facts, palette)}
    return finished(figure, axes, artists, title=f"Graph of {clusters_in_words(facts.n_clusters)}", caption=caption, own=own)


def confidence(graph: Any, labels: Any = None, *, ax: Axes | None = None, n_jobs: int | None = None) -> Drawing:
    """Draw how sure the labels of each cluster's nodes are: boxes up to 40 clusters, bands over their ranks for more.

    See :func:`sizes` for the parameters. A fitted model's confidence also knows how far its draws agree.

    Returns
    -------
    Drawing
        Its artists are "quartiles", "tails", "medians" and "doubtful".
    """
    facts = facts_of(graph, labels, n_jobs)
    k = facts.n_clusters
    figure, axes, own = new_axes(ax)
    levels = facts.confidence_quantiles((0.05, 0.25, 0.5, 0.75, 0.95))
    order = np.lexsort((levels[:, 1], levels[:, 2]))
    low, first, median, third, high = levels[order].T
    at = np.arange(k, dtype=np.float64)
    artists: dict[str, Any] = {}
    if k <= _MOST_BARS:
        artists["tails"] = axes.vlines(at, low, high, color=_GREY, linewidth=1.5, label="5 % to 95 % of the nodes")
        artists["quartiles"] = axes.bar(
            at, third - first, 0.6, first, color="#56B4E9", edgecolor=_BLUE, label="middle half of the nodes"
        )
        artists["medians"] = axes.hlines(median, at - 0.3, at + 0.3, color="black", linewidth=2, label="median")
        _name_ticks(axes, facts, order)
        axes.set_xlabel("cluster, the least sure first")
    else:
        artists["tails"] = axes.fill_between(
            at, low, high, color=_GREY, alpha=0.25, linewidth=0, label="5 % to 95 % of the nodes"
        )
        artists["quartiles"] = axes.fill_between(
            at, first, third, color="#56B4E9", alpha=0.6, linewidth=0, label="middle half of the nodes"
        )
        (artists["medians"],) = axes.plot(at, median, color="black", linewidth=1.5, label="median")
        axes.set_xlabel(f"rank of the cluster among {k:,}, the least sure first")
        axes.set_xlim(0, k - 1)
    artists["doubtful"] = axes.axhline(DOUBTFUL, color=_ORANGE, linestyle="--", linewidth=1, label="doubtful below")
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("confidence of a node")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, fontsize="small")
    caption = (
        "1: all edges of a node speak for its cluster. 0: another cluster has as many of them. "
        f"{100 * facts.doubtful_share:.1f} % of all nodes are doubtful (at most {DOUBTFUL:g})."
    )
    return finished(figure, axes, artists, title=f"Confidence of nodes in {clusters_in_words(k)}", caption=caption, own=own)


def _name_ticks(axes: Axes, facts: PartitionFacts, order: IntArray) -> None:
    """Write the names of clusters below their bars."""
    names = [shortened(facts.name(j), 12) for j in order.tolist()]
    upright = sum(map(len, names)) > 60
    axes.set_xticks(np.arange(order.size), names, rotation=90 if upright else 0, fontsize="small")


def _extremes(facts: PartitionFacts) -> list[int]:
    """Return the largest, the smallest and the worst cluster."""
    return sorted({int(facts.sizes.argmax()), int(facts.sizes.argmin()), int(facts.conductances.argmax())})
