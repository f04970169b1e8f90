"""The command line: what it prints where, and with which exit code it ends."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

import corecut
from corecut.cli import app


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    return lambda *arguments: CliRunner().invoke(app, arguments)


def test_version(run):
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"corecut {corecut.__version__}\n"


def test_demo_finds_the_planted_clusters(run):
    result = run("demo")
    assert result.exit_code == 0
    score = re.search(r"ARI\W+(\S+) against the planted clusters", result.stdout)
    assert score is not None
    assert float(score[1]) > 0.95
    for stage in ("seeds", "coreset", "eigenvectors", "labelling"):
        assert stage in result.stdout
        assert f"corecut: {stage} " in result.stderr


def test_demo_repeats_for_a_seed(run):
    kept = [[line for line in run("demo", "--seed", "3").stdout.splitlines() if "ms" not in line] for _ in range(2)]
    assert kept[0] == kept[1]
    assert kept[0] != [line for line in run("demo", "--seed", "4").stdout.splitlines() if "ms" not in line]


@pytest.mark.parametrize("arguments", [("nonsense",), ("demo", "--seed", "x"), ("demo", "--seed", "-1")])
def test_misuse_ends_with_2(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Usage" in result.stderr
