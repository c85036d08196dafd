"""Publishing's calls to the index, those of many tables in one transaction each.

Every batch of every table needs the same three, of however many versions it is: read, mark,
forget. With tens of tables that are being committed to, most of what publishing costs would be
transactions of one small row.
"""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from tidegate_service.core.records import Waiting
from tidegate_service.index import publishing
from tidegate_service.index.connections import Connections
from tidegate_service.index.publishing import Held, Published
from tidegate_service.index.together import Together

APART_S = 0.05
"""From one of these transactions to the next of its kind, at least."""
ALONE = 4
"""Tables that wait for their rows' locks at a time, each on a connection."""
_NOTHING = Held(versions=(), behind=0)


class PublishingCalls:
    """As the methods of `core.ports.Index` of the same names."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._reading = Together(self._read, apart_s=APART_S)
        self._marking = Together(self._mark, apart_s=APART_S)
        self._forgetting = Together(self._forget, apart_s=APART_S)
        self._alone = asyncio.Semaphore(ALONE)

    async def unpublished_versions(self, table_id: UUID, *, limit: int) -> Waiting:
        held = await self._reading.ask((table_id, limit))
        stored = held.versions[:limit]
        if held.large is not None:
            stored = await self._large(table_id, held.large)
        return Waiting(versions=await publishing.expanded_versions(stored), behind=held.behind)

    async def mark_published(self, table_id: UUID, first: int, last: int) -> None:
        if await self._marking.ask(Published(table_id=table_id, first=first, last=last)):
            return
        async with self._alone:
            await self._connections.write(
                lambda c: publishing.mark_published(c, table_id, first, last)
            )

    async def forget_content(self, table_id: UUID, through: int) -> None:
        await self._forgetting.ask((table_id, through))

    async def _large(self, table_id: UUID, version: int) -> Sequence[tuple[int, bytes]]:
        content = await self._connections.read(
            lambda c: publishing.stored_content(c, table_id, version)
        )
        return [] if content is None else [(version, content)]

    async def _read(self, asked: Sequence[tuple[UUID, int]]) -> Sequence[Held]:
        table_ids = [table_id for table_id, _ in asked]
        most = max(limit for _, limit in asked)
        found = await self._connections.read(
            lambda c: publishing.unpublished_versions(c, table_ids, limit=most)
        )
        return [found.get(table_id, _NOTHING) for table_id in table_ids]

    async def _mark(self, asked: Sequence[Published]) -> Sequence[bool]:
        marked = await self._connections.write(lambda c: publishing.mark_free(c, asked))
        return [marked.get(log.table_id, -1) >= log.last for log in asked]

    async def _forget(self, asked: Sequence[tuple[UUID, int]]) -> Sequence[None]:
        await self._connections.write(lambda c: publishing.forget_content(c, asked))
        return [None] * len(asked)
