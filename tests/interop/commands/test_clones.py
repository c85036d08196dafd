"""Clones and converted folders of the client, as stock Delta Spark reads them, and clones of its
own, beside what Delta says of them in the history."""

import shutil

import pytest

import tidegate
from tests.interop.commands.test_optimize import history
from tests.interop.tables import append, folder_of, new_table

ROWS = "SELECT writer, n FROM {table} ORDER BY writer, n"


@pytest.fixture(scope="module")
def source(spark, lake):
    """With a deletion vector and more than one partition."""
    table = new_table(lake, **{"delta.enableDeletionVectors": "true"})
    append(table, "a", range(6))
    spark.sql("DELETE FROM {table} WHERE n = 1 AND writer = 'a'", table)
    # The service reads the version before its own in.
    append(table, "b", range(3))
    return table


def at(table):
    return f"delta.`{table.location}`"


def rows(table, session):
    return [
        tuple(row)
        for row in table.read(session).select("writer", "n").sort("writer", "n").collect()
    ]


def test_a_shallow_clone_is_one_for_delta(spark, ours, lake, source):
    name = f"{source.name}_clone"
    clone = source.clone(name, shallow=True, spark=ours).table
    expected = spark.sql(ROWS, source)
    assert len(expected) == 8
    assert spark.sql(ROWS, clone) == expected
    stock = f"{source.location}_stock"
    spark.run(f"CREATE TABLE delta.`{stock}` SHALLOW CLONE {at(source)}")
    registered = lake.register_table(f"{source.name}_stock", stock)
    own, others = (history(spark, table) for table in (clone, registered))
    assert (own[0], own[3]) == (others[0], others[3])
    assert sorted(own[2]) == sorted(others[2])
    # Each changes the other's, and both read what comes of it.
    spark.sql("DELETE FROM {table} WHERE n = 2", clone)
    clone.delete("n = 0 AND writer = 'b'", spark=ours, retries=1)
    registered.delete("n = 2 OR n = 0 AND writer = 'b'", spark=ours)
    registered.update({"n": "n"}, "writer = 'b'", spark=ours)
    registered.reorg(spark=ours)
    left = [row for row in expected if row[1] != 2 and row != ("b", 0)]
    for table in (clone, registered):
        assert spark.sql(ROWS, table) == rows(table, ours) == left
    assert spark.sql(ROWS, source) == expected


def test_a_converted_folder_is_as_by_delta(spark, ours, lake):
    beside = new_table(lake)
    name = f"{beside.name}_folder"
    places = [f"{beside.location}_folder_{whose}" for whose in ("own", "stock")]
    df = ours.sql("SELECT id AS n, CAST(id % 2 AS STRING) AS writer, id * 1.5D AS f FROM range(9)")
    for place in places:
        df.write.partitionBy("writer").parquet(place)
    text = "CONVERT TO DELTA parquet.`{}` PARTITIONED BY (writer STRING)"
    tidegate.sql(ours, f"{text.format(places[0])} AS {name}_own", lake=lake)
    spark.run(text.format(places[1]))
    own = lake.table(f"{name}_own")
    stock = lake.register_table(f"{name}_stock", places[1])
    assert spark.sql(ROWS, own) == spark.sql(ROWS, stock) == rows(own, ours)
    assert own.schema == stock.schema
    (mine, others) = (history(spark, table) for table in (own, stock))
    assert (mine[0], mine[2], mine[3]) == (others[0], others[2], others[3])
    stats = [sorted(str(file.stats) for file in table.scan().files) for table in (own, stock)]
    assert stats[0] == stats[1]
    assert "None" not in stats[0]


def test_a_deep_clone_stands_alone(spark, ours, source):
    clone = source.clone(
        f"{source.name}_deep", location=f"{source.location}_deep", spark=ours
    ).table
    expected = spark.sql(ROWS, source)
    # It is the last test that reads the source.
    for path in folder_of(source).glob("writer=*"):
        shutil.rmtree(path)
    assert spark.sql(ROWS, clone) == rows(clone, ours) == expected
