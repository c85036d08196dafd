"""Commit sections outlive the requests that start them."""

import asyncio

import pytest

from tidegate_service.core.errors import ShuttingDown
from tidegate_service.core.instance.running_commits import RunningCommits

pytestmark = pytest.mark.anyio

KEY = ("table", "txn")


async def test_a_stopping_instance_starts_nothing_and_reports_what_did_not_end():
    sections = RunningCommits()
    release = asyncio.Event()
    caller = asyncio.create_task(sections.run(KEY, _wait(release)))
    await asyncio.sleep(0)
    assert not await sections.drain(timeout_s=0.01)
    with pytest.raises(ShuttingDown):
        await sections.run(("table", "late"), _wait(release))
    release.set()
    await caller
    assert await sections.drain(timeout_s=5)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def test_a_shared_section_that_has_ended_answers_nobody_who_comes_then():
    """Its callbacks come one pass of the loop after its end."""
    running, ends, made = RunningCommits(), asyncio.Event(), []

    async def section():
        made.append(len(made))
        await ends.wait()
        return made[-1]

    async def later():
        await ends.wait()
        return await running.run_once(("shared", "key"), section)

    first = asyncio.create_task(running.run_once(("shared", "key"), section))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.create_task(later())
    await asyncio.sleep(0)
    ends.set()
    assert (await first, await second) == (0, 1)
