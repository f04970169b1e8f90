"""The command line: what it prints where, and with which exit code it ends."""

from __future__ import annotations

import gzip
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import corecut
from corecut import GraphStore, make_degree_corrected_sbm, read_graph
from corecut.cli import _COMMANDS as COMMANDS, app
from corecut.labels import read_labels


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def planted(run):
    """Make a planted graph on disk, with its truth."""
    arguments = ("--nodes", 3000, "-k", 6, "--mean-degree", 20, "--mixing", 0.1, "-o", "g.store", "--truth", "truth.csv")
    assert run("generate", "planted", *arguments).exit_code == 0
    return "g.store"


def test_version(run):
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"corecut {corecut.__version__}\n"


def test_demo_finds_the_planted_clusters(run, tmp_path):
    result = run("demo")
    assert result.exit_code == 0
    score = re.search(r"ARI\W+(\S+) against the planted clusters", result.stdout)
    assert score is not None
    assert float(score[1]) > 0.95
    for stage in ("aggregation", "eigenvectors", "refinement"):
        assert stage in result.stdout
    for stage in ("aggregation", "draws", "refinement"):
        assert result.stderr.count(f"corecut: {stage} ") == 1
    picture = (tmp_path / "corecut-demo" / "clusters.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">II", picture[16:24]) == (1008, 512)
    assert read_labels(tmp_path / "corecut-demo" / "labels.csv")[1].size == 10_000


def test_demo_looks_at_its_folder_before_the_work(run, tmp_path, monkeypatch):
    monkeypatch.setattr("corecut.commands.demo._show_demo", lambda *_: pytest.fail("work was done"))
    (tmp_path / "demo" / "labels.csv").mkdir(parents=True)
    assert "labels.csv is a directory; give a file name" in run("demo", "-o", "demo").stderr
    # Of work that comes to nothing no folder is left, nor those above it; one with something in it stays.
    monkeypatch.setattr("corecut.commands.demo._show_demo", lambda *_: (_ for _ in ()).throw(ValueError("stopped")))
    run("demo", "-o", "new/deep/demo")
    (tmp_path / "demo" / "labels.csv").rmdir()
    run("demo", "-o", "demo")
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def test_demo_repeats_for_a_seed(run):
    kept = [[line for line in run("demo", "--seed", "3").stdout.splitlines() if not line.endswith(" s")] for _ in range(2)]
    assert kept[0] == kept[1]
    assert kept[0] != [line for line in run("demo", "--seed", "4").stdout.splitlines() if not line.endswith(" s")]


def test_cluster_writes_labels_under_the_files_own_ids(run, tmp_path):
    matrix, truth = make_degree_corrected_sbm(2000, 5, mean_degree=24, mixing=0.05, random_state=0)
    edges = np.array(matrix.nonzero()).T
    lines = [f"n{u} n{v}" for u, v in edges if u < v]
    (tmp_path / "edges.txt").write_text("\n".join(["# a graph", *lines]))
    result = run("cluster", "edges.txt", "-k", 5, "-o", "labels.parquet")
    assert result.exit_code == 0
    assert "normalised cut" in result.stdout
    assert "comment lines skipped: 1" in result.stderr
    ids, labels = read_labels(tmp_path / "labels.parquet")
    planted = truth[[int(node[1:]) for node in ids]]
    together = sum(np.bincount(planted[labels == j]).max() for j in range(5))
    assert together > 0.95 * labels.size


def test_cluster_repeats_for_a_seed_and_prints_json(run, planted, tmp_path):
    result = run(
        "cluster", planted, "-k", 6, "-o", "a.npy", "--json", "--seed", 5, "--coreset-size", 0.5, "--set", "aggregate=False"
    )
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert (data["nodes"], data["clusters"], sum(data["sizes"])) == (3000, 6, 3000)
    assert data["settings"]["coreset_size"] == 1500
    assert 0 < data["normalized_cut"] < 0.5
    assert len(data["conductances"]) == 6
    run(
        "cluster",
        planted,
        "-k",
        6,
        "-o",
        "b.npy",
        "--quiet",
        "--seed",
        5,
        "--coreset-size",
        0.5,
        "--set",
        "aggregate=False",
        "-j",
        1,
    )
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_quiet_says_nothing(run, planted):
    result = run("cluster", planted, "-k", 3, "-o", "a.csv", "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_labels_to_stdout(run, planted):
    result = run("cluster", planted, "-k", 3, "-o", "-", "--quiet")
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [int(node) for node, _ in rows] == list(range(3000))
    assert {int(label) for _, label in rows} == {0, 1, 2}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_standard_output_that_takes_nothing_is_told_of_in_a_sentence(planted, tmp_path):
    labels = f"cluster {planted} -k 3 -o - -q"
    table = f"info {planted} --no-estimate"
    words = "corecut: error: standard output could not be written ({}); send it elsewhere"
    closed, full = words.format("it is closed"), words.format("No space left on device")
    for command, code, message in (
        (f"{labels} >&-", 1, closed),
        (f"{labels} > /dev/full", 1, full),
        (f"{table} >&-", 1, closed),
        (f"{table} --json > /dev/full", 1, full),
        ("--version > /dev/full", 1, full),
        (f"cluster {planted} -k 3 -o out.csv -q >&-", 0, ""),
        # As other programs do where the reader of a pipe has gone.
        (f"{labels} | true; exit ${{PIPESTATUS[0]}}", 141, ""),
        (f"{table} | true; exit ${{PIPESTATUS[0]}}", 141, ""),
    ):
        done = subprocess.run(
            ["bash", "-c", f"{sys.executable} -m corecut {command}"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr.strip()) == (code, message), command


def test_a_graph_that_does_not_fit_goes_through_the_disk(run, planted, tmp_path, monkeypatch):
    run("convert", planted, "g.txt")
    results = [run("cluster", "g.txt", "-k", 6, "-o", "a.csv")]
    monkeypatch.setattr("corecut.commands.options.memory_needed", lambda *_: 10**12)
    results.append(run("cluster", "g.txt", "-k", 6, "-o", "b.csv", "--memory", "1GB"))
    assert [result.exit_code for result in results] == [0, 0]
    assert ["temporary store on disk" in result.stderr for result in results] == [False, True]
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_labels_that_are_not_kept_are_mentioned(run, planted):
    # With a format that needs no further package.
    assert "the labels were not saved; add -o labels.csv (or " in run("cluster", planted, "-k", 3).stderr


def test_any_parameter_can_be_set(run, planted):
    result = run(
        "cluster",
        planted,
        "-k",
        3,
        "--set",
        "coreset_size=500",
        "--set",
        "aggregate=False",
        "--set",
        "eigen_solver=arpack",
        "--json",
        "-q",
    )
    assert json.loads(result.stdout)["settings"]["coreset_size"] == 500
    assert json.loads(result.stdout)["settings"]["eigen_solver"] == "arpack"


def test_warnings_are_messages(run, planted):
    result = run("cluster", planted, "-k", 3, "-o", "a.csv", "-q", "--coreset-size", 400, "--set", "aggregate=False")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert all(line.startswith("corecut: warning: ") for line in result.stderr.splitlines())
    assert "set aggregate=True" in result.stderr


@pytest.mark.parametrize("target", ["h.store", "h.parquet", "h.csv.gz", "h.mtx", "h.graph", "h.npz", "h.txt"])
def test_convert_to_any_format(run, planted, tmp_path, target):
    result = run("convert", planted, target)
    assert result.exit_code == 0, result.stderr
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(["g.store", "truth.csv", target])
    first, second = read_graph(tmp_path / planted), read_graph(tmp_path / target)
    assert second.n_entries == first.n_entries
    assert run("convert", planted, target).exit_code == 1
    assert run("convert", planted, target, "--force").exit_code == 0


def test_convert_reports_what_was_merged(run, tmp_path):
    (tmp_path / "e.txt").write_text("1 2 1\n2 1 1\n2 2 1\n3 1 0\n")
    result = run("convert", "e.txt", "e.store", "--json", "--memory", "100MB")
    data = json.loads(result.stdout)
    assert (data["edges_read"], data["edges"], data["merged"], data["loops"], data["zeros"]) == (4, 2, 1, 1, 1)
    assert "repeated edges merged: 1" in result.stderr
    assert GraphStore.open(tmp_path / "e.store").graph.weights.tolist() == [2.0, 2.0, 1.0]
    data = json.loads(run("convert", "e.txt", "f.store", "--json", "--duplicates", "max", "--drop-loops").stdout)
    assert (data["loops_dropped"], data["weighted"]) == (1, False)


def test_info(run, planted):
    result = run("info", planted, "-k", 6, "--verify")
    assert result.exit_code == 0
    for word in ("3,000", "components", "median", "memory", "regularization", "with aggregation", "through a coreset"):
        assert word in result.stdout
    data = json.loads(run("info", planted, "--json", "--no-components").stdout)
    assert "components" not in data
    assert all(data["estimates"][path][what] > 0 for path in ("aggregation", "coreset") for what in ("bytes", "seconds"))
    assert "estimates" not in json.loads(run("info", planted, "--json", "--no-estimate").stdout)
    assert data["edges"] == GraphStore.open(planted).n_entries // 2


def test_info_writes_numbers_as_people_do(run, tmp_path):
    def of(rows, columns, *options):
        np.savez(tmp_path / "g.npz", src=rows, dst=columns)
        return run("info", "g.npz", "--no-estimate", *options)

    hub = np.arange(1, 13_551)
    shown = of(np.zeros_like(hub), hub).stdout
    assert "max 13,550, mean 2.00" in shown
    assert "components    1: all nodes are connected" in re.sub(" {2,}", "    ", shown)
    apart = of([*np.zeros_like(hub), 20_000], [*hub, 20_001]).stdout
    assert "2; the largest has 13,551 nodes (all but 2)" in apart
    loops = of([0, 1, 2], [0, 1, 2]).stdout
    assert "the largest has 1 node (33.3 %)" in loops
    assert "; the largest has 2 nodes (50.0 %)" in of([0, 2], [1, 3]).stdout
    assert " 1 cluster:" in of([0, 2], [1, 3], "-k", 1).stdout
    run("convert", "g.npz", "one.txt")
    assert "for 1 cluster, on this machine" in run("info", "one.txt", "-k", 1).stdout


def test_the_size_of_a_coreset_is_told_where_one_is_drawn(run, planted):
    def settings(*arguments):
        return json.loads(run("cluster", planted, "-k", 3, "--json", "-q", *arguments).stdout)["settings"]

    assert "coreset_size" not in settings()
    assert "coreset_size" not in settings("--set", "aggregate=True")
    assert "coreset_size" not in settings("--set", "aggregate=False")
    assert settings("--set", "aggregate=False", "--coreset-size", 2000)["coreset_size"] == 2000


def test_info_suggests_the_size_of_a_coreset_where_one_is_drawn(run, planted, monkeypatch):
    assert "coreset_size" not in json.loads(run("info", planted, "-k", 3, "--json").stdout)["suggested"]
    assert "suggested settings" in " ".join(run("info", "--help").stdout.split())
    for name in ("SMALL_GRAPH", "SMALL_SPARSE", "MODERATE"):  # as of a large dense graph
        monkeypatch.setattr(f"corecut.settings.{name}", 100)
    monkeypatch.setattr("corecut.settings.DENSE", 1)
    suggested = json.loads(run("info", planted, "-k", 3, "--json").stdout)["suggested"]
    assert not suggested["aggregate"]
    assert f"a coreset of {suggested['coreset_size']:,} draws" in suggested["in_words"]


def test_evaluate(run, planted, tmp_path):
    run("cluster", planted, "-k", 6, "-o", "labels.csv", "-q")
    data = json.loads(run("evaluate", planted, "labels.csv", "truth.csv", "--json").stdout)
    assert data["ari"] > 0.9
    assert data["compared"] == 3000
    perfect = json.loads(run("evaluate", planted, "truth.csv", "truth.csv", "--json").stdout)
    assert perfect["ari"] == perfect["nmi"] == 1.0
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    (tmp_path / "short.csv").write_text("\n".join(lines[:-1]))
    result = run("evaluate", planted, "short.csv")
    assert result.exit_code == 1
    assert "short.csv has no label for 1 of 3000 nodes, the first is node 2999" in result.stderr
    assert run("evaluate", planted, "labels.csv", "short.csv").exit_code == 0


@pytest.mark.parametrize("target", ["p.store", "p.parquet", "p.txt"])
def test_generated_graphs_are_those_of_the_library(run, tmp_path, target):
    result = run(
        "generate", "planted", "--nodes", 5000, "-k", 7, "--sizes", "powerlaw", "--seed", 3, "-o", target, "--truth", "t.npy"
    )
    assert result.exit_code == 0, result.stderr
    matrix, labels = make_degree_corrected_sbm(5000, 7, sizes="powerlaw", random_state=3)
    graph = read_graph(tmp_path / target)
    ids = np.arange(5000) if graph.node_ids is None else graph.node_ids
    assert abs(graph.adjacency - matrix[ids][:, ids]).sum() == 0
    assert graph.n_entries == matrix.nnz
    np.testing.assert_array_equal(np.load(tmp_path / "t.npy"), labels)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("demo", "--seed", "x"),
        ("demo", "--seed", "-1"),
        ("cluster", "g.txt"),
        ("cluster", "g.txt", "-k", "0"),
        ("cluster", "g.txt", "-k", "2", "--coreset-size", "many"),
        ("cluster", "g.txt", "-k", "2", "--set", "nonsense=1"),
        ("cluster", "g.txt", "-k", "2", "--delimiter", "ab"),
        ("convert", "g.txt", "g.store", "--memory", "lots"),
        ("cluster", "g.txt", "-k", "2", "--memory", "1GB", "--scratch", ""),
        ("info", "g.txt", "--ids", "float"),
        ("info", "g.txt", "--verify"),
        ("cluster", "g.txt", "-k", "2", "-o", "x.xyz"),
        ("convert", "g.txt", "x.xyz"),
        ("generate", "planted", "--nodes", "9", "-k", "2", "-o", "x.xyz"),
        ("generate", "planted", "--nodes", "9", "-k", "2", "-o", "x.store", "--truth", "x.xyz"),
        ("plot", "sizes", "g.txt", "g.txt", "-o", "x.xyz"),
    ],
)
def test_misuse_ends_with_2(run, tmp_path, arguments):
    (tmp_path / "g.txt").write_text("1 2\n")
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Usage" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cluster", "none.txt", "-k", "2"), "there is no file none.txt"),
        (("cluster", "bad.txt", "-k", "2"), "bad.txt, line 2: expected 2 columns as in the first line, found 1: '3'"),
        (("cluster", "g.txt", "-k", "9"), "-k 9 is more than the graph's 2 nodes"),
        (("cluster", "g.txt", "-k", "2", "-o", "none/x.csv"), "there is no folder none"),
        (("convert", "bad.txt", "b.store"), "bad.txt, line 2"),
        (("convert", "g.txt", "g.txt"), "g.txt exists already"),
        (("evaluate", "g.txt", "bad.txt"), "bad.txt: is not a complete labels file"),
        (("info", "."), ". is a directory without graph.json, not a graph store; give the name of a file in it"),
        (("plot", "stages", "-", "-o", "x.svg"), "stages is not drawn from standard input (-); give the file of what a run"),
        (("evaluate", "g.txt", "-"), "labels are not read from standard input (-); give the name of a file"),
        (("demo", "-o", "g.txt/demo"), "cannot write g.txt/demo: Not a directory"),
    ],
)
def test_failure_is_one_sentence_and_ends_with_1(run, tmp_path, arguments, message):
    (tmp_path / "g.txt").write_text("1 2\n")
    (tmp_path / "bad.txt").write_text("1 2\n3\n")
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    *progress, line = result.stderr.splitlines()
    assert line.startswith("corecut: error: ")
    assert message in line
    assert not any("error" in earlier for earlier in progress)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "g.txt"]


@pytest.mark.parametrize("name", ["p.csv", "half.csv", "p.npy", "p.npz"])
def test_points_are_led_to_where_they_are_taken(run, tmp_path, name):
    points = np.random.default_rng(0).normal(size=(60, 5))
    np.savetxt(tmp_path / "p.csv", points, delimiter=",")
    np.savetxt(tmp_path / "half.csv", points[:, :2], delimiter=",")
    np.save(tmp_path / "p.npy", points)
    np.savez(tmp_path / "p.npz", X=points, y=np.arange(60))
    (tmp_path / "l.csv").write_text("\n".join(f"{i},{i % 2}" for i in range(60)))
    one_step = 'numpy.save("p.npy", numpy.load("p.npz")["X"]), and then corecut cluster p.npy --points takes it'
    cure = one_step if name == "p.npz" else "corecut cluster and corecut scan take points with --points"
    judged = "labels of points are judged by corecut cluster --points --report PAGE, or in Python by normalized_cut(neighbor_"
    for command in (("info",), ("convert", "x.store"), ("cluster", "-k", "2"), ("scan",)):
        result = run(command[0], name, *command[1:])
        assert result.exit_code == 1
        assert cure in result.stderr
        assert judged not in result.stderr
    commands = (
        ("evaluate", name, "l.csv"),
        ("report", name, "l.csv", "-o", "r.html"),
        ("plot", "sizes", name, "l.csv", "-o", "x.svg"),
    )
    for command in commands:
        result = run(*command)
        assert result.exit_code == 1
        assert cure in result.stderr
        assert judged in result.stderr
    taken = run("cluster", name, "--points", "-k", "2", "-o", "labels.csv", "--report", "r.html")
    assert taken.exit_code == (name == "p.npz")
    assert name != "p.npz" or one_step in taken.stderr


@pytest.mark.parametrize("command", [("cluster", "-k", "2"), ("convert", "g.store"), ("info",)])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.txt.gz", gzip.compress(b"1 2\n" * 10_000)[:-20], "behind line "),
        ("ids.txt", b"1 2\n99999999999999999999 4\n", "line 2: the source id does not fit in 64 bits"),
        ("empty.txt", b"", "line 1: "),
        ("binary.txt", bytes(range(256)), "line 1: "),
        ("e.csv", b"source,target,weight\n1,2,x\n", "line 2: the weight 'x' is not a number"),
        ("m.mtx", b"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 1\n", "line 4: Truncated file"),
        ("g.graph", b"3 2\n2\n1 x\n2\n", "line 3: 'x' is not a node"),
        ("g.npz", b"PK\x03\x04 rubbish", "is not a complete NumPy archive"),
        ("g.parquet", b"PAR1 rubbish", "is not a complete Parquet file"),
    ],
)
def test_malformed_files_end_with_1(run, *, tmp_path, command, name, content, message):
    (tmp_path / name).write_bytes(content)
    result = run(command[0], name, *command[1:])
    assert result.exit_code == 1
    line = result.stderr.splitlines()[-1]
    assert line.startswith(f"corecut: error: {name}")
    assert message in line
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "command",
    ["cluster", "convert", "info", "evaluate", "report", "plot", "predict", "scan", "demo", "experiment", "generate planted"],
)
def test_help_explains_every_option(run, command):
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
    if command not in ("demo",):
        assert f"Example: corecut {command}" in result.stdout
        assert ".parquet" not in result.stdout.partition("Example:")[2].partition("╭")[0]  # it needs a further package


@pytest.mark.parametrize("width", [80, 120])
def test_help_names_every_command(run, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    shown = run("--help").stdout
    assert all(re.search(rf"^\W*{name}  ", shown, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cluster", "g.csv", "-k", 2, "-o", "g.csv"), "g.csv is the graph that is read"),
        (("cluster", "g.csv", "-k", 2, "-o", "link.csv"), "link.csv is the graph that is read"),
        (("cluster", "link.csv", "-k", 2, "-o", "folder/../g.csv"), "is the graph that is read"),
        (("convert", "g.csv", "g.csv", "--force"), "g.csv is the graph that is read"),
        (("convert", "g.csv", "link.csv", "-f"), "link.csv is the graph that is read"),
        (("generate", "planted", "--nodes", 9, "-k", 2, "-o", "n.csv", "--truth", "./n.csv"), "n.csv is the graph's name (-o)"),
    ],
)
def test_no_output_replaces_the_graph(run, tmp_path, arguments, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "g.csv").write_text("source,target\n1,2\n2,3\n")
    (tmp_path / "link.csv").symlink_to("g.csv")
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert (tmp_path / "g.csv").read_text() == "source,target\n1,2\n2,3\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "g.csv", "link.csv"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("cluster", "g.store", "-k", 2, "-o", "g.store/indptr.npy"), 2),
        (("cluster", "g.store", "-k", 2, "-o", "g.store/labels.csv"), 2),
        (("cluster", "g.csv", "-k", 2, "-o", "g.store/labels.csv"), 1),
        (("cluster", "g.store", "-k", 2, "--save", "g.store/graph.json"), 2),
        (("cluster", "g.csv", "-k", 2, "--report", "g.store/report.html"), 1),
        (("convert", "g.csv", "g.store/within.store"), 1),
        (("convert", "g.store", "g.store/within.csv"), 1),
    ],
)
def test_nothing_is_written_into_a_store(run, tmp_path, arguments, code):
    (tmp_path / "g.csv").write_text("source,target\n1,2\n2,3\n3,4\n")
    assert run("convert", "g.csv", "g.store").exit_code == 0
    before = {file.name: file.read_bytes() for file in (tmp_path / "g.store").iterdir()}
    result = run(*arguments)
    assert result.exit_code == code
    assert "g.store" in result.stderr
    assert "give" in result.stderr  # the cure
    assert {file.name: file.read_bytes() for file in (tmp_path / "g.store").iterdir()} == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["g.csv", "g.store"]


def test_labels_do_not_go_into_the_folder_that_is_read(run, tmp_path):
    (tmp_path / "edges").mkdir()
    result = run("cluster", "edges", "-k", 2, "--dask", "local:1", "-o", "edges/a.parquet")
    assert result.exit_code == 2
    assert "edges/a.parquet lies in edges, which is read; give the labels another folder" in " ".join(result.stderr.split())


def test_truth_is_replaced_only_by_force(run, tmp_path):
    (tmp_path / "t.csv").write_text("mine")
    arguments = ("generate", "planted", "--nodes", 300, "-k", 2, "-o", "n.store", "--truth", "t.csv")
    result = run(*arguments)
    assert result.exit_code == 1
    assert "t.csv exists already; choose another name" in result.stderr
    assert (tmp_path / "t.csv").read_text() == "mine"
    assert not (tmp_path / "n.store").exists()
    assert run(*arguments, "--force").exit_code == 0
    assert read_labels(tmp_path / "t.csv")[1].size == 300


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("-", "cannot write to standard output (-); give the name of a file"),
        ("loop.csv", "cannot write loop.csv: Too many levels of symbolic links"),
        ("loop.store", "cannot write loop.store: Too many levels of symbolic links"),
        (f"{'x' * 300}.csv", f"cannot write {'x' * 300}.csv: File name too long"),
        (f"{'x' * 245}.csv", f"cannot write {'x' * 245}.csv: the name is too long"),
        (f"{'x' * 245}.store", f"cannot write {'x' * 245}.store: the name is too long"),
        ("locked/n.csv", "cannot write locked/n.csv: the folder locked is read-only"),
        ("locked/n.store", "cannot write locked/n.store: the folder locked is read-only"),
    ],
)
@pytest.mark.parametrize("command", [("convert", "g.txt"), ("generate", "planted", "--nodes", 300, "-k", 2, "-o")])
def test_targets_that_cannot_be_written(run, monkeypatch, command, target, message):
    tmp_path = Path.cwd()
    (tmp_path / "g.txt").write_text("1 2\n")
    (tmp_path / "locked").mkdir()
    for name in ("loop.csv", "loop.store"):
        (tmp_path / name).symlink_to(name)
    access = os.access  # the superuser may write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != "locked" and access(path, mode))
    result = run(*command, target)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"corecut: error: {message}")
    assert result.stderr.count("\n") == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["g.txt", "locked", "loop.csv", "loop.store"]


def test_errors_of_the_system_name_the_target(run, tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "g.txt").write_text("1 2\n")
    for module in ("_locks", "_files"):
        monkeypatch.setattr(f"corecut.{module}.try_lock", refuse)
    for target in ("n.csv", "n.store"):
        assert run("convert", "g.txt", target).stderr == f"corecut: error: cannot write {target}: Permission denied\n"


def test_far_too_many_threads(run, tmp_path):
    (tmp_path / "g.txt").write_text("1 2\n2 3\n")
    for command in (("cluster", "g.txt", "-k", 2), ("info", "g.txt"), ("convert", "g.txt", "n.store")):
        result = run(*command, "-j", 999999999999)
        assert result.exit_code in (1, 2)
        assert "--jobs must be at most 1024, got 999999999999" in result.stderr


def test_convert_tells_of_nodes_left_out(run, tmp_path):
    (tmp_path / "g.txt").write_text("0 1\n1 4\n")
    assert run("convert", "g.txt", "g.store", "--keep-ids").exit_code == 0
    result = run("convert", "g.store", "g.csv")
    assert result.exit_code == 0
    assert "corecut: warning: g.csv cannot hold nodes without edges: 2 of 5 nodes are left out; to keep them choose npz" in (
        result.stderr
    )
    assert "left out" not in run("convert", "g.store", "g.npz").stderr


def test_evaluate_says_what_minus_one_means(run, tmp_path):
    (tmp_path / "g.txt").write_text("1 2\n2 3\n")
    (tmp_path / "l.csv").write_text("node,label\n1,0\n2,-1\n3,1\n")
    result = run("evaluate", "g.txt", "l.csv")
    assert result.exit_code == 1
    assert "no label for 1 of 3 nodes, the first is node 2; a label of -1, like all below 0, means none" in result.stderr


# --- what a run shows ----------------------------------------------------------------------------------------------------


def test_one_line_per_stage(run, planted):
    lines = run("cluster", planted, "-k", 3, "-o", "a.csv", "--set", "n_init=6").stderr.splitlines()
    stages = [line.removeprefix("corecut: ").split()[0] for line in lines[1:]]
    assert "clusters: " in lines[0]
    assert len(stages) == len(set(stages))
    assert set(stages) <= {"components", "aggregation", "draws", "refinement", "metrics"}
    assert "draws" in stages


def test_the_table_shows_the_largest_and_the_worst_clusters(run, tmp_path):
    arguments = ("--nodes", 3000, "-k", 14, "--mean-degree", 20, "--sizes", "powerlaw", "-o", "g.store")
    assert run("generate", "planted", *arguments).exit_code == 0
    result = run("cluster", "g.store", "-k", 14)
    data = json.loads(run("cluster", "g.store", "-k", 14, "--json", "-q").stdout)
    largest, _, worst = result.stdout.partition("the 10 largest clusters")[2].partition("the 5 worst, by conductance")
    cells = re.compile(r"^ +(\d+) +([\d,]+) +([\d.]+) % +([\d.]+)$", re.MULTILINE)
    sizes, cuts = np.array(data["sizes"]), np.array(data["conductances"])
    shown = [[float(cell.replace(",", "")) for cell in row] for row in cells.findall(largest)]
    assert [row[1] for row in shown] == sorted(sizes, reverse=True)[:10]
    assert all(sizes[int(row[0])] == row[1] and abs(cuts[int(row[0])] - row[3]) < 1e-4 for row in shown)
    shown = [[float(cell.replace(",", "")) for cell in row] for row in cells.findall(worst)]
    np.testing.assert_allclose([row[3] for row in shown], np.sort(cuts)[::-1][:5], atol=1e-4)
    few = run("cluster", "g.store", "-k", 4).stdout
    assert "worst, by" not in few
    assert len(cells.findall(few)) == 4


# --- Ctrl-C --------------------------------------------------------------------------------------------------------------


def interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "command", "message"),
    [
        ("corecut.estimators.CoresetSpectralClustering.fit", ("cluster", "g.store", "-k", 3, "-o", "a.csv"), "no labels were"),
        (
            "corecut.clusterer.GraphClusterer._measure",
            ("cluster", "g.store", "-k", 3, "-o", "a.csv"),
            "the labels are in a.csv",
        ),
        ("corecut.commands.convert.convert_graph", ("convert", "g.store", "h.npz"), "h.npz was not written"),
        (
            "corecut.commands.generate.planted_store",
            ("generate", "planted", "--nodes", 50, "-k", 2, "-o", "n.store"),
            "n.store was",
        ),
        ("corecut.commands.evaluate.conductance", ("evaluate", "g.store", "truth.csv"), "nothing was written"),
    ],
)
def test_ctrl_c_says_what_was_kept(run, planted, monkeypatch, *, tmp_path, place, command, message):
    monkeypatch.setattr(place, interrupted)
    result = run(*command)
    assert result.exit_code == 130
    *_, line = result.stderr.splitlines()
    assert line.startswith("corecut: stopped; ")
    assert message in line
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["g.store", "truth.csv", *(["a.csv"] if "are in" in message else [])]
    )


def test_ctrl_c_keeps_finished_measurements(run, monkeypatch):
    monkeypatch.setattr("corecut.experiments.runner.run_plan", interrupted)
    result = run("experiment", "many-clusters", "--out", "here")
    assert result.exit_code == 130
    assert "finished measurements are kept in here; the same command goes on from there" in result.stderr
