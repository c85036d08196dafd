"""What registering takes of an instance, whoever owns the log."""

import asyncio
from dataclasses import replace

import pytest

from tests.service.tables.delta_logs import DeltaLog
from tests.service.world import make_world
from tidegate_service.core.access.roles import Caller, Grant, Principal, Role
from tidegate_service.core.sharing.turns import OwnTurns
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

PATIENCE_S = 60


@pytest.fixture
def world(index, tmp_path):
    return make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())


class Asked(OwnTurns):
    """Says when a turn is waited for."""

    def __init__(self, at_once):
        super().__init__(at_once)
        self.waits = asyncio.Event()

    async def take(self, principal):
        if principal in self._of:
            self.waits.set()
        await super().take(principal)


async def test_a_principal_has_turns_at_it(world, tmp_path):
    turns = Asked(1)
    context = replace(world.context, registering=turns)
    grants = (Grant(role=Role.ADMIN, scope="*"),)
    for name in ("one", "two"):
        DeltaLog(tmp_path / name).first(at=1)

    async def register(name):
        of = context.called_by(Caller(principal=Principal(name=name, grants=grants)))
        location = (tmp_path / name).as_uri()
        return await register_table(of, RegisterTable(name=f"main.a.{name}", location=location))

    async with turns.turn("one"):
        waiting = asyncio.create_task(register("one"))
        async with asyncio.timeout(PATIENCE_S):
            await turns.waits.wait()
            assert (await register("two"))[1]
        assert await context.index.table("main.a.one") is None
    assert (await waiting)[1]
    assert turns.principals == 0
