"""What is looked at for late writes of tables that were at a place before, and what that costs."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

import psycopg
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.log.test_used_places import ROWS, made_again
from tests.service.world import World
from tidegate_protocol.log.content import LogFile
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.instance.log_checks import LogChecks
from tidegate_service.core.log.used_places import MOST_AWAITED
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.ports.store.storage import DatedFile, Log, Storage
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


class ReadLog:
    """A log that tells of each version after it was read."""

    def __init__(self, log: Log, told: Callable[[int], None]) -> None:
        self._log = log
        self._told = told

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    async def read(self, version: int) -> bytes | LogFile | None:
        found = await self.read_dated(version)
        return None if found is None else found.content

    async def read_dated(self, version: int) -> DatedFile | None:
        found = await self._log.read_dated(version)
        self._told(version)
        return found


class ReadStorage:
    def __init__(self, storage: Storage, told: Callable[[int], None]) -> None:
        self._storage = storage
        self._told = told

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)

    def log(self, location: str, *, who: str | None = None) -> ReadLog:
        return ReadLog(self._storage.log(location, who=who), self._told)


def told(world: World, of: Callable[[int], None]) -> World:
    return World(replace(world.context, storage=ReadStorage(world.context.storage, of)))


def forgotten_before(database_url: str, table, heads: Sequence[int]) -> None:
    """Tables with these heads were forgotten at the table's place after the one that was, the first
    of them last."""
    with psycopg.connect(database_url) as connection:
        for after_s, head in enumerate(reversed(heads), 1):
            connection.execute(
                """
                INSERT INTO forgotten_tables
                SELECT (jsonb_populate_record(f, jsonb_build_object(
                    'id', %s::text, 'latest_version', %s::bigint,
                    'forgotten_at', f.forgotten_at + make_interval(secs => %s)
                ))).* FROM forgotten_tables f WHERE f.location = %s
                ORDER BY f.forgotten_at LIMIT 1
                """,
                (str(uuid.uuid4()), head, after_s, table.location),
            )


async def test_a_place_that_many_tables_were_at_is_asked_for_a_few_versions(
    world, faults, database_url
):
    table = await made_again(world, faults, old_head=1)
    forgotten_before(database_url, table, range(100, 300))
    world.checked_long_ago()
    reads: list[int] = []
    read = told(world, reads.append).context
    landed = await propose(read, table.id, proposal(add("x=1/a")))
    assert (landed.record.version, reads) == (1, [0])
    # By somebody who is none of the last few tables.
    world.log_file(table, 3).write_bytes(world.log_file(table, 0).read_bytes())
    world.checked_long_ago()
    with pytest.raises(TableQuarantined, match="version 2 is missing"):
        await propose(replace(read, log_checks=LogChecks()), table.id, proposal(add("x=1/a")))
    behind = [version for version in reads if version > 2]
    assert sorted(set(behind)) == list(range(101, 101 + MOST_AWAITED))


@pytest.fixture
def cleaning(world, faults):
    """A table, and what others made of its log, which they clean up once version 5 is read."""

    async def made():
        table = await made_again(world, faults, old_head=4)
        for _ in range(6):
            write_deltalake(table.location, ROWS, mode="append")
        DeltaTable(table.location).create_checkpoint()

        def clean_up(version: int) -> None:
            if version == 5:
                for older in range(6):
                    world.log_file(table, older).unlink(missing_ok=True)

        return table, told(world, clean_up)

    return made


async def test_what_a_clean_up_has_left_is_no_late_write(world, cleaning):
    table, _ = await cleaning()
    for version in range(1, 5):
        world.log_file(table, version).unlink()
    world.checked_long_ago()
    landed = await propose(world.context, table.id, proposal(add("x=1/new")))
    assert landed.record.version == 7
    assert DeltaTable(table.location).version() == 7


async def test_a_release_takes_a_clean_up_for_no_late_write_either(world, faults, cleaning):
    table, cleaned = await cleaning()
    for version in (1, 2, 3):
        # So that the release does not read up to there itself.
        world.log_file(table, version).unlink()
    async with world.context.index.commit_section(table.id) as section:
        await section.quarantine("for the test")
        await section.save()
    with pytest.raises(Refused, match="version 1 is missing from the log"):
        await release_table(cleaned.context, table.id)
    assert (await get_table(world.context, table.id)).latest_version == 0
