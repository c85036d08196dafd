"""A VACUUM that ends at any of its steps: nothing that the log names is lost, and the next one
finds what was left."""

import asyncio

import pytest

from tests.builders.by_x import add, remove
from tests.service.vacuum.vacuuming import AT_ONCE, ended, land, left, plant
from tests.service.world import World
from tidegate_service.core.observe.faults import Side, Step, VacuumStep
from tidegate_service.core.vacuum.begin import begin_vacuum

pytestmark = pytest.mark.anyio

POINTS = [(step, side) for step in VacuumStep for side in Side]


class Killed(BaseException):
    """What nothing of the service handles, as a kill."""


class At:
    """Ends whoever gets to the point for the `nth` time."""

    def __init__(self, step: VacuumStep, side: Side, nth: int = 1) -> None:
        self._point = (step, side)
        self._left = nth

    async def reached(self, step: Step | VacuumStep, side: Side) -> None:
        if (step, side) == self._point:
            self._left -= 1
            if self._left == 0:
                raise Killed


def faulted(world: World, faults: At) -> World:
    context = world.context.called_by(world.context.caller)
    object.__setattr__(context, "faults", faults)
    return World(context)


async def busy(world: World, *, catalog_managed: bool = False):
    """A table with 2,500 orphans, of which S3 and we delete a thousand at a time."""
    table = await world.create(catalog_managed=catalog_managed)
    plant(table, "live", "x=1/live", "removed", *(f"x={n % 5}/orphan-{n}" for n in range(2_500)))
    await land(world, table, add("live"), add("x=1/live"), add("removed"))
    await land(world, table, remove("removed"))
    return table


async def killed(world: World, table, faults: At) -> None:
    vacuum = await begin_vacuum(faulted(world, faults).context, table.id, AT_ONCE)
    with pytest.raises(Killed):
        async for _ in vacuum.progress():
            pass
    # Tasks of a process that is killed do not go on.
    assert [task for task in asyncio.all_tasks() if task.get_name() == "vacuum"] == []


@pytest.mark.parametrize(("step", "side"), POINTS)
async def test_a_kill_loses_nothing_that_the_log_names(world, step, side):
    table = await busy(world)
    await killed(world, table, At(step, side))
    assert {"live", "x=1/live"} <= left(table)
    if step in (VacuumStep.V1_LIST, VacuumStep.V2_START):
        assert len(left(table)) == 2_503
    await ended(world, table)
    assert left(table) == {"live", "x=1/live"}


async def test_so_does_one_between_two_batches_of_a_catalog_managed_table(world):
    table = await busy(world, catalog_managed=True)
    # Batches are deleted beside each other: the second may be the last one that ends.
    await killed(world, table, At(VacuumStep.V3_DELETE, Side.BEFORE, nth=2))
    found = left(table)
    assert {"live", "x=1/live"} <= found
    assert len(found) > 2
    await ended(world, table)
    assert left(table) == {"live", "x=1/live"}


async def test_whoever_leaves_ends_it(world):
    table = await busy(world)
    vacuum = await begin_vacuum(world.context, table.id, AT_ONCE)
    progress = vacuum.progress()
    await anext(progress)
    await progress.aclose()
    assert [task for task in asyncio.all_tasks() if task.get_name() == "vacuum"] == []
    assert len(left(table)) == 2_503
