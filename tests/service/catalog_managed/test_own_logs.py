"""Catalog-managed tables at whose place another log lies than their own: a row that a restore
brought back, whose table is gone, or a log that was cut off."""

import shutil
from pathlib import Path

import pytest

from tests.service.catalog_managed.asking import CALLS, is_closed, log_of
from tests.service.catalog_managed.restoring import Backups, body, commit, publish
from tests.service.maintenance.pictures import checkpointed
from tests.service.world import World
from tidegate_protocol.base.problems import Code
from tidegate_service.core.catalog_managed import whole_log
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


async def another_since(
    made: Backups, url: str, *, commits: int, waiting: str = ""
) -> tuple[World, TableRecord]:
    """An instance of a database as it was when its table had the versions 0 to 5 published, and
    these `waiting`; another table is at its place since, with so many commits and one more
    version. None of them is at it where there are -1."""
    now = made.instance(url)
    table = await now.create(catalog_managed=True)
    await commit(now, table, *"abcde")
    await publish(now, table)
    await commit(now, table, *waiting)
    old = await made.copy(url)
    await forget_table(now.context, table.id)
    shutil.rmtree(now.log_folder(table).parent)
    if commits >= 0:
        other = await now.create(name=table.name, catalog_managed=True)
        await commit(now, other, *(f"k{number}" for number in range(commits)))
        await publish(now, other)
    return made.instance(old), table


OTHERS = {"none": -1, "a shorter one": 1, "a longer one": 7}
"""Logs by the commits of whoever made them."""
ASKED = [
    *(("a commit", other) for other in (*OTHERS, "one as long")),
    *(("forgetting it", other) for other in OTHERS),
    ("a check", "a shorter one"),
    ("an abort", "a shorter one"),
]
"""Every call, and every log: forgetting a table puts files back."""
ANOTHER = "22222222-2222-4333-8444-555555555555"


@pytest.mark.parametrize(("call", "other"), ASKED)
async def test_nothing_is_acknowledged_or_put_there(made, database_url, call, other):
    commits = OTHERS.get(other, 5)
    then, table = await another_since(made, database_url, commits=commits)
    before = log_of(then, table)
    with pytest.raises(TableQuarantined, match=r"version.* move nothing there"):
        await CALLS[call](then, table)
    assert await is_closed(then, table)
    head = await get_table(then.context, table.id)
    assert head.latest_version == 5
    with pytest.raises(Refused, match=r"stays quarantined: version 5 .* move nothing there"):
        await release_table(then.context, table.name)
    await publish(then, table)
    assert log_of(then, table) == before


@pytest.mark.parametrize("commits", OTHERS.values(), ids=OTHERS)
async def test_a_rebuild_is_refused_and_leaves_it_closed(made, database_url, commits):
    """Also where it is the first thing that is done, as the runbook has it."""
    then, table = await another_since(made, database_url, commits=commits)
    before = log_of(then, table)
    with pytest.raises(Refused, match="move nothing there") as refused:
        await rebuild(then.context, table.name)
    assert refused.value.code is Code.BROKEN_LOG
    assert await is_closed(then, table)
    with pytest.raises(TableQuarantined):
        await propose(then.context, table.name, body("new"))
    assert log_of(then, table) == before


async def test_a_clean_up_meanwhile_is_no_other_log(made, database_url, monkeypatch):
    """It deletes a version that the checkpoint stands for, between the listing and the reading."""
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, *"abcde")
    await publish(world, table)
    checkpointed(world, table, 3)
    world.log_file(table, 5).unlink()
    check = whole_log.other_bytes

    async def cleaned_up(*asked, **options):
        world.log_file(table, 1).unlink()
        return await check(*asked, **options)

    monkeypatch.setattr(whole_log, "other_bytes", cleaned_up)
    assert (await rebuild(world.context, table.name)).lost == ()
    assert world.log_file(table, 5).exists()


@pytest.mark.parametrize("gone", [False, True], ids=["with its commits", "without"])
async def test_a_rebuild_puts_nothing_behind_anothers_checkpoint(made, database_url, gone):
    """The other log ends with the version that its checkpoint is of: nothing is left of it behind
    that, which could be compared."""
    then, table = await another_since(made, database_url, commits=2)
    checkpointed(then, table, 2)
    if gone:
        for version in range(3):
            then.log_file(table, version).unlink()
    before = log_of(then, table)
    why = "the log's checkpoint is another table's" if gone else "version 0 lies in the log with"
    with pytest.raises(Refused, match=why):
        await rebuild(then.context, table.name)
    assert await is_closed(then, table)
    assert log_of(then, table) == before


@pytest.mark.parametrize("commits", OTHERS.values(), ids=OTHERS)
async def test_what_waits_for_publishing_is_not_put_there(made, database_url, commits):
    """A publisher may be there before anybody commits."""
    then, table = await another_since(made, database_url, commits=commits, waiting="fg")
    before = log_of(then, table)
    await publish(then, table)
    assert log_of(then, table) == before
    assert await is_closed(then, table)
    with pytest.raises(TableQuarantined, match="move nothing there"):
        await forget_table(then.context, table.name)
    assert log_of(then, table) == before


async def test_a_folder_that_was_moved_aside_is_moved_back(made, database_url):
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    await publish(world, table)
    folder = Path(world.log_folder(table).parent)
    aside = folder.rename(folder.with_name("aside"))
    world = made.instance(database_url)
    with pytest.raises(TableQuarantined, match="version 1 was published, and the log has neither"):
        await propose(world.context, table.id, body("b"))
    aside.rename(folder)
    await release_table(world.context, table.id)
    assert (await propose(world.context, table.id, body("b"))).record.version == 2
    await publish(world, table)


async def test_a_store_that_was_set_back(made, database_url):
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, *"abc")
    await publish(world, table)
    lost = {version: world.log_file(table, version).read_bytes() for version in (2, 3)}
    for version in lost:
        world.log_file(table, version).unlink()
    fresh = made.instance(database_url)
    with pytest.raises(TableQuarantined, match="version 3 was published"):
        await propose(fresh.context, table.id, body("d"))
    for version, content in lost.items():
        world.log_file(table, version).write_bytes(content)
    await release_table(fresh.context, table.id)
    assert (await propose(fresh.context, table.id, body("d"))).record.version == 4


class TestCleanedUp:
    """Others have written a checkpoint and deleted the versions up to it."""

    async def at(self, made, url, version: int) -> tuple[World, TableRecord]:
        world = made.instance(url)
        table = await world.create(catalog_managed=True)
        await commit(world, table, *"abc")
        await publish(world, table)
        checkpointed(world, table, min(version, 3))
        (made_so,) = world.log_folder(table).glob("*.checkpoint*")
        made_so.rename(made_so.with_name(f"{version:020d}{made_so.name[20:]}"))
        for gone in range(4):
            world.log_file(table, gone).unlink()
        return made.instance(url), table

    async def test_the_checkpoint_is_the_tables(self, made, database_url):
        world, table = await self.at(made, database_url, 3)
        assert (await propose(world.context, table.id, body("d"))).record.version == 4
        await publish(world, table)
        assert world.log_file(table, 4).exists()

    async def test_the_checkpoint_does_not_reach_far_enough(self, made, database_url):
        world, table = await self.at(made, database_url, 2)
        with pytest.raises(TableQuarantined, match="version 3 was published, and the log has"):
            await propose(world.context, table.id, body("d"))

    async def test_the_checkpoint_is_of_a_version_that_the_index_lost(self, made, database_url):
        world, table = await self.at(made, database_url, 4)
        with pytest.raises(TableQuarantined, match="checkpoint of version 4, which the index does"):
            await propose(world.context, table.id, body("d"))

    async def test_the_checkpoint_is_another_tables(self, made, database_url):
        world, table = await self.at(made, database_url, 3)
        other, others = await self.at(made, database_url, 3)
        (checkpoint,) = other.log_folder(others).glob("*.checkpoint*")
        shutil.copy(checkpoint, world.log_folder(table) / f"{3:020d}.checkpoint.{ANOTHER}.json")
        (own,) = world.log_folder(table).glob("*.checkpoint.1*")
        own.unlink()
        with pytest.raises(TableQuarantined, match="the log's checkpoint is another table's"):
            await propose(world.context, table.id, body("d"))
