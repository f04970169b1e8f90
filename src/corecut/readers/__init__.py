"""Readers: the bytes of a file become a Graph. `read_graph` chooses the reader by the file's content and name."""

from corecut.readers.dispatch import convert_graph, guess_format, load_graph, read_graph

__all__ = ["convert_graph", "guess_format", "load_graph", "read_graph"]
