"""Making a table's index anew from its log (docs/invariants.md, I13).

The log is what a plain table is; of a catalog-managed one it is all but the versions that are
not published, whose bytes the index holds. Both are read into the emptied index in one commit
section, so that nobody ever sees a table half made, and what cannot be read changes nothing.

The section of a plain table reads a copy of the log, which is made before the row is locked. That
of a catalog-managed table compares the log with the index and puts versions back, so it reads the
store itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate_protocol.base.problems import Code
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.catalog_managed.own_log import Ends, not_own
from tidegate_service.core.catalog_managed.ratified_log import (
    LostCommit,
    go_on,
    note_lost,
    tell_lost,
)
from tidegate_service.core.catalog_managed.set_back import Found, quarantine_for
from tidegate_service.core.catalog_managed.whole_log import make_whole
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, NotFound, Refused
from tidegate_service.core.log.catching_up.sight import Behind, SeenNow
from tidegate_service.core.log.copied_log import CopiedLog
from tidegate_service.core.log.copy_file import CopyFile
from tidegate_service.core.log.data_paths import DataPaths
from tidegate_service.core.log.load import adopt
from tidegate_service.core.log.reading_time import ReadingTime
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import QuarantineCause, TableRecord
from tidegate_service.core.ports.store.storage import Log, LogReader
from tidegate_service.core.tables.lookup import get_table

COPIED_ON = 5
"""A copy is continued so often for versions that were committed since it was made."""

_PUT_BACK = (
    "put the missing files back: GET /tables/{table}/verify names them, and "
    "GET /tables/{table}/commits/{version} has the bytes that the index keeps"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A table's head after its index was made anew, and what of it the log has no place for."""

    table: TableRecord
    lost: tuple[LostCommit, ...]


async def rebuild_table(context: Context, ref: str) -> TableRecord:
    """The table's head after it. Raises as `rebuild` does."""
    return (await rebuild(context, ref)).table


async def rebuild(context: Context, ref: str) -> Rebuilt:
    """Make the table's index anew.

    Raises `Refused`: what `register` does for a log that cannot be read, and `broken-log` for
    one that ends before the index does, since versions that were answered for would be lost. A
    catalog-managed table is quarantined then.
    """
    table = await get_table(context, ref)
    return await context.running.run((table.id, "rebuild"), _rebuilt(context, table.id))


async def _rebuilt(context: Context, table_id: str) -> Rebuilt:
    glance = await context.index.glance(table_id)
    if glance is None:
        raise NotFound("there is no such table any more", code=Code.TABLE_NOT_FOUND)
    if glance.table.catalog_managed:
        return await _rebuild_catalog_managed(context, table_id)
    place = glance.database, glance.table.epoch
    rebuilt = await rebuild_from_copy(
        context, glance.table, lambda section: (section.database, section.table.epoch) == place
    )
    if rebuilt is None:
        raise IndexUnavailable(
            f"the index of table {glance.table.name} was made anew meanwhile; it can be tried again"
        )
    return rebuilt


async def rebuild_from_copy(
    context: Context, table: TableRecord, is_expected: Callable[[CommitSection], bool]
) -> Rebuilt | None:
    """Make a plain table's index anew from a copy of its log. None where the row is not as expected
    any more by then; nothing is changed in that case.

    Raises `Refused` as `rebuild` does, `NotFound` where the table is gone, and `Unavailable`, also
    where more is committed than can be copied.
    """
    log = context.storage.log(table.location, who=context.who)
    async with context.copies.turn(context.who):
        with CopyFile(context.copies, who=context.who) as file:
            copied = CopiedLog(log, file, location=table.location, monotonic_s=context.monotonic_s)
            for _ in range(COPIED_ON):
                await copied.copy()
                try:
                    async with context.index.commit_section(table.id, who=context.who) as section:
                        if not is_expected(section):
                            return None
                        copied.allow(section.table.latest_version)
                        # The log is the truth, whatever was put into it since.
                        await _from_log(context, section, copied)
                        return await _saved(context, section)
                except Behind:
                    continue
    raise IndexUnavailable(
        f"table {table.name} is committed to faster than its log can be read; it can be tried again"
    )


async def _rebuild_catalog_managed(context: Context, table_id: str) -> Rebuilt:
    try:
        async with context.index.commit_section(table_id, who=context.who) as section:
            log = context.storage.log(section.table.location, who=context.who)
            return await _saved(context, section, await _from_log_and_index(context, section, log))
    except Refused as refused:
        async with context.index.commit_section(table_id, who=context.who) as section:
            # What it commits from now on may be put into a log that is not its own.
            await quarantine_for(section, Found(QuarantineCause.LOG, refused.detail))
        raise


async def _saved(
    context: Context, section: CommitSection, parted: tuple[LostCommit, ...] = ()
) -> Rebuilt:
    """Save the index that was made anew. `parted` are the versions that do not follow from what is
    published."""
    # Their writers were told that they landed: they are told otherwise, and not landed once more.
    replaced = await section.restore_ids()
    lost = parted or tuple(LostCommit(version=v, transaction_id=name) for v, name in replaced)
    rebuilt = Change(deed=Deed.REBUILD, by=context.caller, version=section.table.latest_version)
    await section.note(rebuilt)
    await note_lost(context, section, lost)
    await section.save()
    # What was committed before is what the rebuild says; its epoch may be one that was there before
    # the database was set back.
    context.heads.forget(section.table.id)
    tell_lost(section.table, lost)
    return Rebuilt(table=section.table, lost=lost)


async def _from_log(
    context: Context, section: CommitSection, log: LogReader, *, through: int | None = None
) -> None:
    """Empty the index, and read the log into it up to a version or to its end."""
    before = section.table
    time = ReadingTime(context.limits, context.monotonic_s)
    await section.reset()
    if before.published_version >= 0:
        # Nobody is shown a file by this, and who scans the table is judged then.
        paths = DataPaths(location=before.location, policy=context.locations, reader=None)
        await adopt(section, log, paths, time, through=through)
    if section.table.latest_version < before.published_version:
        raise Refused(
            f"the log of table {before.name} ends at version {section.table.latest_version}, and "
            f"the index knows versions up to {before.published_version} that were in it: the rest "
            "of the log is lost",
            code=Code.BROKEN_LOG,
            hint=_PUT_BACK + _given_up(before),
        )


async def _from_log_and_index(
    context: Context, section: CommitSection, log: Log
) -> tuple[LostCommit, ...]:
    """The same for a catalog-managed table, and behind it the versions that only the index holds;
    returns those that do not follow from what is published."""
    before = section.table
    await _check_own(section, log)
    await section.keep_unpublished()
    # What lies behind the published versions need not be one of the table.
    await _from_log(context, section, log, through=before.published_version)
    if (other := await section.rewritten()) is not None:
        raise Refused(
            f"version {other} of table {before.name} lies in the log with other bytes than were "
            "ratified",
            code=Code.BROKEN_LOG,
            hint=f"put the ratified file back: GET /tables/{before.name}/verify gives its SHA-256",
        )
    return await go_on(section, log, before)


def _given_up(table: TableRecord) -> str:
    if table.quarantine_cause is QuarantineCause.SET_BACK:
        return "; or give the table up (docs/maintenance.md, a table that cannot be rebuilt)"
    if table.catalog_managed:
        return ""
    return ", or forget the table and register it again if they are lost for good"


async def _check_own(section: CommitSection, log: Log) -> None:
    """See that the log is the table's, and make it whole where files of it are gone."""
    why = await make_whole(section, log)
    if why is None:
        sight = SeenNow(log)
        last, _ = await sight.see(section, Ends(section.table.published_version))
        why = await not_own(section, sight, last)
    if why is not None:
        raise Refused(f"table {section.table.name}: {why}", code=Code.BROKEN_LOG)
