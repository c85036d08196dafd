"""What versions changed of a table, for upkeep that follows its commits."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.index.schema.tables import metadata_versions

PARTITIONS = 10_000
"""That are told one by one. Of more, or where not all is known any more, whoever asks goes through
all of the table."""
PARTITIONS_BYTES = 4 * 1024 * 1024

# The values come as a text; releases before this one kept them as the JSON string of it. Of files
# that were removed before the index's first version, there may be no row any more.
_TOUCHED = text("""
    WITH touched AS MATERIALIZED (
        SELECT partition_values #>> '{}' AS given FROM files
        WHERE table_id = :table_id AND added_version > :after AND added_version <= :through
        UNION
        SELECT partition_values #>> '{}' FROM files
        WHERE table_id = :table_id AND removed_version > :after AND removed_version <= :through
        LIMIT :most + 1
    ), summed AS (
        SELECT count(*) > :most OR sum(octet_length(given)) > :most_bytes
            OR (SELECT first_version > :after + 1 FROM tables WHERE id = :table_id) AS are_too_many
        FROM touched
    )
    SELECT given, are_too_many FROM touched CROSS JOIN summed WHERE NOT are_too_many
    UNION ALL SELECT NULL, are_too_many FROM summed WHERE are_too_many
""").bindparams(most=PARTITIONS, most_bytes=PARTITIONS_BYTES)


async def changed_metadata(
    connection: AsyncConnection, table_id: UUID, *, after: int
) -> int | None:
    query = select(func.min(metadata_versions.c.version)).where(
        metadata_versions.c.table_id == table_id, metadata_versions.c.version > after
    )
    found: int | None = (await connection.execute(query)).scalar_one()
    return found


async def touched_partitions(
    connection: AsyncConnection, table_id: UUID, *, after: int, through: int
) -> Sequence[str] | None:
    asked = {"table_id": table_id, "after": after, "through": through}
    rows = (await connection.execute(_TOUCHED, asked)).all()
    if any(row.are_too_many for row in rows):
        return None
    return [row.given for row in rows]
