"""What lies in a local folder, however much that is, in steps of some milliseconds."""

import heapq
import os
import stat
from collections.abc import Generator
from itertools import islice

from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.storage.limits import DEFAULTS


def listed(
    folder: int, *, after: str, at_once: int = DEFAULTS.listed, names_at_once: int = 4096
) -> Generator[list[LogEntry] | None, None, list[LogEntry]]:
    """What is no folder, in the byte order of the names, behind the name `after`, `at_once` at a
    time; None where names were read and there is nothing to show yet. What comes last is returned,
    so that a short listing is one step. `folder` is an open one, of which a step reads and sorts
    `names_at_once`. Raises `OSError`."""
    first = os.fsencode(after)
    # Sorted some at a time: all at once would hold the interpreter.
    runs: list[list[bytes]] = []
    with os.scandir(folder) as found:
        names = (name for each in found if (name := os.fsencode(each.name)) > first)
        while run := sorted(islice(names, names_at_once)):
            if runs:
                yield None
            runs.append(run)
    in_order = heapq.merge(*runs)
    following = [*islice(in_order, at_once)]
    while True:
        each = (_entry(os.fsdecode(name), folder) for name in following)
        entries = [entry for entry in each if entry is not None]
        following = [*islice(in_order, at_once)]
        if not following:
            return entries
        yield entries or None


def _entry(name: str, folder: int) -> LogEntry | None:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        # Removed since the folder was read, as log clean-up does.
        return None
    if stat.S_ISDIR(found.st_mode):
        return None
    return LogEntry(name=name, size=found.st_size, modified_ms=found.st_mtime_ns // 1_000_000)
