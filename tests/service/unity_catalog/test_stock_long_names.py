"""Names of megabytes in the bodies of stock clients."""

import pytest

LONG = "." * (4 * 1024 * 1024 - 1024)
SCHEMA_PATH = "/delta/v1/catalogs/main/schemas/air"
NEW = {
    "name": "new",
    "location": "file:///x",
    "columns": {},
    "protocol": {"min-reader-version": 3, "min-writer-version": 7},
}
COMMIT = {"version": 1, "timestamp": 1, "file-size": 1, "file-name": LONG}


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/schemas", {"name": LONG, "catalog_name": "a"}, "/name"),
        ("/schemas", {"name": "a", "catalog_name": LONG}, "/catalog_name"),
        (f"{SCHEMA_PATH}/staging-tables", {"name": LONG}, "/name"),
        (f"{SCHEMA_PATH}/tables", NEW | {"name": LONG}, "/name"),
        (f"{SCHEMA_PATH}/tables", NEW | {"location": LONG}, "/location"),
        (f"{SCHEMA_PATH}/tables", NEW | {"table-type": LONG}, "/table-type"),
        (f"{SCHEMA_PATH}/tables", NEW | {"partition-columns": [LONG]}, "/partition-columns/0"),
        (
            f"{SCHEMA_PATH}/tables/flights",
            {"requirements": [{"type": "assert-table-uuid", "uuid": LONG}], "updates": []},
            "/requirements/0/uuid",
        ),
        (
            f"{SCHEMA_PATH}/tables/flights",
            {"requirements": [{"type": "assert-etag", "etag": LONG}], "updates": []},
            "/requirements/0/etag",
        ),
        (
            f"{SCHEMA_PATH}/tables/flights",
            {"updates": [{"action": "add-commit", "commit": COMMIT}]},
            "/updates/0/commit/file-name",
        ),
    ],
)
def test_names_of_megabytes_are_refused_where_they_are_read(stock, path, body, where):
    """Before rights are looked up by them."""
    refused = stock.http.post(path, json=body)
    assert refused.status_code == 400
    problem = refused.json()
    message = problem["message"] if "message" in problem else problem["error"]["message"]
    assert message.startswith(f"{where}: Expected `str` of length <= ")
