"""Ending a quarantine once its cause is gone."""

from functools import partial

from tidegate_protocol.replay.commits import UnreadableCommit
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.context import Context
from tidegate_service.core.log.catching_up.catch_up import read_on
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.maintenance.kinds import maintenance_of
from tidegate_service.core.maintenance.release_checks import Check, still_broken
from tidegate_service.core.ports.records import TableHead, TableRecord, TableState
from tidegate_service.core.tables.in_turn import in_turn
from tidegate_service.core.tables.lookup import find_head, get_table


async def release_table(context: Context, ref: str) -> TableRecord:
    """The table's head, which takes commits again. A table that is not quarantined is left as
    it is.

    Raises `Refused` (`broken-log`) where the log still holds what the index cannot go on from, and
    where the database was set back, which a rebuild alone makes good.
    """
    table = await find_head(context, ref)
    work = partial(_release, context, table.id)
    return await in_turn(context, context.releasing, ("release", table.id), work)


async def _release(context: Context, table_id: str) -> TableRecord:
    table = await get_table(context, table_id)
    if table.state is not TableState.QUARANTINED:
        return table
    check = await maintenance_of(table).release_check(context, table)
    sight = SeenBefore()
    until = context.monotonic_s() + context.long_deadline_s
    while True:
        try:
            return await _section(context, table, check, sight)
        except Behind:
            try:
                await read_on(context, table.id, sight, until=until, state=TableState.QUARANTINED)
            except UnreadableCommit as error:
                raise still_broken(table, str(error)) from None


async def _section(
    context: Context, table: TableHead, check: Check, sight: SeenBefore
) -> TableRecord:
    async with context.index.commit_section(table.id, who=context.who) as section:
        head = section.table
        if head.state is not TableState.QUARANTINED:
            return head
        await check(section, sight)
        await section.release()
        version = section.table.latest_version
        await section.record_change(Change(deed=Deed.RELEASE, by=context.caller, version=version))
        await section.save()
        return section.table
