"""An instance whose groups of proposals are noted, for tests of what they make together."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from tests.service.world import World
from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.core.commit.group import run_group
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.queue.commit_queue import CommitQueue
from tidegate_service.core.commit.queue.waiting_proposal import (
    GroupResult,
    InCompany,
    WaitingProposal,
)
from tidegate_service.core.context import Context
from tidegate_service.core.instance.running_commits import RunningCommits
from tidegate_service.core.instance.table_cache import TableCache
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.outcomes import Outcome
from tidegate_service.core.ports.records import TableRecord

Told = Outcome | BaseException


@dataclass
class Instance:
    """One instance; `groups` are the transaction ids of each group that it decided."""

    context: Context
    groups: list[list[str]] = field(default_factory=list)

    async def together(
        self, members: Sequence[WaitingProposal], wait: bool, in_company: InCompany
    ) -> GroupResult:
        self.groups.append([member.proposal.transaction_id for member in members])
        return await run_group(members, wait, in_company)

    async def propose(self, table: TableRecord, proposal: Proposal) -> Outcome:
        return await propose(self.context, table.id, proposal)

    async def at_once(self, table: TableRecord, *proposals: Proposal) -> list[Told]:
        """What each is told of those that arrive together, in this order."""
        return await self.of_many((table, proposal) for proposal in proposals)

    async def of_many(self, sent: Iterable[tuple[TableRecord, Proposal]]) -> list[Told]:
        """The same, each to a table of its own."""
        sent = list(sent)
        for table, _ in sent:
            # Known before, so that nobody has to look it up while the others go on.
            self.context.tables.learn(table)
        asked = [self.propose(table, proposal) for table, proposal in sent]
        return await asyncio.gather(*asked, return_exceptions=True)


def instance(world: World, *, index: Index | None = None, **fields: Any) -> Instance:
    """A further instance of the world's tables, which shares nothing but what is stored, and the
    knowledge of which tables were looked at."""
    made = Instance(world.context)

    async def together(
        members: Sequence[WaitingProposal], wait: bool, in_company: InCompany
    ) -> GroupResult:
        return await made.together(members, wait, in_company)

    own = {"running": RunningCommits(), "windows": WindowCache(), "tables": TableCache()}
    made.context = replace(
        world.context,
        index=index or world.context.index,
        commit=CommitQueue(together).commit,
        **own | fields,
    )
    return made


def transactions(database_url: str, *tables: TableRecord) -> int:
    """In how many transactions of the database the tables' versions were written, but the first
    of each."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT count(DISTINCT CAST(xmin AS text)) FROM commits "
            "WHERE table_id = ANY (%s) AND version > 0",
            ([table.id for table in tables],),
        ).fetchone()
    assert row is not None
    return int(row[0])
