"""Graphs of other libraries: names and weights survive the way in and out, through one door; errors name the cure."""

from __future__ import annotations

import subprocess
import sys
import warnings
from datetime import datetime, timedelta
from typing import Any

import anndata
import igraph as ig
import networkx as nx
import numpy as np
import pandas as pd
import problems
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from corecut import (
    CoresetSpectralClustering,
    FastSpectralClustering,
    Graph,
    conductance,
    label_confidence,
    make_sbm,
    modularity,
    normalized_cut,
    read_graph,
    refine_partition,
    write_graph,
)
from corecut.adapters import anndata as for_anndata, igraph as for_igraph, networkx as for_networkx, pandas as for_pandas
from corecut.graph import as_graph


def planted() -> nx.Graph:
    """Return three clusters with text for names, in no order, and weights."""
    A, truth = problems.planted_graph(np.random.default_rng(0), [30, 25, 20], degree=10.0, mixing=0.1)
    rows, columns = sp.triu(A, 1).nonzero()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, rows.size)
    G = nx.Graph()
    order = np.random.default_rng(2).permutation(truth.size)
    G.add_nodes_from((f"node {i}", {"truth": int(truth[i])}) for i in order)
    G.add_weighted_edges_from((f"node {u}", f"node {v}", w) for u, v, w in zip(rows, columns, weights, strict=True))
    return G


def forms(G: nx.Graph) -> dict[str, Any]:
    """Return one graph as every library has it."""
    edges = nx.to_pandas_edgelist(G)
    frame = nx.to_pandas_adjacency(G)
    names = list(G)
    adata = anndata.AnnData(
        np.zeros((len(G), 1)), obs=pd.DataFrame(index=names), obsp={"connectivities": nx.to_scipy_sparse_array(G, format="csr")}
    )
    return {
        "networkx": G,
        "igraph": ig.Graph.from_networkx(G, vertex_attr_hashable="name"),
        "edges": edges,
        "adjacency": frame,
        "sparse adjacency": frame.astype(pd.SparseDtype(float, 0)),
        "columns in another order": frame[sorted(names)],
        "anndata": adata,
    }


def entries(graph: Graph) -> dict[tuple[Any, Any], float]:
    """Return the weights of a graph by the names of their ends."""
    names = range(graph.n_nodes) if graph.node_ids is None else graph.node_ids.tolist()
    coo = graph.adjacency.tocoo()
    return {(names[u], names[v]): float(w) for u, v, w in zip(*coo.coords, coo.data, strict=True)}


G = planted()
FORMS = forms(G)
TRUE = {(u, v): d["weight"] for a, b, d in G.edges(data=True) for u, v in ((a, b), (b, a))}


@pytest.mark.parametrize("form", FORMS)
def test_names_and_weights_are_kept(form: str) -> None:
    for graph in (as_graph(FORMS[form]), read_graph(FORMS[form])):
        assert entries(graph) == pytest.approx(TRUE)
        assert set(graph.node_ids) == set(G)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [CoresetSpectralClustering, FastSpectralClustering])
def test_fit_finds_the_clusters_and_calls_nodes_by_their_names(kind: Any, form: str) -> None:
    affinity = "precomputed" if "adjacency" in form or "columns" in form else "auto"
    model = kind(3, affinity=affinity, random_state=0).fit(FORMS[form])
    found = model.labels_by_name_
    assert set(found) == set(G)
    assert adjusted_rand_score([G.nodes[node]["truth"] for node in G], [found[node] for node in G]) == 1.0
    # The labels go back to where they came from.
    H = G.copy()
    nx.set_node_attributes(H, model.labels_as("networkx"), "cluster")
    assert nx.get_node_attributes(H, "cluster") == found
    assert model.labels_as("pandas").to_dict() == found


@pytest.mark.parametrize("form", FORMS)
def test_every_function_takes_it(form: str) -> None:
    X = FORMS[form]
    labels = {node: G.nodes[node]["truth"] for node in G}
    graph = as_graph(G)
    assert normalized_cut(X, labels) == pytest.approx(normalized_cut(graph, labels))
    np.testing.assert_allclose(conductance(X, labels), conductance(graph, labels))
    assert modularity(X, labels) == pytest.approx(
        nx.community.modularity(G, nx.community.label_propagation_communities(G)), abs=0.5
    )
    assert label_confidence(X, labels).shape == (len(G),)
    assert refine_partition(X, labels).objective <= refine_partition(X, labels).objective_before


def test_labels_by_name_in_any_form() -> None:
    truth = {node: G.nodes[node]["truth"] for node in G}
    graph = as_graph(G)
    plain = np.array([truth[node] for node in G])
    sets = [{node for node in G if truth[node] == j} for j in range(3)]
    series = pd.Series(truth).sort_index()
    assert list(series.index) != list(G)
    clustering = ig.VertexClustering(FORMS["igraph"], [truth[name] for name in FORMS["igraph"].vs["name"]])
    expected = normalized_cut(graph, plain)
    for labels in (truth, sets, series, series.astype("category"), plain.tolist(), pd.Series(plain)):
        assert normalized_cut(graph, labels) == pytest.approx(expected)
    assert normalized_cut(FORMS["igraph"], clustering) == pytest.approx(expected)
    # A Series by numbers, of a graph without names.
    shuffled = pd.Series(plain).sample(frac=1, random_state=0)
    assert normalized_cut(graph.adjacency, shuffled) == pytest.approx(expected)
    refined = refine_partition(G, {node: f"cluster {label}" for node, label in truth.items()})
    assert set(refined.labels) == {"cluster 0", "cluster 1", "cluster 2"}
    some = dict(list(truth.items())[1:])
    with pytest.raises(ValueError, match=f"labels has no label for 1 of 75 nodes, the first is {next(iter(G))!r}"):
        normalized_cut(graph, some)
    with pytest.raises(ValueError, match="labels has a label for 'nobody', which is no node"):
        normalized_cut(graph, truth | {"nobody": 0})
    with pytest.raises(ValueError, match="must be a partition: some node is in more than one of the 4 sets"):
        normalized_cut(graph, [*sets, sets[0]])


def test_no_library_is_imported_by_ours() -> None:
    script = "import sys, numpy, corecut; corecut.normalized_cut(numpy.ones((3, 3)), [0, 1, 1]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"networkx", "igraph", "pandas", "polars", "anndata", "torch"} & set(done.stdout.split())
    # And what is read needs nothing but the library that made it.
    script = (
        "import sys, networkx as nx; from corecut import normalized_cut;"
        "normalized_cut(nx.path_graph(4), [0, 0, 1, 1]); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"igraph", "pandas", "polars", "anndata", "torch"} & set(done.stdout.split())


# --- networkx ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [
        nx.karate_club_graph(),
        nx.grid_2d_graph(4, 5),
        nx.relabel_nodes(nx.path_graph(5), {0: 2.5, 1: "x", 2: (1, 2), 3: 7, 4: frozenset("a")}),
        nx.MultiGraph([("a", "b"), ("a", "b"), ("b", "c"), ("c", "c")]),
        nx.subgraph_view(nx.path_graph(6), filter_node=lambda node: node != 5),
        nx.Graph([(10**30, 1), (1, 2)]),
        nx.star_graph(3).to_directed(as_view=True).to_undirected(),
    ],
    ids=str,
)
def test_networkx_graphs_of_all_kinds(made: nx.Graph) -> None:
    graph = as_graph(made)
    assert abs(graph.adjacency - nx.to_scipy_sparse_array(made, format="csr")).sum() == 0
    names = range(len(made)) if graph.node_ids is None else graph.node_ids.tolist()
    assert list(names) == list(made)


def test_networkx_weights() -> None:
    H = nx.Graph()
    H.add_edge("a", "b", weight=2, strength=5.0)
    H.add_edge("b", "c", weight=np.float32(0.5), strength=7.0)
    assert entries(as_graph(H))["a", "b"] == 2.0
    assert entries(for_networkx.to_graph(H, weight="strength"))["b", "c"] == 7.0
    assert for_networkx.to_graph(H, weight=None).weights is None
    assert read_graph(H, weights=False).weights is None
    H.add_edge("c", "d")
    with pytest.warns(UserWarning, match="1 of 3 edges have no attribute 'weight' and weigh 1, as in networkx") as told:
        assert entries(as_graph(H))["c", "d"] == 1.0
    assert told[0].filename == __file__
    H.edges["a", "b"][3] = 4.0  # an attribute need not be called by text
    with pytest.warns(UserWarning, match="2 of 3 edges have no attribute 3"):
        assert entries(for_networkx.to_graph(H, weight=3))["a", "b"] == 4.0


@pytest.mark.parametrize(
    ("weight", "error", "words"),
    [
        (-1.0, ValueError, r"the weight of edge \('a', 'b'\) is -1; weights are similarities, 0 or more"),
        (np.nan, ValueError, r"the weight of edge \('a', 'b'\) is nan; remove the edge, or give it a finite weight"),
        (np.inf, ValueError, r"the weight of edge \('a', 'b'\) is inf; remove"),
        (10**400, ValueError, r"the weight of edge \('a', 'b'\) is inf; remove"),
        ("3", TypeError, r"the weight of edge \('a', 'b'\) is '3', not a number; turn the weights into numbers"),
        (None, TypeError, r"the weight of edge \('a', 'b'\) is None, not a number; remove the edge, or give it a weight"),
        ((1, 2), TypeError, r"the weight of edge \('a', 'b'\) is \(1, 2\), not a number"),
    ],
)
def test_bad_weights_are_named_by_their_edge(weight: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        CoresetSpectralClustering(2).fit(nx.Graph([("a", "b", {"weight": weight}), ("b", "c", {"weight": 1.0})]))
    with pytest.raises(error, match=words):
        normalized_cut(ig.Graph.TupleList([("a", "b", weight), ("b", "c", 1.0)], weights=True), [0, 1, 1])


def test_directed_graphs_are_refused_with_the_cure() -> None:
    D = nx.DiGraph([(0, 1, {"weight": 2.0}), (1, 0, {"weight": 4.0}), (1, 2, {"weight": 1.0})])
    cures = ((D, r"G\.to_undirected\(\)"), (ig.Graph.from_networkx(D), r"G\.as_undirected\(combine_edges=\"sum\"\)"))
    for directed, cure in cures:
        for act in (CoresetSpectralClustering(2).fit, as_graph, read_graph, lambda X: normalized_cut(X, [0, 1, 1])):
            with pytest.raises(ValueError, match=f'is directed.*pass {cure}, or symmetrize="mean", "max" or "min"'):
                act(directed)
        assert entries(read_graph(directed, symmetrize="mean"))[0, 1] == 3.0
        assert entries(read_graph(directed, symmetrize="max"))[0, 1] == 4.0
        model = CoresetSpectralClustering(2, symmetrize="min", random_state=0)
        assert model.fit(directed).n_features_in_ == 3
    with pytest.raises(ValueError, match="MultiDiGraph"):
        as_graph(nx.MultiDiGraph([(0, 1), (0, 1)]))


def test_what_is_no_graph_of_networkx() -> None:
    with pytest.raises(ValueError, match="the graph is empty: it has 0 nodes"):
        as_graph(nx.Graph())
    with pytest.raises(TypeError, match="weight must be the name of an edge attribute"):
        for_networkx.to_graph(G, weight=lambda u, v, d: 1.0)
    with pytest.raises(TypeError, match=r"NodeView is no graph of networkx; pass a networkx\.Graph"):
        as_graph(G.nodes)
    with pytest.raises(ValueError, match="X is a Graph of networkx, which affinity='rbf' does not take"):
        CoresetSpectralClustering(2, affinity="rbf").fit(G)
    lonely = as_graph(nx.empty_graph(3))
    assert (lonely.n_nodes, lonely.n_entries) == (3, 0)
    with pytest.raises(ValueError, match="the graph has no edges"):
        CoresetSpectralClustering(2).fit(nx.empty_graph(3))


def test_what_looks_like_a_graph_and_is_none_is_told_what_to_do() -> None:
    model = CoresetSpectralClustering(2)
    for view in (G.edges, G.nodes, G.adj):
        with pytest.raises(TypeError, match=r"is no graph of networkx; pass a networkx\.Graph"):
            model.fit(view)
    for edges in ([("a", "b"), ("b", "c")], nx.to_dict_of_lists(G)):
        with pytest.raises(TypeError, match=r"is not taken for a graph by itself: pass networkx\.Graph\(X\), or pandas"):
            model.fit(edges)
    frame = pd.DataFrame({"person": ["a", "b", "c"], "age": [1, 2, 3]})
    with pytest.raises(ValueError, match=r"the column 'person' holds text \('a'\), .* if the rows are edges, pass read_graph"):
        model.fit(frame)
    with pytest.raises(ValueError, match="format='gml' has no meaning for a Graph: it is for files"):
        read_graph(G, format="gml")
    with pytest.raises(TypeError, match="the column 'source' holds times, which are no ids; turn them into text"):
        as_graph(edge_frame(source=pd.to_datetime(["2020-01-01"] * 3)))
    with pytest.warns(
        UserWarning, match="kernel_params={'a': 1} has no effect on this graph: it belongs to affinity=a function"
    ):
        CoresetSpectralClustering(2, kernel_params={"a": 1}, random_state=0).fit(G)


def test_libraries_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    model = CoresetSpectralClustering(3, random_state=0).fit(G)
    with pytest.raises(ModuleNotFoundError, match=r'labels_as\("torch"\) needs torch; install it with: pip install torch'):
        model.labels_as("torch")


def test_names_that_no_file_can_hold_are_told(tmp_path: Any) -> None:
    grid = as_graph(nx.grid_2d_graph(3, 3))
    with pytest.raises(ValueError, match=r"integers, or text throughout, and one is \(0, 0\); turn them into text with str"):
        write_graph(grid, tmp_path / "grid.csv")
    write_graph(as_graph(G), tmp_path / "named.parquet")
    assert entries(read_graph(tmp_path / "named.parquet")) == pytest.approx(TRUE)


# --- igraph --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Zachary", "Petersen", "Tutte", "Meredith"])
def test_famous_graphs_of_igraph(name: str) -> None:
    famous = ig.Graph.Famous(name)
    graph = as_graph(famous)
    assert abs(graph.adjacency - famous.get_adjacency_sparse()).sum() == 0
    model = CoresetSpectralClustering(2, random_state=0).fit(famous)
    clustering = ig.VertexClustering(famous, model.labels_as("igraph"))
    assert modularity(famous, clustering) == pytest.approx(clustering.modularity)
    assert normalized_cut(famous, model.labels_) == model.normalized_cut_


def test_igraph_names_and_weights() -> None:
    made = ig.Graph.TupleList([("a", "b", 2.0), ("b", "c", 3.0), ("a", "b", 1.0)], weights=True)
    assert entries(as_graph(made)) == {("a", "b"): 3.0, ("b", "a"): 3.0, ("b", "c"): 3.0, ("c", "b"): 3.0}
    made.es["strength"] = [1, 2, 3]
    assert entries(for_igraph.to_graph(made, weight="strength"))["b", "c"] == 2.0
    assert entries(for_igraph.to_graph(made, weight=None))["a", "b"] == 2.0
    made.vs["name"] = ["a", "a", "c"]
    with pytest.raises(ValueError, match="two nodes have the name 'a' in igraph's vertex attribute 'name'; give every node"):
        as_graph(made)
    for name in (None, float("nan"), ["b"], (["b"],)):
        made.vs["name"] = ["a", name, "c"]
        with pytest.raises(
            ValueError, match=r"vertex 1 has .* for a name in igraph's .* give every .* or number them with del G\.vs"
        ):
            as_graph(made)
    made.vs["name"] = [None, None, None]
    assert as_graph(made).node_ids is None
    with pytest.raises(TypeError, match="weight must be the name of an edge attribute"):
        for_igraph.to_graph(made, weight=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the graph is empty"):
        as_graph(ig.Graph())
    with pytest.raises(TypeError, match=r"VertexClustering of igraph is no graph; pass an igraph\.Graph"):
        as_graph(ig.VertexClustering(ig.Graph.Ring(3), [0, 0, 1]))


# --- pandas --------------------------------------------------------------------------------------------------------------


def edge_frame(**changes: Any) -> pd.DataFrame:
    return pd.DataFrame({"source": ["a", "b", "c"], "target": ["b", "c", "a"], "weight": [1.0, 2.0, 3.0]} | changes)


@pytest.mark.parametrize(
    ("frame", "error", "words"),
    [
        (
            edge_frame(source=["a", None, "c"]),
            ValueError,
            r"row 1 of the table of edges has no node \(column 'source'\); pass frame\.dropna\(subset=\['source'\]\)",
        ),
        (
            edge_frame(target=[1, np.nan, np.nan], source=[1, 2, 3]),
            ValueError,
            "row 1 .* and 1 more rows have none; pass",
        ),
        (edge_frame(weight=[1, np.nan, 2]), ValueError, r"row 1 of the table of edges has no weight \(column 'weight'\)"),
        (
            edge_frame(weight=[1, np.nan, 2]).set_axis(np.array([10, 20, 30])),
            ValueError,
            r"row 20 of the table of edges has no weight",
        ),
        (
            edge_frame(weight=pd.to_datetime(["2020-01-01"] * 3)),
            TypeError,
            "the column 'weight' holds times, which are no weights; turn them into numbers .* read_graph",
        ),
        (edge_frame(weight=pd.to_timedelta([1, 2, 3], unit="s")), TypeError, "the column 'weight' holds times, which are no"),
        (edge_frame(weight=[1, -2, 2]), ValueError, r"the weight of row 1 \(column 'weight'\) is -2; weights are similarities"),
        (edge_frame(weight=["1", "x", "2"]), TypeError, r"the weight of row 0 \(column 'weight'\) is '1', not a number"),
        (edge_frame(source=[1, 2, 3]), TypeError, "name nodes in two ways, by integers and by text"),
        (edge_frame(source=["a", 2, "c"]), TypeError, r"holds 2, a int; ids are all integers or all text"),
        (edge_frame(source=[0.5, 1, 2]), TypeError, "the column 'source' holds 0.5, which is no node's id"),
        (edge_frame().iloc[:0], ValueError, "the table of edges is empty"),
    ],
)
def test_bad_tables_of_edges(frame: pd.DataFrame, error: type[Exception], words: str) -> None:
    for act in (CoresetSpectralClustering(2).fit, as_graph, read_graph):
        with pytest.raises(error, match=words):
            act(frame)


def test_tables_of_edges() -> None:
    # The rules of edge lists: repeats of weighted edges are added up, of others they count once.
    graph = as_graph(edge_frame(target=["b", "a", "c"]))
    assert entries(graph) == {("a", "b"): 3.0, ("b", "a"): 3.0, ("c", "c"): 3.0}
    assert entries(read_graph(edge_frame(target=["b", "a", "c"]), duplicates="max", loops="drop"))["a", "b"] == 2.0
    assert as_graph(edge_frame().drop(columns="weight")).weights is None
    assert read_graph(edge_frame(), weights=False).weights is None
    other = edge_frame().rename(columns={"source": "who", "target": "whom", "weight": "letters"})
    assert entries(read_graph(other, columns=("who", "whom", "letters")))["b", "c"] == 2.0
    assert read_graph(other, columns=(0, 1)).weights is None
    with pytest.raises(ValueError, match=r"no graph: a table of edges has columns source, target .* pass read_graph"):
        as_graph(other)
    with pytest.raises(ValueError, match="the frame has no columns source and target, but 'who', 'whom', 'letters'"):
        for_pandas.to_graph(other)
    with pytest.raises(ValueError, match="the frame has no column 'x'; it has 'who', 'whom', 'letters'"):
        read_graph(other, columns=("who", "x"))
    with pytest.raises(ValueError, match='symmetrize="mean" has no meaning for a table of edges'):
        CoresetSpectralClustering(2, symmetrize="mean").fit(edge_frame())
    with pytest.raises(ValueError, match="delimiter has no meaning for a frame of edges"):
        read_graph(edge_frame(), delimiter=",")
    # Integers that were floats for a while, categories, and pandas' own types.
    numbers = edge_frame(source=[5.0, 7.0, 9.0], target=pd.array([7, 9, 5], dtype="Int64"))
    assert as_graph(numbers).node_ids.tolist() == [5, 7, 9]
    assert as_graph(edge_frame().astype({"source": "category", "target": "category"})).node_ids.tolist() == ["a", "b", "c"]
    assert as_graph(edge_frame(source=[0, 1, 2], target=[1, 2, 0])).node_ids is None


def test_tables_that_may_be_points_draw_a_warning() -> None:
    rng = np.random.default_rng(0)
    pixels = pd.DataFrame({"row": rng.integers(30, size=80), "col": rng.integers(30, size=80)})
    with pytest.warns(UserWarning, match="columns 'row' and 'col' and is taken for a table of edges: pass affinity"):
        CoresetSpectralClustering(2, random_state=0).fit(pixels)
    assert CoresetSpectralClustering(2, affinity="nearest_neighbors", random_state=0).fit(pixels).labels_.shape == (80,)
    # Coordinates are no ids.
    flow = pd.DataFrame(rng.normal(size=(80, 2)), columns=["u", "v"], index=[f"p{i}" for i in range(80)])
    model = CoresetSpectralClustering(2, random_state=0).fit(flow)
    assert list(model.labels_by_name_) == list(flow.index)


def test_polars_tables_of_edges() -> None:
    pl = pytest.importorskip("polars", reason="polars is not installed")
    frame = pl.DataFrame({"src": ["a", "b"], "dst": ["b", "c"], "w": [1.5, 2.0]})
    assert entries(as_graph(frame)) == {("a", "b"): 1.5, ("b", "a"): 1.5, ("b", "c"): 2.0, ("c", "b"): 2.0}
    with pytest.raises(ValueError, match=r"row 1 .* has no node \(column 'src'\); pass frame\.drop_nulls\('src'\)"):
        as_graph(pl.DataFrame({"src": ["a", None], "dst": ["b", "c"]}))
    times = pl.DataFrame({"src": ["a", "b"], "dst": ["b", "c"], "weight": [datetime(2020, 1, 1), datetime(2020, 1, 2)]})
    for weights in (times, times.with_columns(pl.col("weight").diff().fill_null(timedelta(1)))):
        with pytest.raises(TypeError, match="the column 'weight' holds times, which are no weights"):
            as_graph(weights)


def test_square_frames_are_graphs_with_a_warning() -> None:
    frame = FORMS["adjacency"]
    words = 'square frame with equal index and columns and is taken for a graph: pass affinity="precomputed" to say'
    with pytest.warns(UserWarning, match=words) as told:
        model = CoresetSpectralClustering(3, random_state=0).fit(frame)
    assert told[0].filename == __file__
    assert set(model.labels_by_name_) == set(G)
    with pytest.warns(UserWarning, match=words):
        numbered = CoresetSpectralClustering(3, random_state=0).fit(pd.DataFrame(frame.to_numpy()))
    np.testing.assert_array_equal(numbered.labels_, model.labels_)
    # As points, without a word: said to be, not symmetric under mere numbers, or other names above than beside.
    rng = np.random.default_rng(0)
    points = pd.DataFrame(rng.normal(size=(20, 20)))
    CoresetSpectralClustering(2, affinity="nearest_neighbors", random_state=0).fit(frame)
    CoresetSpectralClustering(2, random_state=0).fit(points)
    CoresetSpectralClustering(2, random_state=0).fit(points.add_prefix("feature"))
    named = points.abs().set_axis(list("abcdefghijklmnopqrst")).set_axis(list("abcdefghijklmnopqrst"), axis=1)
    with (
        pytest.warns(UserWarning, match=words),
        pytest.raises(
            ValueError, match=r'not symmetric.*a square frame is taken for a graph: pass affinity="nearest_neighbors"'
        ),
    ):
        CoresetSpectralClustering(2).fit(named)
    assert (
        CoresetSpectralClustering(2, affinity="precomputed", symmetrize="mean", random_state=0).fit(named).n_features_in_ == 20
    )


def test_columns_of_frames_are_told_by_their_names() -> None:
    frame = FORMS["adjacency"]
    model = CoresetSpectralClustering(3, affinity="precomputed", random_state=0).fit(frame)
    new = frame.iloc[:5] * 1.5
    expected = model.predict(new)
    np.testing.assert_array_equal(model.predict(new.iloc[:, ::-1]), expected)
    np.testing.assert_array_equal(model.predict(new.set_axis(range(len(frame)), axis=1)), expected)
    np.testing.assert_array_equal(model.predict(new.to_numpy()), expected)
    first = frame.columns[0]
    with pytest.raises(ValueError, match=rf"columns are not the fitted nodes: '{first}' is not among them; .*to_numpy"):
        model.predict(new.rename(columns={first: "nobody"}))
    # Mere numbers in another order are numbers still, for a fit as for new rows.
    numbered = frame.reset_index(drop=True).set_axis(range(len(frame)), axis=1)
    with pytest.warns(UserWarning, match="is taken for a graph"):
        model = CoresetSpectralClustering(3, random_state=0).fit(numbered.iloc[:, ::-1])
    np.testing.assert_array_equal(model.predict(numbered.iloc[:5, ::-1] * 1.5), expected)


def test_columns_of_polars_frames_are_told_by_their_names() -> None:
    pl = pytest.importorskip("polars", reason="polars is not installed")
    _columns_are_told(lambda frame: pl.DataFrame({str(name): frame[name].to_numpy() for name in frame.columns}))


def test_columns_of_frames_without_an_index_are_told_by_their_names() -> None:
    class Frame:
        """What corecut uses of a frame of polars."""

        __module__ = "polars.dataframe"

        def __init__(self, frame: pd.DataFrame) -> None:
            self._frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
            self.columns, self.shape = list(self._frame.columns), frame.shape

        def __getitem__(self, names: list[str]) -> Frame:
            return Frame(self._frame[names])

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            return np.array(self._frame, dtype=dtype)

    _columns_are_told(Frame)


def _columns_are_told(made: Any) -> None:
    """Check that frames of similarities are read by the names of their columns, where those are text."""
    frame = FORMS["adjacency"]
    for model in (
        CoresetSpectralClustering(3, random_state=0).fit(G),
        CoresetSpectralClustering(3, affinity="precomputed", random_state=0).fit(frame),
    ):
        np.testing.assert_array_equal(model.predict(made(frame.iloc[:, ::-1])), model.labels_)
        unnamed = frame.set_axis([f"column_{i}" for i in range(len(frame))], axis=1)
        np.testing.assert_array_equal(model.predict(made(unnamed)), model.labels_)
        first = frame.columns[0]
        for other in (frame.rename(columns={first: "nobody"}), unnamed.iloc[:, ::-1]):
            with pytest.raises(ValueError, match=rf"columns are not the fitted nodes: '{first}' is not among them; .*to_numpy"):
                model.predict(made(other))
    # Numbers are names, too, and mere numbers are places.
    for names in (range(100, 100 + len(frame)), range(len(frame))):
        numbered = nx.relabel_nodes(G, dict(zip(G, names, strict=True)))
        model = CoresetSpectralClustering(3, random_state=0).fit(numbered)
        rows = nx.to_pandas_adjacency(numbered)
        np.testing.assert_array_equal(model.predict(made(rows.iloc[:, ::-1])), model.labels_)
    np.testing.assert_array_equal(model.predict(made(unnamed.iloc[:, ::-1])), model.labels_)
    twins = CoresetSpectralClustering(2, random_state=0).fit(nx.Graph([(1, 2), (2, "1"), ("1", 1), (1, 4)]))
    with pytest.raises(ValueError, match=r"not the fitted nodes: as text two nodes have one name; .*to_numpy"):
        twins.predict(made(pd.DataFrame(np.eye(4), columns=["1", "2", "3", "4"])))


def test_bad_square_frames() -> None:
    frame = FORMS["adjacency"]
    first = frame.index[0]
    with pytest.raises(ValueError, match=r"index and columns are not the same nodes: 0 is in the index .*set_axis"):
        as_graph(frame.reset_index(drop=True))
    gap = frame.copy()
    gap.iloc[0, 3] = np.nan
    with pytest.raises(ValueError, match=rf"no value \(NaN\) in row '{first}', column .*; pass frame\.fillna\(0\)"):
        as_graph(gap)
    with pytest.raises(TypeError, match="the frame holds values that are no numbers"):
        as_graph(frame.astype(object).where(frame > 0, "none"))
    with pytest.raises(
        TypeError, match=f"the column '{first}' of the frame holds times, which are no weights; pass a frame of"
    ):
        as_graph(frame.apply(pd.to_timedelta, unit="s"))
    with pytest.raises(ValueError, match="negative"):
        as_graph(-frame)
    with pytest.raises(TypeError, match="a graph cannot be made of a Series"):
        as_graph(frame.iloc[0])
    twice = [*frame.index[:-1], first]
    with pytest.raises(ValueError, match=f"two nodes have the name '{first}' in the frame's index"):
        as_graph(frame.set_axis(twice).set_axis(twice, axis=1))


# --- AnnData -------------------------------------------------------------------------------------------------------------


def cells() -> anndata.AnnData:
    A, truth = make_sbm(40, 3, 0.4, 0.02, random_state=0)
    matrix = sp.csr_array(A).astype(np.float32)
    adata = anndata.AnnData(np.zeros((120, 2), dtype=np.float32), obs=pd.DataFrame(index=[f"cell{i}" for i in range(120)]))
    adata.obs["truth"] = pd.Categorical(truth)
    adata.obsp["connectivities"] = adata.obsp["mine_connectivities"] = sp.csr_matrix(matrix)
    adata.uns["mine"] = {"connectivities_key": "mine_connectivities"}
    return adata


def test_cells_are_clustered_in_scanpys_manner(tmp_path: Any) -> None:
    adata = cells()
    assert for_anndata.cluster(adata, n_clusters=3, random_state=1) is None
    column = adata.obs["corecut"]
    assert column.cat.categories.tolist() == ["0", "1", "2"]
    assert adjusted_rand_score(adata.obs["truth"], column) == 1.0
    assert adata.uns["corecut"]["params"] == {"n_clusters": 3, "random_state": 1, "obsp": "connectivities"}
    assert adata.uns["corecut"]["normalized_cut"] == pytest.approx(normalized_cut(adata, column))
    copied = for_anndata.cluster(adata, 2, key_added="two", neighbors_key="mine", copy=True, balance=0.1)
    assert "two" not in adata.obs
    assert copied.uns["two"]["params"] == {
        "n_clusters": 2,
        "random_state": 0,
        "obsp": "mine_connectivities",
        "balance": 0.1,
        "neighbors_key": "mine",
    }
    assert copied.obs["two"].nunique() == 2
    copied.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert back.obs["two"].tolist() == copied.obs["two"].tolist()
    for_anndata.cluster(back, 12, obsp="connectivities")
    assert back.obs["corecut"].cat.categories.tolist() == [str(i) for i in range(12)]  # "10" behind "9"


def test_annotated_data_are_a_graph() -> None:
    adata = cells()
    model = CoresetSpectralClustering(3, random_state=0).fit(adata)
    assert list(model.labels_by_name_) == adata.obs_names.tolist()
    adata.obs["here"] = model.labels_as("anndata")
    assert adata.obs["here"].dtype == "category"
    assert adata.obs["here"].notna().all()
    # Of the matrix alone the cells' names are not known: then their order counts, and no column is left empty.
    adata.obs["there"] = CoresetSpectralClustering(3, random_state=0).fit(adata.obsp["connectivities"]).labels_as("anndata")
    assert adata.obs["there"].tolist() == adata.obs["here"].tolist()


def test_names_that_occur_twice_are_told_of() -> None:
    adata = cells()
    adata.obs_names = ["cell0", *adata.obs_names[:-1]]
    with pytest.warns(
        UserWarning, match=r"more than one cell has the name 'cell0' .* numbered .* adata\.obs_names_make_unique"
    ):
        model = CoresetSpectralClustering(3, random_state=0).fit(adata)
    assert list(model.labels_by_name_)[:2] == [0, 1]
    points = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), index=[*range(39), 7])
    with pytest.warns(UserWarning, match=r"more than one row of the frame has the name 7 .* frame\.reset_index\(drop=True\)"):
        model = CoresetSpectralClustering(2, random_state=0).fit(points)
    assert list(model.labels_by_name_)[:2] == [0, 1]
    for_anndata.cluster(adata, 3)  # names no cell


def test_what_is_kept_of_a_found_number_of_clusters_fits_into_a_file(tmp_path: Any) -> None:
    adata = cells()
    for_anndata.cluster(adata, "auto", random_state=np.random.default_rng(0), max_cluster_size=np.float64(1.5))
    assert adata.uns["corecut"]["params"] == {"n_clusters": "auto", "obsp": "connectivities", "max_cluster_size": 1.5}
    assert adata.uns["corecut"]["selection"].startswith("3 clusters: one more would cost")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    assert anndata.read_h5ad(tmp_path / "cells.h5ad").uns["corecut"]["selection"] == adata.uns["corecut"]["selection"]


def test_views_of_annotated_data() -> None:
    adata = cells()
    some = adata[adata.obs["truth"] != 2]
    copied = for_anndata.cluster(some, 2, copy=True)
    assert adjusted_rand_score(some.obs["truth"], copied.obs["corecut"]) == 1.0
    model = CoresetSpectralClustering(2, random_state=0).fit(some.obsp["connectivities"])
    assert [str(label) for label in model.labels_] == copied.obs["corecut"].tolist()
    assert list(CoresetSpectralClustering(2, random_state=0).fit(some).labels_by_name_) == some.obs_names.tolist()


def test_annotated_data_without_their_graph() -> None:
    adata = cells()
    with pytest.raises(KeyError, match="has no graph 'other', it holds 'connectivities', 'mine_connectivities'; name one"):
        for_anndata.cluster(adata, 3, obsp="other")
    with pytest.raises(KeyError, match=r"adata.uns has no 'other'; run scanpy.pp.neighbors\(adata, key_added='other'\) first"):
        for_anndata.cluster(adata, 3, neighbors_key="other")
    with pytest.raises(ValueError, match="both say which graph to take; give one of them"):
        for_anndata.cluster(adata, 3, neighbors_key="mine", obsp="mine_connectivities")
    del adata.obsp["connectivities"], adata.obsp["mine_connectivities"]
    for act in (lambda: for_anndata.cluster(adata, 3), lambda: CoresetSpectralClustering(2).fit(adata)):
        with pytest.raises(KeyError, match=r"it holds nothing; run scanpy.pp.neighbors\(adata\) first"):
            act()
    with pytest.raises(TypeError, match=r"cluster has no resolution=: the number of clusters is chosen by n_clusters="):
        for_anndata.cluster(cells(), 3, resolution=1.0)
    with pytest.raises(TypeError, match=r"cluster has no affinity=: the graph is that of obsp="):
        for_anndata.cluster(cells(), 3, affinity="rbf")
    with pytest.raises(TypeError, match=r"adata must be an AnnData, got ndarray; CoresetSpectralClustering\(k\).fit takes"):
        for_anndata.cluster(np.zeros((3, 3)), 3)


def test_labels_as_names_what_there_is() -> None:
    model = CoresetSpectralClustering(3, random_state=0).fit(G)
    with pytest.raises(ValueError, match="library must be one of 'networkx', 'igraph', 'pandas', 'anndata', 'torch'; got 'x'"):
        model.labels_as("x")  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CoresetSpectralClustering(3, random_state=0).fit(as_graph(G).adjacency).labels_by_name_[0] in (0, 1, 2)
