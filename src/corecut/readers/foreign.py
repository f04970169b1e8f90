"""Files that are no graph, or one in a format that is not read: known by how they begin, and refused by what they are."""

from __future__ import annotations

import re

from corecut._files import GraphFileError

_LOAD_FIRST = "load it with networkx or igraph and write an edge list, or pass its adjacency matrix"
_FIND_THE_FILE = "was a page saved instead of the file? Download the file itself"

# Binary formats, by their first bytes.
_MAGIC = (
    (
        b"\x93NUMPY",
        "a NumPy array (.npy)",
        "load it with numpy.load and pass it to fit",
    ),
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
        (r"\s*(<\?xml.*?)?<graphml", "a GraphML file", _LOAD_FIRST),
        (r"\s*(<\?xml.*?)?<gexf", "a GEXF file", _LOAD_FIRST),
        (r"\s*<\?xml", "an XML file", _LOAD_FIRST),
        (r"\s*((#|creator|version|comment)[^\n]*\n\s*)*graph\s*\[", "a GML file", _LOAD_FIRST),
        (r"\s*((//|#)[^\n]*\n\s*)*(strict\s+)?(di)?graph\b\s*[^\s\[{]*\s*\{", "a Graphviz (DOT) file", _LOAD_FIRST),
        (r"\s*\*(vertices|network|arcs|edges)\b", "a Pajek file", _LOAD_FIRST),
        (r"\s*dl\s+n\s*=", "a UCINET file", _LOAD_FIRST),
        (r"(c [^\n]*\n|c\n)*p (edge|col|sp|cut) ", "a DIMACS file", _LOAD_FIRST),
        (r"\s*(\{\s*(\"|\}|$)|\[\s*(\[|\{|\"|\]|-?\d))", "a JSON file", _LOAD_FIRST),
    )
)


def refuse_foreign(start: bytes, name: str) -> None:
    """Raise a GraphFileError for the beginning of a file that is something else than a table of edges."""
    for magic, what, cure in _MAGIC:
        if start.startswith(magic):
            raise GraphFileError(f"{name}, {what}; {cure}" if what.startswith("line") else f"{name}: is {what}; {cure}")
    text = start[: 1 << 12].decode("utf-8", errors="replace")
    for pattern, what, cure in _TEXTS:
        if pattern.match(text):
            raise GraphFileError(f"{name}: is {what}; {cure}")
