"""Questions that are answered together: all of those that wait, each with its own answer."""

import asyncio
from collections.abc import Sequence

import pytest

from tidegate_service.index.postgres.batching import Batching

pytestmark = pytest.mark.anyio

PATIENCE_S = 20.0


class Answering:
    """Answers with the double, once it may; notes what was asked together, and when."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.times: list[float] = []
        self.ended = 0
        self.begun = asyncio.Event()
        self.may = asyncio.Event()
        self.may.set()

    async def __call__(self, asked: Sequence[int]) -> Sequence[int]:
        self.asked.append(list(asked))
        self.times.append(asyncio.get_running_loop().time())
        self.begun.set()
        try:
            await self.may.wait()
        finally:
            self.ended += 1
        if -1 in asked:
            raise ZeroDivisionError("a bad question")
        return [2 * number for number in asked]


async def test_who_asks_meanwhile_is_answered_with_all_who_did():
    answering = Answering()
    batching = Batching(answering, apart_s=0.0)
    answering.may.clear()
    first = asyncio.create_task(batching.ask(1))
    await answering.begun.wait()
    others = [asyncio.create_task(batching.ask(n)) for n in (2, 3)]
    await asyncio.sleep(0)
    answering.may.set()
    assert await asyncio.gather(first, *others) == [2, 4, 6]
    assert answering.asked == [[1], [2, 3]]


async def test_what_is_raised_is_raised_to_those_of_that_time_alone():
    answering = Answering()
    batching = Batching(answering, apart_s=0.0)
    found = await asyncio.gather(batching.ask(-1), batching.ask(1), return_exceptions=True)
    assert [type(one) for one in found] == [ZeroDivisionError] * 2
    assert await batching.ask(1) == 2


async def test_when_the_last_one_has_left_nothing_is_under_way():
    answering = Answering()
    batching = Batching(answering, apart_s=0.0)
    answering.may.clear()
    leaving = [asyncio.create_task(batching.ask(n)) for n in (1, 2)]
    await answering.begun.wait()
    for one in leaving:
        one.cancel()
    await asyncio.wait(leaving)
    assert answering.ended == 1
    answering.may.set()
    async with asyncio.timeout(PATIENCE_S):
        assert await batching.ask(3) == 6
    assert answering.asked == [[1, 2], [3]]


async def test_who_comes_while_the_last_one_leaves_is_answered():
    answering = Answering()
    batching = Batching(answering, apart_s=0.0)
    answering.may.clear()
    leaving = asyncio.create_task(batching.ask(1))
    await answering.begun.wait()
    leaving.cancel()
    coming = asyncio.create_task(batching.ask(2))
    answering.may.set()
    async with asyncio.timeout(PATIENCE_S):
        assert await coming == 4
    assert leaving.cancelled()
