"""No file that hangs takes the processes, or the threads, that others' files are read in."""

import asyncio
import io
from collections.abc import Callable

import psutil
import pytest

from tests.service.storage.checkpoints.test_reader_processes import ROWS, Watched, forked
from tests.service.tables.delta_logs import DeltaLog
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.storage.checkpoints.apart.places import Places
from tidegate_service.storage.checkpoints.apart.readers import PROCESSES
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.reading import checkpoint_actions

pytestmark = pytest.mark.anyio

PATIENCE_S = 20.0
"""What hangs would hang for longer."""


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    return DeltaLog(tmp_path_factory.mktemp("log")).checkpoint(0, ROWS[:1000]).read_bytes()


@pytest.fixture
def pool():
    """Of one thread: whoever keeps it has it."""
    PROCESSES.end()
    yield Pool("test", 1)
    for reader in readers():
        reader.kill()


def readers() -> list[psutil.Process]:
    if not any("forking" in "".join(child.cmdline()) for child in psutil.Process().children()):
        return []
    return forked().children()


def stopped() -> list[psutil.Process]:
    return [reader for reader in readers() if reader.status() == psutil.STATUS_STOPPED]


def hanging(content: bytes, *, most: int = 1) -> Watched:
    """A file that stops whoever reads it, as one does at which Arrow waits for itself. Once `most`
    are stopped, it stops nobody who began later."""

    def stop(file: Watched) -> None:
        if file.reads == 3 and len(stopped()) < most:
            for reader in readers():
                reader.suspend()

    return Watched(content, stop)


async def count(file: io.BytesIO, pool: Pool, who: str, places: Places) -> int:
    found = 0
    batches = checkpoint_actions(lambda _: file, "a.parquet", Budget(), pool.of(who), places)
    async for batch in batches:
        found += len(batch)
    return found


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)


async def left(*tasks: asyncio.Task[int]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_files_of_one_that_hang_leave_others_a_thread_and_a_process(content, pool):
    places = Places(4, wait_s=0.5)
    files = [hanging(content, most=3) for _ in range(4)]
    tasks = [asyncio.create_task(count(file, pool, "evil", places)) for file in files]
    # Three of four processes: the fourth is waited for in vain.
    done, hang = await asyncio.wait(tasks, timeout=PATIENCE_S, return_when="FIRST_COMPLETED")
    (refused,) = done
    with pytest.raises(StorageUnavailable, match="of one principal all but a quarter"):
        refused.result()
    await until(lambda: len(stopped()) == 3)
    async with asyncio.timeout(PATIENCE_S):
        assert await count(io.BytesIO(content), pool, "good", places) == 1000
        assert await count(io.BytesIO(content), pool, "", places) == 1000
    assert len(stopped()) == 3
    assert not any(task.done() for task in hang)
    await left(*hang)


async def test_whoever_leaves_frees_the_thread_and_ends_the_process(content, pool):
    places = Places(1, wait_s=PATIENCE_S)
    task = asyncio.create_task(count(hanging(content), pool, "a", places))
    await until(lambda: len(stopped()) == 1)
    (reader,) = stopped()
    await left(task)
    assert await count(io.BytesIO(content), pool, "b", places) == 1000
    reader.wait(PATIENCE_S)
