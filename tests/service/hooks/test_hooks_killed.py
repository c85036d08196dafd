"""Whoever ends at a hook's step leaves versions that are run again, and none that is left out."""

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.hooks.hooks import Noting, age, caretaker_of
from tests.service.world import World
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.observe.faults import AnyStep, HookStep, Side
from tidegate_service.core.ports.index import Index
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio


class Killed(BaseException):
    """The process ends here."""


class KilledAt:
    """Ends the process at one side of the step, the second time that it is reached."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._left = 2

    async def reached(self, step: AnyStep, side: Side) -> None:
        if (step, side) == (HookStep.HOOK_RUN, self._side):
            self._left -= 1
            if self._left == 0:
                raise Killed


@pytest.mark.parametrize("side", list(Side))
async def test_versions_are_run_again(
    world: World, index: Index, upkeep: PostgresUpkeep, engine: AsyncEngine, side: Side
):
    hook, storage = Noting(), world.context.storage
    killed = await caretaker_of(hook, index, upkeep, storage, faults=KilledAt(side))
    table = await world.create()
    for number in range(2):
        await propose(world.context, table.id, proposal(add(f"f{number}")))
    with pytest.raises(Killed):
        await killed.round()
    before = hook.versions(table.id)
    assert before == ([0] if side is Side.BEFORE else [0, 1])
    other = await caretaker_of(hook, index, upkeep, storage)
    assert await other.round() == 0
    await age(engine)
    assert await other.round() == 1
    assert hook.versions(table.id) == [*before, 0, 1, 2]
