"""Who may put a table at a location of their own choice.

A caller who names a location may do harm to others: a table blocks every place inside and around
its own, and whoever registers a folder lets others read it. So the caller has to be an admin of the
folder that the location is in, and of the tables that were there before.

Whether there is a table that the caller may not see is not told: the folder's scope is read off the
location, and a forgotten table's place is answered like a place in use.
"""

from collections.abc import Collection

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.paths import LOG_FOLDER
from tidegate_service.core.access.roles import EVERYTHING, Role
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Forbidden, Refused, TableExists
from tidegate_service.core.ports.forgotten import KeptPlaces
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


def is_shared(context: Context, location: str) -> bool:
    """Whether the folder is in no scope's, or in one's that the caller is no admin of, so that
    others may have tables around it and in it that no index here knows, and the caller may not take
    these for their own."""
    principal = context.caller.principal
    if principal.may_everywhere(Role.ADMIN):
        return False
    scope = context.locations.scope_of(location)
    return scope is None or not principal.may(Role.ADMIN, scope)


async def check_above(context: Context, location: str) -> None:
    """See that no table that no index here knows is around the location of one, if that is shared:
    what lies there may be its files. Where a table was forgotten, another writer may have made one
    since. Raises `Refused`."""
    if is_shared(context, location):
        await _check_above(context, location)


async def check_around(context: Context, section: CommitSection) -> None:
    """`check_forgotten`, and then what `check_above` is for: the index has said before that no
    table of its own is in the way, and says so more precisely. Raises as they do."""
    kept, location = await check_forgotten(context, section), section.table.location
    if kept is not None and is_shared(context, location):
        # The log of a table that was forgotten is no stranger's to its admin.
        await _check_above(context, location, but=kept.around)


async def _check_above(context: Context, location: str, *, but: Collection[str] = ()) -> None:
    above = await context.storage.log_above(location, but=but, who=context.who)
    if above is not None:
        raise Refused(
            f"the location {excerpt(location)} lies in another table's folder, whose log is at "
            f"{excerpt(f'{above}/{LOG_FOLDER}')}: files that are nobody's by the one are the "
            "other's",
            code=Code.INVALID_LOCATION,
            hint="an admin of everything ('*') may have a table there, and vacuum it",
        )


async def check_forgotten(context: Context, section: CommitSection) -> KeptPlaces | None:
    """See that the caller is an admin of every table that was forgotten at, inside or around the
    location of the section's table. Returns where; None where they are an admin of everything.
    Raises `TableExists`."""
    scopes = context.caller.principal.scopes(Role.ADMIN)
    if scopes is None:
        return None
    kept = await section.kept_places(scopes)
    if kept.others:
        raise location_in_use(section.table.location)
    return kept


def location_in_use(location: str) -> TableExists:
    """The answer for a place in use. It names no table, since the caller may not be allowed to see
    the table that is in the way."""
    return TableExists(
        f"the location {location} is, or lies inside or around, another table's",
        hint="GET /api/v1/tables lists tables with their locations; a forgotten table's place is "
        "its admins'",
    )
