"""What all plots share: the figure, its words, the legend of clusters, and how it is written."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from corecut._files import EndingError, atomic_file, check_target
from corecut.drawing import COLOURS, NAMELESS, Palette
from corecut.facts import PartitionFacts, partition_facts

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

FORMATS = (".svg", ".png", ".pdf")
MARKERS = ("o", "s", "^")
"""Matplotlib's letters for the shapes of clusters."""
# Letters of a line of the caption, for each inch of the figure.
_LETTERS = 15.5


@dataclass(frozen=True, eq=False)
class Drawing:
    """A plot.

    Attributes
    ----------
    figure, ax
        Where it is drawn; `ax` is a tuple where there are several.
    artists
        What was drawn, by name.
    caption
        What is to be seen, in a few sentences. It is written below the plot where the figure is the plot's own.
    """

    figure: Figure = field(repr=False)
    ax: Axes | tuple[Axes, ...] = field(repr=False)
    artists: dict[str, Artist | list[Artist]] = field(repr=False)
    caption: str

    def save(self, path: str | Path) -> None:
        """Write the figure as SVG, PNG or PDF, by the ending of the name; the file appears whole or not at all."""
        import matplotlib

        file = check_picture_path(path)
        # Text stays text, and the file depends on nothing but what is drawn.
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "corecut"}), atomic_file(file) as temporary:
            kind = file.suffix.lower().lstrip(".")
            dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
            self.figure.savefig(temporary, format=kind, dpi=150, metadata=dated)

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.figure.savefig(stream, format="png", dpi=100)
        return stream.getvalue()


def check_picture_path(path: str | Path) -> Path:
    """Refuse an ending that is no picture's, and a name that cannot be written to."""
    file = Path(path)
    if file.suffix.lower() not in FORMATS:
        raise EndingError(f"cannot tell the format of {file}; end the name in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    check_target(file)
    return file


def require_matplotlib() -> None:
    """Refuse to begin what could not be drawn in the end."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError('plots need matplotlib: pip install "corecut[plots]"') from None


def facts_of(graph: Any, labels: Any, n_jobs: int | None) -> PartitionFacts:
    """Return the facts that were given, or those about a graph and its labels."""
    if isinstance(graph, PartitionFacts):
        if labels is not None and not hasattr(labels, "labels_"):
            raise ValueError("the facts know their labels; give a graph and labels, or the facts alone")
        return graph
    if labels is None:
        raise ValueError("give the labels of the graph, or a fitted model, as the second argument")
    return partition_facts(graph, labels, n_jobs=n_jobs)


def new_axes(
    ax: Axes | None, *, size: tuple[float, float] = (7.2, 5.4), projection: str | None = None
) -> tuple[Figure, Axes, bool]:
    """Return the figure and the axes to draw in, and whether they are new."""
    require_matplotlib()
    if ax is not None:
        figure: Any = ax.figure
        return figure, ax, False
    from matplotlib.figure import Figure

    made = Figure(figsize=size, layout="constrained")
    return made, made.add_subplot(projection=projection), True


def finished(
    figure: Figure, ax: Axes | tuple[Axes, ...], artists: dict[str, Any], *, title: str, caption: str, own: bool
) -> Drawing:
    """Write title and caption, and return the drawing."""
    if own:
        figure.suptitle(title, fontsize="large")
        width = int(_LETTERS * figure.get_figwidth())
        figure.supxlabel(fill(caption, width), fontsize="small", color="0.25", ha="left", x=0.01)
    elif not isinstance(ax, tuple):
        ax.set_title(title)
    return Drawing(figure, ax, artists, caption)


def cluster_legend(ax: Axes, facts: PartitionFacts, palette: Palette) -> Artist:
    """Add a legend beside the axes: the clusters, or the groups of clusters that share a colour."""
    from matplotlib.lines import Line2D

    def entry(colour: str, marker: str, label: str) -> Line2D:
        return Line2D([], [], linestyle="", marker=marker, color=colour, label=label)

    if palette.grouped:
        counts = [int((palette.colours == group).sum()) for group in range(len(COLOURS))]
        handles = [entry(COLOURS[g], "o", f"{count:,} clusters") for g, count in enumerate(counts) if count]
        heading = "groups of\nneighbours"
    else:
        handles = [
            entry(palette.colour(j), MARKERS[int(palette.shapes[j])], shortened(facts.name(j))) for j in range(facts.n_clusters)
        ]
        heading = "cluster"
    beside = 1.12 if ax.name == "3d" else 1.02
    return ax.legend(
        handles=handles, title=heading, loc="upper left", bbox_to_anchor=(beside, 1.0), frameon=False, fontsize="small",
        alignment="left", borderaxespad=0.0,
    )  # fmt: skip


def clusters_in_words(k: int) -> str:
    """Return the number of clusters with its noun."""
    return f"{k:,} cluster{'' if k == 1 else 's'}"


def written_out(axis: Axis) -> None:
    """Let a logarithmic axis have plain numbers, at 1, 2 and 5 of every power of ten, and none between them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_formatter(NullFormatter())


def shortened(name: str, most: int = 18) -> str:
    """Return a name of any length as it fits beside a picture.

    Dollar signs are letters, not formulas. A letter that the font lacks is written by its number, as Python escapes it: boxes
    would make names alike. A font that has it is chosen by matplotlib's `rcParams["font.family"]`. Letters that are not seen,
    such as those that turn others around, are written so, too.
    """
    if not name.strip():
        return NAMELESS
    known = _letters(tuple(_fonts()))
    letters = [
        one if one.isprintable() and ord(one) in known else one.encode("unicode_escape").decode() for one in name[: most + 1]
    ]
    if len(name) > most or sum(map(len, letters)) > most:
        while letters and sum(map(len, letters)) > most - 1:
            letters.pop()
        letters.append("…")
    return "".join(letters).replace("$", r"\$")


def _fonts() -> list[str]:
    """Return the files of the fonts that text is written in: each has what those before lack."""
    from matplotlib.font_manager import FontProperties, findfont

    files = []
    for family in FontProperties().get_family():
        try:
            files.append(str(findfont(FontProperties(family=family), fallback_to_default=False)))
        except ValueError:  # not installed here
            continue
    return files or [str(findfont(FontProperties()))]


@lru_cache
def _letters(fonts: tuple[str, ...]) -> frozenset[int]:
    """Return the numbers of the letters that some fonts have."""
    from matplotlib.font_manager import get_font

    return frozenset().union(*(get_font(file).get_charmap() for file in fonts))
