"""Files of a plain table's group that are put together, and what may befall them."""

import asyncio
from functools import partial

import psycopg
import pytest

from tests.builders import lines
from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.commit.committing import paths
from tests.service.commit.groups.grouping import instance, transactions
from tests.service.commit.groups.test_group_files import appended, foreign
from tests.service.faults import Fault, FaultyLog
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Txn
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_service.core.errors import CommitStateUnknown, StorageUnavailable
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.core.ports.outcomes import Committed

pytestmark = pytest.mark.anyio


class Before:
    """Fault points that note how often files are put, and do something before the first time."""

    def __init__(self) -> None:
        self.puts = 0
        self.deed = None

    async def reached(self, step: Step, side: Side) -> None:
        if (step, side) != (Step.O6_PUT, Side.BEFORE):
            return
        self.puts += 1
        if self.puts == 1 and self.deed is not None:
            self.deed()


async def watching(world):
    """A table with the files a and b, and an instance whose puts are counted from here on."""
    faults = Before()
    one = instance(world, faults=faults)
    table = await world.create()
    await one.propose(table, proposal(add("a"), add("b")))
    faults.puts = 0
    return faults, one, table


@pytest.fixture
def watched(world):
    return partial(watching, world)


async def in_the_log(world, table, told, sent):
    """Each member that landed lies in the log under its own version, with its own id."""
    for outcome, asked in zip(told, sent, strict=True):
        if isinstance(outcome, Committed):
            info, *_ = world.actions_of(table, outcome.record.version)
            assert info["commitInfo"]["txnId"] == asked.transaction_id


async def test_the_files_of_a_group_are_put_at_once(world, watched, database_url):
    faults, one, table = await watched()
    sent = [proposal(add(f"f{n}")) for n in range(5)]
    told = await one.at_once(table, *sent)
    assert [outcome.record.version for outcome in told] == [2, 3, 4, 5, 6]
    assert [outcome.replayed for outcome in told] == [False] * 5
    assert faults.puts == 1
    assert transactions(database_url, table) == 2
    await in_the_log(world, table, told, sent)
    head = await one.context.index.table(table.id)
    assert (head.latest_version, head.num_files, head.size_bytes) == (6, 7, 70)


async def test_who_asks_the_index_has_the_files_put_first(watched, database_url):
    """A tombstone is written, and what was decided before cannot be taken back then."""
    faults, one, table = await watched()
    invalid = proposal(add("c", partitionValues={}))
    told = await one.at_once(
        table,
        proposal(add("d")),
        proposal(Txn(app_id="x", version=1)),
        invalid,
        proposal(add("e")),
        proposal(add("f")),
    )
    assert isinstance(told[2], Invalid)
    landed = [outcome.record.version for outcome in told if isinstance(outcome, Committed)]
    # Version 4 is the one that keeps it out.
    assert landed == [2, 3, 5, 6]
    assert faults.puts == 2
    known = await one.context.index.transaction(table.id, invalid.transaction_id)
    assert known is not None
    # The one before, and one for all of these.
    assert transactions(database_url, table) == 2


async def test_a_foreign_file_moves_all_behind_it_up(world, watched):
    faults, one, table = await watched()
    faults.deed = lambda: world.log_file(table, 2).write_bytes(foreign(appended("theirs")))
    sent = [proposal(add(f"f{n}"), read_version=1) for n in range(3)]
    told = await one.at_once(table, *sent)
    assert [outcome.record.version for outcome in told] == [3, 4, 5]
    assert [outcome.record.rebased_over for outcome in told] == [1, 2, 3]
    assert (await one.context.index.commit(table.id, 2)).foreign
    await in_the_log(world, table, told, sent)
    assert await paths(one.context.index, table, 5) == ["a", "b", "f0", "f1", "f2", "theirs"]


async def test_a_foreign_file_in_the_middle(world, watched):
    """Whatever was decided behind it is decided again: the conflict with it, and the one with a
    member that did not land."""
    faults, one, table = await watched()
    faults.deed = lambda: world.log_file(table, 3).write_bytes(foreign(lines.remove("b")))
    sent = [
        proposal(add("c"), read_version=1),
        proposal(remove("b"), read_version=1, files=frozenset({"b"})),
        proposal(remove("b"), read_version=1, files=frozenset({"b"})),
        proposal(add("d"), read_version=1),
    ]
    told = await one.at_once(table, *sent)
    assert [type(outcome) for outcome in told] == [Committed, Conflict, Conflict, Committed]
    assert [told[1].winner.version, told[2].winner.version] == [3, 3]
    assert [told[0].record.version, told[3].record.version] == [2, 4]
    await in_the_log(world, table, told, sent)
    assert await paths(one.context.index, table, 4) == ["a", "c", "d"]


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.LOST])
@pytest.mark.parametrize("at", [0, 1, 3])
async def test_a_put_without_an_answer(world, watched, faults, fault, at):
    _, one, table = await watched()
    faults.faults.extend([*[Fault.NONE] * at, fault])
    sent = [proposal(add(f"f{n}")) for n in range(4)]
    told = await one.at_once(table, *sent)
    assert [outcome.record.version for outcome in told] == [2, 3, 4, 5]
    await in_the_log(world, table, told, sent)
    assert await paths(one.context.index, table, 5) == ["a", "b", "f0", "f1", "f2", "f3"]


@pytest.mark.parametrize("at", [0, 2])
async def test_a_store_that_refuses_for_long(world, watched, faults, at):
    """What landed before it stays. Of one among others, it is not told apart from one that got no
    answer."""
    _, one, table = await watched()
    faults.faults.extend([*[Fault.NONE] * at, Fault.REFUSED, Fault.REFUSED])
    sent = [proposal(add(f"f{n}")) for n in range(4)]
    told = await one.at_once(table, *sent)
    assert isinstance(told[at], CommitStateUnknown if at else StorageUnavailable)
    landed = [outcome for outcome in told if isinstance(outcome, Committed)]
    assert [outcome.record.version for outcome in landed] == [2, 3, 4]
    await in_the_log(world, table, told, sent)


async def test_an_unreadable_file_keeps_what_landed_before_it(world, watched):
    faults, one, table = await watched()
    faults.deed = lambda: world.log_file(table, 3).write_bytes(b"torn")
    told = await one.at_once(table, *(proposal(add(f"f{n}")) for n in range(3)))
    assert told[0].record.version == 2
    assert [outcome.code for outcome in told[1:]] == [Code.TABLE_QUARANTINED] * 2
    head = await one.context.index.table(table.id)
    assert (head.latest_version, head.state.value) == (2, "quarantined")


async def test_rows_that_the_index_refuses_are_found_in_the_log(world, watched, database_url):
    _, one, table = await watched()
    sent = [proposal(add(f"f{n}")) for n in range(3)]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$"
        )
        connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON commits FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
        told = await one.at_once(table, *sent)
        assert [type(outcome) for outcome in told] == [CommitStateUnknown] * 3
        connection.execute("DROP TRIGGER refuse ON commits")
    again = await instance(world).at_once(table, *sent)
    assert sorted(outcome.record.version for outcome in again) == [2, 3, 4]
    assert all(outcome.replayed for outcome in again)
    await in_the_log(world, table, again, sent)


@pytest.mark.parametrize("at", [0, 2])
@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.LOST])
async def test_a_file_that_may_be_there_is_not_forgotten_when_the_store_refuses_then(
    world, faults, fault, at
):
    """Whose first PUT got no answer is not told that nothing was done."""
    one = instance(world, commit_deadline_s=-1.0)
    table = await world.create()
    faults.faults.extend([*[Fault.NONE] * at, fault, Fault.REFUSED])
    sent = [proposal(add(f"f{n}")) for n in range(4)]
    told = await one.at_once(table, *sent)
    assert isinstance(told[at], CommitStateUnknown), told[at]
    (again,) = await one.at_once(table, sent[at])
    if fault is Fault.ANSWER_LOST:
        assert (again.record.version, again.replayed) == (at + 1, True)
    else:
        assert (again.record.version, again.replayed) == (4, False)


async def test_rows_that_are_written_ahead_never_overtake_their_files(world, faults, monkeypatch):
    """What was decided before is on its way to the index when the next files are put in vain."""
    real = FaultyLog.put_in_order

    async def put_in_order(self, commits, *, within_s):
        # A real store takes its time, and others go on meanwhile.
        for _ in range(200):
            await asyncio.sleep(0)
        return await real(self, commits, within_s=within_s)

    monkeypatch.setattr(FaultyLog, "put_in_order", put_in_order)
    one = instance(world)
    table = await world.create()
    await one.propose(table, proposal(add("a"), add("b")))
    await one.propose(table, proposal(remove("a"), read_version=1))
    sent = [
        *(proposal(remove("a"), read_version=1) for _ in range(15)),
        *(proposal(add(f"f{n}")) for n in range(32)),
        proposal(remove("a"), read_version=1),
        *(proposal(add(f"g{n}")) for n in range(3)),
    ]
    faults.faults.extend([*[Fault.NONE] * 32, Fault.REFUSED, Fault.REFUSED])
    told = await one.at_once(table, *sent)
    head = await one.context.index.table(table.id)
    assert all(world.log_file(table, v).exists() for v in range(head.latest_version + 1))
    await in_the_log(world, table, told, sent)
