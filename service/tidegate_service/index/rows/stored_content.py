"""Large contents as they are stored, expanded a piece at a time."""

import hashlib
from collections.abc import Iterator

import zstandard

LARGE_BYTES = 4 * 1024 * 1024
"""A content that is larger than this is not expanded at once."""
_PIECE = 256 * 1024


class StoredContent:
    """Implements `tidegate_protocol.log.content.Pieces` over a column of `commits`."""

    __slots__ = ("_stored",)

    def __init__(self, stored: bytes) -> None:
        self._stored = stored

    def pieces(self) -> Iterator[bytes]:
        with zstandard.ZstdDecompressor().stream_reader(self._stored) as reader:
            while piece := reader.read(_PIECE):
                yield piece

    def __len__(self) -> int:
        return int(zstandard.frame_content_size(self._stored))

    @property
    def sha256(self) -> str:
        sha = hashlib.sha256()
        for piece in self.pieces():
            sha.update(piece)
        return sha.hexdigest()
