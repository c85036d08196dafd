"""A hook sees each version of each table in order, at least once, and holds up no commit."""

import asyncio
import logging

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.faults import FaultyStorage
from tests.service.hooks.hooks import KIND, NAME, Noting, age, caretaker_of
from tests.service.world import World
from tidegate_protocol.log.actions import Add
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.hooks.hook import HookCommit
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.upkeep.standing import PostgresUpkeep
from tidegate_service.telemetry.metrics import Metrics
from tidegate_service.telemetry.recorder import Recorder

pytestmark = pytest.mark.anyio


async def commit(world: World, table: TableRecord, count: int = 1) -> None:
    for _ in range(count):
        await propose(world.context, table.id, proposal(add(world.context.new_id())))


async def test_each_version_is_run_once_in_order(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    hook = Noting()
    caretaker = await caretaker_of(hook, index, upkeep, world.context.storage)
    tables = [await world.create() for _ in range(2)]
    await commit(world, tables[0], 3)
    assert await caretaker.round() == 2
    await commit(world, tables[0], 2)
    await commit(world, tables[1])
    assert await caretaker.round() == 2
    assert hook.versions(tables[0].id) == [0, 1, 2, 3, 4, 5]
    assert hook.versions(tables[1].id) == [0, 1]
    assert await caretaker.round() == 0


async def test_a_commit_is_told_with_its_actions(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    hook = Noting()
    caretaker = await caretaker_of(hook, index, upkeep, world.context.storage)
    table = await world.create(properties={"delta.appendOnly": "true"})
    await propose(world.context, table.id, proposal(add("a")))
    await caretaker.round()
    last = hook.commits[-1]
    assert (last.table_id, last.table, last.location) == (table.id, table.name, table.location)
    assert last.configuration["delta.appendOnly"] == "true"
    (added,) = (action for action in last.actions if isinstance(action, Add))
    assert b'"add"' in added.raw
    record = await index.commit(table.id, 1)
    assert record is not None
    assert last.timestamp == record.timestamp
    assert last.operation == record.operation
    assert last.transaction_id == record.transaction_id


async def test_of_a_catalog_managed_table_only_what_is_published(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    hook = Noting()
    caretaker = await caretaker_of(hook, index, upkeep, world.context.storage)
    table = await world.create(catalog_managed=True)
    await commit(world, table)
    assert await caretaker.round() == 0
    await Publisher(index, world.context.storage).round()
    await caretaker.round()
    assert hook.versions(table.id) == [0, 1]


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_a_hook_that_is_enabled_later_begins_then(
    world: World, index: Index, upkeep: PostgresUpkeep, catalog_managed: bool
):
    before = await world.create(catalog_managed=catalog_managed)
    await commit(world, before, 2)
    hook = Noting()
    await asyncio.sleep(0.005)
    caretaker = await caretaker_of(hook, index, upkeep, world.context.storage)
    await commit(world, before)
    after = await world.create(catalog_managed=catalog_managed)
    await Publisher(index, world.context.storage).round()
    await caretaker.round()
    assert hook.versions(before.id) == [3]
    assert hook.versions(after.id) == [0]


async def test_it_is_enabled_once(world: World, index: Index, upkeep: PostgresUpkeep):
    first = await upkeep.enable_hook(NAME)
    table = await world.create()
    assert await upkeep.enable_hook(NAME) == first
    hook = Noting()
    await (await caretaker_of(hook, index, upkeep, world.context.storage)).round()
    assert hook.versions(table.id) == [0]


async def test_a_failing_hook_waits_and_commits_go_on(
    world: World, index: Index, upkeep: PostgresUpkeep, engine: AsyncEngine, caplog
):
    def fail(commit: HookCommit) -> None:
        if commit.version == 2 and commit.table_id == table.id:
            raise RuntimeError("no way")

    metrics = Metrics()
    hook = Noting(fail)
    caretaker = await caretaker_of(
        hook, index, upkeep, world.context.storage, telemetry=Recorder(metrics, tracer=None)
    )
    table, other = await world.create(), await world.create()
    await commit(world, table, 3)
    with caplog.at_level(logging.WARNING, "tidegate.hooks"):
        while await caretaker.round():
            pass
    told = [record for record in caplog.records if record.name == "tidegate.hooks"][-1]
    assert (told.hook, told.version, told.table_id) == (NAME, 2, table.id)
    assert told.reason == "RuntimeError: no way"
    assert hook.versions(table.id) == [0, 1]
    standing = (await upkeep.standing(table.id))[KIND]
    assert (standing.version, standing.failures) == (1, 1)
    assert standing.trouble == "version 2: RuntimeError: no way"
    failed = {"kind": "hook", "outcome": "failed"}
    assert metrics.registry.get_sample_value("tidegate_upkeep_runs_total", failed) == 1
    await commit(world, table)
    await commit(world, other)
    assert await caretaker.round() == 1
    assert hook.versions(other.id) == [0, 1]
    assert hook.versions(table.id) == [0, 1]
    await age(engine)
    await caretaker.round()
    assert (await upkeep.standing(table.id))[KIND].failures == 2
    hook.meets = lambda commit: None
    await age(engine)
    await caretaker.round()
    assert hook.versions(table.id) == [0, 1, 2, 3, 4]
    standing = (await upkeep.standing(table.id))[KIND]
    assert (standing.version, standing.failures, standing.trouble) == (4, 0, None)


async def test_a_hook_that_takes_too_long_has_failed(
    world: World, index: Index, upkeep: PostgresUpkeep
):
    hook = Noting()
    hook.takes_s = 3600
    caretaker = await caretaker_of(hook, index, upkeep, world.context.storage, longest_s=0.01)
    table = await world.create()
    await caretaker.round()
    standing = (await upkeep.standing(table.id))[KIND]
    assert (standing.version, standing.failures) == (-1, 1)
    assert standing.trouble == "version 0: it took longer than 0.01 s"


async def test_two_instances_at_once_run_each_version_once(
    world: World, index: Index, other_index: Index, upkeep: PostgresUpkeep
):
    hook = Noting()
    storage = world.context.storage
    both = [await caretaker_of(hook, each, upkeep, storage) for each in (index, other_index)]
    tables = [await world.create() for _ in range(4)]
    for _ in range(3):
        await asyncio.gather(
            *(each.round() for each in both), *(commit(world, table) for table in tables)
        )
    while await both[0].round():
        pass
    for table in tables:
        assert hook.versions(table.id) == [0, 1, 2, 3]


async def test_a_large_commit_has_its_actions(world: World, index: Index, upkeep: PostgresUpkeep):
    hook = Noting()
    caretaker = await caretaker_of(hook, index, upkeep, world.context.storage)
    table = await world.create()
    files = [add(f"{number:06}" + "a" * 400) for number in range(12_000)]
    await propose(world.context, table.id, proposal(*files))
    await caretaker.round()
    assert sum(isinstance(action, Add) for action in hook.commits[-1].actions) == 12_000


async def test_a_store_that_is_away_is_asked_again(
    world: World, faults: FaultyStorage, index: Index, upkeep: PostgresUpkeep, engine: AsyncEngine
):
    hook = Noting()
    caretaker = await caretaker_of(hook, index, upkeep, faults)
    table = await world.create()
    log = world.log_file(table, 0)
    kept = log.read_bytes()
    log.unlink()
    await caretaker.round()
    standing = (await upkeep.standing(table.id))[KIND]
    assert standing.trouble == "version 0 is not in the log"
    log.write_bytes(kept)
    await age(engine)
    await caretaker.round()
    assert hook.versions(table.id) == [0]


async def test_what_was_cleaned_up_is_left_out(
    world: World, index: Index, upkeep: PostgresUpkeep, caplog
):
    hook = Noting()
    caretaker = await caretaker_of(hook, index, upkeep, world.context.storage)
    table = await world.create()
    await commit(world, table, 4)
    for version in (0, 1, 2):
        world.log_file(table, version).unlink()
    with caplog.at_level(logging.WARNING, "tidegate.hooks"):
        await caretaker.round()
    assert hook.versions(table.id) == [3, 4]
    (told,) = (record for record in caplog.records if record.name == "tidegate.hooks")
    assert (told.version, told.through_version) == (0, 2)


async def test_a_rebuilt_table_is_run_again(world: World, index: Index, upkeep: PostgresUpkeep):
    before = await world.create()
    await asyncio.sleep(0.005)
    hook = Noting()
    caretaker = await caretaker_of(hook, index, upkeep, world.context.storage)
    await commit(world, before)
    await caretaker.round()
    await rebuild_table(world.context, before.id)
    await caretaker.round()
    assert hook.versions(before.id) == [1, 1]
