"""`corecut cluster`: from a file of edges to a file of labels."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from corecut._files import is_same
from corecut._progress import Stages
from corecut._typing import FloatArray, IntArray
from corecut.commands.machines import Machines, machines
from corecut.commands.options import GraphPath, Jobs, Reading, Seed, reading, shared
from corecut.commands.screen import Screen, screen
from corecut.commands.words import OPTION_OF, SETTABLE, in_options

# Parameters that have an option of their own, and its default.
_DEFAULTS: dict[str, Any] = {
    "coreset_size": "auto",
    "balance": "auto",
    "min_cluster_size": None,
    "max_cluster_size": None,
    "random_state": 0,
    "n_jobs": None,
}

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


@shared(reading=reading, machines=machines, screen=screen)
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
    seed: Seed = 0,
    coreset_size: Annotated[
        str,
        typer.Option(callback=lambda text: coreset_size_option(str(text)), help="Coreset nodes: a count, a fraction, or auto."),
    ] = "auto",
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
        typer.Option("--set", metavar="NAME=VALUE", help="Any parameter of CoresetSpectralClustering; may be repeated."),
    ] = None,
    jobs: Jobs = None,
    reading: Reading,
    machines: Machines,
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
        machines.check_output(output)
    if imbalance is not None:
        if max_size is not None:
            raise typer.BadParameter(
                "--imbalance and --max-size say the same thing; give one of them", param_hint="--imbalance"
            )
        max_size = 1.0 + imbalance  # type: ignore[assignment]
    parameters: dict[str, Any] = {
        "coreset_size": coreset_size,
        "balance": balance,
        "min_cluster_size": min_size,
        "max_cluster_size": max_size,
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
    with ExitStack() as stack:
        engine = stack.enter_context(machines.engine())
        with clock("read"):
            loaded, report = stack.enter_context(machines.load(engine, graph, reading, screen, jobs))
        model.set_params(engine=engine).fit(loaded)
        if to_stdout:
            ids = range(loaded.n_nodes) if loaded.node_ids is None else loaded.node_ids.tolist()
            sys.stdout.writelines(f"{node}\t{label}\n" for node, label in zip(ids, model.labels_.tolist(), strict=True))
            return
        if output is not None:
            with clock("write"):
                machines.write(engine, output, model.labels_, loaded)
        with clock("metrics"):
            cuts = model.conductances_
    before = {"read": clock.timings.pop("read")}
    times = before | {name: seconds for name, seconds in model.timings_.items() if name != "graph"} | clock.timings
    sizes = np.bincount(model.labels_, minlength=clusters)
    rows = [("graph", f"{model.labels_.size:,} nodes, {report.edges:,} edges")]
    rows += summary_rows(model, times, sizes, cuts)
    if output is not None:
        rows.append(("labels", str(output)))
    data = {"nodes": model.labels_.size, "edges": report.edges, **summary_data(model, times, sizes, cuts)}
    screen.show("corecut cluster", rows, data | {"labels": None if output is None else str(output)})
    if output is None:
        screen.say("the labels were not saved; add -o labels.parquet (or .csv, .tsv, .npy) to keep them")


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
            found[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            found[name] = text
    return found


def _why_not(name: str, known: Sequence[str]) -> str:
    """Say why a name cannot be set."""
    if name in OPTION_OF:
        return f"{name} is said by {OPTION_OF[name]}"
    if name in ("affinity", "n_neighbors", "gamma", "check"):
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
    rows = [("settings", settings), ("clusters", f"{sizes.size:,}: {some} nodes")]
    rows.append(("normalised cut", f"{cuts.mean():.4f} (mean conductance; best {cuts.min():.4f}, worst {cuts.max():.4f})"))
    rows += [(f"  {name}", f"{seconds:,.3f} s") for name, seconds in times.items()]
    rows.append(("total", f"{sum(times.values()):,.3f} s"))
    return rows


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
        "seconds": times,
    }


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)
