"""What a body says beside its actions is bounded by what becomes of it, and not by bytes alone."""

import json

import pytest

from tests.builders.flights import add, proposal, table_body
from tests.service.api.http.connections.requests_by_hand import NDJSON_TYPE
from tidegate_protocol.schema.table_schema import MAX_FIELDS
from tidegate_service.api.bodies.decoding import MAX_VALUES_BESIDE
from tidegate_service.api.bodies.proposals import MAX_TOLD_BYTES, MAX_TOLD_VALUES
from tidegate_service.core.access.locations import MAX_FOLDERS

TOO_LARGE = (413, "too-large")


def told(answer) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code", "")


@pytest.mark.parametrize("name", [" - at `key` in `$" * 4_000 + "\nX", " - at `$" + "[" * 60_000])
def test_the_name_of_a_field_that_there_is_not(shared_api, flights, name):
    """It is in the message that says so, in which the place is looked for."""
    answer = shared_api.post(f"/tables/{flights}/scan", json={name: 1})
    assert told(answer) == (422, "invalid-request")


def test_a_line_of_quotes_that_is_not_closed(shared_api, flights):
    line = b"," * 100_001 + b'"' + b'\\"' * 20_000 + b"\n"
    answer = shared_api.post(f"/tables/{flights}/commits", content=line, headers=NDJSON_TYPE)
    assert told(answer) == TOO_LARGE


MANY = [str(number) for number in range(MAX_VALUES_BESIDE)]


@pytest.mark.parametrize(
    "reads",
    [{"files": MANY}, {"app_ids": MANY}, {"predicates": [], "files": MANY}],
    ids=["files", "applications", "and predicates"],
)
def test_values_beside_the_actions(shared_api, flights, reads):
    body = proposal(add(), read_version=0, reads=reads)
    assert told(shared_api.post(f"/tables/{flights}/commits", json=body)) == TOO_LARGE
    envelope, action = {**body, "actions": None}, body["actions"][0]
    del envelope["actions"]
    lines = "\n".join(json.dumps(line) for line in (envelope, action))
    answer = shared_api.post(f"/tables/{flights}/commits", content=lines, headers=NDJSON_TYPE)
    assert told(answer) == TOO_LARGE


def test_commas_in_texts_are_none_of_them(shared_api, flights):
    numbers = ",".join(["1"] * 30_000)
    reads = {"predicates": [f"month in ({numbers})"] * 2, "files": ['a,b\\",' * 20_000]}
    body = proposal(add(), read_version=0, reads=reads)
    assert shared_api.post(f"/tables/{flights}/conflict-check", json=body).status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"operation_metrics": {"a": [[]] * (MAX_TOLD_BYTES // 3)}},
        {"operation_parameters": {str(n): n for n in range(MAX_TOLD_VALUES)}},
        {"tags": {"a": "a" * (MAX_TOLD_BYTES // 2)}, "user_metadata": "a" * (MAX_TOLD_BYTES // 2)},
    ],
    ids=["many lists", "many parameters", "long texts"],
)
def test_what_is_told_for_the_history(shared_api, flights, fields):
    body = proposal(add(), **fields)
    assert told(shared_api.post(f"/tables/{flights}/commits", json=body)) == TOO_LARGE


def test_commas_in_what_is_told_are_no_values(shared_api, flights):
    parameters = {"predicate": "a,[{" * (MAX_TOLD_VALUES * 3)}
    body = proposal(add("month=5/told"), operation_parameters=parameters)
    assert shared_api.post(f"/tables/{flights}/commits", json=body).status_code == 201


def test_columns_that_a_scan_names(shared_api, flights):
    answer = shared_api.post(f"/tables/{flights}/scan", json={"columns": ["id"] * (MAX_FIELDS + 1)})
    assert told(answer) == (422, "invalid-request")
    assert shared_api.post(f"/tables/{flights}/scan", json={"columns": ["month"] * 9}).is_success


def test_folders_that_a_location_lies_in(shared_api, flights):
    location = shared_api.get(f"/tables/{flights}").json()["location"]
    warehouse = location.rsplit("/", 3)[0]
    body = table_body("main.air.deep", location=warehouse + "/a" * MAX_FOLDERS)
    assert told(shared_api.post("/tables", json=body)) == (422, "invalid-location")
