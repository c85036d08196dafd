"""Losses that other coordinators and writers had, each as a test under its name.

An unknown outcome taken for a failure and its files deleted (Iceberg #3717, #2328, #13867) is a
matter of the writer: `tests/spark/writing/test_append.py`, `TestUnknownOutcomes`.
"""

import asyncio
import os
import time
from dataclasses import dataclass, replace

import psycopg
import pytest
from deltalake import DeltaTable

from tests.builders.by_x import add
from tests.builders.by_x import add as dv_add
from tests.builders.by_x import remove as dv_remove
from tests.builders.proposals import proposal
from tests.service.commit.committing import create, land, new_table
from tests.service.faults import Fault
from tests.service.world import World, make_world
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Unavailable
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
END_SECTIONS = """
    SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'idle in transaction'
"""


@dataclass(slots=True)
class Held:
    """Holds the first commit that comes to a point until it is let go."""

    step: Step
    came: asyncio.Event
    go: asyncio.Event

    async def reached(self, step: Step, side: Side) -> None:
        if (step, side) == (self.step, Side.BEFORE) and not self.came.is_set():
            self.came.set()
            await self.go.wait()


@pytest.fixture
def other_world(world: World, other_index, tmp_path) -> World:
    """Another instance: another index and another storage on the same database and files."""
    made = make_world(other_index, world.context.storage, tmp_path.as_uri())
    return World(made.context)


async def test_delta_rs_takes_its_own_lost_success_for_a_conflict_and_commits_twice(world, faults):
    table = await world.create()
    body = proposal(add("a"), read_version=0, predicates=("x = 1",))
    # Written, unanswered, and the store is down when it is asked what became of it.
    faults.faults.extend([Fault.ANSWER_LOST, Fault.REFUSED] * 3)
    landed = await propose(world.context, table.id, body)
    assert isinstance(landed, Committed)
    assert landed.record.version == 1
    assert not world.log_file(table, 2).exists()
    assert DeltaTable(table.location).version() == 1


@pytest.mark.parametrize("step", [Step.O6_PUT, Step.M5_INSERT])
async def test_delta_1410_a_lock_that_expired_and_a_version_overwritten(
    world, other_world, database_url, step
):
    table = await world.create(catalog_managed=step is Step.M5_INSERT)
    held = Held(step, asyncio.Event(), asyncio.Event())
    slow = replace(world.context, faults=held)
    mine, theirs = proposal(add("mine")), proposal(add("theirs"))
    slowly = asyncio.create_task(propose(slow, table.id, mine))
    await held.came.wait()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(END_SECTIONS)
    first = await propose(other_world.context, table.id, theirs)
    assert first.record.version == 1
    content = await content_of(world, table, 1)
    held.go.set()
    # Its lock is gone, which it learns by its next statement. Nothing of it is in version 1.
    (ended,) = await asyncio.gather(slowly, return_exceptions=True)
    assert isinstance(ended, Unavailable | Committed)
    assert (await propose(world.context, table.id, mine)).record.version == 2
    assert await content_of(world, table, 1) == content
    assert (await propose(world.context, table.id, theirs)).record == first.record


async def content_of(world: World, table, version: int) -> bytes:
    held = await world.context.index.content(table.id, version)
    return held if held is not None else world.log_file(table, version).read_bytes()


async def test_delta_1734_a_publish_that_found_its_own_file_and_failed(world, faults):
    table = await world.create(catalog_managed=True)
    await propose(world.context, table.id, proposal(add("a")))
    index, storage = world.context.index, world.context.storage
    ratified = [await index.content(table.id, version) for version in range(2)]
    for version, content in enumerate(ratified):
        assert content is not None
        # By a publisher that died before it could say so, or whose answer was lost.
        await storage.log(table.location).put_if_absent(version, content)
    assert await publish_table(index, storage, await get_table(world.context, table.id)) == 2
    head = await get_table(world.context, table.id)
    assert (head.state, head.published_version) == (TableState.ACTIVE, 1)


@BOTH
async def test_delta_7567_in_process_locks_taken_for_mutual_exclusion(
    world, other_world, catalog_managed
):
    """Two instances have no lock in common but the row's."""
    table = await world.create(catalog_managed=catalog_managed)
    made = await asyncio.gather(
        *(
            propose(context, table.id, proposal(add(f"{name}{number}")))
            for number in range(10)
            for name, context in (("a", world.context), ("b", other_world.context))
        )
    )
    assert sorted(each.record.version for each in made) == list(range(1, 21))
    head = await get_table(other_world.context, table.id)
    assert (head.latest_version, head.num_files) == (20, 20)


async def test_delta_3981_a_missing_deletion_vector_in_the_file_key(index):
    """The same path with one vector and with another are two files."""
    table = await create(index, dv_add("a"), dv_add("b"), table=new_table())
    await land(index, table, dv_remove("a"), dv_add("a", dv="one"))
    head = await land(index, table, dv_remove("a", dv="one"), dv_add("a", dv="two"))
    # A remove of what is no longer there ends the life of nothing else of that path.
    head = await land(index, table, dv_remove("a", dv="one"))
    live = [file async for batch in index.files(table.id, head.latest_version) for file in batch]
    vectors = {file.path: file.deletion_vector for file in live}
    assert set(vectors) == {"a", "b"}
    assert vectors["a"].path_or_inline_dv == "two"
    assert vectors["b"] is None
    assert head.num_files == 2


async def test_delta_rs_3645_vacuum_deletes_uncommitted_files(world):
    """A vacuum by others keeps what is younger than its retention, however it is reached; the
    files of a transaction under way are that, and nothing that this service does touches them."""
    table = await world.create()
    folder = world.log_folder(table).parent / "tidegate_txn=1" / "x=1"
    folder.mkdir(parents=True)
    (young, old) = folder / "young.parquet", folder / "old.parquet"
    for file in (young, old):
        file.write_bytes(b"PAR1")
    long_ago = time.time() - 30 * 86400
    os.utime(old, (long_ago, long_ago))
    vacuumed = DeltaTable(table.location).vacuum(dry_run=False, full=True)
    assert [path.rpartition("/")[2] for path in vacuumed] == ["old.parquet"]
    assert young.exists()
    landed = await propose(
        world.context, table.id, proposal(add("tidegate_txn=1/x=1/young.parquet"))
    )
    assert isinstance(landed, Committed)
    assert DeltaTable(table.location).file_uris()[0].endswith("young.parquet")
