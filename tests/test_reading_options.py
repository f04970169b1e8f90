"""Every option of reading, for every format: it is obeyed, or refused in one sentence with the cure."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp
from typer.testing import CliRunner

from corecut import Graph, GraphStore, read_graph
from corecut._files import GraphFileError
from corecut.cli import app
from corecut.edges import EdgeRules
from corecut.readers import convert_graph
from corecut.readers.layout import EdgeOptions

FILES = ["e.txt", "e.csv", "e.parquet", "e.npz", "m.mtx", "m.npz", "g.store"]
# Nodes 1, 2, 3: an edge of weight 2 listed twice, one of weight 5, a loop of weight 3.
EDGES = [(1, 2, 1.0), (2, 1, 1.0), (2, 3, 5.0), (3, 3, 3.0)]
MATRIX = np.array([[0, 2, 0], [2, 0, 5], [0, 5, 3.0]])


@pytest.fixture(params=FILES)
def path(request, tmp_path):
    """Write the same graph in every format."""
    file = tmp_path / request.param
    source, target, weight = (np.array(column) for column in zip(*EDGES, strict=True))
    if file.suffix == ".txt":
        file.write_text("".join(f"{u} {v} {w}\n" for u, v, w in EDGES))
    elif file.suffix == ".csv":
        file.write_text("source,target,weight\n" + "".join(f"{u},{v},{w}\n" for u, v, w in EDGES))
    elif file.suffix == ".parquet":
        pq.write_table(pa.table({"source": source, "target": target, "weight": weight}), file)
    elif file.name == "e.npz":
        np.savez(file, src=source, dst=target, w=weight)
    elif file.suffix == ".mtx":
        scipy.io.mmwrite(file, sp.coo_array(MATRIX))
    elif file.name == "m.npz":
        sp.save_npz(file, sp.csr_array(MATRIX))
    else:
        GraphStore.write(Graph.from_matrix(MATRIX), file)
    return file


# A value of each option that asks for something else than the default.
VALUES = {
    "delimiter": "|",
    "header": True,
    "columns": (1, 0),
    "weights": False,
    "ids": "text",
    "comments": "1",
    "compact": False,
    "duplicates": "max",
    "loops": "drop",
    "symmetrize": "max",
}


def test_every_option_is_tried():
    options = set(inspect.signature(read_graph).parameters) - {"path", "format", "n_jobs"}
    assert set(VALUES) == options


def described(graph: Graph) -> tuple[object, ...]:
    return (
        graph.indptr.tolist(),
        graph.indices.tolist(),
        None if graph.weights is None else graph.weights.tolist(),
        None if graph.node_ids is None else graph.node_ids.tolist(),
    )


def test_weights_and_loops_are_obeyed_everywhere(path):
    graph = read_graph(path, weights=False)
    assert graph.weights is None
    assert graph.degrees.tolist() == [1, 2, 2]
    assert read_graph(path, duplicates="unit").weights is None
    graph = read_graph(path, loops="drop")
    assert graph.diagonal is None
    assert graph.degrees.tolist() == [2, 7, 5]
    both = read_graph(path, loops="drop", weights=False)
    assert both.degrees.tolist() == [1, 2, 1]
    assert both.n_edges == 2


@pytest.mark.parametrize("option", VALUES)
def test_options_change_the_graph_or_are_refused(path, option):
    before = described(read_graph(path))
    value = False if (path.name, option) == ("e.csv", "header") else VALUES[option]
    refused, after = "", before
    try:
        after = described(read_graph(path, **{option: value}))
    except GraphFileError as error:
        refused = str(error)
    # A symmetric matrix stays as it is; others are made symmetric in test_readers_formats.py.
    if option != "symmetrize" or not path.name.startswith("m."):
        assert refused or after != before
    assert not refused or (str(path) in refused and "\n" not in refused and option not in ("weights", "loops"))


@pytest.mark.parametrize("option", VALUES)
def test_conversion_obeys_like_reading(path, tmp_path, option):
    given = {key: value for key, value in VALUES.items() if key == option}
    table = {key: given[key] for key in given if key in EdgeOptions.__dataclass_fields__}
    rules = {key: given[key] for key in given if key in EdgeRules.__dataclass_fields__}
    rest = {key: given[key] for key in given if key in ("compact", "symmetrize")}

    def outcome(make) -> object:
        try:
            return described(make())
        except GraphFileError as error:
            return str(error)

    def converted() -> Graph:
        new = tmp_path / "new.store"
        return convert_graph(path, new, options=EdgeOptions(**table), rules=EdgeRules(**rules), **rest)[0].graph

    expected = outcome(lambda: read_graph(path, **given))
    assert outcome(converted) == expected
    assert (tmp_path / "new.store").exists() == (not isinstance(expected, str))


def test_the_command_line_obeys(path):
    result = CliRunner().invoke(app, ["info", str(path), "--drop-loops", "--no-weights", "--json", "-q"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert (data["edges"], data["loops"], data["weights"]) == (2, 0, "unit")


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("e.txt", "symmetrize", "edges are undirected, .* duplicates="),
        ("e.parquet", "delimiter", "delimiter has no meaning for a Parquet table"),
        ("m.mtx", "compact", "the nodes of a matrix are numbered by their rows"),
        ("m.mtx", "duplicates", 'pass symmetrize="max"'),
        ("g.store", "ids", "give the option when you make the store"),
    ],
)
@pytest.mark.parametrize("path", FILES, indirect=True)
def test_refusals_name_the_cure(path, name, option, message):
    if path.name == name:
        with pytest.raises(GraphFileError, match=message):
            read_graph(path, **{option: VALUES[option]})


def test_a_store_that_is_mapped_stays_mapped(tmp_path):
    store = GraphStore.write(Graph.from_matrix(MATRIX), tmp_path / "g.store")
    graph = read_graph(store.path, weights=False)
    assert not graph.indices.flags.writeable
    assert not graph.indices.flags.owndata


def test_weights_that_differ_are_no_asymmetry_where_weights_are_ignored(tmp_path):
    scipy.io.mmwrite(tmp_path / "m.mtx", sp.coo_array(np.array([[0, 2.0], [3, 0]])), symmetry="general")
    with pytest.raises(GraphFileError, match="not symmetric"):
        read_graph(tmp_path / "m.mtx")
    assert read_graph(tmp_path / "m.mtx", weights=False).degrees.tolist() == [1, 1]


def test_names_cannot_be_node_numbers(tmp_path):
    (tmp_path / "e.txt").write_text("a b\n")
    with pytest.raises(GraphFileError, match="needs ids that are numbers"):
        read_graph(tmp_path / "e.txt", compact=False)
    pq.write_table(pa.table({"u": ["a"], "v": ["b"]}), tmp_path / "e.parquet")
    with pytest.raises(GraphFileError, match="holds text, not integers"):
        read_graph(tmp_path / "e.parquet", ids="integer")


def test_node_numbers_beyond_all_memory(tmp_path):
    (tmp_path / "e.txt").write_text(f"1 {10**15}\n")
    with pytest.raises(GraphFileError, match=r"needs about .* of memory"):
        read_graph(tmp_path / "e.txt", compact=False)
    np.savez(tmp_path / "e.npz", src=np.array([0]), dst=np.array([1]), n=10**15)
    with pytest.raises(GraphFileError, match=r"needs about .* of memory"):
        read_graph(tmp_path / "e.npz")
