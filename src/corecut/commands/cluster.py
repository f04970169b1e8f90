"""`corecut cluster`: from a file of edges to a file of labels."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from corecut._files import check_target, counted, is_same, lies_in, show_size
from corecut._progress import Stages
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut.advice import listening
from corecut.commands.machines import Machines, machines
from corecut.commands.options import (
    AsPoints,
    Features,
    GraphPath,
    Jobs,
    Reading,
    Seed,
    clusters_option,
    reading,
    shared,
    typed_command,
)
from corecut.commands.printing import print_labels, require_stdout
from corecut.commands.screen import Listing, Screen, screen
from corecut.commands.words import OF_POINTS, OPTION_OF, SETTABLE, in_options
from corecut.edges import EdgeReport
from corecut.graph import Graph
from corecut.labels import metis_parts
from corecut.metrics import Balance

# Parameters that have an option of their own, and its default.
_DEFAULTS: dict[str, Any] = {
    "coreset_size": "auto",
    "effort": 1.0,
    "balance": "auto",
    "min_cluster_size": None,
    "max_cluster_size": None,
    "memory_limit": None,
    "scratch": None,
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
        known = {**SETTABLE, **{name: f"with --points: {meaning}" for name, meaning in OF_POINTS.items()}}
        width = max(map(len, known))
        typer.echo("\n".join(f"{name:{width}}  {meaning}" for name, meaning in known.items()))
        raise typer.Exit
    return settings


@shared(reading=reading, machines=machines, screen=screen)
def cluster(
    graph: GraphPath,
    *,
    clusters: Annotated[
        str,
        typer.Option(
            "--clusters",
            "-k",
            metavar="K",
            callback=lambda text: clusters_option(str(text)),
            help="Number of clusters; auto, or a range like 5..200, to have it chosen.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Labels file: .csv, .tsv, .txt (also .gz, .bz2, .zst), .npy, .parquet, METIS's .part.K; - for TSV on "
            "stdout. With --format metis GRAPH.part.K by default, and - prints one label per line.",
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Also keep the model in this file, for `corecut predict`.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page about the result: .html, complete in itself.")] = None,
    seed: Seed = 0,
    coreset_size: Annotated[
        str,
        typer.Option(callback=lambda text: coreset_size_option(str(text)), help="Coreset nodes: a count, a fraction, or auto."),
    ] = "auto",
    effort: Annotated[
        float,
        typer.Option(help="Time to spend on a lower cut with its fee: 2 for about twice as much as usual, 0.25 for a quarter."),
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
    points: AsPoints = False,
    features: Features = None,
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
    machines: Machines,
    screen: Screen,
) -> None:
    """Cluster a graph, or points, by normalised cut and write the cluster of every node.

    Example: corecut cluster friends.txt -k 50 -o labels.csv, or corecut cluster points.csv --points -k 10 -o labels.csv
    """
    like_metis = reading.arguments["format"] == "metis"
    output = labels_path(output, graph, clusters, machines=machines, like_metis=like_metis, as_json=screen.as_json)
    to_stdout = output is not None and str(output) == "-"
    check_further_files({"--save": save, "--report": report}, {"graph that is read": graph, "labels file": output})
    reading.check_points(points, features)
    parameters: dict[str, Any] = {
        "coreset_size": coreset_size,
        "effort": effort,
        "balance": balance,
        "min_cluster_size": min_size,
        "max_cluster_size": largest_size(max_size, imbalance),
        "memory_limit": reading.memory,
        "scratch": machines.folder(reading.memory),
        "random_state": seed,
        "n_jobs": jobs,
    }
    # Options that were typed must not be overruled in silence by --set.
    typed = {name for name, option in parameters.items() if option != _DEFAULTS[name]}
    parameters |= {"verbose": not screen.quiet} | estimator_parameters(settings or [], typed, points=points)
    if points:
        parameters = {"affinity": "nearest_neighbors"} | parameters
    model = estimator(of_points=points)(n_clusters=clusters, **parameters)
    try:
        model.check_parameters()
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(in_options(str(error))) from None
    clock = Stages()
    written: list[str] = []

    def kept() -> str:
        return " and ".join(written) or "no labels were written: there are none before the end"

    with screen.keeping(kept), ExitStack() as stack:
        heard = stack.enter_context(listening())
        model.engine = engine = stack.enter_context(machines.engine())
        with clock("read"):
            loaded, node_ids, size, columns = (
                data_of_points(reading, graph, features)
                if points
                else data_of_graph(*stack.enter_context(machines.load(engine, graph, reading, screen, jobs)))
            )
        model.fit(loaded)
        if points:
            name_points(model, node_ids, columns)
        if save is not None:
            model.save(save)
            written.append(f"the model is in {save}")
        if report is not None:
            with clock("report"):
                _write_report(report, model, loaded, clock.timings, heard, name=graph.name)
            written.append(f"the report is in {report}")
        if to_stdout:
            print_labels(model.labels_, node_ids, alone=like_metis)
            return
        if output is not None:
            with clock("write"), screen.waiting("write", _WRITING * model.labels_.size):
                machines.write(engine, output, model.labels_, loaded, node_ids)
            written.append(f"the labels are in {output}")
        with clock("metrics"), screen.waiting("metrics", _MEASURING * getattr(loaded, "n_entries", 0)):
            cuts = model.conductances_
    before = {"read": clock.timings.pop("read")}
    times = before | _stages(model) | clock.timings
    files = {"labels": output, "model": save, "report": report}
    _show(screen, model, cuts, times=times, given={("points" if points else "graph"): size}, files=files)
    if output is None and save is None:
        screen.tell_unsaved()


def _show(
    screen: Screen,
    model: CoresetSpectralClustering,
    cuts: FloatArray,
    *,
    times: dict[str, float],
    given: dict[str, dict[str, int]],
    files: dict[str, Path | None],
) -> None:
    """Show the facts about a run, with what was given and which files were written."""
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_)
    rows = [(what, ", ".join(counted(count, things[:-1]) for things, count in size.items())) for what, size in given.items()]
    data: dict[str, Any] = {things: count for size in given.values() for things, count in size.items()}
    data |= summary_data(model, times, sizes, cuts)
    if hasattr(model, "selection_"):
        from corecut.commands.scan import selection_data

        rows.append(("chosen", model.selection_.sentence))
        data |= {"selection": selection_data(model.selection_)}
    if hasattr(model, "neighbors_"):
        count = model.n_neighbors_
        rows.append(("neighbours", f"{count} of each point, itself included ({model.neighbors_})"))
        data |= {"n_neighbors": count, "neighbors": model.neighbors_, "neighbor_recall": model.neighbor_recall_}
    rows += summary_rows(model, times, sizes, cuts)
    rows += [(name, f"{file} ({show_size(file.stat().st_size)})") for name, file in files.items() if file is not None]
    data |= {name: None if file is None else str(file) for name, file in files.items()}
    screen.show("corecut cluster", rows, data, cluster_listings(sizes, cuts))


def estimator(*, of_points: bool) -> type[CoresetSpectralClustering]:
    """Return the estimator; scikit-learn, which checks points, is loaded for them alone."""
    module = import_module("corecut.scikit_learn" if of_points else "corecut.estimators")
    kind: type[CoresetSpectralClustering] = module.CoresetSpectralClustering
    return kind


def largest_size(max_size: Any, imbalance: float | None) -> Any:
    """Return the bound that one of two options gives."""
    if imbalance is not None and max_size is not None:
        raise typer.BadParameter("--imbalance and --max-size say the same thing; give one of them", param_hint="--imbalance")
    return max_size if imbalance is None else 1.0 + imbalance


def check_further_files(made: dict[str, Path | None], others: dict[str, Path | None]) -> None:
    """Refuse names for model and report that cannot be written, or that would cost what is read, before any work is done."""
    taken = dict(others)
    for option, path in made.items():
        if path is None:
            continue
        thing = "report" if option == "--report" else "model"
        for what, other in taken.items():
            if other is not None and lies_in(path, other):
                raise typer.BadParameter(f"{path} lies in {other}; give the {thing} another folder", param_hint=option)
            if other is not None and is_same(path, other):
                raise typer.BadParameter(f"{path} is the {what}; give the {thing} another name", param_hint=option)
        if option == "--report":
            from corecut.reporting.build import check_report_path

            check_report_path(path)
        else:
            check_target(path)
        taken["model file"] = path


def labels_path(
    output: Path | None, graph: Path, clusters: int | str, *, machines: Machines, like_metis: bool, as_json: bool
) -> Path | None:
    """Return where labels go, METIS's own name by default; refuse what cannot be written, or is not meant, before any work."""
    if output is None and like_metis and str(graph) != "-":
        if isinstance(clusters, str):
            raise typer.BadParameter(
                f"METIS's name of a labels file ends with k, which -k {clusters} leaves open; name it by -o",
                param_hint="--format",
            )
        output = Path(f"{graph}.part.{clusters}")
    if output is None or str(output) == "-":
        if output is not None and as_json:
            raise typer.BadParameter("-o - and --json both print to stdout; give -o a file name", param_hint="--json")
        if output is not None:
            require_stdout()
        return output
    if is_same(output, graph):
        raise typer.BadParameter(f"{output} is the graph that is read; give the labels another name", param_hint="--output")
    if lies_in(output, graph):
        raise typer.BadParameter(
            f"{output} lies in {graph}, which is read; give the labels another folder", param_hint="--output"
        )
    machines.check_output(output)
    if metis_parts(output) not in (None, clusters) and not isinstance(clusters, str):
        raise typer.BadParameter(
            f"{output.name} is METIS's name for {metis_parts(output)} clusters, and -k asks for {clusters}",
            param_hint="--output",
        )
    return output


_Data = tuple[Any, AnyArray | None, dict[str, int], list[str] | None]


def data_of_points(reading: Reading, path: Path, features: str | None) -> _Data:
    """Return what to fit, names, the size of the data, and the names of the features."""
    table = reading.points(path, features, least=2)
    size = {"points": len(table.values), "features": len(table.features)}
    return table.values, table.names, size, table.features if table.named else None


def data_of_graph(graph: Graph, report: EdgeReport) -> _Data:
    """Return what to fit, names, and the size of the data; a graph has no features."""
    return graph, graph.node_ids, {"nodes": graph.n_nodes, "edges": report.edges}, None


def name_points(model: CoresetSpectralClustering, names: AnyArray | None, features: list[str] | None) -> None:
    """Let a model of a table call points and features as the table does, as one of a frame would."""
    model._names = names
    if features is not None:
        model.feature_names_in_ = np.array(features, dtype=object)


def _stages(model: CoresetSpectralClustering) -> dict[str, float]:
    """Return the time of each stage. That of the graph is the search for neighbours; of a graph that was read it is nothing."""
    return {name: taken for name, taken in model.timings_.items() if name != "graph" or model.affinity_ != "precomputed"}


def _write_report(
    file: Path, model: CoresetSpectralClustering, given: Any, times: dict[str, float], heard: list[str], *, name: str
) -> None:
    """Write the page about a run."""
    from corecut.facts import partition_facts
    from corecut.reporting.build import RunNotes, build_report

    seconds = {"read": times["read"]} | _stages(model)
    notes = RunNotes(
        title=f"Clusters of {name}",
        command=typed_command(),
        seconds=seconds,
        advice=[in_options(one) for one in heard],
    )
    graph = given if isinstance(given, Graph) else model.affinity_matrix_  # of points
    build_report(partition_facts(graph, model, n_jobs=model.n_jobs), model, notes).save(file)


def estimator_parameters(settings: list[str], typed: Collection[str] = (), *, points: bool = False) -> dict[str, Any]:
    """Return the parameters that `--set NAME=VALUE` names; values are Python literals or plain words.

    Parameters
    ----------
    settings
        The options' values.
    typed
        Names of the parameters that were given by options of their own.
    points
        Whether the data are points, whose graph has parameters of its own.
    """
    known = (*SETTABLE, *_DEFAULTS, *(OF_POINTS if points else ()))
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
    if name in OF_POINTS:
        return f"{name} is for points; GRAPH is a graph, add --points if it is a table of points"
    if name in ("check", "kernel_params", "eigen_tol"):
        return f"{name} is for matrices and functions in Python; GRAPH is a graph, which is checked when it is read"
    return f"expected NAME=VALUE with NAME one of {', '.join(sorted(known))}"


def chosen_settings(model: CoresetSpectralClustering) -> dict[str, Any]:
    """Return what the run settled on: the values that every "auto" took."""
    found = {name: getattr(model, f"{name}_", None) for name in model.get_params()}
    idle = () if model._has_coreset else ("coreset_size",)  # all nodes took part
    return {name: value for name, value in found.items() if value is not None and name not in idle}


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
