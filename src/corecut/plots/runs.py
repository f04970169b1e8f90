"""Plots of how a clustering came about: the time of its stages, and the path of k."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from corecut.drawing import CURVES, path_of
from corecut.plots.canvas import Drawing, finished, new_axes, require_matplotlib, shortened, written_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _ORANGE = "#0072B2", "#D55E00"


def stages(times: Any, *, ax: Axes | None = None) -> Drawing:
    """Draw the time of every stage of a run.

    Parameters
    ----------
    times
        A fitted model, or its `timings_`: seconds by the name of the stage.
    ax
        Axes to draw in; None for a figure of its own.

    Returns
    -------
    Drawing
        Its artists are "stages" and "seconds".
    """
    seconds = getattr(times, "timings_", times)
    if not isinstance(seconds, Mapping) or not seconds:
        raise ValueError("times must be a fitted model or its timings_: seconds by the name of the stage")
    names = list(seconds)
    try:
        values = np.array([float(value) for value in seconds.values()])
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("the time of every stage must be a number of seconds, 0 or more")
    figure, axes, own = new_axes(ax, size=(7.2, 1.8 + 0.3 * len(names)))
    bars = axes.barh(np.arange(len(names)), values, color=_BLUE)
    axes.set_yticks(np.arange(len(names)), [shortened(str(name), 40) for name in names])
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    axes.set_xlim(right=1.18 * max(float(values.max()), 1e-6))
    words = axes.bar_label(bars, [f"{value:,.3f}" if value < 10 else f"{value:,.1f}" for value in values], padding=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    caption = f"{values.sum():,.2f} seconds in all; {shortened(str(names[int(values.argmax())]), 40)} took the most."
    artists = {"stages": list(bars), "seconds": list(words)}
    return finished(figure, axes, artists, title="Time of each stage", caption=caption, own=own)


def k_path(path: Any, *, ax: Any = None) -> Drawing:
    """Draw what speaks for each number of clusters: the cut, the gap in the spectrum, and how far draws agree.

    Parameters
    ----------
    path
        What :func:`corecut.select_n_clusters` returns, or a mapping with "n_clusters" (rising) and any of "cut", "eigengap",
        "leap" and "stability", each with one value for each number; "chosen" names one of the numbers.
    ax
        One axes for each curve that there is; None for a figure of its own.

    Returns
    -------
    Drawing
        Its artists are the curves by their names, and "chosen".
    """
    found = path_of(path)
    curves = [name for name in CURVES if name in found]
    if ax is None:
        require_matplotlib()
        from matplotlib.figure import Figure

        figure, own = Figure(figsize=(7.2, 1.6 + 1.7 * len(curves)), layout="constrained"), True
        panels = tuple(figure.subplots(len(curves), 1, sharex=True, squeeze=False)[:, 0])
    else:
        panels = tuple(np.atleast_1d(np.asarray(ax, dtype=object)))
        if len(panels) != len(curves):
            raise ValueError(f"there are {len(curves)} curves ({', '.join(curves)}): give as many axes, got {len(panels)}")
        figure, own = new_axes(panels[0])[0], False
    numbers, chosen = np.asarray(found["n_clusters"]), found.get("chosen")
    artists: dict[str, Any] = {"chosen": []}
    for axes, name in zip(panels, curves, strict=True):
        (artists[name],) = axes.plot(numbers, found[name], marker="o", markersize=3.5, color=_BLUE)
        axes.set_ylabel(CURVES[name][0])
        axes.grid(alpha=0.3)
        if chosen is not None:
            artists["chosen"].append(axes.axvline(chosen, color=_ORANGE, linestyle="--", linewidth=1.2))
    if numbers.size > 1 and numbers[-1] > 20 * numbers[0]:
        for axes in panels:
            axes.set_xscale("log")
            written_out(axes.xaxis)
    panels[-1].set_xlabel("number of clusters k")
    caption = " ".join(CURVES[name][1] for name in curves)
    if chosen is not None:
        caption += f" The dashed line is the number that was chosen, {chosen:,}."
    return finished(figure, panels, artists, title="Which number of clusters?", caption=caption, own=own)
