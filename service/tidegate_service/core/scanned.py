"""What scans are made of: files as the index keeps them, and which of them are asked for."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from tidegate_protocol.actions import PartitionValues

PartitionTest = Callable[[PartitionValues], bool]
"""Whether files with these partition values are wanted; the same answer every time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """With `partitions`, only files whose partition values it says yes to. `with_statistics` asks
    for what only pruning by statistics needs."""

    partitions: PartitionTest | None = None
    with_statistics: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFiles:
    """Files live at a version, column by column.

    `paths` are decoded ones, `vectors` the ids of deletion vectors ('' for none), both as the
    index's keys (`sha256:` and a digest for what no key can be); `actions` are whole log lines.
    `partitions` (partition values as JSON text) and `stats` are empty unless asked for; a file
    whose statistics are None has those of its action, if that has any.
    """

    paths: Sequence[str]
    vectors: Sequence[str]
    actions: Sequence[bytes]
    partitions: Sequence[str] = ()
    stats: Sequence[str | None] = ()

    def some(self, places: Sequence[int]) -> "StoredFiles":
        """The files at these places."""
        if len(places) == len(self.actions):
            return self
        return StoredFiles(
            paths=[self.paths[place] for place in places],
            vectors=[self.vectors[place] for place in places],
            actions=[self.actions[place] for place in places],
        )


async def ahead(batches: AsyncIterator[StoredFiles]) -> AsyncGenerator[StoredFiles, None]:
    """The same batches, the next one fetched while one is in use."""
    upcoming = _fetch(batches)
    try:
        while (batch := await upcoming) is not None:
            upcoming = _fetch(batches)
            yield batch
    finally:
        upcoming.cancel()
        await asyncio.wait([upcoming])
        if not upcoming.cancelled():
            # Nobody is left to be told how it failed.
            upcoming.exception()


def _fetch(batches: AsyncIterator[StoredFiles]) -> "asyncio.Task[StoredFiles | None]":
    async def fetch() -> StoredFiles | None:
        return await anext(batches, None)

    return asyncio.create_task(fetch(), name="scan-ahead")
