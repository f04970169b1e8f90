"""The documents: their blocks run, their links lead somewhere, their figures were measured, and they become a site."""

from __future__ import annotations

import doctest
import importlib.util
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from typer.testing import CliRunner

import corecut
from corecut.balancing import BALANCES
from corecut.cli import app
from corecut.commands.words import OF_POINTS, SETTABLE
from corecut.experiments.plan import EXPERIMENTS, Options, experiment_of
from corecut.experiments.results import Results
from corecut.experiments.summary import claims_table

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(path for path in DOCS.glob("**/*.md") if "generated" not in path.parts)])
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)")
# Their shell blocks are the commands that install the project: .ci/run runs those.
INSTALLERS = {"README.md", "CONTRIBUTING.md"}
# What the text of a page may hold beside what is run: the output of programs, and what cannot run in a test.
SHOWN = {"text", ""}

FIGURES = {
    "coreset-time": ["figure-2"],
    "real-data": ["figure-3", "figure-5", "figure-6", "figure-7"],
    "many-clusters": ["figure-4"],
}


def blocks(path: Path) -> list[tuple[str, str]]:
    """Return (language, text) of every fenced block; those in braces are words to Sphinx."""
    return [(kind, text) for kind, text in BLOCK.findall(path.read_text(encoding="utf-8")) if not kind.startswith("{")]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as the repository's host and MyST make them."""
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def runs(path: Path) -> Iterator[tuple[str, str]]:
    """Give the blocks of a document that are run."""
    for kind, text in blocks(path):
        if kind == "python" or (kind == "bash" and path.name not in INSTALLERS):
            yield kind, text


def run_shell(text: str) -> None:
    """Run the lines of a shell block; corecut itself without the second that a new interpreter takes for its imports."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("corecut "):
            result = CliRunner().invoke(app, shlex.split(line)[1:])
            assert result.exit_code == 0, f"{line}: {result.output}"
            assert "warning" not in result.stderr
        else:
            subprocess.run(["bash", "-euo", "pipefail", "-c", line], capture_output=True, check=True)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if any(runs(path))], ids=name_of)
def test_examples_run(path, tmp_path, monkeypatch):
    """The blocks of a document run from top to bottom, Python ones with the names of those before."""
    code = "\n".join(text for _, text in runs(path))
    for words, module in (("load_sample_image", "PIL"), ("import anndata", "anndata"), (".parquet", "pyarrow")):
        if words in code:
            pytest.importorskip(module, reason=f"{path.name} needs it, and says so")
    monkeypatch.chdir(tmp_path)  # what they write goes with it
    names: dict[str, object] = {}
    for kind, text in runs(path):
        if kind == "bash":
            run_shell(text)
        elif ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, names, path.name, str(path), 0)
            assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
            names = test.globs
        else:
            exec(compile(text, path.name, "exec"), names)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_block_is_run_or_said_to_be_shown(path):
    assert {kind for kind, _ in blocks(path)} <= {"python", "bash"} | SHOWN


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path):
    for target, anchor in LINK.findall(BLOCK.sub("", path.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        file = path.parent / target if target else path
        assert file.exists(), f"{path.name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{path.name} links to {target}#{anchor}"


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


def tables() -> ModuleType:
    """Return the script that writes the tables of measurements."""
    spec = importlib.util.spec_from_file_location("readme_tables", ROOT / "benchmarks" / "readme_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PLACE = re.compile(r"<!-- from benchmarks/results/(\w+)\.json -->(.*?)<!-- end of \1 -->", re.DOTALL)


def test_tables_of_measurements_are_the_benchmarks_results():
    """Every figure of these tables follows from the results beside the benchmarks."""
    script = tables()
    for path in script.DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert script.rewritten(text) == text, "run python benchmarks/readme_tables.py"
    comparison, readme = (path.read_text(encoding="utf-8") for path in script.DOCUMENTS)
    assert sorted(name for name, _ in PLACE.findall(comparison)) == sorted(path.stem for path in script.RESULTS.glob("*.json"))
    for measured in (comparison, readme.partition("## Measured")[2].partition("\n## ")[0]):
        assert PLACE.search(measured)
        assert "|" not in PLACE.sub("", measured), "a table that comes from no results"


def test_the_command_lines_page_lists_what_can_be_set():
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    for known in (SETTABLE, OF_POINTS):
        rows = [f"| `{name}` | {meaning} |" for name, meaning in known.items()]
        assert "\n".join(rows) in text


# --- the site ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site by its one command, into a copy so that the repository stays as it is."""
    for needed in ("sphinx", "myst_parser", "numpydoc", "pydata_sphinx_theme", "sphinx_copybutton", "sphinx_design"):
        pytest.importorskip(needed, reason='the site needs pip install "corecut[docs]"')
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("generated", "_build"))
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "src").symlink_to(ROOT / "src")  # pages may lead to a module
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "site"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_the_site_has_every_page(site):
    pages = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    for path in DOCUMENTS:
        if path.is_relative_to(DOCS):
            assert path.relative_to(DOCS).with_suffix("").as_posix() in pages


@pytest.mark.parametrize("name", sorted(corecut.__all__))
def test_a_search_finds_every_public_name(site, name):
    assert (site / "reference" / "generated" / f"corecut.{name}.html").exists()
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert f'"{name}"' in index or f'"corecut.{name}"' in index or f"{name.lower()}" in index


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_of_the_gallery_run_and_are_shown(script, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    for name, module in (("photo", "PIL"), ("refine_another", "networkx")):
        if script.stem == name:
            pytest.importorskip(module)
    plt.switch_backend("agg")
    pictures = tmp_path / "new" / "pictures"  # the script makes the folder
    monkeypatch.setattr(sys, "argv", [str(script), str(pictures)])
    runpy.run_path(str(script), run_name="__main__")
    plt.close("all")
    assert [path.name for path in pictures.iterdir()] == [f"{script.stem}.png"]
    gallery = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert f"pictures/gallery/{script.stem}.png" in gallery
    assert f"examples/{script.stem}.py" in gallery
    # The words of documents are those of the SciPy that is installed; elsewhere clusters may have other numbers.
    if sys.platform == "linux" and script.stem != "documents":
        shown, drawn = (_coarse(folder / f"{script.stem}.png") for folder in (DOCS / "pictures" / "gallery", pictures))
        again = f"python examples/{script.name} docs/pictures/gallery"
        assert np.abs(shown - drawn).mean() < 5.0, f"the page shows an old picture: {again}"


def _coarse(file):
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(file).convert("L").resize((60, 45), image.Resampling.BOX)).astype(float)


def test_the_gallery_shows_no_picture_of_a_lost_script():
    assert sorted(path.stem for path in (DOCS / "pictures" / "gallery").iterdir()) == [path.stem for path in SCRIPTS]


def test_the_page_of_the_algorithm_lists_the_fees_that_are_tried():
    page = " ".join((DOCS / "algorithm.md").read_text(encoding="utf-8").split())
    fees = [f"{fee:g}" for fee in (0.0, *BALANCES)]
    assert f"is the least of {', '.join(fees[:-1])} and {fees[-1]}, and of smaller ones" in page


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
