"""Rows of vectors as DataFrames, and DataFrames as what can be compared."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from tidegate.spark.tables.schemas import as_nullable, nullable

Rows = Sequence[Sequence[Any]]
_PLAIN = {
    BooleanType(): bool,
    DoubleType(): float,
    IntegerType(): int,
    LongType(): int,
    StringType(): str,
}
"""Types whose values JSON has as Python and Spark have them."""


@cache
def parsed(ddl: str) -> StructType:
    """The columns of a DDL text."""
    return StructType.fromDDL(ddl) if ddl else StructType([])


def frame(spark: SparkSession, schema: StructType, rows: Rows) -> DataFrame:
    """The rows in one partition, so that they make one file."""
    if not rows:
        return spark.createDataFrame([], schema)
    for row in rows:
        assert len(row) == len(schema.fields), f"{row} has not the columns of {schema.names}"
    if are_plain(schema, rows):
        # Spark takes less time for rows of Arrow than for an expression that makes them.
        return spark.createDataFrame(in_arrow(schema, rows), as_nullable(schema)).coalesce(1)
    # A column of nothing but nulls has no parser, and needs none.
    typed = StructType(
        [
            StructField(f.name, _in_json(f.dataType))
            for f in schema.fields
            if f.dataType.typeName() != "void"
        ]
    )
    text = json.dumps([dict(zip(schema.names, row, strict=True)) for row in rows])
    records = F.from_json(F.lit(text), ArrayType(typed), {"mode": "FAILFAST"})
    return (
        spark.sql("SELECT 1")
        .select(F.explode(records).alias("record"))
        .select(
            *(
                F.col("record").getField(f.name).cast(nullable(f.dataType)).alias(f.name)
                if f.dataType.typeName() != "void"
                else F.lit(None).alias(f.name)
                for f in schema.fields
            )
        )
    )


def in_arrow(schema: StructType, rows: Rows) -> pa.Table:
    """Rows that `are_plain`, at least one."""
    arrow = to_arrow_schema(schema)
    columns = [
        pa.array(values, each.type)
        for values, each in zip(zip(*rows, strict=True), arrow, strict=True)
    ]
    return pa.table(columns, schema=arrow)


def _in_json(data_type: DataType) -> DataType:
    """The type with text for the keys of maps, as JSON has them."""
    match data_type:
        case StructType():
            fields = [StructField(f.name, _in_json(f.dataType)) for f in data_type.fields]
            return StructType(fields)
        case ArrayType():
            return ArrayType(_in_json(data_type.elementType))
        case MapType():
            return MapType(StringType(), _in_json(data_type.valueType))
    return data_type


def in_files(rows: Rows, files: int) -> list[Rows]:
    """The rows in as many parts, consecutive ones together, each for a file of its own."""
    size = -(-len(rows) // files)
    return [rows[i : i + size] for i in range(0, len(rows), size)] or [()]


def shown(df: DataFrame) -> list[str]:
    """The rows as sorted texts."""
    return _texts(df.collect())


def expected(spark: SparkSession, schema: StructType, rows: Rows) -> list[str]:
    """The rows of a vector, as `shown` has those of a table with these columns."""
    return _texts(rows) if are_plain(schema, rows) else shown(frame(spark, schema, rows))


def _texts(rows: Rows) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows)


def are_plain(schema: StructType, rows: Rows) -> bool:
    """Whether Arrow takes the values as JSON has them."""
    kinds = [_PLAIN.get(field.dataType) for field in schema.fields]
    return all(
        kind is not None and (value is None or type(value) is kind)
        for row in rows
        for value, kind in zip(row, kinds, strict=True)
    )
