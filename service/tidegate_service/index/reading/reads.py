"""The index's queries. Each is one statement, so it sees one state of the database."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Row,
    Select,
    String,
    Uuid,
    bindparam,
    cast,
    collate,
    extract,
    func,
    literal,
    or_,
    select,
    text,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.features.row_tracking import DOMAIN, NO_ROW_IDS, high_water_mark
from tidegate_protocol.log.actions import Txn
from tidegate_protocol.log.content import Content, LogFile
from tidegate_protocol.proposal.transaction import ReadState
from tidegate_service.core.ports.records import (
    DETAILS_BYTES,
    PAGE_BYTES,
    Aborted,
    CommitRecord,
    Glance,
    TableHead,
    TableRecord,
)
from tidegate_service.index.postgres.identity import database_of
from tidegate_service.index.rows import stored_content
from tidegate_service.index.rows.keys import key
from tidegate_service.index.rows.newest import newest
from tidegate_service.index.rows.pages import bounded, bytes_of, text_bytes_of
from tidegate_service.index.rows.records import (
    COMMIT_COLUMNS,
    HEAD_COLUMNS,
    RECORD_COLUMNS,
    commit_record,
    domain_of,
    read_state,
    table_head,
    table_record,
    txn_of,
)
from tidegate_service.index.schema.tables import (
    aborted_transactions,
    app_transactions,
    commits,
    domain_metadata,
    metadata_versions,
    past_commits,
    tables,
)

_NOW_MS = cast(extract("epoch", func.clock_timestamp()) * 1000, BigInteger)


def table_id_of(ref: str) -> UUID | None:
    """The id that a reference is; None where it can only be a name."""
    try:
        return UUID(ref)
    except ValueError:
        return None


def lower(name: str) -> ColumnElement[str]:
    # The same collation as the column's index, so the same notion of case.
    return func.lower(collate(literal(name, String), "C"))


def in_scopes(name: ColumnElement[str], scopes: Sequence[str]) -> ColumnElement[bool]:
    """Whether the name, in lower case, lies in one of the scopes."""
    inside = (func.starts_with(name, lower(f"{scope}.")) for scope in scopes)
    return or_(name.in_(list(scopes)), *inside)


async def table(connection: AsyncConnection, ref: str) -> TableRecord | None:
    row = await _row_of(connection, select(tables), ref)
    return None if row is None else table_record(row)


async def head(connection: AsyncConnection, ref: str) -> TableHead | None:
    row = await _row_of(connection, select(*HEAD_COLUMNS), ref)
    return None if row is None else table_head(row)


async def _row_of(
    connection: AsyncConnection, query: Select[Any], ref: str
) -> Row[*tuple[Any, ...]] | None:
    if "\0" in ref:
        return None  # Postgres would refuse the question.
    table_id = table_id_of(ref)
    if table_id is None:
        found = newest(query, func.lower(tables.c.name), lower(ref))
    else:
        found = newest(query, tables.c.id, table_id)
    row: Row[*tuple[Any, ...]] | None = (await connection.execute(found)).one_or_none()
    return row


async def glance(connection: AsyncConnection, table_id: UUID) -> Glance | None:
    published = (
        select(commits.c.content_sha256)
        .where(commits.c.table_id == table_id, commits.c.version == tables.c.published_version)
        .scalar_subquery()
    )
    found = select(*HEAD_COLUMNS, _NOW_MS.label("now_ms"), published.label("published_sha256"))
    row = (await connection.execute(newest(found, tables.c.id, table_id))).one_or_none()
    if row is None:
        return None
    return Glance(
        table=table_head(row),
        published_sha256=row.published_sha256,
        now_ms=row.now_ms,
        database=database_of(connection),
    )


async def tables_page(
    connection: AsyncConnection,
    *,
    prefix: str,
    after: str | None,
    limit: int,
    within: Sequence[str] | None = None,
    most_bytes: int = PAGE_BYTES,
) -> list[TableRecord]:
    name = func.lower(tables.c.name)
    query = select(tables).where(func.starts_with(name, lower(prefix))).order_by(name).limit(limit)
    if after is not None:
        query = query.where(name > lower(after))
    if within is not None:
        query = query.where(in_scopes(name, within))
    size = bytes_of(tables.c.metadata) + bytes_of(tables.c.protocol)
    page = bounded(
        query, size=size, order=lambda columns: func.lower(columns.name), most=most_bytes
    )
    return [table_record(row) for row in await connection.execute(page)]


async def transaction(
    connection: AsyncConnection, table_id: UUID, transaction_id: str
) -> CommitRecord | Aborted | None:
    for source in (commits, past_commits):
        landed = select(*(source.c[name] for name in RECORD_COLUMNS)).where(
            source.c.table_id == table_id, source.c.transaction_id == key(transaction_id)
        )
        row = (await connection.execute(landed)).one_or_none()
        if row is not None:
            return commit_record(row)
    aborted = select(aborted_transactions.c.unfenced_after).where(
        aborted_transactions.c.table_id == table_id,
        aborted_transactions.c.transaction_id == key(transaction_id),
    )
    row = (await connection.execute(aborted)).one_or_none()
    return None if row is None else Aborted(transaction_id, row.unfenced_after)


async def history(
    connection: AsyncConnection,
    table_id: UUID,
    *,
    from_version: int | None,
    to_version: int | None,
    limit: int,
) -> list[CommitRecord]:
    query = (
        select(*COMMIT_COLUMNS)
        .where(commits.c.table_id == table_id)
        .order_by(commits.c.version.desc())
        .limit(limit)
    )
    if from_version is not None:
        query = query.where(commits.c.version >= from_version)
    if to_version is not None:
        query = query.where(commits.c.version <= to_version)
    size = text_bytes_of(commits.c.details)
    page = bounded(
        query, size=size, order=lambda columns: columns.version.desc(), most=DETAILS_BYTES
    )
    return [commit_record(row) for row in await connection.execute(page)]


async def content(connection: AsyncConnection, table_id: UUID, version: int) -> Content | None:
    return await _content(connection, table_id, version, commits.c.content_held)


async def any_content(
    connection: AsyncConnection, table_id: UUID, version: int
) -> bytes | LogFile | None:
    """Also where it is not held for publishing any more."""
    return await _content(connection, table_id, version)


async def _content(
    connection: AsyncConnection, table_id: UUID, version: int, *which: ColumnElement[bool]
) -> bytes | LogFile | None:
    query = select(commits.c.content).where(
        commits.c.table_id == table_id, commits.c.version == version, *which
    )
    stored = (await connection.execute(query)).scalar_one_or_none()
    return None if stored is None else stored_content.whole_if_small(stored)


async def content_sha256(connection: AsyncConnection, table_id: UUID, version: int) -> str | None:
    query = select(commits.c.content_sha256).where(
        commits.c.table_id == table_id, commits.c.version == version
    )
    found: str | None = (await connection.execute(query)).scalar_one()
    return found


async def kept(connection: AsyncConnection, table_id: UUID, version: int) -> tuple[str | None, int]:
    size = func.coalesce(func.octet_length(commits.c.content), 0)
    query = select(commits.c.content_sha256, size).where(
        commits.c.table_id == table_id, commits.c.version == version
    )
    sha256, stored = (await connection.execute(query)).one()
    return sha256, int(stored)


async def answered(connection: AsyncConnection, table_id: UUID) -> tuple[int, int]:
    """Of a table with a version: the newest one that is no other writer's, else the oldest."""
    of_table = select(commits.c.version, commits.c.timestamp).where(commits.c.table_id == table_id)
    own = of_table.where(~commits.c.is_foreign).order_by(commits.c.version.desc()).limit(1)
    row = (await connection.execute(own)).one_or_none()
    if row is None:
        row = (await connection.execute(of_table.order_by(commits.c.version).limit(1))).one()
    return row.version, row.timestamp


async def state_at(connection: AsyncConnection, table_id: UUID, version: int) -> ReadState | None:
    if version == -1:
        return ReadState(version=-1, protocol=None, metadata=None)
    # The latest change at or before a version that exists.
    query = (
        select(metadata_versions)
        .join(
            commits,
            (commits.c.table_id == metadata_versions.c.table_id) & (commits.c.version == version),
        )
        .where(metadata_versions.c.table_id == table_id, metadata_versions.c.version <= version)
        .order_by(metadata_versions.c.version.desc())
        .limit(1)
    )
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else read_state(version, row)


async def row_id_high_water_mark(connection: AsyncConnection, table_id: UUID) -> int:
    query = select(domain_metadata.c.action).where(
        domain_metadata.c.table_id == table_id, domain_metadata.c.domain == key(DOMAIN)
    )
    raw = (await connection.execute(query)).scalar_one_or_none()
    return NO_ROW_IDS if raw is None else high_water_mark(domain_of(raw))


# Timestamps grow with the versions, so it is looked for by halves: there is no index by time, and a
# walk from the head down would be one through all versions for an early one.
VERSION_AT = text("""
    WITH RECURSIVE search (low, high) AS (
        SELECT first_version, latest_version FROM tables WHERE id = :table_id
        UNION ALL
        SELECT CASE WHEN middle.timestamp <= :timestamp_ms THEN middle.version + 1 ELSE low END,
               CASE WHEN middle.timestamp <= :timestamp_ms THEN high ELSE middle.version - 1 END
        FROM search
        CROSS JOIN LATERAL (
            SELECT version, timestamp FROM commits
            WHERE table_id = :table_id AND version = (low + high) / 2
            LIMIT 1
        ) AS middle
        WHERE low <= high
    )
    SELECT search.high FROM search JOIN tables ON tables.id = :table_id
    WHERE low > high AND high >= tables.first_version
""").bindparams(bindparam("table_id", type_=Uuid), bindparam("timestamp_ms", type_=BigInteger))


async def version_at(connection: AsyncConnection, table_id: UUID, timestamp_ms: int) -> int | None:
    asked = {"table_id": table_id, "timestamp_ms": timestamp_ms}
    return (await connection.execute(VERSION_AT, asked)).scalar_one_or_none()


async def app_transaction(connection: AsyncConnection, table_id: UUID, app_id: str) -> Txn | None:
    query = select(app_transactions.c.action).where(
        app_transactions.c.table_id == table_id, app_transactions.c.app_id == key(app_id)
    )
    raw = (await connection.execute(query)).scalar_one_or_none()
    return None if raw is None else txn_of(raw)


async def ping(connection: AsyncConnection) -> None:
    # Answered by a database that has our tables only.
    await connection.execute(select(tables.c.id).limit(0))
