"""A request whose time is up does not look at a log for ever."""

from dataclasses import replace

import pytest

from tests.service.world import World
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.log.catching_up.catch_up import LATE_ASKS, with_log_read
from tidegate_service.core.log.catching_up.sight import SeenBefore
from tidegate_service.core.log.catching_up.tail import Tail

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
            await sight.see(section, Tail(0, sections))

    with pytest.raises(IndexUnavailable):
        await with_log_read(context, table.id, overtaken)
    assert sections == LATE_ASKS + 1
