"""Requests of nobody: they take nothing of what others have, and wait for one another."""

import asyncio
import select
import socket
import time
from contextlib import ExitStack

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Scope

from tests.service.api.http.connections.test_api_connections import asking, connected, everything
from tests.service.catalog_managed.guarded import Guarded
from tidegate_service.api.http.edge import Edge
from tidegate_service.api.http.request.limits import Limits, ServerLimits
from tidegate_service.api.http.request.requests import Gate
from tidegate_service.api.http.strangers import ANSWERS, Strangers
from tidegate_service.core.sharing.shares import most_of_one

GIVE_UP_S = 20.0
BUNDLE = "/docs/static/swagger-ui-bundle.js"
TABLES = "/api/v1/tables"
NEVER_S = 1e6
FEW = 2


def line_of(*, at_once: int = FEW, turn_s: float = NEVER_S, **limits: int) -> Strangers:
    """Two begin at a time, and their turns do not end."""
    return Strangers("requests", answers=None, at_once=at_once, turn_s=turn_s, **limits)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.anyio
class TestTurns:
    async def test_addresses_have_them_in_turn(self):
        line, order = line_of(at_once=1, turn_s=0.0), []

        async def ask(address: str) -> None:
            await line.wait(address)
            order.append(address)

        flood = [asyncio.create_task(ask("10.0.0.1")) for _ in range(50)]
        other = asyncio.create_task(ask("10.0.0.2"))
        await asyncio.gather(*flood, other)
        assert order.index("10.0.0.2") <= 2

    async def test_who_leaves_waits_no_more(self):
        line = line_of(waiting=1)
        for _ in range(FEW):
            await line.wait("10.0.0.1")
        for _ in range(3):
            gone = asyncio.create_task(line.wait("10.0.0.1"))
            await settle()
            gone.cancel()
            await settle()


@pytest.fixture
def small(start_service, database_url) -> Guarded:
    """A service with tokens that takes four requests at a time, and whose system keeps little of
    an answer."""
    service = start_service(auth="tokens", max_requests=4)
    (entrance,) = service.server.servers
    entrance._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return Guarded(service.url, database_url)


def answer_to(url: str, path: str, *, address: str = "127.0.0.1") -> bytes:
    with connected(url, address=address, takes=1 << 20) as connection:
        connection.sendall(asking(path, "Connection: close"))
        return everything(connection)


class TestUnread:
    def test_what_they_do_not_read_takes_no_place_of_others(self, small):
        with ExitStack() as stack:
            for _ in range(most_of_one(ANSWERS)):
                stack.enter_context(connected(small.url)).sendall(asking(BUNDLE))
            # Once each of them is there, a further one of their address is refused,
            give_up = time.monotonic() + GIVE_UP_S
            while not answer_to(small.url, "/docs").startswith(b"HTTP/1.1 429 "):
                assert time.monotonic() < give_up
            # and neither another address is nor a health check,
            assert answer_to(small.url, "/docs", address="127.0.0.2").startswith(b"HTTP/1.1 200 ")
            assert answer_to(small.url, "/healthz").startswith(b"HTTP/1.1 200 ")
            # nor who has a token.
            with small.client(small.token("reader", "*")) as client:
                assert client.get("/tables").status_code == 200


class TestWithoutAToken:
    FEW_ONCE = ServerLimits(strangers=FEW, stranger_turn_s=NEVER_S)
    """As `line_of`."""

    @pytest.mark.parametrize("more", [(), ("Authorization: Bearer wrong",)], ids=["none", "wrong"])
    def test_they_wait_and_others_do_not(self, start_service, database_url, more):
        guarded = Guarded(start_service(self.FEW_ONCE, auth="tokens").url, database_url)
        token = guarded.token("reader", "*")
        with ExitStack() as stack:
            answered = select.poll()
            for _ in range(FEW + 3):
                connection = stack.enter_context(connected(guarded.url))
                connection.sendall(asking(TABLES, *more))
                answered.register(connection, select.POLLIN)
            give_up = time.monotonic() + GIVE_UP_S
            while len(answered.poll(GIVE_UP_S * 1000)) < FEW:
                assert time.monotonic() < give_up
            with guarded.client(token) as client:
                for _ in range(3):
                    assert client.get("/tables").status_code == 200
            assert len(answered.poll(0)) == FEW
            assert answer_to(guarded.url, "/healthz").startswith(b"HTTP/1.1 200 ")

    def test_without_authentication_nobody_waits(self, start_service):
        url = start_service(self.FEW_ONCE).url
        for _ in range(FEW + 3):
            assert httpx.get(f"{url}{TABLES}").status_code == 200


def edge(app: ASGIApp, *, max_requests: int = 10) -> Edge:
    limits = Limits(
        max_requests=max_requests, max_body_bytes=100, deadline_s=30, long_deadline_s=30
    )
    return Edge(app, limits=limits, gate=Gate())


def asked_for(path: str) -> Scope:
    return {"type": "http", "path": path, "method": "GET", "headers": [(b"host", b"localhost")]}


async def nothing() -> Message:
    raise AssertionError("nothing is asked of the body")


@pytest.mark.anyio
async def test_a_refusal_that_nobody_reads_takes_no_place():
    taken = edge(PlainTextResponse("no", status_code=401), max_requests=1)
    begun, statuses = asyncio.Event(), list[int]()

    async def never_read(message: Message) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def read(message: Message) -> None:
        statuses.append(message.get("status", 0))

    unread = asyncio.create_task(taken(asked_for(TABLES), nothing, never_read))
    await begun.wait()
    await taken(asked_for(TABLES), nothing, read)
    assert statuses[0] == 401
    unread.cancel()
