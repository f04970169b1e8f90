"""Figures in the paper's manner: a line for the mean, a band of one standard deviation. PNG to look at, SVG to print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from corecut._files import atomic_file
from corecut.experiments.results import Point

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


class Look(NamedTuple):
    """How a method is drawn, and what it is called."""

    label: str
    colour: str
    marker: str


# One colour for a method in all figures (Okabe and Ito's palette, which the colour-blind can tell apart).
LOOKS = {
    "csc-exact": Look("CSC, exact eigenvectors", "#0072B2", "o"),
    "csc-fast": Look("CSC, fast", "#56B4E9", "s"),
    "coreset-kernel-kmeans": Look("coreset kernel k-means", "#D55E00", "^"),
    "scikit-learn": Look("scikit-learn spectral clustering (whole graph)", "#000000", ""),
    "coreset-sc": Look("coreset-sc (the authors' package)", "#E69F00", "D"),
    "corecut": Look("corecut's defaults", "#009E73", "*"),
    "naive": Look("naive D² sampling (Algorithm 1)", "#D55E00", "^"),
    "tree": Look("sampling tree (Algorithm 2)", "#0072B2", "o"),
    "rejection": Look("rejection (corecut's default)", "#009E73", "*"),
    "coreset-sc naive": Look("coreset-sc, naive", "#CC79A7", "v"),
    "coreset-sc tree": Look("coreset-sc, tree", "#E69F00", "D"),
}


def require_matplotlib() -> None:
    """Refuse to begin what could not be drawn in the end."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError("the figures need matplotlib: pip install 'corecut[experiments]'") from None


def panels(rows: int, columns: int, title: str) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels, without a window or any global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.6 + 4.2 * columns, 1.5 + 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    figure.suptitle(title)
    return figure, list(axes.ravel())


def draw_line(axes: Axes, method: str, points: Sequence[Point], *, positive: bool = False) -> None:
    """Draw mean and band of a method against the horizontal axis.

    With `positive`, for a logarithmic axis, the band ends at half the mean where it would reach down to zero or nearly so.
    """
    look = LOOKS[method]
    at, mean = [p.at for p in points], [p.mean for p in points]
    low = [max(p.mean - p.deviation, p.mean / 2) if positive else p.mean - p.deviation for p in points]
    axes.plot(at, mean, color=look.colour, marker=look.marker or None, markersize=5, label=look.label)
    axes.fill_between(at, low, [p.mean + p.deviation for p in points], color=look.colour, alpha=0.2, linewidth=0)


def draw_level(axes: Axes, method: str, point: Point) -> None:
    """Draw mean and band of a method that does not depend on the horizontal axis."""
    look = LOOKS[method]
    axes.axhline(point.mean, color=look.colour, linestyle="--", label=look.label)
    axes.axhspan(point.mean - point.deviation, point.mean + point.deviation, color=look.colour, alpha=0.15, linewidth=0)


def logarithmic(axis: Axis, ticks: Sequence[float] | None = None) -> None:
    """Make an axis logarithmic, labelled with plain numbers; with `ticks` at these places only."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    scale = axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale
    scale("log")
    if ticks is None:
        axis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    else:
        axis.set_ticks(list(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def finish(figure: Figure, axes: Iterable[Axes], file: Path) -> Path:
    """Add one legend for all panels and write `file` as PNG and SVG; return the PNG."""
    import matplotlib

    known: dict[str, Artist] = {}
    for one in axes:
        one.grid(alpha=0.3)
        handles, labels = one.get_legend_handles_labels()
        known |= dict(zip(labels, handles, strict=True))
    if known:
        figure.legend(list(known.values()), list(known), loc="outside lower center", ncols=3, frameon=False)
    writers: dict[str, Callable[[Path], None]] = {
        ".png": lambda path: figure.savefig(path, format="png", dpi=110),
        # Text stays text, and the file depends on nothing but the results.
        ".svg": lambda path: figure.savefig(path, format="svg", metadata={"Date": None}),
    }
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "corecut"}):
        for ending, write in writers.items():
            with atomic_file(file.with_suffix(ending)) as temporary:
                write(temporary)
    return file.with_suffix(".png")
