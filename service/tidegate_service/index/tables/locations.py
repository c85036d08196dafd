"""No table inside another: creations of tables exclude each other by their locations.

A unique constraint refuses equal locations, also between creations that do not see each
other yet; there is no constraint for one inside another. So a creation takes advisory locks:
its own location exclusively, every folder above it shared. Two creations then wait for each
other exactly if one's location is inside the other's, and whoever comes second looks at what
the first has committed. Sharing the folders above, creations side by side don't wait. All
take their locks from the top down, so they cannot wait in a circle.
"""

from hashlib import sha256

from sqlalchemy import func, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.errors import TableExists
from tidegate_service.core.records import NewTable
from tidegate_service.index.reads import lower
from tidegate_service.index.schema import tables

_SHARE_ABOVE = text(
    "SELECT pg_advisory_xact_lock_shared(folder) FROM unnest(CAST(:folders AS bigint[])) AS folder"
)
_OWN = text("SELECT pg_advisory_xact_lock(:location)")


async def claim(connection: AsyncConnection, table: NewTable) -> None:
    """Hold the location until the transaction ends. Raises `TableExists` where it overlaps
    with an existing table's, or the name is in use."""
    above = folders_above(table.location)
    await connection.execute(_SHARE_ABOVE, {"folders": [_lock(folder) for folder in above]})
    await connection.execute(_OWN, {"location": _lock(table.location)})
    same_name = func.lower(tables.c.name) == lower(table.name)
    in_the_way = (
        select(tables.c.name, tables.c.location, same_name.label("same_name"))
        .where(
            or_(
                same_name,
                tables.c.location.in_([table.location, *above]),
                func.starts_with(tables.c.location, f"{table.location}/"),
            )
        )
        .order_by(same_name.desc())
        .limit(1)
    )
    row = (await connection.execute(in_the_way)).one_or_none()
    if row is None:
        return
    if row.same_name:
        raise TableExists(f"a table named {row.name} exists already")
    # Not whose: the caller need not be one who may see that table.
    raise TableExists(
        f"the location {table.location} is, or lies inside or around, another table's",
        hint="GET /api/v1/tables lists tables with their locations",
    )


def folders_above(location: str) -> list[str]:
    """Every proper prefix that ends before a slash, the shortest first; canonical locations
    have no slash at their end."""
    return [location[:end] for end, character in enumerate(location) if character == "/"]


def _lock(folder: str) -> int:
    digest = sha256(b"tidegate location " + folder.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
