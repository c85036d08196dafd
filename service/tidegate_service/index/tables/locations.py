"""No table inside another: creations of tables exclude each other by their locations.

A unique constraint refuses equal locations, also between creations that do not see each
other yet; there is no constraint for one inside another. So a creation takes advisory locks:
its own location exclusively, every folder above it shared. Of two creations, exactly if one's
location is inside the other's, the second has its locks once the first has ended, and then looks
at what that has committed. Sharing the folders above, creations side by side don't wait. All
take their locks from the top down, so they cannot wait in a circle.

Nobody waits in Postgres' queue for an exclusive lock: whoever did would have everybody queue up
behind who then asks for the folder as one that is above theirs, for as long as a registration
inside it takes. It is asked for again and again instead, for a while.

Local folders whose names differ in the case of ASCII letters are one place here, since not every
file system tells them apart.
"""

import asyncio
import random
import time
from hashlib import sha256

from sqlalchemy import ColumnElement, Select, and_, func, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.base.text import excerpt
from tidegate_service.core.errors import IndexUnavailable, TableExists
from tidegate_service.core.ports.records import NewTable
from tidegate_service.core.tables.place_rights import location_in_use
from tidegate_service.index.reading.reads import lower
from tidegate_service.index.schema.tables import tables

_SHARE_ABOVE = text(
    "SELECT pg_advisory_xact_lock_shared(folder) FROM unnest(CAST(:folders AS bigint[])) AS folder"
)
_OWN = text("SELECT pg_try_advisory_xact_lock(:location)")
_FIRST_REST_S = 0.02
_LONGEST_REST_S = 0.5
_AFTER_SLASH = chr(ord("/") + 1)


async def claim(connection: AsyncConnection, table: NewTable, *, within_s: float) -> None:
    """Hold the location until the transaction ends. Raises `TableExists` where it overlaps
    with an existing table's, or the name is in use, and `IndexUnavailable` where others that are
    about to have tables in it, or at it, hold it for longer than `within_s`."""
    # Who would be refused all the same waits for nobody.
    await _look(connection, table)
    place = _folded(table.location)
    above = [_lock(folder) for folder in folders_above(place)]
    await connection.execute(_SHARE_ABOVE, {"folders": above})
    await _take(connection, place, within_s=within_s)
    # By a statement of its own, which sees what was committed until the locks were had.
    await _look(connection, table)


async def _take(connection: AsyncConnection, place: str, *, within_s: float) -> None:
    until = time.monotonic() + within_s
    rest_s = _FIRST_REST_S
    while not (await connection.execute(_OWN, {"location": _lock(place)})).scalar_one():
        # By chance, so that those who ask for the same do not meet each time.
        rested_s = random.uniform(rest_s / 2, rest_s)
        if time.monotonic() + rested_s > until:
            raise IndexUnavailable(
                f"the location {excerpt(place)}, or one inside it, is about to become another "
                "table's; ask again"
            )
        await asyncio.sleep(rested_s)
        rest_s = min(2 * rest_s, _LONGEST_REST_S)


async def _look(connection: AsyncConnection, table: NewTable) -> None:
    row = (await connection.execute(in_the_way(table))).one_or_none()
    if row is None:
        return
    if row.same_name:
        raise TableExists(f"a table named {row.name} exists already")
    raise location_in_use(table.location)


def in_the_way(table: NewTable) -> Select[tuple[str, bool]]:
    """A table of the new one's name, or else one whose location overlaps with its location."""
    same_name = func.lower(tables.c.name) == lower(table.name)
    return (
        select(tables.c.name, same_name.label("same_name"))
        .where(or_(same_name, overlapping(tables.c.location, table.location)))
        .order_by(same_name.desc())
        .limit(1)
    )


def overlapping(column: ColumnElement[str], location: str) -> ColumnElement[bool]:
    """Whether the column's location is this one, or lies inside or around it. Each part is looked
    up by an index."""
    place = _folded(location)
    found = func.lower(column) if _may_fold(location) else column
    around = found.in_([place, *folders_above(place)])
    # In the order of bytes, everything that begins with `<place>/`.
    return or_(around, and_(found >= f"{place}/", found < f"{place}{_AFTER_SLASH}"))


def folders_above(location: str) -> list[str]:
    """Every proper prefix that ends before a slash, the shortest first; canonical locations
    have no slash at their end."""
    return [location[:end] for end, character in enumerate(location) if character == "/"]


def _may_fold(location: str) -> bool:
    return location.startswith("file:")


def _folded(location: str) -> str:
    # ASCII letters alone, as Postgres does it in the column's collation.
    return location.encode().lower().decode() if _may_fold(location) else location


def _lock(folder: str) -> int:
    digest = sha256(b"tidegate location " + folder.encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
