"""Saved models: what comes back predicts the same, the same fit gives the same bytes, and no damaged file does any harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from typer.testing import CliRunner

import corecut
from corecut import (
    CoresetKernelKMeans,
    CoresetSpectralClustering,
    FastSpectralClustering,
    Graph,
    KernelKMeans,
    load,
    make_degree_corrected_sbm,
)
from corecut._files import GraphFileError
from corecut.cli import app
from corecut.labels import read_labels
from corecut.model_files import ModelFile, write_model

ESTIMATORS: list[Any] = [CoresetSpectralClustering, FastSpectralClustering, KernelKMeans, CoresetKernelKMeans]
GRAPH, _ = make_degree_corrected_sbm(800, 4, mean_degree=24, mixing=0.15, random_state=0)
ROWS = sp.csr_array(GRAPH[:60] * 1.25)
POINTS, _ = make_blobs(300, centers=4.0 * np.eye(5)[:3], cluster_std=1.4, random_state=1)
NEW = POINTS[:60] + 0.05


def alike(x: np.ndarray, y: np.ndarray) -> float:
    """Return the similarity of two points."""
    return float(np.exp(-0.1 * ((x - y) ** 2).sum()))


def named(names: Any) -> Graph:
    graph = Graph.from_matrix(GRAPH)
    return Graph(graph.indptr, graph.indices, graph.weights, graph.degrees, graph.diagonal, names)


CASES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "graph": ({"n_clusters": 4}, GRAPH, ROWS),
    "balance": ({"n_clusters": 4, "balance": 0.3, "n_init": np.int64(2)}, GRAPH, ROWS),
    "Graph with names": ({"n_clusters": 4}, lambda: named(np.array([f"kö {i}" for i in range(800)], object)), ROWS),
    "Graph with ids": ({"n_clusters": 4}, lambda: named(np.arange(800)[::-1] * 10**12), ROWS),
    "points": ({"n_clusters": 3}, POINTS, NEW),
    "float32": ({"n_clusters": 3, "n_neighbors": 15}, POINTS.astype(np.float32), NEW),
    "sparse points": ({"n_clusters": 3}, sp.csr_array(np.abs(POINTS).round()), np.abs(NEW)),
    "rbf": ({"n_clusters": 3, "affinity": "rbf", "gamma": 0.1}, POINTS, NEW),
    "chi2": ({"n_clusters": 3, "affinity": "chi2", "gamma": 0.2}, np.abs(POINTS), np.abs(NEW)),
    "function": ({"n_clusters": 3, "affinity": alike}, POINTS[:80], NEW[:20]),
}


def data(case: str) -> Any:
    """Return what a case is fitted on. A Graph is made anew: one that lives as long as Python does is told of as a leak."""
    X = CASES[case][1]
    return X() if callable(X) else X


def fit(case: str, kind: Any = CoresetSpectralClustering) -> Any:
    settings, X = CASES[case][0], data(case)
    known = kind().get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(random_state=3, **{name: value for name, value in settings.items() if name in known}).fit(X)


def opened(case: str, path: Path) -> Any:
    return load(path, affinity=alike if case == "function" else None)


# --- round trips ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("case", CASES)
def test_a_model_comes_back_as_it_was(tmp_path: Path, kind: Any, case: str) -> None:
    model, X, new = fit(case, kind), data(case), CASES[case][2]
    model.save(tmp_path / "a.model")
    same = opened(case, tmp_path / "a.model")
    assert type(same) is kind
    assert same.get_params() == model.get_params()
    for one, other in zip(same.predict(new, return_confidence=True), model.predict(new, return_confidence=True), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    np.testing.assert_array_equal(same.labels_, model.labels_)
    np.testing.assert_array_equal(same.conductances_, model.conductances_)
    assert same.normalized_cut_ == model.normalized_cut_
    assert same.n_features_in_ == model.n_features_in_
    assert (same.node_ids_ is None) == (model.node_ids_ is None)
    if model.node_ids_ is not None:
        assert same.node_ids_.tolist() == model.node_ids_.tolist()
    for name in ("balance_", "coreset_size_", "eigen_solver_", "shift_", "n_iter_"):
        assert getattr(same, name, None) == getattr(model, name, None)
    with pytest.raises(AttributeError, match="confidence_ is not kept in a saved model"):
        _ = same.confidence_
    # A loaded model is a model like any other.
    same.save(tmp_path / "b.model")
    assert (tmp_path / "b.model").read_bytes() == (tmp_path / "a.model").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.model", "b.model"]
    assert same.fit(X).labels_.size == model.labels_.size


@pytest.mark.parametrize("case", ["graph", "points"])
def test_the_same_fit_gives_the_same_bytes(tmp_path: Path, case: str) -> None:
    for i, jobs in enumerate((1, 2, None)):
        settings, X, _ = CASES[case]
        CoresetSpectralClustering(random_state=0, n_jobs=jobs, **settings).fit(X).save(tmp_path / f"{i}")
    assert len({(tmp_path / f"{i}").read_bytes() for i in range(3)}) == 1


def test_other_processes_and_threads_predict_the_same(tmp_path: Path) -> None:
    cases = ["graph", "points", "rbf"]
    expected = []
    for case in cases:
        model, new = fit(case), CASES[case][2]
        model.save(tmp_path / f"{case}.model")
        np.save(tmp_path / f"{case}.npy", new.toarray() if sp.issparse(new) else new)
        expected += [model.predict(new)] * 2
    script = (
        "import sys, numpy as np, corecut\n"
        "for name in sys.argv[1:]:\n"
        "    for jobs in (1, 3):\n"
        "        print(*corecut.load(name + '.model').set_params(n_jobs=jobs).predict(np.load(name + '.npy')))\n"
    )
    arguments = [sys.executable, "-c", script, *(str(tmp_path / case) for case in cases)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    for line, labels in zip(done.stdout.splitlines(), expected, strict=True):
        np.testing.assert_array_equal(np.array(line.split(), int), labels)


def test_a_model_of_a_graph_is_small_and_mapped(tmp_path: Path) -> None:
    fit("graph").save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_size < 12 * 800 + 16 * 4 + 4096
    file = ModelFile.open(tmp_path / "m")
    assert sorted(file.arrays) == ["association", "fingerprints", "labels", "volume"]
    assert not load(tmp_path / "m").labels_.flags.writeable
    base = file.arrays["labels"]
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    assert type(base).__name__ == "mmap"


def test_names_of_features_are_kept_and_compared(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(POINTS, columns=list("abcde"))
    CoresetSpectralClustering(3, random_state=0).fit(frame).save(tmp_path / "m")
    same = load(tmp_path / "m")
    assert same.feature_names_in_.tolist() == list("abcde")
    assert same.predict(frame).size == 300
    with pytest.raises(ValueError, match="feature names"):
        same.predict(frame.rename(columns={"a": "z"}))


def test_the_matrix_of_a_saved_model_is_told_how_to_get(tmp_path: Path) -> None:
    for case, words in {"points": "saved; fit the points again for it", "graph": r"Graph\.from_matrix\(X\)\.adjacency"}.items():
        fit(case).save(tmp_path / "m")
        with pytest.raises(AttributeError, match=words):
            _ = load(tmp_path / "m").affinity_matrix_


def test_what_a_file_cannot_hold(tmp_path: Path) -> None:
    fit("function").save(tmp_path / "f")
    without = load(tmp_path / "f")
    assert without.labels_.size == 80
    with pytest.raises(ValueError, match=r"was fitted with a function of two points; open it with load\(path, affinity="):
        without.predict(NEW)
    fit("points").save(tmp_path / "p")
    with pytest.raises(ValueError, match="was fitted with affinity='nearest_neighbors': leave affinity out"):
        load(tmp_path / "p", affinity=alike)
    generator = CoresetSpectralClustering(4, random_state=np.random.default_rng(0)).fit(GRAPH)
    generator.save(tmp_path / "g")
    assert load(tmp_path / "g").random_state is None
    odd = fit("graph").set_params(gamma=np.ones(3))
    with pytest.raises(ValueError, match=r"gamma=.* cannot be kept in a file"):
        odd.save(tmp_path / "o")
    assert not (tmp_path / "o").exists()
    with pytest.raises(ValueError, match="node ids must be integers or text"):
        CoresetSpectralClustering(4, random_state=0).fit(named(np.arange(800) / 2)).save(tmp_path / "o")


# --- names and damage ----------------------------------------------------------------------------------------------------


def test_places_where_nothing_can_be_written_or_read(tmp_path: Path) -> None:
    model = fit("graph")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        model.save(tmp_path / "nowhere" / "m")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        model.save(tmp_path)
    with pytest.raises(IsADirectoryError, match="is a directory, not a model file"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load(tmp_path / "m")
    model.save(tmp_path / "m")
    model.save(str(tmp_path / "m"))  # replaced
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_file_does_not_take_the_place_of_a_device_or_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=r"pipe is a device or a pipe, which a file would replace; give the name of a file"):
        fit("graph").save(pipe)
    with pytest.raises(OSError, match=r"pipe is a device or a pipe, not a model file"):
        load(pipe)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def rewritten(path: Path, change: Any) -> None:
    """Write a file again with another description, and right checksums."""
    file = ModelFile.open(path)
    description = {name: value for name, value in file.description.items() if name not in ("arrays", "bytes", "corecut")}
    arrays = dict(file.arrays)
    change(description, arrays)
    write_model(path, description, arrays)


CHANGES: dict[str, tuple[Any, str]] = {
    "other class": (lambda said, arrays: said.update(estimator="Popen"), "it is a 'Popen'"),
    "no class": (lambda said, arrays: said.pop("estimator"), "it is a None"),
    "unknown setting": (lambda said, arrays: said["settings"].update(depth=3), "unexpected keyword argument 'depth'"),
    "no settings": (lambda said, arrays: said.pop("settings"), "it lacks 'settings'"),
    "a method": (lambda said, arrays: said["fitted"].update(predict="x"), "an attribute that no model has"),
    "a property": (lambda said, arrays: said["fitted"].update(conductances_=1), "conductances_"),
    "a list": (lambda said, arrays: said.update(settings=[1, 2]), "no settings"),
    "odd features": (lambda said, arrays: said.update(feature_names=[3]), "no names of its features"),
    "no labels": (lambda said, arrays: arrays.pop("labels"), "it lacks 'labels'"),
    "wrong labels": (lambda said, arrays: arrays.update(labels=arrays["labels"] + np.int32(9)), "clusters that there are not"),
    "other type": (lambda said, arrays: arrays.update(labels=arrays["labels"].astype(np.int64)), "no labels"),
    "infinite": (lambda said, arrays: arrays.update(volume=arrays["volume"] * np.inf), "not finite"),
    "few rows": (lambda said, arrays: arrays.update(fingerprints=arrays["fingerprints"][:7]), "no fingerprints"),
    "columns": (lambda said, arrays: said["input"].update(columns=-1), "no number of columns"),
    "features": (lambda said, arrays: said["fitted"].update(n_features_in_=3), "another number of features than of columns"),
    "no number": (lambda said, arrays: said["input"].update(parameters={"gamma": "x"}), "no parameters of its affinity"),
    "fee": (lambda said, arrays: said.update(fee="much"), "no fee"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_content_that_no_model_has_is_refused(tmp_path: Path, change: str) -> None:
    fit("graph").save(tmp_path / "m")
    rewritten(tmp_path / "m", CHANGES[change][0])
    with pytest.raises(GraphFileError, match=f"holds no model that this version of corecut knows .*{CHANGES[change][1]}"):
        load(tmp_path / "m")


def test_sparse_points_of_another_shape_are_refused(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "points_data": lambda data: data[None],
        "points_indptr": lambda indptr: -indptr,  # which scipy does not mind
        "points_indices": lambda indices: indices[:-1],
    }
    for name, change in changes.items():
        fit("sparse points").save(tmp_path / "m")
        rewritten(tmp_path / "m", lambda _, arrays, name=name, change=change: arrays.update({name: change(arrays[name])}))
        with pytest.raises(GraphFileError, match="it has no points"):
            load(tmp_path / "m")


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m"
    fit("points").save(path)
    whole = path.read_bytes()
    place = ModelFile.open(path).description["arrays"]["points"]["offset"]
    cases = {
        whole[:-1]: r"has [\d,]+ bytes instead of",
        whole + b"\0": r"has [\d,]+ bytes instead of",
        whole[:100]: "ends before its description does",
        whole[:20]: "ends before its description does",
        b"": "is not a model file of corecut",
        b"node,label\n1,2\n": "is not a model file of corecut",
        whole[:16] + (2).to_bytes(4, "little") + whole[20:]: r"has format 2, this version of corecut \(.*\) reads format 1",
        whole[:60] + bytes([whole[60] ^ 1]) + whole[61:]: "the checksum of its description is wrong",
        whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]: "the checksum of its points is wrong",
    }
    for content, words in cases.items():
        path.write_bytes(content)
        with pytest.raises(GraphFileError, match=words):
            load(path)
    text = json.dumps([1, 2]).encode()
    prefix = whole[:16] + (1).to_bytes(4, "little") + zlib.crc32(text).to_bytes(4, "little") + len(text).to_bytes(8, "little")
    path.write_bytes(prefix + text)
    with pytest.raises(GraphFileError, match="is damaged"):
        load(path)


def corrupted(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with random damage: bits, bytes, pieces that are missing, doubled, moved, or cut off."""
    data = bytearray(content)
    # Half of the damage where the description is.
    most = len(data) if rng.random() < 0.5 else min(len(data), 2048)
    for _ in range(int(rng.integers(1, 4))):
        a, b = sorted(rng.integers(0, most, 2).tolist())
        b = min(b, a + int(rng.integers(1, 400)))
        kind = int(rng.integers(7))
        if kind == 0 and data:
            data[a % len(data)] ^= 1 << int(rng.integers(8))
        elif kind == 1 and data:
            data[a % len(data)] = int(rng.integers(256))
        elif kind == 2:
            data[a:b] = rng.bytes(b - a)
        elif kind == 3:
            del data[a:b]
        elif kind == 4:
            data[a:a] = data[a:b]
        elif kind == 5:
            del data[a:]
        else:
            data[a:b] = bytes(b - a)
    return bytes(data)


@pytest.mark.parametrize("count", [pytest.param(400, id="some"), pytest.param(10_000, id="many", marks=pytest.mark.deep)])
def test_no_damage_breaks_a_model(tmp_path: Path, count: int) -> None:
    """A damaged file is refused in a sentence, or gives the right answer."""
    rng = np.random.default_rng(7)
    path, refused = tmp_path / "m", 0
    wholes = []
    for case in ("graph", "Graph with names", "points", "sparse points"):
        model = fit(case)
        model.save(path)
        new = CASES[case][2][:5]
        wholes.append((path.read_bytes(), new, model.predict(new), model.labels_))
    for i in range(count):
        whole, new, expected, labels = wholes[i % len(wholes)]
        path.write_bytes(corrupted(whole, rng))
        try:
            model = load(path)
        except (ValueError, OSError) as error:
            text = str(error)
            assert str(path) in text
            assert "\n" not in text
            assert len(text) < 500
            refused += 1
            continue
        np.testing.assert_array_equal(model.predict(new), expected)
        np.testing.assert_array_equal(model.labels_, labels)
    assert refused > 0.7 * count


# --- the command line ----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)
    x, y = GRAPH.nonzero()
    for name, wanted in (("old.txt", np.maximum(x, y) < 700), ("new.txt", np.maximum(x, y) >= 700)):
        edges = [f"n{a} n{b}" for a, b in zip(x[wanted & (x < y)], y[wanted & (x < y)], strict=True)]
        (tmp_path / name).write_text("\n".join(edges))
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_new_nodes_on_the_command_line(run: Any) -> None:
    done = run("cluster", "old.txt", "-k", 4, "-o", "old.csv", "--save", "m.model", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["model"] == "m.model"
    done = run("predict", "m.model", "new.txt", "-o", "new.csv")
    assert done.exit_code == 0, done.stderr
    assert "edges between new nodes are left out" in done.stderr
    ids, labels = read_labels("new.csv")
    model = load("m.model")
    assert sorted([*ids.tolist(), *model.node_ids_.tolist()]) == sorted(f"n{i}" for i in range(800))
    number = [int(name[1:]) for name in model.node_ids_]
    rows = GRAPH[[int(name[1:]) for name in ids]][:, number]
    with pytest.warns(UserWarning, match="1 of 101 rows"):  # one has new neighbours alone
        np.testing.assert_array_equal(model.predict(rows), labels)
    told = json.loads(run("predict", "m.model", "new.txt", "--json").stdout)
    assert told["new"] == sum(told["sizes"]) == ids.size
    assert 0 < told["confidence"] < 1
    printed = run("predict", "m.model", "new.txt", "-o", "-", "-q").stdout.splitlines()
    assert printed == [f"{name}\t{label}" for name, label in zip(ids, labels, strict=True)]
    sp.save_npz("rows.npz", rows)
    assert run("predict", "m.model", "rows.npz", "-o", "rows.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("rows.npy"), labels)
    np.save("rows-dense.npy", rows.toarray())
    assert run("predict", "m.model", "rows-dense.npy", "-o", "dense.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("dense.npy"), labels)


@pytest.mark.parametrize("form", ["npy", "csv", "header.csv", "tsv", "parquet"])
def test_new_points_on_the_command_line(run: Any, form: str) -> None:
    model = fit("points")
    model.save("p.model")
    name = f"new.{form}"
    if form == "npy":
        np.save(name, NEW)
    elif form == "parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({f"x{i}": NEW[:, i] for i in range(5)}), name)
    else:
        mark = "\t" if form == "tsv" else ","
        header = mark.join("abcde") if form == "header.csv" else ""
        np.savetxt(name, NEW, fmt="%.17g", delimiter=mark, header=header, comments="")
        if not header:
            Path(name).write_text(Path(name).read_text().lstrip("\n"))
    assert run("predict", "p.model", name, "-o", "labels.npy").exit_code == 0
    np.testing.assert_array_equal(np.load("labels.npy"), model.predict(NEW))


def test_columns_of_new_points_are_found_by_their_names(run: Any) -> None:
    rows = [[f"p{i}", *map(repr, row), "word"] for i, row in enumerate(POINTS.tolist())]

    def write(name: str, order: list[int]) -> None:
        header = ["name", *"abcde", "remark"]
        lines = [",".join(row[i] for i in order) for row in [header, *rows]]
        Path(name).write_text("\n".join(lines), encoding="utf-8")

    write("old.csv", [0, 1, 2, 3, 4, 5, 6])
    write("other.csv", [6, 5, 3, 1, 2, 4, 0])
    done = run("cluster", "old.csv", "--points", "--features", "a,b,c,d,e", "-k", "2..4", "--save", "p.model", "-q")
    assert done.exit_code == 0, done.stderr
    model = load("p.model")
    assert model.feature_names_in_.tolist() == list("abcde")
    assert list(model.labels_by_name_)[:2] == ["p0", "p1"]
    assert run("predict", "p.model", "other.csv", "-o", "labels.npy", "-q").exit_code == 0
    np.testing.assert_array_equal(np.load("labels.npy"), model.labels_)
    np.savetxt("plain.txt", POINTS, delimiter=";")  # without names, as they come; and the options for text count
    assert run("predict", "p.model", "plain.txt", "--delimiter", ";", "-o", "labels.npy", "-q").exit_code == 0
    np.testing.assert_array_equal(np.load("labels.npy"), model.labels_)
    # Features that are chosen are told by their names, too, in any order; other names go by their places.
    for wanted in ("e,d,c,b,a", "3,4,2,5,1"):
        assert run("predict", "p.model", "other.csv", "--features", wanted, "-o", "labels.npy", "-q").exit_code == 0
        np.testing.assert_array_equal(np.load("labels.npy"), model.labels_)
    Path("renamed.csv").write_text(Path("old.csv").read_text().replace("a,b,c,d,e", "a,b,C,D,E"))
    assert run("predict", "p.model", "renamed.csv", "--features", "a,b,C,D,E", "-o", "labels.npy", "-q").exit_code == 0
    np.testing.assert_array_equal(np.load("labels.npy"), model.labels_)
    words = (
        "the columns b, a, C, D, E are not in the order of the fitted features a, b, c, d, e; name them by --features in that"
    )
    done = run("predict", "p.model", "renamed.csv", "--features", "b,a,C,D,E")
    assert (done.exit_code, words in done.stderr.replace("\n", " ")) == (1, True)
    done = run("predict", "p.model", "old.csv", "--features", "a,a,b,c,d")
    assert "old.csv: --features names the column 'a' twice; name every column once" in done.stderr
    Path("few.csv").write_text("a,b,c,d,f\n1,2,3,4,5\n")
    assert "there is no column 'e'; the columns are a, b, c, d, f" in run("predict", "p.model", "few.csv").stderr
    CoresetSpectralClustering(3, random_state=3).fit(POINTS).save("unnamed.model")
    words = "the column 'name' holds text; choose the columns that are numbers with --features"
    assert words in run("predict", "unnamed.model", "other.csv").stderr.replace("\n", " ")
    assert run("predict", "unnamed.model", "other.csv", "--features", "a,b,c,d,e", "-o", "labels.npy", "-q").exit_code == 0
    np.testing.assert_array_equal(np.load("labels.npy"), load("unnamed.model").labels_)
    refused = run("predict", "p.model", "old.csv", "--columns", "a,b")
    assert refused.exit_code == 2
    assert "it is about edges, and old.csv is a table of rows" in refused.stderr


def test_the_command_line_refuses_in_a_sentence(run: Any) -> None:
    assert run("cluster", "old.txt", "-k", 4, "--save", "m.model", "-q").exit_code == 0
    n = load("m.model").labels_.size
    Path("strangers.txt").write_text("x1 y2\nx1 y3\n")
    Path("points.csv").write_text("a,b\n1,2\n")
    np.save("negative.npy", -np.ones((2, n)))
    sp.save_npz("narrow.npz", sp.csr_array(np.ones((2, 9))))
    fit("points").save("p.model")
    cases = [
        (("predict", "m.model", "old.txt"), 1, f"has no new node: all {n} were clustered"),
        (("predict", "m.model", "strangers.txt"), 1, "names no node of the model: its first is x1, the model's first is n"),
        (("predict", "old.txt", "new.txt"), 1, "is not a model file of corecut"),
        (("predict", "none.model", "new.txt"), 1, "there is no file none.model"),
        (("predict", "-", "new.txt"), 1, "a model is not read from standard input (-); give the name of its file"),
        (("predict", "p.model", "nothing.csv"), 1, "nothing.csv"),
        (("predict", "p.model", "points.csv"), 1, "points.csv: X has 2 features, but CoresetSpectralClustering is expecting 5"),
        (("predict", "m.model", "negative.npy"), 1, "negative.npy: the graph has a negative weight: entry (0, 0) = -1"),
        (("predict", "m.model", "narrow.npz"), 1, f"narrow.npz: its rows have 9 columns, and the model expects {n}"),
        (
            ("predict", "m.model", "new.txt", "--features", "a"),
            2,
            "it chooses columns of points, and m.model is a model of a graph",
        ),
        (("predict", "m.model", "new.txt", "--keep-ids"), 2, "ids that do not occur, and such nodes join no cluster; leave it"),
        (("predict", "p.model", "old.txt"), 1, "old.txt"),
        (("predict", "m.model", "new.txt", "-o", "m.model"), 2, "is a file that is read"),
        (("predict", "m.model", "new.txt", "-o", "labels.doc"), 2, "cannot tell the format"),
        (("predict", "m.model", "new.txt", "-o", "-", "--json"), 2, "both print to stdout"),
        (("cluster", "none.txt", "-k", 4, "--save", "."), 1, ". is a directory; give a file name"),  # before anything is read
        (("cluster", "old.txt", "-k", 4, "--save", "old.txt"), 2, "give the model another name"),
        (("cluster", "old.txt", "-k", 4, "-o", "a.csv", "--save", "a.csv"), 2, "give the model another name"),
        (("cluster", "old.txt", "-k", 4, "--save", "no/m.model"), 1, "there is no folder no"),
    ]
    for arguments, code, words in cases:
        done = run(*arguments)
        assert done.exit_code == code, arguments
        assert words in done.stderr.replace("\n", " "), done.stderr
    assert "old.txt" in os.listdir()
    assert corecut.read_graph("old.txt").n_nodes == n
