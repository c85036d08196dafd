"""Rows of a checkpoint that have very many columns are written some at a time."""

import io
import json

import pyarrow.parquet as pq
import pytest

from tidegate_protocol.checkpoint.columns import MOST_TYPED, FileColumns, StatisticsColumn
from tidegate_protocol.log.actions import DomainMetadata
from tidegate_protocol.schema.data_types import DOUBLE, STRING
from tidegate_service.core.ports.checkpoints import FileRows
from tidegate_service.storage.checkpoints import portions
from tidegate_service.storage.checkpoints.file_batches import FileBatches
from tidegate_service.storage.checkpoints.writing import rows_of

WIDE = FileColumns(
    partitions=(),
    parsed=True,
    statistics=tuple(
        StatisticsColumn(path=(f"c{number}",), type=DOUBLE) for number in range(MOST_TYPED // 3)
    ),
)
DAYS = [f"day{number}" for number in range(300)]
PARTITIONED = FileColumns(partitions=tuple((day, STRING) for day in DAYS), parsed=True)


def line(number: int, *, stats: dict | None = None, values: dict | None = None, **fields) -> bytes:
    body = {"path": f"f{number}", "partitionValues": values or {}, "size": 1, **fields}
    body |= {"modificationTime": 1, "dataChange": True}
    if stats is not None:
        body["stats"] = json.dumps(stats)
    return json.dumps({"add": body}).encode()


def written(columns: FileColumns, rows: FileRows) -> pq.ParquetFile:
    file = io.BytesIO()
    writer = rows_of("0.checkpoint.parquet", file, columns)
    writer.take(rows)
    writer.end()
    return pq.ParquetFile(file)


@pytest.mark.parametrize("fields", [{}, {"tags": {"k": "v"}}])
def test_partition_columns(fields):
    """Read by Arrow, and one by one."""
    values = [{day: f"{number}-{day}" for day in DAYS} for number in range(400)]
    lines = [line(n, values=values[n], **fields) for n in range(400)]
    pieces = list(FileBatches(PARTITIONED).adds(b"\n".join(lines), len(lines)))
    assert len(pieces) > 1
    found = [row for piece in pieces for row in piece.to_pylist()]
    assert [dict(row["partitionValues"]) for row in found] == values
    assert [row["partitionValues_parsed"] for row in found] == values


def test_tombstones_and_their_null_columns():
    tombstones = [(number, line(number)) for number in range(200)]
    file = written(WIDE, FileRows(tombstones=tombstones))
    removes = file.read(["remove.path", "remove.deletionTimestamp"])["remove"].to_pylist()
    assert [(one["deletionTimestamp"], one["path"]) for one in removes] == [
        (number, f"f{number}") for number in range(200)
    ]


def test_long_actions_a_few_at_a_time():
    sizes = [100_000, 200_000, 100_000, 300_000, 10]
    assert [list(some) for some in portions.of_objects(sizes, int, 32)] == [
        [100_000],
        [200_000],
        [100_000],
        [300_000],
        [10],
    ]
    file = io.BytesIO()
    writer = rows_of("0.checkpoint.parquet", file, FileColumns())
    domains = [DomainMetadata(domain=f"d{n}", configuration="x" * n, removed=False) for n in sizes]
    writer.take_actions(domains)
    writer.end()
    found = pq.ParquetFile(file).read(["domainMetadata.domain"])["domainMetadata"].to_pylist()
    assert [one["domain"] for one in found] == [one.domain for one in domains]
