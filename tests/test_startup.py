"""Start-up: a command loads what it uses and nothing else, and can be interrupted from the beginning."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Libraries that only some uses need; loading them takes longer than clustering a small graph.
HEAVY = {"sklearn", "joblib", "pandas", "pyarrow", "matplotlib", "rich", "networkx", "scipy.stats", "scipy.sparse.linalg"}

COMMAND = """
import sys
from corecut.__main__ import main
try:
    main()
finally:
    print(*sys.modules, file=open("modules.txt", "w"))
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """Run a command and return the modules that it has loaded."""
    subprocess.run([sys.executable, "-c", COMMAND, *arguments], cwd=folder, check=True, capture_output=True)
    return set((folder / "modules.txt").read_text().split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with two triangles that share an edge to a third node."""
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)]
    (tmp_path / "graph.txt").write_text("".join(f"{x} {y}\n" for x, y in edges))
    return tmp_path


def test_the_package_itself_loads_no_library() -> None:
    script = "import sys; before = set(sys.modules); import corecut; dir(corecut); print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = {name.partition(".")[0] for name in done.stdout.split()}
    assert modules & set(importlib.metadata.packages_distributions()) == {"corecut"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("cluster", "graph.txt", "-k", "2", "-o", "labels.csv"),
        ("convert", "graph.txt", "graph.store"),
        ("info", "graph.txt", "-k", "2"),
        ("--version",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_loads_what_it_uses(folder: Path, arguments: tuple[str, ...]) -> None:
    modules = loaded(folder, *arguments)
    assert modules & HEAVY == set()
    commands = {name for name in modules if name.startswith("corecut.commands.")}
    shared = {f"corecut.commands.{name}" for name in ("machines", "options", "printing", "screen", "words", arguments[0])}
    assert commands <= shared


def test_clustering_reaches_the_spectral_step_without_scikit_learn(folder: Path) -> None:
    # Of the other ways through the pipeline: aggregation, a coreset, pivoted QR.
    for setting in ("aggregate=True", "coreset_size=5", "assign_labels=cluster_qr"):
        modules = loaded(folder, "cluster", "graph.txt", "-k", "2", "--set", setting)
        assert modules & {"sklearn", "pandas", "pyarrow"} == set()


@pytest.mark.parametrize(
    ("arguments", "asked", "expected"),
    [
        (("info", "graph.txt"), None, "1"),
        (("info", "graph.txt"), "3", "3"),
        (("experiment", "--help"), None, None),
        (("--version",), None, None),
    ],
)
def test_threads_that_would_only_wait_are_not_started(
    folder: Path, arguments: tuple[str, ...], asked: str | None, expected: str | None
) -> None:
    script = COMMAND + "    import os; print('threads', os.environ.get('OPENBLAS_NUM_THREADS'))"
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if asked is not None:
        environment["OPENBLAS_NUM_THREADS"] = asked
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == f"threads {expected}"


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a process are different there")
@pytest.mark.parametrize("library", ["typer", "numpy", "scipy"])
def test_an_interrupt_while_libraries_are_loaded_shows_no_traceback(folder: Path, library: str) -> None:
    # A runner in the background has Ctrl-C ignored, and its children with it, unless they say otherwise.
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from corecut.__main__ import main; main()"
    )
    command = [sys.executable, "-X", "importtime", "-c", script, "cluster", "graph.txt", "-k", "2"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("import time:") and f" {library}" in line:
                break
        process.send_signal(signal.SIGINT)
        words = [line for line in process.stderr if not line.startswith("import time:")]
    assert process.returncode != 0
    assert not any("Traceback" in line or "KeyboardInterrupt" in line for line in words)
