"""How often a proposal is sent, and what is told where that was not enough."""

from collections.abc import Iterator

import pytest

import tidegate
from tests.client import answers
from tests.client.tables import data_file
from tests.client.transactions.scripted import DONE, LOST, NOT_SENT, Clock, effects, run, text
from tests.client.transport.loopback import Drop, Loopback
from tidegate import CommitStateUnknown, Lake, MaxCommitRetriesExceeded, TransactionState
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import Request
from tidegate.wire.flow import RetryPolicy, call_flow, propose_flow
from tidegate.wire.transport import HttpTransport

REQUEST = Request(method="POST", path="/tables/t/commits", body=b"{}")
THREE = RetryPolicy(first_delay_s=1.0, commit_attempts=3)
BUSY = answers.failure("backpressure", 429, detail="200 proposals wait for this table")


@pytest.fixture
def impatient(loopback: Loopback) -> Iterator[Lake]:
    """A lake that sends a proposal three times at most; its clock moves by its waits alone."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    connection = Connection(
        HttpTransport(loopback.url, token=None),
        policy=THREE,
        clock=lambda: now[0],
        sleep=sleep,
        jitter=lambda: 0.5,
    )
    with Lake(connection, url=loopback.url) as lake:
        yield lake


@pytest.fixture
def txn(impatient, loopback):
    for _ in range(2):
        loopback.answer(200, answers.head())
    transaction = impatient.table("main.air.flights").transaction()
    loopback.seen.clear()
    return transaction


def proposal(clock: Clock):
    return propose_flow(REQUEST, text, transaction_id="tx-1", effects=effects(clock), policy=THREE)


def test_a_proposal_is_sent_no_more_often():
    clock = Clock()
    done = run(proposal(clock), clock, [NOT_SENT, NOT_SENT, NOT_SENT])
    assert done.error.definite
    assert (done.error.attempts.count, done.error.attempts.seconds) == (3, 1.5)


def test_the_last_one_may_land():
    clock = Clock()
    assert run(proposal(clock), clock, [LOST, LOST, DONE]).result == "landed"


def test_one_that_may_have_landed_stays_unknown():
    clock = Clock()
    done = run(proposal(clock), clock, [LOST, NOT_SENT, NOT_SENT])
    assert isinstance(done.error, CommitStateUnknown)
    assert done.error.attempts.count == 3


def test_other_calls_are_sent_for_as_long_as_there_is_time():
    clock = Clock()
    flow = call_flow(REQUEST, text, effects=effects(clock), policy=THREE)
    assert run(flow, clock, [LOST] * 4 + [DONE]).result == "landed"


def test_the_error_tells_of_attempts_versions_and_time(txn, loopback):
    txn.add([data_file("a"), data_file("b")])
    for _ in range(3):
        loopback.answer(429, BUSY, retry_after="2")
    loopback.answer(200, answers.head(version=9))
    with pytest.raises(MaxCommitRetriesExceeded) as raised:
        txn.commit("WRITE")
    error = raised.value
    assert isinstance(error, tidegate.ServiceUnavailable)
    assert (error.definite, error.code, error.transaction_id) == (True, "backpressure", txn.id)
    assert error.error_class == "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"
    assert (error.attempts.count, error.attempts.versions) == (3, (4, 9))
    # Two rests, of 2 s and a jittered, doubling while each.
    assert error.attempts.seconds == 5.5
    assert str(error).startswith(
        "[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] the commit was not taken in 3 attempts in 5.5 s"
    )
    assert "of 2 actions began at version 4, and the table was at 9 by then" in str(error)
    assert "200 proposals wait for this table" in str(error)
    assert txn.state is TransactionState.FAILED


def test_a_version_that_is_not_told_at_once_is_left_out(txn, loopback):
    for _ in range(3):
        loopback.answer(429, BUSY)
    loopback.answer(503, answers.failure("index-unavailable", 503))
    with pytest.raises(MaxCommitRetriesExceeded, match="does not answer any more") as raised:
        txn.commit("WRITE")
    assert raised.value.attempts.versions == (4, None)


def test_a_commit_in_doubt_is_never_called_a_failure(txn, loopback):
    loopback.then(Drop())
    for _ in range(2):
        loopback.answer(429, BUSY)
    loopback.answer(200, answers.head(version=9))
    with pytest.raises(CommitStateUnknown) as raised:
        txn.commit("WRITE")
    assert raised.value.attempts.versions == (4, 9)
    (note,) = raised.value.__notes__
    assert note.startswith("Given up after 3 attempts in 1.5 s, which are as many as")
    assert txn.state is TransactionState.UNKNOWN


def test_time_that_ran_out_is_told_of_too(scripted_txn, loopback):
    loopback.answer(429, BUSY, retry_after="3600")
    with pytest.raises(tidegate.ServiceUnavailable) as raised:
        scripted_txn.commit("WRITE")
    assert type(raised.value) is not MaxCommitRetriesExceeded
    assert raised.value.attempts.count == 1
    assert raised.value.__notes__[0].startswith("Given up after 1 attempt in ")
    assert loopback.calls == ["commits"], "nothing more is asked of a service that is busy"


def test_a_lake_is_told_how_many():
    with tidegate.connect("http://127.0.0.1:1", max_commit_attempts=7) as lake:
        assert lake.connection.policy.commit_attempts == 7
    with pytest.raises(ValueError, match="at least 1 commit attempt, found 0"):
        tidegate.connect("http://127.0.0.1:1", max_commit_attempts=0)
