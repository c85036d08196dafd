"""Fixtures of the tests with other writers."""

from collections.abc import Iterator

import pytest

from tests.interop.foreign_spark import ForeignSpark, foreign_spark
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
