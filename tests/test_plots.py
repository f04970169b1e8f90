"""Plots: what they show, that nothing in them overlaps, and that they look as they did.

`python tests/test_plots.py` draws the small pictures of tests/baselines/plots.npz anew, after a look at the large ones, which
`python tests/test_plots.py FOLDER` writes.
"""

from __future__ import annotations

import io
import json
import sys
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

import corecut
from corecut import plots
from corecut.cli import app
from corecut.drawing import map_clusters
from corecut.plots.canvas import shortened

BASELINES = Path(__file__).parent / "baselines" / "plots.npz"
SIZES = (3, 20, 500)
OF_PARTITIONS = ("adjacency", "confidence", "embedding", "quotient", "sizes")
KINDS = (*OF_PARTITIONS, "stages", "k_path")
# Mean difference of brightness, of 255, up to which a picture is the same: fonts differ between systems, and where clusters lie
# also depends on the last digits of eigenvectors.
TOLERANCE = {"embedding": 9.0, "quotient": 9.0}
PATH = {
    "n_clusters": list(range(2, 13)),
    "cut": [0.05, 0.08, 0.1, 0.12, 0.2, 0.26, 0.3, 0.33, 0.36, 0.38, 0.4],
    "eigengap": [0.1, 0.05, 0.08, 0.6, 0.04, 0.03, 0.02, 0.03, 0.02, 0.02, 0.01],
    "stability": [1.0, 0.9, 0.85, 1.0, 0.7, 0.6, 0.6, 0.5, 0.55, 0.5, 0.45],
    "chosen": 5,
}
TIMES = {"components": 0.1, "aggregation": 2.5, "eigenvectors": 1.25, "repair": 3.0, "refinement": 0.5}


@cache
def facts(k: int) -> corecut.PartitionFacts:
    """Return the facts about k planted clusters on a ring, each tied to the next one more than to the others."""
    rng, size = np.random.default_rng(k), max(12, 360 // k)
    n = k * size
    labels = np.arange(n) % k
    home = rng.integers(0, n, 8 * n)
    near = (home + k * rng.integers(1, size, home.size)) % n  # the same cluster
    tied = (home[: 2 * n] + 1 + k * rng.integers(0, size, 2 * n)) % n  # the next one
    pairs = np.concatenate([np.stack([home, near]), np.stack([home[: 2 * n], tied]), rng.integers(0, n, (2, n))], axis=1)
    half = sp.coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(n, n))
    matrix = sp.csr_array(half + half.T)
    matrix.data[:] = 1.0
    return corecut.partition_facts(matrix, labels)


@cache
def drawn(kind: str, k: int) -> plots.Drawing:
    if kind == "stages":
        return plots.stages(TIMES)
    if kind == "k_path":
        return plots.k_path(PATH)
    return getattr(plots, kind)(facts(k))  # type: ignore[no-any-return]


def small_picture(drawing: plots.Drawing) -> NDArray[np.uint8]:
    """Return the drawing in 60 × 45 shades of grey."""
    stream = io.BytesIO()
    drawing.figure.savefig(stream, format="png", dpi=60)
    return np.asarray(Image.open(stream).convert("L").resize((60, 45), Image.Resampling.BOX))


CASES = [(kind, k) for kind in OF_PARTITIONS for k in SIZES] + [("stages", 3), ("k_path", 3)]


@pytest.mark.parametrize(("kind", "k"), CASES)
def test_pictures_look_as_they_did(kind: str, k: int) -> None:
    with np.load(BASELINES) as known:
        before = known[f"{kind}-{k}"].astype(float)
    difference = np.abs(small_picture(drawn(kind, k)).astype(float) - before).mean()
    assert difference < TOLERANCE.get(kind, 5.0)


def test_another_picture_is_told_from_it() -> None:
    with np.load(BASELINES) as known:
        names = [name for name in known.files if name.endswith("-3")]
        for one, other in combinations(names, 2):
            assert np.abs(known[one].astype(float) - known[other]).mean() > 9.0, (one, other)


@pytest.mark.parametrize(("kind", "k"), CASES)
def test_words_do_not_overlap_and_stay_inside(kind: str, k: int) -> None:
    figure = drawn(kind, k).figure
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    words = [figure._suptitle, figure._supxlabel]  # type: ignore[attr-defined]
    boxes = [word.get_window_extent(renderer) for word in words]
    for axes in figure.axes:
        legend = axes.get_legend()
        parts = [legend] if legend is not None else []
        parts += [one for one in (axes.title, axes.xaxis.label, axes.yaxis.label) if one.get_text()]
        if axes.axison:
            parts.append(axes.patch)
        boxes += [part.get_window_extent(renderer) for part in parts]
    whole = figure.bbox
    for box in boxes:
        assert box.x0 >= whole.x0 - 1
        assert box.x1 <= whole.x1 + 1
        assert box.y0 >= whole.y0 - 1
        assert box.y1 <= whole.y1 + 1
    for one, other in combinations(boxes, 2):
        wide = min(one.x1, other.x1) - max(one.x0, other.x0)
        high = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert wide < 1.5 or high < 1.5, (one, other)


@pytest.mark.parametrize("kind", OF_PARTITIONS)
def test_axes_come_in_and_artists_go_out(kind: str) -> None:
    figure = Figure(layout="constrained")
    ax = figure.subplots()
    drawing = getattr(plots, kind)(facts(3), ax=ax)
    assert drawing.figure is figure
    assert drawing.ax is ax
    assert drawing.artists
    assert ax.get_title()
    assert figure._suptitle is None  # type: ignore[attr-defined]
    assert drawing.caption


def test_what_is_drawn() -> None:
    three, many = facts(3), facts(500)
    assert len(plots.sizes(three).artists["clusters"]) == 3  # type: ignore[arg-type]
    points = plots.sizes(many).artists["clusters"]
    assert len(points.get_offsets()) == 500  # type: ignore[union-attr]
    network = plots.quotient(three)
    assert len(network.artists["ties"].get_segments()) == 3  # type: ignore[union-attr]
    assert [text.get_text() for text in network.artists["names"]] != []  # type: ignore[union-attr]
    legend = plots.quotient(many).artists["legend"]
    counts = [int(text.get_text().split()[0]) for text in legend.get_texts()]  # type: ignore[union-attr]
    assert sum(counts) == 500
    assert len(counts) <= 7
    both = plots.adjacency(three)
    assert {"before", "after"} <= both.artists.keys()
    assert both.artists["after"].get_array().shape == (360, 360)  # type: ignore[union-attr]
    assert plots.adjacency(three, pixels=50).artists["after"].get_array().shape == (50, 50)  # type: ignore[union-attr]
    assert set(plots.k_path(PATH).artists) == {"cut", "eigengap", "stability", "chosen"}


def test_models_and_labels_are_taken_alike() -> None:
    graph, truth = corecut.make_sbm(60, 3, 0.4, 0.01, random_state=0)
    model = corecut.CoresetSpectralClustering(3, random_state=0).fit(graph)
    assert plots.stages(model).caption == plots.stages(model.timings_).caption
    assert plots.sizes(graph, model, n_jobs=1).caption == plots.sizes(graph, model.labels_).caption
    assert plots.confidence(graph, truth).caption
    flat, deep = plots.embedding(graph, model), plots.embedding(corecut.partition_facts(graph, model), model, dimensions=3)
    assert flat.ax.name == "rectilinear"  # type: ignore[union-attr]
    assert deep.ax.name == "3d"  # type: ignore[union-attr]
    assert flat._repr_png_().startswith(b"\x89PNG")


def test_one_and_two_clusters_and_names_that_look_like_formulas() -> None:
    matrix = np.ones((12, 12)) - np.eye(12)
    for labels in (["$x$"] * 12, [r"\alpha"] * 6 + ["a very long name of a cluster that has no end"] * 6):
        known = corecut.partition_facts(matrix, labels)
        for kind in OF_PARTITIONS:
            getattr(plots, kind)(known).figure.canvas.draw()


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_letters_that_the_font_lacks_are_written_by_their_numbers(ending: str, tmp_path: Path) -> None:
    matrix = np.ones((12, 12)) - np.eye(12)
    names = ["漢字", "한국어", "🙂🙃", "Zürich", "Ελλάδα\n", "\udc80"]
    known = corecut.partition_facts(matrix, [name for name in names for _ in range(2)])
    for kind in OF_PARTITIONS:  # a missing letter would be warned of, and warnings are errors
        getattr(plots, kind)(known).save(tmp_path / f"{kind}.{ending}")
    plots.stages({"漢字": 1.0, "draws": 2.0}).save(tmp_path / f"stages.{ending}")
    assert [shortened(name) for name in names] == [
        r"\u6f22\u5b57",
        r"\ud55c\uad6d\uc5b4",
        r"\U0001f642…",
        "Zürich",
        r"Ελλάδα\n",
        r"\udc80",
    ]
    assert shortened("$" * 30) == r"\$" * 17 + "…"
    assert shortened("漢字" * 20, 12) == r"\u6f22…"
    with matplotlib.rc_context({"font.family": ["no such font"]}):
        assert shortened("Zürich") == "Zürich"


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_files_are_written_whole_and_the_same_each_time(ending: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        plots.sizes(facts(3)).save(tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_bad_input_is_refused(tmp_path: Path) -> None:
    known = facts(3)
    with pytest.raises(ValueError, match=r"end the name in \.svg, \.png or \.pdf"):
        plots.sizes(known).save(tmp_path / "a.bmp")
    with pytest.raises(ValueError, match="as the second argument"):
        plots.sizes(known.graph)
    with pytest.raises(ValueError, match="the facts know their labels"):
        plots.sizes(known, known.labels)
    with pytest.raises(ValueError, match="times must be a fitted model or its timings_"):
        plots.stages({})
    for seconds in (None, "soon", float("nan"), float("inf"), -1.0):
        with pytest.raises(ValueError, match="must be a number of seconds, 0 or more"):
            plots.stages({"draws": 1.0, "write": seconds})
    with pytest.raises(ValueError, match="a path of k has"):
        plots.k_path({"path": []})
    with pytest.raises(ValueError, match="a path of k has"):
        plots.k_path({"path": [{"k": 2, "normalized_cut": None}]})
    with pytest.raises(ValueError, match="dimensions must be one of 2, 3"):
        plots.embedding(known, dimensions=4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="projection"):
        plots.embedding(known, dimensions=3, ax=Figure().subplots())
    with pytest.raises(ValueError, match="one axes, or a pair"):
        plots.adjacency(known, ax=tuple(Figure().subplots(1, 3)))
    with pytest.raises(ValueError, match="there are 3 curves"):
        plots.k_path(PATH, ax=Figure().subplots())
    with pytest.raises(ValueError, match="at most 4096"):
        plots.adjacency(known, pixels=5000)


# --- the command ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    corecut.write_graph(facts(3).graph, tmp_path / "g.txt")
    np.save(tmp_path / "l.npy", facts(3).labels)
    (tmp_path / "run.json").write_text(json.dumps({"seconds": TIMES, "selection": PATH}))
    (tmp_path / "times.json").write_text(json.dumps({"seconds": TIMES}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *arguments: CliRunner().invoke(app, ["plot", *[str(argument) for argument in arguments]])


@pytest.mark.parametrize("kind", ["embedding", "adjacency", "sizes", "quotient", "confidence"])
def test_the_command_draws_every_kind(run: Any, tmp_path: Path, kind: str) -> None:
    done = run(kind, "g.txt", "l.npy", "-o", "picture.svg", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["picture"] == "picture.svg"
    assert "<svg" in (tmp_path / "picture.svg").read_text(encoding="utf-8")


def test_the_command_draws_what_a_run_printed(run: Any, tmp_path: Path) -> None:
    assert run("stages", "run.json", "-o", "s.png").exit_code == 0
    assert run("k-path", "run.json", "-o", "k.png").exit_code == 0
    assert run("embedding", "g.txt", "l.npy", "--three", "-o", "three.png", "-j", 1).exit_code == 0
    assert {"s.png", "k.png", "three.png"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sizes", "g.txt", "-o", "x.svg"), "sizes needs the labels beside the graph"),
        (("sizes", "g.txt", "l.npy", "-o", "x.jpg"), "end the name in .svg, .png or .pdf"),
        (("sizes", "g.txt", "l.npy", "-o", "l.npy"), "l.npy is read; give the picture another name"),
        (("sizes", "g.txt", "l.npy", "-o", "x.svg", "--three"), "it has no effect on sizes"),
        (("stages", "run.json", "l.npy", "-o", "x.svg"), "stages is drawn from a run, without labels"),
        (("stages", "g.txt", "-o", "x.svg"), "g.txt has no times of a run"),
        (("k-path", "times.json", "-o", "x.svg"), "times.json has no path of k of a run"),
        (("k-path", "none.json", "-o", "x.svg"), "there is no file none.json"),
        (("histogram", "g.txt", "l.npy", "-o", "x.svg"), "histogram"),
    ],
)
def test_misuse_is_told_in_a_sentence(run: Any, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code in (1, 2)
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert not (tmp_path / "x.svg").exists()


def test_without_matplotlib_the_cure_is_told(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run("sizes", "g.txt", "l.npy", "-o", "x.svg")
    assert done.exit_code == 1
    assert 'pip install "corecut[plots]"' in done.stderr


def test_names_of_many_clusters_do_not_lie_on_each_other() -> None:
    matrix, truth = corecut.make_degree_corrected_sbm(8_000, 400, mean_degree=12, mixing=0.3, random_state=7)
    drawing = plots.quotient(matrix, truth)
    drawing.figure.draw_without_rendering()
    boxes = [name.get_window_extent() for name in drawing.artists["names"]]
    assert len(boxes) > 5
    assert not [(i, j) for i, a in enumerate(boxes) for j, b in enumerate(boxes[:i]) if a.overlaps(b)]


def test_numbers_of_clusters_are_written_out() -> None:
    drawing = plots.k_path({"n_clusters": [1, 10, 100, 1000], "cut": [0.0, 0.1, 0.2, 0.4]})
    drawing.figure.draw_without_rendering()
    words = {tick.get_text() for tick in drawing.ax[-1].get_xticklabels()}
    assert {"1", "10", "100", "1,000"} <= words


def test_numbers_of_a_short_logarithmic_axis_are_few_and_plain() -> None:
    numbers = list(range(2, 81))
    drawing = plots.k_path({"n_clusters": numbers, "cut": [0.01 * k for k in numbers]})
    drawing.figure.draw_without_rendering()
    axis = drawing.ax[-1].xaxis
    words = [tick.label1.get_text() for tick in axis.get_major_ticks() + axis.get_minor_ticks()]
    assert {"2", "5", "10", "20", "50"} <= set(words)
    assert not [word for word in words if "10^" in word]


def test_sizes_are_whole_numbers_where_all_are_the_same() -> None:
    drawing = plots.sizes(sp.csr_array(sp.block_diag([np.ones((2, 2)) - np.eye(2)] * 50)), np.repeat(np.arange(50), 2))
    drawing.figure.draw_without_rendering()
    shown = [tick.get_text() for tick in drawing.ax.get_xticklabels()]  # type: ignore[union-attr]
    assert "2" in shown
    assert all(word.isdigit() for word in shown)


def test_names_above_small_marks_leave_them_to_be_seen() -> None:
    known = facts(500)
    drawing = plots.quotient(known)
    places = map_clusters(known).places
    of_name = {known.name(j): places[j, 1] for j in range(500)}
    for word in drawing.artists["names"]:  # type: ignore[union-attr]
        assert word.get_verticalalignment() == "bottom"
        assert word.get_position()[1] > of_name[word.get_text()]
    large = plots.quotient(facts(3)).artists["names"]
    assert {word.get_verticalalignment() for word in large} == {"center"}  # type: ignore[union-attr]


def test_names_that_cannot_be_seen_are_shown_all_the_same() -> None:
    assert shortened("") == shortened(" \t") == "(no name)"
    assert shortened("\u202eabc") == r"\u202eabc"  # else what follows would be turned around
    assert shortened("a\0b") == r"a\x00b"


def test_captions_and_titles_count_in_words() -> None:
    one = corecut.partition_facts(np.ones((6, 6)) - np.eye(6), np.zeros(6, int))
    for kind in OF_PARTITIONS:
        title = getattr(plots, kind)(one).figure._suptitle.get_text()
        assert title.endswith("1 cluster"), title
    assert plots.quotient(one).caption.endswith("No edge joins two clusters.")
    two = corecut.partition_facts(np.ones((6, 6)) - np.eye(6), np.arange(6) % 2)
    assert plots.quotient(two).caption.endswith("There is one connection.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for kind, k in CASES:
            drawn(kind, k).save(Path(sys.argv[1]) / f"{kind}-{k}.png")
    else:
        BASELINES.parent.mkdir(exist_ok=True)
        np.savez_compressed(BASELINES, **{f"{kind}-{k}": small_picture(drawn(kind, k)) for kind, k in CASES})
