"""A table's next group waits for those who were just answered together, and for nobody else."""

import asyncio

import pytest

from tests.service.commit.queue.crowds import Crowd
from tidegate_service.core.commit.queue.table_queue import GROUP_ACTIONS

pytestmark = pytest.mark.anyio

LONG_S = 3600.0


async def told(crowd: Crowd, *ids: str, table: str = "t") -> None:
    """A group of these has ended."""
    sent = crowd.send(table, *ids)
    await crowd.settle()
    crowd.groups[-1].tell()
    await asyncio.gather(*sent)


async def test_those_who_come_back_go_together():
    crowd = Crowd(quiet_s=LONG_S)
    await told(crowd, "a", "b", "c")
    for name in ("a2", "b2"):
        crowd.send("t", name)
        await crowd.settle()
        assert len(crowd.groups) == 1
    crowd.send("t", "c2")
    await crowd.settle()
    assert crowd.groups[1].ids == ["a2", "b2", "c2"]
    crowd.groups[1].tell()
    await crowd.settle()


async def test_those_who_waited_already_go_with_them():
    crowd = Crowd(quiet_s=LONG_S)
    crowd.send("t", "a", "b")
    await crowd.settle()
    crowd.send("t", "x", "y")
    await crowd.settle()
    crowd.groups[0].tell()
    await crowd.settle()
    assert len(crowd.groups) == 1
    crowd.send("t", "a2", "b2")
    await crowd.settle()
    assert crowd.groups[1].ids == ["x", "y", "a2", "b2"]
    crowd.groups[1].tell()
    await crowd.settle()


async def test_who_was_alone_is_not_waited_for():
    crowd = Crowd(quiet_s=LONG_S)
    await told(crowd, "a")
    crowd.send("t", "b")
    await crowd.settle()
    assert crowd.groups[1].ids == ["b"]
    await crowd.end()


async def test_nobody_waits_longer_than_it_is_quiet():
    crowd = Crowd(quiet_s=0.0)
    await told(crowd, "a", "b", "c")
    crowd.send("t", "a2")
    await crowd.settle()
    assert crowd.groups[1].ids == ["a2"]
    await crowd.end()


async def test_no_table_waits_for_those_of_another():
    crowd = Crowd(quiet_s=LONG_S)
    await told(crowd, "a", "b")
    crowd.send("u", "c")
    await crowd.settle()
    assert crowd.groups[1].ids == ["c"]
    crowd.groups[1].tell()
    await crowd.settle()


async def test_nobody_is_waited_for_who_has_no_answer_yet():
    crowd = Crowd(quiet_s=LONG_S)
    crowd.send("t", "a", "b", "c")
    await crowd.settle()
    crowd.groups[0].leave(again=crowd.groups[0].members[:1])
    await crowd.settle()
    assert crowd.groups[1].ids == ["a"]
    await crowd.end()


async def test_a_table_that_nobody_comes_back_to_is_forgotten():
    crowd = Crowd(quiet_s=0.0)
    await told(crowd, "a", "b")
    await crowd.settle()
    assert crowd.is_forgotten()


async def test_no_wait_goes_on_for_longer_than_the_group_took(monkeypatch):
    crowd = Crowd(quiet_s=1.0)
    now = 0.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    await told(crowd, "a", "b", "c")
    crowd.send("t", "a2")
    await crowd.settle()
    assert len(crowd.groups) == 1
    # Somebody has come since the last look, so others may; but the group took no time.
    now = 1.0
    await crowd.settle()
    assert crowd.groups[1].ids == ["a2"]
    await crowd.end()


async def test_nobody_is_waited_for_where_a_group_is_full():
    crowd = Crowd(quiet_s=LONG_S)
    crowd.send("t", "a", "b")
    await crowd.settle()
    crowd.send("t", "x", "y", actions=GROUP_ACTIONS // 2)
    await crowd.settle()
    crowd.groups[0].tell()
    await crowd.settle()
    assert crowd.groups[1].ids == ["x", "y"]
    crowd.groups[1].tell()
    await crowd.settle()


async def test_nobody_is_waited_for_before_one_that_goes_alone():
    crowd = Crowd(quiet_s=LONG_S)
    crowd.send("t", "a", "b")
    await crowd.settle()
    crowd.send("t", "x", alone=True)
    await crowd.settle()
    crowd.groups[0].tell()
    await crowd.settle()
    assert crowd.groups[1].ids == ["x"]
    await crowd.end()
