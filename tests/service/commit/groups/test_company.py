"""Where several callers commit to a plain table, its groups end soon: all wait for their end."""

import asyncio
import contextvars
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tidegate_service.core.access.roles import Caller, Grant, Principal, Role
from tidegate_service.core.commit.group import (
    FILES_IN_COMPANY,
    LONGEST_IN_COMPANY_S,
    run_group,
)
from tidegate_service.core.commit.queue.table_queue import MEMBERS_IN_COMPANY
from tidegate_service.core.commit.queue.waiting_proposal import WaitingProposal
from tidegate_service.core.context import Context
from tidegate_service.core.observe.faults import Side, Step
from tidegate_service.core.ports.kinds import TableIdentity

pytestmark = pytest.mark.anyio

SENT = 60


@dataclass
class SlowStore:
    """A store whose every write of files takes so long by the clock, which stands still
    otherwise. Others wait once so many writes were made."""

    took_s: float = 0.0
    alone_for: int = 0
    now_s: float = 0.0
    puts: int = field(default=0, init=False)

    async def reached(self, step: Step, side: Side) -> None:
        if (step, side) == (Step.O6_PUT, Side.AFTER):
            self.puts += 1
            self.now_s += self.took_s

    def in_company(self) -> bool:
        return self.puts >= self.alone_for


def on(world, store: SlowStore) -> Context:
    return replace(world.context, faults=store, monotonic_s=lambda: store.now_s)


def members_of(context: Context, table, *callers: str) -> Sequence[WaitingProposal]:
    """So many proposals, of these callers by turns."""
    members = []
    for n in range(SENT):
        principal = Principal(name=callers[n % len(callers)], grants=(Grant(Role.ADMIN, "*"),))
        members.append(
            WaitingProposal(
                context=context.called_by(Caller(principal=principal)),
                table=TableIdentity(
                    id=table.id,
                    name=table.name,
                    location=table.location,
                    catalog_managed=table.catalog_managed,
                ),
                proposal=proposal(add(f"f{n}")),
                started=0.0,
                variables=contextvars.copy_context(),
                answer=asyncio.get_running_loop().create_future(),
            )
        )
        members[-1].enter()
    return members


async def landed(world, store: SlowStore, *callers: str) -> int:
    """How many of them a group lands, before it leaves the others as they are."""
    context = on(world, store)
    members = members_of(context, await world.create(), *callers)
    result = await run_group(members, True, store.in_company)
    count = SENT - len(result.again)
    assert result.again == members[count:]
    assert all(member.answer.done() == (n < count) for n, member in enumerate(members))
    assert [member.answer.result().record.version for member in members[:count]] == list(
        range(1, count + 1)
    )
    assert not any(member.alone for member in result.again)
    for member in result.again:
        member.tell(LookupError("left"))
        assert isinstance(member.answer.exception(), LookupError)
    return count


@pytest.mark.parametrize(("callers", "alone_for"), [("a", 0), ("ab", 99)])
async def test_in_company_so_many_are(world, callers, alone_for):
    """Whether the others are in the group, or came since it began."""
    store = SlowStore(alone_for=alone_for)
    assert await landed(world, store, *callers) == MEMBERS_IN_COMPANY
    assert store.puts == MEMBERS_IN_COMPANY / FILES_IN_COMPANY


@pytest.mark.parametrize("callers", ["a", "ab"])
async def test_on_a_slow_store_in_company_few_are(world, callers):
    store = SlowStore(took_s=LONGEST_IN_COMPANY_S * 1.1)
    assert await landed(world, store, *callers) == FILES_IN_COMPANY
