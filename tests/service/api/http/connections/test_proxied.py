"""Connections of a proxy: each request on one is that of whom the proxy names, and whatever becomes
of it, the connection is there for the next one."""

import asyncio
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import httptools
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message

from tests.service.api.http.connections.test_api_connections import (
    GIVE_UP_S,
    HEALTH,
    OK,
    asking,
    connected,
    everything,
    within,
)
from tests.service.api.http.connections.test_strangers import asked_for, nothing, settle
from tests.service.catalog_managed.guarded import Guarded
from tidegate_service.api.http.edge import Edge
from tidegate_service.api.http.request.heads import PROXIED
from tidegate_service.api.http.request.limits import Limits, ServerLimits
from tidegate_service.api.http.request.requests import Gate
from tidegate_service.core.access.failed_authentications import BURST

PROXY = "127.0.0.1"
TABLES = "/api/v1/tables"
NEVER_S = 1e6
ONE_ONCE = ServerLimits(strangers=1, stranger_turn_s=NEVER_S)
"""Of requests that are nobody's one begins, and its turn does not end."""
ANN, BOB = "198.51.100.1", "198.51.100.2"


class Kept:
    """A connection on which one request is sent after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, caller: str, token: str | None = None) -> None:
        more = [] if token is None else [f"Authorization: Bearer {token}"]
        self._connection.sendall(asking(TABLES, f"X-Forwarded-For: {caller}", *more))

    def is_answered(self, within_s: float = 0.0) -> bool:
        return bool(select.select([self._connection], [], [], within_s)[0])

    def answer(self) -> tuple[int, bool]:
        """The status of the next answer, and whether the connection is kept after it."""
        found: list[tuple[int, bool]] = []

        class Answer:
            def on_message_complete(self) -> None:
                found.append((parser.get_status_code(), parser.should_keep_alive()))

        parser = httptools.HttpResponseParser(Answer())
        while not found:
            received = self._connection.recv(65536)
            assert received, "the service ended the connection"
            parser.feed_data(received)
        return found[0]

    def ask(self, caller: str, token: str | None = None) -> tuple[int, bool]:
        self.send(caller, token)
        return self.answer()


@contextmanager
def kept(url: str) -> Iterator[Callable[[], Kept]]:
    """Opens connections to it."""
    with ExitStack() as stack:
        yield lambda: Kept(stack.enter_context(connected(url)))


def unknown(number: int) -> str:
    return f"tdg_{number:012x}_{'0' * 64}"


class TestRefused:
    """One caller's begins, one waits, and there is no room to wait for a further one of it."""

    def flood(self, opened: Callable[[], Kept], *callers: str) -> list[Kept]:
        """Those that have no room to wait."""
        assert opened().ask(callers[0]) == (401, True)
        connections = [opened() for _ in callers]
        for connection, caller in zip(connections, callers, strict=True):
            connection.send(caller)
        give_up = time.monotonic() + GIVE_UP_S
        while len(found := [each for each in connections if each.is_answered()]) < len(callers) - 1:
            assert time.monotonic() < give_up
        return found

    def test_a_proxys_connection_is_kept(self, start_service, database_url):
        service = start_service(
            ONE_ONCE, auth="tokens", max_connections=8, trusted_proxies=(PROXY,)
        )
        token = Guarded(service.url, database_url).token("reader", "*")
        with kept(service.url) as opened:
            refused = self.flood(opened, ANN, ANN, ANN, ANN)
            for connection in refused:
                assert connection.answer() == (429, True)
                for number in range(3):
                    assert connection.ask(ANN) == (429, True)
                    assert connection.ask(ANN, unknown(number)) == (401, True)
                # The next one on it is somebody else's.
                assert connection.ask(BOB, token) == (200, True)
            # There is room for another's to wait.
            refused[0].send(BOB)
            assert not refused[0].is_answered(within_s=0.2)

    @pytest.mark.parametrize("trusted", [(), ("127.0.0.2",)], ids=["none", "another"])
    def test_others_end_whoever_they_say_they_ask_for(self, start_service, trusted):
        service = start_service(ONE_ONCE, auth="tokens", max_connections=8, trusted_proxies=trusted)
        with kept(service.url) as opened:
            refused = self.flood(opened, *(f"198.51.100.{number}" for number in range(4)))
            assert [each.answer() for each in refused] == [(429, False)] * 3
            assert opened().ask("198.51.100.9", unknown(0)) == (401, False)

    def test_so_is_one_of_a_principal_with_too_many_requests(self, start_service, database_url):
        service = start_service(
            auth="tokens",
            max_requests=4,
            max_requests_per_principal=1,
            trusted_proxies=(PROXY,),
        )
        token = Guarded(service.url, database_url).token("writer", "*")
        with kept(service.url) as opened, connected(service.url) as under_way:
            body = ("Content-Type: application/json", "Content-Length: 9")
            head = asking(TABLES, f"Authorization: Bearer {token}", *body)
            under_way.sendall(head.replace(b"GET", b"POST"))
            within(lambda: opened().ask(ANN, token) == (429, True))
            # One waits a second to be told so, and there is no room for another one.
            both = [opened(), opened()]
            for each in both:
                each.send(ANN, token)
            assert [each.answer() for each in both] == [(429, True)] * 2


@pytest.mark.anyio
async def test_those_without_room_are_told_in_turn():
    """One of another caller behind the same proxy is not told after all of a flood."""
    limits = Limits(
        max_requests=100,
        max_body_bytes=0,
        deadline_s=30,
        long_deadline_s=30,
        max_connections=4,
        server=ONE_ONCE,
    )
    refusing = Edge(PlainTextResponse("no", status_code=401), limits=limits, gate=Gate())
    told: list[str] = []

    async def ask(caller: str) -> None:
        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                told.append(caller)

        scope = {**asked_for(TABLES), "client": (caller, 0), PROXIED: True}
        await refusing(scope, nothing, tell)

    await ask(ANN)
    waiting = asyncio.create_task(ask(ANN))
    await settle()
    async with asyncio.timeout(GIVE_UP_S):
        await asyncio.gather(*(ask(ANN) for _ in range(20)), ask(BOB))
    assert not waiting.done()
    assert told.index(BOB) <= 3
    waiting.cancel()


def test_failures_are_those_of_whom_the_proxy_names(start_service):
    service = start_service(auth="tokens", trusted_proxies=(PROXY,))
    with kept(service.url) as opened:
        anns, bobs = opened(), opened()
        for number in range(BURST):
            assert anns.ask(ANN, unknown(number)) == (401, True)
        anns.send(ANN, unknown(BURST))
        bobs.send(BOB, unknown(BURST + 1))
        assert bobs.answer() == (401, True)
        assert not anns.is_answered()
        assert anns.answer() == (401, True)


class TestShares:
    def test_a_proxy_has_what_there_is_and_others_their_share(self, start_service):
        url = start_service(max_connections=8, trusted_proxies=(PROXY,)).url
        with ExitStack() as stack:

            def opened(address: str) -> socket.socket:
                connection = stack.enter_context(connected(url, address=address))
                connection.sendall(HEALTH)
                return connection

            assert all(opened("127.0.0.2").recv(1000).startswith(OK) for _ in range(6))
            assert everything(opened("127.0.0.2")).startswith(b"HTTP/1.1 429 ")
            assert all(opened(PROXY).recv(1000).startswith(OK) for _ in range(2))
            assert everything(opened(PROXY)).startswith(b"HTTP/1.1 429 ")
