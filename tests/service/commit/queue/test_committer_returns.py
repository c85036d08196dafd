"""A table's next group waits for those who were just answered together, and for nobody else."""

import asyncio

import pytest

from tests.service.commit.queue.crowds import Crowd

pytestmark = pytest.mark.anyio


LINGER_S = 0.5


class Clock:
    """The event loop's, which stands still unless it is told."""

    def __init__(self) -> None:
        self.now_s = 0.0


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock.now_s)
    return clock


async def told(crowd: Crowd, clock: Clock, *ids: str, took_s: float = 2 * LINGER_S) -> None:
    """A group of these has ended."""
    sent = crowd.send("t", *ids)
    await crowd.settle()
    clock.now_s += took_s
    crowd.groups[-1].tell()
    await asyncio.gather(*sent)


async def test_those_who_come_back_go_together(clock):
    crowd = Crowd(linger_s=LINGER_S)
    await told(crowd, clock, "a", "b", "c")
    for name in ("a2", "b2"):
        crowd.send("t", name)
        await crowd.settle()
        assert len(crowd.groups) == 1
    crowd.send("t", "c2")
    await crowd.settle()
    assert crowd.groups[1].ids == ["a2", "b2", "c2"]
    crowd.groups[1].tell()
    await crowd.settle()


async def test_who_was_alone_is_not_waited_for(clock):
    crowd = Crowd(linger_s=LINGER_S)
    await told(crowd, clock, "a")
    crowd.send("t", "b")
    await crowd.settle()
    assert crowd.groups[1].ids == ["b"]
    await crowd.end()


@pytest.mark.parametrize(("took_s", "most_s"), [(LINGER_S / 4, LINGER_S / 4), (9.0, LINGER_S)])
async def test_nobody_waits_longer_than_the_group_took(clock, took_s, most_s):
    crowd = Crowd(linger_s=LINGER_S)
    await told(crowd, clock, "a", "b", "c", took_s=took_s)
    crowd.send("t", "a2")
    clock.now_s += 0.99 * most_s
    await crowd.settle()
    assert len(crowd.groups) == 1
    clock.now_s += 0.02 * most_s
    await crowd.settle()
    assert crowd.groups[1].ids == ["a2"]
    await crowd.end()


async def test_a_table_that_nobody_comes_back_to_is_forgotten(clock):
    crowd = Crowd(linger_s=LINGER_S)
    await told(crowd, clock, "a", "b")
    clock.now_s += LINGER_S
    await crowd.settle()
    assert crowd.is_forgotten()
