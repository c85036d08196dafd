"""The ids that a table's metadata had: what tells a log again that was registered before.

Writers that replace a table give it another id, and what its earlier versions landed as stays its
own. So the ids of versions that a rebuild, or a registration, leaves out of the index are kept
beside it.
"""

from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import Uuid, func, literal, select
from sqlalchemy.dialects.postgresql import insert as insert_or_pass
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.index.rows.keys import key
from tidegate_service.index.rows.records import metadata_of
from tidegate_service.index.schema.forgotten import forgotten_tables
from tidegate_service.index.schema.tables import metadata_versions, past_metadata_ids


async def of_versions(connection: AsyncConnection, table_id: UUID) -> set[str]:
    """The ids at the versions that the index has."""
    of_table = select(metadata_versions.c.metadata).where(metadata_versions.c.table_id == table_id)
    async with connection.stream(of_table.distinct()) as rows:
        return {metadata_of(row.metadata).id async for row in rows}


async def known(connection: AsyncConnection, table_id: UUID) -> list[str]:
    """These and the earlier ones, as `keys.key` stores them."""
    earlier = select(past_metadata_ids.c.metadata_id).where(
        past_metadata_ids.c.table_id == table_id
    )
    past = set((await connection.execute(earlier)).scalars())
    return sorted(past | _keys(await of_versions(connection, table_id)))


async def keep(connection: AsyncConnection, table_id: UUID) -> None:
    """Keep those of the versions, which are about to go."""
    ids = _keys(await of_versions(connection, table_id))
    rows = [{"table_id": table_id, "metadata_id": one} for one in ids]
    if rows:
        await connection.execute(insert_or_pass(past_metadata_ids).on_conflict_do_nothing(), rows)


async def take_over(connection: AsyncConnection, table_id: UUID, *, kept_id: UUID) -> None:
    """Keep those of the forgotten table that this one is."""
    ids = select(literal(table_id, Uuid()), func.unnest(forgotten_tables.c.metadata_ids)).where(
        forgotten_tables.c.id == kept_id
    )
    columns = ["table_id", "metadata_id"]
    await connection.execute(
        insert_or_pass(past_metadata_ids).from_select(columns, ids).on_conflict_do_nothing()
    )


def _keys(ids: Iterable[str]) -> set[str]:
    return {key(one) for one in ids}
