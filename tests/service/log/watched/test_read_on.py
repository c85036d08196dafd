"""What reads of plain tables take in of their logs, and what becomes of it."""

import asyncio
import shutil
from dataclasses import replace

import psycopg
import pytest
from deltalake import DeltaTable

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.committing import quarantine
from tests.service.commit.far_ahead import FAR, PORTION, written_past
from tests.service.log.foreign.test_remade_folders import remake
from tests.service.log.test_hidden_log import left_behind
from tests.service.log.watched.reading import Held, read
from tests.service.world import make_world
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import (
    CommitStateUnknown,
    IndexUnavailable,
    NotFound,
    StorageUnavailable,
)
from tidegate_service.core.instance.log_looks import LogLooks
from tidegate_service.core.instance.running_commits import RunningCommits
from tidegate_service.core.log.catching_up import catch_up
from tidegate_service.core.maintenance.freshness import plain_table, read_in
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_head
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio


async def test_a_read_ends_beside_a_writer_that_is_faster(
    world, table, other_index, tmp_path, monkeypatch
):
    """Whatever was read in, others have committed behind that meanwhile."""
    busy = make_world(other_index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    written_past(world, table, 1, 1)
    real, times = catch_up._saved, []

    async def saved(context, before, portion):
        times.append(len(portion))
        if context is world.context and len(times) < 20:
            mine = proposal(add(f"x=1/{len(times)}"))
            landed = (await propose(busy.context, table.id, mine)).record.version
            written_past(world, table, landed + 1, landed + 1)
        return await real(context, before, portion)

    monkeypatch.setattr(catch_up, "_saved", saved)
    assert await read(world.context, table) >= 2
    assert len(times) < 10


async def test_a_log_that_was_cleaned_up_past_the_index_is_read_from_its_checkpoint(world):
    table, _ = await left_behind(world)
    assert await read(world.context, table) == 3
    assert await read(world.context, table) == 3


async def test_every_ten_seconds_the_log_is_listed(world, store, table):
    now, listed = [100.0], []

    async def listing():
        listed.append(now[0])

    store.listing = listing
    context = replace(world.context, log_looks=LogLooks(), monotonic_s=lambda: now[0])
    for now[0] in (100.0, 109.9, 110.0, 119.9, 120.0):
        await read(context, table)
    assert listed == [100.0, 110.0, 120.0]


async def test_a_read_does_not_wait_for_the_row(world, table, database_url):
    """As while the index is made anew."""
    with psycopg.connect(database_url) as holder:
        holder.execute("SELECT 1 FROM tables WHERE id = %s FOR UPDATE", [table.id])
        async with asyncio.timeout(5):
            assert await read(replace(world.context, log_looks=LogLooks()), table) == 0


async def test_of_a_quarantined_table_nothing_is_looked_for(world, store, table):
    await quarantine(world.context.index, table, "by hand")
    assert await read(world.context, table) == 0
    assert store.looks == []


async def test_a_log_that_cannot_be_read_any_more_is_no_error_of_the_read(world, store, table):
    """What is behind the hole is another table's, and cannot be taken in."""
    await propose(world.context, table.id, proposal(add("x=1/a")))
    remake(table, 5)
    theirs = DeltaTable(table.location)
    theirs.create_checkpoint()
    for version in range(4):
        world.log_file(table, version).unlink()
    world.checked_long_ago()
    reads = [read(replace(world.context, log_looks=LogLooks()), table) for _ in range(3)]
    assert await asyncio.gather(*reads) == [1, 1, 1]
    assert (await get_head(world.context, table.id)).state is TableState.QUARANTINED


async def test_a_commit_that_nobody_answered_is_unavailable_to_a_read(world, table, monkeypatch):
    written_past(world, table, 1, 1)

    async def unanswered(*_, **__):
        raise CommitStateUnknown("no answer")

    monkeypatch.setattr(catch_up, "_saved", unanswered)
    with pytest.raises(IndexUnavailable, match="ask again"):
        await read(world.context, table)


async def test_a_name_that_another_kind_of_table_got(world, store):
    table = await world.create(catalog_managed=True)
    assert await plain_table(world.context, table.name) is None
    await world.lose(table)
    shutil.rmtree(table.location.removeprefix("file://"))
    await world.create(name=table.name)
    assert await plain_table(world.context, table.name) is not None


@pytest.mark.parametrize("fails", [False, True])
async def test_a_task_whose_reader_has_left_is_not_the_answer_of_a_later_read(
    world, table, monkeypatch, fails
):
    """It has seen the log's end before, or fails."""
    written_past(world, table, 1, 1)
    at_the_end, go_on, real = asyncio.Event(), asyncio.Event(), catch_up._saved

    async def saved(*args):
        is_first = not at_the_end.is_set()
        at_the_end.set()
        await go_on.wait()
        if is_first and fails:
            raise StorageUnavailable("a moment's outage")
        return await real(*args)

    asked, run_once = asyncio.Queue(), RunningCommits.run_once

    async def counted(*args):
        asked.put_nowait(None)
        return await run_once(*args)

    monkeypatch.setattr(catch_up, "_saved", saved)
    monkeypatch.setattr(RunningCommits, "run_once", counted)
    first = asyncio.create_task(read(world.context, table))
    await asked.get()
    await at_the_end.wait()
    first.cancel()
    written_past(world, table, 2, 2)
    later = asyncio.create_task(read(world.context, table))
    await asked.get()
    go_on.set()
    assert await later == 2


async def test_a_young_look_is_enough_while_another_hangs(world, store, table):
    context = replace(world.context, log_looks=LogLooks(max_age_s=3600.0))
    await read(context, table)
    held = Held(store)
    another = asyncio.create_task(read(context, table, through=1))
    await held.asked.wait()
    async with asyncio.timeout(5):
        assert await read(context, table) == 0
    held.may.set()
    assert await another == 0


async def test_more_than_a_request_may_read_is_read_on_by_the_next_one(world, store, table):
    written_past(world, table, 1, FAR)
    now = [0.0]

    async def reading(version):
        if version == PORTION:
            now[0] = 100.0

    store.reading = reading
    limited = world.limited(portion_versions=PORTION).context
    context = replace(limited, log_looks=LogLooks(), monotonic_s=lambda: now[0])
    with pytest.raises(IndexUnavailable, match="goes on from there"):
        await read(context, table)
    assert 0 < (await get_head(context, table.id)).latest_version < FAR
    assert await read(context, table) == FAR


async def test_a_version_that_is_asked_for_is_looked_for_at_any_age(world, store, table):
    context = replace(world.context, log_looks=LogLooks(max_age_s=3600.0))
    await read(context, table)
    written_past(world, table, 1, 1)
    assert await read(context, table) == 0
    assert await read(context, table, through=1) == 1


async def test_nothing_is_read_in_from_a_folder_that_was_made_anew(world):
    table = await world.create()
    await propose(world.context, table.id, proposal(add("x=1/a")))
    remake(table, 4)
    world.checked_long_ago()
    assert await read(world.context, table) == 1
    assert (await get_head(world.context, table.id)).state is TableState.QUARANTINED


async def test_a_table_that_was_forgotten(world, table):
    plain = await plain_table(world.context, table.id)
    await world.lose(table)
    world.context.tables.learn(table)
    with pytest.raises(NotFound):
        await read_in(world.context, plain)
