"""What an instance does between requests, as it is put together: logs are kept up by themselves."""

import asyncio

import deltalake
import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.upkeep.checkpointed import folder_of, pointer
from tests.service.upkeep.compacting import commit, large, written
from tests.service.world import World
from tidegate_service.background.background import Background, background_of
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.observe.faults import NO_FAULTS
from tidegate_service.core.observe.telemetry import SILENT
from tidegate_service.core.ports.index import Index
from tidegate_service.core.sharing.pauses import Pauses
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

PATIENCE_S = 30.0


async def working(
    world: World, index: Index, upkeep: PostgresUpkeep, *, commits_to_compact: int = 100
) -> Background:
    return await background_of(
        index,
        upkeep,
        world.context.storage,
        publish_interval_s=0.05,
        upkeep_share=0.5,
        most_behind=20_000,
        commits_to_compact=commits_to_compact,
        hooks=(),
        table_hooks=(),
        pauses=Pauses(),
        store_of=lambda location: "the only one",
        faults=NO_FAULTS,
        telemetry=SILENT,
        own=OwnLogs(),
    )


@pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
async def test_checkpoints_and_checksums_are_written_as_the_table_asks(
    world: World, index: Index, upkeep: PostgresUpkeep, catalog_managed: bool
):
    table = await world.create(
        catalog_managed=catalog_managed, properties={"delta.checkpointInterval": "3"}
    )
    background = await working(world, index, upkeep)
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


@pytest.mark.parametrize("commits", [3, 0])
async def test_compacted_files_are_written_unless_they_are_switched_off(
    world: World, index: Index, upkeep: PostgresUpkeep, commits: int
):
    table = await large(world)
    await commit(world, table, 3)
    background = await working(world, index, upkeep, commits_to_compact=commits)
    async with background.running(), asyncio.timeout(PATIENCE_S):
        while commits and not written(table):
            await asyncio.sleep(0.05)
        while not (folder_of(table) / "_delta_log" / f"{4:020d}.crc").exists():
            await asyncio.sleep(0.05)
    assert written(table) == ([(2, 4)] if commits else [])
    assert ("compaction" in await upkeep.standing(table.id)) == bool(commits)
