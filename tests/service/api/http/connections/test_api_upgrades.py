"""A request that asks for HTTP/2, as every one of a JVM's does, is answered with its body read."""

import json
import uuid

import httpx
import pytest

from tests.builders.flights import add, proposal, table_body
from tests.service.api.http.connections.requests_by_hand import in_turn

UPGRADE = (
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAA\r\n"
)
LAST = b"Connection: close, Upgrade\r\nUpgrade: h2c\r\n"


@pytest.fixture
def table(shared_server):
    name = f"main.upgrades.t{uuid.uuid4().hex}"
    with httpx.Client(base_url=f"{shared_server}/api/v1") as client:
        assert client.post("/tables", json=table_body(name)).status_code == 201
    return name


def post(table: str, *, more: bytes = UPGRADE, chunked: bool = False) -> bytes:
    body = json.dumps(proposal(add())).encode()
    head = f"POST /api/v1/tables/{table}/commits HTTP/1.1\r\nHost: localhost\r\n".encode()
    head += b"Content-Type: application/json\r\n" + more
    if not chunked:
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    half = len(body) // 2
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in (body[:half], body[half:], b""))
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
def test_the_body_arrives(shared_server, table, chunked):
    assert in_turn(shared_server, post(table, more=LAST, chunked=chunked)) == [201]


def test_one_after_the_other_on_a_connection(shared_server, table):
    get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n" + UPGRADE + b"\r\n"
    bare = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + UPGRADE + b"\r\n"
    with_body = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
    sent = [post(table), get, post(table, chunked=True), bare, with_body, post(table, more=LAST)]
    assert in_turn(shared_server, *sent) == [201, 200, 201, 200, 200, 201]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_however_it_is_cut(shared_server, table, size):
    sent = (post(table), post(table, more=LAST))
    assert in_turn(shared_server, *sent, piece=size) == [201, 201]


def test_a_body_that_speaks_of_an_upgrade_is_a_body(shared_server, table):
    spoken = json.dumps(proposal(add(), user_metadata="\r\nUpgrade: h2c\r\n\r\nPOST / HTTP/1.1"))
    body = spoken.encode()
    head = f"POST /api/v1/tables/{table}/commits HTTP/1.1\r\nHost: localhost\r\n".encode()
    head += b"Content-Type: application/json\r\n" + LAST
    sent = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    assert in_turn(shared_server, sent) == [201]


def test_two_lengths_are_still_refused(shared_server, table):
    doubled = post(table, more=LAST + b"Content-Length: 3\r\n")
    assert in_turn(shared_server, doubled) == [400]
