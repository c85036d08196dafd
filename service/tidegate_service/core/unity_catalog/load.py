"""Loading a table for a client of Unity Catalog's API: all that it is told of is in the log."""

from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.unity_catalog.identity import give_id, lacks_id
from tidegate_service.core.unity_catalog.published import publish_through

ATTEMPTS = 5


async def load_table(context: Context, ref: str) -> TableRecord:
    """The table at a version up to which its log is complete. A catalog-managed one has its id in
    the log (`identity`).

    Raises as `get_table` and `publish_through` do.
    """
    for _ in range(ATTEMPTS):
        table = await get_table(context, ref)
        if not lacks_id(table):
            await publish_through(context, table)
            context.recent.remember(table)
            return table
        await give_id(context, table)
    raise IndexUnavailable(f"table {ref} was given no id, as its metadata kept changing; ask again")
