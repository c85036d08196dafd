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


def staged(
    crowd: Crowd, id_: str, *, table: str = "t", who: str = "stock", engine: str | None = None
) -> WaitingProposal:
    member = crowd.member(table, id_, who=who)
    member.proposal = replace(member.proposal, staged=STAGED, engine_info=engine)
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


async def told(crowd: Crowd, member: WaitingProposal) -> None:
    """The writer is told that it came too late."""
    proposal = member.proposal
    await crowd.committer.kept.late(
        member.context, member.table.id, proposal.transaction_id, proposal.engine_info
    )


async def race(crowd: Crowd, *members: WaitingProposal) -> list[asyncio.Task[None]]:
    """These lose their races in one group, and wait to be told so."""
    tasks = sent(crowd, *members)
    await crowd.settle()
    too_late(crowd.groups[-1])
    for task in tasks:
        with pytest.raises(Refused):
            await task
    await crowd.settle()
    waiting = []
    for member in members:
        waiting.append(asyncio.create_task(told(crowd, member)))
        await crowd.settle()
    return waiting


async def lost(crowd: Crowd) -> None:
    """One staged commit has lost its race, and its writer was told so."""
    (task,) = await race(crowd, staged(crowd, "late"))
    assert task.done()


async def end(crowd: Crowd) -> None:
    """All that is left goes its way, and nobody comes back to a version that is kept."""
    while not crowd.is_forgotten():
        for group in crowd.groups:
            if not group.end.done():
                group.tell()
        await asyncio.sleep(0.01)


async def test_its_writer_goes_first_when_it_is_back():
    crowd = Crowd(keep_s=60)
    await lost(crowd)
    ours = crowd.send("t", "a", "b", who="ours")
    others = crowd.send("u", "c", who="theirs")
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


async def test_none_is_kept_where_that_is_switched_off():
    crowd = Crowd(keep_s=0)
    await lost(crowd)
    assert crowd.is_forgotten()


async def test_those_who_come_too_late_together_are_told_one_after_the_other():
    crowd = Crowd(keep_s=60)
    first, second, third = await race(crowd, *(staged(crowd, id_) for id_ in ("a", "b", "c")))
    assert [first.done(), second.done(), third.done()] == [True, False, False]
    (back,) = sent(crowd, staged(crowd, "a"))
    await crowd.settle()
    assert not second.done(), "the version that it would load is not there yet"
    crowd.groups[-1].tell()
    await back
    await crowd.settle()
    assert [second.done(), third.done()] == [True, False]
    (back,) = sent(crowd, staged(crowd, "b"))
    await crowd.settle()
    crowd.groups[-1].tell()
    await asyncio.gather(back, third)


async def test_nobody_is_held_back_for_long():
    crowd = Crowd(keep_s=60, line_s=KEEP_S)
    first, second = await race(crowd, staged(crowd, "a"), staged(crowd, "b"))
    assert first.done()
    assert not second.done()
    await second


async def test_a_writer_that_is_late_again_does_not_wait_for_itself():
    """Another instance has landed the version that was kept for it."""
    crowd = Crowd(keep_s=60)
    await lost(crowd)
    await asyncio.wait_for(told(crowd, staged(crowd, "late")), KEEP_S)
    (task,) = sent(crowd, staged(crowd, "late"))
    await crowd.settle()
    assert crowd.groups[1].ids == ["late"], "the next version is kept for it"
    await crowd.end()
    await task
