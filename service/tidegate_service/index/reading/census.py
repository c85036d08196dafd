"""How the tables stand, for the gauges: asked rarely, over all of them."""

from sqlalchemy import BigInteger, cast, extract, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.ports.gauges import Census
from tidegate_service.core.ports.records import TableState
from tidegate_service.index.schema.tables import commits, tables


async def census(connection: AsyncConnection) -> Census:
    """Counts over the whole index. Reads each table's row once; of the commits it reads only
    those that wait for publishing, through their own index."""
    by_kind = select(tables.c.catalog_managed, tables.c.state, func.count()).group_by(
        tables.c.catalog_managed, tables.c.state
    )
    counts = {
        (managed, TableState(state)): count
        for managed, state, count in await connection.execute(by_kind)
    }
    now_ms = cast(extract("epoch", func.clock_timestamp()) * 1000, BigInteger)
    waiting = (
        select(
            func.count(),
            # What waits of a quarantined one is not published before somebody ends that.
            now_ms - func.min(commits.c.timestamp).filter(tables.c.state == TableState.ACTIVE),
        )
        .join(tables, tables.c.id == commits.c.table_id)
        .where(commits.c.content_held, commits.c.version > tables.c.published_version)
    )
    unpublished, lag_ms = (await connection.execute(waiting)).one()
    return Census(
        tables=counts,
        unpublished=unpublished,
        # Timestamps of commits only ever grow, so a busy table's can be ahead of the clock.
        publish_lag_s=max(0, lag_ms or 0) / 1000,
    )
