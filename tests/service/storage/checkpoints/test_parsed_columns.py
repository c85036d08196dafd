"""Statistics and partition values as typed columns, by Arrow's parser and file by file."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from tidegate_protocol.checkpoint.columns import FileColumns, StatisticsColumn
from tidegate_protocol.schema.data_types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
)
from tidegate_service.storage.checkpoints.file_batches import FileBatches

COLUMNS = FileColumns(
    partitions=(("day", DATE), ("n", INTEGER)),
    parsed=True,
    statistics=tuple(
        StatisticsColumn(path=path, type=data_type)
        for path, data_type in (
            (("l",), LONG),
            (("f",), DOUBLE),
            (("s", "t"), STRING),
            (("s", "at"), TIMESTAMP),
            (("d",), DATE),
            (("m",), DecimalType(10, 2)),
            (("b",), BOOLEAN),
            (("x",), BINARY),
            (("list",), ArrayType(element=LONG, contains_null=True)),
        )
    ),
)
VALUES = {
    "l": -5,
    "f": 1.5,
    "s": {"t": "é\n", "at": "2024-02-29T12:00:00.123Z"},
    "d": "2024-02-29",
    "m": 1.25,
}
STATS = {
    "numRecords": 3,
    "minValues": VALUES,
    "maxValues": VALUES,
    "nullCount": {"l": 1, "s": {"t": 2}, "b": 3, "list": 0, "new": 7},
    "tightBounds": False,
}
TYPED = {
    "l": -5,
    "f": 1.5,
    "s": {"t": "é\n", "at": datetime(2024, 2, 29, 12, 0, 0, 123000, tzinfo=UTC)},
    "d": date(2024, 2, 29),
    "m": Decimal("1.25"),
}


def line(stats, *, day="2024-02-29", n="7", **fields) -> bytes:
    body = {
        "path": "p",
        "partitionValues": {"day": day, "n": n},
        "size": 1,
        "modificationTime": 2,
        "dataChange": True,
        **fields,
    }
    if stats is not None:
        body["stats"] = stats if isinstance(stats, str) else json.dumps(stats)
    return json.dumps({"add": body}).encode()


def read(*lines: bytes) -> list[dict]:
    found = FileBatches(COLUMNS).adds(b"\n".join(lines), len(lines))
    return [row for some in found for row in some.to_pylist()]


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    return value


# What Arrow does not read itself: a NaN in quotes, and tags, which are maps of any keys.
NAN = {**STATS, "minValues": {**VALUES, "f": "NaN"}, "maxValues": {}}


@pytest.mark.parametrize("fields", [{}, {"tags": {"k": "v"}}])
def test_all_types(fields):
    (found,) = read(line(STATS, **fields))
    assert found["partitionValues_parsed"] == {"day": date(2024, 2, 29), "n": 7}
    assert found["partitionValues"] == [("day", "2024-02-29"), ("n", "7")]
    stats = found["stats_parsed"]
    assert without_nulls(stats["minValues"]) == without_nulls(stats["maxValues"]) == TYPED
    assert "b" not in stats["minValues"]
    assert without_nulls(stats["nullCount"]) == {"l": 1, "s": {"t": 2}, "b": 3, "list": 0}
    assert (stats["numRecords"], stats["tightBounds"]) == (3, False)
    assert json.loads(found["stats"]) == STATS
    assert not found["dataChange"]


@pytest.mark.parametrize("name", ['"tags":', '"tags": ', '"tags" : ', '"t\\u0061gs":'])
def test_tags_however_they_are_spelled(name):
    """A log's line stays as its writer had it."""
    spelled = line(None).replace(b'"path"', f'{name}{{"k":"v"}},"path"'.encode())
    assert read(line(None), spelled)[1]["tags"] == [("k", "v")]


@pytest.mark.parametrize(
    "text", ["2024-02-29T12:00:00", "2024-02-29 12:00:00.5", "2024-02-29T12:00"]
)
def test_an_instant_without_a_zone_is_not_known(text):
    """Of the zone of whoever wrote it; Arrow takes UTC."""
    values = {**VALUES, "s": {"t": "b", "at": text}}
    first, second = read(line(STATS), line({**STATS, "minValues": values}))
    assert without_nulls(first["stats_parsed"]["minValues"]) == TYPED
    assert second["stats_parsed"]["minValues"]["s"] == {"t": "b", "at": None}


def test_one_that_arrow_cannot_read_among_others():
    first, second, third = read(line(STATS), line(NAN), line(None))
    assert without_nulls(first["stats_parsed"]["minValues"]) == TYPED
    found = second["stats_parsed"]
    assert str(found["minValues"].pop("f")) == "nan"
    assert without_nulls(found["minValues"]) == {k: v for k, v in TYPED.items() if k != "f"}
    assert without_nulls(found["maxValues"]) in ({}, {"s": {}})
    assert third["stats_parsed"] is None


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        ("nothing", None),
        ('{"minValues":' + '{"l":' * 5000 + "1" + "}" * 5001, None),
        ('{"numRecords":1,"minValues":{"l":' + "[" * 5000 + "]" * 5000 + "}}", None),
        ({"numRecords": 2**70, "nullCount": {"l": "many"}}, {"nullCount": {}}),
        ({"minValues": {"l": "x", "d": 5, "s": "t"}}, {"minValues": {}}),
        ({"minValues": [], "nullCount": 3, "tightBounds": "no"}, {}),
        ({"numRecords": 1, "minValues": {"l": 1.5, "m": 123456789012.5}}, None),
    ],
)
def test_what_is_no_value_is_not_known(stats, expected):
    (found,) = read(line(stats))
    if expected is None and isinstance(stats, dict):
        expected = {"numRecords": 1, "minValues": {}}
    assert without_nulls(found["stats_parsed"]) == expected


def test_partition_values_that_are_none():
    found = read(line(None, day="yesterday", n=None), line(None, n=""), line(None))
    day = date(2024, 2, 29)
    assert [row["partitionValues_parsed"] for row in found] == [
        {"day": None, "n": None},
        {"day": day, "n": None},
        {"day": day, "n": 7},
    ]
