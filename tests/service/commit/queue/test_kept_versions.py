"""A staged commit that came too late: others of its table wait a moment for the next one."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.service.commit.queue.crowds import Crowd, Group
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import CommitInfo
from tidegate_protocol.proposal.staged import StagedCommit
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.errors import Refused

pytestmark = pytest.mark.anyio

KEEP_S = 0.2
STAGED = StagedCommit(
    version=1,
    name="1.json",
    content=b"",
    actions=(add("a"),),
    commit_info=CommitInfo(timestamp=1),
    timestamp=1,
)


def staged(crowd: Crowd, id_: str, *, table: str = "t", who: str = "stock") -> WaitingProposal:
    member = crowd.member(table, id_, who=who)
    member.proposal = replace(member.proposal, staged=STAGED)
    return member


def sent(crowd: Crowd, *members: WaitingProposal) -> Sequence[asyncio.Task]:
    return [asyncio.create_task(crowd.committer.wait(member)) for member in members]


def too_late(group: Group) -> None:
    """The staged members of the group found their versions taken; the others have an outcome."""
    for member in group.members:
        if member.proposal.staged is not None:
            member.tell(Refused("another commit is that version", code=Code.VERSION_TAKEN))
    # Whoever was told already keeps that answer.
    group.tell()


async def lost(crowd: Crowd) -> None:
    """Of a staged commit that has lost its race, the group has ended."""
    (task,) = sent(crowd, staged(crowd, "late"))
    await crowd.settle()
    too_late(crowd.groups[-1])
    with pytest.raises(Refused):
        await task
    await crowd.settle()


async def test_its_writer_goes_first_when_it_is_back():
    crowd = Crowd(keep_s=60)
    await lost(crowd)
    ours = crowd.send("t", "a", "b", who="ours")
    others = crowd.send("u", "c", who="ours")
    await crowd.settle()
    assert [group.ids for group in crowd.groups[1:]] == [["c"]], "only the other table goes on"
    (task,) = sent(crowd, staged(crowd, "back"))
    await crowd.settle()
    assert crowd.groups[2].ids == ["back"]
    crowd.groups[2].tell()
    assert (await task).transaction_id == "back"
    await crowd.settle()
    assert crowd.groups[3].ids == ["a", "b"]
    await crowd.end()
    await asyncio.gather(*ours, *others)


async def test_who_does_not_come_back_is_not_waited_for():
    crowd = Crowd(keep_s=KEEP_S)
    await lost(crowd)
    began = asyncio.get_running_loop().time()
    (ours,) = crowd.send("t", "a", who="ours")
    while len(crowd.groups) < 2:
        await asyncio.sleep(0.01)
    assert asyncio.get_running_loop().time() - began >= KEEP_S / 2
    assert crowd.groups[1].ids == ["a"]
    await crowd.end()
    await ours


@pytest.mark.parametrize("who", ["stock", "another"])
async def test_nobody_else_is_let_in(who):
    """Another caller's staged commit waits, and so does what its writer proposes otherwise."""
    crowd = Crowd(keep_s=60)
    await lost(crowd)
    member = crowd.member("t", "a", who=who) if who == "stock" else staged(crowd, "a", who=who)
    (task,) = sent(crowd, member)
    await crowd.settle()
    assert len(crowd.groups) == 1
    (back,) = sent(crowd, staged(crowd, "back"))
    await crowd.settle()
    assert crowd.groups[1].ids == ["back"]
    await crowd.end()
    await asyncio.gather(task, back)


async def test_afterwards_none_is_kept_for_as_long():
    crowd = Crowd(keep_s=KEEP_S)
    await lost(crowd)
    waited = crowd.send("t", "a", who="ours")
    while len(crowd.groups) < 2:
        await asyncio.sleep(0.01)
    (late,) = sent(crowd, staged(crowd, "late again"))
    ours = crowd.send("t", "b", who="ours")
    crowd.groups[1].tell()
    await crowd.settle()
    too_late(crowd.groups[2])
    later = crowd.send("t", "c", who="ours")
    await crowd.settle()
    assert crowd.groups[3].ids == ["c"]
    await crowd.end()
    with pytest.raises(Refused):
        await late
    await asyncio.gather(*waited, *ours, *later)


async def test_nor_where_nobody_has_waited_meanwhile():
    """One writer after the other: between two of its proposals the table has no queue."""
    crowd = Crowd(keep_s=10 * KEEP_S)
    await lost(crowd)
    waited = crowd.send("t", "a", who="ours")
    while len(crowd.groups) < 2:
        await asyncio.sleep(0.01)
    crowd.groups[1].tell()
    await asyncio.gather(*waited)
    await crowd.settle()
    assert crowd.is_forgotten()
    (late,) = sent(crowd, staged(crowd, "late again"))
    await crowd.settle()
    too_late(crowd.groups[2])
    later = crowd.send("t", "b", who="ours")
    await crowd.settle()
    assert [group.ids for group in crowd.groups[3:]] == [["b"]]
    await crowd.end()
    with pytest.raises(Refused):
        await late
    await asyncio.gather(*later)


async def test_none_is_kept_where_that_is_switched_off():
    crowd = Crowd(keep_s=0)
    await lost(crowd)
    assert crowd.is_forgotten()


async def test_nothing_is_left_of_a_table_that_nobody_came_back_to():
    crowd = Crowd(keep_s=KEEP_S)
    await lost(crowd)
    assert not crowd.is_forgotten()
    await asyncio.sleep(1.5 * KEEP_S)
    assert crowd.is_forgotten()
