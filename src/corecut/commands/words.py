"""The library's messages in the words of the command line: its options instead of the parameters of functions."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Parameters that have an option of their own.
OPTION_OF: Mapping[str, str] = {
    "n_clusters": "-k",
    "coreset_size": "--coreset-size",
    "effort": "--effort",
    "balance": "--balance",
    "min_cluster_size": "--min-size",
    "max_cluster_size": "--max-size",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "symmetrize": "--symmetrize",
    "overwrite": "--force",
    "memory": "--memory",
    "memory_limit": "--memory",
    "format": "--format",
    "delimiter": "--delimiter",
    "header": "--header",
    "columns": "--columns",
    "features": "--features",
    "comments": "--comments",
    "ids": "--ids",
    "compact": "--keep-ids",
    "weights": "--weights",
    "loops": "--drop-loops",
    "duplicates": "--duplicates",
    "n_nodes": "--nodes",
    "mean_degree": "--mean-degree",
    "mixing": "--mixing",
    "degree_exponent": "--degree-exponent",
    "engine": "--dask",
    "scratch": "--scratch",
}
# Options without a value: what a parameter's value is on the command line.
_FLAGS: Mapping[tuple[str, str], str] = {
    ("header", "True"): "--header",
    ("header", "False"): "--no-header",
    ("weights", "True"): "--weights",
    ("weights", "False"): "--no-weights",
    ("compact", "False"): "--keep-ids",
    ("loops", "drop"): "--drop-loops",
    ("overwrite", "True"): "--force",
}
# Parameters of the clustering, which `cluster --set` takes, and what they say.
SETTABLE: Mapping[str, str] = {
    "aggregate": "gather the nodes into small groups first: true, false or auto",
    "regularization": "what steadies the eigenvectors of noisy graphs, in units of the mean degree, or auto",
    "shift": "self-similarity of the nodes in the kernel of a coreset, or auto",
    "seeding_factor": "seeds per cluster that a coreset is drawn by",
    "sampler": "how seeds are drawn: rejection, tree, naive or rounds",
    "importance": "what a coreset's probabilities are divided by: seeds or cluster",
    "degrees": "degrees of a coreset's graph: rows or weights",
    "eigen_solver": "auto, subspace, arpack or power",
    "n_components": "number of eigenvectors, or none",
    "assign_labels": "how eigenvectors become clusters: kmeans or cluster_qr",
    "n_init": "number of draws, or auto",
    "candidates": "the centres that a node is labelled by: touched or all",
    "refine": "repair and refine the partition: true or false",
    "verbose": "show the stages: 0 or 1",
}

# Parameters of the points' graph, which `cluster --points --set` takes.
OF_POINTS: Mapping[str, str] = {
    "affinity": "nearest_neighbors, rbf or another kernel of scikit-learn",
    "n_neighbors": "neighbours of each point, itself included, or auto",
    "neighbors": "how they are searched for: auto, exact or approximate",
    "gamma": "coefficient of rbf and other kernels",
    "degree": "degree of the kernel poly",
    "coef0": "constant of the kernels poly and sigmoid",
}

_NAMES = "|".join((*OPTION_OF, *SETTABLE, *OF_POINTS))
_VALUE = r"\"[^\"]*\"|'[^']*'|\([^()]*\)|[\w.]+(?:,\d{3})*"
_PAIR = re.compile(rf"\b({_NAMES})=({_VALUE})?((?:, \"\w+\")*(?: or \"\w+\")?)")
_SUBJECT = re.compile(rf"(^|: )({_NAMES})(?= (?:must|needs|is|has no)\b)")
# Names that are words of no language.
_BARE = re.compile(rf"(?<![-\w])({'|'.join(name for name in OPTION_OF if '_' in name)})\b(?!=)")
# A message may say it for both: header=True or header=False (--header or --no-header).
_BOTH = re.compile(rf"\b(?:{_NAMES})\b(?:=(?:{_VALUE})?)?(?: or (?:{_NAMES})=(?:{_VALUE}))* \((--[^)]+)\)")


def in_options(message: str) -> str:
    """Return a message of the library with the command's options in it.

    Examples
    --------
    >>> from corecut.commands.words import in_options
    >>> in_options('the graph is not symmetric; pass symmetrize="mean" or "max"')
    'the graph is not symmetric; pass --symmetrize mean or max'
    >>> in_options("one cluster holds 90 % of the nodes; set aggregate=True")
    'one cluster holds 90 % of the nodes; use --set aggregate=True'
    >>> in_options("the first line may be a header; pass header=False")
    'the first line may be a header; pass --no-header'
    """

    def pair(found: re.Match[str]) -> str:
        name, value, others = found[1], (found[2] or "").strip("\"'"), found[3].replace('"', "")
        if (name, value) in _FLAGS:
            return _FLAGS[name, value]
        if name not in OPTION_OF:
            return f"--set {name}={value}{others}"
        # A list of columns, and a count, is shown as it is typed.
        value = re.sub(r"[()'\" ]", "", value) if value.startswith("(") else value.replace(",", "")
        return f"{OPTION_OF[name]} {value}".rstrip() + others

    text = re.sub(r"\bn_samples=(\d+)", r"the graph's \1 nodes", message)
    text = text.replace('read ids as "text"', 'pass ids="text"')
    text = _PAIR.sub(pair, _BOTH.sub(r"\1", text))
    text = _SUBJECT.sub(lambda found: found[1] + OPTION_OF.get(found[2], f"--set {found[2]}"), text)
    text = _BARE.sub(lambda found: OPTION_OF[found[1]], text)
    return re.sub(r"\bset (?=--)(?!--[\w-]+ to\b)", "use ", text)
