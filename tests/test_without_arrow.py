"""Graphs are read and written without pyarrow, which is large: only Parquet (and zstd before Python 3.14) asks for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A process in which pyarrow cannot be imported.
WITHOUT = """
import sys
sys.modules["pyarrow"] = None
import numpy as np
from corecut import Graph, GraphStore, read_graph, write_graph
from corecut.readers import convert_graph
names = np.array(["a", "b c", "#d"], dtype=object)
graph = Graph.from_matrix(np.array([[0, 1, 2], [1, 0, 0], [2, 0, 0]]))
named = Graph(graph.indptr, graph.indices, graph.weights, graph.degrees, graph.diagonal, names)
"""


def run(script: str, folder) -> str:
    done = subprocess.run([sys.executable, "-c", WITHOUT + script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_formats_but_parquet(tmp_path):
    script = """
for name in ("g.txt", "g.csv.gz", "g.tsv.bz2", "g.npz", "g.store"):
    write_graph(named, name)
    assert set(read_graph(name).node_ids) == set(names), name
for name in ("g.mtx", "g.graph"):
    write_graph(graph, name)
    assert read_graph(name).degrees.tolist() == [3, 1, 2], name
convert_graph("g.txt", "h.store", memory="1kB")
print("done", "pyarrow.csv" in sys.modules)
"""
    assert run(script, tmp_path) == "done False\n"


@pytest.mark.parametrize("name", ["g.parquet", *([] if sys.version_info >= (3, 14) else ["g.txt.zst"])])
def test_what_needs_it_says_so(tmp_path, name):
    (tmp_path / "read.parquet").write_bytes(b"PAR1 rubbish")
    (tmp_path / "read.txt.zst").write_bytes(b"\x28\xb5\x2f\xfd rubbish")
    script = f"""
for call in (lambda: write_graph(graph, {name!r}), lambda: read_graph({name!r}.replace("g.", "read."))):
    try:
        call()
    except ValueError as error:
        print(error)
"""
    lines = run(script, tmp_path).splitlines()
    assert len(lines) == 2
    assert all(line.endswith('need pyarrow; install it with: pip install "corecut[parquet]"') for line in lines)


@pytest.mark.parametrize("ending", [".parquet", *([] if sys.version_info >= (3, 14) else [".csv.zst"])])
def test_commands_refuse_such_an_output_before_they_read(tmp_path, ending):
    # There is no file of these names: a command that looked at one would say so.
    commands = [
        f"cluster none.txt -k 2 --save m.model --report r.html -o out{ending}",
        f"predict none.model none.txt -o out{ending}",
        f"convert none.txt out{ending}",
        f"generate planted --nodes 300 -k 2 -o out{ending}",
        f"generate planted --nodes 300 -k 2 -o g.txt --truth out{ending}",
        *(["cluster none.store -k 2 --dask local:1 -o out"] if ending == ".parquet" else []),
    ]
    script = f"""
from typer.testing import CliRunner
from corecut.cli import app
for command in {commands!r}:
    result = CliRunner().invoke(app, command.split())
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    print(result.stderr, end="")
"""
    kind = "Parquet files" if ending == ".parquet" else "files packed with zstd"
    cure = 'need pyarrow; install it with: pip install "corecut[parquet]"'
    for line, command in zip(run(script, tmp_path).splitlines(), commands, strict=True):
        assert line == f"corecut: error: out{ending if ending in command else ''}: {kind} {cure}", command
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["labels.parquet", *([] if sys.version_info >= (3, 14) else ["labels.tsv.zst"])])
def test_labels_that_need_it_name_the_file(tmp_path, name):
    script = f"""
from corecut.labels import write_labels
try:
    write_labels({name!r}, np.arange(3))
except ValueError as error:
    print(error)
"""
    assert run(script, tmp_path).startswith(f"{name}: ")
    assert not list(tmp_path.iterdir())


def test_reading_text_does_not_import_it(tmp_path):
    (tmp_path / "e.txt").write_text("a b\nb c\n")
    script = "import sys; from corecut import read_graph; read_graph('e.txt'); print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
