"""The threads for large commits: whose turn is next, whoever leaves, and of which event loop."""

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


async def test_a_turn_at_them_lasts_for_as_long_as_the_thread_works():
    """Whoever is cancelled meanwhile and comes again would have all of them."""
    go, begun = threading.Event(), list[str]()

    async def work(principal: str) -> None:
        correlation.enter(Correlation(id="r", share=principal))

        def pass_over() -> None:
            begun.append(principal)
            assert go.wait(60)

        await offload.run(offload.HEAVY, pass_over)

    async def began(principal: str, *, times: int) -> None:
        async with asyncio.timeout(60):
            while begun.count(principal) < times:
                await asyncio.sleep(0.001)

    left = asyncio.create_task(work("a"))
    await began("a", times=1)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    again, other = (asyncio.create_task(work(principal)) for principal in "ab")
    try:
        await began("b", times=1)
        assert begun == ["a", "b"]
    finally:
        go.set()
        await asyncio.gather(again, other)
    assert sorted(begun) == ["a", "a", "b"]


def test_nor_is_one_lost_with_its_event_loop():
    """As where an instance ends, and another one goes on in the process."""
    for _ in range(offload.THREADS + 1):
        go, ended = threading.Event(), threading.Event()

        def pass_over(begun: threading.Event, go=go, ended=ended) -> None:
            begun.set()
            assert go.wait(60)
            ended.set()

        async def leave() -> None:
            begun = threading.Event()
            left = asyncio.create_task(offload.run(offload.HEAVY, pass_over, begun))
            async with asyncio.timeout(60):
                while not begun.is_set():
                    await asyncio.sleep(0.001)
            left.cancel()

        asyncio.run(leave())
        go.set()
        assert ended.wait(60)


def test_event_loops_do_not_wait_for_each_others_turns():
    """A turn that one loop ends would not wake another one that sleeps."""
    go, begun = threading.Event(), threading.Semaphore(0)

    def pass_over() -> None:
        begun.release()
        assert go.wait(60)

    def loop() -> threading.Thread:
        work = offload.run(offload.HEAVY, pass_over)
        thread = threading.Thread(target=asyncio.run, args=(work,), daemon=True)
        thread.start()
        return thread

    busy = loop()
    assert begun.acquire(timeout=60)
    other = loop()
    assert begun.acquire(timeout=10)
    go.set()
    for thread in (busy, other):
        thread.join(10)
        assert not thread.is_alive()
