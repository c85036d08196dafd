"""How many requests of one principal may be under way, whatever its tokens."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.service.guarded import Guarded
from tidegate_protocol.problems import Code
from tidegate_service.api.requests import Gate, RequestState
from tidegate_service.core.errors import Unavailable


@contextmanager
def unfinished(guarded: Guarded, token: str) -> Iterator[socket.socket]:
    """A request that has come in as far as its body, which stays away."""
    parts = urlsplit(guarded.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        connection.sendall(
            "POST /api/v1/tables HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            "Connection: close\r\nContent-Length: 2\r\n\r\n".encode()
        )
        # The service asks for the body once it knows who is asking.
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        yield connection


def test_a_further_one_is_turned_away_and_others_are_not(start_service, database_url):
    guarded = Guarded(start_service(auth="tokens", max_requests_per_principal=2).url, database_url)
    token = guarded.token("admin", "*", label="busy")
    same = guarded.token("reader", "*", label="busy")
    other = guarded.token("reader", "*", label="other")
    with unfinished(guarded, token) as first, unfinished(guarded, token) as second:
        for mine in (token, same):
            with guarded.client(mine) as client:
                answer = client.get("/tables")
            assert (answer.status_code, answer.json()["code"]) == (429, "backpressure")
        with guarded.client(other) as client:
            assert client.get("/tables").status_code == 200
        for connection in (first, second):
            connection.sendall(b"{}")
            assert connection.recv(1000).startswith(b"HTTP/1.1 422 ")
    with guarded.client(same) as client:
        assert client.get("/tables").status_code == 200


def test_one_that_was_turned_away_is_not_counted():
    gate = Gate(per_principal=1)
    inside, outside = RequestState(id="1"), RequestState(id="2")
    gate.enter("p", inside)
    with pytest.raises(Unavailable) as refused:
        gate.enter("p", outside)
    assert refused.value.code is Code.BACKPRESSURE
    assert outside.at_end == []
    for leave in inside.at_end:
        leave()
    gate.enter("p", outside)


def test_without_a_bound_there_is_none():
    gate = Gate()
    for number in range(10_000):
        gate.enter("p", RequestState(id=str(number)))
