"""What is kept of a forgotten table, and comes back when its place is registered again."""

import json
import shutil
from dataclasses import replace

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.catalog_managed.guarded import rows
from tidegate_protocol.base.problems import Code
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.ports.records import Aborted
from tidegate_service.core.tables.delete_forgotten import delete_forgotten, list_forgotten
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits

pytestmark = pytest.mark.anyio

AT_ONCE = {"delta.logRetentionDuration": "interval 0 seconds"}
ROWS = pa.table({"x": pa.array([1], pa.int32()), "v": ["theirs"]})


async def register(world, table, *, catalog_managed=False):
    again, created = await register_table(
        world.context,
        RegisterTable(name=table.name, location=table.location, catalog_managed=catalog_managed),
    )
    assert created
    return again


async def refused_code(world, table, body):
    with pytest.raises(Refused) as refused:
        await propose(world.context, table.id, body)
    return refused.value.code


async def kept(world):
    return (await list_forgotten(world.context, cursor=None, limit=10)).tables


def cleaned_up(table):
    theirs = DeltaTable(table.location)
    theirs.create_checkpoint()
    theirs.cleanup_metadata()


class TestPlain:
    @pytest.mark.parametrize("when", ["before", "after"])
    async def test_ids_that_the_log_forgot_are_answered_as_before(self, world, when):
        table = await world.create(properties=AT_ONCE)
        body = proposal(add("x=1/once"), transaction_id="landed")
        first = await propose(world.context, table.id, body)
        await abort(world.context, table.id, "aborted")
        await propose(world.context, table.id, proposal(add("x=1/z")))
        if when == "before":
            cleaned_up(table)
        await forget_table(world.context, table.id)
        if when == "after":
            cleaned_up(table)
        assert not world.log_file(table, first.record.version).exists()

        again = await register(world, table)

        replay = await propose(world.context, again.id, body)
        assert (replay.replayed, replay.record) == (True, first.record)
        other = proposal(add("x=1/other"), transaction_id="landed")
        assert await refused_code(world, again, other) is Code.TRANSACTION_ID_REUSED
        late = proposal(add("x=1/late"), transaction_id="aborted")
        assert await refused_code(world, again, late) is Code.TRANSACTION_ABORTED
        assert (await get_table(world.context, again.id)).latest_version == 3
        assert await kept(world) == ()

    async def test_they_are_kept_however_often_it_is_forgotten(self, world):
        table = await world.create(properties=AT_ONCE)
        body = proposal(add("x=1/once"))
        first = await propose(world.context, table.id, body)
        await propose(world.context, table.id, proposal(add("x=1/z")))
        cleaned_up(table)
        for _ in range(3):
            await forget_table(world.context, table.id)
            table = await register(world, table)
        assert (await propose(world.context, table.id, body)).record == first.record

    async def test_an_unfenced_tombstone_is_fenced_when_it_is_asked_after(
        self, world, database_url
    ):
        table = await world.create()
        async with world.context.index.commit_section(table.id) as section:
            await section.abort("open")
            await section.save()
        with psycopg.connect(database_url) as connection:
            # As an earlier release left it.
            connection.execute("UPDATE aborted_transactions SET unfenced_after = 0")
        await forget_table(world.context, table.id)
        again = await register(world, table)
        found = await world.context.index.transaction(again.id, "open")
        assert found == Aborted("open", unfenced_after=0)
        body = proposal(add("x=1/a"), transaction_id="open")
        assert await refused_code(world, again, body) is Code.TRANSACTION_ABORTED
        assert world.actions_of(again, 1)[0]["commitInfo"]["operation"] == "ABORT TRANSACTION"

    async def test_a_foreign_commit_that_claims_a_kept_id_has_it_not(self, world):
        table = await world.create(properties=AT_ONCE)
        body = proposal(add("x=1/once"), transaction_id="landed")
        first = await propose(world.context, table.id, body)
        async with world.context.index.commit_section(table.id) as section:
            await section.abort("aborted")
            await section.save()
        await propose(world.context, table.id, proposal(add("x=1/z")))
        cleaned_up(table)
        await forget_table(world.context, table.id)
        for version, claimed in ((3, "landed"), (4, "aborted")):
            info = {"commitInfo": {"txnId": claimed, "operation": "WRITE"}}
            world.log_file(table, version).write_text(json.dumps(info) + "\n")
        again = await register(world, table)
        assert again.latest_version == 4
        assert (await propose(world.context, again.id, body)).record == first.record
        late = proposal(add("x=1/late"), transaction_id="aborted")
        assert await refused_code(world, again, late) is Code.TRANSACTION_ABORTED

    async def test_what_landed_in_versions_that_were_lost_may_land_again(self, world):
        table = await world.create()
        bodies = [proposal(add(f"x=1/{number}")) for number in range(3)]
        for body in bodies:
            await propose(world.context, table.id, body)
        async with world.context.index.commit_section(table.id) as section:
            await section.abort("aborted")
            await section.save()
        await forget_table(world.context, table.id)
        world.log_file(table, 3).unlink()
        again = await register(world, table)
        tombstone = await world.context.index.transaction(again.id, "aborted")
        assert tombstone == Aborted("aborted", unfenced_after=2)
        landed = [await propose(world.context, again.id, body) for body in bodies]
        assert [one.record.version for one in landed] == [1, 2, 3]
        assert [one.replayed for one in landed] == [True, True, False]

    async def test_another_table_at_the_place_does_not_get_them(self, world, tmp_path):
        table = await world.create()
        body = proposal(add("x=1/once"), transaction_id="landed")
        first = await propose(world.context, table.id, body)
        await abort(world.context, table.id, "aborted")
        await forget_table(world.context, table.id)
        place = world.log_folder(table).parent
        place.rename(tmp_path / "aside")
        write_deltalake(table.location, ROWS, partition_by=["x"])

        other = await register(world, table)
        late = proposal(add("x=1/late"), transaction_id="aborted")
        assert (await propose(world.context, other.id, late)).record.version == 1
        assert (await propose(world.context, other.id, body)).record.version == 2

        await forget_table(world.context, other.id)
        assert {one.id for one in await kept(world)} == {table.id, other.id}
        shutil.rmtree(place)
        (tmp_path / "aside").rename(place)
        back = await register(world, table)
        assert (await propose(world.context, back.id, body)).record == first.record
        assert await refused_code(world, back, late) is Code.TRANSACTION_ABORTED
        assert {one.id for one in await kept(world)} == {other.id}

    async def test_many_ids_are_kept_and_given_back_in_slices(self, world, database_url, engine):
        few = IndexLimits(forgotten_commits=3, forgotten_ids=2)
        sliced = replace(world.context, index=PostgresIndex(engine, limits=few))
        world = replace(world, context=sliced)
        table = await world.create()
        for number in range(7):
            await propose(world.context, table.id, proposal(add(f"x=1/{number}")))
        before = rows(database_url, "SELECT transaction_id, version FROM commits ORDER BY version")
        await forget_table(world.context, table.id)
        query = "SELECT transaction_id, version FROM forgotten_commits ORDER BY version"
        assert rows(database_url, query) == before
        await register(world, table)
        assert rows(database_url, query) == []


class TestCatalogManaged:
    async def test_it_is_adopted_again_with_its_ids(self, world):
        table = await world.create(catalog_managed=True)
        body = proposal(add("x=1/once"), transaction_id="landed")
        first = await propose(world.context, table.id, body)
        await abort(world.context, table.id, "aborted")
        await forget_table(world.context, table.id)
        with pytest.raises(Refused) as refused:
            await register(world, table)
        assert refused.value.code is Code.UNSUPPORTED_FEATURE
        assert "catalog_managed" in refused.value.hint

        again = await register(world, table, catalog_managed=True)

        assert (again.catalog_managed, again.latest_version, again.published_version) == (
            True,
            1,
            1,
        )
        assert (await propose(world.context, again.id, body)).record == first.record
        late = proposal(add("x=1/late"), transaction_id="aborted")
        assert await refused_code(world, again, late) is Code.TRANSACTION_ABORTED
        landed = await propose(world.context, again.id, proposal(add("x=1/more")))
        assert (landed.record.version, landed.published) == (2, False)
        head = await get_table(world.context, again.id)
        assert await publish_table(world.context.index, world.context.storage, head) == 1
        assert len(world.actions_of(again, 2)) == 2

    async def test_what_was_never_one_here_is_not(self, world, tmp_path):
        write_deltalake(str(tmp_path / "theirs"), ROWS, partition_by=["x"])
        with pytest.raises(Refused, match="no catalog-managed table is known") as refused:
            await register_table(
                world.context,
                RegisterTable(
                    name="main.test.theirs",
                    location=(tmp_path / "theirs").as_uri(),
                    catalog_managed=True,
                ),
            )
        assert refused.value.code is Code.UNSUPPORTED_FEATURE

    async def test_another_table_at_its_place_is_not(self, world):
        table = await world.create(catalog_managed=True)
        await forget_table(world.context, table.id)
        shutil.rmtree(world.log_folder(table).parent)
        write_deltalake(table.location, ROWS, partition_by=["x"])
        with pytest.raises(Refused, match="is not the catalog-managed table"):
            await register(world, table, catalog_managed=True)
        assert not (await register(world, table)).catalog_managed

    @pytest.mark.parametrize("change", ["longer", "shorter", "head", "middle"])
    async def test_its_log_has_to_be_what_was_ratified(self, world, change):
        table = await world.create(catalog_managed=True)
        for name in ("a", "b"):
            await propose(world.context, table.id, proposal(add(f"x=1/{name}")))
        await forget_table(world.context, table.id)
        changed = {"longer": 3, "shorter": 2, "head": 2, "middle": 1}[change]
        file = world.log_file(table, changed)
        before = world.log_file(table, 2).read_bytes() if change == "longer" else file.read_bytes()
        if change == "shorter":
            file.unlink()
        else:
            file.write_bytes(before.replace(b"x=1/", b"x=1/other-"))

        with pytest.raises(Refused) as refused:
            await register(world, table, catalog_managed=True)
        assert refused.value.code is Code.BROKEN_LOG
        assert [one.id for one in await kept(world)] == [table.id]

        if change == "longer":
            file.unlink()
        else:
            file.write_bytes(before)
        assert (await register(world, table, catalog_managed=True)).latest_version == 2


class TestDeletedForGood:
    async def test_nothing_of_it_comes_back(self, world, database_url):
        table = await world.create(properties=AT_ONCE)
        body = proposal(add("x=1/once"))
        await propose(world.context, table.id, body)
        await abort(world.context, table.id, "aborted")
        cleaned_up(table)
        await forget_table(world.context, table.id)
        await delete_forgotten(world.context, table.id)
        assert await kept(world) == ()
        for name in ("forgotten_commits", "forgotten_aborts"):
            assert rows(database_url, f"SELECT count(*) FROM {name}") == [(0,)]
        trail = rows(database_url, "SELECT deed, version FROM audit ORDER BY id DESC LIMIT 1")
        assert trail == [("delete-forgotten", 2)]
        again = await register(world, table)
        assert (await propose(world.context, again.id, body)).replayed is False
        with pytest.raises(NotFound):
            await delete_forgotten(world.context, table.id)

    async def test_a_catalog_managed_table_cannot_be_adopted_any_more(self, world):
        table = await world.create(catalog_managed=True)
        await forget_table(world.context, table.id)
        await delete_forgotten(world.context, table.id)
        with pytest.raises(Refused, match="no catalog-managed table is known"):
            await register(world, table, catalog_managed=True)

    @pytest.mark.parametrize("ref", ["nonsense", "6f0a3f5e-3d0e-4f4a-9a53-0c1f7e1f5a11"])
    async def test_what_is_not_kept_is_not_found(self, world, ref):
        with pytest.raises(NotFound):
            await delete_forgotten(world.context, ref)

    async def test_a_table_that_is_there_is_none_that_was_forgotten(self, world):
        table = await world.create()
        with pytest.raises(NotFound):
            await delete_forgotten(world.context, table.id)
        assert await get_table(world.context, table.id) == table


async def test_pages_of_forgotten_tables(world):
    ids = []
    for _ in range(3):
        table = await world.create()
        await forget_table(world.context, table.id)
        ids.append(table.id)
    first = await list_forgotten(world.context, cursor=None, limit=2)
    rest = await list_forgotten(world.context, cursor=first.next_cursor, limit=2)
    assert [one.id for one in (*first.tables, *rest.tables)] == sorted(ids)
    assert rest.next_cursor is None


async def test_the_release_before_forgets_on_this_schema(world, database_url):
    """It knows nothing of what is kept, and leaves it alone."""
    old = await world.create()
    await forget_table(world.context, old.id)
    table = await world.create()
    with psycopg.connect(database_url) as connection:
        for name in ("files", "metadata_versions", "commits"):
            connection.execute(f"DELETE FROM {name} WHERE table_id = %s", [table.id])
        connection.execute("DELETE FROM tables WHERE id = %s", [table.id])
    assert [one.id for one in await kept(world)] == [old.id]
