"""Advice: every warning shows the line of the caller, however deep in the package it was found."""

from __future__ import annotations

import ast
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest

from corecut import CoresetSpectralClustering, make_sbm
from corecut.advice import advise

SOURCE = Path(__file__).parents[1] / "src" / "corecut"


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_advice_from_outside_shows_its_own_line():
    expected = line() + 2
    with pytest.warns(UserWarning, match="words") as caught:
        advise("words")
    assert (caught[0].filename, caught[0].lineno) == (__file__, expected)


def test_the_line_of_fit_is_shown_for_any_way_into_the_package():
    X = make_sbm(10, 3, 0.9, 0.1, random_state=0)[0].toarray()
    for method in ("fit", "fit_predict"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            getattr(CoresetSpectralClustering(3, random_state=0), method)(np.array(X))
            expected = line() - 1
        assert [(Path(one.filename).name, one.lineno) for one in caught] == [("test_advice.py", expected)]


def test_warnings_have_one_home():
    found = set()
    for path in SOURCE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        if any(ast.unparse(call.func) == "warnings.warn" for call in calls):
            found.add(path.name)
    assert found == {"advice.py"}
