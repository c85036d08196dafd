"""Winners in memory: what an instance remembers of a table is what the index would say."""

import random
from dataclasses import replace

import pytest

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.commit.groups.grouping import instance
from tidegate_protocol.log.actions import Txn
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.ports.outcomes import Committed

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])


async def taken_from(one, table):
    """The window that the instance keeps of the table, which it keeps no more."""
    async with one.context.index.commit_section(table.id) as section:
        return one.context.windows.take(section.table, section.database)


def deletes(path: str, read_version: int):
    return proposal(remove(path), read_version=read_version, files=frozenset({path}))


def conflicts_with(outcome, version: int) -> bool:
    assert isinstance(outcome, Conflict), outcome
    return outcome.winner.version == version


@BOTH
async def test_versions_of_another_instance_are_winners_too(world, other_index, catalog_managed):
    one, other = instance(world), instance(world, index=other_index)
    table = await world.create(catalog_managed=catalog_managed)
    await one.propose(table, proposal(*(add(name) for name in "abcdef")))
    await one.propose(table, deletes("a", 1))
    await other.propose(table, deletes("b", 1))
    told = await one.at_once(table, deletes("b", 1), deletes("a", 1), deletes("c", 1))
    assert conflicts_with(told[0], 3)
    assert conflicts_with(told[1], 2)
    assert told[2].record.version == 4
    told = await other.at_once(table, deletes("c", 1), deletes("a", 1), deletes("d", 3))
    assert conflicts_with(told[0], 4)
    assert conflicts_with(told[1], 2)
    assert told[2].record.version == 5
    # From before, at, and behind what each remembers.
    for reader in (one, other):
        told = await reader.at_once(table, *(deletes("d", version) for version in (1, 3, 4)))
        assert all(conflicts_with(outcome, 5) for outcome in told)


@BOTH
async def test_what_is_remembered_of_an_index_made_anew(world, other_index, catalog_managed):
    """It has another epoch, and says the same where the log does."""
    one, other = instance(world), instance(world, index=other_index)
    table = await world.create(catalog_managed=catalog_managed)
    await one.propose(table, proposal(add("a"), add("b"), add("c")))
    await one.propose(table, deletes("a", 1))
    await rebuild_table(other.context, table.id)
    await other.propose(table, deletes("b", 1))
    taken = await taken_from(one, table)
    assert taken.after == taken.through == 3
    told = await one.at_once(table, deletes("a", 1), deletes("b", 1), deletes("c", 1))
    assert conflicts_with(told[0], 2)
    assert conflicts_with(told[1], 3)
    assert told[2].record.version == 4


async def test_a_log_that_was_written_anew_meanwhile(world, other_index):
    """What lay in the log under a version is not what lies there now; only the epoch tells."""
    one, other = instance(world), instance(world, index=other_index)
    table = await world.create()
    await one.propose(table, proposal(add("a"), add("b")))
    await one.propose(table, deletes("a", 1))
    after, before = world.log_file(table, 2), world.log_file(table, 2).read_bytes()
    after.write_bytes(before.replace(b'"a"', b'"b"'))
    await rebuild_table(other.context, table.id)
    await other.propose(table, proposal(add("c")))
    told = await one.at_once(table, deletes("b", 1), deletes("a", 1))
    assert conflicts_with(told[0], 2)
    assert isinstance(told[1], Committed)


@pytest.mark.parametrize("commits", [0, 1, 3, 100])
async def test_what_was_forgotten_is_read_again(world, commits):
    one = instance(world, windows=WindowCache(commits_a_table=commits))
    table = await world.create(catalog_managed=True)
    names = "abcdef"
    await one.propose(table, proposal(*(add(name) for name in names)))
    for number, name in enumerate(names[:5]):
        told = await one.at_once(
            table, *(deletes(before, 1) for before in names[:number]), deletes(name, 1)
        )
        assert [conflict.winner.version for conflict in told[:-1]] == list(range(2, 2 + number))
        assert told[-1].record.version == 2 + number
    held = await taken_from(one, table)
    assert held.through - held.after == min(commits, 6 if commits > 3 else commits)


async def test_tables_that_nobody_commits_to_make_room(world):
    one = instance(world, windows=WindowCache(actions=12))
    tables = [await world.create(catalog_managed=True) for _ in range(4)]
    for table in tables:
        await one.propose(table, proposal(*(add(name) for name in "abc")))
        await one.propose(table, deletes("a", 1))
    assert one.context.windows._weight <= 12
    for table in tables:
        (told,) = await one.at_once(table, deletes("a", 1))
        assert conflicts_with(told, 2)
        (told,) = await one.at_once(table, deletes("b", 1))
        assert told.record.version == 3


@pytest.mark.parametrize(
    ("changed", "database", "kept"),
    [
        ({}, "this", True),
        ({"latest_version": 9, "latest_timestamp": 9_000}, "this", True),
        ({"epoch": 7}, "this", False),
        ({"latest_version": 9, "latest_timestamp": 9_000, "epoch": 7}, "this", False),
        # As after a failover that lost what had been committed.
        ({"latest_version": 1}, "this", False),
        ({"latest_timestamp": 9_000}, "this", False),
        ({}, "another", False),
        ({"latest_version": 9, "latest_timestamp": 9_000}, "another", False),
    ],
)
async def test_what_is_kept_is_held_against_the_row(world, changed, database, kept):
    one = instance(world)
    table = await world.create(catalog_managed=True)
    await one.at_once(table, proposal(add("a")), proposal(add("b")))
    head = await one.context.index.table(table.id)
    window = await taken_from(one, table)
    assert (window.after, window.through) == (0, 2)
    one.context.windows.give(head, window, "this")
    row = replace(head, **changed)
    found = one.context.windows.take(row, database)
    assert (found is window) is kept
    if not kept:
        assert found.after == found.through == row.latest_version


class Forgetful(WindowCache):
    """Remembers nothing."""

    def give(self, table, window, database) -> None:
        pass


@pytest.mark.parametrize("seed", range(6))
async def test_decisions_do_not_depend_on_what_is_remembered(world, other_index, seed):
    """The same proposals to two tables alike: to one through instances with windows, alone or in
    groups, to the other through one that remembers nothing, one by one."""
    dice = random.Random(seed)
    with_windows = [instance(world), instance(world, index=other_index)]
    without = instance(world, windows=Forgetful())
    fast, slow = [await world.create(catalog_managed=seed % 2 == 0) for _ in range(2)]
    names = [f"f{n}" for n in range(8)]
    for _ in range(12):
        head = (await without.context.index.table(slow.id)).latest_version
        group = [drawn(dice, names, head) for _ in range(dice.randint(1, 5))]
        chosen = dice.choice(with_windows)
        found = await chosen.at_once(fast, *group)
        expected = [(await without.at_once(slow, one))[0] for one in group]
        assert [told_of(outcome) for outcome in found] == [told_of(o) for o in expected]


def drawn(dice: random.Random, names: list[str], head: int):
    read_version = dice.choice([None, head, *range(max(0, head - 4), head + 1)])
    match dice.randrange(6):
        case 0:
            return proposal(add(dice.choice(names), x=str(dice.randrange(2))))
        case 1 | 2:
            name = dice.choice(names)
            files = frozenset({name}) if dice.random() < 0.7 else frozenset()
            return proposal(remove(name, None), read_version=read_version, files=files)
        case 3:
            reads = dice.choice([("x = 1",), ("x = 0",), ()])
            return proposal(add(dice.choice(names)), read_version=read_version, predicates=reads)
        case 4:
            number = dice.randrange(3)
            return proposal(Txn(app_id="app", version=number), read_version=read_version)
        case _:
            return proposal(
                add(dice.choice(names)), read_version=read_version, app_ids=frozenset({"app"})
            )


def told_of(outcome) -> tuple[object, ...]:
    match outcome:
        case Committed(record=record):
            return record.version, record.rebased_over, record.isolation_level
        case Conflict():
            return (
                outcome.code,
                outcome.winner.version,
                outcome.path,
                outcome.partition,
                outcome.detail,
            )
        case BaseException():
            return type(outcome), outcome.code
        case _:
            return outcome.code, outcome.detail
