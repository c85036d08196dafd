"""The threads in which manifests are written: those of a place that hangs are its own, and in one
place tables have their turns."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.local.root import LocalRoot
from tidegate_service.storage.object_storage import MANIFEST_WRITERS

pytestmark = pytest.mark.anyio

PATIENCE_S = 30.0


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str]:
    for name in ("hangs", "well"):
        (tmp_path / name).mkdir()
    return (tmp_path / "hangs").as_uri(), (tmp_path / "well").as_uri()


@pytest.fixture
def waiting() -> list[str]:
    """The manifests that are held."""
    return []


@pytest.fixture
def held(places, waiting, monkeypatch) -> Callable[[], None]:
    """Writes in the first place wait until this is called."""
    goes = threading.Event()
    replace = LocalRoot.replace

    def waits(self: LocalRoot, path: str, pieces: Iterable[bytes]) -> None:
        if self.url == places[0]:
            waiting.append(path)
            assert goes.wait(2 * PATIENCE_S)
        replace(self, path, pieces)

    monkeypatch.setattr(LocalRoot, "replace", waits)
    yield goes.set
    goes.set()


async def put(storage: ObjectStorage, location: str, count: int, done: list[str]) -> None:
    await storage.log(location).put_if_absent(0, b"{}")
    manifests = storage.manifests(location)

    async def one(partition: str) -> None:
        await manifests.put(partition, [b"x"])
        done.append(location)

    await asyncio.gather(*(one(f"x={number}") for number in range(count)))


async def test_a_place_that_hangs_has_none_of_the_others(places, held, waiting):
    storage = ObjectStorage(places[0], places[1:])
    done: list[str] = []
    hung = asyncio.create_task(put(storage, f"{places[0]}/t", 2 * MANIFEST_WRITERS, done))
    async with asyncio.timeout(PATIENCE_S):
        while len(waiting) < MANIFEST_WRITERS:
            await asyncio.sleep(0.01)
        await put(storage, f"{places[1]}/t", 2 * MANIFEST_WRITERS, done)
        assert set(done) == {f"{places[1]}/t"}
        held()
        await hung


async def test_tables_of_one_place_have_their_turns(places, held):
    storage = ObjectStorage(places[0])
    done: list[str] = []
    many = asyncio.create_task(put(storage, f"{places[0]}/many", 10 * MANIFEST_WRITERS, done))
    few = asyncio.create_task(put(storage, f"{places[0]}/few", 1, done))
    async with asyncio.timeout(PATIENCE_S):
        while sum(task.get_coro().__name__ == "one" for task in asyncio.all_tasks()) < (
            10 * MANIFEST_WRITERS + 1
        ):
            await asyncio.sleep(0.01)
        held()
        await asyncio.gather(many, few)
    assert done.index(f"{places[0]}/few") < 4 * MANIFEST_WRITERS
