"""Columns with values of their own and constraints, between our Spark client and stock Delta Spark:
both write into one table, and read the same of it."""

import itertools

import pytest
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tests.interop.test_client_features import past, theirs
from tests.spark.tables import rows

_numbers = itertools.count(1)


@pytest.fixture
def create(lake):
    """Create a plain table with these columns."""

    def create_table(*fields, **properties):
        return lake.create_table(
            f"main.computed.t{next(_numbers)}",
            schema=StructType([*fields]),
            properties=properties,
        )

    return create_table


def test_identity_columns(spark, ours, create):
    metadata = {"delta.identity.start": 10, "delta.identity.step": 5}
    metadata["delta.identity.allowExplicitInsert"] = False
    table = create(StructField("id", LongType(), True, metadata), StructField("a", IntegerType()))
    table.append(ours.sql("SELECT 1 a"))
    spark.sql("INSERT INTO {table} (a) VALUES (2)", table)
    # The first attempt begins before the other writer's numbers.
    table.append(ours.sql("SELECT 3 a"), retries=1)
    found = rows(table.read(ours))
    assert found == [(10, 1), (15, 2), (20, 3)]
    assert theirs(spark, table) == found


def test_default_columns(spark, ours, create):
    table = create(
        StructField("a", IntegerType()),
        StructField("b", StringType(), True, {"CURRENT_DEFAULT": "'x' || 'y'"}),
        **{"delta.feature.allowColumnDefaults": "supported"},
    )
    table.append(ours.sql("SELECT 1 a"))
    spark.sql("INSERT INTO {table} (a) VALUES (2)", table)
    table.insert(ours, [["3", "DEFAULT"], ["4", "'z'"]])
    found = rows(table.read(ours))
    assert found == [(1, "xy"), (2, "xy"), (3, "xy"), (4, "z")]
    assert theirs(spark, table) == found


def test_generated_columns_and_check_constraints(spark, ours, create):
    table = create(
        StructField("a", IntegerType()),
        StructField("g", IntegerType(), True, {"delta.generationExpression": "a + 1"}),
        **{"delta.constraints.small": "a < 10"},
    )
    table.append(ours.sql("SELECT 1 a"))
    spark.sql("INSERT INTO {table} (a) VALUES (2)", table)
    table.append(ours.sql("SELECT 3 a, 4 g"))
    found = rows(table.read(ours))
    assert found == [(1, 2), (2, 3), (3, 4)]
    assert theirs(spark, table) == found


def test_rows_that_were_replaced_by_a_data_column(spark, ours, create):
    table = create(StructField("a", IntegerType()), StructField("b", IntegerType()))
    spark.sql("INSERT INTO {table} VALUES (1, 1), (2, 1), (3, 3)", table)
    table.overwrite(ours.sql("SELECT 1 a, 9 b"), replace_where="a = 1", retries=1)
    found = rows(table.read(ours))
    assert found == [(1, 9), (2, 1), (3, 3)]
    assert theirs(spark, table) == found


def test_tables_made_of_a_dataframe(spark, ours, lake, create):
    place = create(StructField("a", IntegerType())).location + "_made"
    table = lake.create_table(
        f"main.computed.t{next(_numbers)}",
        as_select=ours.sql("SELECT 1 a, 'x' p"),
        location=place,
        partition_by="p",
    )
    spark.sql("INSERT INTO {table} VALUES (2, 'y')", table)
    table.append(ours.sql("SELECT 3 a, 'y' p"))
    assert theirs(spark, table) == rows(table.read(ours)) == [(1, "x"), (2, "y"), (3, "y")]
    table.replace(ours.sql("SELECT 'new' name"))
    assert theirs(spark, table) == rows(table.read(ours)) == [("new",)]


def test_timestamps_of_partitions_without_a_zone(spark, ours, lake):
    columns = [StructField("a", IntegerType()), StructField("p", TimestampType())]
    table = lake.create_table(
        f"main.computed.t{next(_numbers)}", schema=StructType(columns), partition_by="p"
    )
    zone = "spark.sql.session.timeZone"
    utc = "spark.databricks.delta.write.utcTimestampPartitionValues"
    before = ours.conf.get(zone)
    # The second is there twice, the third not at all.
    times = ["2024-01-02 03:04:05.6", "2024-11-03 01:30:00", "2024-03-10 02:30:00"]
    instants = "SELECT {}, unix_micros(p) FROM {{table}}"
    try:
        spark.run(f"SET {utc} = false")
        spark.run(f"SET {zone} = America/Los_Angeles")
        for number, time in enumerate(times):
            past(spark, table, f"INSERT INTO {{table}} SELECT {number}, TIMESTAMP'{time}'")
        spark.run(f"SET {utc} = true")
        files = table.scan().files
        assert len(files) == 3
        assert not any(file.partition_values["p"].endswith("Z") for file in files)
        for name in ("America/Los_Angeles", "Asia/Kolkata"):
            spark.run(f"SET {zone} = {name}")
            ours.conf.set(zone, name)
            found = rows(table.read(ours).selectExpr("a", "unix_micros(p)"))
            assert sorted(spark.sql(instants.format("a"), table)) == found
        table.update({"a": "a + 10"}, spark=ours)
        assert all(file.partition_values["p"].endswith("Z") for file in table.scan().files)
        assert sorted(spark.sql(instants.format("a - 10"), table)) == found
    finally:
        spark.run(f"RESET {zone}")
        spark.run(f"RESET {utc}")
        ours.conf.set(zone, before)
