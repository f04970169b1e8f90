"""Edge tables in Parquet: a column of sources, one of targets, perhaps one of weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from corecut import _core
from corecut._files import GraphFileError, first_line, require_arrow
from corecut._typing import AnyArray, FloatArray, IntArray
from corecut.node_ids import names_array
from corecut.readers.layout import SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES, EdgeOptions, require_edges

_BATCH_ROWS = 1 << 19


class ParquetReader:
    """The edges of a Parquet file in blocks; the same interface as `EdgeListReader`."""

    def __init__(self, path: Path, options: EdgeOptions | None = None) -> None:
        """Open the file and choose the columns: by name, else the first two, and a weight only by name."""
        self.path = path
        self.options = options or EdgeOptions()
        self.comments = 0
        self.size = path.stat().st_size
        self._row = 0
        pa, pq = require_arrow(f"{path}: Parquet files", "parquet")
        self._pa = pa
        try:
            # By default Arrow would hold the whole file.
            self._file = pq.ParquetFile(path, pre_buffer=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise GraphFileError(f"{path}: is not a complete Parquet file ({first_line(error)})") from None
        self.n_rows = int(self._file.metadata.num_rows)
        schema = self._file.schema_arrow
        self._columns = self._choose(schema.names)
        for name in self._columns:
            if schema.names.count(name) > 1:
                raise GraphFileError(f"{path}: there is more than one column {name!r}; name them differently")
        types = [schema.field(name).type for name in self._columns[:2]]
        for name, kind in zip(self._columns[:2], types, strict=True):
            if not self._is_text(kind) and not pa.types.is_integer(kind):
                raise GraphFileError(f"{path}: column {name!r} holds {kind}, ids must be integers or text")
            if self._is_text(kind) and self.options.ids == "integer":
                raise GraphFileError(f'{path}: column {name!r} holds text, not integers; read ids as "text"')
        as_text = any(map(self._is_text, types)) or self.options.ids == "text"
        self._names = _core.NameTable() if as_text else None

    @property
    def n_names(self) -> int | None:
        """Number of text ids met so far; None for integer ids."""
        return None if self._names is None else int(self._names.n_names)

    def names(self) -> AnyArray:
        """Return all text ids in the order of their numbers."""
        assert self._names is not None
        return names_array(*self._names.names())

    @property
    def done(self) -> int:
        """Bytes of the file read so far, about."""
        return self.size * self._row // max(self.n_rows, 1)

    def blocks(self) -> Iterator[tuple[AnyArray, AnyArray, FloatArray | None]]:
        """Give sources, targets and weights, batch by batch."""
        if self.n_rows == 0:
            raise GraphFileError(f"{self.path}: there is no edge in this file")
        with self._file:
            try:
                for batch in self._file.iter_batches(_BATCH_ROWS, columns=self._columns):
                    block = self._block(batch)
                    self._row += batch.num_rows
                    yield block
            except (self._pa.ArrowException, OSError, ValueError) as error:
                if isinstance(error, GraphFileError):
                    raise
                raise GraphFileError(f"{self.path}, behind row {self._row}: is damaged ({first_line(error)})") from None

    def _block(self, batch: Any) -> tuple[AnyArray, AnyArray, FloatArray | None]:
        for name in self._columns:
            column = batch.column(name)
            if column.null_count:
                row = self._row + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                raise GraphFileError(f"{self.path}, row {row}: column {name!r} has no value")
        weight: FloatArray | None = None
        if len(self._columns) > 2:
            weight = self._weights(batch.column(self._columns[2]))
        source, target = batch.column(self._columns[0]), batch.column(self._columns[1])
        if self._names is not None:
            return *self._names.add(*self._text(source), *self._text(target)), weight
        int64 = self._pa.int64()
        try:
            return source.cast(int64).to_numpy(), target.cast(int64).to_numpy(), weight
        except self._pa.ArrowInvalid:
            raise GraphFileError(
                f'{self.path}, in the rows from {self._row} on: an id does not fit in 64 bits; read ids as "text"'
            ) from None

    def _text(self, column: Any) -> tuple[AnyArray, IntArray]:
        """Return the bytes and the offsets of a column as text."""
        text = column.cast(self._pa.large_string())
        _, offsets, data = text.buffers()
        borders = np.frombuffer(offsets, np.int64, count=text.offset + len(text) + 1)[text.offset :]
        return (np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)), borders

    def _weights(self, column: Any) -> FloatArray:
        pa = self._pa
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
            raise GraphFileError(f"{self.path}: column {self._columns[2]!r} holds {column.type}, weights must be numbers")
        weight: FloatArray = column.cast(pa.float64()).to_numpy()
        bad = ~np.isfinite(weight) | (weight < 0)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise GraphFileError(f"{self.path}, row {self._row + row}: weight {weight[row]:g} is negative or not finite")
        return weight

    def _choose(self, names: list[str]) -> list[str]:
        if self.options.columns is not None:
            chosen = [names[c] if isinstance(c, int) and 0 <= c < len(names) else str(c) for c in self.options.columns]
            missing = [name for name in chosen if name not in names]
            if missing:
                raise GraphFileError(f"{self.path}: there is no column {missing[0]!r}; the columns are {', '.join(names)}")
        else:
            if len(names) < 2:
                raise GraphFileError(f"{self.path}: an edge needs two columns, the table has {len(names)}")
            require_edges([name.lower() for name in names], len(names), str(self.path))
            source = next((name for name in names if name.lower() in SOURCE_NAMES), names[0])
            others = [name for name in names if name != source]
            target = next((name for name in others if name.lower() in TARGET_NAMES), (others or names)[0])
            weight = [name for name in others if name.lower() in WEIGHT_NAMES and name != target]
            chosen = [source, target, *weight[:1]]
        return chosen if self.options.weights else chosen[:2]

    def _is_text(self, kind: Any) -> bool:
        types = self._pa.types
        if types.is_dictionary(kind):
            return self._is_text(kind.value_type)
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
