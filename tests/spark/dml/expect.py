"""What a vector says has to come of its operations, compared with the table.

Each function asserts one thing by its name in `expect`; `value` is what the vector has there.
"""

import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.spark.dml.rows import Rows, expected, parsed, shown
from tests.spark.dml.world import World
from tests.spark.tables import actions
from tidegate import Table
from tidegate.spark.alter.definitions import as_stored
from tidegate.spark.tables.schemas import as_nullable
from tidegate_protocol.features.computed_columns import identity
from tidegate_protocol.features.known import UNITY_TABLE_ID
from tidegate_protocol.features.properties import COLUMN_MAPPING_MAX_ID, IN_COMMIT_TIMESTAMPS
from tidegate_protocol.schema.data_types import LENGTH_KEY
from tidegate_protocol.schema.partition_values import partition_path

Expectation = Callable[[World, Any], None]
_OWN = (COLUMN_MAPPING_MAX_ID, IN_COMMIT_TIMESTAMPS, UNITY_TABLE_ID)
"""Properties that a table has of itself."""
EXPECTATIONS: dict[str, Expectation] = {}
OF_THE_RUN = frozenset({"error", "at", "error_words", "rows_after", "rows"})
"""What `run.py` looks at itself."""


def expectation(name: str) -> Callable[[Expectation], Expectation]:
    """Make a function the comparison of this name."""

    def register(function: Expectation) -> Expectation:
        EXPECTATIONS[name] = function
        return function

    return register


def check_rows(world: World, rows: Rows, *, version: int | None = None) -> None:
    """The table holds these rows, in any order."""
    check_rows_of(world.table, world.spark, rows, version=version)


def check_rows_of(
    table: Table, spark: SparkSession, rows: Rows, *, version: int | None = None
) -> None:
    """As `check_rows`, of any table."""
    found = table.read(spark, version=version)
    assert shown(found) == expected(spark, as_nullable(found.schema), rows)


@expectation("schema")
def _schema(world: World, value: str) -> None:
    wanted = StructType([as_stored(field) for field in parsed(value).fields])
    found = StructType.fromJson(json.loads(world.table.head().metadata.schema_string))
    assert _bare(found) == _bare(wanted)
    for field in wanted.fields:
        if not field.nullable:
            assert not found[field.name].nullable, f"{field.name} is nullable"
        assert found[field.name].metadata.get(LENGTH_KEY) == field.metadata.get(LENGTH_KEY)
        if (comment := field.metadata.get("comment")) is not None:
            assert found[field.name].metadata.get("comment") == comment


def _bare(schema: StructType) -> list[tuple[str, str]]:
    """Names and types, without what metadata says at any depth."""
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


@expectation("partition_by")
def _partition_by(world: World, value: list[str]) -> None:
    assert list(world.table.partition_columns) == value


@expectation("properties")
def _properties(world: World, value: dict[str, str]) -> None:
    found = dict(world.table.head().properties)
    assert {name: text for name, text in found.items() if name not in _OWN} == value


@expectation("version_after")
def _version_after(world: World, value: int | list[int]) -> None:
    """A list has one for each operation, of which each commits."""
    last = value if isinstance(value, int) else value[-1]
    assert world.table.version == world.version(last)


@expectation("metrics")
def _metrics(world: World, value: dict[str, int]) -> None:
    if (told := world.told.get("metrics")) is not None:
        # What the command itself returned.
        assert {name: told[name] for name in value} == value
        return
    found = world.table.history(limit=1)[0].operation_metrics
    assert {name: found.get(name) for name in value} == {k: str(v) for k, v in value.items()}


@expectation("metric_keys")
def _metric_keys(world: World, value: list[str]) -> None:
    assert set(value) <= world.table.history(limit=1)[0].operation_metrics.keys()


@expectation("files_after")
def _files_after(world: World, value: int) -> None:
    assert len(world.table.scan().files) == value


@expectation("files_per_partition")
def _files_per_partition(world: World, value: dict[str, int]) -> None:
    found = Counter(
        partition_path(file.partition_values, world.table.partition_columns)
        for file in world.table.scan().files
    )
    assert found == value


@expectation("history")
def _history(world: World, value: list[dict[str, Any]]) -> None:
    found = world.table.history(limit=len(value))[::-1]
    assert [commit.operation for commit in found] == [entry["operation"] for entry in value]
    for commit, entry in zip(found, value, strict=True):
        for name, parameter in entry.get("operationParameters", {}).items():
            is_version = name == "version" and parameter is not None
            wanted = str(world.version(int(parameter))) if is_version else parameter
            assert commit.operation_parameters.get(name) == wanted, name


@expectation("history_operation")
def _history_operation(world: World, value: str) -> None:
    assert (world.cloned or world.table).history(limit=1)[0].operation == value


@expectation("is_blind_append")
def _is_blind_append(world: World, value: bool) -> None:
    assert world.table.history(limit=1)[0].is_blind_append is value


@expectation("txn_versions")
def _txn_versions(world: World, value: list[int]) -> None:
    found = [
        txn["version"]
        for version in range(world.first, world.table.version + 1)
        for txn in actions(world.table, version, "txn")
    ]
    assert found == value


@expectation("rows_after_batches")
def _rows_after_batches(world: World, value: list[Rows]) -> None:
    for number, rows in enumerate(value):
        check_rows(world, rows, version=world.version(number))


@expectation("high_water_mark")
def _high_water_mark(world: World, value: dict[str, int | None]) -> None:
    for column, mark in value.items():
        field = world.table.schema.field(column)
        assert field is not None
        found = identity(field)
        assert found is not None
        assert found.mark == mark


@expectation("identity_check")
def _identity_check(world: World, value: dict[str, Any]) -> None:
    column = value["column"]
    start, step = value["start"], value["step"]
    rows = world.table.read(world.spark).select(column, "value").collect()
    ids = [row[0] for row in rows]
    assert len(ids) == value["rows"]
    assert len(set(ids)) == len(ids)
    assert all((i - start) % step == 0 and (i - start) // step >= 0 for i in ids)
    assert sorted(row[1] for row in rows) == value["values"]
    _high_water_mark(world, {column: max(ids, key=lambda i: i * step)})
    if value.get("monotonic_across_ops"):
        # The values of later operations are larger.
        size = max(1, len(rows) // max(1, len(world.vector.ops)))
        in_order = [row[0] * step for row in sorted(rows, key=lambda row: row[1])]
        batches = [in_order[i : i + size] for i in range(0, len(in_order), size)]
        for before, after in pairwise(batches):
            assert max(before) < min(after)


@expectation("new_table_defaults")
def _new_table_defaults(world: World, value: dict[str, str]) -> None:
    found = world.told["new_table_defaults"]
    assert found == value
