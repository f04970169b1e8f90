"""Datasets: graphs whose clusters are known, and the real points of the paper.

- `planted`: random graphs with planted clusters, made in time linear in their edges (:func:`make_sbm`,
  :func:`make_degree_corrected_sbm`).
- `stores`: the same graphs larger than memory, drawn in pieces straight into a store.
- `points`: the four sets of points of the paper's second experiment (:func:`load_mnist` and others).
"""

from corecut.datasets.planted import PlantedLaw, Sizes, make_degree_corrected_sbm, make_sbm
from corecut.datasets.points import load_har, load_letter, load_mnist, load_pendigits

__all__ = [
    "PlantedLaw",
    "Sizes",
    "load_har",
    "load_letter",
    "load_mnist",
    "load_pendigits",
    "make_degree_corrected_sbm",
    "make_sbm",
]
