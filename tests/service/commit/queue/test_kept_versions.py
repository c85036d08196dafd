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
    with pytest.raises(Refused):
        await late
    again = asyncio.create_task(told(crowd, staged(crowd, "late again")))
    later = crowd.send("t", "c", who="ours")
    await crowd.settle()
    assert crowd.groups[3].ids == ["c"]
    assert not again.done(), "it is told when the next version is kept for it"
    await end(crowd)
    await asyncio.gather(again, *waited, *ours, *later)


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
    with pytest.raises(Refused):
        await late
    again = asyncio.create_task(told(crowd, staged(crowd, "late again")))
    later = crowd.send("t", "b", who="ours")
    await crowd.settle()
    assert [group.ids for group in crowd.groups[3:]] == [["b"]]
    await end(crowd)
    await asyncio.gather(again, *later)


async def test_none_is_kept_where_that_is_switched_off():
    crowd = Crowd(keep_s=0)
    await lost(crowd)
    assert crowd.is_forgotten()


@pytest.mark.slow
async def test_nothing_is_left_of_a_table_that_nobody_came_back_to():
    crowd = Crowd(keep_s=KEEP_S)
    await lost(crowd)
    assert not crowd.is_forgotten()
    while not crowd.is_forgotten():
        await asyncio.sleep(KEEP_S)


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


async def test_another_commit_of_an_engine_that_keeps_its_ids_is_not_the_one_that_is_waited_for():
    crowd = Crowd(keep_s=60)
    engine = {"engine": "a stock engine"}
    first, second = await race(crowd, staged(crowd, "a", **engine), staged(crowd, "b", **engine))
    (back,) = sent(crowd, staged(crowd, "a", **engine))
    await crowd.settle()
    crowd.groups[-1].tell()
    await asyncio.gather(first, back, second)
    (new,) = sent(crowd, staged(crowd, "new", **engine))
    await crowd.settle()
    assert len(crowd.groups) == 2
    (back,) = sent(crowd, staged(crowd, "b", **engine))
    await crowd.settle()
    assert crowd.groups[2].ids == ["b"]
    crowd.groups[2].tell()
    await back
    await crowd.settle()
    assert crowd.groups[3].ids == ["new"]
    await end(crowd)
    await new


async def test_who_waits_to_be_told_and_leaves_is_passed_over():
    crowd = Crowd(keep_s=60)
    first, second, third = await race(crowd, *(staged(crowd, id_) for id_ in ("a", "b", "c")))
    second.cancel()
    (back,) = sent(crowd, staged(crowd, "a"))
    await crowd.settle()
    crowd.groups[-1].tell()
    await asyncio.gather(first, back, third)


async def test_nor_is_a_version_kept_for_one_that_leaves_as_it_is_told():
    crowd = Crowd(keep_s=60)
    first, second = await race(crowd, staged(crowd, "a"), staged(crowd, "b"))
    (back,) = sent(crowd, staged(crowd, "a"))
    await crowd.settle()
    crowd.groups[-1].tell()
    while crowd.committer._queues["t"].kept is None:
        await asyncio.sleep(0)
    assert not second.done()
    second.cancel()
    await asyncio.gather(first, back)
    await crowd.settle()
    assert second.cancelled()
    assert crowd.is_forgotten()


async def test_whoever_is_next_is_told_where_two_leave_at_once():
    crowd = Crowd(keep_s=60, line_s=60)
    writers = [staged(crowd, id_) for id_ in ("a", "b", "c", "d")]
    first, second, third, fourth = await race(crowd, *writers)
    (back,) = sent(crowd, staged(crowd, "a"))
    await crowd.settle()
    crowd.groups[-1].tell()
    while crowd.committer._queues["t"].kept is None:
        await asyncio.sleep(0)
    # The version is kept for the second one, which does not know yet.
    second.cancel()
    third.cancel()
    await asyncio.gather(first, back)
    await crowd.settle()
    assert fourth.done()
    (back,) = sent(crowd, staged(crowd, "d"))
    await crowd.settle()
    crowd.groups[-1].tell()
    await asyncio.gather(fourth, back)


async def test_nobody_is_held_back_for_long():
    crowd = Crowd(keep_s=60, line_s=KEEP_S)
    first, second = await race(crowd, staged(crowd, "a"), staged(crowd, "b"))
    assert first.done()
    assert not second.done()
    await second


async def test_a_version_is_kept_little_longer_than_its_engine_took_of_late():
    crowd = Crowd(keep_s=60)
    first, second = await race(crowd, staged(crowd, "a"), staged(crowd, "b"))
    (back,) = sent(crowd, staged(crowd, "a"))
    await crowd.settle()
    crowd.groups[-1].tell()
    await asyncio.gather(first, back, second)
    # Nobody comes back for `b`, whose engine was back at once before.
    (ours,) = crowd.send("t", "c", who="ours")
    while len(crowd.groups) < 3:
        await asyncio.sleep(0.01)
    await end(crowd)
    await ours


@pytest.mark.slow
async def test_an_engine_that_needs_longer_than_it_did_is_waited_for_longer_the_next_time():
    crowd = Crowd(keep_s=60)
    (quick,) = await race(crowd, staged(crowd, "quick"))
    (back,) = sent(crowd, staged(crowd, "quick"))
    await crowd.settle()
    crowd.groups[-1].tell()
    await asyncio.gather(quick, back)
    (slow,) = await race(crowd, staged(crowd, "slow"))
    while crowd.committer._queues:
        await asyncio.sleep(0.01)
    await asyncio.sleep(KEEP_S)
    again = await race(crowd, staged(crowd, "slow"))
    (ours,) = crowd.send("t", "a", who="ours")
    await asyncio.sleep(KEEP_S)
    assert len(crowd.groups) == 4, "it is waited for"
    (back,) = sent(crowd, staged(crowd, "slow"))
    await crowd.settle()
    assert crowd.groups[4].ids == ["slow"]
    await end(crowd)
    await asyncio.gather(slow, *again, back, ours)


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


async def test_nobody_waits_for_a_writer_that_is_late_again():
    crowd = Crowd(keep_s=60)
    await lost(crowd)
    (ours,) = crowd.send("t", "a", who="ours")
    await crowd.settle()
    assert len(crowd.groups) == 1, "the next version is kept"
    again = asyncio.create_task(told(crowd, staged(crowd, "late")))
    await crowd.settle()
    assert crowd.groups[1].ids == ["a"]
    await end(crowd)
    await asyncio.gather(ours, again)
