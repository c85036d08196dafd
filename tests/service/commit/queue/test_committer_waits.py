"""Those who wait in a committer for long, go away, or wait for a group that fails."""

import asyncio

import pytest

from tests.service.commit.queue.crowds import Crowd
from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import IndexUnavailable, ShuttingDown, Unavailable

pytestmark = pytest.mark.anyio


class TestWaiting:
    """For too long, or with too many."""

    async def test_who_was_never_begun_is_told_so(self):
        crowd = Crowd(wait_s=0.01)
        (first,) = crowd.send("t", "a")
        await crowd.settle()
        (second,) = crowd.send("t", "b")
        with pytest.raises(IndexUnavailable, match=r"took more than 0\.01 s"):
            await second
        assert crowd.committer.waiting == 0
        assert not crowd.context.running.under_way(("t", "b"))
        crowd.groups[0].tell()
        assert (await first).transaction_id == "a"
        await crowd.settle()
        assert len(crowd.groups) == 1
        assert crowd.is_forgotten()

    async def test_whoever_a_group_did_not_get_round_to_in_time_is_told_so(self):
        crowd = Crowd(wait_s=0.01)
        first, second, third = crowd.send("t", "a", "b", "c")
        (later,) = crowd.send("u", "d")
        await crowd.settle()
        a, b, c, d = crowd.groups[0].members
        while not all(member.overdue for member in (a, b, c, d)):
            await asyncio.sleep(0)
        # What is tried a second time may have landed: only the index tells.
        b.attempt, b.alone = 2, True
        crowd.groups[0].leave(again=[b, c], busy=[d])
        assert (await first).transaction_id == "a"
        async with asyncio.timeout(20):
            for overdue in (third, later):
                with pytest.raises(IndexUnavailable):
                    await overdue
        await crowd.settle()
        assert crowd.groups[1].ids == ["b"]
        crowd.groups[1].tell()
        assert (await second).transaction_id == "b"
        await crowd.settle()
        assert crowd.is_forgotten()

    async def test_what_was_tried_before_waits_as_long_as_it_takes(self):
        crowd = Crowd(wait_s=0.01, own=1)
        (first,) = crowd.send("t", "a")
        await crowd.settle()
        (a,) = crowd.groups[0].members
        crowd.send("p", "b", plain=True)
        await crowd.settle()
        a.attempt, a.alone = 2, True
        crowd.groups[0].leave(again=[a])
        (other,) = crowd.send("t", "c")
        with pytest.raises(IndexUnavailable):
            await other
        assert not first.done()
        crowd.groups[1].tell()
        await crowd.settle()
        assert crowd.groups[2].ids == ["a"]
        await crowd.end()

    async def test_more_than_may_wait_are_turned_away(self):
        crowd = Crowd(waiting=3)
        crowd.send("t", "a")
        await crowd.settle()
        waiting = crowd.send("t", "b", "c", "d")
        (beyond,) = crowd.send("t", "e")
        with pytest.raises(Unavailable, match="nothing was done") as refused:
            await beyond
        assert refused.value.code is Code.BACKPRESSURE
        assert not crowd.context.running.under_way(("t", "e"))
        # Other tables have room of their own.
        crowd.send("u", "f")
        await crowd.settle()
        assert crowd.groups[1].ids == ["f"]
        crowd.groups[0].tell()
        await crowd.settle()
        assert crowd.groups[2].ids == ["b", "c", "d"]
        crowd.groups[1].tell()
        crowd.groups[2].tell()
        await asyncio.gather(*waiting)
        assert crowd.is_forgotten()


class TestLeaving:
    """Callers that go away, instances that stop, groups that fail."""

    async def test_a_commit_ends_whether_its_caller_waits_or_not(self):
        crowd = Crowd()
        (begun,) = crowd.send("t", "a")
        await crowd.settle()
        (waiting,) = crowd.send("t", "b")
        await crowd.settle()
        for caller in (begun, waiting):
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller
        assert crowd.context.running.under_way(("t", "a"))
        assert crowd.context.running.under_way(("t", "b"))
        crowd.groups[0].tell()
        await crowd.settle()
        assert not crowd.context.running.under_way(("t", "a"))
        assert crowd.groups[1].ids == ["b"]
        crowd.groups[1].tell()
        await crowd.settle()
        assert crowd.is_forgotten()

    async def test_draining_waits_for_all_and_takes_nobody_new(self):
        crowd = Crowd()
        crowd.send("t", "a")
        await crowd.settle()
        (waiting,) = crowd.send("t", "b")
        await crowd.settle()
        draining = asyncio.create_task(crowd.context.running.drain(timeout_s=20))
        await crowd.settle()
        (late,) = crowd.send("u", "c")
        with pytest.raises(ShuttingDown):
            await late
        crowd.groups[0].tell()
        await crowd.settle()
        assert not draining.done()
        crowd.groups[1].tell()
        assert await draining
        assert waiting.done()
        assert crowd.is_forgotten()

    @pytest.mark.parametrize("error", [LookupError("a defect"), SystemError("worse")])
    async def test_what_a_group_raises_reaches_all_its_members(self, error):
        crowd = Crowd()
        sent = crowd.send("t", "a", "b") + crowd.send("u", "c")
        await crowd.settle()
        crowd.groups[0].end.set_exception(error)
        assert await asyncio.gather(*sent, return_exceptions=True) == [error] * 3
        crowd.send("t", "d")
        await crowd.settle()
        assert crowd.groups[1].ids == ["d"]
        crowd.groups[1].tell()
        await crowd.settle()
        assert crowd.is_forgotten()
