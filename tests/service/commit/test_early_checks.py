"""Many winners are read and judged before the table is locked, and have a bound."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest
from msgspec import structs

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.commit.groups.grouping import instance
from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.errors import IndexUnavailable, Refused, Unavailable
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit, WouldCommit
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.reading.stored_winners import WinnerCalls

pytestmark = pytest.mark.anyio


async def with_commits(one, world, count: int = 4, *, managed: bool = True):
    """A table with so many commits, the instance's memory of which is gone."""
    table = await world.create(catalog_managed=managed)
    for number in range(count):
        await one.propose(table, proposal(add(f"a{number}"), add(f"b{number}")))
    one.context.windows._kept.clear()
    one.groups.clear()
    return table


@pytest.fixture
def held(monkeypatch):
    """The reading of winners without a lock: it waits, from `begun` on, until `may_go_on`."""
    reading = SimpleNamespace(begun=asyncio.Event(), may_go_on=asyncio.Event())
    winner_pages = WinnerCalls.winner_pages

    async def waiting(index, *args, **others):
        reading.begun.set()
        await reading.may_go_on.wait()
        async for page in winner_pages(index, *args, **others):
            yield page

    monkeypatch.setattr(WinnerCalls, "winner_pages", waiting)
    return reading


@pytest.mark.parametrize("managed", [True, False], ids=["catalog-managed", "plain"])
async def test_nobody_waits_for_it(world, held, managed):
    """Others commit to the very table meanwhile, and are winners, too."""
    one = instance(world.limited(locked_winner_bytes=1000))
    table = await with_commits(one, world, managed=managed)
    asked = asyncio.create_task(one.propose(table, small(file="later0")))
    await held.begun.wait()
    removed = proposal(add("later0"), add("later1"))
    assert isinstance(await one.propose(table, removed), Committed)
    deleting = proposal(remove("later0"), read_version=5, files=frozenset({"later0"}))
    assert isinstance(await one.propose(table, deleting), Committed)
    held.may_go_on.set()
    told = await asked
    assert isinstance(told, Conflict), told
    assert told.winner.version == 6
    assert told.code is Code.CONCURRENT_DELETE_READ


async def test_live_files_are_looked_up_under_the_lock(world):
    one = instance(world.limited(locked_winner_bytes=1000))
    table = await with_commits(one, world)
    wrong = proposal(remove("a3"), read_version=0)
    (told,), groups = await grouped(one, (table, wrong))
    assert isinstance(told, Invalid), told
    assert (told.code, told.path) == (Code.INVALID_ACTION, "a3")
    assert len(groups) == 2


async def test_the_same_id_lands_once(world, held):
    """Its second copy comes while the first one is checked, and is checked itself."""
    one = instance(world.limited(locked_winner_bytes=1000))
    table = await with_commits(one, world)
    work = small()
    first = asyncio.create_task(one.propose(table, work))
    await held.begun.wait()
    second = asyncio.create_task(one.propose(table, work))
    await asyncio.sleep(0.05)
    held.may_go_on.set()
    landed, again = await first, await second
    assert isinstance(landed, Committed)
    assert isinstance(again, Committed)
    assert landed.record == again.record
    assert {landed.replayed, again.replayed} == {True, False}


async def test_an_index_made_anew_meanwhile_is_asked_again(world, held):
    one = instance(world.limited(locked_winner_bytes=1000))
    table = await with_commits(one, world, managed=False)
    asked = asyncio.create_task(one.propose(table, small()))
    await held.begun.wait()
    await rebuild(one.context, table.id)
    held.begun.clear()
    held.may_go_on.set()
    told = await asked
    assert held.begun.is_set(), "what was checked before is of another epoch"
    assert isinstance(told, Committed), told
    assert told.record.version == 5


async def test_beside_a_faster_writer_it_ends(world, held, monkeypatch):
    one = instance(world.limited(locked_winner_bytes=1000))
    table = await with_commits(one, world)
    context = replace(one.context, commit_deadline_s=0.4)
    with pytest.raises(IndexUnavailable, match="longer than a request may"):
        await propose(context, table.id, small())
    assert context.windows.memory.taken == 0
    with pytest.raises(IndexUnavailable, match="longer than a request may"):
        await conflict_check(context, table.id, small())


async def test_what_a_proposal_is_by_itself_is_told(world):
    """Nothing to commit, or nothing that can be committed, by the version that was read."""
    one = instance(world.limited(locked_winner_bytes=1000))
    table = await with_commits(one, world)
    nothing = replace(small(), skip_if_empty=True)
    (told,) = await one.at_once(table, nothing)
    assert isinstance(told, NothingToCommit), told
    assert told.read_version == 0
    one.context.windows._kept.clear()
    unknown = structs.replace(table.protocol, writer_features=frozenset({"x"}))
    (told,) = await one.at_once(table, proposal(unknown, read_version=0, operation="X"))
    assert isinstance(told, Invalid), told
    assert isinstance(await conflict_check(one.context, table.id, small()), WouldCommit)


async def test_row_ids_go_on_from_what_the_winners_gave(world):
    """As where the winners are read under the lock."""
    outcomes = []
    for limit in (1, 512 * 1024):
        one = instance(world.limited(locked_winner_bytes=limit))
        table = await world.create(
            catalog_managed=True, properties={"delta.enableRowTracking": "true"}
        )
        for number in range(4):
            await one.propose(table, proposal(_rows(f"a{number}")))
        one.context.windows._kept.clear()
        backwards = proposal(_rows("z"), read_version=1, files=frozenset({"nope"}))
        told = await one.propose(table, backwards)
        assert isinstance(told, Committed), told
        files = [file async for batch in one.context.index.files(table.id, 5) for file in batch]
        outcomes.append({f.path: (f.base_row_id, f.default_row_commit_version) for f in files})
    assert outcomes[0] == outcomes[1]
    assert sorted(base for base, _ in outcomes[0].values()) == [0, 3, 6, 9, 12]


def _rows(path: str):
    return add(path, stats='{"numRecords":3}')


def small(read_version: int = 0, file: str = "nope"):
    """A proposal that is judged by all commits since this version."""
    return proposal(read_version=read_version, files=frozenset({file}))


async def grouped(one, *sent) -> tuple[Sequence[object], list[list[str]]]:
    """What those that arrive together are told, and the groups they were in."""
    told = await one.of_many(sent)
    return told, one.groups


async def test_what_has_many_winners_leaves_the_group_of_others(world):
    one = instance(world.limited(locked_winner_bytes=1000))
    table = await with_commits(one, world)
    other = await world.create(catalog_managed=True)
    asks, writes = small(), proposal(add("x"))
    (judged, landed), groups = await grouped(one, (table, asks), (other, writes))
    assert isinstance(judged, Committed), judged
    assert isinstance(landed, Committed), landed
    # Together at first; then by itself, behind the other, who did not wait for it.
    assert groups == [[asks.transaction_id, writes.transaction_id], [asks.transaction_id]]


async def test_it_is_judged_by_all_that_was_read(world, engine):
    """Page by page, of which each is decoded in a thread."""
    few = IndexLimits(winners_a_page=3, winners_inline_bytes=100)
    paged = replace(world.context, index=PostgresIndex(engine, limits=few))
    world = replace(world, context=paged)
    one = instance(world.limited(locked_winner_bytes=1000))
    table = await with_commits(one, world, 10)
    reader = proposal(add("z"), read_version=1, whole_table=True)
    (told,) = await one.at_once(table, reader)
    assert isinstance(told, Conflict)
    assert told.winner.version == 2
    one.context.windows._kept.clear()
    (told,) = await one.at_once(table, small())
    assert isinstance(told, Committed)
    assert told.record.version == 11


async def test_beyond_a_bound_the_table_has_to_be_read_anew(world):
    one = instance(world.limited(locked_winner_bytes=1000, winner_bytes=2000))
    table = await with_commits(one, world, 6)
    (told,) = await one.at_once(table, small())
    assert isinstance(told, Refused), told
    assert told.code is Code.READ_VERSION_TOO_OLD
    assert "more than 2000 bytes" in told.detail
    with pytest.raises(Refused) as refused:
        await conflict_check(one.context, table.id, small())
    assert refused.value.code is Code.READ_VERSION_TOO_OLD
    # Whoever has read it lately is judged as ever.
    (told,) = await one.at_once(table, small(5))
    assert isinstance(told, Committed)


async def test_what_all_read_again_has_room_together(world):
    limited = world.limited(locked_winner_bytes=1000, winner_bytes=100_000)
    one = instance(limited, windows=WindowCache(memory_bytes=150_000))
    table = await with_commits(one, world, 6)
    memory = one.context.windows.memory
    memory.take("somebody", 60_000)
    one.context.windows._kept.clear()
    (told,) = await one.at_once(table, small())
    assert isinstance(told, Unavailable), told
    assert told.code is Code.BACKPRESSURE
    with pytest.raises(Unavailable):
        await conflict_check(one.context, table.id, small())
    assert memory.taken == 60_000
    memory.give_back("somebody", 60_000)
    (told,) = await one.at_once(table, small())
    assert isinstance(told, Committed)
    assert memory.taken == 0


def test_one_caller_leaves_room_to_another():
    memory, each = WindowCache().memory, CommitLimits().winner_bytes
    for _ in range(2):
        memory.take("a", each)
    with pytest.raises(Unavailable):
        memory.take("a", each)
    memory.take("b", each)
    with pytest.raises(Unavailable):
        memory.take("c", each)


async def test_and_beyond_a_number_of_short_commits(world):
    one = instance(world.limited(winner_commits=4))
    table = await with_commits(one, world, 6)
    (told,) = await one.at_once(table, small())
    assert isinstance(told, Refused), told
    assert told.code is Code.READ_VERSION_TOO_OLD
    (told,) = await one.at_once(table, small(3))
    assert isinstance(told, Committed)
