"""Registering a table: a log that exists, and what it says, in the index; or nothing."""

from dataclasses import dataclass
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import CATALOG_MANAGED
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.segment import LogSegment
from tidegate_protocol.replay.commits import table_id
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.access.names import check_name
from tidegate_service.core.access.roles import Role
from tidegate_service.core.catalog_managed.ratified_log import (
    LostCommit,
    UnknownIds,
    check_marks,
    ratified,
    record_lost,
    tell_lost,
    tell_unknown,
    unknown_ids,
)
from tidegate_service.core.context import Context
from tidegate_service.core.errors import CommitStateUnknown, Forbidden, Refused, TableExists
from tidegate_service.core.log.bases import BaseRefused, from_first_base
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.data_paths import DataPaths
from tidegate_service.core.log.load import adopt
from tidegate_service.core.log.reading_time import ReadingTime
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import ForgottenTable, NewTable, TableRecord
from tidegate_service.core.tables.lookup import durable_table
from tidegate_service.core.tables.place_rights import check_folder, check_forgotten

_ACTIVITY = "register"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterTable:
    """The name that a table is to have here, and the folder that its `_delta_log` is in.
    `catalog_managed` for a table that was catalog-managed here until it was forgotten; `by_marks`
    for one that no index knows any more, whose log says that it was."""

    name: str
    location: str
    catalog_managed: bool = False
    by_marks: bool = False


async def register_table(context: Context, request: RegisterTable) -> tuple[TableRecord, bool]:
    """Read the table's log into the index and return its head, and whether it was new here.

    A table that has the name and the location already is returned as it is, so a request that
    was not answered is sent again; the registration that it began goes on without it. Raises
    `Refused` for a log that cannot be carried (`core.log.load`), `Forbidden` for a location that is
    not the caller's to name, and for marks that are not theirs to believe, `TableExists` for a
    name or location in use, `Unavailable` where nothing is known to have happened.
    """
    check_name(request.name)
    if request.by_marks:
        _check_by_marks(context, request)
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
    registering = _register(context, table, by_marks=request.by_marks)
    return await context.running.run((_ACTIVITY, table.location), registering)


def _check_by_marks(context: Context, request: RegisterTable) -> None:
    """See that the caller may say what nobody can see in the log: that no other catalog, and no
    other index of this service, goes on with it."""
    if not request.catalog_managed:
        raise Refused(
            "`by_marks` is for catalog-managed tables; a plain table is registered without it",
            code=Code.UNSUPPORTED_FEATURE,
        )
    principal = context.caller.principal
    if not principal.may_everywhere(Role.ADMIN):
        raise Forbidden(
            "registering a table by its marks takes an admin of everything ('*'), and the "
            f"principal {principal.name!r} is none"
        )


async def _register(
    context: Context, table: NewTable, *, by_marks: bool
) -> tuple[TableRecord, bool]:
    try:
        return await _section(context, table, by_marks=by_marks), True
    except TableExists:
        known = await _known(context, table)
        if known is None:
            raise
        return known, False
    except CommitStateUnknown as unknown:
        return await _retried(context, table, unknown, by_marks=by_marks)


async def _retried(
    context: Context, table: NewTable, unknown: CommitStateUnknown, *, by_marks: bool
) -> tuple[TableRecord, bool]:
    """Find out what became of a registration whose COMMIT was not answered, by doing it again:
    its name is waited for until the first attempt has ended."""
    try:
        return await _section(context, table, by_marks=by_marks), True
    except TableExists:
        known = await _known(context, table)
        if known is None:
            raise
        return known, known.id == table.id
    except CommitStateUnknown:
        raise unknown from None


async def _section(context: Context, table: NewTable, *, by_marks: bool) -> TableRecord:
    return await from_first_base(partial(_from_log, context, table, by_marks))


async def _from_log(context: Context, table: NewTable, by_marks: bool, least: int) -> TableRecord:
    log = context.storage.log(table.location, who=context.who)
    paths = DataPaths(
        location=table.location, policy=context.locations, reader=context.caller.principal
    )
    async with context.index.creation_section(table, who=context.who) as section:
        time = ReadingTime(context.limits, context.monotonic_s)
        check_clock(context, section)
        await check_forgotten(context, section)
        was_ours = bool(await section.forgotten(catalog_managed=True, most=1))
        if table.catalog_managed and not was_ours and not by_marks:
            raise Refused(
                f"no catalog-managed table is known to have been forgotten at {table.location}; "
                "this service is not the catalog of what lies there",
                code=Code.UNSUPPORTED_FEATURE,
                hint="where this index has lost a table of its own, as by a restore, an admin of "
                "everything registers it with `by_marks`",
            )
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
        lost, unknown = await _recall(section, read, by_marks=by_marks)
        version = section.table.latest_version
        await section.record_change(Change(deed=Deed.REGISTER, by=context.caller, version=version))
        await record_lost(context, section, lost)
        await section.save()
    tell_lost(section.table, lost)
    tell_unknown(section.table, unknown)
    return section.table


async def _recall(
    section: CommitSection, read: LogSegment, *, by_marks: bool
) -> tuple[list[LostCommit], UnknownIds | None]:
    """Bring back what is kept of the table from when it was forgotten at this place; returns what
    the log has other commits in the places of, and of a catalog-managed table the versions whose
    ids cannot be known. Another table that was here keeps its own: no version of it has metadata
    with an id that the log's has at any version. `read` is what the table was made from.

    Where a plain table's log holds no version any more from when a table was forgotten, nobody can
    tell. It is then taken for the one that was here last, so that nothing of that lands a second
    time. A catalog-managed table has the same id at all of its versions.
    """
    table = section.table
    kept = await section.forgotten(await section.metadata_ids())
    unknown = None
    if table.catalog_managed:
        kept = [old for old in kept if old.catalog_managed]
        if by_marks and not kept:
            await check_marks(section)
        else:
            old = await _check_whole(section, read, kept[0] if kept else None)
            unknown = unknown_ids(table, known=old.latest_version, older=read.older)
    elif not kept:
        last = await section.forgotten(most=1)
        kept = [old for old in last if old.latest_version < table.first_version]
    lost: list[LostCommit] = []
    for old in kept:
        recalled = await section.recall(old)
        if table.catalog_managed and recalled.rewritten is not None:
            raise Refused(
                f"version {recalled.rewritten} lies in the log with other bytes than were ratified",
                code=Code.BROKEN_LOG,
                hint="put the ratified file back",
            )
        lost += [LostCommit(version=v, transaction_id=name) for v, name in recalled.lost]
    return lost, unknown


async def _check_whole(
    section: CommitSection, read: LogSegment, old: ForgottenTable | None
) -> ForgottenTable:
    """See that the log is what was ratified of a catalog-managed table, all of it and no more;
    returns `old`.

    What lies behind the head that was kept, and is ratified by its marks, is of it: the database
    may be one that was set back to when the table was forgotten. So the service may have cleaned
    the log up past that head, to a checkpoint and the commit of its version.
    """
    table = section.table
    if old is None or table.protocol is None or not supports(table.protocol, CATALOG_MANAGED):
        raise Refused(
            f"what lies at {table.location} is not the catalog-managed table that was forgotten "
            "there",
            code=Code.UNSUPPORTED_FEATURE,
            hint="register it as a plain table, if it is one",
        )
    if table.latest_version < old.latest_version:
        raise Refused(
            f"the log ends at version {table.latest_version}, and version {old.latest_version} was "
            "the last one that was ratified",
            code=Code.BROKEN_LOG,
            hint="put the missing files back",
        )
    first = max(old.latest_version + 1, table.first_version)
    if first == table.first_version:
        await _check_beginning(section, read, old)
    for version in range(first, table.latest_version + 1):
        if await ratified(section, version) is None:
            raise Refused(
                f"version {version} lies in the log behind version {old.latest_version}, the last "
                "one that was ratified, and this service did not write it",
                code=Code.BROKEN_LOG,
                hint="move it away, with whatever lies behind it",
            )
    sha256 = await section.head_sha256()
    if (
        table.latest_version == old.latest_version
        and None not in (sha256, old.content_sha256)
        and sha256 != old.content_sha256
    ):
        raise Refused(
            f"version {old.latest_version} lies in the log with other bytes than were ratified",
            code=Code.BROKEN_LOG,
            hint="put the ratified file back",
        )
    return old


async def _check_beginning(section: CommitSection, read: LogSegment, old: ForgottenTable) -> None:
    """See that the service itself has cleaned up a log that begins behind the head that was kept:
    it leaves the commit of the checkpoint's version, which says what table it was written for. Of
    an earlier checkpoint, a clean-up that was cut short may leave less."""
    table = section.table
    info = await ratified(section, table.first_version)
    if info is not None and table.metadata is not None and table_id(info) == table.metadata.id:
        return
    why = (
        f"the log begins with a checkpoint of version {table.first_version}, and version "
        f"{old.latest_version} was the last one that was ratified; the commit of the checkpoint's "
        "version is not there, or does not say that this service wrote it for this table"
    )
    hint = "put the missing files back"
    if read.newest is not None:
        raise BaseRefused(why, version=table.first_version, hint=hint)
    raise Refused(why, code=Code.BROKEN_LOG, hint=hint)


async def _known(context: Context, table: NewTable) -> TableRecord | None:
    found = await context.index.table(table.name)
    if found is None or found.location != table.location:
        return None
    return await durable_table(context, found.id)
