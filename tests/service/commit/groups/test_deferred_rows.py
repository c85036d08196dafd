"""Rows of a plain table's group, which are not written before its files are put."""

from dataclasses import replace
from functools import partial

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.committing import paths, ratified
from tests.service.commit.groups.test_buffered_files import in_the_log, watching
from tests.service.commit.groups.test_group_files import appended, foreign
from tests.service.faults import FaultyLog
from tidegate_service.core.commit.batches.buffered_puts import BufferedPuts
from tidegate_service.core.ports.index import FilesFirst
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.writing import writes

pytestmark = pytest.mark.anyio


@pytest.fixture
def watched(world):
    return partial(watching, world)


async def test_rows_are_written_once_their_files_are_put(watched, monkeypatch):
    _, one, table = await watched()
    real, order = writes.write, []

    async def write(driver, staged):
        order.append(("rows", len(staged)))
        return await real(driver, staged)

    put_in_order = FaultyLog.put_in_order

    async def put(self, commits, *, within_s):
        order.append(("files", len(commits)))
        return await put_in_order(self, commits, within_s=within_s)

    monkeypatch.setattr(writes, "write", write)
    monkeypatch.setattr(FaultyLog, "put_in_order", put)
    told = await one.at_once(table, *(proposal(add(f"f{n}")) for n in range(3)))
    assert [outcome.record.version for outcome in told] == [2, 3, 4]
    assert order == [("files", 3), ("rows", 3)]


async def test_of_files_that_cannot_be_put_no_row_is_written(world):
    faults, one, table = await watching(world.limited(buffered_files=2))
    faults.deed = lambda: world.log_file(table, 3).write_bytes(foreign(appended("theirs")))
    sent = [proposal(add(f"f{n}"), read_version=1) for n in range(7)]
    told = await one.at_once(table, *sent)
    assert [outcome.record.version for outcome in told] == [2, 4, 5, 6, 7, 8, 9]
    await in_the_log(world, table, told, sent)
    found = await paths(one.context.index, table, 9)
    assert found == ["a", "b", *(f"f{n}" for n in range(7)), "theirs"]


async def test_a_write_that_fails_while_files_are_put_is_met(watched, monkeypatch):
    """Nobody asks the database between the last decision and COMMIT: whoever was decided is told
    only what holds."""
    _, one, table = await watched()
    put = BufferedPuts.put

    async def and_breaks(self, context, log):
        lost = await put(self, context, log)
        monkeypatch.setattr(BufferedPuts, "put", put)
        # As where the server ended the session of a write that went on meanwhile.
        self._locked.section._unit.broken = True
        return lost

    monkeypatch.setattr(BufferedPuts, "put", and_breaks)
    sent = [proposal(add(f"f{n}")) for n in range(3)]
    told = await one.at_once(table, *sent)
    assert sorted(outcome.record.version for outcome in told) == [2, 3, 4]
    head = await one.context.index.table(table.id)
    assert (head.latest_version, head.num_files) == (4, 5)


async def test_what_is_held_is_not_written_because_there_is_much(world, engine):
    few = PostgresIndex(engine, limits=IndexLimits(staged_commits=2))
    world = replace(world, context=replace(world.context, index=few))
    faults, one, table = await watching(world)
    told = await one.at_once(table, *(proposal(add(f"f{n}")) for n in range(5)))
    assert [outcome.record.version for outcome in told] == [2, 3, 4, 5, 6]
    assert [outcome.replayed for outcome in told] == [False] * 5
    assert faults.puts == 1


async def test_rows_whose_files_are_not_put_cannot_be_saved(watched):
    """Whatever ends the wait for the files, nobody's transaction takes them along."""
    _, one, table = await watched()
    index = one.context.index
    async with index.commit_group({table.id: ["an-id"]}, wait=True) as group:
        section = group.sections[table.id]
        head = section.table
        section.defer_saving()
        await section.append(ratified(2, add("c"), timestamp=head.latest_timestamp + 1))
        with pytest.raises(FilesFirst):
            await group.save()
        with pytest.raises(FilesFirst):
            await section.transaction("another-id")
        section.unstage(1, head)
        section.allow_saving()
        await group.save()
    head = await index.table(table.id)
    assert (head.latest_version, head.num_files) == (1, 2)
    assert await paths(index, table, 1) == ["a", "b"]
