"""Versions that the index does not know: other writers', and our own whose rows were lost."""

import math

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.groups.grouping import instance
from tests.service.log.foreign.foreign import FOREIGN_ADD, foreign_commit
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


async def test_our_own_commit_whose_index_rows_were_lost_is_found_in_the_log(world):
    """delta-rs takes its own lost success for a conflict and commits the files twice."""
    table = await world.create()
    body = proposal(add("a"))
    await propose(world.context, table.id, body)
    content = world.log_file(table, 1).read_bytes()
    # The same log seen by an index that never heard of version 1.
    await world.lose(table)
    world.log_file(table, 1).unlink()
    again = await world.create(name=table.name)
    world.log_file(again, 1).write_bytes(content)
    landed = await propose(world.context, again.id, body)
    assert (landed.record.version, landed.replayed) == (1, True)
    assert not landed.record.foreign
    assert not world.log_file(again, 2).exists()


async def test_a_foreign_commit_is_ingested_and_judged_against(world):
    table = await world.create()
    foreign_commit(world, table, 1, FOREIGN_ADD)
    blind = await propose(world.context, table.id, proposal(add("a"), read_version=0))
    assert (blind.record.version, blind.record.rebased_over) == (2, 1)
    foreign_commit(world, table, 3, FOREIGN_ADD)
    reading = proposal(add("b"), read_version=2, predicates=("x = 1",))
    lost = await propose(world.context, table.id, reading)
    assert isinstance(lost, Conflict)
    assert (lost.winner.version, lost.path) == (3, "x=1/theirs")
    head = await get_table(world.context, table.id)
    assert (head.latest_version, head.num_files) == (3, 2)


async def test_a_decision_taken_again_behind_foreign_versions_is_an_attempt(world):
    # However slow the machine is: else the second one is read without the lock.
    world = world.limited(race_s=math.inf)
    table = await world.create()
    first = await propose(world.context, table.id, proposal(add("a")))
    assert first.record.metrics.attempts == 1
    foreign_commit(world, table, 2, FOREIGN_ADD)
    foreign_commit(world, table, 3, FOREIGN_ADD)
    behind = await propose(world.context, table.id, proposal(add("b")))
    # Each is found by a PUT.
    assert (behind.record.version, behind.record.metrics.attempts) == (4, 3)
    again = await propose(world.context, table.id, proposal(add("c")))
    assert again.record.metrics.attempts == 1
    kept = await world.context.index.commit(table.id, 4)
    assert kept.metrics.attempts == 3


async def test_those_decided_with_it_are_decided_again_too(world):
    one = instance(world)
    table = await world.create()
    foreign_commit(world, table, 1, FOREIGN_ADD)
    told = await one.at_once(table, *(proposal(add(f"a{n}")) for n in range(3)))
    assert [outcome.record.version for outcome in told] == [2, 3, 4]
    assert all(outcome.record.metrics.attempts >= 2 for outcome in told)


async def test_a_read_version_only_the_log_knows_is_looked_for(world):
    table = await world.create()
    foreign_commit(world, table, 1, FOREIGN_ADD)
    landed = await propose(world.context, table.id, proposal(add("a"), read_version=1))
    assert (landed.record.version, landed.record.rebased_over) == (2, 0)


async def test_our_own_commit_beyond_what_the_index_knows_lands_once(world):
    """The retry of a transaction that read a foreign version, and landed unrecorded after it."""
    table = await world.create()
    foreign_commit(world, table, 1, FOREIGN_ADD)
    body = proposal(add("a"), read_version=1)
    assert (await propose(world.context, table.id, body)).record.version == 2
    log = [world.log_file(table, version).read_bytes() for version in (1, 2)]
    # The same log seen by an index that never heard of either version.
    await world.lose(table)
    for version in (1, 2):
        world.log_file(table, version).unlink()
    again = await world.create(name=table.name)
    for version, content in zip((1, 2), log, strict=True):
        world.log_file(again, version).write_bytes(content)
    landed = await propose(world.context, again.id, body)
    assert (landed.record.version, landed.replayed) == (2, True)
    assert not world.log_file(again, 3).exists()


@pytest.mark.parametrize(
    "content",
    [
        b"not json\n",
        b'{"add":{"path":"a"}}\n',
        b"",
        b'{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
        b'"readerFeatures":["fromTheFuture"],"writerFeatures":["fromTheFuture"]}}\n',
    ],
)
async def test_an_unreadable_foreign_commit_quarantines_the_table(world, content):
    table = await world.create()
    body = proposal(add("a"))
    landed = await propose(world.context, table.id, body)
    world.log_file(table, 2).write_bytes(content)
    for _ in range(2):
        with pytest.raises(TableQuarantined, match="version 2"):
            await propose(world.context, table.id, proposal(add("b")))
    head = await get_table(world.context, table.id)
    assert head.state is TableState.QUARANTINED
    assert head.latest_version == 1
    again = await propose(world.context, table.id, body)
    assert (again.replayed, again.record) == (True, landed.record)
    assert world.log_file(table, 2).read_bytes() == content


async def test_a_quarantined_table_goes_on_answering_for_what_it_knows(world):
    table = await world.create()
    landed, aborted = proposal(add("a")), proposal(add("b"))
    await propose(world.context, table.id, landed)
    await abort(world.context, table.id, aborted.transaction_id)
    world.log_file(table, 3).write_text("torn")
    with pytest.raises(TableQuarantined):
        await propose(world.context, table.id, proposal(add("c")))
    checked = await conflict_check(world.context, table.id, landed)
    assert (checked.replayed, checked.record.version) == (True, 1)
    for ask in (propose, conflict_check):
        with pytest.raises(Refused, match="aborted"):
            await ask(world.context, table.id, aborted)


async def test_a_foreign_commit_that_claims_a_used_id_is_kept_without_it(world):
    table = await world.create()
    body = proposal(add("a"))
    await propose(world.context, table.id, body)
    foreign_commit(world, table, 2, {"commitInfo": {"txnId": body.transaction_id}}, FOREIGN_ADD)
    await propose(world.context, table.id, proposal(add("b")))
    again = await propose(world.context, table.id, body)
    assert (again.record.version, again.replayed) == (1, True)


async def test_our_own_commit_read_in_again_keeps_the_time_that_it_was_answered_with(world):
    """Right behind foreign versions without times of their own, which are dated as they are met."""
    table = await world.create()
    for version in (1, 2):
        foreign_commit(world, table, version, FOREIGN_ADD)
    body = proposal(add("a"))
    landed = await propose(world.context, table.id, body)
    log = [world.log_file(table, version).read_bytes() for version in (1, 2, 3)]
    # The same log seen by an index that never heard of those versions.
    await world.lose(table)
    for version in (1, 2, 3):
        world.log_file(table, version).unlink()
    behind = await world.create(name=table.name)
    for version, content in zip((1, 2, 3), log, strict=True):
        world.log_file(behind, version).write_bytes(content)
    found = await propose(world.context, behind.id, body)
    assert found.replayed
    assert found.record.timestamp == landed.record.timestamp
    times = [
        one.timestamp
        for one in await world.context.index.history(
            behind.id, from_version=0, to_version=None, limit=9
        )
    ]
    assert times == sorted(set(times), reverse=True)
    assert times[-1] == behind.latest_timestamp
