"""What a principal asks of the loop outside of groups is worked on a few at a time, and holds up
nobody else's: conflict checks, aborts and creations."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import uuid4

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_service.core.access.roles import Caller, Principal
from tidegate_service.core.commit.propose import conflict_check
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.context import ABORTS, CHECKS, CREATIONS, Context
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.create import CreateTable, create_table

pytestmark = pytest.mark.anyio

Ask = Callable[[Context, TableRecord], Coroutine[Any, Any, object]]


def check(context: Context, table: TableRecord) -> Coroutine[Any, Any, object]:
    return conflict_check(context, table.id, proposal(add("a")))


def close(context: Context, table: TableRecord) -> Coroutine[Any, Any, object]:
    return abort(context, table.id, uuid4().hex)


def create(context: Context, table: TableRecord) -> Coroutine[Any, Any, object]:
    name = f"main.test.t{uuid4().hex}"
    return create_table(context, CreateTable(name=name, schema=table.metadata.schema_string))


@pytest.mark.parametrize(
    ("ask", "turns_of", "at_once"),
    [
        (check, lambda context: context.checking, CHECKS),
        (close, lambda context: context.aborting, ABORTS),
        (create, lambda context: context.creating, CREATIONS),
    ],
    ids=["conflict checks", "aborts", "creations"],
)
async def test_others_of_a_principal_wait(world: World, ask: Ask, turns_of, at_once: int):
    table = await world.create()

    def asked(name: str) -> asyncio.Task[object]:
        context = world.context.called_by(Caller(principal=Principal(name=name, grants=())))
        return asyncio.create_task(ask(context, table))

    turns = turns_of(world.context)
    for _ in range(at_once):
        await turns.take("one")
    waits, leaves, other = asked("one"), asked("one"), asked("two")
    # Begun after those that wait, and as long as they are.
    await other
    assert not waits.done()
    leaves.cancel()
    await asyncio.sleep(0)
    assert world.context.running.count == 0, "who waits has begun nothing, and leaves nothing"
    turns.end("one")
    await waits
    for _ in range(at_once - 1):
        turns.end("one")
    assert turns.principals == 0
