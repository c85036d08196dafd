"""What is told of a transaction's id while something else is done to its table."""

import asyncio

import pytest

from tidegate_service.core.commit.transaction_ids import status
from tidegate_service.core.errors import NotFound
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("work", [forget_table, rebuild])
async def test_what_the_service_does_is_no_transaction(world, work):
    """A client may give a transaction the name of it."""
    table = await world.create()
    async with world.context.index.commit_section(table.id):
        working = asyncio.create_task(work(world.context, table.id))
        while not world.context.running.count:
            await asyncio.sleep(0)
        with pytest.raises(NotFound):
            await status(world.context, table.id, work.__name__.removesuffix("_table"))
    await working
