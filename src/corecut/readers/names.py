"""Text ids and their numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute

from corecut._typing import AnyArray, IntArray


class NameTable:
    """Numbers text ids in the order in which they are first met. Held in memory, about 100 bytes per name."""

    def __init__(self) -> None:
        """Begin with no names."""
        self._number_of: dict[str, int] = {}
        self.has_empty = False

    def numbers(self, source: pa.ChunkedArray, target: pa.ChunkedArray, *, trim: bool = False) -> tuple[IntArray, IntArray]:
        """Return the numbers of two columns of names, new ones numbered on in the order of the lines."""
        both = pa.chunked_array(source.chunks + target.chunks, type=source.type).cast(pa.large_string())
        if trim:
            both = pa.compute.utf8_trim_whitespace(both)
        coded = both.combine_chunks().dictionary_encode()
        names, codes = coded.dictionary.to_pylist(), coded.indices.to_numpy()
        self.has_empty = self.has_empty or "" in names
        # Only the distinct names of a block are looked up one by one, in the order of their first place: that makes the
        # numbers independent of how the file was cut into blocks.
        half = codes.size // 2
        in_lines = np.empty_like(codes)
        in_lines[0::2], in_lines[1::2] = codes[:half], codes[half:]
        first = np.empty(len(names), np.int64)
        first[in_lines[::-1]] = np.arange(codes.size)[::-1]
        table = np.empty(len(names), np.int64)
        for i in np.argsort(first).tolist():
            table[i] = self._number_of.setdefault(names[i], len(self._number_of))
        return table[codes[:half]], table[codes[half:]]

    def __len__(self) -> int:
        return len(self._number_of)

    def array(self) -> AnyArray:
        """Return all names in the order of their numbers."""
        names = np.empty(len(self._number_of), object)
        names[:] = list(self._number_of)
        return names
