"""Tables of the tests of `format("tidegate")`."""

import pytest


@pytest.fixture
def months(session, create, copied):
    """A table of the rows (a, month) = (10, 1), (20, 2), (30, 3)."""

    def make():
        table = create("a int, month int", "month")
        query = "SELECT * FROM VALUES (10, 1), (20, 2), (30, 3) AS t(a, month)"
        table.append(session.sql(query).coalesce(1))
        return table

    return copied(make)
