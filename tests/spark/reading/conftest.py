"""Golden tables in the warehouse of the tests' service, and streams from tables."""

import shutil

import pytest

from tests.service.tables.delta_logs import ABSENT, GOLDEN
from tests.spark.reading.readers import Reader


@pytest.fixture
def register_golden(lake, create):
    """Register a copy of a golden table; skips the test where they are not at hand."""

    def register(name):
        if not GOLDEN.is_dir():
            pytest.skip(ABSENT)
        beside = create("a int")
        location = f"{beside.location}-{name}"
        shutil.copytree(GOLDEN / name, location.removeprefix("file://"))
        return lake.register_table(f"{beside.name}_golden", location)

    return register


@pytest.fixture
def reader(spark, lake):
    return Reader(lake.url)
