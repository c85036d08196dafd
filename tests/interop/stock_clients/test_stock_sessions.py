"""Sessions of stock Delta Spark and jobs of ours on one table at once: what both say of conflicts,
and what is left when the service is killed under them."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.interop.processes.foreign_spark import ForeignSpark
from tests.interop.stock_clients.catalog_session import catalog_session, connector
from tests.interop.stock_clients.lost_answers import LossyProxy, lossy_proxy
from tests.interop.tables import append, check_replay, replace
from tests.service.instances import Instance, instances
from tidegate import ConflictError, Lake, Table, connect
from tidegate_service.settings import Settings

EACH = 6
"""Rows of each writer, a commit each."""
NAME = "main.stock.shared"


@pytest.fixture(scope="module")
def instance(
    postgres_server, migrated_template, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Instance]:
    from tests.servers.postgres import cloned

    # Without it, nothing is started.
    connector()
    with cloned(postgres_server.url, migrated_template) as url:
        folder = tmp_path_factory.mktemp("warehouse")
        with instances(Settings(database_url=url, data_dir=folder, port=0)) as (instance,):
            yield instance


@pytest.fixture(scope="module")
def proxy(instance: Instance) -> Iterator[LossyProxy]:
    with lossy_proxy(instance.url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def sessions(
    instance: Instance, proxy: LossyProxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ForeignSpark, ForeignSpark]]:
    """Two; the first one by the proxy."""
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        folders = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
        started = pool.map(
            lambda folder, url: stack.enter_context(catalog_session(folder, url)),
            *(folders, (proxy.url, instance.url)),
        )
        first, second = started
        yield first, second


@pytest.fixture
def lake(instance: Instance) -> Iterator[Lake]:
    with connect(instance.url) as lake:
        yield lake


@pytest.fixture
def table(sessions, lake: Lake) -> Iterator[Table]:
    first, _ = sessions
    first.run(
        f"CREATE TABLE {NAME} (writer STRING, n BIGINT, part INT) USING delta "
        "PARTITIONED BY (writer) TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')"
    )
    yield lake.table(NAME)
    first.run(f"DROP TABLE {NAME}")


def insert(session: ForeignSpark, writer: str, n: int) -> None:
    session.run(f"INSERT INTO {NAME} VALUES ('{writer}', {n}, 0)")


def rows(session: ForeignSpark) -> list[tuple[str, int]]:
    return session.run(f"SELECT writer, n FROM {NAME} ORDER BY writer, n")


class TestConflicts:
    """The first session's commit is at the service's door while somebody else commits."""

    def test_one_that_is_none_lands_behind_the_winner(self, sessions, proxy, table):
        first, second = sessions
        with ThreadPoolExecutor(1) as pool, proxy.held() as arrived:
            job = pool.submit(insert, first, "first", 1)
            arrived.wait()
            insert(second, "second", 1)
            append(table, "ours", [1])
        job.result()
        assert rows(first) == [("first", 1), ("ours", 1), ("second", 1)]
        check_replay(table)

    @pytest.mark.parametrize("winner", ["stock", "ours"])
    def test_a_real_one_is_told(self, sessions, proxy, table, winner):
        first, second = sessions
        insert(second, "a", 1)
        with ThreadPoolExecutor(1) as pool, proxy.held() as arrived:
            job = pool.submit(first.run, f"UPDATE {NAME} SET n = 2 WHERE writer = 'a'")
            arrived.wait()
            if winner == "stock":
                second.run(f"UPDATE {NAME} SET n = 3 WHERE writer = 'a'")
            else:
                replace(table.transaction(), table, "a", [3])
        with pytest.raises(AssertionError, match="DELTA_CONCURRENT"):
            job.result()
        assert rows(second) == [("a", 3)]
        check_replay(table)

    def test_a_job_of_ours_meets_what_a_session_did(self, sessions, table):
        _, second = sessions
        insert(second, "a", 1)
        insert(second, "b", 1)
        blind, reader = table.transaction(), table.transaction()
        reader.remove(reader.filter_files("writer = 'a'"))
        second.run(f"DELETE FROM {NAME} WHERE writer = 'a'")
        with pytest.raises(ConflictError):
            reader.commit("DELETE")
        with blind as txn:
            txn.remove(txn.filter_files("writer = 'b'"))
            txn.commit("DELETE")
        assert rows(second) == []
        check_replay(table)


def test_four_writers_at_once_lose_nothing_and_nothing_is_there_twice(sessions, table):
    def stock(session: ForeignSpark, writer: str) -> None:
        for n in range(EACH):
            insert(session, writer, n)

    def ours(writer: str) -> None:
        for n in range(EACH):
            append(table, writer, [n])

    first, second = sessions
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(stock, first, "first"), pool.submit(stock, second, "second")]
        jobs += [pool.submit(ours, "ours"), pool.submit(ours, "ours-2")]
        for job in jobs:
            job.result()
    writers = ("first", "ours", "ours-2", "second")
    assert rows(first) == [(writer, n) for writer in writers for n in range(EACH)]
    check_replay(table)


def test_a_killed_service_takes_nothing_with_it(sessions, instance, lake, table):
    """Delta Spark asks again when its connection is lost; so does our client."""
    first, second = sessions
    over = threading.Event()
    landed: dict[str, list[int]] = {"first": [], "second": [], "ours": []}

    def write(writer: str, commit) -> None:
        n = 0
        while not over.is_set():
            commit(n)
            landed[writer].append(n)
            n += 1

    with ThreadPoolExecutor(3) as pool:
        jobs = [
            pool.submit(write, "first", lambda n: insert(first, "first", n)),
            pool.submit(write, "second", lambda n: insert(second, "second", n)),
            pool.submit(write, "ours", lambda n: append(table, "ours", [n])),
        ]
        try:
            for kills in range(1, 4):
                while min(map(len, landed.values())) < 2 * kills:
                    assert not any(job.done() for job in jobs)
                    over.wait(0.02)
                instance.kill()
                instance.start()
                instance.ready()
        finally:
            over.set()
        for job in jobs:
            job.result()
    expected = sorted((writer, n) for writer, numbers in landed.items() for n in numbers)
    assert rows(first) == expected
    check_replay(table)
