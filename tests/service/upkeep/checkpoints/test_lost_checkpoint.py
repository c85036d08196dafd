"""A catalog-managed table whose log lost the checkpoint that it begins with, when the versions
before have left the index, too: nothing but the index has the snapshot."""

import json
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.service.upkeep.clean_up.long_past import VERSIONS, Past, cleaned_up
from tests.service.upkeep.conftest import Expiring
from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused, StorageUnavailable, TableQuarantined
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.tables.lookup import get_head
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.core.tables.scan import ScanRequest, scan
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

Call = Callable[[Context, str], Awaitable[object]]


@pytest.fixture
async def past(
    world: World,
    engine: AsyncEngine,
    upkeep: PostgresUpkeep,
    caretaker: Caretaker,
    expiring: Expiring,
) -> Past:
    made = await cleaned_up(world, engine, upkeep, caretaker, catalog_managed=True)
    assert await expiring().round() == 1
    for file in made.log.folder.glob("*checkpoint*"):
        file.unlink()
    return made


async def live(past: Past) -> list[str]:
    found = await scan(past.world.context, past.table.name, ScanRequest(version=VERSIONS))
    lines = [json.loads(line)["add"] async for batch in found.files for line in batch]
    return sorted(line["path"] for line in lines)


@pytest.mark.parametrize("call", [forget_table, rebuild_table])
async def test_a_new_one_is_written_before_the_index_goes(past: Past, call: Call):
    files = await live(past)
    await call(past.world.context, past.table.id)
    assert past.log.checkpoints == [VERSIONS]
    if call is forget_table:
        with pytest.raises(NotFound):
            await get_head(past.world.context, past.table.id)
        registering = RegisterTable(
            name=past.table.name, location=past.table.location, catalog_managed=True
        )
        await register_table(past.world.context, registering)
    assert await live(past) == files


@pytest.mark.parametrize("call", [forget_table, rebuild_table])
async def test_without_the_newest_commit_nothing_is_forgotten(past: Past, call: Call):
    """Whose log it is, nothing says then: no checkpoint is written into it."""
    for file in past.log.folder.glob("*.json"):
        file.unlink()
    with pytest.raises((Refused, StorageUnavailable, TableQuarantined)):
        await call(past.world.context, past.table.id)
    assert (await get_head(past.world.context, past.table.id)).latest_version == VERSIONS
    assert past.log.checkpoints == []
