"""Commits over HTTP: propose, replay, conflict, check, history, bytes."""

import hashlib
import json
import uuid

import deltalake
import pytest

from tests.builders.flights import TABLE, add, ndjson, proposal, remove, table_body
from tests.service.api.http.connections.requests_by_hand import NDJSON_TYPE

APPEND_ANSWER = {
    "version",
    "table",
    "read_version",
    "transaction_id",
    "timestamp",
    "isolation_level",
    "is_blind_append",
    "rebased_over",
    "published",
    "replayed",
    "metrics",
    "check_ms",
    "totals",
}


@pytest.fixture(params=[False, True], ids=["plain", "catalog-managed"])
def table(request, shared_api):
    name = f"main.air.{uuid.uuid4().hex}"
    body = table_body(name, catalog_managed=request.param)
    assert shared_api.post("/tables", json=body).status_code == 201
    return name


def lines_of(content: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in content.splitlines()]


class TestPropose:
    def test_an_append_lands_as_the_next_version(self, shared_api, table):
        answer = shared_api.post(
            f"/tables/{table}/commits", json=proposal(add(), add("month=6/b", "6"))
        )

        assert answer.status_code == 201
        assert answer.headers["location"] == f"/api/v1/tables/{table}/commits/1"
        body = answer.json()
        assert set(body) == APPEND_ANSWER
        assert (body["table"], body["version"], body["read_version"]) == (table, 1, 0)
        assert uuid.UUID(body["transaction_id"])
        assert body["is_blind_append"] is True
        assert body["isolation_level"] == "Serializable"
        assert (body["rebased_over"], body["replayed"]) == (0, False)
        metrics = body["metrics"]
        assert (metrics["num_added_files"], metrics["bytes_added"]) == (2, 20)
        assert (metrics["num_removed_files"], metrics["attempts"]) == (0, 1)
        assert 0 <= body["check_ms"] <= metrics["duration_ms"] + 1
        assert body["totals"] == {"version": 1, "num_files": 2, "size_bytes": 20}
        content = shared_api.get(answer.headers["location"].removeprefix("/api/v1")).content
        info = lines_of(content)[0]["commitInfo"]
        assert info["txnId"] == body["transaction_id"]
        assert info["operation"] == "WRITE"

    def test_everything_of_the_envelope_reaches_the_log(self, shared_api, flights):
        given = {
            "transaction_id": "job-1:attempt_2.x",
            "read_version": 0,
            "operation": "MERGE",
            "operation_parameters": {"predicate": "a = b"},
            "operation_metrics": {"numOutputRows": "3"},
            "user_metadata": "why\u2028so",
            "tags": {"team": "ops"},
            "engine_info": "tests/1",
            "isolation_level": "Serializable",
        }
        shared_api.post(f"/tables/{flights}/commits", json=proposal(add(), **given))

        info = lines_of(shared_api.get(f"/tables/{flights}/commits/1").content)[0]["commitInfo"]
        assert info["txnId"] == given["transaction_id"]
        assert info["operation"] == "MERGE"
        assert info["operationParameters"] == given["operation_parameters"]
        assert info["operationMetrics"] == given["operation_metrics"]
        assert info["userMetadata"] == given["user_metadata"]
        assert info["engineInfo"] == "tests/1"
        entry = shared_api.get(f"/tables/{flights}/commits").json()["commits"][0]
        assert entry["transaction_id"] == given["transaction_id"]
        assert entry["operation_parameters"] == given["operation_parameters"]
        assert entry["engine_info"] == "tests/1"
        assert entry["user_metadata"] == given["user_metadata"]
        assert entry["tags"]["team"] == "ops"

    def test_actions_reach_the_log_byte_for_byte(self, shared_api, flights):
        action = (
            b'{"add": {"size":10,"path":"month=5/a","modificationTime":1,"dataChange":true,'
            b'"partitionValues":{"month":"5"},"later":{"b":1.10,"a":"\\u00e9"}}}'
        )
        body = b'{"operation":"WRITE","actions":[\n  ' + action + b"\n]}"
        answer = shared_api.post(
            f"/tables/{flights}/commits",
            content=body,
            headers={"Content-Type": "application/json; charset=utf-8"},
        )
        assert answer.status_code == 201
        content = shared_api.get(f"/tables/{flights}/commits/1").content
        assert content.splitlines()[-1] == action

    def test_ndjson_says_the_same_as_json(self, shared_api, table):
        actions = [add(), add("month=6/b", "6")]
        sent = {"transaction_id": "t-1", "user_metadata": "m"}
        first = shared_api.post(f"/tables/{table}/commits", json=proposal(*actions, **sent))
        again = shared_api.post(
            f"/tables/{table}/commits",
            content=ndjson(*actions, **sent).replace(b"\n", b"\r\n\n").rstrip(),
            headers=NDJSON_TYPE,
        )
        # The same work under the same id: a replay, so the bodies were read alike.
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json()["replayed"] is True

    def test_an_empty_one_may_be_skipped(self, shared_api, table):
        answer = shared_api.post(
            f"/tables/{table}/commits", json=proposal(skip_if_empty=True, transaction_id="t-1")
        )
        assert answer.status_code == 200
        assert (answer.json()["version"], answer.json()["transaction_id"]) == (None, "t-1")
        assert shared_api.get(f"/tables/{table}").json()["latest_version"] == 0

    def test_the_log_is_one_that_others_read(self, shared_api, flights):
        shared_api.post(f"/tables/{flights}/commits", json=proposal(add(), add("month=6/b", "6")))
        body = proposal(
            remove(), read_version=1, reads={"predicates": ["month = 5"]}, operation="DELETE"
        )
        assert shared_api.post(f"/tables/{flights}/commits", json=body).status_code == 201
        location = shared_api.get(f"/tables/{flights}").json()["location"]
        log = deltalake.DeltaTable(location.removeprefix("file://"))
        assert log.version() == 2
        assert [uri.rpartition("/")[2] for uri in log.file_uris()] == ["b"]


class TestReplay:
    def test_the_same_id_and_body_get_the_first_answer_again(self, shared_api, table):
        body = proposal(add(), transaction_id="t-1")
        first = shared_api.post(f"/tables/{table}/commits", json=body)
        shared_api.post(f"/tables/{table}/commits", json=proposal(add("month=6/b", "6")))
        again = shared_api.post(f"/tables/{table}/commits", json=body)
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.headers["location"] == first.headers["location"]
        # What is known only of a commit as it lands.
        passing = {"check_ms": None, "totals": None}
        changed = {"replayed": True, "published": again.json()["published"], **passing}
        assert again.json() == {**first.json(), **changed}

    def test_another_body_is_refused(self, shared_api, table):
        shared_api.post(f"/tables/{table}/commits", json=proposal(add(), transaction_id="t-1"))
        answer = shared_api.post(
            f"/tables/{table}/commits", json=proposal(add("month=5/b"), transaction_id="t-1")
        )
        assert (answer.status_code, answer.json()["code"]) == (422, "transaction-id-reused")
        assert answer.json()["version"] == 1
        assert answer.json()["transaction_id"] == "t-1"


class TestConflict:
    def conflicting(self) -> dict[str, object]:
        return proposal(
            add("month=5/mine"),
            read_version=0,
            reads={"predicates": ["month = 5"]},
            transaction_id="loser",
        )

    def test_it_names_the_winner(self, shared_api, table):
        won = shared_api.post(
            f"/tables/{table}/commits",
            json=proposal(add(), engine_info="loader/1", user_metadata="n" * 300),
            headers={"X-Spark-Application-Id": "nightly"},
        ).json()

        answer = shared_api.post(f"/tables/{table}/commits", json=self.conflicting())

        assert answer.status_code == 409
        problem = answer.json()
        assert problem["code"] == "concurrent-append"
        assert problem["error_class"] == "ConcurrentAppendException"
        assert problem["retryable"] is False
        assert problem["transaction_id"] == "loser"
        assert problem["conflict"] == {
            "version": 1,
            "operation": "WRITE",
            "timestamp": won["timestamp"],
            "application_id": "nightly",
            "engine_info": "loader/1",
            "user_metadata": "n" * 200,
            "path": "month=5/a.parquet",
            "partition": {"month": "5"},
        }
        assert "version 1" in problem["hint"]

    def test_what_does_not_touch_it_is_rebased_over(self, shared_api, table):
        shared_api.post(f"/tables/{table}/commits", json=proposal(add("month=6/b", "6")))
        answer = shared_api.post(f"/tables/{table}/commits", json=self.conflicting())
        assert answer.status_code == 201
        body = answer.json()
        assert (body["version"], body["read_version"], body["rebased_over"]) == (2, 0, 1)

    @pytest.mark.parametrize(("month", "status"), [("5", 409), ("6", 201)])
    def test_what_is_not_evaluated_may_match(self, shared_api, table, month, status):
        shared_api.post(f"/tables/{table}/commits", json=proposal(add(f"month={month}/b", month)))
        queried = "month = 5 AND month IN (SELECT m FROM main.air.months WHERE open)"
        body = {**self.conflicting(), "reads": {"predicates": [queried]}}
        answer = shared_api.post(f"/tables/{table}/commits", json=body)
        assert answer.status_code == status

    def test_a_check_foretells_it_and_writes_nothing(self, shared_api, table):
        body = self.conflicting()
        before = shared_api.post(f"/tables/{table}/conflict-check", json=body)
        shared_api.post(f"/tables/{table}/commits", json=proposal(add()))
        after = shared_api.post(f"/tables/{table}/conflict-check", json=body)

        assert before.status_code == 200
        assert before.json() == {
            "table": table,
            "committed": False,
            "version": 1,
            "read_version": 0,
            "transaction_id": "loser",
            "isolation_level": "Serializable",
            "is_blind_append": False,
            "rebased_over": 0,
        }
        assert (after.status_code, after.json()["code"]) == (409, "concurrent-append")
        assert shared_api.get(f"/tables/{table}").json()["latest_version"] == 1
        assert shared_api.get(f"/tables/{table}/transactions/loser").status_code == 404

    def test_a_check_of_what_landed_says_so(self, shared_api, table):
        body = proposal(add(), transaction_id="t-1")
        shared_api.post(f"/tables/{table}/commits", json=body)
        answer = shared_api.post(f"/tables/{table}/conflict-check", json=body)
        assert (answer.json()["committed"], answer.json()["version"]) == (True, 1)


class TestInvalid:
    @pytest.mark.parametrize(
        ("body", "code"),
        [
            (proposal(add(), add()), "duplicate-action"),
            (proposal(add(month="may")), "partition-mismatch"),
            (proposal(add("/etc/passwd")), "invalid-path"),
            (proposal(add(size=-1)), "invalid-action"),
            (proposal(remove()), "invalid-request"),
            (
                proposal(add(), read_version=0, reads={"predicates": ["nope = 1"]}),
                "invalid-predicate",
            ),
        ],
    )
    def test_what_can_never_be_committed(self, shared_api, flights, body, code):
        answer = shared_api.post(f"/tables/{flights}/commits", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, code)
        assert uuid.UUID(answer.json()["transaction_id"])
        assert shared_api.get(f"/tables/{flights}").json()["latest_version"] == 0

    def test_the_action_is_pointed_at(self, shared_api, flights):
        body = proposal(add(), add("month=6/b", "6"), add("month=7/../x", "7"))
        problem = shared_api.post(f"/tables/{flights}/commits", json=body).json()
        assert [error["where"] for error in problem["errors"]] == ["/actions/2"]

    @pytest.mark.parametrize("at", ["delta.constraints.c", "NOT NULL"])
    def test_a_rule_for_rows_that_nobody_read(self, shared_api, table, at):
        assert shared_api.post(f"/tables/{table}/commits", json=proposal(add())).status_code == 201
        changed = lines_of(shared_api.get(f"/tables/{table}/commits/0").content)[-1]["metaData"]
        if at == "NOT NULL":
            schema = json.loads(changed["schemaString"])
            schema["fields"].append({**schema["fields"][0], "name": "new", "nullable": False})
            changed["schemaString"] = json.dumps(schema)
        else:
            changed["configuration"][at] = "month > '4'"
        rule = proposal({"metaData": changed}, operation="SET TBLPROPERTIES", read_version=1)
        refused = shared_api.post(f"/tables/{table}/commits", json=rule)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-action")
        assert "month=5/a.parquet" in refused.json()["detail"]
        read = {**rule, "reads": {"whole_table": True}}
        answer = shared_api.post(f"/tables/{table}/commits", json=read)
        # A new column is null in each row, whoever has read them.
        assert answer.status_code == (422 if at == "NOT NULL" else 201)

    def test_a_read_version_to_come_says_nothing(self, shared_api, flights):
        body = proposal(add(), read_version=7)
        answer = shared_api.post(f"/tables/{flights}/commits", json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "version-not-found")

    def test_a_table_that_is_not_there(self, shared_api):
        answer = shared_api.post(f"/tables/{TABLE}x/commits", json=proposal(add()))
        assert (answer.status_code, answer.json()["code"]) == (404, "table-not-found")


class TestHistory:
    def test_newest_first_in_pages(self, shared_api, flights):
        for number in range(4):
            shared_api.post(f"/tables/{flights}/commits", json=proposal(add(f"month=5/{number}")))
        versions, to_version, pages = [], None, 0
        while pages == 0 or to_version is not None:
            asked = {"limit": 2} | ({} if to_version is None else {"to_version": to_version})
            page = shared_api.get(f"/tables/{flights}/commits", params=asked).json()
            versions += [commit["version"] for commit in page["commits"]]
            to_version = page["next_to_version"]
            pages += 1
        assert (versions, pages) == ([4, 3, 2, 1, 0], 3)

    def test_between_two_versions(self, shared_api, flights):
        for number in range(4):
            shared_api.post(f"/tables/{flights}/commits", json=proposal(add(f"month=5/{number}")))
        page = shared_api.get(f"/tables/{flights}/commits?from_version=1&to_version=2").json()
        assert [commit["version"] for commit in page["commits"]] == [2, 1]
        assert page["next_to_version"] is None

    def test_an_entry_is_of_the_bytes(self, shared_api, table):
        shared_api.post(f"/tables/{table}/commits", json=proposal(add()))
        entry = shared_api.get(f"/tables/{table}/commits").json()["commits"][0]
        content = shared_api.get(f"/tables/{table}/commits/1").content
        assert entry["content_sha256"] == hashlib.sha256(content).hexdigest()
        assert entry["foreign"] is False

    @pytest.mark.parametrize("version", ["9", "-1", "x", "9223372036854775808", "1.5", "%00"])
    def test_versions_that_are_not_there(self, shared_api, flights, version):
        answer = shared_api.get(f"/tables/{flights}/commits/{version}")
        assert answer.status_code == (404 if version == "9" else 422)
