"""Tables whose callers may begin nothing are not looked at: others' commits wait for each pass."""

import asyncio

import pytest

from tests.service.commit.queue.crowds import Crowd
from tidegate_service.core.commit.queue.ready_tables import Need
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
