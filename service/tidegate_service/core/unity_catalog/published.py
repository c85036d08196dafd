"""Publishing ahead of its turn: what a client of Unity Catalog's API is told of is in the log.

Such a client reads the log and nothing else. It passes over, without an error, a version that is
neither there nor in the answer.
"""

from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Unavailable
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.tables.lookup import check_open, find_head

RUNS = 3
"""One that was begun before by another caller may end before the wanted version; the next of one's
own does not."""
_ACTIVITY = "publish"


async def publish_through(context: Context, table: TableHead) -> None:
    """See that the log has every version up to the table's latest one, as `table` has it. Returns
    at once for a plain table, whose log is the truth.

    Raises `TableQuarantined` and `Unavailable` where they cannot be published, and `NotFound` for a
    table that was forgotten since.
    """
    if not table.catalog_managed:
        return
    wanted, found = table.latest_version, table
    for _ in range(RUNS):
        if found.published_version >= wanted:
            return
        await context.running.run_once((_ACTIVITY, table.id), partial(_publish, context, found))
        found = await find_head(context, table.id)
    if found.published_version >= wanted:
        return
    check_open(found)
    raise Unavailable(
        f"version {wanted} of {table.name} is not in its log yet, which ends at version "
        f"{found.published_version}",
        code=Code.STORAGE_UNAVAILABLE,
    )


async def _publish(context: Context, table: TableHead) -> None:
    count = await publish_table(
        context.index,
        context.storage,
        table,
        own=context.own_logs,
        faults=context.faults,
        monotonic_s=context.monotonic_s,
        at_once=True,
    )
    context.telemetry.published(count)
