"""What an instance does between requests, as it is put together: logs are kept up by themselves."""

import asyncio

import deltalake
import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.upkeep.checkpoints import folder_of, pointer
from tests.service.world import World
from tidegate_service.background.background import background_of
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.observe.faults import NO_FAULTS
from tidegate_service.core.observe.telemetry import SILENT
from tidegate_service.core.ports.index import Index
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

PATIENCE_S = 30.0


@pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
async def test_checkpoints_and_checksums_are_written_as_the_table_asks(
    world: World, index: Index, upkeep: PostgresUpkeep, catalog_managed: bool
):
    table = await world.create(
        catalog_managed=catalog_managed, properties={"delta.checkpointInterval": "3"}
    )
    background = await background_of(
        index,
        upkeep,
        world.context.storage,
        publish_interval_s=0.05,
        upkeep_share=0.5,
        most_behind=20_000,
        hooks=(),
        table_hooks=(),
        store_of=lambda location: "the only one",
        faults=NO_FAULTS,
        telemetry=SILENT,
    )
    log = folder_of(table) / "_delta_log"
    async with background.running(), asyncio.timeout(PATIENCE_S):
        for number in range(4):
            await propose(world.context, table.id, proposal(add(f"f{number}")))
            background.wake(table.id)
        while not (log / "_last_checkpoint").exists() or pointer(table)["version"] < 3:
            await asyncio.sleep(0.05)
        while not (log / f"{4:020d}.crc").exists():
            await asyncio.sleep(0.05)
    if not catalog_managed:
        assert len(deltalake.DeltaTable(table.location).file_uris()) == 4
