"""Work under an id of its own that is done more than once, and what becomes of everybody's files.

The schedules are played on the real service, on a disk and on a real S3 server; the latter needs
the jars for s3a:// and is skipped without them.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow.fs as pafs
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from demo.s3_server import S3Server
from tests.spark.tables import data_files, rows
from tidegate import Lake, Table, Transaction, TransactionState
from tidegate.errors import (
    CommitStateUnknown,
    ConcurrentAppendException,
    TransactionAborted,
    TransactionClosed,
)
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import Answer, Request, TransportFailure
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.transport import HttpTransport

NIGHTLY = "nightly-2026-11-21"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Place:
    """Where a table lies: `files` are all its data files, in the log or not."""

    spark: SparkSession
    lake: Lake
    files: Callable[[Table], set[str]]

    def table(self) -> Table:
        schema = StructType.fromDDL("id bigint")
        return self.lake.create_table(f"main.attempts.t{next(_numbers)}", schema=schema)

    def again(self, table: Table) -> Table:
        """The table as another process finds it."""
        return self.lake.table(table.id)

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        # Spark keeps what it has listed of a path.
        self.spark.catalog.clearCache()
        return rows(table.read(self.spark))

    def never(self) -> DataFrame:
        """Rows that nobody can compute."""
        return self.spark.sql("SELECT CAST(raise_error('the job has run') AS bigint) id")


def named(table: Table) -> set[str]:
    return {file.path for file in table.scan().files}


def before_proposing(transaction: Transaction, act: Callable[[], object]) -> Transaction:
    """Let something happen when the transaction's files are written and it is about to propose
    them."""
    commit = transaction.commit_if_needed

    def late(*arguments: Any, **options: Any) -> Any:
        act()
        return commit(*arguments, **options)

    transaction.commit_if_needed = late
    return transaction


def interrupt() -> None:
    raise KeyboardInterrupt


class Schedules:
    def test_what_landed_before_is_answered_and_nothing_is_done(self, place):
        table = place.table()
        first = table.overwrite(
            place.spark.range(4), transaction=table.transaction(transaction_id=NIGHTLY)
        )
        files = place.files(table)
        again = place.again(table)
        transaction = again.transaction(transaction_id=NIGHTLY)
        second = again.overwrite(place.never(), transaction=transaction)
        assert second == msgspec.structs.replace(first, replayed=True, stats=None)
        assert transaction.state is TransactionState.COMMITTED
        assert place.files(table) == files == named(table)
        assert place.rows(table) == [(0,), (1,), (2,), (3,)]
        assert table.version == 1

    def test_a_second_run_that_is_faster_wins_and_the_first_is_told_its_receipt(self, place):
        table = place.table()
        second = []

        def run() -> None:
            written = place.files(table)
            again = place.again(table)
            transaction = again.transaction(transaction_id=NIGHTLY)
            second.append(again.overwrite(place.spark.range(2), transaction=transaction))
            assert written < place.files(table), "the first run's files belong to the first run"

        slow = before_proposing(table.transaction(transaction_id=NIGHTLY), run)
        first = table.overwrite(place.spark.range(3), transaction=slow)
        assert first == msgspec.structs.replace(second[0], replayed=True, stats=None)
        assert place.rows(table) == [(0,), (1,)]
        assert place.files(table) == named(table), "the files that lost are deleted"

    def test_a_second_run_that_is_interrupted_takes_its_own_files_alone(self, place):
        table = place.table()

        def run() -> None:
            written = place.files(table)
            again = place.again(table)
            cut_off = before_proposing(again.transaction(transaction_id=NIGHTLY), interrupt)
            with pytest.raises(KeyboardInterrupt):
                again.overwrite(place.spark.range(2), transaction=cut_off)
            assert place.files(table) == written

        slow = before_proposing(table.transaction(transaction_id=NIGHTLY), run)
        table.overwrite(place.spark.range(3), transaction=slow)
        assert place.rows(table) == [(0,), (1,), (2,)]
        assert place.files(table) == named(table)

    def test_a_second_run_that_is_refused_takes_its_own_files_alone(self, place):
        table = place.table()
        old = table.head()
        table.append(place.spark.range(9, 10))

        def run() -> None:
            written = place.files(table)
            again = place.again(table)
            transaction = again.transaction(transaction_id=NIGHTLY, head=old)
            with pytest.raises(ConcurrentAppendException) as lost:
                again.overwrite(place.spark.range(2), transaction=transaction)
            assert lost.value.definite
            assert place.files(table) == written

        slow = before_proposing(table.transaction(transaction_id=NIGHTLY), run)
        table.overwrite(place.spark.range(3), transaction=slow)
        assert place.rows(table) == [(0,), (1,), (2,)]

    def test_an_id_that_was_aborted_is_told_before_anything_is_done(self, place):
        table = place.table()
        table.abort_transaction(NIGHTLY)
        transaction = table.transaction(transaction_id=NIGHTLY)
        with pytest.raises(TransactionAborted):
            table.overwrite(place.never(), transaction=transaction)
        assert transaction.state is TransactionState.ABORTED
        assert place.files(table) == set()

    def test_what_was_never_proposed_leaves_nothing_though_its_id_may_be_known(self, place):
        table = place.table()
        transaction = before_proposing(table.transaction(transaction_id=NIGHTLY), interrupt)
        with pytest.raises(KeyboardInterrupt):
            table.overwrite(place.spark.range(2), transaction=transaction)
        assert transaction.state is TransactionState.UNKNOWN
        assert place.files(table) == set()

    def test_a_lost_answer_is_found_by_the_next_run(self, place):
        table = place.table()
        transport = Lossy(place.lake.url)
        with Lake(Connection(transport, policy=AT_ONCE), url=place.lake.url) as cut_off:
            unlucky = cut_off.table(table.id)
            with pytest.raises(CommitStateUnknown):
                unlucky.overwrite(
                    place.spark.range(3),
                    transaction=unlucky.transaction(transaction_id=NIGHTLY),
                )
        receipt = table.overwrite(
            place.never(), transaction=table.transaction(transaction_id=NIGHTLY)
        )
        assert (receipt.version, receipt.replayed) == (1, True)
        assert place.rows(table) == [(0,), (1,), (2,)]

    def test_files_that_landed_stay_whatever_is_said_of_the_id(self, place):
        """A service that no longer knows the body of what landed calls every retry another one."""
        table = place.table()
        transport = Forgetful(place.lake.url)
        with Lake(Connection(transport, policy=AT_ONCE), url=place.lake.url) as lake:
            own = lake.table(table.id)
            receipt = own.overwrite(
                place.spark.range(3), transaction=own.transaction(transaction_id=NIGHTLY)
            )
        assert transport.told == "transaction-id-reused"
        assert receipt.version == 1
        assert place.rows(table) == [(0,), (1,), (2,)]


AT_ONCE = RetryPolicy(deadline_s=0.1, attempt_s=30.0)


class Lossy(HttpTransport):
    """Passes proposals on and loses their answers."""

    def __init__(self, url: str) -> None:
        super().__init__(url, token=None)

    def send(self, request: Request, *, timeout_s: float) -> Answer:
        answer = super().send(request, timeout_s=30.0)
        if request.path.endswith("/commits"):
            return TransportFailure(sent=True, detail="the answer was lost")
        return answer


class Forgetful(HttpTransport):
    """Gives for every proposal the service's answer to another body under the same id, sent once
    the proposal itself has landed."""

    told = None

    def __init__(self, url: str) -> None:
        super().__init__(url, token=None)

    def send(self, request: Request, *, timeout_s: float) -> Answer:
        answer = super().send(request, timeout_s=30.0)
        if not request.path.endswith("/commits") or request.method != "POST":
            return answer
        other = msgspec.json.decode(request.body) | {"user_metadata": "another body"}
        answer = super().send(replace(request, body=msgspec.json.encode(other)), timeout_s=30.0)
        self.told = msgspec.json.decode(answer.body)["code"]
        return answer


class TestOnADisk(Schedules):
    @pytest.fixture
    def place(self, session: SparkSession, lake: Lake) -> Place:
        return Place(session, lake, data_files)


class TestOnS3(Schedules):
    @pytest.fixture
    def place(self, s3_session: SparkSession, s3_lake: Lake, s3_server: S3Server) -> Place:
        bucket = pafs.S3FileSystem(
            access_key=s3_server.access_key,
            secret_key=s3_server.secret_key,
            region=s3_server.region,
            endpoint_override=s3_server.endpoint,
        )

        def files(table: Table) -> set[str]:
            root = table.location.removeprefix("s3://")
            found = bucket.get_file_info(pafs.FileSelector(root, recursive=True))
            paths = {info.path.removeprefix(f"{root}/") for info in found if info.is_file}
            return {path for path in paths if not path.startswith("_delta_log/")}

        return Place(s3_session, s3_lake, files)


class TestTransactionsThatAreNotNew:
    def test_one_that_was_used_before_is_refused_and_what_it_wrote_stays(self, spark, create):
        table = create("id bigint")
        transaction = table.transaction(transaction_id=NIGHTLY)
        table.overwrite(spark.range(3), transaction=transaction)
        with pytest.raises(TransactionClosed):
            table.overwrite(spark.range(1), transaction=transaction)
        assert table.read(spark).count() == 3

    def test_one_of_another_table_is_refused(self, spark, create):
        table, other = create("id bigint"), create("id bigint")
        other.append(spark.range(2))
        with pytest.raises(ValueError, match="expected a transaction of table"):
            table.overwrite(spark.range(1), transaction=other.transaction())
        assert other.read(spark).count() == 2
