"""Who asked for more than its share is told so after a while, and nobody else waits for it."""

import asyncio

import pytest

from tidegate_service.api.http.problems.refusals import PART, Refusals
from tidegate_service.api.http.request.requests import REFUSALS, Gate, RequestState
from tidegate_service.core.access.roles import ANYBODY, Principal

pytestmark = pytest.mark.anyio

SOMEBODY = Principal(name="p", grants=())
ANOTHER = Principal(name="q", grants=())


class TestAtOnce:
    """So many of a principal's in a while, whatever they are refused for."""

    async def told(self, gate: Gate, principal: Principal) -> asyncio.Task[None]:
        state = RequestState(id="r", principal=principal)
        telling = asyncio.create_task(gate.begin_refusal(state))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return telling

    async def test_a_principal_waits_behind_itself(self):
        gate = Gate(refusals_s=3600.0)
        first = [await self.told(gate, SOMEBODY) for _ in range(REFUSALS + 1)]
        assert [telling.done() for telling in first] == [True] * REFUSALS + [False]
        assert (await self.told(gate, ANOTHER)).done()
        assert (await self.told(gate, ANYBODY)).done()
        first[-1].cancel()
        await asyncio.wait([first[-1]])

    async def test_the_next_ones_have_their_turn_soon(self):
        gate = Gate()
        async with asyncio.timeout(60):
            for _ in range(2 * REFUSALS):
                await gate.begin_refusal(RequestState(id="r", principal=SOMEBODY))


async def waits(refused: Refusals, principal: Principal | None) -> asyncio.Task[bool]:
    """Its wait, once it has begun."""
    waiting = asyncio.create_task(refused.wait(principal))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return waiting


async def test_so_many_wait_and_the_rest_is_told_at_once():
    refused = Refusals(8 * PART, delay_s=3600.0)
    waiting = [await waits(refused, SOMEBODY) for _ in range(6)]
    assert not any(each.done() for each in waiting)
    assert await (await waits(refused, SOMEBODY)) is False
    # One principal leaves room for another.
    waiting.append(await waits(refused, ANOTHER))
    assert not waiting[-1].done()
    assert await (await waits(refused, ANOTHER)) is False
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    # Whoever leaves makes room for another one.
    waiting.append(await waits(refused, ANOTHER))
    assert not waiting[-1].done()
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)


async def test_nobody_waits_who_is_not_told_from_others():
    refused = Refusals(1000, delay_s=3600.0)
    assert await (await waits(refused, None)) is True
    assert await (await waits(refused, ANYBODY)) is True
