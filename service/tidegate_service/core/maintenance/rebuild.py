"""Making a table's index anew from its log (docs/invariants.md, I13).

The log is what a plain table is; of a catalog-managed one it is all but the versions that are
not published, whose bytes the index holds. Both are read into the emptied index in one commit
section, so that nobody ever sees a table half made, and what cannot be read changes nothing.
"""

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
from tidegate_service.core.errors import Refused
from tidegate_service.core.log.catching_up.sight import SeenNow
from tidegate_service.core.log.data_paths import DataPaths
from tidegate_service.core.log.load import adopt
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import QuarantineCause, TableRecord
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.tables.lookup import get_table

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
    try:
        return await _rebuild(context, table_id)
    except Refused as refused:
        async with context.index.commit_section(table_id, who=context.who) as section:
            if section.table.catalog_managed:
                # What it commits from now on may be put into a log that is not its own.
                await quarantine_for(section, Found(QuarantineCause.LOG, refused.detail))
        raise


async def _rebuild(context: Context, table_id: str) -> Rebuilt:
    async with context.index.commit_section(table_id, who=context.who) as section:
        lost = await rebuild_in(context, section)
        await section.save()
    # What was committed before is what the rebuild says; its epoch may be one that was there before
    # the database was set back.
    context.heads.forget(table_id)
    tell_lost(section.table, lost)
    return Rebuilt(table=section.table, lost=lost)


async def rebuild_in(context: Context, section: CommitSection) -> tuple[LostCommit, ...]:
    """The same inside a section, which the caller saves; returns what is lost."""
    log = context.storage.log(section.table.location, who=context.who)
    parted: tuple[LostCommit, ...] = ()
    if section.table.catalog_managed:
        parted = await _from_log_and_index(context, section, log)
    else:
        # The log is the truth, whatever was put into it since.
        await _from_log(context, section, log)
    # Their writers were told that they landed: they are told otherwise, and not landed once more.
    replaced = await section.restore_ids()
    lost = parted or tuple(LostCommit(version=v, transaction_id=name) for v, name in replaced)
    rebuilt = Change(deed=Deed.REBUILD, by=context.caller, version=section.table.latest_version)
    await section.note(rebuilt)
    await note_lost(context, section, lost)
    return lost


async def _from_log(
    context: Context, section: CommitSection, log: Log, *, through: int | None = None
) -> None:
    """Empty the index, and read the log into it up to a version or to its end."""
    before = section.table
    await section.reset()
    if before.published_version >= 0:
        # Nobody is shown a file by this, and who scans the table is judged then.
        paths = DataPaths(location=before.location, policy=context.locations, reader=None)
        await adopt(section, log, paths, through=through)
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
