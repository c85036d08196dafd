"""Columns whose types have been widened: old files hold the old type."""

import datetime as dt
import json
from decimal import Decimal

import pytest
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    IntegerType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
)

from tests.spark.tables import rows
from tidegate.spark.changes.compatible import _are_columns_read_as
from tidegate_protocol.schema.data_types import TYPE_CHANGES

WIDENED = {"delta.enableTypeWidening": "true"}
ALL_HAVE_STATISTICS = {"delta.dataSkippingNumIndexedCols": "-1"}
CASES = [
    ("tinyint", "smallint", "7"),
    ("tinyint", "int", "7"),
    ("tinyint", "bigint", "7"),
    ("tinyint", "double", "7"),
    ("tinyint", "decimal(12,2)", "7"),
    ("smallint", "int", "7"),
    ("smallint", "double", "7"),
    ("smallint", "decimal(10,0)", "7"),
    ("int", "bigint", "7"),
    ("int", "double", "7"),
    ("int", "decimal(20,3)", "7"),
    ("bigint", "decimal(22,2)", "7"),
    ("float", "double", "7.5"),
    ("decimal(5,2)", "decimal(9,2)", "7.25"),
    ("decimal(5,2)", "decimal(38,10)", "7.25"),
    ("decimal(20,2)", "decimal(30,4)", "7.25"),
    ("date", "timestamp_ntz", "'2024-02-03'"),
]
# What the log calls the types.
NAMES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


# Every leaf that a type may have: a column, an element, a field and a partition column.
KINDS = ("a{0} {1}", "l{0} array<{1}>", "s{0} struct<x: {1}>", "p{0} {1}")


def widen(table):
    """Change the type of each pair's leaves as ALTER does."""
    schema = json.loads(table.head().metadata.schema_string)
    fields = {field["name"]: field for field in schema["fields"]}
    for number, (source, target, _) in enumerate(CASES):
        old, new = NAMES.get(source, source), NAMES.get(target, target)
        change = {"fromType": old, "toType": new}
        struct, items = fields[f"s{number}"], fields[f"l{number}"]
        for field in (fields[f"a{number}"], struct["type"]["fields"][0], fields[f"p{number}"]):
            field["type"] = new
            field["metadata"]["delta.typeChanges"] = [change]
        items["type"]["elementType"] = new
        items["metadata"]["delta.typeChanges"] = [change | {"fieldPath": "element"}]
    with table.transaction() as txn:
        txn.update_metadata(schema=json.dumps(schema))
        txn.commit("CHANGE COLUMN")


def row_of(spark, types):
    """A row of each pair's value, as the types given."""
    select = "{1} a{0}, array({1}, null) l{0}, named_struct('x', {1}) s{0}, {1} p{0}"
    values = (f"CAST({value} AS {type_})" for type_, (*_, value) in zip(types, CASES, strict=True))
    return spark.sql("SELECT " + ", ".join(select.format(*each) for each in enumerate(values)))


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_old_files_are_read_as_the_new_type(session, create, source, vectorized):
    old, new = [case[0] for case in CASES], [case[1] for case in CASES]
    session.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    columns = (kind.format(*each) for each in enumerate(old) for kind in KINDS)
    partition_by = [f"p{number}" for number in range(len(CASES))]
    table = create(", ".join(columns), *partition_by, **WIDENED, **ALL_HAVE_STATISTICS)
    table.append(row_of(session, old))
    widen(table)
    table.append(row_of(session, new))
    expected = row_of(session, new).collect() * 2
    for found in (table.read(session), source.read(table)):
        assert [found.schema[f"a{n}"].dataType.simpleString() for n in range(len(CASES))] == new
        assert found.collect() == expected
    same, larger = [], []
    for number, (_, target, value) in enumerate(CASES):
        a = f"a{number}"
        same.append(f"{a} = CAST({value} AS {target}) AND p{number} = {a} AND s{number}.x = {a}")
        larger.append(f"{a} > CAST({value} AS {target})")
    assert table.read(session, " AND ".join(same)).count() == 2
    assert table.read(session, " OR ".join(larger)).count() == 0


def test_a_golden_table_is_read(spark, register_golden, source):
    table = register_golden("type-widening")
    first, second = sorted(table.read(spark).collect(), key=lambda row: row["byte_long"])
    assert first.asDict() | {"float_double": None} == {
        "byte_long": 1,
        "int_long": 2,
        "float_double": None,
        "byte_double": 5.0,
        "short_double": 6.0,
        "int_double": 7.0,
        "decimal_decimal_same_scale": Decimal("123.45"),
        "decimal_decimal_greater_scale": Decimal("67.89"),
        "byte_decimal": Decimal(1),
        "short_decimal": Decimal(2),
        "int_decimal": Decimal(3),
        "long_decimal": Decimal(4),
        "date_timestamp_ntz": dt.datetime(2024, 9, 9),
    }
    assert first["float_double"] == pytest.approx(3.4, abs=1e-6)
    assert (second["byte_long"], second["short_decimal"]) == (2**63 - 1, Decimal("12345.6"))
    assert rows(source.read(table)) == rows(table.read(spark))


@pytest.mark.parametrize(
    ("written", "read", "expected"),
    [
        (ShortType(), IntegerType(), True),
        (IntegerType(), IntegerType(), True),
        (DateType(), TimestampNTZType(), True),
        (DecimalType(5, 2), DecimalType(7, 3), True),
        (ArrayType(ShortType()), ArrayType(IntegerType()), True),
        (IntegerType(), ShortType(), False),
        (DecimalType(7, 3), DecimalType(5, 2), False),
        (ArrayType(IntegerType()), ArrayType(ShortType()), False),
        (IntegerType(), ArrayType(IntegerType()), False),
    ],
    ids=str,
)
def test_files_are_read_by_a_wider_type_and_never_by_a_narrower_one(written, read, expected):
    """A RESTORE brings a narrower one back, with the changes that were before it."""
    changed = StructField(
        "a", read, True, {TYPE_CHANGES: [{"fromType": "byte", "toType": "short"}]}
    )
    assert _are_columns_read_as(StructType([StructField("a", written)]), StructType([changed])) is (
        expected
    )
