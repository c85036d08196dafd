"""A table whose files the client wrote again to drop a feature, as stock Delta Spark has it
then."""

from contextlib import suppress

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from tidegate import ConflictError

SCHEMA = StructType(
    [
        StructField("writer", StringType()),
        StructField("n", LongType()),
        StructField("part", IntegerType()),
    ]
)


def test_rows_stay_and_column_mapping_is_gone(spark, ours, lake):
    table = lake.create_table(
        "main.interop.dropped",
        schema=SCHEMA,
        partition_by="writer",
        properties={"delta.columnMapping.mode": "name"},
    )
    for first in (0, 10):
        rows = ours.range(first, first + 10).selectExpr(
            "if(id % 2 = 0, 'a', 'b') AS writer", "id AS n", "int(id % 4) AS part"
        )
        table.append(rows)
    spark.sql("ALTER TABLE {table} RENAME COLUMN part TO section", table)
    # The service learns of it.
    with suppress(ConflictError):
        table.transaction().conflict_check()
    query = "SELECT * FROM {table} ORDER BY n"
    before = spark.sql(query, table)
    assert "columnMapping" in features(spark, table)
    table.alter(spark=ours).drop_feature("columnMapping")
    assert spark.sql(query, table) == before
    assert "columnMapping" not in features(spark, table)
    spark.sql("DELETE FROM {table} WHERE n = 3", table)
    assert spark.sql(query, table) == [row for row in before if row[1] != 3]


def features(spark, table) -> list[str]:
    """What the table asks of those who read or write it."""
    (row,) = spark.sql("DESCRIBE DETAIL {table}", table)
    return [name for value in row if isinstance(value, list) for name in value]
