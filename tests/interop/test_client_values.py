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


def test_columns_with_values_of_their_own(spark, ours, create):
    identity = {"delta.identity.start": 10, "delta.identity.step": 5}
    identity["delta.identity.allowExplicitInsert"] = False
    table = create(
        StructField("id", LongType(), True, identity),
        StructField("a", IntegerType()),
        StructField("b", StringType(), True, {"CURRENT_DEFAULT": "'x' || 'y'"}),
        StructField("g", IntegerType(), True, {"delta.generationExpression": "a + 1"}),
        **{
            "delta.constraints.small": "a < 10",
            "delta.feature.allowColumnDefaults": "supported",
        },
    )
    table.append(ours.sql("SELECT 1 a"))
    spark.sql("INSERT INTO {table} (a) VALUES (2)", table)
    # The first attempt begins before the other writer's numbers.
    table.append(ours.sql("SELECT 3 a, 'z' b, 4 g"), retries=1)
    table.insert(ours, [["DEFAULT", "4", "DEFAULT", "DEFAULT"]])
    *found, last = rows(table.read(ours))
    assert found == [(10, 1, "xy", 2), (15, 2, "xy", 3), (20, 3, "z", 4)]
    # A row in a session's second partition has the second number that is left.
    assert last in [(25, 4, "xy", 5), (30, 4, "xy", 5)]
    assert theirs(spark, table) == [*found, last]


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
        values = ", ".join(f"({n}, TIMESTAMP'{time}')" for n, time in enumerate(times))
        past(spark, table, f"INSERT INTO {{table}} VALUES {values}")
        spark.run(f"SET {utc} = true")
        files = table.scan().files
        assert len(files) == 3
        assert not any(file.partition_values["p"].endswith("Z") for file in files)
        ours.conf.set(zone, "America/Los_Angeles")
        found = rows(table.read(ours).selectExpr("a", "unix_micros(p)"))
        assert sorted(spark.sql(instants.format("a"), table)) == found
        table.update({"a": "a + 10"}, spark=ours)
        assert all(file.partition_values["p"].endswith("Z") for file in table.scan().files)
        assert sorted(spark.sql(instants.format("a - 10"), table)) == found
    finally:
        spark.run(f"RESET {zone}")
        spark.run(f"RESET {utc}")
        ours.conf.set(zone, before)
