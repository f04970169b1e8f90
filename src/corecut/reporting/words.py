"""What a report says in sentences: the verdict, and why each setting is what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from corecut._typing import IntArray
from corecut.facts import DOUBTFUL, PartitionFacts

STATUSES = ("well separated", "nearly one with another", "falls into two", "loose", "in between")
"""What a cluster may be, by number."""

# So many clusters are named in a sentence.
_NAMED = 12
# Shares of well separated clusters from which clusters are clear, and partly so.
_CLEAR, _PARTLY = 0.8, 0.4
# Another number of clusters is worth a word when it differs by this share.
_WORTH = 0.02
# A cluster is a giant from this share of the nodes on, and a crumb below this share of the mean size.
_GIANT, _CRUMB = 0.5, 0.1


@dataclass(frozen=True)
class Sentence:
    """A sentence of the verdict, with the clusters, or pairs of clusters, that it is about.

    Attributes
    ----------
    text
        The sentence.
    clusters
        Clusters or pairs to name behind it.
    left_out
        How many more it is about.
    """

    text: str
    clusters: tuple[tuple[int, ...], ...] = ()
    left_out: int = 0


@dataclass(frozen=True)
class Verdict:
    """What to think of a partition.

    Attributes
    ----------
    grade
        "clear", "partly" or "unclear".
    headline
        The same in words.
    sentences
        What speaks for it.
    """

    grade: str
    headline: str
    sentences: tuple[Sentence, ...]


def statuses(facts: PartitionFacts) -> IntArray:
    """Return what every cluster is, as a position in STATUSES."""
    found = np.where(facts.separated, 0, 4)
    paired = np.array(sorted({j for pair in facts.near_pairs for j in pair}), dtype=np.int64)
    found[paired] = 1
    found[facts.falling] = 2
    found[facts.loose] = 3
    return found


def verdict(facts: PartitionFacts) -> Verdict:
    """Return the verdict on a partition."""
    k = facts.n_clusters
    loops = 0.0 if facts.graph.diagonal is None else float(facts.graph.diagonal.sum())
    if facts.graph.volume <= loops:
        return Verdict("unclear", "No edges", (Sentence("No edge joins two nodes: nothing tells which ones belong together."),))
    if k == 1:
        return Verdict("clear", "One cluster", (Sentence("There is one cluster: nothing is told apart."),))
    apart, pairs = int(facts.separated.sum()), facts.near_pairs
    empty = facts.volumes <= 0
    falling, loose = np.flatnonzero(facts.falling), np.flatnonzero(facts.loose & ~empty)
    share = apart / k
    grade = "clear" if share >= _CLEAR else "partly" if share >= _PARTLY else "unclear"
    headline = {"clear": "Clear clusters", "partly": "Partly clear clusters", "unclear": "No clear clusters"}[grade]
    verb = "is" if apart == 1 else "are"
    said = [Sentence(f"{apart:,} of {k:,} clusters {verb} well separated.")]
    if pairs:
        said.append(_about(pairs, "This pair is nearly one cluster:", "These {:,} pairs are nearly one cluster:"))
    if falling.size:
        order = falling[np.argsort(facts.cohesion[falling], kind="stable")]
        said.append(_about([(int(j),) for j in order], "This cluster falls into two:", "These {:,} clusters fall into two:"))
    if loose.size:
        order = loose[np.argsort(-facts.conductances[loose], kind="stable")]
        said.append(
            _about(
                [(int(j),) for j in order],
                "More than half of the edges of this cluster lead out of it:",
                "More than half of the edges of these {:,} clusters lead out of them:",
            )
        )
    if empty.any():
        alone = [(int(j),) for j in np.flatnonzero(empty)]
        said.append(_about(alone, "No node of this cluster has an edge:", "No node of these {:,} clusters has an edge:"))
    said += _of_sizes(facts)
    lonely = int(np.count_nonzero((facts.graph.degrees <= 0) & ~empty[facts.labels]))
    if lonely:
        noun, where = ("node has", "it belongs") if lonely == 1 else ("nodes have", "they belong")
        more = "more " if empty.any() else ""
        said.append(Sentence(f"{lonely:,} {more}{noun} no edge: nothing tells where {where}."))
    if facts.doubtful_share > 0:
        said.append(
            Sentence(
                f"{_percent(facts.doubtful_share).capitalize()} of the nodes are doubtful: "
                f"another cluster would suit them nearly as well (confidence up to {DOUBTFUL:g})."
            )
        )
    said += _of_number(facts)
    return Verdict(grade, headline, tuple(said))


def _about(clusters: Sequence[tuple[int, ...]], one: str, many: str) -> Sentence:
    text = one if len(clusters) == 1 else many.format(len(clusters))
    return Sentence(text, tuple(clusters[:_NAMED]), max(len(clusters) - _NAMED, 0))


def _of_sizes(facts: PartitionFacts) -> list[Sentence]:
    said = []
    largest = int(facts.sizes.argmax())
    share = float(facts.sizes[largest]) / facts.labels.size
    if share > _GIANT and facts.n_clusters > 2:
        said.append(Sentence(f"One cluster holds {_percent(share)} of all nodes:", ((largest,),)))
    crumbs = np.flatnonzero(facts.sizes < _CRUMB * facts.sizes.mean())
    if crumbs.size:
        order = [(int(j),) for j in crumbs[np.argsort(facts.sizes[crumbs], kind="stable")]]
        said.append(
            _about(
                order,
                "This cluster has less than a tenth of the mean size:",
                "These {:,} clusters have less than a tenth of the mean size:",
            )
        )
    return said


def _of_number(facts: PartitionFacts) -> list[Sentence]:
    """Say whether another number of clusters may suit the graph better."""
    k, falls = facts.n_clusters, int(facts.falling.sum())
    merged = 0
    if facts.near_pairs:
        i, j = np.array(facts.near_pairs).T
        ties = sp.coo_array((np.ones(i.size), (i, j)), shape=(k, k))
        merged = k - sp.csgraph.connected_components(ties, directed=False)[0]
    if merged > k / 4 and falls > k / 4:
        return [
            Sentence(
                "Neighbouring clusters flow into each other and most have weak borders inside: no number of clusters is more "
                "natural than others here, and their borders are a choice."
            )
        ]
    if abs(merged - falls) < max(1, _WORTH * k):
        return []
    word, number = "as well" if merged > falls else "better", max(k - merged + falls, 2)
    return [] if number == k else [Sentence(f"About {number:,} clusters may describe this graph {word}.")]


def _percent(share: float) -> str:
    percent = 100 * share
    return "less than 0.1 %" if percent < 0.1 else f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"


@dataclass(frozen=True)
class Choice:
    """A setting of a run: what was asked for, what was chosen, and why."""

    name: str
    asked: str
    chosen: str
    why: str


def choices(model: Any, facts: PartitionFacts) -> list[Choice]:
    """Return the settings of a fitted model that were asked for or chosen, each with its reason."""
    parameters = model.get_params(deep=False)
    defaults = type(model)().get_params(deep=False)
    found = []
    first = [name for name in ("n_clusters", "random_state") if name in parameters]
    for name in dict.fromkeys([*first, *parameters]):
        asked = parameters[name]
        chosen = getattr(model, f"{name}_", None)
        own = not _same(asked, defaults[name])
        if name in ("n_jobs", "verbose") or not (own or chosen is not None or name in ("n_clusters", "random_state")):
            continue
        reason = _reason(name, asked, chosen, model, facts) if asked in ("auto", None) and chosen is not None else ""
        if name == "n_clusters" and getattr(model, "selection_", None) is not None:
            reason = model.selection_.sentence
        why = reason or ("as asked" if own or name == "n_clusters" else "the default")
        if name == "random_state" and asked is None:
            why = "no seed was set: another run may find other clusters"
        found.append(Choice(name, _shown(asked), _shown(asked if chosen is None else chosen), why))
    return found


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def _reason(name: str, asked: Any, chosen: Any, model: Any, facts: PartitionFacts) -> str:  # noqa: PLR0911, PLR0912
    """Say why "auto" came to what it did; an empty string where there is nothing to say."""
    graph = facts.graph
    per_node = graph.n_entries / max(graph.n_nodes, 1)
    aggregated = bool(getattr(model, "aggregate_", False))
    if name == "affinity":
        return "a graph was given" if chosen == "precomputed" else "points were given: each was joined to those nearest to it"
    if name == "neighbors":
        exact = "few enough points, or columns, to find the nearest ones exactly"
        return exact if chosen == "exact" else "so many points are searched quicker so; the share that was found was checked"
    if name == "aggregate":
        if chosen:
            return (
                f"{graph.n_nodes:,} nodes have {per_node:.1f} entries each: they were gathered into small groups of neighbours "
                "first, because a sample of so sparse a graph would fall into pieces or because that is quicker here"
            )
        return f"{graph.n_nodes:,} nodes with {per_node:.1f} entries each need no groups"
    if name == "coreset_size":
        drawn = chosen < graph.n_nodes and not aggregated
        if aggregated:
            return "the groups of nodes that the spectral step worked on; few enough to be taken as they are, or drawn from"
        return "enough for each cluster and for their edges among each other" if drawn else "few enough nodes to take them all"
    if name == "regularization":
        return (
            "steadies the eigenvectors of a sparse graph"
            if chosen > 0
            else "a dense graph, or one without refinement, needs none"
        )
    if name == "balance":
        if chosen > 0:
            return (
                "the least fee for a cluster's existence under which clusters are not mostly crumbs, nor one a giant that "
                "falls into parts, nor the cut noisy"
            )
        return (
            "the plain normalised cut did not give mostly crumbs, nor a giant that falls into parts; or sizes are bounded on "
            "both sides"
        )
    if name == "eigen_solver":
        if chosen == "components":
            return "the graph's own components were the clusters: no eigenvector was needed"
        return (
            "as many eigenvectors as the spectrum asks for" if chosen == "subspace" else "few vectors suffice for many clusters"
        )
    if name == "n_init":
        return (
            "draws were made until two agreed, or were dear beside the rest"
            if chosen > 1
            else "one draw: more would be dear here"
        )
    if name == "shift":
        if chosen > 0:
            return "the self-similarity that a graph without self-loops lacks"
        return "nothing to supply: no coreset was drawn, or the graph has self-loops"
    return ""
