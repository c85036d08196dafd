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
from tidegate_protocol.log.actions import DomainMetadata, Txn
from tidegate_service.core.ports.records import (
    DETAILS_BYTES,
    Aborted,
    CommitGlance,
    CommitRecord,
    Glance,
)
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.connections import driver_of
from tidegate_service.index.postgres.identity import database_of
from tidegate_service.index.postgres.parameters import int8, uuid
from tidegate_service.index.postgres.pipeline import Query, Statement, as_int, as_text
from tidegate_service.index.rows.keys import key
from tidegate_service.index.rows.newest import newest
from tidegate_service.index.rows.pages import bounded, text_bytes_of
from tidegate_service.index.rows.records import (
    COMMIT_COLUMNS,
    HEAD_COLUMNS,
    RECORD_COLUMNS,
    commit_record,
    domain_of,
    table_head,
    txn_of,
)
from tidegate_service.index.schema.tables import (
    aborted_transactions,
    app_transactions,
    commits,
    domain_metadata,
    past_commits,
    tables,
)

HISTORY_ROWS = 50
"""Commits that are made of rows in one pass of the event loop, which takes some milliseconds:
others' requests come between."""
TABLES_A_PAGE = 500
COMMIT_GLANCE = Statement(
    "SELECT timestamp, body_digest, content_sha256 FROM commits "
    "WHERE table_id = $1 AND version = $2"
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


async def glance(connection: AsyncConnection, table_id: UUID) -> Glance | None:
    found = newest(_glances(table_id), tables.c.id, table_id)
    row = (await connection.execute(found)).one_or_none()
    return None if row is None else _glance(connection, row)


def _glances(table_id: UUID | ColumnElement[UUID]) -> Select[*tuple[Any, ...]]:
    published = (
        select(commits.c.content_sha256)
        .where(commits.c.table_id == table_id, commits.c.version == tables.c.published_version)
        .scalar_subquery()
    )
    return select(*HEAD_COLUMNS, _NOW_MS.label("now_ms"), published.label("published_sha256"))


def _glance(connection: AsyncConnection, row: Row[*tuple[Any, ...]]) -> Glance:
    return Glance(
        table=table_head(row),
        published_sha256=row.published_sha256,
        now_ms=row.now_ms,
        database=database_of(connection),
    )


async def other_tables(
    connection: AsyncConnection, *, but: UUID, after: UUID | None
) -> list[Glance]:
    """The next page of all tables but one, in the order of their ids."""
    found = (
        _glances(tables.c.id).where(tables.c.id != but).order_by(tables.c.id).limit(TABLES_A_PAGE)
    )
    if after is not None:
        found = found.where(tables.c.id > after)
    return [_glance(connection, row) for row in await connection.execute(found)]


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


async def commit(connection: AsyncConnection, table_id: UUID, version: int) -> CommitRecord | None:
    query = select(*COMMIT_COLUMNS).where(
        commits.c.table_id == table_id, commits.c.version == version
    )
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else commit_record(row)


async def glance_at_commit(
    connection: AsyncConnection, table_id: UUID, version: int
) -> CommitGlance | None:
    asked = Query(COMMIT_GLANCE, uuid(table_id), int8(version))
    rows = await pipeline.read(await driver_of(connection), asked)
    if not rows:
        return None
    ((timestamp, digest, sha256),) = rows
    return CommitGlance(
        timestamp=as_int(timestamp),
        body_digest=None if digest is None else as_text(digest),
        content_sha256=None if sha256 is None else as_text(sha256),
    )


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
    if limit <= HISTORY_ROWS:
        return [commit_record(row) for row in await connection.execute(page)]
    # By a cursor, so that it is one statement still.
    options = {"yield_per": HISTORY_ROWS}
    async with connection.stream(page, execution_options=options) as rows:
        return [commit_record(row) async for row in rows]


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


async def row_id_high_water_mark(connection: AsyncConnection, table_id: UUID) -> int:
    found = await domain(connection, table_id, DOMAIN)
    return NO_ROW_IDS if found is None else high_water_mark(found)


async def domain(connection: AsyncConnection, table_id: UUID, name: str) -> DomainMetadata | None:
    query = select(domain_metadata.c.action).where(
        domain_metadata.c.table_id == table_id, domain_metadata.c.domain == key(name)
    )
    raw = (await connection.execute(query)).scalar_one_or_none()
    return None if raw is None else domain_of(raw)


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
