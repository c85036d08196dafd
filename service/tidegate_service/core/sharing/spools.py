"""Lines on the disk, for what has no bound in memory: the paths of a table's files.

Blocking, a few microseconds a line: whoever has many calls it in threads.
"""

import heapq
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import IO

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.sharing.shares import Shares

HELD_BYTES = 8 * 1024 * 1024
"""Of memory, roughly, in which lines are sorted."""
_BUFFER = 64 * 1024
_LEAST_READ = 4 * 1024
_HEAD_BYTES = 4
_OF_A_SET = 64
"""What a line takes there beside itself, in bytes."""


class SpoolRoom:
    """The bytes on the disk that spools have: `most` all together, of which a principal leaves a
    part to others, and one spool at most `of_one`. Safe in any thread."""

    def __init__(self, *, most: int = 8 * 1024**3, of_one: int = 2 * 1024**3) -> None:
        self._of_one = of_one
        self._lock = threading.RLock()
        self._shares = Shares(most, "bytes of paths on the disk")

    @property
    def used(self) -> int:
        return self._shares.taken

    def take(self, spool: "Spool", size: int) -> None:
        """So much was written. Raises as `Spool.add` does."""
        with self._lock:
            # Whoever has closed it has given back what was counted, and nobody would do so again.
            if spool.is_closed:
                return
            if spool.bytes + size > self._of_one:
                raise Refused(
                    f"more than {self._of_one} bytes of paths would be on the disk at once",
                    code=Code.TOO_LARGE,
                    hint="ask for less at once: vacuum with an inventory of a part, or a longer "
                    "retention",
                )
            self._shares.take(spool.who, size)
            spool.bytes += size

    def close(self, spool: "Spool", file: IO[bytes]) -> None:
        with self._lock:
            # What is left of its buffer is written, which a full disk refuses; it is gone anyway.
            with suppress(OSError):
                file.close()
            self._shares.give_back(spool.who, spool.bytes)
            spool.bytes = 0


ROOM = SpoolRoom()
"""Of the process."""


class Spool:
    """Lines in the order in which they were added, in a file that goes with the process. A line
    may hold any text. `who` is in whose name it counts. Closing it while a thread is at it has that
    thread fail."""

    def __init__(self, *, who: str | None, room: SpoolRoom = ROOM) -> None:
        self.who = who
        self._room = room
        with _disk():
            self._file: IO[bytes] = tempfile.TemporaryFile(  # noqa: SIM115
                prefix="tidegate-paths-", buffering=_BUFFER
            )
        self.bytes = 0

    def add(self, lines: Sequence[str]) -> None:
        """Raises `Refused` (`too-large`) where it has more than is kept of one, `Unavailable`
        (`backpressure`) where all together have, or those of its principal, and
        `StorageUnavailable` for what the disk refuses. It is to be closed then."""
        written = 0
        with _disk():
            for line in lines:
                data = line.encode()
                written += self._file.write(len(data).to_bytes(_HEAD_BYTES, "big") + data)
        self._room.take(self, written)

    @property
    def is_closed(self) -> bool:
        return self._file.closed

    def lines(
        self, first: int = 0, end: int | None = None, *, buffer: int = _BUFFER
    ) -> Iterator[str]:
        """All, or those between two places of the file where lines begin or end. Several may be
        read at a time, and nothing be added meanwhile."""
        with _disk():
            self._file.flush()
        place, last = first, self.bytes if end is None else end
        held, at = b"", 0
        while at < len(held) or place < last:
            begin = at + _HEAD_BYTES
            length = int.from_bytes(held[at:begin], "big")
            if len(held) < begin or len(held) < begin + length:
                with _disk():
                    more = os.pread(self._file.fileno(), min(buffer, last - place), place)
                held, at = held[at:] + more, 0
                place += len(more)
                continue
            at = begin + length
            yield held[begin:at].decode()

    def close(self) -> None:
        self._room.close(self, self._file)


@contextmanager
def _disk() -> Iterator[None]:
    """Raise `StorageUnavailable` for what the disk refuses. A caller that lists a folder would take
    an `OSError` for one of that folder."""
    try:
        yield
    except OSError as error:
        raise StorageUnavailable(
            f"paths could not be kept in the folder for temporary files: {error.strerror}"
        ) from error


class SortedSpool:
    """Lines in byte order, each once, in the name of `who`. Its runs are in one file: however
    many, one is open. In memory they are sorted in `most_held` bytes, roughly."""

    def __init__(self, *, who: str | None, most_held: int = HELD_BYTES) -> None:
        self.who = who
        self._most_held = most_held
        self._held: set[str] = set()
        self.held_bytes = 0
        self._spool: Spool | None = None
        self._ends: list[int] = []

    def add(self, lines: Iterable[str]) -> None:
        """Raises as `Spool.add` does."""
        for line in lines:
            if line in self._held:
                continue
            self._held.add(line)
            self.held_bytes += sys.getsizeof(line) + _OF_A_SET
            if self.held_bytes >= self._most_held:
                self._spill()

    @property
    def reading_bytes(self) -> int:
        """Of memory, roughly, while `lines` are read."""
        return self.held_bytes if self._spool is None else self._most_held

    def lines(self) -> Iterator[str]:
        # Code points order as the bytes of UTF-8 do.
        if self._spool is None:
            yield from sorted(self._held)
            return
        buffer = max(_LEAST_READ, min(_BUFFER, self._most_held // len(self._ends)))
        runs = [
            self._spool.lines(first, end, buffer=buffer)
            for first, end in pairwise((0, *self._ends))
        ]
        last = None
        for line in heapq.merge(*runs, sorted(self._held)):
            if line != last:
                yield line
            last = line

    def close(self) -> None:
        self._held, self.held_bytes = set(), 0
        if self._spool is not None:
            self._spool.close()

    def _spill(self) -> None:
        if self._spool is None:
            self._spool = Spool(who=self.who)
        self._spool.add(sorted(self._held))
        self._ends.append(self._spool.bytes)
        self._held, self.held_bytes = set(), 0
