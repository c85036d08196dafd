"""What was seen of a log without its table's lock, beside a table that goes on."""

from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.log.catching_up.catch_up import LATE_ASKS, read_on, with_log_read
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.maintenance.truncation import Tail

pytestmark = pytest.mark.anyio


async def test_a_request_whose_time_is_up_does_not_ask_for_ever(world: World):
    """A faster writer moves the table each time, so that each question is a new one."""
    table = await world.create()
    context = replace(world.context, commit_deadline_s=0.0)
    sections = 0

    async def overtaken(sight: SeenBefore) -> None:
        nonlocal sections
        sections += 1
        async with context.index.commit_section(table.id) as section:
            await sight.see(section, Tail(sections))

    with pytest.raises(IndexUnavailable):
        await with_log_read(context, table.id, overtaken)
    assert sections == LATE_ASKS + 1


async def test_the_question_is_asked_where_the_table_is_by_then(world: World):
    table = await world.create()
    sight = SeenBefore()
    async with world.context.index.commit_section(table.id) as section:
        with pytest.raises(Behind):
            await sight.see(section, Tail(0))
    await propose(world.context, table.id, proposal(add("a")))
    await read_on(world.context, table.id, sight)
    async with world.context.index.commit_section(table.id) as section:
        assert section.table.latest_version == 1
        sha256, missing = await sight.see(section, Tail(1))
    assert (sha256, missing) == (await head_sha256(world, table.id), None)


async def head_sha256(world: World, table_id: str) -> str | None:
    async with world.context.index.commit_section(table_id) as section:
        return await section.head_sha256()


async def test_another_request_shares_what_was_seen_and_not_the_end(world: World):
    table = await world.create()
    sight = SeenBefore()
    await read_on(world.context, table.id, sight)
    other = sight.without_end()
    async with world.context.index.commit_section(table.id) as section:
        assert sight.has_end(section)
        assert not other.has_end(section)
