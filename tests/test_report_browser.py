"""The report in a real browser: silent, used by mouse and keyboard, readable, and safe against names that are markup."""

from __future__ import annotations

import importlib.resources
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser as browsers
import numpy as np
import problems
import pytest
import scipy.sparse as sp

import corecut
from corecut.reporting import RunNotes, build_report

pytestmark = pytest.mark.skipif(browsers.CHROMIUM is None, reason="there is no Chromium (Debian's package is called chromium)")

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</script><script>console.log(3)</script>",
    "<!--",
    "javascript:alert(4)",
    "{{data}}",
    "\u202ereversed",
    "' onmouseover='alert(5)",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[browsers.Browser]:
    with browsers.Browser() as one:
        yield one


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a report about 8 clusters of nodes whose names, and whose clusters' names, are attacks."""
    rng = np.random.default_rng(3)
    matrix, truth = problems.planted_graph(rng, [80, 70, 60, 50, 40, 40, 30, 30], degree=16.0, mixing=0.3)
    plain = corecut.Graph.from_matrix(matrix)
    names = np.array([f"{HOSTILE[i % 8]} {i}" for i in range(truth.size)], dtype=object)
    graph = corecut.Graph(plain.indptr, plain.indices, plain.weights, plain.degrees, plain.diagonal, names)
    labels = np.array([f"{HOSTILE[j]}" for j in truth])
    page = tmp_path_factory.mktemp("reports") / "small.html"
    notes = RunNotes(
        title=f"Report {HOSTILE[0]}",
        command=f"corecut report {HOSTILE[1]}",
        seconds={HOSTILE[0]: 1.0, "repair": 2.0},
        advice=[f"a warning about {HOSTILE[1]}"],
        path={"n_clusters": [2, 4, 8, 16], "cut": [0.1, 0.2, 0.25, 0.5], "stability": [1.0, 0.9, 1.0, 0.4], "chosen": 8},
    )
    build_report(corecut.partition_facts(graph, labels), None, notes).save(page)
    return page


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a report about 2,000 clusters."""
    matrix, truth = corecut.make_degree_corrected_sbm(30_000, 2_000, mean_degree=10, mixing=0.2, random_state=0)
    page = tmp_path_factory.mktemp("reports") / "large.html"
    corecut.report(truth, matrix, page)
    return page


@pytest.fixture(params=["small", "large"])
def page(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(request.param))


_BOX = ("x", "y", "width", "height")


def opened(browser: browsers.Browser, page: Path, **look: Any) -> browsers.Browser:
    browser.messages.clear()
    browser.requests.clear()
    browser.open(page, **look)
    return browser


def column(browser: browsers.Browser, number: int) -> list[str]:
    script = f"[...document.querySelectorAll('#clusters tbody tr')].map(tr => tr.children[{number}].textContent)"
    return list(browser.run(script))


def place(browser: browsers.Browser, drawing: str = "quotient") -> tuple[float, float]:
    """Scroll a drawing into view and return where in the window the largest cluster's mark is."""
    browser.run(f"document.getElementById('{drawing}').scrollIntoView({{block: 'center', behavior: 'instant'}})")
    box = [browser.run(f"document.getElementById('{drawing}').getBoundingClientRect().{part}") for part in _BOX]
    data = json.loads(browser.run("document.getElementById('data').textContent"))["quotient"]
    i = int(np.argmax(data["r"]))
    side = min(box[2], box[3]) - 24
    return box[0] + box[2] / 2 + (data["x"][i] - 0.5) * side, box[1] + box[3] / 2 + (0.5 - data["y"][i]) * side


def test_opens_silently_and_asks_for_nothing(browser: browsers.Browser, page: Path) -> None:
    opened(browser, page)
    assert browser.messages == []
    assert [address for address in browser.requests if not address.startswith("data:")] == [page.resolve().as_uri()]
    assert len(column(browser, 0)) == min(100, browser.run("JSON.parse(document.getElementById('data').textContent).total"))


def test_sorts_by_every_column(browser: browsers.Browser, page: Path) -> None:
    opened(browser, page)
    assert browser.run("document.querySelector('th[aria-sort=descending]').textContent").startswith("Nodes")
    sizes = [int(text.replace(",", "")) for text in column(browser, 1)]
    assert sizes == sorted(sizes, reverse=True)
    for number in range(9):
        for _ in range(2):
            browser.run(f"document.querySelectorAll('#clusters thead button')[{number}].click()")
            kind = browser.run(f"document.querySelectorAll('#clusters thead th')[{number}].getAttribute('aria-sort')")
            assert kind in ("ascending", "descending")
            if number in (1, 2, 3, 4):
                values = [float(text.replace(",", "").rstrip(" %")) for text in column(browser, number)]
                assert values == sorted(values, reverse=kind == "descending")
    assert browser.messages == []


def test_filters_and_searches(browser: browsers.Browser, page: Path) -> None:
    opened(browser, page)

    def typed(name: str, value: str) -> list[str]:
        script = f"(() => {{const e = document.getElementById('{name}'); e.value = {json.dumps(value)};"
        browser.run(script + "e.dispatchEvent(new Event('input', {bubbles: true}))})()")
        return column(browser, 1)

    sizes = [int(text.replace(",", "")) for text in column(browser, 1)]
    middle = sorted(sizes)[len(sizes) // 2]
    assert all(int(text.replace(",", "")) >= middle for text in typed("least", str(middle)))
    browser.run("document.getElementById('clear').click()")
    assert len(column(browser, 1)) == len(sizes)
    first = column(browser, 0)[0]
    assert any(first in text for text in column(browser, 0) if typed("search", first))
    assert typed("search", "no such name anywhere") == []
    assert browser.run("document.getElementById('count').textContent").startswith("0 of ")
    browser.run("document.getElementById('clear').click()")
    status = browser.run("document.getElementById('status').options[1].value")
    typed("status", status)
    assert len(set(column(browser, 6))) == 1
    assert browser.messages == []


def test_more_rows_are_shown_on_request(browser: browsers.Browser, large: Path) -> None:
    opened(browser, large)
    browser.run("document.getElementById('more').click()")
    assert len(column(browser, 0)) == 500


def test_hovers_and_selects_by_mouse(browser: browsers.Browser, page: Path) -> None:
    opened(browser, page)
    x, y = place(browser)
    assert browser.run("document.getElementById('tip').hidden")
    browser.mouse("Moved", x, y)
    assert not browser.run("document.getElementById('tip').hidden")
    told = browser.run("document.getElementById('tip').textContent")
    assert "nodes, conductance" in told
    browser.click(x, y)
    chosen = browser.run("document.querySelector('#clusters tr[aria-current]').children[0].textContent")
    assert told.startswith(f"Cluster {chosen}:")
    assert browser.run("document.getElementById('selected').textContent").startswith(f"Selected: cluster {chosen}")
    # A row selects, too, and so does the name of a cluster in a sentence.
    browser.run("document.querySelectorAll('#clusters tbody button')[1].click()")
    assert browser.run("document.querySelectorAll('#clusters tbody tr')[1].getAttribute('aria-current')") == "true"
    assert browser.messages == []


def test_pans_and_zooms(browser: browsers.Browser, small: Path) -> None:
    opened(browser, small)
    x, y = place(browser)
    before = browser.screenshot()
    browser.run("document.querySelector('[data-zoom=in][data-of=quotient]').click()")
    zoomed = browser.screenshot()
    assert zoomed != before
    browser.mouse("Moved", x, y)
    browser.mouse("Pressed", x, y, button="left", clickCount=1)
    browser.mouse("Moved", x + 60, y + 40, button="left", buttons=1)
    browser.mouse("Released", x + 60, y + 40, button="left", clickCount=1)
    browser.mouse("Moved", 2, 2)
    assert browser.screenshot() != zoomed
    assert browser.run("document.querySelector('#clusters tr[aria-current]')") is None  # a drag is no click
    browser.run("document.querySelector('[data-zoom=all][data-of=quotient]').click()")
    browser.mouse("Wheel", x, y, deltaX=0, deltaY=-200)
    browser.run("document.getElementById('up').value = '2'; document.getElementById('up').dispatchEvent(new Event('input'))")
    assert browser.messages == []


def test_selects_by_keyboard(browser: browsers.Browser, page: Path) -> None:
    opened(browser, page)
    browser.run("document.getElementById('quotient').focus()")
    for key in ("n", "n", "p", "+", "ArrowLeft", "0"):
        browser.key(key)
    assert browser.run("document.getElementById('selected').textContent").startswith("Cluster ")
    browser.key("Enter")
    largest = browser.run("document.querySelector('#clusters tr[aria-current]').children[1].textContent")
    sizes = [int(text.replace(",", "")) for text in column(browser, 1)]
    assert int(largest.replace(",", "")) == max(sizes)
    browser.key("Escape")
    assert browser.run("document.getElementById('tip').hidden")
    assert browser.messages == []


def test_names_that_are_markup_are_shown_as_text(browser: browsers.Browser, small: Path) -> None:
    opened(browser, small)
    browser.run("document.querySelectorAll('#clusters tbody tr').forEach(tr => tr.click())")
    x, y = place(browser)
    browser.mouse("Moved", x, y)
    text = browser.run("document.body.textContent")
    for name in HOSTILE:
        assert name in text
    assert browser.run("document.querySelectorAll('script').length") == 2
    assert browser.run("document.querySelectorAll('img').length") == 2  # the heat maps
    assert browser.run("document.title") == f"Report {HOSTILE[0]}"
    assert browser.messages == []  # no alert, nothing that the page's policy had to stop


@pytest.mark.parametrize("look", [{}, {"dark": True}, {"width": 390, "height": 800}], ids=["light", "dark", "narrow"])
def test_fits_the_window(browser: browsers.Browser, page: Path, look: dict[str, Any]) -> None:
    opened(browser, page, **look)
    assert browser.run("document.documentElement.scrollWidth") <= look.get("width", 1280)
    assert browser.messages == []


@pytest.mark.parametrize("look", [{}, {"width": 390, "height": 800}], ids=["wide", "narrow"])
@pytest.mark.parametrize("drawing", ["quotient", "embedding"])
def test_nothing_covers_a_drawing(browser: browsers.Browser, small: Path, look: dict[str, Any], drawing: str) -> None:
    opened(browser, small, **look)
    place(browser, drawing)
    script = f"""(() => {{
        const box = document.getElementById("{drawing}").getBoundingClientRect();
        const steps = [...Array(40).keys()].map(step => (step + 0.5) / 40);
        const at = (x, y) => document.elementFromPoint(box.x + x * box.width, box.y + y * box.height).id;
        return [...new Set(steps.flatMap(x => steps.map(y => at(x, y))))];
    }})()"""
    assert browser.run(script) == [drawing]


def test_a_table_of_few_clusters_is_shown_whole(browser: browsers.Browser, small: Path) -> None:
    opened(browser, small)
    assert browser.run("(box => box.scrollHeight - box.clientHeight)(document.getElementById('clusters').parentElement)") == 0


def test_reasons_of_settings_are_read_in_a_narrow_window(browser: browsers.Browser, tmp_path: Path) -> None:
    matrix, _ = corecut.make_sbm(60, 4, 0.3, 0.01, random_state=0)
    corecut.report(corecut.CoresetSpectralClustering(4, random_state=0).fit(matrix), matrix, tmp_path / "narrow.html")
    opened(browser, tmp_path / "narrow.html", width=390, height=800)
    assert browser.run("(box => box.scrollWidth - box.clientWidth)(document.querySelector('.settings').parentElement)") == 0


def test_words_of_the_table_are_explained(browser: browsers.Browser, small: Path) -> None:
    opened(browser, small)
    told = browser.run("[...document.querySelectorAll('.columns dt')].map(one => one.textContent)")
    headings = browser.run("[...document.querySelectorAll('#clusters thead th')].map(one => one.textContent)")
    assert told == headings[2:]  # what clusters and nodes are goes without saying
    words = browser.run("document.querySelector('.columns').textContent").lower()
    statuses = json.loads(browser.run("document.getElementById('data').textContent"))["statuses"]
    assert all(status in " ".join(words.split()) for status in statuses)
    browser.run("document.querySelector('summary').click()")
    assert browser.run("document.querySelector('.columns').checkVisibility()")


def test_small_ties_are_told_apart_from_none(browser: browsers.Browser, tmp_path: Path) -> None:
    matrix = sp.lil_array(sp.block_diag([np.ones((30, 30)) - np.eye(30)] * 2))
    matrix[0, 30] = matrix[30, 0] = 1.0
    corecut.report(np.repeat([0, 1], 30), sp.csr_array(matrix), tmp_path / "tie.html")
    opened(browser, tmp_path / "tie.html")
    assert sorted(column(browser, 5)) == ["0 (tie 0.001)", "1 (tie 0.001)"]


@pytest.mark.parametrize("look", [{}, {"dark": True}, {"width": 390, "height": 800}], ids=["light", "dark", "narrow"])
def test_is_accessible(browser: browsers.Browser, small: Path, look: dict[str, Any]) -> None:
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    opened(browser, small, **look)
    browser.run((importlib.resources.files(axe) / "axe.min.js").read_text(encoding="utf-8") + "; true")
    found = browser.run("axe.run().then(found => found.violations.map(v => [v.id, v.impact, v.nodes[0].html.slice(0, 200)]))")
    assert [one for one in found if one[1] in ("serious", "critical")] == []


def test_light_and_dark_differ_and_can_be_switched(browser: browsers.Browser, small: Path) -> None:
    def background() -> str:
        return str(browser.run("getComputedStyle(document.body).backgroundColor"))

    opened(browser, small, dark=True)
    dark = background()
    browser.run("document.getElementById('theme').click()")
    light = background()
    assert dark != light
    opened(browser, small)
    assert background() == light


def test_prints(browser: browsers.Browser, small: Path) -> None:
    opened(browser, small, dark=True)
    assert browser.pdf().startswith(b"%PDF")
    assert browser.run("document.documentElement.dataset.theme") is None  # as it was
    assert browser.messages == []


@pytest.mark.parametrize("page", ["small", "large"], indirect=True)
def test_a_sheet_of_paper_has_all_columns_and_colours(browser: browsers.Browser, page: Path) -> None:
    width = 717  # of A4 between the margins
    opened(browser, page, width=width, paper=True)
    assert browser.run("document.getElementById('clusters').getBoundingClientRect().right") <= width
    assert browser.run("getComputedStyle(document.querySelector('.swatch')).printColorAdjust") == "exact"
    assert browser.messages == []


def test_email_of_a_research_institution(browser: browsers.Browser, dataset: Any, tmp_path: Path) -> None:
    matrix = sp.csr_array(dataset("email_eu_core"))
    model = corecut.CoresetSpectralClustering(8, random_state=0).fit(matrix)
    corecut.report(model, matrix, tmp_path / "email.html", title="E-mail")
    opened(browser, tmp_path / "email.html")
    assert len(column(browser, 0)) == 8
    x, y = place(browser)
    assert math.isfinite(x + y)
    browser.click(x, y)
    assert browser.run("document.querySelectorAll('#clusters tr[aria-current]').length") == 1
    assert browser.messages == []
