"""Finding, listing and forgetting tables."""

from dataclasses import dataclass

from tidegate_protocol.problems import Code
from tidegate_protocol.text import excerpt
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, NotFound, TableQuarantined
from tidegate_service.core.publish import publish_table
from tidegate_service.core.records import TableRecord, TableState

FORGET_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Tables in name order; `next_cursor` is None on the last page."""

    tables: tuple[TableRecord, ...]
    next_cursor: str | None


async def get_table(context: Context, ref: str) -> TableRecord:
    """The table with this full name (in any case) or id. Raises `NotFound`."""
    table = await context.index.table(ref)
    if table is None:
        raise no_such_table(ref)
    return table


def no_such_table(ref: str) -> NotFound:
    return NotFound(f"there is no table {excerpt(ref)}", code=Code.TABLE_NOT_FOUND)


async def list_tables(context: Context, *, prefix: str, cursor: str | None, limit: int) -> Page:
    """Up to `limit` tables that the caller may read, whose name starts with `prefix`, after
    the cursor's name."""
    within = context.caller.principal.visible()
    found = await context.index.tables(prefix=prefix, after=cursor, limit=limit + 1, within=within)
    tables = tuple(found[:limit])
    return Page(tables=tables, next_cursor=tables[-1].name if len(found) > limit else None)


async def forget_table(context: Context, ref: str) -> None:
    """Delete everything the index knows of the table. Its files, log and data, stay.

    Versions that wait for publishing are published first, since the index holds their only
    copy. Raises `TableQuarantined` where they cannot be, and `Unavailable` where new ones keep
    coming.
    """
    for _ in range(FORGET_ATTEMPTS):
        table = await get_table(context, ref)
        if table.published_version < table.latest_version:
            if table.state is TableState.QUARANTINED:
                raise TableQuarantined(
                    f"table {table.name} has versions that only the index holds and that cannot "
                    f"be published: {table.state_reason}"
                )
            await publish_table(context.index, context.storage, table)
        forgetting = context.index.forget(table.id, by=context.caller)
        if await context.sections.run((table.id, "forget"), forgetting):
            return
    raise IndexUnavailable(f"table {ref} keeps being committed to and was not forgotten")
