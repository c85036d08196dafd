"""Compacted files: what they are written of, and what they leave alone."""

import asyncio
import json

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.upkeep.aged import LogOf
from tests.service.upkeep.checkpointed import checkpointed
from tests.service.upkeep.compacting import commit, large, written
from tests.service.upkeep.conftest import Compacting
from tests.service.world import World
from tidegate_protocol.log.actions import Txn
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.limits import UpkeepLimits
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.observe.faults import CompactionStep, Side
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.upkeep.upkeep import Done, UpkeepRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.upkeep.compaction import Compactions
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

BEFORE_ALL = UpkeepRecord(version=-1, done_ms=None, failures=0, trouble=None)
KINDS = pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])


def lines_of(world: World, table: TableRecord, first: int, last: int) -> list[dict[str, object]]:
    name = f"{first:020d}.{last:020d}.compacted.json"
    content = (world.log_folder(table) / name).read_text()
    return [json.loads(line) for line in content.splitlines()]


async def trouble(upkeep: PostgresUpkeep, table: TableRecord) -> str | None:
    return (await upkeep.standing(table.id))[UpkeepKind.COMPACTION].trouble


@KINDS
async def test_what_lies_behind_the_checkpoint_is_written_as_one(
    world: World, compacting: Compacting, catalog_managed: bool
):
    table = await large(world, catalog_managed=catalog_managed)
    caretaker = compacting()
    await commit(world, table, 1)
    removal = proposal(remove("first-0"), read_version=2, operation="DELETE")
    await propose(world.context, table.id, removal)
    await Publisher(world.context.index, world.context.storage).round()
    await caretaker.round()
    assert written(table) == []
    await propose(world.context, table.id, proposal(add("new"), Txn(app_id="app", version=7)))
    await commit(world, table, 1)
    await caretaker.round()
    assert written(table) == [(2, 5)]
    lines = lines_of(world, table, 2, 5)
    assert [next(iter(line)) for line in lines].count("add") == 3
    assert {"remove", "txn", "add"} == {next(iter(line)) for line in lines}
    assert (await verify_table(world.context, table.id)).differences == ()
    assert await caretaker.round() == 0


async def test_the_next_one_begins_where_it_ends(world: World, compacting: Compacting):
    table = await large(world)
    caretaker = compacting()
    for count in (3, 2, 1, 3):
        await commit(world, table, count)
        await caretaker.round()
    assert written(table) == [(2, 4), (5, 7), (8, 10)]


async def test_a_later_checkpoint_stands_for_what_is_before_it(
    world: World, compacting: Compacting
):
    table = await large(world)
    await commit(world, table, 2)
    await checkpointed(world, table)
    await commit(world, table, 2)
    caretaker = compacting()
    await caretaker.round()
    assert written(table) == []
    await commit(world, table, 1)
    await caretaker.round()
    assert written(table) == [(4, 6)]


async def test_the_pointer_of_others_is_a_hint(world: World, compacting: Compacting):
    """One that cannot be read, or points to what is not there, keeps no reader from the table."""
    for content in (b"", b"{", b'{"version":99,"size":1}', b'{"version":-5,"size":1}'):
        table = await large(world)
        await compacting(2).round()
        (world.log_folder(table) / "_last_checkpoint").write_bytes(content)
        await commit(world, table, 3)
        await compacting(2).round()
        assert written(table) == [(2, 4)]


async def test_none_where_a_checkpoint_is_no_longer(world: World, compacting: Compacting):
    """As many commits as the table has files, or as many actions."""
    few = await world.create()
    await commit(world, few, 4)
    as_many = await large(world)
    await propose(
        world.context, as_many.id, proposal(*(add(f"second-{number}") for number in range(98)))
    )
    for number in range(0, 98, 49):
        gone = [remove(f"second-{each}") for each in range(number, number + 49)]
        now = await get_table(world.context, as_many.id)
        again = proposal(*gone, read_version=now.latest_version, operation="DELETE")
        await propose(world.context, as_many.id, again)
    await compacting().round()
    assert (written(few), written(as_many)) == ([], [])


async def test_only_what_is_published(world: World, compacting: Compacting):
    table = await large(world, catalog_managed=True)
    await commit(world, table, 3)
    for number in range(3):
        await propose(world.context, table.id, proposal(add(f"waiting-{number}")))
    await compacting().round()
    assert written(table) == [(2, 4)]


class TestBounds:
    async def test_commits_in_a_file(self, world: World, compacting: Compacting):
        table = await large(world)
        await commit(world, table, 11)
        caretaker = compacting(limits=UpkeepLimits(compacted_commits=4))
        while await caretaker.round():
            pass
        assert written(table) == [(2, 5), (6, 9), (10, 12)]

    async def test_a_commit_that_is_too_large_for_any(self, world: World, compacting: Compacting):
        table = await large(world)
        await commit(world, table, 3)
        files = [add(f"more-{number}") for number in range(20)]
        await propose(world.context, table.id, proposal(*files))
        await commit(world, table, 2)
        most = world.log_file(table, 5).stat().st_size - 1
        caretaker = compacting(limits=UpkeepLimits(compacted_bytes=most))
        while await caretaker.round():
            pass
        assert written(table) == [(2, 4)]
        await commit(world, table, 1)
        await caretaker.round()
        assert written(table) == [(2, 4), (6, 8)]

    async def test_an_action_that_nobody_knows(self, world: World, compacting: Compacting):
        table = await large(world)
        await commit(world, table, 3)
        log = LogOf(world, table)
        log.path(5).write_bytes(b'{"novel":{}}\n' + json.dumps({"add": _add("theirs")}).encode())
        await commit(world, table, 3)
        caretaker = compacting()
        while await caretaker.round():
            pass
        assert written(table) == [(2, 4), (6, 8)]


def _add(path: str) -> dict[str, object]:
    return {
        "path": path,
        "partitionValues": {"x": "1"},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
    }


class Killed(BaseException):
    """The process ends here."""


class KilledAt:
    def __init__(self, side: Side) -> None:
        self._side = side

    async def reached(self, step, side) -> None:
        if (step, side) == (CompactionStep.COMPACTED_PUT, self._side):
            raise Killed


class TestCutOff:
    @pytest.mark.parametrize("side", list(Side))
    async def test_another_goes_on(
        self, world: World, engine: AsyncEngine, compacting: Compacting, side: Side
    ):
        table = await large(world)
        await commit(world, table, 3)
        with pytest.raises(Killed):
            await compacting(faults=KilledAt(side)).round()
        assert written(table) == ([] if side is Side.BEFORE else [(2, 4)])
        # Until its claim has run out, the work is nobody else's.
        assert await compacting().round() == 0
        async with engine.begin() as connection:
            await connection.execute(
                text("UPDATE table_upkeep SET claimed_until = claimed_until - interval '1 day'")
            )
        assert await compacting().round() == 1
        assert written(table) == [(2, 4)]
        assert (await verify_table(world.context, table.id)).differences == ()


class TestOthers:
    async def test_two_that_have_lost_their_claims(self, world: World, index: Index):
        table = await large(world)
        await commit(world, table, 3)
        now = await get_table(world.context, table.id)
        first, second = (
            Compactions(index, world.context.storage, commits=3).run(now, BEFORE_ALL)
            for _ in range(2)
        )
        assert set(await asyncio.gather(first, second)) == {Done(version=4, due_version=7)}
        assert written(table) == [(2, 4)]
        assert len(lines_of(world, table, 2, 4)) == 3

    async def test_what_is_there_is_left_as_it_is(self, world: World, compacting: Compacting):
        table = await large(world)
        await commit(world, table, 3)
        theirs = world.log_folder(table) / f"{2:020d}.{4:020d}.compacted.json"
        theirs.write_text("of another writer")
        await compacting().round()
        assert theirs.read_text() == "of another writer"
        await commit(world, table, 3)
        await compacting().round()
        assert written(table) == [(2, 4), (5, 7)]

    @pytest.mark.parametrize("version", [2, 4])
    @pytest.mark.parametrize("there", [None, b'{"commitInfo":{}}'])
    async def test_a_log_that_is_not_the_tables_is_left_alone(
        self, world: World, upkeep: PostgresUpkeep, compacting: Compacting, there, version: int
    ):
        table = await large(world)
        await commit(world, table, 3)
        file = world.log_file(table, version)
        file.unlink()
        if there is not None:
            file.write_bytes(there)
        await compacting().round()
        assert written(table) == []
        expected = f"version {version} in the log is not what the index has"
        assert await trouble(upkeep, table) == expected

    async def test_an_index_that_is_made_anew_meanwhile(
        self, world: World, upkeep: PostgresUpkeep, compacting: Compacting, monkeypatch
    ):
        table = await large(world)
        await commit(world, table, 3)
        read = Compactions._read

        async def read_and_rebuilt(self, *args):
            found = await read(self, *args)
            await rebuild_table(world.context, table.id)
            return found

        monkeypatch.setattr(Compactions, "_read", read_and_rebuilt)
        await compacting().round()
        assert written(table) == []
        monkeypatch.undo()
        await compacting().round()
        assert written(table) == [(2, 4)]
