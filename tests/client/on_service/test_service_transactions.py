"""Transactions against the real service, for both kinds of table."""

from collections.abc import Iterator

import msgspec
import pytest

import tidegate
from tests.client import answers
from tests.client.tables import append, data_file, new_name, new_table, paths
from tidegate import IsolationLevel, Lake, TransactionState
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import Answer, Request, TransportFailure
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.transport import HttpTransport


class LosingAnswers:
    """A transport over the real one that loses the answers of the first calls it is told to."""

    def __init__(self, url: str) -> None:
        self._real = HttpTransport(url, token=None)
        self.to_lose = 0

    def send(self, request: Request, *, timeout_s: float) -> Answer:
        answer = self._real.send(request, timeout_s=timeout_s)
        if self.to_lose:
            self.to_lose -= 1
            return TransportFailure(sent=True, detail="the answer was lost")
        return answer

    def close(self) -> None:
        self._real.close()


@pytest.fixture
def losing(shared_server: str) -> Iterator[LosingAnswers]:
    transport = LosingAnswers(shared_server)
    yield transport
    transport.close()


@pytest.fixture
def losing_lake(losing: LosingAnswers, shared_server: str) -> Lake:
    connection = Connection(losing, policy=RetryPolicy(), sleep=lambda seconds: None)
    return Lake(connection, url=shared_server)


class TestTransactions:
    def test_files_are_replaced(self, table):
        append(table, data_file("a", 5), data_file("b", 6))
        with table.transaction() as txn:
            txn.remove(txn.filter_files("month = 5"))
            txn.add([data_file("c", 5)])
            receipt = txn.commit("WRITE")
        assert not receipt.is_blind_append
        assert receipt.metrics.num_removed_files == 1
        assert paths(table.scan()) == ["month=5/c.parquet", "month=6/b.parquet"]

    def test_a_stricter_isolation_level_than_the_tables_may_be_asked_for(self, lake):
        table = new_table(lake, properties={"delta.isolationLevel": "WriteSerializable"})
        txn = table.transaction()
        txn.add([data_file("a")])
        receipt = txn.commit("WRITE", isolation_level="Serializable")
        assert receipt.isolation_level is IsolationLevel.SERIALIZABLE
        weaker = new_table(lake).transaction()
        with pytest.raises(tidegate.InvalidRequest, match="stricter"):
            weaker.commit("WRITE", isolation_level="WriteSerializable")

    def test_appends_at_once_all_land(self, table):
        transactions = [table.transaction() for _ in range(4)]
        receipts = []
        for number, txn in enumerate(transactions):
            txn.add([data_file(f"f{number}")])
            receipts.append(txn.commit("WRITE"))
        assert [receipt.version for receipt in receipts] == [1, 2, 3, 4]
        assert [receipt.rebased_over for receipt in receipts] == [0, 1, 2, 3]

    def test_the_slower_of_two_overwrites_loses_to_a_winner_with_a_name(self, table):
        append(table, data_file("a", 5))
        first, second = table.transaction(), table.transaction()
        for name, txn in (("b", first), ("c", second)):
            txn.remove(txn.filter_files("month = 5"))
            txn.add([data_file(name, 5)])
        winner = first.commit("WRITE")
        with pytest.raises(tidegate.ConflictError, match=r"version 2 \(WRITE\)") as raised, second:
            second.commit("WRITE")
        lost = raised.value
        assert type(lost) in (
            tidegate.ConcurrentAppendException,
            tidegate.ConcurrentDeleteReadException,
        )
        assert lost.conflict.version == winner.version
        assert lost.conflict.timestamp == winner.timestamp
        assert lost.definite
        assert lost.transaction_id == second.id
        assert second.state is TransactionState.FAILED
        assert paths(table.scan()) == ["month=5/b.parquet"]

    def test_one_application_at_a_time(self, table):
        assert table.txn_version("stream/1") == -1
        first, second = table.transaction(), table.transaction()
        for txn in (first, second):
            assert txn.txn_version("stream/1") == -1
            txn.set_transaction("stream/1", 0)
        first.commit("STREAMING UPDATE")
        with pytest.raises(tidegate.ConcurrentTransactionException):
            second.commit("STREAMING UPDATE")
        assert table.txn_version("stream/1") == 0

    def test_a_transaction_may_begin_at_an_earlier_head(self, table):
        head = table.head()
        append(table, data_file("a"))
        txn = table.transaction(head=head)
        assert txn.read_version == 0
        assert txn.filter_files("month = 5") == []
        txn.add([data_file("b")])
        with pytest.raises(tidegate.ConcurrentAppendException):
            txn.commit("WRITE")

    def test_metadata_is_changed_and_conflicts(self, table):
        slow = table.transaction()
        slow.add([data_file("a")])
        with table.transaction() as txn:
            txn.update_metadata(set_properties={"owner": "ops"}, comment="new")
            txn.commit("SET TBLPROPERTIES")
        head = table.head()
        assert (head.properties["owner"], head.metadata.description) == ("ops", "new")
        with pytest.raises(tidegate.MetadataChangedException):
            slow.commit("WRITE")

    def test_an_action_that_cannot_be_is_refused_for_good(self, table):
        txn = table.transaction()
        txn.add([data_file("a"), data_file("a")])
        with pytest.raises(tidegate.InvalidProposal) as raised:
            txn.commit("WRITE")
        assert (raised.value.code, raised.value.status) == ("duplicate-action", 422)
        assert raised.value.definite

    def test_a_forgotten_table_takes_no_commit(self, lake):
        table = new_table(lake)
        txn = table.transaction()
        lake.forget_table(table.name)
        with pytest.raises(tidegate.TableNotFound) as raised:
            txn.commit("WRITE")
        assert raised.value.definite


class TestIds:
    def test_a_lost_answer_does_not_land_twice(self, losing_lake, losing):
        table = new_table(losing_lake)
        txn = table.transaction()
        txn.add([data_file("a")])
        losing.to_lose = 2
        receipt = txn.commit("WRITE")
        assert (receipt.version, receipt.replayed) == (1, True)
        assert table.version == 1

    def test_a_lost_answer_to_a_conflict_is_a_conflict(self, losing_lake, losing):
        table = new_table(losing_lake)
        txn = table.transaction()
        txn.read_whole_table()
        txn.add([data_file("b")])
        append(table, data_file("a"))
        losing.to_lose = 1
        with pytest.raises(tidegate.ConcurrentAppendException) as raised:
            txn.commit("WRITE")
        assert raised.value.definite

    def test_a_creation_whose_answer_is_lost_is_left_open_and_can_be_looked_up(
        self, losing_lake, losing
    ):
        losing.to_lose = 1
        name = new_name()
        with pytest.raises(tidegate.ServiceUnavailable) as raised:
            losing_lake.create_table(name, schema=answers.SCHEMA)
        assert not raised.value.definite
        assert losing_lake.table(name).name == name

    def test_an_id_of_ones_own_lands_once(self, table):
        for _ in range(2):
            txn = table.transaction(transaction_id="nightly-1")
            txn.add([data_file("a")])
            # The body must be the same, and so must the version it was written on.
            if txn.read_version == 0:
                assert txn.commit("WRITE").version == 1
            else:
                with pytest.raises(tidegate.InvalidProposal) as raised:
                    txn.commit("WRITE")
                assert raised.value.code == "transaction-id-reused"
                assert not raised.value.definite
        assert table.version == 1
        assert table.transaction_status("nightly-1").version == 1

    def test_what_landed_under_an_id_of_ones_own_can_be_asked_for_first(self, table):
        first = table.transaction(transaction_id="nightly-1")
        assert first.landed() is None
        first.add([data_file("a")])
        receipt = first.commit("WRITE")
        again = table.transaction(transaction_id="nightly-1")
        landed = again.landed()
        # A catalog-managed table's version may have been published meanwhile.
        told = {"replayed": True, "stats": None, "published": landed.published}
        assert landed == msgspec.structs.replace(receipt, **told)
        assert again.state is TransactionState.COMMITTED
        with pytest.raises(tidegate.TransactionClosed):
            again.commit("WRITE")

    def test_an_id_of_ones_own_that_was_aborted_is_told_first(self, table):
        table.abort_transaction("nightly-1")
        txn = table.transaction(transaction_id="nightly-1")
        with pytest.raises(tidegate.TransactionAborted) as raised:
            txn.landed()
        assert raised.value.definite
        assert txn.state is TransactionState.ABORTED

    def test_what_became_of_a_transaction(self, table):
        txn = table.transaction()
        with pytest.raises(tidegate.TransactionNotFound):
            table.transaction_status(txn.id)
        txn.commit("WRITE")
        status = table.transaction_status(txn.id)
        assert (status.state, status.version) == ("committed", 1)
        with pytest.raises(tidegate.TransactionCommitted) as raised:
            table.abort_transaction(txn.id)
        assert raised.value.version == 1

    def test_an_aborted_transaction_never_lands(self, table):
        txn = table.transaction()
        table.abort_transaction(txn.id)
        table.abort_transaction(txn.id)
        assert table.transaction_status(txn.id).state == "aborted"
        with pytest.raises(tidegate.TransactionAborted) as raised:
            txn.commit("WRITE")
        assert raised.value.definite
        assert table.head().num_files == 0

    def test_a_transaction_that_is_given_up_leaves_nothing(self, table):
        txn = table.transaction()
        txn.add([data_file("a")])
        with pytest.raises(KeyboardInterrupt), txn:
            raise KeyboardInterrupt
        assert table.version == 0


def test_a_commit_outlasts_a_service_that_starts_anew(start_service):
    """The client waits for the service to come back, and the work is done once."""
    first = start_service()
    port = int(first.url.rpartition(":")[2])
    restarted = []

    def restart_instead_of_sleeping(seconds: float) -> None:
        if not restarted:
            restarted.append(start_service(port=port))

    connection = Connection(
        HttpTransport(first.url, token=None),
        policy=RetryPolicy(),
        sleep=restart_instead_of_sleeping,
        jitter=lambda: 0.001,
    )
    with Lake(connection, url=first.url) as lake:
        table = new_table(lake)
        txn = table.transaction()
        txn.add([data_file("a")])
        first.stop()
        first.join()
        assert txn.commit("WRITE").version == 1
        assert restarted
        assert table.version == 1
