"""Tables whose callers may begin nothing are not looked at: others' commits wait for each pass."""

import asyncio

import pytest

from tests.service.commit.queue.crowds import Crowd
from tidegate_service.core.commit.queue.ready_tables import Need, ReadyTables
from tidegate_service.core.commit.queue.table_queue import TableQueue
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.errors import Unavailable

pytestmark = pytest.mark.anyio

TABLES = 250
FEW = 20
"""Tables that are looked at for some groups that begin, each once or twice."""


class Looked:
    """Counts how often a proposal of a table's line is looked at."""

    def __init__(self, crowd: Crowd) -> None:
        self.times = 0
        self._need = crowd.committer._ready.need
        crowd.committer._ready.need = self._counted

    def _counted(self, queue: TableQueue, first: WaitingProposal) -> Need:
        self.times += 1
        return self._need(queue, first)


async def flood(crowd: Crowd, *callers: str, plain: bool, **fields) -> None:
    """Each caller commits to so many tables, those of all are the same."""
    for who in callers:
        for n in range(TABLES):
            crowd.send(f"t{n}", f"{who}{n}", who=who, plain=plain, **fields)
    await crowd.settle()
    assert crowd.committer.waiting > TABLES // 2 * len(callers)


@pytest.mark.parametrize("callers", ["a", "abcd"])
@pytest.mark.parametrize("plain", [True, False])
async def test_who_has_its_share_is_passed_by(callers, plain):
    crowd = Crowd(own=12)
    looked = Looked(crowd)
    await flood(crowd, *callers, plain=plain)
    others = len(callers) - 1
    began, before = len(crowd.groups), looked.times
    for n in range(5):
        crowd.send("of_z", f"z{n}", who="z", plain=not plain)
        await crowd.settle()
        crowd.groups[-1].tell()
        await crowd.settle()
    assert [group.ids for group in crowd.groups[began:]] == [[f"z{n}"] for n in range(5)]
    assert looked.times - before <= 5 * FEW + others
    await crowd.end()


async def test_of_a_store_that_hangs_no_table_is_looked_at():
    crowd = Crowd(own=12)
    looked = Looked(crowd)
    await flood(crowd, "a", "b", plain=True, store="hangs")
    assert len(crowd.groups) == 9
    before = looked.times
    for n in range(3):
        crowd.send("of_z", f"z{n}", who="z", plain=True, store="answers")
        await crowd.settle()
        crowd.groups[-1].tell()
        await crowd.settle()
    assert len(crowd.groups) == 12
    assert looked.times - before <= 3 * FEW
    await crowd.end()


async def test_one_place_that_becomes_free_begins_one_table():
    crowd = Crowd(own=12)
    looked = Looked(crowd)
    await flood(crowd, "a", plain=True)
    began, before = len(crowd.groups), looked.times
    crowd.groups[0].tell()
    await crowd.settle()
    assert [group.ids for group in crowd.groups[began:]] == [[f"a{began}"]]
    assert looked.times - before <= FEW
    await crowd.end()


async def test_whoever_is_turned_away_has_no_other_table_looked_at():
    crowd = Crowd(waiting=1, own=12)
    looked = Looked(crowd)
    await flood(crowd, "a", plain=True)
    before = looked.times
    for n in range(10):
        (refused,) = crowd.send(f"t{TABLES - 1}", f"again{n}", who="a", plain=True)
        with pytest.raises(Unavailable):
            await refused
        await crowd.settle()
    assert looked.times - before <= FEW
    await crowd.end()


async def test_a_callers_tables_at_several_stores_begin_in_their_order():
    """Where one place at a time becomes free, no store comes before the other for ever."""
    crowd = Crowd(own=2)
    for n in range(6):
        store = "first" if n % 3 else "second"
        crowd.send(f"t{n}", f"a{n}", who="a", plain=True, store=store)
    await crowd.settle()
    for _ in range(5):
        crowd.groups[-1].tell()
        await crowd.settle()
    assert [group.ids for group in crowd.groups] == [[f"a{n}"] for n in range(6)]
    await crowd.end()


async def test_what_waits_behind_a_proposal_that_left_begins_without_its_place():
    """The large one waits for a place of its own until it is overdue, the small one for none."""
    crowd = Crowd(own=2, wait_s=0.05)
    crowd.send("u", "large", alone=True, who="a")
    await crowd.settle()
    (left,) = crowd.send("t", "alone", alone=True, who="a")
    await asyncio.sleep(0.02)
    (small,) = crowd.send("t", "small", who="a")
    await crowd.settle()
    assert [group.ids for group in crowd.groups] == [["large"]]
    with pytest.raises(Unavailable):
        await left
    await crowd.settle()
    assert [group.ids for group in crowd.groups] == [["large"], ["small"]]
    crowd.groups[1].tell()
    await small
    await crowd.end()


async def test_whose_turn_was_longest_ago_comes_first_though_another_was_away():
    """A caller whose only table was busy in a pass is not one who had no turn yet."""
    crowd = Crowd(own=12)
    for name in ("begins", "waits"):
        crowd.send("of_a", f"a {name}", who="a", plain=True)
        crowd.send("of_b", f"b {name}", who="b", plain=True)
        await crowd.settle()
    queues, ready = crowd.committer._queues, ReadyTables(lambda location: location)
    for who in "ba":
        ready.begun(who)
    ready.put("of_b", queues["of_b"])
    assert list(ready.in_turn(lambda *_: False)) == []
    ready.put("of_a", queues["of_a"])
    assert [who for _, who in ready.in_turn(lambda *_: True)] == ["b", "a"]
    await crowd.end()


async def test_a_line_in_another_order_is_looked_at_again():
    """Who is next and finds no place keeps those behind it back."""
    crowd = Crowd(own=2)
    crowd.send("t", "begins", who="c")
    await crowd.settle()
    crowd.send("t", "a", who="a", alone=True)
    crowd.send("t", "b", who="b")
    await crowd.settle()
    queue, ready = crowd.committer._queues["t"], ReadyTables(lambda location: location)
    assert ready.put("t", queue)
    assert not ready.put("t", queue)
    queue.waiting.turn_to("b")
    assert ready.put("t", queue)
    await crowd.end()
