"""Tensors and graphs of PyTorch Geometric; skipped where torch is not installed, which is large."""

from __future__ import annotations

import numpy as np
import pytest

from corecut import CoresetSpectralClustering, make_sbm, normalized_cut, read_graph
from corecut.graph import as_graph

torch = pytest.importorskip("torch", reason="torch is not installed")
from corecut.adapters.torch import to_graph  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")

A = make_sbm(30, 3, 0.5, 0.02, random_state=0)[0].toarray()
A = np.triu(A * np.random.default_rng(0).uniform(0.5, 2.0, A.shape), 1)
A += A.T
EDGE_INDEX = torch.tensor(np.array(A.nonzero()))
WEIGHTS = torch.tensor(A[A > 0], requires_grad=True)
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
def test_edge_index(device: str) -> None:
    index, weights = EDGE_INDEX.to(device), WEIGHTS.to(device)
    np.testing.assert_allclose(to_graph(index, edge_weight=weights).adjacency.toarray(), A)
    np.testing.assert_allclose(as_graph(index).adjacency.toarray(), A > 0)
    assert read_graph(index, loops="drop").weights is None
    assert to_graph(index, num_nodes=100).n_nodes == 100
    model = CoresetSpectralClustering(3, random_state=0).fit(index)
    labels = model.labels_as("torch")
    assert labels.dtype == torch.int64
    assert labels.tolist() == model.labels_.tolist()
    assert normalized_cut(index, labels) == model.normalized_cut_


@pytest.mark.parametrize("device", DEVICES)
def test_square_tensors(device: str) -> None:
    dense = torch.tensor(A, requires_grad=True, device=device)
    for matrix in (dense, dense.to_sparse(), dense.detach().to_sparse_csr(), dense.detach().to_sparse_csc()):
        np.testing.assert_allclose(as_graph(matrix).adjacency.toarray(), A)
    model = CoresetSpectralClustering(3, random_state=0)
    np.testing.assert_array_equal(model.fit(dense.to_sparse()).labels_, model.fit(as_graph(A)).labels_)
    with pytest.warns(UserWarning, match='square symmetric table and is taken for points: pass affinity="precomputed"'):
        model.fit(dense.detach().cpu())


@pytest.mark.parametrize("device", DEVICES)
def test_other_tensors_are_points(device: str) -> None:
    points = np.random.default_rng(0).normal(size=(60, 2))
    model = CoresetSpectralClustering(2, random_state=0)
    expected = model.fit(points).labels_
    np.testing.assert_array_equal(model.fit(torch.tensor(points, requires_grad=True, device=device)).labels_, expected)
    assert model.fit(torch.tensor(points, device=device).bfloat16()).labels_.shape == (60,)  # which NumPy does not know


def test_graphs_of_pytorch_geometric() -> None:
    pyg = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed")
    data = pyg.Data(edge_index=EDGE_INDEX, edge_weight=WEIGHTS, num_nodes=95)
    graph = as_graph(data)
    assert graph.n_nodes == 95
    np.testing.assert_allclose(graph.adjacency.toarray()[:90, :90], A)
    assert CoresetSpectralClustering(3, random_state=0).fit(pyg.Data(edge_index=EDGE_INDEX)).labels_.shape == (90,)
    with pytest.raises(ValueError, match="X is a Data of torch_geometric, which affinity='rbf' does not take"):
        CoresetSpectralClustering(3, affinity="rbf").fit(data)
    with pytest.raises(TypeError, match="has no edge_index; pass that of one kind of edge"):
        as_graph(pyg.HeteroData())
    # from_networkx calls them so.
    np.testing.assert_allclose(as_graph(pyg.Data(edge_index=EDGE_INDEX, weight=WEIGHTS)).adjacency.toarray(), A)
    for attributes in (WEIGHTS.detach(), WEIGHTS.detach()[:, None]):
        with pytest.warns(UserWarning, match=r"edge_attr is left out: every edge weighs 1; if it holds the weights set data"):
            assert as_graph(pyg.Data(edge_index=EDGE_INDEX, edge_attr=attributes)).weights is None
    features = torch.ones((EDGE_INDEX.shape[1], 3))
    assert as_graph(pyg.Data(edge_index=EDGE_INDEX, edge_attr=features, weight=torch.ones(4))).weights is None


def test_bad_tensors_are_refused_with_the_cure() -> None:
    with pytest.raises(ValueError, match=r"both directions, torch_geometric\.utils\.to_undirected adds them"):
        as_graph(EDGE_INDEX[:, EDGE_INDEX[0] < EDGE_INDEX[1]])
    assert read_graph(EDGE_INDEX[:, EDGE_INDEX[0] < EDGE_INDEX[1]], symmetrize="max").n_edges == np.count_nonzero(np.triu(A))
    with pytest.raises(ValueError, match="edge_weight must be one number per edge"):
        to_graph(EDGE_INDEX, edge_weight=WEIGHTS[1:])
    with pytest.raises(ValueError, match=r"the weight of edge \(\d+, \d+\) is -"):
        to_graph(EDGE_INDEX, edge_weight=-WEIGHTS)
    with pytest.raises(ValueError, match="edge_weight and num_nodes belong to an edge index"):
        to_graph(torch.tensor(A), num_nodes=90)
    with pytest.raises(ValueError, match=r"edge 1 .*\(1, -1\), names a node that there is not; they are 0 to 1"):
        as_graph(torch.tensor([[0, 1, 1], [1, -1, 0]]))
    with pytest.raises(ValueError, match=r"names a node that there is not; they are 0 to 4: set num_nodes="):
        to_graph(EDGE_INDEX, num_nodes=5)
    with pytest.raises(
        ValueError, match=r'a tensor like X is taken for a graph: pass affinity="nearest_neighbors" if its rows'
    ):
        CoresetSpectralClustering(2).fit(torch.tensor([[0, 1, 2], [1, 2, 3]]))
