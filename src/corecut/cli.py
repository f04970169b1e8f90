"""The command line: `corecut demo` and `corecut --version`.

Results go to stdout, progress and messages to stderr. Heavy packages are imported by the command that needs them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from corecut import __version__

app = typer.Typer(no_args_is_help=True, help="Coreset spectral clustering of large graphs.")


def main() -> None:
    """Run the command line."""
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"corecut {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before the command's name; --version has done its work when this runs."""


@app.command()
def demo(seed: Annotated[int, typer.Option(min=0, help="Seed of the graph and of the clustering.")] = 0) -> None:
    """Generate a graph with planted clusters, cluster it, and compare with the truth."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table
    from sklearn.metrics import adjusted_rand_score

    from corecut._progress import Stages
    from corecut.datasets import make_sbm
    from corecut.estimators import CoresetSpectralClustering

    k = 20
    clock = Stages()
    with clock("generate"):
        graph, truth = make_sbm(500, k, 0.1, 0.001, random_state=seed)
    model = CoresetSpectralClustering(n_clusters=k, random_state=seed, verbose=1).fit(graph)
    sizes = np.bincount(model.labels_, minlength=k)

    table = Table("", "", title="corecut demo", show_header=False)
    table.add_row("graph", f"{graph.shape[0]:,} nodes, {graph.nnz // 2:,} edges, {k} planted clusters")
    table.add_row("coreset", f"{model.coreset_indices_.size:,} nodes")
    for name, seconds in (clock.timings | model.timings_).items():
        table.add_row(f"  {name}", f"{1000 * seconds:,.1f} ms")
    table.add_row("normalised cut", f"{model.normalized_cut_:.4f} (mean conductance)")
    table.add_row("cluster sizes", f"{sizes.min():,} to {sizes.max():,}")
    table.add_row("ARI", f"{adjusted_rand_score(truth, model.labels_):.4f} against the planted clusters")
    Console().print(table)
