"""A service at its limits, against the real one: what the client waits for, and what it tells."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import httpx
import pytest

import tidegate
from tests.client import answers
from tests.client.tables import data_file
from tidegate import TransactionState
from tidegate.lake import Lake
from tidegate.wire.connection import Connection
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.transport import HttpTransport

TABLE = "main.air.flights"


@contextmanager
def under_way(url: str) -> Iterator[None]:
    """A request that takes its place and does not end: its body stays away."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        connection.sendall(
            b"POST /api/v1/tables HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
            b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        yield
        connection.sendall(b"{}")
        # Its place is free once it is answered.
        while connection.recv(1000):
            pass


def busy_lake(url: str, *, sleep: Callable[[float], None], deadline_s: float = 60.0) -> Lake:
    """A client that spends its waits with `sleep`, and then some time by its clock."""
    waited = [0.0]

    def rest(seconds: float) -> None:
        waited[0] += seconds
        sleep(seconds)

    connection = Connection(
        HttpTransport(url, token=None),
        policy=RetryPolicy(deadline_s=deadline_s),
        clock=lambda: waited[0],
        sleep=rest,
        jitter=lambda: 0.5,
    )
    return Lake(connection, url=url)


@pytest.fixture
def full(start_service) -> str:
    """The URL of a service that takes one request at a time, with a table."""
    url: str = start_service(max_requests=1).url
    with tidegate.connect(url) as lake:
        lake.create_table(TABLE, schema=answers.SCHEMA, partition_by=["month"])
    return url


def test_a_place_is_waited_for_as_long_as_the_service_says(full):
    delays: list[float] = []
    with ExitStack() as occupied:

        def sleep(seconds: float) -> None:
            delays.append(seconds)
            if len(delays) == 3:
                occupied.close()

        with busy_lake(full, sleep=sleep) as lake, lake.table(TABLE).transaction() as txn:
            txn.add([data_file("a")])
            occupied.enter_context(under_way(full))
            receipt = txn.commit("WRITE")
    # Retry-After is 1 s; what comes on top of it grows.
    assert delays == [1.05, 1.1, 1.2]
    assert (receipt.version, receipt.replayed) == (1, False)


def test_a_service_that_stays_busy_has_done_nothing_and_says_so(full):
    delays: list[float] = []
    with busy_lake(full, sleep=delays.append, deadline_s=10.0) as lake:
        table = lake.table(TABLE)
        with table.transaction() as txn:
            txn.add([data_file("a")])
            with under_way(full), pytest.raises(tidegate.ServiceUnavailable) as raised:
                txn.commit("WRITE")
            assert (raised.value.status, raised.value.code) == (429, "backpressure")
            assert raised.value.definite
            assert "nothing was done" in str(raised.value)
            assert txn.state is TransactionState.FAILED
        # To the end of its patience and not beyond.
        assert 8.0 < sum(delays) < 10.0
        assert table.head().version == 0
        # The same work is free to be done again.
        with table.transaction() as again:
            again.add([data_file("a")])
            assert again.commit("WRITE").version == 1


@pytest.mark.parametrize("limit", ["max_requests", "max_waiting_per_table"])
def test_many_writers_at_a_small_limit_all_land_once(start_service, limit):
    url = start_service(**{limit: 1}).url
    writers, each = 4, 2
    with tidegate.connect(url) as lake:
        lake.create_table(TABLE, schema=answers.SCHEMA, partition_by=["month"])
    start = threading.Barrier(writers)

    def write(writer: int) -> list[tuple[str, int]]:
        landed = []
        with tidegate.connect(url) as lake:
            table = lake.table(TABLE)
            start.wait()
            for number in range(each):
                with table.transaction() as txn:
                    txn.add([data_file(f"{writer}-{number}")])
                    landed.append((txn.id, txn.commit("WRITE").version))
        return landed

    with ThreadPoolExecutor(writers) as pool:
        landed = [pair for pairs in pool.map(write, range(writers)) for pair in pairs]
    assert sorted(version for _, version in landed) == list(range(1, writers * each + 1))
    url_of_commits = f"{url}/api/v1/tables/{TABLE}/commits"
    history = httpx.get(url_of_commits, params={"limit": 1000}).json()["commits"]
    told = {(commit["transaction_id"], commit["version"]) for commit in history[:-1]}
    assert told == set(landed)
