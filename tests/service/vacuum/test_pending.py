"""VACUUM beside proposals that are not decided yet."""

from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.vacuum.vacuuming import AT_ONCE, left, named, plant
from tidegate_service.core.instance.pending_proposals import LEFT_S, PendingProposals
from tidegate_service.core.vacuum.begin import begin_vacuum
from tidegate_service.core.vacuum.vacuum import Stage

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["plain", "catalog-managed"])
async def table(world, request):
    return await world.create(catalog_managed=request.param)


async def test_what_a_proposal_names_that_waits_stays(world, table):
    plant(table, "orphan", "waiting")
    body = proposal(add("waiting"), read_version=0)
    turn = world.context.pending.begin(table.id, body)
    # Another copy of it, which is decided.
    world.context.pending.end(table.id, world.context.pending.begin(table.id, body))
    assert await named(world, table) == {"orphan"}
    world.context.pending.leave(table.id, turn, now_s=world.context.monotonic_s())
    assert await named(world, table) == {"orphan"}
    assert world.context.pending.of(table.id, now_s=world.context.monotonic_s() + 999) == []
    assert await named(world, table) == {"orphan", "waiting"}


async def test_nothing_goes_while_a_proposal_may_land_that_is_not_known(world, table):
    """One that was too large to be kept when its writer left."""
    pending = PendingProposals(left_weight=1)
    small = replace(world, context=replace(world.context, pending=pending))
    plant(table, "orphan", "left")
    turn = pending.begin(table.id, proposal(add("left"), add("more"), read_version=0))
    now_s = world.context.monotonic_s()
    pending.leave(table.id, turn, now_s=now_s)
    vacuum = await begin_vacuum(small.context, table.id, AT_ONCE)
    *_, last = [now async for now in vacuum.progress()]
    assert last.stage is Stage.FAILED
    assert "which files it names is not known" in str(last.error)
    assert left(table) == {"orphan", "left"}
    assert pending.of(table.id, now_s=now_s + LEFT_S) == []
