"""The page: the template with its parts filled in. Whatever comes from data is escaped here, and nowhere else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Any

import numpy as np

from corecut import __version__
from corecut.drawing import CURVES, path_of
from corecut.facts import PartitionFacts
from corecut.reporting.content import MOST_DISCS, MOST_ROWS, shortened
from corecut.reporting.words import Choice, Sentence, Verdict


@dataclass(frozen=True)
class Static:
    """What the page says without a script.

    Attributes
    ----------
    title, command, seed
        Heading; what repeats the run, and its seed, or None.
    verdict, choices, advice
        The verdict, the settings with their reasons, warnings with their cures.
    seconds
        Time of every stage.
    path
        The path of k, or None.
    pictures
        Addresses of the heat maps before and after sorting.
    """

    title: str
    verdict: Verdict
    choices: list[Choice]
    seconds: dict[str, float]
    advice: list[str]
    command: str | None
    seed: str | None
    path: Any
    pictures: list[str]


def fill_page(facts: PartitionFacts, static: Static, data: dict[str, Any]) -> str:
    """Return the whole page."""
    folder = files("corecut.reporting")
    page, style, script = ((folder / f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "title": html.escape(static.title),
        # No address but the page itself may be asked for anything, and no script but this one may run.
        "policy": f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'",
        "style": style,
        "script": script,
        "data": _for_script(data),
        "graph": ", ".join(
            f"{many:,} {noun}{'' if many == 1 else 's'}"
            for many, noun in ((facts.graph.n_nodes, "node"), (facts.graph.n_edges, "edge"), (facts.n_clusters, "cluster"))
        ),
        "made": html.escape(f"corecut {__version__}, {datetime.now().astimezone():%Y-%m-%d %H:%M}"),
        "grade": static.verdict.grade,
        "headline": html.escape(static.verdict.headline),
        "verdict": "".join(f"<li>{_sentence(facts, one)}</li>" for one in static.verdict.sentences),
        "figures": _figures(facts),
        "advice": _advice(static.advice),
        "limits": _limits(facts),
        "before": static.pictures[0],
        "after": static.pictures[1],
        "path": _path(static.path),
        "run": _run(static),
    }
    # One pass, so that nothing that was put in is looked at again.
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def _for_script(data: dict[str, Any]) -> str:
    """Return data as JSON that cannot end the element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _sentence(facts: PartitionFacts, sentence: Sentence) -> str:
    def chip(j: int) -> str:
        name = html.escape(shortened(facts.name(j)))
        return f'<button type="button" class="chip" data-cluster="{j}"><bdi>{name}</bdi></button>'

    named = ", ".join(f'<span class="pair">{" + ".join(map(chip, group))}</span>' for group in sentence.clusters)
    more = f" and {sentence.left_out:,} more" if sentence.left_out else ""
    return html.escape(sentence.text) + (f" {named}{more}." if named else "")


def _figures(facts: PartitionFacts) -> str:
    cuts = facts.conductances
    shown = {
        "normalised cut": (f"{cuts.mean():.3f}", "mean conductance: the share of a cluster's edges that lead out of it"),
        "worst conductance": (f"{cuts.max():.3f}", "of all clusters"),
        "modularity": (f"{facts.modularity:.3f}", "edges inside clusters beyond what chance would put there"),
        "median size": (f"{np.median(facts.sizes):,.0f}", f"from {facts.sizes.min():,} to {facts.sizes.max():,} nodes"),
        "doubtful nodes": (f"{100 * facts.doubtful_share:.1f} %", "another cluster would suit them nearly as well"),
    }
    return "".join(
        f'<div class="figure"><dt>{name}</dt><dd><b>{html.escape(value)}</b><small>{html.escape(words)}</small></dd></div>'
        for name, (value, words) in shown.items()
    )


def _advice(advice: list[str]) -> str:
    if not advice:
        return "<p>There was nothing to warn of.</p>"
    return "<ul>" + "".join(f"<li>{html.escape(one)}</li>" for one in advice) + "</ul>"


def _limits(facts: PartitionFacts) -> str:
    said = []
    if facts.n_clusters > MOST_ROWS:
        said.append(f"The table has the largest and the worst of {facts.n_clusters:,} clusters.")
    if facts.n_clusters > MOST_DISCS:
        said.append(f"The drawing has the {MOST_DISCS:,} largest clusters.")
    return " ".join(said)


def _run(static: Static) -> str:
    parts = []
    if static.choices:
        rows = "".join(
            f"<tr><th scope='row'><code>{html.escape(one.name)}</code></th><td>{html.escape(one.asked)}</td>"
            f"<td>{html.escape(one.chosen)}</td><td>{html.escape(one.why)}</td></tr>"
            for one in static.choices
        )
        parts.append(
            '<h3>What was asked, what was chosen, and why</h3><div class="wide" tabindex="0" role="region" '
            'aria-label="Settings"><table class="settings"><thead><tr><th scope="col">setting</th><th scope="col">asked</th>'
            f'<th scope="col">chosen</th><th scope="col">why</th></tr></thead><tbody>{rows}</tbody></table></div>'
        )
    else:
        parts.append("<p>The labels were given; how they were made is not known.</p>")
    if static.seconds:
        parts.append(_stages(static.seconds))
    if static.command is not None:
        seed = "" if static.seed is None else f" The seed was <b>{html.escape(static.seed)}</b>."
        if static.seed == "None":
            seed = " No seed was set, so that another run may find other clusters."
        # Without settings nothing was clustered: labels were read.
        again = f"The same seed gives the same labels.{seed}" if static.choices else "This makes the page from them again."
        parts.append(
            f'<h3>To repeat it</h3><p>{again}</p><pre id="command" tabindex="0">'
            f'{html.escape(static.command)}</pre><button type="button" id="copy">Copy</button>'
            '<span id="copied" role="status"></span>'
        )
    return "".join(parts)


def _stages(seconds: dict[str, float]) -> str:
    total, most = sum(seconds.values()), max(*seconds.values(), 1e-9)
    rows = "".join(
        f"<tr><th scope='row'>{html.escape(name)}</th><td class='number'>{value:,.3f} s</td>"
        f"<td class='bar'><span style='width:{100 * value / most:.1f}%'></span></td></tr>"
        for name, value in seconds.items()
    )
    return (
        f"<h3>Time of each stage</h3><table class='stages'><caption>{total:,.2f} seconds in all</caption><thead>"
        "<tr><th scope='col'>stage</th><th scope='col'>time</th><th scope='col'><span class='quiet'>share</span></th></tr>"
        f"</thead><tbody>{rows}</tbody></table>"
    )


def _path(path: Any) -> str:
    """Return the section about the path of k, drawn in SVG; nothing where there is none."""
    if path is None:
        return ""
    found = path_of(path)
    numbers, chosen = np.asarray(found["n_clusters"], dtype=np.float64), found.get("chosen")
    drawings = "".join(
        _curve(name, numbers, np.asarray(found[name], dtype=np.float64), chosen) for name in CURVES if name in found
    )
    sentence = str(getattr(path, "sentence", ""))
    number = "" if sentence else f", {chosen:,}"  # which the sentence begins with
    said = f" The dashed line is the number that was chosen{number}." if chosen is not None else ""
    said += f" {html.escape(sentence[0].upper() + sentence[1:])}." if sentence else ""
    return (
        '<section aria-labelledby="h-path"><h2 id="h-path">Which number of clusters?</h2><p>What speaks for each number '
        f'of clusters.{said}</p><div class="curves">{drawings}</div></section>'
    )


def _curve(name: str, numbers: Any, values: Any, chosen: int | None) -> str:
    """Return one curve over the numbers of clusters."""
    width, height, left, bottom, top = 360, 180, 48, 30, 10
    lowest, highest = float(np.nanmin(values)), float(np.nanmax(values))
    spread = np.log(numbers) if numbers.size > 1 and numbers[-1] > 20 * numbers[0] else numbers
    reach = max(float(spread[-1] - spread[0]), 1e-9)
    x = left + (width - left - 10) * (spread - spread[0]) / reach
    y = top + (height - top - bottom) * (1 - (values - lowest) / max(highest - lowest, 1e-12))
    known = np.isfinite(values)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[known], y[known], strict=True))
    dots = "".join(
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3"><title>k = {int(n):,}: {v:.4g}</title></circle>'
        for a, b, n, v in zip(x[known], y[known], numbers[known], values[known], strict=True)
    )
    line = ""
    if chosen is not None:
        at = float(np.interp(chosen, numbers, x))
        line = f'<line class="chosen" x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{height - bottom}"/>'
        if left + 40 < at < width - 50:  # the ends of the axis have their own numbers
            line += f'<text x="{at:.1f}" y="{height - 8}" text-anchor="middle">{chosen:,}</text>'
    short, words = CURVES[name]
    low, high = f"{round(lowest, 3):g}", f"{round(highest, 3):g}"
    return (
        f'<figure><svg viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(short)} by number of clusters">'
        f'{line}<polyline points="{points}"/>{dots}<text x="{left - 6}" y="{top + 9}" text-anchor="end">{high}</text>'
        f'<text x="{left - 6}" y="{height - bottom}" text-anchor="end">{low}</text>'
        f'<text x="{left}" y="{height - 8}">{int(numbers[0]):,}</text>'
        f'<text x="{width - 10}" y="{height - 8}" text-anchor="end">{int(numbers[-1]):,}</text></svg>'
        f"<figcaption>{html.escape(words)}</figcaption></figure>"
    )
