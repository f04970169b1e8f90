"""The number of clusters: planted ones are found, graphs without any are called so, and the path keeps its promises."""

from __future__ import annotations

import importlib.util
import io
import json
import math
import pickle
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import dendrogram, fcluster, is_valid_linkage
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

from corecut import (
    CoresetKernelKMeans,
    CoresetSpectralClustering,
    FastSpectralClustering,
    Graph,
    KernelKMeans,
    Selection,
    make_degree_corrected_sbm,
    make_sbm,
    modularity,
    neighbor_graph,
    normalized_cut,
    select_n_clusters,
    write_graph,
)
from corecut.cli import app
from corecut.description import agreement_of, saved_description
from corecut.merging import merge_clusters
from corecut.objective import Objective
from corecut.selection import asked_range

ROOT = Path(__file__).parents[1]
ESTIMATORS: list[Any] = [CoresetSpectralClustering, FastSpectralClustering, KernelKMeans, CoresetKernelKMeans]


@pytest.fixture(scope="module")
def planted() -> tuple[sp.csr_array, Any]:
    graph, truth = make_degree_corrected_sbm(1200, 6, mixing=0.2, random_state=0)
    return graph, truth


@pytest.fixture(scope="module")
def found(planted: Any) -> Selection:
    return select_n_clusters(planted[0], 1, 40, random_state=0)


def path_graph(n: int) -> sp.csr_array:
    return sp.csr_array(sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1]))


def grid_graph(rows: int, columns: int) -> sp.csr_array:
    along, across = sp.eye_array(rows), sp.eye_array(columns)
    return sp.csr_array(sp.kron(path_graph(rows), across) + sp.kron(along, path_graph(columns)))


def merges_of(between: Any, objective: Objective) -> list[tuple[int, int, float]]:
    """Merge clusters by looking at all pairs every time: the twin of `merge_clusters`."""
    inside, volume = between.diagonal().copy(), between.sum(axis=1)
    between, alive, made = between.copy(), list(range(len(between))), []

    def kept(a: float, v: float) -> float:
        return (a - objective.fee) / v

    while len(alive) > 1:
        losses = {
            (i, j): kept(inside[i], volume[i])
            + kept(inside[j], volume[j])
            - kept(inside[i] + inside[j] + 2 * between[i, j], volume[i] + volume[j])
            for i in alive
            for j in alive
            if i < j
        }
        i, j = min(losses, key=lambda pair: losses[pair])
        made.append((i, j, losses[i, j]))
        inside[i] += inside[j] + 2 * between[i, j]
        volume[i] += volume[j]
        between[i] += between[j]
        between[:, i] += between[:, j]
        alive.remove(j)
    return made


@pytest.mark.parametrize("fee", [0.0, 3.0])
def test_merges_are_the_cheapest_of_all_pairs(fee: float) -> None:
    half = np.random.default_rng(0).random((12, 12)) ** 3
    between = half + half.T + np.diag(np.arange(1.0, 13.0))
    merges = merge_clusters(between, between.sum(axis=1), Objective(fee))
    expected = merges_of(between, Objective(fee))
    assert [(i, j) for i, j, _ in expected] == list(zip(merges.first.tolist(), merges.second.tolist(), strict=True))
    np.testing.assert_allclose(merges.losses, [loss for *_, loss in expected])


def test_steps_are_what_f_falls_by() -> None:
    half = np.random.default_rng(1).random((9, 9))
    between = half + half.T + 5 * np.eye(9)
    f = Objective(2.0)
    merges = merge_clusters(between, between.sum(axis=1), f)
    for k in range(8, 0, -1):
        names = [merges.names(count) for count in (k + 1, k)]
        values = []
        for name in names:
            member = np.eye(name.max() + 1)[name]
            small = member.T @ between @ member
            values.append(f.terms(small.diagonal(), small.sum(axis=1)).sum())
        assert values[0] - values[1] == pytest.approx(merges.steps[8 - k])


@pytest.mark.parametrize(
    ("graph", "k"),
    [
        (make_sbm(100, 3, 0.3, 0.05, random_state=1)[0], 3),
        (make_sbm([200, 150, 60], 3, 0.3, 0.05, random_state=1)[0], 3),
        (make_sbm(30, 20, 0.6, 0.01, random_state=1)[0], 20),
        (make_degree_corrected_sbm(1500, 2, mixing=0.3, random_state=1)[0], 2),
        (make_degree_corrected_sbm(2000, 10, mixing=0.3, sizes="powerlaw", random_state=1)[0], 10),
        (make_degree_corrected_sbm(7000, 30, mixing=0.2, sizes="powerlaw", random_state=1)[0], 30),
        (sp.csr_array(sp.block_diag([np.ones((15, 15))] * 7)), 7),
    ],
    ids=["dense", "unequal", "many", "two", "powerlaw", "aggregated", "components"],
)
def test_planted_numbers_are_found(graph: Any, k: int) -> None:
    selection = select_n_clusters(graph, random_state=0)
    assert selection.best == k
    assert selection.stands_out
    assert selection.confidence > 0.5
    assert selection.sentence.startswith(f"{k} clusters: one more would cost ")
    assert ("were tried" in selection.sentence) == ("unsure" in selection.sentence)


@pytest.mark.parametrize(
    "graph",
    [
        make_sbm(1500, 1, 0.01, 0, random_state=1)[0],
        make_degree_corrected_sbm(1500, 1, random_state=1)[0],
        path_graph(600),
        grid_graph(30, 30),
        grid_graph(60, 12),
        sp.csr_array(np.ones((40, 40)) - np.eye(40)),
    ],
    ids=["random", "power-law", "path", "grid", "long grid", "complete"],
)
def test_graphs_without_clusters_give_no_sure_answer(graph: Any) -> None:
    selection = select_n_clusters(graph, random_state=0)
    assert selection.confidence < 0.5
    assert "unsure" in selection.sentence


def test_a_random_graph_is_called_one_cluster() -> None:
    selection = select_n_clusters(make_sbm(1500, 1, 0.01, 0, random_state=2)[0], random_state=0)
    assert selection.best == 1
    assert selection.confidence == 0
    words = "clusters no number stands out, as in a graph without clusters; one cluster describes the graph best"
    assert selection.sentence.startswith(f"of 1 to {selection.k_max} {words}")
    assert (selection.labels_at(1) == 0).all()


def test_crumbs_beside_a_graph_without_clusters_give_no_sure_answer() -> None:
    graph, _ = make_sbm(300, 1, 0.05, 0.0, random_state=0)
    pair = sp.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    found = select_n_clusters(sp.block_diag([graph, *[pair] * 30], format="csr"), random_state=0)
    (step,) = (one for one in found.path if one.n_clusters == found.best)
    assert step.crumbs == found.best - 1
    assert f"but {step.crumbs} of them" in found.sentence
    assert "unsure" in found.sentence
    assert f"{found.k_min} to {found.k_max} were tried" in found.sentence
    assert found.confidence < 0.1
    # Parts that are no crumbs are clusters, whatever their number.
    cliques = [np.ones((n, n)) - np.eye(n) for n in (40, *[10] * 12)]
    found = select_n_clusters(sp.block_diag(cliques, format="csr"), random_state=0)
    assert (found.best, found.path[-1].crumbs) == (13, 0)
    assert found.confidence > 0.8


def test_more_clusters_are_looked_for_where_the_usual_range_is_too_small() -> None:
    graph, _ = make_sbm(8, 150, 0.95, 0.0005, random_state=0)  # 1,200 nodes: up to 139 clusters at first
    selection = select_n_clusters(graph, random_state=0)
    assert selection.k_max > 150
    assert abs(selection.best - 150) <= 7


def test_figures_are_those_of_the_partitions(planted: Any, found: Selection) -> None:
    graph, truth = planted
    assert [one.n_clusters for one in found.path] == sorted({one.n_clusters for one in found.path})
    for one in found.path[1::6]:
        labels = found.labels_at(one.n_clusters)
        assert labels.dtype == np.int32
        assert np.unique(labels).tolist() == list(range(one.n_clusters))
        assert one.normalized_cut == pytest.approx(normalized_cut(graph, labels))
        assert one.modularity == pytest.approx(modularity(graph, labels))
        assert one.sizes.tolist() == sorted(np.bincount(labels).tolist(), reverse=True)
        assert one.leap == found.leaps[one.n_clusters]
        assert one.stability <= 1
    assert adjusted_rand_score(found.labels_at(6), truth) > 0.95
    gaps = {one.n_clusters: one.eigengap for one in found.path}
    assert max(gaps, key=lambda k: gaps[k] if k > 1 else 0) == 6
    assert math.isnan(found.path[0].leap)
    assert found.path[0].description == 0


def test_any_number_of_the_range_can_be_asked_for(found: Selection) -> None:
    reported = {one.n_clusters for one in found.path}
    k = next(k for k in range(found.k_min, found.k_max) if k not in reported)
    assert np.unique(found.labels_at(k)).size == k
    np.testing.assert_array_equal(found.labels_at(k), found.labels_at(k))
    with pytest.raises(ValueError, match="n_clusters must be at most 40, got 41"):
        found.labels_at(41)


def test_the_path_is_as_good_as_fits(planted: Any, found: Selection) -> None:
    graph, _ = planted
    for k in (2, 6, 15, 40):
        cut = CoresetSpectralClustering(k, random_state=0).fit(graph).normalized_cut_
        assert normalized_cut(graph, found.labels_at(k)) <= 1.03 * cut


def test_few_clusters_do_not_bear_the_marks_of_merges() -> None:
    # Of a grid merges alone make clusters whose cut is up to a quarter above that of fits. Both with one fee, which counts.
    graph = grid_graph(60, 50)
    found = select_n_clusters(graph, k_max=60, random_state=0)
    for k in (2, 3, 4, 6):
        cut = CoresetSpectralClustering(k, balance=0.002, random_state=0).fit(graph).normalized_cut_
        assert normalized_cut(graph, found.labels_at(k)) <= 1.03 * cut


def test_many_clusters_are_mended_as_fits_are() -> None:
    # Draws alone, refined and merged, have cuts of up to 1.036 times those of fits at the largest numbers of clusters.
    graph, _ = make_degree_corrected_sbm(5000, 10, mixing=0.3, random_state=0)
    found = select_n_clusters(graph, random_state=0)
    cut = CoresetSpectralClustering(found.k_max, balance=0.002, random_state=0).fit(graph).normalized_cut_
    assert normalized_cut(graph, found.labels_at(found.k_max)) <= 1.02 * cut


def test_labels_do_not_depend_on_what_was_asked_before(planted: Any) -> None:
    graph, _ = planted
    one, two = (select_n_clusters(graph, k_max=40, random_state=0) for _ in range(2))
    between = [k for k in range(20, 40) if k not in {step.n_clusters for step in one.path}]
    falling = {k: one.labels_at(k) for k in reversed(between)}
    for k in between:
        np.testing.assert_array_equal(two.labels_at(k), falling[k])


def test_linkage_is_scipys(found: Selection) -> None:
    assert is_valid_linkage(found.linkage)
    assert found.linkage.shape == (found.k_max - 1, 4)
    assert len(dendrogram(found.linkage, no_plot=True)["leaves"]) == found.k_max
    assert np.unique(fcluster(found.linkage, 6, criterion="maxclust")).size == 6


@pytest.mark.parametrize("n_nodes", [1500, 7000], ids=["whole", "aggregated"])
def test_the_same_for_any_number_of_threads(n_nodes: int) -> None:
    graph, _ = make_degree_corrected_sbm(n_nodes, 5, random_state=3)
    one, two = (select_n_clusters(graph, k_max=30, random_state=0, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.leaps, two.leaps)
    np.testing.assert_array_equal(one.labels_at(9), two.labels_at(9))
    assert one.confidence == two.confidence


def test_every_parameter_counts(planted: Any) -> None:
    graph, _ = planted

    def leaps(**settings: Any) -> Any:
        return select_n_clusters(graph, k_max=20, **{"random_state": 0} | settings).leaps

    base = leaps()
    assert not np.array_equal(base, leaps(balance=0.1), equal_nan=True)
    assert not np.array_equal(base, leaps(n_init=3), equal_nan=True)
    assert not np.array_equal(base, leaps(random_state=1), equal_nan=True)
    single = select_n_clusters(graph, 4, 12, n_init=1, random_state=0)
    assert (single.k_min, single.k_max) == (4, 12)
    assert all(4 <= one.n_clusters <= 12 for one in single.path)
    assert all(math.isnan(one.stability) for one in single.path)
    assert single.confidence > 0.8  # of the leap alone
    words = {0: io.StringIO(), 1: io.StringIO()}
    for verbose, stream in words.items():
        with redirect_stderr(stream):
            select_n_clusters(graph, k_max=10, random_state=0, verbose=verbose)
    assert not words[0].getvalue()
    assert "6 clusters" in words[1].getvalue()  # and stages, of those that take a while


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0, 5), ValueError, "k_min must be at least 1, got 0"),
        ((5, 4), ValueError, "k_max must be at least 5, got 4"),
        ((1, 1201), ValueError, "k_max=1201 is more than the 1200 nodes that have edges"),
        ((1300, None), ValueError, "k_min=1300 is more than the 1200 nodes that have edges"),
        ((1, 9999), ValueError, "k_max must be at most 5000"),
        ((1.5, 4), TypeError, "k_min must be an integer"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(planted: Any, arguments: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        select_n_clusters(planted[0], *arguments)


def test_ranges_beyond_the_nodes_are_refused_as_they_were_typed(tmp_path: Path) -> None:
    ring = sp.csr_array(np.roll(np.eye(40), 1, axis=0) + np.roll(np.eye(40), -1, axis=0))
    alone = sp.block_diag([ring, sp.csr_array((5, 5))], format="csr")  # nodes without edges, whom no cluster needs
    for graph, asked in ((ring, "2..41"), (ring, "50..60"), (alone, "2..41")):
        high = asked.partition("..")[2]
        words = f"n_clusters={asked} goes up to {high}, more than the 40 nodes that have edges: ask for at most as many"
        with pytest.raises(ValueError, match=words):
            CoresetSpectralClustering(asked, random_state=0).fit(graph)
    bounded = CoresetSpectralClustering("2..41", min_cluster_size=10, random_state=0).fit(ring)
    assert 2 <= bounded.n_clusters_ <= 4
    write_graph(ring, tmp_path / "ring.txt")
    for command in ("cluster", "scan"):
        done = CliRunner().invoke(app, [command, str(tmp_path / "ring.txt"), "-k", "2..41"])
        assert done.exit_code == 1
        assert "-k 2..41 goes up to 41, more than the 40 nodes that have edges: ask for at most as many" in done.stderr


def test_other_nonsense_is_refused(planted: Any) -> None:
    with pytest.raises(ValueError, match="n_init must be at least 1"):
        select_n_clusters(planted[0], n_init=0)
    with pytest.raises(ValueError, match="balance must be a finite number"):
        select_n_clusters(planted[0], balance=-1)
    with pytest.raises(ValueError, match="the graph has no edges"):
        select_n_clusters(sp.csr_array((5, 5)))


@pytest.mark.parametrize("n_nodes", [2, 3, 5, 9])
def test_tiny_graphs(n_nodes: int) -> None:
    selection = select_n_clusters(path_graph(n_nodes), random_state=0)
    assert 1 <= selection.best <= n_nodes
    assert selection.confidence < 0.5


def test_isolated_nodes_and_weights_change_nothing() -> None:
    graph, _ = make_degree_corrected_sbm(800, 4, random_state=0)
    apart = sp.csr_array(sp.block_diag([graph, sp.csr_array((20, 20))]))
    one, two, three = (select_n_clusters(g, k_max=20, random_state=0) for g in (graph, apart, 4 * graph))
    assert one.best == two.best == three.best == 4
    assert two.labels_at(4).size == 820
    np.testing.assert_array_equal(one.labels_at(4), three.labels_at(4))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_weights_of_any_size_give_the_same_figures(planted: Any, found: Selection, scale: float) -> None:
    scaled = select_n_clusters(sp.csr_array(planted[0] * scale), k_max=found.k_max, random_state=0)
    assert scaled.best == found.best
    for one, other in zip(scaled.path, found.path, strict=True):
        assert one.n_clusters == other.n_clusters
        np.testing.assert_allclose(one.normalized_cut, other.normalized_cut, rtol=0.02)
        assert np.isfinite([one.modularity, one.description]).all()


def test_a_pickled_selection_leaves_the_graph(found: Selection) -> None:
    again = pickle.loads(pickle.dumps(found))
    assert again.best == found.best
    assert again.sentence == found.sentence
    with pytest.raises(ValueError, match="does not hold the graph: run select_n_clusters again"):
        again.labels_at(3)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_estimators_choose(kind: Any) -> None:
    graph, truth = make_sbm(60, 4, 0.4, 0.02, random_state=0)
    model = kind("auto", random_state=0).fit(graph)
    assert model.n_clusters_ == model.selection_.best == 4
    assert adjusted_rand_score(model.labels_, truth) > 0.9
    assert model.conductances_.size == 4
    assert pickle.loads(pickle.dumps(model)).n_clusters_ == 4
    ranged = kind("2..3", random_state=0).fit(graph)
    assert ranged.n_clusters_ in (2, 3)
    assert (ranged.selection_.k_min, ranged.selection_.k_max) == (2, 3)
    model.set_params(n_clusters=3).fit(graph)
    assert model.n_clusters_ == 3
    assert not hasattr(model, "selection_")
    with pytest.raises(ValueError, match=r'n_clusters must be a number, "auto" or a range like "5\.\.200" .* got \'many\''):
        kind("many").fit(graph)


def test_a_chosen_fit_is_the_fit_of_that_number() -> None:
    graph, _ = make_sbm(60, 4, 0.4, 0.02, random_state=0)
    chosen, asked = (CoresetSpectralClustering(k, random_state=0).fit(graph) for k in ("auto", 4))
    np.testing.assert_array_equal(chosen.labels_, asked.labels_)
    pivoted = CoresetSpectralClustering("auto", assign_labels="cluster_qr", random_state=0).fit(graph)
    assert pivoted.n_clusters_ == 4
    with pytest.raises(ValueError, match="needs as many components as clusters, got 3 for n_clusters=4"):
        CoresetSpectralClustering("auto", assign_labels="cluster_qr", n_components=3, random_state=0).fit(graph)


@pytest.mark.parametrize("text", ["5..", "..5", "9..5", "0..4", "a..b", "5-9", "", "1..9999"])
def test_ranges_are_read_strictly(text: str) -> None:
    with pytest.raises(ValueError, match=r"a range like \"5\.\.200\""):
        asked_range(text)


def test_agreement_is_the_adjusted_rand_index() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 4, 200).astype(np.int32), rng.integers(0, 3, 200).astype(np.int32)
    weights = rng.integers(1, 4, 200)
    expected = adjusted_rand_score(np.repeat(one, weights), np.repeat(other, weights))
    assert agreement_of(one, other, weights.astype(float)) == pytest.approx(expected)
    assert agreement_of(one, one, weights.astype(float)) == 1
    assert agreement_of(np.zeros(5, np.int32), np.zeros(5, np.int32), np.ones(5)) == 1


def test_descriptions_prefer_the_truth() -> None:
    graph, truth = make_sbm([80, 60, 30], 3, 0.3, 0.03, random_state=0)
    edges = graph.nnz // 2

    def saved(labels: Any) -> float:
        member = sp.csr_array(np.eye(labels.max() + 1)[labels])
        return saved_description((member.T @ graph @ member).toarray(), np.bincount(labels), edges)

    halved = truth.copy()
    halved[:40] = 3
    assert saved(truth) > max(saved(halved), saved(np.minimum(truth, 1)), 0.0)
    assert saved(np.zeros(170, np.int32)) == 0
    assert saved(np.random.default_rng(0).permutation(truth)) < 0


def test_the_command_line_scans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    graph, _ = make_sbm(60, 4, 0.4, 0.02, random_state=0)
    file = str(tmp_path / "g.npz")
    write_graph(Graph.from_matrix(graph), file)

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, [*arguments])

    shown = run("scan", file)
    assert shown.exit_code == 0
    (chosen,) = (line for line in shown.stdout.splitlines() if "chosen" in line)
    assert chosen.split()[3] == "4"
    assert "4 clusters: one more" in shown.stdout
    data = json.loads(run("scan", file, "-k", "2..9", "--json", "--quiet").stdout)
    assert (data["best"], data["k_min"], data["k_max"]) == (4, 2, 9)
    assert [one["k"] for one in data["path"]] == list(range(2, 10))
    # The conclusion is the result: it is printed where results are, once, and nothing else is where only it is wanted.
    sentence = json.loads(run("scan", file, "--json", "--quiet").stdout)["sentence"]
    assert shown.stdout.endswith(f"\n{sentence}\n")
    assert sentence not in shown.stderr
    assert run("scan", file, "--quiet").stdout == f"{sentence}\n"
    other = json.loads(run("scan", file, "-k", "2..9", "--json", "--seed", "1", "--draws", "3").stdout)
    assert other["path"][5]["stability"] != data["path"][5]["stability"]
    balanced = json.loads(run("scan", file, "-k", "2..9", "--json", "--balance", "0.2").stdout)
    assert balanced["path"][4]["leap"] != data["path"][4]["leap"]
    assert "give a range like 2..5, or auto" in run("scan", file, "-k", "5").stderr
    assert (
        "not a number of clusters: give a whole number of 1 or more, auto, or a range" in run("scan", file, "-k", "5..2").stderr
    )


def test_the_command_line_scans_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    generator = np.random.default_rng(0)
    points = np.repeat([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [9.0, 9.0, 0.0]], 80, axis=0)
    points = points + generator.normal(size=points.shape)
    table = [",".join(map(str, row)) for row in points.tolist()]
    file = str(tmp_path / "p.csv")
    Path(file).write_text("\n".join(["a,b,noise", *table]))

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["scan", file, *arguments])

    shown = run("--points")
    assert shown.exit_code == 0
    assert "corecut scan: 320 points" in shown.stdout
    data = json.loads(run("--points", "--json", "--quiet").stdout)
    graph = neighbor_graph(points)
    chosen = select_n_clusters(graph, random_state=0)
    assert (data["best"], data["points"], data["edges"]) == (4, 320, graph.n_edges)
    assert [one["normalized_cut"] for one in data["path"]] == pytest.approx([one.normalized_cut for one in chosen.path])
    fewer = json.loads(run("--points", "--json", "--features", "a,1", "--set", "n_neighbors=7", "-k", "2..9").stdout)
    assert fewer["edges"] == neighbor_graph(points[:, :2], n_neighbors=7).n_edges
    assert "add --points" in run("--features", "a").stderr
    assert "add --points" in run("--set", "n_neighbors=7").stderr
    assert "a scan takes what says how points become a graph" in run("--points", "--set", "refine=False").stderr
    assert "it is about edges" in run("--points", "--columns", "a,b").stderr
    assert "n_neighbors must be" in run("--points", "--set", "n_neighbors=0").stderr


def test_the_command_line_clusters_by_a_chosen_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    graph, _ = make_sbm(60, 4, 0.4, 0.02, random_state=0)
    file = str(tmp_path / "g.npz")
    write_graph(Graph.from_matrix(graph), file)
    shown = CliRunner().invoke(app, ["cluster", file, "-k", "auto"])
    assert shown.exit_code == 0
    assert "4 clusters: one more would cost" in shown.stdout
    data = json.loads(CliRunner().invoke(app, ["cluster", file, "-k", "3..9", "--json"]).stdout)
    assert data["clusters"] == data["selection"]["best"] == 4
    bad = CliRunner().invoke(app, ["cluster", file, "-k", "0"])
    assert bad.exit_code == 2
    assert "'0' is not a number of clusters: give a whole number of 1 or more" in bad.stderr


def test_the_documents_tables_are_the_benchmarks_results() -> None:
    spec = importlib.util.spec_from_file_location("selection_benchmark", ROOT / "benchmarks" / "selection.py")
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    results = json.loads(benchmark.RESULTS.read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "choosing-k.md").read_text(encoding="utf-8")
    for table in benchmark.tables(results).split("\n\n"):
        assert table.strip() in text, "put the tables of python benchmarks/selection.py --table into docs/choosing-k.md"


def test_bounds_on_sizes_leave_a_part_of_the_range(rng: np.random.Generator) -> None:
    graph, _ = problems.planted_graph(rng, [30] * 8, degree=10.0, mixing=0.1)

    def fitted(asked: str, **bounds: int) -> CoresetSpectralClustering:
        return CoresetSpectralClustering(asked, random_state=0, **bounds).fit(graph)

    assert fitted("auto").n_clusters_ == 8
    finer = fitted("auto", max_cluster_size=24)  # ten clusters at least
    assert finer.n_clusters_ >= 10
    assert np.bincount(finer.labels_).max() <= 24
    coarser = fitted("2..40", min_cluster_size=50)
    assert coarser.n_clusters_ <= 4
    assert np.bincount(coarser.labels_).min() >= 50
    assert fitted("auto", min_cluster_size=100).n_clusters_ <= 2
    for asked, bounds, words in (
        ("2..9", {"max_cluster_size": 24}, "max_cluster_size=24 needs 10"),
        ("5..9", {"min_cluster_size": 50}, "min_cluster_size=50 leaves at most 4"),
        (
            "auto",
            {"min_cluster_size": 23, "max_cluster_size": 21},
            "max_cluster_size=21 needs 12, min_cluster_size=23 leaves 10",
        ),
    ):
        with pytest.raises(ValueError, match=f"none of n_clusters={asked} is possible with 240 nodes: {words}"):
            fitted(asked, **bounds)


def test_a_range_is_written_as_text() -> None:
    for asked in ((2, 10), [3, 4], range(2, 5)):
        with pytest.raises(TypeError, match=r'n_clusters must be an integer, "auto" or a range like "5..200", got'):
            CoresetSpectralClustering(asked).fit(np.ones((4, 4)))  # type: ignore[arg-type]
