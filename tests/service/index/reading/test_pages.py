"""Pages of what writers said much of: short, and one after the other they are everything."""

import pytest

from tests.builders.flights import SCHEMA, add, proposal, table_body
from tidegate_service.core.ports.records import DETAILS_BYTES, PAGE_BYTES

MIB = 1024 * 1024
LARGE = "a" * MIB
LONG = "a" * 60_000


def pages(api, path, cursor, next_of, **params):
    """The answers that follow each other, the last one's cursor being null."""
    found = []
    while True:
        answer = api.get(path, params=params)
        assert answer.status_code == 200
        found.append(answer)
        params[cursor] = answer.json()[next_of]
        if params[cursor] is None:
            return found


def largest(found) -> int:
    return max(len(answer.content) for answer in found)


def test_a_history(api):
    api.post("/tables", json=table_body(catalog_managed=True))
    for version in range(1, 21):
        parameters = {"a": LONG if version != 5 else "b"}
        body = proposal(add(f"month=5/{version}"), operation_parameters=parameters)
        assert api.post("/tables/main.air.flights/commits", json=body).status_code == 201
    path = "/tables/main.air.flights/commits"

    found = pages(api, path, "to_version", "next_to_version", limit=1000)

    assert largest(found) < DETAILS_BYTES + 2 * len(LONG)
    versions = [commit["version"] for answer in found for commit in answer.json()["commits"]]
    assert versions == list(range(20, -1, -1))
    assert len(found) >= 3
    within = pages(api, path, "to_version", "next_to_version", from_version=3, limit=2)
    versions = [commit["version"] for answer in within for commit in answer.json()["commits"]]
    assert versions == list(range(20, 2, -1))


def test_a_list_of_tables(api):
    columns = [{**SCHEMA["fields"][0], "metadata": {"comment": LARGE}}, SCHEMA["fields"][1]]
    for number in range(10):
        body = table_body(f"main.air.t{number}", schema={"type": "struct", "fields": columns})
        assert api.post("/tables", json=body).status_code == 201

    found = pages(api, "/tables", "cursor", "next_cursor", limit=1000)

    assert largest(found) < 2 * (PAGE_BYTES + 2 * MIB), "the schema is a text in a text"
    names = [table["name"] for answer in found for table in answer.json()["tables"]]
    assert names == [f"main.air.t{number}" for number in range(10)]
    assert len(found) >= 3


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_small_ones_fill_a_page(api, limit):
    api.post("/tables", json=table_body(catalog_managed=True))
    for version in range(1, 7):
        body = proposal(add(f"month=5/{version}"))
        assert api.post("/tables/main.air.flights/commits", json=body).status_code == 201
    path = "/tables/main.air.flights/commits"
    found = pages(api, path, "to_version", "next_to_version", limit=limit)
    sizes = [len(answer.json()["commits"]) for answer in found]
    assert sizes == [limit] * (7 // limit) + [7 % limit] * bool(7 % limit)
