"""Every call that takes a body, and every body that is none: a 4xx, and nothing written."""

import gzip
import itertools
import json
from typing import Any

import httpx
import pytest

from tests.builders.flights import table_body
from tests.service.api.http.malformed import MALFORMED, MEDIA_TYPES, WHOLE
from tests.service.serving import document
from tidegate_service.api.http.request.requests import JSON, NDJSON

TABLE = "main.malformed.untouched"


def calls() -> list[Any]:
    """Each call with a body: its path below `/api/v1`, a media type and an example of it."""
    return [
        pytest.param(
            (path.removeprefix("/api/v1").format(table=TABLE), kind, example_of(content)),
            id=f"{operation['operationId']} {kind}",
        )
        for path, methods in document()["paths"].items()
        if path.startswith("/api/v1")
        for operation in methods.values()
        for kind, content in operation.get("requestBody", {}).get("content", {}).items()
    ]


def cases() -> list[Any]:
    """Each broken body to `propose`, and every seventh to the other calls: one parser reads all."""
    found = list(itertools.product(calls(), MALFORMED))
    return [
        pytest.param(*call.values, name, id=f"{call.id}-{name}")
        for number, (call, name) in enumerate(found)
        if number % 7 == 0 or str(call.id).startswith("propose ")
    ]


def example_of(content: dict[str, Any]) -> bytes:
    values = [example["value"] for example in content["examples"].values()]
    bodies = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return max(bodies, key=len).encode()


@pytest.fixture(scope="module")
def untouched(shared_server):
    """A table, and all that the service has: both are as they were when this module is done."""
    with httpx.Client(base_url=f"{shared_server}/api/v1") as client:
        client.post("/tables", json=table_body(TABLE)).raise_for_status()
        before = (
            client.get("/tables?prefix=main.malformed").json(),
            client.get(f"/tables/{TABLE}").json(),
        )
        names = {table["name"] for table in client.get("/tables?limit=1000").json()["tables"]}
        yield
        after = (
            client.get("/tables?prefix=main.malformed").json(),
            client.get(f"/tables/{TABLE}").json(),
        )
        assert after == before
        assert names == {t["name"] for t in client.get("/tables?limit=1000").json()["tables"]}


def broken(body: bytes, kind: str, name: str) -> bytes:
    """The body broken; of NDJSON, its first line."""
    if kind != NDJSON:
        return MALFORMED[name](body)
    first, _, rest = body.partition(b"\n")
    return MALFORMED[name](first) + b"\n" + rest


def check(answer: httpx.Response) -> None:
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["code"] in (
        "invalid-request",
        "invalid-action",
        "too-large",
        "unsupported-media-type",
    )
    assert len(answer.content) < 4000, "an answer repeats little of what it was sent"
    assert answer.text.isprintable()


class TestMalformed:
    @pytest.mark.parametrize(("call", "name"), cases())
    def test_it_is_refused(self, shared_api, untouched, call, name):
        path, kind, body = call
        content = broken(body, kind, name)
        answer = shared_api.post(path, content=content, headers={"Content-Type": kind})
        check(answer)

    @pytest.mark.parametrize("name", WHOLE)
    def test_so_it_is_as_gzip(self, shared_api, untouched, name):
        content = gzip.compress(broken(b'{"operation":"WRITE","actions":[]}', JSON, name), 1)
        headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
        check(shared_api.post(f"/tables/{TABLE}/commits", content=content, headers=headers))

    @pytest.mark.parametrize("media_type", MEDIA_TYPES)
    @pytest.mark.parametrize("call", calls())
    def test_another_media_type_is_not_taken(self, shared_api, untouched, call, media_type):
        path, _, body = call
        headers = [] if media_type is None else [(b"Content-Type", media_type.encode("latin-1"))]
        answer = shared_api.post(path, content=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")
        check(answer)

    def test_the_calls_are_all_there(self):
        found = [parameter.values[0] for parameter in calls()]
        paths = {path.rpartition("/")[2] for path, _, _ in found}
        assert paths >= {"tables", "register", "commits", "conflict-check", "scan"}
        assert {kind for _, kind, _ in found} == {JSON, NDJSON}


class TestLines:
    """The lines of NDJSON after the first: each is an action, or none."""

    @pytest.mark.parametrize(
        "name", [name for name in MALFORMED if name not in ("nothing", "blanks")]
    )
    def test_a_line_that_is_no_action(self, shared_api, untouched, name):
        line = MALFORMED[name](b'{"txn":{"appId":"a","version":1}}')
        content = b'{"operation":"WRITE"}\n' + line + b"\n"
        answer = shared_api.post(
            f"/tables/{TABLE}/commits", content=content, headers={"Content-Type": NDJSON}
        )
        check(answer)
        assert answer.json()["code"] in ("invalid-action", "too-large")

    def test_too_many_in_one_array(self, shared_api, untouched):
        content = b'{"operation":"WRITE","actions":[' + b"{}," * 250_000 + b"{}]}"
        answer = shared_api.post(
            f"/tables/{TABLE}/commits", content=content, headers={"Content-Type": JSON}
        )
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


class TestEnvelopes:
    @pytest.mark.parametrize("kind", [JSON, NDJSON])
    def test_all_but_the_actions_fits_into_a_line(self, shared_api, untouched, kind):
        files = json.dumps([f"month=5/{number:0100}" for number in range(45_000)])
        head = f'{{"operation":"WRITE","reads":{{"files":{files}}}'
        content = head + (',"actions":[]}' if kind == JSON else "}\n")
        answer = shared_api.post(
            f"/tables/{TABLE}/commits", content=content.encode(), headers={"Content-Type": kind}
        )
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
        assert "predicates" in answer.json()["hint"]
