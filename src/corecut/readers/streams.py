"""Bytes of a file or pipe in blocks of whole lines, decompressed on the way.

gzip, bzip2 and zstd are known by their first bytes, so that a wrong ending does no harm. A block is cut behind its last line
end and carries the number of its first line, so that a message about a bad line can name it.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from corecut._files import GraphFileError, zstd_reader

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
BLOCK_BYTES = 1 << 24
_PIECE_BYTES = 1 << 20
# A line longer than this is no line of an edge list, and no file may make the reader hold it.
LONGEST_LINE = 1 << 26
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Source:
    """A file, or a pipe, which can be read only once: what was looked at is kept for the reader.

    Attributes
    ----------
    path
        The file; "-" is standard input.
    name
        What messages call it.
    is_pipe
        Whether it can be read only once and from the beginning.
    size
        Bytes on disk; 0 for a pipe, which does not tell.
    """

    def __init__(self, path: str | Path) -> None:
        """Look what the path is; nothing is read yet."""
        if path == "":
            raise ValueError("the name of the file to read is empty; give one")
        self.path = Path(path)
        self.name = "standard input" if str(path) == "-" else str(path)
        self.is_pipe, self.size = True, 0
        self._pipe: _Pipe | None = None
        if str(path) == "-":
            return
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file {self.path}") from None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise OSError(f"{self.path} is a symbolic link that leads back to itself; give the name of a file") from None
        self.is_pipe = not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode)
        self.size = 0 if self.is_pipe else found.st_size

    def open(self) -> Any:
        """Return the bytes as a file object; of a pipe always the same."""
        if not self.is_pipe:
            return self.path.open("rb")
        if self._pipe is None:
            is_ours = str(self.path) != "-"
            self._pipe = _Pipe(self.path.open("rb") if is_ours else sys.stdin.buffer, is_ours)
        return self._pipe

    def start(self, count: int) -> bytes:
        """Return up to `count` of the first bytes, decompressed; they are not used up."""
        if not self.is_pipe:
            with LineBlocks(self) as blocks:
                return blocks.start(count)
        # What a pipe has shown so far may end in the midst of compressed data.
        stream, begin = unpacked(io.BytesIO(self.open().peek(max(count, _PIECE_BYTES // 16)))), b""
        while len(begin) < count:
            try:
                piece = stream.read(min(count - len(begin), 1024))
            except (OSError, EOFError, zlib.error):
                break
            if not piece:
                break
            begin += bytes(piece)
        return begin.removeprefix(_BYTE_ORDER_MARK)

    def require_file(self, what: str) -> Path:
        """Return the path, for formats that cannot be read in one go from the beginning to the end."""
        if self.is_pipe:
            raise GraphFileError(f"{self.name}: {what} cannot be read from a pipe; save it as a file first")
        return self.path


class _Pipe:
    """A stream that can be looked at before it is read."""

    def __init__(self, file: Any, is_ours: bool) -> None:
        self._file = file
        self._is_ours = is_ours
        self._head = b""
        self._given = 0

    def peek(self, count: int) -> bytes:
        while len(self._head) < count:
            piece = self._file.read(count - len(self._head))
            if not piece:
                break
            self._head += piece
        return self._head

    def read(self, count: int = -1) -> bytes:
        piece = self._head if count < 0 else self._head[:count]
        self._head = self._head[len(piece) :]
        if not piece or count < 0:
            piece += self._file.read(count)
        self._given += len(piece)
        return piece

    def tell(self) -> int:
        return self._given

    def seek(self, position: int, whence: int = 0) -> int:
        raise io.UnsupportedOperation("a pipe cannot be read again")

    def close(self) -> None:
        if self._is_ours:
            self._file.close()

    def __del__(self) -> None:
        self.close()


class _Bz2:
    """The bytes of streams of bzip2, one behind another. Python's reader takes a damaged stream behind one for the end."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._unpacker = bz2.BZ2Decompressor()

    def read(self, count: int) -> bytes:
        while True:
            packed = b""
            if self._unpacker.eof:
                packed = self._unpacker.unused_data or self._raw.read(_PIECE_BYTES)
                if not packed:
                    return b""
                self._unpacker = bz2.BZ2Decompressor()
            elif self._unpacker.needs_input:
                packed = self._raw.read(_PIECE_BYTES)
                if not packed:
                    raise EOFError("the last stream has no end")
            piece = self._unpacker.decompress(packed, count)
            if piece:
                return piece

    def close(self) -> None:
        """Nothing to close: the file belongs to the caller."""


def unpacked(raw: Any) -> Any:
    """Return a stream of the decompressed bytes of a file object, or the object itself when it is not compressed."""
    if isinstance(raw, _Pipe):
        begin = raw.peek(4)
    else:
        begin = raw.read(4)
        raw.seek(0)
    packing = next((name for magic, name in _MAGIC.items() if begin.startswith(magic)), None)
    if packing == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if packing == "bz2":
        return _Bz2(raw)
    return zstd_reader(raw) if packing else raw


class LineBlocks:
    """A file's lines in blocks: iterate for pairs of the first line's number (from 1) and the bytes.

    A mark of the byte order is left out, and the line ends of old Macs (a carriage return alone) become those of all others.

    Attributes
    ----------
    name
        What messages call the file.
    block_bytes
        Size of the blocks; a block holds whole lines, so a long line makes it larger.
    size
        Bytes of the file as it is on disk, 0 when it is a pipe.
    line
        Number of the next block's first line.
    """

    def __init__(self, source: Source | str | Path, block_bytes: int = BLOCK_BYTES) -> None:
        """Open the file."""
        source = source if isinstance(source, Source) else Source(source)
        self.name = source.name
        self.block_bytes = block_bytes
        self.size = source.size
        self.line = 1
        self._raw = source.open()
        self._stream = unpacked(self._raw)
        self.packed = self._stream is not self._raw

    @property
    def done(self) -> int:
        """Bytes of the file read so far."""
        return self.size if getattr(self._raw, "closed", False) else int(self._raw.tell())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stream.close()
        self._raw.close()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        rest = b""
        old_mac: bool | None = None
        while True:
            read = self._read(self.block_bytes, rest)
            if old_mac is None:
                read = read.removeprefix(_BYTE_ORDER_MARK)
                old_mac = b"\n" not in read and b"\r" in read[:-1]
            if old_mac:
                read = read.replace(b"\r", b"\n")
            block = rest + read
            cut = block.rfind(b"\n") + 1 if read else len(block)
            if cut == 0 and read:
                if len(block) > LONGEST_LINE:
                    raise GraphFileError(f"{self.name}, line {self.line}: the line is too long for a graph's file")
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
        return self._read(count, b"").removeprefix(_BYTE_ORDER_MARK)

    def _read(self, count: int, before: bytes) -> bytes:
        pieces: list[bytes] = []
        missing = count
        while missing > 0:
            try:
                piece = bytes(self._stream.read(min(missing, _PIECE_BYTES)))
            except (OSError, EOFError, zlib.error) as error:
                if not self.packed:
                    raise
                ended = isinstance(error, EOFError) or "runcated" in str(error)
                cause = "end early: the file was cut short" if ended else f"are damaged ({error})"
                line = self.line + before.count(b"\n") + sum(piece.count(b"\n") for piece in pieces)
                raise GraphFileError(f"{self.name}, behind line {line}: the compressed data {cause}") from None
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)
