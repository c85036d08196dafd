"""Making a table's index anew from its log (docs/invariants.md, I13)."""

from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound
from tidegate_service.core.maintenance.kinds import maintenance_of
from tidegate_service.core.maintenance.rebuilding import Rebuilt
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.in_turn import in_turn
from tidegate_service.core.tables.lookup import find_head


async def rebuild_table(context: Context, ref: str) -> TableRecord:
    """The table's head after it. Raises as `rebuild` does."""
    return (await rebuild(context, ref)).table


async def rebuild(context: Context, ref: str) -> Rebuilt:
    """Make the table's index anew.

    Raises `Refused` as `register_table` does for a log that cannot be read. Also raised
    (`broken-log`) for a log that ends before the index does, since versions that callers were told
    of would be lost. A catalog-managed table is quarantined then.
    """
    table = await find_head(context, ref)
    work = partial(_rebuilt, context, table.id)
    return await in_turn(context, context.maintaining, ("rebuild", table.id), work)


async def _rebuilt(context: Context, table_id: str) -> Rebuilt:
    glance = await context.index.glance(table_id)
    if glance is None:
        raise NotFound("there is no such table any more", code=Code.TABLE_NOT_FOUND)
    return await maintenance_of(glance.table).rebuild(context, glance)
