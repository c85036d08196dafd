"""Winners as the index has them: long ones are decoded without holding all of their bytes."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import case, select
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.log.weights import UNIT_BYTES
from tidegate_protocol.proposal.transaction import WinningCommit
from tidegate_protocol.replay.commits import parse_commit, summarize
from tidegate_service.core.ports.index import TakesLong
from tidegate_service.core.sharing import offload
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.reading import reads
from tidegate_service.index.reading.contents import stored_of
from tidegate_service.index.rows.pages import bounded, bytes_of
from tidegate_service.index.rows.records import winner
from tidegate_service.index.rows.stored_content import Stored, StoredContent
from tidegate_service.index.schema.tables import commits
from tidegate_service.index.writing.snapshot import take_time

HELD_BYTES = 64 * 1024
"""Actions of a longer content are held without their bytes, as large commits are."""
PAGE_BYTES = 256 * 1024
"""As they are stored."""


class StoredWinner(NamedTuple):
    """A row of `commits`; the timestamp in ms, the content as it is stored."""

    version: int
    timestamp: int
    content: Stored

    @property
    def size(self) -> int:
        """The bytes that the content has when it is expanded."""
        return len(StoredContent(self.content))


Query = Callable[[AsyncConnection], Awaitable[Sequence[StoredWinner] | None]]
Read = Callable[[Query], Awaitable[Sequence[StoredWinner] | None]]
"""Runs a query: in a section's transaction, or on a connection that is taken for it alone."""


class WinnerCalls:
    """The calls of `core.ports.winners.WinnersIndex`."""

    _connections: Connections
    _limits: IndexLimits

    async def row_id_high_water_mark(self, table_id: str) -> int:
        identity = UUID(table_id)
        return await self._connections.read(lambda c: reads.row_id_high_water_mark(c, identity))

    def winner_pages(
        self, table_id: str, after: int, through: int, *, most_bytes: int
    ) -> AsyncGenerator[Sequence[WinningCommit], None]:
        pages = partial(_pages, most_bytes=most_bytes, limits=self._limits)
        return pages(self._connections.read, UUID(table_id), after, through)


async def read_winners(
    statements: Callable[[], AbstractAsyncContextManager[AsyncConnection]],
    table_id: UUID,
    after: int,
    through: int,
    *,
    most_bytes: int | None,
    limits: IndexLimits,
) -> Sequence[WinningCommit] | None:
    """As `core.ports.index.CommitSection.winners`."""
    if after >= through:
        return ()

    async def read(query: Query) -> Sequence[StoredWinner] | None:
        async with statements() as connection:
            return await query(connection)

    found: list[WinningCommit] = []
    pages = _pages(read, table_id, after, through, most_bytes=most_bytes, limits=limits)
    try:
        async with aclosing(pages):
            async for page in pages:
                found += page
    except TakesLong:
        # An error may live longer than the section.
        found.clear()
        raise
    return found if found and found[-1].version == through else None


async def _pages(
    read: Read,
    table_id: UUID,
    after: int,
    through: int,
    *,
    most_bytes: int | None,
    limits: IndexLimits,
) -> AsyncGenerator[Sequence[WinningCommit], None]:
    """As `core.ports.winners.WinnersIndex.winner_pages`."""
    size = 0
    page = partial(_page, table_id=table_id, through=through, most_bytes=most_bytes, limits=limits)
    while after < through:
        rows = await read(partial(page, after=after))
        if rows is None:
            raise TakesLong
        if not rows or rows[-1].version != after + len(rows):
            return
        more = _size_of(rows)
        if most_bytes is not None and size + more > most_bytes:
            raise TakesLong
        with offload.sharing:
            heavy = offload.HEAVY if more > offload.PARSED_INLINE else 0
            winners = await offload.run(heavy, _winners_of, rows)
        # In memory it may be several times its bytes.
        size += max(more, UNIT_BYTES * sum(winner.weight for winner in winners))
        after = rows[-1].version
        del rows
        yield winners
        del winners


async def _page(
    connection: AsyncConnection,
    *,
    table_id: UUID,
    after: int,
    through: int,
    most_bytes: int | None,
    limits: IndexLimits,
) -> Sequence[StoredWinner] | None:
    """The first of these versions, as they are stored, as many as are read at a time; None where
    one of them is too many by itself, of which nothing is read. A section gets time for their
    decoding. Nothing is raised: a section is over where a statement fails."""
    size = bytes_of(commits.c.content)
    # A long one is read by itself.
    content = case((size <= limits.content_piece_bytes, commits.c.content)).label("content")
    query = (
        select(commits.c.version, commits.c.timestamp, content, size.label("stored_bytes"))
        .where(
            commits.c.table_id == table_id, commits.c.version > after, commits.c.version <= through
        )
        .order_by(commits.c.version)
        .limit(limits.winners_a_page)
    )
    page = bounded(
        query,
        size=size,
        order=lambda columns: columns.version,
        most=PAGE_BYTES,
    )
    rows = []
    for row in (await connection.execute(page)).all():
        stored = row.content
        if stored is None:
            if most_bytes is not None and row.stored_bytes > most_bytes:
                return None
            stored = await stored_of(connection, limits, table_id, row.version)
        if stored is None:
            # Forgotten meanwhile, or made anew.
            break
        rows.append(StoredWinner(row.version, row.timestamp, stored))
    if _size_of(rows) > limits.winners_inline_bytes:
        await take_time(connection)
    return rows


def _size_of(rows: Sequence[StoredWinner]) -> int:
    return sum(row.size for row in rows)


def _winners_of(rows: Sequence[StoredWinner]) -> list[WinningCommit]:
    """The rows as the conflict rules look at them, weighed."""
    winners = [_winner(row) for row in rows]
    for each in winners:
        each.weigh()
    return winners


def _winner(row: StoredWinner) -> WinningCommit:
    if row.size <= HELD_BYTES:
        return winner(row.version, row.timestamp, row.content)
    actions = parse_commit(StoredContent(row.content))
    return summarize(row.version, actions, timestamp=row.timestamp)
