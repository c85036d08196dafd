"""Clients that take their time, or never stop: each connection ends by itself."""

import re
import socket
import time
from urllib.parse import urlsplit

import pytest

from tests.service.api.http.connections.requests_by_hand import exchange, in_turn
from tidegate_service.api.http.request.limits import ServerLimits

HEAD_S, BODY_S = 0.25, 0.5
GIVE_UP_S = 15.0
ANSWER = re.compile(rb"HTTP/1\.1 \d")


@pytest.fixture
def quick(start_service) -> str:
    """A service that waits a quarter of a second for a head and half of one for a body."""
    return start_service(ServerLimits(head_s=HEAD_S), deadline_seconds=BODY_S).url


def trickle(url: str, begin: bytes, drop: bytes, *, every_s: float = 0.05) -> tuple[bytes, float]:
    """What comes back on a connection that is sent `begin` and then `drop` for ever, and how
    long it took the server to end it."""
    parts = urlsplit(url)
    received = b""
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.settimeout(every_s)
        started = time.monotonic()
        connection.sendall(begin)
        while time.monotonic() - started < GIVE_UP_S:
            try:
                chunk = connection.recv(65536)
                if not chunk:
                    return received, time.monotonic() - started
                received += chunk
                continue
            except TimeoutError:
                pass
            except ConnectionError:
                return received, time.monotonic() - started
            try:
                connection.sendall(drop)
            except ConnectionError:
                return received, time.monotonic() - started
    raise AssertionError(f"the connection is still open; it answered {received!r}")


def head(*lines: str) -> bytes:
    return "".join(f"{line}\r\n" for line in ("POST /api/v1/tables HTTP/1.1", *lines)).encode()


JSON = ("Host: localhost", "Content-Type: application/json")


class TestSlowHeads:
    @pytest.mark.parametrize(
        ("begin", "drop"),
        [
            (b"", b"G"),
            (b"", b"\r\n"),
            (b"GET /", b"a"),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: ", b"a"),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"A: a\r\n"),
        ],
        ids=["method", "empty lines", "target", "header", "headers"],
    )
    def test_a_head_has_its_time_however_it_is_dealt_out(self, quick, begin, drop):
        _, took = trickle(quick, begin, drop)
        assert took < HEAD_S + 3

    def test_so_has_the_second_of_a_connection(self, quick):
        first = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        received, took = trickle(quick, first + b"GET /healthz HTTP/1.1\r\nA: ", b"a")
        assert received.count(b"HTTP/1.1 200 OK") == 1
        assert took < HEAD_S + 3

    def test_empty_lines_after_an_answer_do_not_keep_a_connection(self, quick):
        first = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        received, took = trickle(quick, first, b"\r\n")
        assert received.count(b"HTTP/1.1 200 OK") == 1
        assert took < HEAD_S + 3


class TestSlowBodies:
    @pytest.mark.parametrize(
        ("begin", "drop"),
        [
            (head(*JSON, "Content-Length: 1000000", ""), b" "),
            (head(*JSON, "Transfer-Encoding: chunked", ""), b"1\r\n \r\n"),
            (head(*JSON, "Transfer-Encoding: chunked", "") + b"ffff\r\n", b" "),
            (head(*JSON, "Transfer-Encoding: chunked", "") + b"1", b";"),
            (head(*JSON, "Transfer-Encoding: chunked", "") + b"0\r\n", b"A: a\r\n"),
            (head(*JSON, "Content-Encoding: gzip", "Content-Length: 999999", ""), b"\x1f"),
        ],
        ids=["length", "chunks", "chunk", "chunk extension", "trailers", "gzip"],
    )
    def test_one_byte_at_a_time_meets_the_deadline_and_then_the_end(self, quick, begin, drop):
        received, took = trickle(quick, begin, drop)
        assert received.startswith((b"HTTP/1.1 503 ", b"HTTP/1.1 400 "))
        assert len(ANSWER.findall(received)) == 1
        assert took < BODY_S + HEAD_S + 3

    def test_nothing_at_all_meets_it_too(self, quick):
        answer = exchange(quick, head(*JSON, "Content-Length: 10", "Connection: close", ""))
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b'"code":"deadline-exceeded"' in answer

    def test_the_rest_of_a_body_that_was_refused_is_not_waited_for(self, quick):
        begin = head("Host: localhost", "Content-Type: text/plain", "Content-Length: 100000", "")
        received, took = trickle(quick, begin, b"x")
        assert received.startswith(b"HTTP/1.1 415 ")
        assert took < HEAD_S + 3

    def test_a_rest_that_comes_in_time_leaves_the_connection_usable(self, server):
        begin = head("Host: localhost", "Content-Type: text/plain", "Content-Length: 4", "")
        then = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        assert in_turn(server, begin, b"abcd" + then) == [415, 200]
