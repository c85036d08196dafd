"""Tables that both write to: by the service with Arrow, and past it."""

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from time import time_ns
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from tidegate import DataFile, Lake, Receipt, Table, Transaction

_numbers = itertools.count(1)
SCHEMA = StructType(
    [
        StructField("writer", StringType()),
        StructField("n", LongType()),
        StructField("part", IntegerType()),
    ]
)
ARROW_SCHEMA = pa.schema([("writer", pa.string()), ("n", pa.int64()), ("part", pa.int32())])
Row = tuple[str, int]


def new_table(lake: Lake, **properties: str) -> Table:
    """A plain table with the columns `writer`, `n` and `part`, partitioned by the first."""
    name = f"main.interop.t{next(_numbers)}"
    return lake.create_table(name, schema=SCHEMA, partition_by="writer", properties=properties)


def batch(writer: str, numbers: Iterable[int]) -> pa.Table:
    """The rows of one write, as `deltalake` takes them."""
    found = list(numbers)
    columns = [[writer] * len(found), found, [n % 4 for n in found]]
    return pa.table(columns, schema=ARROW_SCHEMA)


def append(table: Table, writer: str, numbers: Iterable[int]) -> Receipt:
    """Append rows through the service, in a file of their own."""
    with table.transaction() as txn:
        txn.add([data_file(table, writer, numbers)])
        return txn.commit("WRITE")


def data_file(table: Table, writer: str, numbers: Iterable[int]) -> DataFile:
    """Write rows to a new file in the table's folder."""
    rows = batch(writer, numbers)
    path = f"writer={writer}/{uuid4()}.parquet"
    file = folder_of(table) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows.drop_columns(["writer"]), file)
    bounds = {"n": min(numbers)}, {"n": max(numbers)}
    stats = {"numRecords": len(rows), "minValues": bounds[0], "maxValues": bounds[1]}
    return DataFile(
        path=path,
        partition_values={"writer": writer},
        size=file.stat().st_size,
        modification_time=time_ns() // 1_000_000,
        data_change=True,
        stats=json.dumps({**stats, "nullCount": {"n": 0}}),
    )


def replace(txn: Transaction, table: Table, writer: str, numbers: Iterable[int]) -> Receipt:
    """Replace a writer's rows through the service by others."""
    txn.remove(txn.filter_files(f"writer = '{writer}'"))
    txn.add([data_file(table, writer, numbers)])
    return txn.commit("WRITE")


def theirs(table: Table) -> DeltaTable:
    """The table as deltalake finds it now, by the log alone."""
    return DeltaTable(table.location)


def folder_of(table: Table) -> Path:
    return Path(table.location.removeprefix("file://"))


def rows_of(log: DeltaTable) -> list[Row]:
    """Who wrote which rows, in order."""
    found = log.to_pyarrow_table(columns=["writer", "n"])
    return sorted(zip(found["writer"].to_pylist(), found["n"].to_pylist(), strict=True))


def check_agreement(table: Table, *, first_in_log: int = 0) -> None:
    """That index and log are one: every version that the log has, its bytes, its author, its
    files as `deltalake` finds them, and that nothing was decided before what went before it was
    known."""
    latest = check_log(table, first_in_log=first_in_log)
    alone = theirs(table)
    assert alone.version() == latest
    # Arrow's path of a file is absolute, the log's relative.
    named = {Path(uri).relative_to(folder_of(table)).as_posix() for uri in alone.file_uris()}
    assert {file.path for file in table.scan().files} == named


def check_log(table: Table, *, first_in_log: int = 0) -> int:
    """The same without `deltalake`, which opens no catalog-managed table; the latest version."""
    log = folder_of(table) / "_delta_log"
    versions = sorted(int(file.stem) for file in log.glob("*.json") if file.stem.isdecimal())
    assert versions == list(range(versions[0], versions[-1] + 1))
    assert versions[0] <= first_in_log
    history = sorted(table.history(), key=lambda commit: commit.version)
    assert [commit.version for commit in history] == list(range(versions[-1] + 1))
    for commit in history:
        if commit.version in versions:
            content = (log / f"{commit.version:020}.json").read_bytes()
            assert table.commit_bytes(commit.version) == content
        if not commit.foreign and commit.read_version is not None and commit.version > 0:
            assert commit.rebased_over == commit.version - commit.read_version - 1
    assert table.scan().version == versions[-1]
    return versions[-1]


def check_replay(table: Table) -> None:
    """That the live files of a table whose log is whole are those that its commit files add and do
    not remove, deletion vectors told apart."""
    latest = check_log(table)
    log = folder_of(table) / "_delta_log"
    live: set[tuple[str, str | None]] = set()
    for version in range(latest + 1):
        lines = (log / f"{version:020}.json").read_text().splitlines()
        actions = [json.loads(line) for line in lines]
        live -= {_file(action["remove"]) for action in actions if "remove" in action}
        live |= {_file(action["add"]) for action in actions if "add" in action}
    found = {
        (file.path, file.deletion_vector and file.deletion_vector.path_or_inline_dv)
        for file in table.scan().files
    }
    assert found == live


def _file(action: dict[str, Any]) -> tuple[str, str | None]:
    return action["path"], (action.get("deletionVector") or {}).get("pathOrInlineDv")
