"""What lies in a local folder, however much that is, in steps of some milliseconds."""

import heapq
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import islice

from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.sharing.spools import Spool
from tidegate_service.storage.limits import DEFAULTS

HELD_RUNS = 8
"""Of names, in memory; those of longer folders are on the disk."""
_READ_AT_ONCE = 4 * 1024
"""Bytes of each run there: a folder of ten million files has 2,400."""


def listed(
    folder: int,
    *,
    after: str,
    who: str | None,
    at_once: int = DEFAULTS.listed,
    names_at_once: int = 4096,
) -> Generator[list[LogEntry] | None, None, list[LogEntry]]:
    """What is no folder, in the byte order of the names, behind the name `after`, `at_once` at a
    time; None where names were read and there is nothing to show yet. What comes last is returned,
    so that a short listing is one step. `folder` is an open one, of which a step reads and sorts
    `names_at_once`, those that are not behind `after` among them. `who` is in whose name they are
    on the disk, where they are many. Raises `OSError`, and as `Spool.add` does."""
    with closing(_Runs(who)) as runs:
        # Sorted some at a time: all at once would hold the interpreter.
        with os.scandir(folder) as found:
            first = _line(after)
            is_first = True
            while some := [_line(each.name) for each in islice(found, names_at_once)]:
                if not is_first:
                    yield None
                is_first = False
                if run := sorted(name for name in some if name > first):
                    runs.add(run)
        in_order = runs.lines()
        following = [*islice(in_order, at_once)]
        while True:
            each = (_entry(_name(line), folder) for line in following)
            entries = [entry for entry in each if entry is not None]
            following = [*islice(in_order, at_once)]
            if not following:
                return entries
            yield entries or None


class _Runs:
    """Sorted names, of which the first runs are in memory."""

    def __init__(self, who: str | None) -> None:
        self._who = who
        self.count = 0
        self._runs: list[Iterable[str]] = []
        self._spool: Spool | None = None

    def add(self, run: list[str]) -> None:
        """Raises as `Spool.add` does."""
        self.count += 1
        if self.count <= HELD_RUNS:
            self._runs.append(run)
            return
        if self._spool is None:
            self._spool = Spool(who=self._who)
        begin = self._spool.bytes
        self._spool.add(run)
        self._runs.append(self._spool.lines(begin, self._spool.bytes, buffer=_READ_AT_ONCE))

    def lines(self) -> Iterator[str]:
        return heapq.merge(*self._runs)

    def close(self) -> None:
        self._runs = []
        if self._spool is not None:
            self._spool.close()


def _line(name: str) -> str:
    """A character for each byte: these order as the bytes do, and a spool takes any of them."""
    return name if name.isascii() else os.fsencode(name).decode("latin-1")


def _name(line: str) -> str:
    return line if line.isascii() else os.fsdecode(line.encode("latin-1"))


def _entry(name: str, folder: int) -> LogEntry | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        # Removed since the folder was read, as log clean-up does.
        return None
    if stat.S_ISDIR(found.st_mode):
        return None
    return LogEntry(name=name, size=found.st_size, modified_ms=found.st_mtime_ns // 1_000_000)
