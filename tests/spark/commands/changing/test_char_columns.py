"""Columns of CHAR: Spark pads their values, and the texts that they are compared with."""

import json
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import BooleanType, IntegerType, StringType, StructField, StructType

from tests.spark.reading.readers import Reader
from tests.spark.tables import folder_of, rows
from tidegate.spark import InvalidRows

CHAR = {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}
SCHEMA = StructType([StructField("a", IntegerType()), StructField("c", StringType(), True, CHAR)])


def test_conditions_over_them(spark, lake):
    name = f"main.test.c{uuid4().hex}"
    table = lake.create_table(name, schema=SCHEMA, partition_by=["c"])
    table.append(spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, 'a') AS t(a, c)"))
    padded = [(1, "a  "), (2, "b  "), (3, "a  ")]
    assert rows(table.read(spark)) == padded
    assert rows(table.read(spark, where="c = 'a'")) == [padded[0], padded[2]]
    assert rows(table.read(spark).where("c = 'a'")) == [padded[0], padded[2]]
    table.update({"a": "10"}, where="c = 'b'")
    table.delete("c = 'a' AND a = 3")
    assert rows(table.read(spark)) == [(1, "a  "), (10, "b  ")]
    new = spark.sql("SELECT 7 AS a, 'a' AS c")
    table.overwrite(new, replace_where="c = 'a'")
    assert rows(table.read(spark)) == [(7, "a  "), (10, "b  ")]
    table.delete("c = 'a'")
    assert rows(table.read(spark)) == [(10, "b  ")]
    assert rows(table.read(spark).where("c = 'b'")) == [(10, "b  ")]


def test_a_column_of_files_is_compared_alike(spark, lake):
    table = lake.create_table(f"main.test.c{uuid4().hex}", schema=SCHEMA)
    table.append(spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(a, c)"))
    table.overwrite(spark.sql("SELECT 7 AS a, 'a' AS c"), replace_where="c = 'a'")
    assert rows(table.read(spark)) == [(2, "b  "), (7, "a  ")]
    table.alter(spark=spark).add_constraint("known", "c IN ('a', 'b')")
    table.append(spark.sql("SELECT 8 AS a, 'b' AS c"))
    with pytest.raises(InvalidRows, match="known"):
        table.append(spark.sql("SELECT 9 AS a, 'x' AS c"))
    assert rows(table.read(spark, where="c = 'b'")) == [(2, "b  "), (8, "b  ")]


def test_a_default_is_compared_alike(spark, lake):
    schema = StructType(
        [SCHEMA["a"], StructField("c", StringType(), True, {**CHAR, "CURRENT_DEFAULT": "'a'"})]
    )
    properties = {"delta.feature.allowColumnDefaults": "supported"}
    name = f"main.test.c{uuid4().hex}"
    table = lake.create_table(name, schema=schema, properties=properties)
    table.append(spark.sql("SELECT 1 AS a"))
    table.overwrite(spark.sql("SELECT 2 AS a"), replace_where="c = 'a'")
    assert rows(table.read(spark)) == [(2, "a  ")]


def test_generated_columns_are_computed_of_padded_values(spark, lake):
    schema = StructType(
        [
            *SCHEMA.fields,
            StructField("g", BooleanType(), True, {"delta.generationExpression": "c = 'a'"}),
            StructField("h", StringType(), True, {**CHAR, "delta.generationExpression": "c"}),
        ]
    )
    table = lake.create_table(f"main.test.c{uuid4().hex}", schema=schema)
    table.append(spark.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(a, c)"))
    source = spark.sql("SELECT * FROM VALUES (1, 'a'), (3, 'a') AS s(a, c)").alias("s")
    merge = table.merge(source, "t.a = s.a", alias="t")
    merge = merge.whenMatchedUpdate(set={"a": "s.a + 10"})
    merge.whenNotMatchedInsert(values={"a": "s.a", "c": "s.c"}).execute()
    table.update({"c": "'a '"}, where="a = 2", spark=spark)
    table.delete("a = 3", spark=spark)
    assert rows(table.read(spark)) == [(2, "a  ", True, "a  "), (11, "a  ", True, "a  ")]


@pytest.mark.parametrize("partition_by", [[], ["c"]])
def test_values_that_others_did_not_pad(spark, lake, partition_by):
    name = f"main.test.c{uuid4().hex}"
    table = lake.create_table(name, schema=SCHEMA, partition_by=partition_by)
    table.append(spark.sql("SELECT 1 AS a, 'a' AS c"))
    foreign(table, "one")
    both = [(1, "a  "), (1, "a  ")]
    assert rows(table.read(spark)) == both
    for where in ("c = 'a'", "c IN ('a', 'b')", "c < 'b'", "length(c) = 3"):
        assert rows(table.read(spark, where=where)) == both
        assert rows(table.read(spark).where(where)) == both
    assert rows(table.read(spark, where="c <> 'a'")) == []
    assert sorted(row for batch in Reader(lake.url).run(table) for row in batch) == both
    source = spark.sql("SELECT 1 AS a, 'a  ' AS c").alias("s")
    merge = table.merge(source, "t.c = s.c AND t.a = s.a", alias="t")
    changed = merge.whenMatchedUpdate(set={"a": "5"}).whenNotMatchedInsertAll().execute()
    assert (changed.updated, changed.inserted) == (2, 0)
    foreign(table, "two")
    table.delete("c = 'a' AND a = 5", spark=spark)
    assert rows(table.read(spark)) == both[:1]
    table.overwrite(spark.sql("SELECT 7 AS a, 'a' AS c"), partitionOverwriteMode="dynamic")
    assert rows(table.read(spark)) == [(7, "a  ")]


def foreign(table, name):
    """Add a row (1, 'a') as stock Delta writes it to a path: the value as it was given."""
    path = folder_of(table) / f"{name}.parquet"
    columns = {"a": pa.array([1], pa.int32())}
    if not table.partition_columns:
        columns["c"] = pa.array(["a"])
    pq.write_table(pa.table(columns), path)
    bounds = {"a": 1, "c": "a"}
    stats = {"numRecords": 1, "minValues": bounds, "maxValues": bounds}
    add = {
        "path": path.name,
        "partitionValues": {"c": "a"} if table.partition_columns else {},
        "size": path.stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps(stats),
    }
    with table.transaction() as txn:
        txn.action({"add": add})
        txn.commit("WRITE")
