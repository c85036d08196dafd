"""Registering a table: a log that exists, and what it says, in the index; or nothing."""

from dataclasses import dataclass
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.access.names import check_name
from tidegate_service.core.access.roles import Role
from tidegate_service.core.catalog_managed.ratified_log import (
    record_lost,
    tell_lost,
    tell_unknown,
)
from tidegate_service.core.context import Context
from tidegate_service.core.errors import (
    CommitStateUnknown,
    Forbidden,
    NotFound,
    Refused,
    TableExists,
)
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.loading.bases import from_first_base
from tidegate_service.core.log.loading.data_paths import DataPaths
from tidegate_service.core.log.loading.load import adopt
from tidegate_service.core.log.loading.reading_time import ReadingTime
from tidegate_service.core.ports.records import NewTable, TableRecord
from tidegate_service.core.tables.in_turn import in_turn
from tidegate_service.core.tables.lookup import durable_table, find_head, wide_section
from tidegate_service.core.tables.place_rights import check_around, check_folder
from tidegate_service.core.tables.recall import (
    CatalogManagedRegistration,
    PlainRegistration,
    Registration,
)

_ACTIVITY = "register"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterTable:
    """The name that a table is to have here, and the folder that its `_delta_log` is in.
    `catalog_managed` is for a table that was catalog-managed here until it was forgotten.
    `by_marks` is for such a table that no index knows any more: its log says what it was."""

    name: str
    location: str
    catalog_managed: bool = False
    by_marks: bool = False


async def register_table(context: Context, request: RegisterTable) -> tuple[TableRecord, bool]:
    """Read the table's log into the index and return its head, and whether it was new here.

    A table that has the name and the location already is returned as it is, so a request that
    was not answered is sent again; the registration that it began goes on without it.

    Raises `Refused` for a log that cannot be carried (`core.log.loading.load`), `Forbidden` for a
    location that is not the caller's to name, and for marks that are not theirs to believe,
    `TableExists` for a name or location in use, `Unavailable` where nothing is known to have
    happened.
    """
    check_name(request.name)
    registration = _registration(context, request)
    table = NewTable(
        id=context.new_id(),
        name=request.name,
        location=context.locations.canonical(request.location),
        catalog_managed=request.catalog_managed,
    )
    known = await _known(context, table)
    if known is not None:
        return known, False
    check_folder(context, table.location)
    work = partial(_register, context, table, registration)
    return await in_turn(context, context.registering, (_ACTIVITY, table.location), work)


def _registration(context: Context, request: RegisterTable) -> Registration:
    if request.catalog_managed:
        if request.by_marks:
            _check_by_marks(context)
        return CatalogManagedRegistration(by_marks=request.by_marks)
    if request.by_marks:
        raise Refused(
            "`by_marks` is for catalog-managed tables; a plain table is registered without it",
            code=Code.UNSUPPORTED_FEATURE,
        )
    return PlainRegistration()


def _check_by_marks(context: Context) -> None:
    """See that the caller may say what nobody can see in the log: that no other catalog, and no
    other index of this service, goes on with it."""
    principal = context.caller.principal
    if not principal.may_everywhere(Role.ADMIN):
        raise Forbidden(
            "registering a table by its marks takes an admin of everything ('*'), and the "
            f"principal {principal.name!r} is none"
        )


async def _register(
    context: Context, table: NewTable, registration: Registration
) -> tuple[TableRecord, bool]:
    try:
        return await _section(context, table, registration), True
    except TableExists:
        known = await _known(context, table)
        if known is None:
            raise
        return known, False
    except CommitStateUnknown as unknown:
        return await _retried(context, table, unknown, registration)


async def _retried(
    context: Context, table: NewTable, unknown: CommitStateUnknown, registration: Registration
) -> tuple[TableRecord, bool]:
    """Find out what became of a registration whose COMMIT was not answered, by doing it again:
    its name is waited for until the first attempt has ended."""
    try:
        return await _section(context, table, registration), True
    except TableExists:
        known = await _known(context, table)
        if known is None:
            raise
        return known, known.id == table.id
    except CommitStateUnknown:
        raise unknown from None


async def _section(context: Context, table: NewTable, registration: Registration) -> TableRecord:
    return await from_first_base(partial(_from_log, context, table, registration))


async def _from_log(
    context: Context, table: NewTable, registration: Registration, least: int
) -> TableRecord:
    log = context.storage.log(table.location, who=context.who)
    paths = DataPaths(
        location=table.location, policy=context.locations, reader=context.caller.principal
    )
    async with context.index.creation_section(table, who=context.who) as section:
        time = ReadingTime(context.limits, context.monotonic_s)
        check_clock(context, section)
        await check_around(context, section)
        was_ours = bool(await section.forgotten(catalog_managed=True, most=1))
        registration.check_place(table.location, was_ours=was_ours)
        try:
            read = await adopt(section, log, paths, time, least=least)
        except Refused as refused:
            if refused.code is not Code.UNSUPPORTED_FEATURE or not was_ours:
                raise
            raise Refused(
                refused.detail,
                code=refused.code,
                hint="a catalog-managed table was forgotten here: register it with catalog_managed",
            ) from refused
        lost, unknown = await registration.recall(section, log, read)
        version = section.table.latest_version
        await section.record_change(Change(deed=Deed.REGISTER, by=context.caller, version=version))
        await record_lost(context, section, lost)
        await section.save()
    tell_lost(section.table, lost)
    tell_unknown(section.table, unknown)
    return section.table


async def _known(context: Context, table: NewTable) -> TableRecord | None:
    try:
        found = await find_head(context, table.name)
    except NotFound:
        return None
    if found.location != table.location:
        return None
    # Its metadata may be megabytes, and a section waits for the row and for a standby.
    async with wide_section(context, found):
        return await durable_table(context, found.id)
