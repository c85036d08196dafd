"""Whoever ends between two steps, or makes manifests beside another, leaves none that stay old."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.hooks.hooks import age
from tests.service.manifests.conftest import Keeping
from tests.service.manifests.reading import ENABLED, commit, folder, manifests, read, snapshot
from tests.service.world import World, make_world
from tidegate_service.core.manifests.generate import generate_manifests
from tidegate_service.core.manifests.in_order import KIND
from tidegate_service.core.observe.faults import AnyStep, ManifestStep, Side
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

PATIENCE_S = 20.0


class Killed(BaseException):
    """The process ends here."""


class KilledAt:
    """Ends the process at one side of a step."""

    def __init__(self, step: ManifestStep, side: Side) -> None:
        self._at = (step, side)

    async def reached(self, step: AnyStep, side: Side) -> None:
        if (step, side) == self._at:
            raise Killed


class HeldAt:
    """Holds whoever comes to a step until it is let go."""

    def __init__(self, step: ManifestStep, side: Side) -> None:
        self._at = (step, side)
        self.is_there, self.goes_on = asyncio.Event(), asyncio.Event()

    async def reached(self, step: AnyStep, side: Side) -> None:
        if (step, side) == self._at:
            self.is_there.set()
            await self.goes_on.wait()


async def filled(world: World) -> TableRecord:
    """A table whose second version leaves a partition empty, once manifests were written."""
    table = await world.create(properties=ENABLED)
    await commit(world, table, proposal(add("a"), add("b", "2"), add("c", "3")))
    return table


@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("at", [(step, side) for step in ManifestStep for side in Side])
async def test_the_next_run_makes_them_of_one_version(
    world: World,
    keeping: Keeping,
    engine: AsyncEngine,
    at: tuple[ManifestStep, Side],
    is_first: bool,
):
    table = await filled(world)
    if not is_first:
        await keeping().round()
    stale = folder(table) / "x=9" / "manifest"
    if is_first:
        stale.parent.mkdir(parents=True)
        stale.write_text("of before")
    await commit(world, table, proposal(remove("b", "2"), add("d"), add("e", "4")))
    with pytest.raises(Killed):
        await keeping(faults=KilledAt(*at)).round()
    assert await keeping().round() == 0
    await age(engine)
    assert await keeping().round() == 1
    assert read(table) == snapshot(world, table)


async def test_two_instances_at_once(
    world: World, other_index: Index, keeping: Keeping, engine: AsyncEngine
):
    both = [keeping(), keeping(of=other_index)]
    tables = [await filled(world) for _ in range(3)]
    for number in range(4):
        committing = (
            commit(world, table, proposal(add(f"n{number}", str(number % 3)))) for table in tables
        )
        await asyncio.gather(*(each.round() for each in both), *committing)
    while await both[0].round():
        pass
    for table in tables:
        assert read(table) == snapshot(world, table)


async def test_one_that_stood_still_does_not_leave_older_ones(
    world: World, keeping: Keeping, upkeep: PostgresUpkeep, engine: AsyncEngine
):
    """It lost its claim before it put anything, another came further, and nobody commits again."""
    table = await filled(world)
    await keeping().round()
    await commit(world, table, proposal(add("d")))
    held = HeldAt(ManifestStep.PUT, Side.BEFORE)
    still = asyncio.create_task(keeping(faults=held).round())
    async with asyncio.timeout(PATIENCE_S):
        await held.is_there.wait()
    await age(engine)
    await commit(world, table, proposal(add("e")))
    assert await keeping().round() == 1
    newest = manifests(table)
    held.goes_on.set()
    await still
    assert manifests(table) != newest
    assert (await upkeep.standing(table.id))[KIND].version == 2
    assert await keeping().round() == 1
    assert manifests(table) == newest
    assert read(table) == snapshot(world, table)


async def test_those_that_somebody_asked_for_do_not_stay_older(
    world: World, keeping: Keeping, upkeep: PostgresUpkeep
):
    table = await filled(world)
    await keeping().round()
    held = HeldAt(ManifestStep.PUT, Side.BEFORE)
    context = world.context
    asked = make_world(context.index, context.storage, "", upkeep=upkeep, faults=held).context
    asking = asyncio.create_task(generate_manifests(asked, table.id))
    async with asyncio.timeout(PATIENCE_S):
        await held.is_there.wait()
    await commit(world, table, proposal(add("d"), remove("b", "2")))
    assert await keeping().round() == 1
    held.goes_on.set()
    _, written = await asking
    assert written.version == 1
    assert "x=2" in manifests(table)
    assert await keeping().round() == 1
    assert read(table) == snapshot(world, table)
