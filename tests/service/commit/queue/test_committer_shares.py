"""One caller's flood of proposals is its own: others' wait no longer for it."""

import asyncio

import pytest

from tests.service.commit.queue.crowds import Crowd
from tidegate_protocol.base.problems import Code
from tidegate_service.core.commit.queue.running_groups import HANGS_S, TABLES_OF_ONE
from tidegate_service.core.commit.queue.table_queue import (
    GROUP_ACTIONS,
    MEMBERS_IN_COMPANY,
)
from tidegate_service.core.errors import Unavailable

pytestmark = pytest.mark.anyio


async def refused(tasks: list[asyncio.Task]) -> list[asyncio.Task]:
    """Those that were turned away by now."""
    found = [task for task in tasks if task.done()]
    for task in found:
        error = task.exception()
        assert isinstance(error, Unavailable)
        assert error.code is Code.BACKPRESSURE
    return found


async def test_one_fills_three_quarters_of_a_tables_queue_and_others_the_rest():
    crowd = Crowd(waiting=16)
    crowd.send("t", "first", who="a")
    await crowd.settle()
    flood = crowd.send("t", *(f"a{n}" for n in range(100)), who="a")
    await crowd.settle()
    assert len(await refused(flood)) == 88
    # Each of those who come finds three times what is left after it.
    assert await refused(crowd.send("t", "b0", "b1", "b2", who="b")) == []
    await crowd.settle()
    late = crowd.send("t", "c0", who="c")
    await crowd.settle()
    assert await refused(late) == []
    assert crowd.committer.waiting == 16
    full = crowd.send("t", "d0", who="d")
    await crowd.settle()
    assert await refused(full) == full
    await crowd.end()


async def test_where_nobody_is_told_from_anybody_all_of_it_is_theirs():
    crowd = Crowd(waiting=16)
    crowd.send("t", "first")
    await crowd.settle()
    sent = crowd.send("t", *(f"a{n}" for n in range(17)))
    await crowd.settle()
    assert await refused(sent) == sent[16:]
    await crowd.end()


async def test_callers_of_one_table_take_turns():
    crowd = Crowd()
    crowd.send("t", "first", who="a")
    await crowd.settle()
    crowd.send("t", *(f"a{n}" for n in range(4)), actions=GROUP_ACTIONS, who="a")
    crowd.send("t", "b0", "b1", who="b")
    for _ in range(6):
        crowd.groups[-1].tell()
        await crowd.settle()
    found = [id_ for group in crowd.groups for id_ in group.ids]
    assert found == ["first", "a0", "b0", "a1", "b1", "a2", "a3"]
    assert [len(group.ids) for group in crowd.groups] == [1, 1, 1, 1, 1, 1, 1]
    await crowd.end()


async def test_where_a_table_is_shared_its_own_groups_are_small():
    """Of many proposals of one, another one's waits for a few."""
    crowd = Crowd()
    crowd.send("t", "first", plain=True, who="a")
    await crowd.settle()
    assert not crowd.groups[0].in_company()
    crowd.send("t", *(f"a{n}" for n in range(100)), plain=True, who="a")
    await crowd.settle()
    assert not crowd.groups[0].in_company()
    crowd.send("t", "b0", plain=True, who="b")
    await crowd.settle()
    assert crowd.groups[0].in_company()
    crowd.groups[0].tell()
    await crowd.settle()
    assert crowd.groups[1].ids == ["a0", "b0", *(f"a{n}" for n in range(1, MEMBERS_IN_COMPANY - 1))]
    crowd.groups[1].tell()
    await crowd.settle()
    # The other one may come again.
    assert len(crowd.groups[2].ids) == MEMBERS_IN_COMPANY
    assert crowd.groups[2].in_company()
    await crowd.end()


async def test_tables_of_callers_take_turns():
    """A hundred tables with a third of what a group holds do not come before another's one."""
    crowd = Crowd(shared=1)
    crowd.send("t", "first", who="a")
    await crowd.settle()
    for n in range(100):
        crowd.send(f"t{n}", f"a{n}", actions=GROUP_ACTIONS // 3, who="a")
    crowd.send("u", "b", who="b")
    crowd.send("v", "c", who="c")
    await crowd.settle()
    crowd.groups[0].tell()
    await crowd.settle()
    assert set(crowd.groups[1].ids[:2]) == {"b", "c"}
    await crowd.end()


async def test_a_callers_groups_of_their_own_leave_places_to_others():
    crowd = Crowd(own=12)
    for n in range(50):
        crowd.send(f"t{n}", f"a{n}", plain=True, who="a")
    await crowd.settle()
    begun = len(crowd.groups)
    crowd.send("u", "b", plain=True, who="b")
    await crowd.settle()
    assert begun == crowd.committer._limits.own_of_a_caller == 7
    assert [group.ids for group in crowd.groups[begun:]] == [["b"]]
    await crowd.end()


async def test_one_leaves_a_shared_group_to_others():
    """Whose proposals begin at once, however long the groups of the first are."""
    crowd = Crowd(shared=2)
    for n in range(3):
        crowd.send(f"t{n}", f"a{n}", who="a")
        await crowd.settle()
    crowd.send("u", "b", who="b")
    await crowd.settle()
    assert [group.ids for group in crowd.groups] == [["a0"], ["b"]]
    crowd.groups[0].tell()
    await crowd.settle()
    assert crowd.groups[2].ids == ["a1", "a2"]
    await crowd.end()


async def test_who_shares_a_table_with_one_of_many_does_not_wait_for_all_of_them():
    crowd = Crowd(shared=2)
    crowd.send("t0", "a0", who="a")
    await crowd.settle()
    for n in range(3 * TABLES_OF_ONE):
        crowd.send(f"t{n + 1}", f"a{n + 1}", who="a")
    crowd.send("shared", "a", who="a")
    crowd.send("shared", "b", who="b")
    await crowd.settle()
    assert [sorted(group.ids) for group in crowd.groups] == [["a0"], ["a", "b"]]
    await crowd.end()


@pytest.mark.parametrize("plain", [True, False])
async def test_nor_for_all_of_the_groups_of_their_own(plain):
    """Of plain tables, and of large proposals to others, beside which the other's is small."""
    crowd = Crowd(own=12)
    for n in range(50):
        crowd.send(f"t{n}", f"a{n}", plain=True, who="a")
    await crowd.settle()
    begun = len(crowd.groups)
    crowd.send("shared", "a", plain=plain, actions=GROUP_ACTIONS, who="a")
    crowd.send("shared", "b", plain=plain, who="b")
    await crowd.settle()
    assert begun == crowd.committer._limits.own_of_a_caller
    (group,) = crowd.groups[begun:]
    assert group.ids == ["b"]
    await crowd.end()


async def test_stores_that_hang_count_as_one():
    """Two callers with one each have no more places than those of one store, once that is known."""
    crowd = Crowd(own=12)
    for n in range(50):
        crowd.send(f"x{n}", f"a{n}", plain=True, who="a", store="hangs")
        crowd.send(f"y{n}", f"b{n}", plain=True, who="b", store="hangs_too")
    await crowd.settle()
    assert len(crowd.groups) == 12
    await asyncio.sleep(HANGS_S * 1.1)
    for group in crowd.groups[:12]:
        group.tell()
    await crowd.settle()
    assert len(crowd.groups[12:]) == crowd.committer._limits.own_of_a_store == 9
    crowd.send("z", "c", plain=True, who="c", store="answers")
    await crowd.settle()
    assert crowd.groups[21].ids == ["c"]
    # Once one answers in time, it is one like others.
    next(group for group in crowd.groups[12:] if group.ids[0].startswith("b")).tell()
    await crowd.settle()
    assert sum(not group.end.done() for group in crowd.groups) == 12
    await crowd.end()


async def test_a_large_proposal_that_finds_no_place_is_not_passed_by():
    """Places are all taken by others: a stream of small ones would pass it for ever."""
    crowd = Crowd(own=2)
    crowd.send("t0", "c0", actions=GROUP_ACTIONS, who="c")
    await crowd.settle()
    crowd.send("shared", "large", actions=GROUP_ACTIONS, who="a")
    await crowd.settle()
    crowd.send("shared", "small", who="b")
    await crowd.settle()
    assert [group.ids for group in crowd.groups] == [["c0"]]
    crowd.groups[0].tell()
    await crowd.settle()
    assert crowd.groups[1].ids == ["large"]
    await crowd.end()
