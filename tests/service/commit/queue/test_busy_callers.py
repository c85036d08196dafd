"""A caller who keeps the event loop busy leaves time to others, while these commit, too."""

import asyncio
import time

import pytest

from tests.service.commit.queue.crowds import Crowd
from tidegate_service.core.commit.queue.busy_callers import ACTIONS_IN_COMPANY
from tidegate_service.core.commit.queue.limits import QueueLimits
from tidegate_service.core.commit.queue.table_queue import GROUP_ACTIONS, who_of

pytestmark = pytest.mark.anyio

TOOK_S = 0.05
"""Of a group that somebody rests after."""
LONG_S = 0.03
"""Of a pass of the event loop."""


async def decided(
    crowd: Crowd, table: str, *ids: str, who: str | None, took_s: float = 0.0
) -> None:
    """A group of these proposals, which took so long."""
    begun = len(crowd.groups)
    crowd.send(table, *ids, who=who)
    await crowd.settle()
    assert [group.ids for group in crowd.groups[begun:]] == [list(ids)]
    await asyncio.sleep(took_s)
    crowd.groups[-1].tell()
    await crowd.settle()


async def begun(
    crowd: Crowd, table: str, id_: str, *, who: str | None, plain: bool = False
) -> bool:
    """Whether a proposal's group begins at once."""
    before = len(crowd.groups)
    crowd.send(table, id_, who=who, plain=plain)
    await crowd.settle()
    return len(crowd.groups) > before


@pytest.mark.slow
async def test_rests_for_as_long_as_its_group_took():
    crowd = Crowd(rest_s=10.0)
    await decided(crowd, "of_b", "b0", who="b")
    await decided(crowd, "of_a", "a0", "a1", "a2", "a3", who="a", took_s=TOOK_S)
    ended = asyncio.get_running_loop().time()
    assert not await begun(crowd, "of_a", "a4", who="a")
    assert not await begun(crowd, "another_of_a", "a5", who="a")
    assert await begun(crowd, "of_b", "b1", who="b")
    crowd.groups[-1].tell()
    while crowd.groups[-1].ids == ["b1"]:
        await asyncio.sleep(0.001)
    assert asyncio.get_running_loop().time() - ended >= TOOK_S * 0.9
    assert crowd.groups[-1].ids == ["a4", "a5"]
    await crowd.end()


async def test_shared_groups_are_small_in_company():
    """Alone, one caller's group is as large as any."""
    crowd = Crowd()
    for which, company in enumerate([False, True]):
        if company:
            await decided(crowd, "of_b", "b", who="b")
        await decided(crowd, "of_a", f"first{which}", who="a")
        crowd.send("of_a", f"holds{which}", who="a")
        await crowd.settle()
        members = [crowd.member("of_a", f"{which}{n}", actions=100, who="a") for n in range(40)]
        tasks = [asyncio.create_task(crowd.committer.wait(member)) for member in members]
        await crowd.settle()
        crowd.groups[-1].tell()
        await crowd.settle()
        most = ACTIONS_IN_COMPANY if company else GROUP_ACTIONS
        assert len(crowd.groups[-1].ids) == most // 100
        await crowd.end()
        await asyncio.gather(*tasks)


OWN = QueueLimits().own_of_a_caller


async def ended(crowd: Crowd, *, pass_s: float = 0.0) -> None:
    """The oldest group ends in a pass of the loop that takes so long."""
    loop = asyncio.get_running_loop()
    next(group for group in crowd.groups if not group.end.done()).tell()
    # After the group's own part of the pass.
    loop.call_soon(time.sleep, pass_s)
    await crowd.settle()


def running(crowd: Crowd, who: str) -> int:
    return sum(not group.end.done() and who_of(group.members[0]) == who for group in crowd.groups)


async def with_plain_tables(crowd: Crowd, *, actions: int = 1) -> None:
    """Of "a", whose groups take all of its places, beside "b", which has committed."""
    await decided(crowd, "of_b", "b0", who="b")
    for n in range(200):
        crowd.send(f"of_a{n}", f"a{n}", who="a", plain=True, actions=actions)
    await crowd.settle()
    assert running(crowd, "a") == OWN


@pytest.mark.slow
async def test_has_fewer_groups_of_its_own_while_passes_of_the_loop_are_long():
    crowd = Crowd(long_pass_s=LONG_S)
    await with_plain_tables(crowd, actions=900)
    while running(crowd, "a") > 1:
        await ended(crowd, pass_s=LONG_S)
    await ended(crowd, pass_s=LONG_S)
    assert running(crowd, "a") == 1
    assert await begun(crowd, "plain_of_b", "b1", who="b", plain=True)
    crowd.groups[-1].tell()
    while running(crowd, "a") < OWN:
        await ended(crowd)
    await crowd.end()
