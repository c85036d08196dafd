"""Commits written without Spark: rows, and change data files as Delta's commands write them."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark.tables import folder_of
from tidegate import DataFile, Receipt, Table

FEED = {"delta.enableChangeDataFeed": "true"}


def update(
    table: Table,
    old: DataFile,
    kept: pa.Table,
    change_data: pa.Table,
    *,
    name: str,
    partition: dict[str, str] | None = None,
) -> Receipt:
    """Take a file's place by one with the rows that it has afterwards, and say what changed."""
    values = partition or {}
    with table.transaction() as txn:
        txn.remove([old])
        txn.add([data_file(table, f"{name}.parquet", kept, values)])
        path = f"_change_data/cdc-{name}.parquet"
        written = data_file(table, path, change_data, values)
        action: dict[str, Any] = {
            "path": path,
            "partitionValues": values,
            "size": written.size,
            "dataChange": False,
        }
        txn.action({"cdc": action})
        return txn.commit("UPDATE")


def append_rows(table: Table, first: int, last: int) -> list[int]:
    """Append each id from `first` to before `last` in a commit of its own. Returns when."""
    found = []
    for number in range(first, last):
        rows = pa.table({"id": pa.array([number], pa.int64())})
        with table.transaction() as txn:
            txn.add([data_file(table, f"{number}.parquet", rows, {})])
            found.append(txn.commit("WRITE").timestamp)
    return found


def data_file(table: Table, path: str, rows: pa.Table, values: dict[str, str]) -> DataFile:
    """A Parquet file in the table's folder that no commit names yet."""
    where = folder_of(table) / path
    where.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, where)
    return DataFile(
        path=path,
        partition_values=dict(values),
        size=where.stat().st_size,
        modification_time=0,
        data_change=True,
        stats=f'{{"numRecords":{rows.num_rows}}}',
    )
