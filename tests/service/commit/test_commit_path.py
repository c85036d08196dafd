"""The commit path over real Postgres and real files: lost answers, foreign commits, retries."""

import pytest

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.faults import Fault
from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.transaction_ids import TransactionState, abort, status
from tidegate_service.core.errors import (
    CommitStateUnknown,
    Refused,
    StorageUnavailable,
    TableExists,
    TableQuarantined,
)
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit, WouldCommit
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])


@BOTH
async def test_a_blind_append_lands_at_the_next_version(world, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    first = await propose(world.context, table.name, proposal(add("a")))
    second = await propose(world.context, table.id, proposal(add("b"), read_version=0))
    assert isinstance(first, Committed)
    assert isinstance(second, Committed)
    assert (first.record.version, second.record.version) == (1, 2)
    assert second.record.rebased_over == 1
    assert second.record.timestamp > first.record.timestamp
    assert first.published is not catalog_managed
    head = await get_table(world.context, table.name.upper())
    assert (head.latest_version, head.num_files, head.size_bytes) == (2, 2, 20)


@BOTH
async def test_a_retry_gets_the_first_answer_and_another_body_is_refused(world, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    body = proposal(add("a"))
    first = await propose(world.context, table.id, body)
    await propose(world.context, table.id, proposal(add("b")))
    again = await propose(world.context, table.id, body)
    assert again.replayed
    assert again.record == first.record
    other = proposal(add("c"), transaction_id=body.transaction_id)
    with pytest.raises(Refused) as refusal:
        await propose(world.context, table.id, other)
    assert refusal.value.code is Code.TRANSACTION_ID_REUSED
    assert (await get_table(world.context, table.id)).latest_version == 2


@BOTH
async def test_a_conflict_names_winner_path_and_partition_and_writes_nothing(
    world, catalog_managed
):
    table = await world.create(catalog_managed=catalog_managed)
    await propose(world.context, table.id, proposal(add("a", "5")))
    reading = {"read_version": 1, "predicates": ("x = 5",), "files": frozenset({"a"})}
    one = proposal(remove("a", None), add("b", "5"), **reading)
    two = proposal(remove("a", None), add("c", "5"), **reading)
    assert isinstance(await propose(world.context, table.id, one), Committed)
    lost = await propose(world.context, table.id, two)
    assert isinstance(lost, Conflict)
    assert lost.code is Code.CONCURRENT_APPEND
    assert (lost.winner.version, lost.path, lost.partition) == (2, "b", {"x": "5"})
    three = proposal(remove("a", None), read_version=1, files=frozenset({"a"}))
    lost = await propose(world.context, table.id, three)
    assert lost.code is Code.CONCURRENT_DELETE_READ
    assert lost.partition == {"x": "5"}
    assert (await get_table(world.context, table.id)).latest_version == 2


@BOTH
async def test_an_aborted_id_never_lands(world, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    body = proposal(add("a"))
    await abort(world.context, table.id, body.transaction_id)
    await abort(world.context, table.id, body.transaction_id)
    with pytest.raises(Refused) as refusal:
        await propose(world.context, table.id, body)
    assert refusal.value.code is Code.TRANSACTION_ABORTED
    found = await status(world.context, table.id, body.transaction_id)
    assert found.state is TransactionState.ABORTED
    landed = proposal(add("b"))
    await propose(world.context, table.id, landed)
    with pytest.raises(Refused) as refusal:
        await abort(world.context, table.id, landed.transaction_id)
    assert refusal.value.code is Code.TRANSACTION_COMMITTED
    # A plain table's version 1 is the fence of the first abort (test_aborts.py).
    assert refusal.value.version == (1 if catalog_managed else 2)


@BOTH
async def test_a_conflict_check_tells_and_writes_nothing(world, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    body = proposal(add("a"), read_version=0)
    for _ in range(2):
        would = await conflict_check(world.context, table.id, body)
        assert isinstance(would, WouldCommit)
        assert (would.version, would.is_blind_append, would.rebased_over) == (1, True, 0)
    assert (await get_table(world.context, table.id)).latest_version == 0
    await propose(world.context, table.id, body)
    assert isinstance(await conflict_check(world.context, table.id, body), Committed)


async def test_an_invalid_body_judged_at_the_head_closes_its_id(world):
    table = await world.create()
    body = proposal(add("a", partitionValues={}))
    assert isinstance(await propose(world.context, table.id, body), Invalid)
    found = await status(world.context, table.id, body.transaction_id)
    assert found.state is TransactionState.ABORTED


async def test_nothing_to_commit_leaves_no_version(world):
    table = await world.create()
    empty = proposal(read_version=0, skip_if_empty=True)
    assert isinstance(await conflict_check(world.context, table.id, empty), NothingToCommit)
    assert isinstance(await propose(world.context, table.id, empty), NothingToCommit)
    assert (await get_table(world.context, table.id)).latest_version == 0
    kept = await propose(world.context, table.id, proposal(read_version=0))
    assert isinstance(kept, Committed)


@pytest.mark.parametrize(
    "script",
    [
        [Fault.ANSWER_LOST],
        [Fault.LOST],
        [Fault.LOST, Fault.LOST, Fault.ANSWER_LOST],
    ],
)
async def test_a_put_without_an_answer_is_settled_and_lands_once(world, faults, script):
    table = await world.create()
    faults.faults.extend(script)
    landed = await propose(world.context, table.id, proposal(add("a")))
    assert isinstance(landed, Committed)
    assert not landed.replayed
    assert landed.record.version == 1
    assert [next(iter(a)) for a in world.actions_of(table, 1)] == ["commitInfo", "add"]
    assert not world.log_file(table, 2).exists()


async def test_a_store_that_refuses_is_unavailable_and_recovers(world, faults):
    table = await world.create()
    body = proposal(add("a"))
    faults.faults.append(Fault.REFUSED)
    with pytest.raises(StorageUnavailable):
        await propose(world.context, table.id, body)
    assert not world.log_file(table, 1).exists()
    landed = await propose(world.context, table.id, body)
    assert (landed.record.version, landed.replayed) == (1, False)


async def test_an_outcome_nobody_knows_is_unknown_and_found_by_its_id(world, faults):
    table = await world.create()
    body = proposal(add("a"))
    faults.faults.extend([Fault.LOST, Fault.REFUSED] * 5)
    with pytest.raises(CommitStateUnknown) as unknown:
        await propose(world.context, table.id, body)
    assert unknown.value.transaction_id == body.transaction_id
    faults.faults.clear()
    landed = await propose(world.context, table.id, body)
    assert landed.record.version == 1


@BOTH
async def test_sizes_at_the_edge_of_a_long_do_not_break_the_table(world, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    huge = 2**63 - 1
    outcome = await propose(
        world.context, table.id, proposal(add("a", size=huge), add("b", size=huge))
    )
    assert isinstance(outcome, Committed | Invalid)
    assert isinstance(await propose(world.context, table.id, proposal(add("c"))), Committed)


async def test_published_versions_are_the_ratified_bytes(world, faults):
    table = await world.create(catalog_managed=True)
    for name in "abc":
        await propose(world.context, table.id, proposal(add(name)))
    index = world.context.index
    ratified = [await index.content(table.id, version) for version in range(4)]
    assert all(ratified)
    assert not world.log_folder(table).exists()
    faults.faults.append(Fault.ANSWER_LOST)
    head = await get_table(world.context, table.id)
    assert await publish_table(index, world.context.storage, head) == 4
    assert [world.log_file(table, v).read_bytes() for v in range(4)] == ratified
    head = await get_table(world.context, table.id)
    assert head.published_version == 3
    assert await index.content(table.id, 3) is None
    # A second publisher that still holds the old head finds nothing to do.
    assert await publish_table(index, world.context.storage, head) == 0


async def test_a_file_in_the_way_of_publishing_quarantines_and_is_not_overwritten(world):
    table = await world.create(catalog_managed=True)
    index, storage = world.context.index, world.context.storage
    await publish_table(index, storage, await get_table(world.context, table.id))
    await propose(world.context, table.id, proposal(add("a")))
    world.log_file(table, 1).write_bytes(b"{}\n")
    await publish_table(index, storage, await get_table(world.context, table.id))
    head = await get_table(world.context, table.id)
    assert head.state is TableState.QUARANTINED
    assert head.published_version == 0
    assert world.log_file(table, 1).read_bytes() == b"{}\n"
    with pytest.raises(TableQuarantined):
        await propose(world.context, table.id, proposal(add("b")))
    with pytest.raises(TableQuarantined):
        await forget_table(world.context, table.id)


@BOTH
async def test_forgetting_keeps_the_whole_log(world, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    await propose(world.context, table.id, proposal(add("a")))
    await forget_table(world.context, table.id)
    assert world.log_file(table, 0).exists()
    assert world.log_file(table, 1).exists()
    with pytest.raises(TableExists):
        await world.create(catalog_managed=catalog_managed, location=table.location)


async def test_a_creation_cut_short_is_taken_up_by_the_same_request(world):
    table = await world.create()
    version_0 = world.log_file(table, 0).read_bytes()
    await world.lose(table)
    request = {"name": table.name}
    again = await world.create(**request)
    assert world.log_file(again, 0).read_bytes() == version_0
    assert again.metadata.id == table.metadata.id
    await world.lose(again)
    with pytest.raises(TableExists, match="already holds a Delta log"):
        await world.create(**request, comment="another table")
