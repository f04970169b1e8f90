"""Real sets of points: where they are looked for, and what is said when they are not there."""

from __future__ import annotations

from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from corecut._files import GraphFileError
from corecut.datasets import load_har, load_letter, load_mnist, load_pendigits
from corecut.datasets.points import load_points


@pytest.fixture
def folder(tmp_path, rng):
    """Return a folder with a tiny set, whose classes are numbered with a gap."""
    np.savez(tmp_path / "letter.npz", X=rng.integers(0, 16, (30, 4), dtype=np.uint8), y=np.arange(30, dtype=np.int16) % 3 * 2)
    return tmp_path


@pytest.fixture
def offline(monkeypatch):
    """Take the network away."""
    monkeypatch.delenv("CORECUT_DATA", raising=False)

    def refuse(*_, **__):
        raise URLError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", refuse)


def test_a_folder_given_by_argument(folder, offline):
    points, classes = load_letter(folder)
    assert points.shape == (30, 4)
    assert points.dtype == np.uint8
    assert classes.dtype == np.int32
    np.testing.assert_array_equal(classes, np.arange(30) % 3)


def test_the_folder_that_the_environment_names(folder, offline, monkeypatch):
    monkeypatch.setenv("CORECUT_DATA", str(folder))
    assert load_letter()[0].shape == (30, 4)


@pytest.mark.parametrize("load", [load_mnist, load_pendigits, load_har, load_letter])
def test_offline_says_what_to_do(load, offline, capsys):
    name = load.__name__.removeprefix("load_")
    with pytest.raises(ConnectionError, match=rf"{name} is in no folder and cannot be fetched .*no route.* put {name}\.npz"):
        load()
    assert f"fetching {name} from OpenML" in capsys.readouterr().err


def test_a_folder_that_lacks_the_set_is_refused(folder):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*har\.npz; name another folder"):
        load_har(folder)


def test_a_fetched_set_has_its_classes_numbered(monkeypatch, capsys):
    monkeypatch.delenv("CORECUT_DATA", raising=False)
    asked = []

    def fetch(name, **settings):
        asked.append((name, settings["version"]))
        return sklearn.utils.Bunch(data=np.ones((4, 2)), target=np.array(["b", "a", "c", "b"]))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    points, classes = load_mnist()
    assert asked == [("mnist_784", 1)]
    assert points.shape == (4, 2)
    assert classes.tolist() == [1, 0, 2, 1]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((3, 2))}, "needs the arrays X and y"),
        ({"X": np.ones((3, 2)), "y": np.ones(2)}, r"X has shape \(3, 2\) and y \(2,\)"),
        ({"X": np.ones(3), "y": np.ones(3)}, r"X has shape \(3,\)"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "har.npz", **arrays)
    with pytest.raises(GraphFileError, match=message):
        load_har(tmp_path)


def test_a_damaged_file_is_refused(tmp_path):
    (tmp_path / "har.npz").write_bytes(b"PK\x03\x04 half an archive")
    with pytest.raises(GraphFileError, match="cannot be read as a NumPy archive"):
        load_har(tmp_path)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="name must be one of 'mnist'"):
        load_points("iris")
