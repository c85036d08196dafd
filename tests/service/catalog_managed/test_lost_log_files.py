"""Published versions of catalog-managed tables whose files are gone from the log: the index keeps
their bytes, and they are put back; nothing drops them before."""

import asyncio
from dataclasses import replace

import psycopg
import pytest

from tests.service.catalog_managed.restoring import body, commit, publish
from tests.service.faults import Fault
from tests.service.maintenance.pictures import checkpointed, picture
from tests.service.storage.watched_store import WatchedStorage
from tests.service.world import World
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import NotFound, Refused, StorageUnavailable, TableQuarantined
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.records import TableRecord, TableState
from tidegate_service.core.tables.history import content
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


@pytest.fixture
async def table(made, database_url) -> TableRecord:
    """Of the versions 0 to 4, all of them published."""
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, *"abcd")
    await publish(world, table)
    return table


@pytest.fixture
def world(made, database_url, table) -> World:
    return made.instance(database_url)


GONE = pytest.mark.parametrize("gone", [(2,), (4,), (0, 1, 3, 4)], ids=str)


def lose(world: World, table: TableRecord, versions: tuple[int, ...]) -> dict[int, bytes]:
    lost = {version: world.log_file(table, version).read_bytes() for version in versions}
    for version in versions:
        world.log_file(table, version).unlink()
    return lost


@GONE
async def test_a_rebuild_puts_them_back(world, table, gone):
    before = await picture(world, await get_table(world.context, table.id))
    lost = lose(world, table, gone)
    assert (await rebuild(world.context, table.id)).lost == ()
    for version, found in lost.items():
        assert world.log_file(table, version).read_bytes() == found
    assert await picture(world, await get_table(world.context, table.id)) == before
    assert (await verify_table(world.context, table.id)).differences == ()
    assert (await propose(world.context, table.id, body("e"))).record.version == 5


@GONE
@pytest.mark.parametrize("waiting", ["", "e"], ids=["all published", "one waits"])
async def test_they_are_put_back_before_the_table_is_forgotten(world, table, gone, waiting):
    await commit(world, table, *waiting)
    lost = lose(world, table, gone)
    await forget_table(world.context, table.id)
    for version, found in lost.items():
        assert world.log_file(table, version).read_bytes() == found
    asked = RegisterTable(name=table.name, location=table.location, catalog_managed=True)
    again, _ = await register_table(world.context, asked)
    for number, name in enumerate(["a", "b", "c", "d", *waiting], start=1):
        landed = await propose(world.context, again.id, body(name))
        assert (landed.record.version, landed.replayed) == (number, True)


@GONE
@pytest.mark.parametrize("call", [rebuild, forget_table], ids=["rebuild", "forget"])
async def test_none_is_put_beside_what_is_not_the_tables(world, table, gone, call):
    lost = lose(world, table, gone)
    left = next(version for version in range(5) if version not in gone)
    file = world.log_file(table, left)
    ratified = file.read_bytes()
    file.write_bytes(ratified.replace(b'"a"', b'"A"') + b"\n")
    with pytest.raises((Refused, TableQuarantined), match=f"version {left} .* other bytes"):
        await call(world.context, table.id)
    assert not any(world.log_file(table, version).exists() for version in gone)
    assert (await get_table(world.context, table.id)).state is TableState.QUARANTINED
    for version, found in lost.items():
        # Whoever puts them back by hand has them from here.
        assert bytes(await content(world.context, table.id, version)) == found
    file.write_bytes(ratified)
    await rebuild(world.context, table.id)
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_no_ratified_bytes_are_forgotten_of_which_the_log_has_others(made, world, table):
    """Somewhere in a log that lacks nothing. The store is slow, and commits go on."""
    file = world.log_file(table, 2)
    ratified = file.read_bytes()
    file.write_bytes(ratified.replace(b'"b"', b'"B"') + b"\n")
    store = WatchedStorage(made.storage)
    slow = World(replace(world.context, storage=store))
    reached, goes_on = asyncio.Event(), asyncio.Event()

    async def held(version: int) -> None:
        if version == 2:
            reached.set()
            await goes_on.wait()

    store.reading = held
    forgetting = asyncio.create_task(forget_table(slow.context, table.id))
    waiting = asyncio.create_task(reached.wait())
    await asyncio.wait([forgetting, waiting], return_when=asyncio.FIRST_COMPLETED)
    assert reached.is_set(), "nobody has read it"
    assert (await propose(world.context, table.id, body("e"))).record.version == 5
    goes_on.set()
    with pytest.raises(
        TableQuarantined, match=r"version 2 lies in the log with other bytes .* see"
    ):
        await forgetting
    assert (await get_table(world.context, table.id)).state is TableState.QUARANTINED
    assert bytes(await content(world.context, table.id, 2)) == ratified
    file.write_bytes(ratified)
    await release_table(world.context, table.id)
    await publish(world, table)
    await forget_table(world.context, table.id)


async def test_a_version_that_cannot_be_written_is_told_so(made, world, table):
    lose(world, table, (2,))
    for fault in (Fault.REFUSED, Fault.LOST):
        made.storage.faults.append(fault)
        with pytest.raises(StorageUnavailable):
            await rebuild(world.context, table.id)
    made.storage.faults.append(Fault.ANSWER_LOST)
    await rebuild(world.context, table.id)
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_what_a_checkpoint_stands_for_is_not_put_back(world, table):
    checkpointed(world, table, 3)
    lose(world, table, (0, 1, 2, 3))
    assert (await rebuild(world.context, table.id)).table.first_version == 3
    assert not world.log_file(table, 3).exists()


async def test_bytes_that_are_not_the_commits_are_not_told(world, table, database_url):
    (lost,) = lose(world, table, (3,)).values()
    assert bytes(await content(world.context, table.id, 3)) == lost
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "UPDATE commits SET content = (SELECT content FROM commits WHERE version = 2)"
            " WHERE version = 3"
        )
    with pytest.raises(NotFound):
        await content(world.context, table.id, 3)
    with pytest.raises(Refused, match=r"version 3 .* the index"):
        await rebuild(world.context, table.id)
    assert not world.log_file(table, 3).exists()
