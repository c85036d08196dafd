"""Bodies that are not what they should be: always a 4xx that says where, and nothing written."""

import json

import httpx
import pytest

from tests.builders.flights import add, ndjson, proposal, table_body
from tests.service.api.http.connections.requests_by_hand import JSON_TYPE, NDJSON_TYPE

DEEP = b"[" * 100_000 + b"]" * 100_000


def with_actions(actions: bytes) -> bytes:
    return b'{"operation":"WRITE","actions":' + actions + b"}"


def with_action(fields: bytes) -> bytes:
    return with_actions(b'[{"add":{' + fields + b"}}]")


def envelope(**fields: object) -> bytes:
    return json.dumps(proposal(add(), **fields)).encode()


MISPLACED = {
    "/foo": envelope(foo=1),
    "/reads/foo": envelope(reads={"foo": 1}),
    "/reads": envelope(reads=None),
    "/reads/predicates/1": envelope(reads={"predicates": ["a = 1", 2]}),
    "/reads/predicates": envelope(reads={"predicates": ["a = 1"] * 1001}),
    "/reads/predicates/0": envelope(reads={"predicates": ["a" * 65537]}),
    "/reads/files": envelope(reads={"files": "a"}),
    "/reads/app_ids/0": envelope(reads={"app_ids": [1]}),
    "/reads/whole_table": envelope(reads={"whole_table": "yes"}),
    "/read_version": [
        envelope(read_version=value) for value in (-2, 1.0, True, "1", 2**63, 2**64, 10**4000)
    ],
    "/transaction_id": [
        envelope(transaction_id=value)
        for value in ("", "x" * 129, "a b", "a\n", "é", "a/b", 7, ["a"])
    ],
    "/operation": [
        envelope(operation=value) for value in ("", "x" * 257, "a\nb", "\x7f", "\x9f", 7, None)
    ],
    "/isolation_level": envelope(isolation_level="Chaos"),
    "/operation_parameters": envelope(operation_parameters=[]),
    "/operation_metrics": envelope(operation_metrics=1),
    "/tags/*": [envelope(tags={"a": value}) for value in (1, None, {})],
    "/user_metadata": envelope(user_metadata=1),
    "/engine_info": envelope(engine_info=["x"]),
    "/skip_if_empty": envelope(skip_if_empty=1),
    "/actions": [with_actions(value) for value in (b"null", b"{}", b'"x"', b"1")],
}

NULS = {
    "parameter": envelope(operation_parameters={"a": "\0"}),
    "parameter name": envelope(operation_parameters={"\0": "a"}),
    "metric": envelope(operation_metrics={"a": ["\0"]}),
    "tag": envelope(tags={"a": "\0"}),
    "user metadata": envelope(user_metadata="\0"),
    "engine": envelope(engine_info="\0"),
    "file": envelope(reads={"files": ["\0"]}),
    "app id": envelope(reads={"app_ids": ["\0"]}),
    "predicate": envelope(reads={"predicates": ["'\0' = carrier"]}),
}

BAD_ACTIONS = {
    "/actions/0": [
        with_actions(actions)
        for actions in (
            b"[null]",
            b"[1]",
            b"[[]]",
            b"[{}]",
            b'[{"add":{},"remove":{}}]',
            b'[{"add":{"path":"a","path":"b"}}]',
            b'[{"add":{"path":"\\u0000"}}]',
            b'[{"add":{"size":1e999}}]',
            b'[{"add":{"size":' + b"1" * 5000 + b"}}]",
            b'[{"add":{"path":"\xff"}}]',
            b'[{"add":' + b'{"a":' * 80 + b"1" + b"}" * 80 + b"}]",
        )
    ],
    "/actions/0/add": [with_actions(b'[{"add":null}]'), with_action(b"")],
    "/actions/1/add/path": with_actions(
        b"[" + json.dumps(add()).encode() + b',{"add":{"path":1}}]'
    ),
    "/actions/0/add/size": json.dumps(proposal(add(size="big"))).encode(),
    "/actions/0/add/partitionValues/*": json.dumps(proposal(add(month=5))).encode(),
    "/actions/0/add/deletionVector/cardinality": json.dumps(
        proposal(
            add(
                deletionVector={
                    "storageType": "i",
                    "pathOrInlineDv": "x",
                    "sizeInBytes": 1,
                    "cardinality": "many",
                }
            )
        )
    ).encode(),
}


def cases(table: dict[str, bytes | list[bytes]]) -> list[object]:
    return [
        pytest.param(where, body, id=f"{where} {number}")
        for where, bodies in table.items()
        for number, body in enumerate(bodies if isinstance(bodies, list) else [bodies])
    ]


@pytest.fixture(scope="module")
def untouched(shared_server):
    """A table that every test of this module fails to change."""
    table = f"{shared_server}/api/v1/tables/main.air.untouched"
    body = table_body("main.air.untouched")
    httpx.post(table.rpartition("/")[0], json=body).raise_for_status()
    before = httpx.get(table).json()
    yield "/tables/main.air.untouched"
    assert httpx.get(table).json() == before


@pytest.fixture(params=["commits", "conflict-check"])
def call(request, untouched):
    return f"{untouched}/{request.param}"


class TestProposals:
    @pytest.mark.parametrize(("where", "body"), cases(MISPLACED))
    def test_a_wrong_field_is_pointed_at(self, shared_api, call, where, body):
        answer = shared_api.post(call, content=body, headers=JSON_TYPE)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert [error["where"] for error in answer.json()["errors"]] == [where]
        assert answer.json()["detail"].startswith(f"{where}: ")

    @pytest.mark.parametrize("body", NULS.values(), ids=NULS.keys())
    def test_a_nul_character_is_refused(self, shared_api, call, body):
        answer = shared_api.post(call, content=body, headers=JSON_TYPE)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert "NUL" in answer.json()["detail"]

    @pytest.mark.parametrize(("where", "body"), cases(BAD_ACTIONS))
    def test_a_wrong_action_is_pointed_at(self, shared_api, call, where, body):
        answer = shared_api.post(call, content=body, headers=JSON_TYPE)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-action")
        assert [error["where"] for error in answer.json()["errors"]] == [where]

    @pytest.mark.parametrize("missing", ["operation", "actions"])
    def test_what_is_required(self, shared_api, call, missing):
        body = proposal(add())
        del body[missing]
        answer = shared_api.post(call, json=body)
        assert answer.status_code == 422
        assert f"`{missing}`" in answer.json()["detail"]

    def test_an_action_beyond_4_mib_is_too_large(self, shared_api, call):
        body = proposal(add(stats="x" * (4 * 1024 * 1024)))
        answer = shared_api.post(call, json=body)
        assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


class TestNdjson:
    @pytest.mark.parametrize(
        ("body", "code", "where"),
        [
            (b"", "invalid-request", ""),
            (b"\n" + ndjson(add()), "invalid-request", ""),
            (ndjson(add(), actions=[]), "invalid-request", "/actions"),
            (ndjson(add()).replace(b"\n", b"\r"), "invalid-request", ""),
            (ndjson(add()) + b'{"add":\n', "invalid-action", "/actions/1"),
            (ndjson(add()) + b'{"add":{}} {"add":{}}\n', "invalid-action", "/actions/1"),
            (ndjson(add()) + b"[]", "invalid-action", "/actions/1"),
            (ndjson(add()) + b'{"add":{},"remove":null}', "invalid-action", "/actions/1"),
            (ndjson(add()) + b'\n\n{"add":{"path":3}}', "invalid-action", "/actions/1/add/path"),
            (ndjson(operation="a\0"), "invalid-request", ""),
        ],
    )
    def test_a_wrong_line_is_pointed_at(self, shared_api, call, body, code, where):
        answer = shared_api.post(call, content=body, headers=NDJSON_TYPE)
        assert (answer.status_code, answer.json()["code"]) == (422, code)
        assert [error["where"] for error in answer.json()["errors"]] == [where]


class TestOtherBodies:
    @pytest.mark.parametrize("body", [b"", b"[]", b"{", DEEP, b'{"version":1,"version":2}'])
    @pytest.mark.parametrize("path", ["/tables", "scan"])
    def test_malformed_json(self, shared_api, untouched, path, body):
        path = path if path == "/tables" else f"{untouched}/{path}"
        answer = shared_api.post(path, content=body, headers=JSON_TYPE)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")

    @pytest.mark.parametrize(
        ("fields", "where"),
        [
            ({"nope": 1}, "/nope"),
            ({"name": 1}, "/name"),
            ({"name": None}, "/name"),
            ({"schema": 1}, "/schema"),
            ({"partition_columns": "month"}, "/partition_columns"),
            ({"partition_columns": [1]}, "/partition_columns/0"),
            ({"properties": {"a": 1}}, "/properties/*"),
            ({"catalog_managed": "yes"}, "/catalog_managed"),
            ({"protocol": []}, "/protocol"),
            ({"comment": 1}, "/comment"),
            ({"actions": {}}, "/actions"),
            ({"comment": "\0"}, ""),
            ({"properties": {"a": "\0"}}, ""),
        ],
    )
    def test_creating(self, shared_api, fields, where):
        body = {"name": "main.air.bad", "schema": {}, **fields}
        answer = shared_api.post("/tables", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert [error["where"] for error in answer.json()["errors"]] == [where]


class TestMediaTypes:
    def test_ndjson_is_for_proposals(self, shared_api, untouched):
        answer = shared_api.post(f"{untouched}/scan", content=b"{}", headers=NDJSON_TYPE)
        assert answer.status_code == 415
