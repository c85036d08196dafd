"""Log lines in little memory: each piece stays compressed until it is read."""

import os
from collections.abc import Sequence
from io import FileIO

import zstandard

# Higher levels are slower and make log lines little smaller.
_LEVEL = 1


class Spool:
    """The lines of one body. Safe to read in several threads at once."""

    def __init__(self) -> None:
        # One growing block. Thousands of small blocks between larger, freed ones would leave a
        # heap of holes, as large as the lines were.
        self._data = bytearray()
        self._elsewhere: tuple[FileIO, int] | None = None
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)
        self._open: tuple[Piece, list[bytes]] | None = None

    def keep(self, text: bytes) -> "Piece":
        """Keep lines that each end with a newline. From one thread at a time."""
        start = len(self._data)
        self._data += self._compressor.compress(text)
        return Piece(self, start, len(self._data), text.count(b"\n"), len(text))

    @property
    def stored_bytes(self) -> int:
        """How much memory the lines take."""
        return len(self._data)

    def compressed(self) -> bytearray:
        """All lines as they are kept. Nothing may be added while they are looked at."""
        return self._data

    def moved_to(self, file: FileIO, place: int) -> None:
        """The compressed lines are at this place of an open file, too: they are read from there
        while it is open, and their memory is free. Nothing more is added."""
        self._elsewhere = (file, place)
        self._data = bytearray()

    def text_of(self, start: int, end: int) -> bytes:
        if self._elsewhere is None:
            return zstandard.decompress(bytes(self._data[start:end]))
        file, place = self._elsewhere
        return zstandard.decompress(os.pread(file.fileno(), end - start, place + start))

    def lines_of(self, piece: "Piece") -> list[bytes]:
        """The piece's lines. The last piece's lines are kept, since callers ask line by line."""
        known = self._open
        if known is not None and known[0] is piece:
            return known[1]
        lines = piece.text().split(b"\n")[:-1]
        self._open = (piece, lines)
        return lines


class Piece:
    """`count` lines of a spool; implements `tidegate_protocol.log.spooled.Lines`."""

    __slots__ = ("_end", "_spool", "_start", "count", "size")

    def __init__(self, spool: Spool, start: int, end: int, count: int, size: int) -> None:
        self.count = count
        self.size = size
        self._spool = spool
        self._start = start
        self._end = end

    def lines(self) -> Sequence[bytes]:
        return self._spool.lines_of(self)

    def text(self) -> bytes:
        """All lines as they came, each with its newline."""
        return self._spool.text_of(self._start, self._end)
