"""What waits for publishing, and what became of it.

The head of a table says how far its log has come; its commits keep `content_held` a little longer,
which is what lagging tables are found by. So telling how far the log has come is one small row,
however many versions it is: that row's lock is the table's commit lock.
"""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import zstandard
from sqlalchemy import Uuid, bindparam, func, select, text, true, update
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.content import Content
from tidegate_protocol.problems import Code
from tidegate_service.core.errors import NotFound
from tidegate_service.core.records import TableRecord, TableState
from tidegate_service.index.rows import expanded, table_record
from tidegate_service.index.schema import commits, tables
from tidegate_service.index.stored_content import LARGE_BYTES, StoredContent

FORGOTTEN_AT_ONCE = 10_000
"""Versions whose content one statement forgets: within its time on any database."""
STORED_BYTES = 1024 * 1024
EXPANDED_BYTES = 4 * 1024 * 1024
"""What is read at once of contents, as they are stored and as they are; the first one always is."""
_IN_A_THREAD_BYTES = 256 * 1024

# A table that is being rebuilt is locked for minutes, and its log is no worse for waiting.
_IMPATIENT = text("SELECT set_config('lock_timeout', '2000', true)")


async def unpublished(connection: AsyncConnection, *, limit: int) -> list[TableRecord]:
    # Found by the commits that wait, so that tables at rest cost nothing, and from one table to
    # the next, so that a backlog costs nothing either. In random order, so that tables that cannot
    # be published never keep the others out of a limited answer.
    held = (
        select(commits.c.table_id)
        .where(commits.c.content_held)
        .order_by(commits.c.table_id)
        .limit(1)
    )
    lagging = held.cte("lagging", recursive=True)
    after = held.where(commits.c.table_id > lagging.c.table_id).correlate(lagging)
    following = select(after.scalar_subquery()).where(lagging.c.table_id.is_not(None))
    lagging = lagging.union_all(following)
    query = (
        select(tables)
        .join(lagging, lagging.c.table_id == tables.c.id)
        .where(
            tables.c.catalog_managed,
            tables.c.state == TableState.ACTIVE.value,
            tables.c.published_version < tables.c.latest_version,
        )
        .order_by(func.random())
        .limit(limit)
    )
    return [table_record(row) for row in await connection.execute(query)]


async def unpublished_versions(
    connection: AsyncConnection, table_id: UUID, *, limit: int
) -> list[tuple[int, bytes]]:
    """Versions and their contents as they are stored."""
    size = func.octet_length(commits.c.content)
    first = (
        select(
            commits.c.version,
            commits.c.content,
            (func.sum(size).over(order_by=commits.c.version) - size).label("before"),
        )
        .where(
            commits.c.table_id == tables.c.id,
            commits.c.version > tables.c.published_version,
            commits.c.content_held,
        )
        .order_by(commits.c.version)
        .limit(limit)
        .lateral()
    )
    query = (
        select(first.c.version, first.c.content)
        .select_from(tables)
        .join(first, true())
        .where(tables.c.id == table_id, first.c.before < STORED_BYTES)
        .order_by(first.c.version)
    )
    return [(row.version, row.content) for row in await connection.execute(query)]


async def expanded_versions(stored: Sequence[tuple[int, bytes]]) -> list[tuple[int, Content]]:
    """As many of the versions as fit, and their contents as they were ratified."""
    size = 0
    fitting: list[tuple[int, bytes]] = []
    for version, content in stored:
        size += zstandard.frame_content_size(content)
        if fitting and size > EXPANDED_BYTES:
            break
        fitting.append((version, content))

    if size > LARGE_BYTES and len(fitting) == 1:
        return [(version, StoredContent(content)) for version, content in fitting]

    def expand() -> list[tuple[int, Content]]:
        return [(version, expanded(content)) for version, content in fitting]

    return await asyncio.to_thread(expand) if size > _IN_A_THREAD_BYTES else expand()


async def mark_published(
    connection: AsyncConnection, table_id: UUID, first: int, last: int
) -> None:
    await connection.execute(_IMPATIENT)
    moved = await connection.execute(
        update(tables)
        .where(
            tables.c.id == table_id,
            tables.c.published_version.between(first - 1, last - 1),
            tables.c.latest_version >= last,
        )
        .values(published_version=last)
    )
    if moved.rowcount:
        return
    query = select(tables.c.published_version, tables.c.latest_version).where(
        tables.c.id == table_id
    )
    head = (await connection.execute(query)).one_or_none()
    if head is None:
        raise NotFound(f"there is no table {table_id} any more", code=Code.TABLE_NOT_FOUND)
    if last <= head.published_version:
        return
    if last > head.latest_version:
        raise ValueError(f"version {last} does not exist: the latest is {head.latest_version}")
    raise ValueError(
        f"version {first} cannot be published: the last that is, is {head.published_version}"
    )


# The rows are named by where they lie, and looked for once: as a join of the table with itself,
# which the planner may take for small, it would look through what waits for each row of it.
FORGET = text("""
    UPDATE commits SET published = true, content_held = false
    WHERE commits.ctid = ANY (ARRAY (
        SELECT held.ctid FROM commits AS held
        WHERE held.table_id = :table_id
          AND held.content_held
          AND held.version <= least(
              CAST(:through AS bigint),
              (SELECT published_version FROM tables WHERE id = :table_id)
          )
        ORDER BY held.version
        LIMIT :most
    ))
""").bindparams(bindparam("table_id", type_=Uuid))


async def forget_content(connection: AsyncConnection, table_id: UUID, through: int) -> None:
    # The table's row says what is published by what has been committed before this statement; it
    # never goes back but with the commits themselves.
    await connection.execute(
        FORGET, {"table_id": table_id, "through": through, "most": FORGOTTEN_AT_ONCE}
    )
