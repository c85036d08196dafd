"""Types that become wider with a DataFrame's, where the table says so."""

import json

import pytest
from pyspark.sql.types import StructType

from tests.spark.tables import actions, folder_of, rows
from tidegate.spark import InvalidRows
from tidegate.spark.columns.schema_change import merged

BIG = 2**40


def changes_of(table):
    fields = json.loads(table.head().metadata.schema_string)["fields"]
    return {f["name"]: (f["type"], f["metadata"].get("delta.typeChanges")) for f in fields}


def test_a_column_gets_the_wider_type_and_says_so(spark, create):
    table = create("a int, b int", **{"delta.enableTypeWidening": "true"})
    table.append(spark.sql("SELECT 1 a, 1 b"))
    receipt = table.append(spark.sql(f"SELECT {BIG}L a, 2 b"), mergeSchema=True)
    change = {"fromType": "integer", "toType": "long"}
    assert changes_of(table) == {"a": ("long", [change]), "b": ("integer", None)}
    (add,) = actions(table, receipt.version, "add")
    (row,) = spark.read.parquet(f"{folder_of(table)}/{add['path']}").collect()
    assert tuple(row) == (BIG, 2)
    assert rows(table.read(spark)) == [(1, 1), (BIG, 2)]


def test_without_the_property_values_have_to_fit(spark, create):
    table = create("a int")
    table.append(spark.sql("SELECT 1L a"), mergeSchema=True)
    with pytest.raises(InvalidRows):
        table.append(spark.sql(f"SELECT {BIG}L a"), mergeSchema=True)
    assert changes_of(table) == {"a": ("integer", None)}


@pytest.mark.parametrize(
    ("table", "df", "expected"),
    [
        ("tinyint", "smallint", "smallint"),
        ("bigint", "int", "bigint"),
        ("float", "double", "double"),
        ("date", "timestamp_ntz", "timestamp_ntz"),
        ("date", "timestamp", "date"),
        ("decimal(5,2)", "decimal(7,3)", "decimal(7,3)"),
        ("decimal(5,2)", "decimal(5,3)", "decimal(5,2)"),
        ("int", "double", "int"),
        ("int", "decimal(20,0)", "int"),
        ("int", "string", "int"),
        ("array<int>", "array<bigint>", "array<bigint>"),
        ("map<int,date>", "map<bigint,date>", "map<bigint,date>"),
        ("struct<x:int>", "struct<x:bigint>", "struct<x:bigint>"),
    ],
)
def test_types_of_one_kind_widen(spark, table, df, expected):
    before, given, wanted = (StructType.fromDDL(f"a {text}") for text in (table, df, expected))
    (found,) = merged(before, given, widens=True).fields
    assert found.dataType == wanted[0].dataType or found.dataType.simpleString() == expected


def test_what_is_inside_says_where(spark):
    before, given = (StructType.fromDDL(f"a map<int,array<{t}>>") for t in ("int", "bigint"))
    (found,) = merged(before, given, widens=True).fields
    (change,) = found.metadata["delta.typeChanges"]
    assert change == {"fromType": "integer", "toType": "long", "fieldPath": "value.element"}
    struct, wider = (StructType.fromDDL(f"a struct<x:{t}>") for t in ("int", "bigint"))
    (found,) = merged(struct, wider, widens=True).fields
    assert "delta.typeChanges" not in found.metadata
    assert len(found.dataType["x"].metadata["delta.typeChanges"]) == 1
