"""Files whose bounds writers rounded inwards are found, and their commits conflict."""

import json
import uuid

import pytest

from tests.builders import lines
from tests.builders.flights import proposal

SCHEMA = lines.struct(lines.column("ts", "timestamp"), lines.column("s", "string"))
CASES = [
    # As Spark before 4.0 writes 1850-01-01 00:07:33 UTC in Europe/Stockholm (delta-io/delta#5249).
    ("ts", "1850-01-01T01:01:01.000+00:53", "ts = TIMESTAMP '1850-01-01 00:07:33Z'"),
    # As Spark's timeParserPolicy LEGACY has it, with the offset that Asia/Manila has now.
    ("ts", "1840-01-01T00:00:00.000+08:00", "ts = TIMESTAMP '1840-01-01 15:56:08Z'"),
    ("ts", "1969-06-01T00:00:00.000-00:44", "ts = TIMESTAMP '1969-06-01 00:44:30Z'"),
    # As Delta before 3.3 cuts what goes on with a character outside the basic plane
    # (delta-io/delta#3430), and what it cuts through one.
    ("s", "a" * 32 + "\ufffd", f"s = '{'a' * 32}\U0001f33c'"),
    ("s", "a" * 31 + "?\ufffd", f"s = '{'a' * 31}\U0001f33c'"),
]
ELSEWHERE = {"ts": "ts = TIMESTAMP '1971-01-01 00:00:00Z'", "s": "s = 'b'"}


@pytest.fixture
def table(shared_api):
    name = f"main.air.{uuid.uuid4().hex}"
    properties = {"tidegate.statisticsDisjointness": "true"}
    body = {"name": name, "schema": SCHEMA, "properties": properties}
    shared_api.post("/tables", json=body).raise_for_status()
    return f"/tables/{name}"


def of_one_row(path: str, column: str, bound: str) -> lines.Line:
    bounds = {"minValues": {column: bound}, "maxValues": {column: bound}}
    return lines.add(path, stats=json.dumps({"numRecords": 1, "nullCount": {column: 0}, **bounds}))


@pytest.mark.parametrize(("column", "bound", "predicate"), CASES)
def test_a_scan_finds_the_row(shared_api, table, column, bound, predicate):
    body = proposal(of_one_row("a", column, bound))
    shared_api.post(f"{table}/commits", json=body).raise_for_status()

    def found(text: str) -> int:
        answer = shared_api.post(f"{table}/scan", json={"predicates": [text]})
        return len(answer.json()["files"])

    assert found(predicate) == 1
    assert found(ELSEWHERE[column]) == 0


@pytest.mark.parametrize(("column", "bound", "predicate"), CASES)
def test_a_winner_that_adds_the_row_is_a_conflict(shared_api, table, column, bound, predicate):
    winner = proposal(of_one_row("a", column, bound))
    shared_api.post(f"{table}/commits", json=winner).raise_for_status()

    def reading(text: str) -> dict[str, object]:
        return proposal(lines.add("b"), read_version=0, reads={"predicates": [text]})

    lost = shared_api.post(f"{table}/commits", json=reading(predicate))
    assert (lost.status_code, lost.json()["code"]) == (409, "concurrent-append")
    landed = shared_api.post(f"{table}/commits", json=reading(ELSEWHERE[column]))
    assert landed.status_code == 201
