"""Groups on plain tables: one file after the other, under one lock, and what may befall them.

Small files are put together (`test_buffered_files`); these are put as larger ones are.
"""

import json

import pytest

from tests.builders import lines
from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.commit.committing import paths
from tests.service.commit.groups.grouping import instance, transactions
from tests.service.faults import Fault, FaultyStorage
from tests.service.world import World
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.errors import CommitStateUnknown, StorageUnavailable
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableRecord

pytestmark = pytest.mark.anyio


@pytest.fixture
def world(world):
    """Puts every file by itself."""
    return world.limited(buffered_file_bytes=-1)


def write_past(world: World, faults: FaultyStorage, table: TableRecord, content: bytes) -> None:
    """Another writer puts version 3, just before ours arrives."""
    file = world.log_file(table, 3)

    def before(version: int) -> None:
        if version == 3 and not file.exists():
            file.write_bytes(content)

    faults.before = before


def foreign(*actions: dict) -> bytes:
    info = {"commitInfo": {"operation": "WRITE", "timestamp": 1}}
    return b"".join(json.dumps(action).encode() + b"\n" for action in (info, *actions))


def appended(path: str) -> dict:
    return lines.add(path, {"x": "1"}, stats=None)


async def test_a_foreign_file_in_the_middle_moves_the_rest_up(world, faults, database_url):
    one = instance(world)
    table = await world.create()
    write_past(world, faults, table, foreign(appended("theirs")))
    sent = [proposal(add(f"a{n}"), read_version=0) for n in range(4)]
    told = await one.at_once(table, *sent)
    assert [outcome.record.version for outcome in told] == [1, 2, 4, 5]
    assert [outcome.record.rebased_over for outcome in told] == [0, 1, 3, 4]
    assert len(one.groups) == transactions(database_url, table) == 1
    assert [world.actions_of(table, v)[1]["add"]["path"] for v in range(1, 6)] == [
        "a0",
        "a1",
        "theirs",
        "a2",
        "a3",
    ]
    assert (await one.context.index.commit(table.id, 3)).foreign
    assert await paths(one.context.index, table, 5) == ["a0", "a1", "a2", "a3", "theirs"]


async def test_a_foreign_file_may_be_what_the_rest_conflicts_with(world, faults):
    one = instance(world)
    table = await world.create()
    await one.propose(table, proposal(add("a"), add("b")))
    write_past(world, faults, table, foreign(lines.remove("b")))
    reads = {"read_version": 1}
    told = await one.at_once(
        table,
        proposal(remove("a"), files=frozenset({"a"}), **reads),
        proposal(remove("b"), files=frozenset({"b"}), **reads),
        proposal(remove("a"), files=frozenset({"a"}), **reads),
        proposal(add("c"), **reads),
    )
    assert [type(outcome) for outcome in told] == [Committed, Conflict, Conflict, Committed]
    assert [told[1].winner.version, told[2].winner.version] == [3, 2]
    assert told[3].record.version == 4
    assert await paths(one.context.index, table, 4) == ["c"]


async def test_a_put_that_stays_without_an_answer_stops_the_group(world, faults):
    """The first to try again is whose file may be there."""
    one = instance(world)
    table = await world.create()
    faults.faults.extend([Fault.NONE, *[Fault.LOST] * 6])
    told = await one.at_once(table, *(proposal(add(f"a{n}")) for n in range(4)))
    assert [outcome.record.version for outcome in told] == [1, 2, 3, 4]
    assert [outcome.record.metrics.attempts for outcome in told] == [1, 2, 1, 1]
    assert [len(group) for group in one.groups] == [4, 1, 2]


async def test_a_held_put_of_the_middle_arrives_too_late(world, faults):
    one = instance(world)
    table = await world.create()
    faults.faults.extend([Fault.NONE, Fault.HELD])
    told = await one.at_once(table, *(proposal(add(f"a{n}")) for n in range(3)))
    assert [outcome.record.version for outcome in told] == [1, 2, 3]
    before = [world.log_file(table, version).read_bytes() for version in range(4)]
    await faults.deliver()
    assert [world.log_file(table, version).read_bytes() for version in range(4)] == before
    assert not world.log_file(table, 4).exists()


async def test_a_store_that_refuses_in_the_middle(world, faults, database_url):
    """Who was refused has done nothing; the others do not wait with the lock for the store."""
    one = instance(world)
    table = await world.create()
    faults.faults.extend([Fault.NONE, Fault.NONE, Fault.REFUSED])
    told = await one.at_once(table, *(proposal(add(f"a{n}")) for n in range(5)))
    assert isinstance(told[2], StorageUnavailable)
    del told[2]
    assert [outcome.record.version for outcome in told] == [1, 2, 3, 4]
    assert [len(group) for group in one.groups] == [5, 2]
    assert transactions(database_url, table) == 2
    assert await paths(one.context.index, table, 4) == ["a0", "a1", "a3", "a4"]


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.LOST])
async def test_a_put_without_an_answer_is_not_forgotten_when_the_store_refuses_then(
    world, faults, fault
):
    """Whose file may be there is not told that nothing was done."""
    one = instance(world, commit_deadline_s=-1.0)
    table = await world.create()
    faults.faults.extend([Fault.NONE, fault, Fault.REFUSED])
    sent = [proposal(add(f"a{n}")) for n in range(3)]
    told = await one.at_once(table, *sent)
    assert told[0].record.version == 1
    assert isinstance(told[1], CommitStateUnknown), told[1]
    landed = fault is Fault.ANSWER_LOST
    (again,) = await one.at_once(table, sent[1])
    assert (again.record.version, again.replayed) == ((2, True) if landed else (3, False))
