"""Connections whose client never reads, asks for everything at once, or is one of too many."""

import os
import re
import resource
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
import pytest

from tests.builders.flights import add, proposal, table_body
from tests.service.api.http.connections.requests_by_hand import in_turn
from tests.service.serving import Running
from tidegate_service.api.http.request.limits import ServerLimits
from tidegate_service.api.server.connections import OTHER_FILES, Connections, most_connections
from tidegate_service.api.server.request_size import MAX_HEAD_BYTES, MAX_PARAMETERS
from tidegate_service.api.server.sliced_reads import EARLY_BYTES

GIVE_UP_S = 20.0
MIB = 1024 * 1024
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
OK = b"HTTP/1.1 200 OK"
T = TypeVar("T")


@contextmanager
def connected(
    url: str, *, address: str = "127.0.0.1", takes: int = 4096
) -> Iterator[socket.socket]:
    """A connection from the address that takes so much before it is read."""
    parts = urlsplit(url)
    with socket.socket() as connection:
        connection.settimeout(GIVE_UP_S)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, takes)
        connection.bind((address, 0))
        connection.connect((parts.hostname, parts.port))
        yield connection


def ended(connection: socket.socket) -> bool:
    """Whether the other side ends it while nothing is read."""
    poll = select.poll()
    poll.register(connection, 0)
    return bool(poll.poll(GIVE_UP_S * 1000))


def within(found: Callable[[], T]) -> T:
    """What is found in time."""
    until = time.monotonic() + GIVE_UP_S
    while not (value := found()):
        assert time.monotonic() < until
        time.sleep(0.001)
    return value


def everything(connection: socket.socket) -> bytes:
    received = b""
    while True:
        try:
            chunk = connection.recv(1 << 16)
        except ConnectionError:
            return received
        if not chunk:
            return received
        received += chunk


def large_version(service: Running) -> tuple[str, bytes]:
    """The path and the content of a version of half a megabyte, and a system that keeps far less
    than that of an answer."""
    (entrance,) = service.server.servers
    entrance._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with httpx.Client(base_url=f"{service.url}/api/v1", timeout=40) as client:
        client.post("/tables", json=table_body(catalog_managed=True)).raise_for_status()
        tags = {"a": os.urandom(MIB // 20).hex()}
        body = proposal(*(add(f"month=5/{number}", tags=tags) for number in range(5)))
        client.post("/tables/main.air.flights/commits", json=body).raise_for_status()
        content = client.get("/tables/main.air.flights/commits/1").content
    assert len(content) > MIB // 2
    return "/api/v1/tables/main.air.flights/commits/1", content


def asking(path: str, *more: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *more, "", ""]).encode()


@pytest.fixture
def impatient(start_service) -> Running:
    """A service that waits a second for an answer to be read."""
    return start_service(ServerLimits(send_s=1.0))


class TestReading:
    @pytest.mark.parametrize("last", [(), ("Connection: close",)], ids=["kept", "closed"])
    def test_who_never_reads_is_cut_off(self, impatient, caplog, last):
        path, _ = large_version(impatient)
        with connected(impatient.url) as connection:
            connection.sendall(asking(path, *last))
            assert ended(connection)
        # Whatever ran has ended before this is answered: a service that stops waits for it.
        assert httpx.get(f"{impatient.url}/healthz").status_code == 200
        assert [r.getMessage() for r in caplog.records if r.name == "tidegate.defect"] == []

    def test_so_is_who_sends_no_more(self, start_service):
        """However little is left to be sent to them."""
        service = start_service(ServerLimits(send_s=1.0))
        with connected(service.url) as connection:
            connection.sendall(HEALTH)
            within(lambda: service.server.server_state.total_requests)
            (protocol,) = service.server.server_state.connections
            system = protocol.transport.get_extra_info("socket")
            system.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            answered = 0
            while not protocol.transport.get_write_buffer_size():
                answered += 1
                connection.sendall(HEALTH)
                within(lambda count=answered: service.server.server_state.total_requests > count)
            connection.shutdown(socket.SHUT_WR)
            within(lambda: not service.server.server_state.connections)

    def test_who_reads_gets_all_of_it(self, impatient):
        path, content = large_version(impatient)
        with connected(impatient.url, takes=MIB) as connection:
            connection.sendall(asking(path, "Connection: close"))
            received = everything(connection)
        assert received.endswith(b"\r\n\r\n" + content)


SECONDS = {
    "a commit": (
        422,
        b"POST /api/v1/tables HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: 2\r\n\r\n{}",
    ),
    "too many parameters": (413, b"GET /healthz?" + b"a=1&" * (MAX_PARAMETERS + 1) + LAST[12:]),
    "no HTTP": (400, b"\0\r\n\r\n"),
    "a head that does not end": (413, b"GET /healthz HTTP/1.1\r\nX-A: " + b"a" * MAX_HEAD_BYTES),
}


@pytest.mark.parametrize(("status", "second"), SECONDS.values(), ids=SECONDS.keys())
class TestBeforeTheAnswer:
    """A request that comes before the answer to the one before is answered behind that."""

    def test_to_a_small_one(self, start_service, status, second):
        service = start_service()
        body = b"Content-Type: application/json\r\nContent-Length: 20000\r\n\r\n"
        body += b"{}".ljust(20_000)
        first = b"POST /api/v1/tables/main.air.none/commits HTTP/1.1\r\nHost: localhost\r\n" + body
        with connected(service.url) as connection:
            connection.sendall(first + second)
            received = everything(connection)
        assert re.findall(rb"HTTP/1\.1 (\d+)", received) == [b"422", b"%d" % status]

    def test_to_one_that_is_being_sent(self, start_service, status, second):
        service = start_service()
        path, content = large_version(service)
        with connected(service.url) as connection:
            connection.sendall(asking(path))
            received = connection.recv(1)
            connection.sendall(second)
            received += everything(connection)
        _, _, rest = received.partition(b"\r\n\r\n")
        assert rest.startswith(content + b"HTTP/1.1 %d " % status)


def test_much_that_comes_before_an_answer_is_dropped(start_service):
    """The connection ends with the answer, and whoever sent it sends it again."""
    service = start_service()
    path, content = large_version(service)

    def is_dropped() -> bool:
        with connected(service.url) as connection:
            connection.sendall(asking(path))
            received = connection.recv(1)
            connection.sendall(HEALTH * (2 * EARLY_BYTES // len(HEALTH)))
            received += everything(connection)
        _, _, rest = received.partition(b"\r\n\r\n")
        assert rest.startswith(content)
        return rest == content

    # Of what is not much, or comes after the answer, all is answered. How much of it the service
    # reads at once, and when, is the machine's choice.
    assert any(is_dropped() for _ in range(10))


def test_a_refusal_stays_behind_an_answer_without_a_body(start_service):
    service = start_service()
    with connected(service.url) as connection:
        connection.sendall(b"HEAD /docs HTTP/1.1\r\nHost: localhost\r\n\r\n")
        (protocol,) = within(lambda: service.server.server_state.connections)
        # Read with the end of the request before, it would be dropped.
        within(lambda: protocol._requests)
        connection.sendall(b"\0\r\n\r\n")
        received = everything(connection)
    first, second = re.findall(rb"HTTP/1\.1 (\d+)", received)
    assert (first != b"400", second) == (True, b"400")


def test_no_silence_ends_an_answer(start_service):
    """Also where its request came with the rest of the body of the one before."""
    service = start_service(ServerLimits(keep_alive_s=0.2))
    path, content = large_version(service)
    unread = b"POST /api/v1/tables HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    with connected(service.url) as connection:
        connection.sendall(unread + b"Transfer-Encoding: chunked\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 415 ")
        connection.sendall(b"0\r\n\r\n" + asking(path, "Connection: close"))
        time.sleep(0.5)
        received = everything(connection)
    assert received.endswith(b"\r\n\r\n" + content)


def test_one_that_is_read_with_the_end_of_the_one_before_is_dropped(start_service):
    with connected(start_service().url) as connection:
        connection.sendall(HEALTH + LAST + b"a" * 100_000)
        assert everything(connection).count(OK) == 1


def test_large_answers_one_after_the_other(start_service):
    """An answer ends for the server a moment after its client has all of it."""
    service = start_service()
    path, _ = large_version(service)
    assert in_turn(service.url, *[asking(path)] * 10) == [200] * 10


class TestSilences:
    IDLE_S = 5.2
    """httpx and many others keep an idle connection for 5 s."""

    def test_an_idle_connection_is_kept_for_longer_than_its_client_keeps_it(self, start_service):
        with connected(start_service().url) as connection:
            connection.sendall(HEALTH)
            assert connection.recv(1000).startswith(OK)
            time.sleep(self.IDLE_S)
            connection.sendall(LAST)
            assert everything(connection).startswith(OK)

    def test_not_for_ever(self, start_service):
        with connected(start_service(ServerLimits(keep_alive_s=0.2)).url) as connection:
            connection.sendall(HEALTH)
            assert connection.recv(1000).startswith(OK)
            assert everything(connection) == b""

    def test_not_for_as_long_amid_a_body_that_was_answered(self, start_service):
        with connected(start_service(ServerLimits(head_s=0.2)).url) as connection:
            connection.sendall(
                b"POST /api/v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
            )
            assert everything(connection).startswith(b"HTTP/1.1 415")


class TestHttp10:
    def test_it_is_answered_and_ended(self, start_service):
        with connected(start_service().url) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n" + HEALTH)
            received = everything(connection)
        assert received.count(b"HTTP/1.1 ") == 1
        assert received.startswith(OK)
        assert b"connection: close" in received.lower()

    def test_a_body_of_no_length_is_none(self, start_service):
        with connected(start_service().url) as connection:
            connection.sendall(
                b"POST /api/v1/tables HTTP/1.0\r\nHost: localhost\r\n"
                b'Content-Type: application/json\r\n\r\n{"name": "a.b.c"}'
            )
            received = everything(connection)
        assert received.startswith(b"HTTP/1.1 422 ")


class TestTooMany:
    def test_one_address_leaves_some_to_others(self, start_service):
        url = start_service(max_connections=8).url
        with ExitStack() as stack:
            for _ in range(6):
                connection = stack.enter_context(connected(url))
                connection.sendall(HEALTH)
                assert connection.recv(1000).startswith(OK)
            refused = stack.enter_context(connected(url))
            answer = everything(refused)
            assert answer.startswith(b"HTTP/1.1 429 ")
            assert b"\r\nRetry-After: 1\r\n" in answer
            assert b'"code":"backpressure"' in answer
            other = stack.enter_context(connected(url, address="127.0.0.2"))
            other.sendall(LAST)
            assert everything(other).startswith(OK)

    def test_who_has_gone_is_not_counted(self, start_service):
        url = start_service(max_connections=4).url
        for _ in range(20):
            with connected(url) as connection:
                connection.sendall(LAST)
                assert everything(connection).startswith(OK)

    def test_a_network_of_ipv6_is_one_address(self):
        connections = Connections(4)
        for host in ("2001:db8::1", "2001:db8::2", "2001:db8::3:0:0:1"):
            assert connections.enter(host) is None
        assert connections.enter("2001:db8::ffff") is not None
        assert connections.enter("2001:db8:0:1::1") is None


def test_there_are_as_many_as_files_may_be_open():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OTHER_FILES + 200, before[1]))
        assert most_connections(300) == 300
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == OTHER_FILES + 300
        assert most_connections(10**9) == before[1] - OTHER_FILES
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
