"""An instance whose clock is far from the database's takes no commits (promise I12)."""

import time
from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import ClockSkew
from tidegate_service.core.log.clock_skew import MAX_CLOCK_SKEW_MS
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

SOON_MS = 2_000
"""Far more than a test's query takes, far less than the limit."""
OFF = pytest.mark.parametrize(
    "off_ms", [MAX_CLOCK_SKEW_MS + SOON_MS, -MAX_CLOCK_SKEW_MS - SOON_MS, 3_600_000, -(10**13)]
)


def with_clock(world: World, off_ms: int) -> World:
    """The same world seen by an instance whose clock is off."""
    return World(replace(world.context, now_ms=lambda: time.time_ns() // 1_000_000 + off_ms))


@OFF
@pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
async def test_it_refuses_what_would_commit_and_answers_what_has(world, off_ms, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    body = proposal(add("a"))
    first = await propose(world.context, table.id, body)
    off = with_clock(world, off_ms)
    for refused in (
        propose(off.context, table.id, proposal(add("b"))),
        conflict_check(off.context, table.id, proposal(add("b"))),
        off.create(catalog_managed=catalog_managed),
    ):
        with pytest.raises(ClockSkew, match=r"clock is \d+ ms (ahead of|behind)"):
            await refused
    again = await propose(off.context, table.id, body)
    assert (again.replayed, again.record) == (True, first.record)
    assert (await get_table(off.context, table.id)).latest_version == 1


async def test_no_fence_either(world):
    table = await world.create()
    with pytest.raises(ClockSkew):
        await abort(with_clock(world, 60_000).context, table.id, "id")
    assert not world.log_file(table, 1).exists()


@pytest.mark.parametrize("off_ms", [MAX_CLOCK_SKEW_MS - SOON_MS, -MAX_CLOCK_SKEW_MS + SOON_MS])
async def test_a_little_is_nothing(world, off_ms):
    table = await world.create()
    landed = await propose(with_clock(world, off_ms).context, table.id, proposal(add("a")))
    # By the database's clock, whatever the instance's says.
    assert abs(landed.record.timestamp - time.time_ns() // 1_000_000) < SOON_MS
