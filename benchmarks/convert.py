"""A text file of edges becomes a store: time and memory beside reading it with pandas or polars and adding A + Aᵀ in scipy.

    python benchmarks/convert.py                     20 million edges, about two minutes on 2 cores
    python benchmarks/convert.py --edges 2000000     smaller

Each way runs in a process of its own. Both results must be the same matrix. Needs the extra `bench`. Linux only: peak memory is
the highest anonymous memory (RssAnon).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scale import Meter

from corecut import GraphStore
from corecut.readers import convert_graph


def make_file(path: Path, edges: int) -> None:
    rng = np.random.default_rng(0)
    nodes = max(edges // 20, 2)
    with path.open("w") as file:
        file.write("# undirected graph\n")
        for _ in range(0, edges, 1_000_000):
            block = rng.integers(0, nodes, (min(edges, 1_000_000), 2))
            file.write("\n".join(f"{u}\t{v}" for u, v in block.tolist()) + "\n")


def with_scipy(read: Any) -> sp.csr_array:
    u, v = read()
    n = int(max(u.max(), v.max())) + 1
    half = sp.coo_array((np.ones(u.size), (u.astype(np.int32), v.astype(np.int32))), shape=(n, n)).tocsr()
    return sp.csr_array(half + half.T)


def by_pandas(path: Path, _: Path) -> sp.csr_array:
    import pandas as pd

    return with_scipy(lambda: pd.read_csv(path, sep=r"\s+", comment="#", header=None, dtype=np.int64).to_numpy().T)


def by_polars(path: Path, _: Path) -> sp.csr_array:
    import polars as pl

    return with_scipy(lambda: pl.read_csv(path, separator="\t", comment_prefix="#", has_header=False).to_numpy().T)


def by_corecut(path: Path, store: Path) -> None:
    convert_graph(path, store, memory="1GB", overwrite=True)


WAYS = {"pandas": by_pandas, "polars": by_polars, "corecut": by_corecut}


def child(way: str, path: Path, store: Path) -> None:
    with Meter() as meter:
        matrix = WAYS[way](path, store)
    if matrix is not None:  # the same graph: unit weights, ids that occur
        graph = GraphStore.open(store).graph
        used = slice(None) if graph.node_ids is None else np.asarray(graph.node_ids)
        same = matrix[used][:, used] if graph.node_ids is not None else matrix
        assert np.array_equal(same.indptr, graph.indptr)
        assert np.array_equal(same.indices, graph.indices)
    print(json.dumps(meter.report()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], Path(arguments.child[1]), Path(arguments.child[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path, store = Path(folder) / "edges.txt", Path(folder) / "graph.store"
        make_file(path, arguments.edges)
        for way in reversed(WAYS):
            runs = []
            for _ in range(arguments.repeats):
                command = [sys.executable, __file__, "--child", way, str(path), str(store)]
                runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
            best, cpu = (min(run[name] for run in runs) for name in ("seconds", "cpu_seconds"))
            peak = max(run["peak_bytes"] for run in runs)
            print(f"{way}: {best:.2f} s ({cpu:.2f} s CPU), {peak / 1e9:.2f} GB ({arguments.edges:,} edges)", flush=True)


if __name__ == "__main__":
    main()
