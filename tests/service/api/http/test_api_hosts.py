"""By which names the service may be called, and what a browser may not be made to do."""

import httpx
import pytest
from starlette.types import Scope

from tests.service.requests_by_hand import exchange
from tidegate_protocol.problems import Code
from tidegate_service.api.hosts import Hosts, allowed
from tidegate_service.core.errors import Refused


def scope(*headers: tuple[str, str], version: str = "1.1") -> Scope:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return {"type": "http", "http_version": version, "headers": raw}


def refusal(hosts: Hosts, *headers: tuple[str, str], version: str = "1.1") -> Code | None:
    try:
        hosts.check(scope(*headers, version=version))
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


class TestOverHttp:
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
