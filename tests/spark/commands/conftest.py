"""Tables for commands."""

import pytest

import tidegate
from tidegate import Table


@pytest.fixture
def months(spark, create, copied) -> Table:
    """A table of the rows (month, a) = (1, 10), (1, 11), (2, 20), (2, 21), partitioned by month."""

    def make() -> Table:
        table = create("a int, month int", "month")
        query = "SELECT * FROM VALUES (10, 1), (11, 1), (20, 2), (21, 2) AS t(a, month)"
        table.append(spark.sql(query))
        return table

    return copied(make)


@pytest.fixture
def sql(session, lake):
    """`tidegate.sql` over the service."""
    return lambda text, **options: tidegate.sql(session, text, lake=lake, **options)
