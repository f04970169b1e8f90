"""`corecut experiment`: the paper's experiments with their figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from corecut.commands.options import shared
from corecut.commands.screen import Screen, screen

_SHARE = typer.Option(min=1e-6, max=1.0, help="Size of the stand-in for Friendster in coreset-time; 1 takes 60 GB of disk.")


@shared(screen=screen)
def experiment(
    name: Annotated[str, typer.Argument(metavar="NAME", help="coreset-time, real-data, many-clusters, all, or list.")],
    *,
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Smaller graphs and few runs, or the paper's sizes and runs.")
    ] = True,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results, figures and summary.")] = Path(
        "corecut-experiments"
    ),
    runs: Annotated[int | None, typer.Option(min=1, help="Number of runs of every measurement.")] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0.0, help="Begin no further measurement of an experiment after this time; 60 with --full."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with mnist.npz, pendigits.npz, har.npz, letter.npz (CORECUT_DATA, OpenML)."),
    ] = None,
    graph: Annotated[
        list[Path] | None, typer.Option(exists=True, help="A graph file for coreset-time, in any format; may be repeated.")
    ] = None,
    friendster: Annotated[float | None, _SHARE] = None,
    screen: Screen,
) -> None:
    """Repeat an experiment of the paper: measure, draw its figures, and hold its claims against what was found.

    Finished measurements are kept in the folder: a run that was stopped goes on where it was, and a second run with more
    minutes or runs adds to the first.

    Example: corecut experiment many-clusters --quick --out experiments
    """
    from corecut.experiments.plan import EXPERIMENTS, Options, experiment_of

    if name == "list":
        known = {known: experiment_of(known) for known in EXPERIMENTS}
        rows = [(known, f"{one.PAPER}: {one.TITLE}") for known, one in known.items()]
        screen.show("corecut experiment", rows, {"experiments": list(EXPERIMENTS)})
        return
    if name not in (*EXPERIMENTS, "all"):
        raise typer.BadParameter(f"there is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)}, all, or list")
    for option, given, owner in (
        ("--graph", graph, "coreset-time"),
        ("--friendster", friendster, "coreset-time"),
        ("--data", data, "real-data"),
    ):
        if given and name not in (owner, "all"):
            raise typer.BadParameter(f"it has no effect on {name}; it belongs to {owner}", param_hint=option)
    from corecut.experiments.figures import require_matplotlib
    from corecut.experiments.runner import run_plan
    from corecut.experiments.summary import write_report

    require_matplotlib()
    if data is not None and name in ("real-data", "all"):
        _check_data(data)
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"{out} is a file; name another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    options = Options("quick" if quick else "full", runs, data, tuple(graph or ()), friendster)
    bound = minutes if minutes is not None or quick else 60.0
    rows, found = [], dict[str, Any]()
    kept = f"finished measurements are kept in {out}; the same command goes on from there"
    for one in EXPERIMENTS if name == "all" else (name,):
        plan = experiment_of(one).plan(options)
        with screen.keeping(lambda: kept):
            results = run_plan(one, plan, out, minutes=bound, verbose=not screen.quiet)
        files = write_report(one, plan, results, options)
        claims = experiment_of(one).claims(plan, results)
        words = {True: "holds", False: "DOES NOT HOLD", None: "not measured"}
        rows += [(one, f"{words[claim.holds]}: {claim.claim}\n{claim.ours}") for claim in claims]
        found[one] = {"figures": [str(file) for file in files], "claims": [claim.__dict__ for claim in claims]}
    rows.append(("written", str(out / "summary.md")))
    screen.show("corecut experiment", rows, found | {"summary": str(out / "summary.md")})


def _check_data(folder: Path) -> None:
    """Refuse a folder without a set of points, before any work is done."""
    from corecut.experiments.real_data import DATA

    files = [f"{known}.npz" for known in DATA]
    if not any((folder / file).is_file() for file in files):
        raise FileNotFoundError(
            f"the folder {folder} of --data has none of the files {', '.join(files)}; name another one, or leave it out"
        )
