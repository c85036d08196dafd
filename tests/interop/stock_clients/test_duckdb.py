"""DuckDB, a stock client of Unity Catalog's API, on the service's tables: alone, in turns with our
own client, and at once with it.

DuckDB reads and inserts. It does not repeat an INSERT whose version somebody else took, as Delta
Spark does: it says so, and whoever runs it inserts again.
"""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import time_ns

import duckdb
import duckdb_extensions
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.interop.stock_clients.lost_answers import lossy_proxy
from tests.service.unity_catalog.stock import COLUMNS, StockClient, StockTable
from tidegate import DataFile, Lake, Table

EXTENSIONS = ("httpfs", "delta", "unity_catalog")
EACH = 3
"""Rows of each writer, a commit each."""


class DuckDB:
    """A session of DuckDB with the catalog `main` of a service."""

    def __init__(self, url: str) -> None:
        self._connection = duckdb.connect()
        for extension in EXTENSIONS:
            duckdb_extensions.import_extension(extension)
            self._connection.execute(f"LOAD {extension}")
        self._connection.execute(
            f"CREATE SECRET (TYPE unity_catalog, TOKEN 'some-token', ENDPOINT '{url}', "
            "AWS_REGION 'us-east-1')"
        )
        self.attach()

    def attach(self) -> None:
        """The catalog as it is now: DuckDB remembers what is in it."""
        self._connection.execute("DETACH DATABASE IF EXISTS lake")
        self._connection.execute("ATTACH 'main' AS lake (TYPE unity_catalog, DEFAULT_SCHEMA 'air')")

    def run(self, statement: str) -> None:
        self._connection.execute(statement)

    def rows(self, table: StockTable) -> list[tuple[int, int]]:
        return sorted(self._connection.execute(f"SELECT * FROM lake.air.{table.name}").fetchall())

    def insert(self, table: StockTable, *rows: tuple[int, int]) -> None:
        values = ", ".join(map(str, rows))
        self._connection.execute(f"INSERT INTO lake.air.{table.name} VALUES {values}")


@pytest.fixture
def stock(shared_server: str) -> StockClient:
    return StockClient(shared_server)


@pytest.fixture
def duck(shared_server: str) -> DuckDB:
    return DuckDB(shared_server)


@pytest.fixture
def table(stock: StockClient) -> StockTable:
    return stock.create()


def ours(lake: Lake, table: StockTable) -> Table:
    return lake.table(f"main.air.{table.name}")


def append(lake: Lake, table: StockTable, *rows: tuple[int, int]) -> int:
    """Append through our own client, in a file of its own; the version that it landed as."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    schema = pa.schema([("id", pa.int64()), ("x", pa.int32())])
    path = f"{uuid.uuid4()}.parquet"
    file = table.log.parent / path
    pq.write_table(pa.table(columns, schema=schema), file)
    added = DataFile(
        path=path,
        partition_values={},
        size=file.stat().st_size,
        modification_time=time_ns() // 1_000_000,
        data_change=True,
        stats=json.dumps({"numRecords": len(rows)}),
    )
    with ours(lake, table).transaction() as txn:
        txn.add([added])
        return txn.commit("WRITE").version


def by_log(table: StockTable) -> list[tuple[int, int]]:
    """The rows that the published log says, by nobody's help: each version from the first on."""
    live: dict[str, Path] = {}
    for file in sorted(table.log.glob("*.json")):
        for line in file.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                path = action["add"]["path"]
                live[path] = table.log.parent / path
            elif "remove" in action:
                del live[action["remove"]["path"]]
    found = [pq.read_table(path).to_pylist() for path in live.values()]
    return sorted((row["id"], row["x"]) for rows in found for row in rows)


class TestInTurns:
    def test_each_sees_what_the_other_has_written(self, duck, lake, table):
        expected: list[tuple[int, int]] = []
        for n in range(4):
            duck.insert(table, (n, 1))
            assert append(lake, table, (n, 2)) == 2 * n + 2
            expected += [(n, 1), (n, 2)]
            assert duck.rows(table) == sorted(expected)
        assert by_log(table) == sorted(expected)

    def test_on_a_table_that_our_client_has_made(self, duck, lake, stock):
        name = f"t{uuid.uuid4().hex}"
        body = {"name": f"main.air.{name}", "schema": COLUMNS, "catalog_managed": True}
        made = stock.own.post("/tables", json=body).json()
        table = StockTable(stock, name, made["id"], made["location"])
        table.log.parent.mkdir(parents=True, exist_ok=True)
        append(lake, table, (1, 2))
        duck.attach()
        duck.insert(table, (2, 1))
        append(lake, table, (3, 2))
        assert duck.rows(table) == by_log(table) == [(1, 2), (2, 1), (3, 2)]

    def test_a_plain_table_is_read_by_its_name(self, duck, lake, stock):
        name = f"t{uuid.uuid4().hex}"
        made = stock.own.post("/tables", json={"name": f"main.air.{name}", "schema": COLUMNS})
        table = StockTable(stock, name, "", made.json()["location"])
        append(lake, table, (1, 2))
        duck.attach()
        assert duck.rows(table) == [(1, 2)]

    def test_what_upkeep_made_is_read(self, duck, lake, stock, table):
        for n in range(3):
            duck.insert(table, (n, 1))
        made = stock.own.post(f"/tables/main.air.{table.name}/checkpoint", json={})
        assert made.status_code == 200, made.text
        append(lake, table, (3, 2))
        duck.attach()
        assert duck.rows(table) == [(0, 1), (1, 1), (2, 1), (3, 2)]
        duck.insert(table, (4, 1))
        assert by_log(table) == [(0, 1), (1, 1), (2, 1), (3, 2), (4, 1)]


class TestAtOnce:
    def test_no_row_is_lost_or_doubled(self, shared_server, lake, table):
        """DuckDB's INSERT that loses its version is made again, as its user would."""

        def by_duck() -> None:
            for n in range(EACH):
                while (n, 1) not in by_log(table):
                    try:
                        DuckDB(shared_server).insert(table, (n, 1))
                    except duckdb.Error as error:
                        failures.append(str(error))

        def by_us(writer: int) -> None:
            for n in range(EACH):
                append(lake, table, (n, writer))

        failures: list[str] = []
        with ThreadPoolExecutor(3) as pool:
            work = [pool.submit(by_duck), pool.submit(by_us, 2), pool.submit(by_us, 3)]
            for each in work:
                each.result()

        expected = sorted((n, writer) for n in range(EACH) for writer in (1, 2, 3))
        assert table.load()["latest-table-version"] == 3 * EACH, failures
        assert by_log(table) == expected
        assert DuckDB(shared_server).rows(table) == expected


class TestTrouble:
    def test_a_commit_whose_answer_is_lost_lands_once(self, shared_server, table):
        with lossy_proxy(shared_server) as proxy:
            session = DuckDB(proxy.url)
            session.insert(table, (1, 1))
            proxy.lose = 1
            # Whatever DuckDB makes of it.
            with suppress(duckdb.Error):
                session.insert(table, (2, 1))
            assert 500 in proxy.seen
        assert by_log(table) == [(1, 1), (2, 1)]
        assert table.load()["latest-table-version"] == 2

    def test_one_that_lost_its_version_is_not_there(self, duck, lake, table):
        duck.insert(table, (1, 1))
        duck.run("BEGIN")
        duck.insert(table, (2, 1))
        append(lake, table, (3, 2))
        with pytest.raises(duckdb.Error):
            duck.run("COMMIT")
        # Our own commit is answered before it is published; a load has it in the log.
        assert table.load()["latest-table-version"] == 2
        assert by_log(table) == [(1, 1), (3, 2)]

    def test_an_unknown_table_is_one(self, duck):
        with pytest.raises(duckdb.Error, match="nothing"):
            duck.run("SELECT * FROM lake.air.nothing")
