"""Typed columns of a checkpoint, from a table's schema."""

import json

import pytest

from tidegate_protocol.checkpoint.columns import FileColumns, StatisticsColumn, file_columns
from tidegate_protocol.checkpoint.policy import CheckpointPolicy
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.schema.data_types import (
    BINARY,
    BOOLEAN,
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    DecimalType,
)

STRUCTS = CheckpointPolicy(stats_as_struct=True)
NOTHING_KNOWN = FileColumns(partitions=None)


def field(name, data_type, **metadata):
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def metadata(*fields, partitioned=(), **properties):
    schema = json.dumps({"type": "struct", "fields": list(fields)})
    return Metadata(
        id="m", schema_string=schema, partition_columns=partitioned, configuration=properties
    )


def test_partition_columns_by_their_physical_names():
    mapped = field("day", "integer", **{"delta.columnMapping.physicalName": "c-1"})
    found = file_columns(metadata(mapped, partitioned=("DAY",)), CheckpointPolicy())
    assert found == FileColumns(partitions=(("c-1", INTEGER),))


def test_statistics_of_what_writers_collect():
    inner = {"type": "struct", "fields": [field("b", "string")]}
    columns = (field("p", "long"), field("a", inner), field("c", "boolean"), field("d", "binary"))
    found = file_columns(
        metadata(*columns, partitioned=("p",), **{"delta.dataSkippingNumIndexedCols": "2"}), STRUCTS
    )
    assert found == FileColumns(
        partitions=(("p", LONG),),
        parsed=True,
        statistics=(
            StatisticsColumn(path=("a", "b"), type=STRING),
            StatisticsColumn(path=("c",), type=BOOLEAN),
        ),
    )


@pytest.mark.parametrize(
    ("data_type", "has_bounds"),
    [
        (STRING, True),
        (DecimalType(4, 2), True),
        (BOOLEAN, False),
        (BINARY, False),
        (ArrayType(element=LONG, contains_null=True), False),
    ],
)
def test_bounds(data_type, has_bounds):
    assert StatisticsColumn(path=("a",), type=data_type).has_bounds is has_bounds


@pytest.mark.parametrize(
    "table",
    [
        Metadata(id="m", schema_string="nothing"),
        metadata(field("a", "long"), partitioned=("gone",)),
        metadata(field("a", "long"), **{"delta.appendOnly": "perhaps"}),
    ],
)
def test_without_a_schema_nothing_is_typed(table):
    assert file_columns(table, STRUCTS) == NOTHING_KNOWN


@pytest.mark.parametrize(
    ("columns", "partitioned", "is_typed"), [(666, 1, True), (667, 1, False), (1, 1_001, False)]
)
def test_very_many_are_not_typed_and_stay_as_json(columns, partitioned, is_typed):
    days = [f"p{number}" for number in range(partitioned)]
    fields = [field(name, "long") for name in [*days, *(f"c{n}" for n in range(columns))]]
    every = {"delta.dataSkippingNumIndexedCols": "-1"}
    wide = metadata(*fields, partitioned=tuple(days), **every)
    found = file_columns(wide, CheckpointPolicy(stats_as_struct=True, stats_as_json=False))
    assert (found.parsed, found.stats_as_json) == (is_typed, not is_typed)
    assert len(found.statistics) == (columns if is_typed else 0)
    assert len(found.partitions) == partitioned
