"""What proposals say of live files, compared with the index: alone and together."""

import json
from random import Random

import pytest

from tests.builders.by_x import add, remove
from tests.builders.lines import wide
from tests.builders.proposals import proposal
from tests.service.commit.groups.grouping import instance
from tests.service.log.foreign.foreign import foreign_commit
from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.ledger import Ledger
from tidegate_protocol.ledger.outcomes import Ratified
from tidegate_protocol.log import codec
from tidegate_protocol.log.actions import Add
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.maintenance.verify import DifferenceKind, verify_table
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.reading.broken_assumptions import broken

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
MARKS = {"properties": {"delta.enableDeletionVectors": "true"}}
V, W, X = "v" * 20, "w" * 20, "x" * 20


def marked(path="p", dv=V, **fields):
    return add(path, dv=dv, stats=wide(), **fields)


def delete(*actions, **fields):
    return proposal(*actions, **{"read_version": 1, "operation": "DELETE", **fields})


async def code(world, table, asked):
    outcome = await propose(world.context, table.id, asked)
    assert isinstance(outcome, Invalid | Conflict), outcome
    return outcome.code


@BOTH
async def test_claims_of_a_version_that_others_have_moved_on_from(world, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed, **MARKS)
    first = proposal(marked(), add("q"), read_version=0)
    assert isinstance(await propose(world.context, table.id, first), Committed)
    for wrong in (
        delete(remove("p")),
        delete(remove("p", dv=W), marked("p", X)),
        delete(remove("q"), remove("nothing")),
    ):
        assert await code(world, table, wrong) is Code.INVALID_ACTION
        checked = await conflict_check(world.context, table.id, wrong)
        assert isinstance(checked, Invalid)
    for wrong in (delete(marked("p", W)), proposal(add("p")), proposal(add("p"), add("r"))):
        assert await code(world, table, wrong) is Code.DELETION_VECTOR_WITHOUT_REMOVE
    moved = delete(remove("p", dv=V), marked("p", W))
    assert isinstance(await propose(world.context, table.id, moved), Committed)
    again = marked("p", dataChange=False)
    head = (await get_table(world.context, table.id)).latest_version
    answers = {1: Code.CONCURRENT_DELETE_READ, head: Code.DELETION_VECTOR_WITHOUT_REMOVE}
    for read_version, told in answers.items():
        asked = proposal(again, read_version=read_version, operation="COMPUTE STATS")
        assert await code(world, table, asked) is told
    # The vector that is gone by now was there at version 1, and is not any more.
    assert await code(world, table, delete(remove("p", dv=V), read_version=head)) is (
        Code.INVALID_ACTION
    )


@BOTH
async def test_members_of_a_group_are_told_by_those_before_them(world, catalog_managed):
    one, table = instance(world), await world.create(catalog_managed=catalog_managed, **MARKS)
    told = await one.at_once(
        table,
        proposal(marked("p")),
        proposal(add("p")),
        proposal(add("q")),
        proposal(add("q", size=11)),
        proposal(marked("q", W)),
        proposal(add("r")),
    )
    kinds = [Committed, Invalid, Committed, Committed, Invalid, Committed]
    assert [type(outcome) for outcome in told] == kinds
    assert {told[1].code, told[4].code} == {Code.DELETION_VECTOR_WITHOUT_REMOVE}


@BOTH
async def test_a_group_is_looked_up_at_once(world, monkeypatch, catalog_managed):
    one, table = instance(world), await world.create(catalog_managed=catalog_managed, **MARKS)
    await one.propose(table, proposal(*[add(f"old{n}") for n in range(10)]))
    one.groups.clear()
    asked = []

    async def counted(ask, assumptions):
        asked.append(len(assumptions))
        return await broken(ask, assumptions)

    monkeypatch.setattr("tidegate_service.index.locking.assumptions.broken", counted)
    moved = [delete(remove(f"old{n}"), add(f"new{n}")) for n in range(10)]
    appends = [proposal(add(f"more{n}")) for n in range(10)]
    told = await one.at_once(table, *appends, *moved)
    assert {type(outcome) for outcome in told} == {Committed}
    assert asked == [len(members) for members in one.groups]


async def test_a_file_that_another_writer_has_added_meanwhile(world):
    """It is read in under the lock, by the very commit that was looked up before."""
    table = await world.create(**MARKS)
    foreign_commit(world, table, 1, line(marked()))
    assert await code(world, table, proposal(add("p"))) is Code.DELETION_VECTOR_WITHOUT_REMOVE
    assert isinstance(await propose(world.context, table.id, proposal(add("q"))), Committed)


@BOTH
async def test_other_spellings_of_a_path_and_long_vectors(world, catalog_managed):
    one, table = instance(world), await world.create(catalog_managed=catalog_managed, **MARKS)
    long = {"storageType": "i", "pathOrInlineDv": "w" * 4000, "sizeInBytes": 3200, "cardinality": 1}
    first = proposal(add("a%2Db", deletionVector=long, stats=wide()))
    assert isinstance(await one.propose(table, first), Committed)
    assert await code(world, table, delete(remove("a-b"))) is Code.INVALID_ACTION
    assert await code(world, table, delete(marked("a-b"))) is Code.DELETION_VECTOR_WITHOUT_REMOVE
    gone = delete(remove("a-b", deletionVector=long))
    told = await one.at_once(table, gone, proposal(add("a%2Db")))
    assert [type(outcome) for outcome in told] == [Committed, Committed]


@BOTH
async def test_groups_decide_as_the_ledger_does(world, catalog_managed):
    """Files of few paths and vectors, committed in every way, by proposals that come together."""
    rng = Random(17)
    one, table = instance(world), await world.create(catalog_managed=catalog_managed, **MARKS)
    created = [codec.decode(line) for line in (await _created(world, table)).splitlines()]
    ledger = Ledger()
    first = proposal(*created[1:], read_version=-1, operation="CREATE TABLE")
    ledger, _ = ledger.create(table.id, first, now_ms=0)
    refused = set()
    for _ in range(25):
        head = ledger.tables[table.id].latest_version
        sent = [_drawn(rng, head) for _ in range(rng.randint(1, 6))]
        for asked, outcome in zip(sent, await one.at_once(table, *sent), strict=True):
            ledger, expected = ledger.propose(table.id, asked, now_ms=0)
            if isinstance(expected, Ratified):
                assert isinstance(outcome, Committed), (asked, outcome)
                assert outcome.record.version == expected.commit.version
            else:
                assert outcome.code is expected.code, (asked, outcome, expected)
                refused.add(outcome.code)
    assert refused >= {Code.INVALID_ACTION, Code.DELETION_VECTOR_WITHOUT_REMOVE}
    assert refused & {Code.CONCURRENT_DELETE_READ, Code.CONCURRENT_APPEND}


async def _created(world, table):
    return await world.context.index.stored_content(table.id, 0)


def _drawn(rng, head):
    actions = []
    for path in rng.sample(["a", "b", "c"], rng.randint(1, 2)):
        vectors = [None, V, W]
        before, after = rng.sample(vectors, 2)
        change = rng.random() < 0.3
        if rng.random() < 0.6:
            actions.append(remove(path, dv=before, dataChange=change))
        if rng.random() < 0.6:
            actions.append(add(path, dv=after, stats=wide(), dataChange=change))
    if not actions:
        actions.append(add("d", dataChange=False))
    rng.shuffle(actions)
    appends = all(isinstance(action, Add) and action.data_change for action in actions)
    if appends and rng.random() < 0.7:
        return proposal(*actions, has_new_id=True, operation="OPTIMIZE")
    read_version = max(0, head - rng.choice([0, 0, 1, 3]))
    return proposal(*actions, read_version=read_version, operation="OPTIMIZE")


async def test_large_commits_are_looked_up_in_pieces(world):
    table = await world.create()
    paths = [f"f{n}" for n in range(6_000)]
    assert isinstance(await propose(world.context, table.id, proposal(*map(add, paths))), Committed)
    gone = [remove(path) for path in paths]
    wrong = delete(*gone[:5_500], remove("f5500", dv=V), *gone[5_501:])
    outcome = await propose(world.context, table.id, wrong)
    assert isinstance(outcome, Invalid)
    assert (outcome.path, outcome.action_index) == ("f5500", 5_500)
    assert isinstance(await propose(world.context, table.id, delete(*gone)), Committed)
    assert (await get_table(world.context, table.id)).num_files == 0


async def test_what_others_break_is_carried_and_told(world):
    """A plain table's log is what the table is."""
    table = await world.create(**MARKS)
    foreign_commit(world, table, 1, line(add("p")))
    foreign_commit(world, table, 2, line(marked()))
    foreign_commit(world, table, 3, line(remove("p", dv=W)))
    landed = await propose(world.context, table.id, proposal(add("q"), read_version=0))
    assert isinstance(landed, Committed)
    found = (await verify_table(world.context, table.id)).differences
    assert [(each.version, each.kind) for each in found] == [
        (3, DifferenceKind.LOG),
        (None, DifferenceKind.LOG),
    ]
    assert "removes were not live: 'p'" in found[0].detail
    assert "several deletion vectors: 'p'" in found[1].detail
    for gone in (remove("p"), remove("p", dv=V)):
        read = (await get_table(world.context, table.id)).latest_version
        assert isinstance(
            await propose(world.context, table.id, delete(gone, read_version=read)), Committed
        )
    found = (await verify_table(world.context, table.id)).differences
    assert [each.version for each in found] == [3]


def line(action):
    return json.loads(codec.encode(action))
