"""What is held in one piece while it is sent to an object store has a bound."""

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager

import pytest
from obstore.exceptions import GenericError

from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.remote import root as module

pytestmark = pytest.mark.anyio

WAREHOUSE = "s3://lake/warehouse"
OPTIONS = {"region": "eu-central-1", "access_key_id": "key", "secret_access_key": "secret"}
ROOM = 1_000
LARGE = 10
LIMITS = StorageLimits(joined_bytes=ROOM, large_bytes=LARGE)


class Lines:
    """A content in pieces, which are counted."""

    sha256 = ""

    def __init__(self, size: int) -> None:
        self.read = 0
        self._size = size

    def __len__(self) -> int:
        return self._size

    def pieces(self) -> Iterator[bytes]:
        self.read += 1
        yield b"x" * self._size


class Store:
    """Takes what is put when it is let to, and fails where `failing` says so."""

    def __init__(self) -> None:
        self.held: list[int] = []
        self.failing = False
        self.goes_on = asyncio.Event()

    async def put_async(self, store, key, body, **_) -> None:
        self.held.append(len(body))
        try:
            await self.goes_on.wait()
            if self.failing:
                raise GenericError("it fails")
        finally:
            self.held.remove(len(body))

    @asynccontextmanager
    async def sending(self, *puts):
        """Others are being sent meanwhile."""
        tasks = [asyncio.create_task(put) for put in puts]
        while len(self.held) < len(tasks):
            await asyncio.sleep(0.001)
        yield
        self.goes_on.set()
        assert await asyncio.gather(*tasks) == [PutResult.CREATED] * len(tasks)


@pytest.fixture
async def store(monkeypatch):
    made = Store()
    monkeypatch.setattr(module.obstore, "put_async", made.put_async)
    return made


@pytest.fixture
def storage(store):
    return ObjectStorage(WAREHOUSE, options=OPTIONS, limits=LIMITS)


def put(storage, table: str, content, *, who: str | None = None):
    return storage.log(f"{WAREHOUSE}/{table}", who=who).put_if_absent(1, content)


async def published(storage, table: str, content) -> PutResult:
    log = storage.log(f"{WAREHOUSE}/{table}")
    (result,) = await log.put_in_order([(1, content)], within_s=1)
    return result


async def test_no_more_is_joined_than_there_is_room_for(storage, store):
    async with store.sending(published(storage, "a", Lines(700))):
        for refused in (Lines(301), Lines(300)):
            with pytest.raises(StorageUnavailable, match="bytes of large commits that are sent"):
                await published(storage, "b", refused)
            assert refused.read == 0
        async with store.sending(published(storage, "c", Lines(200))):
            pass
    assert await published(storage, "b", Lines(700)) is PutResult.CREATED


async def test_one_principal_leaves_some_to_others(storage, store):
    first = put(storage, "a", Lines(600), who="greedy")
    async with store.sending(first):
        with pytest.raises(StorageUnavailable, match="more than 3 times what is left"):
            await put(storage, "b", Lines(200), who="greedy")
        async with store.sending(put(storage, "b", Lines(200), who="other")):
            pass


async def test_one_that_is_larger_than_the_room_is_sent_alone(storage, store):
    async with store.sending(put(storage, "a", Lines(50 * ROOM))):
        with pytest.raises(StorageUnavailable):
            await put(storage, "b", Lines(50 * ROOM))


async def test_small_ones_need_no_room(storage, store):
    async with store.sending(
        put(storage, "a", Lines(5 * ROOM)),
        *(put(storage, "a", Lines(LARGE)) for _ in range(9)),
        put(storage, "a", b"x" * ROOM),
    ):
        pass


@pytest.mark.parametrize("how", ["fails", "is left"])
async def test_its_room_is_given_back(storage, store, how):
    sent = asyncio.create_task(put(storage, "a", Lines(700)))
    while not store.held:
        await asyncio.sleep(0.001)
    if how == "fails":
        store.failing = True
        store.goes_on.set()
        with pytest.raises((StorageUnknown, StorageUnavailable)):
            await sent
        store.failing = False
    else:
        sent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sent
        store.goes_on.set()
    assert await put(storage, "b", Lines(700)) is PutResult.CREATED
