"""The codebase itself: short modules, downhill imports, a quick import, one version, public names that explain themselves."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib
import importlib.metadata
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import corecut

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "corecut"

# The order of the pipeline. A module, or a folder of modules, imports only from places before its own; a new one must be
# given its place here.
ORDER = [
    "_core",
    "_typing",
    "advice",
    "_validation",
    "_random",
    "_progress",
    "_threads",
    "side_by_side",
    "_locks",
    "_files",
    "size_bounds",
    "sparse_structure",
    "graph",
    "edges",
    "node_ids",
    "stored_files",
    "store",
    "readers",
    "writers",
    "labels",
    "kernel",
    "races",
    "engines",
    "objective",
    "merging",
    "weighted",
    "shelf",
    "aggregation",
    "sampling",
    "coreset",
    "coreset_graphs",
    "spectral",
    "labelling",
    "refinement",
    "repair",
    "cycles",
    "polishing",
    "halving",
    "borders",
    "metrics",
    "lloyd",
    "point_screens",
    "point_cells",
    "point_gaps",
    "neighbor_search",
    "neighbors",
    "confidence",
    "prediction",
    "model_files",
    "model_content",
    "memory",
    "settings",
    "durations",
    "estimates",
    "placement",
    "draws",
    "stretches",
    "soundness",
    "balancing",
    "small_parts",
    "descent",
    "paths",
    "description",
    "selection",
    "facts",
    "drawing",
    "pipeline",
    "kinds",
    "affinities",
    "clusterer",
    "estimators",
    "scikit_learn",
    "baselines",
    "models",
    "adapters",
    "datasets",
    "plots",
    "reporting",
    "experiments",
    "commands",
    "cli",
    "__main__",
]

# What `import corecut` may load from outside the standard library. NumPy's f2py, which SciPy loads, takes charset_normalizer
# where another package, such as a tool of the documentation, has brought it.
QUICK = {"corecut", "numpy", "scipy", "charset_normalizer"}

LONGEST_MODULE = 500
MOST_POSITIONAL = 3
# A block model is known by its four numbers, in this order.
MORE_POSITIONAL = {"make_sbm": 4}

MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
NATIVE = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.[ch]pp"))
PUBLIC = sorted(corecut.__all__)


def place_of(module: str) -> int:
    """Return the position in ORDER of a dotted module name relative to the package."""
    folder = module.partition(".")[0]
    assert folder in ORDER, f"the module corecut.{module} has no place in ORDER"
    return ORDER.index(folder)


def imported_modules(tree: ast.AST) -> set[str]:
    """Return the modules of the package that a module imports, anywhere in it, relative to the package."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("corecut.")}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "corecut":
                found |= {corecut._MODULE_OF.get(alias.name, alias.name) for alias in node.names}
            elif (node.module or "").startswith("corecut."):
                found.add(str(node.module).partition(".")[2])
    return found - {"__version__"}


def public_callables() -> list[tuple[str, object]]:
    """Return every public function, and of every public class the constructor and the public methods of its own."""
    found: list[tuple[str, object]] = []
    for name in PUBLIC:
        value = getattr(corecut, name)
        if inspect.isclass(value):
            if not dataclasses.is_dataclass(value):  # a record's fields are its arguments
                found.append((name, value))
            for key, member in vars(value).items():
                function = getattr(member, "__func__", member)
                if not key.startswith("_") and inspect.isfunction(function):
                    found.append((f"{name}.{key}", getattr(value, key)))
        elif inspect.isfunction(value):
            found.append((name, value))
    return found


@pytest.mark.parametrize("path", MODULES + NATIVE, ids=str)
def test_modules_are_short(path):
    assert len((SOURCE / path).read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE


@pytest.mark.parametrize("path", [path for path in MODULES if path != Path("__init__.py")], ids=str)
def test_imports_run_downhill(path):
    parts = path.with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    place = place_of(module)
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    for imported in imported_modules(tree):
        same_folder = imported.partition(".")[0] == module.partition(".")[0]
        assert same_folder or place_of(imported) < place, f"corecut.{module} imports corecut.{imported}"


def test_every_place_in_the_order_is_taken():
    existing = {path.with_suffix("").parts[0] for path in MODULES} | {"_core"}
    assert sorted(set(ORDER) - existing) == []


@pytest.mark.parametrize("path", NATIVE, ids=str)
def test_kernels_know_no_python(path):
    text = (SOURCE / path).read_text(encoding="utf-8")
    if "bindings" not in path.stem:
        assert not re.search(r"#include\s*[<\"](nanobind|Python)", text)


@pytest.mark.parametrize("names", ["__version__", "Graph, corecut.build_coreset, corecut.label_nodes, corecut.normalized_cut"])
def test_import_is_quick(names):
    script = f"import sys; before = set(sys.modules); import corecut; corecut.{names}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "corecut" in loaded
    assert loaded & set(importlib.metadata.packages_distributions()) <= QUICK


def test_one_version_number():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert (ROOT / project["tool"]["scikit-build"]["metadata"]["version"]["input"]) == SOURCE / "__init__.py"
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert citation is not None
    assert citation[1] == corecut.__version__
    newest = re.search(r"^## \[(\d\S*)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == corecut.__version__
    try:
        installed = importlib.metadata.version("corecut")
    except importlib.metadata.PackageNotFoundError:
        return  # run from the source tree
    assert installed == corecut.__version__


def test_type_checkers_see_the_names_that_are_loaded_lazily():
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, "only `import x as x` re-exports"
            seen[alias.name] = str(node.module).removeprefix("corecut.")
    assert seen == corecut._MODULE_OF


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_resolve_and_are_documented(name):
    # All modules first: importing a module must not hide a public name that is spelled like it.
    for module in set(corecut._MODULE_OF.values()):
        importlib.import_module(f"corecut.{module}")
    value = getattr(corecut, name)
    assert not inspect.ismodule(value)
    assert value.__module__.startswith(f"corecut.{corecut._MODULE_OF[name]}")
    assert inspect.getdoc(value)
    assert name in dir(corecut)


def test_no_module_is_called_like_a_public_name():
    # Importing a module binds it in its package, which would hide the function or class of that name from then on.
    modules = {path.with_suffix("").parts[0] for path in MODULES}
    assert modules & set(PUBLIC) == set()


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'corecut' has no attribute 'nonsense'"):
        _ = corecut.nonsense


@pytest.mark.parametrize(("name", "function"), public_callables(), ids=lambda value: value if isinstance(value, str) else "")
def test_few_positional_parameters(name, function):
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for key, p in inspect.signature(function).parameters.items() if p.kind in kinds and key != "self"]
    assert len(positional) <= MORE_POSITIONAL.get(name, MOST_POSITIONAL)


@pytest.mark.parametrize(
    "name", [name for name in PUBLIC if inspect.isfunction(getattr(corecut, name)) or hasattr(getattr(corecut, name), "fit")]
)
def test_public_functions_and_estimators_show_an_example(name):
    examples = [example for test in doctest.DocTestFinder().find(getattr(corecut, name)) for example in test.examples]
    assert examples


@pytest.mark.parametrize(
    "module", sorted(info.name for info in pkgutil.walk_packages(corecut.__path__, "corecut.") if info.name != "corecut._core")
)
def test_examples_in_docstrings_run(module):
    with np.printoptions():  # an example that sets print options must not change the next one
        result = doctest.testmod(importlib.import_module(module))
    assert result.failed == 0
