"""Fixtures of the tests with other writers."""

from collections.abc import Iterator

import pytest

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
