"""Registering a table: a log that exists, and what it says, in the index; or nothing."""

from dataclasses import dataclass

from tidegate_service.core.adopt import adopt
from tidegate_service.core.audit import Change, Deed
from tidegate_service.core.clock import check_clock
from tidegate_service.core.context import Context
from tidegate_service.core.data_paths import DataPaths
from tidegate_service.core.errors import CommitStateUnknown, TableExists
from tidegate_service.core.names import check_name
from tidegate_service.core.records import NewTable, TableRecord

_ACTIVITY = "register"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterTable:
    """The name that a table is to have here, and the folder that its `_delta_log` is in."""

    name: str
    location: str


async def register_table(context: Context, request: RegisterTable) -> tuple[TableRecord, bool]:
    """Read the table's log into the index and return its head, and whether it was new here.

    A table that has the name and the location already is returned as it is, so a request that
    was not answered is sent again; the registration that it began goes on without it. Raises
    `Refused` for a log that cannot be carried (`core.adopt`), `TableExists` for a name or
    location in use, `Unavailable` where nothing is known to have happened.
    """
    check_name(request.name)
    table = NewTable(
        id=context.new_id(),
        name=request.name,
        location=context.locations.canonical(request.location),
        catalog_managed=False,
    )
    known = await _known(context, table)
    if known is not None:
        return known, False
    return await context.sections.run((table.location, _ACTIVITY), _register(context, table))


async def _register(context: Context, table: NewTable) -> tuple[TableRecord, bool]:
    try:
        return await _section(context, table), True
    except TableExists:
        known = await _known(context, table)
        if known is None:
            raise
        return known, False
    except CommitStateUnknown as unknown:
        return await _settled(context, table, unknown)


async def _settled(
    context: Context, table: NewTable, unknown: CommitStateUnknown
) -> tuple[TableRecord, bool]:
    """Find out what became of a registration whose COMMIT was not answered, by doing it again:
    its name is waited for until the first attempt has ended."""
    try:
        return await _section(context, table), True
    except TableExists:
        known = await _known(context, table)
        if known is None:
            raise
        return known, known.id == table.id
    except CommitStateUnknown:
        raise unknown from None


async def _section(context: Context, table: NewTable) -> TableRecord:
    log = context.storage.log(table.location)
    paths = DataPaths(location=table.location, policy=context.locations)
    async with context.index.creation_section(table) as section:
        check_clock(context, section)
        await adopt(section, log, paths)
        version = section.table.latest_version
        await section.note(Change(deed=Deed.REGISTER, by=context.caller, version=version))
        await section.save()
    return section.table


async def _known(context: Context, table: NewTable) -> TableRecord | None:
    found = await context.index.table(table.name)
    return found if found is not None and found.location == table.location else None
