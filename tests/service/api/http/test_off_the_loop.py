"""What takes long to decode holds up nobody else, however short it is when it is sent."""

import asyncio
import gzip
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
import pytest

from tests.builders.flights import add, ndjson, proposal
from tests.service.api.http.connections.requests_by_hand import JSON_TYPE, NDJSON_TYPE
from tidegate_protocol.base.memo import MEDIUM, SMALL, SOME
from tidegate_protocol.scan import reads
from tidegate_protocol.scan.predicates import parse_predicate
from tidegate_protocol.schema import table_schema
from tidegate_service.api.bodies import proposals
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.core.tables import scan

GIVE_UP_S = 20.0
GZIP = {"Content-Encoding": "gzip"}
FIRST = b'{"operation":"WRITE"}\n'
TXNS = json.dumps(proposal(*({"txn": {"appId": f"a{n}", "version": 1}} for n in range(1_200))))
LONG_TEXT = b'{"operation":"WRITE","user_metadata":"' + b"x" * 900_000 + b'"}'

BODIES = {
    "gzip": (gzip.compress(FIRST + b'{"a":1}\n' * 125_000, 9), NDJSON_TYPE | GZIP),
    "one line of gzip": (gzip.compress(LONG_TEXT, 9), NDJSON_TYPE | GZIP),
    "gzip as JSON": (gzip.compress(TXNS.encode(), 9), JSON_TYPE | GZIP),
    "many lines": (FIRST + b'{"a":1}\n' * 3_000, NDJSON_TYPE),
    "one line": (b'{"operation":"WRITE","user_metadata":"' + b"x" * 40_000 + b'"}', NDJSON_TYPE),
    "many actions": (TXNS.encode(), JSON_TYPE),
}


@dataclass
class Held:
    """Stops whoever decodes a proposal until it is let go."""

    begun: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        self.begun.set()
        self.let_go.wait(GIVE_UP_S)


@pytest.fixture
def held(monkeypatch) -> Iterator[Held]:
    found, decode = Held(), proposals.decode_envelope

    def held_up(*args, **kwargs):
        found.wait()
        return decode(*args, **kwargs)

    monkeypatch.setattr(proposals, "decode_envelope", held_up)
    yield found
    found.let_go.set()


@pytest.mark.parametrize("name", BODIES)
def test_others_are_answered_while_a_body_is_decoded(shared_server, flights, held, name):
    body, headers = BODIES[name]
    assert len(body) < 100_000
    with ThreadPoolExecutor(1) as threads:
        checked = threads.submit(
            httpx.post,
            f"{shared_server}/api/v1/tables/{flights}/conflict-check",
            content=body,
            headers=headers,
            timeout=2 * GIVE_UP_S,
        )
        assert held.begun.wait(GIVE_UP_S)
        try:
            # Not answered before the body is decoded, where that is done on the event loop.
            assert httpx.get(f"{shared_server}/healthz", timeout=GIVE_UP_S / 2).status_code == 200
        finally:
            held.let_go.set()
        assert checked.result().status_code in (200, 409, 413, 422)


@pytest.mark.parametrize("call", ["commits", "conflict-check", "scan"])
@pytest.mark.parametrize("column", ["month", "nothing"])
def test_predicates_that_are_no_short_ones_are_parsed_in_a_thread(
    shared_api, flights, monkeypatch, call, column
):
    """Refused or not, by whoever decides, and once."""
    parsed: list[str] = []

    def noted(*args, **kwargs):
        parsed.append(threading.current_thread().name)
        return parse_predicate(*args, **kwargs)

    for module in (reads, scan):
        monkeypatch.setattr(module, "parse_predicate", noted)
    predicates = [f"carrier = '{call}'" + f" or {column} = -1" * 6]
    body = {"predicates": predicates}
    if call != "scan":
        body = proposal(add(f"{call}/{column}"), read_version=0, reads=body)
    answer = shared_api.post(f"/tables/{flights}/{call}", json=body)
    assert answer.status_code in ((200, 201) if column == "month" else (422,))
    (thread,) = parsed
    assert thread.startswith(("tidegate-predicates", "tidegate-scans"))


@pytest.mark.parametrize("call", ["commits", "conflict-check"])
def test_schemas_of_hundreds_of_columns_are_parsed_in_a_thread(shared_api, monkeypatch, call):
    """Where they are not remembered: as many tables have come since as are."""
    fields = [
        {"name": f"{call}{n}".ljust(60, "x"), "type": "long", "nullable": True, "metadata": {}}
        for n in range(300)
    ]
    assert SMALL < len(json.dumps(fields, separators=(",", ":"))) < MEDIUM
    names = [f"main.columns.{call.replace('-', '_')}_{at}" for at in range(SOME + 1)]
    for at, name in enumerate(names):
        own = {**fields[0], "name": f"own{at}"}
        schema = {"type": "struct", "fields": [*fields, own]}
        body = {"name": name, "schema": schema, "catalog_managed": True}
        shared_api.post("/tables", json=body).raise_for_status()
    decode, on_loop = table_schema.strict_json.decode, []

    def noted(text, *args, **kwargs):
        if b'"name":"own0"' in text and b'"fields"' in text:
            try:
                asyncio.get_running_loop()
                on_loop.append(True)
            except RuntimeError:
                on_loop.append(False)
        return decode(text, *args, **kwargs)

    monkeypatch.setattr(table_schema.strict_json, "decode", noted)
    sent = proposal(add("f", partitionValues={}))
    answers = [shared_api.post(f"/tables/{names[0]}/{call}", json=sent) for _ in range(2)]
    assert {answer.status_code for answer in answers} <= {200, 201}
    assert on_loop == [False]


@pytest.mark.parametrize("headers", [JSON_TYPE, NDJSON_TYPE], ids=["JSON", "NDJSON"])
def test_an_ordinary_proposal_waits_for_no_thread(shared_api, flights, monkeypatch, headers):
    def run(*_):
        raise AssertionError("a proposal of fifty files, and a short predicate, went to a thread")

    monkeypatch.setattr(Pool, "run", run)
    actions = [add(f"month=5/part-{n:05}.parquet") for n in range(50)]
    read = {"read_version": 0, "reads": {"predicates": ["month = 7 and carrier = 'AA'"]}}
    content = (
        json.dumps(proposal(*actions, **read)).encode()
        if headers is JSON_TYPE
        else ndjson(*actions, **read)
    )
    answer = shared_api.post(f"/tables/{flights}/commits", content=content, headers=headers)
    assert answer.status_code == 201
