"""Plain tables whose logs other writers took hundreds of versions further than the index knows."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.committing import quarantine
from tests.service.commit.far_ahead import FAR, PORTION, Lock, written_past
from tests.service.storage.watched_store import WatchedStorage
from tests.service.world import make_world
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import (
    IndexUnavailable,
    Refused,
    StorageUnavailable,
    TableQuarantined,
)
from tidegate_service.core.log.catching_up.catch_up import catch_up
from tidegate_service.core.log.catching_up.foreign_commits import MOST_RACES
from tidegate_service.core.log.catching_up.versions import READ_AHEAD
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.reading import reads

pytestmark = pytest.mark.anyio


@pytest.fixture
def world(watched):
    return watched.limited(portion_versions=PORTION)


async def blind(context, table):
    return (await propose(context, table.id, proposal(add("x=1/mine")))).record.version


async def having_read(context, table):
    body = proposal(add("x=1/mine"), read_version=FAR)
    return (await propose(context, table.id, body)).record.version


async def checked(context, table):
    return (await conflict_check(context, table.id, proposal(add("x=1/mine")))).version


async def aborting(context, table):
    await abort(context, table.id, "never")
    return (await get_table(context, table.id)).latest_version


def waited_for(lock):
    """The reads that the row's holder waited for. Later ones are begun while a portion is saved, so
    that the store goes on; nobody waits for these."""
    return [version for version in lock.held if version <= PORTION]


@pytest.mark.parametrize(
    ("asks", "puts"),
    # Each PUT that finds its version taken reads it.
    [(blind, [1, 2]), (having_read, []), (checked, []), (aborting, [1, 2])],
)
async def test_no_lock_is_held_while_hundreds_of_versions_are_read(
    world, store, database_url, asks, puts
):
    table = await world.create()
    written_past(world, table, 1, FAR)
    lock = Lock(database_url, table)
    store.reading = lock.reading
    assert await asks(world.context, table) == FAR + 1
    assert waited_for(lock) == puts
    assert set(range(1, FAR + 1)) <= set(store.reads)
    assert store.most_under_way == READ_AHEAD
    assert (await get_table(world.context, table.id)).num_files >= FAR
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_an_aborted_id_is_looked_for_without_the_lock_too(world, store, database_url):
    table = await world.create()
    body = proposal(add("x=1/mine"))
    await abort(world.context, table.id, body.transaction_id)
    written_past(world, table, 2, FAR)
    lock = Lock(database_url, table)
    store.reading = lock.reading
    with pytest.raises(Refused, match="aborted"):
        await propose(world.context, table.id, body)
    assert waited_for(lock) == []
    assert (await get_table(world.context, table.id)).latest_version == FAR


async def test_an_id_that_is_claimed_far_ahead_stays_whose_it_is(world, monkeypatch):
    """All of a portion's ids are looked up together."""
    table = await world.create()
    body = proposal(add("x=1/mine"))
    landed = await propose(world.context, table.id, body)
    written_past(world, table, 2, FAR, ids=True)
    claimed = world.log_file(table, FAR)
    claimed.write_text(claimed.read_text().replace(f"theirs-{FAR}", body.transaction_id))
    twice = world.log_file(table, FAR - 1)
    twice.write_text(twice.read_text().replace(f"theirs-{FAR - 1}", "theirs-9"))
    asked = []
    real = reads.transaction

    async def transaction(connection, table_id, transaction_id):
        asked.append(transaction_id)
        return await real(connection, table_id, transaction_id)

    monkeypatch.setattr(reads, "transaction", transaction)
    await conflict_check(world.context, table.id, proposal(add("x=1/other")))
    rows = await world.context.index.history(table.id, from_version=0, to_version=None, limit=1_000)
    ids = {row.version: row.transaction_id for row in rows}
    assert ids[1] == body.transaction_id
    assert (ids[FAR - 1], ids[FAR]) == (None, None)
    assert all(ids[version] == f"theirs-{version}" for version in range(2, FAR - 1))
    # Those that are known.
    assert len(asked) <= 3
    again = await propose(world.context, table.id, body)
    assert (again.replayed, again.record) == (True, landed.record)


async def test_what_was_read_is_kept_where_the_store_breaks_off(world, store):
    table = await world.create()
    written_past(world, table, 1, FAR)

    async def down_from(version):
        if version > 2 * PORTION:
            raise StorageUnavailable("a moment's outage")

    store.reading = down_from
    with pytest.raises(StorageUnavailable):
        await propose(world.context, table.id, proposal(add("x=1/mine")))
    assert (await get_table(world.context, table.id)).latest_version >= PORTION
    store.reading, store.reads = WatchedStorage(None).reading, []
    assert await blind(world.context, table) == FAR + 1
    # Those that were saved are not read again.
    assert min(store.reads) > PORTION


async def test_a_request_that_has_no_time_left_is_told_so_and_progress_is_kept(world):
    table = await world.create()
    written_past(world, table, 1, FAR)
    hasty = replace(world.context, commit_deadline_s=0.0)
    body = proposal(add("x=1/mine"))
    heads = [0]
    for ask in (propose, conflict_check, abort):
        with pytest.raises(IndexUnavailable, match="goes on from there"):
            await ask(hasty, table.id, body if ask is not abort else "never")
        heads.append((await get_table(world.context, table.id)).latest_version)
    assert all(after - before >= PORTION for before, after in pairwise(heads[:-1]))
    assert heads[-1] == FAR
    landed = await propose(hasty, table.id, body)
    assert (landed.record.version, landed.replayed) == (FAR + 1, False)


async def test_all_that_wait_are_decided_once_the_log_is_read(world):
    """Members of one group: each in its turn, those behind a foreign version judged against it."""
    table = await world.create()
    written_past(world, table, 1, FAR)
    world.context.tables.learn(table)
    reading = proposal(add("x=1/r"), read_version=0, predicates=("x = 1",))
    told = await asyncio.gather(
        *(propose(world.context, table.id, proposal(add(f"x=1/{name}"))) for name in "abc"),
        propose(world.context, table.id, reading),
    )
    assert [one.record.version for one in told[:3]] == [FAR + 1, FAR + 2, FAR + 3]
    assert isinstance(told[3], Conflict)
    assert told[3].winner.version == 1
    # With what is in memory by now.
    assert isinstance(
        await propose(world.context, table.id, replace(reading, transaction_id="again")), Conflict
    )


async def test_instances_that_catch_up_side_by_side_do_not_fight(
    world, store, other_index, tmp_path
):
    table = await world.create()
    written_past(world, table, 1, FAR)
    other = make_world(other_index, store, tmp_path.as_uri()).limited(portion_versions=PORTION)
    landed = await asyncio.gather(
        *(propose(one.context, table.id, proposal(add("x=1/mine"))) for one in (world, other))
    )
    assert all(isinstance(one, Committed) for one in landed)
    assert sorted(one.record.version for one in landed) == [FAR + 1, FAR + 2]
    assert (await verify_table(world.context, table.id)).differences == ()
    # Each read the log once, and a few twice where the other one had been faster.
    assert len(store.reads) <= 2 * (FAR + 4 * (READ_AHEAD + MOST_RACES))


async def test_a_portion_that_another_one_wrote_is_not_written_again(
    world, store, other_index, tmp_path
):
    """The other one saves it after it was read here, and before it is written."""
    table = await world.create()
    written_past(world, table, 1, FAR)
    other = make_world(other_index, store, tmp_path.as_uri()).limited(portion_versions=PORTION)
    faster = []

    async def overtaken(version):
        if version == PORTION and not faster:
            faster.append(version)
            await catch_up(other.context, table.id)

    store.reading = overtaken
    assert await blind(world.context, table) == FAR + 1
    assert faster
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_one_that_cannot_be_read_quarantines_the_table_and_those_before_it_are_kept(world):
    table = await world.create()
    written_past(world, table, 1, FAR)
    world.log_file(table, FAR - 2).write_text("torn")
    reason = f"version {FAR - 2}, written by another writer, cannot be read"
    for ask in (propose, conflict_check):
        with pytest.raises(TableQuarantined, match=reason):
            await ask(world.context, table.id, proposal(add("x=1/mine")))
    head = await get_table(world.context, table.id)
    assert (head.state, head.latest_version) == (TableState.QUARANTINED, FAR - 3)


async def torn_at_first(world):
    table = await world.create()
    world.log_file(table, 1).write_text("torn")
    with pytest.raises(TableQuarantined):
        await propose(world.context, table.id, proposal(add("x=1/mine")))
    written_past(world, table, 1, FAR)
    return table


async def test_a_table_is_released_far_behind_without_the_lock(world, store, database_url):
    table = await torn_at_first(world)
    lock = Lock(database_url, table)
    store.reading = lock.reading
    released = await release_table(world.context, table.id)
    assert (released.state, released.latest_version) == (TableState.ACTIVE, FAR)
    assert waited_for(lock) == []
    assert lock.states == {"quarantined"}


async def test_a_release_that_breaks_off_keeps_what_it_read_and_the_quarantine(world, store):
    table = await torn_at_first(world)
    world.log_file(table, FAR - 2).write_text("torn")
    with pytest.raises(Refused, match=f"stays quarantined: version {FAR - 2}"):
        await release_table(world.context, table.id)
    head = await get_table(world.context, table.id)
    assert (head.state, head.latest_version) == (TableState.QUARANTINED, FAR - 3)
    written_past(world, table, FAR - 2, FAR - 2)
    store.reads = []
    assert (await release_table(world.context, table.id)).latest_version == FAR
    # The first version is compared, and nothing is read again of what was saved.
    assert sorted(set(store.reads))[:2] == [0, FAR - 3]


async def test_a_catalog_managed_table_is_released_without_the_lock(world, store, database_url):
    table = await world.create(catalog_managed=True)
    for number in range(3):
        await propose(world.context, table.id, proposal(add(f"x=1/{number}")))
    await quarantine(world.context.index, table, "to see")
    lock = Lock(database_url, table)
    store.reading = lock.reading
    world.log_folder(table).mkdir(parents=True)
    world.log_file(table, 2).write_text("other bytes")
    with pytest.raises(Refused, match="a file of version 2, and that version cannot be published"):
        await release_table(world.context, table.id)
    content = await world.context.index.content(table.id, 2)
    world.log_file(table, 2).write_bytes(content)
    assert (await release_table(world.context, table.id)).state is TableState.ACTIVE
    assert lock.held == []


async def test_an_ordinary_commit_asks_the_store_for_nothing(world, store):
    table = await world.create()
    store.reads, store.puts = [], []
    await propose(world.context, table.id, proposal(add("x=1/mine")))
    assert (store.reads, store.puts) == ([], [1])
