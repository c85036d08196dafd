"""Names and locations of megabytes, of which a body may have any, are refused."""

import pytest

from tests.builders.flights import table_body
from tidegate_protocol.schema.table_schema import MAX_FIELDS
from tidegate_protocol.schema.table_schema import MAX_NAME_LENGTH as MAX_COLUMN
from tidegate_service.core.access.locations import MAX_LOCATION_LENGTH, canonical_url
from tidegate_service.core.access.names import MAX_NAME_LENGTH
from tidegate_service.core.errors import Refused

LONG = 4 * 1024 * 1024 - 1024
LOCATIONS = {
    "escapes": "s3://lake/" + "%zz" * (LONG // 3),
}
MANY_PARTS = "a." * (LONG // 2) + "b"


def test_every_location_that_can_be_is_shorter():
    longest = f"abfss://{'c' * 63}@{'a' * 24}.dfs.core.windows.net/{'a' * 799}"
    assert canonical_url(f"{longest}/") == longest
    assert canonical_url(f"gs://{'b' * 222}/{'a' * 799}/")
    room = MAX_LOCATION_LENGTH - len("s3://lake/a")
    assert canonical_url("s3://lake/a" + "/" * room) == "s3://lake/a"
    with pytest.raises(Refused, match="it has more than"):
        canonical_url("s3://lake/a" + "/" * (room + 1))


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
