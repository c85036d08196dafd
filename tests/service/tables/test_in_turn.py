"""A principal's turns at work on whole tables."""

import asyncio

import pytest

from tidegate_service.core.access.roles import Caller, Principal
from tidegate_service.core.errors import ShuttingDown
from tidegate_service.core.tables.in_turn import in_turn

pytestmark = pytest.mark.anyio


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_one_goes_on_without_its_caller_and_those_that_wait_begin_nothing_without_theirs(
    world,
):
    context = world.context.called_by(Caller(principal=Principal(name="one", grants=())))
    may_end, begun, ended = asyncio.Event(), list[str](), list[str]()

    def asked(name: str, of=context) -> asyncio.Task[None]:
        async def work() -> None:
            begun.append(name)
            await may_end.wait()
            ended.append(name)

        return asyncio.create_task(in_turn(of, of.maintaining, ("forget", name), work))

    first, second, third = asked("first"), asked("second"), asked("third")
    other = asked("other", context.called_by(Caller(principal=Principal(name="two", grants=()))))
    await settled()
    assert begun == ["first", "other"]
    first.cancel()
    second.cancel()
    await settled()
    assert begun == ["first", "other"]
    may_end.set()
    await asyncio.gather(third, other)
    assert ended == ["first", "other", "third"]
    assert context.maintaining.principals == 0


async def test_a_turn_ends_where_an_instance_that_stops_begins_nothing(world):
    context = world.context.called_by(Caller(principal=Principal(name="one", grants=())))
    await context.running.drain(timeout_s=1.0)

    async def work() -> None:
        raise AssertionError("nothing is begun")

    with pytest.raises(ShuttingDown):
        await in_turn(context, context.maintaining, ("forget", "t"), work)
    await settled()
    assert context.maintaining.principals == 0
