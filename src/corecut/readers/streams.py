"""Bytes of a file in blocks of whole lines, decompressed on the way.

gzip, bzip2 and zstd are known by their first bytes, so that a wrong ending does no harm. A block is cut behind its last line
end and carries the number of its first line, so that a message about a bad line can name it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from corecut._files import GraphFileError

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
BLOCK_BYTES = 1 << 24
_PIECE_BYTES = 1 << 20
# A line longer than this is no line of an edge list, and no file may make the reader hold it.
_LONGEST_LINE = 1 << 26


def compression_of(path: Path) -> str | None:
    """Return "gzip", "bz2" or "zstd" by the file's first bytes, None for a file that is not compressed."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


@dataclass
class LineBlocks:
    """A file's lines in blocks: iterate for pairs of the first line's number (from 1) and the bytes.

    Attributes
    ----------
    path
        The file, compressed or not.
    block_bytes
        Size of the blocks; a block holds whole lines, so a long line makes it larger.
    size
        Bytes of the file as it is on disk.
    line
        Number of the next block's first line.
    """

    path: Path
    block_bytes: int = BLOCK_BYTES
    size: int = field(init=False)
    _raw: pa.NativeFile = field(init=False, repr=False)
    _stream: pa.NativeFile = field(init=False, repr=False)
    line: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        self.size = self.path.stat().st_size
        compression = compression_of(self.path)
        self._raw = pa.OSFile(str(self.path))
        self._stream = self._raw if compression is None else pa.CompressedInputStream(self._raw, compression)

    @property
    def done(self) -> int:
        """Bytes of the file read so far."""
        return int(self._raw.tell()) if not self._raw.closed else self.size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.close()
        self._raw.close()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        rest = b""
        while True:
            read = self._read(self.block_bytes, rest)
            block = rest + read
            cut = block.rfind(b"\n") + 1 if read else len(block)
            if cut == 0 and read:
                if len(block) > _LONGEST_LINE:
                    raise GraphFileError(f"{self.path}, line {self.line}: the line is too long for an edge list")
                rest = block
                continue
            block, rest = block[:cut], block[cut:]
            if block:
                yield self.line, block
                self.line += block.count(b"\n")
            if not read:
                return

    def start(self, count: int) -> bytes:
        """Return up to `count` decompressed bytes."""
        return self._read(count, b"")

    def _read(self, count: int, before: bytes) -> bytes:
        pieces: list[bytes] = []
        missing = count
        while missing > 0:
            try:
                piece = bytes(self._stream.read(min(missing, _PIECE_BYTES)))
            except OSError as error:
                cause = "end early: the file was cut short" if "runcated" in str(error) else f"are damaged ({error})"
                line = self.line + before.count(b"\n") + sum(piece.count(b"\n") for piece in pieces)
                raise GraphFileError(f"{self.path}, behind line {line}: the compressed data {cause}") from None
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)


def read_start(path: Path, count: int = 1 << 16) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with LineBlocks(path) as blocks:
        return blocks.start(count)
