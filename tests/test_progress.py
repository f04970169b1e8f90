"""Stages count every moment once, say what they should where they should, and never leave a broken terminal."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import pytest

from corecut._progress import Stages

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class Terminal(io.StringIO):
    """A stderr that calls itself a terminal."""

    def isatty(self) -> bool:
        return True


def open_terminal(monkeypatch):
    """Put a terminal in stderr's place; not a fixture, because pytest sets its own stderr between set-up and test."""
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def test_timings_add_up_to_the_time_spent_in_stages():
    stage = Stages()
    start = time.perf_counter()
    with stage("outer"):
        time.sleep(0.02)
        with stage("inner"):
            time.sleep(0.03)
        with stage("outer"):  # the same name inside itself is not counted twice
            time.sleep(0.02)
    elapsed = time.perf_counter() - start
    assert list(stage.timings) == ["outer", "inner"]
    assert stage.timings["inner"] >= 0.03
    assert stage.timings["outer"] >= 0.04
    assert sum(stage.timings.values()) <= elapsed


def test_repeated_names_add_to_what_they_have():
    stage = Stages()
    with stage("draw"):
        time.sleep(0.01)
    first = stage.timings["draw"]
    with stage("draw"):
        time.sleep(0.01)
    assert stage.timings["draw"] >= first + 0.01


def test_time_between_stages_belongs_to_none():
    stage = Stages()
    with stage("a"):
        pass
    time.sleep(0.05)
    with stage("b"):
        pass
    assert sum(stage.timings.values()) < 0.04


def test_quiet_says_nothing_and_loads_no_rich():
    script = (
        "import sys\n"
        "from corecut._progress import Stages\n"
        "with Stages(1) as stage:\n"
        "    with stage('seeds'):\n"
        "        stage.say('hidden')\n"
        "assert 'rich' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr == ""


def test_plain_lines_when_stderr_is_no_terminal(capsys):
    with Stages(2, verbose=1, description="clustering") as stage:
        with stage("seeds"):
            stage.say("shift = 0.5 because the graph has no self-loops")
        with stage("coreset"):
            pass
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0] == "shift = 0.5 because the graph has no self-loops"
    assert lines[1].startswith("clustering: seeds 0.0")
    assert lines[2].startswith("clustering: coreset 0.0")
    assert len(lines) == 3


def test_bar_on_a_terminal(monkeypatch):
    terminal = open_terminal(monkeypatch)
    with Stages(2, verbose=1, description="clustering") as stage:
        stage.note("between stages")
        with stage("seeds"):
            stage.say("[not markup]")
            stage.note("round 3")
        with stage("coreset"), stage("draws"):
            pass
    text = terminal.getvalue()
    assert "[not markup]" in text
    assert "between stages" not in text
    assert "2/2" in text  # the stage inside a stage does not advance the bar
    assert text.rstrip().endswith(SHOW_CURSOR)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_stops_the_bar_and_keeps_the_timings(monkeypatch, error):
    terminal = open_terminal(monkeypatch)
    stage = Stages(2, verbose=1)

    def interrupted():
        with stage, stage("seeds"):
            time.sleep(0.01)
            raise error

    with pytest.raises(error):
        interrupted()
    text = terminal.getvalue()
    assert text.count(HIDE_CURSOR) == text.count(SHOW_CURSOR) == 1
    assert stage.timings["seeds"] >= 0.01
    stage.say("after the bar")
    assert terminal.getvalue().endswith("after the bar\n")


def test_no_stderr_at_all(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with Stages(1, verbose=1) as stage, stage("seeds"):
        stage.say("nobody listens")
    assert "seeds" in stage.timings
