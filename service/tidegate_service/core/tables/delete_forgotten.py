"""Listing what is kept of forgotten tables, and deleting it for good."""

from dataclasses import dataclass

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound
from tidegate_service.core.ports.records import ForgottenTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenPage:
    """Forgotten tables in the order of their ids; `next_cursor` is None on the last page."""

    tables: tuple[ForgottenTable, ...]
    next_cursor: str | None


async def list_forgotten(context: Context, *, cursor: str | None, limit: int) -> ForgottenPage:
    """Up to `limit` forgotten tables after the cursor's id."""
    found = await context.index.forgotten_tables(after=cursor, limit=limit + 1)
    tables = tuple(found[:limit])
    return ForgottenPage(tables=tables, next_cursor=tables[-1].id if len(found) > limit else None)


async def delete_forgotten(context: Context, table_id: str) -> None:
    """Delete for good what is kept of a forgotten table. Its files stay.

    From then on, of its transaction ids only those are known that its log has: an id that landed
    or was aborted may land again. A catalog-managed table cannot be registered again. Late writes
    of the table at its place are not looked for any more. Raises `NotFound`.
    """
    deleting = context.index.delete_forgotten(table_id, by=context.caller)
    if not await context.running.run(("delete-forgotten", table_id), deleting):
        raise NotFound(
            f"nothing is kept of a forgotten table with the id {excerpt(table_id)}",
            code=Code.TABLE_NOT_FOUND,
        )
