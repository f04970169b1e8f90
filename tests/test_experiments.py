"""The paper's experiments on tiny inputs: what they write, that a stopped run goes on, what is said when something lacks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from corecut import write_graph
from corecut.cli import app
from corecut.experiments import coreset_time, many_clusters, methods, real_data, runner
from corecut.experiments.graphs import BlockModel, GraphFile, StandIn, prepare
from corecut.experiments.plan import EXPERIMENTS, Plan, experiment_of
from corecut.experiments.results import TOO_LONG, Cell, Point, Results
from corecut.experiments.runner import run_plan

TINY = {
    coreset_time: coreset_time.Sizes(0.001, 0.0001, 200, (10, 20, 40), 2, 60.0),
    real_data: real_data.Sizes((0.2, 0.5), 2, 1, 60.0, {"letter": (200, 20), "mnist": (200, 20)}),
    many_clusters: many_clusters.Sizes((3, 6), 100, 2, 60.0),
}
FIGURES = {"coreset-time": ["figure-2"], "real-data": ["figure-6", "figure-7"], "many-clusters": ["figure-4"]}


@pytest.fixture(scope="module")
def tiny():
    """Make every experiment tiny, without the authors' package, which need not be installed."""
    with pytest.MonkeyPatch.context() as patch:
        for module, sizes in TINY.items():
            patch.setitem(module.LEVELS, "quick", sizes)
        patch.setattr(real_data, "DATA", {name: real_data.DATA[name] for name in ("letter", "mnist")})
        patch.setattr(methods, "find_spec", lambda name: None)
        yield patch


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with two small sets of points in three clusters."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    classes = np.arange(240) % 3
    for name in ("letter", "mnist"):
        np.savez(folder / f"{name}.npz", X=rng.normal(size=(240, 5)) + 4 * classes[:, None], y=classes)
    return folder


def corecut(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def out(tiny, data, tmp_path_factory):
    """Return the folder that a run of all experiments has written."""
    folder = tmp_path_factory.mktemp("out")
    result = corecut("experiment", "all", "--quick", "--out", folder, "--data", data)
    assert result.exit_code == 0, result.stderr
    # What is over in a hundredth of a second has no line, so that no single cell is sure of one.
    assert "real-data: Letter, 20-NN of 200 points" in result.stderr
    assert ", run 1 " in result.stderr
    assert str(folder / "summary.md") in result.stdout
    return folder


@pytest.fixture
def no_worker(monkeypatch):
    """Let no cell be measured."""

    def refuse(*_, **__):
        raise AssertionError("something was measured")

    monkeypatch.setattr(runner.Worker, "ask", refuse)


def cells_of(file: Path) -> list[dict]:
    return json.loads(file.read_text())["cells"]


def test_list(capsys):
    result = corecut("experiment", "list")
    assert result.exit_code == 0
    for name in EXPERIMENTS:
        assert name in result.stdout
    assert "Figure 2" in result.stdout


def test_figures_are_written_as_png_and_svg(out):
    for name, figures in FIGURES.items():
        for figure in figures:
            assert (out / name / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
            drawing = (out / name / f"{figure}.svg").read_text()
            assert f"Figure {figure[-1]} of the paper" in drawing
            assert "time" in drawing
            assert "(s)" in drawing


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_results_hold_seeds_versions_and_machine(out, name):
    results = json.loads((out / name / "results.json").read_text())
    assert {cell["seed"] for cell in results["cells"]} == {0, 1}
    (machine,) = results["machines"]
    assert machine["cores"] >= 1
    assert {"corecut", "numpy", "scipy", "scikit-learn"} <= machine["versions"].keys()
    assert all(cell["measures"]["seconds"] > 0 for cell in results["cells"])
    assert {cell["graph"] for cell in results["cells"]} == results["graphs"].keys()


@pytest.mark.filterwarnings("ignore:a coreset of")
def test_the_same_seed_gives_the_same_measures(out):
    """Runs differ in their seed only, and every measure but the time follows from it."""
    found = {}
    for cell in cells_of(out / "many-clusters" / "results.json"):
        found[cell["method"], cell["at"], cell["seed"]] = cell["measures"]["ari"]
    prepared = prepare(BlockModel(6, 100), out / "graphs")
    again = many_clusters.measure(prepared, Cell("", "csc-fast", 6.0, 1))
    assert again["ari"] == found["csc-fast", 6.0, 1]


def test_summary_holds_figures_claims_and_what_is_smaller(out):
    text = (out / "summary.md").read_text()
    for name, figures in FIGURES.items():
        assert f"## {name}: " in text
        for figure in figures:
            assert f"![{figure}]({name}/{figure}.png)" in text
            assert f"![{figure}]({figure}.png)" in (out / name / "summary.md").read_text()
    assert text.count("| claim | paper | ours | holds |") == 3
    assert "time ∝ k^" in text
    assert "Coresets of 200 draws (the paper: 100,000)." in text
    assert "MNIST: 200 points and 20 neighbours (the paper: all, and 500)." in text
    assert "`--quick`, 2 runs behind each point, 12 of 12 cells measured." in text


def test_a_finished_run_measures_nothing_again(out, data, tiny, no_worker):
    before = (out / "summary.md").read_text()
    result = corecut("experiment", "all", "--out", out, "--data", data, "--json")
    assert result.exit_code == 0, result.stderr
    assert (out / "summary.md").read_text() == before
    claims = json.loads(result.stdout)["coreset-time"]["claims"]
    assert {"claim", "paper", "ours", "holds"} == claims[0].keys()


def test_only_the_missing_cells_are_measured(out, data, tiny, monkeypatch):
    file = out / "many-clusters" / "results.json"
    results = Results.open(file, "many-clusters")
    lost = next(iter(results.places))
    kept = {cell: measures for cell, measures in results.cells.items() if cell != lost}
    for known in (results.cells, results.places):
        del known[lost]
    results.save()
    asked = []
    true_ask = runner.Worker.ask

    def ask(worker, recipe, cell, limit):
        asked.append(cell)
        return true_ask(worker, recipe, cell, limit)

    monkeypatch.setattr(runner.Worker, "ask", ask)
    assert corecut("experiment", "many-clusters", "--out", out).exit_code == 0
    assert asked == [None, lost]
    again = Results.open(file, "many-clusters")
    assert {cell: again.cells[cell] for cell in kept} == kept
    assert again.cells[lost]["ari"] > 0


def test_no_cell_begins_after_the_time_is_up(tmp_path, tiny):
    result = corecut("experiment", "many-clusters", "--out", tmp_path, "--minutes", 0)
    assert result.exit_code == 0
    assert "the time is up; run the command again to go on" in result.stderr
    assert "not measured" in (tmp_path / "summary.md").read_text()
    assert "0 of 12 cells measured" in (tmp_path / "summary.md").read_text()


SCRIPT = """
import sys
from pathlib import Path
from corecut.experiments.graphs import BlockModel
from corecut.experiments.plan import Plan
from corecut.experiments.results import Cell
from corecut.experiments.runner import run_plan

if __name__ == "__main__":
    recipe = BlockModel(3, 100)
    cells = [Cell(recipe.name, "csc-fast", 3.0, run) for run in range(int(sys.argv[2]))]
    run_plan("many-clusters", Plan({recipe.name: recipe}, cells, 60.0), Path(sys.argv[1]))
"""


def test_a_killed_run_goes_on(tmp_path):
    script, file = tmp_path / "script.py", tmp_path / "out" / "many-clusters" / "results.json"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "out")]
    process = subprocess.Popen([*command, "100000"], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not file.exists() or len(cells_of(file)) < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    before = cells_of(file)
    done = subprocess.run([*command, str(len(before) + 2)], capture_output=True, text=True, check=True)
    assert f"{len(before)} of {len(before) + 2} cells are finished already" in done.stderr
    after = cells_of(file)
    assert after[: len(before)] == before
    assert [cell["seed"] for cell in after] == list(range(len(before) + 2))
    assert not list(file.parent.glob(".*"))


def test_what_does_not_end_is_ended_and_not_asked_for_more(tmp_path):
    recipe = BlockModel(3, 100)
    cells = [Cell(recipe.name, "csc-fast", k, 0) for k in (3.0, 4.0)]
    results = run_plan("many-clusters", Plan({recipe.name: recipe}, cells, 1e-9), tmp_path, verbose=False)
    assert results.failures == {cells[0]: f"{TOO_LONG} 1e-09 s"}
    assert results.hopeless(cells[1])
    assert not results.finished(cells[1])
    # What is known to fail is not asked again by the next run.
    again = run_plan("many-clusters", Plan({recipe.name: recipe}, cells, 60.0), tmp_path, verbose=False)
    assert again.failures == results.failures


def test_a_method_that_fails_takes_down_nothing_but_its_cell(tmp_path, capfd):
    recipe = BlockModel(3, 100)
    cells = [Cell(recipe.name, "nonsense", 3.0, 0), Cell(recipe.name, "corecut", 3.0, 0)]
    plan = Plan({recipe.name: recipe}, cells, 60.0)
    results = run_plan("many-clusters", plan, tmp_path)
    assert results.failures == {cells[0]: "KeyError: 'nonsense'"}
    assert results.cells[cells[1]]["ari"] > 0.9
    assert capfd.readouterr().err.count(" s\n") == 2


def test_a_process_that_dies_is_told(tmp_path):
    with runner.Worker("many-clusters", tmp_path) as worker:
        size = worker.ask(BlockModel(3, 100), None, None)
        assert size["nodes"] == 300
        worker._process.kill()
        with pytest.raises(runner.CellError, match="the process died"):
            worker.ask(BlockModel(3, 100), None, None)
        # Another one takes its place.
        assert worker.ask(BlockModel(3, 100), None, None) == size


@pytest.mark.parametrize("name", ["nonsense", "coreset_time", ""])
def test_bad_names_are_refused(name, tmp_path, no_worker):
    result = corecut("experiment", name, "--out", tmp_path / "x")
    assert result.exit_code == 2
    assert "coreset-time" in result.stderr
    assert "Usage" in result.stderr
    assert not (tmp_path / "x").exists()
    with pytest.raises(ValueError, match="there is no experiment"):
        experiment_of(name)


@pytest.mark.parametrize("name", ["real-data", "all"])
def test_missing_data_is_said_in_one_sentence(tiny, tmp_path, name):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "nope"):
        result = corecut("experiment", name, "--out", tmp_path / "x", "--data", folder)
        assert result.exit_code == 1
        assert f"the folder {folder} of --data has none of the files letter.npz, mnist.npz; name another" in result.stderr
    assert not (tmp_path / "x").exists()  # before any folder is made


def test_a_set_that_is_missing_leaves_the_others(tiny, data, tmp_path):
    folder = tmp_path / "some"
    folder.mkdir()
    (folder / "mnist.npz").write_bytes((data / "mnist.npz").read_bytes())
    result = corecut("experiment", "real-data", "--out", tmp_path / "x", "--data", folder, "--runs", 1)
    assert result.exit_code == 0, result.stderr
    assert "Letter, 20-NN of 200 points is left out: there is no file" in result.stderr
    text = (tmp_path / "x" / "summary.md").read_text()
    assert "Letter, 20-NN of 200 points is not here" in text
    assert "figure-7.png" in text
    assert "figure-6.png" not in text


def test_without_network_the_message_says_what_to_do(tiny, monkeypatch, tmp_path):
    monkeypatch.delenv("CORECUT_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "none kept"))
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setattr(real_data, "DATA", {"letter": real_data.DATA["letter"]})
    monkeypatch.setitem(real_data.LEVELS, "quick", real_data.Sizes((0.5,), 1, 1, 60.0, {}))
    result = corecut("experiment", "real-data", "--out", tmp_path / "x")
    assert result.exit_code == 1
    assert "letter is in no folder and cannot be fetched from OpenML" in result.stderr
    assert "put letter.npz with the arrays X and y into a folder" in result.stderr


def test_without_matplotlib_nothing_is_measured(monkeypatch, tmp_path, no_worker):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = corecut("experiment", "many-clusters", "--out", tmp_path / "x")
    assert result.exit_code == 1
    assert "the figures need matplotlib: pip install 'corecut[experiments]'" in result.stderr


def test_a_damaged_file_of_results_is_refused(tmp_path, no_worker):
    (tmp_path / "many-clusters").mkdir()
    for text in ("{", '{"experiment": "real-data"}', "[]"):
        (tmp_path / "many-clusters" / "results.json").write_text(text)
        result = corecut("experiment", "many-clusters", "--out", tmp_path)
        assert result.exit_code == 1
        assert "results.json is damaged" in result.stderr


def test_graphs_have_loops_and_the_asked_sizes(tmp_path, rng):
    stand_in = prepare(StandIn("LiveJournal", 0.001), tmp_path).graph
    assert stand_in.n_nodes == 3998
    assert (stand_in.n_entries - 3998) / 3998 == pytest.approx(2 * 34_681_189 / 3_997_962, rel=0.05)
    path = tmp_path / "own.mtx"
    write_graph(prepare(BlockModel(2, 20), tmp_path).graph, path)
    own = prepare(GraphFile(path), tmp_path)
    assert own.graph.n_nodes == 40
    assert own.classes is None
    for graph in (stand_in, own.graph):
        np.testing.assert_array_equal(graph.diagonal, 1.0)
        assert graph.weights is None


def test_slopes_are_those_of_a_power_law():
    points = [Point(k, 0.3 * k**0.8, 0.0, 1) for k in (10.0, 30.0, 100.0)]
    assert coreset_time.exponent(points) == pytest.approx(0.8)
    assert coreset_time.per_cluster([Point(k, 2 + 0.5 * k, 0.0, 1) for k in (1.0, 2.0, 5.0)]) == pytest.approx(0.5)


def test_the_authors_package_is_compared_where_it_is_installed(tmp_path):
    pytest.importorskip("coreset_sc")
    prepared = prepare(BlockModel(4, 200), tmp_path)
    # It takes no seed, and fails now and then.
    runs = [many_clusters.measure(prepared, Cell("", "coreset-sc", 4.0, seed)) for seed in range(5)]
    assert all(found["seconds"] > found["coreset_seconds"] > 0 for found in runs)
    assert max(found["ari"] for found in runs) > 0.5
    for method in ("coreset-sc naive", "coreset-sc tree"):
        assert coreset_time.measure(prepared, Cell("", method, 4.0, 0, 100))["seconds"] > 0
