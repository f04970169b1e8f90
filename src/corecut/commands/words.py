"""The library's messages in the words of the command line: its options instead of the parameters of functions."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Parameters that have an option of their own.
OPTION_OF: Mapping[str, str] = {
    "n_clusters": "-k",
    "coreset_size": "--coreset-size",
    "balance": "--balance",
    "min_cluster_size": "--min-size",
    "max_cluster_size": "--max-size",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "symmetrize": "--symmetrize",
    "overwrite": "--force",
    "memory": "--memory",
    "format": "--format",
    "delimiter": "--delimiter",
    "header": "--header",
    "columns": "--columns",
    "ids": "--ids",
    "duplicates": "--duplicates",
    "n_nodes": "--nodes",
    "mean_degree": "--mean-degree",
    "mixing": "--mixing",
    "degree_exponent": "--degree-exponent",
    "engine": "--dask",
    "scratch": "--scratch",
}
# Parameters of the clustering, which `cluster --set` takes.
SETTABLE = (
    "aggregate",
    "regularization",
    "shift",
    "seeding_factor",
    "sampler",
    "importance",
    "degrees",
    "eigen_solver",
    "n_components",
    "assign_labels",
    "n_init",
    "candidates",
    "refine",
    "verbose",
)

_PAIR = re.compile(rf"\b({'|'.join((*OPTION_OF, *SETTABLE))})=(\"[^\"]*\"|'[^']*'|[\w.]+(?:,\d{{3}})*)?")
_SUBJECT = re.compile(rf"^({'|'.join((*OPTION_OF, *SETTABLE))})(?= (?:must|needs|is)\b)")


def in_options(message: str) -> str:
    """Return a message of the library with the command's options in it.

    Examples
    --------
    >>> from corecut.commands.words import in_options
    >>> in_options('the graph is not symmetric; pass symmetrize="mean"')
    'the graph is not symmetric; pass --symmetrize mean'
    >>> in_options("one cluster holds 90 % of the nodes; set aggregate=True")
    'one cluster holds 90 % of the nodes; use --set aggregate=True'
    """

    def pair(found: re.Match[str]) -> str:
        name, value = found[1], (found[2] or "").strip("\"'")
        if name not in OPTION_OF:
            return f"--set {name}={value}"
        # A count is shown as it is typed.
        return f"{OPTION_OF[name]} {value.replace(',', '')}".rstrip()

    text = re.sub(r"\bn_samples=(\d+)", r"the graph's \1 nodes", message)
    text = _SUBJECT.sub(lambda found: OPTION_OF.get(found[1], f"--set {found[1]}"), _PAIR.sub(pair, text))
    return re.sub(r"\bset (?=--)", "use ", text)
