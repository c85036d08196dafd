"""Turns go round the principals, and none is lost where somebody leaves."""

import asyncio
import threading

import pytest

from tidegate_service.core.sharing.pools import Pool
from tidegate_service.core.sharing.turns import NestedTurns, OwnTurns, Passes, SharedTurns, Turns

pytestmark = pytest.mark.anyio


async def waiting(turns: Turns, order: list[str], *principals: str) -> list[asyncio.Task[None]]:
    """Those who wait, in this order; each says when it has its turn and keeps it."""

    async def take(principal: str) -> None:
        await turns.take(principal)
        order.append(principal)

    tasks = [asyncio.create_task(take(principal)) for principal in principals]
    await asyncio.sleep(0)
    return tasks


async def test_who_asks_for_much_waits_behind_itself():
    turns, order = Turns(1), list[str]()
    await turns.take("first")
    tasks = await waiting(turns, order, "a", "a", "a", "b", "c", "b")
    for _ in tasks:
        turns.end()
    await asyncio.gather(*tasks)
    assert order == ["a", "b", "c", "a", "b", "a"]


async def test_no_more_at_once_than_may_be():
    turns, order = Turns(2), list[str]()
    tasks = await waiting(turns, order, "a", "a", "a")
    assert order == ["a", "a"]
    turns.end()
    await asyncio.gather(*tasks)
    turns.end()
    turns.end()
    assert len(await waiting(turns, order, "b", "b")) == 2
    assert order == ["a", "a", "a", "b", "b"]


async def test_no_turn_is_lost_whoever_leaves():
    turns, order = Turns(1), list[str]()
    await turns.take("first")
    for task in await waiting(turns, order, "a", "a", "b"):
        task.cancel()
    turns.end()
    await asyncio.wait_for(turns.take("c"), 60)


async def test_a_turn_that_nobody_takes_any_more_goes_on():
    turns, order = Turns(1), list[str]()
    await turns.take("first")
    gone, here = await waiting(turns, order, "a", "b")
    turns.end()
    # It has been given, and not been noticed.
    gone.cancel()
    await asyncio.wait([gone])
    await here
    assert order == ["b"]


class TestPool:
    async def test_who_leaves_keeps_the_thread_busy_to_the_end_of_its_piece(self):
        """Or else others would queue up behind it, out of their turns."""
        pool, begun, go = Pool("test", 1), threading.Event(), threading.Event()
        order: list[str] = []

        def long() -> None:
            begun.set()
            assert go.wait(60)
            order.append("long")

        leaving = asyncio.create_task(pool.run("a", long))
        await asyncio.to_thread(begun.wait, 60)
        after = asyncio.create_task(pool.run("b", order.append, "short"))
        never = asyncio.create_task(pool.run("b", order.append, "never"))
        await asyncio.sleep(0)
        for task in (leaving, never):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not order
        go.set()
        await after
        assert order == ["long", "short"]


async def test_in_each_pass_some_begin_and_principals_have_their_turns():
    passes, order = Passes(2), list[str]()

    async def one(principal: str) -> None:
        await passes.begin(principal)
        order.append(principal)

    begun = [asyncio.create_task(one(principal)) for principal in "aaaaab"]
    in_passes = []
    while len(order) < len(begun):
        before = len(order)
        await asyncio.sleep(0)
        in_passes.append(len(order) - before)
    assert max(in_passes) == 2
    assert order.index("b") <= 3


async def test_each_has_turns_of_its_own():
    turns = OwnTurns(1)
    await turns.take("a")
    await turns.take("b")
    waits = asyncio.create_task(turns.take("a"))
    await asyncio.sleep(0)
    assert not waits.done()
    turns.end("b")
    await asyncio.sleep(0)
    assert not waits.done()
    turns.end("a")
    await waits


async def test_own_turns_are_forgotten_with_the_last_of_them():
    turns = OwnTurns(1)
    await turns.take("a")
    gone = asyncio.create_task(turns.take("a"))
    await asyncio.sleep(0)
    turns.end("a")
    # It was given the turn that it does not take any more.
    gone.cancel()
    await asyncio.wait([gone])
    assert turns.principals == 0


async def test_shared_turns_leave_one_to_others():
    turns = SharedTurns(3)
    done = asyncio.Event()

    async def long(principal):
        async with turns.turn(principal):
            began.append(principal)
            await done.wait()

    began: list[str | None] = []
    held = [asyncio.create_task(long(who)) for who in ["a", "a", "a", None, "b"]]
    for _ in range(5):
        await asyncio.sleep(0)
    assert began == ["a", "a", None]
    done.set()
    await asyncio.gather(*held)
    assert sorted(map(str, began)) == ["None", "a", "a", "a", "b"]


class TestNested:
    """Parts of a principal, `a/1`, have its turns."""

    @staticmethod
    def starting(
        turns: NestedTurns, began: list[str], *names: str
    ) -> tuple[list[asyncio.Task[None]], dict[str, asyncio.Event]]:
        """Each of them says when it has its turn, and keeps it until its event is set."""
        ends = {name: asyncio.Event() for name in names}

        async def one(name: str) -> None:
            principal, part, _ = name.split("/")
            async with turns.turn(principal, part):
                began.append(name)
                await ends[name].wait()

        return [asyncio.create_task(one(name)) for name in names], ends

    @staticmethod
    async def pause() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async def test_a_principal_has_no_more_turns_for_more_parts(self):
        turns, began = NestedTurns(4), list[str]()
        names = [f"a/{part}/0" for part in range(9)]
        tasks, ends = self.starting(turns, began, *names, "b/0/0")
        await self.pause()
        assert began == [*names[:3], "b/0/0"]
        for end in ends.values():
            end.set()
        await asyncio.gather(*tasks)
        assert turns.principals == 0

    async def test_a_part_leaves_turns_to_the_others_of_its_principal(self):
        turns, began = NestedTurns(4), list[str]()
        names = [f"a/0/{number}" for number in range(9)]
        tasks, ends = self.starting(turns, began, *names, "a/1/0")
        await self.pause()
        assert began == [*names[:2], "a/1/0"]
        for end in ends.values():
            end.set()
        await asyncio.gather(*tasks)

    async def test_a_waiting_principal_comes_before_the_next_part_of_another(self):
        turns, began = NestedTurns(2), list[str]()
        tasks, ends = self.starting(turns, began, "a/0/0", "b/0/0", "a/1/0", "a/2/0", "c/0/0")
        await self.pause()
        assert began == ["a/0/0", "b/0/0"]
        ends["b/0/0"].set()
        await self.pause()
        assert began[2:] == ["c/0/0"]
        for end in ends.values():
            end.set()
        await asyncio.gather(*tasks)

    @pytest.mark.parametrize("passes", range(6))
    async def test_whoever_leaves_gives_both_back(self, passes):
        """Whether it waits for the one, the other, or has them."""
        turns, began = NestedTurns(4), list[str]()
        names = [f"{who}/{part}/{n}" for who in "ab" for part in range(3) for n in range(3)]
        tasks, _ = self.starting(turns, began, *names)
        for _ in range(passes):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert turns.principals == 0
        again = [f"{who}/{part}/0" for who in "cd" for part in range(2)]
        tasks, ends = self.starting(turns, began := [], *again)
        await self.pause()
        assert sorted(began) == again
        for end in ends.values():
            end.set()
        await asyncio.gather(*tasks)
