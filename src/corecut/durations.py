"""How long the stages of a clustering will take, roughly: what a bar's end and "about 12 s left" are reckoned by.

Each stage's cost as in its module, with seconds per entry, node and cluster from runs on one core (planted and random graphs,
hubs, grids, a mesh and a neighbour graph, of 0.2 to 20 million entries, k = 10 to 1,000; the way through a coreset: two cores,
up to 880 million entries). A stage may take three times as long, or a third: graphs and machines differ. Nothing but what is
shown depends on it, and :class:`corecut._progress.Stages` corrects it by the stages that are over.
"""

from __future__ import annotations

from collections.abc import Iterable

from corecut.graph import Graph
from corecut.settings import Choices

_NANO = 1e-9
# A quotient has about this share of the graph's entries, and this many nodes per cluster; known when it is there.
_QUOTIENT_SHARE, _QUOTIENT_NODES = 0.2, 12
# The groups of the finest level take so many seconds per entry, and all of aggregation so many times as long: at least the
# first figure, and the second one times the share of the entries that these groups leave.
_FIRST_STEP, _LATER_STEPS = 43 * _NANO, (0.75, 3.0)
_USUAL_SHARE = 0.6
# Draws share eigenvectors, and end when they agree.
_USUAL_DRAWS = 3
# Rounds of kernel k-means until nothing moves.
_USUAL_STEPS = 20


def expected_seconds(
    choices: Choices, finest: Graph, top: Graph | None = None, *, top_entries: float | None = None
) -> dict[str, float]:
    """Return the expected seconds of the stages to come; `top` is the graph that draws are made on, once it is known.

    Before, `top_entries` may say how many entries it is likely to have.
    """
    n, m, k = finest.n_nodes, finest.n_entries, choices.n_clusters
    refined = choices.asked.refine
    found = {"refinement": (700 * _NANO * n if refined else 0.0) + 20 * _NANO * n}
    if top is None:
        found["components"] = 3 * _NANO * m
        if choices.aggregate:
            found["aggregation"] = aggregation_seconds(_FIRST_STEP * m, _USUAL_SHARE)
    per_node = 20_000.0  # rounds of eigenvectors, which a quotient takes more of than a coreset's graph
    if not choices.aggregate and choices.samples(finest):
        per_node = 5_000.0
        nodes, entries = float(choices.coreset_size), m * (choices.coreset_size / n) ** 2
        found |= {"seeds": 10 * _NANO * n, "coreset": 30 * _NANO * n, "coreset graph": 1000 * _NANO * nodes}
        found["labelling"] = 800 * _NANO * n
    elif top is None:
        nodes, entries = min(n, _QUOTIENT_NODES * k), _QUOTIENT_SHARE * m if top_entries is None else top_entries
    else:
        nodes, entries = top.n_nodes, top.n_entries
    draws = min(choices.n_init, _USUAL_DRAWS)
    found["eigenvectors"] = 0.01 + 125 * _NANO * entries + per_node * _NANO * nodes
    found["rounding"] = draws * min(100 * _NANO * nodes * k, 2_500 * _NANO * nodes + 10 * _NANO * nodes * k)
    found["repair"] = draws * (0.01 + 40 * _NANO * entries + 200_000 * _NANO * k) if refined else 0.0
    return found


def aggregation_seconds(first_step: float, share: float) -> float:
    """Return the expected seconds of all of aggregation: its first step took `first_step`, and left a share of the entries."""
    once, by_share = _LATER_STEPS
    return first_step * (once + by_share * share)


def baseline_seconds(
    stages: Iterable[str], graph: Graph, k: int, runs: int, coreset_size: int | None = None
) -> dict[str, float]:
    """Return the expected seconds of stages of the methods that this one is compared with, for the best of some runs."""
    n, m = graph.n_nodes, graph.n_entries
    share = 1.0 if coreset_size is None else min(coreset_size / n, 1.0)
    costs = {
        "eigenvectors": 2000 * _NANO * m,
        "rounding": runs * 100 * _NANO * n * k,
        "coreset": 300 * _NANO * n,
        "kernel k-means": runs * _USUAL_STEPS * (10 * _NANO * m * share**2 + 50 * _NANO * n * share),
        "labelling": 100 * _NANO * n,
    }
    return {name: costs[name] for name in stages}
