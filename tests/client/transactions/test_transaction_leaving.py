"""Leaving a transaction's block, in every state and by every way."""

import pytest

from tests.client import answers
from tidegate import TransactionState
from tidegate.errors import CommitStateUnknown, ConcurrentAppendException, TransactionClosed
from tidegate.lake import Lake
from tidegate.wire.connection import Connection
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.transport import HttpTransport

ABORT = "abort"
COMMIT = "commits"


@pytest.fixture
def txn(scripted_txn):
    return scripted_txn


class Bored(Exception):
    pass


def commit_and_leave(txn) -> None:
    with txn:
        txn.commit("WRITE")
        raise Bored


def doubt_and_leave(txn) -> None:
    with txn:
        with pytest.raises(CommitStateUnknown):
            txn.commit("WRITE")
        raise Bored


class TestLeaving:
    def test_after_a_commit_nothing_happens(self, txn, loopback):
        loopback.answer(201, answers.receipt(txn.id))
        with txn:
            txn.commit("WRITE")
        assert loopback.calls == [COMMIT]
        assert txn.state is TransactionState.COMMITTED

    def test_a_transaction_that_was_never_proposed_is_dropped_here(self, txn, loopback):
        with pytest.raises(Bored), txn:
            raise Bored
        assert txn.state is TransactionState.ABORTED
        assert loopback.seen == [], "the service has never heard of it"

    def test_so_is_one_that_is_left_without_a_commit(self, txn, loopback):
        with txn as same:
            assert same is txn
        assert txn.state is TransactionState.ABORTED
        with pytest.raises(TransactionClosed):
            txn.commit("WRITE")
        assert loopback.seen == []

    def test_an_exception_after_the_commit_takes_nothing_back(self, txn, loopback):
        loopback.answer(201, answers.receipt(txn.id))
        with pytest.raises(Bored):
            commit_and_leave(txn)
        assert loopback.calls == [COMMIT]
        assert txn.state is TransactionState.COMMITTED

    def test_a_conflict_needs_no_abort(self, txn, loopback):
        loopback.answer(409, answers.conflict())
        with pytest.raises(ConcurrentAppendException), txn:
            txn.commit("WRITE")
        assert loopback.calls == [COMMIT]

    def test_a_commit_in_doubt_is_not_aborted_because_it_may_be_asked_for(self, txn, loopback):
        loopback.out_of_service()
        with pytest.raises(CommitStateUnknown), txn:
            txn.commit("WRITE")
        assert loopback.calls == [COMMIT]
        assert txn.state is TransactionState.UNKNOWN

    def test_nor_is_it_by_another_exception_after_that(self, txn, loopback):
        loopback.out_of_service()
        with pytest.raises(Bored):
            doubt_and_leave(txn)
        assert loopback.calls == [COMMIT]
        assert txn.state is TransactionState.UNKNOWN

    def test_an_id_that_was_brought_along_may_be_known_from_elsewhere(
        self, scripted_table, loopback
    ):
        """Were it called aborted, the files of an earlier process's commit would be deleted."""
        loopback.answer(200, answers.head())
        txn = scripted_table.transaction(transaction_id="nightly")
        with pytest.raises(Bored), txn:
            raise Bored
        assert txn.state is TransactionState.UNKNOWN
        with pytest.raises(TransactionClosed):
            txn.commit("WRITE")


class TestInterruption:
    """A proposal whose outcome nobody waited for."""

    @pytest.fixture
    def interrupted(self, loopback):
        """A transaction that is interrupted while its proposal waits to be sent again."""

        def interrupt(seconds: float) -> None:
            raise KeyboardInterrupt

        connection = Connection(
            HttpTransport(loopback.url, token=None), policy=RetryPolicy(), sleep=interrupt
        )
        loopback.answer(200, answers.head())
        loopback.answer(200, answers.head())
        loopback.answer(503, answers.failure("index-unavailable", 503), retry_after="1")
        with Lake(connection, url=loopback.url) as lake:
            transaction = lake.table("a.b.c").transaction()
            loopback.seen.clear()
            yield transaction

    def test_it_is_aborted(self, interrupted, loopback):
        loopback.answer(200, answers.aborted(interrupted.id))
        with pytest.raises(KeyboardInterrupt) as raised, interrupted:
            interrupted.commit("WRITE")
        assert loopback.calls == [COMMIT, ABORT]
        assert interrupted.state is TransactionState.ABORTED
        assert not hasattr(raised.value, "__notes__")

    def test_an_abort_that_fails_is_noted_and_masks_nothing(self, interrupted, loopback):
        loopback.out_of_service()
        with pytest.raises(KeyboardInterrupt) as raised, interrupted:
            interrupted.commit("WRITE")
        assert "could not be aborted" in raised.value.__notes__[0]
        assert interrupted.state is TransactionState.UNKNOWN

    def test_an_abort_that_comes_too_late_is_noted_and_masks_nothing(self, interrupted, loopback):
        body = answers.failure("transaction-committed", 409, detail="it is version 5")
        loopback.answer(409, body)
        with pytest.raises(KeyboardInterrupt) as raised, interrupted:
            interrupted.commit("WRITE")
        assert "it is version 5" in raised.value.__notes__[0]
        assert interrupted.state is TransactionState.COMMITTED

    def test_outside_of_a_block_it_is_left_in_doubt(self, interrupted, loopback):
        with pytest.raises(KeyboardInterrupt):
            interrupted.commit("WRITE")
        assert loopback.calls == [COMMIT]
        assert interrupted.state is TransactionState.UNKNOWN

    def test_an_interruption_that_stays_inside_of_the_block_aborts_nothing(
        self, interrupted, loopback
    ):
        with interrupted, pytest.raises(KeyboardInterrupt):
            interrupted.commit("WRITE")
        assert loopback.calls == [COMMIT]
        assert interrupted.state is TransactionState.UNKNOWN
