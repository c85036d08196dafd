"""VACUUM beside writers that commit past the service: to the table itself, and to tables that may
be clones of it."""

import json
import os
import shutil
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import DeltaTable, convert_to_deltalake
from pyarrow import parquet

from tests.builders.by_x import add, remove
from tests.service.log.foreign.foreign import foreign_commit
from tests.service.vacuum.test_vacuum import foreign_add
from tests.service.vacuum.vacuuming import AT_ONCE, ended, folder_of, land, left, plant, vacuumed
from tidegate_protocol.base.problems import Code
from tidegate_service.core.access.roles import Caller, Grant, Principal, Role
from tidegate_service.core.errors import Refused, StorageUnavailable
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.observe.faults import Side, VacuumStep
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.vacuum import vacuum as vacuuming
from tidegate_service.core.vacuum.begin import begin_vacuum
from tidegate_service.core.vacuum.vacuum import Stage
from tidegate_service.index.reading import reads

pytestmark = pytest.mark.anyio


@pytest.fixture
async def table(world):
    return await world.create()


class Meanwhile:
    """Others' work behind VACUUM START, or behind the first batch of deletes."""

    def __init__(self, work, step=VacuumStep.V2_START):
        self._work, self._step = work, step

    async def reached(self, step, side):
        if (step, side) == (self._step, Side.AFTER) and self._work is not None:
            work, self._work = self._work, None
            await work()


async def beside(world, table, work, step=VacuumStep.V2_START):
    """The last word of a vacuum beside the work."""
    context = replace(world.context, faults=Meanwhile(work, step))
    vacuum = await begin_vacuum(context, table.id, AT_ONCE)
    return [now async for now in vacuum.progress()][-1]


async def written(world, table, *paths):
    """Another writer's commit."""
    head = await get_table(world.context, table.id)
    actions = [{"add": foreign_add(path)} for path in paths]
    foreign_commit(world, table, head.latest_version + 1, *actions)


def cloned(source, path):
    return f"{folder_of(source)}/{path}"


class TestTheTableItself:
    async def test_what_others_bring_back_meanwhile_stays(self, world, table):
        plant(table, "live", "old", "orphan", "spelled")
        await land(world, table, add("live"), add("old"))
        await land(world, table, remove("old"))

        async def restore():
            await written(world, table, "old", f"file:{folder_of(table)}/spelled")

        last = await beside(world, table, restore)
        assert (last.stage, last.deleted, last.version) == (Stage.ENDED, 1, 5)
        assert left(table) == {"live", "old", "spelled"}

    async def test_so_does_what_they_bring_back_between_two_batches(
        self, world, table, monkeypatch
    ):
        monkeypatch.setattr(vacuuming, "DELETED_AT_ONCE", 1)
        monkeypatch.setattr(vacuuming, "DELETERS", 1)
        plant(table, "a", "b")

        async def restore():
            assert left(table) == {"b"}
            await written(world, table, "b")

        last = await beside(world, table, restore, VacuumStep.V3_DELETE)
        assert (last.stage, last.deleted) == (Stage.ENDED, 1)
        assert left(table) == {"b"}

    async def test_a_log_that_others_make_anew_over_old_files_ends_it(self, world, table):
        folder = folder_of(table)
        plant(table, "old.parquet")
        dated = (folder / "old.parquet").stat()
        parquet.write_table(pa.table({"z": [1]}), folder / "old.parquet")
        os.utime(folder / "old.parquet", ns=(dated.st_atime_ns, dated.st_mtime_ns))

        async def convert():
            shutil.rmtree(world.log_folder(table))
            convert_to_deltalake(str(folder))

        last = await beside(world, table, convert)
        assert (last.stage, last.deleted) == (Stage.FAILED, 0)
        assert (await get_table(world.context, table.id)).state is TableState.QUARANTINED
        assert DeltaTable(str(folder)).to_pyarrow_table().to_pydict() == {"z": [1]}

    async def test_another_database_ends_it(self, world, table):
        """A standby that took over may lack what others' logs were read into."""
        plant(table, "orphan")
        vacuum = await begin_vacuum(world.context, table.id, AT_ONCE)
        vacuum.horizon = replace(vacuum.horizon, database="before")
        last = [now async for now in vacuum.progress()][-1]
        assert (last.stage, last.deleted) == (Stage.FAILED, 0)
        assert left(table) == {"orphan"}

    async def test_a_commit_of_others_that_cannot_be_read_ends_it(self, world, table):
        plant(table, "orphan")

        async def write():
            world.log_file(table, 2).write_text("{")

        last = await beside(world, table, write)
        assert (last.stage, last.deleted) == (Stage.FAILED, 0)
        assert left(table) == {"orphan"}


class TestOtherTables:
    @pytest.fixture
    async def other(self, world):
        return await world.create()

    async def test_what_others_have_made_a_clone_keeps_what_it_names(self, world, table, other):
        plant(table, "a", "b")
        await land(world, table, add("a"))
        await written(world, other, cloned(table, "a"))
        await land(world, table, remove("a"), add("b"))
        said = await vacuumed(world, table)
        assert [other.name in warning for now in said for warning in now.warnings] == [True]
        assert said[-1].stage is Stage.ENDED
        assert left(table) == {"a", "b"}

    async def test_a_clone_that_others_write_meanwhile(self, world, table, other):
        plant(table, "a", "b", "orphan")
        await written(world, other, cloned(table, "a"))

        async def write():
            await written(world, other, f"file:{cloned(table, 'b')}")

        last = await beside(world, table, write)
        assert (last.stage, last.deleted) == (Stage.ENDED, 1)
        assert left(table) == {"a", "b"}

    async def test_one_that_they_spoil_meanwhile_ends_it(self, world, table, other):
        plant(table, "a", "b")
        await written(world, other, cloned(table, "a"))

        async def write():
            await written(world, other, cloned(table, "b"))
            with world.log_file(other, 2).open("a") as log:
                log.write("{")

        last = await beside(world, table, write)
        assert (last.stage, last.deleted) == (Stage.FAILED, 0)
        assert f"{other.name} may name files of it" in str(last.error)
        assert left(table) == {"a", "b"}

    async def test_all_pages_of_them_are_read(self, world, table, monkeypatch):
        monkeypatch.setattr(reads, "TABLES_A_PAGE", 2)
        plant(table, *"01234", "orphan")
        for number in range(5):
            await written(world, await world.create(), cloned(table, f"{number}"))
        await world.create(catalog_managed=True)
        last = await ended(world, table)
        assert (last.logs, last.deleted) == (6, 1)
        assert left(table) == set("01234")

    async def test_a_clone_before_the_commits_of_this_service_is_found(self, world, table, other):
        """Others make the folder anew; this service commits there before the next check is due."""
        plant(table, "theirs")
        await land(world, other, add("a"))
        first = world.log_file(other, 0).read_text()
        world.log_file(other, 0).write_text(
            first.replace(other.id, "another") + json.dumps({"add": foreign_add("theirs")})
        )
        error = await refused(world, table)
        assert error.code is Code.TABLE_QUARANTINED
        assert "version 0 in the log is not the one that was committed" in str(error)

    @pytest.mark.parametrize("versions", [1, 3])
    async def test_a_clone_in_the_place_of_another_table(self, world, table, other, versions):
        plant(table, "a")
        await land(world, other, add("theirs"))
        metadata = world.log_file(other, 0).read_text()
        shutil.rmtree(world.log_folder(other))
        world.log_folder(other).mkdir()
        world.log_file(other, 0).write_text(metadata.replace(other.id, "another"))
        for version in range(1, versions):
            foreign_commit(world, other, version, {"add": foreign_add(cloned(table, f"{version}"))})
        error = await refused(world, table)
        assert error.code is Code.TABLE_QUARANTINED
        assert f"{other.name} may name files of it, and its log is not read" in str(error)
        await forget_table(world.context, other.id)
        assert (await ended(world, table)).deleted == 1


class TestLogsThatCannotBeRead:
    @pytest.fixture
    async def other(self, world):
        """A table with a commit of others that cannot be read."""
        other = await world.create()
        world.log_file(other, 1).write_text("{")
        return other

    async def test_a_quarantined_table_is_named(self, world, table, other):
        plant(table, "orphan")
        for _ in range(2):
            error = await refused(world, table)
            assert error.code is Code.TABLE_QUARANTINED
            assert f"the table {other.name} may name files of it" in str(error)
            assert "version 1" in str(error)
            assert "see to that log or forget that table" in str(error)

    async def test_to_those_who_may_know_it(self, world, table, other, caplog):
        plant(table, "orphan")
        grants = (Grant(Role.ADMIN, table.name.lower()),)
        caller = Caller(principal=Principal(name="somebody", grants=grants))
        asking = replace(world, context=world.context.called_by(caller))
        error = await refused(asking, table)
        assert "another table may name files of it" in str(error)
        assert other.name not in str(error)
        assert other.name in {getattr(each, "naming_table", None) for each in caplog.records}

    async def test_a_table_whose_folder_is_gone_may_come_back(self, world, table):
        plant(table, "orphan")
        other = await world.create()
        folder_of(other).rename(folder_of(other).with_name("elsewhere"))
        error = await refused(world, table)
        assert error.code is Code.STORAGE_UNAVAILABLE
        assert f"{other.name} may name files of it" in str(error)
        assert (await get_table(world.context, other.id)).state is TableState.ACTIVE
        folder_of(other).with_name("elsewhere").rename(folder_of(other))
        assert (await ended(world, table)).deleted == 1

    async def test_one_that_is_forgotten_is_nothing_to_this_one(
        self, world, table, other, monkeypatch
    ):
        """Also where that happens while logs are read."""
        plant(table, "orphan")
        pages = world.context.index.other_tables

        async def forgotten_meanwhile(**but):
            async for page in pages(**but):
                await forget_table(world.context, other.id)
                yield page

        monkeypatch.setattr(world.context.index, "other_tables", forgotten_meanwhile)
        assert (await ended(world, table)).deleted == 1

    @pytest.mark.parametrize("is_clone", [False, True])
    async def test_a_store_that_does_not_show_one_is_asked_again(
        self, world, table, faults, monkeypatch, is_clone
    ):
        plant(table, "orphan", "named")
        other = await world.create()
        if is_clone:
            await written(world, other, cloned(table, "named"))
        log_of = faults.log

        def log(location, **who):
            return Away() if location == other.location else log_of(location, **who)

        async def outage():
            monkeypatch.setattr(faults, "log", log)

        if is_clone:
            last = await beside(world, table, outage)
            assert last.stage is Stage.FAILED
            error = last.error
        else:
            await outage()
            error = await refused(world, table)
        assert error.code is Code.STORAGE_UNAVAILABLE
        assert f"the table {other.name} may name files of it" in str(error)
        assert "the store of that table is down" in str(error)
        monkeypatch.undo()
        assert left(table) == {"orphan", "named"}
        assert (await ended(world, table)).deleted == 2 - is_clone

    async def test_nor_may_it_say_where_one_is(self, world, table, faults, monkeypatch):
        """A location that is not allowed any more is named by an error that is no outage."""
        plant(table, "orphan")
        other = await world.create()
        log_of = faults.log

        def log(location, **who):
            if location == other.location:
                raise Refused(f"the location {location} is not allowed", code=Code.INVALID_LOCATION)
            return log_of(location, **who)

        monkeypatch.setattr(faults, "log", log)
        grants = (Grant(Role.ADMIN, table.name.lower()),)
        caller = Caller(principal=Principal(name="somebody", grants=grants))
        asking = replace(world, context=world.context.called_by(caller))
        error = await refused(asking, table)
        assert error.code is Code.INVALID_LOCATION
        assert other.location not in str(error)
        assert f"{other.location} is not allowed" in str(await refused(world, table))


class Away:
    """A log that the store does not show."""

    async def read(self, version):
        raise StorageUnavailable("the store of that table is down")

    def entries(self, *, behind=None):
        raise StorageUnavailable("the store of that table is down")

    async def read_dated(self, version):
        raise StorageUnavailable("the store of that table is down")

    async def holds(self, version):
        raise StorageUnavailable("the store of that table is down")

    async def holds_anything(self):
        raise StorageUnavailable("the store of that table is down")


async def refused(world, table):
    """Why a vacuum has deleted nothing, and is not in the log."""
    head = await get_table(world.context, table.id)
    before = left(table)
    last = (await vacuumed(world, table))[-1]
    assert (last.stage, last.listed, last.version) == (Stage.FAILED, 0, None)
    assert left(table) == before
    assert (await get_table(world.context, table.id)).latest_version == head.latest_version
    return last.error
