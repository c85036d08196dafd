"""Rights on Unity Catalog's API: as on the service's own, in statuses that stock clients read."""

from collections.abc import Iterator

import httpx
import psycopg
import pytest

from tests.servers.postgres import cloned
from tests.service.catalog_managed.guarded import Guarded
from tests.service.serving import document, running
from tests.service.unity_catalog.stock import UNITY, StockClient, StockTable
from tidegate_service.settings import Settings

BODIES = {
    "uc_create_schema": {"name": "air", "catalog_name": "main"},
    "uc_stage_table": {"name": "new"},
    "uc_create_table": {
        "name": "new",
        "location": "file:///x",
        "columns": {},
        "protocol": {"min-reader-version": 3, "min-writer-version": 7},
    },
    "uc_update_table": {"updates": []},
}
OPERATIONS = {
    operation["operationId"]: (method.upper(), path)
    for path, methods in document()["paths"].items()
    if path.startswith(UNITY)
    for method, operation in methods.items()
}


@pytest.fixture(scope="module")
def guarded(postgres_server, migrated_template, tmp_path_factory) -> Iterator[Guarded]:
    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(
            database_url=url, data_dir=tmp_path_factory.mktemp("guarded"), port=0, auth="tokens"
        )
        with running(settings) as service:
            yield Guarded(service.url, url)


@pytest.fixture(scope="module")
def table(guarded) -> StockTable:
    stock = StockClient(guarded.url, token=guarded.token("writer", "main.air"))
    return stock.create("flights")


def call(client: httpx.Client, name: str, *, table: str = "flights") -> httpx.Response:
    method, template = OPERATIONS[name]
    full = f"main.air.{table}" if "/delta/" not in template else table
    path = template.format(
        catalog="main", schema="air", table=full, full_name="main.air", table_id="none"
    )
    params = {"catalog_name": "main", "schema_name": "air"} if method == "GET" else None
    return client.request(method, path, json=BODIES.get(name), params=params)


def client(guarded: Guarded, token: str | None) -> httpx.Client:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=guarded.url, headers=headers, timeout=40)


@pytest.mark.parametrize("name", OPERATIONS)
def test_nobody_gets_in_without_a_token(guarded, name):
    with client(guarded, None) as nobody:
        answer = call(nobody, name)
    # For whoever commits it is a refusal for good.
    assert answer.status_code == (400 if name == "uc_update_table" else 401)


@pytest.mark.parametrize("name", [n for n, (_, path) in OPERATIONS.items() if "{table}" in path])
def test_all_of_another_table_looks_as_if_there_were_none(guarded, table, name):
    with client(guarded, guarded.token("admin", "other", "main.sea")) as stranger:
        forbidden, unknown = call(stranger, name), call(stranger, name, table="nothing")
    assert forbidden.status_code == unknown.status_code == 404
    assert forbidden.text.replace("flights", "nothing") == unknown.text


@pytest.mark.parametrize(
    "name",
    ["uc_stage_table", "uc_create_table", "uc_create_schema", "uc_delete_schema"],
)
def test_what_is_named_has_to_be_ones_own(guarded, name):
    with client(guarded, guarded.token("admin", "other")) as stranger:
        assert call(stranger, name).status_code == 403


def test_a_reader_reads_and_does_not_commit(guarded, table):
    reader = StockClient(guarded.url, token=guarded.token("reader", "main.air.flights"))
    mine = StockTable(reader, table.name, table.table_id, table.location)
    assert mine.load()["metadata"]["table-uuid"] == table.table_id
    refused = mine.propose(mine.stage(1))
    # A 403 would be sent again for an hour.
    assert (refused.status_code, refused.json()["error"]["type"]) == (
        400,
        "PermissionDeniedException",
    )
    assert reader.http.delete(f"/tables/main.air.{table.name}").status_code == 403
    assert mine.load()["latest-table-version"] == 0


def test_a_list_has_what_one_may_read(guarded, table):
    stock = StockClient(guarded.url, token=guarded.token("writer", "main.air"))
    stock.create("secret")
    reader = StockClient(guarded.url, token=guarded.token("reader", "main.air.flights"))
    listed = {"catalog_name": "main", "schema_name": "air"}
    found = reader.http.get("/tables", params=listed).json()["tables"]
    assert [each["name"] for each in found] == ["flights"]
    other = StockClient(guarded.url, token=guarded.token("reader", "other"))
    assert other.http.get("/tables", params=listed).json()["tables"] == []
    schemas = other.http.get("/schemas", params={"catalog_name": "main"}).json()
    assert schemas["schemas"] == []


def test_a_row_says_whose_commit_it_was(guarded):
    token = guarded.token("writer", "main.air", label="a-stock-job")
    stock = StockClient(guarded.url, token=token)
    table = stock.create("signed")
    table.commit(1)
    with psycopg.connect(guarded.database_url.replace("+psycopg", "")) as connection:
        found = connection.execute(
            "SELECT version FROM commits WHERE principal = 'a-stock-job' ORDER BY version"
        ).fetchall()
    assert found == [(0,), (1,)]
