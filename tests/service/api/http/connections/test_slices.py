"""Bodies in many chunks are parsed a slice at a time, also where nobody reads them any more."""

import asyncio
import json
import time
from contextlib import suppress

import httpx
import pytest

from tests.builders.flights import add, proposal
from tests.service.api.http.connections.requests_by_hand import exchange
from tests.service.api.http.connections.test_api_connections import OK, connected
from tests.service.api.http.connections.test_api_request_size import TO_CREATE, chunk, told
from tidegate_service.api.server.protocol import BoundedProtocol
from tidegate_service.api.server.sliced_reads import (
    PIECE_BYTES,
    ReadFlow,
    SlicedReads,
    Slices,
)
from tidegate_service.core.sharing.shares import Shares
from tidegate_service.core.sharing.turns import Passes

SMALL = chunk(b" " * 64)
ENDLESS = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def parsed(monkeypatch):
    """How many bytes were parsed at a time."""
    found: list[int] = []
    read = BoundedProtocol._read

    def counted(protocol: BoundedProtocol, data: bytes | memoryview) -> None:
        found.append(len(data))
        read(protocol, data)

    monkeypatch.setattr(BoundedProtocol, "_read", counted)
    return found


class Wire(asyncio.Transport):
    """A connection whose reader may pause it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = False
        self.is_aborted = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


class Reader:
    """Parses reads in which each byte is a chunk."""

    def __init__(self, slices: Slices, *, share: str | None = "127.0.0.1") -> None:
        self.wire = Wire()
        self.parsed = b""
        self.piece = PIECE_BYTES
        self.reads = SlicedReads(
            self.wire,
            ReadFlow(self.wire),
            slices,
            share=share,
            source="127.0.0.1",
            parse=self._parse,
            piece=lambda: self.piece,
            too_early=self._drop,
        )

    def _drop(self) -> None:
        self.piece = 1 << 20

    def _parse(self, data: bytes | memoryview) -> None:
        self.parsed += data
        for _ in range(len(data)):
            self.reads.chunk_begins()


@pytest.mark.anyio
async def test_what_waits_is_bounded():
    slices = Slices(Passes(1), Shares(32 * PIECE_BYTES, "bytes"))
    reader, other = Reader(slices), Reader(slices)
    reader.reads.read(bytes(24 * PIECE_BYTES))
    assert slices.waiting.taken == 23 * PIECE_BYTES
    other.reads.read(bytes(24 * PIECE_BYTES))
    assert (reader.wire.is_aborted, other.wire.is_aborted) == (False, True)
    for each in (reader, other):
        each.reads.end()
    assert slices.waiting.taken == 0


def test_they_are_read_to_their_end(start_service, parsed):
    url = start_service().url
    body = SMALL * (300 * PIECE_BYTES // len(SMALL))
    status, found = told(exchange(url, TO_CREATE + body + chunk(b"")))
    assert (status, found["code"]) == (422, "invalid-request")
    assert sum(parsed) == len(TO_CREATE) + len(body) + len(chunk(b""))
    assert max(parsed) <= PIECE_BYTES


@pytest.mark.slow
def test_so_is_the_rest_of_one_that_was_answered(start_service, parsed):
    url = start_service().url
    with connected(url) as connection:
        connection.sendall(ENDLESS)
        assert connection.recv(1 << 16).startswith(OK)
        connection.settimeout(0.2)
        until = time.monotonic() + 2
        while time.monotonic() < until:
            with suppress(TimeoutError, ConnectionError):
                connection.sendall(SMALL * 4096)
            # Another one is answered in between.
            assert httpx.get(f"{url}/healthz").status_code == 200
    assert len(parsed) > 20
    assert max(parsed) <= PIECE_BYTES


def test_a_connection_that_was_answered_early_is_kept(shared_server):
    """Once the body is complete, the next request is answered on it."""
    unread = TO_CREATE.replace(b"application/json", b"text/plain")
    unread = unread.replace(b"Connection: close\r\n", b"")
    with connected(shared_server) as connection:
        connection.sendall(unread)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 415 ")
        connection.sendall(SMALL * 10 + chunk(b""))
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(1 << 16).startswith(OK)


def test_no_byte_is_lost_or_out_of_its_order(shared_api, shared_server, flights, parsed):
    """Beyond what is buffered before the application asks for more."""
    adds = [add(f"month=5/{number}") for number in range(8_000)]
    body = json.dumps(proposal(*adds)).encode()
    pieces = [chunk(body[start : start + 70]) for start in range(0, len(body), 70)]
    head = TO_CREATE.replace(b"/tables", b"/tables/" + flights.encode() + b"/commits")
    status, landed = told(exchange(shared_server, head + b"".join(pieces) + chunk(b"")))
    assert (status, landed["version"]) == (201, 1)
    assert parsed.count(PIECE_BYTES) > 100
    lines = shared_api.get(f"/tables/{flights}/commits/1").text.splitlines()
    found = [json.loads(line).get("add", {}).get("path") for line in lines]
    assert [path for path in found if path] == [each["add"]["path"] for each in adds]
