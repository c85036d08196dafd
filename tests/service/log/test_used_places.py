"""Tables that are made where a log lies, or where another table was before."""

import shutil
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.catalog_managed.guarded import rows
from tests.service.faults import Fault
from tests.service.log.log_contract import FOREIGN_LOG_FILES
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.file_names import commit_name
from tidegate_service.core.catalog_managed.publish import publish_batch, publish_table
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import (
    CommitStateUnknown,
    Refused,
    TableExists,
    TableQuarantined,
)
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
ROWS = pa.table({"x": pa.array([1], pa.int32()), "v": ["theirs"]})
NAME = "main.test.orders"


@pytest.fixture
def place(tmp_path):
    """Where the warehouse puts the table of that name."""
    return tmp_path / "main" / "test" / "orders"


def files_of(place):
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


class TestWhereALogLies:
    @BOTH
    @pytest.mark.parametrize("name", FOREIGN_LOG_FILES)
    async def test_any_part_of_one_refuses_a_creation(
        self, world, database_url, place, name, catalog_managed
    ):
        file = place / "_delta_log" / name
        file.parent.mkdir(parents=True)
        file.write_bytes(b"theirs")
        with pytest.raises(TableExists, match="already holds a Delta log") as refused:
            await world.create(name=NAME, catalog_managed=catalog_managed)
        assert "register" in refused.value.hint
        assert files_of(place) == [f"_delta_log/{name}"]
        assert rows(database_url, "SELECT count(*) FROM tables") == [(0,)]

    async def test_one_that_was_cleaned_up_is_registered_instead(self, world, place):
        options = {"delta.logRetentionDuration": "interval 0 seconds"}
        write_deltalake(str(place), ROWS, partition_by=["x"], configuration=options)
        for _ in range(5):
            write_deltalake(str(place), ROWS, mode="append")
        theirs = DeltaTable(str(place))
        theirs.create_checkpoint()
        theirs.cleanup_metadata()
        assert not (place / "_delta_log" / commit_name(0)).exists()
        before = files_of(place)

        with pytest.raises(TableExists):
            await world.create(name=NAME)

        assert files_of(place) == before
        table, _ = await register_table(
            world.context, RegisterTable(name=NAME, location=place.as_uri())
        )
        await propose(world.context, table.id, proposal(add("x=1/mine")))
        assert any(uri.endswith("x=1/mine") for uri in DeltaTable(str(place)).file_uris())

    @pytest.mark.parametrize(
        "name", [commit_name(5), "_last_checkpoint", "00000000000000000010.checkpoint.parquet"]
    )
    async def test_what_is_written_between_the_look_and_version_0_refuses_it(
        self, world, faults, database_url, place, name
    ):
        def write(version: int) -> None:
            folder = place / "_delta_log"
            folder.mkdir(parents=True)
            (folder / name).write_bytes(b"theirs")

        faults.before = write
        with pytest.raises(TableExists, match="already holds a Delta log"):
            await world.create(name=NAME)
        assert rows(database_url, "SELECT count(*) FROM tables") == [(0,)]
        # The creation that was refused can be made once the place is free.
        faults.before = lambda _: None
        (place / "_delta_log" / name).unlink()
        assert (await world.create(name=NAME)).latest_version == 0

    async def test_a_forgotten_table_is_not_a_creation_cut_short(self, world):
        table = await world.create(name=NAME)
        await forget_table(world.context, table.id)
        with pytest.raises(TableExists) as refused:
            await world.create(name=NAME)
        assert "register" in refused.value.hint
        await world.lose(await register(world, table))
        assert (await world.create(name=NAME)).metadata.id == table.metadata.id


async def register(world, table):
    return (
        await register_table(world.context, RegisterTable(name=table.name, location=table.location))
    )[0]


async def made_again(world, faults, *, old_head):
    """A table at the place of one that was forgotten at a head, while the write of its next version
    was on its way."""
    old = await world.create()
    for number in range(old_head):
        await propose(world.context, old.id, proposal(add(f"x=1/old{number}")))
    faults.faults.extend([Fault.HELD, Fault.REFUSED] * 5)
    with pytest.raises(CommitStateUnknown):
        await propose(world.context, old.id, proposal(add("x=1/late"), transaction_id="late"))
    faults.faults.clear()
    await forget_table(world.context, old.id)
    shutil.rmtree(world.log_folder(old).parent)
    return await world.create(name=old.name)


async def settled(world, table, late: int, next_version: int):
    """The file is moved away, and commits go on."""
    for _ in range(2):
        with pytest.raises(TableQuarantined):
            await propose(world.context, table.id, proposal(add("x=1/no")))
    with pytest.raises(Refused, match="late write of a table that was at this place before"):
        await release_table(world.context, table.id)
    world.log_file(table, late).unlink()
    await release_table(world.context, table.id)
    landed = await propose(world.context, table.id, proposal(add("x=1/yes")))
    assert landed.record.version == next_version
    assert DeltaTable(table.location).version() == next_version
    assert (await verify_table(world.context, table.id)).differences == ()


class TestLateWrites:
    async def test_one_behind_the_end_is_found_by_the_next_check(self, world, faults):
        table = await made_again(world, faults, old_head=4)
        await faults.deliver()
        assert world.log_file(table, 5).exists()
        world.checked_long_ago()
        with pytest.raises(TableQuarantined, match="late write of a table"):
            await propose(world.context, table.id, proposal(add("x=1/new")))
        await settled(world, table, 5, 1)

    async def test_what_others_wrote_up_to_there_is_none(self, world, faults):
        table = await made_again(world, faults, old_head=2)
        for _ in range(3):
            write_deltalake(table.location, ROWS, mode="append")
        world.checked_long_ago()
        landed = await propose(world.context, table.id, proposal(add("x=1/new")))
        assert landed.record.version == 4

    async def test_one_behind_the_end_is_never_taken_in(self, world, faults):
        table = await made_again(world, faults, old_head=2)
        await faults.deliver()
        for number in range(2):
            await propose(world.context, table.id, proposal(add(f"x=1/{number}")))
        with pytest.raises(TableQuarantined, match="late write of a table"):
            await propose(world.context, table.id, proposal(add("x=1/2")))
        head = await get_table(world.context, table.id)
        assert (head.state, head.latest_version) == (TableState.QUARANTINED, 2)
        assert await world.context.index.transaction(table.id, "late") is None
        await settled(world, table, 3, 3)

    async def test_one_of_the_next_version_is_never_taken_in(self, world, faults):
        table = await made_again(world, faults, old_head=0)
        await faults.deliver()
        with pytest.raises(TableQuarantined, match="late write of a table"):
            await propose(world.context, table.id, proposal(add("x=1/new")))
        await settled(world, table, 1, 1)

    async def test_nobody_registers_a_log_that_one_is_in(self, world, faults):
        table = await made_again(world, faults, old_head=0)
        await faults.deliver()
        await world.lose(table)
        with pytest.raises(Refused, match="late write of a table") as refused:
            await register(world, table)
        assert refused.value.code is Code.BROKEN_LOG

    async def test_one_that_came_before_is_found_by_the_creation(self, world, faults):
        old = await world.create()
        await propose(world.context, old.id, proposal(add("x=1/old")))
        faults.faults.extend([Fault.HELD, Fault.REFUSED] * 5)
        with pytest.raises(CommitStateUnknown):
            await propose(world.context, old.id, proposal(add("x=1/late")))
        faults.faults.clear()
        await forget_table(world.context, old.id)
        content = world.log_file(old, 1).read_bytes()
        shutil.rmtree(world.log_folder(old).parent)

        def arrive(version: int) -> None:
            world.log_folder(old).mkdir(parents=True)
            world.log_file(old, 2).write_bytes(content)

        faults.before = arrive
        with pytest.raises(TableExists):
            await world.create(name=old.name)

    async def test_the_same_table_goes_on_with_its_own(self, world, faults):
        """Registered again, the late write is one of its commits."""
        old = await world.create()
        faults.faults.extend([Fault.HELD, Fault.REFUSED] * 5)
        body = proposal(add("x=1/late"))
        with pytest.raises(CommitStateUnknown):
            await propose(world.context, old.id, body)
        faults.faults.clear()
        await forget_table(world.context, old.id)
        again = await register(world, old)
        await faults.deliver()
        landed = await propose(world.context, again.id, body)
        assert (landed.record.version, landed.replayed) == (1, True)


class Stopped:
    """A publisher that stops before its first write; the clock has gone on when it continues."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile
        self._now_s = 0.0
        self.stops = 0

    async def reached(self, step: Step, side: Side) -> None:
        if (step, side) == (Step.M8_PUBLISH, Side.BEFORE) and not self.stops:
            self.stops += 1
            await self._meanwhile()
            self._now_s += 30.0

    def monotonic_s(self) -> float:
        return self._now_s


@BOTH
async def test_a_stopped_publisher_writes_nothing_into_another_tables_log(world, catalog_managed):
    old = await world.create(catalog_managed=True)
    storage, index, own = world.context.storage, world.context.index, OwnLogs()
    for number in range(4):
        await propose(world.context, old.id, proposal(add(f"x=1/old{number}")))
        if number == 1:
            await publish_table(index, storage, await get_table(world.context, old.id), own=own)

    async def meanwhile() -> None:
        await forget_table(world.context, old.id)
        shutil.rmtree(world.log_folder(old).parent)
        again = await world.create(name=old.name, catalog_managed=catalog_managed)
        if catalog_managed:
            await publish_table(index, storage, again)

    stopped = Stopped(meanwhile)
    head, clock = await get_table(world.context, old.id), stopped.monotonic_s
    batch = await publish_batch(index, storage, head, own=own, faults=stopped, monotonic_s=clock)
    assert (stopped.stops, batch.count, batch.is_over) == (1, 0, True)
    assert files_of(world.log_folder(old)) == [commit_name(0)]
    again = await get_table(world.context, old.name)
    landed = await propose(world.context, again.id, proposal(add("x=1/new")))
    assert landed.record.version == 1


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="no clock counts it here")
async def test_a_publisher_counts_the_time_that_its_machine_slept(world, monkeypatch):
    old = await world.create(catalog_managed=True)
    storage, index, own = world.context.storage, world.context.index, OwnLogs()
    assert await publish_table(index, storage, old, own=own) == 1
    await propose(world.context, old.id, proposal(add("x=1/old")))

    class Asleep(Stopped):
        async def reached(self, step: Step, side: Side) -> None:
            await super().reached(step, side)
            clocks = {time.CLOCK_BOOTTIME: self.monotonic_s()}
            monkeypatch.setattr(time, "clock_gettime", clocks.__getitem__)

    async def meanwhile() -> None:
        await forget_table(world.context, old.id)
        shutil.rmtree(world.log_folder(old).parent)

    asleep = Asleep(meanwhile)
    head = await get_table(world.context, old.id)
    monkeypatch.setattr(time, "clock_gettime", {time.CLOCK_BOOTTIME: 0.0}.__getitem__)
    batch = await publish_batch(index, storage, head, own=own, faults=asleep)
    assert (asleep.stops, batch.count, batch.is_over) == (1, 0, True)
    assert not world.log_folder(old).exists()


async def commits_until_quarantined(world, table) -> int:
    for acked in range(5):
        try:
            await propose(world.context, table.id, proposal(add(f"x=1/new{acked}")))
        except TableQuarantined:
            return acked
        head = await get_table(world.context, table.id)
        await publish_table(world.context.index, world.context.storage, head)
    raise AssertionError("commits go on over versions of another table")


@BOTH
async def test_what_a_publisher_wrote_all_the_same_is_not_taken_in(world, catalog_managed):
    """It was stopped behind its last look at the clock."""
    old = await world.create(catalog_managed=True)
    storage, index = world.context.storage, world.context.index
    for number in range(3):
        await propose(world.context, old.id, proposal(add(f"x=1/old{number}")))
    head = await get_table(world.context, old.id)
    waiting = await index.unpublished_versions(old.id, limit=10)
    await forget_table(world.context, old.id)
    shutil.rmtree(world.log_folder(old).parent)
    again = await world.create(name=old.name, catalog_managed=catalog_managed)
    await publish_table(index, storage, again)
    log = storage.log(head.location)
    for version, content in waiting.versions[1:]:
        await log.put_if_absent(version, content)
    acked = await commits_until_quarantined(world, again)
    found = await get_table(world.context, again.id)
    assert (found.state, found.latest_version) == (TableState.QUARANTINED, acked)
    assert acked == (1 if catalog_managed else 0)
    for version in (1, 2, 3):
        world.log_file(again, version).unlink()
    await release_table(world.context, again.id)
    await propose(world.context, again.id, proposal(add("x=1/more")))
    head = await get_table(world.context, again.id)
    await publish_table(index, storage, head)
    names = [commit_name(version) for version in range(acked + 2)]
    assert files_of(world.log_folder(again)) == names
    assert (await verify_table(world.context, again.id)).differences == ()
