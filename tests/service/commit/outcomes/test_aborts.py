"""Aborting on a plain table while an attempt of the transaction is still on its way.

The attempt's PUT may arrive after the abort was answered. It never lands then, because the
abort took the version that it was for.
"""

import json

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.faults import Fault
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import CommitInfo
from tidegate_protocol.log.codec import encode_lines
from tidegate_protocol.proposal.transaction import Invalid, Proposal
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.transaction_ids import TransactionState, abort, status
from tidegate_service.core.errors import CommitStateUnknown, Refused, TableQuarantined
from tidegate_service.core.log.catching_up.foreign_commits import FENCE_OPERATION
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


async def left_on_its_way(world, faults, table, body):
    """Propose it, with every PUT still on its way when the proposer gives up."""
    faults.faults.extend([Fault.HELD, Fault.REFUSED] * 5)
    with pytest.raises(CommitStateUnknown):
        await propose(world.context, table.id, body)
    assert not faults.faults
    assert not world.log_file(table, 1).exists()


async def refused_code(world, table, body) -> Code:
    with pytest.raises(Refused) as refusal:
        await propose(world.context, table.id, body)
    return refusal.value.code


def wrong(body: Proposal) -> Proposal:
    """Another body under its id, invalid for as long as the table is partitioned as it is."""
    return proposal(add("b", partitionValues={}), transaction_id=body.transaction_id)


async def test_a_put_that_arrives_after_the_abort_does_not_land(world, faults):
    table = await world.create()
    body = proposal(add("a"))
    await left_on_its_way(world, faults, table, body)
    await abort(world.context, table.id, body.transaction_id)
    assert await faults.deliver() == [PutResult.EXISTS] * 5
    assert await refused_code(world, table, body) is Code.TRANSACTION_ABORTED
    (info,) = world.actions_of(table, 1)
    assert info["commitInfo"]["operation"] == FENCE_OPERATION
    assert info["commitInfo"]["operationParameters"] == {"transactionId": body.transaction_id}
    assert not world.log_file(table, 2).exists()
    head = await get_table(world.context, table.id)
    assert (head.latest_version, head.num_files) == (1, 0)


async def test_a_put_that_arrives_before_the_abort_has_landed(world, faults):
    table = await world.create()
    body = proposal(add("a"))
    await left_on_its_way(world, faults, table, body)
    assert await faults.deliver() == [PutResult.CREATED] + [PutResult.EXISTS] * 4
    with pytest.raises(Refused) as refusal:
        await abort(world.context, table.id, body.transaction_id)
    assert (refusal.value.code, refusal.value.version) == (Code.TRANSACTION_COMMITTED, 1)
    assert (await propose(world.context, table.id, body)).replayed
    assert not world.log_file(table, 2).exists()


async def test_a_put_that_arrives_during_the_abort_has_landed(world, faults):
    """The fence's own first PUT is lost, and what it waited for comes in between."""
    table = await world.create()
    body = proposal(add("a"))
    await left_on_its_way(world, faults, table, body)
    faults.faults.append(Fault.LOST)
    reading = faults.log(table.location)
    assert await reading.read(1) is None
    await faults.deliver()
    with pytest.raises(Refused) as refusal:
        await abort(world.context, table.id, body.transaction_id)
    assert refusal.value.code is Code.TRANSACTION_COMMITTED


async def test_an_abort_is_fenced_again_after_an_attempt_in_between(world, faults):
    """Its first fence landed without anybody knowing, and an attempt read past it."""
    table = await world.create()
    body = proposal(add("a"))
    await left_on_its_way(world, faults, table, body)
    faults.faults.extend([Fault.HELD, Fault.REFUSED])
    with pytest.raises(CommitStateUnknown) as unknown:
        await abort(world.context, table.id, body.transaction_id)
    assert unknown.value.transaction_id == body.transaction_id
    await propose(world.context, table.id, proposal(add("b")))
    await abort(world.context, table.id, body.transaction_id)
    assert set(await faults.deliver()) == {PutResult.EXISTS}
    assert await refused_code(world, table, body) is Code.TRANSACTION_ABORTED


async def test_aborting_again_writes_nothing_more(world):
    table = await world.create()
    for _ in range(3):
        await abort(world.context, table.id, "id")
    assert (await get_table(world.context, table.id)).latest_version == 1


async def test_a_catalog_managed_table_needs_no_fence(world):
    table = await world.create(catalog_managed=True)
    await abort(world.context, table.id, "id")
    assert (await get_table(world.context, table.id)).latest_version == 0


async def test_an_index_made_from_the_log_knows_who_was_aborted(world):
    table = await world.create()
    body = proposal(add("a"))
    await abort(world.context, table.id, body.transaction_id)
    fence = world.log_file(table, 1).read_bytes()
    await world.lose(table)
    world.log_file(table, 1).unlink()
    again = await world.create(name=table.name)
    world.log_file(again, 1).write_bytes(fence)
    # Found on the way of a commit, and by the commit that it is for.
    await propose(world.context, again.id, proposal(add("b")))
    found = await status(world.context, again.id, body.transaction_id)
    assert found.state is TransactionState.ABORTED
    assert await refused_code(world, again, body) is Code.TRANSACTION_ABORTED


async def test_what_lies_in_the_log_has_landed_whatever_a_tombstone_says(world):
    """A tombstone without a fence, and our own commit that nobody recorded."""
    table = await world.create()
    body = proposal(add("a"))
    landed = await propose(world.context, table.id, body)
    content = world.log_file(table, 1).read_bytes()
    await world.lose(table)
    world.log_file(table, 1).unlink()
    again = await world.create(name=table.name)
    async with world.context.index.commit_section(again.id) as section:
        await section.abort(body.transaction_id)
        await section.save()
    assert await refused_code(world, again, body) is Code.TRANSACTION_ABORTED
    world.log_file(again, 1).write_bytes(content)
    found = await propose(world.context, again.id, body)
    assert (found.record.version, found.replayed) == (1, True)
    assert found.record.timestamp == landed.record.timestamp
    assert (await get_table(world.context, again.id)).latest_version == 1
    known = await status(world.context, again.id, body.transaction_id)
    assert known.state is TransactionState.COMMITTED
    assert known.landed is not None
    assert known.landed.record == found.record


async def test_a_foreign_claim_to_an_aborted_id_leaves_it_aborted(world):
    table = await world.create()
    body = proposal(add("a"))
    await abort(world.context, table.id, body.transaction_id)
    claim = encode_lines([CommitInfo(timestamp=1, operation="X", txn_id=body.transaction_id)])
    world.log_file(table, 2).write_bytes(claim)
    assert await refused_code(world, table, body) is Code.TRANSACTION_ABORTED
    await propose(world.context, table.id, proposal(add("b")))
    assert await refused_code(world, table, body) is Code.TRANSACTION_ABORTED


async def test_a_quarantined_table_takes_no_fence(world):
    table = await world.create()
    world.log_file(table, 1).write_bytes(b"not a commit\n")
    for _ in range(2):
        with pytest.raises(TableQuarantined):
            await abort(world.context, table.id, "id")
    assert world.log_file(table, 1).read_bytes() == b"not a commit\n"
    assert not world.log_file(table, 2).exists()


async def test_a_fence_carries_the_in_commit_timestamp_where_the_table_has_it(world):
    table = await world.create(properties={"delta.enableInCommitTimestamps": "true"})
    await abort(world.context, table.id, "id")
    line = json.loads(world.log_file(table, 1).read_text().splitlines()[0])
    record = await world.context.index.commit(table.id, 1)
    assert line["commitInfo"]["inCommitTimestamp"] == record.timestamp


async def test_a_body_that_another_one_of_its_id_closed_does_not_land(world, faults):
    """One id with two bodies: one is on its way when the other one is found invalid."""
    table = await world.create()
    body = proposal(add("a"))
    await left_on_its_way(world, faults, table, body)
    assert isinstance(await propose(world.context, table.id, wrong(body)), Invalid)
    assert set(await faults.deliver()) == {PutResult.EXISTS}
    assert await refused_code(world, table, body) is Code.TRANSACTION_ABORTED
    await abort(world.context, table.id, body.transaction_id)
    assert (await get_table(world.context, table.id)).latest_version == 1


async def test_a_body_that_landed_before_the_other_one_was_refused_has_landed(world, faults):
    table = await world.create()
    body = proposal(add("a"))
    await left_on_its_way(world, faults, table, body)
    await faults.deliver()
    assert await refused_code(world, table, wrong(body)) is Code.TRANSACTION_ID_REUSED
    assert (await propose(world.context, table.id, body)).replayed
    assert (await get_table(world.context, table.id)).latest_version == 1


async def test_no_writer_can_make_a_fence_of_its_own(world):
    """It would close another's id once an index is made from the log."""
    table = await world.create()
    forged = proposal(operation=FENCE_OPERATION, operation_parameters={"transactionId": "another"})
    for judge in (propose, conflict_check):
        assert isinstance(await judge(world.context, table.id, forged), Invalid)
    assert (await get_table(world.context, table.id)).latest_version == 0
