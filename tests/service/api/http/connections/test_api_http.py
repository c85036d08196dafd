"""HTTP itself: what the framework and the server refuse are problems too."""

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.service.api.http.connections.requests_by_hand import exchange, in_turn
from tests.service.serving import OF_NO_PAGE
from tidegate_service.api.http.request.limits import ServerLimits


def raw(request: str) -> bytes:
    return request.replace("\n", "\r\n").encode("latin-1")


def head_of(answer: bytes) -> tuple[int, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body


class TestRouting:
    @pytest.mark.parametrize(
        "path",
        [
            "/",
            "/api",
            "/api/v1",
            "/api/v1/",
            "/api/v1/tables/",
            "/api/v2/tables",
            "/api/v1/nothing/here",
            "/api/v1/tables/a.b.c/commits/1/2",
            "/docs/",
            "/docs/static/",
            "/docs/static/../docs",
            "/docs/static/%2e%2e%2fdocs.html",
            "/redoc",
            "/api/v1/transactions",
            "/api/v1/tables/a.b.c/events",
            "/%00",
            "/%ff%fe",
            "/\u00e9",
            "//",
        ],
    )
    def test_nothing_there(self, shared_server, path):
        answer = httpx.get(f"{shared_server}{path}")
        assert answer.status_code == 404
        assert answer.json()["code"] == "route-not-found"
        assert answer.headers["content-type"] == "application/problem+json"

    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("PUT", "/api/v1/tables", "GET, POST"),
            ("POST", "/api/v1/tables/a.b.c", "DELETE, GET"),
            ("DELETE", "/api/v1/tables/a.b.c/commits", "GET, POST"),
            ("GET", "/api/v1/tables/a.b.c/scan", "POST"),
            ("GET", "/api/v1/tables/a.b.c/transactions/t/abort", "POST"),
            ("OPTIONS", "/api/v1/tables", "GET, POST"),
            ("HEAD", "/healthz", "GET"),
            ("PATCH", "/docs", "GET"),
        ],
    )
    def test_another_method(self, shared_server, method, path, allowed):
        answer = httpx.request(method, f"{shared_server}{path}", headers=OF_NO_PAGE)
        assert answer.status_code == 405
        assert answer.headers["allow"] == allowed
        if method != "HEAD":
            assert answer.json()["code"] == "method-not-allowed"

    def test_a_post_without_a_body(self, shared_server):
        answer = httpx.post(f"{shared_server}/api/v1/tables")
        assert answer.status_code == 415


class TestRawRequests:
    @pytest.mark.parametrize(
        "request_",
        [
            "nonsense\n\n",
            "GET / HTTP/9.9\n\n",
            "GET\n\n",
            "GET /\u00e9 HTTP/1.1\nHost: localhost\n\n",
            "GET / HTTP/1.1\nHost: localhost\nA\x00: b\n\n",
            "GET / HTTP/1.1\nHost: localhost\nA: b\x1f\n\n",
            "POST /api/v1/tables HTTP/1.1\nHost: localhost\nContent-Length: -1\n\n",
            "POST / HTTP/1.1\nHost: localhost\nContent-Length: 99999999999999999999\n\n",
            "POST / HTTP/1.1\nHost: localhost\nContent-Length: 1\nContent-Length: 2\n\na",
            "POST / HTTP/1.1\nHost: localhost\nContent-Length: 1\nTransfer-Encoding: chunked\n\na",
            "POST /api/v1/tables HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked\n\nZZ\n",
            "PRI * HTTP/2.0\n\nSM\n\n",
            "\x16\x03\x01\x02\x00\x01",
        ],
    )
    def test_what_is_no_http_is_refused(self, shared_server, request_):
        status, body = head_of(exchange(shared_server, raw(request_)))
        assert status == 400
        assert b'"code":"malformed-http"' in body

    def test_a_long_request_line_is_too_large(self, shared_server):
        sent = raw(f"GET /{'a' * 20_000} HTTP/1.1\nHost: localhost\n\n")
        status, body = head_of(exchange(shared_server, sent))
        assert status == 413
        assert b'"code":"too-large"' in body

    def test_large_headers_are_too_large(self, shared_server):
        sent = raw("GET /healthz HTTP/1.1\nHost: localhost\n" + "X-A: 0123456789\n" * 2000 + "\n")
        status, body = head_of(exchange(shared_server, sent))
        assert status == 413
        assert b'"code":"too-large"' in body

    def test_headers_without_end_are_too_large(self, shared_server):
        sent = raw("GET /healthz HTTP/1.1\nHost: localhost\nX-A: " + "a" * 40_000)
        status, _ = head_of(exchange(shared_server, sent))
        assert status == 413

    def test_headers_within_the_limit_are_taken(self, shared_server):
        padding = "a" * 15_000
        sent = raw(f"GET /healthz HTTP/1.1\nHost: localhost\nConnection: close\nX-A: {padding}\n\n")
        assert head_of(exchange(shared_server, sent))[0] == 200

    def test_the_limit_is_of_each_request_of_a_connection(self, shared_server):
        one = f"GET /healthz HTTP/1.1\nHost: localhost\nX-A: {'a' * 9_000}\n\n"
        last = one.replace("Host", "Connection: close\nHost")
        assert in_turn(shared_server, *[raw(one)] * 3, raw(last)) == [200] * 4

    def test_headers_that_do_not_come_end_the_connection(self, start_service):
        service = start_service(ServerLimits(head_s=0.2))
        assert exchange(service.url, raw("GET /healthz HTTP/1.1\nHost:")) == b""
        assert exchange(service.url, b"") == b""

    def test_an_upgrade_is_not_made(self, shared_server):
        sent = raw(
            "GET /healthz HTTP/1.1\nHost: localhost\n"
            "Connection: Upgrade, close\nUpgrade: websocket\n"
            "Sec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n"
        )
        assert head_of(exchange(shared_server, sent))[0] in (200, 400)


class TestBodies:
    def test_a_large_one_is_refused_before_it_is_sent(self, shared_server):
        sent = raw(
            "POST /api/v1/tables HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
            f"Content-Length: {64 * 1024 * 1024 + 1}\nExpect: 100-continue\n"
            "Connection: close\n\n"
        )
        status, body = head_of(exchange(shared_server, sent))
        assert status == 413
        assert b'"code":"too-large"' in body

    def test_one_without_a_length_is_counted(self, start_service):
        service = start_service(max_body_bytes=10_000)

        def chunks():
            for _ in range(100):
                yield b"x" * 1000

        answer = httpx.post(
            f"{service.url}/api/v1/tables",
            content=chunks(),
            headers={"Content-Type": "application/json"},
        )
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")

    def test_the_largest_is_taken(self, api):
        api.post("/tables", json=table_body()).raise_for_status()
        actions = [add(f"month=5/{number}", stats="x" * 4_000_000) for number in range(15)]
        body = proposal(*actions)
        answer = api.post(f"/tables/{TABLE}/commits", json=body)
        # Read whole, and refused for what its statistics are.
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-action")

    def test_a_slow_one_meets_the_deadline(self, start_service):
        service = start_service(deadline_seconds=0.3)
        answer = exchange(
            service.url,
            raw(
                "POST /api/v1/tables HTTP/1.1\nHost: localhost\nContent-Type: application/json\n"
                "Connection: close\nContent-Length: 100\n\n{"
            ),
        )
        status, body = head_of(answer)
        assert status == 503
        assert b'"code":"deadline-exceeded"' in body

    def test_a_client_that_leaves_in_the_middle_is_no_defect(self, http, server, caplog):
        parts = urlsplit(server)
        with socket.create_connection((parts.hostname, parts.port)) as connection:
            connection.sendall(
                raw(
                    "POST /api/v1/tables HTTP/1.1\nHost: localhost\n"
                    "Content-Type: application/json\nContent-Length: 100\n\n{"
                )
            )
        assert http.get("/healthz").status_code == 200
        assert not [record for record in caplog.records if record.name == "tidegate.defect"]


class TestHeaders:
    def test_every_answer_names_its_request(self, shared_server):
        for path in ("/healthz", "/nothing", "/docs", "/openapi.json"):
            answer = httpx.get(f"{shared_server}{path}", headers={"X-Request-Id": "r-1"})
            assert answer.headers["x-request-id"] == "r-1"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "server" not in answer.headers
