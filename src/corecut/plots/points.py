"""The spectral embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from corecut._validation import check_option
from corecut.drawing import COLOURS, embedded_points, palette_of
from corecut.plots.canvas import MARKERS, Drawing, cluster_legend, clusters_in_words, facts_of, finished, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def embedding(
    graph: Any,
    labels: Any = None,
    *,
    ax: Axes | None = None,
    dimensions: Literal[2, 3] = 2,
    n_jobs: int | None = None,
) -> Drawing:
    """Draw the spectral embedding in two or three dimensions, sized by volume and coloured by cluster.

    Parameters
    ----------
    graph
        A graph, or the :class:`corecut.PartitionFacts` of a graph and its labels.
    labels
        A fitted model, whose own embedding is shown (of its coreset, or of its groups of nodes); or labels, for which one is
        computed. Beside facts a model may be given.
    ax
        Axes to draw in, with `projection="3d"` for three dimensions; None for a figure of its own.
    dimensions
        2 or 3.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Drawing
        Its artists are "points" and "legend".
    """
    check_option(dimensions, "dimensions", (2, 3))
    facts = facts_of(graph, labels, n_jobs)
    found = embedded_points(facts, labels, axes=dimensions)
    # A graph of one or two nodes has fewer directions.
    places = np.pad(found.places, ((0, 0), (0, max(dimensions - found.places.shape[1], 0))))
    axes: Any
    figure, axes, own = new_axes(ax, projection="3d" if dimensions == 3 else None)
    if dimensions == 3 and axes.name != "3d":
        raise ValueError('three dimensions need axes with projection="3d"')
    palette = palette_of(facts)
    areas = 4 + 90 * np.sqrt(found.weights / (float(found.weights.max()) or 1.0)) / max(1.0, np.sqrt(len(places) / 150))
    colours = np.array(COLOURS)[palette.colours[found.labels]]
    artists = []
    for shape, marker in enumerate(MARKERS):
        chosen = palette.shapes[found.labels] == shape
        if chosen.any():
            columns: Any = [places[chosen, axis] for axis in range(dimensions)]
            artists.append(
                axes.scatter(*columns, s=areas[chosen], c=colours[chosen].tolist(), marker=marker, alpha=0.6, linewidths=0)
            )
    for axis, name in zip(range(dimensions), "xyz", strict=False):
        getattr(axes, f"set_{name}label")(f"direction {axis + 1}")
        getattr(axes, f"set_{name}ticks")([])
    caption = (
        f"{found.kind[0].upper()}{found.kind[1:]} by their eigenvectors, along the {'two' if dimensions == 2 else 'three'} "
        "widest directions. The area of a mark grows with the volume it stands for. Clusters that lie on each other here may "
        "still be apart in further directions."
    )
    title = f"Spectral embedding, {clusters_in_words(facts.n_clusters)}"
    legend = cluster_legend(axes, facts, palette)
    return finished(figure, axes, {"points": artists, "legend": legend}, title=title, caption=caption, own=own)
