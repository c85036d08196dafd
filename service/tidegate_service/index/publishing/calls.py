"""Publishing's calls to the index, those of many tables in one transaction each.

Every batch of every table needs the same three, of however many versions it is: read, mark,
forget. With tens of tables that are being committed to, most of what publishing costs would be
transactions of one small row.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.log.content import Content
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.log.files.log_file import FileMemory
from tidegate_service.core.ports.records import Waiting
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres.batching import Batching
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.postgres.identity import database_of
from tidegate_service.index.publishing import unpublished
from tidegate_service.index.publishing.large import large_content
from tidegate_service.index.publishing.unpublished import Published, Unpublished

APART_S = 0.05
"""From one of these transactions to the next of its kind, at least, where nobody waits for an
answer."""
ALONE = 4
"""Tables that wait for their rows' locks at a time, each on a connection."""
_NOTHING = Unpublished(versions=(), behind=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """What waits of a table; it was asked `again` so many times, since it came too late."""

    table_id: UUID
    limit: int
    again: int


class PublishingCalls:
    """As the methods of `core.ports.index.Index` of the same names."""

    def __init__(self, connections: Connections, limits: IndexLimits) -> None:
        self._limits = limits
        self._connections = connections
        self._reading = Batching(self._read, apart_s=APART_S)
        self._marking = Batching(self._mark, apart_s=APART_S)
        self._forgetting = Batching(self._forget, apart_s=APART_S)
        self._alone = asyncio.Semaphore(ALONE)
        self._memory = FileMemory(
            limits.published_bytes, "bytes that large versions hold which are published"
        )

    async def unpublished_versions(
        self, table_id: UUID, *, limit: int, at_once: bool = False
    ) -> Waiting:
        held, database = await self._told(table_id, limit, at_once=at_once)
        if held.large is None:
            versions = await unpublished.expanded_versions(
                held.versions[:limit], most_bytes=self._limits.expanded_bytes
            )
        else:
            versions = await self._large(table_id, held.large, database)
        return Waiting(versions=versions, behind=held.behind, database=database)

    async def _told(self, table_id: UUID, limit: int, *, at_once: bool) -> tuple[Unpublished, str]:
        for again in count():
            question = _Question(table_id=table_id, limit=limit, again=again)
            held, database = await self._reading.ask(question, at_once=at_once)
            if not held.is_late:
                break
        return held, database

    async def mark_published(
        self,
        table_id: UUID,
        first: int,
        last: int,
        *,
        database: str | None,
        at_once: bool = False,
    ) -> None:
        log = Published(table_id=table_id, first=first, last=last, database=database)
        if await self._marking.ask(log, at_once=at_once):
            return

        async def mark(connection: AsyncConnection) -> None:
            if not _is_of(log, connection):
                raise IndexUnavailable(
                    f"versions {first} to {last} of table {table_id} were read from another "
                    "database than the one that is there now; they are looked at again"
                )
            await unpublished.mark_published(connection, table_id, first, last)

        async with self._alone:
            await self._connections.write(mark)

    async def forget_content(self, table_id: UUID, through: int, *, at_once: bool = False) -> None:
        await self._forgetting.ask((table_id, through), at_once=at_once)

    async def _large(
        self, table_id: UUID, version: int, database: str
    ) -> list[tuple[int, Content]]:
        async def read(connection: AsyncConnection) -> Content | None:
            if database_of(connection) != database:
                raise IndexUnavailable(
                    f"version {version} of table {table_id} was found in another database than the "
                    "one that is there now; it is looked for again"
                )
            return await large_content(
                connection, self._limits, table_id, version, memory=self._memory
            )

        content = await self._connections.read_replicated(read)
        return [] if content is None else [(version, content)]

    async def _read(self, asked: Sequence[_Question]) -> Sequence[tuple[Unpublished, str]]:
        # Who came too late for the statements before comes first. A table is asked of by several
        # publishers at once; its versions are to be told once.
        by_turn = sorted(asked, key=attrgetter("again"), reverse=True)
        table_ids = list(dict.fromkeys(question.table_id for question in by_turn))
        most = max(question.limit for question in asked)

        async def read(connection: AsyncConnection) -> tuple[Mapping[UUID, Unpublished], str]:
            found = await unpublished.unpublished_versions(
                connection,
                table_ids,
                limit=most,
                most_bytes=self._limits.waiting_bytes,
                most_bytes_at_once=self._limits.waiting_bytes_at_once,
            )
            return found, database_of(connection)

        found, database = await self._connections.read_replicated(read)
        return [(found.get(question.table_id, _NOTHING), database) for question in asked]

    async def _mark(self, asked: Sequence[Published]) -> Sequence[bool]:
        async def mark(connection: AsyncConnection) -> Mapping[UUID, int]:
            logs = [log for log in asked if _is_of(log, connection)]
            return await unpublished.mark_free(connection, logs)

        marked = await self._connections.write(mark)
        return [marked.get(log.table_id, -1) >= log.last for log in asked]

    async def _forget(self, asked: Sequence[tuple[UUID, int]]) -> Sequence[None]:
        await self._connections.write(lambda c: unpublished.forget_content(c, asked))
        return [None] * len(asked)


def _is_of(log: Published, connection: AsyncConnection) -> bool:
    """Whether the versions are those of the database that the connection is to."""
    return log.database in (None, database_of(connection))
