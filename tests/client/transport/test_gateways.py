"""What stands between a client and its service, answers by itself, and proves nothing by it."""

import json
from collections.abc import Iterator

import pytest

from tests.client import answers
from tests.client.tables import data_file, paths
from tests.client.transport.loopback import Reply
from tidegate import Lake, Table, TransactionState
from tidegate.errors import (
    CommitStateUnknown,
    TidegateError,
    TransactionCommitted,
    Unauthenticated,
    UnexpectedAnswer,
)
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import Answer, Request, Response
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.transport import HttpTransport
from tidegate_protocol.base.problems import PROBLEM_TYPE_PREFIX

PROBLEM = {"Content-Type": "application/problem+json"}
JSON = {"Content-Type": "application/json"}


def reply(status: int, body: dict[str, object], headers: dict[str, str]) -> Reply:
    return Reply(status, json.dumps(body).encode(), headers | {"Retry-After": "3600"})


def problem(code: str, status: int) -> dict[str, object]:
    """One that somebody else words as the service does."""
    return answers.failure(code, status, type=PROBLEM_TYPE_PREFIX + code, instance="a-gateway")


LOGIN = Reply(200, b"<html>log in</html>", {"Content-Type": "text/html"})
FOREIGN = [
    reply(409, {"code": "concurrent-append"}, JSON),
    reply(410, {"code": 12}, JSON),
    reply(422, {"code": "invalid-request", "detail": "schema"}, PROBLEM),
    reply(409, answers.conflict(), PROBLEM),
    reply(409, problem("concurrent-append", 409), PROBLEM),
    reply(404, problem("table-not-found", 404), PROBLEM),
    reply(401, {"error": "token"}, JSON),
    reply(403, problem("forbidden", 403), PROBLEM),
    reply(413, {}, JSON),
    reply(429, {"code": "backpressure"}, JSON),
    reply(201, {}, JSON),
    LOGIN,
]


class TestProposals:
    @pytest.mark.parametrize("foreign", FOREIGN)
    def test_no_answer_of_a_gateway_ends_one(self, scripted_txn, loopback, foreign):
        loopback.then(foreign)
        with pytest.raises(CommitStateUnknown) as raised, scripted_txn:
            scripted_txn.commit("WRITE")
        assert not raised.value.definite
        assert raised.value.transaction_id == scripted_txn.id
        assert scripted_txn.state is TransactionState.UNKNOWN
        assert len(loopback.seen) == 1

    def test_a_receipt_that_carries_another_request_is_not_believed(self, scripted_txn, loopback):
        headers = JSON | {"X-Request-Id": "another"}
        loopback.then(Reply(201, json.dumps(answers.receipt(scripted_txn.id)).encode(), headers))
        with pytest.raises(CommitStateUnknown, match="has to pass that header on"):
            scripted_txn.commit("WRITE")

    def test_every_copy_has_a_request_id_of_its_own(self, scripted_txn, loopback):
        loopback.then(Reply(502, b"<html>"))
        loopback.answer(201, answers.receipt(scripted_txn.id))
        scripted_txn.commit("WRITE")
        first, second = (seen.headers["x-request-id"] for seen in loopback.seen)
        assert first != second

    def test_a_404_to_a_later_copy_says_nothing_of_the_first(self, scripted_txn, loopback):
        """The table may have been forgotten after the first copy landed."""
        loopback.then(Reply(504))
        loopback.answer(404, answers.failure("table-not-found", 404))
        with pytest.raises(CommitStateUnknown) as raised, scripted_txn:
            scripted_txn.commit("WRITE")
        assert raised.value.status == 404
        assert scripted_txn.state is TransactionState.UNKNOWN

    @pytest.mark.parametrize(
        ("code", "status"),
        [("unauthenticated", 401), ("forbidden", 403), ("table-not-found", 404)],
    )
    def test_nor_does_one_to_a_later_call(self, scripted_txn, loopback, code, status):
        loopback.out_of_service()
        with pytest.raises(CommitStateUnknown):
            scripted_txn.commit("WRITE")
        loopback.answer(status, answers.failure(code, status))
        with pytest.raises(CommitStateUnknown):
            scripted_txn.commit("WRITE")
        assert scripted_txn.state is TransactionState.UNKNOWN


class TestAborts:
    @pytest.mark.parametrize(
        "foreign",
        [
            reply(200, {"state": "aborted"}, JSON),
            reply(409, {"code": "transaction-committed"}, JSON),
            reply(409, problem("transaction-committed", 409), PROBLEM),
            reply(410, {"code": "transaction-aborted"}, PROBLEM),
            LOGIN,
        ],
    )
    def test_no_answer_of_a_gateway_ends_the_doubt(self, scripted_txn, loopback, foreign):
        loopback.out_of_service()
        with pytest.raises(CommitStateUnknown):
            scripted_txn.commit("WRITE")
        loopback.then(foreign)
        with pytest.raises(TidegateError) as raised:
            scripted_txn.abort()
        assert not isinstance(raised.value, TransactionCommitted)
        assert not raised.value.definite
        assert scripted_txn.state is TransactionState.UNKNOWN


class TestReads:
    @pytest.mark.parametrize(
        ("foreign", "expected"),
        [(LOGIN, UnexpectedAnswer), (Reply(401, b"<html>"), Unauthenticated)],
    )
    def test_they_say_at_once_what_was_answered(self, scripted_table, loopback, foreign, expected):
        loopback.then(foreign)
        with pytest.raises(expected):
            scripted_table.head()
        assert len(loopback.seen) == 1


class Gateway(HttpTransport):
    """Passes proposals on, and answers them by itself all the same."""

    def __init__(self, url: str) -> None:
        super().__init__(url, token=None)
        self.answer: Response | None = None

    def send(self, request: Request, *, timeout_s: float) -> Answer:
        # Of the test's deadline, only what comes after the answer is to be short.
        told = super().send(request, timeout_s=30.0)
        return told if self.answer is None else self.answer


@pytest.fixture
def gateway(shared_server: str) -> Iterator[Gateway]:
    transport = Gateway(shared_server)
    yield transport
    transport.close()


class TestTheRealService:
    @pytest.fixture
    def behind(self, gateway: Gateway, table: Table) -> Table:
        """The table, through the gateway."""
        policy = RetryPolicy(deadline_s=0.1, attempt_s=30.0)
        return Lake(Connection(gateway, policy=policy), url="").table(table.id)

    @pytest.mark.parametrize("status", [401, 403, 404, 409, 410, 413, 422, 429])
    def test_what_landed_is_found_after_whatever_a_gateway_said(
        self, behind, table, gateway, status
    ):
        txn = behind.transaction()
        txn.add([data_file("a")])
        body = b'{"code":"metadata-changed","title":"no"}'
        gateway.answer = Response(
            status=status, headers={"content-type": "application/json"}, body=body
        )
        with pytest.raises(CommitStateUnknown), txn:
            txn.commit("WRITE")
        assert txn.state is TransactionState.UNKNOWN
        assert paths(table.scan()) == ["month=5/a.parquet"]
        gateway.answer = None
        assert txn.commit("WRITE").replayed
        assert txn.state is TransactionState.COMMITTED
