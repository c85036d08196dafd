"""What scans are made of: files as the index keeps them, and which of them are asked for."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from tidegate_service.core.sharing.turns import SharedTurns

PartitionTest = Callable[[Sequence[str]], Awaitable[Sequence[bool]]]
"""Whether files with these partition values, each a JSON object, are wanted; the same answer every
time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """With `partitions`, only files to whose partition values it says yes. `with_statistics` asks
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

    def __len__(self) -> int:
        return len(self.actions)

    def between(self, places: range) -> "StoredFiles":
        """The files at these places, one after the other."""
        if len(places) == len(self.actions):
            return self
        part = slice(places.start, places.stop)
        return StoredFiles(
            paths=self.paths[part],
            vectors=self.vectors[part],
            actions=self.actions[part],
            partitions=self.partitions[part],
            stats=self.stats[part],
        )

    def some(self, places: Sequence[int]) -> "StoredFiles":
        """The files at these places."""
        if len(places) == len(self.actions):
            return self
        return StoredFiles(
            paths=[self.paths[place] for place in places],
            vectors=[self.vectors[place] for place in places],
            actions=[self.actions[place] for place in places],
        )


async def ahead(
    batches: AsyncIterator[StoredFiles], turns: SharedTurns, principal: str
) -> AsyncGenerator[StoredFiles, None]:
    """The same batches, each fetched in a turn of its own, the next one while one is in use.

    A fetch that has begun goes to its end, and keeps its turn until then, whoever left meanwhile:
    it is short, and cut off it would cost its connection.
    """
    begun = False

    async def fetch() -> StoredFiles | None:
        nonlocal begun
        begun = False
        async with turns.turn(principal):
            begun = True
            return await anext(batches, None)

    upcoming = asyncio.create_task(fetch(), name="scan-ahead")
    try:
        while True:
            # Not the task itself, which would be cancelled with whoever awaits it.
            await asyncio.wait([upcoming])
            batch = upcoming.result()
            if batch is None:
                return
            upcoming = asyncio.create_task(fetch(), name="scan-ahead")
            yield batch
    finally:
        if not begun:
            upcoming.cancel()
        upcoming.add_done_callback(_unheard)


def _unheard(fetched: asyncio.Task[StoredFiles | None]) -> None:
    """Nobody is left to be told how it failed."""
    if not fetched.cancelled():
        fetched.exception()
