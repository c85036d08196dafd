"""Scans over HTTP: versions, timestamps, predicates, the forms of the answer."""

import json

import pytest

from tests.builders.flights import add, proposal, remove
from tidegate_service.api.http.request.requests import JSON, NDJSON
from tidegate_service.api.routes.scan import ACCEPTED


def paths(files: list[dict[str, dict[str, object]]]) -> list[object]:
    return [file["add"]["path"] for file in files]


@pytest.fixture
def scan(shared_api, flights):
    """A table with one file a month; May was rewritten by version 2."""
    months = [add(f"month={month}/a.parquet", str(month)) for month in (4, 5, 6)]
    shared_api.post(f"/tables/{flights}/commits", json=proposal(*months)).raise_for_status()
    body = proposal(
        remove(), add("month=5/b.parquet"), read_version=1, reads={"predicates": ["month = 5"]}
    )
    shared_api.post(f"/tables/{flights}/commits", json=body).raise_for_status()

    def call(**body):
        return shared_api.post(f"/tables/{flights}/scan", json=body)

    return call


class TestVersions:
    def test_the_latest_with_what_it_is_read_by(self, shared_api, flights, scan):
        answer = scan()
        assert answer.status_code == 200
        body = answer.json()
        head = shared_api.get(f"/tables/{flights}").json()
        assert body["version"] == 2
        assert (body["table"], body["table_id"]) == (flights, head["id"])
        assert body["location"] == head["location"]
        assert body["timestamp"] == head["latest_timestamp"]
        assert body["protocol"] == head["protocol"]
        assert body["metadata"] == head["metadata"]
        assert paths(body["files"]) == [
            "month=4/a.parquet",
            "month=5/b.parquet",
            "month=6/a.parquet",
        ]
        assert body["files"][1] == add("month=5/b.parquet")

    def test_an_earlier_one(self, scan):
        body = scan(version=1).json()
        assert body["version"] == 1
        assert "month=5/a.parquet" in paths(body["files"])

    def test_one_without_files(self, scan):
        assert scan(version=0).json()["files"] == []

    def test_by_timestamp(self, scan):
        moment = scan(version=1).json()["timestamp"]
        assert scan(timestamp=moment).json()["version"] == 1
        assert scan(timestamp=moment + 10**9).json()["version"] == 2
        before = scan(timestamp=1)
        assert (before.status_code, before.json()["code"]) == (404, "version-not-found")

    def test_a_version_to_come(self, scan):
        answer = scan(version=3)
        assert (answer.status_code, answer.json()["code"]) == (404, "version-not-found")

    @pytest.mark.parametrize(
        ("body", "where"),
        [
            ({"version": -1}, "/version"),
            ({"version": 2**63}, "/version"),
            ({"version": "1"}, "/version"),
            ({"timestamp": -1}, "/timestamp"),
            ({"timestamp": "2026-11-20"}, "/timestamp"),
            ({"predicates": "month = 5"}, "/predicates"),
            ({"predicates": ["true"] * 1001}, "/predicates"),
            ({"columns": [1]}, "/columns/0"),
            ({"limit": 1}, "/limit"),
        ],
    )
    def test_bad_fields_are_pointed_at(self, scan, body, where):
        answer = scan(**body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert answer.json()["errors"][0]["where"] == where

    @pytest.mark.parametrize(
        "body", [{"version": 1, "timestamp": 1}, {"columns": ["nope"]}, {"columns": ["\u0007"]}]
    )
    def test_what_makes_no_sense_is_refused(self, scan, body):
        answer = scan(**body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


class TestPredicates:
    def test_they_prune(self, scan):
        assert paths(scan(predicates=["month = 5"]).json()["files"]) == ["month=5/b.parquet"]

    def test_any_of_them_may_match(self, scan):
        found = paths(scan(predicates=["month = 4", "MONTH > 5"]).json()["files"])
        assert found == ["month=4/a.parquet", "month=6/a.parquet"]

    def test_what_is_not_evaluated_may_match(self, scan):
        queried = "carrier IN (SELECT code FROM other.lake.carriers)"
        assert len(paths(scan(predicates=[queried]).json()["files"])) == 3
        narrowed = scan(predicates=[f"month = 5 AND {queried} AND count(*) > 1"])
        assert paths(narrowed.json()["files"]) == ["month=5/b.parquet"]

    @pytest.mark.parametrize(
        "predicate",
        ["", "month =", "nope = 1", "month IN (SELECT", "a" * 60000, "'", "\u202e", ";"],
    )
    def test_what_cannot_be_read_is_refused(self, scan, predicate):
        answer = scan(predicates=[predicate])
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-predicate")

    def test_columns_cut_the_statistics(self, shared_api, flights, scan):
        stats = json.dumps(
            {"numRecords": 1, "minValues": {"carrier": "AA"}, "nullCount": {"carrier": 0}}
        )
        body = proposal(add("month=7/s.parquet", "7", stats=stats))
        shared_api.post(f"/tables/{flights}/commits", json=body).raise_for_status()
        found = scan(predicates=["month = 7"], columns=["Month"]).json()["files"][0]["add"]
        assert json.loads(found["stats"])["minValues"] == {}
        assert json.loads(found["stats"])["numRecords"] == 1


class TestForms:
    @pytest.mark.parametrize(
        "accept", ["application/x-ndjson", "application/json;q=0.1, Application/X-NDJSON; q=1"]
    )
    def test_ndjson_says_the_same(self, shared_api, flights, scan, accept):
        answer = shared_api.post(f"/tables/{flights}/scan", json={}, headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/x-ndjson"
        head, *files = [json.loads(line) for line in answer.text.splitlines()]
        assert {**head, "files": files} == scan().json()

    @pytest.mark.parametrize("accept", ["*/*", "application/json", "text/html", "application/x"])
    def test_any_other_accept_gets_json(self, shared_api, flights, scan, accept):
        answer = shared_api.post(f"/tables/{flights}/scan", json={}, headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/json"
        assert len(answer.json()["files"]) == 3

    def test_the_first_kinds_of_an_accept_are_looked_at(self, shared_api, flights, scan):
        def kind(before: int) -> str:
            accept = {"Accept": "," * before + NDJSON}
            answer = shared_api.post(f"/tables/{flights}/scan", json={}, headers=accept)
            return str(answer.headers["content-type"])

        assert [kind(ACCEPTED - 1), kind(ACCEPTED)] == [NDJSON, JSON]

    def test_many_files_come_in_batches_and_whole(self, shared_api, flights):
        many = [add(f"month=5/{number:05}.parquet") for number in range(5000)]
        shared_api.post(f"/tables/{flights}/commits", json=proposal(*many)).raise_for_status()
        found = shared_api.post(f"/tables/{flights}/scan", json={}).json()["files"]
        assert paths(found) == [file["add"]["path"] for file in many]
