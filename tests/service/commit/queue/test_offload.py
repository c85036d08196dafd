"""The threads for large commits: of one principal, not all."""

import asyncio
import threading

import pytest

from tidegate_service.core.observe import correlation
from tidegate_service.core.observe.correlation import Correlation
from tidegate_service.core.sharing import offload

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("many", ["a", None], ids=["a principal", "the service itself"])
async def test_the_threads_for_large_commits_are_nobodys_alone(many):
    """However much one asks of them, another one's pass begins."""
    go, begun = threading.Event(), list[str | None]()

    async def work(principal: str | None) -> None:
        if principal is not None:
            correlation.enter(Correlation(id="r", share=principal))

        def pass_over() -> None:
            begun.append(principal)
            assert go.wait(60)

        await offload.run(offload.HEAVY, pass_over)

    working = [asyncio.create_task(work(many)) for _ in range(offload.THREADS + 3)]
    await asyncio.sleep(0)
    working.append(asyncio.create_task(work("b")))
    try:
        async with asyncio.timeout(60):
            while "b" not in begun:
                await asyncio.sleep(0.001)
        assert begun.count(many) < offload.THREADS
    finally:
        go.set()
        await asyncio.gather(*working)
