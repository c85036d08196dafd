"""What waits for publishing, and what became of it.

The head of a table says how far its log has come; its commits keep `content_held` a little longer,
which is what lagging tables are found by. So telling how far the log has come is one small row,
however many versions it is: that row's lock is the table's commit lock. What many tables ask for
at once is one statement, which waits for none of them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from uuid import UUID

from sqlalchemy import func, null, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.content import Content
from tidegate_service.core.errors import NotFound
from tidegate_service.core.ports.records import TableRecord, TableState
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.connections import driver_of
from tidegate_service.index.postgres.parameters import int8, int8s, uuids
from tidegate_service.index.postgres.pipeline import Query, Row, Statement, as_bool, as_int, as_uuid
from tidegate_service.index.postgres.standby import SEEN
from tidegate_service.index.rows.newest import newest_row
from tidegate_service.index.rows.records import table_record
from tidegate_service.index.rows.stored_content import size_of, whole_if_small
from tidegate_service.index.schema.tables import commits, tables

DROPPED_AT_ONCE = 20_000
"""Versions whose content one statement forgets: within its time on any database."""
_IN_A_THREAD_BYTES = 256 * 1024
_NOT_TOLD = ("protocol", "metadata")

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
    told = [null().label(c.name) if c.name in _NOT_TOLD else c for c in tables.c]
    query = (
        select(*told)
        .select_from(tables)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpublished:
    """The first versions of a table that wait, and their contents as they are stored; `behind` is
    how many wait in all. Where the first one's content is large, there is its number alone;
    `is_late` where the tables before it took all that a statement reads."""

    versions: Sequence[tuple[int, bytes]]
    behind: int
    large: int | None = None
    is_late: bool = False


_BEHIND = "id, state, published_version, latest_version - published_version AS behind"

# A content that is larger than all that is read of a table is left out: it is read by itself.
# The last column is told with the first row, once: where nothing waits, nothing is written.
_WAITING = Statement(f"""
    SELECT id, behind, version,
        CASE WHEN octet_length(content) <= $3 AND before_all < $4 THEN content END,
        before_all >= $4,
        (SELECT {SEEN})
    FROM (
        SELECT waiting.id, waiting.behind, waiting.place, held.version, held.content,
            coalesce(
                sum(CASE WHEN octet_length(held.content) <= $3 THEN octet_length(held.content) END)
                OVER (
                    ORDER BY waiting.place, held.version
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ), 0
            ) AS before_all
        FROM (
            SELECT head.*, asked.place
            FROM unnest($1) WITH ORDINALITY AS asked (table_id, place)
            CROSS JOIN LATERAL ({newest_row("asked.table_id", _BEHIND)}) AS head
            WHERE head.state = 'active'
        ) AS waiting
        CROSS JOIN LATERAL (
            SELECT version, content,
                sum(octet_length(content)) OVER (ORDER BY version) - octet_length(content)
                    AS before
            FROM (
                SELECT version, content FROM commits
                WHERE table_id = waiting.id AND version > waiting.published_version
                    AND content_held
                ORDER BY version
                LIMIT $2
            ) AS first
        ) AS held
        WHERE held.before < $3
    ) AS told
    ORDER BY place, version
""")


async def unpublished_versions(
    connection: AsyncConnection,
    table_ids: Sequence[UUID],
    *,
    limit: int,
    most_bytes: int,
    most_bytes_at_once: int,
) -> Mapping[UUID, Unpublished]:
    """What waits of each of these tables, where anything does: so many versions, of so many bytes
    as they are stored, and so many of all of them. The first tables come first. The COMMIT then
    waits until it is on the synchronous standby, as one that is missing there may be ratified
    otherwise."""
    most = (int8(most_bytes), int8(most_bytes_at_once))
    asked = Query(_WAITING, uuids(table_ids), int8(limit), *most)
    (rows,) = await pipeline.run(await driver_of(connection), [asked])
    of_table: defaultdict[UUID, list[Row]] = defaultdict(list)
    for row in rows:
        of_table[as_uuid(row[0])].append(row)
    return {table_id: _unpublished(waiting) for table_id, waiting in of_table.items()}


def _unpublished(rows: Sequence[Row]) -> Unpublished:
    """What the rows of one table say."""
    first, is_late = as_int(rows[0][2]), as_bool(rows[0][4])
    small = takewhile(lambda row: row[3] is not None, rows)
    versions = [(as_int(row[2]), row[3]) for row in small if row[3] is not None]
    return Unpublished(
        versions=versions,
        behind=as_int(rows[0][1]),
        large=None if versions or is_late else first,
        is_late=is_late,
    )


async def expanded_versions(
    stored: Sequence[tuple[int, bytes]], *, most_bytes: int
) -> list[tuple[int, Content]]:
    """As many of the versions as fit, one at least, and their contents as they were ratified."""
    size = 0
    fitting: list[tuple[int, bytes]] = []
    for version, content in stored:
        size += size_of(content)
        if fitting and size > most_bytes:
            break
        fitting.append((version, content))

    def expand() -> list[tuple[int, Content]]:
        return [(version, whole_if_small(content)) for version, content in fitting]

    return await asyncio.to_thread(expand) if size > _IN_A_THREAD_BYTES else expand()


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The log of a table holds the versions from `first` to `last`, and all before it, as they are
    in `database`, where that is given."""

    table_id: UUID
    first: int
    last: int
    database: str | None


# Who holds a row may hold it for minutes, and commits wait for those that are held here.
_MARK = Statement(f"""
    WITH free AS MATERIALIZED (
        SELECT locked.row_id, log.*
        FROM unnest($1, $2, $3) AS log (id, first, last)
        CROSS JOIN LATERAL ({
    newest_row("log.id", "ctid AS row_id", locking="FOR NO KEY UPDATE SKIP LOCKED")
}) AS locked
    )
    UPDATE tables SET published_version = free.last
    FROM free
    WHERE tables.ctid = free.row_id
      AND published_version BETWEEN free.first - 1 AND free.last - 1
      AND latest_version >= free.last
    RETURNING tables.id, tables.published_version
""")


async def mark_free(connection: AsyncConnection, logs: Sequence[Published]) -> Mapping[UUID, int]:
    """Mark what may be marked at once; returns the published versions of these tables. The others
    are locked, or there is something to be said about them."""
    asked = Query(
        _MARK,
        uuids([log.table_id for log in logs]),
        int8s([log.first for log in logs]),
        int8s([log.last for log in logs]),
    )
    (rows,) = await pipeline.run(await driver_of(connection), [asked])
    return {as_uuid(table_id): as_int(version) for table_id, version in rows}


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
# which the planner may take for small, it would look through what waits for each row of it. Who
# holds one of them forgets it, or makes it anew; else it waits for the next one that is published.
FORGET = Statement(f"""
    UPDATE commits SET published = true, content_held = false
    WHERE commits.ctid = ANY (ARRAY (
        SELECT held.ctid
        FROM (
            SELECT asked.id, least(asked.through, head.published_version) AS through
            FROM unnest($1, $2) AS asked (id, through)
            CROSS JOIN LATERAL ({newest_row("asked.id", "published_version")}) AS head
        ) AS log
        CROSS JOIN LATERAL (
            SELECT ctid FROM commits
            WHERE table_id = log.id AND version <= log.through AND content_held
            ORDER BY version
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS held
        LIMIT $3
    ))
""")


async def forget_content(connection: AsyncConnection, through: Sequence[tuple[UUID, int]]) -> None:
    """Of each table, up to a version."""
    # The table's row says what is published by what has been committed before this statement; it
    # never goes back but with the commits themselves.
    asked = Query(
        FORGET,
        uuids([table_id for table_id, _ in through]),
        int8s([version for _, version in through]),
        int8(DROPPED_AT_ONCE),
    )
    await pipeline.run(await driver_of(connection), [asked])
