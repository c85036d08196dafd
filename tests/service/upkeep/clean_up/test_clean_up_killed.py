"""A clean-up that ends anywhere leaves a log, and the next one goes on with it."""

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.service.upkeep.aged import (
    LogOf,
    expired,
    is_readable,
)
from tests.service.upkeep.conftest import Caring
from tests.service.world import World
from tidegate_service.core.limits import UpkeepLimits
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.observe.faults import CleanUpStep, Side

pytestmark = pytest.mark.anyio


class Killed(BaseException):
    """The process ends here."""


class KilledAt:
    """Ends the process at one side of a step, the given time that it is reached."""

    def __init__(self, at: tuple[CleanUpStep, int], side: Side) -> None:
        step, self._left = at
        self._at = (step, side)

    async def reached(self, step, side) -> None:
        if (step, side) == self._at:
            self._left -= 1
            if self._left == 0:
                raise Killed


STEPS = [
    (CleanUpStep.L1_CHECK, 1),
    (CleanUpStep.L2_RECORD, 1),
    (CleanUpStep.L3_REMOVE, 1),
    (CleanUpStep.L3_REMOVE, 2),
    (CleanUpStep.L3_REMOVE, 3),
    (CleanUpStep.L4_REMOVE_SIDECARS, 1),
]


@pytest.mark.parametrize(
    ("at", "side"),
    # Nothing is deleted between the end of a step and the beginning of the next.
    [
        (STEPS[0], Side.BEFORE),
        (STEPS[2], Side.BEFORE),
        *((step, Side.AFTER) for step in STEPS),
    ],
)
class TestKilled:
    async def test_whatever_is_left_is_a_log(
        self, world: World, engine: AsyncEngine, caring: Caring, at, side
    ):
        table = await expired(world, engine)
        log = LogOf(world, table)
        with pytest.raises(Killed):
            await caring(faults=KilledAt(at, side), limits=UpkeepLimits(removed=2)).round()
        await is_readable(world.context.index, log, table)
        assert (await verify_table(world.context, table.id)).differences == ()
        async with engine.begin() as connection:
            await connection.execute(
                text("UPDATE table_upkeep SET claimed_until = claimed_until - interval '1 day'")
            )
        assert await caring().round() == 1
        assert (log.versions, log.checkpoints) == ([5, 6, 7, 8, 9], [5, 8])
        await is_readable(world.context.index, log, table)
