"""A catalog-managed table whose database was set back: before any commit looks at it, nothing of
its log is deleted by rules that a lost version has changed."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.builders.by_x import metadata
from tests.builders.proposals import proposal
from tests.service.catalog_managed.restoring import Backups, backups, commit, publish
from tests.service.upkeep.aged import LogOf, age, rows_of
from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.upkeep.clean_up import CleanUp
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.index.upkeep.standing import PostgresUpkeep
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

HEAD = 6


@pytest.fixture
async def restored(postgres_server, tmp_path: Path, anyio_backend: str):
    async with backups(postgres_server.url, tmp_path) as restored:
        yield restored


async def aged(world: World, url: str) -> TableRecord:
    """A table with the versions 0 to `HEAD`, all three days old and kept for one, and a checkpoint
    of version 4. The last one is not published."""
    table = await world.create(
        catalog_managed=True, properties={"delta.logRetentionDuration": "interval 1 day"}
    )
    await commit(world, table, *"abcde")
    await publish(world, table)
    log = LogOf(world, table)
    log.checkpoint(4, await rows_of(world.context.index, table, 4))
    await commit(world, table, "f")
    engine = create_engine(url)
    await age(world, engine, table, {range(HEAD + 1): 3})
    await engine.dispose()
    return table


async def kept_for_ever(world: World, table: TableRecord) -> None:
    rule = replace(metadata(delta_enableExpiredLogCleanup="false"), id=table.metadata.id, raw=b"")
    await propose(world.context, table.id, proposal(rule, transaction_id="rule", read_version=HEAD))


async def cleaned_up(made: Backups, url: str, table: TableRecord) -> tuple[list[int], str]:
    """The versions that a caretaker's first round leaves, and what hindered it."""
    world, engine = made.instance(url), create_engine(url)
    try:
        upkeep = PostgresUpkeep(engine)
        job = CleanUp(world.context.index, upkeep, ObjectStorage(warehouse=made.warehouse))
        await Caretaker(world.context.index, upkeep, [job], share=1).round()
        standing = (await upkeep.standing(table.id))[UpkeepKind.CLEAN_UP]
        return LogOf(world, table).versions, str(standing.trouble)
    finally:
        await engine.dispose()


@pytest.mark.parametrize("is_published", [True, False])
async def test_the_rules_of_a_lost_version_are_kept(
    database_url: str, restored: Backups, is_published: bool
):
    """Also where a version lies before it that the database has, as not published yet."""
    now = restored.instance(database_url)
    table = await aged(now, database_url)
    if is_published:
        await publish(now, table)
    backup = await restored.copy(database_url)
    await kept_for_ever(now, table)
    await publish(now, table)
    left, trouble = await cleaned_up(restored, backup, table)
    assert left == list(range(HEAD + 2))
    assert f"version {HEAD + 1} in the log" in trouble


async def test_a_version_that_is_another_one_in_the_log_hinders(
    database_url: str, restored: Backups
):
    now = restored.instance(database_url)
    table = await aged(now, database_url)
    backup = await restored.copy(database_url)
    other = LogOf(now, table).folder / f"{HEAD:020d}.json"
    other.write_bytes(b'{"commitInfo":{}}\n')
    left, trouble = await cleaned_up(restored, backup, table)
    assert left == list(range(HEAD + 1))
    assert f"version {HEAD} in the log" in trouble


async def test_what_is_published_and_not_marked_hinders_nothing(
    database_url: str, restored: Backups
):
    now = restored.instance(database_url)
    table = await aged(now, database_url)
    backup = await restored.copy(database_url)
    await publish(now, table)
    left, trouble = await cleaned_up(restored, backup, table)
    assert (left, trouble) == ([4, 5, 6], "None")
