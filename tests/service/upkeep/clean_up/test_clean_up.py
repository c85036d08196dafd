"""Logs are cleaned up by Delta's rules, and whatever is left is a log."""

import json
import logging
import time
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.service.upkeep.aged import (
    LogOf,
    age,
    commit,
    expired,
    is_readable,
    let_it_be_tomorrow,
    rows_of,
)
from tests.service.upkeep.conftest import Caring
from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.store.expired import DeletionRefused
from tidegate_service.core.ports.upkeep.upkeep import UpkeepRecord
from tidegate_service.core.tables import history
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.upkeep.clean_up import CleanUp
from tidegate_service.index.upkeep.standing import PostgresUpkeep
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import StorageLimits

pytestmark = pytest.mark.anyio

KIND = UpkeepKind.CLEAN_UP


async def test_what_has_expired_is_deleted(
    world: World, index: Index, engine: AsyncEngine, caretaker: Caretaker, upkeep: PostgresUpkeep
):
    table = await expired(world, engine)
    log = LogOf(world, table)
    (log.path(2, f"{4:020d}.compacted.json")).write_text("{}")
    (log.path(4, "crc")).write_text("{}")
    (log.path(5, "crc")).write_text("{}")
    (log.folder / "notes.txt").write_text("not a log's file")
    await is_readable(index, log, table)
    assert await caretaker.round() == 1
    assert log.versions == [5, 6, 7, 8, 9]
    assert log.checkpoints == [5, 8]
    assert {f"{5:020d}.crc", "notes.txt", "_last_checkpoint"} <= set(log.names)
    assert not {f"{4:020d}.crc", f"{2:020d}.{4:020d}.compacted.json"} & set(log.names)
    await is_readable(index, log, table)
    assert (await upkeep.standing(table.id))[KIND].version == 5
    log.path(5, "crc").unlink()
    assert (await verify_table(world.context, table.id)).differences == ()
    content = await history.content(world.context, table.id, 2)
    assert json.loads(bytes(content).splitlines()[0])["commitInfo"]

    assert await caretaker.round() == 0
    await let_it_be_tomorrow(engine)
    assert await caretaker.round() == 1
    assert log.versions == [5, 6, 7, 8, 9]
    await age(world, engine, table, {range(9): 35})
    await let_it_be_tomorrow(engine)
    await caretaker.round()
    assert (log.versions, log.checkpoints) == ([8, 9], [8])
    await is_readable(index, log, table)
    await commit(world, table, 1)
    await rebuild_table(world.context, table.id)
    assert (await get_table(world.context, table.id)).first_version == 8


async def test_what_was_deleted_is_noted_by_the_next_run(
    world: World, engine: AsyncEngine, caretaker: Caretaker, upkeep: PostgresUpkeep
):
    """Whoever is cut off behind its last file, or has lost its claim, notes nothing."""
    table = await expired(world, engine)
    await caretaker.round()
    async with engine.begin() as connection:
        await connection.execute(
            text("UPDATE table_upkeep SET version = -1 WHERE kind = :kind"), {"kind": KIND}
        )
    await let_it_be_tomorrow(engine)
    await caretaker.round()
    assert (await upkeep.standing(table.id))[KIND].version == 5
    assert LogOf(world, table).versions == [5, 6, 7, 8, 9]


async def test_each_run_is_in_the_audit_trail(
    world: World, engine: AsyncEngine, caretaker: Caretaker
):
    table = await expired(world, engine)
    await caretaker.round()
    await let_it_be_tomorrow(engine)
    await caretaker.round()
    async with engine.connect() as connection:
        rows = await connection.execute(
            text("SELECT principal, from_version, version FROM audit WHERE deed = 'clean-up'")
        )
        assert rows.all() == [("tidegate", 0, 4)]
    assert LogOf(world, table).versions[0] == 5


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableExpiredLogCleanup": "false"},
        {"delta.logRetentionDuration": "interval 41 days"},
    ],
)
async def test_what_the_table_does_not_want_is_left(
    world: World, engine: AsyncEngine, caretaker: Caretaker, properties: dict[str, str]
):
    table = await expired(world, engine, properties)
    assert await caretaker.round() == 1
    assert LogOf(world, table).versions == list(range(10))


@pytest.mark.parametrize(("before", "first"), [("5", 5), ("6", 0), ("1000", 0)])
async def test_protected_checkpoints(
    world: World, engine: AsyncEngine, caretaker: Caretaker, before: str, first: int
):
    table = await world.create(
        properties={
            "delta.feature.checkpointProtection": "supported",
            "delta.requireCheckpointProtectionBeforeVersion": before,
        }
    )
    await commit(world, table, 6)
    log = LogOf(world, table)
    log.checkpoint(5, await rows_of(world.context.index, table, 5))
    await age(world, engine, table, {range(7): 40})
    await caretaker.round()
    assert log.versions[0] == first


async def test_however_short_the_retention_an_hour_is_kept(
    world: World, index: Index, engine: AsyncEngine, upkeep: PostgresUpkeep
):
    table = await expired(world, engine, {"delta.logRetentionDuration": "interval 0 seconds"})
    hour_before = time.time() - 3600
    just_after_midnight = hour_before // 86400 * 86400
    await age(world, engine, table, {range(10): (time.time() - just_after_midnight - 60) / 86400})
    job = CleanUp(index, upkeep, world.context.storage)
    record = UpkeepRecord(version=-1, done_ms=None, failures=0, trouble=None)
    await job.run(table, record)
    assert LogOf(world, table).versions == list(range(10))


async def test_dates_of_the_index_count_too(
    world: World, engine: AsyncEngine, caretaker: Caretaker
):
    """A log that was copied has new files; one whose clock was wrong, old ones."""
    table = await expired(world, engine)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE commits SET timestamp = 1 + version"))
    for file in LogOf(world, table).folder.iterdir():
        file.touch()
    await caretaker.round()
    assert LogOf(world, table).versions == list(range(10))


async def test_a_checkpoint_that_is_not_what_the_index_has_stands_for_nothing(
    world: World, index: Index, engine: AsyncEngine, caretaker: Caretaker, upkeep: PostgresUpkeep
):
    table = await expired(world, engine)
    log = LogOf(world, table)
    rows = await rows_of(index, table, 5)
    log.checkpoint(5, [row for row in rows if "add" not in row])
    await age(world, engine, table, {range(7): 40})
    await caretaker.round()
    assert log.versions == list(range(10))
    standing = (await upkeep.standing(table.id))[KIND]
    assert "is not what the index has" in str(standing.trouble)
    log.path(5, "checkpoint.parquet").write_bytes(b"torn")
    await let_it_be_tomorrow(engine)
    await caretaker.round()
    assert log.versions == list(range(10))
    standing = (await upkeep.standing(table.id))[KIND]
    assert "cannot be read" in str(standing.trouble)


async def test_a_store_that_does_not_delete_is_told_of_once(
    world: World, engine: AsyncEngine, upkeep: PostgresUpkeep, caring: Caring, caplog
):
    caplog.set_level(logging.WARNING)
    table = await expired(world, engine)
    caretaker = caring(Undeletable(world.context.storage))
    for _ in range(3):
        assert await caretaker.round() == 1
        await let_it_be_tomorrow(engine)
    assert caplog.text.count("upkeep is hindered") == 1
    assert LogOf(world, table).versions == list(range(10))
    standing = (await upkeep.standing(table.id))[KIND]
    assert (standing.trouble, standing.failures) == ("the store does not delete", 0)


class Undeletable:
    """A storage of which nothing may be deleted."""

    def __init__(self, storage) -> None:
        self._storage = storage

    def log(self, location: str, *, who: str | None = None):
        return self._storage.log(location, who=who)

    def expired(self, location: str):
        return self

    async def remove(self, names, *, below: int) -> None:
        raise DeletionRefused("the store does not delete")


async def test_a_log_of_more_files_than_are_listed_is_cleaned_up_in_portions(
    world: World, index: Index, engine: AsyncEngine, caring: Caring, tmp_path: Path
):
    table = await expired(world, engine)
    log = LogOf(world, table)
    few = StorageLimits(files=6, listed=2)
    caretaker = caring(ObjectStorage(tmp_path.as_uri(), limits=few))
    await caretaker.round()
    assert log.versions[0] == 3
    await caretaker.round()
    assert log.versions == [5, 6, 7, 8, 9]
    await is_readable(index, log, table)


async def test_a_catalog_managed_log_is_cut_where_it_is_published(
    world: World, index: Index, engine: AsyncEngine, caretaker: Caretaker
):
    table = await world.create(catalog_managed=True)
    await commit(world, table, 6)
    publisher = Publisher(index, world.context.storage)
    await publisher.round()
    log = LogOf(world, table)
    for version in (4, 6):
        log.checkpoint(version, await rows_of(index, table, version))
    await age(world, engine, table, {range(6): 40})
    await commit(world, table, 2)
    await caretaker.round()
    assert log.versions == [4, 5, 6]
    await publisher.round()
    assert log.versions == [4, 5, 6, 7, 8]
    await commit(world, table, 1)
    assert (await verify_table(world.context, table.id)).differences == ()
    await rebuild_table(world.context, table.id)
    assert 0 not in log.versions
