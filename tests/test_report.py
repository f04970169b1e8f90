"""The report as a file: complete in itself, small, whole or absent, and true; test_report_browser.py opens it."""

from __future__ import annotations

import importlib
import importlib.resources
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import problems
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import corecut
from corecut import CoresetSpectralClustering, FastSpectralClustering, Graph, _core
from corecut.cli import app
from corecut.drawing import embedded_points, map_clusters, palette_of, path_of, sample_rows, shade_matrix
from corecut.reporting import RunNotes, build_report
from corecut.reporting.content import shown_clusters

MOST_BYTES = 3_000_000


@pytest.fixture(scope="module")
def planted() -> tuple[sp.csr_array, Any]:
    return problems.planted_graph(np.random.default_rng(0), [80, 70, 50], degree=20.0, mixing=0.2)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, planted: Any) -> Any:
    graph, truth = planted
    rows, columns = graph.nonzero()
    lines = [f"<b>{x}</b>\t<b>{y}</b>" for x, y in zip(rows, columns, strict=True) if x < y]
    (tmp_path / "g.tsv").write_text("source\ttarget\n" + "\n".join(lines))
    (tmp_path / "l.csv").write_text("node,first,other\n" + "\n".join(f"<b>{x}</b>,{a},{x % 2}" for x, a in enumerate(truth)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    result: dict[str, Any] = json.loads(found[1])
    return result


def test_templates_are_part_of_the_package() -> None:
    folder = importlib.resources.files("corecut.reporting")
    for kind in ("html", "css", "js"):
        assert (folder / f"page.{kind}").read_text(encoding="utf-8")


def test_everything_is_there(planted: Any, tmp_path: Path) -> None:
    graph, _ = planted
    model = CoresetSpectralClustering(3, random_state=7, balance=0.0).fit(graph)
    made = corecut.report(model, graph, tmp_path / "r.html", title="My <graph>")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page == made.html
    assert "<title>My &lt;graph&gt;</title>" in page
    assert "3 of 3 clusters are well separated." in page
    for words in ("200 nodes", "eigenvectors", "n_init", "random_state=7", "balance=0.0", "There was nothing to warn of"):
        assert words in page
    assert "<b>7</b>" in page  # the seed
    assert "as asked" in page
    assert "{{" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    data = data_of(page)
    assert data["clusters"]["size"] == np.bincount(model.labels_).tolist()
    assert len(data["embedding"]["row"]) == 200
    assert "<iframe" in made._repr_html_()
    assert page.count("http") == page.count("http-equiv")  # no address but its own


def test_any_labels_can_be_reported_on(planted: Any) -> None:
    graph, truth = planted
    page = corecut.report([f"team {j}" for j in truth], graph).html
    assert data_of(page)["clusters"]["name"] == ["team 0", "team 1", "team 2"]
    assert "how they were made is not known" in page
    assert "To repeat it" not in page


def test_other_estimators_are_reported_on_too(planted: Any) -> None:
    model = FastSpectralClustering(3, random_state=0).fit(planted[0])
    assert "FastSpectralClustering(n_clusters=3, random_state=0)" in corecut.report(model, planted[0]).html
    model = CoresetSpectralClustering(3, coreset_size=190, aggregate=False, random_state=0).fit(planted[0])
    page = corecut.report(model, planted[0]).html
    assert "coreset nodes" in data_of(page)["embedding"]["kind"]
    unseeded = CoresetSpectralClustering(3).fit(planted[0])
    assert "No seed was set" in corecut.report(unseeded, planted[0]).html


@pytest.mark.parametrize("matrix", [sp.csr_array((9, 9)), sp.csr_array(sp.eye_array(9))], ids=["nothing", "loops"])
def test_a_graph_without_edges_is_told_of_as_such(matrix: Any) -> None:
    page = corecut.report(np.arange(9) % 3, matrix).html
    assert "No edge joins two nodes" in page
    assert "lead out of" not in page[page.index("<main>") : page.index('<dl class="figures">')]


def test_a_cluster_of_isolated_nodes_is_told_of_as_such() -> None:
    cliques = sp.block_diag([np.ones((20, 20)) - np.eye(20)] * 2)
    matrix = sp.csr_array(sp.block_diag([cliques, sp.csr_array((5, 5))]))
    page = corecut.report(np.repeat([0, 1, 2], [20, 20, 5]), matrix).html
    assert "No node of this cluster has an edge:" in page
    assert "lead out of it:" not in page
    assert "nothing tells where" not in page
    page = corecut.report(np.repeat([0, 1, 0], [20, 20, 5]), matrix).html
    assert "5 nodes have no edge: nothing tells where they belong." in page


def test_what_is_one_is_told_of_as_one() -> None:
    page = corecut.report([0, 0], np.ones((2, 2)) - np.eye(2)).html
    assert "<p>2 nodes, 1 edge, 1 cluster</p>" in page


def test_the_number_that_there_is_is_no_advice() -> None:
    graph, truth = corecut.make_sbm(30, 4, 0.5, 0.02, random_state=0)
    page = corecut.report(truth % 2, graph).html
    assert "This pair is nearly one cluster" in page
    assert "About 2 clusters" not in page  # which is what was looked at


def test_empty_names_are_seen(planted: Any) -> None:
    graph, truth = planted
    page = corecut.report(["" if j else " " for j in truth], graph).html
    assert data_of(page)["clusters"]["name"] == ["(no name)", "(no name)"]


def test_long_names_keep_both_ends() -> None:
    graph, truth = corecut.make_sbm(20, 2, 0.5, 0.05, random_state=0)
    names = np.array([f"a very long name of a cluster that does not end before it has to {j}" for j in truth], dtype=object)
    page = corecut.report(names, graph).html
    assert "has to 0" in page
    assert "has to 1" in page
    assert str(names[0]) not in page


def test_a_run_on_points_is_repeated_on_points() -> None:
    points = np.random.default_rng(0).normal(size=(60, 3))
    model = CoresetSpectralClustering(3, random_state=0).fit(points)
    page = corecut.report(model, model.affinity_matrix_).html
    assert ".fit(points)" in page
    assert "points were given: each was joined to those nearest to it" in page


def test_warnings_are_repeated_with_their_cures() -> None:
    pieces = sp.csr_array(sp.block_diag([np.ones((20, 20)) - np.eye(20)] * 3))
    model = CoresetSpectralClustering(3, random_state=0)
    with pytest.warns(UserWarning, match="not fully connected"):
        model.fit(pieces)
    assert any("not fully connected" in one for one in model.advice_)
    assert "connect them (more neighbours)" in corecut.report(model, pieces).html
    assert CoresetSpectralClustering(3, random_state=0).fit(np.ones((30, 4)).cumsum(axis=0)).advice_ == []


def test_the_path_of_k_is_drawn(planted: Any) -> None:
    graph, truth = planted
    path = {"n_clusters": [2, 3, 4], "cut": [0.1, 0.2, 0.4], "eigengap": [0.1, 0.5, 0.1], "chosen": 3}
    facts = corecut.partition_facts(graph, truth)
    page = build_report(facts, None, RunNotes(path=path)).html
    assert page.count("<polyline") == 2
    assert "the number that was chosen, 3" in page
    # As `select_n_clusters` gives it, and as JSON has it.
    steps = [SimpleNamespace(n_clusters=k, normalized_cut=0.1 * k, leap=float("nan") if k == 1 else 1.5) for k in (1, 2, 3)]
    found = SimpleNamespace(path=steps, best=2, sentence="2 clusters: <sure>")
    page = corecut.report(truth, graph, selection=found).html
    assert page.count("<polyline") == 2
    assert "2 clusters: &lt;sure&gt;." in page
    assert path_of({"path": [vars(step) for step in steps], "best": 2})["cut"] == [0.1, 0.2, pytest.approx(0.3)]
    printed = {"best": 3, "path": [{"k": 2, "normalized_cut": 0.1, "leap": None}, {"k": 3, "normalized_cut": 0.2, "leap": 1.5}]}
    assert path_of(printed)["n_clusters"] == [2, 3]
    unknown = {"n_clusters": [3], "cut": [0.2], "leap": [float("nan")], "chosen": 3}  # one number alone does not leap
    assert build_report(facts, None, RunNotes(path=unknown)).html.count("<polyline") == 1
    assert path_of(printed)["chosen"] == 3
    with pytest.raises(ValueError, match='a path of k has "n_clusters" and any of'):
        path_of({"n_clusters": [2, 3], "cut": [0.1]})


def test_names_are_escaped_wherever_they_come_from(planted: Any) -> None:
    graph, truth = planted
    evil = '</script><script>alert("1")</script><img src=x onerror=alert(2)>'
    plain = Graph.from_matrix(graph)
    ids = np.array([f"{evil}{i}" for i in range(200)], dtype=object)
    named = Graph(plain.indptr, plain.indices, plain.weights, plain.degrees, plain.diagonal, ids)
    facts = corecut.partition_facts(named, [f"{evil}{j}" for j in truth])
    notes = RunNotes(title=evil, command=evil, seconds={evil: 1.0}, advice=[evil])
    page = build_report(facts, None, notes).html
    assert page.count("<script") == 2
    assert page.count("<img") == 2
    assert data_of(page)["clusters"]["name"][0].startswith("</script><script>alert")


@pytest.mark.parametrize("k", [1, 2, 3, 12_000])
def test_pages_are_small_for_any_number_of_clusters(k: int) -> None:
    n = max(2 * k, 40)
    labels = np.arange(n) * k // n
    matrix = sp.csr_array(sp.eye_array(n, k=1) + sp.eye_array(n, k=-1))
    plain = Graph.from_matrix(matrix)
    ids = np.array([f"https://example.org/{'long/' * 20}{i}" for i in range(n)], dtype=object)
    graph = Graph(plain.indptr, plain.indices, plain.weights, plain.degrees, plain.diagonal, ids)
    page = corecut.report(labels, graph).html
    assert len(page.encode()) < MOST_BYTES
    assert len(data_of(page)["clusters"]["name"]) == min(k, shown_clusters(corecut.partition_facts(graph, labels)).size)
    assert ("the largest and the worst of 12,000 clusters" in page) == (k > 10_000)


def test_the_same_page_for_any_number_of_threads(planted: Any) -> None:
    def without_time(page: str) -> str:
        return re.sub(r"Made by .*?\. This", "", page)

    one, two = (without_time(corecut.report(planted[1], planted[0], n_jobs=jobs).html) for jobs in (1, 2))
    assert one == two


def test_bad_input_is_refused_before_any_work(planted: Any, tmp_path: Path) -> None:
    graph, truth = planted
    with pytest.raises(ValueError, match=r"end the name of .*report.pdf in .html"):
        corecut.report(truth, graph, tmp_path / "report.pdf")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        corecut.report(truth, graph, tmp_path / "none" / "report.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(IsADirectoryError):
        corecut.report(truth, graph, tmp_path / "folder.html")
    with pytest.raises(ValueError, match="one label per node"):
        corecut.report(truth[:-1], graph, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


# --- the commands --------------------------------------------------------------------------------------------------------


def test_cluster_writes_a_report(run: Any, tmp_path: Path) -> None:
    done = run("cluster", "g.tsv", "-k", 3, "--seed", 5, "-o", "out.csv", "--report", "r.html", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["report"] == "r.html"
    assert told["seconds"]["report"] > 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "corecut cluster g.tsv -k 3 --seed 5 -o out.csv --report r.html --json" in page
    assert "Clusters of g.tsv" in page
    assert data_of(page)["clusters"]["central"][0][0].startswith("<b>")
    assert "read" in re.findall(r"<th scope='row'>(.*?)</th>", page)


def test_warnings_of_a_command_speak_of_options(run: Any, tmp_path: Path) -> None:
    done = run("cluster", "g.tsv", "-k", 3, "--report", "r.html", "--set", "aggregate=False", "--coreset-size", 40)
    assert done.exit_code == 0
    assert "use --set aggregate=True" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_report_takes_labels_of_any_program(run: Any, tmp_path: Path) -> None:
    done = run("report", "g.tsv", "l.csv", "--column", "first", "-o", "r.html", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["well_separated"] == 3
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>l.csv on g.tsv</h1>" in page
    assert "corecut report g.tsv l.csv --column first -o r.html" in page
    assert "This makes the page from them again." in page
    assert "seed" not in page[page.index("To repeat it") : page.index("</main>")]
    (tmp_path / "plain.txt").write_text("\n".join(str(x % 2) for x in range(200)))  # as METIS writes them
    assert run("report", "g.tsv", "plain.txt", "-o", "m.html", "--title", "METIS", "-q").exit_code == 0
    assert "<h1>METIS</h1>" in (tmp_path / "m.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("constant", "arguments", "stage"),
    [("_REPORTING", ("report", "-o", "r.html"), "report"), ("_DRAWING", ("plot", "sizes", "-o", "s.png"), "drawing")],
)
def test_work_that_takes_long_is_not_silent(
    run: Any, monkeypatch: pytest.MonkeyPatch, constant: str, arguments: tuple[str, ...], stage: str
) -> None:
    arguments += ("g.tsv", "l.csv", "--column", "first")
    assert f"corecut: {stage}" not in run(*arguments).stderr  # a small graph is done at once
    monkeypatch.setattr(importlib.import_module(f"corecut.commands.{arguments[0]}"), constant, 1.0)
    assert f"corecut: {stage}" in run(*arguments).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cluster", "g.tsv", "-k", 3, "--report", "r.txt"), "in .html"),
        (("cluster", "g.tsv", "-k", 3, "-o", "x.csv", "--report", "x.csv"), "r.html is the labels file"),
        (("report", "g.tsv", "l.csv", "-o", "g.tsv"), "g.tsv is read; give the report another name"),
        (("report", "g.tsv", "l.csv", "-o", "r.html"), "may have its labels in any of the columns first, other"),
        (("report", "g.tsv", "none.csv", "-o", "r.html"), "there is no file none.csv"),
        (("report", "g.tsv", "short.txt", "-o", "r.html"), "holds 3 labels without ids, the graph has 200 nodes"),
    ],
)
def test_misuse_is_told_in_a_sentence(run: Any, tmp_path: Path, arguments: tuple[Any, ...], message: str) -> None:
    (tmp_path / "short.txt").write_text("0\n1\n1\n")
    done = run(*arguments)
    assert done.exit_code in (1, 2)
    text = " ".join(re.sub(r"[\u2500-\u257f]", " ", done.stderr).split())
    assert message.replace("r.html is the", "x.csv is the") in text
    assert not (tmp_path / "r.html").exists()


# --- what drawings are made of -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 21, 400])
def test_clusters_are_placed_without_overlaps(k: int, rng: np.random.Generator) -> None:
    n = 12 * k
    labels = np.repeat(np.arange(k), 12)
    matrix = sp.random_array((n, n), density=min(1.0, 8 / n), rng=rng) + sp.block_diag([np.ones((12, 12))] * k)
    facts = corecut.partition_facts(sp.csr_array(matrix + matrix.T), labels)
    found = map_clusters(facts)
    assert found.places.shape == (k, 2)
    assert (found.places - found.radii[:, None] >= -1e-9).all()
    assert (found.places + found.radii[:, None] <= 1 + 1e-9).all()
    if k > 1:
        apart = np.linalg.norm(found.places[:, None] - found.places[None], axis=2) - found.radii[:, None] - found.radii
        np.fill_diagonal(apart, 1.0)
        assert np.mean(apart.min(axis=1) < 0) < 0.02
    palette = palette_of(facts)
    assert sorted(palette.order.tolist()) == list(range(k))
    looks = set(zip(palette.colours.tolist(), palette.shapes.tolist(), strict=True))
    assert len(looks) == k if k <= 20 else len(looks) <= 7
    assert palette.grouped == (k > 20)


@pytest.mark.parametrize("weighted", [True, False])
def test_cells_are_summed(weighted: bool, rng: np.random.Generator) -> None:
    matrix = sp.random_array((40, 40), density=0.2, rng=rng)
    matrix = sp.csr_array(matrix + matrix.T)
    matrix.data = matrix.data if weighted else np.ones_like(matrix.data)
    graph, cells = Graph.from_matrix(matrix), rng.integers(5, size=40).astype(np.int32)
    member = np.eye(7)[cells]
    np.testing.assert_allclose(_core.cell_sums(graph.matrix, cells, 7).reshape(7, 7), member.T @ matrix.toarray() @ member)
    with pytest.raises(ValueError, match="not below their number"):
        _core.cell_sums(graph.matrix, cells, 3)
    with pytest.raises(ValueError, match="cells"):
        _core.cell_sums(graph.matrix, cells[1:], 7)
    with pytest.raises(ValueError, match="at least one cell"):
        _core.cell_sums(graph.matrix, cells, 0)


def test_the_matrix_is_shaded_by_its_weights(rng: np.random.Generator) -> None:
    matrix, _ = problems.planted_graph(rng, [30, 20], degree=6.0)
    graph, order = Graph.from_matrix(matrix), rng.permutation(50)
    before, after = shade_matrix(graph, [np.arange(50), order], 50)
    np.testing.assert_allclose(before, matrix.toarray())
    np.testing.assert_allclose(after, matrix.toarray()[order][:, order])
    (coarse,) = shade_matrix(graph, [np.arange(50)], 10)
    np.testing.assert_allclose(coarse, matrix.toarray().reshape(10, 5, 10, 5).mean(axis=(1, 3)))


def test_samples_of_points_leave_no_cluster_out() -> None:
    labels = np.repeat(np.arange(50), [1000, *[1] * 49]).astype(np.int32)
    rows = sample_rows(labels, 200)
    assert rows.size <= 200
    assert set(labels[rows]) == set(range(50))
    assert sample_rows(labels, 5000).size == labels.size


@pytest.mark.parametrize("k", [4, 350])
def test_points_of_any_labels(k: int) -> None:
    graph, truth = corecut.make_degree_corrected_sbm(20 * k + 4000, k, mean_degree=12, random_state=0)
    points = embedded_points(corecut.partition_facts(graph, truth), axes=3, most=1000)
    assert points.places.shape[1] == 3
    assert set(points.labels.tolist()) == set(range(k))
    assert ("clusters" in points.kind) == (k >= 300)


def test_points_are_called_what_they_are() -> None:
    # Small clusters leave nothing to gather: the groups that a model worked on are then the nodes.
    graph, _ = corecut.make_sbm(20, 300, 0.5, 0.0002, random_state=0)
    model = corecut.CoresetSpectralClustering(n_clusters=300, aggregate=True, random_state=0).fit(graph)
    facts = corecut.partition_facts(graph, model)
    alike = model.coreset_labels_.size == facts.graph.n_nodes
    assert ("groups" in embedded_points(facts, model).kind) == (not alike)


@pytest.mark.parametrize("graph", [sp.csr_array((30, 30)), sp.csr_array((1, 1)), sp.csr_array(1e300 * np.ones((9, 9)))])
def test_extreme_graphs_have_a_page(graph: sp.csr_array) -> None:
    page = corecut.report(np.arange(graph.shape[0]) % 3, graph).html
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
    assert found is not None
    assert not {"NaN", "Infinity"} & set(re.findall(r"\w+", found[1]))


@pytest.mark.parametrize("weight", [1e-320, 1e-300, 1e300])
def test_the_scale_of_weights_changes_nothing(planted: Any, weight: float) -> None:
    graph, truth = planted
    pages = [corecut.report(truth, graph * scale) for scale in (1.0, weight)]
    plain, scaled = (data_of(page.html) for page in pages)
    assert plain["clusters"]["volume"] == pytest.approx(scaled["clusters"]["volume"], abs=1e-3)
    assert plain["quotient"]["weight"] == pytest.approx(scaled["quotient"]["weight"], abs=1e-2)
    assert plain["embedding"]["area"] == pytest.approx(scaled["embedding"]["area"], abs=1e-2)
    before, after = (re.findall(r"<dd><b>(.*?)</b>", page.html) for page in pages)
    assert before == after  # cut, modularity and the like


def test_points_are_no_graph() -> None:
    points = np.random.default_rng(0).normal(size=(60, 3))
    model = CoresetSpectralClustering(n_clusters=3, random_state=0).fit(points)
    with pytest.raises(ValueError, match="give the model's affinity_matrix_"):
        corecut.report(model, points)
    assert "clusters" in corecut.report(model, model.affinity_matrix_).html


def test_a_path_may_be_the_models_own(planted: Any) -> None:
    model = CoresetSpectralClustering(n_clusters="auto", random_state=0).fit(planted[0])
    assert path_of(model) == path_of(model.selection_)
    with pytest.raises(ValueError, match="a path of k has"):
        path_of(CoresetSpectralClustering(n_clusters=2))
