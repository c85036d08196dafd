"""A stock client of the service that all tests share, and a table of a test's own."""

from collections.abc import Iterator

import pytest

from tests.service.unity_catalog.stock import StockClient, StockTable


@pytest.fixture
def stock(shared_server: str) -> Iterator[StockClient]:
    client = StockClient(shared_server)
    with client.http, client.own:
        yield client


@pytest.fixture
def table(stock: StockClient) -> StockTable:
    return stock.create()
