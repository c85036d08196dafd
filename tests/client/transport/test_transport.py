"""The transport against a real server that misbehaves."""

import socket

import pytest

from tests.client.transport.loopback import CutOff, Drop, Hold, Loopback, Reply
from tidegate.wire.exchange import Request, Response, TransportFailure
from tidegate.wire.transport import USER_AGENT, HttpTransport

READ = Request(method="GET", path="/tables/a.b.c")
COMMIT = Request(method="POST", path="/tables/a.b.c/commits", body=b'{"transaction_id":"tx-1"}')
SOON = 30.0
AT_ONCE = 0.05


@pytest.fixture
def transport(loopback):
    transport = HttpTransport(loopback.url, token="secret-token")
    yield transport
    transport.close()


def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def test_a_request_arrives_as_it_was_meant(transport, loopback):
    loopback.then(Reply(200, b"[]"))
    request = Request(
        method="POST",
        path="/tables/a%2Fb/scan",
        query={"prefix": "main.ä&b", "limit": "3"},
        body=b'{"a": 1}',
        accept="application/x-ndjson",
    )
    transport.send(request, timeout_s=SOON)
    (seen,) = loopback.seen
    assert seen.method == "POST"
    assert seen.path == "/api/v1/tables/a%2Fb/scan?prefix=main.%C3%A4%26b&limit=3"
    assert seen.body == b'{"a": 1}'
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["accept"] == "application/x-ndjson"
    assert seen.headers["authorization"] == "Bearer secret-token"
    assert seen.headers["user-agent"] == USER_AGENT
    assert USER_AGENT.startswith("tidegate-python/")


def test_a_service_below_a_path_is_reached_there(loopback):
    loopback.then(Reply(200))
    transport = HttpTransport(f"{loopback.url}/lake", token=None)
    transport.send(READ, timeout_s=SOON)
    transport.close()
    assert loopback.seen[0].path == "/lake/api/v1/tables/a.b.c"
    assert "authorization" not in loopback.seen[0].headers


def test_an_answer_comes_back_whole(transport, loopback):
    loopback.then(Reply(503, b"later", {"Retry-After": "3"}))
    answer = transport.send(READ, timeout_s=SOON)
    assert isinstance(answer, Response)
    assert (answer.status, answer.body) == (503, b"later")
    assert answer.headers["retry-after"] == "3"


def test_a_redirect_is_not_followed(transport, loopback):
    loopback.then(Reply(307, b"", {"Location": f"{loopback.url}/elsewhere"}))
    answer = transport.send(COMMIT, timeout_s=SOON)
    assert isinstance(answer, Response)
    assert answer.status == 307
    assert len(loopback.seen) == 1


@pytest.mark.parametrize("behaviour", [Drop(), CutOff()])
def test_a_connection_lost_after_the_request_says_nothing(transport, loopback, behaviour):
    loopback.then(behaviour)
    answer = transport.send(COMMIT, timeout_s=SOON)
    assert isinstance(answer, TransportFailure)
    assert answer.sent
    assert len(loopback.seen) == 1, "the transport itself must not send a second copy"


def test_an_answer_that_does_not_come_in_time_says_nothing(transport, loopback):
    loopback.then(Hold())
    answer = transport.send(COMMIT, timeout_s=AT_ONCE)
    assert isinstance(answer, TransportFailure)
    assert answer.sent


def test_a_refused_connection_was_not_sent():
    transport = HttpTransport(f"http://127.0.0.1:{unused_port()}", token=None)
    answer = transport.send(COMMIT, timeout_s=SOON)
    transport.close()
    assert isinstance(answer, TransportFailure)
    assert not answer.sent
    assert "POST /tables/a.b.c/commits" in answer.detail


def test_the_token_is_in_no_repr(transport):
    shown = repr(transport) + repr(vars(transport)) + repr(transport._client.headers)
    assert "***" in repr(transport)
    assert "secret-token" not in shown


def test_one_connection_serves_many_requests(transport, loopback: Loopback):
    loopback.then(*[Reply(200, b"x")] * 3)
    for _ in range(3):
        assert isinstance(transport.send(READ, timeout_s=SOON), Response)
    assert len({seen.peer for seen in loopback.seen}) == 1
