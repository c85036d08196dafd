"""Staged commits whose version is taken while they wait."""

import asyncio
from dataclasses import replace

import pytest

from tests.service.commit.committing import ratified
from tests.service.commit.queue.crowds import Crowd, outcome
from tests.service.commit.queue.test_kept_versions import STAGED, end, sent, staged
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.errors import Overtaken
from tidegate_service.core.ports.outcomes import Committed

pytestmark = pytest.mark.anyio


async def test_who_waits_for_a_version_that_is_taken_meanwhile_is_told_without_a_group():
    crowd = Crowd(keep_s=60)
    (first,) = sent(crowd, staged(crowd, "first"))
    await crowd.settle()
    late, next_ = staged(crowd, "late"), staged(crowd, "next")
    next_.proposal = replace(next_.proposal, staged=replace(STAGED, version=2))
    tried = staged(crowd, "tried")
    tried.attempt = 2
    waiting = sent(crowd, late, next_, tried)
    await crowd.settle()
    (member,) = crowd.groups[0].members
    member.tell(committed(member, STAGED.version))
    crowd.groups[0].tell()
    await first
    with pytest.raises(Overtaken):
        await waiting[0]
    await crowd.settle()
    # One that may have landed needs the table's lock to be told what became of it.
    assert crowd.groups[1].ids == ["next", "tried"]
    await end(crowd)
    await asyncio.gather(*waiting[1:])


def committed(member: WaitingProposal, version: int) -> Committed:
    record = ratified(version).record
    table = replace(outcome(member).table, latest_version=version)
    return Committed(table=table, record=record, published=False, replayed=False)
