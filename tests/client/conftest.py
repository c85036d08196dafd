"""Fixtures of the client's tests: a scripted server with a client that does not sleep, and the
real service with tables of both kinds."""

from collections.abc import Iterator

import pytest

from tests.client import answers
from tests.client.tables import new_table
from tests.client.transport.loopback import Loopback, loopback_server
from tidegate.lake import Lake, connect
from tidegate.table import Table
from tidegate.transaction import Transaction
from tidegate.wire.connection import Connection
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.transport import HttpTransport


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with loopback_server() as server:
        yield server


@pytest.fixture
def scripted_lake(loopback: Loopback) -> Iterator[Lake]:
    """A lake whose flows wait in name only; its wall clock stands at 1,750,000,000 s."""
    connection = Connection(
        HttpTransport(loopback.url, token=None),
        policy=RetryPolicy(deadline_s=30.0),
        sleep=lambda seconds: None,
        jitter=lambda: 0.0,
        wall_clock=lambda: 1_750_000_000.0,
    )
    with Lake(connection, url=loopback.url) as lake:
        yield lake


@pytest.fixture
def scripted_table(loopback: Loopback, scripted_lake: Lake) -> Table:
    loopback.answer(200, answers.head())
    table = scripted_lake.table("main.air.flights")
    loopback.seen.clear()
    return table


@pytest.fixture
def scripted_txn(loopback: Loopback, scripted_table: Table) -> Transaction:
    loopback.answer(200, answers.head())
    transaction = scripted_table.transaction()
    loopback.seen.clear()
    return transaction


@pytest.fixture(scope="session")
def lake(shared_server: str) -> Iterator[Lake]:
    """A client of the real service."""
    with connect(shared_server) as lake:
        yield lake


@pytest.fixture(params=["plain", "catalog-managed"])
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    """A new table of the real service."""
    return new_table(lake, catalog_managed=request.param == "catalog-managed")
