"""A table's checkpoints are written by one at a time: a caretaker, or whoever was asked."""

import asyncio
from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.committing import quarantine
from tests.service.upkeep.checkpointed import names
from tests.service.world import World
from tidegate_protocol.base.problems import Code
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.checkpoints import on_demand
from tidegate_service.core.checkpoints.on_demand import checkpoint_table, claimed
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import (
    IndexUnavailable,
    NotFound,
    StorageUnavailable,
    TableQuarantined,
    Unavailable,
)
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.observe.faults import CheckpointStep, Side
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.upkeep.checkpoint_interval import Checkpoints
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

KIND = UpkeepKind.CHECKPOINT


class Waiting:
    """Stops before the checkpoint is put, until `go`; `fails` there, or not."""

    def __init__(self, error: Exception | None = None) -> None:
        self.reached_it, self.go = asyncio.Event(), asyncio.Event()
        self._error = error

    async def reached(self, step, side) -> None:
        if (step, side) == (CheckpointStep.CHECKPOINT_PUT, Side.BEFORE):
            self.reached_it.set()
            await self.go.wait()
            if self._error is not None:
                raise self._error


class Noting(PostgresUpkeep):
    """Notes what became of claims, and how often they were renewed."""

    def __init__(self, engine) -> None:
        super().__init__(engine)
        self.claims: list[bool] = []
        self.renewals = 0

    async def claim_now(self, table_id, kind, *, by, for_s) -> bool:
        self.claims.append(await super().claim_now(table_id, kind, by=by, for_s=for_s))
        return self.claims[-1]

    async def extend_claim(self, table_id, kind, *, by, for_s) -> None:
        await super().extend_claim(table_id, kind, by=by, for_s=for_s)
        self.renewals += 1


class Unanswered(PostgresUpkeep):
    """Of which a claim is made, and the answer lost."""

    async def claim_now(self, table_id, kind, *, by, for_s) -> bool:
        await super().claim_now(table_id, kind, by=by, for_s=for_s)
        raise IndexUnavailable("the connection was lost")


@pytest.fixture
def noting(engine) -> Noting:
    return Noting(engine)


@pytest.fixture
def world(world, upkeep) -> World:
    return replace(world, context=replace(world.context, upkeep=upkeep))


@pytest.fixture
async def table(world):
    made = await world.create(properties={"delta.checkpointInterval": "1"})
    await propose(world.context, made.id, proposal(add("a")))
    return made


def claim_of(world, table, **options):
    context = world.context
    return claimed(context.upkeep, table.id, monotonic_s=context.monotonic_s, **options)


async def test_a_caretaker_begins_none_while_one_is_asked_for(world, table, index, upkeep):
    written: list[int] = []

    async def write(table) -> int:
        written.append(table.published_version)
        return table.published_version

    caretaker = Caretaker(index, upkeep, [Checkpoints(write)], share=1)
    waiting = Waiting()
    context = replace(world.context, faults=waiting)
    asked = asyncio.create_task(checkpoint_table(context, table.id, None))
    async with asyncio.timeout(20):
        await waiting.reached_it.wait()
    assert await caretaker.round() == 0
    waiting.go.set()
    assert (await asked)[1].version == 1
    # What is due is due as before.
    assert await caretaker.round() == 1
    assert written == [1]


async def test_one_that_is_asked_for_waits_for_a_caretaker(
    world, table, index, noting, monkeypatch
):
    monkeypatch.setattr(on_demand, "ASKED_EVERY_S", 0.01)
    begun, go = asyncio.Event(), asyncio.Event()

    async def write(table) -> int:
        begun.set()
        await go.wait()
        return table.published_version

    caretaker = Caretaker(index, noting, [Checkpoints(write)], share=1)
    running = asyncio.create_task(caretaker.round())
    async with asyncio.timeout(20):
        await begun.wait()
    with pytest.raises(Unavailable, match="another checkpoint of the table is being") as refused:
        async with claim_of(world, table, within_s=0):
            pass
    assert refused.value.code is Code.BACKPRESSURE
    context = replace(world.context, upkeep=noting)
    asked = asyncio.create_task(checkpoint_table(context, table.id, None))
    async with asyncio.timeout(20):
        while noting.claims.count(False) < 2:
            await asyncio.sleep(0.01)
    assert not asked.done()
    go.set()
    assert await running == 1
    assert (await asked)[1].version == 1
    assert noting.claims[-1] is True


async def test_whoever_fails_leaves_no_claim(world, table, upkeep):
    waiting = Waiting(StorageUnavailable("the store is away"))
    waiting.go.set()
    with pytest.raises(StorageUnavailable):
        await checkpoint_table(replace(world.context, faults=waiting), table.id, None)
    assert await upkeep.claim_now(table.id, KIND, by="me", for_s=60)


async def test_nor_does_whoever_got_no_answer(world, table, engine, upkeep):
    with pytest.raises(IndexUnavailable):
        async with claimed(Unanswered(engine), table.id, monotonic_s=world.context.monotonic_s):
            pass
    assert await upkeep.claim_now(table.id, KIND, by="me", for_s=60)


async def test_a_table_that_was_quarantined_meanwhile_gets_none(world, table, engine, index):
    class Quarantined(PostgresUpkeep):
        async def claim_now(self, table_id, kind, *, by, for_s) -> bool:
            await quarantine(index, table, "for the test")
            return await super().claim_now(table_id, kind, by=by, for_s=for_s)

    context = replace(world.context, upkeep=Quarantined(engine))
    with pytest.raises(TableQuarantined):
        await checkpoint_table(context, table.id, None)
    assert names(table) == []


async def test_a_claim_ends_by_itself(world, table, upkeep):
    assert await upkeep.claim_now(table.id, KIND, by="an instance that died", for_s=-1)
    assert (await checkpoint_table(world.context, table.id, None))[1].version == 1


async def test_a_claim_is_renewed(world, table, noting, upkeep, monkeypatch):
    monkeypatch.setattr(on_demand, "RENEWED_EVERY_S", 0.01)
    # Over as soon as it is made.
    monkeypatch.setattr(on_demand, "CLAIM_S", -1)
    async with claimed(noting, table.id, monotonic_s=world.context.monotonic_s):
        monkeypatch.setattr(on_demand, "CLAIM_S", 60)
        async with asyncio.timeout(20):
            while noting.renewals < 2:
                await asyncio.sleep(0.01)
        assert not await upkeep.claim_now(table.id, KIND, by="me", for_s=60)
    assert await upkeep.claim_now(table.id, KIND, by="me", for_s=60)


async def test_a_table_that_is_gone_is_not_waited_for(world, table):
    await forget_table(world.context, table.id)
    with pytest.raises(NotFound):
        async with claim_of(world, table):
            pass
