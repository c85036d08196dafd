"""DuckDB as a writer of its own: `python -m demo.duckdb_writer URL TABLE PARQUET NUMBER`.

It inserts the rows of a Spark writer by Unity Catalog's API, a month at a time, since DuckDB 1.5.5
fails where an INSERT meets several partitions. Where another writer took its version, DuckDB says
so and inserts nothing; the month is then inserted again, as its user would.
"""

import json
import sys
import time
from typing import TYPE_CHECKING

import duckdb
import duckdb_extensions

import tidegate
from demo.flights import SLICE
from demo.writer import APPENDS

if TYPE_CHECKING:
    from pandas import DataFrame

EXTENSIONS = ("httpfs", "delta", "unity_catalog")
TRIES = 100
LOOK_S = 0.1
_TAKEN = "conflict"


def connected(url: str, catalog: str, schema: str) -> duckdb.DuckDBPyConnection:
    """A session in which the service's catalog is `lake`, as it is now."""
    connection = duckdb.connect()
    for extension in EXTENSIONS:
        duckdb_extensions.import_extension(extension)
        connection.execute(f"LOAD {extension}")
    connection.execute(
        f"CREATE SECRET (TYPE unity_catalog, TOKEN 'demo', ENDPOINT '{url}', "
        "AWS_REGION 'us-east-1')"
    )
    connection.execute(
        f"ATTACH '{catalog}' AS lake (TYPE unity_catalog, DEFAULT_SCHEMA '{schema}')"
    )
    return connection


def read(url: str, table: str) -> "DataFrame":
    """The table's rows as DuckDB finds them."""
    catalog, schema, name = table.split(".")
    with connected(url, catalog, schema) as connection:
        return connection.execute(f"SELECT * FROM lake.{schema}.{name}").df()


def main(url: str, table: str, parquet: str, number: int) -> None:
    catalog, schema, name = table.split(".")
    with connected(url, catalog, schema):
        print(json.dumps({"ready": True}), flush=True)
    _wait_for_others(url, table)
    first, last = number * APPENDS, (number + 1) * APPENDS - 1
    for month in range(1, 13):
        insert = (
            f"INSERT INTO lake.{schema}.{name} SELECT * EXCLUDE ({SLICE}) "
            f"FROM read_parquet('{parquet}') "
            f"WHERE {SLICE} BETWEEN {first} AND {last} AND month = {month}"
        )
        tries = _inserted(url, catalog, schema, insert)
        print(json.dumps({"tries": tries}), flush=True)


def _wait_for_others(url: str, name: str) -> None:
    """Return once another writer has landed a commit: Spark takes longer to start."""
    with tidegate.connect(url) as lake:
        table = lake.table(name)
        before = table.version
        while table.version == before:
            time.sleep(LOOK_S)


def _inserted(url: str, catalog: str, schema: str, insert: str) -> int:
    """Insert the slice; in how many tries."""
    for number in range(1, TRIES + 1):
        with connected(url, catalog, schema) as connection:
            try:
                connection.execute(insert)
            except duckdb.Error as error:
                if number == TRIES or _TAKEN not in str(error).lower():
                    raise
                continue
            return number
    raise AssertionError("the last try returns or raises")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
