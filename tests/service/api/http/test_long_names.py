"""Names and locations of megabytes, of which a body may have any: nothing goes through them."""

import tracemalloc
from collections.abc import Callable

import pytest

from tests.builders.flights import table_body
from tidegate_protocol.base.problems import Code
from tidegate_protocol.schema.table_schema import MAX_FIELDS
from tidegate_protocol.schema.table_schema import MAX_NAME_LENGTH as MAX_COLUMN
from tidegate_service.api.http.problems.problems import BadRequest
from tidegate_service.api.unity_catalog.parameters import full_name, schema_name
from tidegate_service.core.access.locations import MAX_LOCATION_LENGTH, canonical_url
from tidegate_service.core.access.names import MAX_NAME_LENGTH, check_name
from tidegate_service.core.errors import NotFound, Refused

LONG = 4 * 1024 * 1024 - 1024
LOCATIONS = {
    "characters": "s3://lake/" + "a" * LONG,
    "escapes": "s3://lake/" + "%zz" * (LONG // 3),
    "folders": "s3://lake/" + "a/" * (LONG // 2),
    "letters beyond ASCII": "s3://lake/" + "é" * (LONG // 2),
    "slashes at the end": "s3://lake/a" + "/" * LONG,
}
MANY_PARTS = "a." * (LONG // 2) + "b"


@pytest.mark.parametrize("location", LOCATIONS.values(), ids=LOCATIONS)
def test_a_long_location_is_refused_by_its_length(location):
    with pytest.raises(Refused, match="is not allowed: it has more than") as refusal:
        canonical_url(location)
    assert refusal.value.code is Code.INVALID_LOCATION


def test_every_location_that_can_be_is_shorter():
    longest = f"abfss://{'c' * 63}@{'a' * 24}.dfs.core.windows.net/{'a' * 799}"
    assert canonical_url(f"{longest}/") == longest
    assert canonical_url(f"gs://{'b' * 222}/{'a' * 799}/")
    room = MAX_LOCATION_LENGTH - len("s3://lake/a")
    assert canonical_url("s3://lake/a" + "/" * room) == "s3://lake/a"
    with pytest.raises(Refused, match="it has more than"):
        canonical_url("s3://lake/a" + "/" * (room + 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "refusal"),
    [(check_name, Refused), (schema_name, BadRequest), (full_name, NotFound)],
    ids=["table", "schema", "table of Unity Catalog"],
)
def test_a_long_name_is_not_taken_apart(check: Callable[[str], object], refusal):
    tracemalloc.start()
    try:
        with pytest.raises(refusal):
            check(MANY_PARTS)
        assert tracemalloc.get_traced_memory()[1] < LONG / 4
    finally:
        tracemalloc.stop()


def sent(client, path: str, body: dict) -> tuple[int, str, str]:
    """What a body that is long is answered with."""
    answer = client.post(path, json=body)
    problem = answer.json()
    return answer.status_code, problem["code"], problem["detail"]


@pytest.mark.parametrize("path", ["/tables", "/tables/register"])
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": MANY_PARTS}, "invalid-name"),
        ({"name": f"a.b.{'c' * (MAX_NAME_LENGTH - 3)}"}, "invalid-name"),
        ({"location": LOCATIONS["escapes"]}, "invalid-location"),
        ({"location": f"file:///x/{'a' * MAX_LOCATION_LENGTH}"}, "invalid-location"),
    ],
    ids=["parts", "one character", "escapes", "a little"],
)
def test_they_are_told_which_it_is(shared_api, path, fields, code):
    usual = table_body("main.air.long") if path == "/tables" else {"name": "main.air.long"}
    status, found, detail = sent(shared_api, path, {"location": "file:///x", **usual, **fields})
    assert (status, found) == (422, code)
    assert len(detail) < 1_000


@pytest.mark.parametrize(
    ("columns", "where"),
    [
        (["c" * (MAX_COLUMN + 1)], "/partition_columns/0: "),
        (["c"] * (MAX_FIELDS + 1), "/partition_columns: "),
    ],
    ids=["long", "many"],
)
def test_partition_columns(shared_api, columns, where):
    body = table_body("main.air.long", partition_columns=columns)
    status, code, detail = sent(shared_api, "/tables", body)
    assert (status, code) == (422, "invalid-request")
    assert detail.startswith(where)
