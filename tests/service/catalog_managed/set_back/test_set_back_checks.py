"""Looks at a catalog-managed table: what they find, and what does not wait for them."""

import asyncio

import pytest

from tests.service.catalog_managed.restoring import body, commit, publish, quiet
from tests.service.log.foreign.foreign import FOREIGN_ADD, foreign_commit
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import StorageUnavailable, TableQuarantined
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.rebuild import rebuild_table

pytestmark = pytest.mark.anyio


async def left_alone(url, world, table):
    """Nobody has committed to the table for a minute, by anybody's clock."""
    quiet(url, table)
    head = world.context.heads.known(table.id)
    head.timestamp -= 60_000
    head.checked_ms -= 60_000
    head.seen_s -= 60


async def test_a_store_that_is_slow_keeps_no_answer_back_that_is_known(
    made, database_url, monkeypatch
):
    world = made.instance(database_url).limited(check_ahead_s=0.05)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    await left_alone(database_url, world, table)
    log_of = made.storage.log

    def hanging(location, *, who=None):
        log = log_of(location, who=who)

        async def read(version):
            await asyncio.Event().wait()

        log.read = read
        return log

    monkeypatch.setattr(made.storage, "log", hanging)
    async with asyncio.timeout(30):
        again = await propose(world.context, table.id, body("a"))
    assert (again.record.version, again.replayed) == (1, True)


async def test_a_look_keeps_no_other_table_waiting(made, database_url, monkeypatch):
    """Also none that came in the same group."""
    world = made.instance(database_url)
    slow, quick = [await world.create(catalog_managed=True) for _ in range(2)]
    world = made.instance(database_url)
    await commit(world, quick, "a")
    begun, let_go = asyncio.Event(), asyncio.Event()
    log_of = made.storage.log

    def hanging(location, *, who=None):
        log = log_of(location, who=who)
        read = log.read

        async def held(version):
            if location == slow.location:
                begun.set()
                await let_go.wait()
            return await read(version)

        log.read = held
        return log

    monkeypatch.setattr(made.storage, "log", hanging)
    first = asyncio.create_task(propose(world.context, slow.id, body("b")))
    async with asyncio.timeout(30):
        landed = await propose(world.context, quick.id, body("b"))
        assert landed.record.version == 2
        await begun.wait()
        landed = await propose(world.context, quick.id, body("c"))
    assert not first.done()
    let_go.set()
    assert (await first).record.version == 1


async def test_a_look_takes_no_commit_where_the_log_cannot_be_asked(
    made, database_url, monkeypatch
):
    table = await made.instance(database_url).create(catalog_managed=True)
    world = made.instance(database_url)
    log_of = made.storage.log

    def down(location, *, who=None):
        log = log_of(location, who=who)

        async def read(version):
            raise StorageUnavailable("the store is down")

        log.read = read
        return log

    monkeypatch.setattr(made.storage, "log", down)
    with pytest.raises(StorageUnavailable):
        await propose(world.context, table.id, body("a"))
    monkeypatch.undo()
    assert (await propose(world.context, table.id, body("a"))).record.version == 1


async def test_a_look_finds_a_file_that_this_service_did_not_write(made, database_url):
    """It is no version, and would keep one from being published."""
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await publish(world, table)
    foreign_commit(world, table, 1, FOREIGN_ADD)
    world = made.instance(database_url)
    with pytest.raises(TableQuarantined, match=r"did not write.* move it out of the log"):
        await propose(world.context, table.id, body("a"))
    world.log_file(table, 1).unlink()
    await release_table(world.context, table.id)
    assert (await propose(world.context, table.id, body("a"))).record.version == 1


async def test_a_copy_of_an_earlier_version_is_no_version_either(made, database_url):
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    await publish(world, table)
    world.log_file(table, 2).write_bytes(world.log_file(table, 1).read_bytes())
    rebuilt = await rebuild_table(world.context, table.id)
    assert rebuilt.latest_version == 1
