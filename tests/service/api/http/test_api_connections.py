"""Connections whose client never reads, asks for everything at once, or is one of too many."""

import os
import re
import resource
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import httpx
import pytest

from tests.builders.flights import add, proposal, table_body
from tidegate_service.api.http.limits import ServerLimits
from tidegate_service.api.server.connections import OTHER_FILES, Connections, most_connections
from tidegate_service.api.server.server import MAX_HEAD_BYTES, MAX_PIPELINED

GIVE_UP_S = 20.0
MIB = 1024 * 1024
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
OK = b"HTTP/1.1 200 OK"


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


def large_version(url: str) -> tuple[str, bytes]:
    """The path and the content of a version of three megabytes."""
    with httpx.Client(base_url=f"{url}/api/v1", timeout=40) as client:
        client.post("/tables", json=table_body(catalog_managed=True)).raise_for_status()
        tags = {"a": os.urandom(3 * MIB // 2).hex()}
        body = proposal(add(tags=tags))
        client.post("/tables/main.air.flights/commits", json=body).raise_for_status()
        content = client.get("/tables/main.air.flights/commits/1").content
    assert len(content) > 3 * MIB
    return "/api/v1/tables/main.air.flights/commits/1", content


def asking(path: str, *more: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *more, "", ""]).encode()


@pytest.fixture
def impatient(start_service) -> str:
    """A service that waits a second for an answer to be read."""
    return start_service(ServerLimits(send_s=1.0)).url


class TestReading:
    @pytest.mark.parametrize("last", [(), ("Connection: close",)], ids=["kept", "closed"])
    def test_who_never_reads_is_cut_off(self, impatient, last):
        path, _ = large_version(impatient)
        with connected(impatient) as connection:
            # More than any system keeps for a connection.
            connection.sendall(asking(path) * 5 + asking(path, *last))
            assert ended(connection)

    def test_so_is_who_has_an_answer_before_the_last_one_left(self, impatient):
        """An answer is whole once it is written, not once it is read."""
        path, _ = large_version(impatient)
        with connected(impatient) as connection:
            connection.sendall(asking(path) * 4)
            assert ended(connection)

    def test_it_is_no_defect_of_the_request_that_runs(self, impatient, caplog):
        """Others of its connection wait behind it, and it has still to ask for its body."""
        path, _ = large_version(impatient)
        asks = b"POST /api/v1/tables/main.air.flights/scan HTTP/1.1\r\nHost: localhost\r\n"
        asks += b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        with connected(impatient) as connection:
            connection.sendall((asking(path) * 3 + asks) * 3)
            assert ended(connection)
        # Whatever ran has ended before this is answered: a service that stops waits for it.
        assert httpx.get(f"{impatient}/healthz").status_code == 200
        assert [r.getMessage() for r in caplog.records if r.name == "tidegate.defect"] == []

    def test_who_reads_gets_all_of_it(self, impatient):
        path, content = large_version(impatient)
        with connected(impatient, takes=MIB) as connection:
            connection.sendall(asking(path) * 3 + asking(path, "Connection: close"))
            received = everything(connection)
        assert received.count(content) == 4


class TestPipelines:
    def test_a_few_requests_at_once_are_answered_in_order(self, start_service):
        with connected(start_service().url) as connection:
            paths = [b"/healthz", b"/nothing"] * (MAX_PIPELINED // 2)
            sent = [b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n" for path in paths]
            connection.sendall(b"".join(sent) + LAST)
            received = everything(connection)
        found = re.findall(rb"HTTP/1\.1 (\d+)", received)
        assert found == [b"200", b"404"] * (MAX_PIPELINED // 2) + [b"200"]

    def test_too_many_end_the_connection(self, start_service):
        with connected(start_service().url) as connection:
            # As much as a request alone may have, so that they come together.
            connection.sendall(HEALTH * (MAX_HEAD_BYTES // len(HEALTH)))
            answered = everything(connection).count(OK)
        assert answered <= MAX_PIPELINED


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

    def test_one_that_was_refused_is_not_counted(self):
        connections = Connections(4)
        assert [connections.enter("10.0.0.1") for _ in range(3)] == [None] * 3
        assert connections.enter("10.0.0.1") is not None
        connections.leave("10.0.0.1")
        assert connections.enter("10.0.0.1") is None

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
