"""Versions of a catalog-managed table that a publisher put into the log and did not mark.

A publisher that was cut off may leave a whole batch of them. A log check
(`core.catalog_managed.set_back`) meets them after the published versions, and should not read them
under the table's lock. So they are read without the lock, several at a time, and marked as
published. The next log check then begins after them.
"""

from collections.abc import Mapping
from contextlib import aclosing

from tidegate_protocol.log.content import Content
from tidegate_service.core.context import Context
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.log.catching_up.versions import contents
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload


async def mark(context: Context, table: TableHead, *, until: float) -> bool:
    """Mark as published the versions that lie in an active table's log with the bytes that were
    ratified, from the first version that waits for publishing. True where no further version lies
    there with its bytes. False at `until`, a time of `monotonic_s`; at least one portion is marked
    by then.

    Raises `Unavailable`, and `NotFound` where the table is gone.
    """
    index, log = context.index, context.storage.log(table.location, who=context.who)
    while True:
        waiting = await index.unpublished_versions(table.id, limit=context.limits.marked_versions)
        count, is_end = await _same(context, log, dict(waiting.versions))
        if count:
            first = waiting.versions[0][0]
            through = first + count - 1
            await index.mark_published(table.id, first, through, database=waiting.database)
            await index.forget_content(table.id, through=through)
        if is_end or count == waiting.behind:
            return True
        if context.monotonic_s() >= until:
            return False


async def _same(context: Context, log: Log, held: Mapping[int, Content]) -> tuple[int, bool]:
    """How many of these versions, from the first on, lie in the log with these bytes, and whether
    the version after them is known not to."""
    count, began = 0, context.monotonic_s()
    async with aclosing(contents(log, held)) as files:
        try:
            async for version, found in files:
                content = held[version]
                if found is None or not await offload.is_same(content, found):
                    return count, True
                count += 1
                if context.monotonic_s() - began >= context.limits.portion_s:
                    return count, False
        except StorageUnavailable:
            # The versions read so far can be marked; the next read meets the same error first.
            if not count:
                raise
    return count, not held
