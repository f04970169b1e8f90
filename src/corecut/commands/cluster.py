"""`corecut cluster`: from a file of edges to a file of labels."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from corecut._files import check_target, is_same, show_size
from corecut._progress import Stages
from corecut._typing import FloatArray, IntArray
from corecut.commands.options import GraphPath, Jobs, Reading, Seed, reading, shared
from corecut.commands.screen import Listing, Screen, screen
from corecut.commands.words import OPTION_OF, SETTABLE, in_options
from corecut.labels import check_labels_path, write_labels
from corecut.metrics import Balance

# Parameters that have an option of their own, and its default.
_DEFAULTS: dict[str, Any] = {
    "coreset_size": "auto",
    "effort": 1.0,
    "balance": "auto",
    "min_cluster_size": None,
    "max_cluster_size": None,
    "random_state": 0,
    "n_jobs": None,
}

# Words of the command line for Python's.
_LITERALS = {"true": True, "yes": True, "false": False, "no": False, "none": None}
# Seconds to write a label, and to measure an entry of the graph.
_WRITING, _MEASURING = 5e-7, 15e-9
# Clusters that the final table shows: the largest, and those of the highest conductance.
_LARGEST, _WORST = 10, 5

if TYPE_CHECKING:
    from corecut.estimators import CoresetSpectralClustering


def coreset_size_option(text: str) -> int | float | str:
    """Return a coreset size: a count, a fraction or "auto"."""
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction <= 1:
        raise typer.BadParameter(f"{text!r} is not a count, a fraction in (0, 1] or auto")
    return fraction


def balance_option(text: str) -> float | str:
    """Return a balance: a number or "auto"."""
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number or auto") from None


def size_option(text: str | None) -> int | float | None:
    """Return a bound on cluster sizes: a whole number of nodes, or a factor of the mean cluster, with a point (1.03)."""
    if text is None:
        return None
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number of nodes (500) or a factor of the mean cluster (1.5)") from None


def settings_option(settings: list[str] | None) -> list[str] | None:
    """Explain what can be set, if that is asked for."""
    if settings and "help" in settings:
        width = max(map(len, SETTABLE))
        typer.echo("\n".join(f"{name:{width}}  {meaning}" for name, meaning in SETTABLE.items()))
        raise typer.Exit
    return settings


@shared(reading=reading, screen=screen)
def cluster(
    graph: GraphPath,
    *,
    clusters: Annotated[int, typer.Option("--clusters", "-k", min=1, help="Number of clusters.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Labels file: .parquet, .csv, .tsv (also .gz, .zst, .bz2) or .npy; - for TSV on stdout."
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Also keep the model in this file, for `corecut predict`.")
    ] = None,
    seed: Seed = 0,
    coreset_size: Annotated[
        str,
        typer.Option(callback=lambda text: coreset_size_option(str(text)), help="Coreset nodes: a count, a fraction, or auto."),
    ] = "auto",
    effort: Annotated[
        float, typer.Option(help="Time to spend on a lower cut: 2 for about twice as much as usual, 0.25 for a quarter.")
    ] = 1.0,
    balance: Annotated[
        str,
        typer.Option(
            callback=lambda text: balance_option(str(text)),
            help="0 for the plain normalised cut, 0.1 for clusters of like volume; auto takes as little as it needs.",
        ),
    ] = "auto",
    min_size: Annotated[
        str | None, typer.Option(callback=size_option, help="Smallest cluster: nodes (500), or a factor of the mean (0.5).")
    ] = None,
    max_size: Annotated[
        str | None, typer.Option(callback=size_option, help="Largest cluster: nodes (500), or a factor of the mean (1.5).")
    ] = None,
    imbalance: Annotated[
        float | None, typer.Option(min=0.0, help="The same as --max-size 1+IMBALANCE: 0.03 allows 3 % above the mean.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            callback=settings_option,
            is_eager=True,
            help=f"What has no option of its own; may be repeated. --set help explains {', '.join(SETTABLE)}.",
        ),
    ] = None,
    jobs: Jobs = None,
    reading: Reading,
    screen: Screen,
) -> None:
    """Cluster a graph by normalised cut and write the cluster of every node.

    Example: corecut cluster friends.txt -k 50 -o labels.parquet
    """
    from corecut.estimators import CoresetSpectralClustering

    to_stdout = output is not None and str(output) == "-"
    if to_stdout and screen.as_json:
        raise typer.BadParameter("-o - and --json both print to stdout; give -o a file name", param_hint="--json")
    if output is not None and not to_stdout:
        if is_same(output, graph):
            raise typer.BadParameter(f"{output} is the graph that is read; give the labels another name", param_hint="--output")
        check_labels_path(output)
    check_model_path(save, graph, output)
    parameters: dict[str, Any] = {
        "coreset_size": coreset_size,
        "effort": effort,
        "balance": balance,
        "min_cluster_size": min_size,
        "max_cluster_size": largest_size(max_size, imbalance),
        "random_state": seed,
        "n_jobs": jobs,
    }
    # Options that were typed must not be overruled in silence by --set.
    typed = {name for name, option in parameters.items() if option != _DEFAULTS[name]}
    parameters |= {"verbose": not screen.quiet} | estimator_parameters(settings or [], typed)
    model = CoresetSpectralClustering(n_clusters=clusters, **parameters)
    try:
        model.check_parameters()
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(in_options(str(error))) from None
    clock = Stages()
    written: list[str] = []

    def kept() -> str:
        return " and ".join(written) or "no labels were written: there are none before the end"

    with screen.keeping(kept), ExitStack() as stack:
        with clock("read"):
            loaded, report = stack.enter_context(reading.load(graph, screen, jobs))
        model.fit(loaded)
        if save is not None:
            model.save(save)
            written.append(f"the model is in {save}")
        if to_stdout:
            ids = range(loaded.n_nodes) if loaded.node_ids is None else loaded.node_ids.tolist()
            sys.stdout.writelines(f"{node}\t{label}\n" for node, label in zip(ids, model.labels_.tolist(), strict=True))
            return
        if output is not None:
            with clock("write"), screen.waiting("write", _WRITING * loaded.n_nodes):
                write_labels(output, model.labels_, loaded.node_ids)
            written.append(f"the labels are in {output}")
        with clock("metrics"), screen.waiting("metrics", _MEASURING * loaded.n_entries):
            cuts = model.conductances_
    before = {"read": clock.timings.pop("read")}
    times = before | {name: seconds for name, seconds in model.timings_.items() if name != "graph"} | clock.timings
    sizes = np.bincount(model.labels_, minlength=clusters)
    rows = [("graph", f"{model.labels_.size:,} nodes, {report.edges:,} edges")]
    rows += summary_rows(model, times, sizes, cuts)
    if output is not None:
        rows.append(("labels", str(output)))
    rows += [("model", f"{save} ({show_size(save.stat().st_size)})")] if save else []
    data = {"nodes": model.labels_.size, "edges": report.edges, **summary_data(model, times, sizes, cuts)}
    data |= {"model": None if save is None else str(save), "labels": None if output is None else str(output)}
    screen.show("corecut cluster", rows, data, cluster_listings(sizes, cuts))
    if output is None and save is None:
        screen.say("the labels were not saved; add -o labels.parquet (or .csv, .tsv, .npy) to keep them")


def largest_size(max_size: Any, imbalance: float | None) -> Any:
    """Return the bound that one of two options gives."""
    if imbalance is not None and max_size is not None:
        raise typer.BadParameter("--imbalance and --max-size say the same thing; give one of them", param_hint="--imbalance")
    return max_size if imbalance is None else 1.0 + imbalance


def check_model_path(save: Path | None, graph: Path, labels: Path | None) -> None:
    """Refuse a name that the model cannot have, before any work is done."""
    if save is None:
        return
    if is_same(save, graph) or (labels is not None and is_same(save, labels)):
        raise typer.BadParameter(f"{save} is the graph, or the labels; give the model another name", param_hint="--save")
    check_target(save)


def estimator_parameters(settings: list[str], typed: Collection[str] = ()) -> dict[str, Any]:
    """Return the parameters that `--set NAME=VALUE` names; values are Python literals or plain words.

    Parameters
    ----------
    settings
        The options' values.
    typed
        Names of the parameters that were given by options of their own.
    """
    known = (*SETTABLE, *_DEFAULTS)
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name not in known:
            raise typer.BadParameter(f"{setting!r}: {_why_not(name, known)}", param_hint="--set")
        if name in found or name in typed:
            given = "twice" if name in found else f"by {OPTION_OF[name]} and by --set"
            raise typer.BadParameter(f"{setting!r}: {name} is given {given}; say it once", param_hint="--set")
        try:
            found[name] = _LITERALS[text] if text in _LITERALS else ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[name] = text
    return found


def _why_not(name: str, known: Sequence[str]) -> str:
    """Say why a name cannot be set."""
    if name in OPTION_OF:
        return f"{name} is said by {OPTION_OF[name]}"
    if name in ("affinity", "n_neighbors", "neighbors", "gamma", "check"):
        return f"{name} is for points and matrices in Python; GRAPH is a graph, which is checked when it is read"
    return f"expected NAME=VALUE with NAME one of {', '.join(sorted(known))}"


def chosen_settings(model: CoresetSpectralClustering) -> dict[str, Any]:
    """Return what the run settled on: the values that every "auto" took."""
    found = {name: getattr(model, f"{name}_", None) for name in model.get_params()}
    return {name: value for name, value in found.items() if value is not None}


def summary_rows(
    model: CoresetSpectralClustering, times: dict[str, float], sizes: IntArray, cuts: FloatArray
) -> list[tuple[str, str]]:
    """Return the rows of the small table at the end of a run."""
    order = np.sort(sizes)[::-1]
    settings = ", ".join(f"{name} {_short(value)}" for name, value in chosen_settings(model).items())
    some = ", ".join(f"{size:,}" for size in order[:3]) + (f" ... {order[-1]:,}" if order.size > 3 else "")
    rows = [("settings", settings), ("clusters", f"{sizes.size:,}: {some} nodes"), ("sizes", str(Balance.of(sizes)))]
    rows.append(("normalised cut", f"{cuts.mean():.4f} (mean conductance; best {cuts.min():.4f}, worst {cuts.max():.4f})"))
    rows += [(f"  {name}", f"{seconds:,.3f} s") for name, seconds in times.items()]
    rows.append(("total", f"{sum(times.values()):,.3f} s"))
    return rows


def cluster_listings(sizes: IntArray, cuts: FloatArray) -> list[Listing]:
    """Return the tables of the largest clusters and, where there are more than one sees at once, of the worst."""

    def rows(clusters: IntArray) -> list[tuple[str, ...]]:
        shares = 100 * sizes / sizes.sum()
        return [(f"{j}", f"{sizes[j]:,}", f"{shares[j]:.1f} %", f"{cuts[j]:.4f}") for j in clusters]

    columns = ("cluster", "nodes", "share", "conductance")
    largest = np.argsort(-sizes, kind="stable")[:_LARGEST]
    if sizes.size <= _LARGEST:
        return [Listing("clusters", columns, rows(largest))]
    worst = np.argsort(-cuts, kind="stable")[:_WORST]
    return [
        Listing(f"the {largest.size} largest clusters", columns, rows(largest)),
        Listing(f"the {worst.size} worst, by conductance", columns, rows(worst)),
    ]


def summary_data(
    model: CoresetSpectralClustering, times: dict[str, float], sizes: IntArray, cuts: FloatArray
) -> dict[str, Any]:
    """Return the same facts for machines."""
    return {
        "clusters": int(sizes.size),
        "settings": chosen_settings(model),
        "normalized_cut": float(cuts.mean()),
        "conductances": cuts,
        "sizes": sizes,
        "balance": asdict(Balance.of(sizes)),
        "seconds": times,
    }


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)
