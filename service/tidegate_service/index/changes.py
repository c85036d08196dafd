"""Changes of the index beside commits. Each can be made twice and has then happened once."""

from uuid import UUID

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.problems import Code
from tidegate_service.core.access import SERVICE, Caller
from tidegate_service.core.audit import Change, Deed
from tidegate_service.core.errors import NotFound
from tidegate_service.core.records import NewTable, TableRecord, TableState
from tidegate_service.index import audit
from tidegate_service.index.rows import table_record
from tidegate_service.index.schema import (
    aborted_transactions,
    app_transactions,
    commits,
    domain_metadata,
    files,
    metadata_versions,
    past_commits,
    tables,
)
from tidegate_service.index.section import quarantined

# What refers to commits goes before them, and they before their table.
_OF_A_TABLE = (
    files,
    app_transactions,
    domain_metadata,
    metadata_versions,
    aborted_transactions,
    past_commits,
    commits,
)

_CLOCK = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")


async def lock_table(connection: AsyncConnection, table_id: UUID) -> TableRecord | None:
    """Wait for the row's lock and hold it until the transaction ends. What the wait was for is
    visible to later statements, not to this one, so nothing is joined to it."""
    query = select(tables).where(tables.c.id == table_id).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else table_record(row)


async def insert_table(connection: AsyncConnection, table: NewTable) -> TableRecord:
    """The row of a table without versions; its lock is held by having inserted it."""
    row = await connection.execute(
        insert(tables)
        .values(
            id=UUID(table.id),
            name=table.name,
            location=table.location,
            catalog_managed=table.catalog_managed,
            state=TableState.ACTIVE.value,
            latest_version=-1,
            published_version=-1,
            latest_timestamp=-1,
            num_files=0,
            size_bytes=0,
            first_version=0,
        )
        .returning(*tables.c)
    )
    return table_record(row.one())


async def now_ms(connection: AsyncConnection) -> int:
    """The database's clock, not the transaction's, which began before its lock was granted."""
    return int((await connection.execute(_CLOCK)).scalar_one())


async def forget(connection: AsyncConnection, table_id: UUID, *, by: Caller) -> bool:
    table = await lock_table(connection, table_id)
    if table is None or table.published_version < table.latest_version:
        return False
    await audit.keep_commits(connection, table_id, table.name)
    gone = Change(deed=Deed.FORGET, by=by, version=table.latest_version)
    await audit.note(connection, gone, table_id=table_id, table_name=table.name)
    for dependent in _OF_A_TABLE:
        await connection.execute(delete(dependent).where(dependent.c.table_id == table_id))
    await connection.execute(delete(tables).where(tables.c.id == table_id))
    return True


async def mark_published(connection: AsyncConnection, table_id: UUID, version: int) -> None:
    table = await lock_table(connection, table_id)
    if table is None:
        raise NotFound(f"there is no table {table_id} any more", code=Code.TABLE_NOT_FOUND)
    if version <= table.published_version:
        return
    if version > table.latest_version:
        raise ValueError(f"version {version} does not exist: the latest is {table.latest_version}")
    if version != table.published_version + 1:
        raise ValueError(
            f"version {version} cannot be published: the last that is, is {table.published_version}"
        )
    await connection.execute(
        update(tables).where(tables.c.id == table_id).values(published_version=version)
    )
    await connection.execute(
        update(commits)
        .where(commits.c.table_id == table_id, commits.c.version == version)
        .values(published=True)
    )


async def forget_content(connection: AsyncConnection, table_id: UUID, through: int) -> None:
    await connection.execute(
        update(commits)
        .where(
            commits.c.table_id == table_id,
            commits.c.version <= through,
            commits.c.content_held,
            commits.c.published,
        )
        .values(content_held=False)
    )


async def quarantine(connection: AsyncConnection, table_id: UUID, reason: str) -> None:
    table = await lock_table(connection, table_id)
    if table is None:
        return
    if table.state is not TableState.QUARANTINED:
        closed = Change(deed=Deed.QUARANTINE, by=SERVICE)
        await audit.note(connection, closed, table_id=table_id, table_name=table.name)
    await connection.execute(
        update(tables).where(tables.c.id == table_id).values(quarantined(reason))
    )
