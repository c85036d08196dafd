"""What registering takes of an instance, whoever owns the log."""

import asyncio
import tracemalloc
from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.service.tables.delta_logs import DeltaLog
from tests.service.world import make_world
from tidegate_service.core.access.roles import Caller, Grant, Principal, Role
from tidegate_service.core.sharing.turns import OwnTurns
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.index.locking.section import PostgresCommitSection
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.local import listing

pytestmark = pytest.mark.anyio

PATIENCE_S = 60


@pytest.fixture
def world(index, tmp_path):
    return make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())


@pytest.mark.slow
async def test_names_of_a_log_are_not_held_while_it_is_read(world, tmp_path, monkeypatch):
    held = []
    append = PostgresCommitSection.append

    async def noting(section, *args, **kwargs):
        snapshot = tracemalloc.take_snapshot()
        of_names = snapshot.filter_traces([tracemalloc.Filter(True, listing.__file__)])
        held.append(sum(each.size for each in of_names.statistics("lineno")))
        return await append(section, *args, **kwargs)

    monkeypatch.setattr(PostgresCommitSection, "append", noting)
    log = DeltaLog(tmp_path / "table")
    log.first(at=1)
    log.commit(1, add("f"))
    for number in range(4_000):
        (tmp_path / "table" / "_delta_log" / f"{number:0250}").touch()
    tracemalloc.start()
    try:
        await register_table(world.context, RegisterTable(name="main.a.t", location=log.location))
    finally:
        tracemalloc.stop()
    # The names take 1,200,000 bytes.
    assert held
    assert max(held) < 100_000


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
