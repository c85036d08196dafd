"""Reads of one principal wait behind each other, and nobody else does."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest

from tests.builders.flights import TABLE, add, proposal
from tests.service.catalog_managed.guarded import Guarded
from tidegate_service.api.http.request.requests import READS
from tidegate_service.core.ports.told import HeadsOnStandby
from tidegate_service.index.commit_index import PostgresIndex

GIVE_UP_S = 30.0
MANY = READS + 4


class Held:
    """Holds up whoever looks for a table, and counts how many do."""

    def __init__(self) -> None:
        self.may: asyncio.Event | None = None
        self.inside = 0
        self.most = 0

    async def wait(self) -> None:
        if self.may is None:
            return
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.may.wait()
        finally:
            self.inside -= 1


@pytest.fixture
def held(monkeypatch) -> Held:
    found, told_table = Held(), PostgresIndex.told_table

    async def held_up(index: PostgresIndex, ref: str, *, known: HeadsOnStandby, most_metadata: int):
        await found.wait()
        return await told_table(index, ref, known=known, most_metadata=most_metadata)

    monkeypatch.setattr(PostgresIndex, "told_table", held_up)
    return found


@dataclass(frozen=True)
class Flood:
    guarded: Guarded
    asked: list[Future[httpx.Response]]
    let_go: Callable[[], object]


@pytest.fixture
def flood(held, start_service, database_url) -> Iterator[Flood]:
    """More reads of one principal than are worked on at a time, all of them under way; others that
    come are not held up."""
    # Upkeep would look tables up, too.
    service = start_service(auth="tokens", upkeep_share=0.0)
    guarded = Guarded(service.url, database_url)
    guarded.table(TABLE)
    token, watcher = guarded.token("reader", "*", label="busy"), guarded.token("reader", "*")
    held.may = may = asyncio.Event()
    with (
        guarded.client(token) as client,
        guarded.client(watcher, root="") as watching,
        ThreadPoolExecutor(MANY) as threads,
    ):
        asked = [threads.submit(client.get, f"/tables/{TABLE}") for _ in range(MANY)]
        try:
            give_up = time.monotonic() + GIVE_UP_S
            # They and the one that asks.
            under_way = f"tidegate_requests_in_flight {MANY + 1}.0"
            while under_way not in watching.get("/metrics").text or held.inside < READS:
                assert time.monotonic() < give_up
            yield Flood(guarded, asked, lambda: service.loop.call_soon_threadsafe(may.set))
        finally:
            held.may = None
            service.loop.call_soon_threadsafe(may.set)


def test_so_many_are_worked_on_and_the_others_wait(flood, held):
    assert held.inside == READS
    flood.let_go()
    assert {each.result().status_code for each in flood.asked} == {200}
    assert held.most == READS


def test_others_do_not_wait_for_them(flood, held):
    held.may = None
    with flood.guarded.client(flood.guarded.token("reader", "*", label="other")) as client:
        assert client.get(f"/tables/{TABLE}").status_code == 200
    assert held.inside == READS


def test_nor_do_commits_of_the_same_principal(flood, held):
    held.may = None
    with flood.guarded.client(flood.guarded.token("writer", "*", label="busy")) as client:
        answer = client.post(f"/tables/{TABLE}/commits", json=proposal(add()))
    assert answer.status_code == 201
    assert held.inside == READS
