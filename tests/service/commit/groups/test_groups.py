"""Proposals that are decided together: each has its own outcome, in one transaction."""

import asyncio

import psycopg
import pytest

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.commit.committing import append, paths
from tests.service.commit.groups.grouping import instance, transactions
from tests.service.world import make_world
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Txn
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.commit.decide import decide
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import NotFound, Refused
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit
from tidegate_service.core.ports.records import Aborted

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])


def versions(told) -> list[int]:
    assert all(isinstance(outcome, Committed) for outcome in told), told
    return [outcome.record.version for outcome in told]


@BOTH
async def test_proposals_of_one_table_land_together(world, database_url, catalog_managed):
    one, table = instance(world), await world.create(catalog_managed=catalog_managed)
    sent = [proposal(add(f"a{n}"), read_version=0) for n in range(40)]
    told = await one.at_once(table, *sent)
    assert versions(told) == list(range(1, 41))
    # A slow machine may begin with those that were there first.
    assert transactions(database_url, table) == len(one.groups) <= 3
    for outcome, asked in zip(told, sent, strict=True):
        record = outcome.record
        assert record.transaction_id == asked.transaction_id
        assert (record.rebased_over, record.metrics.num_added_files) == (record.version - 1, 1)
        assert outcome.published is not catalog_managed
        assert not outcome.replayed
    times = [outcome.record.timestamp for outcome in told]
    assert times == sorted(set(times))
    index = one.context.index
    assert await paths(index, table, 40) == sorted(f"a{n}" for n in range(40))
    assert len(await paths(index, table, 7)) == 7
    head = await index.table(table.id)
    assert (head.latest_version, head.num_files, head.size_bytes) == (40, 40, 400)
    # Another instance has the same answers.
    again = await instance(world).at_once(table, *sent)
    assert all(outcome.replayed for outcome in again)
    assert [outcome.record for outcome in again] == [outcome.record for outcome in told]
    if not catalog_managed:
        for outcome in told:
            assert world.log_file(table, outcome.record.version).exists()


@BOTH
async def test_who_comes_while_a_group_is_under_way_is_in_the_next(
    world, database_url, catalog_managed
):
    one = instance(world)
    table = await world.create(catalog_managed=catalog_managed)

    async def writer(name: str) -> list[int]:
        landed = []
        for n in range(5):
            (outcome,) = await one.at_once(table, proposal(add(f"{name}-{n}")))
            landed.append(outcome.record.version)
        return landed

    landed = await asyncio.gather(*(writer(f"w{n}") for n in range(12)))
    assert sorted(version for each in landed for version in each) == list(range(1, 61))
    assert all(each == sorted(each) for each in landed)
    assert transactions(database_url, table) == len(one.groups) < 60


@BOTH
async def test_a_member_that_does_not_land_leaves_the_others_alone(
    world, database_url, catalog_managed
):
    one = instance(world)
    table = await world.create(catalog_managed=catalog_managed)
    first = proposal(add("a"), add("b"))
    await one.propose(table, first)
    await abort(one.context, table.id, "gone")
    head = (await one.context.index.table(table.id)).latest_version
    one.groups.clear()
    deletes = {"read_version": 1, "files": frozenset({"a"})}
    told = await one.at_once(
        table,
        proposal(add("c"), read_version=head),
        proposal(remove("a"), **deletes),
        proposal(remove("a"), **deletes),
        proposal(add("d"), transaction_id="gone"),
        proposal(add("e"), transaction_id=first.transaction_id),
        first,
        proposal(add("f"), read_version=head + 40),
        proposal(add("g"), read_version=-1),
        proposal(add("h", partitionValues={}), transaction_id="never"),
        proposal(add("i", stats="no"), read_version=head),
        proposal(read_version=head, skip_if_empty=True),
        proposal(remove("b"), read_version=1, files=frozenset({"b"})),
    )
    (landed, removed, lost, closed, reused, replay, ahead, before, invalid, wrong, empty, last) = (
        told
    )
    # On a plain table, `never` takes a version to be kept out of the log.
    end = head + 4 - catalog_managed
    assert versions([landed, removed, last]) == [head + 1, head + 2, end]
    assert isinstance(lost, Conflict)
    assert (lost.winner.version, lost.path) == (head + 2, "a")
    assert (type(closed), closed.code) == (Refused, Code.TRANSACTION_ABORTED)
    assert (type(reused), reused.code) == (Refused, Code.TRANSACTION_ID_REUSED)
    assert (replay.replayed, replay.record.version) == (True, 1)
    assert (type(ahead), ahead.code) == (NotFound, Code.VERSION_NOT_FOUND)
    assert (type(before), before.code) == (Refused, Code.TABLE_EXISTS)
    assert type(invalid) is type(wrong) is Invalid
    assert isinstance(empty, NothingToCommit)
    assert await paths(one.context.index, table, end) == ["c"]
    known = await one.context.index.transaction(table.id, "never")
    assert isinstance(known, Aborted), "what was judged at the head never lands at a later one"
    # `first` waits for the other body under its id, and on a plain table all behind `closed` for
    # the log to be read.
    assert [len(group) for group in one.groups] == ([11, 1] if catalog_managed else [11, 8, 1])


@BOTH
async def test_a_members_defect_is_no_others(world, database_url, monkeypatch, catalog_managed):
    one = instance(world)
    table = await world.create(catalog_managed=catalog_managed)
    sent = [proposal(add(f"a{n}"), read_version=0) for n in range(5)]

    async def defective(locked, asked, **options):
        if asked is sent[2]:
            raise RuntimeError("a defect")
        return await decide(locked, asked, **options)

    with monkeypatch.context() as patched:
        patched.setattr("tidegate_service.core.commit.batches.table_batch.decide", defective)
        first, second, defect, *others = await one.at_once(table, *sent)
    assert (type(defect), str(defect)) == (RuntimeError, "a defect")
    assert versions([first, second, *others]) == [1, 2, 3, 4]
    assert len(one.groups) == transactions(database_url, table) == 1
    # Its id is free.
    assert versions(await one.at_once(table, sent[2])) == [5]


@BOTH
async def test_members_may_name_the_same_things(world, database_url, catalog_managed):
    """One after the other, as ever: what they leave is the last one's."""
    one = instance(world)
    table = await world.create(catalog_managed=catalog_managed)
    await one.propose(table, proposal(add("old"), add("older")))
    told = await one.at_once(
        table,
        proposal(add("a"), Txn(app_id="app", version=1)),
        proposal(remove("old"), read_version=1),
        proposal(add("a", size=3), Txn(app_id="app", version=2)),
        proposal(add("b"), Txn(app_id="other", version=1)),
        proposal(add("a", size=5), remove("older"), read_version=1),
    )
    assert versions(told) == [2, 3, 4, 5, 6]
    assert len(one.groups) == transactions(database_url, table) == 2
    index, known = one.context.index, one.context.heads.replicated
    found = [await paths(index, table, version) for version in (3, 4, 5, 6)]
    assert found == [["a", "older"], ["a", "older"], ["a", "b", "older"], ["a", "b"]]
    assert (await index.table(table.id)).size_bytes == 15
    assert (await index.app_transaction(table.id, "app", known=known)).version == 2


@BOTH
async def test_copies_of_one_id_land_once(world, catalog_managed):
    one, two = instance(world), instance(world)
    table = await world.create(catalog_managed=catalog_managed)
    body = proposal(add("a"))
    other = proposal(add("b"), transaction_id=body.transaction_id)
    told = await asyncio.gather(
        one.at_once(table, *[body] * 5, other), two.at_once(table, *[body] * 5, other)
    )
    for copies in told:
        *same, reused = copies
        if not isinstance(reused, Refused):
            # The other body was there before any copy of this one.
            same, reused = [reused], same[0]
        assert {outcome.record.version for outcome in same} == {1}
        assert reused.code is Code.TRANSACTION_ID_REUSED
    fresh = [outcome for copies in told for outcome in copies if isinstance(outcome, Committed)]
    assert [outcome.replayed for outcome in fresh].count(False) == 1
    assert (await one.context.index.table(table.id)).latest_version == 1


async def test_a_read_version_that_the_index_does_not_reach(world, database_url):
    one = instance(world)
    table = await world.create(catalog_managed=True)
    await one.at_once(table, *(proposal(add(f"a{n}")) for n in range(3)))
    with psycopg.connect(database_url) as connection:
        # As of a table that was registered from a checkpoint.
        connection.execute("UPDATE tables SET first_version = 2 WHERE id = %s", (table.id,))
    fresh = instance(world)
    told = await fresh.at_once(
        table, *(proposal(add(f"b{n}"), read_version=n) for n in (1, 2, 0, 3))
    )
    assert versions([told[1], told[3]]) == [4, 5]
    for old in (told[0], told[2]):
        assert (type(old), old.code) == (Refused, Code.READ_VERSION_TOO_OLD)


@pytest.fixture
def unbearable(database_url) -> None:
    """The database takes any file but one, as it does with values that are beyond its types."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '22003'; END $$"
        )
        connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON files FOR EACH ROW "
            "WHEN (new.path = 'bad') EXECUTE FUNCTION refuse()"
        )


@pytest.mark.parametrize("where", [0, 1, 3])
async def test_a_value_that_the_index_cannot_hold(world, unbearable, where):
    """It is found out when all are written together; then each is on its own."""
    one = instance(world)
    table = await world.create(catalog_managed=True)
    bad = proposal(add("bad"))
    sent = [proposal(add(f"a{n}")) for n in range(3)]
    sent.insert(where, bad)
    told = await one.at_once(table, *sent)
    refused = told.pop(where)
    assert isinstance(refused, Refused), refused
    assert versions(told) == [1, 2, 3]
    # In no other order than that in which they came.
    assert [len(group) for group in one.groups] == [4, 1, 1, 1, 1]
    assert await paths(one.context.index, table, 3) == ["a0", "a1", "a2"]


async def test_whoever_reads_what_another_could_not_write_is_not_told_of_it(world, unbearable):
    """Its question to the index comes behind what the others have written."""
    one = instance(world)
    table = await world.create(catalog_managed=True)
    await one.propose(table, proposal(add("a")))
    # What came after version 0 is not in memory, so it is asked for.
    one = instance(world)
    told = await one.at_once(
        table,
        proposal(add("bad")),
        proposal(add("b"), read_version=0, predicates=("x = 5",)),
        proposal(add("c")),
    )
    assert isinstance(told[0], Refused)
    assert versions(told[1:]) == [2, 3]
    assert told[1].record.metrics.attempts == 2


async def test_one_transaction_spans_many_tables(world, database_url):
    one = instance(world)  # which on a busy machine may begin a group before all have asked
    tables = [await world.create(catalog_managed=True) for _ in range(20)]
    sent = [(table, proposal(add(f"{n}"))) for n in range(3) for table in tables]
    told = await one.of_many(sent)
    assert versions(told) == [1] * 20 + [2] * 20 + [3] * 20
    assert len(one.groups) == transactions(database_url, *tables) < 5
    for table in tables:
        assert await paths(one.context.index, table, 3) == ["0", "1", "2"]
        assert (await one.context.index.table(table.id)).num_files == 3


async def test_a_table_that_is_held_does_not_hold_up_others(world, other_index, waiters):
    one = instance(world)
    held, free = [await world.create(catalog_managed=True) for _ in range(2)]
    async with other_index.commit_section(held.id):
        waiting = asyncio.create_task(
            one.of_many([(held, proposal(add("a"))), (held, proposal(add("b")))])
        )
        told = await one.of_many([(free, proposal(add("c"))), (free, proposal(add("d")))])
        assert versions(told) == [1, 2]
        await waiters(1)
        assert versions(await one.at_once(free, proposal(add("e")))) == [3]
        assert not waiting.done()
    assert versions(await waiting) == [1, 2]


async def test_who_waited_sees_what_was_committed_whatever_the_databases_default(
    world, other_index, database_url, waiters
):
    one, other = instance(world), instance(world, index=other_index)
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(
            f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'"
        )
    table = await world.create(catalog_managed=True)
    await other.at_once(table, proposal(add("a")))
    async with other_index.commit_section(table.id) as section:
        waiting = asyncio.create_task(one.at_once(table, proposal(add("b"))))
        await waiters(1)
        await append(section, published=False)
        await section.save()
    assert versions(await waiting) == [3]


class TestForgotten:
    """A table that another instance forgot is still known here."""

    @BOTH
    async def test_there_is_no_such_table(self, world, other_index, tmp_path, catalog_managed):
        one = instance(world)
        gone, there = [await world.create(catalog_managed=catalog_managed) for _ in range(2)]
        other = make_world(other_index, world.context.storage, tmp_path.as_uri())
        await one.of_many([(gone, proposal(add("a"))), (there, proposal(add("a")))])
        await forget(other, gone)
        told = await one.of_many(
            [(gone, proposal(add("b"))), (there, proposal(add("b"))), (gone, proposal(add("c")))]
        )
        assert [type(outcome) for outcome in told] == [NotFound, Committed, NotFound]
        assert {told[0].code, told[2].code} == {Code.TABLE_NOT_FOUND}

    @BOTH
    async def test_another_table_has_its_name_now(
        self, world, other_index, tmp_path, catalog_managed
    ):
        one = instance(world)
        gone = await world.create(catalog_managed=catalog_managed)
        other = make_world(other_index, world.context.storage, tmp_path.as_uri())
        body = proposal(add("a"))
        await propose(one.context, gone.name, body)
        await forget(other, gone)
        made = await other.create(
            catalog_managed=catalog_managed,
            name=gone.name,
            location=(tmp_path / "elsewhere").as_uri(),
        )
        told = await propose(one.context, gone.name.upper(), body)
        assert (told.table.id, told.record.version, told.replayed) == (made.id, 1, False)
        with pytest.raises(NotFound):
            await propose(one.context, gone.id, body)


async def forget(world, table) -> None:
    await publish_table(world.context.index, world.context.storage, table)
    await forget_table(world.context, table.id)
