"""Pictures of a clustering with matplotlib (`pip install "corecut[plots]"`).

    from corecut import plots

    plots.quotient(graph, model).save("clusters.svg")

Every function takes a graph and its labels, or a fitted model in their place; or the :class:`corecut.PartitionFacts` of both,
so that several pictures share one computation. With `ax` it draws there; without it makes a figure, with title and caption.
It returns a :class:`Drawing`: the figure, the axes, the artists by name, and the caption. No window opens.

Up to 20 clusters have a colour and a shape of their own. More are gathered into 7 groups of neighbours that share a colour,
one of those that the colour-blind can tell apart.
"""

from corecut.plots.canvas import Drawing as Drawing
from corecut.plots.clusters import confidence as confidence, quotient as quotient, sizes as sizes
from corecut.plots.matrix import adjacency as adjacency
from corecut.plots.points import embedding as embedding
from corecut.plots.runs import k_path as k_path, stages as stages

__all__ = ["Drawing", "adjacency", "confidence", "embedding", "k_path", "quotient", "sizes", "stages"]
