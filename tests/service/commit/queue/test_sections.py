"""Commit sections outlive the requests that start them."""

import asyncio

import pytest

from tidegate_service.core.errors import ShuttingDown
from tidegate_service.core.instance.running_commits import RunningCommits

pytestmark = pytest.mark.anyio

KEY = ("table", "txn")


async def test_a_cancelled_caller_leaves_the_section_to_its_end():
    sections = RunningCommits()
    started, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def section() -> int:
        started.set()
        await release.wait()
        ended.set()
        return 7

    caller = asyncio.create_task(sections.run(KEY, section()))
    await started.wait()
    assert sections.under_way(KEY)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert sections.under_way(KEY)
    release.set()
    await ended.wait()
    assert await sections.drain(timeout_s=5)
    assert not sections.under_way(KEY)


async def test_the_result_and_the_exception_reach_the_caller():
    sections = RunningCommits()

    async def wins() -> str:
        return "v1"

    async def fails() -> str:
        raise LookupError("lost")

    assert await sections.run(KEY, wins()) == "v1"
    with pytest.raises(LookupError, match="lost"):
        await sections.run(KEY, fails())
    assert not sections.under_way(KEY)


async def test_two_sections_of_one_transaction_are_both_counted():
    sections = RunningCommits()
    first, second = asyncio.Event(), asyncio.Event()

    async def until(event: asyncio.Event) -> None:
        await event.wait()

    one = asyncio.create_task(sections.run(KEY, until(first)))
    two = asyncio.create_task(sections.run(KEY, until(second)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.set()
    await one
    assert sections.under_way(KEY)
    second.set()
    await two
    assert not sections.under_way(KEY)


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
