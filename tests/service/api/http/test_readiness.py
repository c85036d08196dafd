"""`/readyz` is open to everybody, so a flood of it costs as little as one."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tidegate_service.api.http.readiness import Readiness
from tidegate_service.api.http.request.limits import ServerLimits
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.storage import ObjectStorage

MANY = 16
GIVE_UP_S = 20.0


class Checking:
    """A check that waits to be told, and counts."""

    def __init__(self) -> None:
        self.begun = 0
        self.may = asyncio.Event()
        self.fails: StorageUnavailable | None = None

    async def __call__(self) -> None:
        self.begun += 1
        await self.may.wait()
        if self.fails is not None:
            raise self.fails


@pytest.mark.anyio
class TestReadiness:
    async def test_all_who_ask_are_told_by_one_check(self):
        check = Checking()
        ready = Readiness(check, kept_s=1.0)
        asking = [asyncio.create_task(ready.ask()) for _ in range(MANY)]
        await asyncio.sleep(0)
        check.may.set()
        await asyncio.gather(*asking)
        await ready.ask()
        assert check.begun == 1

    async def test_so_are_they_of_a_failure(self):
        check = Checking()
        check.fails = StorageUnavailable("the disk is full")
        check.may.set()
        ready = Readiness(check, kept_s=1.0)
        asked = await asyncio.gather(*(ready.ask() for _ in range(MANY)), return_exceptions=True)
        assert asked == [check.fails] * MANY
        assert check.begun == 1

    async def test_it_stands_for_its_time(self):
        check = Checking()
        check.may.set()
        ready = Readiness(check, kept_s=0.0)
        check.fails = StorageUnavailable("the disk is full")
        with pytest.raises(StorageUnavailable):
            await ready.ask()
        check.fails = None
        await ready.ask()
        assert check.begun == 2

    async def test_who_leaves_leaves_the_check_to_the_next(self):
        check = Checking()
        ready = Readiness(check, kept_s=1.0)
        first, second = (asyncio.create_task(ready.ask()) for _ in range(2))
        while not check.begun:
            await asyncio.sleep(0)
        first.cancel()
        check.may.set()
        await second
        assert check.begun == 2


@pytest.fixture
def probes(monkeypatch) -> Iterator[list[asyncio.Event]]:
    """What each probe of the store waits for."""
    found: list[asyncio.Event] = []

    async def probe(_: ObjectStorage) -> None:
        found.append(asyncio.Event())
        await found[-1].wait()

    monkeypatch.setattr(ObjectStorage, "probe", probe)
    return found


def test_a_flood_of_them_is_one_look_at_the_store(start_service, request):
    service = start_service(ServerLimits(readiness_kept_s=10 * GIVE_UP_S))
    # The store was probed at the start, too.
    probes = request.getfixturevalue("probes")
    with ThreadPoolExecutor(MANY) as threads:
        asked = [
            threads.submit(httpx.get, f"{service.url}/readyz", timeout=2 * GIVE_UP_S)
            for _ in range(MANY)
        ]
        # Each of them is there, and others are answered meanwhile.
        while not probes:
            assert httpx.get(f"{service.url}/healthz").status_code == 200
        for _ in range(MANY):
            assert httpx.get(f"{service.url}/healthz").status_code == 200
        assert len(probes) == 1
        service.loop.call_soon_threadsafe(probes[0].set)
        assert {each.result().status_code for each in asked} == {200}
    assert len(probes) == 1
