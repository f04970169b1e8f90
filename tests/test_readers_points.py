"""Points in files: the same table from every format; names of points; what is no point is named."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

from corecut import CoresetSpectralClustering
from corecut.cli import app
from corecut.labels import read_labels
from corecut.readers.points import read_points

VALUES = np.random.default_rng(0).normal(size=(30, 3))
FRAME = pd.DataFrame(VALUES, columns=["width", "height", "depth"])
NAMED = FRAME.set_axis([f"point {i}" for i in range(30)])


def written(folder: Path, name: str, frame: pd.DataFrame, **settings: Any) -> Path:
    path = folder / name
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, **settings)
    return path


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("p.csv", {"index": False}),
        ("p.csv", {}),
        ("p.csv.gz", {"index": False}),
        ("p.tsv", {"index": False, "sep": "\t"}),
        ("p.txt", {"index": False, "sep": " ", "header": False}),
        ("p.csv", {"index": False, "sep": ";", "quoting": 2}),
        ("p.parquet", {}),
    ],
)
def test_every_format_gives_the_same_points(tmp_path: Path, name: str, settings: dict[str, Any]) -> None:
    found = read_points(written(tmp_path, name, FRAME, **settings))
    np.testing.assert_allclose(found.values, VALUES, rtol=1e-15)
    if settings.get("header", True):
        assert found.features == ["width", "height", "depth"]


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_points_may_have_names(tmp_path: Path, name: str) -> None:
    found = read_points(written(tmp_path, name, NAMED))
    np.testing.assert_allclose(found.values, VALUES, rtol=1e-15)
    assert found.names is not None
    assert found.names.tolist() == NAMED.index.tolist()
    numbered = read_points(written(tmp_path, name, FRAME.set_axis(list(range(100, 130)))))
    assert numbered.names is not None
    assert numbered.names.tolist() == list(range(100, 130))


def test_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", VALUES)
    np.testing.assert_array_equal(read_points(tmp_path / "p.npy").values, VALUES)
    np.testing.assert_array_equal(read_points(tmp_path / "p.npy", features=[2, 0]).values, VALUES[:, [2, 0]])


def test_features_are_chosen_by_name_or_number(tmp_path: Path) -> None:
    for name in ("p.csv", "p.parquet"):
        path = written(tmp_path, name, NAMED.assign(kind="x", label=1))
        np.testing.assert_allclose(read_points(path, features=["depth", "width"]).values, VALUES[:, [2, 0]], rtol=1e-15)
        np.testing.assert_allclose(read_points(path, features=[1]).values, VALUES[:, :1], rtol=1e-15)
        with pytest.raises(ValueError, match="there is no column 'colour'; the columns are"):
            read_points(path, features=["colour"])
        with (
            pytest.warns(UserWarning, match="the column 'label' is taken for a feature"),
            pytest.raises(ValueError, match="the column 'kind' holds text; choose the columns that are numbers with features="),
        ):
            read_points(path)


def test_a_feature_is_one_column(tmp_path: Path) -> None:
    path = written(tmp_path, "p.csv", FRAME, index=False)
    for features in (["width", "width"], ["depth", 0, "width"]):
        with pytest.raises(ValueError, match=r"p\.csv: features= names the column 'width' twice; name every column once"):
            read_points(path, features=features)
    path.write_text("a,b,a\n1,2,3\n4,5,6\n")
    for wanted in (None, ["a", "b"], [0, 2]):
        with pytest.raises(
            ValueError, match=r"p\.csv: more than one column is called 'a'; give every column a name of its own"
        ):
            read_points(path, features=wanted)
    assert read_points(path, features=["b", 2]).values.tolist() == [[2, 3], [5, 6]]


def test_comments_headers_and_delimiters_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    path.write_text("! made by hand\n1 2\n3 4\n\n! the end\n")
    assert read_points(path, comments="!").values.tolist() == [[1, 2], [3, 4]]
    path.write_text("1|2\n3|4\n")
    assert read_points(path, delimiter="|").values.tolist() == [[1, 2], [3, 4]]
    assert read_points(path, delimiter="|", header=True).values.tolist() == [[3, 4]]


BAD: dict[str, tuple[bytes, str]] = {
    "gap.csv": (b"a,b\n1,2\n3,\n", "row 2 has no value in column 'b'; drop the row, or mend it"),
    "nan.csv": (b"a,b\n1,2\n3,nan\n", "row 2 has no finite value in column 'b'; drop it"),
    "text.csv": (b"1,2\n" * 300 + b"3,x\n", "row 301 has 'x', which is no number in column '1'"),
    "short.csv": (
        b"1,2\n" * 300 + b"3\n",
        r"short\.csv, line 301: has 1 cell, expected 2, as many as the first line has; mend",
    ),
    "long.csv": (
        b"# c\na,b\n1,2\n\n3,4,9\n",
        r"long\.csv, line 5: has 3 cells, expected 2, .* the first line has; mend or",
    ),
    "bare.csv": (b"1,2\n3,4,9\n5,6\n", "line 2: has 3 cells, expected 2"),
    "head.csv": (
        b"a,b,c\n1,2\n3,4\n",
        "line 1: has 3 cells, expected 2, as many as every other line has; mend or drop",
    ),
    "narrow.csv": (b"a,b\n1,2,3\n3,4,9\n", "line 1: has 2 cells, expected 3, .* or pass delimiter= if another mark"),
    "quotes.csv": (b'"x, y",b\n"1",2\n"3",4,5\n', "line 3: has 3 cells, expected 2"),
    "blanks.txt": (b"1 2\n3  4\n5 6 7\n", "line 3: has 3 cells, expected 2"),
    "empty.csv": (b"", "holds no points"),
    "comments.csv": (b"# nothing\n", "there is no point in this file"),
    "header.csv": (b"a,b\n", "the column 'a|holds text"),
    "cut.csv.gz": (gzip.compress(b"1,2\n" * 999)[:-20], "the compressed data end early"),
    "a.npz": (b"PK\x03\x04", "is an archive of arrays"),
    "cut.npy": (b"\x93NUMPY\x01\x00v\x00{'descr'", "is not a complete NumPy array"),
    "cut.parquet": (b"PAR1 no more", "is not a complete Parquet file"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    content, words = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        read_points(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_marks_in_quotes_part_no_cells(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text('name,"size, in m",note 5" wide\n"Anna, ""A""",1,2\n"Bert",3,4\n')
    found = read_points(path)
    assert found.values.tolist() == [[1, 2], [3, 4]]
    assert found.names is not None
    assert found.names.tolist() == ['Anna, "A"', "Bert"]
    path.write_text('name,x\n"Anna\n, ""the\nfirst""",1\n"Bert",3\n')  # over several lines
    assert read_points(path).values.tolist() == [[1], [3]]
    path.write_text('name,x\n"Anna\nB",1\n"Bert",3,4\n')
    with pytest.raises(ValueError, match="line 4: has 3 cells, expected 2"):
        read_points(path)
    path.write_text("1,2\n")
    with pytest.raises(ValueError, match="there is no point below the header; pass header=False"):
        read_points(path, header=True)


def test_arrays_that_are_no_table(tmp_path: Path) -> None:
    for array in (np.zeros(5), np.zeros((2, 2, 2)), np.array([["a", "b"]])):
        np.save(tmp_path / "p.npy", array)
        with pytest.raises(ValueError, match="points are a table of numbers"):
            read_points(tmp_path / "p.npy")
    np.save(tmp_path / "p.npy", VALUES)
    with pytest.raises(ValueError, match="delimiter has no meaning for a NumPy array"):
        read_points(tmp_path / "p.npy", delimiter=",")


def test_points_on_the_command_line(tmp_path: Path) -> None:
    truth = np.repeat([0, 1, 2], 30)
    values = np.random.default_rng(0).normal(size=(90, 2)) + 6.0 * np.array([[0, 0], [1, 0], [0, 1]])[truth]
    names = [f"p{i}" for i in range(90)]
    written(tmp_path, "points.csv", pd.DataFrame(values, columns=["x", "y"], index=names))
    out = tmp_path / "labels.csv"
    options = ["cluster", str(tmp_path / "points.csv"), "--points", "-k", "3", "-o", str(out), "--set", "n_neighbors=20"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.stderr
    assert "\n    graph " in result.stdout  # the search for neighbours is a part of the time
    ids, labels = read_labels(out)
    assert ids is not None
    assert ids.tolist() == names
    assert adjusted_rand_score(truth, labels) > 0.9
    model = CoresetSpectralClustering(3, n_neighbors=20, random_state=0).fit(values)
    np.testing.assert_array_equal(model.labels_, labels)


def test_a_single_point_makes_no_clusters(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    for command in (["cluster", "-k", "1"], ["scan"]):
        result = CliRunner().invoke(app, [command[0], str(tmp_path / "one.csv"), "--points", *command[1:]])
        assert result.exit_code == 1
        words = (
            "one.csv: holds 1 point, and clusters are made of 2 or more: give a file with a row for every point; if its first"
        )
        assert words in result.stderr
