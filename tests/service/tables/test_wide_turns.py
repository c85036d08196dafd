"""One table whose row is held, with long metadata: its owner's other work does not wait for it."""

import asyncio

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_service.core.access.roles import EVERYTHING, Caller, Grant, Principal, Role
from tidegate_service.core.commit.propose import conflict_check
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.ports.records import LONG_METADATA
from tidegate_service.core.tables.lookup import get_head, get_table, list_tables
from tidegate_service.core.tables.scan import ScanRequest, scan

pytestmark = pytest.mark.anyio


@pytest.fixture
def anns(world: World) -> World:
    principal = Principal(name="ann", grants=(Grant(Role.ADMIN, EVERYTHING),))
    return World(world.context.called_by(Caller(principal=principal)))


async def wide(world: World) -> str:
    properties = {f"p{number}": "x" * 1_000 for number in range(LONG_METADATA // 1_000 + 1)}
    table = await world.create(catalog_managed=True, properties=properties)
    assert (await get_head(world.context, table.id)).metadata_bytes > LONG_METADATA
    return table.id


async def test_a_section_that_waits_holds_up_that_table_alone(anns: World):
    held, other = await wide(anns), await wide(anns)
    context = anns.context
    async with context.index.commit_section(held):
        waiting = [
            asyncio.create_task(conflict_check(context, held, proposal(add("f"), read_version=0))),
            asyncio.create_task(abort(context, held, "one")),
        ]
        async with asyncio.timeout(30):
            while context.running.count < len(waiting):
                await asyncio.sleep(0)
        async with asyncio.timeout(5):
            page = await list_tables(context, prefix="", cursor=None, limit=10)
            assert {table.id for table in page.tables} == {held, other}
            assert (await get_table(context, held)).metadata is not None
            found = await scan(context, other, ScanRequest())
            await found.files.aclose()
            await abort(context, other, "two")
    await asyncio.gather(*waiting)
