"""Proposals to a table that is held wait for the end of that hold, and of no other."""

import asyncio

import pytest

from tidegate_service.core.sharing.pauses import Pauses

pytestmark = pytest.mark.anyio
PATIENCE_S = 20.0


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_nobody_waits_where_nothing_is_held():
    pauses = Pauses()
    with pauses.pausing("a", for_s=PATIENCE_S):
        await pauses.ended("b")
    await pauses.ended("a")


async def test_whoever_comes_meanwhile_waits_for_its_end_alone():
    pauses = Pauses()
    with pauses.pausing("a", for_s=PATIENCE_S):
        waiting = asyncio.create_task(pauses.ended("a"))
        await settled()
        assert not waiting.done()
    with pauses.pausing("a", for_s=PATIENCE_S):
        await settled()
        assert waiting.done()


async def test_a_hold_ends_by_itself():
    pauses = Pauses()
    with pauses.pausing("a", for_s=0.01):
        async with asyncio.timeout(PATIENCE_S):
            await pauses.ended("a")
        await pauses.ended("a")
