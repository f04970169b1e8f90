"""The documents: their examples run, their links lead somewhere, and the README opens with its two commands."""

from __future__ import annotations

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

from corecut.experiments.plan import EXPERIMENTS, Options, experiment_of
from corecut.experiments.results import Results
from corecut.experiments.summary import claims_table

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")

FIGURES = {
    "coreset-time": ["figure-2"],
    "real-data": ["figure-3", "figure-5", "figure-6", "figure-7"],
    "many-clusters": ["figure-4"],
}


def blocks(path: Path) -> list[tuple[str, str]]:
    """Return (language, text) of every fenced block."""
    return BLOCK.findall(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if any(kind == "python" for kind, _ in blocks(p))], ids=name_of)
def test_python_examples_run(path, tmp_path, monkeypatch):
    """The Python blocks of a document run from top to bottom, each with the names of those before it."""
    monkeypatch.chdir(tmp_path)  # what they write goes with it
    names: dict[str, object] = {}
    for kind, text in blocks(path):
        if kind == "python" and ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, names, path.name, str(path), 0)
            assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
            names = test.globs
        elif kind == "python":
            exec(compile(text, path.name, "exec"), names)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_to_files_lead_somewhere(path):
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_readme_opens_with_two_commands():
    commands = [text for kind, text in blocks(ROOT / "README.md")[:2] if kind == "bash"]
    assert len(commands) == 2
    folders = []
    for command in commands:
        assert command.count("\n") == 1
        steps = command.strip().split(" && ")
        assert steps[0].startswith("python3 -m venv ")
        folders.append(steps[0].split()[-1])
        # Every later step uses the environment that the first one made.
        assert all(step.startswith(f"{folders[-1]}/bin/") for step in steps[1:])
    assert folders[0] != folders[1]
    assert commands[0].strip().endswith("corecut demo")
    assert commands[1].strip().endswith("pytest")


def test_the_readmes_tables_are_the_benchmarks_results():
    """Every figure of the README's tables follows from the results beside the benchmarks."""
    spec = importlib.util.spec_from_file_location("readme_tables", ROOT / "benchmarks" / "readme_tables.py")
    assert spec is not None
    assert spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert tables.rewritten(text) == text, "run python benchmarks/readme_tables.py"
    measured = text.partition("## Measured")[2].partition("\n## ")[0]
    places = re.findall(r"<!-- from benchmarks/results/(\w+)\.json -->(.*?)<!-- end of \1 -->", measured, re.DOTALL)
    assert sorted(name for name, _ in places) == sorted(path.stem for path in tables.RESULTS.glob("*.json"))
    outside = re.sub(r"<!-- from .*?<!-- end of \w+ -->", "", measured, flags=re.DOTALL)
    assert "|" not in outside, "a table that comes from no results"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_documents_show_what_the_command_found(name):
    """The tables in the documents follow from the results beside them."""
    folder = ROOT / "docs" / "experiments"
    results = Results.open(folder / name / "results.json", name)
    plan = experiment_of(name).plan(Options("full", data=folder))
    table = claims_table(name, plan, results)
    assert table in (folder / "summary.md").read_text(encoding="utf-8")
    assert table in (folder.parent / "experiments.md").read_text(encoding="utf-8")
    for figure in FIGURES[name]:
        assert (folder / name / f"{figure}.png").exists()
        assert f"experiments/{name}/{figure}.png" in (folder.parent / "experiments.md").read_text(encoding="utf-8")
