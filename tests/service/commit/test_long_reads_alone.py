"""What takes long to read for one proposal is read in a group of its own, and has a bound."""

import gc
from collections.abc import Sequence

import pytest
from msgspec import structs

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.grouping import instance
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.commit.propose import conflict_check
from tidegate_service.core.errors import Refused, Unavailable
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.sharing import offload
from tidegate_service.index.locking.section import PostgresCommitSection
from tidegate_service.index.reading import stored_winners

pytestmark = pytest.mark.anyio


async def with_commits(one, world, count: int = 4):
    """A table with so many commits, the instance's memory of which is gone."""
    table = await world.create(catalog_managed=True)
    for number in range(count):
        await one.propose(table, proposal(add(f"a{number}"), add(f"b{number}")))
    one.context.windows._kept.clear()
    one.groups.clear()
    return table


def small(read_version: int = 0, file: str = "nope"):
    """A proposal that is judged by all commits since this version."""
    return proposal(read_version=read_version, files=frozenset({file}))


async def grouped(one, *sent) -> tuple[Sequence[object], list[list[str]]]:
    """What those that arrive together are told, and the groups they were in."""
    told = await one.of_many(sent)
    return told, one.groups


async def test_what_is_read_again_leaves_the_group_of_others(world):
    one = instance(world.limited(shared_winner_bytes=1000))
    table = await with_commits(one, world)
    other = await world.create(catalog_managed=True)
    asks, writes = small(), proposal(add("x"))
    (judged, landed), groups = await grouped(one, (table, asks), (other, writes))
    assert isinstance(judged, Committed), judged
    assert isinstance(landed, Committed), landed
    # CommitGroup at first; then by itself, behind the other, who did not wait for it.
    assert groups == [[asks.transaction_id, writes.transaction_id], [asks.transaction_id]]


async def test_a_little_is_read_in_the_group_of_others(world):
    one = instance(world)
    table = await with_commits(one, world)
    other = await world.create(catalog_managed=True)
    asks, writes = small(), proposal(add("x"))
    told, groups = await grouped(one, (table, asks), (other, writes))
    assert all(isinstance(outcome, Committed) for outcome in told)
    assert groups == [[asks.transaction_id, writes.transaction_id]]


async def test_it_is_judged_by_all_that_was_read(world, monkeypatch):
    """Page by page, of which each is decoded in a thread."""
    monkeypatch.setattr(stored_winners, "PAGE_WINNERS", 3)
    monkeypatch.setattr(stored_winners, "AT_ONCE_BYTES", 100)
    one = instance(world.limited(shared_winner_bytes=1000))
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
    one = instance(world.limited(shared_winner_bytes=1000, winner_bytes=2000))
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
    limited = world.limited(shared_winner_bytes=1000, winner_bytes=100_000)
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


async def test_a_refusal_holds_nothing_of_it(world):
    """However long the error lives: nobody collects what refers to itself."""
    limited = world.limited(shared_winner_bytes=1000, winner_bytes=2000)
    one = instance(limited, windows=WindowCache(memory_bytes=6000))
    table = await with_commits(one, world, 6)
    gc.disable()
    try:
        for _ in range(5):
            (told,) = await one.at_once(table, small())
            assert isinstance(told, Refused), told
            with pytest.raises(Refused):
                await conflict_check(one.context, table.id, small())
            assert one.context.windows.memory.taken == 0
    finally:
        gc.enable()


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


async def with_a_feature(one, world):
    """A table of which a writer may take a feature away, which asks something of each live file."""
    table = await world.create(
        catalog_managed=True, properties={"delta.feature.deletionVectors": "supported"}
    )
    await one.propose(table, proposal(add("a"), add("b")))
    one.groups.clear()
    kept = {
        name: getattr(table.protocol, name) - {"deletionVectors"}
        for name in ("reader_features", "writer_features")
    }
    return table, structs.replace(table.protocol, **kept)


def drops(protocol, read_version: int):
    return proposal(protocol, read_version=read_version, operation="DROP FEATURE", whole_table=True)


async def test_what_asks_every_live_file_leaves_the_group_of_others(world):
    one = instance(world)
    table, protocol = await with_a_feature(one, world)
    other = await world.create(catalog_managed=True)
    asks, writes = drops(protocol, 1), proposal(add("x"))
    (judged, landed), groups = await grouped(one, (table, asks), (other, writes))
    assert isinstance(judged, Committed), judged
    assert isinstance(landed, Committed), landed
    assert groups == [[asks.transaction_id, writes.transaction_id], [asks.transaction_id]]


async def test_no_file_is_asked_where_there_is_a_conflict(world, monkeypatch):
    asked = []
    live_files = PostgresCommitSection.live_files

    def noting(section, version):
        asked.append(version)
        return live_files(section, version)

    monkeypatch.setattr(PostgresCommitSection, "live_files", noting)
    one = instance(world)
    table, protocol = await with_a_feature(one, world)
    (told,) = await one.at_once(table, drops(protocol, 0))
    assert isinstance(told, Conflict), told
    assert asked == []
    (told,) = await one.at_once(table, drops(protocol, 1))
    assert isinstance(told, Committed)
    assert asked == [1]


async def test_long_metadata_leaves_the_group_of_others(world):
    """Its expressions are read under the lock."""
    one = instance(world)
    table, other = [await world.create(catalog_managed=True) for _ in range(2)]
    comment = {"description": "x" * offload.LONG_METADATA}
    changes = proposal(with_fields(table.metadata, comment), read_version=0, operation="X")
    writes = [proposal(add("x")), proposal(add("y"))]
    told, groups = await grouped(one, (table, changes), (table, writes[0]), (other, writes[1]))
    assert all(isinstance(outcome, Committed) for outcome in told), told
    first, second = groups[0], groups[1:]
    assert changes.transaction_id in first
    assert [changes.transaction_id] in second
