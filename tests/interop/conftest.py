"""Fixtures of the tests with other writers."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.interop.processes.foreign_spark import ForeignSpark, foreign_spark
from tests.interop.tables import new_table
from tidegate import Lake, Table, connect


@pytest.fixture(scope="session")
def lake(shared_server: str) -> Iterator[Lake]:
    """A client of the real service."""
    with connect(shared_server) as lake:
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    return new_table(lake)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignSpark]:
    """One stock Delta Spark for all tests: what it takes to start is most of what a test takes."""
    with foreign_spark(tmp_path_factory.mktemp("foreign")) as spark:
        yield spark


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session of our own client, for tests of what both read and write."""
    folder = tmp_path_factory.mktemp("ours")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.local.dir", str(folder))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
