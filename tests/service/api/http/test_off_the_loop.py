"""What takes long to decode holds up nobody else, however short it is when it is sent."""

import gzip
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
import pytest

from tests.builders.flights import proposal
from tests.service.api.http.connections.requests_by_hand import JSON_TYPE, NDJSON_TYPE
from tidegate_service.api.bodies import proposals

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
