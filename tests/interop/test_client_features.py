"""Tables with optional features, between our Spark client and stock Delta Spark: what the one has
written, the other reads, in one table."""

import itertools

import pytest
from pyspark.sql.types import StructType

from tests.spark.reading.vectors import delete, vector_of
from tests.spark.tables import rows

_numbers = itertools.count(1)
SELECT = "SELECT id, CAST(id % 2 AS INT) p FROM range({0}, {1})"


@pytest.fixture
def create(lake):
    """Create a plain table with the columns of a DDL text."""

    def create_table(ddl, *partition_by, **properties):
        return lake.create_table(
            f"main.features.t{next(_numbers)}",
            schema=StructType.fromDDL(ddl),
            partition_by=partition_by,
            properties=properties,
        )

    return create_table


def past(spark, table, statement):
    """Have stock Delta Spark change the table past the service, which then learns of it."""
    spark.sql(statement, table)
    table.transaction().conflict_check()


def theirs(spark, table, columns="*"):
    """The rows as stock Delta Spark reads them."""
    found = [tuple(row) for row in spark.sql(f"SELECT {columns} FROM {{table}}", table)]
    return sorted(found, key=lambda row: [(value is None, value) for value in row])


def test_deletion_vectors(spark, ours, create):
    table = create("id bigint, p int", "p", **{"delta.enableDeletionVectors": "true"})
    table.append(ours.sql(SELECT.format(0, 50)).coalesce(1))
    past(spark, table, "DELETE FROM {table} WHERE id % 10 IN (2, 7)")
    assert any(file.deletion_vector for file in table.scan().files)
    expected = [(n, n % 2) for n in range(50) if n % 10 not in (2, 7)]
    assert rows(table.read(ours)) == expected
    first, second = table.scan().files
    delete(table, first, vector_of(table, [0]))
    delete(table, second, vector_of(table, [0, 4], "i"))
    found = rows(table.read(ours))
    assert len(found) == 47
    assert theirs(spark, table) == found


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping(spark, ours, create, mode):
    table = create(
        "id bigint, s struct<x: int, y: array<struct<z: string>>>, p int",
        "p",
        **{"delta.columnMapping.mode": mode},
    )
    select = (
        "SELECT id, named_struct('x', CAST(id AS INT), 'y', array(named_struct('z', 'v'))) s, "
        "CAST(id % 2 AS INT) p FROM range({0}, {1})"
    )
    table.append(ours.sql(select.format(0, 3)))
    past(spark, table, f"INSERT INTO {{table}} {select.format(3, 5)}")
    past(spark, table, "ALTER TABLE {table} RENAME COLUMN s.x TO renamed")
    past(spark, table, "ALTER TABLE {table} RENAME COLUMN id TO key")
    past(spark, table, "ALTER TABLE {table} ADD COLUMN (id BIGINT)")
    table.append(ours.sql("SELECT 9L key, 90L id, 1 p"))
    columns = ("key", "s.renamed", "s.y[0].z", "p", "id")
    expected = [(n, n, "v", n % 2, None) for n in range(5)] + [(9, None, None, 1, 90)]
    assert rows(table.read(ours).selectExpr(*columns)) == expected
    assert theirs(spark, table, ", ".join(columns)) == expected
    assert rows(table.read(ours, "s.renamed = 2").select("key")) == [(2,)]
    assert theirs(spark, table, "key")[-1] == (9,)


def test_widened_types(spark, ours, create):
    table = create("a int, b float, p smallint", "p", **{"delta.enableTypeWidening": "true"})
    table.append(ours.sql("SELECT 1 a, 0.5F b, 2S p"))
    for column, kind in (("a", "BIGINT"), ("b", "DOUBLE"), ("p", "INT")):
        past(spark, table, f"ALTER TABLE {{table}} CHANGE COLUMN {column} TYPE {kind}")
    past(spark, table, "INSERT INTO {table} VALUES (5000000000, 0.1, 70000)")
    table.append(ours.sql("SELECT 6000000000L a, 0.2D b, 80000 p"))
    expected = [(1, 0.5, 2), (5_000_000_000, 0.1, 70_000), (6_000_000_000, 0.2, 80_000)]
    assert rows(table.read(ours)) == expected
    assert theirs(spark, table) == expected
