"""Memory: the documented bounds hold, with many threads and many clusters too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from corecut.memory import aggregation_bytes, coreset_bytes

# Peak memory is the growth of the high-water mark in a process of its own, after a first fit that loads the libraries.
SCRIPT = """
import ctypes, json, re, sys, warnings
from pathlib import Path
import numpy as np
from corecut import CoresetSpectralClustering, Graph, make_degree_corrected_sbm

warnings.simplefilter("ignore")
n, degree, settings = json.loads(sys.argv[1])
CoresetSpectralClustering(3, random_state=0).fit(make_degree_corrected_sbm(5000, 3, random_state=0)[0])
graph = Graph.from_matrix(make_degree_corrected_sbm(n, 50, mean_degree=degree, random_state=0, dtype=np.float32)[0])

def mark():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

ctypes.CDLL(None).malloc_trim(0)
Path("/proc/self/clear_refs").write_text("5")
before = mark()
CoresetSpectralClustering(random_state=0, **settings).fit(graph)
print(graph.n_entries, mark() - before)
"""


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer takes memory of its own")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("n", "degree", "settings"),
    [
        (150_000, 6, {"n_clusters": 100, "n_jobs": 2}),
        (150_000, 6, {"n_clusters": 2000, "n_jobs": 2}),
        (40_000, 20, {"n_clusters": 2000, "n_jobs": 2}),  # the vectors of many clusters
        (150_000, 20, {"n_clusters": 100, "n_jobs": 32}),
        (150_000, 6, {"n_clusters": 100, "n_jobs": 2, "aggregate": False, "coreset_size": 10_000}),
        (150_000, 20, {"n_clusters": 1000, "n_jobs": 32, "aggregate": False, "coreset_size": 10_000, "refine": False}),
    ],
)
def test_a_fit_keeps_within_the_documented_bound(n: int, degree: float, settings: dict[str, Any]) -> None:
    arguments = json.dumps([n, degree, settings])
    done = subprocess.run([sys.executable, "-c", SCRIPT, arguments], capture_output=True, text=True, check=True)
    entries, used = map(int, done.stdout.split())
    k, jobs, size = settings["n_clusters"], settings["n_jobs"], settings.get("coreset_size")
    if size:
        assert used <= coreset_bytes(n, entries, k, coreset_size=size, n_jobs=jobs)
    else:
        assert used <= aggregation_bytes(n, entries, k, n_jobs=jobs)
