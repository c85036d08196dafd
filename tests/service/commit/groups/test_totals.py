"""What those who land together are told of their table: what the group left of it."""

import pytest

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.commit.groups.grouping import instance
from tidegate_service.core.ports.outcomes import TableTotals

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
async def test_all_are_told_of_the_same_version(world, catalog_managed):
    one, table = instance(world), await world.create(catalog_managed=catalog_managed)
    await one.propose(table, proposal(add("old"), add("older")))
    sent = [
        proposal(add("a"), read_version=1),
        # The second of two that name one file: their rows are written one after the other.
        proposal(add("b"), remove("old"), read_version=1, files=frozenset({"old"})),
        proposal(add("older", size=11), read_version=1),
        proposal(add("a"), remove("old"), read_version=1, files=frozenset({"old"})),
    ]
    *landed, lost = await one.at_once(table, *sent)
    assert len(one.groups) == 2
    left = TableTotals(version=4, num_files=3, size_bytes=31)
    assert [outcome.totals for outcome in landed] == [left] * 3
    assert [outcome.check_ms >= 0 for outcome in landed] == [True] * 3
    assert lost.winner.version == 3
    head = await one.context.index.table(table.id)
    assert (head.latest_version, head.num_files, head.size_bytes) == (4, 3, 31)
    # Later, nobody knows any more.
    again = await instance(world).at_once(table, *sent[:3])
    assert [outcome.replayed for outcome in again] == [True] * 3
    assert {(outcome.totals, outcome.check_ms) for outcome in again} == {(None, None)}
