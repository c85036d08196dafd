"""Reads of a plain table's head, as over HTTP, and a store that keeps them waiting."""

import asyncio

from tidegate_service.core.maintenance.freshness import plain_table, read_in
from tidegate_service.core.tables.lookup import get_head


async def read(context, table, **through):
    """The head, as a read over HTTP finds it."""
    plain = await plain_table(context, table.id)
    if plain is not None:
        await read_in(context, plain, **through)
    return (await get_head(context, table.id)).latest_version


async def waiting(context, table, readers):
    """Once so many wait for a look at the table's log, the one that looks included."""
    looks = context.log_looks._of[(context.who, table.id)]
    async with asyncio.timeout(30):
        while looks.waiting < readers:
            await asyncio.sleep(0)


class Held:
    """Holds up what asks the store, until it may be asked."""

    def __init__(self, store):
        self.may, self.asked = asyncio.Event(), asyncio.Event()
        store.reading = self.reading

    async def reading(self, version):
        self.asked.set()
        await self.may.wait()
