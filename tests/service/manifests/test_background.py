"""An instance keeps manifests up by itself, as it is put together."""

import asyncio

import pytest

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.manifests.reading import ENABLED, commit, read, snapshot
from tests.service.world import World
from tidegate_service.background.background import background_of
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.observe.faults import NO_FAULTS
from tidegate_service.core.observe.telemetry import SILENT
from tidegate_service.core.ports.index import Index
from tidegate_service.core.sharing.pauses import Pauses
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

PATIENCE_S = 30.0


@pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
async def test_they_follow_commits(
    world: World, index: Index, upkeep: PostgresUpkeep, catalog_managed: bool
):
    table = await world.create(catalog_managed=catalog_managed, properties=ENABLED)
    background = await background_of(
        index,
        upkeep,
        world.context.storage,
        publish_interval_s=0.05,
        upkeep_share=0.5,
        most_behind=20_000,
        commits_to_compact=0,
        hooks=(),
        table_hooks=(),
        pauses=Pauses(),
        store_of=lambda location: "the only one",
        faults=NO_FAULTS,
        telemetry=SILENT,
        own=OwnLogs(),
    )
    async with background.running(), asyncio.timeout(PATIENCE_S):
        await commit(world, table, proposal(add("a"), add("b", "2")))
        background.wake(table.id)
        while len(read(table)) < 2:
            await asyncio.sleep(0.05)
        version = await commit(world, table, proposal(remove("b", "2"), add("c", None)))
        background.wake(table.id)
        while not world.log_file(table, version).exists() or read(table) != snapshot(world, table):
            await asyncio.sleep(0.05)
