"""`/readyz` is open to everybody, so a flood of it costs as little as one."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tidegate_service.api.http.request.limits import ServerLimits
from tidegate_service.storage import ObjectStorage

MANY = 16
GIVE_UP_S = 20.0


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
