"""Labels files: round trips in every format, files of others, and nothing half-written."""

from __future__ import annotations

import numpy as np
import pytest

from corecut._files import GraphFileError, atomic_file
from corecut.labels import LabelColumnError, align_labels, read_labels, write_labels

LABELS = np.array([2, 0, 1, 1, 0], dtype=np.int32)
IDS = {
    "numbers": None,
    "integers": np.array([5, 7, 10**12, 10**12 + 1, 2**62]),
    "text": np.array(["a", "b c", "d,e", 'f"', "ü"], dtype=object),
}


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("name", ["l.csv", "l.tsv", "l.txt", "l.parquet", "l.npy", "l.csv.gz", "l.tsv.zst", "l.csv.bz2"])
def test_round_trip(tmp_path, ids, name):
    write_labels(tmp_path / name, LABELS, IDS[ids])
    found, labels = read_labels(tmp_path / name)
    if name == "l.npy":
        assert found is None
    else:
        assert found.tolist() == (list(range(5)) if IDS[ids] is None else IDS[ids].tolist())
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(align_labels(found, labels, IDS[ids], n_nodes=5, name=name), LABELS)


@pytest.mark.parametrize(
    ("text", "ids", "labels"),
    [
        ("1\n0\n2\n", None, [1, 0, 2]),
        ("# by METIS\n1\n0\n", None, [1, 0]),
        ("label\n1\n0\n", None, [1, 0]),
        ("7 1\n8 0\n", [7, 8], [1, 0]),
        ("id,name_of,class\n7,x,red\n8,y,blue\n9,z,red\n", [7, 8, 9], [1, 0, 1]),
        ("cluster;node\n4;a\n5;b\n", ["a", "b"], [4, 5]),
        ("7,-1\n8,3\n", [7, 8], [-1, 3]),
    ],
)
def test_files_of_others(tmp_path, text, ids, labels):
    (tmp_path / "l.txt").write_text(text)
    found = read_labels(tmp_path / "l.txt")
    assert (None if found[0] is None else found[0].tolist()) == ids
    assert found[1].tolist() == labels


def test_order_and_strangers_do_not_matter():
    with pytest.warns(UserWarning, match="l has labels for 1 nodes that the graph does not have, the first is 70"):
        labels = align_labels(np.array([9, 5, 70]), np.array([1, 2, 3]), np.array([5, 7, 9]), n_nodes=3, name="l")
    assert labels.tolist() == [2, -1, 1]
    mixed = align_labels(np.array(["9", "5"], dtype=object), np.array([1, 2]), np.array([5, 7, 9]), n_nodes=3, name="l")
    assert mixed.tolist() == [2, -1, 1]


@pytest.mark.parametrize(
    ("ids", "labels", "message"),
    [
        (None, [1, 2], "holds 2 labels without ids, the graph has 3 nodes"),
        ([1, 1], [0, 1], "more than one label for node 1"),
        ([8, 9], [0, 1], "names no node of the graph"),
    ],
)
def test_labels_that_do_not_fit(ids, labels, message):
    with pytest.raises(ValueError, match=message):
        align_labels(None if ids is None else np.array(ids), np.array(labels), None, n_nodes=3, name="l.csv")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.csv", b"", "there is no label"),
        ("l.csv", b"node,label\n1,2\n3\n", "not a complete labels file"),
        ("l.parquet", b"PAR1", "not a complete labels file"),
        ("l.npy", b"rubbish", "not a complete labels file"),
    ],
)
def test_broken_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(GraphFileError, match=message):
        read_labels(tmp_path / name)


@pytest.mark.parametrize("name", ["l", "l.xlsx", "l.npy.gz", "l.parquet.zst"])
def test_endings_that_no_writer_knows(tmp_path, name):
    with pytest.raises(ValueError, match="cannot tell the format"):
        write_labels(tmp_path / name, LABELS)


def test_places_that_cannot_be_written_to(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_labels(tmp_path / "none" / "l.csv", LABELS)
    (tmp_path / "l.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a directory"):
        write_labels(tmp_path / "l.csv", LABELS)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("old")

    def fail() -> None:
        with atomic_file(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["l.csv"]


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    for folder in ("far", "near"):
        (tmp_path / folder).mkdir()
    (tmp_path / "far" / "l.csv").write_text("old")
    (tmp_path / "far" / ".l.csv.4194303999.ab.partial").write_text("dead")
    for name, target in {"l.csv": "../far/l.csv", "new.csv": "../far/new.csv", "two.csv": "l.csv"}.items():
        (tmp_path / "near" / name).symlink_to(target)
        write_labels(tmp_path / "near" / name, LABELS)
        assert (tmp_path / "near" / name).is_symlink()
        np.testing.assert_array_equal(read_labels(tmp_path / "near" / name)[1], LABELS)
    assert sorted(file.name for file in (tmp_path / "far").iterdir()) == ["l.csv", "new.csv"]
    (tmp_path / "near" / "lost.csv").symlink_to("../none/l.csv")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*none"):
        write_labels(tmp_path / "near" / "lost.csv", LABELS)
    with pytest.raises(FileExistsError, match=r"l\.csv exists already"):
        write_labels(tmp_path / "near" / "l.csv", LABELS, overwrite=False)


@pytest.mark.parametrize("name", ["l.csv", "l[1]*.csv"])
def test_leftovers_of_dead_writers_are_removed(tmp_path, name):
    (tmp_path / f".{name}.4194303999.ab.partial").write_text("dead")
    (tmp_path / f".{name}.1.ab.partial").write_text("process 1 lives")
    write_labels(tmp_path / name, LABELS)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [f".{name}.1.ab.partial", name]


def test_missing_labels_are_no_cluster(tmp_path):
    np.save(tmp_path / "l.npy", np.array([0.0, np.nan, 1.0]))
    with pytest.raises(GraphFileError, match=r"l\.npy: label 1 is missing \(NaN\); write -1"):
        read_labels(tmp_path / "l.npy")
    np.save(tmp_path / "l.npy", np.array([0.0, -1.0, 10.0, 2.0]))
    assert read_labels(tmp_path / "l.npy")[1].tolist() == [0, -1, 10, 2]
    for gap in ("nan", "NaN", ""):
        (tmp_path / "l.csv").write_text(f"# by hand\nnode,label\n1,red\n\n2,{gap}\n")
        with pytest.raises(GraphFileError, match=r"l\.csv, line 5: the label is missing; write -1"):
            read_labels(tmp_path / "l.csv")
    (tmp_path / "l.csv").write_text('node,label\n1,red\nnan,"nan"\n')
    assert read_labels(tmp_path / "l.csv")[1].tolist() == [1, 0]


def test_missing_labels_in_parquet(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"node": [1, 2], "label": pa.array([1.0, float("nan")])}), tmp_path / "l.parquet")
    with pytest.raises(GraphFileError, match="row 1 has no value, but NaN"):
        read_labels(tmp_path / "l.parquet")


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_short_line_is_named(tmp_path, end):
    (tmp_path / "l.csv").write_text(f'node,label\n# a comment\n"a\nb",1\n\n2{end}')
    with pytest.raises(GraphFileError, match=r"line 6 has 1 columns, the first line has 2"):
        read_labels(tmp_path / "l.csv")


def test_a_directory_is_no_labels_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a directory, not a labels file"):
        read_labels(tmp_path)


def test_columns_of_one_name(tmp_path):
    (tmp_path / "l.csv").write_text("node,label,label\n1,5,7\n2,6,8\n")
    with pytest.raises(LabelColumnError, match="any of the columns label, label; name one, or give its number"):
        read_labels(tmp_path / "l.csv")
    with pytest.raises(LabelColumnError, match=r"more than one column 'label'; give the number of one, from 0: \[1, 2\]"):
        read_labels(tmp_path / "l.csv", column="label")
    assert read_labels(tmp_path / "l.csv", column="2")[1].tolist() == [7, 8]
    (tmp_path / "l.csv").write_text("node,node,label\n1,5,7\n2,6,8\n")
    with pytest.raises(LabelColumnError, match="more than one column 'node' that may hold the ids"):
        read_labels(tmp_path / "l.csv")


def test_pq_is_another_name_of_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    labels, names = np.array([0, 1, 1], np.int32), np.array(["a", "b", "c"])
    write_labels(tmp_path / "l.pq", labels, names)
    write_labels(tmp_path / "l.parquet", labels, names)
    assert (tmp_path / "l.pq").read_bytes() == (tmp_path / "l.parquet").read_bytes()
    found_names, found = read_labels(tmp_path / "l.pq")
    np.testing.assert_array_equal(found, labels)
    np.testing.assert_array_equal(found_names, names)
