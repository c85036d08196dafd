"""Who may put a table at a location of their own choice.

A caller who names a location may do harm to others: a table blocks every place inside and around
its own, and whoever registers a folder lets others read it. So the location has to be the caller's
as far as anybody's: the folder that it is in, and what was there before.

Whether there is a table that the caller may not see is not told: a scope is read off the location,
and a place that a forgotten table keeps is answered like one that is in use.
"""

from tidegate_protocol.base.text import excerpt
from tidegate_service.core.access.roles import EVERYTHING, Role
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Forbidden, TableExists
from tidegate_service.core.ports.index import CommitSection


def check_folder(context: Context, location: str) -> None:
    """See that the caller is an admin of the scope whose folder the canonical location is in.
    Raises `Forbidden`."""
    principal, scope = context.caller.principal, context.locations.scope_of(location)
    if scope is None or principal.may(Role.ADMIN, scope):
        return
    if scope == EVERYTHING:
        why = "is in no catalog's folder of the warehouse, or around them, and"
        of = "everything ('*')"
    else:
        why, of = "is in a folder of the warehouse that belongs to a scope, and", scope
    raise Forbidden(
        f"the location {excerpt(location)} {why} the principal {principal.name!r} is no admin "
        f"of {of}"
    )


async def check_forgotten(context: Context, section: CommitSection) -> None:
    """See that the caller is an admin of every table that was forgotten at, inside or around the
    location of the section's table. Raises `TableExists`."""
    scopes = context.caller.principal.scopes(Role.ADMIN)
    if scopes is not None and await section.keeps_others(scopes):
        raise location_in_use(section.table.location)


def location_in_use(location: str) -> TableExists:
    """The same for every table in the way: the caller need not be one who may see it."""
    return TableExists(
        f"the location {location} is, or lies inside or around, another table's",
        hint="GET /api/v1/tables lists tables with their locations; a forgotten table's place is "
        "its admins'",
    )
