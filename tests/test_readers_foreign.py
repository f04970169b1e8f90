"""GraphML and GML through networkx, and labels as METIS writes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from typer.testing import CliRunner

from corecut import read_graph, write_graph
from corecut.cli import app
from corecut.graph import as_graph
from corecut.labels import metis_parts, read_labels, write_labels

G = nx.les_miserables_graph()


@pytest.mark.parametrize("name", ["g.graphml", "g.gml", "g.graphml.gz", "g.gml.gz", "g.txt"])
def test_names_and_weights_come_through(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if "gml" in name:
        nx.write_gml(G, path)
    else:
        nx.write_graphml(G, path)
    graph, expected = read_graph(path), as_graph(G)
    assert graph.node_ids.tolist() == list(G)
    assert abs(graph.adjacency - expected.adjacency).max() == 0
    assert read_graph(path, weights=False).weights is None
    assert read_graph(path, format="gml" if "gml" in name else "graphml").n_nodes == 77


def test_nodes_of_gml_without_labels_have_numbers(tmp_path: Path) -> None:
    path = tmp_path / "g.gml"
    path.write_text(
        "graph [\n node [ id 5 ]\n node [ id 7 ]\n node [ id 9 ]\n"
        " edge [ source 5 target 7 value 2 ]\n edge [ source 9 target 7 value 3 ]\n]\n"
    )
    words = r"edges have no attribute 'weight', but 'value'; every edge weighs 1.*to_graph\(G, weight=NAME\)"
    with pytest.warns(UserWarning, match=words):
        graph = read_graph(path)
    assert graph.node_ids.tolist() == [5, 7, 9]
    assert graph.weights is None


def test_directed_files_are_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "g.graphml"
    nx.write_graphml(nx.DiGraph([("a", "b"), ("b", "c")]), path)
    with pytest.raises(ValueError, match=r'g\.graphml: .* is directed .* pass symmetrize="mean", "max" or "min"$'):
        read_graph(path)
    assert read_graph(path, symmetrize="max").n_edges == 2
    result = CliRunner().invoke(app, ["info", str(path)])
    assert result.exit_code == 1
    assert "pass --symmetrize mean" in result.stderr
    with pytest.raises(ValueError, match="delimiter has no meaning for a matrix"):
        read_graph(path, delimiter=",")


def test_without_networkx_the_message_says_what_to_install(tmp_path: Path) -> None:
    nx.write_gml(G, tmp_path / "g.gml")
    script = "import sys; sys.modules['networkx'] = None; import corecut; corecut.read_graph('g.gml')"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert 'g.gml: GML files need networkx; install it with: pip install "corecut[networkx]"' in done.stderr


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


def test_files_of_other_programs_on_the_command_line(tmp_path: Path) -> None:
    nx.write_gml(G, tmp_path / "g.gml")
    run("cluster", tmp_path / "g.gml", "-k", 4, "-o", tmp_path / "labels.csv")
    ids, labels = read_labels(tmp_path / "labels.csv")
    assert ids is not None
    assert ids.tolist() == list(G)
    run("convert", tmp_path / "g.gml", tmp_path / "g.store")
    assert read_graph(tmp_path / "g.store").node_ids.tolist() == list(G)
    run("evaluate", tmp_path / "g.gml", tmp_path / "labels.csv")
    assert np.unique(labels).tolist() == [0, 1, 2, 3]


# --- METIS ---------------------------------------------------------------------------------------------------------------


def test_labels_as_metis_writes_them(tmp_path: Path) -> None:
    graph = tmp_path / "4elt.graph"
    write_graph(nx.to_scipy_sparse_array(nx.grid_2d_graph(8, 8)), graph)
    run("cluster", graph, "--format", "metis", "-k", 4)
    lines = (tmp_path / "4elt.graph.part.4").read_text().splitlines()
    assert len(lines) == 64
    assert sorted(set(lines)) == ["0", "1", "2", "3"]
    assert run("cluster", graph, "--format", "metis", "-k", 4, "-o", "-", "-q").splitlines() == lines
    # The same by the name alone, and read back.
    run("cluster", graph, "-k", 4, "-o", tmp_path / "mine.part.4")
    assert (tmp_path / "mine.part.4").read_text().splitlines() == lines
    ids, labels = read_labels(tmp_path / "mine.part.4")
    assert ids is None
    assert labels.tolist() == [int(line) for line in lines]
    run("evaluate", graph, tmp_path / "mine.part.4")
    run("cluster", graph, "--format", "metis", "-k", 4, "-o", tmp_path / "labels.csv")
    assert (tmp_path / "labels.csv").read_text().startswith("node,label\n")


def test_labels_without_ids_are_told_of(tmp_path: Path) -> None:
    assert metis_parts("a.part.12") == 12
    assert metis_parts("a.part.x") is None
    assert metis_parts(".part.3") is None
    with pytest.warns(UserWarning, match="cannot hold the nodes' own ids: its lines are in the order"):
        write_labels(tmp_path / "a.part.2", np.array([1, 0]), np.array(["x", "y"], dtype=object))
    assert (tmp_path / "a.part.2").read_text() == "1\n0\n"
