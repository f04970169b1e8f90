"""Stages count every moment once, say what they should where they should, and never leave a broken terminal."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time

import pytest

from corecut import CoresetKernelKMeans, FastSpectralClustering, KernelKMeans, make_sbm
from corecut._progress import Stages
from corecut.commands.screen import Screen

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


def test_one_line_per_stage_when_stderr_is_no_terminal(capsys):
    with Stages(2, verbose=1, description="clustering") as stage:
        with stage("seeds"):
            stage.say("shift = 0.5 because the graph has no self-loops")
            time.sleep(0.02)
        with stage("too short to mention"):
            pass
        with stage.group("draws"):
            for _ in range(3):
                with stage("eigenvectors"):
                    time.sleep(0.01)
                with stage("repair"), stage("sweep"):
                    time.sleep(0.01)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0] == "shift = 0.5 because the graph has no self-loops"
    assert re.fullmatch(r"clustering: seeds 0\.\d\d s", lines[1])
    assert re.fullmatch(r"clustering: draws 0\.\d\d s \(eigenvectors 0\.\d\d, sweep 0\.\d\d\)", lines[2])
    assert len(lines) == 3
    assert list(stage.timings) == ["seeds", "too short to mention", "eigenvectors", "repair", "sweep"]


def test_a_short_run_is_one_line(capsys):
    with Stages(verbose=1) as stage:
        for name in ("seeds", "coreset"):
            with stage(name):
                pass
    assert re.fullmatch(r"corecut: done in 0\.00\d s\n", capsys.readouterr().err)


def test_a_long_stage_is_announced_when_stderr_is_no_terminal(capsys):
    with Stages(verbose=1) as stage:
        stage.expect({"aggregation": 300.0, "eigenvectors": 8.0, "repair": 7.0})
        with stage("aggregation"):
            pass
        stage._over = (1.0, 1.0)  # as fast as expected
        with stage.group("draws"):
            pass
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["corecut: aggregation, about 5 min", "corecut: draws, about 15 s"]


def test_the_end_is_known_from_what_is_expected_and_what_was_found():
    stage = Stages()
    assert stage.outlook() == (0.0, None)
    stage.expect({"read": 0.01, "sort": 0.1, "write": 0.2})
    assert stage.outlook()[1] == pytest.approx(0.31)
    with stage("read"):
        time.sleep(0.03)
    # This machine is three times slower, or more where it is busy, but not believed to be more than five times.
    spent, left = stage.outlook()
    assert spent >= 0.03
    assert 0.9 <= left <= 1.5 + 1e-9
    stage.expect({"sort": 0.001, "write": 0.0})
    with stage("sort"):
        time.sleep(0.05)
        assert stage.outlook()[1] >= 0.15 * 0.05  # overdue: never at its end before it is over
    assert stage.outlook()[1] == 0.0


def test_a_stage_that_knows_how_far_it_is_is_believed(capsys, monkeypatch):
    monkeypatch.setattr("corecut._progress._SILENCE", 0.0)
    stage = Stages(verbose=1)
    stage.expect({"graph": 1000.0, "metrics": 2.0})
    with stage("graph"):
        time.sleep(0.02)
        stage.share(0.0)
        stage.share(0.5)
        spent, left = stage.outlook()
        assert 2.0 < left < 2.0 + 2 * spent
    assert "corecut: graph 50%, about 1 s left" in capsys.readouterr().err.splitlines()
    quiet = Stages()
    with quiet("graph"):
        quiet.share(0.0)
        quiet.share(0.5)
    assert quiet.outlook()[1] is None


def test_the_time_left_is_told_when_enough_is_known(capsys, monkeypatch):
    monkeypatch.setattr("corecut._progress._SILENCE", 0.0)
    stage = Stages(verbose=1)
    with stage("graph"):
        time.sleep(0.2)  # what comes before the work that has shares
        stage.share(0.005)
        stage.share(0.01)
        assert stage.outlook()[1] is None
        time.sleep(0.01)
        stage.share(0.11)
        assert 0.05 < stage.outlook()[1] < 1.0  # and not nine times 0.2
    assert capsys.readouterr().err.splitlines()[:3] == [
        "corecut: graph 0%",
        "corecut: graph 1%",
        "corecut: graph 11%, about 1 s left",
    ]


def test_the_end_is_known_from_the_number_of_stages():
    stage = Stages(4)
    assert stage.outlook() == (0.0, None)
    for name in ("a", "b"):
        with stage(name):
            time.sleep(0.01)
    spent, left = stage.outlook()
    assert left == pytest.approx(spent)


@pytest.mark.parametrize("method", [CoresetKernelKMeans, FastSpectralClustering, KernelKMeans])
def test_other_methods_know_their_end_too(method, monkeypatch):
    outlooks = {}

    def entered(stages, name, enter=Stages.__call__):
        outlooks[name] = stages.outlook()[1]
        return enter(stages, name)

    monkeypatch.setattr(Stages, "__call__", entered)
    graph, _ = make_sbm(100, 4, 0.2, 0.01, random_state=0)
    method(n_clusters=4, random_state=0).fit(graph)
    long = {"eigenvectors", "rounding", "kernel k-means", "coreset", "labelling"} & set(outlooks)
    assert long
    assert all(outlooks[name] > 0 for name in long)


def test_bar_on_a_terminal(monkeypatch):
    terminal = open_terminal(monkeypatch)
    with Stages(verbose=1, description="clustering") as stage:
        stage.note("between stages")
        stage.expect({"seeds": 3.0, "coreset": 60.0})
        with stage("seeds"):
            stage.say("[not markup]")
            time.sleep(0.25)
            stage.note("round 3")
        with stage("coreset"), stage("draws"):
            pass
    text = re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue())
    assert "[not markup]" in text
    assert re.search(r"clustering: seeds \S+ +\d+% 0:00:00 about 1 min left|clustering: seeds .*about \d+ s left", text)
    assert "100%" in text
    assert "between stages" not in text
    assert text.rstrip().endswith(SHOW_CURSOR)


def test_bar_without_an_end(monkeypatch):
    terminal = open_terminal(monkeypatch)
    with Stages(verbose=1) as stage, stage("searching"):
        time.sleep(0.15)
    assert "left" not in terminal.getvalue()
    assert "100%" in terminal.getvalue()


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


def test_waiting_is_shown_where_it_is_long(capsys):
    for seconds in (0.5, 20.0):
        with Screen(as_json=False, quiet=False).waiting("write", seconds):
            time.sleep(0.02)
    with Screen(as_json=False, quiet=True).waiting("write", 20.0):
        pass
    announced, over = capsys.readouterr().err.splitlines()
    assert announced == "corecut: write, about 20 s"
    assert over.startswith("corecut: write 0.0")


def test_no_stderr_at_all(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with Stages(1, verbose=1) as stage, stage("seeds"):
        stage.say("nobody listens")
    assert "seeds" in stage.timings
