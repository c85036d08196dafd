"""Publishing ahead of its turn: what a client of Unity Catalog's API is told of is in the log.

Such a client reads the log and nothing else. It passes over, without an error, a version that is
neither there nor in the answer.
"""

from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.content import Content
from tidegate_service.core.catalog_managed import publish
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Unavailable
from tidegate_service.core.ports.outcomes import Committed
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
    wanted, found = table.latest_version, table
    for _ in range(RUNS):
        if found.published_version >= wanted or _was_put(context, table):
            return
        await context.running.run_once((_ACTIVITY, table.id), partial(_publish, context, found))
        if _was_put(context, table):
            # It was under way, and its commit's own.
            return
        found = await find_head(context, table.id)
    if found.published_version >= wanted:
        return
    check_open(found)
    raise Unavailable(
        f"version {wanted} of {table.name} is not in its log yet, which ends at version "
        f"{found.published_version}",
        code=Code.STORAGE_UNAVAILABLE,
    )


async def publish_landed(
    context: Context, landed: Committed, content: Content, *, began_s: float
) -> None:
    """Put what landed just now, by a proposal that began at `began_s`, into the log without reading
    it back, where that can be done. What cannot, `publish_through` does. Raises as that does."""
    if landed.database is None:
        return
    put = partial(
        publish.publish_landed,
        context.storage,
        landed.table,
        content,
        database=landed.database,
        own=context.own_logs,
        is_fresh=lambda: context.monotonic_s() - began_s <= publish.STALE_S,
        faults=context.faults,
    )
    await context.running.run_once((_ACTIVITY, landed.table.id), put)


def _was_put(context: Context, table: TableHead) -> bool:
    """Whether this instance has put the table's head into the log. The index need not know yet."""
    database = context.own_logs.database_of(table)
    # The row may be one of another database.
    return database is not None and context.heads.replicated.has(table, database=database)


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
