"""What proposals read of a version whose protocol and metadata are long."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_protocol.proposal.transaction import LONG_PREDICATES, Conflict, Proposal
from tidegate_service.core.access.roles import EVERYTHING, Caller, Grant, Principal, Role
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.context import LOOKUPS, WIDE_TABLES
from tidegate_service.core.errors import Refused
from tidegate_service.core.instance.long_predicates import LongPredicates
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.outcomes import Committed, WouldCommit
from tidegate_service.core.ports.records import LONG_METADATA

pytestmark = pytest.mark.anyio

LONG = "x = 1 or " * (LONG_PREDICATES // 8) + "x = 1"
AT_ONCE = 2 * LOOKUPS


class Noted:
    """An index whose reads are noted: how many of a kind there were, and were at a time."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._under_way: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    async def state_at(self, table_id: str, version: int, **how: int | None) -> Any:
        kind = "wide" if how.get("most_bytes") is None else "short"
        return await self._noted(kind, self._index.state_at(table_id, version, **how))

    async def is_used(self, table_id: str, transaction_id: str) -> Any:
        return await self._noted("ids", self._index.is_used(table_id, transaction_id))

    async def _noted(self, kind: str, call: Any) -> Any:
        self.calls[kind] += 1
        self._under_way[kind] += 1
        self.most[kind] = max(self.most[kind], self._under_way[kind])
        try:
            return await call
        finally:
            self._under_way[kind] -= 1


@pytest.fixture
def noted(world: World) -> Noted:
    return Noted(world.context.index)


@pytest.fixture
def anns(world: World, noted: Noted) -> World:
    ann = Principal(name="ann", grants=(Grant(Role.ADMIN, EVERYTHING),))
    called = World(world.over(noted).context.called_by(Caller(principal=ann)))
    return replace(called, context=replace(called.context, long_predicates=LongPredicates()))


async def wide(world: World) -> str:
    properties = {f"p{number}": "y" * 1_000 for number in range(LONG_METADATA // 1_000 + 1)}
    return (await world.create(catalog_managed=True, properties=properties)).id


def reading(name: str) -> Proposal:
    return proposal(add(name), read_version=0, predicates=(LONG,), transaction_id=name)


async def test_what_has_landed_is_answered_without_reading_its_version(anns: World, noted: Noted):
    table, context = await wide(anns), anns.context
    assert isinstance(await propose(context, table, reading("a")), Committed)
    noted.calls.clear()
    again = await propose(context, table, reading("a"))
    assert isinstance(again, Committed)
    assert again.replayed
    assert isinstance(await conflict_check(context, table, reading("a")), Committed)
    with pytest.raises(Refused, match="with another body"):
        await propose(context, table, replace(reading("b"), transaction_id="a"))
    assert noted.calls == {"ids": 3}


@pytest.mark.parametrize("call", [propose, conflict_check])
async def test_versions_are_read_in_turn(anns: World, noted: Noted, call: Any):
    table, context = await wide(anns), anns.context
    sent = [call(context, table, reading(f"f{number}")) for number in range(AT_ONCE)]
    told = await asyncio.gather(*sent)
    assert all(isinstance(outcome, Committed | Conflict | WouldCommit) for outcome in told)
    assert noted.most["wide"] == WIDE_TABLES
    assert noted.most["short"] <= LOOKUPS
    assert noted.most["ids"] <= LOOKUPS
