"""Finding, listing and forgetting tables."""

from dataclasses import dataclass
from typing import NoReturn

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_service.core.access.roles import Role
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.catalog_managed.set_back import Found, check_none_lost, quarantine_for
from tidegate_service.core.catalog_managed.whole_log import differing, make_whole, why_differing
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, NotFound, TableQuarantined
from tidegate_service.core.log.catching_up.catch_up import with_log_read
from tidegate_service.core.log.catching_up.sight import SeenBefore
from tidegate_service.core.ports.records import PAGE_BYTES, QuarantineCause, TableRecord, TableState

FORGET_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Tables in name order; `next_cursor` is None on the last page."""

    tables: tuple[TableRecord, ...]
    next_cursor: str | None


async def get_table(context: Context, ref: str) -> TableRecord:
    """The table with this full name (in any case) or id, to tell the caller of: of a
    catalog-managed one, a synchronous standby has the head (`core.ports.told`), and so all versions
    up to it. Raises `NotFound`, and `IndexUnavailable` where the standby does not answer."""
    async with context.lookups.turn(context.who):
        table = await context.index.told_table(ref, known=context.heads.replicated)
    if table is None:
        raise no_such_table(ref)
    return table


async def find_table(context: Context, ref: str) -> TableRecord:
    """The same for work that tells nobody of the head, and whose own COMMIT waits for the standby
    where it has to. Raises `NotFound`."""
    async with context.lookups.turn(context.who):
        table = await context.index.table(ref)
    if table is None:
        raise no_such_table(ref)
    return table


async def durable_table(context: Context, table_id: str) -> TableRecord | None:
    """The table, once its row is committed wherever a commit has to be; None where it is gone.

    A row is seen as soon as it is committed, though a synchronous standby may not have it yet. The
    COMMIT here waits for the standby. Raises `CommitStateUnknown` where it gets no answer.
    """
    try:
        async with context.index.commit_section(table_id, who=context.who) as section:
            await section.save()
            return section.table
    except NotFound:
        return None


def check_open(table: TableRecord) -> None:
    """Raise `TableQuarantined` for a table that is closed to commits."""
    if table.state is TableState.QUARANTINED:
        raise TableQuarantined(f"table {table.name} takes no commits: {table.state_reason}")


def no_such_table(ref: str) -> NotFound:
    return NotFound(f"there is no table {excerpt(ref)}", code=Code.TABLE_NOT_FOUND)


async def list_tables(context: Context, *, prefix: str, cursor: str | None, limit: int) -> Page:
    """Up to `limit` tables that the caller may read, whose name starts with `prefix`, after
    the cursor's name: fewer where they are large."""
    within = context.caller.principal.scopes(Role.READER)
    known = context.heads.replicated
    found = await context.index.tables(
        prefix=prefix, after=cursor, limit=limit + 1, known=known, within=within
    )
    tables = tuple(found[:limit])
    told = [action for table in found for action in (table.protocol, table.metadata)]
    held = sum(len(action.raw) for action in told if action is not None)
    more = len(found) > limit or held >= PAGE_BYTES
    return Page(tables=tables, next_cursor=tables[-1].name if more else None)


async def forget_table(context: Context, ref: str) -> None:
    """Delete everything the index knows of the table. Its files, log and data, stay.

    Versions that wait for publishing are published first, since the index holds their only
    copy; those whose files are gone from the log are put back. Raises `TableQuarantined` where
    they cannot be, where a published version has other bytes in the log than were ratified, of
    which the index may hold the last copy, and where versions that were published are not in the
    index, so that nothing would be kept of them; `Unavailable` where new ones keep coming, and
    where the log cannot be asked.

    A catalog-managed table's log is read for it. A forgetting that has begun goes on without
    whoever asked for it.
    """
    table = await find_table(context, ref)
    await context.running.run((table.id, "forget"), _forget(context, table))


async def _forget(context: Context, table: TableRecord) -> None:
    if table.catalog_managed and table.quarantine_cause is not QuarantineCause.GIVEN_UP:
        log = context.storage.log(table.location, who=context.who)
        found = await differing(context.index, log, table)
        if found is not None:
            await _refuse(context, table, *found)
    for _ in range(FORGET_ATTEMPTS):
        table = await find_table(context, table.id)
        if table.catalog_managed and table.quarantine_cause is not QuarantineCause.GIVEN_UP:
            await _see_that_none_is_lost(context, table)
        if table.published_version < table.latest_version:
            if table.state is TableState.QUARANTINED:
                raise TableQuarantined(
                    f"table {table.name} has versions that only the index holds and that cannot "
                    f"be published: {table.state_reason}"
                )
            await publish_table(
                context.index, context.storage, table, monotonic_s=context.monotonic_s
            )
        if await context.index.forget(table.id, by=context.caller):
            return
    raise IndexUnavailable(f"table {table.name} keeps being committed to and was not forgotten")


async def _refuse(context: Context, table: TableRecord, version: int, sha256: str) -> NoReturn:
    async with context.index.commit_section(table.id, who=context.who) as section:
        why = await why_differing(section, version, sha256)
        if why is None:
            raise IndexUnavailable(f"table {table.name} was changed meanwhile; ask again")
        await quarantine_for(section, Found(QuarantineCause.LOG, why))
    raise TableQuarantined(f"table {table.name}: {why}")


async def _see_that_none_is_lost(context: Context, table: TableRecord) -> None:
    async def section(sight: SeenBefore) -> None:
        async with context.index.commit_section(table.id, who=context.who) as section:
            why = await make_whole(section, context.storage.log(table.location, who=context.who))
            if why is not None:
                await quarantine_for(section, Found(QuarantineCause.LOG, why))
                raise TableQuarantined(f"table {table.name}: {why}")
            await check_none_lost(context, section, sight)

    await with_log_read(context, table.id, section)
