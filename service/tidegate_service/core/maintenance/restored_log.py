"""What a catalog-managed table's log has to be before the index, which may hold the last copy of
what was ratified, lets the table go.

A table that was given up is let go as it is.
"""

from typing import NoReturn

from tidegate_service.core.catalog_managed.findings import Found
from tidegate_service.core.catalog_managed.set_back import check_none_lost, quarantine_for
from tidegate_service.core.catalog_managed.whole_log import differing, make_whole, why_differing
from tidegate_service.core.checkpoints.lost_checkpoint import restore_checkpoint
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, TableQuarantined
from tidegate_service.core.log.catching_up.catch_up import with_log_read
from tidegate_service.core.log.catching_up.sight import SeenBefore
from tidegate_service.core.ports.records import QuarantineCause, TableHead


async def check_bytes(context: Context, table: TableHead) -> None:
    """See that the log has no other bytes than were ratified. Raises `TableQuarantined`, after
    saving that, and `Unavailable`."""
    if table.quarantine_cause is not QuarantineCause.GIVEN_UP:
        log = context.storage.log(table.location, who=context.who)
        found = await differing(context.index, log, table)
        if found is not None:
            await _refuse(context, table, *found)


async def restore_log(context: Context, table: TableHead) -> None:
    """Put back what the log has lost, and see that the database has lost nothing. Raises as
    `check_bytes`."""
    if table.quarantine_cause is not QuarantineCause.GIVEN_UP:
        await restore_checkpoint(context, table)
        await _see_that_none_is_lost(context, table)


async def _refuse(context: Context, table: TableHead, version: int, sha256: str) -> NoReturn:
    async with context.index.commit_section(table.id, who=context.who) as section:
        why = await why_differing(section, version, sha256)
        if why is None:
            raise IndexUnavailable(f"table {table.name} was changed meanwhile; ask again")
        await quarantine_for(section, Found(QuarantineCause.LOG, why))
    raise TableQuarantined(f"table {table.name}: {why}")


async def _see_that_none_is_lost(context: Context, table: TableHead) -> None:
    async def section(sight: SeenBefore) -> None:
        async with context.index.commit_section(table.id, who=context.who) as section:
            why = await make_whole(section, context.storage.log(table.location, who=context.who))
            if why is not None:
                await quarantine_for(section, Found(QuarantineCause.LOG, why))
                raise TableQuarantined(f"table {table.name}: {why}")
            await check_none_lost(context, section, sight)

    await with_log_read(context, table.id, section)
