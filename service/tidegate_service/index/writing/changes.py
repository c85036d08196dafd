"""Changes of the index beside commits. Each can be made twice and has then happened once."""

from uuid import UUID

from sqlalchemy import insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.ports.records import NewTable, TableRecord, TableState
from tidegate_service.index.rows.newest import newest
from tidegate_service.index.rows.records import table_record
from tidegate_service.index.schema.tables import tables

_CLOCK = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")


async def lock_table(connection: AsyncConnection, table_id: UUID) -> TableRecord | None:
    """Wait for the row's lock, and hold it until the transaction ends. The statement joins nothing:
    what was committed during the wait is visible only to later statements."""
    query = newest(select(tables), tables.c.id, table_id).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else table_record(row)


async def insert_table(connection: AsyncConnection, table: NewTable) -> TableRecord:
    """Insert the row of a table without versions. The transaction has the row's lock by that."""
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
