"""Edge tables in Parquet: a column of sources, one of targets, perhaps one of weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from corecut._files import GraphFileError
from corecut._typing import AnyArray, FloatArray
from corecut.readers.layout import SOURCE_NAMES, TARGET_NAMES, WEIGHT_NAMES, EdgeOptions
from corecut.readers.names import NameTable

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
        try:
            # By default Arrow would hold the whole file.
            self._file = pq.ParquetFile(path, pre_buffer=False)
        except (pa.ArrowException, OSError) as error:
            raise GraphFileError(f"{path}: is not a complete Parquet file ({_first_line(error)})") from None
        self.n_rows = int(self._file.metadata.num_rows)
        schema = self._file.schema_arrow
        self._columns = self._choose(schema.names)
        types = [schema.field(name).type for name in self._columns[:2]]
        text = [_is_text(kind) for kind in types]
        for name, kind in zip(self._columns[:2], types, strict=True):
            if not _is_text(kind) and not pa.types.is_integer(kind):
                raise GraphFileError(f"{path}: column {name!r} holds {kind}, ids must be integers or text")
        as_text = any(text) or self.options.ids == "text"
        self.names = NameTable() if as_text else None

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
            except (pa.ArrowException, OSError) as error:
                if isinstance(error, GraphFileError):
                    raise
                raise GraphFileError(f"{self.path}, behind row {self._row}: is damaged ({_first_line(error)})") from None

    def _block(self, batch: pa.RecordBatch) -> tuple[AnyArray, AnyArray, FloatArray | None]:
        for name in self._columns:
            column = batch.column(name)
            if column.null_count:
                row = self._row + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                raise GraphFileError(f"{self.path}, row {row}: column {name!r} has no value")
        weight: FloatArray | None = None
        if len(self._columns) > 2:
            weight = self._weights(batch.column(self._columns[2]))
        source, target = batch.column(self._columns[0]), batch.column(self._columns[1])
        if self.names is not None:
            columns = [pa.chunked_array([c.cast(pa.large_string())]) for c in (source, target)]
            return *self.names.numbers(columns[0], columns[1]), weight
        try:
            return source.cast(pa.int64()).to_numpy(), target.cast(pa.int64()).to_numpy(), weight
        except pa.ArrowInvalid:
            raise GraphFileError(
                f'{self.path}, in the rows from {self._row} on: an id does not fit in 64 bits; read ids as "text"'
            ) from None

    def _weights(self, column: pa.Array) -> FloatArray:
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
            source = next((name for name in names if name.lower() in SOURCE_NAMES), names[0])
            others = [name for name in names if name != source]
            target = next((name for name in others if name.lower() in TARGET_NAMES), others[0])
            weight = [name for name in others if name.lower() in WEIGHT_NAMES and name != target]
            chosen = [source, target, *weight[:1]]
        return chosen if self.options.weights else chosen[:2]


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
