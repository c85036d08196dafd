"""Registering a table that is known already, many at a time: it may have megabytes of metadata."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.service.world import World
from tidegate_service.core.access.roles import EVERYTHING, Caller, Grant, Principal, Role
from tidegate_service.core.context import LOOKUPS, WIDE_TABLES
from tidegate_service.core.errors import TableExists
from tidegate_service.core.ports.index import CommitSection, Index
from tidegate_service.core.ports.records import LONG_METADATA
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

AT_ONCE = 2 * LOOKUPS


class Noted:
    """An index of which it is noted how many look a table up with its metadata, and how many wait
    for its row, or have it."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.calls: Counter[str] = Counter()
        self.sections = self.most_sections = 0

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._index, name)

    @asynccontextmanager
    async def commit_section(
        self, table_id: str, *, who: str | None = None
    ) -> AsyncIterator[CommitSection]:
        self.sections += 1
        self.most_sections = max(self.most_sections, self.sections)
        try:
            async with self._index.commit_section(table_id, who=who) as section:
                yield section
        finally:
            self.sections -= 1


async def test_those_that_wait_hold_no_metadata(world: World):
    index = world.context.index
    ann = Principal(name="ann", grants=(Grant(Role.ADMIN, EVERYTHING),))
    noted = Noted(index)
    context = world.over(noted).context.called_by(Caller(principal=ann))
    properties = {f"p{number}": "x" * 1_000 for number in range(LONG_METADATA // 1_000 + 1)}
    table = await world.create(properties=properties)
    request = RegisterTable(name=table.name, location=table.location)
    async with index.commit_section(table.id):
        waiting = [asyncio.create_task(register_table(context, request)) for _ in range(AT_ONCE)]
        async with asyncio.timeout(30):
            while noted.calls["head"] < AT_ONCE and noted.calls["table"] < AT_ONCE:
                await asyncio.sleep(0.01)
    for known, is_new in await asyncio.gather(*waiting):
        assert not is_new
        assert known.metadata == table.metadata
    assert noted.calls["table"] == 0
    assert noted.most_sections == WIDE_TABLES


async def test_another_name_or_place_is_told_by_the_head(world: World):
    """Nothing of the table is read, nor is its row waited for."""
    table = await world.create()
    noted = Noted(world.context.index)
    other = RegisterTable(name=table.name, location=f"{table.location}-other")
    with pytest.raises(TableExists):
        await register_table(world.over(noted).context, other)
    assert noted.most_sections == noted.calls["table"] == 0
