"""How a transaction ends: by what it is told, and by what it is never told."""

import pytest

from tests.client import answers
from tests.client.transport.loopback import Drop, Reply
from tidegate import TransactionState
from tidegate.errors import (
    CommitStateUnknown,
    ConcurrentAppendException,
    InvalidProposal,
    NotFound,
    ServiceUnavailable,
    TidegateError,
    TransactionAborted,
    TransactionClosed,
    TransactionCommitted,
)

TABLE = f"/api/v1/tables/{answers.TABLE_ID}"
ABORT = "abort"
COMMIT = "commits"
LATER = "3600"


@pytest.fixture
def txn(scripted_txn):
    return scripted_txn


def leave_in_doubt(txn, loopback) -> None:
    loopback.out_of_service()
    with pytest.raises(CommitStateUnknown):
        txn.commit("WRITE")
    loopback.seen.clear()


class TestCommitting:
    def test_a_conflict_ends_it(self, txn, loopback):
        loopback.answer(409, answers.conflict(version=5))
        with pytest.raises(ConcurrentAppendException, match="version 5") as raised:
            txn.commit("WRITE")
        assert raised.value.definite
        assert txn.state is TransactionState.FAILED

    @pytest.mark.parametrize(
        ("code", "status", "expected"),
        [
            ("append-only", 422, InvalidProposal),
            ("transaction-aborted", 410, TransactionAborted),
        ],
    )
    def test_so_does_every_refusal(self, txn, loopback, code, status, expected):
        loopback.answer(status, answers.failure(code, status))
        with pytest.raises(expected):
            txn.commit("WRITE")
        assert txn.state is TransactionState.FAILED

    def test_an_id_of_another_body_leaves_it_open_whether_the_files_are_in_the_table(
        self, txn, loopback
    ):
        loopback.answer(422, answers.failure("transaction-id-reused", 422))
        with pytest.raises(InvalidProposal) as raised, txn:
            txn.commit("WRITE")
        assert not raised.value.definite
        assert txn.state is TransactionState.UNKNOWN
        assert loopback.calls == [COMMIT]

    def test_committing_twice_is_an_error_that_sends_nothing(self, txn, loopback):
        loopback.answer(201, answers.receipt(txn.id))
        txn.commit("WRITE")
        with pytest.raises(TransactionClosed):
            txn.commit("WRITE")
        assert loopback.calls == [COMMIT]
        assert txn.state is TransactionState.COMMITTED

    @pytest.mark.parametrize(
        "use",
        [
            lambda txn: txn.add([]),
            lambda txn: txn.remove([]),
            lambda txn: txn.filter_files("month = 5"),
            lambda txn: txn.read_whole_table(),
            lambda txn: txn.txn_version("stream"),
            lambda txn: txn.set_transaction("stream", 1),
            lambda txn: txn.update_metadata(comment="late"),
            lambda txn: txn.action({"txn": {"appId": "a", "version": 1}}),
            lambda txn: txn.commit("WRITE"),
        ],
    )
    def test_nothing_more_is_taken_after_a_commit(self, txn, loopback, use):
        loopback.answer(201, answers.receipt(txn.id))
        txn.commit("WRITE")
        loopback.seen.clear()
        with pytest.raises(TransactionClosed) as raised:
            use(txn)
        assert raised.value.transaction_id == txn.id
        assert loopback.seen == []

    def test_a_lost_answer_is_asked_for_again_under_the_same_id(self, txn, loopback):
        loopback.then(Drop())
        loopback.answer(200, answers.receipt(txn.id, replayed=True))
        assert txn.commit("WRITE").replayed
        first, second = loopback.seen
        assert first.body == second.body

    def test_a_receipt_of_another_transaction_proves_nothing(self, txn, loopback):
        loopback.answer(201, answers.receipt("another"))
        with pytest.raises(CommitStateUnknown) as raised:
            txn.commit("WRITE")
        assert raised.value.transaction_id == txn.id
        assert txn.state is TransactionState.UNKNOWN

    def test_a_service_that_took_no_copy_ends_it_for_sure(self, txn, loopback):
        body = answers.failure("backpressure", 429)
        loopback.answer(429, body, retry_after=LATER)
        with pytest.raises(ServiceUnavailable) as raised:
            txn.commit("WRITE")
        assert raised.value.definite
        assert txn.state is TransactionState.FAILED


class TestDoubt:
    def test_the_same_call_sends_the_same_proposal_again(self, txn, loopback):
        txn.add([])
        loopback.out_of_service()
        with pytest.raises(CommitStateUnknown):
            txn.commit("WRITE", metrics={"b": 1, "a": 2})
        assert txn.state is TransactionState.UNKNOWN
        loopback.answer(200, answers.receipt(txn.id, replayed=True))
        txn.commit("WRITE", metrics={"a": 2, "b": 1})
        first, second = loopback.seen
        assert first.body == second.body
        assert txn.state is TransactionState.COMMITTED

    def test_another_call_is_refused(self, txn, loopback):
        leave_in_doubt(txn, loopback)
        with pytest.raises(TransactionClosed, match="same call"):
            txn.commit("DELETE")
        assert loopback.seen == []
        assert txn.state is TransactionState.UNKNOWN

    def test_its_actions_are_closed(self, txn, loopback):
        leave_in_doubt(txn, loopback)
        with pytest.raises(TransactionClosed):
            txn.add([])

    def test_a_refusal_of_the_later_call_does_not_end_the_doubt(self, txn, loopback):
        """Its token may have expired since; the first copy may have landed."""
        leave_in_doubt(txn, loopback)
        loopback.answer(401, answers.failure("unauthenticated", 401))
        with pytest.raises(CommitStateUnknown) as raised:
            txn.commit("WRITE")
        assert not raised.value.definite
        assert txn.state is TransactionState.UNKNOWN

    def test_an_id_of_the_callers_own_is_in_doubt_from_the_start(self, scripted_table, loopback):
        """Another process may have proposed the same body under it."""
        loopback.answer(200, answers.head())
        txn = scripted_table.transaction(transaction_id="batch-7")
        loopback.answer(401, answers.failure("unauthenticated", 401))
        with pytest.raises(CommitStateUnknown):
            txn.commit("WRITE")

    def test_an_abort_ends_it(self, txn, loopback):
        leave_in_doubt(txn, loopback)
        loopback.answer(200, answers.aborted(txn.id))
        txn.abort()
        assert txn.state is TransactionState.ABORTED

    def test_an_abort_that_comes_too_late_ends_it_too(self, txn, loopback):
        leave_in_doubt(txn, loopback)
        loopback.answer(409, answers.failure("transaction-committed", 409, version=5))
        with pytest.raises(TransactionCommitted) as raised:
            txn.abort()
        assert raised.value.version == 5
        assert txn.state is TransactionState.COMMITTED


class TestAskingFirst:
    def test_an_id_that_was_made_here_needs_no_question(self, txn, loopback):
        assert txn.landed() is None
        assert loopback.seen == []

    def test_an_id_that_nobody_knows_leaves_it_open(self, scripted_table, loopback):
        loopback.answer(200, answers.head())
        txn = scripted_table.transaction(transaction_id="batch-7")
        for state in ("pending", None):
            if state is None:
                loopback.answer(404, answers.failure("transaction-not-found", 404))
            else:
                loopback.answer(200, {"transaction_id": "batch-7", "state": state})
            assert txn.landed() is None
            assert txn.state is TransactionState.OPEN

    @pytest.mark.parametrize("code", ["table-not-found", "route-not-found"])
    def test_a_404_of_another_kind_is_no_answer_to_it(self, scripted_table, loopback, code):
        loopback.answer(200, answers.head())
        txn = scripted_table.transaction(transaction_id="batch-7")
        loopback.answer(404, answers.failure(code, 404))
        with pytest.raises(TidegateError):
            txn.landed()

    def test_nor_is_one_of_a_gateway(self, scripted_table, loopback):
        loopback.answer(200, answers.head())
        txn = scripted_table.transaction(transaction_id="batch-7")
        body = b'{"code":"transaction-not-found","status":404}'
        loopback.then(Reply(404, body, {"Content-Type": "application/problem+json"}))
        with pytest.raises(NotFound):
            txn.landed()

    def test_only_a_new_one_asks(self, txn, loopback):
        leave_in_doubt(txn, loopback)
        with pytest.raises(TransactionClosed):
            txn.landed()

    def test_what_was_sent_may_be_named_by_a_commit(self, txn, loopback):
        assert not txn.was_proposed
        leave_in_doubt(txn, loopback)
        assert txn.was_proposed


class TestAborting:
    def test_an_open_one_is_aborted_at_the_service(self, txn, loopback):
        loopback.answer(200, answers.aborted(txn.id))
        txn.abort()
        assert loopback.seen[0].path == f"{TABLE}/transactions/{txn.id}/abort"
        assert txn.state is TransactionState.ABORTED

    def test_twice_is_as_good_as_once(self, txn, loopback):
        loopback.answer(200, answers.aborted(txn.id))
        txn.abort()
        txn.abort()
        assert loopback.calls == [ABORT]

    def test_one_that_failed_will_not_land_anyway(self, txn, loopback):
        loopback.answer(409, answers.conflict())
        with pytest.raises(ConcurrentAppendException):
            txn.commit("WRITE")
        txn.abort()
        assert loopback.calls == [COMMIT]

    def test_one_that_landed_cannot_be_aborted(self, txn, loopback):
        loopback.answer(201, answers.receipt(txn.id))
        txn.commit("WRITE")
        with pytest.raises(TransactionCommitted):
            txn.abort()
        assert loopback.calls == [COMMIT]

    def test_one_whose_abort_failed_is_as_it_was(self, txn, loopback):
        loopback.out_of_service()
        with pytest.raises(ServiceUnavailable):
            txn.abort()
        assert txn.state is TransactionState.OPEN
