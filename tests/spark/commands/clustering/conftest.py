"""Clustered tables."""

import itertools

import pytest
from pyspark.sql.types import StructType

_numbers = itertools.count(1)


@pytest.fixture
def clustered(lake):
    """Create a table with the columns of a DDL text, clustered by some."""

    def create(ddl, *cluster_by, **properties):
        return lake.create_table(
            f"main.clustered.t{next(_numbers)}",
            schema=StructType.fromDDL(ddl),
            cluster_by=cluster_by,
            properties=properties,
        )

    return create
