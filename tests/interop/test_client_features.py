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
    """Have stock Delta Spark change the table's rows past the service, which then learns of it."""
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
