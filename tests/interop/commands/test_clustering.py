"""Clustered tables beside stock Delta Spark: each goes on with what the other has clustered."""

import itertools

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from tests.interop.commands.test_optimize import history, live_files
from tidegate.spark.tables import DeltaTable

_numbers = itertools.count(1)
SCHEMA = StructType(
    [
        StructField("x", IntegerType()),
        StructField("y", StringType()),
        StructField("z", IntegerType()),
    ]
)
MAPPED = {"delta.columnMapping.mode": "name"}
ROWS = "SELECT x, y, z FROM {table} ORDER BY x, y, z"


@pytest.fixture
def clustered(ours, lake):
    """Create a table by x and y, with two files of rows."""

    def create(**properties):
        table = lake.create_table(
            f"main.interop.clustered{next(_numbers)}",
            schema=SCHEMA,
            cluster_by=["x", "y"],
            properties=properties,
        )
        for part in (0, 1):
            add_rows(ours, table, part)
        return table

    return create


def add_rows(ours, table, part):
    frame = ours.range(200).selectExpr(
        f"int(id * 7 % 200) + {part} AS x", "format_string('%03d', id) AS y", f"{part} AS z"
    )
    table.append(frame.coalesce(1))


def clustering_columns(spark, ours, table):
    """As both tell them, which has to be the same."""
    (theirs,) = spark.sql("DESCRIBE DETAIL {table}", table)
    (own,) = DeltaTable.over(ours, table).detail().collect()
    assert list(theirs[8]) == own["clusteringColumns"]
    return own["clusteringColumns"]


def test_delta_reads_what_we_clustered_and_leaves_it(spark, ours, clustered):
    own, stock = clustered(**MAPPED), clustered(**MAPPED)
    own.optimize(spark=ours)
    spark.sql("OPTIMIZE {table}", stock)
    assert history(spark, own) == history(spark, stock)
    assert spark.sql(ROWS, own) == spark.sql(ROWS, stock)
    assert clustering_columns(spark, ours, own) == ["x", "y"]
    version = own.version
    spark.sql("OPTIMIZE {table}", own)
    assert own.version == version
    add_rows(ours, own, 2)
    spark.sql("OPTIMIZE {table}", own)
    assert len({file.tags["ZCUBE_ID"] for file in live_files(own)}) == 1
    assert len(spark.sql(ROWS, own)) == 600


def test_we_go_on_with_what_delta_clustered(spark, ours, lake, tmp_path):
    name = f"main.interop.clustered{next(_numbers)}"
    place = lake.create_table(f"{name}_beside", schema=SCHEMA).location + "_clustered"
    spark.run(
        f"CREATE TABLE delta.`{place}` (x INT, y STRING, z INT) USING delta CLUSTER BY (x, y)"
    )
    table = lake.register_table(name, place)
    for part in (0, 1):
        spark.sql(
            "INSERT INTO {table} SELECT int(id * 7 % 200), format_string('%03d', id), "
            f"{part} FROM range(200)",
            table,
        )
    spark.sql("OPTIMIZE {table}", table)
    before = spark.sql(ROWS, table)
    assert clustering_columns(spark, ours, table) == ["x", "y"]
    assert {file.clustering_provider for file in live_files(table)} == {"liquid"}
    assert table.optimize(spark=ours).receipts == ()
    add_rows(ours, table, 2)
    (receipt,) = table.optimize(spark=ours).receipts
    assert len({file.tags["ZCUBE_ID"] for file in table.scan().files}) == 1
    after = spark.sql(ROWS, table)
    assert [row for row in after if row[2] != 2] == before
    assert len(after) == 600
    spark.sql("OPTIMIZE {table}", table)
    assert table.version == receipt.version
    spark.sql("ALTER TABLE {table} CLUSTER BY (y)", table)
    live_files(table)
    assert clustering_columns(spark, ours, table) == ["y"]
    table.alter(spark=ours).cluster_by("z", "x")
    spark.sql("OPTIMIZE {table} FULL", table)
    live_files(table)
    assert clustering_columns(spark, ours, table) == ["z", "x"]
    assert {file.tags["ZCUBE_ZORDER_BY"] for file in table.scan().files} == {'["z","x"]'}
    assert spark.sql(ROWS, table) == after
