"""Who asked for more than its share is told so after a while, and nobody else waits for it."""

import asyncio

import pytest

from tidegate_service.api.http.refusals import PART, Refusals
from tidegate_service.core.access.roles import ANYBODY, Principal

pytestmark = pytest.mark.anyio

SOMEBODY = Principal(name="p", grants=())


async def waits(refused: Refusals, principal: Principal | None) -> asyncio.Task[None]:
    """Its wait, once it has begun."""
    waiting = asyncio.create_task(refused.wait(principal))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return waiting


async def test_so_many_wait_and_the_rest_is_told_at_once():
    refused = Refusals(2 * PART, delay_s=3600.0)
    first, second = [await waits(refused, SOMEBODY) for _ in range(2)]
    assert not first.done()
    assert not second.done()
    assert (await waits(refused, SOMEBODY)).done()
    first.cancel()
    await asyncio.wait([first])
    # Whoever leaves makes room for another one.
    third = await waits(refused, SOMEBODY)
    assert not third.done()
    for waiting in (second, third):
        waiting.cancel()
    await asyncio.wait([second, third])


async def test_nobody_waits_who_is_not_told_from_others():
    refused = Refusals(1000, delay_s=3600.0)
    assert (await waits(refused, None)).done()
    assert (await waits(refused, ANYBODY)).done()
