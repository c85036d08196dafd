"""What a request says of itself is bounded where the parser calls for each piece of it."""

import json
from contextlib import suppress

import pytest
from starlette import datastructures
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tests.service.api.http.connections.requests_by_hand import exchange
from tests.service.api.http.connections.test_api_connections import connected, everything
from tidegate_service.api.server.request_size import (
    CHUNK_BYTES,
    FRAMING_BYTES,
    FREE_CHUNKS,
    MAX_ESCAPES,
    MAX_HEADERS,
    MAX_PARAMETERS,
    MAX_QUERY_BYTES,
)

TO_CREATE = (
    b"POST /api/v1/tables HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
EXTENSION = b"x" * 64 * 1024


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


def told(answer: bytes) -> tuple[int, dict[str, object]]:
    """The status, and the problem."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1
    return int(head.split(b" ")[1]), json.loads(body)


class TestChunks:
    def test_many_that_are_tiny_are_refused_before_the_body_ends(self, shared_server):
        status, found = told(exchange(shared_server, TO_CREATE + chunk(b" ") * 2 * FREE_CHUNKS))
        assert (status, found["code"]) == (413, "too-large")
        assert f"chunks of {CHUNK_BYTES} bytes" in str(found["detail"])

    @pytest.mark.parametrize(
        ("size", "many"), [(CHUNK_BYTES, 20 * FREE_CHUNKS), (1, FREE_CHUNKS - 1)]
    )
    def test_others_are_read_to_their_end(self, shared_server, size, many):
        status, found = told(
            exchange(shared_server, TO_CREATE + chunk(b" " * size) * many + chunk(b""))
        )
        assert (status, found["code"]) == (422, "invalid-request")

    def test_what_else_they_say_is_bounded(self, shared_server):
        """The parser hands on nothing of it, however long it is."""
        with connected(shared_server) as connection:
            connection.sendall(TO_CREATE + b"1;")
            with suppress(ConnectionError):
                for _ in range(2 * FRAMING_BYTES // len(EXTENSION)):
                    connection.sendall(EXTENSION)
            status, found = told(everything(connection))
        assert (status, found["code"]) == (413, "too-large")
        assert "beside the data of a body" in str(found["detail"])

    def test_the_rest_of_a_body_that_was_answered_gets_no_second_answer(self, shared_server):
        unread = TO_CREATE.replace(b"application/json", b"text/plain")
        unread = unread.replace(b"Connection: close\r\n", b"")
        with connected(shared_server) as connection:
            connection.sendall(unread)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 415 ")
            connection.sendall(chunk(b" ") * 2 * FREE_CHUNKS)
            assert everything(connection) == b""


class TestHeaders:
    def test_no_more_are_looked_at_than_there_may_be(self, shared_server, monkeypatch):
        seen = []
        on_header = HttpToolsProtocol.on_header

        def counted(protocol, name, value):
            seen.append(name)
            on_header(protocol, name, value)

        monkeypatch.setattr(HttpToolsProtocol, "on_header", counted)
        sent = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"a:b\r\n" * 2_500 + b"\r\n"
        status, found = told(exchange(shared_server, sent))
        assert (status, found["code"]) == (413, "too-large")
        assert seen.count(b"a") < MAX_HEADERS

    def test_nor_trailers(self, shared_server):
        sent = TO_CREATE + b"0\r\n" + b"a:b\r\n" * (MAX_HEADERS + 2)
        status, found = told(exchange(shared_server, sent))
        assert (status, found["code"]) == (413, "too-large")


class TestTargets:
    """Names and values of a query are looked for on the event loop."""

    @pytest.mark.parametrize(
        "target",
        [
            "/docs/static/x?" + "&" * MAX_PARAMETERS,
            "/docs/static/x?a=" + "a" * (MAX_QUERY_BYTES - 1),
            "/docs/static/" + "%41" * (MAX_ESCAPES + 1),
        ],
        ids=["parameters", "length", "escapes"],
    )
    def test_one_beyond_what_a_call_needs_is_not_looked_at(
        self, shared_server, monkeypatch, target
    ):
        parsed = []
        monkeypatch.setattr(datastructures, "parse_qsl", lambda *args, **_: parsed.append(args))
        status, found = told(exchange(shared_server, get(target)))
        assert (status, found["code"]) == (413, "too-large")
        assert parsed == []

    @pytest.mark.parametrize(
        "target",
        [
            "/api/v1/tables?" + "&".join(["limit=1"] * MAX_PARAMETERS),
            "/api/v1/tables?prefix=" + "%61" * 255 + "&cursor=" + "%61" * 255,
        ],
    )
    def test_others_are_answered(self, shared_server, target):
        assert told(exchange(shared_server, get(target)))[0] == 200

    def test_the_longest_id_of_an_application_is_looked_for(self, shared_server):
        target = "/api/v1/tables/no.such.table/app-transactions/" + "%F0%9F%8C%8A" * 1024
        status, found = told(exchange(shared_server, get(target)))
        assert (status, found["code"]) == (404, "table-not-found")
