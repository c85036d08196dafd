"""Large contents of requests: in memory, or as files that are read anew for each copy."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import IO

_IN_MEMORY = 8 * 1024 * 1024
"""In bytes; what is longer goes into a temporary file."""
_PIECE = 1024 * 1024


class HeldPieces(tuple[bytes, ...]):
    """Pieces in memory."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """Of all together, in bytes."""
        return sum(map(len, self))


class SpooledPieces:
    """Pieces in a file, which are read from its beginning each time."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self.size = size

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            yield piece


@contextmanager
def spooled(pieces: Iterable[bytes]) -> Iterator[SpooledPieces]:
    """The pieces, written to a temporary file one after the other, in whose block they last. Lets
    through what the pieces raise."""
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as file:
        yield SpooledPieces(file, sum(map(file.write, pieces)))


def digest_of(body: bytes | Iterable[bytes]) -> bytes:
    """What tells two contents apart, in whatever pieces they are."""
    sha = hashlib.sha256()
    for piece in (body,) if isinstance(body, bytes) else body:
        sha.update(piece)
    return sha.digest()
