"""What an answer proves, and when a flow goes on or gives up."""

import pytest

from tests.client.transactions.scripted import (
    DONE,
    LOST,
    NOT_SENT,
    POLICY,
    REQUEST,
    Clock,
    Run,
    effects,
    problem,
    run,
    text,
)
from tidegate.errors import (
    CommitStateUnknown,
    ServiceUnavailable,
    TableAlreadyExists,
    TransactionCommitted,
)
from tidegate.wire.exchange import Answer, Response
from tidegate.wire.flow import Repeat, RetryPolicy, call_flow, propose_flow
from tidegate_protocol.base.problems import PROBLEMS, Code

TOO_LONG = {"retry-after": "3600"}


def propose(
    *answers: Answer,
    policy: RetryPolicy = POLICY,
    in_doubt: bool = False,
    takes_s: float = 0.0,
    jitter: float = 0.5,
) -> Run[str]:
    clock = Clock()
    flow = propose_flow(
        REQUEST,
        text,
        transaction_id="tx-1",
        effects=effects(clock, jitter),
        policy=policy,
        in_doubt=in_doubt,
    )
    return run(flow, clock, answers, takes_s=takes_s)


def call(*answers: Answer, repeat: Repeat = Repeat.ALWAYS) -> Run[str]:
    clock = Clock()
    flow = call_flow(REQUEST, text, effects=effects(clock), policy=POLICY, repeat=repeat)
    return run(flow, clock, answers)


def test_a_commit_that_lands_at_once_is_sent_once():
    done = propose(DONE)
    assert done.result == "landed"
    assert [attempt.after_s for attempt in done.attempts] == [0.0]


@pytest.mark.parametrize(
    "answer",
    [
        LOST,
        NOT_SENT,
        problem(Code.BACKPRESSURE),
        problem(Code.COMMIT_STATE_UNKNOWN),
        problem(Code.STORAGE_UNAVAILABLE),
        problem(Code.INTERNAL_ERROR),
        Response(status=502, body=b"<html>bad gateway</html>"),
        Response(status=408),
    ],
)
def test_what_proves_nothing_is_sent_again_unchanged(answer):
    done = propose(answer, answer, DONE)
    assert done.result == "landed"
    assert [attempt.request.body for attempt in done.attempts] == [REQUEST.body] * 3


@pytest.mark.parametrize(
    "code", [Code.CONCURRENT_APPEND, Code.TRANSACTION_ABORTED, Code.PARTITION_MISMATCH]
)
def test_409_410_and_422_settle_every_copy(code):
    done = propose(LOST, problem(code))
    assert done.error.definite
    assert done.error.code == code


def test_a_late_answer_to_an_earlier_copy_is_not_taken_for_one_to_this():
    done = propose(LOST, problem(Code.CONCURRENT_APPEND, instance="r-1"), DONE)
    assert done.result == "landed"
    assert [attempt.request.request_id for attempt in done.attempts] == ["r-1", "r-2", "r-3"]


def test_a_gateway_that_is_busy_is_waited_for_as_long_as_it_says():
    done = propose(Response(status=429, headers={"retry-after": "7"}), DONE, jitter=0.5)
    assert done.result == "landed"
    assert done.attempts[1].after_s == 7.5


def test_a_code_of_a_newer_service_is_judged_by_its_status():
    newer = problem(
        Code.CONCURRENT_APPEND,
        code="concurrent-zorder",
        type="urn:tidegate:problem:concurrent-zorder",
    )
    done = propose(newer)
    assert done.error.definite
    assert done.error.code == "concurrent-zorder"


def test_the_delays_double_up_to_the_longest_and_are_jittered():
    done = propose(*[LOST] * 6, DONE, jitter=0.5)
    assert [attempt.after_s for attempt in done.attempts] == [0.0, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_no_jitter_means_no_delay():
    done = propose(LOST, DONE, jitter=0.0)
    assert done.attempts[1].after_s == 0.0


def test_retry_after_is_waited_for_in_full():
    done = propose(problem(Code.BACKPRESSURE, headers={"retry-after": "7"}), DONE, jitter=0.5)
    assert done.attempts[1].after_s == 7.5


@pytest.mark.parametrize("value", ["Fri, 21 Nov 2025 10:00:00 GMT", "-3", "soon", "", "1.5", "²"])
def test_a_retry_after_that_is_no_number_of_seconds_is_left_to_the_backoff(value):
    done = propose(problem(Code.BACKPRESSURE, headers={"retry-after": value}), DONE, jitter=0.5)
    assert done.attempts[1].after_s == 0.5


def test_no_attempt_begins_after_the_deadline():
    policy = RetryPolicy(deadline_s=10, attempt_s=4, first_delay_s=1.0, longest_delay_s=1.0)
    done = propose(LOST, LOST, LOST, policy=policy, takes_s=4.0, jitter=0.5)
    assert type(done.error) is CommitStateUnknown
    assert done.started_s == [0.0, 4.5, 9.0]


def test_an_attempt_waits_no_longer_than_the_deadline_leaves():
    policy = RetryPolicy(deadline_s=10, attempt_s=4, first_delay_s=1.0, longest_delay_s=1.0)
    done = propose(LOST, LOST, LOST, policy=policy, takes_s=4.0, jitter=0.5)
    assert [attempt.timeout_s for attempt in done.attempts] == [4.0, 4.0, 1.0]


def test_a_wait_beyond_the_deadline_is_not_begun():
    done = propose(problem(Code.STORAGE_UNAVAILABLE, headers=TOO_LONG))
    assert type(done.error) is CommitStateUnknown
    assert len(done.attempts) == 1


def test_giving_up_is_definite_while_no_copy_was_executed():
    done = propose(NOT_SENT, problem(Code.BACKPRESSURE, headers=TOO_LONG))
    assert type(done.error) is ServiceUnavailable
    assert done.error.definite


def test_giving_up_is_in_doubt_once_one_copy_was():
    done = propose(LOST, problem(Code.BACKPRESSURE, headers=TOO_LONG))
    assert type(done.error) is CommitStateUnknown
    assert type(done.error.__cause__) is ServiceUnavailable


def test_a_read_is_given_up_without_talk_of_commits():
    done = call(problem(Code.INDEX_UNAVAILABLE, headers=TOO_LONG))
    assert type(done.error) is ServiceUnavailable
    assert not done.error.definite


def test_an_abort_that_came_too_late_is_not_definite():
    done = call(problem(Code.TRANSACTION_COMMITTED, version=9))
    assert type(done.error) is TransactionCommitted
    assert done.error.version == 9
    assert not done.error.definite


def test_a_creation_that_is_refused_is_definite():
    done = call(problem(Code.TABLE_EXISTS), repeat=Repeat.NOT_EXECUTED)
    assert type(done.error) is TableAlreadyExists
    assert done.error.definite


@pytest.mark.parametrize("code", [code for code in Code if PROBLEMS[code].status == 503])
def test_every_503_is_tried_again(code):
    assert propose(problem(code), DONE).result == "landed"
