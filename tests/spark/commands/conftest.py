"""Tables for commands."""

import pytest

import tidegate
from tidegate import Table


@pytest.fixture
def months(spark, create) -> Table:
    """A table of the rows (month, a) = (1, 10), (1, 11), (2, 20), (2, 21), partitioned by month."""
    table = create("a int, month int", "month")
    table.append(
        spark.sql("SELECT * FROM VALUES (10, 1), (11, 1), (20, 2), (21, 2) AS t(a, month)")
    )
    return table


@pytest.fixture
def sql(session, lake):
    """`tidegate.sql` over the service."""
    return lambda text, **options: tidegate.sql(session, text, lake=lake, **options)
