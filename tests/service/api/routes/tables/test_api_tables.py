"""Tables over HTTP: create, list, get, forget."""

import json
import uuid
from pathlib import Path

import httpx
import pytest

from tests.builders.flights import SCHEMA, TABLE, add, proposal, table_body

BOTH_KINDS = pytest.mark.parametrize("catalog_managed", [False, True])


@pytest.fixture
def name() -> str:
    return f"main.air.{uuid.uuid4().hex}"


class TestCreate:
    @BOTH_KINDS
    def test_it_answers_with_the_head_at_version_0(self, shared_api, name, catalog_managed):
        body = table_body(name, catalog_managed=catalog_managed, comment="c")
        answer = shared_api.post("/tables", json=body)

        assert answer.status_code == 201
        assert answer.headers["location"] == f"/api/v1/tables/{name}"
        head = answer.json()
        assert head["name"] == name
        assert head["location"].endswith(f"/warehouse/{name.replace('.', '/')}")
        assert head["latest_version"] == 0
        assert head["catalog_managed"] is catalog_managed
        assert head["state"] == "active"
        assert head["state_reason"] is None
        assert (head["num_files"], head["size_bytes"]) == (0, 0)
        assert ("catalogManaged" in head["protocol"].get("writerFeatures", [])) is catalog_managed
        assert json.loads(head["metadata"]["schemaString"]) == SCHEMA
        assert head["metadata"]["partitionColumns"] == ["month"]
        assert head["metadata"]["description"] == "c"

    def test_the_schema_may_be_its_string(self, shared_api, name):
        answer = shared_api.post("/tables", json=table_body(name, schema=json.dumps(SCHEMA)))
        assert answer.status_code == 201

    def test_with_files(self, shared_api, name):
        answer = shared_api.post("/tables", json=table_body(name, actions=[add()]))
        assert answer.status_code == 201
        assert (answer.json()["num_files"], answer.json()["size_bytes"]) == (1, 10)

    def test_properties_without_effect_are_told(self, shared_api, name):
        properties = {
            "DELTA.autooptimize.optimizewrite": "true",
            "delta.appendOnly": "true",
            "delta.compatibility.symlinkFormatManifest.enabled": "true",
            "mine": "1",
        }
        answer = shared_api.post("/tables", json=table_body(name, properties=properties))
        assert answer.status_code == 201
        told = answer.json()["warnings"]
        assert [text.split()[2] for text in told] == ["delta.autoOptimize.optimizeWrite"]
        # The head is as ever.
        assert "warnings" not in shared_api.get(f"/tables/{name}").json()

    def test_there_may_be_nothing_to_tell(self, shared_api, name):
        assert "warnings" not in shared_api.post("/tables", json=table_body(name)).json()

    def test_properties_and_protocol(self, shared_api, name):
        body = table_body(
            name,
            properties={"delta.appendOnly": "true"},
            protocol={
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": [],
                "writerFeatures": ["appendOnly"],
            },
        )
        head = shared_api.post("/tables", json=body).json()
        assert head["metadata"]["configuration"] == {"delta.appendOnly": "true"}
        assert head["protocol"] == body["protocol"]

    def test_in_an_allowed_location(self, start_service, tmp_path):
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        service = start_service(allowed_locations=(f"file://{elsewhere}",))
        answer = httpx.post(
            f"{service.url}/api/v1/tables", json=table_body(location=f"file://{elsewhere}/t")
        )
        assert answer.status_code == 201
        assert (elsewhere / "t" / "_delta_log" / f"{0:020}.json").exists()

    @pytest.mark.parametrize("case", [str.lower, str.upper])
    def test_a_name_is_taken_once_in_any_case(self, shared_api, name, case):
        shared_api.post("/tables", json=table_body(name))
        answer = shared_api.post("/tables", json=table_body(case(name), properties={"x": "y"}))
        assert (answer.status_code, answer.json()["code"]) == (409, "table-exists")

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"name": "flights"}, "invalid-name"),
            ({"name": "a.b.c.d"}, "invalid-name"),
            ({"name": "a..c"}, "invalid-name"),
            ({"name": "a.b.é"}, "invalid-name"),
            ({"name": "a.b.c/d"}, "invalid-name"),
            ({"name": "a.b." + "c" * 300}, "invalid-name"),
            ({"name": ""}, "invalid-name"),
            ({"schema": {}}, "invalid-schema"),
            ({"schema": "{"}, "invalid-schema"),
            ({"schema": {"type": "struct", "fields": [{"name": "x"}]}}, "invalid-schema"),
            ({"partition_columns": ["nope"]}, "invalid-schema"),
            ({"partition_columns": ["month", "month"]}, "invalid-schema"),
            ({"location": "/srv/x"}, "invalid-location"),
            ({"location": "s3://bucket/x"}, "invalid-location"),
            ({"location": "file:///etc"}, "invalid-location"),
            ({"location": "file:///tmp/../etc"}, "invalid-location"),
            ({"location": "file:///a\u0007"}, "invalid-location"),
            ({"properties": {"delta.nope": "1"}}, "invalid-request"),
            ({"properties": {"delta.appendOnly": "maybe"}}, "invalid-request"),
            ({"protocol": {"minReaderVersion": 9, "minWriterVersion": 9}}, "unsupported-feature"),
            ({"protocol": {"minReaderVersion": "x"}}, "invalid-protocol"),
            ({"operation_parameters": {"source": "x"}}, "invalid-request"),
            ({"actions": [{"remove": {}}]}, "invalid-action"),
            ({"actions": [add(path="../x")]}, "invalid-path"),
            ({"actions": [add(), add()]}, "duplicate-action"),
            ({"actions": [add(month="may")]}, "partition-mismatch"),
        ],
    )
    def test_what_can_never_be_is_refused_and_leaves_nothing(self, shared_api, fields, code):
        name = f"main.refused.{uuid.uuid4().hex}"
        answer = shared_api.post("/tables", json={**table_body(name), **fields})
        assert (answer.status_code, answer.json()["code"]) == (422, code)
        found = shared_api.get("/tables", params={"prefix": "main.refused."})
        assert found.json()["tables"] == []
        # Nor is anything left at its place: the name can be had.
        assert shared_api.post("/tables", json=table_body(name)).status_code == 201
        assert shared_api.delete(f"/tables/{name}").status_code == 204


class TestGet:
    def test_by_name_in_any_case_and_by_id(self, shared_api, name):
        head = shared_api.post("/tables", json=table_body(name)).json()
        for ref in (name, name.upper(), head["id"]):
            assert shared_api.get(f"/tables/{ref}").json() == head

    @pytest.mark.parametrize(
        "ref", ["a.b.c", "nope", "%00", "a%00b", "%C3%A9", "%ff", "a" * 3000, "%0a", "%2e%2e"]
    )
    def test_what_is_not_there_is_not_found(self, shared_api, ref):
        answer = shared_api.get(f"/tables/{ref}")
        assert answer.status_code == 404
        assert answer.json()["code"] in ("table-not-found", "route-not-found")

    def test_files_are_counted(self, shared_api, flights):
        files = proposal(add(), add("month=6/b", "6"))
        shared_api.post(f"/tables/{flights}/commits", json=files)
        head = shared_api.get(f"/tables/{flights}").json()
        assert (head["num_files"], head["size_bytes"], head["latest_version"]) == (2, 20, 1)


class TestList:
    def test_in_pages_by_name(self, api):
        names = [f"main.air.t{number}" for number in range(5)]
        for name in reversed(names):
            api.post("/tables", json=table_body(name))
        found, cursor, pages = [], None, 0
        while pages == 0 or cursor is not None:
            page = api.get("/tables", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
            found += [table["name"] for table in page.json()["tables"]]
            cursor = page.json()["next_cursor"]
            pages += 1
        assert (found, pages) == (names, 3)

    def test_by_prefix(self, api):
        for name in ("main.air.a", "main.sea.b", "main.airport.c"):
            api.post("/tables", json=table_body(name))
        names = [
            t["name"] for t in api.get("/tables", params={"prefix": "main.air."}).json()["tables"]
        ]
        assert names == ["main.air.a"]

    @pytest.mark.parametrize("prefix", ["%", "_", "main.a_r", "\\", "'"])
    def test_a_prefix_is_no_pattern(self, shared_api, flights, prefix):
        assert shared_api.get("/tables", params={"prefix": prefix}).json()["tables"] == []

    @pytest.mark.parametrize(
        ("query", "where"),
        [
            ("limit=0", "query/limit"),
            ("limit=1001", "query/limit"),
            ("limit=x", "query/limit"),
            ("limit=", "query/limit"),
            ("limit=%ff", "query/limit"),
            ("prefix=%00", "query/prefix"),
            ("cursor=a%0Ab", "query/cursor"),
            (f"cursor={'a' * 256}", "query/cursor"),
        ],
    )
    def test_bad_parameters_are_named(self, shared_api, query, where):
        answer = shared_api.get(f"/tables?{query}")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert [error["where"] for error in answer.json()["errors"]] == [where]


class TestForget:
    @BOTH_KINDS
    def test_files_stay(self, shared_api, name, catalog_managed):
        body = table_body(name, catalog_managed=catalog_managed)
        location = shared_api.post("/tables", json=body).json()["location"]
        shared_api.post(f"/tables/{name}/commits", json=proposal(add()))

        answer = shared_api.delete(f"/tables/{name}")

        assert (answer.status_code, answer.content) == (204, b"")
        assert shared_api.get(f"/tables/{name}").status_code == 404
        log = Path(location.removeprefix("file://")) / "_delta_log"
        assert [f"{version:020}.json" for version in (0, 1)] == sorted(
            p.name for p in log.glob("*.json")
        )

    def test_twice_is_not_found(self, shared_api, flights):
        shared_api.delete(f"/tables/{flights}")
        assert shared_api.delete(f"/tables/{flights}").status_code == 404


class TestDefaultLocation:
    def test_it_is_where_a_creation_without_one_puts_the_table(self, api):
        asked = api.get("/tables/default-location", params={"name": TABLE})
        assert asked.status_code == 200
        created = api.post("/tables", json=table_body())
        assert asked.json() == {"location": created.json()["location"]}

    def test_a_name_that_is_taken_is_told_of(self, shared_api, flights):
        answer = shared_api.get("/tables/default-location", params={"name": flights.upper()})
        assert (answer.status_code, answer.json()["code"]) == (409, "table-exists")

    @pytest.mark.parametrize(
        "name", ["", "a.b", "a.b.c.d", "a.b.-c", "a.b.c\n", "a.b." + "c" * 252]
    )
    def test_what_is_no_name_is_refused(self, shared_api, name):
        answer = shared_api.get("/tables/default-location", params={"name": name})
        assert answer.status_code in (400, 422)
        assert "query/name" in json.dumps(answer.json()["errors"])
