"""Version checksums of the service and of stock Delta Spark on one table.

Spark refuses a snapshot that is not what the checksum of its version says.
"""

import time
from urllib.parse import quote

import httpx

from tests.interop.processes.foreign_spark import ForeignSpark
from tests.interop.tables import append, check_agreement, folder_of, new_table
from tests.interop.test_delta_spark import ROWS, insert
from tidegate import Lake, Table

PATIENCE_S = 60.0


def wait_for_checksum(table: Table, version: int) -> None:
    until = time.monotonic() + PATIENCE_S
    file = folder_of(table) / "_delta_log" / f"{version:020d}.crc"
    while not file.exists():
        assert time.monotonic() < until, f"there is no {file.name}"
        time.sleep(0.1)


def test_each_believes_the_others(spark: ForeignSpark, lake: Lake, shared_server: str):
    properties = {"delta.enableDeletionVectors": "true", "delta.enableInCommitTimestamps": "true"}
    table = new_table(lake, **properties)
    append(table, "ours", range(4))
    wait_for_checksum(table, 1)
    assert spark.sql(ROWS, table) == [("ours", n) for n in range(4)]
    insert(spark, table, "theirs", range(6))
    spark.sql("DELETE FROM {table} WHERE n = 2", table)
    append(table, "ours", [9])
    head = table.head().version
    wait_for_checksum(table, head)
    expected = [("ours", n) for n in (0, 1, 3, 9)] + [("theirs", n) for n in (0, 1, 3, 4, 5)]
    assert spark.sql(ROWS, table) == expected
    insert(spark, table, "theirs", [10])
    assert spark.sql(ROWS, table) == [*expected, ("theirs", 10)]
    append(table, "ours", [11])
    check_agreement(table)
    verified = httpx.get(f"{shared_server}/api/v1/tables/{quote(table.name)}/verify", timeout=60)
    assert verified.status_code == 200, verified.text
    assert verified.json()["differences"] == []
