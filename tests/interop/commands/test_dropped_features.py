"""Tables whose files the client wrote again to drop a feature, as stock Delta Spark has them
then."""

from contextlib import suppress
from itertools import count

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from tidegate import ConflictError

_numbers = count(1)
SCHEMA = StructType(
    [
        StructField("writer", StringType()),
        StructField("n", LongType()),
        StructField("part", IntegerType()),
    ]
)


@pytest.mark.parametrize(
    "case",
    [
        (
            "deletionVectors",
            {"delta.enableDeletionVectors": "true"},
            "DELETE FROM {table} WHERE n IN (1, 12)",
        ),
        (
            "typeWidening",
            {"delta.enableTypeWidening": "true"},
            "ALTER TABLE {table} ALTER COLUMN part TYPE BIGINT",
        ),
        (
            "columnMapping",
            {"delta.columnMapping.mode": "name"},
            "ALTER TABLE {table} RENAME COLUMN part TO section",
        ),
    ],
    ids=lambda case: case[0],
)
def test_rows_stay_and_the_feature_is_gone(spark, ours, lake, case):
    feature, properties, use = case
    table = lake.create_table(
        f"main.interop.dropped{next(_numbers)}",
        schema=SCHEMA,
        partition_by="writer",
        properties=properties,
    )
    for first in (0, 10):
        rows = ours.range(first, first + 10).selectExpr(
            "if(id % 2 = 0, 'a', 'b') AS writer", "id AS n", "int(id % 4) AS part"
        )
        table.append(rows)
    spark.sql(use, table)
    # The service learns of it.
    with suppress(ConflictError):
        table.transaction().conflict_check()
    query = "SELECT * FROM {table} ORDER BY n"
    before = spark.sql(query, table)
    assert feature in features(spark, table)
    table.alter(spark=ours).drop_feature(feature)
    assert spark.sql(query, table) == before
    assert feature not in features(spark, table)
    spark.sql("DELETE FROM {table} WHERE n = 3", table)
    assert spark.sql(query, table) == [row for row in before if row[1] != 3]


def features(spark, table) -> list[str]:
    """What the table asks of those who read or write it."""
    (row,) = spark.sql("DESCRIBE DETAIL {table}", table)
    return [name for value in row if isinstance(value, list) for name in value]
