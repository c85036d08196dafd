"""Making what the index holds of a table anew, in one commit section."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    LargeBinary,
    MetaData,
    Select,
    Table,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert as insert_or_pass
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.log.content import LogFile
from tidegate_service.core.ports.records import (
    CommitRecord,
    QuarantineCause,
    TableRecord,
    TableState,
)
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres.parameters import int8
from tidegate_service.index.postgres.pipeline import Query, Statement
from tidegate_service.index.reading.contents import stored_by
from tidegate_service.index.rows import commit_rows
from tidegate_service.index.rows.pages import bounded, bytes_of
from tidegate_service.index.rows.records import table_record
from tidegate_service.index.rows.stored_content import whole_if_small
from tidegate_service.index.schema.checkpoints import removed_domains, tombstones
from tidegate_service.index.schema.tables import (
    aborted_transactions,
    app_transactions,
    commits,
    domain_metadata,
    files,
    metadata_versions,
    past_commits,
    tables,
)
from tidegate_service.index.writing.snapshot import take_time

COMMITS_AT_ONCE = 20_000
_OPEN: dict[str, object] = {
    "state": TableState.ACTIVE.value,
    "state_reason": None,
    "quarantine_cause": None,
}
NOT_IN_LOG = ("attempts", "duration_ms", "principal", "request_id")
"""Columns of a commit that its file does not tell."""
_STATE = (
    files,
    app_transactions,
    domain_metadata,
    removed_domains,
    metadata_versions,
    past_commits,
    tombstones,
)

_ASIDE = Table(
    "commits_before_rebuild",
    MetaData(),
    *(Column(column.name, column.type) for column in past_commits.c),
)

_HELD = Table(
    "held_before_rebuild",
    MetaData(),
    Column("version", BigInteger, primary_key=True),
    Column("content", LargeBinary),
)
_HOLD = (
    text(
        "CREATE TEMPORARY TABLE held_before_rebuild (version bigint PRIMARY KEY, content bytea)"
        " ON COMMIT DROP"
    ),
    # As in `commits`: of what is compressed no piece could be read by itself.
    text("ALTER TABLE held_before_rebuild ALTER COLUMN content SET STORAGE EXTERNAL"),
)
_HELD_PIECE = Statement("""
    SELECT true, '', octet_length(content), substring(content FROM $2::int FOR $3::int)
    FROM held_before_rebuild WHERE version = $1
""")

# Replaying the log must not meet the ids that it is about to bring back, so they wait where
# only this transaction sees them.
_PUT_ASIDE = text(
    "CREATE TEMPORARY TABLE commits_before_rebuild (LIKE past_commits) ON COMMIT DROP"
)


async def quarantine(
    connection: AsyncConnection, table_id: UUID, reason: str, cause: QuarantineCause
) -> TableRecord:
    """The first reason stays, unless the database was set back: that caused whatever was found
    before."""
    # A reason quotes what was found, and Postgres cannot store U+0000.
    reason = reason.replace("\0", "\N{REPLACEMENT CHARACTER}")
    stays = tables.c.state == TableState.QUARANTINED.value
    if cause is QuarantineCause.SET_BACK:
        stays = and_(stays, tables.c.quarantine_cause == cause.value)
    values: dict[str, object] = {
        "state": TableState.QUARANTINED.value,
        "state_reason": case((stays, tables.c.state_reason), else_=reason),
        "quarantine_cause": case((stays, tables.c.quarantine_cause), else_=cause.value),
    }
    return await _updated(connection, table_id, values)


async def release(connection: AsyncConnection, table_id: UUID) -> TableRecord:
    return await _updated(connection, table_id, _OPEN)


async def keep_unpublished(
    statements: Callable[[], AbstractAsyncContextManager[AsyncConnection]],
    table: TableRecord,
    limits: IndexLimits,
) -> None:
    """Put the contents of the versions that are not published aside, as they are stored, as many
    by one statement as it has time for."""
    async with statements() as connection:
        for statement in _HOLD:
            await connection.execute(statement)
    after = table.published_version
    while after < table.latest_version:
        async with statements() as connection:
            some = bounded(
                select(commits.c.version, commits.c.content)
                .where(commits.c.table_id == UUID(table.id), commits.c.version > after)
                .order_by(commits.c.version)
                .limit(COMMITS_AT_ONCE),
                size=bytes_of(commits.c.content),
                order=lambda columns: columns.version,
                most=limits.kept_bytes,
            )
            await connection.execute(insert(_HELD).from_select(["version", "content"], some))
            reached = await connection.execute(select(func.max(_HELD.c.version)))
            await take_time(connection)
        last = reached.scalar_one()
        if last is None or last == after:
            return
        after = last


async def kept_unpublished(
    connection: AsyncConnection, limits: IndexLimits, version: int
) -> bytes | LogFile | None:
    """What was put aside of a version."""
    size = int8(limits.content_piece_bytes)
    stored = await stored_by(
        connection, lambda after: Query(_HELD_PIECE, int8(version), int8(after + 1), size)
    )
    return None if stored is None else whole_if_small(stored)


async def put_aside(connection: AsyncConnection, table_id: UUID) -> None:
    """Keep what ids landed as for `restore_ids`."""
    names = [column.name for column in past_commits.c]
    await connection.execute(_PUT_ASIDE)
    for source in (past_commits, commits):
        rows = select(*(source.c[name] for name in names)).where(
            source.c.table_id == table_id, source.c.transaction_id.is_not(None)
        )
        await connection.execute(insert(_ASIDE).from_select(names, rows))


async def drop_state(connection: AsyncConnection, table_id: UUID) -> None:
    """Drop what commits made, so that they can go."""
    for dependent in _STATE:
        await connection.execute(delete(dependent).where(dependent.c.table_id == table_id))


async def drop_commits(connection: AsyncConnection, table_id: UUID, *, after: int) -> None:
    """Drop the versions after one. Each is looked for in all that refer to versions, which takes
    long enough for a statement to have no time for hundreds of thousands."""
    await connection.execute(
        delete(commits).where(commits.c.table_id == table_id, commits.c.version > after)
    )


async def reset(connection: AsyncConnection, table_id: UUID) -> TableRecord:
    """The row of a table without versions, of which nothing is left."""
    return await _updated(
        connection,
        table_id,
        {
            **_OPEN,
            "latest_version": -1,
            "published_version": -1,
            "latest_timestamp": -1,
            "first_version": 0,
            "protocol": None,
            "metadata": None,
            "num_files": 0,
            "size_bytes": 0,
            "epoch": tables.c.epoch + 1,
        },
    )


async def rewritten(connection: AsyncConnection, table_id: UUID) -> int | None:
    """The first version of an id put aside whose bytes are other ones now."""
    query = select(func.min(commits.c.version)).where(
        commits.c.table_id == table_id,
        commits.c.version == _ASIDE.c.version,
        commits.c.content_sha256 != _ASIDE.c.content_sha256,
    )
    version: int | None = (await connection.execute(query)).scalar_one()
    return version


async def keep_landed(connection: AsyncConnection, table_id: UUID, record: CommitRecord) -> None:
    row = commit_rows.columns(table_id, record)
    values = {column.name: row[column.name] for column in past_commits.c}
    await connection.execute(insert(past_commits).values(values))


async def restore_ids(connection: AsyncConnection, table_id: UUID) -> list[tuple[int, str]]:
    head = select(tables.c.latest_version).where(tables.c.id == table_id).scalar_subquery()
    gone = is_gone(_ASIDE, table_id, head)
    names = [column.name for column in past_commits.c]
    # A commit that only claims an id has it not, though the log forgot whose it is.
    await connection.execute(
        update(commits)
        .where(
            commits.c.table_id == table_id,
            commits.c.transaction_id == _ASIDE.c.transaction_id,
            commits.c.version != _ASIDE.c.version,
            ~(gone & ~commits.c.is_foreign),
        )
        .values(transaction_id=None)
    )
    lost = select(_ASIDE.c.version, _ASIDE.c.transaction_id).where(gone, ~landed(table_id, _ASIDE))
    told = await close(connection, table_id, lost)
    await connection.execute(delete(_ASIDE).where(gone))
    # Those that the log still holds before its first version were read from it, with less.
    await connection.execute(
        delete(past_commits).where(
            past_commits.c.table_id == table_id,
            past_commits.c.transaction_id.in_(select(_ASIDE.c.transaction_id)),
        )
    )
    missing = select(*(_ASIDE.c[name] for name in names)).where(~landed(table_id, _ASIDE))
    await connection.execute(insert(past_commits).from_select(names, missing))
    # What was answered, and the log does not say.
    await connection.execute(
        update(commits)
        .where(
            commits.c.table_id == table_id,
            commits.c.transaction_id == _ASIDE.c.transaction_id,
        )
        .values({name: _ASIDE.c[name] for name in NOT_IN_LOG})
    )
    return told


async def close(
    connection: AsyncConnection, table_id: UUID, lost: Select[tuple[int, str]]
) -> list[tuple[int, str]]:
    """Let these ids never land again; returns them with their versions, in the order of those."""
    rows = sorted((row.version, row.transaction_id) for row in await connection.execute(lost))
    if rows:
        tombstones = [{"table_id": table_id, "transaction_id": name} for _, name in rows]
        await connection.execute(
            insert_or_pass(aborted_transactions).on_conflict_do_nothing(), tombstones
        )
    return rows


def landed(table_id: UUID, ids: Table) -> ColumnElement[bool]:
    """Whether a version of the table has the id."""
    return exists().where(
        commits.c.table_id == table_id, commits.c.transaction_id == ids.c.transaction_id
    )


def is_gone(landed: Table, table_id: UUID, head: ColumnElement[int]) -> ColumnElement[bool]:
    """Whether what landed is no part of the table any more: its version is behind the head, or has
    other bytes."""
    now = commits.alias("now")
    replaced = exists().where(
        now.c.table_id == table_id,
        now.c.version == landed.c.version,
        now.c.content_sha256 != landed.c.content_sha256,
    )
    return (landed.c.version > head) | replaced


async def _updated(
    connection: AsyncConnection, table_id: UUID, values: dict[str, object]
) -> TableRecord:
    row = await connection.execute(
        update(tables).where(tables.c.id == table_id).values(values).returning(*tables.c)
    )
    return table_record(row.one())
