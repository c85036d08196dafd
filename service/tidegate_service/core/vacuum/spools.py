"""Lines on the disk, for what has no bound in memory: the paths that VACUUM finds.

Blocking, a few microseconds a line: whoever has many calls it in threads.
"""

import heapq
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO

_RUN = 50_000
"""Lines that are sorted in memory."""
_BUFFER = 64 * 1024


class Spool:
    """Lines in the order in which they were added, in a file that goes with the process. A line
    may hold any text."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(  # noqa: SIM115
            prefix="tidegate-vacuum-", buffering=_BUFFER
        )
        self.count = 0

    def add(self, lines: Sequence[str]) -> None:
        for line in lines:
            data = line.encode()
            self._file.write(len(data).to_bytes(4, "big") + data)
        self.count += len(lines)

    def lines(self) -> Iterator[str]:
        """From the beginning, once: two readers would share one place in the file."""
        self._file.seek(0)
        while head := self._file.read(4):
            yield self._file.read(int.from_bytes(head, "big")).decode()

    def batches(self, size: int) -> Iterator[list[str]]:
        lines = self.lines()
        while batch := list(islice(lines, size)):
            yield batch

    def close(self) -> None:
        self._file.close()


class SortedSpool:
    """Lines in byte order, each once."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._runs: list[Spool] = []

    def add(self, lines: Iterable[str]) -> None:
        self._held.update(lines)
        if len(self._held) >= _RUN:
            self._spill()

    def lines(self) -> Iterator[str]:
        # Code points order as the bytes of UTF-8 do.
        if not self._runs:
            yield from sorted(self._held)
            return
        last = None
        for line in heapq.merge(*(run.lines() for run in self._runs), sorted(self._held)):
            if line != last:
                yield line
            last = line

    def close(self) -> None:
        for run in self._runs:
            run.close()

    def _spill(self) -> None:
        run = Spool()
        run.add(sorted(self._held))
        self._runs.append(run)
        self._held = set()
