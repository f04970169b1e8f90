"""Planted graphs drawn straight into a store: the same graph as in memory, with self-loops where they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from corecut import make_degree_corrected_sbm
from corecut.datasets.planted import PlantedLaw
from corecut.datasets.stores import planted_store


@pytest.mark.parametrize("loops", [False, True])
def test_the_store_holds_the_graph_of_the_law(tmp_path, loops):
    law = PlantedLaw.of(3000, 5, mean_degree=12, random_state=4)
    store = planted_store(law, tmp_path / "g.store", memory="1MB", loops=loops)
    expected, labels = make_degree_corrected_sbm(3000, 5, mean_degree=12, random_state=4)
    if loops:
        expected = expected + sp.eye_array(3000)
    assert store.n_entries == expected.nnz
    assert abs(store.graph.adjacency - expected).sum() == 0
    assert store.graph.weights is None
    np.testing.assert_array_equal(law.labels, labels)
