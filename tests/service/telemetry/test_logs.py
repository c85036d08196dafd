"""The log: one JSON object a line, each with the ids of the request that it is about."""

import io
import json
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.service.api.http.connections.requests_by_hand import exchange
from tidegate_service.logs import JsonFormatter

TRACE = "0af7651916cd43dd8448eb211c80319c"
IDS = {
    "X-Request-Id": "request-7",
    "X-Spark-Application-Id": "app-20261121-0001",
    "traceparent": f"00-{TRACE}-b7ad6b7169203331-01",
}

GIVE_UP_S = 30.0

Events = Callable[[], list[dict[str, object]]]


@pytest.fixture
def events() -> Iterator[Events]:
    """What Tidegate has logged in this process, as it is written at that moment."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("tidegate")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    logger.removeHandler(handler)
    logger.setLevel(level)


def access(events: Events, count: int = 1) -> list[dict[str, object]]:
    """The lines of requests, of which there are `count`; one is written once its answer is out."""
    give_up = time.monotonic() + GIVE_UP_S
    while True:
        found = [event for event in events() if event["logger"] == "tidegate.access"]
        if len(found) >= count:
            return found
        assert time.monotonic() < give_up, found
        time.sleep(0.01)


def test_a_request_is_one_line_with_all_its_ids(api, events):
    assert api.post("/tables", json=table_body()).status_code == 201
    body = proposal(add(), transaction_id="t-1")
    assert api.post(f"/tables/{TABLE}/commits", json=body, headers=IDS).status_code == 201

    _, line = access(events, 2)
    assert line.pop("time")
    assert line.pop("duration_ms") >= 0
    assert line == {
        "level": "info",
        "logger": "tidegate.access",
        "event": "request",
        "request_id": "request-7",
        "transaction_id": "t-1",
        "table": TABLE,
        "application_id": "app-20261121-0001",
        "trace_id": TRACE,
        "principal": "anonymous",
        "method": "POST",
        "route": "/api/v1/tables/{table}/commits",
        "path": f"/api/v1/tables/{TABLE}/commits",
        "status": 201,
    }


def test_a_refused_one_says_why(api, events):
    answer = api.get("/tables/no.such.table", headers=IDS)
    (line,) = access(events)
    assert answer.json()["instance"] == line["request_id"] == "request-7"
    assert line["code"] == "table-not-found"
    assert line["detail"] == answer.json()["detail"]


@pytest.mark.parametrize("given", ["", "a b", "a" * 129, "a/b", '"}'])
def test_an_application_id_that_could_hurt_is_left_out(api, events, given):
    headers = [(b"X-Spark-Application-Id", given.encode())]
    assert api.get("/tables", headers=headers).status_code == 200
    assert "application_id" not in access(events)[0]


@pytest.mark.parametrize("given", ["", "00-xyz", f"00-{'0' * 32}-b7ad6b7169203331-01", "ff"])
def test_a_malformed_trace_is_left_out(api, events, given):
    assert api.get("/tables", headers={"traceparent": given}).status_code == 200
    assert "trace_id" not in access(events)[0]


def test_what_a_commit_section_logs_carries_the_ids_of_its_request(api, events):
    """Written below the edge, in a task of its own."""
    location = api.post("/tables", json=table_body()).json()["location"]
    log = Path(location.removeprefix("file://")) / "_delta_log"
    (log / f"{1:020d}.json").write_text('{"commitInfo":{"operation":"WRITE"}}\n')
    (log / f"{2:020d}.json").write_text("no action\n")
    body = proposal(add(), transaction_id="t-1")
    assert api.post(f"/tables/{TABLE}/commits", json=body, headers=IDS).status_code == 503

    found, closed = [event for event in events() if event["logger"] == "tidegate.index"]
    assert found["event"] == "foreign commits were read into the index"
    assert (found["versions"], found["head"]) == (1, 1)
    assert closed["event"] == "the table was quarantined"
    assert "version 2" in str(closed["reason"])
    for line in (found, closed):
        assert line["request_id"] == "request-7"
        assert line["transaction_id"] == "t-1"
        assert line["trace_id"] == TRACE
        assert line["table"] == TABLE


def test_what_is_no_request_has_an_id_and_a_line_too(server, events):
    answer = exchange(server, b"GET /healthz HTTP/9.9\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    (line,) = access(events)
    assert (line["status"], line["code"]) == (400, "malformed-http")
    assert f"X-Request-Id: {line['request_id']}".encode() in head.splitlines()
    assert json.loads(body)["instance"] == line["request_id"]


class TestLines:
    def line(self, **fields: object) -> str:
        record = logging.makeLogRecord({"name": "tidegate.test", "msg": "said", **fields})
        return JsonFormatter().format(record)

    def test_no_value_breaks_or_forges_a_line(self):
        nasty = 'x\n{"level":"error"}\r\x1b[31m\u2028é\x00'
        written = self.line(msg=nasty, path=nasty)
        assert written.isascii()
        assert written.isprintable()
        assert json.loads(written)["event"] == json.loads(written)["path"] == nasty
