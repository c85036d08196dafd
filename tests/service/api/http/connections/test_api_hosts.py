"""By which names the service may be called, and what a browser may not be made to do."""

import httpx
import pytest
from starlette.types import Scope

from tests.service.api.http.connections.requests_by_hand import exchange
from tidegate_protocol.base.problems import Code
from tidegate_service.api.http.request.hosts import Hosts, allowed
from tidegate_service.core.errors import Refused


def scope(*headers: tuple[str, str], version: str = "1.1", method: str = "GET") -> Scope:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return {"type": "http", "http_version": version, "method": method, "headers": raw}


def refusal(
    hosts: Hosts, *headers: tuple[str, str], version: str = "1.1", method: str = "GET"
) -> Code | None:
    try:
        hosts.check(scope(*headers, version=version, method=method))
    except Refused as refused:
        return refused.code
    return None


LOOPBACK = allowed([], authenticated=False)
ANY = allowed([], authenticated=True)
NAMED = allowed(["lake.example", "10.0.0.7"], authenticated=True)


class TestHosts:
    @pytest.mark.parametrize(
        "host",
        [
            "localhost",
            "LocalHost:8720",
            "127.0.0.1",
            "127.0.0.1:8720",
            "127.8.8.8:1",
            "[::1]",
            "[::1]:8720",
        ],
    )
    def test_loopback_is_called_by_its_names(self, host):
        assert refusal(LOOPBACK, ("host", host)) is None

    @pytest.mark.parametrize(
        "host",
        [
            "attacker.example",
            "attacker.example:8720",
            "localhost.attacker.example",
            "127.0.0.1.attacker.example",
            "attacker.example#127.0.0.1",
            "user@localhost",
            "localhost:80:80",
            "localhost:",
            "localhost.",
            "0.0.0.0",
            "10.0.0.7",
            "2130706433",
            "0x7f.1",
            "[::2]",
            "[::1",
            "",
            " localhost",
            "localhost,attacker.example",
            "\xa0localhost",
        ],
    )
    def test_and_by_no_other(self, host):
        assert refusal(LOOPBACK, ("host", host)) is Code.HOST_NOT_ALLOWED

    def test_with_tokens_by_any_name_or_by_those_that_are_set(self):
        assert refusal(ANY, ("host", "whatever.example")) is None
        assert refusal(NAMED, ("host", "LAKE.example:443")) is None
        assert refusal(NAMED, ("host", "10.0.0.7:8720")) is None
        assert refusal(NAMED, ("host", "whatever.example")) is Code.HOST_NOT_ALLOWED
        assert refusal(NAMED, ("host", "localhost")) is Code.HOST_NOT_ALLOWED

    def test_without_tokens_names_are_added_to_loopback(self):
        hosts = allowed(["lake.example"], authenticated=False)
        assert refusal(hosts, ("host", "lake.example")) is None
        assert refusal(hosts, ("host", "localhost")) is None

    @pytest.mark.parametrize("hosts", [LOOPBACK, ANY, NAMED], ids=["loopback", "any", "named"])
    def test_one_is_named(self, hosts):
        assert refusal(hosts) is Code.MALFORMED_HTTP
        twice = (("host", "localhost"), ("host", "localhost"))
        assert refusal(hosts, *twice) is Code.MALFORMED_HTTP
        assert refusal(hosts, *twice, version="1.0") is Code.MALFORMED_HTTP

    def test_the_oldest_clients_need_name_none(self):
        assert refusal(LOOPBACK, version="1.0") is None


class TestOrigins:
    @pytest.mark.parametrize(
        ("origin", "taken"),
        [
            ("http://localhost:8720", True),
            ("http://127.0.0.1:8720", True),
            ("http://[::1]:8720", True),
            ("https://attacker.example", False),
            ("http://localhost.attacker.example", False),
            ("null", False),
            ("", False),
            ("http://[", False),
            ("chrome-extension://abc", False),
        ],
    )
    def test_a_browser_s_page_has_to_come_from_here(self, origin, taken):
        found = refusal(LOOPBACK, ("host", "localhost"), ("origin", origin))
        assert (found is None) is taken


HOST = ("host", "localhost:8720")
JSON = ("content-type", "application/json")


class TestPagesOfOtherOrigins:
    @pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH"])
    @pytest.mark.parametrize(
        ("headers", "found"),
        [
            # What a page of another port of loopback can make a browser send.
            ([("origin", "http://localhost:3000"), JSON], Code.HOST_NOT_ALLOWED),
            ([("origin", "http://localhost"), JSON], Code.HOST_NOT_ALLOWED),
            ([("origin", "http://127.0.0.1:8720"), JSON], Code.HOST_NOT_ALLOWED),
            ([("sec-fetch-site", "same-site"), JSON], Code.HOST_NOT_ALLOWED),
            ([("sec-fetch-site", "cross-site"), JSON], Code.HOST_NOT_ALLOWED),
            (
                [("sec-fetch-site", "cross-site"), ("origin", "http://localhost:8720")],
                Code.HOST_NOT_ALLOWED,
            ),
            # The service's own pages, and programs.
            ([("origin", "http://localhost:8720")], None),
            ([("origin", "http://LOCALHOST:8720"), ("sec-fetch-site", "same-origin")], None),
            ([("sec-fetch-site", "none")], None),
            ([JSON], None),
            ([("content-type", "Application/JSON; charset=utf-8")], None),
            ([("content-type", "application/x-ndjson")], None),
            ([("x-request-id", "mine")], None),
        ],
    )
    def test_change_nothing(self, method, headers, found):
        assert refusal(LOOPBACK, HOST, *headers, method=method) is found

    @pytest.mark.parametrize(
        "headers",
        [
            [],
            [("content-type", "text/plain")],
            [("content-type", "application/x-www-form-urlencoded")],
            [("content-type", "text/plain; application/json")],
            [("x-forwarded-for", "127.0.0.1")],
        ],
    )
    def test_nor_where_a_browser_names_no_origin(self, headers):
        refused = refusal(LOOPBACK, HOST, *headers, method="POST")
        assert refused is Code.UNSUPPORTED_MEDIA_TYPE
        # No form sends it, so a browser asks first.
        assert refusal(LOOPBACK, HOST, *headers, method="DELETE") is None

    def test_a_default_port_is_the_same_origin(self):
        for host, origin in [
            ("localhost", "http://localhost:80"),
            ("localhost:80", "http://localhost"),
            ("lake.example", "https://lake.example"),
            ("lake.example:443", "https://lake.example"),
        ]:
            hosts = allowed(["lake.example"], authenticated=False)
            named = (("host", host), ("origin", origin))
            assert refusal(hosts, *named, method="POST") is None, (host, origin)
        crossed = (("host", "localhost:443"), ("origin", "http://localhost"))
        assert refusal(LOOPBACK, *crossed, method="POST") is Code.HOST_NOT_ALLOWED

    def test_may_be_read_from(self):
        assert refusal(LOOPBACK, HOST, ("sec-fetch-site", "cross-site")) is None

    def test_with_tokens_the_token_is_what_no_page_can_send(self):
        assert refusal(ANY, HOST, method="POST") is None


class TestOverHttp:
    @pytest.mark.parametrize("call", ["transactions/some-id/abort", "rebuild", "release"])
    def test_a_page_of_another_port_of_loopback_writes_nothing(
        self, shared_server, shared_api, flights, call
    ):
        table = f"/tables/{flights}"
        url = f"{shared_server}/api/v1{table}/{call}"
        before = shared_api.get(table).json()
        for headers in (
            {"Origin": "http://localhost:3000"},
            {"Sec-Fetch-Site": "same-site", "Content-Type": "application/json"},
            {},
        ):
            answer = httpx.post(url, headers=headers)
            assert answer.status_code in (415, 421), answer.text
        status = shared_api.get(f"{table}/transactions/some-id")
        assert status.json()["code"] == "transaction-not-found"
        assert shared_api.get(table).json() == before

    @pytest.mark.parametrize("path", ["/api/v1/tables", "/docs", "/openapi.json", "/metrics"])
    def test_a_name_that_was_made_to_resolve_to_loopback_is_refused(self, shared_server, path):
        answer = httpx.get(f"{shared_server}{path}", headers={"Host": "attacker.example"})
        assert (answer.status_code, answer.json()["code"]) == (421, "host-not-allowed")
        assert answer.headers["x-request-id"]

    def test_a_page_elsewhere_cannot_close_a_transaction(self, shared_api, flights):
        answer = shared_api.post(
            f"/tables/{flights}/transactions/t-1/abort",
            headers={"Origin": "https://attacker.example"},
        )
        assert (answer.status_code, answer.json()["code"]) == (421, "host-not-allowed")
        assert shared_api.get(f"/tables/{flights}/transactions/t-1").status_code == 404

    def test_the_docs_page_s_own_calls_pass(self, shared_server):
        answer = httpx.get(f"{shared_server}/api/v1/tables", headers={"Origin": shared_server})
        assert answer.status_code == 200

    @pytest.mark.parametrize("headers", ["", "Host: localhost\r\nHost: localhost\r\n"])
    def test_none_and_two_are_no_request(self, shared_server, headers):
        sent = f"GET /api/v1/tables HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"
        answer = exchange(shared_server, sent.encode())
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b'"code":"malformed-http"' in answer

    def test_health_checks_need_no_name(self, shared_server):
        answer = httpx.get(f"{shared_server}/healthz", headers={"Host": "10.1.2.3:8720"})
        assert answer.status_code == 200
