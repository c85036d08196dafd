"""Commit files that others may have written, of any size, in bounded memory.

A large file is kept compressed (`core.log.files.compressed_lines`), and its actions without
their bytes. A file beyond the bound is not read at all: reading its actions raises
`UnreadableCommit`.
"""

import hashlib
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from io import FileIO
from typing import BinaryIO

from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.bulk import BulkDecoder
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.lines import decode_line, decode_lines
from tidegate_protocol.replay.commits import UnreadableCommit
from tidegate_service.core.errors import StorageUnavailable, Unavailable
from tidegate_service.core.log.files.compressed_lines import Piece, Spool
from tidegate_service.core.observe import correlation
from tidegate_service.core.sharing.shares import Shares

LARGE_BYTES = 4 * 1024 * 1024
"""A larger file is kept compressed."""
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_STORED_BYTES = 512 * 1024 * 1024
"""Most bytes that a file may take compressed. The index keeps it in one value, and Postgres allows
less than a gigabyte for a value."""
_PIECE_BYTES = 256 * 1024
_STEP_BYTES = 2 * 1024 * 1024
_FEW = 64


class FileMemory:
    """The memory for all large files together, compressed, in bytes. The caller whose request reads
    a file has a share of it (`core.sharing.shares`). Safe in any thread."""

    def __init__(
        self,
        max_bytes: int = 2 * MAX_STORED_BYTES,
        what: str = "bytes that the large files of logs hold",
    ) -> None:
        """`what` names them in answers."""
        self._shares = Shares(max_bytes, what)
        self._lock = threading.Lock()
        # The garbage collector may end a file anywhere, also while the lock is held.
        self._given_back: deque[tuple[str | None, int]] = deque()

    @property
    def taken(self) -> int:
        with self._lock:
            self._take_given_back()
            return self._shares.taken

    def take(self, who: str | None, size: int) -> None:
        """Raises `StorageUnavailable` where too little is left, in all or of the caller's share."""
        with self._lock:
            self._take_given_back()
            try:
                self._shares.take(who, size)
            except Unavailable as refused:
                raise StorageUnavailable(refused.detail) from None

    def give_back(self, who: str | None, size: int) -> None:
        self._given_back.append((who, size))

    def _take_given_back(self) -> None:
        while self._given_back:
            self._shares.give_back(*self._given_back.popleft())


class SpooledFile:
    """A large file, compressed; implements `tidegate_protocol.log.content.LogFile`."""

    def __init__(
        self, memory: FileMemory, *, max_actions: int, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self._max_line_bytes = max_line_bytes
        self._memory = memory
        reading = correlation.current()
        self._who = None if reading is None else reading.share
        self._max_actions = max_actions
        self._spool = Spool()
        self._pieces: list[Piece] = []
        self._size = 0
        self._sha = hashlib.sha256()

    def __del__(self) -> None:
        self._memory.give_back(self._who, self.stored_bytes)

    @property
    def stored_bytes(self) -> int:
        return self._spool.stored_bytes

    def add(self, piece: bytes) -> None:
        """Add the file's next bytes. Raises `StorageUnavailable` where memory has no room."""
        before = self.stored_bytes
        self._pieces.append(self._spool.keep(piece))
        try:
            self._memory.take(self._who, self.stored_bytes - before)
        except StorageUnavailable:
            # Only the bytes that were taken are given back.
            self._spool = Spool()
            self._memory.give_back(self._who, before)
            raise
        self._size += len(piece)
        self._sha.update(piece)

    def compressed(self) -> bytearray:
        """The whole file as it is kept in memory."""
        return self._spool.compressed()

    def moved_to(self, file: FileIO, place: int) -> None:
        """Read what `compressed` returned from this place of an open file from now on. Its memory
        is given back."""
        taken = self.stored_bytes
        self._spool.moved_to(file, place)
        self._memory.give_back(self._who, taken)

    def pieces(self) -> Iterator[bytes]:
        return (piece.text() for piece in self._pieces)

    def __len__(self) -> int:
        return self._size

    @property
    def sha256(self) -> str:
        return self._sha.hexdigest()

    def actions(self, *, strict: bool = False) -> Sequence[Action]:
        """Raises `InvalidActionError` and `UnreadableCommit`."""
        bulk = BulkDecoder(Spool().keep, partial(decode_line, strict=strict))
        actions: list[Action] = []
        number = 1
        for text in _texts(self.pieces(), self._max_line_bytes):
            found = bulk.decode(text) if text.count(b"\n") > _FEW else None
            if found is None:
                found = bulk.keep(list(decode_lines(text, first=number, strict=strict)))
            actions += found
            number += text.count(b"\n")
            if len(actions) > self._max_actions:
                raise UnreadableCommit(
                    f"it has more than {self._max_actions} actions, which is as many as are read"
                )
        return actions


class OversizedFile:
    """A file that is not read; implements `tidegate_protocol.log.content.LogFile`. No commit has
    its digest."""

    sha256 = ""

    def __init__(self, size: int, why: str) -> None:
        self._size = size
        self.why = why

    def pieces(self) -> Iterator[bytes]:
        """Raises `UnreadableCommit`."""
        raise UnreadableCommit(self.why)

    def actions(self, *, strict: bool = False) -> Sequence[Action]:
        """Raises `UnreadableCommit`."""
        raise UnreadableCommit(self.why)

    def __len__(self) -> int:
        return self._size


def read_file(
    file: BinaryIO,
    size: int,
    *,
    max_bytes: int,
    max_actions: int,
    memory: FileMemory,
    large_bytes: int = LARGE_BYTES,
    max_stored_bytes: int = MAX_STORED_BYTES,
) -> Generator[None, None, bytes | LogFile]:
    """The content of a file from its current position; `size` is its expected length. Blocks, and
    reads a file of more than `large_bytes` in steps of some milliseconds. Such a file is kept
    compressed, in `max_stored_bytes` at most. Raises `StorageUnavailable` where memory has no room,
    and the errors of reading the file."""
    if size > max_bytes:
        return _beyond(size, max_bytes)
    # Others may still write to it: its size proves nothing.
    small = file.read(large_bytes + 1)
    if len(small) <= large_bytes:
        return small
    found = SpooledFile(memory, max_actions=max_actions)
    for start in range(0, len(small), _PIECE_BYTES):
        found.add(small[start : start + _PIECE_BYTES])
    del small
    yield
    while piece := file.read(_PIECE_BYTES):
        found.add(piece)
        if len(found) % _STEP_BYTES < _PIECE_BYTES:
            yield
        if len(found) > max_bytes:
            return _beyond(len(found), max_bytes)
        if found.stored_bytes > max_stored_bytes:
            return OversizedFile(
                size,
                f"it takes more than {max_stored_bytes} bytes compressed, and no commit may",
            )
    return found


def _beyond(size: int, max_bytes: int) -> OversizedFile:
    return OversizedFile(
        size,
        f"it has {size} bytes, and at most {max_bytes} are read of a commit file "
        "(max_log_file_bytes)",
    )


def _texts(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    """Whole lines, several at a time, each with its newline. Raises `UnreadableCommit`."""
    rest: list[bytes] = []
    size = 0
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if end:
            yield b"".join([*rest, piece[:end]])
            rest, size = [], 0
        rest.append(piece[end:])
        size += len(piece) - end
        if size > most:
            raise UnreadableCommit(f"a line has more than {most} bytes")
    if last := b"".join(rest).strip():
        yield last + b"\n"
