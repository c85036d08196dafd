"""What may be done with a catalog-managed table that was set back: it is rebuilt, not forgotten or
released; and what looks like it, and is not."""

import asyncio
import shutil
from dataclasses import replace

import psycopg
import pytest

from tests.service.catalog_managed.restoring import body, commit, given_up, publish
from tests.service.catalog_managed.set_back.test_set_back import Restored
from tests.service.catalog_managed.set_back.test_set_back_known import lived_on
from tests.service.catalog_managed.stock_commits import stock_commit
from tests.service.commit.committing import quarantine
from tests.service.log.foreign.foreign import FOREIGN_ADD, foreign_commit
from tests.service.world import World
from tidegate_protocol.base.problems import Code
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import (
    CommitStateUnknown,
    IndexUnavailable,
    NotFound,
    Refused,
    StorageUnavailable,
    TableQuarantined,
)
from tidegate_service.core.instance.head_checks import HeadChecks
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild, rebuild_table
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.delete_forgotten import list_forgotten
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


@pytest.fixture
async def restored(made, database_url) -> Restored:
    return await Restored(made, database_url).make()


async def register(world, table):
    asked = RegisterTable(name=table.name, location=table.location, catalog_managed=True)
    return (await register_table(world.context, asked))[0]


class TestForgetting:
    @pytest.mark.parametrize("first", ["nothing", "a commit"])
    async def test_what_was_published_is_not_forgotten(self, restored, first):
        then, table = restored.then, restored.table
        if first == "a commit":
            with pytest.raises(TableQuarantined):
                await propose(then.context, table.id, body("new"))
        for _ in range(2):
            with pytest.raises(TableQuarantined, match=r"version 3 is published .* `rebuild`"):
                await forget_table(then.context, table.id)
        head = await get_table(then.context, table.id)
        assert (head.state, head.latest_version) == (TableState.QUARANTINED, 2)
        await rebuild_table(then.context, table.id)
        await forget_table(then.context, table.id)
        again = await register(then, table)
        assert (await propose(then.context, again.id, body("c"))).record.version == 3

    async def test_nor_what_this_instance_saw_committed(self, made, database_url):
        world, table = await lived_on(made, database_url)
        with pytest.raises(TableQuarantined, match="versions 3 to 4"):
            await forget_table(world.context, table.id)
        await rebuild_table(world.context, table.id)
        await forget_table(world.context, table.id)
        with pytest.raises(NotFound):
            await get_table(world.context, table.id)

    async def test_a_file_of_others_keeps_none_from_being_forgotten(self, made, database_url):
        world = made.instance(database_url)
        table = await world.create(catalog_managed=True)
        await publish(world, table)
        foreign_commit(world, table, 1, FOREIGN_ADD)
        await forget_table(made.instance(database_url).context, table.id)
        with pytest.raises(Refused, match=r"version 1 .* did not write it"):
            await register(world, table)
        world.log_file(table, 1).unlink()
        assert (await register(world, table)).latest_version == 0

    async def test_what_landed_after_it_was_forgotten_is_of_it(self, made, database_url):
        """The backup is of a time when it was forgotten; it was registered again since."""
        world = made.instance(database_url)
        table = await world.create(catalog_managed=True)
        await commit(world, table, "a", "b")
        await forget_table(world.context, table.id)
        old = await made.copy(database_url)
        again = await register(world, table)
        await commit(world, again, "c", "d")
        await publish(world, again)
        then = made.instance(old)
        back = await register(then, table)
        assert (back.latest_version, back.published_version) == (4, 4)
        for number, name in enumerate("abcd", start=1):
            landed = await propose(then.context, back.id, body(name))
            assert (landed.record.version, landed.replayed) == (number, True)
        assert (await propose(then.context, back.id, body("e"))).record.version == 5

    async def test_so_is_what_a_stock_client_committed_then(self, made, database_url):
        world = made.instance(database_url)
        table = await world.create(catalog_managed=True)
        await forget_table(world.context, table.id)
        old = await made.copy(database_url)
        again = await register(world, table)
        said = await stock_commit(world, again, "stock-1")
        file = world.log_folder(table) / "_staged_commits" / said.file_name
        content = file.read_bytes()
        file.unlink()
        then = made.instance(old)
        with pytest.raises(Refused, match=r"version 2 .* no staged commit has its bytes"):
            await register(then, table)
        file.write_bytes(content)
        back = await register(then, table)
        assert (back.latest_version, back.published_version) == (2, 2)


@pytest.mark.parametrize("replaced", [False, True], ids=["gone", "replaced"])
async def test_what_can_neither_be_rebuilt_nor_put_back_is_given_up(restored, replaced):
    then, table, made = restored.then, restored.table, restored.made
    with pytest.raises(TableQuarantined):
        await propose(then.context, table.id, body("new"))
    for path in then.log_folder(table).iterdir():
        if replaced:
            path.write_bytes(path.read_bytes() + b"\n")
        else:
            path.unlink()
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await rebuild(then.context, table.id)
        assert refused.value.code is Code.BROKEN_LOG
        with pytest.raises(Refused, match="stays quarantined"):
            await release_table(then.context, table.id)
        with pytest.raises(TableQuarantined):
            await forget_table(then.context, table.id)
    listing, giving_up = given_up(table)
    with psycopg.connect(restored.old_url) as connection:
        lost = connection.execute(listing).fetchall()
        assert [(version, name) for version, name, _ in lost[1:]] == [(1, "a"), (2, "b")]
        assert connection.execute(giving_up).rowcount == 1
    with pytest.raises(Refused, match="stays quarantined"):
        await release_table(then.context, table.id)
    files = sorted(then.log_folder(table).iterdir())
    await forget_table(then.context, table.id)
    assert sorted(then.log_folder(table).iterdir()) == files
    then.log_folder(table).rename(then.log_folder(table).with_name("kept"))
    fresh = made.instance(restored.old_url)
    kept = await list_forgotten(fresh.context, cursor=None, limit=9)
    assert [(one.id, one.latest_version) for one in kept.tables] == [(table.id, 2)]
    again = await fresh.create(name=table.name, catalog_managed=True)
    assert (await propose(fresh.context, again.id, body("new"))).record.version == 1


class TestReleasing:
    async def test_what_was_lost_and_not_published_is_not_released(self, made, database_url):
        world, table = await lived_on(made, database_url)
        with pytest.raises(TableQuarantined):
            await propose(world.context, table.id, body("new"))
        # Nor by an instance that never saw it.
        other = World(replace(world.context, heads=HeadChecks()))
        for instance in (world, other):
            with pytest.raises(Refused, match=r"versions 3 to 4 .* `rebuild`") as refused:
                await release_table(instance.context, table.id)
            assert refused.value.code is Code.BROKEN_LOG
        await rebuild_table(world.context, table.id)
        assert (await propose(world.context, table.id, body("c"))).record.version == 3

    async def test_nor_where_it_is_quarantined_for_another_reason(self, made, database_url):
        world, table = await lived_on(made, database_url)
        await quarantine(world.context.index, table, "something else")
        with pytest.raises(Refused, match=r"versions 3 to 4 .* `rebuild`"):
            await release_table(world.context, table.id)
        assert (await get_table(world.context, table.id)).state is TableState.QUARANTINED


class TestMarkedFiles:
    """Files that this service wrote, and not as the version that they lie in the log as."""

    async def test_a_late_write_of_another_table(self, made, database_url):
        world = made.instance(database_url)
        old = await world.create(catalog_managed=True)
        await commit(world, old, "a", "b")
        await publish(world, old)
        late = world.log_file(old, 2).read_bytes()
        await forget_table(world.context, old.id)
        shutil.rmtree(world.log_folder(old).parent)
        table = await world.create(name=old.name, catalog_managed=True)
        await commit(world, table, "k")
        await publish(world, table)
        world.log_file(table, 2).write_bytes(late)
        assert (await rebuild(world.context, table.id)).table.latest_version == 1
        with pytest.raises(TableQuarantined, match=r"written for the table .* move it away, then"):
            await propose(world.context, table.id, body("m"))
        world.log_file(table, 2).unlink()
        await release_table(world.context, table.id)
        assert (await propose(world.context, table.id, body("m"))).record.version == 2

    async def test_a_copy_of_an_earlier_version(self, made, database_url):
        world = made.instance(database_url)
        table = await world.create(catalog_managed=True)
        await commit(world, table, "a")
        await publish(world, table)
        world.log_file(table, 2).write_bytes(world.log_file(table, 1).read_bytes())
        world = made.instance(database_url)
        with pytest.raises(TableQuarantined, match=r"copy of version 1.* move it away, then"):
            await propose(world.context, table.id, body("b"))
        world.log_file(table, 2).unlink()
        await release_table(world.context, table.id)
        assert (await propose(world.context, table.id, body("b"))).record.version == 2


async def test_a_look_that_nobody_asked_for_is_made_until_it_is_done(
    made, database_url, monkeypatch
):
    world = made.instance(database_url).limited(check_again_s=0)
    met, *others = [await world.create(catalog_managed=True) for _ in range(4)]
    old = await made.copy(database_url)
    for table in others:
        await commit(world, table, "a")
    lived = made.taken_over(world, old)
    failures = [
        IndexUnavailable("the database does not answer"),
        CommitStateUnknown("no answer to COMMIT"),
        StorageUnavailable("the store is down"),
        CommitStateUnknown("no answer to COMMIT"),
    ]
    index = lived.context.index
    section_of = index.commit_section

    def failing(table_id, **options):
        if failures:
            raise failures.pop()
        return section_of(table_id, **options)

    monkeypatch.setattr(index, "commit_section", failing)
    # Its own section is one of a group.
    await propose(lived.context, met.id, body("b"))
    async with asyncio.timeout(30):
        for table in others:
            while (await get_table(lived.context, table.id)).state is TableState.ACTIVE:
                await asyncio.sleep(0)
    assert failures == []
