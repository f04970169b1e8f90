"""From a model, or labels, and a graph to the page."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corecut._files import atomic_file, check_target
from corecut.drawing import palette_of
from corecut.facts import PartitionFacts, partition_facts
from corecut.reporting.content import heat_maps, page_data
from corecut.reporting.page import Static, fill_page
from corecut.reporting.words import choices, verdict
from corecut.spectral.blas import single_threaded_blas


@dataclass(frozen=True)
class RunNotes:
    """What a report says of how the labels came about, beyond what a model knows.

    Attributes
    ----------
    title
        Heading of the page.
    command
        What to type, or to run in Python, to repeat the run.
    seconds
        Time of every stage; a model's own by default.
    advice
        Warnings with their cures; a model's own by default.
    path
        The path of k, as :func:`corecut.plots.k_path` takes it.
    """

    title: str = "Clustering report"
    command: str | None = None
    seconds: Mapping[str, float] | None = None
    advice: Sequence[str] | None = None
    path: Any = None


@dataclass(frozen=True)
class Report:
    """A finished report.

    Attributes
    ----------
    html
        The page, complete in itself.
    """

    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page; the file appears whole or not at all."""
        file = check_report_path(path)
        with atomic_file(file) as temporary:
            temporary.write_bytes(self.html.encode(errors="replace"))

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="width:100%;height:720px;border:0"></iframe>'


def report(
    model: Any,
    graph: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "Clustering report",
    selection: Any = None,
    n_jobs: int | None = None,
) -> Report:
    """Make a report of a clustering, or of any labels: one page that a browser opens, complete in itself.

    It says in words how good the clusters are (:mod:`corecut.facts` has the rules), and shows the table of clusters, the graph
    of clusters, the embedding, the sorted adjacency matrix, the time of every stage, warnings with their cures, and how to
    repeat the run. Nothing in it comes from a network.

    Parameters
    ----------
    model
        A fitted estimator, or labels: integers, text or categories, one for each node, whoever made them.
    graph
        The graph that was clustered: a :class:`Graph`, whose node ids are shown, or anything it can be made from.
    path
        File to write; None to write none.
    title
        Heading of the page.
    selection
        How the number of clusters was chosen: what :func:`select_n_clusters` returned, or a mapping as
        :func:`corecut.plots.k_path` takes it. By default the model's own, where it chose the number.
    n_jobs
        Number of threads; None for all cores.

    Returns
    -------
    Report
        `save` writes it; a notebook shows it.

    Examples
    --------
    >>> from corecut import CoresetSpectralClustering, make_sbm, report
    >>> graph, truth = make_sbm(100, 4, 0.3, 0.01, random_state=0)
    >>> model = CoresetSpectralClustering(n_clusters=4, random_state=0).fit(graph)
    >>> "4 of 4 clusters are well separated" in report(model, graph).html
    True
    """
    if path is not None:
        check_report_path(path)
    facts = partition_facts(graph, model, n_jobs=n_jobs)
    made = build_report(facts, model if hasattr(model, "labels_") else None, RunNotes(title=title, path=selection))
    if path is not None:
        made.save(path)
    return made


def check_report_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a name under which no report can be written, before any work is done."""
    file = Path(path)
    if file.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"a report is a page for a browser: end the name of {file} in .html")
    check_target(file)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a directory; give a file name")
    return file


def build_report(facts: PartitionFacts, model: Any, notes: RunNotes) -> Report:
    """Return the report about facts; `model` is the fitted model behind them, None where there is none."""
    with single_threaded_blas():  # small products, on which more threads would only wait for each other
        return _build(facts, model, notes)


def _build(facts: PartitionFacts, model: Any, notes: RunNotes) -> Report:
    palette = palette_of(facts)
    fitted = hasattr(model, "get_params")
    path = getattr(model, "selection_", None) if notes.path is None else notes.path
    static = Static(
        title=notes.title,
        verdict=verdict(facts),
        choices=choices(model, facts) if fitted else [],
        seconds=dict(notes.seconds if notes.seconds is not None else getattr(model, "timings_", {})),
        advice=list(notes.advice if notes.advice is not None else getattr(model, "advice_", [])),
        command=notes.command or (_in_python(model) if fitted else None),
        seed=str(model.random_state) if fitted and hasattr(model, "random_state") else None,
        path=path,
        pictures=heat_maps(facts, palette),
    )
    return Report(fill_page(facts, static, page_data(facts, palette, model)))


def _in_python(model: Any) -> str:
    """Return the lines that make the same model again."""
    defaults = type(model)().get_params(deep=False)
    own = [
        f"{name}={value!r}"
        for name, value in model.get_params(deep=False).items()
        if name == "n_clusters" or not (type(value) is type(defaults[name]) and value == defaults[name])
    ]
    name = type(model).__name__
    given = "graph" if getattr(model, "affinity_", "precomputed") == "precomputed" else "points"
    return f"from corecut import {name}\nmodel = {name}({', '.join(own)}).fit({given})"
