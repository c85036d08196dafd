"""How many requests of one principal may be under way, whatever its tokens."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.service.catalog_managed.guarded import Guarded
from tidegate_service.api.http.request.requests import SCANS_SHARE, Gate, RequestState
from tidegate_service.core.access.roles import Principal
from tidegate_service.core.errors import Unavailable

SOMEBODY = Principal(name="p", grants=())


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


@pytest.mark.parametrize(("max_requests", "ends"), [(3, True), (1000, False)])
def test_where_there_is_no_room_to_wait_the_connection_ends(
    start_service, database_url, max_requests, ends
):
    """A flood would be refused as fast as it asks on the connections that it has."""
    limits = {"max_requests": max_requests, "max_requests_per_principal": 1}
    guarded = Guarded(start_service(auth="tokens", **limits).url, database_url)
    token = guarded.token("admin", "*", label="busy")
    with unfinished(guarded, token), guarded.client(token) as client:
        answer = client.get("/tables")
    assert answer.status_code == 429
    assert (answer.headers.get("connection") == "close") is ends


def test_one_principal_leaves_requests_to_others(start_service, database_url):
    """Though it may have as many as there may be, by the bound of its own."""
    guarded = Guarded(start_service(auth="tokens", max_requests=4).url, database_url)
    mine = guarded.token("admin", "*", label="busy")
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(unfinished(guarded, mine))
        with guarded.client(mine) as client:
            answer = client.get("/tables")
        assert (answer.status_code, answer.json()["code"]) == (429, "backpressure")
        assert int(answer.headers["retry-after"]) > 0
        with guarded.client(guarded.token("reader", "*", label="other")) as client:
            assert client.get("/tables").status_code == 200


def test_two_principals_leave_scans_to_a_third():
    gate = Gate(scans=16)

    def enter(name: str) -> bool:
        state = RequestState(id="1", principal=replace(SOMEBODY, name=name))
        try:
            gate.enter_scan(state)
        except Unavailable:
            return False
        return True

    assert [sum(enter(name) for _ in range(100)) for name in "pq"] == [12, 3]
    assert enter("r")


def test_a_scan_that_its_caller_does_not_read_counts(start_service, database_url):
    service = start_service(auth="tokens", max_requests_per_principal=SCANS_SHARE)
    guarded = Guarded(service.url, database_url)
    token = guarded.token("admin", "*", label="busy")
    other = guarded.token("reader", "*", label="other")
    with guarded.client(token) as client:
        client.post("/tables", json=table_body()).raise_for_status()
        # More than sockets hold.
        adds = [add(f"f{n}", tags={"x": "x" * 2_000_000}) for n in range(20)]
        client.post(f"/tables/{TABLE}/commits", json=proposal(*adds)).raise_for_status()
        with client.stream("POST", f"/tables/{TABLE}/scan", json={}) as unread:
            assert unread.status_code == 200
            answer = client.post(f"/tables/{TABLE}/scan", json={})
            assert (answer.status_code, answer.json()["code"]) == (429, "backpressure")
            assert int(answer.headers["retry-after"]) > 0
            assert client.get(f"/tables/{TABLE}").status_code == 200
            with guarded.client(other) as client_of_other:
                asked = {"predicates": ["false"]}
                answer = client_of_other.post(f"/tables/{TABLE}/scan", json=asked)
                assert answer.status_code == 200
        # Once the service has seen that nobody reads it any more.
        while (
            client.post(f"/tables/{TABLE}/scan", json={"predicates": ["false"]}).status_code == 429
        ):
            pass
