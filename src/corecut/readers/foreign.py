"""Files of other programs, known by how they begin: GraphML and GML are read with networkx, others refused by what they are."""

from __future__ import annotations

import importlib
import io
import re
from typing import Any, Literal

from corecut._files import TAKE_POINTS, GraphFileError, PointsError, first_line
from corecut.advice import advise
from corecut.graph import Graph, Symmetrize, adapter_named
from corecut.readers.streams import LineBlocks, Source

Foreign = Literal["graphml", "gml"]

_LOAD_FIRST = "load it with networkx or igraph and write an edge list, or pass its adjacency matrix"
_FIND_THE_FILE = "was a page saved instead of the file? Download the file itself"

# Binary formats, by their first bytes.
_MAGIC = (
    (
        b"\x93NUMPY",
        "a NumPy array (.npy)",
        TAKE_POINTS,
    ),
    (b"\x93CORECUT MODEL", "a model of corecut", "give the file of a graph; corecut predict takes the model and new nodes"),
    (b"\x89HDF\r\n", "an HDF5 file (.h5, .h5ad)", "load it with its own program and pass the matrix of its graph"),
    (b"SQLite format 3\0", "an SQLite database", "export its table of edges as CSV"),
    (b"ARROW1", "an Arrow (Feather) file", "save the table as Parquet"),
    (b"FEA1", "a Feather file", "save the table as Parquet"),
    (b"\x89PNG", "a picture (PNG)", "give the file of a graph"),
    (b"\xff\xd8\xff", "a picture (JPEG)", "give the file of a graph"),
    (b"%PDF-", "a PDF document", "give the file of a graph"),
    (b"\x80\x04\x95", "a Python pickle", "load it in Python and pass the graph's matrix"),
    (b"\x80\x05\x95", "a Python pickle", "load it in Python and pass the graph's matrix"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
    (b"\xfd7zXZ\0", "packed with xz", "unpack it first; gzip, bzip2 and zstd are read as they are"),
    (b"\xff\xfe", "line 1: is not UTF-8 text but UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "line 1: is not UTF-8 text but UTF-16", "save it as UTF-8"),
)

# Text formats, by how their first lines read.
_TEXTS = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), what, cure)
    for pattern, what, cure in (
        (
            r"version https://git-lfs\.github\.com/",
            "a Git LFS pointer, not the file itself",
            "fetch it with `git lfs pull`",
        ),
        (r"\s*(<!doctype html|<html|<head|<body)", "a web page (HTML)", _FIND_THE_FILE),
        (r"\s*(<\?xml.*?)?<gexf", "a GEXF file", _LOAD_FIRST),
        (r"\s*<\?xml", "an XML file", _LOAD_FIRST),
        (r"\s*((//|#)[^\n]*\n\s*)*(strict\s+)?(di)?graph\b\s*[^\s\[{]*\s*\{", "a Graphviz (DOT) file", _LOAD_FIRST),
        (r"\s*\*(vertices|network|arcs|edges)\b", "a Pajek file", _LOAD_FIRST),
        (r"\s*dl\s+n\s*=", "a UCINET file", _LOAD_FIRST),
        (r"(c [^\n]*\n|c\n)*p (edge|col|sp|cut) ", "a DIMACS file", _LOAD_FIRST),
        (r"\s*(\{\s*(\"|\}|$)|\[\s*(\[|\{|\"|\]|-?\d))", "a JSON file", _LOAD_FIRST),
    )
)


# Text formats that networkx reads.
_READ: tuple[tuple[Foreign, re.Pattern[str]], ...] = (
    ("graphml", re.compile(r"\s*(<\?xml.*?)?<graphml", re.IGNORECASE | re.DOTALL)),
    ("gml", re.compile(r"\s*((#|creator|version|comment)[^\n]*\n\s*)*graph\s*\[", re.IGNORECASE | re.DOTALL)),
)


def known_foreign(start: bytes) -> Foreign | None:
    """Return the format that networkx reads for us, by the beginning of a file."""
    text = start[: 1 << 12].decode("utf-8", errors="replace")
    return next((kind for kind, pattern in _READ if pattern.match(text)), None)


def read_foreign(source: Source, kind: Foreign, *, symmetrize: Symmetrize = None, n_jobs: int | None = None) -> Graph:
    """Return the graph of a GraphML or GML file, with the nodes' names and the edges' weights, by way of networkx."""
    words = {"graphml": "GraphML", "gml": "GML"}[kind]
    try:
        nx = importlib.import_module("networkx")
    except ImportError:
        raise GraphFileError(
            f'{source.name}: {words} files need networkx; install it with: pip install "corecut[networkx]"'
        ) from None
    with LineBlocks(source) as lines:
        content = b"".join(block for _, block in lines)
    try:
        found = nx.read_graphml(io.BytesIO(content)) if kind == "graphml" else _read_gml(nx, content)
    except Exception as error:  # networkx and its parsers have no common one
        raise GraphFileError(f"{source.name}: is not a complete {words} file ({first_line(error)})") from None
    attributes = {name for _, _, data in found.edges(data=True) for name in data}
    if attributes and "weight" not in attributes:
        others = ", ".join(sorted(map(repr, attributes)))
        advise(
            f"{source.name}: edges have no attribute 'weight', but {others}; every edge weighs 1: to take another one load the "
            "file with networkx and pass corecut.adapters.networkx.to_graph(G, weight=NAME)"
        )
    try:
        graph: Graph = adapter_named("networkx").to_graph(found, symmetrize=symmetrize, n_jobs=n_jobs)
    except (ValueError, TypeError) as error:
        message = str(error).replace("G.to_undirected(), or symmetrize=", "symmetrize=").removesuffix(" to fit or read_graph")
        raise GraphFileError(f"{source.name}: {message}") from None
    return graph


def _read_gml(nx: Any, content: bytes) -> Any:
    """Return the graph of a GML file; its nodes by their labels, or by their numbers where they have none of their own."""
    text = content.decode("utf-8").splitlines()
    try:
        return nx.parse_gml(text)
    except nx.NetworkXError as error:
        if "label" not in str(error):
            raise
        return nx.parse_gml(text, label="id")


def refuse_foreign(start: bytes, name: str) -> None:
    """Raise a GraphFileError for the beginning of a file that is something else than a table of edges."""
    for magic, what, cure in _MAGIC:
        if start.startswith(magic):
            error = PointsError if cure == TAKE_POINTS else GraphFileError
            raise error(f"{name}, {what}; {cure}" if what.startswith("line") else f"{name}: is {what}; {cure}")
    text = start[: 1 << 12].decode("utf-8", errors="replace")
    for pattern, what, cure in _TEXTS:
        if pattern.match(text):
            raise GraphFileError(f"{name}: is {what}; {cure}")
