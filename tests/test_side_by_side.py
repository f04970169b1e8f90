"""Pieces of work side by side: results in order, errors and Ctrl-C for all, clocks that add up, and threads that are kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from corecut import Graph, _core, make_sbm
from corecut._progress import Stages
from corecut.advice import advise, listening
from corecut.refinement import refine_partition
from corecut.side_by_side import side_by_side


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_order_whoever_is_first(n_jobs):
    def piece(number):
        def work(threads, clock):
            time.sleep(0.02 * (4 - number))
            return number, threads

        return work

    found = side_by_side([piece(i) for i in range(4)], n_jobs=n_jobs, stage=Stages())
    assert [number for number, _ in found] == [0, 1, 2, 3]
    assert {threads for _, threads in found} == {max(1, n_jobs // min(n_jobs, 4))}


def test_an_error_of_a_piece_is_the_callers_and_ends_the_others():
    graph, _ = make_sbm(300, 4, 0.3, 0.1, random_state=0)
    matrix = Graph.from_matrix(graph).matrix
    ended = threading.Event()

    def endless(threads, clock):
        try:
            while True:
                _core.components(matrix, threads)
        finally:
            ended.set()

    def failing(threads, clock):
        time.sleep(0.05)
        raise ValueError("no good")

    with pytest.raises(ValueError, match="no good"):
        side_by_side([failing, endless], n_jobs=2, stage=Stages())
    assert ended.is_set()


def test_time_is_shared_out_by_what_the_pieces_did():
    stage = Stages()

    def piece(threads, clock):
        with clock("one"):
            time.sleep(0.02)
        with clock("other"):
            time.sleep(0.06)

    begin = time.perf_counter()
    side_by_side([piece, piece], n_jobs=2, stage=stage)
    passed = time.perf_counter() - begin
    assert list(stage.timings) == ["one", "other"]
    assert sum(stage.timings.values()) <= passed
    assert stage.timings["other"] > 2 * stage.timings["one"]


def test_time_of_pieces_without_stages_is_the_stages_that_they_run_in():
    stage = Stages()
    with stage("refinement"):
        side_by_side([lambda threads, clock: time.sleep(0.05)] * 2, n_jobs=2, stage=stage)
    assert list(stage.timings) == ["refinement"]
    assert stage.timings["refinement"] >= 0.05


def test_advice_of_a_piece_is_heard():
    with warnings.catch_warnings(), listening() as heard:
        warnings.simplefilter("ignore")
        side_by_side([lambda threads, clock: advise("take care")] * 2, n_jobs=2, stage=Stages())
    assert heard == ["take care"]


# A runner in the background has Ctrl-C ignored, and its children with it, unless they say otherwise.
ENDLESS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from corecut import Graph, _core, make_sbm
from corecut._progress import Stages
from corecut.side_by_side import side_by_side

matrix = Graph.from_matrix(make_sbm(500, 4, 0.3, 0.1, random_state=0)[0]).matrix

working = []

def endless(threads, clock):
    working.append(threads)
    try:
        sys.stdout.write("begun\\n")  # in one go: two threads write
        sys.stdout.flush()
        while True:
            _core.components(matrix, threads)
    finally:
        working.pop()

try:
    side_by_side([endless, endless], n_jobs=2, stage=Stages())
except KeyboardInterrupt:
    print("stopped", working, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are sent to processes as on Unix")
@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003, 0.05])
def test_ctrl_c_ends_all_pieces(delay):
    """Also one that comes while the caller starts threads, or just before it begins to wait."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", ENDLESS], text=True, **pipes) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=60)
        finally:
            process.kill()  # nothing endless may be left
    assert rest.splitlines()[-1] == "stopped []"
    assert errors == ""
    assert process.returncode == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes fork on Unix only")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    """Kernels keep their threads; a child has none of its parent's."""
    graph, truth = make_sbm(400, 4, 0.2, 0.02, random_state=0)
    start = np.random.default_rng(0).permutation(truth)
    here = refine_partition(graph, start, n_jobs=3).labels
    child = os.fork()
    if child == 0:
        same = np.array_equal(refine_partition(graph, start, n_jobs=3).labels, here)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
