"""Large contents as they are stored, expanded a piece at a time."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial

import zstandard

from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.bulk import BulkDecoder
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.lines import decode_line, decode_lines
from tidegate_service.core.log.files.compressed_lines import Spool
from tidegate_service.index.rows.records import expanded

LARGE_BYTES = 4 * 1024 * 1024
"""A content that is larger than this is not expanded at once."""
_PIECE = 256 * 1024

Stored = bytes | bytearray
"""A zstd frame."""


class StoredContent:
    """Implements `tidegate_protocol.log.content.LogFile` over a column of `commits`."""

    __slots__ = ("_stored",)

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    def pieces(self) -> Iterator[bytes]:
        with zstandard.ZstdDecompressor().stream_reader(self._stored) as reader:
            while piece := reader.read(_PIECE):
                yield piece

    def __len__(self) -> int:
        return size_of(self._stored)

    @property
    def sha256(self) -> str:
        sha = hashlib.sha256()
        for piece in self.pieces():
            sha.update(piece)
        return sha.hexdigest()

    def actions(self, *, strict: bool = False) -> Sequence[Action]:
        """They are held without their bytes, as large commits are. Raises `InvalidActionError`."""
        bulk = BulkDecoder(Spool().keep, partial(decode_line, strict=strict))
        actions: list[Action] = []
        for text in self._texts():
            found = bulk.decode(text)
            if found is None:
                found = bulk.keep(list(decode_lines(text, strict=strict)))
            actions += found
        return actions

    def _texts(self) -> Iterator[bytes]:
        """Some whole lines at a time, each ended."""
        rest = b""
        for piece in self.pieces():
            text = rest + piece
            end = text.rfind(b"\n") + 1
            rest = text[end:]
            if end:
                yield text[:end]
        if rest.strip():
            yield rest + b"\n"


def size_of(stored: Stored) -> int:
    """How many bytes are stored there, by the beginning of it."""
    return int(zstandard.frame_content_size(stored))


def is_large(stored: Stored) -> bool:
    """The same for whether they are expanded at once."""
    return size_of(stored) > LARGE_BYTES


def whole_if_small(stored: Stored) -> bytes | LogFile:
    """The bytes of a version, whole where they are few."""
    return StoredContent(stored) if is_large(stored) else expanded(stored)
