"""Labels of new data: how good they are beside labels of a fit, how quick, and what a saved model takes.

    python benchmarks/prediction.py                     everything: about ten minutes on 2 cores, most of it MNIST's neighbours
    python benchmarks/prediction.py --quick             small graphs and PenDigits alone
    python benchmarks/prediction.py --json out.json     also write the figures

Points (from the folder that CORECUT_DATA names): a model of 80 % of them labels the rest; ARI of both parts against the truth,
and the standard deviation of the ARI of random parts of the fitted points that are as large as the rest ("by chance").
Graphs: a model of 90 % of the nodes labels the others from their rows; how many of them get the label that a fit of the whole
graph gives them, after matching the clusters of both fits by overlap ("touching": of those that have a fitted neighbour;
"kept": the same of the fitted nodes, what two fits of nearly the same graph differ by; "neighbours": of the touching ones, how
many have the label that most of their fitted neighbours have in the fit of the whole graph). On the fitted rows: how many keep
their label, and how many would choose it again by the rule for new nodes, which knows nothing of them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from graphs import Planted, data_folder
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from corecut import CoresetSpectralClustering, load, prediction, read_graph
from corecut.datasets.points import load_points
from corecut.neighbors import nearest
from corecut.prediction import FittedInput, predict_rows

PLANTED = [
    Planted(20_000, 20, 16, 0.2),
    Planted(20_000, 100, 16, 0.2, "powerlaw"),
    Planted(50_000, 10, 8, 0.2),
    Planted(100_000, 100, 30, 0.2),
]
LABELLED = {"email_eu_core": 42, "amazon_photo": 8, "coauthor_cs": 15, "cora": 7, "cord19_entities": 9}


def points(name: str, seed: int) -> dict[str, Any]:
    """Fit 80 % of a set of points and label the rest."""
    X, truth = load_points(name)
    X = X.astype(np.float32)
    order = np.random.default_rng(seed).permutation(truth.size)
    train, rest = np.split(order, [int(0.8 * truth.size)])
    model = CoresetSpectralClustering(10, random_state=seed).fit(X[train])
    begin = time.perf_counter()
    found = nearest(model._source.points, X[rest], model._source.n_neighbors)
    searched = time.perf_counter() - begin
    with mock.patch.object(prediction, "nearest", lambda points, queries, *_, **__: (found[0][: len(queries)], None)):
        model.predict(X[rest][:10])  # tables that are made once
        begin = time.perf_counter()
        labels = model.predict(X[rest])
        seconds = time.perf_counter() - begin
    # What parts of the fitted points, as large as the rest, differ by: chance, not prediction.
    draw = np.random.default_rng(seed)
    parts = (draw.permutation(train.size)[: rest.size] for _ in range(50))
    spread = float(np.std([adjusted_rand_score(truth[train][part], model.labels_[part]) for part in parts]))
    figures = {"train": adjusted_rand_score(truth[train], model.labels_), "rest": adjusted_rand_score(truth[rest], labels)}
    return figures | {"spread": spread, "points_per_second": rest.size / seconds, "search_seconds": searched}


def graph(matrix: Any, k: int, seed: int = 0) -> dict[str, Any]:
    """Hide a tenth of a graph's nodes and label them from their rows."""
    n = matrix.shape[0]
    whole = CoresetSpectralClustering(k, random_state=seed).fit(matrix)
    out = np.random.default_rng(seed + 1).random(n) < 0.1
    known, new = np.flatnonzero(~out), np.flatnonzero(out)
    model = CoresetSpectralClustering(k, random_state=seed).fit(matrix[known][:, known])
    rows = matrix[new][:, known]
    begin = time.perf_counter()
    found = model.predict(rows)
    seconds = time.perf_counter() - begin
    overlap = np.zeros((k, k))
    np.add.at(overlap, (model.labels_, whole.labels_[known]), 1)
    match = linear_sum_assignment(overlap, maximize=True)[1]
    touching = np.asarray(rows.sum(axis=1)).ravel() > 0
    # What a rule could know at best: the labels that the whole fit itself gives to the fitted neighbours.
    votes = (rows @ np.eye(k)[whole.labels_[known]])[touching]
    strangers = FittedInput("precomputed", n, fingerprints=np.zeros(n, np.uint64))
    by_rule = predict_rows(whole._clusters, strangers, matrix)[0]
    return {
        "hidden": float(np.mean(match[found] == whole.labels_[new])),
        "hidden_touching": float(np.mean((match[found] == whole.labels_[new])[touching])),
        "by_neighbours": float(np.mean(votes.argmax(axis=1) == whole.labels_[new][touching])),
        "kept": float(np.mean(match[model.labels_] == whole.labels_[known])),
        "fitted_rows": float(np.mean(whole.predict(matrix) == whole.labels_)),
        "by_rule": float(np.mean(by_rule == whole.labels_)),
        "rows_per_second": new.size / seconds,
        **_saved(whole),
    }


def _saved(model: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        begin = time.perf_counter()
        model.save(path)
        middle = time.perf_counter()
        load(path)
        end = time.perf_counter()
        return {"bytes": path.stat().st_size, "save_ms": 1e3 * (middle - begin), "load_ms": 1e3 * (end - middle)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small graphs and PenDigits alone")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write all figures to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of graphs in several parts
    rows: dict[str, Any] = {}
    print(f"{'points':16}{'seed':>5}{'ARI fitted':>12}{'ARI new':>9}{'by chance':>12}{'points/s':>12}{'search s':>10}")
    sets = {"pendigits": 3} if options.quick else {"pendigits": 10, "mnist": 2}
    for name, seeds in sets.items() if data_folder() else ():
        for seed in range(seeds):
            one = rows[f"{name} {seed}"] = points(name, seed)
            speed = f"{one['points_per_second']:12,.0f}{one['search_seconds']:10.2f}"
            print(f"{name:16}{seed:5}{one['train']:12.3f}{one['rest']:9.3f}{one['spread']:12.3f}{speed}", flush=True)
        mean = np.mean([rows[f"{name} {seed}"]["rest"] - rows[f"{name} {seed}"]["train"] for seed in range(seeds)])
        print(f"{name}: new less fitted, mean of {seeds}: {mean:+.3f}")
    heads = ("hidden", "touching", "neighbours", "kept", "fitted rows", "by rule", "rows/s", "model kB", "save ms", "load ms")
    print(f"\n{'graph':36}" + "".join(f"{head:>12}" for head in heads))
    problems = {one.name: (one.make()[0], one.n_clusters) for one in PLANTED[: 2 if options.quick else None]}
    if data_folder():
        folder = data_folder()
        names = list(LABELLED)[: 2 if options.quick else None]
        problems |= {name: (read_graph(folder / f"{name}.npz").adjacency, LABELLED[name]) for name in names}
    for name, (matrix, k) in problems.items():
        one = rows[name] = graph(matrix, k)
        shares = "".join(
            f"{one[key]:12.4f}" for key in ("hidden", "hidden_touching", "by_neighbours", "kept", "fitted_rows", "by_rule")
        )
        sizes = f"{one['rows_per_second']:12,.0f}{one['bytes'] / 1e3:12,.0f}{one['save_ms']:12.1f}{one['load_ms']:12.1f}"
        print(f"{name:36}{shares}{sizes}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
