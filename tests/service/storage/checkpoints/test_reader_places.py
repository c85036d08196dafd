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
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.checkpoints.apart.places import Places
from tidegate_service.storage.checkpoints.apart.readers import PROCESSES
from tidegate_service.storage.checkpoints.budget import Budget
from tidegate_service.storage.checkpoints.reading import checkpoint_actions
from tidegate_service.storage.limits import StorageLimits

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


async def test_a_place_is_held_until_the_process_is_ended(content, pool):
    """Whoever asks and leaves again and again has no more processes than others."""
    places = Places(1, wait_s=0.3)
    within, goes_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold(file: Watched) -> None:
        if file.reads == 3:
            loop.call_soon_threadsafe(within.set)
            asyncio.run_coroutine_threadsafe(goes_on.wait(), loop).result(PATIENCE_S)

    task = asyncio.create_task(count(Watched(content, hold), pool, "a", places))
    async with asyncio.timeout(PATIENCE_S):
        await within.wait()
    await left(task)
    with pytest.raises(StorageUnavailable):
        await count(io.BytesIO(content), pool, "b", places)
    goes_on.set()
    await until(lambda: readers() == [])
    assert await count(io.BytesIO(content), pool, "b", places) == 1000


@pytest.mark.slow
async def test_of_one_storage_there_are_as_many_as_it_is_told(tmp_path, content, pool):
    log = DeltaLog(tmp_path / "t")
    log.path(0, "checkpoint.parquet").write_bytes(content)
    storage = ObjectStorage(tmp_path.as_uri(), limits=StorageLimits(readers=1))
    name = log.path(0, "checkpoint.parquet").name
    first = storage.log(log.location, who="a").checkpoint_actions(name)
    assert await anext(first)
    second = storage.log(log.location, who="b").checkpoint_actions(name)
    waits = asyncio.create_task(anext(second))
    await asyncio.sleep(0.2)
    assert not waits.done()
    await first.aclose()
    assert await waits
    await second.aclose()
