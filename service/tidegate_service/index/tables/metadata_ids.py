"""The ids that a table's metadata had: what tells a log again that was registered before.

Writers that replace a table give it another id, and what its earlier versions landed as stays its
own. So the ids of versions that a rebuild, or a registration, leaves out of the index are kept
beside it, as are those of versions that leave the index when their log was cleaned up.
"""

from collections.abc import Iterable
from uuid import UUID

import msgspec
from sqlalchemy import Uuid, func, literal, select
from sqlalchemy.dialects.postgresql import insert as insert_or_pass
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.proposal.transaction import BYTES_AN_ACTION
from tidegate_service.core.sharing import offload
from tidegate_service.index.rows.keys import key
from tidegate_service.index.rows.pages import bounded, bytes_of
from tidegate_service.index.schema.forgotten import forgotten_tables
from tidegate_service.index.schema.tables import metadata_versions, past_metadata_ids

VERSIONS_AT_ONCE = 500
"""Of a page, which is bounded by its bytes, too."""


class _Metadata(msgspec.Struct):
    id: str


class _Line(msgspec.Struct):
    """Nothing else of it is made, which may be of megabytes."""

    metadata: _Metadata = msgspec.field(name="metaData")


_LINES = msgspec.json.Decoder(_Line)


async def of_versions(
    connection: AsyncConnection, table_id: UUID, *, before: int | None = None
) -> set[str]:
    """The ids at the versions that the index has, or at those of them before one."""
    ids: set[str] = set()
    version, rows = metadata_versions.c.version, metadata_versions.c.metadata
    of_table = (
        select(version, rows)
        .where(metadata_versions.c.table_id == table_id)
        .order_by(version)
        .limit(VERSIONS_AT_ONCE)
    )
    if before is not None:
        of_table = of_table.where(version < before)
    after = -1
    while True:
        page = bounded(
            of_table.where(version > after),
            size=bytes_of(rows),
            order=lambda columns: columns.version,
        )
        found = (await connection.execute(page)).all()
        if not found:
            return ids
        after = found[-1].version
        lines = [row.metadata for row in found]
        ids |= await offload.run(sum(map(len, lines)) // BYTES_AN_ACTION, _ids, lines)


def _ids(lines: Iterable[bytes]) -> set[str]:
    return {_LINES.decode(line).metadata.id for line in lines}


async def known(connection: AsyncConnection, table_id: UUID) -> list[str]:
    """These and the earlier ones, as `keys.key` stores them."""
    earlier = select(past_metadata_ids.c.metadata_id).where(
        past_metadata_ids.c.table_id == table_id
    )
    past = set((await connection.execute(earlier)).scalars())
    return sorted(past | _keys(await of_versions(connection, table_id)))


async def keep(connection: AsyncConnection, table_id: UUID, *, before: int | None = None) -> None:
    """Keep those of the versions, or of the ones before a version, which are about to go."""
    ids = _keys(await of_versions(connection, table_id, before=before))
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
