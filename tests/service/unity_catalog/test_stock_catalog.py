"""The classic part: schemas and tables, as stock engines list and drop them."""

import uuid

import pytest

from tests.service.unity_catalog.stock import COLUMNS


@pytest.fixture
def catalog(stock) -> str:
    """A catalog of this test's own, with tables in two schemas."""
    name = f"c{uuid.uuid4().hex}"
    nested = {
        "type": "struct",
        "fields": [
            *COLUMNS["fields"],
            {
                "name": "tags",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": {"type": "array", "elementType": "long", "containsNull": True},
                    "valueContainsNull": False,
                },
                "nullable": True,
                "metadata": {"comment": "what it is"},
            },
            {"name": "price", "type": "decimal(10,2)", "nullable": False, "metadata": {}},
        ],
    }
    for table, schema in (("air.a", COLUMNS), ("air.b", nested), ("air-x.c", COLUMNS)):
        body = {"name": f"{name}.{table}", "schema": schema, "partition_columns": ["x"]}
        assert stock.own.post("/tables", json=body).status_code == 201
    return name


def test_schemas_are_those_of_tables(stock, catalog):
    found = stock.http.get("/schemas", params={"catalog_name": catalog}).json()
    assert [schema["full_name"] for schema in found["schemas"]] == [
        f"{catalog}.air-x",
        f"{catalog}.air",
    ]
    assert found["next_page_token"] is None
    one = {"catalog_name": catalog, "max_results": 1}
    first = stock.http.get("/schemas", params=one).json()
    second = stock.http.get(
        "/schemas", params={**one, "page_token": first["next_page_token"]}
    ).json()
    assert [s["name"] for s in first["schemas"] + second["schemas"]] == ["air-x", "air"]


def test_any_name_is_a_schema_s(stock, catalog):
    made = stock.http.post("/schemas", json={"name": "new", "catalog_name": catalog})
    assert made.status_code == 200
    found = stock.http.get(f"/schemas/{catalog}.new")
    assert found.json() == made.json()
    assert found.json()["properties"] == {}
    assert stock.http.get(f"/schemas/{catalog}%2Enew").json() == made.json()
    assert stock.http.get("/schemas/no-schema").status_code == 400


def test_one_with_tables_is_not_deleted(stock, catalog):
    refused = stock.http.delete(f"/schemas/{catalog}.air", params={"force": "false"})
    assert (refused.status_code, refused.json()["error_code"]) == (400, "INVALID_ARGUMENT")
    assert stock.http.delete(f"/schemas/{catalog}.none").status_code == 200


def test_tables_come_with_their_columns(stock, catalog):
    listed = {"catalog_name": catalog, "schema_name": "air", "max_results": 0}
    found = stock.http.get("/tables", params=listed).json()
    assert [table["name"] for table in found["tables"]] == ["a", "b"]
    assert found["next_page_token"] is None
    columns = found["tables"][1]["columns"]
    assert [(c["name"], c["type_text"], c["type_name"]) for c in columns] == [
        ("id", "bigint", "LONG"),
        ("x", "int", "INT"),
        ("tags", "map<string,array<bigint>>", "MAP"),
        ("price", "decimal(10,2)", "DECIMAL"),
    ]
    assert [column["partition_index"] for column in columns] == [None, 0, None, None]
    assert [column["nullable"] for column in columns] == [True, True, True, False]
    assert columns[2]["comment"] == "what it is"
    loaded = stock.http.get(f"/delta/v1/catalogs/{catalog}/schemas/air/tables/b").json()
    tags = loaded["metadata"]["columns"]["fields"][2]["type"]
    assert tags == {
        "type": "map",
        "key-type": "string",
        "value-type": {"type": "array", "element-type": "long", "contains-null": True},
        "value-contains-null": False,
    }


def test_pages_follow_each_other(stock, catalog):
    listed = {"catalog_name": catalog, "schema_name": "air", "max_results": 1}
    first = stock.http.get("/tables", params=listed).json()
    second = stock.http.get("/tables", params={**listed, "page_token": first["next_page_token"]})
    assert [t["name"] for t in first["tables"] + second.json()["tables"]] == ["a", "b"]


def test_one_is_got_and_dropped_by_its_full_name(stock, catalog):
    for name in (f"{catalog}.air.a", f"{catalog}%2Eair%2Ea"):
        found = stock.http.get(f"/tables/{name}").json()
        assert (found["table_type"], found["data_source_format"]) == ("EXTERNAL", "DELTA")
        assert found["storage_location"].startswith("file:///")
    assert stock.http.delete(f"/tables/{catalog}%2Eair%2Ea").json() == {}
    gone = stock.http.get(f"/tables/{catalog}.air.a")
    assert (gone.status_code, gone.json()["error_code"]) == (404, "TABLE_NOT_FOUND")


@pytest.mark.parametrize(
    "path", ["delta/tables/%2Fsome%2Fpath", "air/tables/a%2Eb", "air/tables/%00", "air/tables/%FF"]
)
def test_what_can_be_no_name_is_an_unknown_table(stock, path):
    found = stock.http.get(f"/delta/v1/catalogs/main/schemas/{path}")
    assert (found.status_code, found.json()["error"]["type"]) == (404, "NoSuchTableException")


def test_the_rest_is_answered_as_these_clients_read_it(stock, table):
    assert "endpoints" in stock.http.get("/delta/v1/config").json()
    nothing = {"storage-credentials": []}
    credentials = stock.http.get(f"{table.path}/credentials", params={"operation": "READ_WRITE"})
    assert credentials.json() == nothing
    of_staging = stock.http.get(f"/delta/v1/staging-tables/{table.table_id}/credentials")
    assert of_staging.json() == nothing
    reported = stock.http.post(f"{table.path}/metrics", json={"report": {}})
    assert (reported.status_code, reported.content) == (204, b"")
    for what in ("credentials", "metrics"):
        method = "GET" if what == "credentials" else "POST"
        unknown = stock.http.request(
            method, f"/delta/v1/catalogs/main/schemas/air/tables/none/{what}", json={}
        )
        assert unknown.json()["error"]["type"] == "NoSuchTableException"
    unknown = stock.http.get("/no-such-call")
    assert (unknown.status_code, unknown.json()["error_code"]) == (404, "NOT_FOUND")
