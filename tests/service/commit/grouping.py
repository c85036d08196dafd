"""An instance whose groups of proposals are noted, for tests of what they make together."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from tests.service.world import World
from tidegate_protocol.transaction import Proposal
from tidegate_service.core.committer import Committer
from tidegate_service.core.context import Context
from tidegate_service.core.group import commit_together
from tidegate_service.core.member import GroupResult, Member
from tidegate_service.core.outcomes import Outcome
from tidegate_service.core.ports import Index
from tidegate_service.core.propose import propose
from tidegate_service.core.records import TableRecord
from tidegate_service.core.sections import CommitSections
from tidegate_service.core.table_ids import TableIds
from tidegate_service.core.windows import Windows

Told = Outcome | BaseException


@dataclass
class Instance:
    """One instance; `groups` are the transaction ids of each group that it decided."""

    context: Context
    groups: list[list[str]] = field(default_factory=list)

    async def together(self, members: Sequence[Member], wait: bool) -> GroupResult:
        self.groups.append([member.proposal.transaction_id for member in members])
        return await commit_together(members, wait)

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
            self.context.table_ids.learn(table)
        asked = [self.propose(table, proposal) for table, proposal in sent]
        return await asyncio.gather(*asked, return_exceptions=True)


def instance(world: World, *, index: Index | None = None, **fields: Any) -> Instance:
    """A further instance of the world's tables, which shares nothing but what is stored."""
    made = Instance(world.context)

    async def together(members: Sequence[Member], wait: bool) -> GroupResult:
        return await made.together(members, wait)

    own = {"sections": CommitSections(), "windows": Windows(), "table_ids": TableIds()}
    made.context = replace(
        world.context,
        index=index or world.context.index,
        committer=Committer(together),
        **own | fields,
    )
    return made


def transactions(database_url: str, *tables: TableRecord) -> int:
    """In how many transactions of the database the tables' versions were written, but the first
    of each. A plain table has a savepoint each time that files are put together, which counts."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT count(DISTINCT CAST(xmin AS text)) FROM commits "
            "WHERE table_id = ANY (%s) AND version > 0",
            ([table.id for table in tables],),
        ).fetchone()
    assert row is not None
    return int(row[0])
