"""Foreign commits in memory: what was just read of the log is not read from the index again."""

import pytest

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.commit.far_ahead import FAR, PORTION, written_past
from tests.service.commit.groups.grouping import instance
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.index.locking import section

pytestmark = pytest.mark.anyio


@pytest.fixture
def asked(monkeypatch) -> list[tuple[int, int]]:
    """The versions that the index was asked for, each time from and behind which to which."""
    found, read_winners = [], section.read_winners

    async def noting(statements, table_id, after, through, **bounds):
        if after < through:
            found.append((after, through))
        return await read_winners(statements, table_id, after, through, **bounds)

    monkeypatch.setattr(section, "read_winners", noting)
    return found


def deletes(path: str, read_version: int):
    return proposal(remove(path), read_version=read_version, files=frozenset({path}))


async def table_of(world, one):
    table = await world.create()
    await one.propose(table, proposal(add("a"), add("b")))
    return table


async def test_a_version_that_took_the_place_of_ours(world, asked):
    one = instance(world)
    table = await table_of(world, one)
    written_past(world, table, 2, 3)
    landed = await one.propose(table, deletes("a", 1))
    assert isinstance(landed, Committed), landed
    assert (landed.record.version, landed.record.rebased_over) == (4, 2)
    told = await one.propose(
        table, proposal(add("c"), read_version=1, predicates=("x = 1",), whole_table=True)
    )
    assert isinstance(told, Conflict), told
    assert told.winner.version == 2
    assert asked == []


@pytest.mark.parametrize("portion", [PORTION, 10 * FAR], ids=["in portions", "at once"])
async def test_versions_that_were_read_without_the_lock(world, asked, portion):
    one = instance(world.limited(portion_versions=portion))
    table = await table_of(world, one)
    written_past(world, table, 2, FAR)
    landed = await one.propose(table, deletes("a", 1))
    assert isinstance(landed, Committed), landed
    assert (landed.record.version, landed.record.rebased_over) == (FAR + 1, FAR - 1)
    assert asked == []


async def test_versions_of_another_instance_are_read(world, other_index, asked):
    """Of the index, which that instance has told of them, and they alone."""
    one, other = instance(world), instance(world, index=other_index)
    table = await table_of(world, one)
    await other.propose(table, proposal(add("theirs")))
    written_past(world, table, 3, FAR)
    landed = await one.propose(table, deletes("a", 1))
    assert isinstance(landed, Committed), landed
    assert (landed.record.version, landed.record.rebased_over) == (FAR + 1, FAR - 1)
    assert asked == [(1, 2)]
