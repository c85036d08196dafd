"""Checkpoints that callers ask for are few at a time, and one for all who ask for the same."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tidegate_service.core.errors import ShuttingDown
from tidegate_service.core.instance.asked_checkpoints import OF_ALL, AskedCheckpoints
from tidegate_service.core.instance.running_commits import RunningCommits

pytestmark = pytest.mark.anyio


class Asking:
    """Callers, and what is written for them: each until `go`."""

    def __init__(self) -> None:
        self.running = RunningCommits()
        self.asked: AskedCheckpoints[int] = AskedCheckpoints()
        self.go = asyncio.Event()
        self.begun: list[tuple[str, int]] = []

    def ask(
        self, table: str, version: int = 1, principal: str = "a", claim=None
    ) -> asyncio.Task[int]:
        async def write() -> int:
            self.begun.append((table, version))
            await self.go.wait()
            return len(self.begun)

        return asyncio.create_task(
            self.asked.written(
                (table, version), write, claim=claim, principal=principal, running=self.running
            )
        )

    async def settle(self) -> list[tuple[str, int]]:
        for _ in range(20):
            await asyncio.sleep(0)
        return self.begun


async def test_one_of_each_principal():
    asking = Asking()
    tasks = [asking.ask(f"t{number}") for number in range(3)]
    other = asking.ask("t9", principal="b")
    assert await asking.settle() == [("t0", 1), ("t9", 1)]
    asking.go.set()
    await asyncio.gather(*tasks, other)
    assert len(asking.begun) == 4


async def test_some_of_all():
    asking = Asking()
    tasks = [asking.ask(f"t{number}", 1, f"c{number}") for number in range(9)]
    assert len(await asking.settle()) == OF_ALL
    asking.go.set()
    await asyncio.gather(*tasks)
    assert len(asking.begun) == 9


async def test_whoever_waits_for_a_claim_has_no_place():
    asking = Asking()
    released = asyncio.Event()

    @asynccontextmanager
    async def claim():
        await released.wait()
        yield

    waiting = [asking.ask(f"t{number}", 1, f"c{number}", claim()) for number in range(OF_ALL)]
    other = asking.ask("t9", 1, "d")
    assert await asking.settle() == [("t9", 1)]
    released.set()
    asking.go.set()
    await asyncio.gather(other, *waiting)
    assert len(asking.begun) == OF_ALL + 1


async def test_the_same_is_written_once():
    asking = Asking()
    mine, again = asking.ask("t0"), asking.ask("t0")
    theirs = asking.ask("t0", principal="b")
    await asking.settle()
    asking.go.set()
    assert await asyncio.gather(mine, again, theirs) == [1, 1, 1]
    assert await asking.ask("t0") == 2


async def test_a_caller_that_leaves_keeps_its_place_until_the_end():
    asking = Asking()
    for number in range(20):
        leaving = asking.ask(f"t{number}")
        await asking.settle()
        leaving.cancel()
    assert await asking.settle() == [("t0", 1)]
    staying = asking.ask("t50")
    asking.go.set()
    assert await staying == 2
    assert await asking.running.drain(timeout_s=1)


async def test_none_is_begun_while_the_instance_stops():
    asking = Asking()
    assert await asking.running.drain(timeout_s=1)
    with pytest.raises(ShuttingDown):
        await asking.ask("t0")
    with pytest.raises(ShuttingDown):
        await asking.ask("t1")
    assert asking.begun == []
