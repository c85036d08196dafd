"""Proposals that wait in a `CommitQueue`, and a group's work that ends when a test says so."""

import asyncio
import contextvars
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tidegate_protocol.proposal.transaction import Reads
from tidegate_service.core.access.locations import LocationPolicy
from tidegate_service.core.access.roles import Caller, Principal
from tidegate_service.core.commit.queue.commit_queue import CommitQueue
from tidegate_service.core.commit.queue.limits import QueueLimits
from tidegate_service.core.commit.queue.waiting_proposal import (
    GroupResult,
    InCompany,
    WaitingProposal,
)
from tidegate_service.core.context import Context
from tidegate_service.core.instance.head_checks import HeadChecks
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.outcomes import NothingToCommit, Outcome
from tidegate_service.core.ports.records import TableRecord, TableState
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.storage import ObjectStorage

ROUNDS = 8
"""Of the loop, from an arrival, or from the end of a group whose members nobody waits for, to the
begin of the next one; no timer but one of no time runs out in them."""


@dataclass(eq=False)
class Group:
    """Members that were put together, and the end of their work."""

    members: Sequence[WaitingProposal]
    wait: bool
    in_company: InCompany
    end: asyncio.Future[GroupResult]

    @property
    def ids(self) -> list[str]:
        return [member.proposal.transaction_id for member in self.members]

    def tell(self) -> None:
        """All have their outcome."""
        for member in self.members:
            member.tell(outcome(member))
        self.end.set_result(GroupResult())

    def leave(
        self, *, again: Sequence[WaitingProposal] = (), busy: Sequence[WaitingProposal] = ()
    ) -> None:
        """These have none, the others have."""
        left = {*again, *busy}
        for member in self.members:
            if member not in left:
                member.tell(outcome(member))
        self.end.set_result(GroupResult(again=list(again), busy=list(busy)))


class Crowd:
    """A committer and those who wait in it. `groups` are all that have begun, in their order."""

    def __init__(self, *, heads: HeadChecks | None = None, **limits: float) -> None:
        self.groups: list[Group] = []
        limits = {"linger_s": 0.0, "rest_s": 0.0} | limits
        self.committer = CommitQueue(
            self._together,
            QueueLimits(**limits),
            store_of=lambda location: location.partition("//")[2].partition("/")[0],
        )
        warehouse = Path(tempfile.gettempdir()).as_uri()
        self.context = Context(
            # Neither is ever asked: what members are told is the test's.
            index=PostgresIndex(create_engine("postgresql://nobody@localhost/nothing")),
            storage=ObjectStorage(warehouse=warehouse),
            locations=LocationPolicy(warehouse=warehouse),
            new_id=lambda: "id",
            monotonic_s=time.monotonic,
            now_ms=lambda: 0,
            commit=self.committer.commit,
            heads=heads or HeadChecks(),
        )

    async def _together(
        self, members: Sequence[WaitingProposal], wait: bool, in_company: InCompany
    ) -> GroupResult:
        group = Group(list(members), wait, in_company, asyncio.get_running_loop().create_future())
        self.groups.append(group)
        return await group.end

    def member(
        self,
        table: str,
        id_: str,
        *,
        actions: int = 1,
        size: int = 0,
        reads: Reads | None = None,
        plain: bool = False,
        alone: bool = False,
        store: str = "one",
        who: str | None = None,
    ) -> WaitingProposal:
        context = self.context
        if who is not None:
            context = context.called_by(Caller(principal=Principal(name=who, grants=())))
        return WaitingProposal(
            context=context,
            table=TableIdentity(
                id=table, name=table, location=f"s3://{store}/{table}", catalog_managed=not plain
            ),
            proposal=proposal(
                *[add("a")] * actions, transaction_id=id_, size=size, reads=reads or Reads()
            ),
            started=time.monotonic(),
            variables=contextvars.copy_context(),
            answer=asyncio.get_running_loop().create_future(),
            alone=alone,
        )

    def send(self, table: str, *ids: str, **fields: Any) -> list[asyncio.Task[Outcome]]:
        """These proposals arrive, in this order, once the loop goes on."""
        members = [self.member(table, id_, **fields) for id_ in ids]
        return [asyncio.create_task(self.committer.wait(member)) for member in members]

    async def settle(self) -> None:
        """Whatever can happen without time passing has happened."""
        for _ in range(ROUNDS):
            await asyncio.sleep(0)

    async def end(self) -> None:
        """All that is left goes its way."""
        while self.context.running.count:
            for group in self.groups:
                if not group.end.done():
                    group.tell()
            await self.settle()
        assert self.is_forgotten()

    def is_forgotten(self) -> bool:
        """Nothing is left of anybody."""
        committer = self.committer
        left = committer._queues or committer._ready
        left = left or committer._running.shared or committer._running.own
        return not left and not committer.waiting and not self.context.running.count


def outcome(member: WaitingProposal) -> NothingToCommit:
    """One that tells whose it is."""
    table = TableRecord(
        id=member.table.id,
        name=member.table.name,
        location=member.table.location,
        catalog_managed=member.table.catalog_managed,
        state=TableState.ACTIVE,
        state_reason=None,
        quarantine_cause=None,
        latest_version=0,
        published_version=0,
        latest_timestamp=0,
        protocol=None,
        metadata=None,
        num_files=0,
        size_bytes=0,
        first_version=0,
        epoch=0,
    )
    id_ = member.proposal.transaction_id
    return NothingToCommit(table=table, transaction_id=id_, read_version=0)
