"""Every option of the commands: it changes what is written or shown, or is refused; and messages speak of options."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from pathlib import Path
from typing import Any, get_args

import numpy as np
import problems
import pytest
import typer
from scipy.io import mmwrite
from typer.testing import CliRunner

from corecut import CoresetSpectralClustering, make_sbm, read_graph
from corecut.cli import app
from corecut.commands import words
from corecut.commands.cluster import estimator_parameters
from corecut.commands.machines import machines
from corecut.commands.options import reading
from corecut.coreset import Importance
from corecut.coreset_graphs import Degrees
from corecut.labelling import Candidates
from corecut.sampling import Sampler

GROUP: Any = typer.main.get_command(app)
COMMANDS = {name: GROUP.get_command(None, name) for name in GROUP.list_commands(None)}
# How files are read is the readers' business, and tested with them.
READING = set(inspect.signature(reading).parameters)
# Where it runs is tested with real clusters, in test_engines.py.
MACHINES = set(inspect.signature(machines).parameters)
# By promise nothing but time and memory depend on these.
SILENT = {"jobs", "memory", "help"}

CLUSTER = ("cluster", "g.txt", "-k", 3, "-o", "out.csv")
SCAN = ("scan", "g.txt", "-k", "2..12")
SCAN_POINTS = ("scan", "both.txt", "--points", "-k", "2..12")
EVALUATE = ("evaluate", "g.txt", "wide.csv", "--column", "dept")
PREDICT = ("predict", "g.model", "new.txt", "-o", "out.csv")
PREDICT_POINTS = ("predict", "p.model", "both.txt", "--features", "0,1", "-o", "out.csv")
REPORT = ("report", "g.txt", "wide.csv", "--column", "dept", "-o", "out.html")
PLOT = ("plot", "embedding", "g.txt", "wide.csv", "--column", "dept", "-o", "out.svg")
PLANTED = ("generate", "planted", "--nodes", 300, "-k", 3, "-o", "out.txt")
EXPERIMENT = ("experiment", "list")
CORESET = ("--set", "aggregate=False", "--coreset-size", 100)
# Command and option: what is typed, and what is added or put in its place.
CASES: dict[tuple[str, str], tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    ("cluster", "clusters"): (CLUSTER, ("-k", 4)),
    ("cluster", "output"): (CLUSTER, ("-o", "other.npy")),
    ("cluster", "save"): (CLUSTER, ("--save", "g.model")),
    ("cluster", "report"): (CLUSTER, ("--report", "report.html")),
    ("cluster", "seed"): ((*CLUSTER, *CORESET, "--set", "refine=False"), ("--seed", 1)),
    ("cluster", "coreset_size"): ((*CLUSTER, "--set", "aggregate=False"), ("--coreset-size", 100)),
    ("cluster", "effort"): (CLUSTER, ("--effort", 0.1)),
    ("cluster", "balance"): (CLUSTER, ("--balance", 0.1)),
    ("cluster", "min_size"): (CLUSTER, ("--min-size", 0.99)),
    ("cluster", "max_size"): (CLUSTER, ("--max-size", 1.01)),
    ("cluster", "imbalance"): (CLUSTER, ("--imbalance", 0.01)),
    ("cluster", "points"): (("cluster", "both.txt", "-k", 2, "-o", "out.csv"), ("--points",)),
    ("cluster", "features"): (("cluster", "both.txt", "--points", "-k", 2, "-o", "out.csv"), ("--features", 2)),
    ("cluster", "settings"): (CLUSTER, ("--set", "refine=False")),
    ("cluster", "as_json"): (CLUSTER, ("--json",)),
    ("cluster", "quiet"): (CLUSTER, ("--quiet",)),
    ("scan", "clusters"): (SCAN, ("-k", "2..8")),
    ("scan", "balance"): (SCAN, ("--balance", 0.2)),
    ("scan", "draws"): (SCAN, ("--draws", 1)),
    ("scan", "seed"): (SCAN, ("--seed", 1)),
    ("scan", "points"): (("scan", "both.txt", "-k", "2..12"), ("--points",)),
    ("scan", "features"): (SCAN_POINTS, ("--features", 2)),
    ("scan", "settings"): (SCAN_POINTS, ("--set", "n_neighbors=5")),
    ("scan", "as_json"): (SCAN, ("--json",)),
    ("scan", "quiet"): (SCAN, ("--quiet",)),
    ("evaluate", "column"): (EVALUATE, ("--column", "name")),
    ("evaluate", "truth"): (EVALUATE, ("truth.csv",)),
    ("evaluate", "truth_column"): ((*EVALUATE, "truth.csv"), ("--truth-column", "second")),
    ("evaluate", "as_json"): (EVALUATE, ("--json",)),
    ("evaluate", "quiet"): (EVALUATE, ("--quiet",)),
    ("predict", "output"): (PREDICT, ("-o", "other.npy")),
    ("predict", "features"): (PREDICT_POINTS, ("--features", "1,0")),
    ("predict", "as_json"): (PREDICT, ("--json",)),
    ("predict", "quiet"): (PREDICT, ("--quiet",)),
    ("report", "output"): (REPORT, ("-o", "other.html")),
    ("report", "title"): (REPORT, ("--title", "Departments")),
    ("report", "column"): (REPORT, ("--column", "name")),
    ("report", "as_json"): (REPORT, ("--json",)),
    ("report", "quiet"): (REPORT, ("--quiet",)),
    ("plot", "labels"): (PLOT, ("g.txt", "truth.csv", "--column", "second")),
    ("plot", "output"): (PLOT, ("-o", "other.png")),
    ("plot", "three"): (PLOT, ("--three",)),
    ("plot", "column"): (PLOT, ("--column", "name")),
    ("plot", "as_json"): (PLOT, ("--json",)),
    ("plot", "quiet"): (PLOT, ("--quiet",)),
    ("planted", "nodes"): (PLANTED, ("--nodes", 400)),
    ("planted", "clusters"): (PLANTED, ("-k", 4)),
    ("planted", "output"): (PLANTED, ("-o", "other.npz")),
    ("planted", "mean_degree"): (PLANTED, ("--mean-degree", 5)),
    ("planted", "mixing"): (PLANTED, ("--mixing", 0.5)),
    ("planted", "degree_exponent"): (PLANTED, ("--degree-exponent", 4)),
    ("planted", "sizes"): (PLANTED, ("--sizes", "powerlaw")),
    ("planted", "truth"): (PLANTED, ("--truth", "out-truth.csv")),
    ("planted", "seed"): (PLANTED, ("--seed", 1)),
    ("planted", "force"): (("generate", "planted", "--nodes", 300, "-k", 3, "-o", "g.txt"), ("--force",)),
    ("planted", "as_json"): (PLANTED, ("--json",)),
    ("planted", "quiet"): (PLANTED, ("--quiet",)),
    ("demo", "output"): (("demo",), ("-o", "elsewhere")),
    ("demo", "seed"): (("demo",), ("--seed", 1)),
    ("demo", "as_json"): (("demo",), ("--json",)),
    ("demo", "quiet"): (("demo",), ("--quiet",)),
    ("experiment", "as_json"): (EXPERIMENT, ("--json",)),
    ("experiment", "quiet"): (EXPERIMENT, ("--quiet",)),
}
# These say how long measurements run; test_experiments.py tests what they do.
EXPERIMENTS = {"quick", "out", "runs", "minutes", "data", "graph", "friendster"}


def options() -> list[tuple[str, str]]:
    """Return every command's own options and optional arguments."""
    found = []
    for name, command in {**COMMANDS, **COMMANDS["generate"].commands}.items():
        for parameter in command.params:
            optional = parameter.param_type_name == "option" or not parameter.required
            taking = ("cluster", "scan", "evaluate", "predict", "report", "plot", "planted", "demo", "experiment")
            if name in taking and optional:
                found.append((name, str(parameter.name)))
    return [(name, option) for name, option in found if option not in READING | MACHINES | SILENT | EXPERIMENTS]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a graph and labels."""
    folder = tmp_path_factory.mktemp("files")
    graph, truth = problems.planted_graph(np.random.default_rng(0), [80, 70, 50], degree=20.0, mixing=0.4)
    rows, columns = graph.nonzero()
    lines = [f"{x} {y}" for x, y in zip(rows, columns, strict=True) if x < y]
    (folder / "g.txt").write_text("\n".join(lines))
    (folder / "new.txt").write_text("900 1\n900 2\n901 150\n901 900\n")
    CoresetSpectralClustering(3, random_state=0).fit(read_graph(folder / "g.txt")).save(folder / "g.model")
    # A list of edges with weights, and a table of points as well.
    (folder / "both.txt").write_text("\n".join(f"{line} {len(line) ** 2}" for line in lines[:400]))
    CoresetSpectralClustering(3, random_state=0).fit(np.loadtxt(folder / "both.txt")[:, :2]).save(folder / "p.model")
    other = np.random.default_rng(1).integers(0, 4, 200)
    table = [f"{node},n{b},d{a}" for node, (a, b) in enumerate(zip(truth, other, strict=True))]
    (folder / "wide.csv").write_text("\n".join(["node,name,dept", *table]))
    known = [f"{node},{a},{b}" for node, (a, b) in enumerate(zip(truth, other, strict=True))]
    (folder / "truth.csv").write_text("\n".join(["node,label,second", *known]))
    return folder


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: Path) -> Any:
    monkeypatch.setenv("COLUMNS", "200")
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def seen(run: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Return what a run leaves to be seen: its words without times, its exit code, the files it made."""
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()}
    result = run(*arguments)
    shown = re.sub(r"[\d,.e-]+ s\b|\"[\w -]+\": [\d.e-]+", "", result.stdout + result.stderr)
    made = [path for path in Path().rglob("*") if path.is_file() and path.stat().st_mtime_ns != before.get(path)]
    content = {str(path): path.read_bytes() for path in made}
    for path in made:
        path.unlink()
    return {"code": result.exit_code, "shown": re.sub(r"[ \u2500-\u257f]+", " ", shown), "files": content}


@pytest.mark.parametrize(("command", "option"), options())
def test_every_option_is_obeyed(run: Any, command: str, option: str) -> None:
    typed, added = CASES[command, option]
    if added[0] in typed:
        place = typed.index(added[0])
        changed = (*typed[:place], *added, *typed[place + len(added) :])
    else:
        changed = (*typed, *added)
    first, second = seen(run, typed), seen(run, changed)
    if option == "force":
        assert (first["code"], second["code"]) == (1, 0)
        return
    assert (first["code"], second["code"]) == (0, 0), second["shown"]
    assert first != second


def test_every_case_belongs_to_an_option() -> None:
    assert sorted(CASES) == sorted(options())


@pytest.mark.parametrize(
    ("name", "option"),
    [("many-clusters", ("--graph", "g.txt")), ("real-data", ("--friendster", "0.1")), ("coreset-time", ("--data", "."))],
)
def test_options_of_another_experiment_are_refused(run: Any, name: str, option: tuple[str, str]) -> None:
    result = run("experiment", name, *option)
    assert result.exit_code == 2
    assert f"it has no effect on {name}" in result.stderr


# --- --set ---------------------------------------------------------------------------------------------------------------


def test_set_takes_what_no_option_says() -> None:
    parameters = set(CoresetSpectralClustering().get_params())
    own = {"n_clusters", "coreset_size", "random_state", "n_jobs", "symmetrize"}
    own |= {"effort", "balance", "min_cluster_size", "max_cluster_size", "engine", "memory_limit", "scratch"}
    in_python = {"check", "kernel_params", "eigen_tol"}
    assert words.SETTABLE.keys() == parameters - own - words.OF_POINTS.keys() - in_python
    assert words.OF_POINTS.keys() <= parameters
    assert own <= words.OPTION_OF.keys()
    for name, values in (("sampler", Sampler), ("importance", Importance), ("candidates", Candidates), ("degrees", Degrees)):
        assert all(value in words.SETTABLE[name] for value in get_args(values)), name


def test_set_explains_itself(run: Any) -> None:
    result = run("cluster", "g.txt", "-k", 3, "--set", "help")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*words.SETTABLE, *words.OF_POINTS]
    assert all(len(line.split()) > 3 for line in lines)
    shown = run("cluster", "--help").stdout
    assert all(name in shown for name in words.SETTABLE)


@pytest.mark.parametrize(("text", "value"), [("false", False), ("no", False), ("False", False), ("true", True), ("yes", True)])
def test_set_takes_the_shells_words(text: str, value: bool) -> None:
    assert estimator_parameters([f"refine={text}", "n_components=none"]) == {"refine": value, "n_components": None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "n_clusters=7"), "n_clusters is said by -k"),
        (("--set", "symmetrize=mean"), "symmetrize is said by --symmetrize"),
        (("--set", "affinity=rbf"), "affinity is for points; GRAPH is a graph, add --points if it is a table of points"),
        (("--set", "check=full"), "check is for matrices and functions in Python"),
        (("--features", "x"), "it names columns of points; add --points"),
        (("--points", "--columns", "0,1"), "it is about edges, and --points are none; --features chooses columns of points"),
        (("--points", "--symmetrize", "max"), "it is about edges, and --points are none"),
        (("--points", "--set", "affinity=cosin"), "--set affinity=cosin is not offered"),
        (("-o", "g.part.7"), "g.part.7 is METIS's name for 7 clusters, and -k asks for 3"),
        (("--set", "nonsense=7"), "expected NAME=VALUE with NAME one of aggregate, assign_labels"),
        (("--set", "refine"), "expected NAME=VALUE"),
        (("--set", "coreset_size=100", "--coreset-size", "120"), "coreset_size is given by --coreset-size and by --set"),
        (("--set", "n_init=1", "--set", "n_init=2"), "n_init is given twice"),
        (("--set", "random_state=3", "--seed", "1"), "random_state is given by --seed and by --set"),
        (("--set", "eigen_solver=arpak"), "--set eigen_solver must be one of"),
        (("--set", "verbose=x"), "--set verbose must be an integer"),
        (("--coreset-size", "0"), "--coreset-size must be at least 1"),
        (("-j", "0"), "--jobs must not be 0"),
        (("--balance", "much"), "'much' is not a number or auto"),
        (("--balance", "-1"), "balance must be"),
        (("-k", "0"), "'0' is not a number of clusters: give a whole number of 1 or more, auto, or a range A..B like 5..200"),
        (("-k", "7.5"), "'7.5' is not a number of clusters: give a whole number of 1 or more"),
        (("-o", "out.xyz"), "cannot tell the format of out.xyz; end the name in .csv, .tsv or .txt (also with"),
        (("--ids", "float"), "'--ids': 'float' is not one of"),
        (("--max-size", "x"), "is not a number of nodes (500) or a factor of the mean cluster (1.5)"),
        (("--max-size", "1.5", "--imbalance", "0.1"), "the same thing; give one of them"),
        (("-o", "-", "--json"), "-o - and --json both print to stdout"),
    ],
)
def test_misuse_is_found_before_the_file_is_looked_at(run: Any, arguments: tuple[str, ...], message: str) -> None:
    result = run("cluster", "there-is-no-such-file.txt", "-k", 3, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(re.sub(r"[\u2500-\u257f]", " ", result.stderr).split())


# --- the words of messages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "command_line"),
    [
        ('pass symmetrize="mean", "max" or "min"', "pass --symmetrize mean, max or min"),
        ("set aggregate=True, or coreset_size=1,500 or more", "use --set aggregate=True, or --coreset-size 1500 or more"),
        ("set coreset_size= to less than 300", "set --coreset-size to less than 300"),
        ("max_cluster_size=5 times n_clusters=3 is less", "--max-size 5 times -k 3 is less"),
        ("n_clusters=9 is more than n_samples=2: ask", "-k 9 is more than the graph's 2 nodes: ask"),
        ("mean_degree must be above 0", "--mean-degree must be above 0"),
        ("shift=0.5 or shift='auto' would mend", "--set shift=0.5 or --set shift=auto would mend"),
        ("line 3: expected 2 columns", "line 3: expected 2 columns"),
        ("pass header=True or header=False (--header or --no-header)", "pass --header or --no-header"),
        ("the first line is an edge: header=False", "the first line is an edge: --no-header"),
        ("by columns=(0, 1) (--columns 0,1)", "by --columns 0,1"),
        ("columns=('a', 'a') name one column twice", "--columns a,a name one column twice"),
        ("leave compact (--keep-ids) out", "leave --keep-ids out"),
        ("weights=False, or loops='drop'", "--no-weights, or --drop-loops"),
        ("g.txt: symmetrize has no meaning for an edge list", "g.txt: --symmetrize has no meaning for an edge list"),
        ('names, not integers; read ids as "text"', "names, not integers; pass --ids text"),
        ("exists already; pass overwrite=True", "exists already; pass --force"),
        ("try a larger balance=, or max_cluster_size=", "try a larger --balance, or --max-size"),
        ("set a larger coreset_size", "set a larger --coreset-size"),
        ("eigen_solver=None is meant", "--set eigen_solver=None is meant"),
    ],
)
def test_messages_speak_of_options(library: str, command_line: str) -> None:
    assert words.in_options(library) == command_line


def test_errors_and_warnings_of_a_run_speak_of_options(run: Any, tmp_path: Path) -> None:
    directed = make_sbm(30, 2, 0.5, 0.1, random_state=0)[0]
    mmwrite(tmp_path / "d.mtx", np.triu(directed.toarray()))
    assert "pass --symmetrize mean" in run("cluster", "d.mtx", "-k", 2).stderr
    assert "--max-size 2 times -k 3 is less" in run("cluster", "g.txt", "-k", 3, "--max-size", 2).stderr
    assert "; 1.0, with a point, is the mean cluster" in run("cluster", "g.txt", "-k", 3, "--max-size", 1).stderr
    (tmp_path / "dates.txt").write_text("1 2 2020-01-01\n2 3 2020-01-02\n")
    assert "'2020-01-01' is not a number; pass --no-weights" in run("cluster", "dates.txt", "-k", 2).stderr
    assert run("cluster", "dates.txt", "-k", 2, "--no-weights").exit_code == 0
    shown = run("cluster", "g.txt", "-k", 3, "--set", "aggregate=False", "--coreset-size", 40).stderr
    assert re.search(r"warning: .*; use --set aggregate=True, or --coreset-size \d+ or more", shown)
    assert "--nodes" in run("generate", "planted", "--nodes", 2**31, "-k", 3, "-o", "x.store").stderr


# --- columns of labels ---------------------------------------------------------------------------------------------------


def test_columns_of_labels_are_asked_for(run: Any, tmp_path: Path) -> None:
    result = run("evaluate", "g.txt", "wide.csv")
    assert result.exit_code == 2
    text = " ".join(re.sub(r"[\u2500-\u257f]", " ", result.stderr).split())
    assert "--column" in text
    assert "may have its labels in any of the columns name, dept; name one" in text
    by_name, by_number = (run("evaluate", "g.txt", "wide.csv", "--column", c, "--json").stdout for c in ("dept", "2"))
    assert by_name == by_number
    assert json.loads(by_name)["clusters"] == 3
    assert "has no column 'none'; it has node, name, dept" in " ".join(
        run("evaluate", "g.txt", "wide.csv", "--column", "none").stderr.split()
    )
    (tmp_path / "plain.csv").write_text("\n".join(f"{node},{node % 2},{node % 5}" for node in range(200)))
    assert run("evaluate", "g.txt", "plain.csv").exit_code == 2
    assert json.loads(run("evaluate", "g.txt", "plain.csv", "--column", "2", "--json").stdout)["clusters"] == 5
    (tmp_path / "two.csv").write_text("\n".join(["node,dept", *(f"{node},{node % 2}" for node in range(200))]))
    assert json.loads(run("evaluate", "g.txt", "two.csv", "--json").stdout)["clusters"] == 2
    assert run("evaluate", "g.txt", "two.csv", "--truth-column", "dept").exit_code == 2
    np.save(tmp_path / "l.npy", np.arange(200) % 2)
    assert run("evaluate", "g.txt", "l.npy", "--column", "dept").exit_code == 2
