"""Rows of vectors as DataFrames, and DataFrames as what can be compared."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from tidegate.spark.tables.schemas import nullable

Rows = Sequence[Sequence[Any]]


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


def in_files(spark: SparkSession, schema: StructType, rows: Rows, files: int) -> list[DataFrame]:
    """The rows in as many parts, consecutive ones together, each for a file of its own."""
    size = -(-len(rows) // files)
    parts = [frame(spark, schema, rows[i : i + size]) for i in range(0, len(rows), size)]
    return parts or [frame(spark, schema, ())]


def shown(df: DataFrame) -> list[str]:
    """The rows as sorted texts."""
    return sorted(repr(tuple(row)) for row in df.collect())
