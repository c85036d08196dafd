"""Who goes with whom, and who waits: the committer alone, with groups that end when told to."""

import asyncio

import pytest

from tests.service.commit.queue.crowds import Crowd
from tidegate_service.core.commit.queue.table_queue import GROUP_ACTIONS, GROUP_MEMBERS

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("plain", [False, True])
async def test_who_is_alone_begins_at_once(plain):
    crowd = Crowd()
    (one,) = crowd.send("t", "a", plain=plain)
    await crowd.settle()
    (group,) = crowd.groups
    assert (group.ids, group.wait) == (["a"], plain)
    group.tell()
    assert (await one).transaction_id == "a"
    assert crowd.is_forgotten()


async def test_all_that_have_arrived_go_together_in_their_order():
    crowd = Crowd()
    first = crowd.send("t", "a")
    await crowd.settle()
    names = [f"b{n}" for n in range(10)]
    later = crowd.send("t", *names)
    await crowd.settle()
    assert [group.ids for group in crowd.groups] == [["a"]], "one group of a table at a time"
    assert crowd.committer.waiting == 10
    crowd.groups[0].tell()
    await crowd.settle()
    assert crowd.groups[1].ids == names
    crowd.groups[1].tell()
    told = await asyncio.gather(*first, *later)
    assert [outcome.transaction_id for outcome in told] == ["a", *names]
    assert crowd.is_forgotten()


async def test_tables_share_a_group():
    crowd = Crowd()
    sent = [task for n in range(5) for task in crowd.send(f"t{n}", f"a{n}", f"b{n}")]
    await crowd.settle()
    (group,) = crowd.groups
    assert group.ids == [f"{which}{n}" for n in range(5) for which in "ab"]
    assert not group.wait
    group.tell()
    await asyncio.gather(*sent)
    assert crowd.is_forgotten()


async def test_an_id_that_is_named_twice_waits_for_its_first_copy():
    crowd = Crowd()
    crowd.send("t", "a", "b", "a", "c", "a")
    crowd.send("u", "a")
    await crowd.settle()
    # Ids are of a table; another one's does not matter.
    assert crowd.groups[0].ids == ["a", "b", "c", "a"]
    assert crowd.context.running.under_way(("t", "a"))
    crowd.groups[0].tell()
    await crowd.settle()
    assert crowd.groups[1].ids == ["a"]
    crowd.groups[1].tell()
    await crowd.settle()
    assert crowd.context.running.under_way(("t", "a"))
    crowd.groups[2].tell()
    await crowd.settle()
    assert not crowd.context.running.under_way(("t", "a"))
    assert len(crowd.groups) == 3
    assert crowd.is_forgotten()


async def test_a_large_proposal_goes_by_itself():
    crowd = Crowd()
    crowd.send("t", "a")
    crowd.send("t", "large", actions=GROUP_ACTIONS + 1)
    crowd.send("t", "b")
    for _ in range(3):
        await crowd.settle()
        crowd.groups[-1].tell()
    await crowd.settle()
    assert [group.ids for group in crowd.groups] == [["a"], ["large"], ["b"]]
    assert [group.wait for group in crowd.groups] == [False, True, False]
    assert crowd.is_forgotten()


async def test_a_plain_table_has_groups_of_its_own():
    crowd = Crowd()
    crowd.send("p", "a", "b", plain=True)
    crowd.send("q", "c", plain=True)
    crowd.send("m", "d")
    crowd.send("n", "e")
    await crowd.settle()
    found = sorted((group.ids, group.wait) for group in crowd.groups)
    assert found == [(["a", "b"], True), (["c"], True), (["d", "e"], False)]
    await crowd.end()


async def test_shared_groups_are_bounded():
    crowd = Crowd(shared=2)
    for n in range(4):
        crowd.send(f"t{n}", f"a{n}")
        await crowd.settle()
    assert [group.ids for group in crowd.groups] == [["a0"], ["a1"]]
    crowd.groups[1].tell()
    await crowd.settle()
    assert crowd.groups[2].ids == ["a2", "a3"]
    assert len(crowd.groups) == 3
    await crowd.end()


async def test_own_groups_are_bounded_and_leave_shared_ones_alone():
    crowd = Crowd(shared=1, own=2)
    for n in range(4):
        crowd.send(f"p{n}", f"a{n}", plain=True, store=f"s{n}")
    crowd.send("m", "b")
    await crowd.settle()
    assert [group.ids for group in crowd.groups] == [["a0"], ["a1"], ["b"]]
    crowd.groups[0].tell()
    await crowd.settle()
    assert crowd.groups[3].ids == ["a2"]
    assert len(crowd.groups) == 4
    await crowd.end()


async def test_a_store_leaves_a_quarter_of_the_own_groups_to_others():
    crowd = Crowd(own=4)
    for n in range(5):
        crowd.send(f"p{n}", f"a{n}", plain=True, store="hangs")
    for n in range(2):
        crowd.send(f"q{n}", f"b{n}", plain=True, store="answers")
    await crowd.settle()
    assert [group.ids for group in crowd.groups] == [["a0"], ["a1"], ["a2"], ["b0"]]
    crowd.groups[3].tell()
    await crowd.settle()
    assert crowd.groups[4].ids == ["b1"]
    crowd.groups[0].tell()
    await crowd.settle()
    assert crowd.groups[5].ids == ["a3"]
    await crowd.end()


async def test_a_flood_on_one_table_does_not_keep_another_out_of_the_next_group():
    crowd = Crowd(shared=1, waiting=1_000)
    crowd.send("flood", *(f"a{n}" for n in range(3 * GROUP_MEMBERS)))
    crowd.send("calm", "b")
    await crowd.settle()
    assert "b" not in crowd.groups[0].ids
    crowd.groups[0].tell()
    await crowd.settle()
    assert crowd.groups[1].ids[0] == "b"
    assert len(crowd.groups[1].ids) == GROUP_MEMBERS
    await crowd.end()


async def test_those_who_go_again_come_before_those_who_came_later():
    crowd = Crowd()
    crowd.send("t", "a", "b", "c", "d")
    crowd.send("u", "e")
    await crowd.settle()
    crowd.send("t", "f")
    await crowd.settle()
    _, b, c, d, _ = crowd.groups[0].members
    b.attempt, b.alone = 2, True
    crowd.groups[0].leave(again=[b, c, d])
    await crowd.settle()
    assert [group.ids for group in crowd.groups[1:]] == [["b"]]
    assert crowd.groups[1].wait
    crowd.groups[1].tell()
    await crowd.settle()
    assert crowd.groups[2].ids == ["c", "d", "f"]
    crowd.groups[2].tell()
    await crowd.settle()
    assert crowd.is_forgotten()


async def test_a_table_whose_lock_is_held_is_waited_for_by_itself():
    crowd = Crowd(shared=1)
    crowd.send("held", "a", "b")
    crowd.send("free", "c")
    await crowd.settle()
    a, b, _ = crowd.groups[0].members
    crowd.groups[0].leave(busy=[a, b])
    crowd.send("held", "d")
    crowd.send("free", "e")
    await crowd.settle()
    found = [(group.ids, group.wait) for group in crowd.groups[1:]]
    assert sorted(found) == [(["a", "b", "d"], True), (["e"], False)]
    for group in crowd.groups[1:]:
        group.tell()
    await crowd.settle()
    # Once it was had, the table is one like the others.
    crowd.send("held", "f")
    crowd.send("free", "g")
    await crowd.settle()
    assert (crowd.groups[3].ids, crowd.groups[3].wait) == (["f", "g"], False)
    crowd.groups[3].tell()
    await crowd.settle()
    assert crowd.is_forgotten()
